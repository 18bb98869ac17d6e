// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "tools/chrome_trace.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace libswap::tools {

namespace {

using nlohmann::ordered_json;

enum Row { kCompute = 1, kToHost, kToDevice, kWaits };

class ChromeTrace {
  public:
    explicit ChromeTrace(const TraceDump& dump) : dump_(dump) {
        align_clocks();
        place_operations();
        find_begin();
    }

    std::string run() {
        name_rows();
        operations();
        moves();
        waits();
        memory();
        const ordered_json root{{"displayTimeUnit", "ms"},
                                {"otherData",
                                 {{"libswap", dump_.libswap_version},
                                  {"device", dump_.device_name},
                                  {"budget_bytes", dump_.budget_bytes}}},
                                {"traceEvents", std::move(events_)}};
        return root.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
    }

  private:
    static bool measured(const DumpOp& op) { return op.end_ns > 0; }
    /// Events tell how long an operation took, not when.
    static bool is_on_clock(const DumpOp& op) { return op.start_ns > 0; }

    void align_clocks() {
        bool any = false;
        for (const DumpOp& op : dump_.ops) {
            if (!is_on_clock(op)) continue;
            const auto shift =
                static_cast<std::int64_t>(op.issued_ns) - static_cast<std::int64_t>(op.start_ns);
            shift_ns_ = any ? std::max(shift_ns_, shift) : shift;
            any = true;
        }
    }

    void place_operations() {
        std::int64_t over_ns = 0;  // all before
        for (const DumpOp& op : dump_.ops) {
            const auto issued_ns = static_cast<std::int64_t>(op.issued_ns);
            const std::int64_t start_ns = is_on_clock(op)
                                              ? static_cast<std::int64_t>(op.start_ns) + shift_ns_
                                              : std::max(issued_ns, over_ns);
            op_start_ns_.push_back(start_ns);
            const auto ns = static_cast<std::int64_t>(op.end_ns - op.start_ns);
            if (measured(op)) over_ns = std::max(over_ns, start_ns + ns);
        }
    }

    /// The trace begins at 0.
    void find_begin() {
        std::vector<std::int64_t> all;
        for (std::size_t i = 0; i < dump_.ops.size(); ++i) {
            if (measured(dump_.ops[i])) all.push_back(op_start_ns_[i]);
        }
        for (const DumpMove& m : dump_.moves) all.push_back(static_cast<std::int64_t>(m.start_ns));
        for (const DumpAlloc& a : dump_.allocs) all.push_back(static_cast<std::int64_t>(a.at_ns));
        for (const DumpStall& s : dump_.stalls) {
            all.push_back(static_cast<std::int64_t>(s.at_ns - std::min(s.at_ns, s.ns)));
        }
        if (!all.empty()) begin_ns_ = *std::min_element(all.begin(), all.end());
    }

    double us(std::int64_t ns) const { return static_cast<double>(ns - begin_ns_) / 1e3; }

    void name(const char* what, int row, const std::string& text) {
        events_.push_back({{"name", what},
                           {"ph", "M"},
                           {"pid", dump_.pid},
                           {"tid", row},
                           {"args", {{"name", text}}}});
    }

    void name_rows() {
        name("process_name", 0, dump_.device_name.empty() ? "libswap" : dump_.device_name);
        name("thread_name", kCompute, "compute");
        name("thread_name", kToHost, "copies to the host");
        name("thread_name", kToDevice, "copies to the device");
        name("thread_name", kWaits, "host waits");
    }

    void span(Row row, std::string text, std::int64_t start_ns, std::uint64_t ns,
              ordered_json args) {
        events_.push_back({{"name", std::move(text)},
                           {"ph", "X"},
                           {"pid", dump_.pid},
                           {"tid", static_cast<int>(row)},
                           {"ts", us(start_ns)},
                           {"dur", static_cast<double>(ns) / 1e3},
                           {"args", std::move(args)}});
    }

    void operations() {
        for (std::size_t i = 0; i < dump_.ops.size(); ++i) {
            const DumpOp& op = dump_.ops[i];
            if (!measured(op)) continue;
            const std::string_view text = dump_.name(op.name);
            span(
                kCompute, text.empty() ? op.kind : std::string(text), op_start_ns_[i],
                op.end_ns - op.start_ns,
                {{"op", op.serial}, {"operands", op.operands.size()}, {"explained", op.explained}});
        }
    }

    void moves() {
        for (const DumpMove& m : dump_.moves) {
            const Row row = m.kind == "fetch" ? kToDevice : kToHost;
            span(row, m.kind, static_cast<std::int64_t>(m.start_ns),
                 m.end_ns - std::min(m.start_ns, m.end_ns),
                 {{"bytes", m.bytes}, {"block", m.block}});
        }
    }

    void waits() {
        for (const DumpStall& s : dump_.stalls) {
            const std::uint64_t start = s.at_ns - std::min(s.at_ns, s.ns);
            span(kWaits, std::string(dump_.name(s.name)), static_cast<std::int64_t>(start), s.ns,
                 {{"op", s.serial}});
        }
    }

    /// What is allocated, and what of it is on the device.
    void memory() {
        struct Change {
            std::int64_t at_ns;
            std::int64_t allocated;
            std::int64_t resident;
        };
        std::vector<Change> changes;
        std::unordered_map<std::uint64_t, std::int64_t> size;
        std::unordered_map<std::uint64_t, std::int64_t> away;
        for (const DumpAlloc& a : dump_.allocs) {
            const auto n = static_cast<std::int64_t>(a.bytes);
            size[a.block] = n;
            changes.push_back({static_cast<std::int64_t>(a.at_ns), n, n});
        }
        for (const DumpMove& m : dump_.moves) {
            const auto n = static_cast<std::int64_t>(m.bytes);
            if (m.kind == "fetch") {
                away[m.block] -= n;
                changes.push_back({static_cast<std::int64_t>(m.start_ns), 0, n});
            } else if (m.kind != "copy") {
                away[m.block] += n;
                changes.push_back({static_cast<std::int64_t>(m.end_ns), 0, -n});
            }
        }
        for (const DumpFree& f : dump_.frees) {
            const auto known = size.find(f.block);
            if (known == size.end()) continue;
            changes.push_back({static_cast<std::int64_t>(f.at_ns), -known->second,
                               -std::max<std::int64_t>(0, known->second - away[f.block])});
        }
        std::stable_sort(changes.begin(), changes.end(),
                         [](const Change& a, const Change& b) { return a.at_ns < b.at_ns; });
        std::int64_t allocated = 0;
        std::int64_t resident = 0;
        for (const Change& c : changes) {
            allocated += c.allocated;
            resident += c.resident;
            events_.push_back({{"name", "memory"},
                               {"ph", "C"},
                               {"pid", dump_.pid},
                               {"ts", us(c.at_ns)},
                               {"args",
                                {{"allocated", allocated},
                                 {"on the device", std::max<std::int64_t>(0, resident)}}}});
        }
    }

    const TraceDump& dump_;
    std::int64_t shift_ns_ = 0;
    std::vector<std::int64_t> op_start_ns_;  ///< host's clock, per operation
    std::int64_t begin_ns_ = 0;
    ordered_json events_ = ordered_json::array();
};

}  // namespace

std::string format_chrome_trace(const TraceDump& dump) { return ChromeTrace(dump).run(); }

}  // namespace libswap::tools
