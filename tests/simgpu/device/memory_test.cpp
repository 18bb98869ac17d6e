// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <cstring>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "simgpu/device/memory.hpp"
#include "tests/simgpu/device/small_machine.hpp"

namespace simgpu {
namespace {

struct MemoryTest : testing::Test {
    Memory memory{small_machine().memory};

    std::uint64_t reserve(std::uint64_t bytes) { return memory.reserve(bytes, 0, 0).value(); }
    bool reachable(std::uint64_t va, std::uint64_t bytes, bool write = true) {
        return memory.resolve(0, va, bytes, write).ok;
    }
};

TEST_F(MemoryTest, ReservesAlignedRangesThatDoNotOverlap) {
    const auto a = reserve(3 * kPage);
    const auto b = memory.reserve(2 * kPage, 64 * kMiB, 0).value();
    EXPECT_EQ(b % (64 * kMiB), 0u);
    EXPECT_TRUE(b >= a + 3 * kPage || b + 2 * kPage <= a);
    EXPECT_EQ(memory.reserve(kMiB, 0, 0).error(), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(memory.reserve(kPage, 3 * kPage, 0).error(), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryTest, TakesAHintThatIsFreeAndIgnoresOneThatIsNot) {
    const auto a = reserve(kPage);
    const auto far = memory.window_base() + (1ull << 30);
    EXPECT_EQ(memory.reserve(kPage, 0, far).value(), far);
    EXPECT_NE(memory.reserve(kPage, 0, far).value(), far);
    EXPECT_NE(memory.reserve(2 * kPage, 0, a).value(), a);
}

TEST_F(MemoryTest, FreesOnlyWholeUnmappedReservations) {
    const auto va = reserve(2 * kPage);
    EXPECT_EQ(memory.free_range(va, kPage), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(memory.free_range(va + kPage, kPage), CUDA_ERROR_INVALID_VALUE);
    ASSERT_NE(map_new(memory, va + kPage, kPage), 0u);
    EXPECT_EQ(memory.free_range(va, 2 * kPage), CUDA_ERROR_INVALID_VALUE);
    ASSERT_EQ(memory.unmap(va + kPage, kPage), CUDA_SUCCESS);
    EXPECT_EQ(memory.free_range(va, 2 * kPage), CUDA_SUCCESS);
    EXPECT_EQ(memory.free_range(va, 2 * kPage), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryTest, MapsOnlyWholeHandlesIntoReservedUnmappedSpace) {
    const auto va = reserve(4 * kPage);
    const auto handle = memory.create(2 * kPage, {}).value();
    EXPECT_EQ(memory.map(va, kPage, 0, handle), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(memory.map(va, 2 * kPage, kPage, handle), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(memory.map(va + 3 * kPage, 2 * kPage, 0, handle), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(memory.map(va, 2 * kPage, 0, handle + 1000), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(memory.map(va + kPage, 2 * kPage, 0, handle), CUDA_SUCCESS);
    EXPECT_EQ(memory.map(va, 2 * kPage, 0, handle), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(memory.map(va + 2 * kPage, 2 * kPage, 0, handle), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryTest, NothingIsReachableUntilAccessIsGrantedAndAgainAfterUnmapping) {
    const auto va = reserve(2 * kPage);
    const auto handle = memory.create(2 * kPage, {}).value();
    ASSERT_EQ(memory.map(va, 2 * kPage, 0, handle), CUDA_SUCCESS);
    EXPECT_FALSE(reachable(va, 4));
    const auto read_only = device_access(0, false);
    ASSERT_EQ(memory.set_access(va, 2 * kPage, {&read_only, 1}), CUDA_SUCCESS);
    EXPECT_TRUE(reachable(va, 2 * kPage, false));
    EXPECT_FALSE(reachable(va, 4, true));
    ASSERT_EQ(memory.unmap(va, 2 * kPage), CUDA_SUCCESS);
    EXPECT_FALSE(reachable(va, 4, false));
    ASSERT_EQ(memory.map(va, 2 * kPage, 0, handle), CUDA_SUCCESS);
    EXPECT_FALSE(reachable(va, 4, false)) << "access must be granted again";
}

TEST_F(MemoryTest, UnmapsOneOrSeveralWholeMappingsOnly) {
    const auto va = reserve(4 * kPage);
    map_new(memory, va, 2 * kPage);
    map_new(memory, va + 2 * kPage, kPage);
    EXPECT_EQ(memory.unmap(va, kPage), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(memory.unmap(va + kPage, 2 * kPage), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(memory.unmap(va, 4 * kPage), CUDA_ERROR_INVALID_VALUE);
    EXPECT_TRUE(reachable(va, 3 * kPage)) << "a refused unmap changes nothing";
    EXPECT_EQ(memory.unmap(va, 3 * kPage), CUDA_SUCCESS);
}

TEST_F(MemoryTest, NamesTheFirstAddressThatFaults) {
    const auto va = reserve(4 * kPage);
    map_new(memory, va, kPage);
    map_new(memory, va + 2 * kPage, kPage);
    const Access access = memory.resolve(0, va + 100, 3 * kPage, true);
    EXPECT_FALSE(access.ok);
    EXPECT_EQ(access.fault_va, va + kPage);
}

TEST_F(MemoryTest, AliasesShowTheSameBytes) {
    const auto a = reserve(kPage);
    const auto b = reserve(kPage);
    const auto handle = map_new(memory, a, kPage);
    ASSERT_EQ(memory.map(b, kPage, 0, handle), CUDA_SUCCESS);
    const auto grant = device_access();
    ASSERT_EQ(memory.set_access(b, kPage, {&grant, 1}), CUDA_SUCCESS);
    memory.resolve(0, a, kPage, true).host[5] = std::byte{42};
    EXPECT_EQ(memory.resolve(0, b, kPage, false).host[5], std::byte{42});
}

TEST_F(MemoryTest, NeighbouringMappingsAreContiguousForTheHost) {
    const auto va = reserve(2 * kPage);
    map_new(memory, va, kPage);
    map_new(memory, va + kPage, kPage);
    std::byte* host = memory.resolve(0, va, 2 * kPage, true).host;
    std::memset(host, 7, 2 * kPage);
    EXPECT_EQ(*memory.resolve(0, va + kPage, 1, false).host, std::byte{7});
}

TEST_F(MemoryTest, ReleasedHandlesLiveWhileMapped) {
    const auto va = reserve(kPage);
    const auto handle = map_new(memory, va, kPage);
    EXPECT_EQ(memory.release(handle), CUDA_SUCCESS);
    EXPECT_EQ(memory.release(handle), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(memory.usage(0).used, kPage);
    EXPECT_TRUE(reachable(va, kPage));
    const auto again = memory.retain(va + 5).value();
    EXPECT_EQ(again, handle);
    EXPECT_EQ(memory.unmap(va, kPage), CUDA_SUCCESS);
    EXPECT_EQ(memory.usage(0).used, kPage);
    EXPECT_EQ(memory.release(again), CUDA_SUCCESS);
    EXPECT_EQ(memory.usage(0).used, 0u);
    EXPECT_EQ(memory.retain(va).error(), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryTest, RunsOutOfDeviceMemoryButNotOfHostMemory) {
    const auto all = memory.create(64 * kMiB, {}).value();
    EXPECT_EQ(memory.create(kPage, {}).error(), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(memory.allocate(0, 1).error(), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_TRUE(memory.create(256 * kMiB, {Location::Kind::HostNuma, 0}));
    ASSERT_EQ(memory.release(all), CUDA_SUCCESS);
    EXPECT_TRUE(memory.allocate(0, 64 * kMiB));
    EXPECT_EQ(memory.usage(0).peak, 64 * kMiB);
}

TEST_F(MemoryTest, HostMemoryIsTheProgramsAtTheSameAddressOnceGranted) {
    const auto va = reserve(kPage);
    const auto handle = memory.create(kPage, {Location::Kind::HostNuma, 0}).value();
    ASSERT_EQ(memory.map(va, kPage, 0, handle), CUDA_SUCCESS);
    const AccessGrant grants[] = {device_access(), host_access()};
    ASSERT_EQ(memory.set_access(va, kPage, grants), CUDA_SUCCESS);
    *reinterpret_cast<volatile int*>(va) = 77;
    EXPECT_EQ(*reinterpret_cast<int*>(memory.resolve(0, va, 4, false).host), 77);
    ASSERT_EQ(memory.unmap(va, kPage), CUDA_SUCCESS);
    EXPECT_DEATH(*reinterpret_cast<volatile int*>(va) = 1, "");
}

TEST_F(MemoryTest, DeviceMemoryIsNeverTheHosts) {
    const auto va = reserve(kPage);
    map_new(memory, va, kPage);
    const auto grant = host_access();
    EXPECT_EQ(memory.set_access(va, kPage, {&grant, 1}), CUDA_ERROR_INVALID_VALUE);
    EXPECT_DEATH(*reinterpret_cast<volatile int*>(va) = 1, "");
    const auto plain = memory.allocate(0, 100).value();
    EXPECT_DEATH(*reinterpret_cast<volatile int*>(plain) = 1, "");
}

TEST_F(MemoryTest, GrantsNeedWholeMappings) {
    const auto va = reserve(2 * kPage);
    const auto grant = device_access();
    EXPECT_EQ(memory.set_access(va, kPage, {&grant, 1}), CUDA_ERROR_INVALID_VALUE);
    ASSERT_EQ(memory.map(va, 2 * kPage, 0, memory.create(2 * kPage, {}).value()), CUDA_SUCCESS);
    EXPECT_EQ(memory.set_access(va, kPage, {&grant, 1}), CUDA_ERROR_INVALID_VALUE);
    const auto no_device = device_access(3);
    EXPECT_EQ(memory.set_access(va, 2 * kPage, {&no_device, 1}), CUDA_ERROR_INVALID_DEVICE);
    ASSERT_EQ(memory.set_access(va, 2 * kPage, {&grant, 1}), CUDA_SUCCESS);
    EXPECT_EQ(memory.get_access(va + kPage, {}).value(),
              unsigned{CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
}

TEST_F(MemoryTest, SmallAllocationsShareAPageAndAreAligned) {
    const auto a = memory.allocate(0, 1).value();
    const auto b = memory.allocate(0, 700).value();
    EXPECT_EQ(a % 512, 0u);
    EXPECT_EQ(b % 512, 0u);
    EXPECT_EQ(a / kPage, b / kPage);
    EXPECT_EQ(memory.usage(0).used, kPage);
    EXPECT_EQ(memory.free(a + 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(memory.free(a), CUDA_SUCCESS);
    EXPECT_EQ(memory.free(a), CUDA_ERROR_INVALID_VALUE);
    EXPECT_TRUE(reachable(b, 700));
    EXPECT_EQ(memory.free(b), CUDA_SUCCESS);
    EXPECT_EQ(memory.usage(0).used, 0u);
    EXPECT_FALSE(reachable(b, 4)) << "the page is gone";
}

TEST_F(MemoryTest, FreshMemoryHasTheFixedFillAlsoWhenReused) {
    const auto big = memory.allocate(0, 5 * kMiB).value();
    EXPECT_EQ(memory.resolve(0, big + 4 * kMiB, 1, false).host[0], std::byte{0xA5});
    std::memset(memory.resolve(0, big, 5 * kMiB, true).host, 1, 5 * kMiB);
    ASSERT_EQ(memory.free(big), CUDA_SUCCESS);
    const auto again = memory.allocate(0, 5 * kMiB).value();
    EXPECT_EQ(memory.resolve(0, again, 1, false).host[0], std::byte{0xA5});
    const auto small = memory.allocate(0, 512).value();
    const auto other = memory.allocate(0, 512).value();
    std::memset(memory.resolve(0, small, 512, true).host, 1, 512);
    std::memset(memory.resolve(0, other, 512, true).host, 2, 512);
    ASSERT_EQ(memory.free(small), CUDA_SUCCESS);
    const auto reused = memory.allocate(0, 512).value();
    EXPECT_EQ(reused, small);
    EXPECT_EQ(memory.resolve(0, reused, 512, false).host[511], std::byte{0xA5});
    EXPECT_EQ(memory.resolve(0, other, 512, false).host[0], std::byte{2});
}

std::uint64_t shared_memory_kib() {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("RssShmem:")) return std::stoull(line.substr(9));
    }
    return 0;
}

TEST_F(MemoryTest, FreedMemoryLeavesTheProcess) {
    const auto va = memory.allocate(0, 32 * kMiB).value();
    const auto before = shared_memory_kib();
    std::memset(memory.resolve(0, va, 32 * kMiB, true).host, 1, 32 * kMiB);
    EXPECT_GE(shared_memory_kib(), before + 32 * 1024);
    ASSERT_EQ(memory.free(va), CUDA_SUCCESS);
    EXPECT_LE(shared_memory_kib(), before + 1024);
}

TEST_F(MemoryTest, BigAllocationsCostNothingUntilUsed) {
    Memory large{small_machine(2ull << 30).memory};
    const auto before = shared_memory_kib();
    ASSERT_TRUE(large.allocate(0, 2ull << 30));
    EXPECT_LE(shared_memory_kib(), before + 1024);
}

TEST_F(MemoryTest, CountsWritesPerPhysicalChunk) {
    const auto a = reserve(2 * kPage);
    const auto b = reserve(2 * kPage);
    const auto handle = map_new(memory, a, 2 * kPage);
    memory.resolve(0, a + kPage, 4, true);
    memory.resolve(0, a + kPage, 4, false);
    memory.resolve(0, a, 2 * kPage, true);
    EXPECT_EQ(memory.write_count(a), 1u);
    EXPECT_EQ(memory.write_count(a + kPage), 2u);
    ASSERT_EQ(memory.map(b, 2 * kPage, 0, handle), CUDA_SUCCESS);
    EXPECT_EQ(memory.write_count(b + kPage), 2u);
}

TEST_F(MemoryTest, PinnedAndRegisteredMemoryIsReachablePageableIsNot) {
    void* pinned = memory.host_allocate(3000, 5).value();
    const auto va = reinterpret_cast<std::uint64_t>(pinned);
    EXPECT_EQ(memory.resolve(0, va + 8, 100, true).host, static_cast<std::byte*>(pinned) + 8);
    EXPECT_FALSE(reachable(va, 3001));
    static char pageable[4096];
    const auto other = reinterpret_cast<std::uint64_t>(pageable);
    EXPECT_FALSE(reachable(other, 1));
    ASSERT_EQ(memory.host_register(pageable, sizeof pageable, 0), CUDA_SUCCESS);
    EXPECT_EQ(memory.host_register(pageable + 100, 10, 0),
              CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    EXPECT_TRUE(reachable(other, 4096));
    EXPECT_EQ(memory.find(other + 1).kind, PointerKind::HostRegistered);
    EXPECT_EQ(memory.find(va + 1).host_flags, 5u);
    ASSERT_EQ(memory.host_unregister(pageable), CUDA_SUCCESS);
    EXPECT_EQ(memory.host_unregister(pageable), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    EXPECT_FALSE(reachable(other, 1));
    EXPECT_EQ(memory.host_free(pinned), CUDA_SUCCESS);
    EXPECT_EQ(memory.host_free(pinned), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryTest, FindsWhatAnAddressBelongsTo) {
    const auto big = memory.allocate(0, 3 * kMiB).value();
    EXPECT_EQ(memory.find(big + 5).kind, PointerKind::Device);
    EXPECT_EQ(memory.find(big + 5).base, big);
    EXPECT_EQ(memory.find(big + 5).bytes, 3 * kMiB);
    EXPECT_EQ(memory.find(big + 3 * kMiB).kind, PointerKind::None);
    const auto small = memory.allocate(0, 100).value();
    EXPECT_EQ(memory.find(small + 99).bytes, 100u);
    EXPECT_EQ(memory.find(small + 100).kind, PointerKind::None);
    const auto va = reserve(4 * kPage);
    EXPECT_EQ(memory.find(va + 1).kind, PointerKind::Reserved);
    const auto handle = map_new(memory, va + kPage, kPage, {Location::Kind::HostNuma, 0});
    const PointerInfo info = memory.find(va + kPage + 9);
    EXPECT_EQ(info.kind, PointerKind::Vmm);
    EXPECT_EQ(info.base, va + kPage);
    EXPECT_EQ(info.range_base, va);
    EXPECT_EQ(info.range_bytes, 4 * kPage);
    EXPECT_EQ(info.handle, handle);
    EXPECT_EQ(info.location.kind, Location::Kind::HostNuma);
}

TEST(Memory, PeersReachPlainAllocationsOnlyWhenTold) {
    Memory memory{small_machine(64 * kMiB, 2).memory};
    const auto before = memory.allocate(0, 4 * kMiB).value();
    EXPECT_FALSE(memory.resolve(1, before, 4, false).ok);
    memory.set_peer_access(1, 0, true);
    const auto after = memory.allocate(0, 4 * kMiB).value();
    EXPECT_TRUE(memory.resolve(1, before, 4, false).ok);
    EXPECT_TRUE(memory.resolve(1, after, 4, false).ok);
    EXPECT_EQ(memory.usage(1).used, 0u);
    memory.set_peer_access(1, 0, false);
    EXPECT_FALSE(memory.resolve(1, after, 4, false).ok);
    EXPECT_TRUE(memory.resolve(0, after, 4, false).ok);
}

TEST(Memory, WithoutDataChecksAndCountsOnly) {
    auto config = small_machine(190ull << 30).memory;
    config.window_bytes = 256ull << 30;
    config.without_data = true;
    Memory memory{config};
    const auto va = memory.allocate(0, 180ull << 30).value();
    EXPECT_TRUE(memory.resolve(0, va, 100ull << 30, true).ok);
    EXPECT_EQ(memory.write_count(va + (99ull << 30)), 1u);
    EXPECT_EQ(memory.write_count(va + (101ull << 30)), 0u);
    EXPECT_EQ(memory.allocate(0, 11ull << 30).error(), CUDA_ERROR_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace simgpu
