#include <iostream>

#include <sys/ioctl.h>
#include <unistd.h>

#include "client/cli/cli.h"

int main(int argc, char** argv) {
  maxsimd::Terminal terminal;
  winsize size{};
  if (isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    terminal.columns = size.ws_col;
  }
  terminal.progress = isatty(STDERR_FILENO) != 0;
  return maxsimd::RunCli(argc, argv, std::cout, std::cerr, terminal);
}
