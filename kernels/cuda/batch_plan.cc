#include "kernels/cuda/batch_plan.h"

#include <algorithm>
#include <cstring>

#include "kernels/cuda/query_image.h"
#include "kernels/cuda/tensor_map.h"
#include "kernels/status_macros.h"

namespace maxsimd::cuda {
namespace {

// Bulk copies want 16 bytes, arrays their own alignment; a cache line suits all.
constexpr size_t kAlignment = 128;

GroupShape ShapeOf(const QueryView& query) {
  return {query.element_type, query.tokens, query.dim, query.normalize, query.return_matches};
}

// Where the tensor map of a group's launch begins: rows of all its groups are whole pitches away.
const std::byte* MapBase(const RowPlace& place, size_t pitch_bytes) {
  return place.region + static_cast<size_t>(place.rows - place.region) % pitch_bytes;
}

template <class T>
size_t BytesOf(const std::vector<T>& values) {
  return values.size() * sizeof(T);
}

}  // namespace

size_t BatchPlan::Allot(size_t bytes) {
  const size_t offset = sizes_.upload_bytes;
  sizes_.upload_bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return offset;
}

bool BatchPlan::Joins(const Bucket& bucket, const TileConfig& config, uint32_t group) const {
  if (bucket.config != config) return false;
  if (config.kernel == Kernel::kGeneric) return true;
  const uint32_t other = bucket.groups.front();
  const size_t pitch_bytes = groups_[group].row_pitch_bytes;
  return config.chunks == 1 && groups_[other].query.dim == groups_[group].query.dim &&
         groups_[other].row_pitch_bytes == pitch_bytes &&
         places_[other].region == places_[group].region &&
         MapBase(places_[other], pitch_bytes) == MapBase(places_[group], pitch_bytes);
}

void BatchPlan::AddGroup(uint32_t group, const DeviceTraits& device) {
  const QueryView& query = groups_[group].query;
  const TileConfig config = ChooseTileConfig(ShapeOf(query), device);
  outputs_.push_back({sizes_.score_count, sizes_.match_count});
  sizes_.score_count += groups_[group].documents.size();
  if (query.return_matches) sizes_.match_count += groups_[group].documents.size() * query.tokens;
  queries_.push_back({Allot(QueryImageBytes(query, config)), Allot(query.tokens * sizeof(float)),
                      query.normalize ? Allot(query.tokens * sizeof(float)) : 0});
  for (Bucket& bucket : buckets_) {
    if (Joins(bucket, config, group)) return bucket.groups.push_back(group);
  }
  buckets_.emplace_back();
  buckets_.back().config = config;
  buckets_.back().groups.push_back(group);
}

void BatchPlan::PlanBucket(const DeviceTraits& device, const PlanOptions& options, Bucket* bucket) {
  std::vector<PlannedGroup> planned;
  for (const uint32_t group : bucket->groups) {
    planned.push_back({groups_[group].documents, groups_[group].query.tokens,
                       static_cast<uint32_t>(outputs_[group].first_score)});
  }
  bucket->config.overlaps_previous = options.overlap && device.overlaps_launches;
  PlanWork(planned, bucket->config,
           device.multiprocessors * bucket->config.blocks_per_multiprocessor, options,
           &bucket->work);
  bucket->params_offset = Allot(bucket->groups.size() * sizeof(GroupParams));
  bucket->items_offset = Allot(BytesOf(bucket->work.items));
  bucket->splits_offset = Allot(BytesOf(bucket->work.splits));
  bucket->first_partial = sizes_.partial_count;
  sizes_.partial_count += size_t{bucket->work.slots} * bucket->config.chunk_tokens;
  bucket->first_counter = sizes_.counter_count;
  sizes_.counter_count += kCounters + bucket->work.splits.size();
}

void BatchPlan::Make(absl::Span<const QueryGroup> groups, absl::Span<const RowPlace> places,
                     const DeviceTraits& device, const PlanOptions& options) {
  groups_ = groups;
  places_ = places;
  outputs_.clear();
  queries_.clear();
  buckets_.clear();
  sizes_ = BatchSizes();
  for (uint32_t group = 0; group < groups.size(); ++group) AddGroup(group, device);
  for (Bucket& bucket : buckets_) PlanBucket(device, options, &bucket);
}

void BatchPlan::WriteGroup(const Bucket& bucket, uint32_t index, const BatchMemory& memory,
                           GroupParams* params) const {
  const QueryGroup& group = groups_[index];
  const QueryOffsets& offsets = queries_[index];
  const auto floats = [&](size_t offset) {
    return reinterpret_cast<float*>(memory.upload_host + offset);
  };
  params->divisor = WriteWeights(group.query, floats(offsets.weights));
  WriteQueryImage(group.query, bucket.config, floats(offsets.weights),
                  memory.upload_host + offsets.image,
                  group.query.normalize ? floats(offsets.factors) : nullptr);
  params->rows = places_[index].rows;
  params->row_pitch_bytes = group.row_pitch_bytes;
  params->query = memory.upload + offsets.image;
  params->weights = reinterpret_cast<const float*>(memory.upload + offsets.weights);
  params->factors = group.query.normalize
                        ? reinterpret_cast<const float*>(memory.upload + offsets.factors)
                        : nullptr;
  params->first_match = outputs_[index].first_match;
  params->first_document = static_cast<uint32_t>(outputs_[index].first_score);
  params->query_tokens = group.query.tokens;
  params->dim = group.query.dim;
  params->normalize = group.query.normalize;
  params->return_matches = group.query.return_matches;
  params->tensor_row = static_cast<uint32_t>(
      static_cast<size_t>(places_[index].rows - places_[index].region) / group.row_pitch_bytes);
}

absl::Status BatchPlan::WriteBucket(const Bucket& bucket, const BatchMemory& memory,
                                    Launch* launch) const {
  GroupParams* const params =
      reinterpret_cast<GroupParams*>(memory.upload_host + bucket.params_offset);
  for (size_t i = 0; i < bucket.groups.size(); ++i) {
    WriteGroup(bucket, bucket.groups[i], memory, params + i);
  }
  const WorkPlan& work = bucket.work;
  std::memcpy(memory.upload_host + bucket.items_offset, work.items.data(), BytesOf(work.items));
  std::memcpy(memory.upload_host + bucket.splits_offset, work.splits.data(), BytesOf(work.splits));
  launch->config = bucket.config;
  launch->blocks = work.blocks;
  launch->params = {
      .only_group = params[0],
      .groups = reinterpret_cast<const GroupParams*>(memory.upload + bucket.params_offset),
      .group_count = static_cast<uint32_t>(bucket.groups.size()),
      .items = reinterpret_cast<const WorkItem*>(memory.upload + bucket.items_offset),
      .item_count = static_cast<uint32_t>(work.items.size()),
      .splits = reinterpret_cast<const SplitDocument*>(memory.upload + bucket.splits_offset),
      .tickets = memory.counters + bucket.first_counter + kCounters,
      .partial_maxima = memory.partial_maxima + bucket.first_partial,
      .partial_rows = memory.partial_rows + bucket.first_partial,
      .counters = memory.counters + bucket.first_counter,
      .scores = memory.scores,
      .matches = memory.matches};
  if (bucket.config.kernel == Kernel::kGeneric) return absl::OkStatus();
  const uint32_t first = bucket.groups.front();
  const RowPlace& place = places_[first];
  const size_t pitch_bytes = groups_[first].row_pitch_bytes;
  const std::byte* const base = MapBase(place, pitch_bytes);
  const uint64_t rows =
      (place.region_bytes - static_cast<size_t>(base - place.region)) / pitch_bytes;
  ASSIGN_OR_RETURN(launch->maps, MakeTensorMaps(base, rows, pitch_bytes, groups_[first].query.dim,
                                                bucket.config));
  return absl::OkStatus();
}

absl::Status BatchPlan::Write(const BatchMemory& memory, std::vector<Launch>* launches) const {
  launches->clear();
  for (const Bucket& bucket : buckets_) {
    if (bucket.work.items.empty()) continue;
    launches->emplace_back();
    RETURN_IF_ERROR(WriteBucket(bucket, memory, &launches->back()));
  }
  return absl::OkStatus();
}

}  // namespace maxsimd::cuda
