// What follows from the options and the backend: limits, batch sizes, buffer sizes.  Pure.
#ifndef MAXSIMD_SERVER_SIZING_H_
#define MAXSIMD_SERVER_SIZING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "kernels/scorer.h"
#include "server/batching/batch_queue.h"
#include "server/codec/limits.h"
#include "server/options.h"

namespace maxsimd {

Limits LimitsFor(const Options& options);

// Bytes that the largest unit of a legal message takes in a packed buffer: all its rows, each
// padded to the backend's pitch.
uint64_t LargestUnitBytes(const Limits& limits, const Scorer& scorer);

// Errors: InvalidArgument  packed-buffer-bytes doesn't hold the largest unit
absl::StatusOr<BatchLimits> BatchLimitsFor(const Options& options, const Limits& limits,
                                           const Scorer& scorer);

// Threads that help to copy: a quarter of the processors, since gRPC's threads, which receive, need
// most of them; none where there are few.
int CopyThreadsFor(unsigned processors);

// How often calls are looked at for having stood still: often enough to end them within a quarter
// of the time-out more than it says.
absl::Duration TickFor(const Options& options);

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_SIZING_H_
