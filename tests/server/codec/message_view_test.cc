#include "server/codec/message_view.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>

#include <gtest/gtest.h>

namespace maxsimd {
namespace {

std::vector<std::byte> Numbered(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

// `bytes` cut at random, with empty slices in between.
MessageView Cut(const std::vector<std::byte>& bytes, std::mt19937* random) {
  std::vector<MessageView::Slice> slices;
  size_t at = 0;
  while (at < bytes.size()) {
    const size_t size = std::min<size_t>((*random)() % 5, bytes.size() - at);
    slices.push_back(MessageView::Slice(bytes).subspan(at, size));
    at += size;
  }
  slices.emplace_back();
  return MessageView(std::move(slices));
}

TEST(MessageViewTest, AnEmptyMessageHasNoBytes) {
  EXPECT_EQ(MessageView().size(), 0u);
  EXPECT_EQ(MessageView({MessageView::Slice()}).size(), 0u);
  MessageView().Copy(0, 0, nullptr);
  MessageView().CopyRows(0, 4, 0, 8, nullptr);
}

TEST(MessageViewTest, CopiesEveryRangeFromAnySlices) {
  std::mt19937 random(1);
  const std::vector<std::byte> bytes = Numbered(40);
  const MessageView view = Cut(bytes, &random);
  ASSERT_EQ(view.size(), bytes.size());
  for (size_t begin = 0; begin <= bytes.size(); ++begin) {
    for (size_t end = begin; end <= bytes.size(); ++end) {
      std::vector<std::byte> copy(end - begin);
      view.Copy(begin, end - begin, copy.data());
      ASSERT_TRUE(std::equal(copy.begin(), copy.end(), bytes.begin() + begin))
          << begin << " " << end;
    }
  }
}

TEST(MessageViewTest, CopiesRowsToTheirPitchAndClearsThePadding) {
  std::mt19937 random(2);
  const std::vector<std::byte> bytes = Numbered(100);
  for (size_t row_bytes = 1; row_bytes <= 9; ++row_bytes) {
    for (size_t pitch = row_bytes; pitch <= row_bytes + 7; ++pitch) {
      const size_t offset = random() % 11;
      const size_t rows = (bytes.size() - offset) / row_bytes;
      const MessageView view = Cut(bytes, &random);
      const std::byte untouched{0xEE};
      std::vector<std::byte> to(rows * pitch + 1, untouched);
      view.CopyRows(offset, row_bytes, rows, pitch, to.data());
      for (size_t i = 0; i < rows * pitch; ++i) {
        const size_t column = i % pitch;
        const std::byte expected =
            column < row_bytes ? bytes[offset + i / pitch * row_bytes + column] : std::byte{0};
        ASSERT_EQ(to[i], expected)
            << "row bytes " << row_bytes << " pitch " << pitch << " at " << i;
      }
      EXPECT_EQ(to.back(), untouched);
    }
  }
}

}  // namespace
}  // namespace maxsimd
