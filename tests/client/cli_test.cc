#include "client/cli/cli.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "tests/client/fake_server.h"
#include "tests/client/tensor_bytes.h"

namespace maxsimd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

struct Ran {
  int code = 0;
  std::string out;
  std::string err;
};

Ran RunProgram(std::vector<std::string> arguments, const Terminal& terminal = {}) {
  arguments.insert(arguments.begin(), "maxsimd-cli");
  std::vector<const char*> argv;
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::ostringstream out, err;
  Ran ran;
  ran.code = RunCli(static_cast<int>(argv.size()), argv.data(), out, err, terminal);
  ran.out = out.str();
  ran.err = err.str();
  return ran;
}

void ExpectOneErrorLine(const Ran& ran, int code, const std::string& part) {
  EXPECT_EQ(ran.code, code) << ran.err;
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  EXPECT_THAT(ran.err, StartsWith("maxsimd-cli: "));
  EXPECT_THAT(ran.err, HasSubstr(part));
}

// A query of 2 tokens and 4 documents of dim 2: scores 3, 5, none and 4.
class CliTest : public ::testing::Test {
 protected:
  Ran RunRerank(std::vector<std::string> more, const Terminal& terminal = {}) {
    std::vector<std::string> arguments = {"rerank",   "--target",  server_.address(),
                                          "--query",  query_,      "--documents",
                                          documents_, "--timeout", "10s"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(arguments, terminal);
  }

  Ran RunOn(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--target", server_.address(), "--timeout", "10s"});
    return RunProgram(arguments);
  }

  FakeServer server_;
  TemporaryFolder folder_;
  const std::string query_ =
      folder_.Write("query.npy", Npy("<f4", "(2, 2)", BytesOf<float>({1, 0, 0, 1})));
  const std::string documents_ = folder_.Write(
      "documents.npy", Npy("<f4", "(4, 2)", BytesOf<float>({1, 2, 4, 1, 3, 0, 0, 1})));
  const std::string lengths_ =
      folder_.Write("lengths.npy", Npy("<u4", "(4,)", BytesOf<uint32_t>({1, 1, 0, 2})));
};

TEST_F(CliTest, RanksFilesIntoATable) {
  const std::string ids = folder_.Write("ids", "a\nbee\nc\r\nd\n");
  const Ran ran = RunRerank({"--lengths", lengths_, "--ids", ids});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "rank  index  id          score\n"
            "   1      1  bee             5\n"
            "   2      3  d               4\n"
            "   3      0  a               3\n"
            "   4      2  c    -inf (EMPTY)\n");
}

TEST_F(CliTest, WritesJsonWithNullForScoresThatJsonHasNoNumberFor) {
  const std::string text = folder_.Write("text", "one\n\"two\"\nthree\nvier\n");
  const Ran ran = RunRerank({"--lengths", lengths_, "--text", text, "--output=json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  ASSERT_EQ(json["results"].size(), 4u);
  EXPECT_EQ(json["results"][0]["index"], 1);
  EXPECT_EQ(json["results"][0]["score"], 5.0);
  EXPECT_EQ(json["results"][0]["text"], "\"two\"");
  EXPECT_EQ(json["results"][0]["status"], "SCORED");
  EXPECT_TRUE(json["results"][3]["score"].is_null());
  EXPECT_EQ(json["results"][3]["status"], "EMPTY");
  EXPECT_EQ(json["documents"], 4);
  EXPECT_EQ(json["timings"]["total_ms"], 700.0);
}

TEST_F(CliTest, ReturnsTheBestOnlyAndPassesOptionsOn) {
  const std::string weights =
      folder_.Write("weights.npy", Npy("<f4", "(2,)", BytesOf<float>({2, 0.5f})));
  const Ran ran = RunRerank({"--lengths", lengths_, "--top-k", "2", "--normalize",
                             "--aggregation=mean", "--weights", weights, "--output=json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(Json::parse(ran.out)["results"].size(), 2u);
  const v1::RerankRequest sent = server_.seen_calls()[0].start;
  EXPECT_EQ(sent.options().top_k(), 2u);
  EXPECT_TRUE(sent.options().normalize());
  EXPECT_EQ(sent.options().aggregation(), v1::AGGREGATION_MEAN);
  EXPECT_THAT(sent.query().token_weights(), ElementsAre(2.0f, 0.5f));
}

TEST_F(CliTest, TrimsTextsToTheTerminal) {
  const std::string text = folder_.Write(
      "text", "short\nää ää ää ää ää ää ää ää ää ää\nthree\n" + std::string(80, 'x') + "\n");
  const Ran ran = RunRerank({"--lengths", lengths_, "--text", text}, {.columns = 50});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("5  ää ää ää ää ää ää ää ä…\n"));
  EXPECT_THAT(ran.out, HasSubstr("xxx…\n"));
  EXPECT_THAT(RunRerank({"--lengths", lengths_, "--text", text}).out,
              HasSubstr(std::string(80, 'x')));
}

TEST_F(CliTest, ExplainsTheBestDocumentWithTokenStrings) {
  const std::string query_tokens = folder_.Write("q.json", R"([["hot", "tea"]])");
  const std::string document_tokens =
      folder_.Write("d.json", R"([["x"], ["kettle"], [], ["y", "z"]])");
  const Ran table = RunRerank({"--lengths", lengths_, "--explain", "--query-tokens", query_tokens,
                               "--document-tokens", document_tokens});
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("Why document 1 is first"));
  EXPECT_THAT(table.out,
              HasSubstr("    0  hot           0  kettle           4  ████████████████████\n"
                        "    1  tea           0  kettle           1  █████\n"));
  // One token per line, over all rows of the packed documents.
  const std::string lines = folder_.Write("d.txt", "[CLS]\nkettle\ny\nz\n");
  const Ran json = RunRerank({"--lengths", lengths_, "--explain", "--query-tokens", query_tokens,
                              "--document-tokens", lines, "--output=json"});
  ASSERT_EQ(json.code, 0) << json.err;
  const Json matches = Json::parse(json.out)["results"][1]["matches"];
  EXPECT_EQ(matches[1]["query_text"], "tea");
  EXPECT_EQ(matches[1]["document_token"], 1);
  EXPECT_EQ(matches[1]["document_text"], "z");
  EXPECT_EQ(matches[1]["similarity"], 1.0);
}

TEST_F(CliTest, ReadsAllOfOneSafetensorsFile) {
  const std::string file = folder_.Write(
      "all.safetensors",
      Safetensors(R"({"query":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},)"
                  R"("query_lengths":{"dtype":"I64","shape":[2],"data_offsets":[24,40]},)"
                  R"("weights":{"dtype":"F32","shape":[3],"data_offsets":[40,52]},)"
                  R"("documents":{"dtype":"F32","shape":[3,2],"data_offsets":[52,76]},)"
                  R"("offsets":{"dtype":"U64","shape":[2],"data_offsets":[76,92]},)"
                  R"("lengths":{"dtype":"I32","shape":[2],"data_offsets":[92,100]}})",
                  BytesOf<float>({9, 9, 1, 0, 0, 1}) + BytesOf<int64_t>({1, 2}) +
                      BytesOf<float>({7, 1, 2}) + BytesOf<float>({1, 2, 4, 1, 3, 0}) +
                      BytesOf<uint64_t>({1, 0}) + BytesOf<int32_t>({2, 2})));
  const Ran ran = RunOn(
      {"rerank", "--query", file, "--documents", file, "--query-index", "1", "--output=json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json results = Json::parse(ran.out)["results"];
  EXPECT_EQ(results[0]["index"], 1);  // Rows 0 and 1: 4 + 2 * 2.
  EXPECT_EQ(results[0]["score"], 8.0);
  EXPECT_EQ(results[1]["score"], 6.0);  // Rows 1 and 2: 4 + 2 * 1.
}

TEST_F(CliTest, RanksTheSample) {
  const std::string sample = absl::StrCat(MAXSIMD_TEST_DATA, "/data/sample/");
  const Ran ran =
      RunOn({"rerank", "--query", sample + "queries.safetensors", "--query-index", "2",
             "--documents", sample + "passages.safetensors", "--text", sample + "passages.txt",
             "--top-k=3", "--explain", "--query-tokens", sample + "query_tokens.json",
             "--document-tokens", sample + "passage_tokens.json", "--output=json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json results = Json::parse(ran.out)["results"];
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0]["index"], 10);
  EXPECT_NEAR(results[0]["score"].get<double>(), 6.410681663137993, 1e-4);
  EXPECT_EQ(results[0]["matches"][3]["query_text"], "sky");
}

TEST_F(CliTest, TakesDocumentsOfEqualLengthAndBfloat16FromNpy) {
  const std::string documents = folder_.Write(
      "d3.npy", Npy("<u2", "(2, 2, 1)", BytesOf<uint16_t>({0x3F80, 0x4000, 0x4040, 0x3F80})));
  const std::string query =
      folder_.Write("q.npy", Npy("<u2", "(1, 1)", BytesOf<uint16_t>({0x4000})));
  const std::vector<std::string> arguments = {"rerank",      "--query", query,
                                              "--documents", documents, "--output=json"};
  ExpectOneErrorLine(RunOn(arguments), 1, "--element-type=bfloat16");
  std::vector<std::string> typed = arguments;
  typed.push_back("--element-type=bfloat16");
  const Ran ran = RunOn(typed);
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(Json::parse(ran.out)["results"][0]["score"], 6.0);
  EXPECT_EQ(Json::parse(ran.out)["results"][1]["score"], 4.0);
}

TEST_F(CliTest, NamesTheFileThatIsWrong) {
  ExpectOneErrorLine(RunRerank({}), 1, "documents.npy: expected lengths");
  ExpectOneErrorLine(RunRerank({"--lengths", folder_.Path("none.npy")}), 1, "none.npy");
  ExpectOneErrorLine(RunRerank({"--lengths", documents_}), 1, "documents.npy: expected int32");
  const std::string short_lengths =
      folder_.Write("short.npy", Npy("<u4", "(1,)", BytesOf<uint32_t>({1})));
  ExpectOneErrorLine(RunRerank({"--lengths", short_lengths}), 1, "lengths: their sum is 1");
  ExpectOneErrorLine(RunRerank({"--lengths", lengths_, "--query-index=1"}), 1,
                     "--query-index below 1");
  const std::string one_line = folder_.Write("one", "line\n");
  ExpectOneErrorLine(RunRerank({"--lengths", lengths_, "--text", one_line}), 1, "4 documents");
  ExpectOneErrorLine(RunRerank({"--lengths", lengths_, "--ids", one_line}), 1, "4 documents");
  const std::string broken = folder_.Write("broken.json", "[[\"a\", \"b\"");
  ExpectOneErrorLine(RunRerank({"--lengths", lengths_, "--explain", "--query-tokens", broken}), 1,
                     "broken.json");
  EXPECT_TRUE(server_.seen_calls().empty());
}

TEST_F(CliTest, PassesAServersErrorOn) {
  server_.Misbehave({{.status = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "dim\nis odd")}});
  ExpectOneErrorLine(RunRerank({"--lengths", lengths_}), 1, "INVALID_ARGUMENT: dim is odd");
}

TEST_F(CliTest, ExitsTwoForWrongUsage) {
  ExpectOneErrorLine(RunProgram({}), 2, "expected a command");
  ExpectOneErrorLine(RunProgram({"rank"}), 2, "rank");
  ExpectOneErrorLine(RunProgram({"info", "--colour"}), 2, "--colour");
  ExpectOneErrorLine(RunProgram({"info", "extra"}), 2, "extra");
  ExpectOneErrorLine(RunProgram({"info", "--output=xml"}), 2, "xml");
  ExpectOneErrorLine(RunProgram({"info", "--timeout=0"}), 2, "--timeout");
  ExpectOneErrorLine(RunProgram({"info", "--timeout=soon"}), 2, "soon");
  ExpectOneErrorLine(RunProgram({"rerank", "--query", "q"}), 2, "--documents");
  ExpectOneErrorLine(RunProgram({"rerank", "--query", "q", "--documents", "d", "--top-k=-1"}), 2,
                     "--top-k");
  ExpectOneErrorLine(
      RunProgram({"rerank", "--query", "q", "--documents", "d", "--top-k=4294967296"}), 2,
      "--top-k");
  ExpectOneErrorLine(
      RunProgram({"rerank", "--query", "q", "--documents", "d", "--aggregation=max"}), 2, "max");
  ExpectOneErrorLine(
      RunProgram({"rerank", "--query", "q", "--documents", "d", "--query-tokens", "t"}), 2,
      "--explain");
  ExpectOneErrorLine(RunProgram({"smoke", "--dim=0"}), 2, "--dim");
  ExpectOneErrorLine(RunProgram({"smoke", "--documents=10000000", "--document-tokens=1000000"}), 2,
                     "16 GiB");
  ExpectOneErrorLine(RunProgram({"bench", "--rate=nan"}), 2, "--rate");
  ExpectOneErrorLine(RunProgram({"bench", "--rate=5", "--concurrency=5"}), 2, "--rate");
}

TEST_F(CliTest, PrintsHelpOnStandardOutput) {
  const Ran ran = RunProgram({"rerank", "--help"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, HasSubstr("--document-tokens"));
  EXPECT_TRUE(ran.err.empty());
}

TEST_F(CliTest, FailsWhereOutputCannotBeWritten) {
  std::ostringstream out, err;
  out.setstate(std::ios::badbit);
  const std::string address = server_.address();
  const char* argv[] = {"maxsimd-cli", "info", "--target", address.c_str()};
  EXPECT_EQ(RunCli(4, argv, out, err), 1);
}

TEST_F(CliTest, FindsNoDifferenceWithARightServer) {
  for (const char* type : {"float32", "float16", "bfloat16"}) {
    const Ran ran = RunOn({"smoke", "--documents=30", "--document-tokens=5", "--query-tokens=3",
                           "--dim=9", "--element-type", type, "--output=json"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    const Json json = Json::parse(ran.out);
    EXPECT_EQ(json["rpcs"].size(), 2u);
    EXPECT_LT(json["rpcs"][1]["max_error_of_bound"], 0.1);
  }
  EXPECT_FALSE(server_.seen_calls()[0].stream);
  EXPECT_TRUE(server_.seen_calls()[1].stream);
}

TEST_F(CliTest, FindsWrongScoresAndMissingDocuments) {
  Misbehaviour off;
  off.score_error = 1e-3f;
  server_.Misbehave({off});
  const std::vector<std::string> arguments = {"smoke", "--documents=20", "--document-tokens=5",
                                              "--query-tokens=3", "--dim=9"};
  ExpectOneErrorLine(RunOn(arguments), 1, " of 20 scores are wrong: document");
  Misbehaviour missing;
  missing.drop_last = true;
  server_.Misbehave({{}, missing});
  ExpectOneErrorLine(RunOn(arguments), 1, "returned 19 documents");
}

TEST_F(CliTest, MeasuresAClosedLoop) {
  const Ran ran = RunOn({"bench", "--duration=200ms", "--warm-up=0", "--concurrency=4",
                         "--connections=2", "--documents=3", "--document-tokens=2",
                         "--query-tokens=2", "--dim=4", "--output=json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["loop"], "closed");
  EXPECT_GT(json["succeeded"], 0);
  EXPECT_EQ(json["failed"], 0);
  EXPECT_EQ(json["documents_per_call"], 3);
  EXPECT_GE(json["latency_ms"]["max"], json["latency_ms"]["p50"]);
}

TEST_F(CliTest, MeasuresAnOpenLoopOverStreamsAndCountsErrors) {
  server_.Misbehave({{.status = grpc::Status(grpc::StatusCode::UNAVAILABLE, "drain")}});
  const Ran ran = RunOn({"bench", "--duration=300ms", "--warm-up=0", "--rate=200", "--rpc=stream",
                         "--chunk-bytes=1024", "--documents=20", "--document-tokens=20",
                         "--uniform", "--query-tokens=2", "--dim=4", "--output=json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["loop"], "open");
  EXPECT_GT(json["messages_per_call"], 1);
  EXPECT_EQ(json["errors"]["UNAVAILABLE"], 1);
  EXPECT_EQ(json["failed"], 1);
}

TEST_F(CliTest, FailsWhereNoCallOfABenchSucceeds) {
  ExpectOneErrorLine(RunProgram({"bench", "--target=127.0.0.1:1", "--timeout=1s"}), 1,
                     "UNAVAILABLE");
}

TEST_F(CliTest, TellsInfo) {
  v1::Limits limits;
  limits.set_max_dim(4096);
  server_.set_limits(limits);
  const Ran table = RunOn({"info"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("max_dim                        4096"));
  EXPECT_THAT(table.out, HasSubstr("element_types                  float32"));
  const Json json = Json::parse(RunOn({"info", "--output=json"}).out);
  EXPECT_EQ(json["limits"]["max_dim"], 4096);
  EXPECT_EQ(json["backend"], "fake");
}

TEST_F(CliTest, ExitsZeroOnlyWhereTheServerServes) {
  server_.set_serving(true);
  EXPECT_EQ(RunOn({"health"}).code, 0);
  EXPECT_EQ(RunOn({"health"}).out, "SERVING\n");
  server_.set_serving(false);
  ExpectOneErrorLine(RunOn({"health"}), 1, "NOT_SERVING");
  ExpectOneErrorLine(RunOn({"health", "--service=nobody"}), 1, "NOT_FOUND");
  ExpectOneErrorLine(RunProgram({"health", "--target=127.0.0.1:1", "--timeout=1s"}), 1,
                     "UNAVAILABLE");
}

}  // namespace
}  // namespace maxsimd
