// Do the sizes that an input states agree, so that no view is read beyond its end?  Pure.
//
// Only what the client itself relies on is checked; all else is the server's to judge.
//
// Errors: InvalidArgument, with the field's name as a server would say it.
#ifndef MAXSIMD_CLIENT_INPUT_CHECK_H_
#define MAXSIMD_CLIENT_INPUT_CHECK_H_

#include "absl/status/status.h"

#include "client/rerank_types.h"

namespace maxsimd {

absl::Status CheckInput(const RerankInput& input);

}  // namespace maxsimd

#endif  // MAXSIMD_CLIENT_INPUT_CHECK_H_
