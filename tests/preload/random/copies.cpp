// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Steps that copy, fill, ask and misuse.

#include <algorithm>
#include <cstring>

#include "runner.hpp"

namespace random_programs {
namespace {

bool is_on_device(const Buffer& buffer) {
    return buffer.kind != Kind::Pinned && buffer.kind != Kind::Managed;
}

}  // namespace

/// Room in the thread's pinned memory that no copy in flight uses.
char* Runner::pinned_room(Thread& t, std::size_t bytes) {
    if (t.pinned_used + bytes > kPinnedBytes) flush(t);
    char* room = t.pinned + t.pinned_used;
    t.pinned_used += bytes;
    return room;
}

/// Waits for all copies of the thread, and digests what they brought.
void Runner::flush(Thread& t) {
    for (unsigned k = 0; k < kStreamsPerThread; ++k)
        synchronize(t, t.index * kStreamsPerThread + k);
    for (const Pending& pending : t.pending) t.digest.add(pending.host, pending.bytes);
    t.pending.clear();
    t.pinned_used = 0;
}

void Runner::copy_in(Thread& t, const Step& s) {
    const unsigned slot = s.slot(1);
    if (!is_data(t, slot)) return;
    // A graph reads the memory at each launch: it is kept.
    constexpr std::size_t kMostInGraph = 64 << 10;
    const std::size_t most = t.capture ? kMostInGraph : kPinnedBytes;
    const std::size_t bytes = 1 + s.at(3) % most;
    const Region region = part(slot, s.at(2), bytes, true);
    const unsigned how = s.at(5) % 3;
    char* host = t.pageable.data();
    if (t.capture) {
        kept_[t.index].push_back(std::make_unique<std::vector<char>>(region.bytes));
        host = kept_[t.index].back()->data();
    } else if (how != 0) {
        host = pinned_room(t, region.bytes);
    }
    std::memset(host, static_cast<int>(s.at(4) & 255), region.bytes);
    host[region.bytes / 2] = static_cast<char>(s.at(4) >> 8);
    const bool on_device = is_on_device(buffers_[slot]);
    const auto stream = order(t, s, {region});
    expect(t, cudaMemcpyAsync(buffers_[slot].at + region.first, host, region.bytes,
                              on_device ? cudaMemcpyHostToDevice : cudaMemcpyDefault, *stream));
    if ((how == 2 || !on_device) && !t.capture) expect(t, cudaStreamSynchronize(*stream));
}

void Runner::copy_out(Thread& t, const Step& s) {
    const unsigned slot = s.slot(1);
    if (t.capture || !is_data(t, slot)) return;
    const Region region = part(slot, s.at(2), 1 + s.at(3) % kPinnedBytes, false);
    const char* device = buffers_[slot].at + region.first;
    const auto kind = is_on_device(buffers_[slot]) ? cudaMemcpyDeviceToHost : cudaMemcpyDefault;
    switch (s.at(4) % 3) {
        case 0: {
            const auto stream = order(t, s, {region});
            expect(t, cudaMemcpyAsync(t.pageable.data(), device, region.bytes, kind, *stream));
            expect(t, cudaStreamSynchronize(*stream));
            t.digest.add(t.pageable.data(), region.bytes);
            break;
        }
        case 1: {
            char* host = pinned_room(t, region.bytes);
            const auto stream = order(t, s, {region});
            expect(t, cudaMemcpyAsync(host, device, region.bytes, cudaMemcpyDefault, *stream));
            t.pending.push_back({host, region.bytes});
            break;
        }
        default:
            // The call without a stream waits for none of ours that does not block.
            settle(t, touched_by(buffers_[slot]));
            expect(t, cudaMemcpy(t.pageable.data(), device, region.bytes, kind));
            t.digest.add(t.pageable.data(), region.bytes);
    }
}

cudaError_t Runner::copy_shaped(unsigned how, char* to, const char* from, std::size_t bytes,
                                unsigned to_device, unsigned from_device, cudaStream_t stream) {
    constexpr std::size_t kPitch = 192;
    constexpr std::size_t kWidth = 100;
    const std::size_t rows = bytes / kPitch;
    switch (how) {
        case 1:
            if (rows == 0) break;
            return cudaMemcpy2DAsync(to, kPitch, from, kPitch, kWidth, rows, cudaMemcpyDefault,
                                     stream);
        case 2: {
            if (rows < 2) break;
            cudaMemcpy3DParms shape{};
            shape.srcPtr = make_cudaPitchedPtr(const_cast<char*>(from), kPitch, kPitch, rows / 2);
            shape.dstPtr = make_cudaPitchedPtr(to, kPitch, kPitch, rows / 2);
            shape.extent = make_cudaExtent(kWidth, rows / 2, 2);
            shape.kind = cudaMemcpyDefault;
            return cudaMemcpy3DAsync(&shape, stream);
        }
        case 3:
            if (setting_.devices < 2) break;
            return cudaMemcpyPeerAsync(to, static_cast<int>(to_device), from,
                                       static_cast<int>(from_device), bytes, stream);
        default:
            break;
    }
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}

void Runner::copy_across(Thread& t, const Step& s) {
    const unsigned to = s.slot(1);
    const unsigned from = s.slot(3);
    if (!is_data(t, to) || !is_data(t, from)) return;
    Region target = part(to, s.at(2), std::max<std::size_t>(s.at(5), 1), true);
    Region source = part(from, s.at(4), target.bytes, false);
    target.bytes = source.bytes;
    if (target.overlaps(source)) return;
    unsigned how = s.at(6) % 4;
    // Peer copies are between memory of devices.
    if (!is_on_device(buffers_[to]) || !is_on_device(buffers_[from])) how %= 3;
    const auto stream = order(t, s, {target, source});
    expect(t, copy_shaped(how, buffers_[to].at + target.first, buffers_[from].at + source.first,
                          target.bytes, buffers_[to].device, buffers_[from].device, *stream));
}

/// Every second piece of a part to every second piece of another, in one call.
void Runner::copy_batch(Thread& t, const Step& s) {
    const unsigned to = s.slot(1);
    const unsigned from = s.slot(3);
    if (t.capture || to == from || !is_data(t, to) || !is_data(t, from)) return;
    const std::size_t bytes = std::max<std::size_t>(s.at(5), 1) * 1024;
    const std::size_t wanted = 1 + s.at(6) % 8;
    const Region target = part(to, s.at(2) * 1024, 2 * bytes * wanted, true);
    const Region source = part(from, s.at(4) * 1024, target.bytes, false);
    const std::size_t count = std::min(target.bytes, source.bytes) / (2 * bytes);
    if (count == 0 || setting_.first_stream == 2) return;
    std::vector<void*> targets;
    std::vector<const void*> sources;
    const std::vector<std::size_t> sizes(count, bytes);
    for (std::size_t i = 0; i < count; ++i) {
        targets.push_back(buffers_[to].at + target.first + 2 * i * bytes);
        sources.push_back(buffers_[from].at + source.first + 2 * i * bytes);
    }
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    std::size_t index = 0;
    const auto stream = order(t, s, {target, source});
    expect(t, cudaMemcpyBatchAsync(targets.data(), sources.data(), sizes.data(), count, &attributes,
                                   &index, 1, *stream));
}

void Runner::set(Thread& t, const Step& s) {
    const unsigned slot = s.slot(1);
    if (!is_data(t, slot)) return;
    const Region region = part(slot, s.at(2), std::max<std::size_t>(s.at(3), 1), true);
    char* at = buffers_[slot].at + region.first;
    const int value = static_cast<int>(s.at(4) & 255);
    const auto stream = order(t, s, {region});
    constexpr std::size_t kPitch = 160;
    if (s.at(5) % 2 && region.bytes >= kPitch)
        expect(t, cudaMemset2DAsync(at, kPitch, value, 96, region.bytes / kPitch, *stream));
    else
        expect(t, cudaMemsetAsync(at, value, region.bytes, *stream));
}

/// What is the same with and without libswap, as far as it is not about how memory is rounded.
void Runner::ask(Thread& t, const Step& s) {
    if (t.capture || setting_.threads > 1) return;
    const Buffer& buffer = buffers_[s.slot(1)];
    if (buffer.exists()) {
        cudaPointerAttributes attributes{};
        expect(t, cudaPointerGetAttributes(&attributes, buffer.at + buffer.bytes / 2));
        t.digest.word(static_cast<std::uint64_t>(attributes.type));
        t.digest.word(attributes.devicePointer == buffer.at + buffer.bytes / 2);
        if (attributes.type == cudaMemoryTypeDevice)
            t.digest.word(static_cast<std::uint64_t>(attributes.device));
    }
    use_device(t, 0);
    std::size_t free_bytes = 0, total_bytes = 0, live = 0;
    expect(t, cudaMemGetInfo(&free_bytes, &total_bytes));
    for (const Buffer& each : buffers_)
        if (each.exists() && each.device == 0 && is_on_device(each) && each.kind != Kind::Module)
            live += each.bytes;
    t.digest.word(free_bytes + live <= total_bytes);
    if (!pool_) return;
    std::uint64_t used = 0, reserved = 0, threshold = 0;
    expect(t, cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used));
    expect(t, cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved));
    expect(t, cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &threshold));
    t.digest.word(used);
    t.digest.word(threshold);
    t.digest.word(reserved >= used);
}

/// Calls that must fail, and fail the same. While a stream is captured: an allocation, which is
/// forbidden in some modes, where it ends the capture, and allowed in the others.
void Runner::misuse(Thread& t, const Step& s) {
    void* p = nullptr;
    const unsigned slot = s.slot(1);
    if (t.capture) {
        if (setting_.threads > 1) return;
        expect(t, cudaMalloc(&p, std::size_t{2} << 20));
        if (p) t.allowed_in_capture.push_back(p);
        return;
    }
    const cudaStream_t stream = streams_[stream_of(t, s)];
    switch (s.at(2) % 8) {
        case 0:
            return expect(t, cudaFree(reinterpret_cast<void*>(0x1234)));
        case 1:
            if (!is_data(t, slot)) return;
            return expect(t, cudaMemcpy(buffers_[slot].at, nullptr, 16, cudaMemcpyHostToDevice));
        case 2:
            return expect(t, cudaMallocHost(&p, 0));
        case 3:
            return expect(t, cudaFree(nullptr));
        case 4:
            return expect(t, cudaMalloc(&p, std::size_t{1} << 50));
        case 5:
            return expect(t, cudaMallocAsync(&p, std::size_t{1} << 50, stream));
        case 6:
            if (!is_data(t, slot) || buffers_[slot].kind == Kind::Pinned) return;
            return expect(t, cudaFree(buffers_[slot].at + 512));
        default:
            return expect(t, cudaFreeAsync(reinterpret_cast<void*>(0x1234), stream));
    }
}

}  // namespace random_programs
