// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Steps on memory: where it comes from, kernels, tables of pointers.

#include <algorithm>
#include <chrono>
#include <thread>

#include "runner.hpp"

namespace random_programs {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMostKib = 32 * kKiB;

bool overlap(const Regions& regions) {
    for (std::size_t i = 1; i < regions.size(); ++i)
        if (regions[0].overlaps(regions[i])) return true;
    return false;
}

}  // namespace

void Runner::step(Thread& t, const Step& s) {
    switch (s.op) {
        case Op::alloc:
            return allocate(t, s, false);
        case Op::table:
            return allocate(t, s, true);
        case Op::free:
            return free_one(t, s);
        case Op::mix:
            return mix(t, s);
        case Op::in:
            return copy_in(t, s);
        case Op::out:
            return copy_out(t, s);
        case Op::copy:
            return copy_across(t, s);
        case Op::batch:
            return copy_batch(t, s);
        case Op::set:
            return set(t, s);
        case Op::entry:
            return set_entry(t, s);
        case Op::tmix:
            return mix_table(t, s);
        case Op::tcopy:
            return copy_table(t, s);
        case Op::scratch:
            return scratch(t, s);
        case Op::launch:
            return launch_graph(t, s);
        case Op::drop:
            return drop_graph(t, s);
        case Op::host:
            if (const auto stream = order(t, s, {}))
                expect(t, cudaLaunchHostFunc(
                              *stream, [](void* p) { ++*static_cast<std::atomic<unsigned>*>(p); },
                              &host_calls_));
            return;
        case Op::wait:
            return wait(t, s);
        case Op::pause:
            std::this_thread::sleep_for(std::chrono::microseconds(s.at(2) % 3000));
            return;
        case Op::ask:
            return ask(t, s);
        case Op::trim:
            if (pool_ && !t.capture)
                expect(t, cudaMemPoolTrimTo(pool_, std::size_t{s.at(2) % 64} << 20));
            return;
        case Op::misuse:
            return misuse(t, s);
        case Op::restream:
            return remake_stream(t, s);
        default:
            return;
    }
}

Region Runner::part(unsigned slot, std::size_t first, std::size_t bytes, bool writes) const {
    const std::size_t all = buffers_[slot].bytes;
    first %= all;
    return {slot, first, std::min(bytes, all - first), writes};
}

void Runner::allocate(Thread& t, const Step& s, bool table) {
    Buffer& buffer = buffers_[s.slot(1)];
    if (t.capture || buffer.exists()) return;
    const std::size_t kib = std::clamp<std::size_t>(s.at(3), 1, kMostKib);
    const unsigned generation = buffer.generation + 1;
    buffer = {};
    buffer.generation = generation;
    buffer.bytes = kib * kKiB;
    constexpr auto kKinds = static_cast<unsigned>(Kind::kCount);
    constexpr auto kTableKinds = static_cast<unsigned>(Kind::OwnPool) + 1;
    buffer.kind = static_cast<Kind>(s.at(2) % (table ? kTableKinds : kKinds));
    buffer.is_table = table;
    const int stream = stream_of(t, s);
    expect(t, take(t, stream, buffer));
    if (!buffer.at) return;
    // All of it is written: what is never written may hold anything.
    const Regions all = {{s.slot(1), 0, buffer.bytes, true}};
    if (const auto ordered = order(t, s, all))
        expect(t, cudaMemsetAsync(buffer.at, table ? 0 : static_cast<int>(s.at(4) & 255),
                                  buffer.bytes, *ordered));
}

cudaError_t Runner::take(Thread& t, int id, Buffer& buffer) {
    auto** out = reinterpret_cast<void**>(&buffer.at);
    buffer.device = device_of(static_cast<unsigned>(id));
    use_device(t, buffer.device);
    if (buffer.kind == Kind::OwnPool && (!pool_ || buffer.device != 0)) buffer.kind = Kind::Pooled;
    switch (buffer.kind) {
        case Kind::Pooled:
            return cudaMallocAsync(out, buffer.bytes, streams_[id]);
        case Kind::OwnPool:
            return cudaMallocFromPoolAsync(out, buffer.bytes, pool_, streams_[id]);
        case Kind::Cached:
            return cache_[buffer.device].take(&buffer.at, buffer.bytes, id);
        case Kind::Managed:
            return cudaMallocManaged(out, buffer.bytes, cudaMemAttachGlobal);
        case Kind::Pinned:
            return cudaHostAlloc(out, buffer.bytes, cudaHostAllocPortable | cudaHostAllocMapped);
        case Kind::Pitched: {
            std::size_t pitch = 0;
            const cudaError_t result = cudaMallocPitch(out, &pitch, 1000, buffer.bytes / kKiB);
            return result;
        }
        default:
            return cudaMalloc(out, buffer.bytes);
    }
}

void Runner::free_one(Thread& t, const Step& s) {
    const unsigned slot = s.slot(1);
    Buffer& buffer = buffers_[slot];
    if (t.capture || !is_here(t, slot) || !buffer.exists() || buffer.kind == Kind::Module) return;
    const bool pooled = buffer.kind == Kind::Pooled || buffer.kind == Kind::OwnPool;
    const bool cached = buffer.kind == Kind::Cached;
    // What is cached of one device is for no stream of the other.
    const bool elsewhere = device_of(static_cast<unsigned>(stream_of(t, s))) != buffer.device;
    const bool ordered = pooled || (cached && !elsewhere);
    if (!ordered || s.at(2) % 8 == 0) return give_back(t, buffer);
    // In stream order, with work that uses it still in flight.
    if (const auto stream = order(t, s, {{slot, 0, buffer.bytes, true}})) {
        if (buffer.kind == Kind::Cached)
            cache_[buffer.device].give_back(buffer.at, buffer.bytes, stream_of(t, s));
        else
            expect(t, cudaFreeAsync(buffer.at, *stream));
    }
    buffer.at = nullptr;
    buffer.is_table = false;
}

/// Plain frees wait for the work of their device themselves.
void Runner::give_back(Thread& t, Buffer& buffer) {
    std::uint32_t streams = touched_by(buffer);
    if (buffer.kind == Kind::Plain || buffer.kind == Kind::Pitched)
        for (unsigned id = 0; id < kStreams; ++id)
            if (device_of(id) == buffer.device) streams &= ~bit(static_cast<int>(id));
    settle(t, streams);
    if (buffer.kind == Kind::Cached) {
        const unsigned last = t.index * kStreamsPerThread + kStreamsPerThread - 1;
        const unsigned stream =
            device_of(last) == buffer.device ? last : t.index * kStreamsPerThread;
        cache_[buffer.device].give_back(buffer.at, buffer.bytes, static_cast<int>(stream));
    } else {
        expect(t, buffer.kind == Kind::Pinned ? cudaFreeHost(buffer.at) : cudaFree(buffer.at));
    }
    buffer.at = nullptr;
    buffer.is_table = false;
}

void Runner::mix(Thread& t, const Step& s) {
    const unsigned slots[] = {s.slot(1), s.slot(3), s.slot(5)};
    for (const unsigned slot : slots)
        if (!is_data(t, slot)) return;
    Regions regions;
    std::size_t bytes = std::max<std::size_t>(s.at(7), 1) * kKiB;
    for (std::size_t i = 0; i < 3; ++i) {
        regions.push_back(part(slots[i], s.at(2 + 2 * i) * kKiB, bytes, i == 0));
        bytes = std::min(bytes, regions.back().bytes);
    }
    for (Region& region : regions) region.bytes = bytes;
    // dst among the sources would be a race where they are shifted against each other.
    if (bytes < kKiB || overlap(regions)) return;
    const auto stream = order(t, s, regions);
    if (!stream) return;
    const std::size_t words = s.at(8) % 256;
    Part parts[3];
    for (std::size_t i = 0; i < 3; ++i)
        parts[i] = {buffers_[slots[i]].at, regions[i].first + words * 4};
    expect(t, launch_mix(static_cast<Passing>(s.at(10) % static_cast<unsigned>(Passing::kCount)),
                         parts[0], parts[1], parts[2], static_cast<unsigned>(bytes / kKiB), s.at(9),
                         *stream));
}

/// Memory that lives for two operations, in a graph or outside of it.
void Runner::scratch(Thread& t, const Step& s) {
    const unsigned slot = s.slot(1);
    if (!is_data(t, slot)) return;
    const Region region =
        part(slot, s.at(2) * kKiB, std::max<std::size_t>(s.at(3), 1) * kKiB, true);
    if (region.bytes < kKiB) return;
    const auto stream = order(t, s, {region});
    void* memory = nullptr;
    expect(t, cudaMallocAsync(&memory, region.bytes, *stream));
    if (!memory) return;
    expect(t, cudaMemsetAsync(memory, static_cast<int>(s.at(4) & 255), region.bytes, *stream));
    const Part dst{buffers_[slot].at, region.first};
    const Part source{static_cast<char*>(memory), 0};
    expect(t, launch_mix(Passing::Direct, dst, source, source,
                         static_cast<unsigned>(region.bytes / kKiB), s.at(4), *stream));
    expect(t, cudaFreeAsync(memory, *stream));
}

void Runner::set_entry(Thread& t, const Step& s) {
    const unsigned slot = s.slot(1);
    const unsigned target = s.slot(3);
    if (t.capture || !is_table(t, slot) || !is_data(t, target)) return;
    const unsigned index = s.at(2) % kTableEntries;
    const std::size_t offset = s.at(4) * kKiB % buffers_[target].bytes;
    const auto stream = order(t, s, {{slot, 0, kTableEntries * sizeof(void*), true}});
    const char* pointer = buffers_[target].at + offset;
    expect(t, cudaMemcpyAsync(buffers_[slot].at + index * sizeof(void*), &pointer, sizeof pointer,
                              cudaMemcpyHostToDevice, *stream));
    buffers_[slot].entries[index] = {target, buffers_[target].generation, offset};
}

std::optional<Regions> Runner::behind_table(unsigned slot, std::size_t bytes) const {
    const Buffer& table = buffers_[slot];
    if (!table.exists() || !table.is_table) return std::nullopt;
    Regions regions;
    for (const Target& target : table.entries) {
        const Buffer& buffer = buffers_[target.slot];
        if (!buffer.is_data() || buffer.generation != target.generation ||
            target.offset_bytes + bytes > buffer.bytes)
            return std::nullopt;
        regions.push_back({target.slot, target.offset_bytes, bytes, regions.empty()});
    }
    if (overlap(regions)) return std::nullopt;
    regions.push_back({slot, 0, kTableEntries * sizeof(void*), false});
    return regions;
}

void Runner::mix_table(Thread& t, const Step& s) {
    const unsigned slot = s.slot(1);
    const std::size_t kib = std::max<std::size_t>(s.at(2), 1);
    const auto regions = behind_table(slot, kib * kKiB);
    if (!is_table(t, slot) || !regions) return;
    const bool module = buffers_[slot].kind == Kind::Module;
    // The module of the other device has tables of its own.
    if (module && device_of(static_cast<unsigned>(stream_of(t, s))) != 0) return;
    // Of a graph, what the table points to when it is launched.
    if (t.capture) t.capture->tables.emplace_back(slot, kib * kKiB);
    const auto stream = order(t, s, t.capture ? Regions{} : *regions);
    const auto count = static_cast<unsigned>(kib);
    expect(t, module ? launch_module_table_mix(slot - kSlots, count, s.at(3), *stream)
                     : launch_table_mix(reinterpret_cast<unsigned**>(buffers_[slot].at), count,
                                        s.at(3), *stream));
}

/// In one piece, or as rows of two entries each, which lie packed.
cudaError_t Runner::copy_entries(unsigned how, const Buffer& to, const Buffer& from,
                                 cudaStream_t stream) {
    constexpr std::size_t kRow = 2 * sizeof(void*);
    constexpr std::size_t kRows = kTableEntries / 2;
    switch (how) {
        case 1:
            return cudaMemcpy2DAsync(to.at, kRow, from.at, kRow, kRow, kRows, cudaMemcpyDefault,
                                     stream);
        case 2: {
            cudaMemcpy3DParms shape{};
            shape.srcPtr = make_cudaPitchedPtr(from.at, kRow, kRow, 1);
            shape.dstPtr = make_cudaPitchedPtr(to.at, kRow, kRow, 1);
            shape.extent = make_cudaExtent(kRow, 1, kRows);
            shape.kind = cudaMemcpyDefault;
            return cudaMemcpy3DAsync(&shape, stream);
        }
        case 3:
            if (setting_.devices < 2) break;
            return cudaMemcpyPeerAsync(to.at, static_cast<int>(to.device), from.at,
                                       static_cast<int>(from.device), kRows * kRow, stream);
        default:
            break;
    }
    return cudaMemcpyAsync(to.at, from.at, kRows * kRow, cudaMemcpyDeviceToDevice, stream);
}

/// By a copy, which can be followed. What a kernel copies cannot: docs/DESIGN.md has that hole.
void Runner::copy_table(Thread& t, const Step& s) {
    const unsigned to = s.slot(1);
    const unsigned from = s.slot(2);
    if (t.capture || to == from || !is_table(t, to) || !is_table(t, from)) return;
    constexpr std::size_t kBytes = kTableEntries * sizeof(void*);
    const auto stream = order(t, s, {{to, 0, kBytes, true}, {from, 0, kBytes, false}});
    expect(t, copy_entries(s.at(3) % 4, buffers_[to], buffers_[from], *stream));
    buffers_[to].entries = buffers_[from].entries;
}

}  // namespace random_programs
