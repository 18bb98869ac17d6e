// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/config.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>

namespace libswap {
namespace {

using Environment = std::map<std::string, std::string>;

const char* from_map(const char* name, void* context) {
    const auto& environment = *static_cast<const Environment*>(context);
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
}

Config parse(Environment environment, std::vector<std::string>* complaints) {
    return parse_config(&from_map, &environment, complaints);
}

/// With one variable set, which must be understood.
Config parse_one(const char* name, const char* text) {
    std::vector<std::string> complaints;
    const Config result = parse({{name, text}}, &complaints);
    EXPECT_TRUE(complaints.empty()) << name << '=' << text << ": " << complaints.front();
    return result;
}

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

TEST(Config, DefaultsStandWhereNothingIsSet) {
    std::vector<std::string> complaints;
    const Config config = parse({}, &complaints);
    EXPECT_TRUE(complaints.empty());
    EXPECT_EQ(config.mode, Mode::Swap);
    EXPECT_FALSE(config.budget.is_set());
    EXPECT_FALSE(config.host_limit.is_set());
    EXPECT_EQ(config.min_swap_bytes, std::uint64_t{1} << 20);
    EXPECT_EQ(config.report, Report::Virtual);
    EXPECT_EQ(config.move, Move::Auto);
    EXPECT_FALSE(config.fill.is_set);
    EXPECT_FALSE(config.verify);
    EXPECT_EQ(config.verbose, 0);
    EXPECT_TRUE(config.trace_file.empty());
}

TEST(Config, EmptyTextIsAsGoodAsUnset) {
    std::vector<std::string> complaints;
    const Config config = parse({{"LIBSWAP_MODE", ""}, {"LIBSWAP_BUDGET", ""}}, &complaints);
    EXPECT_TRUE(complaints.empty());
    EXPECT_EQ(config.mode, Mode::Swap);
}

TEST(Config, AmountsAreBytesOrShares) {
    EXPECT_EQ(parse_one("LIBSWAP_BUDGET", "6GiB").budget.resolve(0, 0), 6 * kGiB);
    EXPECT_EQ(parse_one("LIBSWAP_BUDGET", "512M").budget.resolve(0, 0), kGiB / 2);
    EXPECT_EQ(parse_one("LIBSWAP_BUDGET", "1.5 g").budget.resolve(0, 0), 3 * kGiB / 2);
    EXPECT_EQ(parse_one("LIBSWAP_BUDGET", "1048577").budget.resolve(0, 0), 1048577U);
    EXPECT_EQ(parse_one("LIBSWAP_BUDGET", "100kb").budget.resolve(0, 0), 102400U);
    EXPECT_EQ(parse_one("LIBSWAP_BUDGET", "60%").budget.resolve(10 * kGiB, 0), 6 * kGiB);
    EXPECT_EQ(parse_one("LIBSWAP_HOST_LIMIT", "12.5 %").host_limit.resolve(8 * kGiB, 0), kGiB);
    EXPECT_EQ(Amount{}.resolve(10 * kGiB, 7), 7U);
}

TEST(Config, NonsenseKeepsTheDefaultAndSaysWhy) {
    const std::pair<const char*, const char*> wrong[] = {
        {"LIBSWAP_BUDGET", "nonsense"}, {"LIBSWAP_BUDGET", "-1"},
        {"LIBSWAP_BUDGET", "0"},        {"LIBSWAP_BUDGET", "120%"},
        {"LIBSWAP_BUDGET", "0%"},       {"LIBSWAP_BUDGET", "6GiBs"},
        {"LIBSWAP_BUDGET", "6 apples"}, {"LIBSWAP_BUDGET", "nan"},
        {"LIBSWAP_BUDGET", "inf"},      {"LIBSWAP_BUDGET", "1e3"},
        {"LIBSWAP_BUDGET", "."},        {"LIBSWAP_BUDGET", "99999999999999999999"},
        {"LIBSWAP_BUDGET", "9999999T"}, {"LIBSWAP_HOST_LIMIT", "60%%"},
        {"LIBSWAP_MIN_SWAP", "50%"},    {"LIBSWAP_MODE", "on"},
        {"LIBSWAP_TORCH", "native"},    {"LIBSWAP_TORCH", "split,async"},
        {"LIBSWAP_POLICY", "none"},     {"LIBSWAP_POLICY", "lru,belady"},
        {"LIBSWAP_VERIFY", "2"},        {"LIBSWAP_VERBOSE", "3"},
        {"LIBSWAP_FILL", "256"},        {"LIBSWAP_FILL", "0x"},
        {"LIBSWAP_FILL", "-1"},         {"LIBSWAP_FILL", "12 "},
        {"LIBSWAP_REPORT", "both"},     {"LIBSWAP_MAX_SLOWDOWN", "0.5"},
        {"LIBSWAP_MOVE", "handover"},   {"LIBSWAP_MIN_SWAP", "1,5M"},
    };
    for (const auto& [name, text] : wrong) {
        std::vector<std::string> complaints;
        const Config config = parse({{name, text}}, &complaints);
        ASSERT_EQ(complaints.size(), 1U) << name << '=' << text;
        EXPECT_NE(complaints[0].find(std::string(name) + "='" + text + "' is not understood"),
                  std::string::npos);
        EXPECT_NE(complaints[0].find(", keeping "), std::string::npos);
        EXPECT_FALSE(config.budget.is_set());
        EXPECT_EQ(config.min_swap_bytes, std::uint64_t{1} << 20);
        EXPECT_EQ(config.max_slowdown, 2.0);
    }
}

TEST(Config, WordsOfEveryKindAreUnderstood) {
    EXPECT_EQ(parse_one("LIBSWAP_MODE", "Observe").mode, Mode::Observe);
    EXPECT_EQ(parse_one("LIBSWAP_MODE", "off").mode, Mode::Off);
    EXPECT_EQ(parse_one("LIBSWAP_REPORT", "device").report, Report::Device);
    for (const char* yes : {"1", "true", "YES", "on"})
        EXPECT_TRUE(parse_one("LIBSWAP_VERIFY", yes).verify);
    for (const char* no : {"0", "False", "no", "off"})
        EXPECT_FALSE(parse_one("LIBSWAP_VERIFY", no).verify);
    EXPECT_EQ(parse_one("LIBSWAP_VERBOSE", "2").verbose, 2);
    EXPECT_EQ(parse_one("LIBSWAP_VERBOSE", "yes").verbose, 1);
    EXPECT_EQ(parse_one("LIBSWAP_FILL", "0xa5").fill.value, 0xa5);
    EXPECT_EQ(parse_one("LIBSWAP_FILL", "0").fill.value, 0);
    EXPECT_TRUE(parse_one("LIBSWAP_FILL", "0").fill.is_set);
    EXPECT_EQ(parse_one("LIBSWAP_TORCH", "async").torch, TorchAllocator::Async);
    EXPECT_EQ(parse_one("LIBSWAP_TORCH", "Leave").torch, TorchAllocator::Leave);
    EXPECT_EQ(parse_one("LIBSWAP_MOVE", "Hand-Over").move, Move::HandOver);
    EXPECT_EQ(parse_one("LIBSWAP_POLICY", "TFLMS").policy, cost::PolicyKind::Tflms);
    EXPECT_EQ(parse_one("LIBSWAP_POLICY", "libswap").policy, cost::PolicyKind::Libswap);
    EXPECT_EQ(parse_one("LIBSWAP_MAX_SLOWDOWN", "1.3").max_slowdown, 1.3);
}

TEST(Config, FileNamesMayHoldTheProcessId) {
    EXPECT_EQ(parse_one("LIBSWAP_TRACE", "/tmp/a.%p.json").trace_file,
              "/tmp/a." + std::to_string(getpid()) + ".json");
    EXPECT_EQ(parse_one("LIBSWAP_TRACE", "plain").trace_file, "plain");
}

TEST(Config, DescriptionNamesEverySettingAndItsValue) {
    std::vector<std::string> complaints;
    const auto lines =
        describe_config(parse({{"LIBSWAP_BUDGET", "6144M"}, {"LIBSWAP_FILL", "7"}}, &complaints));
    ASSERT_EQ(lines.size(), settings_table().size());
    for (std::size_t i = 0; i < lines.size(); ++i)
        EXPECT_EQ(lines[i].rfind(std::string(settings_table()[i].name) + " = ", 0), 0U) << lines[i];
    EXPECT_NE(std::find(lines.begin(), lines.end(), "LIBSWAP_BUDGET = 6 GiB"), lines.end());
    EXPECT_NE(std::find(lines.begin(), lines.end(), "LIBSWAP_FILL = 0x07"), lines.end());
    EXPECT_NE(std::find(lines.begin(), lines.end(), "LIBSWAP_HOST_LIMIT = (left open)"),
              lines.end());
}

// The document has a table with one row per setting, in the same order and words.
TEST(Config, DocumentHasTheSameTable) {
    std::ifstream document(ENVIRONMENT_DOCUMENT);
    std::vector<std::string> rows;
    for (std::string line; std::getline(document, line);)
        if (line.rfind("| `LIBSWAP_", 0) == 0) rows.push_back(line);
    std::vector<std::string> wanted;
    for (const SettingInfo& setting : settings_table()) {
        const std::string text =
            *setting.default_text ? "`" + std::string(setting.default_text) + "`" : "(left open)";
        wanted.push_back("| `" + std::string(setting.name) + "` | " + text + " | " + setting.unit +
                         " | " + setting.sentence + " |");
    }
    EXPECT_EQ(rows, wanted);
}

}  // namespace
}  // namespace libswap
