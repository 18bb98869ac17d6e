// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "fake_driver.hpp"

// A program that forks after it has used the driver. "race": from the midst of other threads' work.
// "child": says by its status whether children reach the driver.

extern "C" {
int cuInit(unsigned);
int cuMemAlloc_v2(std::uint64_t*, std::size_t);
}

namespace {

int wait_for(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

int race() {
    std::atomic<bool> stop{false};
    std::thread loader([&] {
        while (!stop) {
            void* library = dlopen("libm.so.6", RTLD_NOW);
            dlsym(library, "cuMemFree_v2");
            dlclose(library);
        }
    });
    std::thread caller([&] {
        std::uint64_t address = 0;
        while (!stop) cuMemAlloc_v2(&address, 512);
    });
    int failed = 0;
    for (int i = 0; i < 200 && failed == 0; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(10);
            std::uint64_t address = 0;
            const bool right =
                cuMemAlloc_v2(&address, 512) == 0 && dlsym(RTLD_DEFAULT, "cuMemFree_v2") != nullptr;
            _exit(right ? 0 : 1);
        }
        failed = wait_for(child);
    }
    stop = true;
    loader.join();
    caller.join();
    return failed;
}

int children() {
    std::uint64_t address = 0;
    const unsigned long before = fake_calls("cuMemAlloc_v2");
    pid_t child = fork();
    if (child == 0)
        std::exit(
            cuMemAlloc_v2(&address, 512) == 0 && fake_calls("cuMemAlloc_v2") == before + 1 ? 0 : 1);
    if (const int failed = wait_for(child)) return failed;
    child = fork();
    if (child == 0) std::exit(cuInit(0) == 0 && cuMemAlloc_v2(&address, 512) == 0 ? 0 : 1);
    return wait_for(child);
}

}  // namespace

int main(int, char** arguments) {
    std::uint64_t address = 0;
    if (cuInit(0) != 0 || cuMemAlloc_v2(&address, 512) != 0) return 50;
    return std::strcmp(arguments[1], "race") == 0 ? race() : children();
}
