// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost/policies/policy.hpp"

namespace libswap {

/// A quantity of memory as a user writes it: bytes ("6GiB", "512M", "1048576"), a share ("60%"), or
/// left open.
struct Amount {
    enum class Kind { Unset, Bytes, Percent };
    Kind kind = Kind::Unset;
    std::uint64_t bytes = 0;
    double percent = 0;

    bool is_set() const noexcept { return kind != Kind::Unset; }
    /// Bytes meant, where `total_bytes` is what 100 % stands for. `unset_bytes` if left open.
    std::uint64_t resolve(std::uint64_t total_bytes, std::uint64_t unset_bytes) const noexcept;
};

enum class Mode { Swap, Observe, Off };
enum class Report { Virtual, Device };
/// What PyTorch's allocator is asked to do: docs/pytorch.md.
enum class TorchAllocator { Split, Async, Uncached, Leave };
/// How blocks move: docs/engine.md. Auto: by hand-over where no plan is followed.
enum class Move { Auto, Careful, Plain, HandOver };
/// Auto: where nobody else seems to use it.
enum class CuptiUse { Auto, On, Off };
/// Whether a device without a profile is measured. Auto: where it has room for that.
enum class Measure { Auto, On, Off };

/// A byte that new memory is filled with, or none.
struct FillByte {
    bool is_set = false;
    std::uint8_t value = 0;
};

/// Every setting of libswap, as read from the environment. config.def has names, defaults and
/// meanings.
struct Config {
#define SETTING(field, type, parser, name, default_text, unit, sentence) type field{};
#include "runtime/config.def"
#undef SETTING
};

/// One row of the settings table, for the listing of LIBSWAP_VERBOSE and the documentation.
struct SettingInfo {
    const char* name;
    const char* default_text;
    const char* unit;
    const char* sentence;
};
std::span<const SettingInfo> settings_table() noexcept;

/// Reads an environment-like source; returns nullptr for what is not set.
using SettingSource = const char* (*)(const char* name, void* context);

/// All settings from `source`. What cannot be understood keeps its default and adds one sentence to
/// `complaints`.
Config parse_config(SettingSource source, void* context, std::vector<std::string>* complaints);

/// The process's settings: read with secure_getenv at the first call (the first cuInit), never
/// again. Complaints are logged once, after the log has been set up by these same settings. @thread
/// any
const Config& config() noexcept;

/// The values in force as text, in the order of settings_table(): what LIBSWAP_VERBOSE=1 prints.
std::vector<std::string> describe_config(const Config& config);

}  // namespace libswap
