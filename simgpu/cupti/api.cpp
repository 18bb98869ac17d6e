// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// What libcupti.so.13 exports: the Activity API, callbacks for driver calls, external correlation.
// Handles, enumerations and structs are passed as the C ABI passes them, see abi.hpp.
#include <algorithm>
#include <cstring>

#include "simgpu/cupti/session.hpp"

#define CUPTI_EXPORT extern "C" __attribute__((visibility("default"))) int

namespace {

using namespace simgpu::cupti;

Session& session() { return Session::instance(); }

constexpr std::uint32_t kAttributes = 11;
constexpr std::size_t kAttributeBytes = sizeof(std::size_t);

}  // namespace

CUPTI_EXPORT cuptiGetVersion(std::uint32_t* version) {
    if (version == nullptr) return kInvalidParameter;
    *version = kApiVersion;
    return kSuccess;
}

CUPTI_EXPORT cuptiGetResultString(int result, const char** text) {
    if (text == nullptr) return kInvalidParameter;
    switch (result) {
#define CUPTI_RESULT(name, code) \
    case code:                   \
        *text = #name;           \
        return kSuccess;
#include "simgpu/cupti/results.def"
#undef CUPTI_RESULT
        default:
            return kInvalidParameter;
    }
}

CUPTI_EXPORT cuptiGetTimestamp(std::uint64_t* timestamp) {
    if (timestamp == nullptr) return kInvalidParameter;
    *timestamp = session().timestamp();
    return kSuccess;
}

CUPTI_EXPORT cuptiFinalize() {
    session().finalize();
    return kSuccess;
}

// Activity.

CUPTI_EXPORT cuptiActivityEnable(std::uint32_t kind) { return session().enable(kind, true); }

CUPTI_EXPORT cuptiActivityDisable(std::uint32_t kind) { return session().enable(kind, false); }

CUPTI_EXPORT cuptiActivityEnableDriverApi(std::uint32_t number, std::uint8_t enable) {
    return session().enable_call(number, enable != 0);
}

/// Of runtime calls nothing is told: the driver's calls that they make are.
CUPTI_EXPORT cuptiActivityEnableRuntimeApi(std::uint32_t, std::uint8_t) { return kSuccess; }

CUPTI_EXPORT cuptiActivityEnableCudaEventDeviceTimestamps(std::uint8_t) { return kSuccess; }

CUPTI_EXPORT cuptiActivityRegisterCallbacks(BufferRequested requested, BufferCompleted completed) {
    return session().set_client(requested, completed);
}

CUPTI_EXPORT cuptiActivityRegisterTimestampCallback(Timestamp timestamp) {
    return session().set_timestamp(timestamp);
}

CUPTI_EXPORT cuptiActivityFlushAll(std::uint32_t) { return session().flush(); }

CUPTI_EXPORT cuptiActivityFlushPeriod(std::uint32_t) { return kSuccess; }

CUPTI_EXPORT cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, void** record) {
    if (buffer == nullptr || record == nullptr) return kInvalidParameter;
    const auto kind_of = [](const void* at) {
        std::uint32_t kind = 0;
        std::memcpy(&kind, at, sizeof kind);
        return kind;
    };
    auto* next = buffer;
    if (*record != nullptr) {
        const std::size_t bytes = record_bytes(kind_of(*record));
        if (bytes == 0) return kInvalidKind;
        next = static_cast<std::uint8_t*>(*record) + bytes;
    }
    if (next >= buffer + valid) return kMaxLimitReached;
    if (record_bytes(kind_of(next)) == 0) return kInvalidKind;
    *record = next;
    return kSuccess;
}

CUPTI_EXPORT cuptiActivityGetNumDroppedRecords(void*, std::uint32_t, std::size_t* dropped) {
    if (dropped == nullptr) return kInvalidParameter;
    *dropped = session().take_dropped();
    return kSuccess;
}

/// Attributes are about buffers on the device, of which there are none.
CUPTI_EXPORT cuptiActivitySetAttribute(std::uint32_t attribute, std::size_t* bytes, void* value) {
    return bytes == nullptr || value == nullptr || attribute >= kAttributes ? kInvalidParameter
                                                                            : kSuccess;
}

CUPTI_EXPORT cuptiActivityGetAttribute(std::uint32_t attribute, std::size_t* bytes, void* value) {
    if (bytes == nullptr || value == nullptr || attribute >= kAttributes) return kInvalidParameter;
    std::memset(value, 0, std::min(*bytes, kAttributeBytes));
    return kSuccess;
}

CUPTI_EXPORT cuptiActivityPushExternalCorrelationId(std::uint32_t kind, std::uint64_t id) {
    return session().push_external(kind, id);
}

CUPTI_EXPORT cuptiActivityPopExternalCorrelationId(std::uint32_t kind, std::uint64_t* last) {
    return session().pop_external(kind, last);
}

// Callbacks.

CUPTI_EXPORT cuptiSubscribe(void** subscriber, Callback callback, void* userdata) {
    return session().subscribe(subscriber, callback, userdata);
}

CUPTI_EXPORT cuptiUnsubscribe(void* subscriber) { return session().unsubscribe(subscriber); }

CUPTI_EXPORT cuptiEnableCallback(std::uint32_t enable, void* subscriber, std::uint32_t domain,
                                 std::uint32_t number) {
    return session().enable_callback(subscriber, domain, number, enable != 0);
}

CUPTI_EXPORT cuptiEnableDomain(std::uint32_t enable, void* subscriber, std::uint32_t domain) {
    return session().enable_domain(subscriber, domain, enable != 0);
}

CUPTI_EXPORT cuptiEnableAllDomains(std::uint32_t enable, void* subscriber) {
    return session().enable_domain(subscriber, kDriverDomain, enable != 0);
}

CUPTI_EXPORT cuptiGetCallbackName(std::uint32_t domain, std::uint32_t number, const char** name) {
    if (name == nullptr) return kInvalidParameter;
    *name = domain == kDriverDomain ? call_name(number) : nullptr;
    return *name != nullptr ? kSuccess : kInvalidParameter;
}
