// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/device/session.hpp"

#include <array>

#include <fmt/format.h>

namespace libswap::bench {

Stream::Stream(const Driver& driver_of) : driver(driver_of) {
    BENCH_CU(driver, cuStreamCreate(&handle, CU_STREAM_NON_BLOCKING));
}
Stream::~Stream() { driver.cuStreamDestroy(handle); }

Event::Event(const Driver& driver_of) : driver(driver_of) {
    BENCH_CU(driver, cuEventCreate(&handle, CU_EVENT_DEFAULT));
}
Event::~Event() { driver.cuEventDestroy(handle); }

DeviceBuffer::DeviceBuffer(const Driver& driver_of, std::uint64_t bytes_of)
    : driver(driver_of), bytes(bytes_of) {
    BENCH_CU(driver, cuMemAlloc(&address, bytes));
}
DeviceBuffer::~DeviceBuffer() { driver.cuMemFree(address); }

PinnedBuffer::PinnedBuffer(const Driver& driver_of, std::uint64_t bytes_of)
    : driver(driver_of), bytes(bytes_of) {
    BENCH_CU(driver, cuMemHostAlloc(&pointer, bytes, CU_MEMHOSTALLOC_PORTABLE));
}
PinnedBuffer::~PinnedBuffer() { driver.cuMemFreeHost(pointer); }

Module::Module(const Driver& driver_of, const char* ptx) : driver(driver_of) {
    BENCH_CU(driver, cuModuleLoadData(&handle, ptx));
}
Module::~Module() { driver.cuModuleUnload(handle); }

CUfunction Module::function(const char* name) const {
    CUfunction function = nullptr;
    BENCH_CU(driver, cuModuleGetFunction(&function, handle, name));
    return function;
}

Session::Session(int device) : driver_(open_driver()) {
    BENCH_CU(*driver_, cuInit(0));
    BENCH_CU(*driver_, cuDeviceGet(&device_, device));
    BENCH_CU(*driver_, cuDevicePrimaryCtxRetain(&context_, device_));
    BENCH_CU(*driver_, cuCtxSetCurrent(context_));
    read_info();
    stream_ = std::make_unique<Stream>(*driver_);
    begin_ = std::make_unique<Event>(*driver_);
    end_ = std::make_unique<Event>(*driver_);
}

Session::~Session() {
    begin_.reset();
    end_.reset();
    stream_.reset();
    if (context_ != nullptr) driver_->cuDevicePrimaryCtxRelease(device_);
}

int Session::attribute(CUdevice_attribute which) const {
    int value = 0;
    return driver_->cuDeviceGetAttribute(&value, which, device_) == CUDA_SUCCESS ? value : 0;
}

void Session::read_info() {
    std::array<char, 256> name{};
    BENCH_CU(*driver_, cuDeviceGetName(name.data(), static_cast<int>(name.size()), device_));
    info_.name = name.data();
    CUuuid uuid{};
    BENCH_CU(*driver_, cuDeviceGetUuid(&uuid, device_));
    info_.uuid = "GPU-";
    for (std::size_t k = 0; k < sizeof uuid.bytes; ++k) {
        if (k == 4 || k == 6 || k == 8 || k == 10) info_.uuid += '-';
        info_.uuid += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[k]));
    }
    BENCH_CU(*driver_, cuDriverGetVersion(&info_.driver_version));
    std::size_t bytes = 0;
    BENCH_CU(*driver_, cuDeviceTotalMem(&bytes, device_));
    info_.memory_bytes = bytes;
    info_.compute_major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    info_.compute_minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    info_.sm_count = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    info_.clock_khz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    info_.copy_engines = attribute(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
    info_.l2_bytes = static_cast<std::uint64_t>(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
    info_.has_vmm = attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0;
}

std::uint64_t Session::free_bytes() const {
    std::size_t free = 0;
    std::size_t total = 0;
    BENCH_CU(*driver_, cuMemGetInfo(&free, &total));
    return free;
}

double Session::time_us(const std::function<void()>& work) const {
    BENCH_CU(*driver_, cuEventRecord(begin_->handle, stream()));
    work();
    BENCH_CU(*driver_, cuEventRecord(end_->handle, stream()));
    BENCH_CU(*driver_, cuEventSynchronize(end_->handle));
    float ms = 0;
    BENCH_CU(*driver_, cuEventElapsedTime(&ms, begin_->handle, end_->handle));
    return 1e3 * static_cast<double>(ms);
}

std::vector<double> Session::times_us(std::size_t times, const std::function<void()>& work) const {
    time_us(work);
    std::vector<double> all;
    for (std::size_t k = 0; k < times; ++k) all.push_back(time_us(work));
    return all;
}

}  // namespace libswap::bench
