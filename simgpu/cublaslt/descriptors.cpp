// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Creating, destroying, reading and changing descriptors.

#include "simgpu/cublaslt/descriptors.hpp"

#include <cstddef>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <string>

#include "simgpu/cublas/log.hpp"

namespace libswap::simgpu::cublaslt {
namespace {

/// Where an attribute lies in our struct.
struct Field {
    int attribute;
    std::size_t offset;
    std::size_t bytes;
};

#define SIMGPU_FIELD(attribute, Struct, member) \
    Field { attribute, offsetof(Struct, member), sizeof(Struct::member) }

constexpr Field kLayoutFields[] = {
    SIMGPU_FIELD(CUBLASLT_MATRIX_LAYOUT_TYPE, Layout, type),
    SIMGPU_FIELD(CUBLASLT_MATRIX_LAYOUT_ORDER, Layout, order),
    SIMGPU_FIELD(CUBLASLT_MATRIX_LAYOUT_ROWS, Layout, rows),
    SIMGPU_FIELD(CUBLASLT_MATRIX_LAYOUT_COLS, Layout, columns),
    SIMGPU_FIELD(CUBLASLT_MATRIX_LAYOUT_LD, Layout, ld),
    SIMGPU_FIELD(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, Layout, batch_count),
    SIMGPU_FIELD(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, Layout, batch_stride),
    SIMGPU_FIELD(CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, Layout, plane_offset),
    SIMGPU_FIELD(CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, Layout, batch_mode),
};

constexpr Field kMatmulFields[] = {
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, MatmulDesc, compute_type),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_SCALE_TYPE, MatmulDesc, scale_type),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_POINTER_MODE, MatmulDesc, pointer_mode),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_TRANSA, MatmulDesc, transpose_a),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_TRANSB, MatmulDesc, transpose_b),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_TRANSC, MatmulDesc, transpose_c),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_FILL_MODE, MatmulDesc, fill_mode),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE, MatmulDesc, epilogue),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_BIAS_POINTER, MatmulDesc, bias),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, MatmulDesc, bias_batch_stride),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, MatmulDesc, aux),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, MatmulDesc, aux_ld),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, MatmulDesc, aux_batch_stride),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, MatmulDesc, alpha_batch_stride),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, MatmulDesc, sm_count_target),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, MatmulDesc, scale_pointers[0]),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, MatmulDesc, scale_pointers[1]),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, MatmulDesc, scale_pointers[2]),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, MatmulDesc, scale_pointers[3]),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, MatmulDesc, scale_pointers[4]),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, MatmulDesc, aux_type),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, MatmulDesc, scale_pointers[5]),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, MatmulDesc, scale_pointers[6]),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_FAST_ACCUM, MatmulDesc, fast_accumulation),
    SIMGPU_FIELD(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, MatmulDesc, bias_type),
};

constexpr Field kPreferenceFields[] = {
    SIMGPU_FIELD(CUBLASLT_MATMUL_PREF_SEARCH_MODE, Preference, search_mode),
    SIMGPU_FIELD(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, Preference, workspace_bytes),
    SIMGPU_FIELD(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, Preference, reductions),
    SIMGPU_FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, Preference, alignments[0]),
    SIMGPU_FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, Preference, alignments[1]),
    SIMGPU_FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, Preference, alignments[2]),
    SIMGPU_FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, Preference, alignments[3]),
    SIMGPU_FIELD(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, Preference, waves),
    SIMGPU_FIELD(CUBLASLT_MATMUL_PREF_IMPL_MASK, Preference, implementations),
};
#undef SIMGPU_FIELD

const Field* find(std::span<const Field> fields, int attribute) {
    for (const Field& field : fields) {
        if (field.attribute == attribute) return &field;
    }
    return nullptr;
}

cublasStatus_t unknown(const char* function, int attribute) {
    std::string what = std::string(function) + " of attribute " + std::to_string(attribute);
    return static_cast<cublasStatus_t>(cublas::unbuilt(what.c_str()));
}

cublasStatus_t set(const char* function, std::span<const Field> fields, void* object, int attribute,
                   const void* value, std::size_t bytes) {
    if (object == nullptr || value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    const Field* field = find(fields, attribute);
    if (field == nullptr) return unknown(function, attribute);
    if (bytes != field->bytes) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(static_cast<std::byte*>(object) + field->offset, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

/// With no room given, says only how much is needed.
cublasStatus_t get(const char* function, std::span<const Field> fields, const void* object,
                   int attribute, void* value, std::size_t bytes, std::size_t* written) {
    if (object == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    const Field* field = find(fields, attribute);
    if (field == nullptr) return unknown(function, attribute);
    if (written != nullptr) *written = field->bytes;
    if (bytes == 0) {
        return written == nullptr ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
    }
    if (value == nullptr || bytes != field->bytes) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(value, static_cast<const std::byte*>(object) + field->offset, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

template <typename Opaque>
cublasStatus_t destroy(Opaque* opaque) {
    delete opaque;
    return CUBLAS_STATUS_SUCCESS;
}

/// Makes an object by its ..._internal function.
template <typename Opaque, typename Init>
cublasStatus_t create(Opaque** opaque, Init init) {
    if (opaque == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    *opaque = new (std::nothrow) Opaque{};
    return *opaque == nullptr ? CUBLAS_STATUS_ALLOC_FAILED : init(*opaque);
}

template <typename Opaque>
bool has_room(Opaque* opaque, std::size_t bytes) {
    if (opaque == nullptr || bytes < sizeof(Opaque)) return false;
    std::memset(opaque, 0, sizeof(Opaque));
    return true;
}

}  // namespace
}  // namespace libswap::simgpu::cublaslt

using namespace libswap::simgpu::cublaslt;  // NOLINT: the C ABI's bodies below are short

extern "C" {

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size,
                                                 cudaDataType type, uint64_t rows, uint64_t cols,
                                                 int64_t ld) {
    if (!has_room(layout, size)) return CUBLAS_STATUS_INVALID_VALUE;
    inside<Layout>(layout) = {.type = static_cast<std::uint32_t>(type),
                              .order = CUBLASLT_ORDER_COL,
                              .rows = rows,
                              .columns = cols,
                              .ld = ld,
                              .batch_stride = 0,
                              .plane_offset = 0,
                              .batch_count = 1,
                              .batch_mode = 0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld) {
    return create(layout, [&](cublasLtMatrixLayout_t made) {
        return cublasLtMatrixLayoutInit_internal(made, sizeof(*made), type, rows, cols, ld);
    });
}

cublasStatus_t cublasLtMatrixLayoutDestroy(const cublasLtMatrixLayout_t layout) {
    return destroy(layout);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* buffer, size_t size) {
    return set("cublasLtMatrixLayoutSetAttribute", kLayoutFields, layout, attribute, buffer, size);
}

cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                void* buffer, size_t size, size_t* written) {
    return get("cublasLtMatrixLayoutGetAttribute", kLayoutFields, layout, attribute, buffer, size,
               written);
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t desc, size_t size,
                                               cublasComputeType_t compute, cudaDataType_t scale) {
    if (!has_room(desc, size)) return CUBLAS_STATUS_INVALID_VALUE;
    auto& inner = inside<MatmulDesc>(desc);
    inner.compute_type = compute;
    inner.scale_type = scale;
    inner.fill_mode = CUBLAS_FILL_MODE_FULL;
    inner.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    inner.aux_type = -1;
    inner.bias_type = -1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
    return create(desc, [&](cublasLtMatmulDesc_t made) {
        return cublasLtMatmulDescInit_internal(made, sizeof(*made), compute, scale);
    });
}

cublasStatus_t cublasLtMatmulDescDestroy(const cublasLtMatmulDesc_t desc) { return destroy(desc); }

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* buffer, size_t size) {
    return set("cublasLtMatmulDescSetAttribute", kMatmulFields, desc, attribute, buffer, size);
}

cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              void* buffer, size_t size, size_t* written) {
    return get("cublasLtMatmulDescGetAttribute", kMatmulFields, desc, attribute, buffer, size,
               written);
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference,
                                                     size_t size) {
    if (!has_room(preference, size)) return CUBLAS_STATUS_INVALID_VALUE;
    inside<Preference>(preference) = {.search_mode = CUBLASLT_SEARCH_BEST_FIT,
                                      .reductions = CUBLASLT_REDUCTION_SCHEME_MASK,
                                      .workspace_bytes = 0,
                                      .alignments = {256, 256, 256, 256},
                                      .waves = 0,
                                      .implementations = std::numeric_limits<std::uint64_t>::max()};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
    return create(preference, [](cublasLtMatmulPreference_t made) {
        return cublasLtMatmulPreferenceInit_internal(made, sizeof(*made));
    });
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(const cublasLtMatmulPreference_t preference) {
    return destroy(preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* buffer, size_t size) {
    return set("cublasLtMatmulPreferenceSetAttribute", kPreferenceFields, preference, attribute,
               buffer, size);
}

cublasStatus_t cublasLtMatmulPreferenceGetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    void* buffer, size_t size, size_t* written) {
    return get("cublasLtMatmulPreferenceGetAttribute", kPreferenceFields, preference, attribute,
               buffer, size, written);
}
}
