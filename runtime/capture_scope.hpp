// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include "runtime/driver.hpp"

namespace libswap {

/// While it lives, driver calls of this thread invalidate no capture: its mode is RELAXED. Does
/// nothing where no capture is open. A context must be current: the driver may make one otherwise.
class CaptureScope {
  public:
    CaptureScope(const Driver& driver, bool capturing) noexcept : driver_(driver) {
        changed_ = capturing && driver_.cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS;
    }
    ~CaptureScope() {
        if (changed_) LIBSWAP_CU_IGNORE(driver_.cuThreadExchangeStreamCaptureMode(&mode_));
    }
    CaptureScope(const CaptureScope&) = delete;
    CaptureScope& operator=(const CaptureScope&) = delete;

  private:
    const Driver& driver_;
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool changed_ = false;
};

}  // namespace libswap
