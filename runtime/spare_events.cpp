// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/spare_events.hpp"

#include <new>
#include <utility>

namespace libswap {

CUevent SpareEvents::take() noexcept {
    {
        std::lock_guard lock(mutex_);
        if (!events_.empty()) {
            const CUevent event = events_.back();
            events_.pop_back();
            return event;
        }
    }
    CUevent event = nullptr;
    return LIBSWAP_CU(driver_.cuEventCreate(&event, CU_EVENT_DEFAULT)) ? event : nullptr;
}

void SpareEvents::give_back(CUevent event) noexcept {
    if (!event) return;
    try {
        std::lock_guard lock(mutex_);
        events_.push_back(event);
        return;
    } catch (const std::bad_alloc&) {
        // Nowhere to keep it.
    }
    LIBSWAP_CU_IGNORE(driver_.cuEventDestroy(event));
}

void SpareEvents::close(bool context_gone) noexcept {
    std::vector<CUevent> events;
    {
        std::lock_guard lock(mutex_);
        events.swap(events_);
    }
    if (context_gone) return;
    for (CUevent event : events) LIBSWAP_CU_IGNORE(driver_.cuEventDestroy(event));
}

}  // namespace libswap
