// Tensors in files: .npy (one, without a name) and .safetensors (several, by name).
//
// The file is mapped, not read: embeddings go from the page cache to the socket.  A file that
// another program shortens meanwhile kills this one (SIGBUS), as mapping has it. Errors: NotFound
// and PermissionDenied as the system says; InvalidArgument for what is no such
//         file; all with the file's name.
// Lifetime: the tensors view the mapping, which lives as long as a TensorFile, or a copy of
// `memory`, does.
#ifndef MAXSIMD_CLIENT_TENSOR_FILE_H_
#define MAXSIMD_CLIENT_TENSOR_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "client/safetensors.h"
#include "client/tensor.h"

namespace maxsimd {

struct MappedFile {
  absl::string_view bytes;
  std::shared_ptr<const void> memory;  // What `bytes` views.
};

absl::StatusOr<MappedFile> MapFile(const std::string& path);

struct TensorFile {
  std::string path;
  bool named = false;  // .safetensors; else the one tensor's name is "".
  TensorMap tensors;
  std::shared_ptr<const void> memory;

  // Null where there is none.
  const TensorView* Find(const std::string& name) const;
};

// Which of the two a file is, its first bytes say.
absl::StatusOr<TensorFile> ReadTensorFile(const std::string& path);

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_TENSOR_FILE_H_
