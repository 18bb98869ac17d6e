// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/device/host_threads.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace simgpu {

namespace {

std::uint64_t read_clock(clockid_t clock) {
    timespec t{};
    if (clock_gettime(clock, &t) != 0) return 0;
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(t.tv_nsec);
}

/// Whether a thread in this state can only go on when someone or something wakes it. Waiting for a
/// disk or a page ('D') ends by itself soon.
bool is_asleep(char state) { return state != 'R' && state != 'D'; }

/// Whether this process has the thread. Listings miss some while others end: the kernel counts
/// places.
bool exists(pid_t tid) { return syscall(SYS_tgkill, getpid(), tid, 0) == 0; }

}  // namespace

ThreadStates::~ThreadStates() {
    for (const auto& [tid, fd] : files_) close(fd);
}

char ThreadStates::of(pid_t tid) {
    char text[512];
    ssize_t size = -1;
    if (const auto known = files_.find(tid); known != files_.end()) {
        size = pread(known->second, text, sizeof text - 1, 0);
        // Its thread has ended. Another may have its number.
        if (size <= 0) {
            close(known->second);
            files_.erase(known);
        }
    }
    if (size <= 0) {
        char path[64];
        std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) return 'X';
        size = pread(fd, text, sizeof text - 1, 0);
        if (size <= 0 || files_.size() >= kMostFiles)
            close(fd);
        else
            files_[tid] = fd;
    }
    if (size <= 0) return 'X';
    text[size] = '\0';
    // The name in parentheses may hold anything, also parentheses.
    const char* end = std::strrchr(text, ')');
    return end == nullptr || end[1] == '\0' ? 'R' : end[2];
}

HostThread& HostThreads::add(pid_t tid) {
    auto& entry = threads_[tid];
    if (entry == nullptr) entry = std::make_unique<HostThread>();
    entry->tid = tid;
    return *entry;
}

void HostThreads::remove(pid_t tid) { threads_.erase(tid); }

void HostThreads::reconcile(std::uint64_t now_ns) {
    struct stat info {};
    // The links of /proc/self/task are its threads, and two.
    if (stat("/proc/self/task", &info) == 0 && info.st_nlink - 2 == own_.size() + threads_.size())
        return;
    DIR* folder = opendir("/proc/self/task");
    if (folder == nullptr) return;
    std::set<pid_t> present;
    while (const dirent* entry = readdir(folder)) {
        const pid_t tid = std::atoi(entry->d_name);
        if (tid != 0 && own_.count(tid) == 0) present.insert(tid);
    }
    closedir(folder);
    std::erase_if(threads_, [&](const auto& entry) {
        return present.count(entry.first) == 0 &&
               entry.second->state != HostThread::State::Blocked && !exists(entry.first);
    });
    for (const pid_t tid : present) {
        if (threads_.count(tid) != 0) continue;
        auto& thread = add(tid);
        thread.stranger = true;
        thread.local_ns = now_ns;
    }
}

std::uint64_t HostThreads::cpu_ns(pid_t tid) {
    // The kernel's encoding of "processor time of thread tid", as pthread_getcpuclockid makes it.
    return read_clock(static_cast<clockid_t>((~static_cast<unsigned>(tid) << 3) | 6u));
}

std::uint64_t HostThreads::own_cpu_ns() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }
std::uint64_t HostThreads::real_ns() { return read_clock(CLOCK_MONOTONIC); }

std::vector<bool> HostThreads::asleep(const std::vector<pid_t>& tids) {
    std::vector<bool> result;
    for (const pid_t tid : tids) result.push_back(is_asleep(states_.of(tid)));
    // One that was asleep when it was looked at may have been woken by one that was looked at
    // later: none may have used the processor since before the look. The figure of the last look
    // is such a time, and mostly still the same.
    bool looked_again = false;
    for (std::size_t i = 0; i < tids.size(); ++i) {
        const std::uint64_t used_ns = cpu_ns(tids[i]);
        if (used_ns == 0) {
            seen_cpu_ns_.erase(tids[i]);  // gone
            continue;
        }
        std::uint64_t& seen_ns = seen_cpu_ns_[tids[i]];
        looked_again |= result[i] && used_ns != seen_ns;
        seen_ns = used_ns;
    }
    if (!looked_again) return result;
    for (std::size_t i = 0; i < tids.size(); ++i)
        result[i] = result[i] && is_asleep(states_.of(tids[i]));
    for (std::size_t i = 0; i < tids.size(); ++i) {
        if (result[i] && cpu_ns(tids[i]) != seen_cpu_ns_[tids[i]]) result[i] = false;
    }
    return result;
}

}  // namespace simgpu
