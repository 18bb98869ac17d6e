// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <array>

#include "runtime/device.hpp"
#include "runtime/engine.hpp"

namespace libswap {

/// An operation as each device sees it that has memory in it: usually one, more for copies between
/// devices and for kernels that use another device's memory. Each part pins its blocks around the
/// next one, in the order of the devices' numbers, so that two threads cannot hold each other up;
/// the innermost makes the real call.
class OperationParts {
  public:
    static constexpr std::size_t kMost = 64;

    /// The part of a device, empty at first. It lives as long as this, on this thread.
    Operation& of(Device& device);
    bool empty() const noexcept { return count_ == 0; }
    template <typename Visit>
    void for_each(Visit&& visit) {
        for (std::size_t i = 0; i < count_; ++i) visit(*parts_[i].device, *parts_[i].op);
    }

    /// Names what tables of one device point at on others, as `owner_of(address)` knows them.
    template <typename Owner>
    void follow_foreign(Owner&& owner_of) {
        for (bool any = true; any;) {
            any = false;
            for (std::size_t i = 0; i < count_ && !any; ++i) {
                std::vector<std::uint64_t>& foreign = parts_[i].op->foreign;
                if (foreign.empty()) continue;
                const std::uint64_t target = foreign.back();
                foreign.pop_back();
                any = true;
                // Its tables may point back: the lists grow until every table was seen once.
                if (Device* owner = owner_of(target)) owner->name_address(of(*owner), target);
            }
        }
    }

    /// `home`: the device of the current context, whose stream it is.
    CUresult run(Device* home, CUcontext context, CUstream stream, RealCall real) {
        return run_from(0, home, context, stream, real);
    }

  private:
    struct Part {  // not initialised: most of them are never used
        Device* device;
        Operation* op;
    };
    CUresult run_from(std::size_t index, Device* home, CUcontext context, CUstream stream,
                      RealCall real);

    std::array<Part, kMost> parts_;
    std::size_t count_ = 0;
};

}  // namespace libswap
