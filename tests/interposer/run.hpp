// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

/// What became of a program: exit status (128 + signal if it was killed) and all it wrote.
struct Outcome {
    int status = -1;
    std::string output;  ///< standard output and standard error
};

/// Runs a program with exactly this environment for at most 60 seconds.
inline Outcome run(std::vector<std::string> command, std::vector<std::string> environment) {
    std::vector<char*> argv, envp;
    for (std::string& word : command) argv.push_back(word.data());
    for (std::string& entry : environment) envp.push_back(entry.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);

    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return {};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    pid_t child = -1;
    const int error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), envp.data());
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);

    Outcome outcome;
    if (error != 0) {
        close(ends[0]);
        outcome.output = std::string("cannot run: ") + std::strerror(error);
        return outcome;
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    char buffer[4096];
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        pollfd poller{ends[0], POLLIN, 0};
        if (left.count() <= 0 || poll(&poller, 1, static_cast<int>(left.count())) <= 0) {
            kill(child, SIGKILL);
            outcome.output += "(killed: it hung)";
            break;
        }
        const ssize_t bytes = read(ends[0], buffer, sizeof buffer);
        if (bytes <= 0) break;
        outcome.output.append(buffer, static_cast<std::size_t>(bytes));
    }
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
}

/// LD_PRELOAD=libraries, behind what a sanitizer needs first.
inline std::string preload(const std::string& libraries) {
    const char* first = std::getenv("LIBSWAP_TEST_PRELOAD_FIRST");
    return "LD_PRELOAD=" + (first && *first ? std::string(first) + ":" : std::string()) + libraries;
}
