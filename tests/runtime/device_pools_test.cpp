// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <gtest/gtest.h>

#include "runtime/device.hpp"
#include "runtime/host_memory.hpp"
#include "tests/runtime/fake_driver.hpp"

namespace libswap {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// Stream-ordered allocation on a device with a small budget; streams run when they are pumped.
class StreamOrder : public ::testing::Test {
  protected:
    StreamOrder() : a_(fake_.make_stream()), b_(fake_.make_stream()) { pool_.ours = true; }

    void SetUp() override { open(32); }
    void open(std::uint64_t budget_mib) {
        config_.budget.kind = Amount::Kind::Bytes;
        config_.budget.bytes = budget_mib * kMiB;
        config_.host_limit.kind = Amount::Kind::Bytes;
        config_.host_limit.bytes = 256 * kMiB;
        config_.min_swap_bytes = kMiB;
        host_limit_ = std::make_unique<HostLimit>(host_limit_of(config_));
        device_ = Device::open(fake_.table(), config_, nullptr, 0, fake_.context(),
                               host_limit_.get(), &edges_);
        ASSERT_TRUE(device_);
        fake_.operations_per_query = 0;
    }
    std::uint64_t alloc(CUstream stream, std::uint64_t bytes = 4 * kMiB) {
        CUdeviceptr ptr = 0;
        EXPECT_EQ(device_->pool_alloc(&ptr, bytes, fake_.context(), stream, pool_), CUDA_SUCCESS);
        return ptr;
    }
    void free(std::uint64_t ptr, CUstream stream) {
        EXPECT_EQ(device_->pool_free(ptr, fake_.context(), stream), CUDA_SUCCESS);
    }
    void launch(CUstream stream, std::uint64_t buffer, std::function<void()> work) {
        Operation op;
        device_->name_address(op, buffer);
        op.signature = 1;
        EXPECT_EQ(
            device_->run(op, fake_.context(), stream, [&] { return fake_.submit(stream, work); }),
            CUDA_SUCCESS);
    }
    void fill(CUstream stream, std::uint64_t buffer, std::uint64_t value) {
        launch(stream, buffer, [=] {
            auto* words = reinterpret_cast<std::uint64_t*>(buffer);
            for (std::uint64_t i = 0; i < 4 * kMiB / 8; ++i) words[i] = value;
        });
    }
    StreamIndex index(CUstream stream) { return device_->streams().find(fake_.context(), stream); }

    testing::FakeDriver fake_;
    CUstream a_;
    CUstream b_;
    Config config_;
    Pool pool_;
    std::unique_ptr<HostLimit> host_limit_;
    PointerEdges edges_;
    std::unique_ptr<Device> device_;
};

TEST_F(StreamOrder, TheSameStreamHasFreedMemoryAtOnce) {
    fake_.hold(a_, true);
    const std::uint64_t first = alloc(a_);
    launch(a_, first, [] {});
    free(first, a_);
    EXPECT_EQ(alloc(a_), first);
    EXPECT_EQ(fake_.calls("cuStreamSynchronize"), 0u);
}

TEST_F(StreamOrder, AnotherStreamDoesNotWhileTheFreeIsPending) {
    fake_.hold(a_, true);
    const std::uint64_t first = alloc(a_);
    launch(a_, first, [] {});
    free(first, a_);
    EXPECT_NE(alloc(b_), first);
}

TEST_F(StreamOrder, AnotherStreamHasItOnceTheFreeIsDone) {
    const std::uint64_t first = alloc(a_);
    launch(a_, first, [] {});
    free(first, a_);
    fake_.pump();
    fake_.operations_per_query = 100;
    EXPECT_EQ(alloc(b_), first);
}

TEST_F(StreamOrder, OnlyIfThePoolIsOpportunistic) {
    pool_.opportunistic = false;
    const std::uint64_t first = alloc(a_);
    free(first, a_);
    fake_.pump();
    fake_.operations_per_query = 100;
    EXPECT_NE(alloc(b_), first);
}

TEST_F(StreamOrder, AnotherStreamHasItBehindAnEventOfTheProgram) {
    fake_.hold(a_, true);
    const std::uint64_t first = alloc(a_);
    launch(a_, first, [] {});
    free(first, a_);
    const auto event = reinterpret_cast<CUevent>(0x50);
    device_->event_order().recorded(event, index(a_), device_->streams().last_place(index(a_)));
    EXPECT_NE(alloc(b_), first);
    device_->event_order().waited(index(b_), event);
    EXPECT_EQ(alloc(b_), first);
}

TEST_F(StreamOrder, AnEventBeforeTheFreeOrdersNothing) {
    fake_.hold(a_, true);
    const std::uint64_t first = alloc(a_);
    launch(a_, first, [] {});
    const auto event = reinterpret_cast<CUevent>(0x50);
    device_->event_order().recorded(event, index(a_), device_->streams().last_place(index(a_)));
    free(first, a_);
    device_->event_order().waited(index(b_), event);
    EXPECT_NE(alloc(b_), first);
}

TEST_F(StreamOrder, SmallRequestsAreOrderedLikewise) {
    fake_.hold(a_, true);
    const std::uint64_t first = alloc(a_, 1000);
    launch(a_, first, [] {});
    free(first, a_);
    EXPECT_EQ(device_->pool_free(first, fake_.context(), a_), CUDA_ERROR_INVALID_VALUE);
    const std::uint64_t other = alloc(b_, 1000);
    EXPECT_NE(other, first);
    EXPECT_EQ(alloc(a_, 900), first);
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;
    EXPECT_TRUE(device_->range_of(first + 10, &base, &bytes));
    EXPECT_EQ(bytes, 900u);
    EXPECT_TRUE(device_->is_valid());
}

TEST_F(StreamOrder, CountsWhatIsUsedAndWhatIsReserved) {
    const std::uint64_t first = alloc(a_);
    const std::uint64_t second = alloc(a_, 5 * kMiB);
    EXPECT_EQ(pool_.used_bytes, 9 * kMiB);
    EXPECT_EQ(pool_.reserved_bytes, 10 * kMiB);
    free(first, a_);
    EXPECT_EQ(pool_.used_bytes, 5 * kMiB);
    EXPECT_EQ(pool_.reserved_bytes, 10 * kMiB);
    fake_.pump();
    fake_.operations_per_query = 100;
    device_->trim_pool(pool_, 7 * kMiB);
    EXPECT_EQ(pool_.reserved_bytes, 6 * kMiB);
    EXPECT_EQ(device_->mem_free(second), CUDA_SUCCESS);
    EXPECT_EQ(pool_.used_bytes, 0u);
    EXPECT_EQ(pool_.reserved_bytes, 0u);
    EXPECT_EQ(pool_.used_high, 9 * kMiB);
}

TEST_F(StreamOrder, ASynchronisationReleasesWhatIsBeyondTheThreshold) {
    pool_.release_threshold = 4 * kMiB;
    std::vector<std::uint64_t> buffers;
    for (int i = 0; i < 4; ++i) buffers.push_back(alloc(a_));
    for (const std::uint64_t buffer : buffers) free(buffer, a_);
    EXPECT_EQ(pool_.reserved_bytes, 16 * kMiB);
    fake_.pump();
    device_->streams().mark_complete(index(a_), device_->streams().last_place(index(a_)));
    device_->release_unused();
    EXPECT_EQ(pool_.reserved_bytes, 4 * kMiB);
}

TEST_F(StreamOrder, APoolNeverExceedsItsOwnLimit) {
    pool_.max_bytes = 8 * kMiB;
    const std::uint64_t first = alloc(a_);
    (void)alloc(a_);
    CUdeviceptr third = 0;
    EXPECT_EQ(device_->pool_alloc(&third, 4 * kMiB, fake_.context(), a_, pool_),
              CUDA_ERROR_OUT_OF_MEMORY);
    free(first, a_);
    EXPECT_EQ(alloc(a_), first);
}

TEST_F(StreamOrder, MemoryInUseGoesToNobodyElseUnderPressure) {
    // Many times the budget, each buffer freed with its last use still in flight; what follows on
    // the other stream never sees it.
    fake_.operations_per_query = 1;
    std::uint64_t sum = 0;
    std::uint64_t expected = 0;
    for (std::uint64_t i = 0; i < 60; ++i) {
        const CUstream stream = i % 3 ? a_ : b_;
        const std::uint64_t buffer = alloc(stream);
        fill(stream, buffer, i);
        launch(stream, buffer, [buffer, &sum] {
            sum += reinterpret_cast<const std::uint64_t*>(buffer)[4 * kMiB / 8 - 1];
        });
        free(buffer, stream);
        expected += i;
    }
    fake_.pump();
    EXPECT_EQ(sum, expected);
    EXPECT_LE(fake_.device_used(), 32 * kMiB);
    EXPECT_TRUE(device_->is_valid());
    EXPECT_EQ(fake_.calls_under_lock, 0u);
}

}  // namespace
}  // namespace libswap
