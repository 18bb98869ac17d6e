// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/function_table.hpp"

#include <mutex>

#include "runtime/ranked_mutex.hpp"

namespace libswap {
namespace {

constexpr std::size_t kMaxParams = 4096;
constexpr std::uint32_t kListBytes = 2048;  ///< a parameter of so many is a list
/// Kernels of at::native, and of libraries that PyTorch has made for types of it.
constexpr char kOfPyTorch[] = "2at6native";

std::uint64_t hash_bytes(std::uint64_t hash, const void* data, std::size_t bytes) noexcept {
    for (std::size_t i = 0; i < bytes; ++i)
        hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3;
    return hash;
}

std::uint64_t next_epoch() noexcept {
    static std::atomic<std::uint64_t> next{1};
    return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

void FunctionInfo::note_operand(std::uint32_t word, bool did_change) noexcept {
    const std::uint64_t bit = std::uint64_t{1} << word;
    if (did_change)
        changed.fetch_or(bit, std::memory_order_relaxed);
    else if (kept_once.fetch_or(bit, std::memory_order_relaxed) & bit)
        kept_twice.fetch_or(bit, std::memory_order_relaxed);
}

FunctionTable::FunctionTable(const Driver& driver) noexcept
    : driver_(driver), epoch_(next_epoch()) {}

const void* extra_buffer(void** extra, std::size_t* bytes) noexcept {
    const void* buffer = nullptr;
    *bytes = 0;
    if (!extra) return nullptr;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            *bytes = *static_cast<const std::size_t*>(extra[1]);
        else
            break;
    }
    return *bytes ? buffer : nullptr;
}

FunctionInfo* FunctionTable::find(CUfunction function) noexcept {
    thread_local struct {
        std::uint64_t epoch = 0;
        CUfunction function = nullptr;
        FunctionInfo* info = nullptr;
    } recent[16];
    const std::uint64_t epoch = epoch_.load(std::memory_order_acquire);
    auto& slot =
        recent[(reinterpret_cast<std::uintptr_t>(function) >> 4) * 0x9e3779b97f4a7c15 >> 60];
    if (slot.function == function && slot.epoch == epoch) return slot.info;
    FunctionInfo* info = nullptr;
    {
        std::shared_lock lock(mutex_);
        if (auto found = functions_.find(function); found != functions_.end()) info = found->second;
    }
    if (!info) info = make(function);
    slot = {epoch, function, info};
    return info;
}

FunctionInfo* FunctionTable::make(CUfunction function) noexcept try {
    auto info = std::make_unique<FunctionInfo>();
    info->function = function;
    // A handle of the library API asks by its own calls where the driver has them.
    const auto ask = [&](std::size_t index, ParamSlot* slot) {
        std::size_t offset = 0;
        std::size_t bytes = 0;
        const CUresult code = driver_.cuFuncGetParamInfo(function, index, &offset, &bytes);
        *slot = {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bytes)};
        return code;
    };
    CUresult code = CUDA_SUCCESS;
    ParamSlot slot;
    info->hash = 0xcbf29ce484222325;
    // A wrong answer would last: what ends the list is asked for again before it is believed.
    for (int refusals = 0; info->params.size() < kMaxParams && refusals < 3;) {
        code = ask(info->params.size(), &slot);
        if (code != CUDA_SUCCESS) {
            ++refusals;
            continue;
        }
        refusals = 0;
        info->params.push_back(slot);
        info->hash = hash_bytes(info->hash, &slot, sizeof slot);
        info->has_roomy |= slot.is_roomy();
        info->has_unset_words |= slot.bytes >= kListBytes;
    }
    // INVALID_VALUE is how the list ends; anything else means that it is not known.
    info->layout_known = code == CUDA_ERROR_INVALID_VALUE;
    const char* name = nullptr;
    if (driver_.cuFuncGetName && driver_.cuFuncGetName(&name, function) == CUDA_SUCCESS && name)
        info->text = name;
    info->has_unset_words |= info->has_roomy && info->text.find(kOfPyTorch) != std::string::npos;
    info->hash = hash_bytes(info->hash, info->text.data(), info->text.size());
    std::unique_lock lock(mutex_);
    auto [place, fresh] = functions_.insert({function, info.get()});
    if (!fresh) return place->second;
    all_.push_back(std::move(info));
    return all_.back().get();
} catch (...) {
    return nullptr;
}

void FunctionTable::invalidate() noexcept {
    std::unique_lock lock(mutex_);
    functions_.clear();
    epoch_.store(next_epoch(), std::memory_order_release);
}

}  // namespace libswap
