#include "kernels/cuda/tensor_map.h"

#include "absl/strings/str_cat.h"

#include "kernels/cuda/cuda_status.h"

namespace maxsimd::cuda {
namespace {

CUtensorMapDataType MapType(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case ElementType::kFloat16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case ElementType::kBfloat16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  }
  return CU_TENSOR_MAP_DATA_TYPE_UINT8;
}

// libcuda belongs to the driver, which a machine without a GPU lacks: so it isn't linked.
absl::StatusOr<decltype(&cuTensorMapEncodeTiled)> FindEncoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
  RETURN_IF_ERROR(ToStatus(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                            12000, cudaEnableDefault, &result),
                           "cuTensorMapEncodeTiled"));
  if (function == nullptr) return absl::FailedPreconditionError("cuda: the driver is too old");
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

absl::Status Encode(const std::byte* base, uint64_t rows, uint64_t pitch_bytes, uint32_t dim,
                    const TileConfig& config, uint32_t box_rows, uint32_t box_atoms,
                    CUtensorMap* map) {
  static const absl::StatusOr<decltype(&cuTensorMapEncodeTiled)> encoder = FindEncoder();
  if (!encoder.ok()) return encoder.status();
  const cuuint32_t columns = AtomColumns(config.element_type);
  const bool whole = config.whole_atoms;
  const cuuint64_t sizes[3] = {whole ? columns : dim, rows, whole ? config.atoms : 1};
  const cuuint64_t strides[2] = {pitch_bytes, kAtomBytes};  // Of dimensions 1 and 2.
  const cuuint32_t box[3] = {columns, box_rows, box_atoms};
  const cuuint32_t element_strides[3] = {1, 1, 1};
  const CUresult result =
      (*encoder)(map, MapType(config.element_type), 3, const_cast<std::byte*>(base), sizes, strides,
                 box, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                 CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cuda: tensor map: error ", static_cast<int>(result)));
}

}  // namespace

absl::StatusOr<TensorMaps> MakeTensorMaps(const std::byte* base, uint64_t rows,
                                          uint64_t pitch_bytes, uint32_t dim,
                                          const TileConfig& config) {
  TensorMaps maps;
  for (uint32_t box = 0; box < kBoxes; ++box) {
    RETURN_IF_ERROR(Encode(base, rows, pitch_bytes, dim, config, (box + 1) * kBoxUnit,
                           config.box_atoms, &maps.of_rows[box]));
  }
  return maps;
}

}  // namespace maxsimd::cuda
