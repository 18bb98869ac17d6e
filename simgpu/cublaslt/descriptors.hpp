// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What the opaque descriptors hold. Programs may keep them on their stack (the vendor's ...Init
// functions), so they live inside the vendor's structs, which have room.
#pragma once

#include <cstdint>

#include "simgpu/cublaslt/api.hpp"

namespace libswap::simgpu::cublaslt {

struct Layout {
    std::uint32_t type;
    std::int32_t order;
    std::uint64_t rows;
    std::uint64_t columns;
    std::int64_t ld;
    std::int64_t batch_stride;
    std::int64_t plane_offset;
    std::int32_t batch_count;
    std::uint32_t batch_mode;
};

struct MatmulDesc {
    std::int32_t compute_type;
    std::int32_t scale_type;
    std::int32_t pointer_mode;
    std::int32_t transpose_a;
    std::int32_t transpose_b;
    std::int32_t transpose_c;
    std::int32_t fill_mode;
    std::uint32_t epilogue;
    std::uint64_t bias;
    std::int64_t bias_batch_stride;
    std::uint64_t aux;
    std::int64_t aux_ld;
    std::int64_t aux_batch_stride;
    std::int64_t alpha_batch_stride;
    std::int32_t sm_count_target;
    std::int32_t aux_type;
    std::int32_t bias_type;
    std::int8_t fast_accumulation;
    /// Of A, B, C, D, D's maximum, the auxiliary matrix's scale and maximum: 0 in what is built.
    std::uint64_t scale_pointers[7];
};

struct Preference {
    std::uint32_t search_mode;
    std::uint32_t reductions;
    std::uint64_t workspace_bytes;
    std::uint32_t alignments[4];
    float waves;
    std::uint64_t implementations;
};

static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t));
static_assert(sizeof(MatmulDesc) <= sizeof(cublasLtMatmulDescOpaque_t));
static_assert(sizeof(Preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t));

template <typename Inner, typename Opaque>
Inner& inside(Opaque* opaque) {
    return *reinterpret_cast<Inner*>(opaque->data);
}

}  // namespace libswap::simgpu::cublaslt
