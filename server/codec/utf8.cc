#include "server/codec/utf8.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace maxsimd {
namespace {

// The length of the well-formed sequence that starts at `at`, or 0.  `size` is at least 1.
size_t SequenceBytes(const unsigned char* at, size_t size) {
  const unsigned char lead = at[0];
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;  // A continuation, or an overlong form, or too large.
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (size < length) return 0;
  // The second byte's range is narrower where the lead leaves room for overlong forms (E0, F0),
  // surrogates (ED) or code points beyond U+10FFFF (F4).
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (at[1] < low || at[1] > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((at[i] & 0xC0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  size_t at = 0;
  while (at < text.size()) {
    if (text.size() - at >= sizeof(uint64_t)) {  // Eight ASCII characters at a time.
      uint64_t word;
      std::memcpy(&word, bytes + at, sizeof(word));
      if ((word & 0x8080808080808080u) == 0) {
        at += sizeof(word);
        continue;
      }
    }
    const size_t length = SequenceBytes(bytes + at, text.size() - at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

}  // namespace maxsimd
