#include "client/tensor_file.h"

#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/npy.h"
#include "kernels/status_macros.h"

namespace maxsimd {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~FileDescriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return descriptor_; }

 private:
  const int descriptor_;
};

absl::Status SystemError(const std::string& path) {
  return absl::ErrnoToStatus(errno, path);
}

}  // namespace

absl::StatusOr<MappedFile> MapFile(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return SystemError(path);
  struct stat about;
  if (fstat(file.get(), &about) != 0) return SystemError(path);
  if (!S_ISREG(about.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": expected a regular file"));
  }
  const size_t size = static_cast<size_t>(about.st_size);
  if (size == 0) return MappedFile{};  // Nothing to map.
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) return SystemError(path);
  return MappedFile{
      {static_cast<const char*>(address), size},
      std::shared_ptr<const void>(address, [size](void* mapped) { munmap(mapped, size); })};
}

const TensorView* TensorFile::Find(const std::string& name) const {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

absl::StatusOr<TensorFile> ReadTensorFile(const std::string& path) {
  ASSIGN_OR_RETURN(MappedFile mapped, MapFile(path));
  TensorFile file{.path = path, .named = false, .tensors = {}, .memory = std::move(mapped.memory)};
  if (absl::StartsWith(mapped.bytes, "\x93NUMPY") || absl::EndsWithIgnoreCase(path, ".npy")) {
    ASSIGN_OR_RETURN(TensorView tensor, ParseNpy(mapped.bytes, path));
    file.tensors.emplace("", std::move(tensor));
    return file;
  }
  file.named = true;
  ASSIGN_OR_RETURN(file.tensors, ParseSafetensors(mapped.bytes, path));
  return file;
}

}  // namespace maxsimd
