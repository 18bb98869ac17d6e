// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/calls.hpp"

#include "simgpu/driver/log.hpp"
#include "simgpu/driver/selector.hpp"

#include <cuda.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace simgpu::driver {

namespace {

struct FaultRule {
    /// Rows that the rule watches.
    std::span<const ApiRow> rows;
    Selector selector;
    int result;
    std::uint64_t uses = 0;
};

constexpr std::uint32_t kExiting = 1;
constexpr std::uint32_t kFaultsSet = 2;
constexpr std::uint32_t kForked = 4;

/// Anything but 0 sends calls the slow way.
std::atomic<std::uint32_t> g_attention{0};
std::array<std::atomic<std::uint64_t>, kApiCount> g_counts{};
std::array<std::atomic<bool>, kApiCount> g_said{};
std::mutex g_faults_mutex;

std::vector<FaultRule>& fault_rules() {
    static auto* rules =
        new std::vector<FaultRule>;  // leaked: calls may come after static destructors
    return *rules;
}

std::span<const ApiRow> rows_named(std::string_view name) {
    if (auto rows = rows_of_base(name); !rows.empty()) return rows;
    for (const ApiRow& row : api_rows()) {
        if (row.symbol == name) return {&row, 1};
    }
    return {};
}

int fault_of(const ApiRow& row) {
    std::lock_guard lock(g_faults_mutex);
    int result = CUDA_SUCCESS;
    for (FaultRule& rule : fault_rules()) {
        if (&row < rule.rows.data() || &row >= rule.rows.data() + rule.rows.size()) continue;
        if (rule.selector.hits(++rule.uses) && result == CUDA_SUCCESS) result = rule.result;
    }
    return result;
}

int enter_with_attention(Api api, std::uint32_t attention) noexcept {
    if ((attention & kExiting) != 0) return CUDA_ERROR_DEINITIALIZED;
    if ((attention & kForked) != 0) return CUDA_ERROR_NOT_INITIALIZED;
    return fault_of(api_rows()[static_cast<std::size_t>(api)]);
}

}  // namespace

int enter(Api api) noexcept {
    g_counts[static_cast<std::size_t>(api)].fetch_add(1, std::memory_order_relaxed);
    std::uint32_t attention = g_attention.load(std::memory_order_relaxed);
    return attention == 0 ? static_cast<int>(CUDA_SUCCESS) : enter_with_attention(api, attention);
}

int unbuilt(Api api) noexcept {
    if (int result = enter(api); result != CUDA_SUCCESS) return result;
    const ApiRow& row = api_rows()[static_cast<std::size_t>(api)];
    if (!g_said[static_cast<std::size_t>(api)].exchange(true)) {
        say("{} is not built, returning CUDA_ERROR_NOT_SUPPORTED", row.symbol);
    }
    const char* strict = std::getenv("SIMGPU_STRICT");
    if (strict != nullptr && strict[0] == '1') std::abort();
    return CUDA_ERROR_NOT_SUPPORTED;
}

bool set_faults(std::string_view spec) {
    auto texts = parse_rules(spec);
    if (!texts) return false;
    std::vector<FaultRule> added;
    for (const RuleText& text : *texts) {
        int result = 0;
        auto [end, error] =
            std::from_chars(text.value.data(), text.value.data() + text.value.size(), result);
        auto rows = rows_named(text.name);
        if (error != std::errc{} || end != text.value.data() + text.value.size() || rows.empty())
            return false;
        added.push_back({rows, text.selector, result});
    }
    std::lock_guard lock(g_faults_mutex);
    if (spec.empty()) fault_rules().clear();
    fault_rules().insert(fault_rules().end(), added.begin(), added.end());
    if (fault_rules().empty()) {
        g_attention.fetch_and(~kFaultsSet);
    } else {
        g_attention.fetch_or(kFaultsSet);
    }
    return true;
}

std::uint64_t call_count(std::string_view name) {
    std::uint64_t count = 0;
    for (const ApiRow& row : rows_named(name)) {
        count += g_counts[static_cast<std::size_t>(&row - api_rows().data())].load(
            std::memory_order_relaxed);
    }
    return count;
}

void reset_counts() {
    for (auto& count : g_counts) count.store(0, std::memory_order_relaxed);
}

void deinitialise() noexcept { g_attention.fetch_or(kExiting); }

void refuse_after_fork() noexcept { g_attention.fetch_or(kForked); }

bool forked() noexcept { return (g_attention.load() & kForked) != 0; }

std::string describe_counts() {
    std::vector<std::pair<std::uint64_t, std::string_view>> used;
    for (std::size_t i = 0; i < kApiCount; ++i) {
        if (auto count = g_counts[i].load(std::memory_order_relaxed); count != 0)
            used.emplace_back(count, api_rows()[i].symbol);
    }
    std::sort(used.begin(), used.end(), [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    std::string text;
    for (const auto& [count, symbol] : used)
        text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", symbol, count);
    return text;
}

}  // namespace simgpu::driver
