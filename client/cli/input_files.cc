#include "client/cli/input_files.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "client/cli/text_files.h"
#include "client/input_check.h"
#include "client/tensor_file.h"
#include "kernels/status_macros.h"

namespace maxsimd {
namespace {

// A file's embeddings and, where the file has them, the lengths of its texts.
struct Texts {
  TokenMatrixView tokens;
  bool has_lengths = false;
  std::vector<uint32_t> lengths;
};

// The texts of a 3-D tensor are equally long.
absl::Status AddUniformLengths(const TensorView& tensor, Texts* texts) {
  const uint64_t count = tensor.shape[0];
  const uint64_t tokens = tensor.shape[1];
  // Texts without tokens take no bytes, so nothing but this bounds their number.
  if (tokens == 0 || tokens > UINT32_MAX) {
    return absl::InvalidArgumentError(absl::StrCat(
        tensor.name, ": expected from 1 to 2^32 - 1 tokens, found ", ShapeText(tensor.shape)));
  }
  texts->has_lengths = true;
  texts->lengths.assign(count, static_cast<uint32_t>(tokens));
  return absl::OkStatus();
}

absl::Status Missing(const TensorFile& file, absl::string_view expected) {
  std::string found;
  for (const auto& [name, tensor] : file.tensors) absl::StrAppend(&found, " ", name);
  return absl::InvalidArgumentError(
      absl::StrCat(file.path, ": expected a tensor named ", expected, ", found:", found));
}

// `name` with `lengths_name`, else `tokens` with `lengths`.
absl::StatusOr<Texts> ReadTexts(const TensorFile& file, const std::string& name,
                                const std::string& lengths_name, v1::ElementType element_type) {
  const TensorView* tensor = file.Find(file.named ? name : "");
  const TensorView* lengths = file.named ? file.Find(lengths_name) : nullptr;
  if (file.named && tensor == nullptr) {
    tensor = file.Find("tokens");
    lengths = file.Find("lengths");
  }
  if (tensor == nullptr) return Missing(file, absl::StrCat(name, " or tokens"));
  Texts texts;
  ASSIGN_OR_RETURN(texts.tokens, ToTokenMatrix(*tensor, element_type));
  if (lengths != nullptr) {
    ASSIGN_OR_RETURN(texts.lengths, ToLengths(*lengths));
    texts.has_lengths = true;
  } else if (tensor->shape.size() == 3) {
    RETURN_IF_ERROR(AddUniformLengths(*tensor, &texts));
  }
  return texts;
}

// The tensor of a file that is meant for one: a .npy, or a .safetensors with one of that name.
absl::StatusOr<TensorFile> ReadFileWith(const std::string& path, const std::string& name) {
  ASSIGN_OR_RETURN(TensorFile file, ReadTensorFile(path));
  if (file.Find(file.named ? name : "") == nullptr) return Missing(file, name);
  return file;
}

absl::Status CutQuery(const InputPaths& paths, const Texts& queries, LoadedInput* loaded) {
  const uint64_t count = queries.has_lengths ? queries.lengths.size() : 1;
  if (paths.query_index >= count) {
    return absl::InvalidArgumentError(absl::StrCat(paths.query, ": expected --query-index below ",
                                                   count, ", found ", paths.query_index));
  }
  loaded->input.query = queries.tokens;
  if (!queries.has_lengths) return absl::OkStatus();
  const uint64_t row_bytes = RowBytes(queries.tokens);
  uint64_t rows = 0;
  for (size_t i = 0; i < queries.lengths.size(); ++i) {
    if (i == paths.query_index) loaded->query_first_row = rows;
    rows += queries.lengths[i];
  }
  if (rows != queries.tokens.data.size() / row_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(paths.query, ": the lengths' sum is ", rows, ", but the tensor has ",
                     queries.tokens.data.size() / row_bytes, " rows"));
  }
  loaded->input.query.data = queries.tokens.data.substr(
      loaded->query_first_row * row_bytes, queries.lengths[paths.query_index] * row_bytes);
  return absl::OkStatus();
}

// Weights come for one query, or for the rows of all queries of the file.
absl::Status SetWeights(const TensorView& tensor, uint64_t all_query_rows, LoadedInput* loaded) {
  ASSIGN_OR_RETURN(loaded->weights, ToWeights(tensor));
  const uint64_t tokens = loaded->input.query.data.size() / RowBytes(loaded->input.query);
  if (loaded->weights.size() == all_query_rows && all_query_rows != tokens) {
    const auto begin = loaded->weights.begin() + static_cast<ptrdiff_t>(loaded->query_first_row);
    loaded->weights = std::vector<float>(begin, begin + static_cast<ptrdiff_t>(tokens));
  }
  if (loaded->weights.size() == tokens) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(tensor.name, ": expected weights for ", tokens,
                                                 " query tokens, found ", loaded->weights.size()));
}

absl::Status LoadQuery(const InputPaths& paths, const TensorFile& file, LoadedInput* loaded) {
  ASSIGN_OR_RETURN(const Texts queries,
                   ReadTexts(file, "query", "query_lengths", paths.element_type));
  RETURN_IF_ERROR(CutQuery(paths, queries, loaded));
  const uint64_t rows = queries.tokens.data.size() / RowBytes(queries.tokens);
  if (!paths.weights.empty()) {
    ASSIGN_OR_RETURN(const TensorFile weights, ReadFileWith(paths.weights, "weights"));
    return SetWeights(*weights.Find(weights.named ? "weights" : ""), rows, loaded);
  }
  if (const TensorView* weights = file.named ? file.Find("weights") : nullptr; weights != nullptr) {
    return SetWeights(*weights, rows, loaded);
  }
  return absl::OkStatus();
}

absl::Status LoadDocuments(const InputPaths& paths, const TensorFile& file, LoadedInput* loaded) {
  ASSIGN_OR_RETURN(Texts documents, ReadTexts(file, "documents", "lengths", paths.element_type));
  loaded->input.documents = documents.tokens;
  if (!paths.lengths.empty()) {
    ASSIGN_OR_RETURN(const TensorFile lengths, ReadFileWith(paths.lengths, "lengths"));
    ASSIGN_OR_RETURN(documents.lengths, ToLengths(*lengths.Find(lengths.named ? "lengths" : "")));
    documents.has_lengths = true;
  }
  if (!documents.has_lengths) {
    return absl::InvalidArgumentError(
        absl::StrCat(paths.documents,
                     ": expected lengths beside [rows, dim] documents: --lengths, a tensor "
                     "named lengths, or documents of shape [documents, tokens, dim]"));
  }
  loaded->lengths = std::move(documents.lengths);
  if (!paths.offsets.empty()) {
    ASSIGN_OR_RETURN(const TensorFile offsets, ReadFileWith(paths.offsets, "offsets"));
    ASSIGN_OR_RETURN(loaded->offsets, ToOffsets(*offsets.Find(offsets.named ? "offsets" : "")));
  } else if (const TensorView* offsets = file.named ? file.Find("offsets") : nullptr;
             offsets != nullptr) {
    ASSIGN_OR_RETURN(loaded->offsets, ToOffsets(*offsets));
  }
  if (!paths.ids.empty()) {
    ASSIGN_OR_RETURN(loaded->ids, ReadLinesPerDocument(paths.ids, loaded->lengths.size()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedInput>> LoadInput(const InputPaths& paths) {
  using Memory = std::shared_ptr<const void>;
  ASSIGN_OR_RETURN(const TensorFile query, ReadTensorFile(paths.query));
  ASSIGN_OR_RETURN(const TensorFile documents, ReadTensorFile(paths.documents));
  auto loaded = std::make_unique<LoadedInput>();
  RETURN_IF_ERROR(LoadQuery(paths, query, loaded.get()));
  RETURN_IF_ERROR(LoadDocuments(paths, documents, loaded.get()));
  loaded->input.weights = loaded->weights;
  loaded->input.lengths = loaded->lengths;
  loaded->input.offsets = loaded->offsets;
  loaded->input.ids = loaded->ids;
  loaded->input.owner = std::make_shared<std::pair<Memory, Memory>>(query.memory, documents.memory);
  if (absl::Status status = CheckInput(loaded->input); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat(paths.documents, ": ", status.message()));
  }
  uint64_t row = 0;
  for (size_t i = 0; i < loaded->lengths.size(); ++i) {
    loaded->first_rows.push_back(loaded->offsets.empty() ? row : loaded->offsets[i]);
    row += loaded->lengths[i];
  }
  return loaded;
}

}  // namespace maxsimd
