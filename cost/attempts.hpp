// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The ways in which the planner makes plans, of which the fastest is taken: docs/planning.md,
// step 7.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace libswap::cost {

/// One way to make a plan. Which is best depends on the workload.
struct Attempt {
    std::size_t slots;
    double caution;
    double headroom = 0;  ///< share of the budget that is kept for what is on its way
    bool apart = false;   ///< as if every use wrote: rounds to whole tensors better
    bool small_parts = false;
    bool strict = false;  ///< as FluidOptions::strict; short iterations always
    bool whole = false;   ///< the fluid of the whole iteration, also where it repeats itself
    double chunks = 1;    ///< size of the parts that move, as a share of the usual one
    bool trim = false;    ///< as SelectionOptions::trim, without headroom
    /// Memory that selection keeps free for what comes in: a share of a usual part, and one of what
    /// the link brings while an operation runs. Instead of `headroom`, which the fluid still has.
    double spare_part = 0;
    double spare_pace = 0;
    bool exact = false;       ///< as FluidOptions::exact
    double exact_part = 0;    ///< with that: as spare_part, for the fluid
    double exact_pace = 0;    ///< likewise
    bool largest = false;     ///< as FluidOptions::largest_first
    std::uint64_t units = 4;  ///< as ScheduleOptions::units
    /// Chosen anew with memory exact at every operation where the link limits from end to end
    /// (covering.hpp): the share of the budget that this keeps free. 0: not.
    double covering = 0;
    bool furthest = false;  ///< as SelectionOptions::furthest_next_use, without a fluid
    bool large = false;     ///< with that: tensors of a part or more first

    bool same_fluid(const Attempt& o) const {
        return slots == o.slots && caution == o.caution && headroom == o.headroom &&
               apart == o.apart && strict == o.strict && whole == o.whole && exact == o.exact &&
               exact_part == o.exact_part && exact_pace == o.exact_pace && largest == o.largest;
    }
};

/// For whole tensors and for short iterations.
inline constexpr std::array<Attempt, 3> kAttempts{
    {{.slots = 48, .caution = 1.0},
     {.slots = 32, .caution = 0.75},
     {.slots = 48, .caution = 0.5, .headroom = 0.01, .strict = true}}};
/// For other iterations, behind the first of those above, where the link is the limit. Chosen out
/// of nine fluids with up to 120 ways to bring each into a plan, so that of those that the effort
/// allows the best is best on 12 handed cases. What has the fluid of the one before takes no more
/// than a schedule.
inline constexpr std::array<Attempt, 18> kLongAttempts{
    {{.slots = 40,
      .caution = 0.5,
      .headroom = 0.02,
      .chunks = 3,
      .trim = true,
      .spare_part = 1.5,
      .spare_pace = 0.15,
      .largest = true,
      .units = 2},
     {.slots = 64,
      .caution = 0.5,
      .headroom = 0.015,
      .chunks = 0.7,
      .trim = true,
      .spare_part = 0.5,
      .spare_pace = 0.5,
      .largest = true,
      .units = 8},
     {.slots = 56,
      .caution = 0.25,
      .headroom = 0.04,
      .spare_part = 0.25,
      .spare_pace = 0.15,
      .largest = true,
      .units = 8},
     {.slots = 56,
      .caution = 0.25,
      .headroom = 0.04,
      .chunks = 1.3,
      .trim = true,
      .spare_part = 0.75,
      .spare_pace = 0.15,
      .largest = true,
      .units = 8},
     {.slots = 56,
      .caution = 0.25,
      .headroom = 0.04,
      .chunks = 0.5,
      .trim = true,
      .spare_part = 0.5,
      .spare_pace = 0.8,
      .largest = true,
      .units = 8,
      .covering = 0.03},
     {.slots = 64, .caution = 1, .headroom = 0.01, .chunks = 0.7, .trim = true, .spare_part = 1.5},
     {.slots = 32,
      .caution = 1,
      .chunks = 0.5,
      .spare_part = 0.5,
      .spare_pace = 0.3,
      .exact = true,
      .exact_part = 1.75,
      .exact_pace = 0.5,
      .largest = true},
     {.slots = 64,
      .caution = 1,
      .chunks = 2.2,
      .trim = true,
      .spare_part = 1,
      .spare_pace = 0.5,
      .exact = true,
      .exact_part = 1,
      .exact_pace = 0.5,
      .largest = true,
      .units = 2},
     {.slots = 64,
      .caution = 1,
      .chunks = 1.6,
      .spare_part = 0.75,
      .spare_pace = 0.15,
      .exact = true,
      .exact_part = 1,
      .exact_pace = 0.5,
      .largest = true,
      .units = 2},
     {.slots = 24, .caution = 0.75, .chunks = 1.6, .spare_part = 1, .largest = true},
     {.slots = 40,
      .caution = 1,
      .headroom = 0.03,
      .strict = true,
      .chunks = 1.6,
      .spare_part = 0.75,
      .spare_pace = 0.5,
      .units = 2},
     {.slots = 24,
      .caution = 0.75,
      .headroom = 0.01,
      .chunks = 1.6,
      .spare_part = 1,
      .largest = true},
     {.slots = 64, .caution = 0.5, .headroom = 0.01, .chunks = 0.5, .spare_part = 1},
     {.slots = 24,
      .caution = 0.75,
      .chunks = 0.5,
      .spare_part = 1,
      .spare_pace = 0.3,
      .largest = true},
     {.slots = 64, .caution = 0.75, .spare_part = 0.25, .spare_pace = 0.5, .units = 1},
     {.slots = 32, .caution = 0.75, .chunks = 6, .spare_pace = 0.5, .largest = true, .units = 2},
     {.slots = 24,
      .caution = 0.25,
      .headroom = 0.05,
      .chunks = 100,
      .trim = true,
      .spare_part = 0.25,
      .spare_pace = 0.3,
      .largest = true,
      .units = 8},
     {.slots = 64,
      .caution = 1,
      .chunks = 0.5,
      .spare_part = 1.75,
      .exact = true,
      .exact_part = 1.75}}};
/// For those that repeat themselves (gradient accumulation), of which there is time for a few. In
/// the order in which they add most, of 11 fluids with 30 ways each, on 96 generated cases.
inline constexpr std::array<Attempt, 8> kRepeatingAttempts{
    {{.slots = 64,
      .caution = 1,
      .trim = true,
      .spare_part = 0.5,
      .spare_pace = 0.8,
      .exact = true,
      .exact_part = 1.5,
      .exact_pace = 0.5,
      .largest = true,
      .units = 8},
     {.slots = 64,
      .caution = 0.5,
      .headroom = 0.015,
      .chunks = 2.5,
      .trim = true,
      .spare_part = 0.25,
      .spare_pace = 0.15,
      .units = 8},
     {.slots = 64,
      .caution = 1,
      .trim = true,
      .spare_part = 1,
      .spare_pace = 0.15,
      .exact = true,
      .exact_part = 3.5,
      .largest = true,
      .units = 8},
     {.slots = 48,
      .caution = 1,
      .chunks = 2.5,
      .trim = true,
      .spare_part = 0.25,
      .spare_pace = 0.15,
      .exact = true,
      .exact_part = 0.5,
      .exact_pace = 0.3,
      .largest = true,
      .units = 8},
     {.slots = 64,
      .caution = 1,
      .chunks = 6,
      .trim = true,
      .spare_part = 1.5,
      .spare_pace = 0.3,
      .exact = true,
      .exact_part = 1.5,
      .exact_pace = 0.5,
      .largest = true,
      .units = 8},
     {.slots = 48, .caution = 0.5, .strict = true},
     {.slots = 48, .caution = 1.0, .whole = true},
     {.slots = 48, .caution = 0.5, .headroom = 0.02, .strict = true}}};
/// Likewise with whole tensors, where they repeat themselves more than a few times.
inline constexpr std::array<Attempt, 4> kRepeatingWholeAttempts{
    {{.slots = 48, .caution = 0.5, .strict = true},
     {.slots = 48, .caution = 0.5, .headroom = 0.02, .strict = true},
     {.slots = 48, .caution = 1.0, .whole = true},
     {.slots = 64, .caution = 0.75, .strict = true}}};
/// Belady's rule with our schedule: as good as the fluid where tensors are used again in the
/// reverse order, and exact about single ones. More than one only where the first is about as good
/// as what there is.
inline constexpr std::array<Attempt, 3> kFurthestAttempts{
    {{.slots = 0, .caution = 0, .chunks = 2, .trim = true, .spare_pace = 0.3, .furthest = true},
     {.slots = 0, .caution = 0, .furthest = true},
     {.slots = 0, .caution = 0, .furthest = true, .large = true}}};
/// While there is effort left.
inline constexpr std::array<Attempt, 2> kFurtherAttempts{
    {{.slots = 48, .caution = 0.75, .headroom = 0.02},
     {.slots = 48, .caution = 0.25, .headroom = 0.02, .strict = true}}};
/// For those nearly as fast as with memory without limit: the link has time to spare, memory has
/// not.
inline constexpr std::array<Attempt, 3> kSpareAttempts{{{.slots = 40,
                                                         .caution = 0.5,
                                                         .headroom = 0.1,
                                                         .chunks = 0.7,
                                                         .spare_part = 0.5,
                                                         .spare_pace = 0.3},
                                                        {.slots = 48,
                                                         .caution = 0.5,
                                                         .headroom = 0.2,
                                                         .strict = true,
                                                         .spare_part = 1.5,
                                                         .spare_pace = 0.3},
                                                        {.slots = 32,
                                                         .caution = 0.5,
                                                         .headroom = 0.1,
                                                         .chunks = 0.5,
                                                         .trim = true,
                                                         .spare_part = 1.5,
                                                         .spare_pace = 0.3,
                                                         .largest = true}}};
/// For short iterations, where single tensors count. In this order, while there is effort left.
inline constexpr std::array<Attempt, 16> kMoreAttempts{{
    {.slots = 32, .caution = 1.0, .headroom = 0.04},
    {.slots = 24, .caution = 0.75, .headroom = 0.15},
    {.slots = 32, .caution = 0.5, .headroom = 0.08},
    {.slots = 32, .caution = 1.0, .apart = true},
    {.slots = 24, .caution = 1.0, .headroom = 0.3},
    {.slots = 32, .caution = 0.5, .headroom = 0.02, .small_parts = true},
    {.slots = 48, .caution = 0.5, .headroom = 0.02},
    {.slots = 24, .caution = 1.0, .headroom = 0.05, .apart = true},
    {.slots = 24, .caution = 1.0},
    {.slots = 32, .caution = 0.25},
    {.slots = 48, .caution = 0.75, .apart = true},
    {.slots = 48, .caution = 1.0, .headroom = 0.04},
    {.slots = 24, .caution = 0.5, .headroom = 0.4},
    {.slots = 48, .caution = 0.5, .small_parts = true},
    {.slots = 64, .caution = 1.0},
    {.slots = 64, .caution = 0.5, .headroom = 0.02, .apart = true},
}};

}  // namespace libswap::cost
