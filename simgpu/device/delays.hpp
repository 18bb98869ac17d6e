// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/device/machine.hpp"

namespace simgpu {

/// What goes wrong with one operation.
struct Disturbance {
    std::uint64_t delay_ns = 0;
    /// A copy's first 4 KiB do not arrive: the destination keeps what it had there.
    bool loses_page = false;
};

/// Delays in simulated time: "h2d:5=2ms,kernel:*=100us,kernel:every7=1ms,d2h:3+=10us"; "d2h:5=lost"
/// loses a page of a copy. Classes by op_class_name; counting starts at 1, per class, when an
/// operation becomes ready. Not synchronised.
class Delays {
  public:
    /// False with one line in `error`, and no change, when the text does not parse.
    bool parse(std::string_view spec, std::string* error);
    /// Counts one operation and answers what goes wrong with it.
    Disturbance next(OpClass op_class);

  private:
    struct Rule {
        OpClass op_class = OpClass::Other;
        enum class When : std::uint8_t { Nth, From, Every } when = When::Every;
        std::uint64_t n = 1;
        Disturbance does;
    };
    static bool parse_rule(std::string_view text, Rule& rule);

    std::vector<Rule> rules_;
    std::uint64_t counts_[kOpClasses] = {};
};

}  // namespace simgpu
