// Builds the bytes of .npy and .safetensors files, right or wrong, and puts them into files.
#ifndef MAXSIMD_TESTS_CLIENT_TENSOR_BYTES_H_
#define MAXSIMD_TESTS_CLIENT_TENSOR_BYTES_H_

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include <unistd.h>

namespace maxsimd {

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

inline std::string LittleEndianBytes(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}

inline std::string NpyWithHeader(const std::string& header, const std::string& data,
                                 int version = 1) {
  return absl::StrCat("\x93NUMPY", std::string(1, static_cast<char>(version)), std::string(1, '\0'),
                      LittleEndianBytes(header.size(), version == 1 ? 2 : 4), header, data);
}

// `shape` as Python writes it: "(3, 4)".
inline std::string Npy(const std::string& descr, const std::string& shape,
                       const std::string& data) {
  return NpyWithHeader(absl::StrCat("{'descr': '", descr,
                                    "', 'fortran_order': False, 'shape': ", shape, ", }    \n"),
                       data);
}

inline std::string Safetensors(const std::string& header, const std::string& data) {
  return absl::StrCat(LittleEndianBytes(header.size(), 8), header, data);
}

// A folder that goes with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "maxsimd_test_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string Path(const std::string& name) const { return path_ + "/" + name; }

  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }

 private:
  std::string path_;
};

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_CLIENT_TENSOR_BYTES_H_
