// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/config.hpp"

#include "runtime/log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <utility>

namespace libswap {
namespace {

/// The words that stand for the values of an enumeration.
template <class Value>
struct Words;
template <>
struct Words<Mode> {
    static constexpr std::pair<std::string_view, Mode> kAll[] = {
        {"swap", Mode::Swap}, {"observe", Mode::Observe}, {"off", Mode::Off}};
};
template <>
struct Words<Report> {
    static constexpr std::pair<std::string_view, Report> kAll[] = {{"virtual", Report::Virtual},
                                                                   {"device", Report::Device}};
};
template <>
struct Words<TorchAllocator> {
    static constexpr std::pair<std::string_view, TorchAllocator> kAll[] = {
        {"split", TorchAllocator::Split},
        {"async", TorchAllocator::Async},
        {"uncached", TorchAllocator::Uncached},
        {"leave", TorchAllocator::Leave}};
};
template <>
struct Words<Move> {
    static constexpr std::pair<std::string_view, Move> kAll[] = {{"auto", Move::Auto},
                                                                 {"careful", Move::Careful},
                                                                 {"plain", Move::Plain},
                                                                 {"hand-over", Move::HandOver}};
};
template <>
struct Words<CuptiUse> {
    static constexpr std::pair<std::string_view, CuptiUse> kAll[] = {
        {"auto", CuptiUse::Auto}, {"on", CuptiUse::On}, {"off", CuptiUse::Off}};
};
template <>
struct Words<Measure> {
    static constexpr std::pair<std::string_view, Measure> kAll[] = {
        {"auto", Measure::Auto}, {"on", Measure::On}, {"off", Measure::Off}};
};

std::string lower(std::string_view text) {
    std::string result(text);
    std::transform(result.begin(), result.end(), result.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    return result;
}

/// Decimal digits with or without a fraction, and what stands behind them. Written out because the
/// library's own parsers follow the program's locale, or bring in libm and more constructors than
/// all the rest of libswap.
std::optional<double> split_number(std::string_view text, std::string_view* rest) {
    double number = 0;
    double place = 0;  // 0 before the point, then the weight of the last digit read
    std::size_t used = 0, digits = 0;
    for (; used < text.size() && digits < 18; ++used) {
        const char c = text[used];
        if (c == '.' && place == 0) {
            place = 1;
            continue;
        }
        if (c < '0' || c > '9') break;
        ++digits;
        if (place == 0) {
            number = number * 10 + (c - '0');
        } else {
            place /= 10;
            number += place * (c - '0');
        }
    }
    if (digits == 0) return std::nullopt;
    *rest = text.substr(used);
    while (!rest->empty() && rest->front() == ' ') rest->remove_prefix(1);
    return number;
}

/// 1 for "" and "B", powers of 1024 for K, KB and KiB and so on: as tools that allocate memory mean
/// them.
std::optional<double> unit_bytes(std::string_view unit) {
    const std::string name = lower(unit);
    if (name.empty() || name == "b") return 1.0;
    const std::size_t power = std::string_view("kmgt").find(name[0]);
    const std::string_view tail = std::string_view(name).substr(1);
    if (power == std::string_view::npos || !(tail.empty() || tail == "b" || tail == "ib"))
        return std::nullopt;
    return static_cast<double>(std::uint64_t{1} << (10 * (power + 1)));
}

bool parse_bytes(std::string_view text, std::uint64_t* out) {
    std::string_view rest;
    const auto number = split_number(text, &rest);
    const auto unit = number ? unit_bytes(rest) : std::nullopt;
    if (!unit || *number * *unit >= static_cast<double>(std::uint64_t{1} << 62)) return false;
    *out = static_cast<std::uint64_t>(*number * *unit);
    return true;
}

bool parse_amount(std::string_view text, Amount* out) {
    Amount amount;
    std::string_view rest;
    const auto number = split_number(text, &rest);
    if (number && rest == "%") {
        if (*number <= 0 || *number > 100) return false;
        amount = {Amount::Kind::Percent, 0, *number};
    } else {
        amount.kind = Amount::Kind::Bytes;
        if (!parse_bytes(text, &amount.bytes) || amount.bytes == 0) return false;
    }
    *out = amount;
    return true;
}

bool parse_bool(std::string_view text, bool* out) {
    const std::string word = lower(text);
    const bool yes = word == "1" || word == "true" || word == "yes" || word == "on";
    if (!yes && word != "0" && word != "false" && word != "no" && word != "off") return false;
    *out = yes;
    return true;
}

bool parse_level(std::string_view text, int* out) {
    if (text.size() == 1 && text[0] >= '0' && text[0] <= '2') {
        *out = text[0] - '0';
        return true;
    }
    bool on = false;
    if (!parse_bool(text, &on)) return false;
    *out = on ? 1 : 0;
    return true;
}

bool parse_factor(std::string_view text, double* out) {
    std::string_view rest;
    const auto number = split_number(text, &rest);
    if (!number || !(rest.empty() || rest == "x") || *number < 1) return false;
    *out = *number;
    return true;
}

bool parse_fill(std::string_view text, FillByte* out) {
    int base = 10;
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        base = 16;
        text.remove_prefix(2);
    }
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size() || value > 255) return false;
    *out = {true, static_cast<std::uint8_t>(value)};
    return true;
}

template <class Value>
bool parse_word(std::string_view text, Value* out) {
    const std::string word = lower(text);
    for (const auto& [name, value] : Words<Value>::kAll) {
        if (word != name) continue;
        *out = value;
        return true;
    }
    return false;
}

bool parse_policy(std::string_view text, cost::PolicyKind* out) {
    const auto found = cost::find_policy(lower(text));
    if (found) *out = *found;
    return found.has_value();
}

/// A file name; %p stands for the process id, so that the processes of one job do not write over
/// each other.
bool parse_text(std::string_view text, std::string* out) {
    std::string result(text);
    const std::size_t mark = result.find("%p");
    if (mark != std::string::npos) result.replace(mark, 2, std::to_string(getpid()));
    *out = std::move(result);
    return true;
}

std::string bytes_text(std::uint64_t bytes) {
    for (const auto& [shift, unit] : {std::pair{40, "TiB"}, {30, "GiB"}, {20, "MiB"}, {10, "KiB"}})
        if (bytes >= (std::uint64_t{1} << shift) && bytes % (std::uint64_t{1} << shift) == 0)
            return fmt::format("{} {}", bytes >> shift, unit);
    return fmt::format("{} bytes", bytes);
}

std::string show(std::uint64_t bytes) { return bytes_text(bytes); }
std::string show(bool value) { return value ? "yes" : "no"; }
std::string show(int value) { return std::to_string(value); }
std::string show(double value) { return fmt::format("{}", value); }
std::string show(const std::string& value) { return value.empty() ? "(none)" : value; }
template <class Value, std::size_t kCount = std::size(Words<Value>::kAll)>
std::string show(Value value) {
    for (const auto& [name, known] : Words<Value>::kAll)
        if (value == known) return std::string(name);
    return {};
}
std::string show(cost::PolicyKind kind) { return std::string(cost::policy_name(kind)); }
std::string show(FillByte fill) {
    return fill.is_set ? fmt::format("{:#04x}", fill.value) : "(none)";
}
std::string show(const Amount& amount) {
    switch (amount.kind) {
        case Amount::Kind::Bytes:
            return bytes_text(amount.bytes);
        case Amount::Kind::Percent:
            return fmt::format("{} %", amount.percent);
        default:
            return "(left open)";
    }
}

template <class Value, class Parser>
void read_setting(const SettingInfo& info, const char* text, Parser parser, Value* value,
                  std::vector<std::string>* complaints) {
    if (*info.default_text) parser(info.default_text, value);
    if (!text || !*text || parser(text, value)) return;
    complaints->push_back(fmt::format("{}='{}' is not understood (wanted: {}), keeping {}",
                                      info.name, text, info.unit, show(*value)));
}

constexpr SettingInfo kSettings[] = {
#define SETTING(field, type, parser, name, default_text, unit, sentence) \
    {name, default_text, unit, sentence},
#include "runtime/config.def"
#undef SETTING
};

const Config* read_environment() {
    std::vector<std::string> complaints;
    auto* result = new Config(
        parse_config([](const char* name, void*) -> const char* { return secure_getenv(name); },
                     nullptr, &complaints));
    const LogLevel level = result->verbose >= 2   ? LogLevel::Debug
                           : result->verbose == 1 ? LogLevel::Info
                                                  : LogLevel::Warning;
    configure_log(level, result->log_file.c_str());
    for (const std::string& complaint : complaints) LIBSWAP_LOG(Warning, "{}", complaint);
    return result;  // never freed: hooks may run after every destructor
}

}  // namespace

std::uint64_t Amount::resolve(std::uint64_t total_bytes, std::uint64_t unset_bytes) const noexcept {
    if (kind == Kind::Unset) return unset_bytes;
    if (kind == Kind::Bytes) return bytes;
    return static_cast<std::uint64_t>(static_cast<double>(total_bytes) * (percent / 100.0));
}

std::span<const SettingInfo> settings_table() noexcept { return kSettings; }

Config parse_config(SettingSource source, void* context, std::vector<std::string>* complaints) {
    Config result;
    const SettingInfo* info = kSettings;
#define SETTING(field, type, parser, name, default_text, unit, sentence)           \
    read_setting(*info, source(name, context), parser, &result.field, complaints); \
    ++info;
#include "runtime/config.def"
#undef SETTING
    return result;
}

const Config& config() noexcept {
    static const Config* const g_config = read_environment();
    return *g_config;
}

std::vector<std::string> describe_config(const Config& config) {
    std::vector<std::string> lines;
#define SETTING(field, type, parser, name, default_text, unit, sentence) \
    lines.push_back(fmt::format("{} = {}", name, show(config.field)));
#include "runtime/config.def"
#undef SETTING
    return lines;
}

}  // namespace libswap
