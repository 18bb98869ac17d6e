// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cupti/buffers.hpp"

#include <signal.h>

#include <algorithm>
#include <utility>

namespace simgpu::cupti {

namespace {

/// Delivered without being asked from here on; dropped beyond the second.
constexpr std::size_t kMany = std::size_t{1} << 20;
constexpr std::size_t kMost = std::size_t{64} << 20;

std::uint32_t kind_at(const std::byte* record) {
    std::uint32_t kind = 0;
    std::memcpy(&kind, record, sizeof kind);
    return kind;
}

}  // namespace

std::size_t record_bytes(std::uint32_t kind) {
    switch (kind) {
        case kKernel:
        case kConcurrentKernel:
            return sizeof(KernelRecord);
        case kMemcpy:
            return sizeof(MemcpyRecord);
        case kMemset:
            return sizeof(MemsetRecord);
        case kDriver:
        case kRuntime:
            return sizeof(ApiRecord);
        case kExternalCorrelation:
            return sizeof(ExternalCorrelationRecord);
        default:
            return 0;
    }
}

void Buffers::set_client(BufferRequested requested, BufferCompleted completed) {
    give_back_ahead();
    std::lock_guard lock(mutex_);
    requested_ = requested;
    completed_ = completed;
    if (thread_.joinable()) return;
    // The program's signals are not for this thread.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool Buffers::has_client() {
    std::lock_guard lock(mutex_);
    return requested_ != nullptr;
}

void Buffers::add_bytes(const void* record, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    if (pending_.size() + bytes > kMost) {
        ++dropped_;
        return;
    }
    const auto* begin = static_cast<const std::byte*>(record);
    pending_.insert(pending_.end(), begin, begin + bytes);
    if (pending_.size() >= kMany) many_.notify_one();
}

std::size_t Buffers::take_dropped() {
    std::lock_guard lock(mutex_);
    return std::exchange(dropped_, 0);
}

void Buffers::ask_ahead() {
    BufferRequested requested = nullptr;
    {
        std::lock_guard lock(mutex_);
        if (requested_ == nullptr || ahead_.data != nullptr || asking_) return;
        asking_ = true;
        requested = requested_;
    }
    Buffer buffer;
    requested(&buffer.data, &buffer.bytes, &buffer.most_records);
    std::lock_guard lock(mutex_);
    asking_ = false;
    if (requested_ == requested) ahead_ = buffer;
}

/// Empty, to whom it came from.
void Buffers::give_back_ahead() {
    Buffer buffer;
    BufferCompleted completed = nullptr;
    {
        std::lock_guard lock(mutex_);
        buffer = std::exchange(ahead_, {});
        completed = completed_;
    }
    if (buffer.data != nullptr && completed != nullptr)
        completed(nullptr, 0, buffer.data, buffer.bytes, 0);
}

/// Fills one buffer of the client's; returns where the next begins, or `from` where it gave none.
std::size_t Buffers::deliver_one(const std::vector<std::byte>& records, std::size_t from) {
    BufferRequested requested = nullptr;
    BufferCompleted completed = nullptr;
    Buffer buffer;
    {
        std::lock_guard lock(mutex_);
        requested = requested_;
        completed = completed_;
        buffer = std::exchange(ahead_, {});
    }
    if (requested == nullptr) return from;
    if (buffer.data == nullptr) requested(&buffer.data, &buffer.bytes, &buffer.most_records);
    if (buffer.data == nullptr) return from;
    std::size_t at = from;
    const std::size_t most = buffer.most_records;
    for (std::size_t count = 0; at < records.size() && (most == 0 || count < most); ++count) {
        const std::size_t bytes = record_bytes(kind_at(&records[at]));
        if (at + bytes - from > buffer.bytes) break;
        at += bytes;
    }
    std::memcpy(buffer.data, records.data() + from, at - from);
    completed(nullptr, 0, buffer.data, buffer.bytes, at - from);
    return at;
}

void Buffers::deliver() {
    std::lock_guard one(delivery_);
    std::vector<std::byte> records;
    {
        std::lock_guard lock(mutex_);
        records.swap(pending_);
    }
    std::size_t at = 0;
    while (at < records.size()) {
        const std::size_t next = deliver_one(records, at);
        if (next == at) break;
        at = next;
    }
    std::size_t lost = 0;
    for (; at < records.size(); at += record_bytes(kind_at(&records[at]))) ++lost;
    std::lock_guard lock(mutex_);
    dropped_ += lost;
}

void Buffers::run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        many_.wait(lock, [&] { return stopping_ || pending_.size() >= kMany; });
        if (stopping_) return;
        lock.unlock();
        deliver();
        lock.lock();
    }
}

void Buffers::stop() {
    give_back_ahead();
    std::thread thread;
    {
        std::lock_guard lock(mutex_);
        stopping_ = true;
        thread.swap(thread_);
        requested_ = nullptr;
        completed_ = nullptr;
        pending_.clear();
    }
    many_.notify_all();
    if (thread.joinable() && thread.get_id() != std::this_thread::get_id()) {
        thread.join();
    } else if (thread.joinable()) {
        thread.detach();
    }
    std::lock_guard lock(mutex_);
    stopping_ = false;
}

}  // namespace simgpu::cupti
