// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Handles, the choice of an algorithm (there is one), and products of matrices of floats,
// doubles and halves.

#include <algorithm>
#include <iterator>
#include <optional>

#include "simgpu/cublas/handle.hpp"
#include "simgpu/cublas/log.hpp"
#include "simgpu/cublas/operands.hpp"
#include "simgpu/cublaslt/descriptors.hpp"
#include "simgpu/cublaslt/kernel.hpp"

namespace libswap::simgpu::cublaslt {
namespace {

using cublas::address;

struct Matrices {
    const Layout& a;
    const Layout& b;
    const Layout& c;
    const Layout& d;
};

bool is_float_compute(std::int32_t type) {
    return type == CUBLAS_COMPUTE_32F || type == CUBLAS_COMPUTE_32F_PEDANTIC ||
           type == CUBLAS_COMPUTE_32F_FAST_16F || type == CUBLAS_COMPUTE_32F_FAST_16BF ||
           type == CUBLAS_COMPUTE_32F_FAST_TF32 || type == CUBLAS_COMPUTE_32F_EMULATED_16BFX9;
}

bool is_double_compute(std::int32_t type) {
    return type == CUBLAS_COMPUTE_64F || type == CUBLAS_COMPUTE_64F_PEDANTIC;
}

/// The element that a data type names, or nothing where it is not built.
std::optional<cublas::Element> element_of(std::uint32_t type) {
    switch (type) {
        case CUDA_R_32F:
            return cublas::Element::Float;
        case CUDA_R_64F:
            return cublas::Element::Double;
        case CUDA_R_16F:
            return cublas::Element::Half;
        case CUDA_R_16BF:
            return cublas::Element::BFloat;
        default:
            return std::nullopt;
    }
}

bool is_plain(const Layout& layout) {
    return element_of(layout.type) && layout.order == CUBLASLT_ORDER_COL &&
           layout.plane_offset == 0 && layout.batch_mode == 0;
}

/// The types go together: doubles with doubles, and floats and halves in float arithmetic.
bool are_built_types(const MatmulDesc& desc, const Matrices& m) {
    if (m.a.type != m.b.type || m.c.type != m.d.type) return false;
    const bool same = m.a.type == m.d.type;
    if (m.a.type == CUDA_R_64F)
        return same && is_double_compute(desc.compute_type) && desc.scale_type == CUDA_R_64F;
    return is_float_compute(desc.compute_type) && desc.scale_type == CUDA_R_32F &&
           (same || m.d.type == CUDA_R_32F) &&
           (desc.bias_type < 0 || element_of(static_cast<std::uint32_t>(desc.bias_type)));
}

bool is_built(const MatmulDesc& desc, const Matrices& m) {
    constexpr std::uint32_t kEpilogues =
        CUBLASLT_EPILOGUE_RELU | CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_GELU | 1U;
    const bool scales = std::any_of(std::begin(desc.scale_pointers), std::end(desc.scale_pointers),
                                    [](std::uint64_t pointer) { return pointer != 0; });
    const bool host_or_device = desc.pointer_mode == CUBLASLT_POINTER_MODE_HOST ||
                                desc.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
    return host_or_device && desc.transpose_c == CUBLAS_OP_N && !scales &&
           (desc.epilogue & ~kEpilogues) == 0 && is_plain(m.a) && is_plain(m.b) && is_plain(m.c) &&
           is_plain(m.d) && are_built_types(desc, m);
}

/// The shapes agree.
bool is_consistent(const MatmulDesc& desc, const Matrices& m) {
    const bool a_plain = desc.transpose_a == CUBLAS_OP_N;
    const bool b_plain = desc.transpose_b == CUBLAS_OP_N;
    const std::uint64_t rows = a_plain ? m.a.rows : m.a.columns;
    const std::uint64_t depth = a_plain ? m.a.columns : m.a.rows;
    const std::uint64_t columns = b_plain ? m.b.columns : m.b.rows;
    const auto result = [&](const Layout& layout) {
        return layout.rows == rows && layout.columns == columns;
    };
    const auto leads = [](const Layout& layout) {
        return layout.ld >= static_cast<std::int64_t>(std::max<std::uint64_t>(layout.rows, 1));
    };
    const bool batches = m.a.batch_count == m.d.batch_count && m.b.batch_count == m.d.batch_count &&
                         m.c.batch_count == m.d.batch_count;
    return depth == (b_plain ? m.b.rows : m.b.columns) && result(m.c) && result(m.d) && batches &&
           m.d.batch_count >= 1 && leads(m.a) && leads(m.b) && leads(m.c) && leads(m.d);
}

cublasStatus_t check(const char* function, const MatmulDesc& desc, const Matrices& matrices) {
    if (!is_built(desc, matrices)) return static_cast<cublasStatus_t>(cublas::unbuilt(function));
    return is_consistent(desc, matrices) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

Activation activation(const MatmulDesc& desc) {
    if ((desc.epilogue & CUBLASLT_EPILOGUE_RELU) != 0) return Activation::Relu;
    return (desc.epilogue & CUBLASLT_EPILOGUE_GELU) != 0 ? Activation::Gelu : Activation::None;
}

cublas::Scalar scalar(const MatmulDesc& desc, const void* pointer) {
    if (desc.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE)
        return {reinterpret_cast<std::uint64_t>(pointer), 0};
    if (desc.scale_type == CUDA_R_64F) return {0, *static_cast<const double*>(pointer)};
    return {0, static_cast<double>(*static_cast<const float*>(pointer))};
}

MatmulParams params_of(const MatmulDesc& desc, const Matrices& m) {
    MatmulParams p{};
    p.product.m = static_cast<std::int64_t>(m.d.rows);
    p.product.n = static_cast<std::int64_t>(m.d.columns);
    p.product.k =
        static_cast<std::int64_t>(desc.transpose_a == CUBLAS_OP_N ? m.a.columns : m.a.rows);
    p.product.lda = m.a.ld;
    p.product.ldb = m.b.ld;
    p.product.ldc = m.d.ld;
    p.product.stride_a = m.a.batch_stride;
    p.product.stride_b = m.b.batch_stride;
    p.product.stride_c = m.d.batch_stride;
    p.product.batch = m.d.batch_count;
    p.product.transpose_a = desc.transpose_a != CUBLAS_OP_N;
    p.product.transpose_b = desc.transpose_b != CUBLAS_OP_N;
    p.product.element = *element_of(m.a.type);
    p.product.result = *element_of(m.d.type);
    p.source_ld = m.c.ld;
    p.source_stride = m.c.batch_stride;
    p.activation = activation(desc);
    if ((desc.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) {
        p.bias = desc.bias;
        p.bias_element = desc.bias_type < 0
                             ? p.product.result
                             : *element_of(static_cast<std::uint32_t>(desc.bias_type));
        p.bias_stride = desc.bias_batch_stride;
    }
    return p;
}

/// Ours are libcublas's, which know their context.
cublasHandle_t inner(cublasLtHandle_t handle) { return reinterpret_cast<cublasHandle_t>(handle); }

}  // namespace
}  // namespace libswap::simgpu::cublaslt

using namespace libswap::simgpu::cublaslt;  // NOLINT: the C ABI's bodies below are short

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
    return cublasCreate_v2(reinterpret_cast<cublasHandle_t*>(handle));
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return cublasDestroy_v2(inner(handle)); }

size_t cublasLtGetVersion() {
    int version = 0;
    cublasGetVersion_v2(nullptr, &version);
    return static_cast<size_t>(version);
}

size_t cublasLtGetCudartVersion() { return CUDA_VERSION; }

cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int* value) {
    return cublasGetProperty(type, value);
}

const char* cublasLtGetStatusName(cublasStatus_t status) { return cublasGetStatusName(status); }

const char* cublasLtGetStatusString(cublasStatus_t status) { return cublasGetStatusString(status); }

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* returned) {
    if (returned != nullptr) *returned = 0;
    if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
    const bool complete = desc != nullptr && a != nullptr && b != nullptr && c != nullptr &&
                          d != nullptr && preference != nullptr && results != nullptr &&
                          returned != nullptr && requested >= 1;
    if (!complete) return CUBLAS_STATUS_INVALID_VALUE;
    const cublasStatus_t status =
        check("cublasLtMatmulAlgoGetHeuristic of this product", inside<MatmulDesc>(desc),
              {inside<Layout>(a), inside<Layout>(b), inside<Layout>(c), inside<Layout>(d)});
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    results[0] = {};
    results[0].state = CUBLAS_STATUS_SUCCESS;
    results[0].wavesCount = 1;
    *returned = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* A, cublasLtMatrixLayout_t a, const void* B,
                              cublasLtMatrixLayout_t b, const void* beta, const void* C,
                              cublasLtMatrixLayout_t c, void* D, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t*, void* workspace, size_t workspace_bytes,
                              cudaStream_t stream) {
    if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
    const bool complete = desc != nullptr && a != nullptr && b != nullptr && c != nullptr &&
                          d != nullptr && alpha != nullptr && beta != nullptr && D != nullptr;
    if (!complete) return CUBLAS_STATUS_INVALID_VALUE;
    const auto& inner_desc = inside<MatmulDesc>(desc);
    const Matrices matrices{inside<Layout>(a), inside<Layout>(b), inside<Layout>(c),
                            inside<Layout>(d)};
    const cublasStatus_t status = check("cublasLtMatmul of this product", inner_desc, matrices);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (matrices.d.rows == 0 || matrices.d.columns == 0) return CUBLAS_STATUS_SUCCESS;
    MatmulParams params = params_of(inner_desc, matrices);
    params.product.a = address(A);
    params.product.b = address(B);
    params.product.c = address(D);
    params.product.workspace = workspace_bytes == 0 ? 0 : address(workspace);
    params.product.alpha = scalar(inner_desc, alpha);
    params.product.beta = scalar(inner_desc, beta);
    params.source = C == nullptr ? address(D) : address(C);
    libswap::simgpu::cublas::ensure_context(*inner(handle));
    return libswap::simgpu::cublas::status_of(launch(params, stream));
}
}
