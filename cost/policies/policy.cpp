// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/policies/policy.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "cost/policies/capuchin.hpp"
#include "cost/policies/deepum.hpp"
#include "cost/policies/g10.hpp"
#include "cost/policies/rival.hpp"
#include "cost/policies/swap_advisor.hpp"
#include "cost/policies/tflms.hpp"
#include "cost/policies/vdnn.hpp"

namespace libswap::cost {

namespace {

constexpr std::array<std::pair<PolicyKind, std::string_view>, 9> kNames{{
    {PolicyKind::Libswap, "libswap"},
    {PolicyKind::Lru, "lru"},
    {PolicyKind::Belady, "belady"},
    {PolicyKind::Vdnn, "vdnn"},
    {PolicyKind::Tflms, "tflms"},
    {PolicyKind::Capuchin, "capuchin"},
    {PolicyKind::SwapAdvisor, "swapadvisor"},
    {PolicyKind::DeepUm, "deepum"},
    {PolicyKind::G10, "g10"},
}};

RivalResult rival_plan(PolicyKind kind, const RivalInput& input) {
    switch (kind) {
        case PolicyKind::Belady:
            return demand_paging(input, VictimOrder::FurthestNextUse);
        case PolicyKind::Vdnn:
            return vdnn_plan(input);
        case PolicyKind::Tflms:
            return tflms_plan(input);
        case PolicyKind::Capuchin:
            return capuchin_plan(input);
        case PolicyKind::SwapAdvisor:
            return swap_advisor_plan(input);
        case PolicyKind::DeepUm:
            return deepum_plan(input);
        case PolicyKind::G10:
            return g10_plan(input);
        case PolicyKind::Libswap:
        case PolicyKind::Lru:
            break;
    }
    return demand_paging(input, VictimOrder::LeastRecentlyUsed);
}

}  // namespace

std::span<const PolicyKind> all_policies() {
    static constexpr auto kAll = [] {
        std::array<PolicyKind, kNames.size()> kinds{};
        for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = kNames[i].first;
        return kinds;
    }();
    return kAll;
}

std::string_view policy_name(PolicyKind kind) {
    for (const auto& [k, name] : kNames) {
        if (k == kind) return name;
    }
    return "?";
}

std::optional<PolicyKind> find_policy(std::string_view name) {
    for (const auto& [kind, n] : kNames) {
        if (n == name) return kind;
    }
    return std::nullopt;
}

tl::expected<PolicyResult, PlanError> make_policy_plan(PolicyKind kind, const Workload& workload,
                                                       const Machine& machine,
                                                       const PlanRequest& request) {
    if (kind == PolicyKind::Libswap || workload.op_count() == 0) {
        auto planned = make_plan(workload, machine, request);
        if (!planned) return tl::unexpected(std::move(planned.error()));
        return PolicyResult{std::move(*planned), ""};
    }
    const UseTable table(workload);
    auto rival = rival_plan(kind, {table, machine, request.budget_bytes, request.whole_tensors});
    if (!rival) return tl::unexpected(std::move(rival.error()));
    const std::uint64_t host = rival->predicted.host_bytes;
    if (host > request.host_limit_bytes) {
        return tl::unexpected(
            PlanError{PlanError::Reason::HostTooSmall, 0, host,
                      fmt::format("{} would hold {} bytes on the host, its limit is {}",
                                  policy_name(kind), host, request.host_limit_bytes)});
    }
    PolicyResult result;
    result.note = std::move(rival->note);
    result.result.plan = std::move(rival->plan);
    result.result.predicted = std::move(rival->predicted);
    result.result.compute_us = workload.compute_us();
    result.result.peak_bytes = workload.peak_bytes();
    result.result.host_bytes = host;
    return result;
}

}  // namespace libswap::cost
