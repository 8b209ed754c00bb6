// Queries and messages of random embeddings, as decoding would leave them, with the scores that are
// right for them.
#ifndef MAXSIMD_TESTS_TESTING_FAKE_WORK_H_
#define MAXSIMD_TESTS_TESTING_FAKE_WORK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "kernels/reference/reference_scorer.h"
#include "server/batching/work.h"
#include "server/codec/limits.h"
#include "tests/testing/fake_recipient.h"

namespace maxsimd {

struct FakeMessage {
  std::shared_ptr<Work> work;
  std::vector<ReferenceDocument> expected;  // One per document, by position in the message.
  size_t data_bytes = 0;                    // Of its embeddings.
};

// A work of units only, back to back from row 0: enough for a BatchQueue.
std::shared_ptr<Work> WorkOf(std::vector<Unit> units, uint32_t dim = 4,
                             ElementType type = ElementType::kFloat32);

// Its `hash` is set from its content; who changes the query afterwards calls SetHash.
std::shared_ptr<Query> RandomQuery(std::mt19937& random, ElementType type, uint32_t tokens,
                                   uint32_t dim);
void SetHash(Query& query);

// Documents of these lengths, back to back; each message lies in slices of odd sizes.
FakeMessage RandomMessage(std::mt19937& random, const std::shared_ptr<const Query>& query,
                          const std::shared_ptr<Recipient>& recipient,
                          const std::vector<uint32_t>& lengths, uint64_t first_index = 0,
                          const UnitLimits& limits = {});
// The same for documents that may overlap, in a tensor of `rows` rows.
FakeMessage RandomMessage(std::mt19937& random, const std::shared_ptr<const Query>& query,
                          const std::shared_ptr<Recipient>& recipient,
                          const std::vector<DocumentRows>& documents, uint64_t rows,
                          uint64_t first_index = 0, const UnitLimits& limits = {});

}  // namespace maxsimd

#endif  // MAXSIMD_TESTS_TESTING_FAKE_WORK_H_
