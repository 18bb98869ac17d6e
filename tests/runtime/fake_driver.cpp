// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "tests/runtime/fake_driver.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "runtime/ranked_mutex.hpp"
#include "simgpu/host_kernels/digest.hpp"

namespace libswap::testing {
namespace {

FakeDriver* g_fake = nullptr;
thread_local CUcontext t_context = FakeDriver::context();

void* as_pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

#define ENTER(name)                        \
    std::unique_lock lock(g_fake->mutex_); \
    if (CUresult code = g_fake->enter(#name); code != CUDA_SUCCESS) return code

struct FakeCalls {
    using Self = FakeDriver;

    static CUresult get_attribute(int* value, CUdevice_attribute which, CUdevice) {
        ENTER(cuDeviceGetAttribute);
        const auto found = g_fake->attributes.find(which);
        *value = found == g_fake->attributes.end() ? 0 : found->second;
        if (which == CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)
            *value = g_fake->host_numa;
        return CUDA_SUCCESS;
    }
    static CUresult get_version(int* version) {
        *version = g_fake->driver_version;
        return CUDA_SUCCESS;
    }
    static CUresult mem_info(std::size_t* free_bytes, std::size_t* total) {
        ENTER(cuMemGetInfo);
        *total = g_fake->device_bytes;
        *free_bytes = g_fake->device_bytes - g_fake->device_used();
        return CUDA_SUCCESS;
    }
    static CUresult granularity(std::size_t* bytes, const CUmemAllocationProp*,
                                CUmemAllocationGranularity_flags) {
        ENTER(cuMemGetAllocationGranularity);
        *bytes = std::size_t{2} << 20;
        return CUDA_SUCCESS;
    }
    static CUresult get_context(CUcontext* context) {
        *context = t_context;
        return CUDA_SUCCESS;
    }
    static CUresult set_context(CUcontext context) {
        ENTER(cuCtxSetCurrent);
        t_context = context;
        return CUDA_SUCCESS;
    }
    static CUresult get_device(CUdevice* device) {
        *device = 0;
        return CUDA_SUCCESS;
    }
    static CUresult exchange_mode(CUstreamCaptureMode*) { return CUDA_SUCCESS; }
    static CUresult is_capturing(CUstream, CUstreamCaptureStatus* status) {
        *status = CU_STREAM_CAPTURE_STATUS_NONE;
        return CUDA_SUCCESS;
    }

    static CUresult reserve(CUdeviceptr* out, std::size_t bytes, std::size_t, CUdeviceptr hint,
                            unsigned long long) {
        ENTER(cuMemAddressReserve);
        std::uint64_t reserved = 0;
        for (const auto& [base, length] : g_fake->reservations_) reserved += length;
        if (bytes > g_fake->address_bytes - std::min(reserved, g_fake->address_bytes))
            return CUDA_ERROR_OUT_OF_MEMORY;
        // Aligned to the page of a device.
        const std::uint64_t page = std::uint64_t{2} << 20;
        void* memory = mmap(as_pointer(hint), bytes + page, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
        *out = (reinterpret_cast<std::uint64_t>(memory) + page - 1) / page * page;
        g_fake->reservations_[*out] = bytes;
        return CUDA_SUCCESS;
    }
    static CUresult unreserve(CUdeviceptr base, std::size_t bytes) {
        ENTER(cuMemAddressFree);
        g_fake->reservations_.erase(base);
        munmap(as_pointer(base), bytes);
        return CUDA_SUCCESS;
    }
    static CUresult create(CUmemGenericAllocationHandle* out, std::size_t bytes,
                           const CUmemAllocationProp* prop, unsigned long long) {
        ENTER(cuMemCreate);
        const bool on_host = prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
        if (on_host && !g_fake->host_numa) return CUDA_ERROR_NOT_SUPPORTED;
        if (!on_host && g_fake->device_used() + bytes > g_fake->device_bytes)
            return CUDA_ERROR_OUT_OF_MEMORY;
        const int fd = memfd_create("fake", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0)
            return CUDA_ERROR_OUT_OF_MEMORY;
        *out = g_fake->next_handle_++;
        g_fake->handles_[*out] = {fd, bytes, on_host, 0, false};
        return CUDA_SUCCESS;
    }
    static CUresult release(CUmemGenericAllocationHandle handle) {
        ENTER(cuMemRelease);
        auto found = g_fake->handles_.find(handle);
        if (found == g_fake->handles_.end() || found->second.released)
            return CUDA_ERROR_INVALID_VALUE;
        found->second.released = true;
        g_fake->drop(handle);
        return CUDA_SUCCESS;
    }
    static CUresult map(CUdeviceptr base, std::size_t bytes, std::size_t offset,
                        CUmemGenericAllocationHandle handle, unsigned long long) {
        ENTER(cuMemMap);
        auto found = g_fake->handles_.find(handle);
        if (found == g_fake->handles_.end() || offset || found->second.bytes != bytes)
            return CUDA_ERROR_INVALID_VALUE;
        if (g_fake->mappings_.count(base)) return CUDA_ERROR_ALREADY_MAPPED;
        g_fake->mappings_[base] = {bytes, handle, false};
        ++found->second.mappings;
        return CUDA_SUCCESS;
    }
    static CUresult unmap(CUdeviceptr base, std::size_t bytes) {
        ENTER(cuMemUnmap);
        // Whole mappings, one or several in a row.
        for (std::uint64_t at = base; at < base + bytes;) {
            auto found = g_fake->mappings_.find(at);
            if (found == g_fake->mappings_.end() || at + found->second.bytes > base + bytes)
                return CUDA_ERROR_INVALID_VALUE;
            at += found->second.bytes;
        }
        mmap(as_pointer(base), bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        for (std::uint64_t at = base; at < base + bytes;) {
            const auto found = g_fake->mappings_.find(at);
            const std::uint64_t handle = found->second.handle;
            at += found->second.bytes;
            g_fake->mappings_.erase(found);
            --g_fake->handles_[handle].mappings;
            g_fake->drop(handle);
        }
        return CUDA_SUCCESS;
    }
    static CUresult set_access(CUdeviceptr base, std::size_t bytes, const CUmemAccessDesc*,
                               std::size_t) {
        ENTER(cuMemSetAccess);
        for (std::uint64_t at = base; at < base + bytes;) {
            auto found = g_fake->mappings_.find(at);
            if (found == g_fake->mappings_.end()) return CUDA_ERROR_INVALID_VALUE;
            at += found->second.bytes;
        }
        for (std::uint64_t at = base; at < base + bytes;) {
            auto& mapping = g_fake->mappings_[at];
            if (!mapping.granted)
                mmap(as_pointer(at), mapping.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                     g_fake->handles_[mapping.handle].fd, 0);
            mapping.granted = true;
            at += mapping.bytes;
        }
        return CUDA_SUCCESS;
    }

    static CUresult plain_alloc(const char*, std::uint64_t* out, std::size_t bytes) {
        void* memory =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *out = reinterpret_cast<std::uint64_t>(memory);
        g_fake->plain_[*out] = bytes;
        return CUDA_SUCCESS;
    }
    static CUresult alloc(CUdeviceptr* out, std::size_t bytes) {
        ENTER(cuMemAlloc);
        std::uint64_t address = 0;
        plain_alloc("", &address, bytes);
        *out = address;
        return CUDA_SUCCESS;
    }
    static CUresult host_alloc(void** out, std::size_t bytes, unsigned) {
        ENTER(cuMemHostAlloc);
        std::uint64_t address = 0;
        plain_alloc("", &address, bytes);
        *out = as_pointer(address);
        return CUDA_SUCCESS;
    }
    static CUresult free_plain(std::uint64_t address) {
        auto found = g_fake->plain_.find(address);
        if (found == g_fake->plain_.end()) return CUDA_ERROR_INVALID_VALUE;
        munmap(as_pointer(address), found->second);
        g_fake->plain_.erase(found);
        return CUDA_SUCCESS;
    }
    static CUresult mem_free(CUdeviceptr address) {
        ENTER(cuMemFree);
        return free_plain(address);
    }
    static CUresult free_host(void* address) {
        ENTER(cuMemFreeHost);
        return free_plain(reinterpret_cast<std::uint64_t>(address));
    }

    static CUresult copy_out(void* dst, CUdeviceptr src, std::size_t bytes, CUstream stream) {
        ENTER(cuMemcpyDtoHAsync);
        return g_fake->submit(stream, [=] { std::memcpy(dst, as_pointer(src), bytes); });
    }
    static CUresult copy_in(CUdeviceptr dst, const void* src, std::size_t bytes, CUstream stream) {
        ENTER(cuMemcpyHtoDAsync);
        return g_fake->submit(stream, [=] { std::memcpy(as_pointer(dst), src, bytes); });
    }
    static CUresult memset_async(CUdeviceptr dst, unsigned char value, std::size_t bytes,
                                 CUstream stream) {
        ENTER(cuMemsetD8Async);
        return g_fake->submit(stream, [=] { std::memset(as_pointer(dst), value, bytes); });
    }
    static CUresult memset_now(CUdeviceptr dst, unsigned char value, std::size_t bytes) {
        ENTER(cuMemsetD8);
        std::memset(as_pointer(dst), value, bytes);
        return CUDA_SUCCESS;
    }

    static CUresult stream_create(CUstream* out, unsigned) {
        ENTER(cuStreamCreate);
        *out = g_fake->make_stream();
        return CUDA_SUCCESS;
    }
    static CUresult stream_destroy(CUstream stream) {
        ENTER(cuStreamDestroy);
        auto found = g_fake->streams_.find(stream);
        while (!found->second->items.empty() && g_fake->run_one(*found->second)) {
        }
        g_fake->streams_.erase(found);
        return CUDA_SUCCESS;
    }
    static CUresult synchronize(const char*) {
        g_fake->pump();
        return CUDA_SUCCESS;
    }
    static CUresult stream_synchronize(CUstream) {
        ENTER(cuStreamSynchronize);
        return synchronize("");
    }
    static CUresult stream_query(CUstream stream) {
        ENTER(cuStreamQuery);
        const auto found = g_fake->streams_.find(stream);
        if (found == g_fake->streams_.end()) return CUDA_ERROR_INVALID_HANDLE;
        return found->second->items.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    }
    static CUresult context_synchronize() {
        ENTER(cuCtxSynchronize);
        return synchronize("");
    }
    static CUresult stream_wait(CUstream stream, CUevent event, unsigned) {
        ENTER(cuStreamWaitEvent);
        auto* waited = reinterpret_cast<Self::Event*>(event);
        if (!g_fake->events_.count(waited)) return CUDA_ERROR_INVALID_HANDLE;
        Self::Item item;
        item.wait = waited;
        item.number = waited->recorded;
        g_fake->streams_[stream]->items.push_back(std::move(item));
        return CUDA_SUCCESS;
    }
    static CUresult event_create(CUevent* out, unsigned) {
        ENTER(cuEventCreate);
        auto* event = new Self::Event;
        g_fake->events_.insert(event);
        *out = reinterpret_cast<CUevent>(event);
        return CUDA_SUCCESS;
    }
    static CUresult event_destroy(CUevent event) {
        ENTER(cuEventDestroy);
        // Kept: an operation in a queue may still name it.
        return g_fake->events_.count(reinterpret_cast<Self::Event*>(event))
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_HANDLE;
    }
    static CUresult event_record(CUevent event, CUstream stream) {
        ENTER(cuEventRecord);
        auto* recorded = reinterpret_cast<Self::Event*>(event);
        if (!g_fake->events_.count(recorded)) return CUDA_ERROR_INVALID_HANDLE;
        if (!g_fake->streams_.count(stream))
            g_fake->streams_[stream] = std::make_unique<Self::Stream>();
        Self::Item item;
        item.record = recorded;
        item.number = recorded->recorded = g_fake->next_record_++;
        g_fake->streams_[stream]->items.push_back(std::move(item));
        return CUDA_SUCCESS;
    }
    static CUresult event_query(CUevent event) {
        ENTER(cuEventQuery);
        auto* queried = reinterpret_cast<Self::Event*>(event);
        if (!g_fake->events_.count(queried)) return CUDA_ERROR_INVALID_HANDLE;
        g_fake->pump(g_fake->operations_per_query);
        return queried->completed >= queried->recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    }
    static CUresult elapsed(float* ms, CUevent, CUevent) {
        ENTER(cuEventElapsedTime);
        *ms = 0.05f;
        return CUDA_SUCCESS;
    }

    static CUresult module_load(CUmodule* out, const void*) {
        ENTER(cuModuleLoadData);
        *out = reinterpret_cast<CUmodule>(0x2000);
        return CUDA_SUCCESS;
    }
    static CUresult module_unload(CUmodule) {
        ENTER(cuModuleUnload);
        return CUDA_SUCCESS;
    }
    static CUresult get_function(CUfunction* out, CUmodule, const char* name) {
        ENTER(cuModuleGetFunction);
        *out = g_fake->function(name);
        return CUDA_SUCCESS;
    }
    static CUresult param_info(CUfunction function, std::size_t index, std::size_t* offset,
                               std::size_t* bytes) {
        ENTER(cuFuncGetParamInfo);
        const auto& name = *reinterpret_cast<std::string*>(function);
        if (index >= static_cast<std::size_t>(g_fake->param_counts[name]))
            return CUDA_ERROR_INVALID_VALUE;
        *offset = index * 8;
        *bytes = 8;
        return CUDA_SUCCESS;
    }
    static CUresult launch(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned,
                           unsigned, unsigned, CUstream stream, void** params, void**) {
        ENTER(cuLaunchKernel);
        const auto& name = *reinterpret_cast<std::string*>(function);
        std::vector<std::uint64_t> values;
        for (int i = 0; i < g_fake->param_counts[name]; ++i) {
            values.emplace_back();
            std::memcpy(&values.back(), params[i], 8);
        }
        auto work = g_fake->kernels[name];
        return g_fake->submit(stream, [=] { work(values); });
    }
    static CUresult attribute_of_pointer(void*, CUpointer_attribute, CUdeviceptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
};

FakeDriver::FakeDriver() {
    g_fake = this;
    t_context = context();
    attributes[CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = 1;
    table_.cuDeviceGetAttribute = FakeCalls::get_attribute;
    table_.cuDriverGetVersion = FakeCalls::get_version;
    table_.cuMemGetInfo_v2 = FakeCalls::mem_info;
    table_.cuMemGetAllocationGranularity = FakeCalls::granularity;
    table_.cuCtxGetCurrent = FakeCalls::get_context;
    table_.cuCtxSetCurrent = FakeCalls::set_context;
    table_.cuCtxGetDevice = FakeCalls::get_device;
    table_.cuCtxSynchronize = FakeCalls::context_synchronize;
    table_.cuThreadExchangeStreamCaptureMode = FakeCalls::exchange_mode;
    table_.cuStreamIsCapturing = FakeCalls::is_capturing;
    table_.cuMemAddressReserve = FakeCalls::reserve;
    table_.cuMemAddressFree = FakeCalls::unreserve;
    table_.cuMemCreate = FakeCalls::create;
    table_.cuMemRelease = FakeCalls::release;
    table_.cuMemMap = FakeCalls::map;
    table_.cuMemUnmap = FakeCalls::unmap;
    table_.cuMemSetAccess = FakeCalls::set_access;
    table_.cuMemAlloc_v2 = FakeCalls::alloc;
    table_.cuMemFree_v2 = FakeCalls::mem_free;
    table_.cuMemHostAlloc = FakeCalls::host_alloc;
    table_.cuMemFreeHost = FakeCalls::free_host;
    table_.cuMemcpyDtoHAsync_v2 = FakeCalls::copy_out;
    table_.cuMemcpyHtoDAsync_v2 = FakeCalls::copy_in;
    table_.cuMemsetD8Async = FakeCalls::memset_async;
    table_.cuMemsetD8_v2 = FakeCalls::memset_now;
    table_.cuStreamCreate = FakeCalls::stream_create;
    table_.cuStreamDestroy_v2 = FakeCalls::stream_destroy;
    table_.cuStreamSynchronize = FakeCalls::stream_synchronize;
    table_.cuStreamQuery = FakeCalls::stream_query;
    table_.cuStreamWaitEvent = FakeCalls::stream_wait;
    table_.cuEventCreate = FakeCalls::event_create;
    table_.cuEventDestroy_v2 = FakeCalls::event_destroy;
    table_.cuEventRecord = FakeCalls::event_record;
    table_.cuEventQuery = FakeCalls::event_query;
    table_.cuEventElapsedTime_v2 = FakeCalls::elapsed;
    table_.cuModuleLoadData = FakeCalls::module_load;
    table_.cuModuleUnload = FakeCalls::module_unload;
    table_.cuModuleGetFunction = FakeCalls::get_function;
    table_.cuFuncGetParamInfo = FakeCalls::param_info;
    table_.cuLaunchKernel = FakeCalls::launch;
    table_.cuPointerGetAttribute = FakeCalls::attribute_of_pointer;
    set_driver(table_);
    streams_[CU_STREAM_LEGACY] = std::make_unique<Stream>();
    param_counts["libswap_digest"] = 7;
    kernels["libswap_digest"] = [](std::vector<std::uint64_t> p) {
        simgpu::digest_words(static_cast<const std::uint64_t*>(as_pointer(p[0])), p[1], p[2], p[4],
                             p[5], static_cast<std::uint64_t*>(as_pointer(p[3])));
        if (p[6] == 0) return;
        std::memcpy(as_pointer(p[6]), as_pointer(p[3]), 24);
        std::memset(as_pointer(p[3]), 0, 32);
    };
}

FakeDriver::~FakeDriver() {
    for (auto& [address, bytes] : reservations_) munmap(as_pointer(address), bytes);
    for (auto& [number, handle] : handles_) close(handle.fd);
    for (auto& [address, bytes] : plain_) munmap(as_pointer(address), bytes);
    for (Event* event : events_) delete event;
    g_fake = nullptr;
}

CUresult FakeDriver::enter(const char* name) {
    if (holds_any_lock()) ++calls_under_lock;
    ++calls_[name];
    CUresult result = CUDA_SUCCESS;
    auto [first, last] = faults_.equal_range(name);
    for (auto fault = first; fault != last;) {
        if (fault->second.nth > 1) {
            --fault->second.nth;
            ++fault;
            continue;
        }
        result = fault->second.code;
        if (fault->second.onwards)
            ++fault;
        else
            fault = faults_.erase(fault);
    }
    return result;
}

void FakeDriver::fail(const std::string& name, std::uint64_t nth, CUresult code, bool onwards) {
    std::unique_lock lock(mutex_);
    faults_.insert({name, {nth, code, onwards}});
}

void FakeDriver::clear_faults() {
    std::unique_lock lock(mutex_);
    faults_.clear();
}

std::uint64_t FakeDriver::calls(const std::string& name) {
    std::unique_lock lock(mutex_);
    return calls_[name];
}

std::map<std::string, std::uint64_t> FakeDriver::all_calls() {
    std::unique_lock lock(mutex_);
    return calls_;
}

void FakeDriver::hold(CUstream stream, bool on) {
    std::unique_lock lock(mutex_);
    streams_[stream]->held = on;
}

bool FakeDriver::run_one(Stream& stream) {
    if (stream.held || stream.items.empty()) return false;
    Item& item = stream.items.front();
    if (item.wait && item.wait->completed < item.number) return false;
    // The legacy stream waits for the per-thread ones.
    const auto legacy = streams_.find(CU_STREAM_LEGACY);
    const auto own = streams_.find(CU_STREAM_PER_THREAD);
    if (legacy != streams_.end() && legacy->second.get() == &stream && own != streams_.end() &&
        !own->second->items.empty())
        return false;
    if (item.work) item.work();
    if (item.record) item.record->completed = std::max(item.record->completed, item.number);
    stream.items.pop_front();
    return true;
}

void FakeDriver::pump(int count) {
    std::unique_lock lock(mutex_);
    bool ran = true;
    for (int i = 0; i < count && ran; ++i) {
        ran = false;
        for (auto& [handle, stream] : streams_) ran |= run_one(*stream);
    }
}

CUresult FakeDriver::submit(CUstream stream, std::function<void()> work) {
    std::unique_lock lock(mutex_);
    Item item;
    item.work = std::move(work);
    if (!streams_.count(stream)) streams_[stream] = std::make_unique<Stream>();
    streams_[stream]->items.push_back(std::move(item));
    return CUDA_SUCCESS;
}

CUstream FakeDriver::make_stream() {
    std::unique_lock lock(mutex_);
    auto stream = std::make_unique<Stream>();
    auto handle = reinterpret_cast<CUstream>(stream.get());
    streams_[handle] = std::move(stream);
    return handle;
}

void FakeDriver::drop(std::uint64_t number) {
    auto found = handles_.find(number);
    if (!found->second.released || found->second.mappings) return;
    close(found->second.fd);
    handles_.erase(found);
}

std::uint64_t FakeDriver::device_used() {
    std::unique_lock lock(mutex_);
    std::uint64_t bytes = 0;
    for (auto& [number, handle] : handles_)
        if (!handle.on_host) bytes += handle.bytes;
    return bytes;
}

std::uint64_t FakeDriver::host_used() {
    std::unique_lock lock(mutex_);
    std::uint64_t bytes = 0;
    for (auto& [number, handle] : handles_)
        if (handle.on_host) bytes += handle.bytes;
    return bytes;
}

CUfunction FakeDriver::function(const std::string& name) {
    std::unique_lock lock(mutex_);
    auto& entry = functions_[name];
    if (!entry) entry = std::make_unique<std::string>(name);
    return reinterpret_cast<CUfunction>(entry.get());
}

}  // namespace libswap::testing
