// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "runtime/plan_executor.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "cost/next_use.hpp"

namespace libswap {

namespace {

bool is_fetch(const cost::Action& a) { return a.kind == cost::ActionKind::In; }

/// Operations from `from` on to `to`, going round.
std::uint32_t steps(std::uint32_t from, std::uint32_t to, std::uint32_t period) {
    return to >= from ? to - from : to + period - from;
}

/// Per action, how many operations before its own a fetch may be handed out: not before the
/// eviction it answers, as the tensor may be another block until then.
std::vector<std::uint32_t> room_ahead(const cost::Plan& plan, std::uint32_t period,
                                      std::size_t tensors) {
    std::vector<std::uint32_t> order(plan.actions.size());
    std::iota(order.begin(), order.end(), 0U);
    // A fetch at an operation comes before what follows that operation.
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        const cost::Action& x = plan.actions[a];
        const cost::Action& y = plan.actions[b];
        return x.op != y.op ? x.op < y.op : is_fetch(x) && !is_fetch(y);
    });
    std::vector<std::uint32_t> room(plan.actions.size(), 0);
    std::vector<std::int64_t> left_at(tensors, -1);
    for (int round = 0; round < 2; ++round) {
        for (const std::uint32_t i : order) {
            const cost::Action& a = plan.actions[i];
            if (!is_fetch(a)) {
                left_at[a.tensor] = a.op;
            } else if (left_at[a.tensor] >= 0) {
                const auto left = static_cast<std::uint32_t>(left_at[a.tensor]);
                // Evicted after the operation that it comes back for: a whole turn ago.
                room[i] = left == a.op ? period : steps(left, a.op, period);
            }
        }
    }
    return room;
}

/// That the plan can be executed, and is for this loop.
tl::expected<void, std::string> check(const cost::Workload& workload, std::size_t period,
                                      const cost::Plan& plan) {
    if (period == 0 || workload.op_count() != period) {
        return tl::unexpected(fmt::format("the plan is for {} operations, the loop has {}",
                                          workload.op_count(), period));
    }
    for (const cost::Action& a : plan.actions) {
        if (a.op >= period || a.tensor >= workload.tensors().size()) {
            return tl::unexpected(std::string("the plan names an unknown operation or tensor"));
        }
        if (a.bytes != cost::kWholeTensor && a.bytes != workload.tensors()[a.tensor].bytes) {
            return tl::unexpected(std::string("the plan moves a part of a block"));
        }
    }
    return {};
}

SwapCommand::Kind command_of(cost::ActionKind kind) {
    switch (kind) {
        case cost::ActionKind::Copy:
            return SwapCommand::Kind::Copy;
        case cost::ActionKind::In:
            return SwapCommand::Kind::Fetch;
        case cost::ActionKind::Out:
        case cost::ActionKind::Drop:
            break;
    }
    return SwapCommand::Kind::Evict;
}

}  // namespace

std::span<const PlanExecutor::Due> PlanExecutor::Schedule::at(std::uint32_t op) const {
    const std::uint32_t begin = op == 0 ? 0 : ends[op - 1];
    return {due.data() + begin, ends[op] - begin};
}

PlanExecutor::Schedule PlanExecutor::bucket(std::uint32_t period,
                                            std::vector<std::pair<std::uint32_t, Due>> entries) {
    std::stable_sort(entries.begin(), entries.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    Schedule schedule;
    schedule.ends.assign(period, 0);
    for (const auto& [op, due] : entries) {
        ++schedule.ends[op];
        schedule.due.push_back(due);
    }
    std::partial_sum(schedule.ends.begin(), schedule.ends.end(), schedule.ends.begin());
    return schedule;
}

/// All of a plan as it takes effect: what is due at an operation, then what follows it.
std::vector<PlanExecutor::Due> PlanExecutor::sorted(
    std::span<const std::pair<std::uint32_t, Due>> fetches,
    std::span<const std::pair<std::uint32_t, Due>> evictions) {
    std::vector<Due> all;
    all.reserve(fetches.size() + evictions.size());
    for (const auto& [op, due] : fetches) all.push_back(due);
    for (const auto& [op, due] : evictions) all.push_back(due);
    std::stable_sort(all.begin(), all.end(),
                     [](const Due& a, const Due& b) { return a.due_op < b.due_op; });
    return all;
}

tl::expected<void, std::string> PlanExecutor::install(LoopId loop, std::size_t period,
                                                      cost::Iteration iteration,
                                                      const cost::Plan& plan,
                                                      std::span<const cost::OpIndex> claims) {
    if (auto fits = check(iteration.workload, period, plan); !fits) return fits;
    const std::size_t tensors = iteration.workload.tensors().size();
    const auto ops = static_cast<std::uint32_t>(period);
    auto installed = std::make_unique<Installed>();
    installed->loop = loop;
    installed->period = ops;
    const std::vector<std::uint32_t> room = room_ahead(plan, ops, tensors);
    const cost::NextUse next_use(iteration.workload);
    std::vector<std::pair<std::uint32_t, Due>> fetches;
    std::vector<std::pair<std::uint32_t, Due>> evictions;
    for (std::size_t i = 0; i < plan.actions.size(); ++i) {
        const cost::Action& a = plan.actions[i];
        Due due{command_of(a.kind), a.tensor, a.op, 0, static_cast<std::uint32_t>(i), kNoClaim, 0};
        if (!is_fetch(a)) {
            evictions.emplace_back(a.op, due);
            continue;
        }
        const std::uint32_t ahead =
            std::min({options.hand_out_ahead + options.lead_ops, room[i], ops - 1});
        due.lead = std::min(options.lead_ops, ahead);
        const cost::OpIndex used_at = next_use.of(a.tensor, a.op);
        if (used_at != cost::kNoOperation) due.use = steps(a.op, used_at, ops);
        if (i < claims.size() && claims[i] < ops) due.claim = steps(a.op, claims[i], ops);
        installed->has_claims |= due.claim != kNoClaim;
        fetches.emplace_back((a.op + ops - ahead) % ops, due);
    }
    installed->ahead = options.hand_out_ahead + options.lead_ops;
    installed->in_order = sorted(fetches, evictions);
    installed->fetches = bucket(ops, std::move(fetches));
    installed->evictions = bucket(ops, std::move(evictions));
    installed->live = iteration.blocks;
    installed->lead = HostLead(iteration.workload);
    installed->absent.resize(tensors);
    installed->iteration = std::move(iteration);
    clear(loop);
    if (plans_.size() == kMaxPlans) {
        if (current_ == plans_.front().get()) drop();
        plans_.erase(plans_.begin());
    }
    // One step gives out at most what is due, and once after a break an eviction of each tensor and
    // the fetches of the operations ahead.
    commands_.reserve(plan.actions.size() + tensors);
    plans_.push_back(std::move(installed));
    return {};
}

void PlanExecutor::clear(LoopId loop) {
    const auto found = std::find_if(plans_.begin(), plans_.end(),
                                    [loop](const auto& p) { return p->loop == loop; });
    if (found == plans_.end()) return;
    if (current_ == found->get()) drop();
    plans_.erase(found);
}

void PlanExecutor::clear() {
    drop();
    plans_.clear();
}

void PlanExecutor::drop() {
    if (current_ == nullptr) return;
    current_ = nullptr;
    near_serial_ = 0;
    wants_event_ = false;
    ++run_;
}

PlanExecutor::Installed* PlanExecutor::find(LoopId loop) {
    for (const auto& plan : plans_) {
        if (plan->loop == loop) return plan.get();
    }
    return nullptr;
}

std::span<const SwapCommand> PlanExecutor::step(const Step& step,
                                                std::span<const cost::TracedOperand> operands) {
    commands_.clear();
    if (step.lost && current_ != nullptr) {
        drop();
        ++dropped_;
    }
    const bool follows = current_ != nullptr && step.loop == current_->loop && !step.entered;
    if (!follows) {
        Installed* next = step.loop == kNoLoop ? nullptr : find(step.loop);
        if (next == nullptr) {
            drop();
            return {};
        }
        drop();
        current_ = next;
    }
    Installed& plan = *current_;
    const std::uint32_t origin = plan.iteration.origin;
    const std::uint32_t op = steps(origin, step.phase, plan.period);
    const auto slots = plan.iteration.slots_of(op);
    // Other numbers of operands, as of parts of a buffer that lie elsewhere now, do not lie side by
    // side.
    if (slots.size() == operands.size())
        for (std::size_t k = 0; k < slots.size(); ++k) plan.live[slots[k]] = operands[k].block;
    if (!follows) catch_up(step, op);
    for (const Due& due : plan.fetches.at(op)) {
        emit_fetch(due, step.serial + steps(op, due.due_op, plan.period));
    }
    for (const Due& due : plan.evictions.at(op)) emit(due, step.serial, op);
    note_lead(step, op);
    ++covered_ops_;
    return commands_;
}

void PlanExecutor::note_lead(const Step& step, std::uint32_t op) {
    const std::uint32_t near_ops = current_->lead.near_ops(op);
    near_serial_ = step.serial > near_ops ? step.serial - near_ops : 0;
    wants_event_ = current_->has_claims && current_->lead.wants_event(op);
}

/// The operation that must have completed for a fetch due before `serial` to begin.
std::uint64_t PlanExecutor::fetch_after(std::uint64_t serial, std::uint32_t lead) {
    return serial > lead ? serial - 1 - lead : 0;
}

void PlanExecutor::emit(const Due& due, std::uint64_t after_serial, std::uint32_t op,
                        std::uint64_t claim_serial, std::uint64_t use_serial) {
    const std::uint64_t block = current_->live[due.tensor];
    if (block == 0) return;
    commands_.push_back(
        {due.kind, run_, block, after_serial, op, due.rank, claim_serial, use_serial});
}

/// `serial`: of the operation that it is due before.
void PlanExecutor::emit_fetch(const Due& due, std::uint64_t serial) {
    const std::uint64_t claim = due.claim == kNoClaim ? SwapCommand::kNoClaim : serial + due.claim;
    emit(due, fetch_after(serial, due.lead), due.due_op, claim, serial + due.use);
}

/// Evicts what the plan has absent before this operation, and gives out the fetches that would have
/// been by now, for operations still to come.
void PlanExecutor::catch_up(const Step& step, std::uint32_t op) {
    Installed& plan = *current_;
    const std::vector<Due>& all = plan.in_order;
    // The state before `op` is what the evictions after it, one iteration ago, and all since left.
    const auto next = std::partition_point(all.begin(), all.end(), [op](const Due& due) {
        return due.due_op < op || (due.due_op == op && due.kind == SwapCommand::Kind::Fetch);
    });
    std::fill(plan.absent.begin(), plan.absent.end(), std::uint8_t{0});
    const auto mark = [&plan](const Due& due) {
        if (due.kind == SwapCommand::Kind::Copy) return;
        plan.absent[due.tensor] = due.kind == SwapCommand::Kind::Evict;
    };
    std::for_each(next, all.end(), mark);
    std::for_each(all.begin(), next, mark);
    for (const cost::TensorIndex t : plan.iteration.slots_of(op)) plan.absent[t] = 0;
    const std::uint64_t before = step.serial == 0 ? 0 : step.serial - 1;
    const std::size_t evictions = commands_.size();
    for (cost::TensorIndex t = 0; t < plan.absent.size(); ++t) {
        if (plan.absent[t] != 0)
            emit({SwapCommand::Kind::Evict, t, op, 0, 0, kNoClaim, 0}, before, op);
    }
    for (std::uint32_t i = 1; i <= plan.ahead && i < plan.period; ++i) {
        const std::uint32_t from = (op + plan.period - i) % plan.period;
        for (const Due& due : plan.fetches.at(from)) {
            if (steps(from, due.due_op, plan.period) <= i || plan.absent[due.tensor] == 0) continue;
            cancel_eviction(plan.live[due.tensor], evictions);
            emit_fetch(due, step.serial + steps(op, due.due_op, plan.period));
        }
    }
}

/// A block that comes back in a moment does not leave first.
void PlanExecutor::cancel_eviction(std::uint64_t block, std::size_t first) {
    const auto found =
        std::find_if(commands_.begin() + static_cast<std::ptrdiff_t>(first), commands_.end(),
                     [block](const SwapCommand& c) {
                         return c.block == block && c.kind == SwapCommand::Kind::Evict;
                     });
    if (found != commands_.end()) commands_.erase(found);
}

}  // namespace libswap
