// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/summary.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <span>
#include <vector>

#include "runtime/kernel_times.hpp"
#include "runtime/log.hpp"

namespace libswap {
namespace {

struct Row {
    const char* name;
    Counters::Count Counters::*count;
};

constexpr Row kRows[] = {
    {"peak_asked_bytes", &Counters::peak_asked_bytes},
    {"peak_span_bytes", &Counters::peak_span_bytes},
    {"external_bytes", &Counters::external_bytes},
    {"managed_bytes", &Counters::managed_bytes},
    {"driver_bytes", &Counters::driver_bytes},
    {"bytes_out", &Counters::bytes_out},
    {"bytes_in", &Counters::bytes_in},
    {"bytes_clean", &Counters::bytes_clean},
    {"bytes_fresh", &Counters::bytes_fresh},
    {"contents_ended", &Counters::contents_ended},
    {"evictions", &Counters::evictions},
    {"fetches", &Counters::fetches},
    {"cancels", &Counters::cancels},
    {"hand_overs", &Counters::hand_overs},
    {"copies_ahead", &Counters::copies_ahead},
    {"restored", &Counters::restored},
    {"guards", &Counters::guards},
    {"guard_hits", &Counters::guard_hits},
    {"verified", &Counters::verified},
    {"launches", &Counters::launches},
    {"copies", &Counters::copies},
    {"memsets", &Counters::memsets},
    {"graph_launches", &Counters::graph_launches},
    {"host_operands", &Counters::host_operands},
    {"host_waits", &Counters::host_waits},
    {"host_wait_ns", &Counters::host_wait_ns},
    {"free_waits", &Counters::free_waits},
    {"free_wait_ns", &Counters::free_wait_ns},
    {"stalls", &Counters::stalls},
    {"fallbacks", &Counters::fallbacks},
    {"iterations", &Counters::iterations},
    {"iteration_ns", &Counters::iteration_ns},
    {"plans", &Counters::plans},
    {"plan_predicted_us", &Counters::plan_predicted_us},
};

double mib(std::uint64_t bytes) noexcept { return static_cast<double>(bytes) / (1 << 20); }

/// ", planned 12.34 ms: 1.02 of it in the mean of 20, at most 1.10"; empty without a plan.
std::string against_plan(const std::vector<IterationTime>& times) {
    double sum = 0;
    double most = 0;
    double planned_us = 0;
    std::size_t count = 0;
    for (const IterationTime& time : times) {
        if (time.predicted_us <= 0) continue;
        const double ratio = time.us / time.predicted_us;
        sum += ratio;
        most = std::max(most, ratio);
        planned_us = time.predicted_us;
        ++count;
    }
    if (count == 0) return "";
    return fmt::format(", planned {:.2f} ms: {:.3f} of it in the mean of {}, at most {:.3f}",
                       planned_us / 1000, sum / static_cast<double>(count), count, most);
}

void add_iterations(std::string& text, const std::vector<IterationTime>& times) {
    auto out = std::back_inserter(text);
    text += ", \"last_iterations\": [";
    for (std::size_t i = 0; i < times.size(); ++i)
        fmt::format_to(out, "{}{{\"us\": {:.3f}, \"predicted_us\": {:.3f}}}", i == 0 ? "" : ", ",
                       times[i].us, times[i].predicted_us);
    text += "]";
}

constexpr struct {
    const char* name;
    cost::Direction direction;
} kDirections[] = {{"out", cost::Direction::ToHost}, {"in", cost::Direction::ToDevice}};

std::string error_text(const char* name, const ModelError& error) {
    return fmt::format("{} {:.1f} % of {}{}", name, error.mean_percent(), error.count(),
                       error.drifts() ? fmt::format(" (now {:.2f} times)", error.ratio()) : "");
}

/// Of each direction that anything was copied in, and each class of operations that was timed.
template <typename Visit>
void for_each_copy_error(Device& device, Visit visit) {
    for (const auto& [name, direction] : kDirections)
        if (const ModelError error = device.copy_times().error(direction); error.count() > 0)
            visit(name, error);
}

template <typename Visit>
void for_each_time_error(Device& device, Visit visit) {
    for (std::size_t i = 0; i < kOperationClasses.size(); ++i)
        if (const ModelError error = device.time_error(static_cast<OperationClass>(i));
            error.count() > 0)
            visit(kOperationClasses[i], error);
}

/// How far what was measured is from the models: means of absolute errors.
void add_models(std::string& text, Device& device) {
    std::string copies;
    std::string operations;
    for_each_copy_error(device, [&](const char* name, const ModelError& error) {
        copies += (copies.empty() ? "" : ", ") + error_text(name, error);
    });
    for_each_time_error(device, [&](const char* name, const ModelError& error) {
        operations += (operations.empty() ? "" : ", ") + error_text(name, error);
    });
    auto out = std::back_inserter(text);
    if (!copies.empty())
        fmt::format_to(out, "libswap:   link ({}) against copies: {}\n", device.machine_source(),
                       copies);
    if (!operations.empty())
        fmt::format_to(out, "libswap:   times of operations, earlier against later ones: {}\n",
                       operations);
}

void add_device(std::string& text, Device& device) {
    Counters& c = device.counters();
    auto out = std::back_inserter(text);
    const std::uint64_t asked = c.peak_asked_bytes;
    fmt::format_to(out, "libswap: device {}: peak asked for {:.1f} MiB, budget {:.1f} MiB\n",
                   device.ordinal(), mib(asked), mib(device.budget_bytes()));
    fmt::format_to(
        out,
        "libswap:   out {:.1f} MiB, in {:.1f} MiB; not copied: {:.1f} MiB unchanged since the "
        "last fetch, {:.1f} MiB without content\n",
        mib(c.bytes_out), mib(c.bytes_in), mib(c.bytes_clean), mib(c.bytes_fresh));
    const std::uint64_t in_blocks = asked - std::min<std::uint64_t>(asked, c.slab_asked_bytes);
    const std::uint64_t span = c.peak_span_bytes;
    fmt::format_to(
        out,
        "libswap:   rounding {:.1f} MiB; {} operations waited {:.1f} ms for memory, {} used "
        "blocks on the host, {} waits given up\n",
        mib(span > in_blocks ? span - in_blocks : 0), c.host_waits.load(),
        static_cast<double>(c.host_wait_ns) / 1e6, c.host_operands.load(), c.stalls.load());
    std::string stays;
    for (std::size_t i = 1; i < kStayReasons.size(); ++i)
        if (const std::uint64_t bytes = c.stay_bytes[i])
            fmt::format_to(std::back_inserter(stays), "{}{:.1f} MiB for {}",
                           stays.empty() ? "" : ", ", mib(bytes), kStayReasons[i]);
    if (!stays.empty()) fmt::format_to(out, "libswap:   stays on the device: {}\n", stays);
    if (c.iterations)
        fmt::format_to(out, "libswap:   {} iterations, the last {:.2f} ms{}\n", c.iterations.load(),
                       static_cast<double>(c.iteration_ns) / 1e6,
                       against_plan(device.last_iterations()));
    add_models(text, device);
}

/// One member of a JSON object: {"name": {"count": 3, "mean_percent": 1.5, "ratio": 1.01}, ...}
template <typename Source>
void add_errors_json(std::string& text, const char* member, std::span<const char* const> names,
                     Source source) {
    auto out = std::back_inserter(text);
    fmt::format_to(out, ", \"{}\": {{", member);
    for (std::size_t i = 0; i < names.size(); ++i) {
        const ModelError error = source(i);
        fmt::format_to(out,
                       "{}\"{}\": {{\"count\": {}, \"mean_percent\": {:.3f}, \"ratio\": {:.4f}, "
                       "\"drifts\": {}}}",
                       i == 0 ? "" : ", ", names[i], error.count(), error.mean_percent(),
                       error.ratio(), error.drifts());
    }
    text += "}";
}

void add_models_json(std::string& text, Device& device) {
    std::string source = device.machine_source();
    // A path may hold what JSON strings may not.
    std::replace_if(
        source.begin(), source.end(),
        [](char c) { return c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' '; }, '?');
    fmt::format_to(std::back_inserter(text), ", \"machine\": \"{}\", \"timed_by_cupti\": {}",
                   source, KernelTimes::instance().answered());
    constexpr std::array<const char*, 2> kNames = {"out", "in"};
    add_errors_json(text, "copy_errors", kNames, [&](std::size_t i) {
        return device.copy_times().error(kDirections[i].direction);
    });
    add_errors_json(text, "copy_errors_of_plans", kNames, [&](std::size_t i) {
        return device.copy_times().error_of_plans(kDirections[i].direction);
    });
    add_errors_json(text, "operation_errors", kOperationClasses, [&](std::size_t i) {
        return device.time_error(static_cast<OperationClass>(i));
    });
}

}  // namespace

std::string summary_text(const SummaryInput& input) {
    std::string text;
    for (Device* device : input.devices) add_device(text, *device);
    if (input.hook_time)
        fmt::format_to(std::back_inserter(text),
                       "libswap: hooks took {:.1f} ms of the program's threads\n",
                       static_cast<double>(input.hook_time()) / 1e6);
    if (input.passed_through) {
        std::string names;
        input.passed_through([&](const char* name, std::uint64_t count) {
            fmt::format_to(std::back_inserter(names), "{}{} {}", names.empty() ? "" : ", ", name,
                           count);
        });
        if (!names.empty()) text += "libswap: seen, passed through: " + names + "\n";
    }
    return text;
}

void log_models(Device& device, EventLog& log) {
    const auto add = [&](const std::string& name, const ModelError& error) {
        log.model(log.name(name), device.ordinal(), error.count(), error.mean_percent(),
                  error.ratio());
    };
    for_each_copy_error(device, [&](const char* direction, const ModelError& error) {
        add(fmt::format("the link {}", direction), error);
    });
    for_each_time_error(
        device, [&](const char* operations, const ModelError& error) { add(operations, error); });
}

std::string summary_json(const SummaryInput& input) {
    std::string text = "{\"format\": \"libswap-summary/1\", \"devices\": [";
    auto out = std::back_inserter(text);
    bool first = true;
    for (Device* device : input.devices) {
        fmt::format_to(out, "{}{{\"device\": {}, \"budget_bytes\": {}, \"host_limit_bytes\": {}",
                       first ? "" : ", ", device->ordinal(), device->budget_bytes(),
                       device->host_limit_bytes());
        for (const Row& row : kRows)
            fmt::format_to(out, ", \"{}\": {}", row.name, (device->counters().*row.count).load());
        for (std::size_t i = 1; i < kStayReasons.size(); ++i)
            fmt::format_to(out, ", \"stays for {}\": {}", kStayReasons[i],
                           device->counters().stay_bytes[i].load());
        add_iterations(text, device->last_iterations());
        add_models_json(text, *device);
        text += "}";
        first = false;
    }
    text += "], \"passed_through\": {";
    first = true;
    if (input.passed_through)
        input.passed_through([&](const char* name, std::uint64_t count) {
            fmt::format_to(out, "{}\"{}\": {}", first ? "" : ", ", name, count);
            first = false;
        });
    text += "}";
    if (input.hook_time) fmt::format_to(out, ", \"hook_ns\": {}", input.hook_time());
    text += "}\n";
    return text;
}

void write_summary(const Config& config, const SummaryInput& input) {
    if (config.verbose >= 1) write_log_text(summary_text(input));
    if (config.summary_file.empty()) return;
    std::string path = config.summary_file;
    if (const auto at = path.find("%p"); at != std::string::npos)
        path.replace(at, 2, std::to_string(getpid()));
    const std::string text = summary_json(input);
    std::FILE* file = std::fopen(path.c_str(), "we");
    const bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (file && std::fclose(file) == 0 && written) return;
    LIBSWAP_LOG(Warning, "cannot write the summary to {}, going on without", path);
}

}  // namespace libswap
