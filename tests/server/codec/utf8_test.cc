#include "server/codec/utf8.h"

#include <string>

#include "google/protobuf/stubs/common.h"
#include "google/protobuf/wire_format_lite.h"
#include <gtest/gtest.h>

namespace maxsimd {
namespace {

// Protobuf's own check, which the generated parser calls.
bool ParserAccepts(const std::string& text) {
  return google::protobuf::internal::WireFormatLite::VerifyUtf8String(
      text.data(), static_cast<int>(text.size()), google::protobuf::internal::WireFormatLite::PARSE,
      "text");
}

TEST(IsUtf8Test, AgreesWithProtobufOnEverySequenceOfThreeBytes) {
  const google::protobuf::LogSilencer silencer;
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      for (const int third : {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF}) {
        const std::string text = {static_cast<char>(first), static_cast<char>(second),
                                  static_cast<char>(third)};
        for (size_t size = 1; size <= text.size(); ++size) {
          const std::string prefix = text.substr(0, size);
          ASSERT_EQ(IsUtf8(prefix), ParserAccepts(prefix))
              << first << " " << second << " " << third;
        }
      }
    }
  }
}

TEST(IsUtf8Test, AgreesWithProtobufOnSequencesOfFourBytes) {
  const google::protobuf::LogSilencer silencer;
  for (int lead = 0xEF; lead < 256; ++lead) {
    for (int second = 0; second < 256; ++second) {
      for (const int third : {0x7F, 0x80, 0xBF, 0xC0}) {
        for (const int fourth : {0x7F, 0x80, 0xBF, 0xC0}) {
          const std::string text = {static_cast<char>(lead), static_cast<char>(second),
                                    static_cast<char>(third), static_cast<char>(fourth)};
          ASSERT_EQ(IsUtf8(text), ParserAccepts(text)) << lead << " " << second;
        }
      }
    }
  }
}

TEST(IsUtf8Test, FindsABadByteAtEveryPlaceOfALongText) {
  const std::string text = "sixteen letters and \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 and more";
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8(text));
  EXPECT_TRUE(IsUtf8(std::string(20, '\0')));
  for (size_t at = 0; at < text.size(); ++at) {
    std::string bad = text;
    bad[at] = '\xFF';
    EXPECT_FALSE(IsUtf8(bad)) << at;
  }
}

}  // namespace
}  // namespace maxsimd
