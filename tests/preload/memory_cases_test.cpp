// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <functional>
#include <random>
#include <set>
#include <thread>

#include "program.hpp"

extern "C" [[gnu::weak]] int simgpuFaultSet(const char* rules);  // absent on a GPU

// Memory as programs allocate, ask about and share it. Numbers in comments are rows of the issue
// log, docs/issue-log.md.

namespace preload_tests {
namespace {

CUmemAllocationProp device_memory(int device) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    return properties;
}

template <typename T>
T attribute(CUpointer_attribute which, CUdeviceptr pointer) {
    T value{};
    EXPECT_EQ(cuPointerGetAttribute(&value, which, pointer), CUDA_SUCCESS);
    return value;
}

class Memory : public Program {
  protected:
    std::pair<std::uint64_t, std::uint64_t> free_and_total() {
        std::size_t free_bytes = 0;
        std::size_t total_bytes = 0;
        EXPECT_EQ(cuMemGetInfo(&free_bytes, &total_bytes), CUDA_SUCCESS);
        return {free_bytes, total_bytes};
    }
};

// 24: a call that fails, whoever made it fail, changes neither what it was to write nor any
// account.
TEST_F(Memory, CallsThatFailLeaveEverythingAsItWas) {
    if (!simgpuFaultSet) GTEST_SKIP() << "no faults on a GPU";
    const CUdeviceptr live = alloc(4 * kMiB);
    CUmemoryPool pool = nullptr;
    MUST(cuDeviceGetDefaultMemPool(&pool, device_));
    // What small requests are cut from stays: it is there already.
    CUdeviceptr small[2] = {alloc(100)};
    MUST(cuMemAllocAsync(&small[1], 100, stream_));
    MUST(cuCtxSynchronize());
    constexpr std::uint64_t kPoison = 0x5a5a5a5a5a5a5a5a;
    struct {
        std::uint64_t first = kPoison, second = kPoison;
    } out;
    const auto address = [&] { return reinterpret_cast<CUdeviceptr*>(&out.first); };
    const auto size = [&] { return reinterpret_cast<std::size_t*>(&out.second); };
    const auto any = [&](auto** type) { return reinterpret_cast<decltype(type)>(&out.first); };
    const CUmemAllocationProp properties = device_memory(device_);
    CUDA_ARRAY_DESCRIPTOR shape{};
    shape.Width = 64;
    shape.Format = CU_AD_FORMAT_FLOAT;
    shape.NumChannels = 1;
    const struct {
        const char* functions;
        std::function<CUresult()> call;
    } cases[] = {
        {"cuMemAlloc_v2", [&] { return cuMemAlloc(address(), 100); }},
        {"cuMemAlloc_v2", [&] { return cuMemAlloc(address(), 4 * kMiB); }},
        {"cuMemAllocPitch_v2", [&] { return cuMemAllocPitch(address(), size(), 1000, 4000, 4); }},
        {"cuMemAllocManaged",
         [&] { return cuMemAllocManaged(address(), kMiB, CU_MEM_ATTACH_GLOBAL); }},
        {"cuMemAllocAsync", [&] { return cuMemAllocAsync(address(), 4 * kMiB, stream_); }},
        {"cuMemAllocFromPoolAsync",
         [&] { return cuMemAllocFromPoolAsync(address(), 100, pool, stream_); }},
        {"cuMemHostAlloc",
         [&] { return cuMemHostAlloc(any(static_cast<void**>(nullptr)), kMiB, 0); }},
        {"cuMemAllocHost_v2",
         [&] { return cuMemAllocHost(any(static_cast<void**>(nullptr)), kMiB); }},
        {"cuArrayCreate_v2",
         [&] { return cuArrayCreate(any(static_cast<CUarray*>(nullptr)), &shape); }},
        {"cuMemCreate",
         [&] {
             return cuMemCreate(reinterpret_cast<CUmemGenericAllocationHandle*>(&out.first),
                                2 * kMiB, &properties, 0);
         }},
        {"cuMemAddressReserve", [&] { return cuMemAddressReserve(address(), 2 * kMiB, 0, 0, 0); }},
        {"cuMemPoolCreate",
         [&] {
             CUmemPoolProps wanted{};
             wanted.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
             wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
             return cuMemPoolCreate(any(static_cast<CUmemoryPool*>(nullptr)), &wanted);
         }},
        {"cuStreamCreate", [&] { return cuStreamCreate(any(static_cast<CUstream*>(nullptr)), 0); }},
        {"cuModuleLoadData",
         [&] { return cuModuleLoadData(any(static_cast<CUmodule*>(nullptr)), kPtx); }},
        {"cuMemGetInfo_v2",
         [&] { return cuMemGetInfo(reinterpret_cast<std::size_t*>(&out.first), size()); }},
    };
    const auto before = free_and_total();
    for (const auto& each : cases) {
        // The function itself, and all that memory can come from instead of it.
        const std::string own = std::string(each.functions) + ":*=2";
        const std::string all = own +
                                ",cuMemCreate:*=2,cuMemAlloc_v2:*=2,cuMemMap:*=2"
                                ",cuMemAllocAsync:*=2";
        for (const std::string& rules : {own, all}) {
            out = {};
            ASSERT_EQ(simgpuFaultSet(rules.c_str()), 0);
            const CUresult result = each.call();
            ASSERT_EQ(simgpuFaultSet(""), 0);
            if (result == CUDA_SUCCESS) {
                // Served from what was there already. It is given back, if it is memory.
                if (std::string(each.functions).find("Async") != std::string::npos) {
                    MUST(cuMemFreeAsync(out.first, stream_));
                } else if (std::string(each.functions).rfind("cuMemAlloc", 0) == 0) {
                    MUST(cuMemFree(out.first));
                }
                continue;
            }
            EXPECT_EQ(result, CUDA_ERROR_OUT_OF_MEMORY) << rules;
            EXPECT_EQ(out.first, kPoison) << rules;
            EXPECT_EQ(out.second, kPoison) << rules;
            MUST(cuCtxSynchronize());
            EXPECT_EQ(free_and_total(), before) << rules;
        }
    }
    EXPECT_TRUE(holds(live, 4 * kMiB, 0));
    for (const CUdeviceptr piece : {live, small[0], small[1]}) MUST(cuMemFree(piece));
}

// The kind of 24 and 53: arguments that are not there.
TEST_F(Memory, WhatIsAskedForNothingIsTheDriversToRefuse) {
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuMemAlloc(nullptr, 4 * kMiB), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAlloc(&pointer, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAllocAsync(nullptr, 4 * kMiB, stream_), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAllocPitch(nullptr, nullptr, 4096, 4096, 4), CUDA_ERROR_INVALID_VALUE);
    const CUdeviceptr buffer = alloc(4 * kMiB);
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    // The header: either may be left out.
    EXPECT_EQ(cuMemGetAddressRange(&base, nullptr, buffer + 5), CUDA_SUCCESS);
    EXPECT_EQ(cuMemGetAddressRange(nullptr, &bytes, buffer + 5), CUDA_SUCCESS);
    EXPECT_EQ(base, buffer);
    EXPECT_EQ(bytes, 4 * kMiB);
    EXPECT_NE(cuPointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, buffer),
              CUDA_SUCCESS);
    MUST(cuMemFree(buffer));
}

// The kind of 54 and 58: caches of registrations go by the number of a buffer, which no other has
// had.
TEST_F(Memory, NumbersOfBuffersStayAndAreNotUsedAgain) {
    std::set<unsigned long long> numbers;
    for (int round = 0; round < 3; ++round) {
        const auto buffers = fill_device();
        std::vector<unsigned long long> now;
        for (const CUdeviceptr buffer : buffers) {
            now.push_back(attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, buffer));
            EXPECT_TRUE(numbers.insert(now.back()).second);
        }
        press(buffers);
        for (std::size_t i = 0; i < buffers.size(); ++i)
            EXPECT_EQ(
                attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, buffers[i] + kMiB),
                now[i]);
        free_all(buffers);
    }
}

// The kind of 54: what UCX sets on whatever it sends.
TEST_F(Memory, SynchronousCopiesMayBeAskedFor) {
    const CUdeviceptr buffer = alloc(4 * kMiB, 1);
    unsigned yes = 1;
    MUST(cuPointerSetAttribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, buffer));
    const auto buffers = fill_device();
    press(buffers);
    EXPECT_TRUE(holds(buffer, 4 * kMiB, 1));
    free_all(buffers);
    MUST(cuMemFree(buffer));
}

// The kind of 61 and 75: memory of one thread is freed by another, while a third allocates.
TEST_F(Memory, AnyThreadMayFreeWhatAnotherHas) {
    const auto before = free_and_total();
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([this] {
            EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
            for (int round = 0; round < 10; ++round) {
                CUdeviceptr mine = 0;
                ASSERT_EQ(cuMemAlloc(&mine, 5 * kMiB), CUDA_SUCCESS);
                ASSERT_EQ(cuMemsetD32(mine, 6, kMiB), CUDA_SUCCESS);
                std::thread([this, mine] {
                    EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
                    unsigned word = 0;
                    EXPECT_EQ(cuMemcpyDtoH(&word, mine + 4 * kMiB - 4, 4), CUDA_SUCCESS);
                    EXPECT_EQ(word, 6U);
                    EXPECT_EQ(cuMemFree(mine), CUDA_SUCCESS);
                }).join();
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(free_and_total(), before);
}

// 51: host memory asked for with no context, by a structure with fields of the future.
TEST_F(Memory, PhysicalMemoryOfTheHostPassesWithoutAContext) {
    MUST(cuCtxSetCurrent(nullptr));
    CUmemAllocationProp properties = device_memory(0);
    properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    properties.allocFlags.reserved[3] = 0x7f;
    CUmemGenericAllocationHandle handle = 0;
    MUST(cuMemCreate(&handle, 2 * kMiB, &properties, 0));
    MUST(cuMemRelease(handle));
    properties.location.id = 4711;
    EXPECT_NE(cuMemCreate(&handle, 2 * kMiB, &properties, 0), CUDA_SUCCESS);
    MUST(cuCtxSetCurrent(context_));
}

// 52
TEST_F(Memory, DevicesOutOfRangeAreTheDriversToRefuse) {
    CUdevice device = 0;
    EXPECT_EQ(cuDeviceGet(&device, 99), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_EQ(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
}

// 53
TEST_F(Memory, FreesOfWhatIsNotOursAreTheDrivers) {
    EXPECT_EQ(cuMemFree(0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(0x1234), CUDA_ERROR_INVALID_VALUE);
    const CUdeviceptr buffer = alloc(4 * kMiB);
    EXPECT_EQ(cuMemFree(buffer + 512), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFree(buffer), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(buffer), CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr pooled = 0;
    MUST(cuMemAllocAsync(&pooled, 3 * kMiB, stream_));
    EXPECT_EQ(cuMemFree(pooled), CUDA_SUCCESS);
}

// 54, 56, 58, 60: what memory says of itself is what it is.
TEST_F(Memory, AttributesTellTheTruth) {
    const CUdeviceptr buffer = alloc(5 * kMiB);
    EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, buffer), 0u);
    EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, buffer), 0u);
    EXPECT_EQ(attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, buffer), 0u);
    EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, buffer),
              static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
    EXPECT_EQ(attribute<std::size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, buffer + kMiB), 5 * kMiB);
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    MUST(cuMemGetAddressRange(&base, &bytes, buffer + 3 * kMiB));
    EXPECT_EQ(base, buffer);
    EXPECT_EQ(bytes, 5 * kMiB);
    CUipcMemHandle handle;
    EXPECT_NE(cuIpcGetMemHandle(&handle, buffer), CUDA_SUCCESS);
    MUST(cuMemFree(buffer));
}

TEST_F(Memory, ThePoolOfAPointerIsTold) {
    CUmemoryPool pool = nullptr;
    MUST(cuDeviceGetDefaultMemPool(&pool, device_));
    CUdeviceptr large = 0;
    CUdeviceptr small = 0;
    MUST(cuMemAllocAsync(&large, 3 * kMiB, stream_));
    MUST(cuMemAllocAsync(&small, 100, stream_));
    EXPECT_EQ(attribute<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, large + 5), pool);
    EXPECT_EQ(attribute<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, small + 5), pool);
    const CUdeviceptr plain = alloc(3 * kMiB);
    EXPECT_EQ(attribute<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, plain), nullptr);
    CUmemPoolPtrExportData data;
    EXPECT_NE(cuMemPoolExportPointer(&data, large), CUDA_SUCCESS);
    MUST(cuMemFreeAsync(large, stream_));
    MUST(cuMemFreeAsync(small, stream_));
    EXPECT_EQ(cuMemFreeAsync(large, stream_), CUDA_ERROR_INVALID_VALUE);
    MUST(cuMemFree(plain));
}

// 57: whoever has the physical memory sees what the program writes, whatever moves.
TEST_F(Memory, WhatOthersHoldStaysWhereItIs) {
    const CUdeviceptr buffer = alloc(4 * kMiB, 7);
    CUmemGenericAllocationHandle handle = 0;
    MUST(cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(buffer)));
    CUdeviceptr other = 0;
    MUST(cuMemAddressReserve(&other, 2 * kMiB, 0, 0, 0));
    MUST(cuMemMap(other, 2 * kMiB, 0, handle, 0));
    CUmemAccessDesc access{};
    access.location = device_memory(device_).location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    MUST(cuMemSetAccess(other, 2 * kMiB, &access, 1));
    const auto buffers = fill_device();
    press(buffers);
    MUST(add(buffer, 4 * kMiB, 1, stream_));
    press(buffers);
    EXPECT_TRUE(holds(other, 2 * kMiB, 8));
    MUST(cuMemUnmap(other, 2 * kMiB));
    MUST(cuMemAddressFree(other, 2 * kMiB));
    MUST(cuMemRelease(handle));
    free_all(buffers);
    MUST(cuMemFree(buffer));
}

// 61
TEST_F(Memory, FreesWhileEvictedAndTwice) {
    for (int round = 0; round < 3; ++round) {
        const auto buffers = fill_device();
        press(buffers);
        for (const CUdeviceptr buffer : buffers) {
            EXPECT_EQ(cuMemFree(buffer), CUDA_SUCCESS);
            EXPECT_EQ(cuMemFree(buffer), CUDA_ERROR_INVALID_VALUE);
        }
    }
}

// 63, 71: frees right behind the launches that use the memory.
TEST_F(Memory, FreesWaitForWorkInFlight) {
    for (unsigned i = 0; i < 30; ++i) {
        const CUdeviceptr buffer = alloc(6 * kMiB, i);
        MUST(add(buffer, 6 * kMiB, 1, stream_));
        MUST(cuMemFree(buffer));
    }
    MUST(cuStreamSynchronize(stream_));
}

// 67: virtual memory of the program's own is used as it is, and left alone.
TEST_F(Memory, TheProgramsOwnMappingsAreNotAdopted) {
    const auto before = free_and_total();
    const CUmemAllocationProp properties = device_memory(device_);
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr range = 0;
    MUST(cuMemCreate(&handle, 4 * kMiB, &properties, 0));
    MUST(cuMemAddressReserve(&range, 4 * kMiB, 0, 0, 0));
    MUST(cuMemMap(range, 4 * kMiB, 0, handle, 0));
    CUmemAccessDesc access{};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    MUST(cuMemSetAccess(range, 4 * kMiB, &access, 1));
    EXPECT_EQ(free_and_total().first, before.first - 4 * kMiB);
    MUST(cuMemsetD32Async(range, 5, kMiB, stream_));
    const auto buffers = fill_device();
    press(buffers);
    MUST(add(range, 4 * kMiB, 1, stream_));
    EXPECT_TRUE(holds(range, 4 * kMiB, 6));
    CUmemGenericAllocationHandle retained = 0;
    MUST(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(range)));
    EXPECT_EQ(retained, handle);
    MUST(cuMemRelease(retained));
    free_all(buffers);
    MUST(cuMemRelease(handle));
    EXPECT_EQ(cuMemFree(range), CUDA_ERROR_INVALID_VALUE);
    MUST(cuMemUnmap(range, 4 * kMiB));
    MUST(cuMemAddressFree(range, 4 * kMiB));
    EXPECT_EQ(free_and_total().first, before.first);
}

// 68
TEST_F(Memory, MoreThanThereIsIsOutOfMemory) {
    CUdeviceptr buffer = 0;
    EXPECT_EQ(cuMemAlloc(&buffer, std::size_t{1} << 50), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(cuMemAllocAsync(&buffer, std::size_t{1} << 50, stream_), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(cuMemAlloc(&buffer, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
}

// 73: programs that take most of what is free at once.
TEST_F(Memory, ThreeQuartersOfWhatIsFreeCanBeHadAtOnce) {
    const std::uint64_t bytes = free_and_total().first / 4 * 3 / (2 * kMiB) * (2 * kMiB);
    CUdeviceptr arena = 0;
    MUST(cuMemAlloc(&arena, bytes));
    MUST(cuMemsetD32Async(arena + bytes - 4 * kMiB, 9, kMiB, stream_));
    EXPECT_TRUE(holds(arena + bytes - 4 * kMiB, 4 * kMiB, 9));
    MUST(cuMemFree(arena));
}

// 75: nothing that a program frees, or does not have, makes the figures run over.
TEST_F(Memory, FreeAndUsedAddUpWhateverIsFreed) {
    std::mt19937 random(7);
    std::vector<std::pair<CUdeviceptr, std::uint64_t>> live;
    std::uint64_t used = 0;
    const auto start = free_and_total();
    for (int i = 0; i < 300; ++i) {
        const unsigned kind = random() % 8;
        if (kind < 4) {
            const std::uint64_t bytes = 1 + random() % (3 * kMiB);
            CUdeviceptr pointer = 0;
            const CUresult result =
                kind % 2 ? cuMemAlloc(&pointer, bytes) : cuMemAllocAsync(&pointer, bytes, stream_);
            ASSERT_EQ(result, CUDA_SUCCESS);
            live.emplace_back(pointer, bytes);
            used += bytes;
        } else if (kind < 7 && !live.empty()) {
            const std::size_t at = random() % live.size();
            MUST(kind % 2 ? cuMemFree(live[at].first) : cuMemFreeAsync(live[at].first, stream_));
            used -= live[at].second;
            live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
        } else {
            EXPECT_NE(cuMemFree(0x1000 + random()), CUDA_SUCCESS);
        }
        const auto now = free_and_total();
        ASSERT_EQ(now.second, start.second);
        ASSERT_LE(now.first + used, now.second);
    }
    for (const auto& [pointer, bytes] : live) MUST(cuMemFree(pointer));
    MUST(cuCtxSynchronize());
    // What small requests were cut from stays.
    EXPECT_LE(start.first - free_and_total().first, 8 * kMiB);
}

// 77: what the first launch waits for is launched behind it.
TEST_F(Memory, ALaunchDoesNotWaitForItself) {
    CUdeviceptr flag = 0;
    MUST(cuMemAlloc(&flag, 4));
    MUST(cuMemsetD32(flag, 0, 1));
    const CUdeviceptr buffer = alloc(4 * kMiB);
    MUST(cuStreamSynchronize(stream_));
    CUstream second = nullptr;
    MUST(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamWaitValue32(stream_, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
    MUST(add(buffer, 4 * kMiB, 3, stream_));
    MUST(cuStreamWriteValue32(second, flag, 1, 0));
    EXPECT_TRUE(holds(buffer, 4 * kMiB, 3));
    MUST(cuStreamDestroy(second));
    MUST(cuMemFree(buffer));
    MUST(cuMemFree(flag));
}

// 78
TEST_F(Memory, HandlesOfOtherProcessesAreTheDriversToOpen) {
    CUipcMemHandle handle{};
    CUdeviceptr pointer = 0x77;
    EXPECT_NE(cuIpcOpenMemHandle(&pointer, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
              CUDA_SUCCESS);
    EXPECT_EQ(pointer, 0x77u);
}

TEST_F(Memory, PitchedMemoryHasTheDriversPitchAndIsSwapped) {
    std::vector<CUdeviceptr> images;
    std::size_t pitch = 0;
    for (unsigned i = 0; i < 12; ++i) {
        CUdeviceptr image = 0;
        MUST(cuMemAllocPitch(&image, &pitch, 1000, 4096, 4));
        EXPECT_EQ(pitch % 512, 0u);
        EXPECT_GE(pitch, 1000u);
        MUST(cuMemsetD2D32Async(image, pitch, i, 250, 4096, stream_));
        images.push_back(image);
    }
    std::vector<unsigned> row(250);
    for (unsigned i = 0; i < 12; ++i) {
        MUST(cuStreamSynchronize(stream_));
        MUST(cuMemcpyDtoH(row.data(), images[i] + 4095 * pitch, 1000));
        EXPECT_EQ(row, std::vector<unsigned>(250, i));
    }
    CUdeviceptr image = 0;
    EXPECT_EQ(cuMemAllocPitch(&image, &pitch, 1000, 4096, 3), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAllocPitch(&image, &pitch, 0, 4096, 4), CUDA_ERROR_INVALID_VALUE);
    free_all(images);
}

TEST_F(Memory, PinnedMemoryOfTheProgramCountsAgainstTheHostLimit) {
    const auto before = free_and_total();
    void* pinned = nullptr;
    MUST(cuMemHostAlloc(&pinned, 16 * kMiB, 0));
    EXPECT_EQ(free_and_total().first, before.first - 16 * kMiB);
    MUST(cuMemFreeHost(pinned));
    EXPECT_EQ(free_and_total().first, before.first);
    std::vector<char> plain(8 * kMiB);
    MUST(cuMemHostRegister(plain.data(), plain.size(), 0));
    EXPECT_EQ(free_and_total().first, before.first - 8 * kMiB);
    MUST(cuMemHostUnregister(plain.data()));
    EXPECT_EQ(free_and_total().first, before.first);
}

TEST_F(Memory, ArraysCountAgainstTheBudget) {
    const auto before = free_and_total();
    CUDA_ARRAY_DESCRIPTOR shape{};
    shape.Width = 1024;
    shape.Height = 512;
    shape.Format = CU_AD_FORMAT_FLOAT;
    shape.NumChannels = 2;
    CUarray array = nullptr;
    MUST(cuArrayCreate(&array, &shape));
    EXPECT_EQ(free_and_total().first, before.first - 4 * kMiB);
    MUST(cuArrayDestroy(array));
    EXPECT_EQ(free_and_total().first, before.first);
}

TEST_F(Memory, ManagedMemoryLeavesRoomForBuffers) {
    CUdeviceptr managed = 0;
    MUST(cuMemAllocManaged(&managed, 40 * kMiB, CU_MEM_ATTACH_GLOBAL));
    const auto buffers = fill_device();
    press(buffers);
    for (unsigned i = 0; i < buffers.size(); ++i)
        EXPECT_TRUE(holds(buffers[i], 4 * kMiB, 1000 + i));
    free_all(buffers);
    MUST(cuMemFree(managed));
}

// What the driver needs for itself it gets from us.
TEST_F(Memory, TheProgramsOwnPhysicalMemoryComesBeforeOurs) {
    const auto buffers = fill_device();
    press(buffers);
    const CUmemAllocationProp properties = device_memory(device_);
    std::vector<CUmemGenericAllocationHandle> handles;
    // More than what the device of 64 MiB has beyond the budget.
    for (int i = 0; i < 7; ++i) {
        CUmemGenericAllocationHandle handle = 0;
        MUST(cuMemCreate(&handle, 8 * kMiB, &properties, 0));
        handles.push_back(handle);
    }
    press(buffers);
    for (unsigned i = 0; i < buffers.size(); ++i)
        EXPECT_TRUE(holds(buffers[i], 4 * kMiB, 2000 + i));
    for (const auto handle : handles) MUST(cuMemRelease(handle));
    free_all(buffers);
}

TEST_F(Memory, BatchesOfCopiesAreFollowed) {
    const auto buffers = fill_device();
    press(buffers);
    std::vector<CUdeviceptr> dsts(buffers.begin(), buffers.begin() + 2);
    std::vector<CUdeviceptr> srcs(buffers.begin() + 2, buffers.begin() + 4);
    std::vector<std::size_t> sizes(2, 4 * kMiB);
    CUmemcpyAttributes attributes{};
    attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    std::size_t index = 0;
    const CUresult result = cuMemcpyBatchAsync(dsts.data(), srcs.data(), sizes.data(), 2,
                                               &attributes, &index, 1, stream_);
    if (result != CUDA_ERROR_NOT_SUPPORTED) {
        MUST(result);
        press(buffers);
        EXPECT_TRUE(holds(buffers[0], 4 * kMiB, 2002));
        EXPECT_TRUE(holds(buffers[1], 4 * kMiB, 2003));
    }
    free_all(buffers);
}

}  // namespace
}  // namespace preload_tests
