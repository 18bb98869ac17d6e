// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "tools/chrome_trace.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include <nlohmann/json.hpp>

namespace libswap::tools {
namespace {

using nlohmann::json;

/// Host clock from 1,000,000 ns, device clock from 500: two operations, of which the first began
/// when it was issued, an eviction, a fetch and a wait.
constexpr const char* kDump =
    R"({"format":"libswap-trace/1","libswap":"0.1.0","pid":42,"device":"Test GPU","device_bytes":64,"budget_bytes":32}
{"e":"name","name":1,"text":"forward"}
{"e":"name","name":2,"text":"no room"}
{"s":0,"t":1000000,"e":"alloc","block":7,"bytes":4096,"asked":4000}
{"s":1,"t":1001000,"e":"op","op":0,"kind":"launch","name":1,"stream":1,"sig":"01","workspace":0,"operands":1}
{"s":2,"t":1001000,"e":"use","op":0,"k":0,"block":7,"bytes":4096,"r":true,"w":true}
{"s":3,"t":1001500,"e":"op","op":1,"kind":"launch","name":1,"stream":1,"sig":"01","workspace":0,"operands":0}
{"s":4,"t":1090000,"e":"time","op":0,"start":500,"end":10500}
{"s":5,"t":1090000,"e":"time","op":1,"start":20500,"end":30500}
{"s":6,"t":1090001,"e":"move","do":"evict","block":7,"bytes":4096,"after":0,"start":1012000,"end":1014000}
{"s":7,"t":1090002,"e":"move","do":"fetch","block":7,"bytes":4096,"after":1,"start":1016000,"end":1020000}
{"s":8,"t":1020000,"e":"stall","op":1,"ns":5000,"name":2}
{"s":9,"t":1100000,"e":"free","block":7}
{"e":"end","dropped":0,"write_errors":0}
)";

json trace() {
    const auto dump = parse_trace(kDump);
    EXPECT_TRUE(dump) << dump.error();
    return json::parse(format_chrome_trace(*dump));
}

std::map<std::string, int> rows(const json& root) {
    std::map<std::string, int> result;
    for (const json& e : root["traceEvents"]) {
        if (e["name"] == "thread_name") result[e["args"]["name"]] = e["tid"];
    }
    return result;
}

json spans_of(const json& root, int row) {
    json result = json::array();
    for (const json& e : root["traceEvents"]) {
        if (e["ph"] == "X" && e["tid"] == row) result.push_back(e);
    }
    return result;
}

TEST(ChromeTrace, HasARowForEachEngineAndForWaits) {
    const json root = trace();
    auto row = rows(root);
    ASSERT_EQ(row.size(), 4U);
    const json compute = spans_of(root, row["compute"]);
    ASSERT_EQ(compute.size(), 2U);
    EXPECT_EQ(compute[0]["name"], "forward");
    EXPECT_DOUBLE_EQ(compute[0]["ts"].get<double>(), 1);  // issued 1 us after the first event
    EXPECT_DOUBLE_EQ(compute[0]["dur"].get<double>(), 10);
    EXPECT_DOUBLE_EQ(compute[1]["ts"].get<double>(), 21);
    const json out = spans_of(root, row["copies to the host"]);
    ASSERT_EQ(out.size(), 1U);
    EXPECT_DOUBLE_EQ(out[0]["ts"].get<double>(), 12);
    EXPECT_EQ(out[0]["args"]["bytes"], 4096);
    const json in = spans_of(root, row["copies to the device"]);
    ASSERT_EQ(in.size(), 1U);
    EXPECT_DOUBLE_EQ(in[0]["dur"].get<double>(), 4);
    const json waits = spans_of(root, row["host waits"]);
    ASSERT_EQ(waits.size(), 1U);
    EXPECT_EQ(waits[0]["name"], "no room");
    EXPECT_DOUBLE_EQ(waits[0]["ts"].get<double>(), 15);  // it ended at 20
    EXPECT_DOUBLE_EQ(waits[0]["dur"].get<double>(), 5);
}

TEST(ChromeTrace, CountsMemoryAllocatedAndOnTheDevice) {
    std::vector<std::pair<double, double>> memory;
    const json root = trace();
    for (const json& e : root["traceEvents"]) {
        if (e["ph"] != "C") continue;
        memory.emplace_back(e["args"]["allocated"], e["args"]["on the device"]);
    }
    const std::vector<std::pair<double, double>> expected{
        {4096, 4096}, {4096, 0}, {4096, 4096}, {0, 0}};
    EXPECT_EQ(memory, expected);
}

/// As above, with one operation more: behind the others, but timed by events.
TEST(ChromeTrace, DrawsWhatEventsTimedOneAfterTheOther) {
    std::string dump = kDump;
    dump.insert(
        dump.find("{\"s\":9"),
        R"({"s":10,"t":1025000,"e":"op","op":2,"kind":"launch","name":1,"stream":1,"sig":"01","workspace":0,"operands":0}
{"s":11,"t":1090000,"e":"time","op":2,"start":0,"end":3000}
{"s":12,"t":1050000,"e":"op","op":3,"kind":"launch","name":1,"stream":1,"sig":"01","workspace":0,"operands":0}
{"s":13,"t":1090000,"e":"time","op":3,"start":0,"end":3000}
)");
    const auto parsed = parse_trace(dump);
    ASSERT_TRUE(parsed) << parsed.error();
    const json root = json::parse(format_chrome_trace(*parsed));
    const json compute = spans_of(root, rows(root)["compute"]);
    ASSERT_EQ(compute.size(), 4U);
    EXPECT_DOUBLE_EQ(compute[0]["ts"].get<double>(), 1);
    EXPECT_DOUBLE_EQ(compute[1]["ts"].get<double>(), 21);
    EXPECT_DOUBLE_EQ(compute[2]["ts"].get<double>(),
                     31);  // issued at 25, the one before ends at 31
    EXPECT_DOUBLE_EQ(compute[2]["dur"].get<double>(), 3);
    EXPECT_DOUBLE_EQ(compute[3]["ts"].get<double>(), 50);  // when it was issued
}

TEST(ChromeTrace, OfAnEmptyDumpIsStillATrace) {
    const json root = json::parse(format_chrome_trace(TraceDump{}));
    EXPECT_TRUE(root["traceEvents"].is_array());
}

}  // namespace
}  // namespace libswap::tools
