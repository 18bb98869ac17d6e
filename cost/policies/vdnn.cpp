// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/policies/vdnn.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace libswap::cost {

namespace {

bool contains_word(std::string_view name, std::string_view word) {
    const auto at =
        std::search(name.begin(), name.end(), word.begin(), word.end(),
                    [](unsigned char a, unsigned char b) { return std::tolower(a) == b; });
    return at != name.end();
}

/// Which operations stand for convolutions.
std::vector<bool> find_convolutions(const Workload& w) {
    std::vector<bool> found(w.op_count());
    bool any = false;
    for (std::size_t i = 0; i < w.op_count(); ++i) {
        found[i] = contains_word(w.name(i), "conv") && !contains_word(w.name(i), "apply");
        any = any || found[i];
    }
    if (any) return found;
    constexpr std::array<std::string_view, 6> kProducts{"linear", "matmul", "gemm",
                                                        "addmm",  "::mm",   "::bmm"};
    for (std::size_t i = 0; i < w.op_count(); ++i) {
        found[i] = std::any_of(kProducts.begin(), kProducts.end(),
                               [&](std::string_view p) { return contains_word(w.name(i), p); });
    }
    return found;
}

enum class Offload { Nothing, Convolutions, All };

class Vdnn {
  public:
    explicit Vdnn(const RivalInput& input)
        : in_(input),
          turn_(input.table.turning_point()),
          convolution_(find_convolutions(input.workload())) {}

    Advice advise(Offload what) const {
        Advice advice(in_.workload().op_count());
        if (what == Offload::Nothing) return advice;
        std::vector<std::vector<TensorIndex>> needed(in_.workload().op_count());
        for (TensorIndex t = 0; t < in_.workload().tensors().size(); ++t)
            offload(t, what, advice, needed);
        prefetch(needed, advice);
        return advice;
    }

  private:
    void offload(TensorIndex t, Offload what, Advice& advice,
                 std::vector<std::vector<TensorIndex>>& needed) const {
        if (in_.table.lives_across(t)) return;
        const auto uses = in_.table.uses(t);
        const auto back = std::find_if(uses.begin(), uses.end(),
                                       [&](const UseTable::At& u) { return u.op >= turn_; });
        if (back == uses.begin() || back == uses.end()) return;
        const auto last = back - 1;
        const bool by_convolution = std::any_of(uses.begin(), back, [&](const UseTable::At& u) {
            return u.read && convolution_[u.op];
        });
        if (what == Offload::Convolutions && !by_convolution) return;
        // Copied while its last forward user runs, where that is long enough to cover the copy.
        const bool covered =
            last->op > 0 && !last->write && back - uses.begin() > 1 &&
            in_.workload().op(last->op).duration_us > in_.copy_us(Direction::ToHost, t);
        if (covered) advice.copy_after[last->op - 1].push_back(t);
        advice.evict_after[last->op].push_back(t);
        needed[back->op].push_back(t);
    }

    /// Each backward operation fetches for the next one that misses something, up to the next
    /// convolution.
    void prefetch(const std::vector<std::vector<TensorIndex>>& needed, Advice& advice) const {
        std::vector<bool> fetched(needed.size());
        for (std::size_t k = turn_; k < needed.size(); ++k) {
            for (std::size_t m = k + 1; m < needed.size(); ++m) {
                if (!needed[m].empty() && !fetched[m]) {
                    fetched[m] = true;
                    advice.fetch_at[k] = needed[m];
                    break;
                }
                if (convolution_[m]) break;
            }
        }
    }

    const RivalInput& in_;
    OpIndex turn_;
    std::vector<bool> convolution_;
};

}  // namespace

RivalResult vdnn_plan(const RivalInput& input) {
    const Vdnn vdnn(input);
    const PagerOptions options{.evict_on_demand = false, .begin_resident = true};
    const std::pair<Offload, const char*> choices[] = {{Offload::Nothing, "nothing leaves"},
                                                       {Offload::Convolutions, "vDNN_conv"},
                                                       {Offload::All, "vDNN_all"}};
    for (const auto& [what, note] : choices) {
        auto result = run_advice(input, vdnn.advise(what), options, note);
        if (result) return result;
    }
    return fall_back(input, "weights and what one layer needs do not fit");
}

}  // namespace libswap::cost
