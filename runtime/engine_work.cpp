// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Launches, copies and memsets.

#include "runtime/engine_impl.hpp"
#include "runtime/host_memory.hpp"

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

std::uint64_t launch_signature(const Operation& op, const LaunchRequest& request) noexcept {
    std::uint64_t hash = op.function ? op.function->hash : 1;
    for (int i = 0; i < 3; ++i)
        hash = mix_signature(hash, std::uint64_t{request.grid[i]} << 32 | request.block[i]);
    hash = mix_signature(hash, request.shared_bytes);
    // Behind its last entry a list holds what the stack held before: addresses that change from one
    // iteration to the next, also with what our own hooks left there.
    if (op.function && op.function->has_unset_words) return hash;
    // Not how many blocks: of a buffer that holds several tensors that depends on where they lie.
    return mix_signature(hash, op.addresses);
}

/// An address on a side of a copy that may be a device's.
bool may_be_ours(CopySide side) noexcept {
    return side == CopySide::Device || side == CopySide::Unified;
}

std::uint64_t copy_signature(const CopyRequest& request, bool dst_ours, bool src_ours) noexcept {
    return mix_signature(
        static_cast<std::uint64_t>(OpKind::Copy) << 8 | (dst_ours ? 2u : 0u) | (src_ours ? 1u : 0u),
        request.dst.span_bytes());
}

}  // namespace

/// A word that may be an address: of the device's own memory, or of another one's.
void Engine::Impl::name_word(OperationParts& parts, const Device* apart_from, std::uint64_t word) {
    for_each_device([&](Device& other) {
        if (&other != apart_from && other.owns(word)) other.name_address(parts.of(other), word);
    });
}

/// Names what a kernel's parameters reach. False if its layout is not known.
bool Engine::Impl::name_parameters(Device& device, OperationParts& parts,
                                   const LaunchRequest& request) {
    Operation& op = parts.of(device);
    op.by_parts = device.by_parts();
    FunctionInfo* info = device.functions().find(request.function);
    op.function = info;
    if (!info || !info->layout_known) {
        op.explained = false;
        device.name_everything_unmappable(op);
        return false;
    }
    const bool many = many_devices.load(std::memory_order_relaxed);
    const auto name = [&](std::uint64_t word) {
        device.name_address(op, word);
        if (many) name_word(parts, &device, word);
    };
    if (info->has_roomy)
        for_each_parameter(*info, request.params, request.extra,
                           [&](const void* memory, const ParamSlot& slot) {
                               visit_words(memory, slot.bytes, [&](std::uint64_t word) {
                                   if (slot.is_roomy() && device.has_no_content(word))
                                       ++op.words;  // left there by an earlier call
                                   else
                                       name(word);
                               });
                           });
    else
        for_each_parameter_word(*info, request.params, request.extra, name);
    if (tensor_maps.any())
        for_each_parameter(*info, request.params, request.extra,
                           [&](const void* memory, const ParamSlot& slot) {
                               tensor_maps.for_each(memory, slot.bytes, slot.offset,
                                                    [&](std::size_t, std::uint64_t address) {
                                                        name_word(parts, nullptr, address);
                                                    });
                           });
    device.name_globals(op);
    if (many) parts.follow_foreign([this](std::uint64_t address) { return owner(address); });
    device.look_at_numbers(op, request);
    return true;
}

void Engine::Impl::note_pointers(std::uint64_t dst, const void* payload, std::size_t bytes) {
    for_each_pointer(payload, bytes, dst, [&](std::size_t offset, std::uint64_t address) {
        edges.add(dst + offset, address);
    });
}

void Engine::Impl::follow_payload(const Rows& dst, const Rows& src) {
    edges.overwrite(dst);
    // Without an address, or with rows that overlap, it is the driver's to refuse.
    if (src.base == 0 || !src.are_apart() || dst.bytes() > PointerEdges::kMaxPayloadBytes) return;
    for (std::size_t i = 0; i < dst.count(); ++i)
        note_pointers(dst.row(i), reinterpret_cast<const void*>(src.row(i)), src.row_bytes);
}

void Engine::Impl::follow_copy(const CopyRequest& request) {
    const std::size_t bytes = request.dst.bytes();
    if (!may_be_ours(request.dst_side) || bytes == 0) return;
    if (request.src_side == CopySide::Host) return follow_payload(request.dst, request.src);
    if (!may_be_ours(request.src_side)) return edges.overwrite(request.dst);
    const bool may_be_table = bytes >= 8 && bytes <= PointerEdges::kMaxPayloadBytes;
    const bool from_host = request.src_side == CopySide::Unified && may_be_table &&
                           !owner(request.src.base) && is_host_pointer(driver, request.src.base);
    if (from_host) return follow_payload(request.dst, request.src);
    edges.copy(request.dst, request.src);
}

CUresult Engine::launch(const LaunchRequest& request, RealCall real) noexcept {
    return guarded([&] {
        CUcontext context = nullptr;
        Device* device = impl_->current(&context, false);
        if (!device || is_captured(device, request.stream)) return real();
        Counters::add(device->counters().launches);
        CUresult result = CUDA_SUCCESS;
        const bool simple =
            !impl_->many_devices.load(std::memory_order_relaxed) && !impl_->tensor_maps.any();
        if (simple && device->launch_still(request, context, real, &result) &&
            result != CUDA_ERROR_OUT_OF_MEMORY)
            return result;
        // The driver may need memory of its own, for the stacks of a kernel that is larger than all
        // before. What we give comes from blocks that this launch does not name, so not while it
        // holds pins.
        std::uint64_t free_before = 0;
        for (int tries = 0; tries < kRoomTries; ++tries) {
            OperationParts parts;
            impl_->name_parameters(*device, parts, request);
            Operation& op = parts.of(*device);
            if (device->tracking()) op.signature = launch_signature(op, request);
            bool refused = false;
            const auto call = [&] {
                const CUresult code = real();
                refused = code == CUDA_ERROR_OUT_OF_MEMORY;
                return code;
            };
            result = parts.run(device, context, request.stream, call);
            if (!refused || !device->give_room(kLaunchRoomBytes << tries)) break;
            free_before = impl_->driver_free();
        }
        if (free_before != 0) {
            const std::uint64_t free_after = impl_->driver_free();
            const bool took = result == CUDA_SUCCESS && free_before > free_after;
            device->keep_room(took ? free_before - free_after : 0);
        }
        return result;
    });
}

CUresult Engine::copy(const CopyRequest& request, RealCall real) noexcept {
    return copies(&request, 1, real);
}

CUresult Engine::copies(const CopyRequest* requests, std::size_t count, RealCall real) noexcept {
    return guarded([&] {
        CUcontext context = nullptr;
        Device* const home = impl_->current(&context, false);
        if (count == 0 || !context || (home && is_captured(home, requests[0].stream)))
            return real();
        OperationParts parts;
        std::uint64_t signature = 0;
        bool sync = false;
        const auto name = [&](CopySide side, const Rows& rows, bool write) {
            Device* device = may_be_ours(side) ? impl_->owner(rows.base) : nullptr;
            if (!device) return false;
            Operation& op = parts.of(*device);
            if (op.blocks.empty()) op.writes = false;
            op.kind = OpKind::Copy;
            op.host_is_fine = true;
            op.writes |= write;
            device->name_range(op, rows.base, rows.span_bytes());
            sync |= device->sync_memops(rows.base);
            return true;
        };
        for (std::size_t i = 0; i < count; ++i) {
            const CopyRequest& copy = requests[i];
            const bool dst_ours = name(copy.dst_side, copy.dst, true);
            const bool src_ours = name(copy.src_side, copy.src, false);
            impl_->follow_copy(copy);
            signature = mix_signature(signature, copy_signature(copy, dst_ours, src_ours));
        }
        if (parts.empty()) return real();
        parts.for_each([&](Device& device, Operation& op) {
            // One call over places of both kinds is a case no manual describes: bring all of it
            // instead.
            if (op.blocks.size() > 1) op.host_is_fine = device.all_on_host(op);
            op.signature = signature;
            Counters::add(device.counters().copies);
        });
        const CUresult result = parts.run(home, context, requests[0].stream, real);
        if (sync && requests[0].async && result == CUDA_SUCCESS)
            return impl_->driver.cuStreamSynchronize(requests[0].stream);
        return result;
    });
}

CUresult Engine::memset(const MemsetRequest& request, RealCall real) noexcept {
    return guarded([&] {
        CUcontext context = nullptr;
        Device* const home = impl_->current(&context, false);
        Device* const device = impl_->owner(request.dst.base);
        if (!device || !context || (home && is_captured(home, request.stream))) return real();
        OperationParts parts;
        Operation& op = parts.of(*device);
        op.kind = OpKind::Memset;
        const std::size_t bytes = request.dst.span_bytes();
        op.host_is_fine = bytes <= kMemsetInPlaceBytes;
        device->name_range(op, request.dst.base, bytes);
        impl_->edges.overwrite(request.dst);
        op.signature = mix_signature(static_cast<std::uint64_t>(OpKind::Memset) << 8, bytes);
        Counters::add(device->counters().memsets);
        const CUresult result = parts.run(home, context, request.stream, real);
        if (request.async && result == CUDA_SUCCESS && device->sync_memops(request.dst.base))
            return impl_->driver.cuStreamSynchronize(request.stream);
        return result;
    });
}

CUresult Engine::use_for_good(const std::uint64_t* addresses, std::size_t count, StayReason reason,
                              RealCall real) noexcept {
    return guarded([&] {
        for (std::size_t i = 0; i < count; ++i) {
            Device* device = impl_->owner(addresses[i]);
            if (!device) continue;
            OperationParts parts;
            Operation& op = parts.of(*device);
            device->name_address(op, addresses[i]);
            device->keep_for_good(op, reason);
        }
        return real();
    });
}

CUresult Engine::stream_write(std::uint64_t address, std::uint64_t value, RealCall real) noexcept {
    return guarded([&] {
        impl_->edges.overwrite(address, sizeof value);
        impl_->note_pointers(address, &value, sizeof value);
        return use_for_good(&address, 1, StayReason::StreamValue, real);
    });
}

CUresult Engine::tensor_map(const CUtensorMap* map, std::uint64_t address, RealCall real) noexcept {
    return guarded([&] {
        const CUresult result = real();
        if (result != CUDA_SUCCESS || !map || impl_->tensor_maps.built(map, address)) return result;
        const auto done = [] { return CUDA_SUCCESS; };
        return use_for_good(&address, 1, StayReason::TensorMap, done);
    });
}

}  // namespace libswap
