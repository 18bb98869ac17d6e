// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <atomic>
#include <vector>

#include <gtest/gtest.h>

#include "simgpu/device/machine.hpp"
#include "tests/simgpu/device/small_machine.hpp"

namespace simgpu {
namespace {

struct StreamTest : testing::Test {
    Machine machine{small_machine()};
    std::unique_ptr<Context> context = machine.create_context(0);
    std::unique_ptr<Stream> stream = context->create_stream(CU_STREAM_NON_BLOCKING, 0);
    std::unique_ptr<Stream> other = context->create_stream(CU_STREAM_NON_BLOCKING, 0);
};

TEST_F(StreamTest, MovesBytesThereAndBack) {
    const auto va = machine.allocate(0, 5 * kMiB).value();
    std::vector<int> in(kMiB), out(kMiB);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i);
    EXPECT_EQ(stream->copy(copy_of(va, in.data(), 4 * kMiB)), CUDA_SUCCESS);
    EXPECT_EQ(stream->copy(copy_of(out.data(), va, 4 * kMiB)), CUDA_SUCCESS);
    EXPECT_EQ(in, out);
}

}  // namespace
}  // namespace simgpu
