// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/exec/run.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <limits>

#include "simgpu/exec/handlers.hpp"
#include "simgpu/exec/timed_loads.hpp"
#include "simgpu/exec/warp.hpp"

namespace simgpu::exec {

namespace {

/// Jumps back that a warp may take before its CTA's other warps go on.
constexpr std::int64_t kWarpBudget = 4096;
/// Instructions that each warp of a CTA runs in its first turn after a barrier, and how often a
/// turn of twice as many follows before it may run on. Many public kernels read a shared array
/// right after a barrier and write it again soon after without another one; on a device all warps
/// have read by then, and so they have here, in unoptimised code too.
constexpr std::uint64_t kFirstTurn = 48;
constexpr int kDoublings = 3;
/// Rounds over its warps that a CTA may take before another one goes on: kernels in which CTAs wait
/// for each other need it, others hardly notice.
constexpr int kCtaRounds = 32;
/// CTAs that may be under way at once, where the launch does not say that all must be.
constexpr std::size_t kMaxCtas = 512;
/// The same two for launches whose CTAs are known to wait for each other.
constexpr std::int64_t kCooperativeBudget = 64;
constexpr int kCooperativeRounds = 2;

enum class CtaOutcome : std::uint8_t { Finished, OutOfRounds, Faulted };

class GridRunner {
  public:
    GridRunner(Launch& launch, const Function& kernel) : launch_(launch), kernel_(kernel) {
        const auto& block = launch.geometry.block;
        threads_ = block[0] * block[1] * block[2];
        shared_bytes_ = launch.layout->static_bytes;
        if (launch.geometry.dynamic_shared_bytes != 0)
            shared_bytes_ = launch.layout->dynamic_offset + launch.geometry.dynamic_shared_bytes;
        const auto& grid = launch.geometry.grid;
        ctas_ = std::uint64_t{grid[0]} * grid[1] * grid[2];
    }

    void run() {
        std::deque<std::unique_ptr<Cta>> running;
        const std::uint64_t most = launch_.options->cooperative ? ctas_ : kMaxCtas;
        std::uint64_t started = 0;
        while (launch_.status == RunStatus::Ok && (started < ctas_ || !running.empty())) {
            if (started < ctas_ && running.size() < most) running.push_front(start(started++));
            std::unique_ptr<Cta> cta = std::move(running.front());
            running.pop_front();
            const CtaOutcome outcome = run_cta(*cta);
            if (outcome == CtaOutcome::Finished) idle_.push_back(std::move(cta));
            if (outcome == CtaOutcome::OutOfRounds) running.push_back(std::move(cta));
        }
    }

  private:
    std::unique_ptr<Cta> start(std::uint64_t index) {
        std::unique_ptr<Cta> cta;
        if (idle_.empty()) {
            cta = make();
        } else {
            cta = std::move(idle_.back());
            idle_.pop_back();
        }
        const auto& grid = launch_.geometry.grid;
        cta->linear_id = index;
        cta->id = {static_cast<std::uint32_t>(index % grid[0]),
                   static_cast<std::uint32_t>(index / grid[0] % grid[1]),
                   static_cast<std::uint32_t>(index / grid[0] / grid[1])};
        cta->live_threads = threads_;
        cta->barriers = {};
        std::fill(cta->shared.begin(), cta->shared.end(), std::byte{0xA5});
        std::uint32_t left = threads_;
        for (auto& warp : cta->warps) {
            const std::uint32_t lanes = std::min<std::uint32_t>(left, kLanes);
            start_warp(*warp, kernel_, lanes == kLanes ? kAllLanes : (1U << lanes) - 1);
            left -= lanes;
        }
        return cta;
    }

    std::unique_ptr<Cta> make() {
        auto cta = std::make_unique<Cta>();
        cta->shared.resize(shared_bytes_);
        const auto& block = launch_.geometry.block;
        for (std::uint32_t first = 0; first < threads_; first += kLanes) {
            auto warp = std::make_unique<Warp>();
            warp->launch = &launch_;
            warp->cta = cta.get();
            warp->shared = cta->shared.data();
            warp->shared_bytes = shared_bytes_;
            warp->index = first / kLanes;
            for (std::uint32_t l = 0; l < kLanes; ++l) {
                const std::uint32_t thread = first + l;
                warp->tid[0][l] = thread % block[0];
                warp->tid[1][l] = thread / block[0] % block[1];
                warp->tid[2][l] = thread / block[0] / block[1];
            }
            cta->warps.push_back(std::move(warp));
        }
        return cta;
    }

    CtaOutcome run_cta(Cta& cta) {
        constexpr std::uint64_t kNoTurns = std::numeric_limits<std::uint64_t>::max();
        std::uint64_t turn = kNoTurns;
        const bool cooperative = launch_.options->cooperative;
        const int rounds = cooperative ? kCooperativeRounds : kCtaRounds;
        const std::int64_t budget = cooperative ? kCooperativeBudget : kWarpBudget;
        for (int round = 0; round < rounds; ++round) {
            bool finished = true;
            bool moving = false;
            for (auto& warp : cta.warps) {
                const WarpOutcome outcome = run_warp(*warp, budget, turn);
                if (outcome == WarpOutcome::Faulted) return CtaOutcome::Faulted;
                finished = finished && outcome == WarpOutcome::Finished;
                moving = moving || outcome == WarpOutcome::OutOfBudget;
            }
            if (finished) return CtaOutcome::Finished;
            const bool released = release_barriers(cta);
            if (turn != kNoTurns) turn = turn < kFirstTurn << kDoublings ? turn * 2 : kNoTurns;
            if (released) {
                round = 0;
                if (cta.warps.size() > 1) turn = kFirstTurn;
            }
            if (!released && !moving) {
                cta.warps.front()->fault(RunStatus::BarrierDeadlock);
                return CtaOutcome::Faulted;
            }
        }
        return CtaOutcome::OutOfRounds;
    }

    static bool release_barriers(Cta& cta) {
        bool any = false;
        for (std::size_t id = 0; id < cta.barriers.size(); ++id) {
            CtaBarrier& barrier = cta.barriers[id];
            if (barrier.arrived == 0) continue;
            const bool complete = barrier.expected == 0 ? barrier.arrived >= cta.live_threads
                                                        : barrier.arrived >= barrier.expected;
            if (!complete) continue;
            for (auto& warp : cta.warps) release(*warp, id, barrier);
            barrier = {};
            any = true;
        }
        return any;
    }

    static void release(Warp& warp, std::size_t id, const CtaBarrier& barrier) {
        for (Split& split : warp.splits) {
            if (split.state != SplitState::AtCtaBarrier || split.barrier != id) continue;
            split.state = SplitState::Ready;
            if (split.reduction != nullptr) reduce(split, barrier);
        }
    }

    /// Gives the lanes of a barrier.red what all threads brought.
    static void reduce(const Split& split, const CtaBarrier& barrier) {
        const Inst& inst = *split.reduction;
        std::byte* slot = split.frame->regs + inst.op[2];
        if (inst.mode == 0) {
            auto* values = reinterpret_cast<std::uint32_t*>(slot);
            for (int l = 0; l < kLanes; ++l) {
                if (((split.mask >> l) & 1U) != 0) values[l] = barrier.predicates_true;
            }
            return;
        }
        const bool yes = inst.mode == 1 ? barrier.predicates_true == barrier.predicates
                                        : barrier.predicates_true != 0;
        auto& predicate = *reinterpret_cast<std::uint32_t*>(slot);
        predicate = (predicate & ~split.mask) | (yes ? split.mask : 0);
    }

    Launch& launch_;
    const Function& kernel_;
    std::uint32_t threads_ = 0;
    std::uint32_t shared_bytes_ = 0;
    std::uint64_t ctas_ = 0;
    std::vector<std::unique_ptr<Cta>> idle_;
};

RunResult refused(RunStatus status, std::string detail) {
    RunResult result;
    result.status = status;
    result.detail = std::move(detail);
    return result;
}

std::string check_geometry(const ptx::Kernel& kernel, const LaunchGeometry& geometry,
                           std::size_t param_bytes) {
    std::uint64_t threads = 1;
    for (std::size_t k = 0; k < 3; ++k) {
        if (geometry.grid[k] == 0 || geometry.block[k] == 0)
            return "an extent of the launch is zero";
        if (geometry.block[k] > 1024) return "more than 1024 threads in a block";
        threads *= geometry.block[k];
    }
    if (threads > 1024) return "more than 1024 threads in a block";
    if (param_bytes < kernel.param_bytes) return "parameters are missing";
    const std::uint64_t shared =
        std::uint64_t{kernel.static_shared_bytes} + geometry.dynamic_shared_bytes;
    if (shared > kMaxSharedBytes) return "too much shared memory";
    return {};
}

}  // namespace

RunResult run(const ptx::Module& module, const ptx::Kernel& kernel, const LaunchGeometry& geometry,
              std::span<const std::byte> params, Memory& memory,
              const ptx::SymbolAddresses& addresses, const RunOptions& options) {
    if (!kernel.executable()) return refused(RunStatus::UnknownInstruction, kernel.unknown);
    if (std::string reason = check_geometry(kernel, geometry, params.size()); !reason.empty()) {
        return refused(RunStatus::InvalidLaunch, std::move(reason));
    }
    const Program& program = *module.program;
    Launch launch;
    launch.kernel = &kernel;
    launch.program = &program;
    launch.layout = &program.layouts.at(kernel.function_index);
    launch.memory = &memory;
    launch.options = &options;
    launch.geometry = geometry;
    launch.params.assign(params.begin(), params.begin() + kernel.param_bytes);
    launch.global_addresses.resize(program.global_names.size());
    for (const std::uint32_t index : launch.layout->globals_used) {
        const auto found = addresses.find(program.global_names[index]);
        if (found == addresses.end())
            return refused(RunStatus::InvalidLaunch,
                           "variable " + program.global_names[index] + " has no address");
        launch.global_addresses[index] = found->second;
    }
    GridRunner(launch, program.functions[kernel.function_index]).run();
    RunResult result;
    result.status = launch.status;
    result.address = launch.fault_address;
    result.detail = std::move(launch.detail);
    result.counters = launch.counters;
    return result;
}

Handler find_handler(const OpKey& key) {
    if (Handler handler = find_timed_handler(key)) return handler;
    return find_untimed_handler(key);
}

Handler find_untimed_handler(const OpKey& key) {
    if (Handler handler = find_control_handler(key)) return handler;
    if (Handler handler = find_texture_handler(key)) return handler;
#ifdef SIMGPU_HAVE_AVX2
    static const bool kNew = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                             __builtin_cpu_supports("bmi2");
    if (kNew) return avx2::find_handler(key);
#endif
    return plain::find_handler(key);
}

}  // namespace simgpu::exec
