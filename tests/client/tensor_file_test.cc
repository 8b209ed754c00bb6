#include "client/tensor_file.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/npy.h"
#include "client/safetensors.h"
#include "tests/client/tensor_bytes.h"

namespace maxsimd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kSixFloats = BytesOf<float>({1, 2, 3, 4, 5, 6});

std::string NpyError(const std::string& bytes) {
  const auto tensor = ParseNpy(bytes, "file.npy");
  EXPECT_EQ(tensor.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(tensor.status().message()), HasSubstr("file.npy"));
  return std::string(tensor.status().message());
}

std::string SafetensorsError(const std::string& bytes) {
  const auto tensors = ParseSafetensors(bytes, "file.safetensors");
  EXPECT_EQ(tensors.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(tensors.status().message()), HasSubstr("file.safetensors"));
  return std::string(tensors.status().message());
}

TEST(NpyTest, ReadsEveryTypeThatEmbeddingsAndCountsComeIn) {
  const std::vector<std::pair<std::string, TensorType>> types = {
      {"<f4", TensorType::kFloat32}, {"<f2", TensorType::kFloat16}, {"<u2", TensorType::kUint16},
      {"<i4", TensorType::kInt32},   {"<u4", TensorType::kUint32},  {"<i8", TensorType::kInt64},
      {"<u8", TensorType::kUint64}};
  for (const auto& [descr, type] : types) {
    const std::string data(3 * TensorTypeBytes(type), 'x');
    const std::string bytes = Npy(descr, "(3,)", data);
    const auto tensor = ParseNpy(bytes, "file.npy");
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->type, type);
    EXPECT_THAT(tensor->shape, ElementsAre(3));
    EXPECT_EQ(tensor->data, data);
  }
}

TEST(NpyTest, ReadsEveryVersionAndShape) {
  const std::string header = "{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"<f4\"}";
  for (int version : {1, 2, 3}) {
    const std::string bytes = NpyWithHeader(header, kSixFloats, version);
    const auto tensor = ParseNpy(bytes, "file.npy");
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_THAT(tensor->shape, ElementsAre(2, 3));
  }
  for (const char* shape : {"(1, 2, 3)", "(6,)", "( 6 , )"}) {
    EXPECT_TRUE(ParseNpy(Npy("<f4", shape, kSixFloats), "file.npy").ok()) << shape;
  }
  EXPECT_TRUE(ParseNpy(Npy("<f4", "()", kSixFloats.substr(0, 4)), "file.npy").ok());
  EXPECT_TRUE(ParseNpy(Npy("<f4", "(0, 128)", ""), "file.npy").ok());
}

TEST(NpyTest, RefusesEveryTruncation) {
  const std::string whole = Npy("<f4", "(2, 3)", kSixFloats);
  for (size_t size = 0; size < whole.size(); ++size) NpyError(whole.substr(0, size));
  EXPECT_THAT(NpyError(whole + "x"), HasSubstr("expected 24 bytes of data"));
}

TEST(NpyTest, SurvivesEveryChangedByte) {
  const std::string whole = Npy("<f4", "(2, 3)", kSixFloats);
  for (size_t i = 0; i < whole.size() - kSixFloats.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(value);
      const auto tensor = ParseNpy(bytes, "file.npy");
      if (tensor.ok()) {
        EXPECT_EQ(tensor->data.size(), 24u);
      }
    }
  }
}

TEST(NpyTest, SaysWhatItExpected) {
  EXPECT_THAT(NpyError("PK\x03\x04 a zip, not an npy"), HasSubstr("magic"));
  EXPECT_THAT(NpyError(NpyWithHeader("{}", "", 4)), HasSubstr("version"));
  EXPECT_THAT(NpyError(Npy(">f4", "(2, 3)", kSixFloats)), HasSubstr("found >f4"));
  EXPECT_THAT(NpyError(Npy("|O", "(2, 3)", kSixFloats)), HasSubstr("found |O"));
  EXPECT_THAT(NpyError(NpyWithHeader("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}",
                                     kSixFloats)),
              HasSubstr("C order"));
  EXPECT_THAT(NpyError(Npy("<f4", "(-2, 3)", kSixFloats)), HasSubstr("header"));
  EXPECT_THAT(NpyError(Npy("<f4", "(2 3)", kSixFloats)), HasSubstr("header"));
  EXPECT_THAT(NpyError(Npy("<f4", "(99999999999999999999,)", kSixFloats)), HasSubstr("header"));
  EXPECT_THAT(NpyError(NpyWithHeader("{'descr': '<f4', 'shape': (6,)}", kSixFloats)),
              HasSubstr("fortran_order"));
  EXPECT_THAT(NpyError(NpyWithHeader("{'shape': (6,), 'shape': (6,), 'descr': '<f4', "
                                     "'fortran_order': False}",
                                     kSixFloats)),
              HasSubstr("header"));
}

TEST(NpyTest, RefusesShapesBeyondMemoryWithoutAllocating) {
  EXPECT_THAT(NpyError(Npy("<f4", "(4294967296, 4294967296)", kSixFloats)),
              HasSubstr("beyond 64 bits"));
  EXPECT_THAT(NpyError(Npy("<f4", "(0, 9223372036854775808, 4)", "")), HasSubstr("beyond 64 bits"));
  EXPECT_THAT(NpyError(Npy("<f4", "(1000000000000,)", kSixFloats)),
              HasSubstr("expected 4000000000000 bytes"));
  const std::string huge_header =
      absl::StrCat("\x93NUMPY", std::string("\x02\0\xff\xff\xff\xff", 6), "{}");
  EXPECT_THAT(NpyError(huge_header), HasSubstr("found 4294967295"));
}

TEST(SafetensorsTest, ReadsTensorsByName) {
  const std::string header = R"({"__metadata__":{"by":"test"},)"
                             R"("tokens":{"dtype":"F16","shape":[2,3],"data_offsets":[8,20]},)"
                             R"("lengths":{"dtype":"U32","shape":[2],"data_offsets":[0,8]},)"
                             R"("mask":{"dtype":"BOOL","shape":[4],"data_offsets":[20,24]},)"
                             R"("none":{"dtype":"F32","shape":[0,3],"data_offsets":[24,24]}})";
  const std::string bytes = Safetensors(header, std::string(24, 'x'));
  const auto tensors = ParseSafetensors(bytes, "file.safetensors");
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  ASSERT_EQ(tensors->size(), 3u);
  EXPECT_EQ(tensors->at("tokens").type, TensorType::kFloat16);
  EXPECT_THAT(tensors->at("tokens").shape, ElementsAre(2, 3));
  EXPECT_EQ(tensors->at("tokens").data.size(), 12u);
  EXPECT_EQ(tensors->at("tokens").name, "file.safetensors, tensor tokens");
  EXPECT_EQ(tensors->at("lengths").data.size(), 8u);
}

TEST(SafetensorsTest, RefusesEveryTruncation) {
  const std::string whole =
      Safetensors(R"({"query":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", kSixFloats);
  for (size_t size = 0; size < whole.size(); ++size) SafetensorsError(whole.substr(0, size));
  EXPECT_THAT(SafetensorsError(whole + "x"), HasSubstr("expected 24 bytes of data, found 25"));
}

TEST(SafetensorsTest, SaysWhatItExpected) {
  const auto error = [](const std::string& entry) {
    return SafetensorsError(Safetensors("{\"query\":" + entry + "}", kSixFloats));
  };
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[2,3],"data_offsets":[0,28]})"),
              AllOf(HasSubstr("tensor query"), HasSubstr("within the 24 bytes")));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[2,3],"data_offsets":[24,0]})"), HasSubstr("within"));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[2,2],"data_offsets":[0,24]})"),
              HasSubstr("expected 16 bytes"));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[-2,3],"data_offsets":[0,24]})"),
              HasSubstr("none negative"));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[2.0,3],"data_offsets":[0,24]})"),
              HasSubstr("expected dtype, shape"));
  EXPECT_THAT(error(R"({"dtype":7,"shape":[2,3],"data_offsets":[0,24]})"), HasSubstr("dtype"));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[2,3],"data_offsets":[0]})"), HasSubstr("two"));
  EXPECT_THAT(error(R"([1])"), HasSubstr("expected an object"));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,24]})"),
              HasSubstr("beyond 64 bits"));
  EXPECT_THAT(error(R"({"dtype":"F32","shape":[1,3],"data_offsets":[0,12]})"),
              HasSubstr("expected 12 bytes of data, found 24"));
  EXPECT_THAT(SafetensorsError(Safetensors("[]", "")), HasSubstr("JSON object"));
  EXPECT_THAT(SafetensorsError(Safetensors("{\"a\":", "")), HasSubstr("JSON object"));
}

TEST(SafetensorsTest, RefusesOverlapsGapsAndRepeatedNames) {
  const auto two = [](const std::string& name, const std::string& first,
                      const std::string& second) {
    return SafetensorsError(
        Safetensors(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":)" + first + R"(},")" + name +
                        R"(":{"dtype":"F32","shape":[3],"data_offsets":)" + second + "}}",
                    kSixFloats));
  };
  EXPECT_THAT(two("b", "[0,12]", "[8,20]"), HasSubstr("overlap"));
  EXPECT_THAT(two("b", "[0,12]", "[0,12]"), HasSubstr("overlap"));
  EXPECT_THAT(two("a", "[0,12]", "[12,24]"), HasSubstr("repeated keys"));
  EXPECT_THAT(SafetensorsError(Safetensors(
                  R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[12,24]}})", kSixFloats)),
              HasSubstr("belong to none"));
}

TEST(SafetensorsTest, SurvivesHugeAndDeepHeaders) {
  EXPECT_THAT(SafetensorsError(LittleEndianBytes(~uint64_t{0}, 8) + "{}"), HasSubstr("at most"));
  EXPECT_THAT(SafetensorsError(LittleEndianBytes(1000, 8) + "{}"), HasSubstr("within the header"));
  SafetensorsError(Safetensors(std::string(200'000, '['), ""));
  SafetensorsError(
      Safetensors("{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}", ""));
}

TEST(TensorTest, TakesUint16AsBfloat16OnlyWhereTheUserSaysSo) {
  const std::string bytes = Npy("<u2", "(2, 2)", std::string(8, 'x'));
  const TensorView tensor = *ParseNpy(bytes, "file.npy");
  EXPECT_THAT(std::string(ToTokenMatrix(tensor, v1::ELEMENT_TYPE_UNSPECIFIED).status().message()),
              HasSubstr("--element-type=bfloat16"));
  const auto matrix = ToTokenMatrix(tensor, v1::ELEMENT_TYPE_BFLOAT16);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ(matrix->element_type, v1::ELEMENT_TYPE_BFLOAT16);
  EXPECT_EQ(matrix->dim, 2u);
}

TEST(TensorTest, RefusesWhatIsNoTokenMatrix) {
  const auto error = [](const std::string& descr, const std::string& shape, size_t bytes,
                        v1::ElementType expected) {
    const std::string file = Npy(descr, shape, std::string(bytes, 'x'));
    return std::string(ToTokenMatrix(*ParseNpy(file, "f"), expected).status().message());
  };
  EXPECT_THAT(error("<i4", "(2, 2)", 16, v1::ELEMENT_TYPE_UNSPECIFIED),
              HasSubstr("float32, float16 or bfloat16, found int32 [2, 2]"));
  EXPECT_THAT(error("<f4", "(4,)", 16, v1::ELEMENT_TYPE_UNSPECIFIED), HasSubstr("[rows, dim]"));
  EXPECT_THAT(error("<f4", "(4, 0)", 0, v1::ELEMENT_TYPE_UNSPECIFIED), HasSubstr("dim"));
  EXPECT_THAT(error("<f4", "(2, 2)", 16, v1::ELEMENT_TYPE_FLOAT16), HasSubstr("asked for"));
}

TEST(TensorTest, ReadsCountsOfEveryIntegerType) {
  const auto lengths = [](const std::string& descr, const std::string& data) {
    return ToLengths(*ParseNpy(Npy(descr, "(2,)", data), "f"));
  };
  EXPECT_THAT(*lengths("<i4", BytesOf<int32_t>({3, 4})), ElementsAre(3, 4));
  EXPECT_THAT(*lengths("<u4", BytesOf<uint32_t>({3, 4})), ElementsAre(3, 4));
  EXPECT_THAT(*lengths("<i8", BytesOf<int64_t>({3, 4})), ElementsAre(3, 4));
  EXPECT_THAT(*lengths("<u8", BytesOf<uint64_t>({3, 4})), ElementsAre(3, 4));
  EXPECT_THAT(std::string(lengths("<i8", BytesOf<int64_t>({3, -4})).status().message()),
              HasSubstr("element 1 is -4"));
  EXPECT_THAT(
      std::string(lengths("<u8", BytesOf<uint64_t>({3, uint64_t{1} << 32})).status().message()),
      HasSubstr("element 1 is 4294967296"));
  EXPECT_THAT(std::string(lengths("<f4", std::string(8, 'x')).status().message()),
              HasSubstr("found float32 [2]"));
  EXPECT_FALSE(ToOffsets(*ParseNpy(Npy("<u8", "(1, 1)", std::string(8, 'x')), "f")).ok());
}

TEST(TensorTest, ReadsWeights) {
  EXPECT_THAT(*ToWeights(*ParseNpy(Npy("<f4", "(2,)", BytesOf<float>({1.5f, -2})), "f")),
              ElementsAre(1.5f, -2.0f));
  EXPECT_FALSE(ToWeights(*ParseNpy(Npy("<f2", "(2,)", "abcd"), "f")).ok());
}

TEST(TensorFileTest, ReadsBothFormatsFromDisk) {
  const TemporaryFolder folder;
  const auto npy = ReadTensorFile(folder.Write("a.npy", Npy("<f4", "(2, 3)", kSixFloats)));
  ASSERT_TRUE(npy.ok()) << npy.status();
  EXPECT_FALSE(npy->named);
  EXPECT_EQ(npy->Find("")->data, kSixFloats);
  const auto safetensors = ReadTensorFile(folder.Write(
      "a.safetensors",
      Safetensors(R"({"query":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", kSixFloats)));
  ASSERT_TRUE(safetensors.ok()) << safetensors.status();
  EXPECT_TRUE(safetensors->named);
  EXPECT_EQ(safetensors->Find("query")->data, kSixFloats);
  EXPECT_EQ(safetensors->Find("other"), nullptr);
}

TEST(TensorFileTest, NamesTheFileThatItCannotRead) {
  const TemporaryFolder folder;
  const auto error = [](const std::string& path) { return ReadTensorFile(path).status(); };
  EXPECT_EQ(error(folder.Path("missing.npy")).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(error(folder.Path("missing.npy")).message()), HasSubstr("missing.npy"));
  EXPECT_THAT(std::string(error(folder.Write("empty.npy", "")).message()), HasSubstr("empty.npy"));
  EXPECT_THAT(std::string(error(folder.Write("t.txt", "hello")).message()), HasSubstr("t.txt"));
  EXPECT_THAT(std::string(error(folder.Path(".")).message()), HasSubstr("regular file"));
}

}  // namespace
}  // namespace maxsimd
