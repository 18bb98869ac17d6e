// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>

#include <fmt/format.h>

#include "tools/commands.hpp"
#include "tools/files.hpp"
#include "tools/formats.hpp"
#include "tools/trace_dump.hpp"

namespace libswap::tools {

namespace {

void line(const char* what, const std::string& value) { fmt::print("{:<14}{}\n", what, value); }

std::string bytes(std::uint64_t n) { return format_bytes(static_cast<double>(n)); }

struct Total {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    double us = 0;
};

/// Most that was allocated at once: asked for, and with the rounding to chunks.
void print_peak(const TraceDump& dump) {
    struct Change {
        std::uint64_t seq;
        std::int64_t asked;
        std::int64_t rounded;
    };
    std::vector<Change> changes;
    std::unordered_map<std::uint64_t, const DumpAlloc*> live;
    for (const DumpAlloc& a : dump.allocs) {
        changes.push_back(
            {a.seq, static_cast<std::int64_t>(a.asked_bytes), static_cast<std::int64_t>(a.bytes)});
        live[a.block] = &a;
    }
    for (const DumpFree& f : dump.frees) {
        const auto a = live.find(f.block);
        if (a == live.end()) continue;
        changes.push_back({f.seq, -static_cast<std::int64_t>(a->second->asked_bytes),
                           -static_cast<std::int64_t>(a->second->bytes)});
    }
    std::sort(changes.begin(), changes.end(),
              [](const Change& a, const Change& b) { return a.seq < b.seq; });
    std::int64_t asked = 0;
    std::int64_t rounded = 0;
    std::int64_t most_asked = 0;
    std::int64_t most_rounded = 0;
    for (const Change& c : changes) {
        most_asked = std::max(most_asked, asked += c.asked);
        most_rounded = std::max(most_rounded, rounded += c.rounded);
    }
    line("allocated", fmt::format("{} times, {} at most, {} with rounding", dump.allocs.size(),
                                  bytes(static_cast<std::uint64_t>(most_asked)),
                                  bytes(static_cast<std::uint64_t>(most_rounded))));
}

void print_operations(const TraceDump& dump) {
    std::map<std::string, std::uint64_t> kinds;
    std::uint64_t unexplained = 0;
    for (const DumpOp& op : dump.ops) {
        ++kinds[op.kind];
        unexplained += !op.explained;
    }
    std::string text = fmt::format("{}", dump.ops.size());
    for (const auto& [kind, count] : kinds) text += fmt::format(", {} {}", count, kind);
    line("operations", fmt::format("{}; {} not explained", text, unexplained));
}

void print_kernels(const TraceDump& dump, std::size_t most) {
    std::map<std::string_view, Total> by_name;
    for (const DumpOp& op : dump.ops) {
        if (op.duration_us < 0) continue;
        const std::string_view name = dump.name(op.name);
        Total& total = by_name[name.empty() ? std::string_view(op.kind) : name];
        ++total.count;
        total.us += op.duration_us;
    }
    std::vector<std::pair<std::string_view, Total>> sorted(by_name.begin(), by_name.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.second.us > b.second.us; });
    sorted.resize(std::min(sorted.size(), most));
    for (const auto& [name, total] : sorted) {
        line("  kernel",
             fmt::format("{:>10.3f} ms {:>7} times  {}", total.us / 1e3, total.count, name));
    }
}

void print_swapping(const TraceDump& dump) {
    std::map<std::string, Total> moves;
    for (const DumpMove& m : dump.moves) {
        Total& total = moves[m.kind];
        ++total.count;
        total.bytes += m.bytes;
        total.us += static_cast<double>(m.end_ns - m.start_ns) / 1e3;
    }
    for (const auto& [kind, total] : moves) {
        const double gbps =
            total.us > 0 ? static_cast<double>(total.bytes) / (total.us * 1e3) : 0.0;
        line(kind.c_str(), fmt::format("{} times, {}, {:.3f} ms, {:.1f} GB/s", total.count,
                                       bytes(total.bytes), total.us / 1e3, gbps));
    }
    std::uint64_t stalled_ns = 0;
    for (const DumpStall& s : dump.stalls) stalled_ns += s.ns;
    line("stalls",
         fmt::format("{}, {:.3f} ms", dump.stalls.size(), static_cast<double>(stalled_ns) / 1e6));
}

/// Models against measurements, per direction of the link and per class of operations.
void print_models(const TraceDump& dump) {
    const bool one_device =
        std::all_of(dump.models.begin(), dump.models.end(),
                    [&](const DumpModel& m) { return m.device == dump.models.front().device; });
    for (const DumpModel& m : dump.models) {
        line("model error",
             fmt::format("{:>6.1f} % in the mean of {:>7}, lately {:.2f} times  {}{}",
                         m.mean_percent, m.count, m.ratio, dump.name(m.name),
                         one_device ? "" : fmt::format(" of device {}", m.device)));
    }
}

int run_report(const std::string& path, std::size_t kernels) {
    const auto text = read_file(path);
    if (!text) return fail(text.error());
    const auto dump = parse_trace(*text);
    if (!dump) return fail(fmt::format("{}: {}", path, dump.error()));
    line("trace",
         fmt::format("{} (libswap {}, process {})", path, dump->libswap_version, dump->pid));
    line("device", fmt::format("{}, {}, budget {}", dump->device_name, bytes(dump->device_bytes),
                               bytes(dump->budget_bytes)));
    print_peak(*dump);
    print_operations(*dump);
    print_kernels(*dump, kernels);
    print_swapping(*dump);
    print_models(*dump);
    for (const DumpLoop& loop : dump->loops) {
        line("iteration",
             fmt::format("{} operations, found at operation {}", loop.period, loop.serial));
    }
    if (!dump->complete) line("incomplete", "the dump has no last line: the process was killed");
    if (dump->dropped > 0) line("dropped", fmt::format("{} events", dump->dropped));
    return 0;
}

}  // namespace

void add_report_command(CLI::App& app, int& exit_status) {
    struct Arguments {
        std::string dump;
        std::size_t kernels = 10;
    };
    auto args = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("report", "Summarise a trace dump (LIBSWAP_TRACE)");
    command->add_option("dump", args->dump, "the dump")->required();
    command->add_option("--kernels", args->kernels, "how many kernels to list")
        ->capture_default_str();
    command->callback(
        [args, &exit_status] { exit_status = run_report(args->dump, args->kernels); });
}

}  // namespace libswap::tools
