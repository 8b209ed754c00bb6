#include "tests/testing/case_files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace maxsimd {
namespace {

std::vector<char> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The text after "'key': " in the header, which is a Python dict.
std::string HeaderValue(const std::string& header, const std::string& key) {
  const size_t at = header.find("'" + key + "': ");
  if (at == std::string::npos) throw std::runtime_error("npy header lacks " + key);
  return header.substr(at + key.size() + 4);
}

template <class T>
std::vector<T> ReadVector(const std::string& path) {
  const NpyArray array = ReadNpy(path);
  std::vector<T> values(array.count());
  if (array.data.size() != values.size() * sizeof(T)) throw std::runtime_error("type of " + path);
  if (!values.empty()) std::memcpy(values.data(), array.data.data(), array.data.size());
  return values;
}

ElementType ElementTypeOf(const std::string& name) {
  for (const ElementType type :
       {ElementType::kFloat32, ElementType::kFloat16, ElementType::kBfloat16}) {
    if (ElementTypeName(type) == name) return type;
  }
  throw std::runtime_error("element type " + name);
}

DocumentStatus StatusOf(const std::string& name) {
  if (name == "SCORED") return DocumentStatus::kScored;
  if (name == "EMPTY") return DocumentStatus::kEmpty;
  if (name == "NON_FINITE") return DocumentStatus::kNonFinite;
  throw std::runtime_error("status " + name);
}

void ReadAnswers(const nlohmann::json& json, CaseFile& file) {
  for (const auto& status : json.at("statuses")) file.statuses.push_back(StatusOf(status));
  for (const auto& score : json.at("scores")) {
    file.scores.push_back(score.is_null() ? -std::numeric_limits<double>::infinity()
                                          : score.get<double>());
  }
  file.bounds = json.at("bounds").get<std::vector<double>>();
  if (json.contains("ranking")) file.ranking = json["ranking"].get<std::vector<uint32_t>>();
  if (!json.contains("matches")) return;
  for (const auto& document : json["matches"]) {
    std::vector<CaseMatch>& matches = file.matches.emplace_back();
    if (document.is_null()) continue;
    for (const auto& match : document) {
      matches.push_back({match[0].get<uint32_t>(), match[1].get<double>()});
    }
  }
}

}  // namespace

size_t NpyArray::count() const {
  size_t count = 1;
  for (const size_t extent : shape) count *= extent;
  return count;
}

NpyArray ReadNpy(const std::string& path) {
  const std::vector<char> bytes = ReadFile(path);
  if (bytes.size() < 12 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0) {
    throw std::runtime_error(path + " is no npy file");
  }
  const size_t prefix = bytes[6] == 1 ? 10 : 12;
  size_t header_size = 0;
  std::memcpy(&header_size, &bytes[8], prefix - 8);  // Little-endian, as we are.
  const std::string header(&bytes[prefix], header_size);
  NpyArray array;
  array.descr = HeaderValue(header, "descr").substr(1, 3);
  const std::string shape = HeaderValue(header, "shape");
  for (size_t at = 1; shape[at] != ')';) {
    size_t digits = 0;
    array.shape.push_back(std::stoull(shape.substr(at), &digits));
    at += digits;
    while (shape[at] == ',' || shape[at] == ' ') ++at;
  }
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  array.data.assign(data + prefix + header_size, data + bytes.size());
  return array;
}

QueryGroup CaseFile::View() const {
  QueryGroup group;
  group.query.element_type = element_type;
  group.query.tokens = query_tokens;
  group.query.dim = dim;
  group.query.data = query.data();
  group.query.weights = weights;
  group.query.aggregation = aggregation;
  group.query.normalize = normalize;
  group.query.return_matches = return_matches;
  group.element_type = element_type;
  group.rows = rows.data();
  group.row_pitch_bytes = dim * ElementBytes(element_type);
  group.row_count = rows.size() / group.row_pitch_bytes;
  group.documents = documents;
  return group;
}

std::vector<std::string> CaseNames(const std::string& root) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

CaseFile ReadCase(const std::string& root, const std::string& name) {
  const std::string folder = root + "/" + name + "/";
  const std::vector<char> text = ReadFile(folder + "case.json");
  const nlohmann::json json = nlohmann::json::parse(text.begin(), text.end());
  CaseFile file;
  file.name = name;
  file.element_type = ElementTypeOf(json.at("element_type"));
  const NpyArray query = ReadNpy(folder + "query.npy");
  file.query_tokens = static_cast<uint32_t>(query.shape.at(0));
  file.dim = static_cast<uint32_t>(query.shape.at(1));
  file.query = query.data;
  file.rows = ReadNpy(folder + "documents.npy").data;

  const auto lengths = ReadVector<uint32_t>(folder + "lengths.npy");
  std::vector<uint64_t> offsets;
  file.has_offsets = std::filesystem::exists(folder + "offsets.npy");
  if (file.has_offsets) offsets = ReadVector<uint64_t>(folder + "offsets.npy");
  uint64_t row = 0;
  for (size_t d = 0; d < lengths.size(); ++d) {
    file.documents.push_back({file.has_offsets ? offsets[d] : row, lengths[d]});
    row += lengths[d];
  }
  if (std::filesystem::exists(folder + "weights.npy")) {
    file.weights = ReadVector<float>(folder + "weights.npy");
  }
  const auto& options = json.at("options");
  file.top_k = options.at("top_k");
  file.normalize = options.at("normalize");
  file.return_matches = options.at("return_matches");
  file.aggregation = options.at("aggregation") == "MEAN" ? Aggregation::kMean : Aggregation::kSum;
  ReadAnswers(json, file);
  return file;
}

}  // namespace maxsimd
