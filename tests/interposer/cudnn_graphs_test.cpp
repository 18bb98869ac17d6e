// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "interposer/cudnn_graphs.hpp"

#include <gtest/gtest.h>

#include <string>

namespace libswap {
namespace {

// Numbers of the vendor's attributes.
constexpr int kHeuristicsGraph = 201;
constexpr int kHeuristicsResults = 202;
constexpr int kConfigEngine = 300;
constexpr int kPlanConfig = 401;
constexpr int kForwardX = 704;
constexpr int kForwardY = 705;
constexpr int kPointwiseY = 753;
constexpr int kGraphOperations = 801;
constexpr int kTensorId = 906;
constexpr int kPackIds = 1000;
constexpr int kPackPointers = 1001;
constexpr int kPackWorkspace = 1003;
constexpr int kEngineGraph = 1300;

/// Descriptors are addresses of bytes here.
class CudnnGraphsTest : public testing::Test {
  protected:
    void* at(int i) { return bytes_ + i; }
    void set(int descriptor, int attribute, std::vector<void*> others) {
        graphs_.was_set(at(descriptor), attribute, static_cast<std::int64_t>(others.size()),
                        others.data());
    }
    void tensor(int descriptor, std::int64_t id) {
        graphs_.was_set(at(descriptor), kTensorId, 1, &id);
    }
    void pack(int descriptor, std::vector<std::int64_t> ids, std::vector<std::uint64_t> addresses,
              std::uint64_t workspace) {
        const auto count = static_cast<std::int64_t>(ids.size());
        graphs_.was_set(at(descriptor), kPackIds, count, ids.data());
        graphs_.was_set(at(descriptor), kPackPointers, count, addresses.data());
        graphs_.was_set(at(descriptor), kPackWorkspace, 1, &workspace);
    }
    /// Addresses that the call writes.
    static std::vector<std::uint64_t> written(const CudnnGraphs::Call& call) {
        std::vector<std::uint64_t> addresses;
        for (const CallOperand& operand : call.operands)
            if (operand.is_written) addresses.push_back(operand.address);
        return addresses;
    }

    enum {
        kX,
        kW,
        kY,
        kZ,
        kOperation,
        kAddition,
        kGraph,
        kHeuristics,
        kEngine,
        kConfig,
        kPlan,
        kPack
    };

    CudnnGraphs graphs_;
    char bytes_[32];
};

TEST_F(CudnnGraphsTest, FollowAPlanFromItsHeuristicsToItsOperation) {
    tensor(kX, 'x');
    tensor(kY, 'y');
    set(kOperation, kForwardX, {at(kX)});
    set(kOperation, kForwardY, {at(kY)});
    set(kGraph, kGraphOperations, {at(kOperation)});
    set(kHeuristics, kHeuristicsGraph, {at(kGraph)});
    void* config = at(kConfig);
    graphs_.was_read(at(kHeuristics), kHeuristicsResults, 1, &config);
    set(kPlan, kPlanConfig, {config});
    pack(kPack, {'x', 'y'}, {100, 200}, 300);
    const CudnnGraphs::Call call = graphs_.call(at(kPlan), at(kPack));
    EXPECT_EQ(std::string(call.name), "cudnnBackendExecute(convolution forward)");
    EXPECT_EQ(call.operands.size(), 3U);
    EXPECT_EQ(written(call), (std::vector<std::uint64_t>{200, 300}));
}

TEST_F(CudnnGraphsTest, FollowAPlanFromAnEngineOfAGraphOfSeveralOperations) {
    tensor(kY, 'y');
    tensor(kZ, 'z');
    set(kOperation, kForwardY, {at(kY)});
    set(kAddition, kPointwiseY, {at(kZ)});
    set(kGraph, kGraphOperations, {at(kOperation), at(kAddition)});
    set(kEngine, kEngineGraph, {at(kGraph)});
    set(kConfig, kConfigEngine, {at(kEngine)});
    set(kPlan, kPlanConfig, {at(kConfig)});
    pack(kPack, {'x', 'z', 'y'}, {100, 200, 300}, 0);
    EXPECT_EQ(written(graphs_.call(at(kPlan), at(kPack))),
              (std::vector<std::uint64_t>{200, 300, 0}));
}

TEST_F(CudnnGraphsTest, KnowNothingOfWhatWasNotSeen) {
    pack(kPack, {'x'}, {100}, 0);
    EXPECT_TRUE(graphs_.call(at(kPlan), at(kPack)).operands.empty());
    EXPECT_TRUE(graphs_.call(at(kPlan), at(kX)).operands.empty());
}

TEST_F(CudnnGraphsTest, ForgetWhatIsDestroyedButNotWhatRefersToIt) {
    tensor(kY, 'y');
    set(kOperation, kForwardY, {at(kY)});
    set(kGraph, kGraphOperations, {at(kOperation)});
    set(kEngine, kEngineGraph, {at(kGraph)});
    set(kConfig, kConfigEngine, {at(kEngine)});
    set(kPlan, kPlanConfig, {at(kConfig)});
    for (const int gone : {kY, kOperation, kGraph, kEngine, kConfig})
        graphs_.was_destroyed(at(gone));
    pack(kPack, {'y'}, {100}, 0);
    EXPECT_EQ(written(graphs_.call(at(kPlan), at(kPack))), (std::vector<std::uint64_t>{100, 0}));
    graphs_.was_destroyed(at(kPlan));
    EXPECT_TRUE(graphs_.call(at(kPlan), at(kPack)).operands.empty());
}

}  // namespace
}  // namespace libswap
