// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "runtime/learner.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <new>
#include <random>
#include <vector>

namespace {
// Counts what this thread allocates, for the test that observe() does not.
thread_local std::size_t allocations = 0;
}  // namespace

// Not inlined, where compilers take malloc and free for the two halves of a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    ++allocations;
    if (void* p = std::malloc(bytes)) return p;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace libswap {
namespace {

/// An operation, and a weight it names: its own.
struct Op {
    std::uint64_t signature = 0;
    std::uint64_t block = 0;
    Op(std::uint64_t s) : signature(s), block(s) {}  // NOLINT: lists of numbers read well
    Op(std::uint64_t s, std::uint64_t b) : signature(s), block(b) {}
};
using Stream = std::vector<Op>;

/// An iteration of operations whose kinds repeat, as the layers of a network do, with weights of
/// their own.
Stream layers(std::uint64_t first, int layer_count, int ops_per_layer) {
    Stream s{first};
    for (int l = 0; l < layer_count; ++l) {
        for (int o = 0; o < ops_per_layer; ++o) {
            s.push_back({first + 10 + static_cast<unsigned>(o), first * 1000 + s.size()});
        }
    }
    s.push_back(first + 1);
    return s;
}

Stream operator+(Stream a, const Stream& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

Stream times(int n, const Stream& s) {
    Stream all;
    for (int i = 0; i < n; ++i) all = all + s;
    return all;
}

/// Feeds a stream and keeps every step.
std::vector<Step> feed(Learner& learner, const Stream& stream) {
    std::vector<Step> steps;
    for (const Op& op : stream) {
        const cost::TracedOperand operand{op.block, 4096, true, true};
        steps.push_back(learner.observe(op.signature, {&operand, 1}));
    }
    return steps;
}

std::size_t count_on_loop(const std::vector<Step>& steps) {
    std::size_t n = 0;
    for (const Step& step : steps) n += step.loop != kNoLoop;
    return n;
}

std::size_t count_locked(const std::vector<Step>& steps) {
    std::size_t n = 0;
    for (const Step& step : steps) n += step.locked;
    return n;
}

TEST(Learner, LocksOnAfterTwoIterations) {
    Learner learner;
    const Stream iteration = layers(100, 12, 7);
    feed(learner, {1, 2, 3, 4, 5});
    EXPECT_EQ(count_locked(feed(learner, iteration)), 0U);
    const auto second = feed(learner, iteration);
    ASSERT_TRUE(second.back().locked);
    EXPECT_EQ(learner.period(second.back().loop), iteration.size());
    const auto third = feed(learner, iteration);
    EXPECT_EQ(count_on_loop(third), iteration.size());
    EXPECT_EQ(count_locked(third), 0U);
    for (std::size_t i = 0; i < third.size(); ++i) EXPECT_EQ(third[i].phase, i);
}

TEST(Learner, FindsTheWholeIterationWhenPartsOfItRepeat) {
    Learner learner;
    const Stream micro = layers(100, 4, 5);
    const Stream optimizer = {900, 901, 902, 901, 902, 901, 902};
    const Stream iteration = times(4, micro) + optimizer;
    feed(learner, times(2, iteration));
    const auto third = feed(learner, iteration);
    const LoopId loop = third.back().loop;
    ASSERT_NE(loop, kNoLoop);
    EXPECT_EQ(learner.period(loop), iteration.size());
    const auto later = feed(learner, times(5, iteration));
    EXPECT_EQ(count_on_loop(later), later.size());
    EXPECT_EQ(count_locked(later), 0U);
}

TEST(Learner, TakesTheLoopUpAgainAfterAnEvaluationPass) {
    Learner learner;
    const Stream train = layers(100, 10, 6);
    feed(learner, times(3, train));
    std::mt19937 random(7);
    LoopId loop = feed(learner, train).back().loop;
    for (int round = 0; round < 5; ++round) {
        Stream evaluation{500};
        for (unsigned i = 0; i < 20 + random() % 30; ++i)
            evaluation.emplace_back(600 + random() % 50);
        const auto away = feed(learner, evaluation);
        EXPECT_TRUE(away.front().lost);
        EXPECT_EQ(count_on_loop(away), 0U);
        const auto back = feed(learner, times(2, train));
        EXPECT_TRUE(back.front().entered);
        EXPECT_EQ(back.front().loop, loop);
        EXPECT_EQ(back.front().phase, 0U);
        EXPECT_EQ(count_on_loop(back), back.size());
        EXPECT_EQ(count_locked(back), 0U);
    }
}

TEST(Learner, SurvivesAPrefixOfVaryingLength) {
    Learner learner;
    const Stream body = layers(100, 8, 6);
    std::mt19937 random(3);
    std::size_t on_loop = 0;
    std::size_t all = 0;
    feed(learner, times(2, body));
    for (int i = 0; i < 20; ++i) {
        feed(learner, Stream(1 + random() % 9, Op(77)));
        const auto steps = feed(learner, body);
        on_loop += count_on_loop(steps);
        all += steps.size();
    }
    EXPECT_GE(on_loop * 10, all * 9);
}

TEST(Learner, DoesNotTakeALayerForAnIteration) {
    Learner learner;
    const auto steps = feed(learner, layers(100, 200, 7));
    EXPECT_EQ(count_locked(steps), 0U);
}

TEST(Learner, DoesNotTakeOperationsThatNameNoBlockForAnIteration) {
    Learner learner;
    const auto update = [&] { return learner.observe(7, {}).locked; };
    for (int i = 0; i < 1000; ++i) EXPECT_FALSE(update());
    // Around them there is one, of which nothing outlives its iteration.
    std::size_t locked = 0;
    std::uint64_t block = 1;
    for (int round = 0; round < 3; ++round) {
        for (std::uint64_t op = 0; op < 100; ++op, ++block) {
            const cost::TracedOperand operand{block, 4096, true, true};
            locked += learner.observe(100 + op, {&operand, 1}).locked;
            learner.note_free(block);
        }
        for (int i = 0; i < 80; ++i) update();
    }
    EXPECT_EQ(locked, 1U);
}

TEST(Learner, ComparesOnlyFirstOperandsWhereTheirNumbersDiffer) {
    // Where parts of a buffer end was not known in the first iteration.
    Learner learner;
    bool locked = false;
    for (int iteration = 0; iteration < 2; ++iteration) {
        for (std::uint64_t op = 0; op < 100; ++op) {
            const std::uint64_t first = 1000 * (op + 1);
            const cost::TracedOperand operands[] = {{first, 4096, true, true},
                                                    {first + 1, 4096, true, true},
                                                    {first + 2, 4096, true, true},
                                                    {first + 10, 4096, true, true},
                                                    {first + 11, 4096, true, true}};
            const cost::TracedOperand later[] = {operands[0], operands[3], operands[4]};
            const auto named = iteration == 0 ? std::span<const cost::TracedOperand>(operands)
                                              : std::span<const cost::TracedOperand>(later);
            locked |= learner.observe(op, named).locked;
        }
    }
    EXPECT_TRUE(locked);
}

TEST(Learner, FindsTheIterationAroundShortRepetitions) {
    Learner learner;
    Stream iteration;
    for (std::uint64_t layer = 0; layer < 12; ++layer) {
        for (int tap = 0; tap < 9; ++tap) iteration.emplace_back(50, layer + 1);
        iteration.emplace_back(60 + layer % 3, 100 + layer);
    }
    // Its kinds of operations repeat every three layers, so only the blocks tell how long it is,
    // and a multiple of three layers is looked at a few operations late.
    EXPECT_LE(count_locked(feed(learner, times(2, iteration) +
                                             Stream(iteration.begin(), iteration.begin() + 30))),
              1U);
    const auto steps =
        feed(learner, Stream(iteration.begin() + 30, iteration.end()) + times(4, iteration));
    EXPECT_EQ(count_on_loop(steps), steps.size());
    EXPECT_EQ(count_locked(steps), 0U);
    EXPECT_EQ(learner.period(steps.back().loop), iteration.size());
}

TEST(Learner, DoesNotFindALoopInNoise) {
    Learner learner;
    std::mt19937_64 random(11);
    Stream noise(5000, Op(0));
    for (Op& op : noise) op = Op(random());
    EXPECT_EQ(count_locked(feed(learner, noise)), 0U);
}

TEST(Learner, KeepsGoingThroughSingleOddOperations) {
    Learner learner;
    const Stream iteration = layers(100, 12, 7);
    feed(learner, times(3, iteration));
    Stream odd = iteration;
    odd.insert(odd.begin() + 40, 31337);
    const auto steps = feed(learner, odd + iteration);
    EXPECT_EQ(count_locked(steps), 0U);
    EXPECT_EQ(steps.back().phase, iteration.size() - 1);
    EXPECT_GT(count_on_loop(steps), iteration.size() + 40);
}

TEST(Learner, SnapshotHoldsTwoIterationsFromPhaseZero) {
    Learner learner;
    std::uint64_t block = 1000;
    Step step;
    for (int iteration = 0; iteration < 20; ++iteration) {
        const std::uint64_t activation = ++block;
        for (std::uint64_t op = 0; op < 4; ++op) {
            const cost::TracedOperand operands[] = {{1, 4096, true, false},
                                                    {activation, 8192, true, true}};
            step = learner.observe(50 + op, operands);
            learner.set_duration(step.serial, 10.0 * static_cast<double>(op + 1), op == 2 ? 3 : -1);
        }
        learner.note_free(activation);
    }
    cost::Trace trace;
    ASSERT_TRUE(learner.snapshot(trace));
    ASSERT_EQ(trace.ops.size(), 8U);
    EXPECT_EQ(trace.ops[0].signature, 50U);
    EXPECT_EQ(trace.ops[7].duration_us, 40.0);
    EXPECT_EQ(trace.ops[6].late_us, 3.0);
    EXPECT_LT(trace.ops[7].late_us, 0);
    ASSERT_EQ(trace.operands_of(7).size(), 2U);
    EXPECT_EQ(trace.operands_of(7)[1].block, 1020U);
    EXPECT_EQ(trace.operands_of(0)[1].block, 1019U);
    ASSERT_EQ(trace.frees_of(3).size(), 1U);
    EXPECT_EQ(trace.frees_of(3)[0], 1019U);
    const cost::Iteration it = cost::build_iteration(trace, 4);
    ASSERT_EQ(it.workload.tensors().size(), 2U);
    EXPECT_EQ(it.workload.peak_bytes(), 4096U + 8192U);
}

/// Iterations of which each `every`-th has `frees` blocks freed behind it.
std::vector<Step> feed_cycles(Learner& learner, const Stream& iteration, int iterations, int every,
                              std::uint64_t frees) {
    std::vector<Step> steps;
    for (int i = 1; i <= iterations; ++i) {
        for (const Step& step : feed(learner, iteration)) steps.push_back(step);
        for (std::uint64_t f = 0; i % every == 0 && f < frees; ++f) learner.note_free(7000 + f);
    }
    return steps;
}

TEST(Learner, IterationsAfterWhoseLastOneAllIsFreedAreOne) {
    Learner learner;
    const Stream iteration = layers(100, 12, 7);
    const auto steps = feed_cycles(learner, iteration, 15, 3, 20);
    EXPECT_EQ(count_locked(steps), 2U);
    EXPECT_EQ(learner.period(steps.back().loop), 3 * iteration.size());
    for (std::size_t i = 12 * iteration.size(); i < steps.size(); ++i)
        EXPECT_EQ(steps[i].phase, i % (3 * iteration.size()));
    cost::Trace trace;
    ASSERT_TRUE(learner.snapshot(trace));
    EXPECT_EQ(trace.ops.size(), 6 * iteration.size());
}

TEST(Learner, IterationsAreThemselvesWhereAllFreeTheSameOrNoneLikeAnother) {
    const Stream iteration = layers(100, 12, 7);
    Learner same;
    EXPECT_EQ(count_locked(feed_cycles(same, iteration, 15, 1, 20)), 1U);
    Learner other;
    std::uint64_t frees = 0;
    std::size_t locked = 0;
    for (int i = 0; i < 15; ++i)
        locked += count_locked(feed_cycles(other, iteration, 1, 1, ++frees));
    EXPECT_EQ(locked, 1U);
}

TEST(Learner, ACycleIsTheSameLoopAgainAfterSomethingElse) {
    Learner learner;
    const Stream iteration = layers(100, 12, 7);
    const LoopId cycle = feed_cycles(learner, iteration, 15, 3, 20).back().loop;
    feed(learner, layers(500, 3, 9));
    const auto again = feed_cycles(learner, iteration, 15, 3, 20);
    EXPECT_EQ(count_locked(again), 0U);
    EXPECT_EQ(learner.period(again[2 * iteration.size()].loop), iteration.size());
    EXPECT_EQ(again.back().loop, cycle);
}

TEST(Learner, ForgetsTheOldestLoopWhenThereAreTooMany) {
    Learner learner({.max_period = 256, .max_operands = 1024, .max_loops = 2});
    LoopId first = kNoLoop;
    for (std::uint64_t i = 0; i < 4; ++i) {
        const auto steps = feed(learner, times(3, layers(1000 * (i + 1), 8, 4)));
        ASSERT_NE(steps.back().loop, kNoLoop);
        if (i == 0) first = steps.back().loop;
    }
    EXPECT_EQ(learner.period(first), 0U);
}

TEST(Learner, ObserveAllocatesNothingAndIsQuick) {
    Learner learner;
    const Stream iteration = layers(100, 300, 16);
    const std::vector<cost::TracedOperand> operands(6, {1, 1 << 20, true, true});
    const std::size_t before = allocations;
    const auto begin = std::chrono::steady_clock::now();
    Step step;
    for (int round = 0; round < 20; ++round) {
        for (const Op& op : iteration) {
            step = learner.observe(op.signature, operands);
            learner.set_duration(step.serial, 1);
        }
        learner.observe(static_cast<std::uint64_t>(round) + 1'000'000, operands);
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(allocations, before);
    // Far above what it takes (about 100 ns): this is about orders of growth, not speed.
    EXPECT_LT(took.count() / (20.0 * static_cast<double>(iteration.size())), 5000.0);
}

TEST(Learner, TellsOperationsOfOneSignatureApartBySizes) {
    LearnerLimits limits;
    limits.max_period = 64;
    limits.max_operands = 64;
    Learner learner(limits);
    const auto observe = [&](std::vector<cost::TracedOperand> operands) {
        return learner.sized_signature_of(learner.observe(7, operands).serial);
    };
    const std::uint64_t small = observe({{1, 4096, true, false}, {2, 4096, false, true}});
    const std::uint64_t large = observe({{1, 8192, true, false}, {2, 4096, false, true}});
    const std::uint64_t other = observe({{1, 4096, true, false}, {2, 8192, false, true}});
    EXPECT_NE(small, large);
    EXPECT_NE(large, other);
    EXPECT_EQ(observe({{9, 4096, true, true}, {8, 4096, true, false}}), small);  // other blocks
    EXPECT_EQ(observe({}), 7U);
    // Sixty-four operands later the first ones are forgotten, and so are sizes, not the signature.
    for (int i = 0; i < 33; ++i) observe({{1, 4096, true, false}, {2, 4096, false, true}});
    EXPECT_EQ(learner.sized_signature_of(0), 7U);
    EXPECT_EQ(learner.sized_signature_of(1'000'000), 0U);
}

}  // namespace
}  // namespace libswap
