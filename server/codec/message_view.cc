#include "server/codec/message_view.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace maxsimd {
namespace {

// Reads on through the slices from where it stands.
class Gatherer {
 public:
  Gatherer(absl::Span<const MessageView::Slice> slices, size_t slice, size_t within)
      : slices_(slices), slice_(slice), within_(within) {}

  void Read(std::byte* to, size_t size) {
    while (size > 0) {
      const MessageView::Slice slice = slices_[slice_];
      const size_t part = std::min(size, slice.size() - within_);
      if (part > 0) std::memcpy(to, slice.data() + within_, part);
      to += part;
      size -= part;
      within_ += part;
      if (within_ == slice.size()) {
        ++slice_;
        within_ = 0;
      }
    }
  }

 private:
  const absl::Span<const MessageView::Slice> slices_;
  size_t slice_;
  size_t within_;
};

// Where byte `offset` lies, which must be within the message.
Gatherer StartAt(absl::Span<const MessageView::Slice> slices, const std::vector<size_t>& ends,
                 size_t offset) {
  const size_t slice = std::upper_bound(ends.begin(), ends.end(), offset) - ends.begin();
  return Gatherer(slices, slice, offset - (slice == 0 ? 0 : ends[slice - 1]));
}

}  // namespace

MessageView::MessageView(std::vector<Slice> slices) : slices_(std::move(slices)) {
  ends_.reserve(slices_.size());
  for (const Slice slice : slices_) {
    size_ += slice.size();
    ends_.push_back(size_);
  }
}

void MessageView::Copy(size_t offset, size_t size, std::byte* to) const {
  if (size == 0) return;
  StartAt(slices_, ends_, offset).Read(to, size);
}

void MessageView::CopyRows(size_t offset, size_t row_bytes, uint64_t rows, size_t pitch_bytes,
                           std::byte* to) const {
  if (pitch_bytes == row_bytes) return Copy(offset, rows * row_bytes, to);
  if (rows == 0) return;
  Gatherer from = StartAt(slices_, ends_, offset);
  for (uint64_t row = 0; row < rows; ++row, to += pitch_bytes) {
    from.Read(to, row_bytes);
    std::memset(to + row_bytes, 0, pitch_bytes - row_bytes);
  }
}

}  // namespace maxsimd
