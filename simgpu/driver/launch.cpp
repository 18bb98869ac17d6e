// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "simgpu/driver/attributes.hpp"
#include "simgpu/driver/cache_timing.hpp"
#include "simgpu/driver/context_memory.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/capture.hpp"
#include "simgpu/driver/host_kernels.hpp"
#include "simgpu/driver/kernel_names.hpp"
#include "simgpu/driver/log.hpp"
#include "simgpu/driver/module.hpp"
#include "simgpu/driver/occupancy.hpp"
#include "simgpu/exec/run.hpp"

namespace simgpu::driver {

namespace {

/// Device memory as the interpreter asks for it.
class MemoryAdapter final : public exec::Memory {
  public:
    explicit MemoryAdapter(KernelMemory& memory) : memory_(memory) {}
    std::byte* page(std::uint64_t va, bool write) override { return memory_.page(va, write); }

  private:
    KernelMemory& memory_;
};

CUresult status_of(exec::RunStatus status) {
    switch (status) {
        case exec::RunStatus::Ok:
            return CUDA_SUCCESS;
        case exec::RunStatus::IllegalAddress:
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        case exec::RunStatus::MisalignedAddress:
            return CUDA_ERROR_MISALIGNED_ADDRESS;
        case exec::RunStatus::Assert:
            return CUDA_ERROR_ASSERT;
        case exec::RunStatus::UnknownInstruction:
            return CUDA_ERROR_NOT_SUPPORTED;
        case exec::RunStatus::StackOverflow:
            return CUDA_ERROR_HARDWARE_STACK_ERROR;
        case exec::RunStatus::BarrierDeadlock:
            return CUDA_ERROR_LAUNCH_TIMEOUT;
        case exec::RunStatus::Trap:
        case exec::RunStatus::InvalidLaunch:
        case exec::RunStatus::UnknownTexture:
        case exec::RunStatus::OutsideSurface:
            return CUDA_ERROR_LAUNCH_FAILED;
    }
    return CUDA_ERROR_UNKNOWN;
}

const char* describe(exec::RunStatus status) {
    switch (status) {
        case exec::RunStatus::IllegalAddress:
            return "illegal address";
        case exec::RunStatus::MisalignedAddress:
            return "misaligned address";
        case exec::RunStatus::Trap:
            return "trap";
        case exec::RunStatus::Assert:
            return "assertion failed";
        case exec::RunStatus::UnknownInstruction:
            return "unknown instruction";
        case exec::RunStatus::StackOverflow:
            return "stack overflow";
        case exec::RunStatus::BarrierDeadlock:
            return "all threads wait at a barrier that cannot complete";
        case exec::RunStatus::InvalidLaunch:
            return "invalid launch";
        case exec::RunStatus::UnknownTexture:
            return "no texture or surface object";
        case exec::RunStatus::OutsideSurface:
            return "access beyond the edge of a surface";
        case exec::RunStatus::Ok:
            break;
    }
    return "";
}

/// A kernel takes at least as long as its warps wait for loads, all of them side by side. Told as
/// instructions, which the clock turns into that time.
void wait_for_loads(const TimedKernelMemory& timed, const exec::LaunchGeometry& geometry,
                    KernelOutcome& outcome) {
    const auto& grid = geometry.grid;
    const auto& block = geometry.block;
    const double ctas = static_cast<double>(grid[0]) * grid[1] * grid[2];
    const double warps = ctas * ((block[0] * block[1] * block[2] + 31) / 32);
    outcome.thread_instructions =
        std::max(outcome.thread_instructions,
                 timed.waited_ns() / warps * machine().profile().thread_instructions_per_ns);
}

KernelOutcome interpret(const KernelCall& call, KernelMemory& memory) {
    exec::RunOptions options;
    options.sm_count = static_cast<std::uint32_t>(machine().profile().sm_count);
    options.cooperative = call.cooperative;
    MemoryAdapter adapter(memory);
    const Function& function = *call.function;
    KernelTextures textures(function.context, call.objects);
    options.textures = &textures;
    const auto timed = timed_memory(memory, function.context.gpu.ordinal);
    exec::Memory& seen = timed != nullptr ? static_cast<exec::Memory&>(*timed) : adapter;
    exec::RunResult result = exec::run(*function.ptx_module, *function.code, call.geometry,
                                       call.parameters, seen, function.data->addresses(), options);
    KernelOutcome outcome;
    outcome.status = status_of(result.status);
    outcome.fault_va = result.address;
    outcome.flops = static_cast<double>(result.counters.flops);
    outcome.bytes = static_cast<double>(result.counters.global_bytes_loaded +
                                        result.counters.global_bytes_stored);
    outcome.thread_instructions = static_cast<double>(result.counters.thread_instructions);
    if (timed != nullptr) wait_for_loads(*timed, call.geometry, outcome);
    if (!result.ok()) outcome.detail = fmt::format("{} {}", describe(result.status), result.detail);
    return outcome;
}

/// The launch that a native kernel sees, and where its memory comes from.
struct NativeLaunch {
    SimgpuHostLaunch public_part;
    KernelMemory* memory;
    bool faulted = false;

    static void* span(const SimgpuHostLaunch* launch, std::uint64_t va, std::size_t bytes,
                      int write) {
        auto* self = static_cast<NativeLaunch*>(launch->reserved);
        void* host = self->memory->span(va, bytes, write != 0);
        self->faulted |= host == nullptr && bytes != 0 && self->memory->fault_va() != 0;
        return host;
    }

    static std::uint64_t write_count(const SimgpuHostLaunch* launch, std::uint64_t va) {
        return static_cast<NativeLaunch*>(launch->reserved)->memory->write_count(va);
    }
};

SimgpuHostLaunch public_part(const KernelCall& call, KernelOutcome& outcome, NativeLaunch& launch) {
    const exec::LaunchGeometry& geometry = call.geometry;
    SimgpuHostLaunch part{};
    part.kernel_name = call.function->info->name.c_str();
    for (std::size_t axis = 0; axis < 3; ++axis) {
        part.grid[axis] = geometry.grid[axis];
        part.block[axis] = geometry.block[axis];
    }
    part.shared_bytes = geometry.dynamic_shared_bytes;
    part.param_bytes = static_cast<std::uint32_t>(call.parameters.size());
    part.params = call.parameters.data();
    part.device = call.function->context.gpu.ordinal;
    part.span = &NativeLaunch::span;
    part.flops = &outcome.flops;
    part.bytes = &outcome.bytes;
    part.duration_ns = &outcome.duration_ns;
    part.without_data = launch.memory->without_data();
    part.write_count = &NativeLaunch::write_count;
    part.reserved = &launch;
    return part;
}

/// Does the work by `run`, which is given the launch.
template <typename Run>
KernelOutcome run_on_host(const KernelCall& call, KernelMemory& memory, Run run) {
    KernelOutcome outcome;
    NativeLaunch launch{};
    launch.memory = &memory;
    launch.public_part = public_part(call, outcome, launch);
    run(launch.public_part);
    if (launch.faulted) {
        outcome.status = CUDA_ERROR_ILLEGAL_ADDRESS;
        outcome.fault_va = memory.fault_va();
    }
    return outcome;
}

KernelOutcome run_native(const KernelCall& call, KernelMemory& memory) {
    return run_on_host(call, memory, [&](const SimgpuHostLaunch& launch) { call.native(&launch); });
}

/// Machine code, and without data all code: by its name where that is known, else opaque.
KernelOutcome run_machine_code(const KernelCall& call, KernelMemory& memory) {
    NamedFunction& function = named_function(call.function->info->name);
    bool done = false;
    if (function.work && !memory.without_data()) {
        const auto parameters = split_parameters(*call.function->info, call.parameters);
        KernelOutcome outcome = run_on_host(call, memory, [&](const SimgpuHostLaunch& launch) {
            done = function.work(NamedLaunch(launch, parameters));
        });
        if (done || outcome.status != CUDA_SUCCESS) return outcome;
    }
    say_opaque(function);
    return run_opaque(call.opaque, memory);
}

KernelOutcome run(const KernelCall& call, KernelMemory& memory) {
    if (call.native != nullptr) return run_native(call, memory);
    return call.function->code != nullptr && !memory.without_data()
               ? interpret(call, memory)
               : run_machine_code(call, memory);
}

CUresult check_geometry(const LaunchRequest& request, const Function& function) {
    constexpr unsigned kMaxGridYz = 65535;
    constexpr unsigned kMaxBlockZ = 64;
    for (unsigned dimension : request.grid) {
        if (dimension == 0) return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned dimension : request.block) {
        if (dimension == 0 || dimension > static_cast<unsigned>(kMaxThreadsPerBlock))
            return CUDA_ERROR_INVALID_VALUE;
    }
    bool too_large = request.grid[0] > static_cast<unsigned>(INT32_MAX) ||
                     request.grid[1] > kMaxGridYz || request.grid[2] > kMaxGridYz ||
                     request.block[2] > kMaxBlockZ;
    if (too_large) return CUDA_ERROR_INVALID_VALUE;
    unsigned threads = request.block[0] * request.block[1] * request.block[2];
    if (threads > static_cast<unsigned>(kMaxThreadsPerBlock)) return CUDA_ERROR_INVALID_VALUE;
    bool over_bound = function.info->max_threads != 0 && threads > function.info->max_threads;
    if (over_bound) return CUDA_ERROR_INVALID_VALUE;
    if (function.code != nullptr && function.code->required_block[0] != 0) {
        for (std::size_t axis = 0; axis < 3; ++axis) {
            unsigned required = std::max(function.code->required_block[axis], 1U);
            if (request.block[axis] != required) return CUDA_ERROR_INVALID_VALUE;
        }
    }
    if (threads > static_cast<unsigned>(function.max_threads()))
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (request.shared_bytes > static_cast<unsigned>(max_dynamic_shared_bytes(function))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult check_cooperative(const LaunchRequest& request, const Function& function) {
    if (!request.cooperative) return CUDA_SUCCESS;
    int threads = static_cast<int>(request.block[0] * request.block[1] * request.block[2]);
    std::uint64_t fit =
        static_cast<std::uint64_t>(active_blocks_per_sm(function, threads, request.shared_bytes)) *
        static_cast<std::uint64_t>(machine().profile().sm_count);
    std::uint64_t blocks = std::uint64_t{request.grid[0]} * request.grid[1] * request.grid[2];
    return blocks <= fit ? CUDA_SUCCESS : CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

/// `extra`: pairs of a name and a value, up to CU_LAUNCH_PARAM_END.
CUresult copy_extra(void** extra, std::vector<std::byte>& block) {
    const void* buffer = nullptr;
    const std::size_t* bytes = nullptr;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            buffer = extra[1];
        } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
            bytes = static_cast<const std::size_t*>(extra[1]);
        } else {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    bool complete = block.empty() || (buffer != nullptr && bytes != nullptr);
    if (!complete) return CUDA_ERROR_INVALID_VALUE;
    if (block.empty()) return CUDA_SUCCESS;
    if (*bytes < block.size()) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(block.data(), buffer, block.size());
    return CUDA_SUCCESS;
}

CUresult copy_parameters(const LaunchRequest& request, const image::KernelInfo& info,
                         std::vector<std::byte>& block) {
    block.resize(info.parameter_bytes);
    if (request.parameters != nullptr && request.extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (request.extra != nullptr) return copy_extra(request.extra, block);
    if (info.parameters.empty()) return CUDA_SUCCESS;
    if (request.parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < info.parameters.size(); ++i) {
        const image::Parameter& parameter = info.parameters[i];
        if (request.parameters[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
        std::memcpy(block.data() + parameter.offset, request.parameters[i], parameter.bytes);
    }
    return CUDA_SUCCESS;
}

/// Whether there is anything that can do the kernel's work; else one line per kernel.
CUresult check_executable(Function& function, SimgpuHostKernel native) {
    if (native != nullptr) return CUDA_SUCCESS;
    if (function.code != nullptr && function.code->executable()) return CUDA_SUCCESS;
    if (function.code == nullptr &&
        (opaque_mode() != OpaqueMode::Refuse || named_function(function.info->name).work))
        return CUDA_SUCCESS;
    if (!function.said_unsupported.exchange(true)) {
        if (function.code == nullptr) {
            say("kernel {} cannot run here: it comes as machine code for sm_{} without PTX",
                function.info->name, function.architecture);
        } else {
            say("kernel {} cannot run here: unknown instruction {}", function.info->name,
                function.code->unknown);
        }
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

/// What a node keeps of a launch's attributes.
std::map<CUlaunchAttributeID, CUlaunchAttributeValue> node_attributes(
    const LaunchRequest& request) {
    std::map<CUlaunchAttributeID, CUlaunchAttributeValue> kept;
    for (unsigned i = 0; i < request.attribute_count; ++i) {
        const CUlaunchAttribute& attribute = request.attributes[i];
        if (attribute.id != CU_LAUNCH_ATTRIBUTE_IGNORE) kept[attribute.id] = attribute.value;
    }
    return kept;
}

}  // namespace

CUresult prepare(const LaunchRequest& request, Context& context, KernelCall& out) {
    SIMGPU_TRY(find_function(request.function, &context, out.function));
    Function& function = *out.function;
    if (&function.context != &context) return CUDA_ERROR_INVALID_HANDLE;
    SIMGPU_TRY(check_geometry(request, function));
    SIMGPU_TRY(check_cooperative(request, function));
    SIMGPU_TRY(copy_parameters(request, *function.info, out.parameters));
    const bool without_data = machine().memory().without_data();
    const HostKernel native = find_host_kernel(function.info->name);
    if (!without_data || native.without_data) out.native = native.function;
    SIMGPU_TRY(check_executable(function, out.native));
    for (std::size_t axis = 0; axis < 3; ++axis) {
        out.geometry.grid[axis] = request.grid[axis];
        out.geometry.block[axis] = request.block[axis];
    }
    const auto& grid = request.grid;
    const auto& block = request.block;
    const std::uint64_t threads =
        std::uint64_t{grid[0]} * grid[1] * grid[2] * block[0] * block[1] * block[2];
    SIMGPU_TRY(need_local_memory(context, function.info->local_bytes, threads));
    out.geometry.dynamic_shared_bytes = request.shared_bytes;
    out.cooperative = request.cooperative;
    if (function.code != nullptr && function.code->uses_textures)
        out.objects = LaunchedObjects::now();
    if (out.native == nullptr && (function.code == nullptr || without_data))
        out.opaque = opaque_work(function, out.geometry, out.parameters);
    else if (out.native != nullptr && !native.without_data)
        note_operands(function, out.parameters);  // a library's
    return CUDA_SUCCESS;
}

namespace {

struct CallWork {
    std::shared_ptr<const KernelCall> call;
    KernelOutcome operator()(KernelMemory& memory) const { return run(*call, memory); }
};

}  // namespace

const KernelCall* call_of(const KernelLaunch& launch) {
    const CallWork* work = launch.work.target<CallWork>();
    return work != nullptr ? work->call.get() : nullptr;
}

KernelLaunch kernel_launch(std::shared_ptr<const KernelCall> call) {
    KernelLaunch work;
    const auto& grid = call->geometry.grid;
    work.name = call->function->info->name;
    work.ctas = std::uint64_t{grid[0]} * grid[1] * grid[2];
    work.work = CallWork{std::move(call)};
    return work;
}

CUresult launch(const LaunchRequest& request) {
    StreamRef stream;
    SIMGPU_TRY(find_stream_for_work(request.stream, request.default_stream, stream));
    auto call = std::make_shared<KernelCall>();
    SIMGPU_TRY(prepare(request, *stream.context, *call));
    if (stream.capture != nullptr)
        return capture_task(stream, KernelTask{std::move(call), node_attributes(request)});
    return stream->launch(kernel_launch(std::move(call)));
}

}  // namespace simgpu::driver
