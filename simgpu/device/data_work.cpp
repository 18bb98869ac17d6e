// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <algorithm>
#include <cstring>

#include "simgpu/device/op.hpp"
#include "simgpu/device/timeline.hpp"

namespace simgpu {

namespace {

void set_elements(std::byte* target, std::uint64_t count, const MemsetRequest& request) {
    if (request.element_bytes == 1) {
        std::memset(target, static_cast<int>(request.value & 0xFF), count);
        return;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
        // Little-endian: the low bytes come first.
        std::memcpy(target + i * request.element_bytes, &request.value, request.element_bytes);
    }
}

Status run_memset(Op& op) {
    const MemsetRequest& request = op.memset;
    const std::uint64_t row_bytes = request.width * request.element_bytes;
    for (std::uint64_t row = 0; row < request.height; ++row) {
        const Access access =
            op.access->copy_span(request.dst + row * request.pitch, row_bytes, true, true);
        if (!access.ok) return CUDA_ERROR_ILLEGAL_ADDRESS;
        if (!op.access->without_data()) set_elements(access.host, request.width, request);
    }
    return CUDA_SUCCESS;
}

Status run_copy_row(Op& op, std::uint64_t dst, std::uint64_t src, std::uint64_t bytes) {
    const Access from = op.access->copy_span(src, bytes, false, false);
    if (!from.ok) return CUDA_ERROR_ILLEGAL_ADDRESS;
    const Access to = op.access->copy_span(dst, bytes, true, true);
    if (!to.ok) return CUDA_ERROR_ILLEGAL_ADDRESS;
    constexpr std::uint64_t kLostBytes = 4096;
    const std::uint64_t lost = op.loses_page ? std::min(kLostBytes, bytes) : 0;
    if (!op.access->without_data()) std::memmove(to.host + lost, from.host + lost, bytes - lost);
    return CUDA_SUCCESS;
}

Status run_copy(Op& op) {
    const CopyRequest& copy = op.copy;
    for (std::uint64_t slice = 0; slice < copy.depth; ++slice) {
        for (std::uint64_t row = 0; row < copy.height; ++row) {
            const Status status = run_copy_row(
                op, copy.dst + slice * copy.dst_slice_pitch + row * copy.dst_pitch,
                copy.src + slice * copy.src_slice_pitch + row * copy.src_pitch, copy.width);
            if (status != CUDA_SUCCESS) return status;
        }
    }
    return CUDA_SUCCESS;
}

Status run_kernel(Op& op) {
    KernelMemory memory(*op.access);
    try {
        op.outcome = op.launch.work(memory);
    } catch (...) {
        op.outcome.status = CUDA_ERROR_LAUNCH_FAILED;
    }
    if (op.outcome.status == CUDA_SUCCESS && op.access->fault_va() != 0) {
        op.outcome.status = CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    if (op.outcome.status == CUDA_ERROR_ILLEGAL_ADDRESS && op.outcome.fault_va == 0) {
        op.outcome.fault_va = op.access->fault_va();
    }
    return op.outcome.status;
}

}  // namespace

std::uint64_t Op::bytes() const {
    if (kind == Kind::Copy) return copy.bytes();
    if (kind == Kind::Memset) return memset.width * memset.height * memset.element_bytes;
    return kind == Kind::Kernel ? static_cast<std::uint64_t>(outcome.bytes) : 0;
}

void run_data_work(Op& op) {
    switch (op.kind) {
        case Op::Kind::Kernel:
            op.status = run_kernel(op);
            break;
        case Op::Kind::Memset:
            op.status = run_memset(op);
            break;
        default:
            op.status = run_copy(op);
            break;
    }
    if (op.status == CUDA_ERROR_ILLEGAL_ADDRESS && op.outcome.fault_va == 0) {
        op.outcome.fault_va = op.access->fault_va();
    }
    op.access->work_over();
}

}  // namespace simgpu
