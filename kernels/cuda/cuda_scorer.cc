#include "kernels/cuda/cuda_scorer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/status_macros.h"

namespace maxsimd {
namespace {

using cuda::ToStatus;

// mma.sync on bfloat16 and cp.async.
constexpr int kLeastComputeMajor = 8;

// Copies of 16 bytes; shorter rows are copied in words of 4, so that padding never doubles rows.
constexpr size_t kPitchUnit = 16;
constexpr size_t kShortPitchUnit = 4;

// Row numbers within a packed buffer are 31-bit in a tensor map: 2^31 rows of the least pitch
// there.
constexpr size_t kMaxPackedBytes = size_t{32} << 30;

// Of dense float16 multiply-adds per clock and multiprocessor, half of the least that tensor cores
// since sm_80 do.
constexpr double kMultiplyAddsPerClock = 256;

size_t RoundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

absl::StatusOr<cudaDeviceProp> FindDevice(int device) {
  int count = 0;
  RETURN_IF_ERROR(ToStatus(cudaGetDeviceCount(&count), "no device"));
  if (device < 0 || device >= count) {
    return absl::FailedPreconditionError(
        absl::StrCat("cuda: no device ", device, ": this machine has ", count));
  }
  RETURN_IF_ERROR(ToStatus(cudaSetDevice(device), "device"));
  cudaDeviceProp properties;
  RETURN_IF_ERROR(ToStatus(cudaGetDeviceProperties(&properties, device), "device"));
  if (properties.major < kLeastComputeMajor) {
    return absl::FailedPreconditionError(
        absl::StrCat("cuda: ", properties.name, " is of compute capability ", properties.major, ".",
                     properties.minor, ", 8.0 is needed"));
  }
  return properties;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaScorer>> CudaScorer::Create(int device) {
  ASSIGN_OR_RETURN(const cudaDeviceProp properties, FindDevice(device));
  RETURN_IF_ERROR(ToStatus(cuda::PrepareGeneric(), "kernels"));
  cuda::DeviceTraits traits;
  traits.multiprocessors = properties.multiProcessorCount;
  traits.overlaps_launches = properties.major >= 9;
  traits.has_sm90_kernels = properties.major == 9 && cuda::PrepareSm90() == cudaSuccess;
  cudaGetLastError();
  int kilohertz = 0;
  RETURN_IF_ERROR(
      ToStatus(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, device), "clock"));
  const double speed =
      kMultiplyAddsPerClock * 1e3 * std::max(1, kilohertz) * properties.multiProcessorCount;
  std::string name =
      absl::StrCat(properties.name, ", device ", device, ", ", properties.totalGlobalMem >> 30,
                   " GiB, compute capability ", properties.major, ".", properties.minor);
  std::unique_ptr<CudaScorer> scorer(new CudaScorer(device, std::move(name), speed, traits));
  RETURN_IF_ERROR(scorer->CreateSlots());
  return scorer;
}

CudaScorer::CudaScorer(int device, std::string name, double multiply_adds_per_second,
                       const cuda::DeviceTraits& traits)
    : device_(device),
      name_(std::move(name)),
      multiply_adds_per_second_(multiply_adds_per_second),
      traits_(traits) {}

CudaScorer::~CudaScorer() {
  cudaSetDevice(device_);
}  // Whose memory the slots free.

absl::Status CudaScorer::CreateSlots() {
  MutexLock lock(&mutex_);
  for (std::unique_ptr<cuda::ScorerSlot>& slot : slots_) {
    slot = std::make_unique<cuda::ScorerSlot>();
    RETURN_IF_ERROR(slot->Create());
    free_slots_.push_back(slot.get());
  }
  return absl::OkStatus();
}

size_t CudaScorer::RowPitchBytes(ElementType type, uint32_t dim) const {
  const size_t row_bytes = dim * ElementBytes(type);
  return RoundUp(row_bytes, row_bytes < kPitchUnit ? kShortPitchUnit : kPitchUnit);
}

absl::StatusOr<PackedBuffer> CudaScorer::AllocatePackedBuffer(size_t size_bytes) {
  if (size_bytes > kMaxPackedBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("cuda: a packed buffer of ", size_bytes,
                                                     " bytes: ", kMaxPackedBytes, " is the most"));
  }
  RETURN_IF_ERROR(ToStatus(cudaSetDevice(device_), "device"));
  std::array<cuda::ScorerSlot*, kSlots> slots;
  for (cuda::ScorerSlot*& slot : slots) slot = TakeSlot();
  absl::Status status;
  for (cuda::ScorerSlot* slot : slots) {
    if (status.ok()) status = slot->ReservePacked(size_bytes);
    ReturnSlot(slot);
  }
  RETURN_IF_ERROR(status);
  auto memory = std::make_shared<cuda::PinnedBuffer>();
  RETURN_IF_ERROR(memory->Reserve(std::max<size_t>(size_bytes, 1)));
  return PackedBuffer(memory->data(), size_bytes, [memory](std::byte*) mutable { memory.reset(); });
}

cuda::ScorerSlot* CudaScorer::TakeSlot() {
  MutexLock lock(&mutex_);
  while (free_slots_.empty()) slot_returned_.Wait(&mutex_);
  cuda::ScorerSlot* const slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

void CudaScorer::ReturnSlot(cuda::ScorerSlot* slot) {
  MutexLock lock(&mutex_);
  free_slots_.push_back(slot);
  slot_returned_.NotifyOne();
}

bool CudaScorer::IsAlone() {
  MutexLock lock(&mutex_);
  return free_slots_.size() + 1 == slots_.size();
}

void CudaScorer::FailNextScoreForTest(int cuda_error) {
  MutexLock lock(&mutex_);
  injected_error_ = cuda_error;
}

absl::Status CudaScorer::TakeInjectedError() {
  MutexLock lock(&mutex_);
  return ToStatus(static_cast<cudaError_t>(std::exchange(injected_error_, 0)), "injected");
}

absl::Status CudaScorer::Lose(const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (lost_.ok()) lost_ = absl::UnavailableError(absl::StrCat("lost: ", status.message()));
  return lost_;
}

absl::Status CudaScorer::Fail(cuda::ScorerSlot& slot, absl::Status status) {
  const absl::Status drained = slot.Synchronize();
  if (!drained.ok()) return Lose(drained);
  cudaGetLastError();  // Told by `status`; it must not be found by later calls.
  return status;
}

absl::StatusOr<ScoreTimings> CudaScorer::Score(const ScoreBatch& batch) {
  for (const QueryGroup& group : batch.groups) RETURN_IF_ERROR(CheckGroup(group, *this));
  {
    MutexLock lock(&mutex_);
    RETURN_IF_ERROR(lost_);
  }
  RETURN_IF_ERROR(ToStatus(cudaSetDevice(device_), "device"));
  cuda::ScorerSlot* const slot = TakeSlot();
  absl::StatusOr<ScoreTimings> timings = ScoreIn(*slot, batch);
  ReturnSlot(slot);
  return timings;
}

absl::StatusOr<ScoreTimings> CudaScorer::ScoreIn(cuda::ScorerSlot& slot, const ScoreBatch& batch) {
  absl::Status status = slot.Enqueue(batch, traits_);
  if (status.ok()) status = slot.Wait(/*spin=*/IsAlone());
  if (const absl::Status injected = TakeInjectedError(); !injected.ok()) return Lose(injected);
  if (!status.ok()) return Fail(slot, std::move(status));
  slot.Deliver(batch);
  return slot.Timings();
}

}  // namespace maxsimd
