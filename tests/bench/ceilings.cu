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

// As large as a block of ours: what a launch costs also depends on that.
constexpr int kBlockThreads = 192;
constexpr int kBlockShared = 100 * 1024;

// A chain of loads, each of which needs the one before.
__global__ void Chase(const uint32_t* data, uint32_t start, int loads, uint32_t* out) {
  uint32_t at = start + blockIdx.x * 4096;
  for (int i = 0; i < loads; ++i) at = __ldcg(data + at);
  if (at == ~0u) *out = at;
}

float GraphMicroseconds(cudaGraphExec_t graph, cudaStream_t stream, int launches) {
  cudaEvent_t start;
  cudaEvent_t end;
  cudaEventCreate(&start);
  cudaEventCreate(&end);
  float times[15];
  for (float& time : times) {
    cudaEventRecord(start, stream);
    cudaGraphLaunch(graph, stream);
    cudaEventRecord(end, stream);
    cudaEventSynchronize(end);
    cudaEventElapsedTime(&time, start, end);
  }
  std::sort(times, times + 15);
  return times[7] * 1e3f / static_cast<float>(launches);
}

}  // namespace

double MeasureLaunchMicroseconds(int loads) {
  // Each load 64 MB behind the last, so that none is in L2; each launch in places of its own.
  constexpr uint32_t kWords = kBytes / 4;
  constexpr uint32_t kStep = 16 << 20;
  constexpr int kLaunches = 128;
  uint32_t* data = nullptr;
  if (cudaMalloc(&data, kBytes) != cudaSuccess) return 0;
  uint32_t* const host = new uint32_t[kWords];
  for (uint32_t i = 0; i < kWords; ++i) host[i] = (i + kStep) % kWords;
  cudaMemcpy(data, host, kBytes, cudaMemcpyDefault);
  delete[] host;
  cudaFuncSetAttribute(Chase, cudaFuncAttributeMaxDynamicSharedMemorySize, kBlockShared);
  int processors = 0;
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  for (int i = 0; i < kLaunches; ++i) {
    Chase<<<processors, kBlockThreads, kBlockShared, stream>>>(data, i * 64, loads, data);
  }
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&executable, graph, 0);
  const float microseconds = GraphMicroseconds(executable, stream, kLaunches);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  cudaFree(data);
  return microseconds;
}

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
