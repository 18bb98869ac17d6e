// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/device/host_threads.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace simgpu {
namespace {

/// A thread that runs until it is told.
class Waiting {
  public:
    explicit Waiting(std::atomic<bool>& over) : thread_([&, this] { wait(over); }) {
        while (tid_ == 0) std::this_thread::yield();
    }
    ~Waiting() { join(); }
    void join() {
        if (thread_.joinable()) thread_.join();
    }
    pid_t tid() const { return tid_; }

  private:
    void wait(std::atomic<bool>& over) {
        tid_ = gettid();
        over.wait(false);
    }
    std::atomic<pid_t> tid_{0};
    std::thread thread_;
};

std::unique_ptr<Waiting> start(std::atomic<bool>& over) { return std::make_unique<Waiting>(over); }

void end(std::atomic<bool>& over) {
    over = true;
    over.notify_all();
}

/// Its calls hold on to what is known of it. /proc/self/task leaves out a thread that lives on
/// where one before it ends while it is read.
TEST(HostThreads, KeepAThreadThatLivesWhileOthersEnd) {
    HostThreads threads;
    threads.add(gettid());
    bool kept = true;
    for (int round = 0; kept && round < 300; ++round) {
        std::atomic<bool> first_over{false};
        std::atomic<bool> last_over{false};
        std::vector<std::unique_ptr<Waiting>> first;
        for (int i = 0; i < 24; ++i) first.push_back(start(first_over));
        const auto last = start(last_over);
        const HostThread* const known = &threads.add(last->tid());
        end(first_over);
        for (int look = 0; kept && look < 40; ++look) {
            threads.reconcile(0);
            const auto found = threads.all().find(last->tid());
            kept = found != threads.all().end() && found->second.get() == known;
        }
        for (const auto& thread : first) thread->join();
        end(last_over);
    }
    EXPECT_TRUE(kept);
    threads.reconcile(0);
    EXPECT_EQ(threads.all().size(), 1U);  // this one
}

}  // namespace
}  // namespace simgpu
