// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <mutex>
#include <vector>

#include "runtime/driver.hpp"

namespace libswap {

/// Events that tell times, used again and again. Those that are out are whoever took them's.
/// No lock is held across a driver call. @thread any
class SpareEvents {
  public:
    explicit SpareEvents(const Driver& driver) noexcept : driver_(driver) {}

    /// One that lies ready, else a new one of the current context. Null: the driver makes no more.
    CUevent take() noexcept;
    /// Null is ignored.
    void give_back(CUevent event) noexcept;
    /// Those that lie here are destroyed, unless they went with their context.
    void close(bool context_gone) noexcept;

  private:
    const Driver& driver_;
    std::mutex mutex_;
    std::vector<CUevent> events_;  ///< under mutex_
};

}  // namespace libswap
