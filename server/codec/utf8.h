// Whether bytes are UTF-8: what protobuf demands of a `string`, which includes no surrogates and
// nothing above U+10FFFF.  (Its own check logs every failure, and so lets clients fill the log.)
//
// Source: RFC 3629, section 4.
#ifndef MAXSIMD_SERVER_CODEC_UTF8_H_
#define MAXSIMD_SERVER_CODEC_UTF8_H_

#include "absl/strings/string_view.h"

namespace maxsimd {

bool IsUtf8(absl::string_view text);

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_CODEC_UTF8_H_
