#include <algorithm>
#include <cstdint>

#include <cuda_runtime.h>

#include "tests/bench/ceilings.h"

namespace maxsimd {
namespace {

constexpr size_t kBytes = size_t{4} << 30;
constexpr int kThreads = 256;
constexpr int kUnroll = 4;

__global__ void Read(const uint4* data, size_t count, uint32_t* out) {
  const size_t step = static_cast<size_t>(gridDim.x) * kThreads * kUnroll;
  uint32_t sum = 0;
  for (size_t block = static_cast<size_t>(blockIdx.x) * kThreads * kUnroll; block < count;
       block += step) {
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const uint4 value = __ldcs(data + block + i * kThreads + threadIdx.x);
      sum ^= value.x ^ value.y ^ value.z ^ value.w;
    }
  }
  if (sum == 1234567) *out = sum;  // Hardly ever; keeps the loads.
}

}  // namespace

double MeasureReadBandwidth() {
  uint4* data = nullptr;
  uint32_t* out = nullptr;
  if (cudaMalloc(&data, kBytes) != cudaSuccess || cudaMalloc(&out, 4) != cudaSuccess) return 0;
  cudaMemset(data, 1, kBytes);
  cudaEvent_t start;
  cudaEvent_t end;
  cudaEventCreate(&start);
  cudaEventCreate(&end);
  int processors = 0;
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
  float times[15];
  for (float& time : times) {
    cudaEventRecord(start);
    Read<<<8 * processors, kThreads>>>(data, kBytes / sizeof(uint4), out);
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    cudaEventElapsedTime(&time, start, end);
  }
  cudaFree(data);
  cudaFree(out);
  std::sort(times, times + 15);
  return kBytes / (times[7] * 1e-3);
}

}  // namespace maxsimd
