#include "server/allocator.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include <unistd.h>

namespace maxsimd {
namespace {

size_t ResidentBytes() {
  size_t total = 0;
  size_t resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(AllocatorTest, KeepsTheMemoryOfAMessage) {
#if !defined(__GLIBC__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "another allocator is in use";
#endif
  KeepFreedMemory();
  constexpr size_t kSlice = 64 << 10;
  std::vector<std::unique_ptr<std::byte[]>> slices;
  for (int slice = 0; slice < 1024; ++slice) {
    slices.push_back(std::make_unique<std::byte[]>(kSlice));
    std::fill_n(slices.back().get(), kSlice, std::byte{1});
  }
  const size_t held = ResidentBytes();
  slices.clear();
  EXPECT_GT(ResidentBytes(), held - held / 4);
}

}  // namespace
}  // namespace maxsimd
