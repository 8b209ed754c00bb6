// RESOURCE_EXHAUSTED of two kinds: an overload, which time cures, and a limit, which it doesn't.
// The caller is told which by the trailer grpc-retry-pushback-ms.
//
// Threads: pure functions.
#ifndef MAXSIMD_SERVER_RPC_OVERLOAD_H_
#define MAXSIMD_SERVER_RPC_OVERLOAD_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace maxsimd {

inline constexpr char kOverloadPayload[] = "maxsimd/overload";

inline absl::Status Overloaded(absl::string_view why) {
  absl::Status status = absl::ResourceExhaustedError(absl::StrCat("overloaded: ", why));
  status.SetPayload(kOverloadPayload, absl::Cord());
  return status;
}

inline bool IsOverload(const absl::Status& status) {
  return status.GetPayload(kOverloadPayload).has_value();
}

// A call's query and the results that it holds for top_k stay until its end; see Admission.
inline absl::Status NoLastingRoom() {
  return Overloaded("queries and results held for top_k take all of max_pending_bytes");
}

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_RPC_OVERLOAD_H_
