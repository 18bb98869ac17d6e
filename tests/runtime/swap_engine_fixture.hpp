// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Blocks of 4 MiB, a stream of the program, and an engine that is stepped by hand.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "runtime/swap_engine.hpp"
#include "tests/runtime/fake_driver.hpp"

namespace libswap::testing {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class SwapEngineTest : public ::testing::Test {
  protected:
    SwapEngineTest() {
        SwapEngine::Parts parts;
        parts.driver = &fake_.table();
        parts.device_pool = &device_pool_;
        parts.host_pool = &host_pool_;
        parts.streams = &streams_;
        parts.blocks = &blocks_;
        parts.space = &space_;
        parts.remapper = &remapper_;
        parts.gate = &gate_;
        parts.believed = &believed_gate_;
        parts.counters = &counters_;
        parts.copy_times = &copy_times_;
        swap_.emplace(parts);
        EXPECT_TRUE(swap_->open());
        stream_ = fake_.make_stream();
        index_ = streams_.find(fake_.context(), stream_);
    }
    ~SwapEngineTest() override {
        finish();
        swap_->close(false);
    }

    /// A resident one, full of ones.
    Block& add_block() {
        const auto base = space_.take(4 * kMiB);
        Block& block = blocks_.block(blocks_.add(*base, 4 * kMiB, {{0, 2}})->first);
        EXPECT_TRUE(device_pool_.take_or_grow(0, block.device_chunks()));
        EXPECT_TRUE(remapper_.map(block.base, block.device_chunks()));
        blocks_.name_anew(block);
        block.cell.born(Residency::Resident);
        write(block, 1);
        return block;
    }
    /// An operation of the program, which fills the block; it runs once the stream is pumped.
    void write(Block& block, unsigned char value) {
        EXPECT_NE(block.cell.pin(false), PinResult::Absent);
        void* const memory = reinterpret_cast<void*>(std::uint64_t{block.base});
        fake_.submit(stream_, [=] { std::memset(memory, value, 4 * kMiB); });
        block.publish(streams_.take_place(index_));
        block.cell.unpin();
        EXPECT_TRUE(streams_.record(index_));
        fake_.pump();
    }
    bool holds(const Block& block, unsigned char value) const {
        const auto* bytes = reinterpret_cast<const unsigned char*>(std::uint64_t{block.base});
        for (std::uint64_t i = 0; i < 4 * kMiB; i += 4096)
            if (bytes[i] != value) return false;
        return true;
    }
    void finish() {
        for (int i = 0; i < 200 && swap_->jobs() != 0; ++i) {
            fake_.pump();
            swap_->step();
            swap_->map_one();
        }
        EXPECT_EQ(swap_->jobs(), 0u);
    }
    void evict(Block& block) {
        EXPECT_EQ(swap_->evict(block, false, 0), SwapEngine::Start::Started);
        finish();
        EXPECT_EQ(block.cell.load().state(), Residency::Host);
    }
    SwapEngine::Start fetch(Block& block, SwapEngine::Way way) {
        return swap_->fetch(block, way, 0);
    }

    FakeDriver fake_;
    HandlePool device_pool_{fake_.table(), {HandlePool::Kind::Device, 0, 0, 16 * kMiB, nullptr}};
    HandlePool host_pool_{fake_.table(), {HandlePool::Kind::Host, 0, 0, 16 * kMiB, nullptr}};
    AddressSpace space_{fake_.table(), 64 * kMiB};
    Remapper remapper_{fake_.table(), 0};
    StreamTable streams_{fake_.table()};
    BlockTable blocks_;
    Gate gate_;
    Gate believed_gate_;
    Counters counters_;
    CopyTimes copy_times_{fake_.table(), {}};
    std::optional<SwapEngine> swap_;
    CUstream stream_ = nullptr;
    StreamIndex index_ = 0;
};

/// Of all free memory, that of every other chunk stays somebody else's for as long as this lives,
/// so that no two chunks of a block lie side by side.
class Fragmented {
  public:
    explicit Fragmented(HandlePool& pool)
        : pool_(pool), chunks_(pool.available_bytes() / kChunkBytes[0]) {
        EXPECT_TRUE(pool_.take_or_grow(0, chunks_));
        for (std::size_t i = 0; i < chunks_.size(); i += 2) pool_.give_back({&chunks_[i], 1});
    }
    ~Fragmented() {
        for (std::size_t i = 1; i < chunks_.size(); i += 2) pool_.give_back({&chunks_[i], 1});
    }
    Fragmented(const Fragmented&) = delete;

  private:
    HandlePool& pool_;
    std::vector<Chunk*> chunks_;
};

}  // namespace libswap::testing
