// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Launches, copies and memsets.

#include "runtime/engine_impl.hpp"

namespace libswap {
namespace {

/// Larger memsets of what is on the host bring it first; smaller ones go over the link.
constexpr std::size_t kMemsetInPlaceBytes = std::size_t{64} << 10;

/// Memory for the driver, where a launch lacks some: how much at first, and how often.
constexpr std::uint64_t kLaunchRoomBytes = std::uint64_t{16} << 20;
constexpr int kRoomTries = 3;

/// What is captured does not run now.
bool is_captured(Device* device, CUstream stream) {
    return device->capturing() && device->is_captured(stream);
}

/// Names what a kernel's parameters reach. False if its layout is not known.
bool name_parameters(Device& device, Operation& op, const LaunchRequest& request) {
    FunctionInfo* info = device.functions().find(request.function);
    op.function = info;
    if (!info || !info->layout_known) {
        op.explained = false;
        device.name_everything_unmappable(op);
        return false;
    }
    for_each_parameter_word(*info, request.params, request.extra,
                            [&](std::uint64_t word) { device.name_address(op, word); });
    device.name_globals(op);
    return true;
}

std::uint64_t launch_signature(const Operation& op, const LaunchRequest& request) noexcept {
    std::uint64_t hash = op.function ? op.function->hash : 1;
    for (int i = 0; i < 3; ++i)
        hash = mix_signature(hash, std::uint64_t{request.grid[i]} << 32 | request.block[i]);
    hash = mix_signature(hash, request.shared_bytes);
    return mix_signature(hash, op.blocks.size());
}

bool is_host_pointer(const Driver& driver, std::uint64_t address) noexcept {
    unsigned type = 0;
    const CUresult code =
        driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    // Memory that the driver has never heard of is the host's.
    return code == CUDA_ERROR_INVALID_VALUE || (code == CUDA_SUCCESS && type == CU_MEMORYTYPE_HOST);
}

void follow_copy(Device& device, const Driver& driver, const CopyRequest& request, bool dst_ours,
                 bool src_ours) {
    const bool to_device =
        request.dst_side != CopySide::Host && request.dst_side != CopySide::Array;
    if (!to_device || request.dst_bytes == 0) return;
    if (request.contiguous && src_ours) {
        device.copy_edges(request.dst, request.src, request.dst_bytes);
        return;
    }
    const bool small = request.contiguous && request.dst_bytes <= PointerEdges::kMaxPayloadBytes &&
                       request.dst_bytes >= 8;
    const bool from_host =
        small && (request.src_side == CopySide::Host ||
                  (request.src_side == CopySide::Unified && is_host_pointer(driver, request.src)));
    // Tables may lie in module globals, which are not ours.
    if (from_host)
        device.follow_payload(request.dst, reinterpret_cast<const void*>(request.src),
                              request.dst_bytes);
    else if (dst_ours)
        device.overwrite_edges(request.dst, request.dst_bytes);
}

}  // namespace

CUresult Engine::launch(const LaunchRequest& request, RealCall real) noexcept {
    return guarded([&] {
        CUcontext context = nullptr;
        Device* device = impl_->current(&context, false);
        if (!device || is_captured(device, request.stream)) return real();
        // The driver may need memory of its own, for the stacks of a kernel that is larger than all
        // before. What we give comes from blocks that this launch does not name, so not while it
        // holds pins.
        CUresult result = CUDA_SUCCESS;
        for (int tries = 0; tries < kRoomTries; ++tries) {
            Operation& op = fresh_operation();
            op.by_parts = device->by_parts();
            name_parameters(*device, op, request);
            op.signature = launch_signature(op, request);
            bool refused = false;
            const auto call = [&] {
                const CUresult code = real();
                refused = code == CUDA_ERROR_OUT_OF_MEMORY;
                return code;
            };
            Counters::add(device->counters().launches);
            result = device->run(op, context, request.stream, call);
            if (!refused || !device->give_room(kLaunchRoomBytes << tries)) break;
            device->keep_room(kLaunchRoomBytes << tries);
        }
        return result;
    });
}

CUresult Engine::copy(const CopyRequest& request, RealCall real) noexcept {
    return guarded([&] {
        CUcontext context = nullptr;
        Device* device = impl_->current(&context, false);
        if (!device || is_captured(device, request.stream)) return real();
        const auto ours = [&](CopySide side, std::uint64_t address) {
            return (side == CopySide::Device || side == CopySide::Unified) && device->owns(address);
        };
        const bool dst_ours = ours(request.dst_side, request.dst);
        const bool src_ours = ours(request.src_side, request.src);
        if (!dst_ours && !src_ours && request.src_side != CopySide::Host &&
            request.src_side != CopySide::Unified)
            return real();
        Operation& op = fresh_operation();
        op.kind = OpKind::Copy;
        op.writes = dst_ours;
        op.host_is_fine = true;
        if (dst_ours) device->name_range(op, request.dst, request.dst_bytes);
        if (src_ours) device->name_range(op, request.src, request.src_bytes);
        // One call over places of both kinds is a case no manual describes: bring all of it
        // instead.
        if (op.blocks.size() > 1) op.host_is_fine = device->all_on_host(op);
        follow_copy(*device, impl_->driver, request, dst_ours, src_ours);
        if (!dst_ours && !src_ours) return real();
        op.signature = mix_signature(static_cast<std::uint64_t>(OpKind::Copy) << 8 |
                                         (dst_ours ? 2u : 0u) | (src_ours ? 1u : 0u),
                                     request.dst_bytes);
        Counters::add(device->counters().copies);
        const CUresult result = device->run(op, context, request.stream, real);
        const bool sync = request.async && ((dst_ours && device->sync_memops(request.dst)) ||
                                            (src_ours && device->sync_memops(request.src)));
        if (sync && result == CUDA_SUCCESS)
            return impl_->driver.cuStreamSynchronize(request.stream);
        return result;
    });
}

CUresult Engine::memset(const MemsetRequest& request, RealCall real) noexcept {
    return guarded([&] {
        CUcontext context = nullptr;
        Device* device = impl_->current(&context, false);
        if (!device || !device->owns(request.dst) || is_captured(device, request.stream))
            return real();
        Operation& op = fresh_operation();
        op.kind = OpKind::Memset;
        op.host_is_fine = request.bytes <= kMemsetInPlaceBytes;
        device->name_range(op, request.dst, request.bytes);
        device->overwrite_edges(request.dst, request.bytes);
        op.signature =
            mix_signature(static_cast<std::uint64_t>(OpKind::Memset) << 8, request.bytes);
        Counters::add(device->counters().memsets);
        const CUresult result = device->run(op, context, request.stream, real);
        if (request.async && result == CUDA_SUCCESS && device->sync_memops(request.dst))
            return impl_->driver.cuStreamSynchronize(request.stream);
        return result;
    });
}

CUresult Engine::use_for_good(const std::uint64_t* addresses, std::size_t count,
                              RealCall real) noexcept {
    return guarded([&] {
        for (std::size_t i = 0; i < count; ++i) {
            Device* device = impl_->owner(addresses[i]);
            if (!device) continue;
            Operation& op = fresh_operation();
            device->name_address(op, addresses[i]);
            device->keep_for_good(op);
        }
        return real();
    });
}

}  // namespace libswap
