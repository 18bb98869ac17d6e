// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cublas/halves.hpp"

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

namespace libswap::simgpu::cublas {
namespace {

/// A thread that sleeps until it gets a half to do. It waits without spinning: a simulated clock
/// that looks at what the process's threads do must see it asleep.
class Helper {
  public:
    /// False if the thread is not to be had; then nothing was done.
    bool start(const std::function<void(bool)>& part) {
        std::lock_guard lock(mutex_);
        if (!running_) {
            try {
                std::thread([this] { run(); }).detach();
            } catch (const std::system_error&) {
                return false;
            }
            running_ = true;
        }
        part_ = &part;
        changed_.notify_all();
        return true;
    }

    void finish() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return part_ == nullptr; });
    }

  private:
    [[noreturn]] void run() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return part_ != nullptr; });
            const auto* part = part_;
            lock.unlock();
            (*part)(true);
            lock.lock();
            part_ = nullptr;
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    const std::function<void(bool)>* part_ = nullptr;
    bool running_ = false;
};

}  // namespace

void in_halves(const std::function<void(bool)>& part, bool together) {
    // Leaked on purpose: its thread outlives every destructor.
    static auto& helper = *new Helper;
    static auto& user = *new std::mutex;
    if (together && user.try_lock()) {
        std::lock_guard lock(user, std::adopt_lock);
        if (helper.start(part)) {
            part(false);
            helper.finish();
            return;
        }
    }
    part(false);
    part(true);
}

}  // namespace libswap::simgpu::cublas
