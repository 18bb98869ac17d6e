// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/hierarchy/hierarchy.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "tests/microbench/model_prober.hpp"

namespace libswap::bench {
namespace {

using simgpu::CacheLevel;
using simgpu::CacheProfile;
using simgpu::Replacement;
using simgpu::SetIndex;
using simgpu::TlbLevel;

constexpr std::uint64_t kKib = 1024;
constexpr std::uint64_t kMib = 1024 * 1024;

template <typename T, std::size_t N>
T one_of(std::mt19937& random, const T (&values)[N]) {
    return values[std::uniform_int_distribution<std::size_t>(0, N - 1)(random)];
}

enum class Kind { Lru, PseudoLru, Random, Hashed };

void set_kind(simgpu::CacheShape& shape, Kind kind) {
    shape.replacement = kind == Kind::PseudoLru ? Replacement::PseudoLru
                        : kind == Kind::Random  ? Replacement::Random
                                                : Replacement::Lru;
    shape.index = kind == Kind::Hashed ? SetIndex::Hashed : SetIndex::Modulo;
}

Policy expected_policy(const simgpu::CacheShape& shape) {
    if (shape.ways == 1) return Policy::DirectMapped;
    switch (shape.replacement) {
        case Replacement::PseudoLru:
            return shape.ways == 2 ? Policy::Lru : Policy::PseudoLru;  // the same for two
        case Replacement::Random:
            return Policy::Random;
        case Replacement::Fifo:
            return Policy::Fifo;
        case Replacement::Lru:
            break;
    }
    return Policy::Lru;
}

/// A made-up device: sizes, ways and latencies as devices have them, or might.
CacheProfile random_profile(std::uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> part(0, 1);
    const auto kind = static_cast<Kind>(seed % 4);
    CacheProfile profile;
    profile.noise = 0.05;
    profile.seed = seed;
    CacheLevel l1;
    l1.name = "L1";
    l1.per_sm = true;
    l1.is_virtual = part(random) < 0.5;
    l1.shape.line_bytes = one_of<std::uint64_t>(random, {32, 64, 128, 128});
    l1.sector_bytes = part(random) < 0.3 ? 32 : l1.shape.line_bytes;
    l1.shape.ways = one_of<std::uint32_t>(random, {2, 3, 4, 4, 6, 8, 16, 24});
    const std::uint32_t odd =
        kind == Kind::Hashed ? 1 : one_of<std::uint32_t>(random, {1, 1, 1, 3, 5});
    l1.shape.sets = odd * one_of<std::uint32_t>(random, {8, 16, 32});
    l1.latency_cycles = 20 + 30 * part(random);
    set_kind(l1.shape, kind);
    CacheLevel l2 = l1;
    l2.name = "L2";
    l2.per_sm = l2.is_virtual = false;
    l2.shape.line_bytes = one_of<std::uint64_t>(random, {32, 64, 128, 128});
    l2.sector_bytes = part(random) < 0.3 ? 32 : l2.shape.line_bytes;
    l2.shape.ways = one_of<std::uint32_t>(random, {4, 8, 10, 16, 16, 20, 32});
    const std::uint64_t l1_bytes =
        std::uint64_t{l1.shape.sets} * l1.shape.ways * l1.shape.line_bytes;
    l2.shape.sets = odd * 32;
    while (std::uint64_t{l2.shape.sets} * l2.shape.ways * l2.shape.line_bytes <
           std::max(4 * l1_bytes, 256 * kKib))
        l2.shape.sets *= 2;
    l2.latency_cycles = l1.latency_cycles * (3 + 4 * part(random));
    set_kind(l2.shape, kind);
    profile.caches = {l1, l2};
    profile.memory_latency_cycles = l2.latency_cycles * (1.5 + 1.5 * part(random));
    TlbLevel tlb;
    tlb.shape.line_bytes = one_of<std::uint64_t>(random, {2 * kMib, 2 * kMib, 64 * kKib});
    tlb.shape.ways = one_of<std::uint32_t>(random, {8, 16, 32});
    tlb.shape.sets = tlb.shape.line_bytes < kMib ? 2 : 1;
    tlb.miss_cycles = l2.latency_cycles * (0.3 + 0.5 * part(random));
    profile.tlbs = {tlb};
    return profile;
}

Replacement any_replacement(std::mt19937& random) {
    return one_of<Replacement>(
        random, {Replacement::Lru, Replacement::PseudoLru, Replacement::Random, Replacement::Fifo});
}

/// Lines up to 256 bytes, any number of ways and sets; each cache with a replacement and an index
/// of its own, which may be a tree behind a hash.
simgpu::CacheShape odd_shape(std::mt19937& random, const std::vector<std::uint32_t>& ways,
                             const std::vector<std::uint32_t>& sets) {
    simgpu::CacheShape shape;
    shape.line_bytes = one_of<std::uint64_t>(random, {32, 64, 128, 256});
    shape.ways = ways[random() % ways.size()];
    shape.sets = sets[random() % sets.size()];
    shape.replacement = any_replacement(random);
    if (random() % 3 == 0) {
        shape.index = SetIndex::Hashed;
        shape.sets = std::bit_ceil(shape.sets);
    }
    return shape;
}

void grow_to(simgpu::CacheShape& shape, std::uint64_t least_bytes) {
    while (std::uint64_t{shape.sets} * shape.ways * shape.line_bytes < least_bytes) shape.sets *= 2;
}

/// A made-up device as no device is.
CacheProfile odd_profile(std::uint32_t seed) {
    std::mt19937 random(7919 * seed + 13);
    std::uniform_real_distribution<double> part(0, 1);
    CacheProfile profile;
    profile.noise = 0.05;
    profile.seed = seed;
    CacheLevel l1;
    l1.name = "L1";
    l1.per_sm = true;
    l1.is_virtual = part(random) < 0.5;
    l1.shape = odd_shape(random, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 32, 48},
                         {1, 3, 4, 6, 7, 8, 12, 16, 20, 24, 31, 32, 48, 56, 64, 96});
    grow_to(l1.shape, 4 * kKib);
    l1.sector_bytes = part(random) < 0.3 ? 32 : l1.shape.line_bytes;
    l1.latency_cycles = 18 + 25 * part(random);
    CacheLevel l2;
    l2.name = "L2";
    l2.shape = odd_shape(random, {4, 5, 6, 7, 8, 11, 12, 16, 18, 24, 32, 48, 64},
                         {16, 24, 40, 48, 56, 80, 96, 112, 33, 100});
    profile.caches = {l1};
    grow_to(l2.shape, std::max(4 * profile.cache_bytes(0), 192 * kKib));
    l2.sector_bytes = part(random) < 0.3 ? 32 : l2.shape.line_bytes;
    l2.latency_cycles = l1.latency_cycles * (2.5 + 5 * part(random));
    profile.caches = {l1, l2};
    profile.memory_latency_cycles = l2.latency_cycles * (1.4 + 1.8 * part(random));
    TlbLevel tlb;
    tlb.shape.line_bytes = one_of<std::uint64_t>(random, {2 * kMib, kMib, 128 * kKib, 64 * kKib});
    tlb.shape.ways = one_of<std::uint32_t>(random, {4, 8, 12, 16, 32});
    tlb.shape.sets = tlb.shape.line_bytes < kMib ? one_of<std::uint32_t>(random, {1, 2, 4}) : 1;
    tlb.shape.replacement = one_of<Replacement>(
        random, {Replacement::Lru, Replacement::PseudoLru, Replacement::Random});
    tlb.miss_cycles = l2.latency_cycles * (0.35 + 0.6 * part(random));
    profile.tlbs = {tlb};
    return profile;
}

struct Score {
    int caches = 0, exact = 0, latencies = 0, policies = 0, kinds = 0;
};

void judge(const CacheProfile& profile, const Hierarchy& found, Score& score) {
    for (std::size_t k = 0; k < profile.caches.size(); ++k) {
        const CacheLevel& truth = profile.caches[k];
        ++score.caches;
        const FoundCache* cache = nullptr;
        for (const FoundCache& c : found.caches) {
            if (c.name == truth.name) cache = &c;
        }
        const std::uint64_t bytes = profile.cache_bytes(k);
        if (cache == nullptr) {
            std::printf("seed %d: %s not found\n", static_cast<int>(profile.seed),
                        truth.name.c_str());
            continue;
        }
        const Geometry& g = cache->geometry;
        const bool exact = g.bytes == bytes && g.line_bytes == truth.shape.line_bytes &&
                           g.ways == truth.shape.ways;
        const bool latency = std::abs(cache->latency.cycles / truth.latency_cycles - 1) <= 0.03;
        const bool policy = g.policy.policy == expected_policy(truth.shape);
        const bool kind = g.hashed == (truth.shape.index == SetIndex::Hashed);
        score.exact += exact ? 1 : 0;
        score.latencies += latency ? 1 : 0;
        score.policies += policy ? 1 : 0;
        score.kinds += kind ? 1 : 0;
        if (exact && latency && policy && kind) continue;
        std::printf(
            "seed %d %s: %llu bytes, line %llu, sector %llu, %u ways, %u sets, policy %d, index "
            "%d, %.1f cycles\n"
            "   found   %llu bytes, line %llu, sector %llu, %u ways, %s, hashed %d, %.1f cycles "
            "(%zu evictions)\n",
            static_cast<int>(profile.seed), truth.name.c_str(),
            static_cast<unsigned long long>(bytes),
            static_cast<unsigned long long>(truth.shape.line_bytes),
            static_cast<unsigned long long>(truth.sector_bytes), truth.shape.ways, truth.shape.sets,
            static_cast<int>(truth.shape.replacement), static_cast<int>(truth.shape.index),
            truth.latency_cycles, static_cast<unsigned long long>(g.bytes),
            static_cast<unsigned long long>(g.line_bytes),
            static_cast<unsigned long long>(g.fill_bytes), g.ways, policy_name(g.policy.policy),
            g.hashed ? 1 : 0, cache->latency.cycles, g.policy.evictions);
    }
}

/// Other devices than those of every run: LIBSWAP_TEST_SEED=31 LIBSWAP_TEST_DEVICES=100.
std::uint32_t from_environment(const char* name, std::uint32_t otherwise) {
    const char* text = std::getenv(name);
    return text != nullptr ? static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10))
                           : otherwise;
}

void check_devices(CacheProfile (*profile_of)(std::uint32_t), std::uint32_t devices) {
    Score score;
    int translations = 0;
    int memories = 0;
    devices = from_environment("LIBSWAP_TEST_DEVICES", devices);
    const std::uint32_t first = from_environment("LIBSWAP_TEST_SEED", 1);
    std::uint64_t loads = 0;
    for (std::uint32_t seed = first; seed < first + devices; ++seed) {
        const CacheProfile profile = profile_of(seed);
        const std::uint64_t circle = std::bit_ceil(16 * profile.cache_bytes(1));
        ModelProber prober(profile, std::max(512 * kMib, circle));
        const Hierarchy found = analyse_hierarchy(prober, circle);
        judge(profile, found, score);
        loads += prober.loads();
        const bool memory =
            std::abs(found.memory_cycles / profile.memory_latency_cycles - 1) <= 0.03;
        memories += memory ? 1 : 0;
        if (!memory)
            std::printf("seed %u: memory %.1f, found %.1f\n", seed, profile.memory_latency_cycles,
                        found.memory_cycles);
        const TlbLevel& tlb = profile.tlbs[0];
        const bool translation = !found.translations.empty() &&
                                 found.translations[0].page_bytes == tlb.shape.line_bytes &&
                                 found.translations[0].entries == tlb.shape.sets * tlb.shape.ways;
        translations += translation ? 1 : 0;
        if (!translation && !found.translations.empty())
            std::printf("seed %u: TLB %u entries of %llu, found %u of %llu\n", seed,
                        tlb.shape.sets * tlb.shape.ways,
                        static_cast<unsigned long long>(tlb.shape.line_bytes),
                        found.translations[0].entries,
                        static_cast<unsigned long long>(found.translations[0].page_bytes));
        else if (!translation)
            std::printf("seed %u: no TLB found\n", seed);
    }
    std::printf(
        "of %d caches: %d exact, %d latencies, %d policies, %d indices; of %u devices: %d "
        "memories, %d TLBs; %.1f M loads\n",
        score.caches, score.exact, score.latencies, score.policies, score.kinds, devices, memories,
        translations, static_cast<double>(loads) * 1e-6);
    EXPECT_GE(score.exact, 0.95 * score.caches);
    EXPECT_EQ(score.latencies, score.caches);
    EXPECT_GE(score.policies, 0.9 * score.caches);
    EXPECT_GE(score.kinds, 0.9 * score.caches);
    EXPECT_GE(memories, 0.95 * devices);
    EXPECT_GE(translations, 0.9 * devices);
}

TEST(Hierarchy, IsRecoveredFromNoisyLatenciesOfMadeUpDevices) { check_devices(random_profile, 30); }

TEST(Hierarchy, IsRecoveredFromDevicesAsNoneIs) { check_devices(odd_profile, 12); }

}  // namespace
}  // namespace libswap::bench
