// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/opaque.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/kernel_names.hpp"
#include "simgpu/driver/log.hpp"
#include "simgpu/driver/module.hpp"
#include "simgpu/driver/program_ranges.hpp"
#include "simgpu/host_kernels/opaque_fill.hpp"
#include "simgpu/host_kernels/torch/families.hpp"

namespace simgpu::driver {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
// What a thread is taken to handle where nothing says how much a launch does.
constexpr std::uint64_t kReadPerThread = 64;

using Parameters = std::vector<std::span<const std::byte>>;

/// A pointer that a launch was given, and where its allocation ends.
struct Found {
    PointerWord word;
    std::uint64_t va;
    std::uint64_t end;
};

std::uint64_t word_at(std::span<const std::byte> parameter, std::uint32_t offset) {
    std::uint64_t word = 0;
    std::memcpy(&word, parameter.data() + offset, kWord);
    return word;
}

std::vector<Found> find_pointers(const KernelName& name, const exec::LaunchGeometry& geometry,
                                 const Parameters& parameters, int device) {
    std::vector<Found> found;
    for (std::uint32_t i = 0; i < parameters.size(); ++i) {
        std::vector<std::uint32_t> places;
        for (std::uint32_t at = 0; at + kWord <= parameters[i].size(); at += kWord) {
            if (program_range(word_at(parameters[i], at), device)) places.push_back(at);
        }
        if (places.empty()) continue;
        for (const std::uint32_t at :
             torch::addresses_in(name, i, parameters[i], geometry.grid.data(), std::move(places))) {
            const std::uint64_t va = word_at(parameters[i], at);
            const auto range = program_range(va, device);
            if (!range) continue;
            note_operand(va);
            found.push_back({{i, at}, va, range->end()});
        }
    }
    return found;
}

std::uint64_t seed_of(const std::string& name, const exec::LaunchGeometry& geometry) {
    std::uint64_t seed = stir(0, name.data(), name.size());
    seed = stir(seed, geometry.grid.data(), sizeof(geometry.grid));
    return stir(seed, geometry.block.data(), sizeof(geometry.block));
}

std::uint64_t threads_of(const exec::LaunchGeometry& geometry) {
    std::uint64_t threads = 1;
    for (std::size_t axis = 0; axis < 3; ++axis)
        threads *= std::uint64_t{geometry.grid[axis]} * geometry.block[axis];
    return threads;
}

OpaqueMode read_mode() {
    const char* text = std::getenv("SIMGPU_OPAQUE");
    const std::string_view mode = text != nullptr ? text : "";
    if (mode == "say") return OpaqueMode::Say;
    if (mode == "refuse") return OpaqueMode::Refuse;
    if (!mode.empty() && mode != "run")
        say("SIMGPU_OPAQUE=\"{}\" is none of run, say, refuse: ignored", mode);
    return OpaqueMode::Run;
}

}  // namespace

OpaqueMode opaque_mode() {
    static const OpaqueMode mode = read_mode();
    return mode;
}

void say_opaque(NamedFunction& function) {
    if (opaque_mode() != OpaqueMode::Say || function.said_opaque.exchange(true)) return;
    say("kernel runs opaquely: {}", function.name.full);
}

Parameters split_parameters(const image::KernelInfo& info, const std::vector<std::byte>& block) {
    Parameters parts;
    for (const image::Parameter& parameter : info.parameters) {
        const bool whole = parameter.offset + std::size_t{parameter.bytes} <= block.size();
        parts.push_back(whole ? std::span(block).subspan(parameter.offset, parameter.bytes)
                              : std::span<const std::byte>());
    }
    return parts;
}

void note_operands(const Function& function, const std::vector<std::byte>& block) {
    for (const auto& parameter : split_parameters(*function.info, block)) {
        for (std::uint32_t at = 0; at + kWord <= parameter.size(); at += kWord) {
            const std::uint64_t va = word_at(parameter, at);
            if (program_range(va, function.context.gpu.ordinal)) note_operand(va);
        }
    }
}

OpaqueWork opaque_work(const Function& function, const exec::LaunchGeometry& geometry,
                       const std::vector<std::byte>& block) {
    const Parameters parameters = split_parameters(*function.info, block);
    const KernelName& name = named_function(function.info->name).name;
    const std::vector<Found> found =
        find_pointers(name, geometry, parameters, function.context.gpu.ordinal);
    std::vector<PointerWord> words;
    for (const Found& pointer : found) words.push_back(pointer.word);
    const WrittenOperands rule = written_operands(name, words, parameters);
    const std::uint64_t threads = threads_of(geometry);
    OpaqueWork work{seed_of(function.info->name, geometry), rule.type, {}};
    for (std::size_t i = 0; i < found.size(); ++i) {
        OpaqueOperand operand{found[i].va, 0, 0};
        // What begins another operand is not of this one: what lies there may be in other hands.
        const std::uint64_t room = end_of_operand(found[i].va, found[i].end) - found[i].va;
        if (rule.written[i]) {
            // Where nothing tells, an element per thread: what is too much would hit its
            // neighbours.
            operand.write_bytes =
                rule.elements != 0
                    ? std::min(found[i].end - found[i].va, rule.elements * bytes_of(rule.type))
                    : std::min(room, threads * bytes_of(rule.type));
        }
        if (!rule.written[i] || rule.reads_written)
            operand.read_bytes =
                std::min(room, rule.elements != 0 ? rule.elements * rule.widest_bytes
                                                  : threads * kReadPerThread);
        work.operands.push_back(operand);
    }
    return work;
}

KernelOutcome run_opaque(const OpaqueWork& work, KernelMemory& memory) {
    KernelOutcome outcome;
    std::uint64_t digest = work.seed;
    const auto fault = [&] {
        outcome.status = CUDA_ERROR_ILLEGAL_ADDRESS;
        outcome.fault_va = memory.fault_va();
        return outcome;
    };
    for (const OpaqueOperand& operand : work.operands) {
        // The digest reads whole words.
        const std::uint64_t skipped = std::min(-operand.va % kWord, operand.read_bytes);
        const std::uint64_t bytes = operand.read_bytes - skipped;
        if (bytes == 0) continue;
        const std::byte* data = memory.span(operand.va + skipped, bytes, false);
        if (data == nullptr && !memory.without_data()) return fault();
        if (data != nullptr) digest = stir(digest, data, bytes);
        outcome.bytes += static_cast<double>(bytes);
    }
    for (const OpaqueOperand& operand : work.operands) {
        if (operand.write_bytes == 0) continue;
        std::byte* data = memory.span(operand.va, operand.write_bytes, true);
        if (data == nullptr && !memory.without_data()) return fault();
        if (data != nullptr) fill_from(digest, work.type, data, operand.write_bytes);
        digest = stir(digest, &work.seed, sizeof(work.seed));
        outcome.bytes += static_cast<double>(operand.write_bytes);
    }
    return outcome;
}

}  // namespace simgpu::driver
