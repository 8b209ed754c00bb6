// Reads the calls with known answers in tests/cases/ (see the README there).
//
// Errors: a file that is missing or not as the README says fails the test by an exception: these
// are our own files.
#ifndef MAXSIMD_TESTS_TESTING_CASE_FILES_H_
#define MAXSIMD_TESTS_TESTING_CASE_FILES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/scorer.h"

namespace maxsimd {

// A .npy file of at most two dimensions, in C order.
struct NpyArray {
  std::string descr;  // Such as "<f4".
  std::vector<size_t> shape;
  std::vector<std::byte> data;

  size_t count() const;
};

NpyArray ReadNpy(const std::string& path);

struct CaseMatch {
  uint32_t document_token = 0;
  double similarity = 0;
};

struct CaseFile {
  std::string name;
  ElementType element_type = ElementType::kFloat32;
  uint32_t dim = 0;
  uint32_t query_tokens = 0;
  std::vector<std::byte> query;
  std::vector<std::byte> rows;
  std::vector<DocumentRows> documents;
  bool has_offsets = false;
  std::vector<float> weights;

  uint32_t top_k = 0;
  bool normalize = false;
  Aggregation aggregation = Aggregation::kSum;
  bool return_matches = false;

  // One per document.
  std::vector<DocumentStatus> statuses;
  std::vector<double> scores;  // -infinity where the file has null.
  std::vector<double> bounds;
  std::vector<std::vector<CaseMatch>> matches;  // Empty where there are none.

  std::vector<uint32_t> ranking;

  // Refers to this object's inputs; the outputs are the caller's to set.
  QueryGroup View() const;
};

// Names of the folders under `root`, sorted.
std::vector<std::string> CaseNames(const std::string& root);
CaseFile ReadCase(const std::string& root, const std::string& name);

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_TESTING_CASE_FILES_H_
