// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/graph/graph_memory.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "simgpu/driver/allocations.hpp"
#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/capture.hpp"
#include "simgpu/driver/pools.hpp"

namespace simgpu::driver {

namespace {

/// The figures of cuDeviceGetGraphMemAttribute for one device.
struct Account {
    std::uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;

    void use(std::uint64_t bytes) { used_high = std::max(used_high, used += bytes); }
    void reserve(std::uint64_t bytes) {
        reserved_high = std::max(reserved_high, reserved += bytes);
    }
};

/// All memory of graphs. Its own lock, below graphs_lock(): memory may be freed by calls that know
/// nothing of graphs.
struct Ledger {
    std::recursive_mutex mutex;
    std::map<std::uint64_t, std::weak_ptr<GraphMemory>> by_va;
    std::array<Account, kMaxDevices> accounts;

    Account& of(const GraphMemory& memory) {
        return accounts[static_cast<std::size_t>(memory.gpu().ordinal)];
    }
};

Ledger& ledger() {
    static auto* instance = new Ledger;  // leaked: calls may come after static destructors
    return *instance;
}

std::vector<std::shared_ptr<GraphMemory>> all_memory() {
    std::vector<std::shared_ptr<GraphMemory>> found;
    for (const auto& [va, weak] : ledger().by_va) {
        if (auto memory = weak.lock()) found.push_back(std::move(memory));
    }
    return found;
}

}  // namespace

GraphMemory::GraphMemory(Context& context, Gpu& gpu, std::uint64_t bytes,
                         std::vector<CUmemAccessDesc> access, std::unique_ptr<DeviceBlock> block)
    : context_(context),
      gpu_(gpu),
      bytes_(bytes),
      access_(std::move(access)),
      block_(std::move(block)) {}

CUresult GraphMemory::create(Context& context, Gpu& gpu, std::uint64_t bytes,
                             std::vector<CUmemAccessDesc> access,
                             std::shared_ptr<GraphMemory>& out) {
    auto block = DeviceBlock::reserve(gpu.ordinal, bytes);
    if (!block) return block.error();
    out.reset(new GraphMemory(context, gpu, bytes, std::move(access), std::move(*block)));
    std::lock_guard lock(ledger().mutex);
    ledger().by_va[out->va()] = out;
    return CUDA_SUCCESS;
}

GraphMemory::~GraphMemory() {
    std::lock_guard lock(ledger().mutex);
    ledger().by_va.erase(va());
    if (block_->filled()) ledger().of(*this).reserved -= block_->bytes();
    // Its last launch may still run.
    if (block_->filled() && context_.alive) static_cast<void>(context_.device().synchronize());
}

bool GraphMemory::allocated() const {
    std::lock_guard lock(ledger().mutex);
    return allocated_;
}

CUresult GraphMemory::allocate() {
    std::lock_guard lock(ledger().mutex);
    if (allocated_) return CUDA_ERROR_INVALID_VALUE;
    if (!block_->filled()) {
        std::vector<AccessGrant> grants;
        for (const CUmemAccessDesc& given : access_) {
            grants.push_back({{Location::Kind::Device, given.location.id},
                              given.flags != CU_MEM_ACCESS_FLAGS_PROT_NONE,
                              given.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
        }
        CUresult status = block_->fill(grants);
        if (status == CUDA_ERROR_OUT_OF_MEMORY && make_room(gpu_)) status = block_->fill(grants);
        SIMGPU_TRY(status);
        ledger().of(*this).reserve(block_->bytes());
    }
    allocated_ = true;
    ledger().of(*this).use(block_->bytes());
    allocations().add(
        {va(), bytes_, Allocation::Kind::Graph, &context_, nullptr, false, shared_from_this()});
    return CUDA_SUCCESS;
}

CUresult GraphMemory::free() {
    std::shared_ptr<GraphMemory> self;  // goes after the lock
    std::lock_guard lock(ledger().mutex);
    if (!allocated_) return CUDA_ERROR_INVALID_VALUE;
    self = shared_from_this();
    allocated_ = false;
    ledger().of(*this).used -= block_->bytes();
    allocations().take(va());
    return CUDA_SUCCESS;
}

bool GraphMemory::trim() {
    std::lock_guard lock(ledger().mutex);
    if (allocated_ || !block_->filled()) return false;
    // A launch that uses it may be under way.
    static_cast<void>(context_.device().synchronize());
    block_->empty();
    ledger().of(*this).reserved -= block_->bytes();
    return true;
}

std::shared_ptr<GraphMemory> find_graph_memory(CUdeviceptr va) {
    std::lock_guard lock(ledger().mutex);
    const auto found = ledger().by_va.find(va);
    return found != ledger().by_va.end() ? found->second.lock() : nullptr;
}

CUresult note_free(Graph& graph, CUdeviceptr va) {
    const auto memory = find_graph_memory(va);
    if (memory == nullptr || memory->freed_in_graph) return CUDA_ERROR_INVALID_VALUE;
    bool own = false;
    bool again = false;
    graph.any([&](const GraphNode& node) {
        const auto* alloc = std::get_if<AllocTask>(&node.task);
        const auto* free = std::get_if<FreeTask>(&node.task);
        own |= alloc != nullptr && alloc->memory == memory;
        again |= free != nullptr && free->va == va;
        return again;
    });
    if (again) return CUDA_ERROR_INVALID_VALUE;
    memory->freed_in_graph = own;
    return CUDA_SUCCESS;
}

CUresult check_free_in_capture(const StreamRef& stream, CUdeviceptr va) {
    std::lock_guard lock(graphs_lock());
    const auto& graph = stream.capture->sequence->graph;
    return graph != nullptr ? note_free(*graph, va) : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

CUresult launch_memory(const Graph& graph, bool auto_free) {
    std::lock_guard lock(ledger().mutex);
    std::vector<std::shared_ptr<GraphMemory>> wanted, freed;
    graph.any([&](const GraphNode& node) {
        if (const auto* alloc = std::get_if<AllocTask>(&node.task)) wanted.push_back(alloc->memory);
        if (const auto* free = std::get_if<FreeTask>(&node.task)) {
            if (auto memory = find_graph_memory(free->va)) freed.push_back(std::move(memory));
        }
        return false;
    });
    const auto is_wanted = [&](const std::shared_ptr<GraphMemory>& memory) {
        return std::find(wanted.begin(), wanted.end(), memory) != wanted.end();
    };
    for (const auto& memory : wanted) {
        if (memory->allocated() && !auto_free) return CUDA_ERROR_INVALID_VALUE;
    }
    for (const auto& memory : freed) {
        if (!is_wanted(memory) && !memory->allocated()) return CUDA_ERROR_INVALID_VALUE;
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (wanted[i]->allocated()) static_cast<void>(wanted[i]->free());
        const CUresult status = wanted[i]->allocate();
        if (status == CUDA_SUCCESS) continue;
        for (std::size_t done = 0; done < i; ++done) static_cast<void>(wanted[done]->free());
        return status;
    }
    for (const auto& memory : freed) static_cast<void>(memory->free());
    return CUDA_SUCCESS;
}

bool trim_graph_memory(Gpu& gpu) {
    std::lock_guard lock(ledger().mutex);
    bool any = false;
    for (const auto& memory : all_memory()) {
        if (&memory->gpu() == &gpu) any |= memory->trim();
    }
    return any;
}

namespace {

CUresult account(CUdevice device, CUgraphMem_attribute attribute, std::uint64_t*& out,
                 std::uint64_t& current) {
    Gpu* gpu = nullptr;
    SIMGPU_TRY(find_gpu(device, gpu));
    Account& figures = ledger().accounts[static_cast<std::size_t>(device)];
    switch (attribute) {
        case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
            out = &figures.used;
            break;
        case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
            out = &figures.used_high;
            current = figures.used;
            break;
        case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
            out = &figures.reserved;
            break;
        case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
            out = &figures.reserved_high;
            current = figures.reserved;
            break;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult get_attribute(CUdevice device, CUgraphMem_attribute attribute, void* value) {
    std::lock_guard lock(ledger().mutex);
    std::uint64_t* figure = nullptr;
    std::uint64_t current = 0;
    SIMGPU_TRY(account(device, attribute, figure, current));
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *static_cast<cuuint64_t*>(value) = *figure;
    return CUDA_SUCCESS;
}

/// High marks may only be set back.
CUresult set_attribute(CUdevice device, CUgraphMem_attribute attribute, const void* value) {
    std::lock_guard lock(ledger().mutex);
    std::uint64_t* figure = nullptr;
    std::uint64_t current = 0;
    SIMGPU_TRY(account(device, attribute, figure, current));
    const bool high = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH ||
                      attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
    if (!high || value == nullptr || *static_cast<const cuuint64_t*>(value) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *figure = current;
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu::driver

SIMGPU_CALL(cuDeviceGraphMemTrim, (CUdevice device), {
    driver::Gpu* gpu = nullptr;
    SIMGPU_TRY(driver::find_gpu(device, gpu));
    driver::trim_graph_memory(*gpu);
    return CUDA_SUCCESS;
})
SIMGPU_CALL(cuDeviceGetGraphMemAttribute,
            (CUdevice device, CUgraphMem_attribute attribute, void* value),
            { return driver::get_attribute(device, attribute, value); })
SIMGPU_CALL(cuDeviceSetGraphMemAttribute,
            (CUdevice device, CUgraphMem_attribute attribute, void* value),
            { return driver::set_attribute(device, attribute, value); })
