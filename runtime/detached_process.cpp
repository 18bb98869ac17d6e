// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
//   this thread        the middle               the program
//   clone, waits  -->  clone, waits  ------->   streams, signals, exec
//   reaps it      <--  ends          <-------   is init's child now
//
// Both clones share memory and stop their parent, as posix_spawn's does. The middle has no exit
// signal, so that neither a handler of SIGCHLD nor a wait() of the program's sees it. What runs in
// them makes system calls only: sanitizers' tables are shared too.

#include "runtime/detached_process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <memory>
#include <new>

#include "runtime/blocked_signals.hpp"

namespace libswap {
namespace {

constexpr std::size_t kStackBytes = std::size_t{64} << 10;
constexpr int kShareAndWait = CLONE_VM | CLONE_VFORK;

struct Start {
    const char* path;
    char* const* argv;
    char* const* envp;
    std::byte* stack_end;
    int error = 0;
};

[[gnu::no_sanitize("address", "thread")]] int become_program(void* data) {
    auto* start = static_cast<Start*>(data);
    const long null = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
    for (int stream = 0; stream < 3; ++stream) syscall(SYS_dup3, null, stream, 0);
    const unsigned long none = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none);
    syscall(SYS_execve, start->path, start->argv, start->envp);
    start->error = errno;
    syscall(SYS_exit_group, 127);
    return 127;
}

[[gnu::no_sanitize("address", "thread")]] int leave_program(void* data) {
    auto* start = static_cast<Start*>(data);
    if (clone(become_program, start->stack_end, kShareAndWait | SIGCHLD, start) < 0)
        start->error = errno;
    syscall(SYS_exit_group, 0);
    return 0;
}

}  // namespace

int start_detached(const char* path, char* const* argv, char* const* envp) noexcept {
    struct alignas(16) Stack {
        std::byte bytes[kStackBytes];
    };
    const std::unique_ptr<Stack[]> stacks(new (std::nothrow) Stack[2]);
    if (!stacks) return ENOMEM;
    Start start{path, argv, envp, stacks[0].bytes + kStackBytes};
    const int before = errno;
    // A handler of the program's must not run in a copy of it.
    const BlockedSignals blocked;
    const int middle = clone(leave_program, stacks[1].bytes + kStackBytes, kShareAndWait, &start);
    if (middle < 0) {
        start.error = errno;
    } else {
        while (waitpid(middle, nullptr, __WALL) < 0 && errno == EINTR) {
        }
    }
    errno = before;
    return start.error;
}

}  // namespace libswap
