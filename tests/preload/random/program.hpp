// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// A random program as data: a list of steps that can be printed, read, cut and run.
//
// Every step is total: numbers out of range wrap round, and a step whose buffers do not exist does
// nothing. So whatever is left of a program is a program, and a failing one can be shrunk by
// leaving out lines and halving numbers.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace random_programs {

constexpr unsigned kSlots = 48;   ///< of buffers
constexpr unsigned kGraphs = 6;   ///< of executable graphs
constexpr unsigned kThreads = 3;  ///< at most; divides kSlots and kGraphs
constexpr unsigned kTableEntries = 4;

// A step's first number is a stream, its second says which thread does it: a slot, or any number.
// Threads share nothing between two `barrier` steps: each has the slots of one residue.
//
//   name        numbers behind stream and slot                 does
#define RANDOM_PROGRAM_STEPS(X)                                                                    \
    X(program) /* threads devices first pool follow opportunistic MiB    how all that follows runs \
                */                                                                                 \
    X(alloc) /* kind KiB value                      allocates and fills                        */  \
    X(free)  /* how                                 with work in flight                        */  \
    X(mix)   /* KiB a KiB b KiB length words salt how   a kernel on parts of three buffers      */ \
    X(in)    /* byte bytes value how                host to device                             */  \
    X(out)   /* byte bytes how                      device to host, digested                   */  \
    X(copy)  /* byte source byte bytes how          device to device                           */  \
    X(batch) /* KiB source KiB length count         copies of one call                         */  \
    X(set)   /* byte bytes value how                fills a part                               */  \
    X(table) /* kind KiB                            a table of pointers in device memory       */  \
    X(entry) /* index slot KiB                      a pointer into it, by a small copy         */  \
    X(tmix)  /* KiB salt                            a kernel on what a table points to         */  \
    X(tcopy) /* source how                          a table from a table                       */  \
    X(scratch) /* KiB length salt                     memory of one kernel, in stream order */     \
    X(graph)  /* mode steps                          captures the steps that follow             */ \
    X(update) /* mode steps                          the same, into the graph that there is     */ \
    X(launch) /* times                               of the graph                               */ \
    X(drop)   /*                                     the graph                                  */ \
    X(host)   /*                                     a function of the host in the stream       */ \
    X(wait)   /* how                                 for the stream, the device or an event     */ \
    X(pause)  /* us                                  the thread sleeps                          */ \
    X(ask)    /*                                     what pools and devices say of themselves   */ \
    X(trim)   /* MiB                                 the pool                                   */ \
    X(misuse) /* which                               what must fail, and fail the same          */ \
    X(restream) /* flags                              destroys a stream and makes another */       \
    X(barrier)  /*                                     threads meet, and change their slots  */

enum class Op : std::uint8_t {
#define OP(name) name,
    RANDOM_PROGRAM_STEPS(OP)
#undef OP
};

struct Step {
    Op op;
    std::vector<std::uint32_t> numbers;

    /// Numbers that are left out are 0.
    std::uint32_t at(std::size_t i) const { return i < numbers.size() ? numbers[i] : 0; }
    unsigned stream() const { return at(0); }
    /// `count` slots: a buffer's, or, behind the last, a table of a module.
    unsigned slot(std::size_t i) const { return at(i) % (kSlots + kThreads); }
};

/// The step that programs begin with.
struct Setting {
    unsigned threads = 1;
    unsigned devices = 1;
    unsigned first_stream = 0;  ///< 1: the thread's own; 2: the legacy stream (one thread only)
    bool pool = false;
    bool follow = false;
    bool opportunistic = false;
    std::uint32_t threshold_mib = 0;

    explicit Setting(const Step& step);
    Setting() = default;
};

struct Program {
    std::string name;
    std::vector<Step> steps;
};

std::string to_text(const Step& step);
std::string to_text(const Program& program);

/// Programs of a text: a line each step, `#` begins a comment. Nothing, and one line in `error`, if
/// a line is none.
std::optional<std::vector<Program>> parse(std::string_view text, std::string_view name,
                                          std::string* error);

}  // namespace random_programs
