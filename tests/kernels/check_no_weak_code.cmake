# Fails where an object of one instruction set defines code that the linker may share.
#
# An inline function compiled for AVX-512 is a weak symbol; the linker may keep that copy for callers
# compiled for any processor, which then end by an illegal instruction.  OBJECTS is a list, NM a tool.
string(REPLACE "," ";" OBJECTS "${OBJECTS}")
list(LENGTH OBJECTS count)
if(count EQUAL 0)
  message(FATAL_ERROR "no objects to check")
endif()
foreach(object ${OBJECTS})
  execute_process(COMMAND ${NM} --defined-only ${object} OUTPUT_VARIABLE symbols
    COMMAND_ERROR_IS_FATAL ANY)
  if(NOT symbols MATCHES "Kernel")
    message(FATAL_ERROR "${object} defines no kernel: is it the right object?")
  endif()
  string(REGEX MATCHALL "[^\n]* [WwuTi] [^\n]*" shared "${symbols}")
  if(shared)
    message(FATAL_ERROR "${object} defines code that others may call:\n${shared}")
  endif()
endforeach()
