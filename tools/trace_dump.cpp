// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "tools/trace_dump.hpp"

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cost/roofline.hpp"
#include "runtime/learner.hpp"

namespace libswap::tools {

namespace {

using nlohmann::json;

class TraceReader {
  public:
    tl::expected<TraceDump, std::string> run(std::string_view text) {
        std::size_t number = 0;
        while (!text.empty()) {
            const std::size_t end = text.find('\n');
            const bool cut = end == std::string_view::npos;
            const std::string_view line = text.substr(0, end);
            text.remove_prefix(cut ? text.size() : end + 1);
            ++number;
            if (line.empty()) continue;
            try {
                read_line(number, json::parse(line));
            } catch (const std::exception& e) {
                if (cut && number > 1) break;
                return tl::unexpected(number == 1
                                          ? std::string("not a libswap-trace/1 file")
                                          : fmt::format("line {}: {}", number, short_text(e)));
            }
        }
        if (number == 0) return tl::unexpected(std::string("the file is empty"));
        finish();
        return std::move(dump_);
    }

  private:
    static std::string short_text(const std::exception& e) {
        const auto* parse = dynamic_cast<const json::parse_error*>(&e);
        return parse != nullptr ? fmt::format("not JSON (byte {})", parse->byte) : e.what();
    }

    void read_line(std::size_t number, const json& line) {
        if (number == 1) return read_header(line);
        const auto event = line.at("e").get<std::string>();
        if (event == "op") {
            read_op(line);
        } else if (event == "use") {
            read_use(line);
        } else if (event == "time") {
            times_[u64(line, "op")] = {u64(line, "start"), u64(line, "end")};
        } else if (event == "alloc") {
            dump_.allocs.push_back({u64(line, "s"), u64(line, "block"), u64(line, "bytes"),
                                    u64(line, "asked"), time_of(line)});
        } else if (event == "free") {
            dump_.frees.push_back({u64(line, "s"), u64(line, "block"), time_of(line)});
        } else if (event == "move") {
            dump_.moves.push_back({line.at("do").get<std::string>(), u64(line, "bytes"),
                                   u64(line, "start"), u64(line, "end"),
                                   line.value("block", std::uint64_t{0})});
        } else if (event == "stall") {
            dump_.stalls.push_back(
                {u64(line, "op"), u64(line, "ns"), u32(line, "name"), time_of(line)});
        } else if (event == "iteration") {
            dump_.loops.push_back({u64(line, "op"), u32(line, "loop"), u64(line, "period")});
        } else if (event == "model") {
            dump_.models.push_back({u32(line, "name"), line.at("device").get<int>(),
                                    u64(line, "count"), line.at("mean_percent").get<double>(),
                                    line.at("ratio").get<double>()});
        } else if (event == "name") {
            read_name(line);
        } else if (event == "end") {
            dump_.dropped = u64(line, "dropped");
            dump_.complete = true;
        }  // others are of later versions, and may be skipped
    }

    static std::uint64_t u64(const json& line, const char* key) {
        return line.at(key).get<std::uint64_t>();
    }
    static std::uint64_t time_of(const json& line) { return line.value("t", std::uint64_t{0}); }
    static std::uint32_t u32(const json& line, const char* key) {
        return line.at(key).get<std::uint32_t>();
    }

    void read_header(const json& line) {
        if (line.at("format") != "libswap-trace/1") throw std::invalid_argument("format");
        dump_.libswap_version = line.value("libswap", "");
        dump_.device_name = line.value("device", "");
        dump_.device_bytes = line.value("device_bytes", std::uint64_t{0});
        dump_.budget_bytes = line.value("budget_bytes", std::uint64_t{0});
        dump_.pid = line.value("pid", std::uint64_t{0});
    }

    void read_op(const json& line) {
        DumpOp op;
        op.serial = u64(line, "op");
        op.seq = u64(line, "s");
        op.signature = std::strtoull(line.at("sig").get<std::string>().c_str(), nullptr, 16);
        op.workspace_bytes = u64(line, "workspace");
        op.kind = line.at("kind").get<std::string>();
        op.name = u32(line, "name");
        op.explained = line.value("explained", true);
        op.issued_ns = time_of(line);
        dump_.ops.push_back(std::move(op));
    }

    void read_use(const json& line) {
        uses_.push_back({u64(line, "op"),
                         u64(line, "k"),
                         {u64(line, "block"), u64(line, "bytes"), line.at("r").get<bool>(),
                          line.at("w").get<bool>()}});
    }

    void read_name(const json& line) {
        const std::uint32_t number = u32(line, "name");
        if (number > (1U << 24)) throw std::invalid_argument("the name's number is out of range");
        if (dump_.names.size() <= number) dump_.names.resize(number + 1);
        dump_.names[number] = line.at("text").get<std::string>();
    }

    void finish() {
        std::sort(dump_.ops.begin(), dump_.ops.end(),
                  [](const DumpOp& a, const DumpOp& b) { return a.serial < b.serial; });
        std::sort(dump_.frees.begin(), dump_.frees.end(),
                  [](const DumpFree& a, const DumpFree& b) { return a.seq < b.seq; });
        std::sort(uses_.begin(), uses_.end(), [](const Use& a, const Use& b) {
            return a.op != b.op ? a.op < b.op : a.k < b.k;
        });
        auto use = uses_.begin();
        for (DumpOp& op : dump_.ops) {
            while (use != uses_.end() && use->op < op.serial) ++use;
            for (; use != uses_.end() && use->op == op.serial; ++use) {
                op.operands.push_back(use->operand);
            }
            const auto time = times_.find(op.serial);
            if (time == times_.end()) continue;
            std::tie(op.start_ns, op.end_ns) = time->second;
            op.duration_us = static_cast<double>(op.end_ns - op.start_ns) / 1e3;
        }
    }

    struct Use {
        std::uint64_t op;
        std::uint64_t k;
        cost::TracedOperand operand;
    };

    TraceDump dump_;
    std::vector<Use> uses_;
    std::unordered_map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> times_;
};

/// Runs the dump through the same learner that libswap has, and keeps each loop's last repetitions.
class LoopFinder {
  public:
    explicit LoopFinder(const TraceDump& dump) : dump_(dump) {}

    /// The trace of the loop that covers most operations; empty if there is none.
    cost::Trace best() {
        LearnerLimits limits;
        limits.max_period = std::max<std::size_t>(64, dump_.ops.size() / 2);
        limits.max_operands = std::max<std::size_t>(64, operand_count());
        limits.max_loops = 16;
        Learner learner(limits);
        std::size_t next_free = 0;
        std::vector<std::pair<std::uint64_t, std::uint64_t>> serials;
        for (const DumpOp& op : dump_.ops) {
            for (; next_free < dump_.frees.size() && dump_.frees[next_free].seq < op.seq;
                 ++next_free) {
                learner.note_free(dump_.frees[next_free].block);
            }
            const Step step = learner.observe(op.signature, op.operands);
            if (op.duration_us >= 0) learner.set_duration(step.serial, op.duration_us);
            learner.set_workspace(step.serial, op.workspace_bytes);
            if (step.loop == kNoLoop) continue;
            Found& found = found_[step.loop];
            ++found.covered;
            if (step.locked) found.covered += learner.period(step.loop) * 2;
            const bool at_end = step.phase + 1 == learner.period(step.loop);
            if (at_end || found.trace.ops.empty()) keep(learner, found);
        }
        const auto most = std::max_element(
            found_.begin(), found_.end(),
            [](const auto& a, const auto& b) { return a.second.covered < b.second.covered; });
        return most == found_.end() ? cost::Trace{} : std::move(most->second.trace);
    }

  private:
    struct Found {
        std::uint64_t covered = 0;
        cost::Trace trace;
    };

    static void keep(const Learner& learner, Found& found) {
        cost::Trace trace;
        if (learner.snapshot(trace)) found.trace = std::move(trace);
    }

    std::size_t operand_count() const {
        std::size_t n = 0;
        for (const DumpOp& op : dump_.ops) n += op.operands.size();
        return n;
    }

    const TraceDump& dump_;
    std::unordered_map<LoopId, Found> found_;
};

}  // namespace

tl::expected<TraceDump, std::string> parse_trace(std::string_view text) {
    return TraceReader().run(text);
}

tl::expected<cost::Workload, std::string> workload_of(const TraceDump& dump) {
    if (dump.ops.empty()) return tl::unexpected(std::string("the dump has no operations"));
    cost::Trace trace = LoopFinder(dump).best();
    if (trace.ops.empty()) {
        return tl::unexpected(
            fmt::format("no iteration repeats in the dump's {} operations", dump.ops.size()));
    }
    std::unordered_map<std::uint64_t, std::string_view> names;
    for (const DumpOp& op : dump.ops) {
        const std::string_view name = dump.name(op.name);
        names.try_emplace(op.signature, name.empty() ? std::string_view(op.kind) : name);
    }
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        trace.ops[i].name = names[trace.ops[i].signature];
        if (trace.ops[i].duration_us >= 0) continue;
        double bytes = 0;
        for (const cost::TracedOperand& o : trace.operands_of(i))
            bytes += static_cast<double>(o.bytes);
        trace.ops[i].duration_us = cost::roofline_us({}, 0, bytes);
    }
    return cost::build_iteration(trace, trace.ops.size() / 2).workload;
}

}  // namespace libswap::tools
