// What the device can do at most, measured.
#ifndef MAXSIMD_TESTS_BENCH_CEILINGS_H_
#define MAXSIMD_TESTS_BENCH_CEILINGS_H_

namespace maxsimd {

// Bytes per second of reading 4 GiB, the median of 15.
double MeasureReadBandwidth();

// Microseconds from launch to launch, each after the end of the one before, in a graph: of blocks
// as large as a Hopper kernel's, one on each multiprocessor, which make `loads` loads from device
// memory, each needing the last.
double MeasureLaunchMicroseconds(int loads);

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_BENCH_CEILINGS_H_
