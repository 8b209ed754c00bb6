// A message as the transport delivered it: over a thousand odd-sized slices for 64 MiB, nowhere
// contiguous and nowhere aligned (elements straddle slices).
//
// Non-owning: the slices' memory must outlive the view.  Reading is thread-safe.
#ifndef MAXSIMD_SERVER_CODEC_MESSAGE_VIEW_H_
#define MAXSIMD_SERVER_CODEC_MESSAGE_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace maxsimd {

class MessageView {
 public:
  using Slice = absl::Span<const std::byte>;

  MessageView() = default;
  explicit MessageView(std::vector<Slice> slices);

  size_t size() const { return size_; }
  absl::Span<const Slice> slices() const { return slices_; }

  // Gathers bytes [offset, offset + size), which must lie within the message.
  void Copy(size_t offset, size_t size, std::byte* to) const;

  // Gathers `rows` rows of `row_bytes` each from `offset` on, to rows `pitch_bytes` apart.  The
  // padding behind a row is set to 0, so that a backend that reads it reads no other call's data.
  void CopyRows(size_t offset, size_t row_bytes, uint64_t rows, size_t pitch_bytes,
                std::byte* to) const;

 private:
  std::vector<Slice> slices_;
  std::vector<size_t> ends_;  // Of each slice, as an offset in the message.
  size_t size_ = 0;
};

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_CODEC_MESSAGE_VIEW_H_
