// What the device can do at most, measured.
#ifndef MAXSIMD_TESTS_BENCH_CEILINGS_H_
#define MAXSIMD_TESTS_BENCH_CEILINGS_H_

namespace maxsimd {

// Bytes per second of reading 4 GiB, the median of 15.
double MeasureReadBandwidth();

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_BENCH_CEILINGS_H_
