// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

// A program that needs more device memory than it may use, and does what processes do meanwhile.
// The first argument says what. It prints "right" if all its buffers held what was written.

namespace {

constexpr std::size_t kBytes = std::size_t{4} << 20;
constexpr int kBuffers = 12;

void check(bool right, const char* what) {
    if (right) return;
    std::printf("wrong: %s\n", what);
    std::fflush(stdout);
    std::_Exit(1);
}
#define CHECK(condition) check(condition, #condition)
#define MUST(call) check((call) == CUDA_SUCCESS, #call)

void open_device() {
    CUdevice device = 0;
    CUcontext context = nullptr;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
}

struct Buffers {
    std::vector<CUdeviceptr> all;
    unsigned round = 0;

    void allocate(int count = kBuffers) {
        for (int i = 0; i < count; ++i) {
            all.emplace_back();
            MUST(cuMemAlloc(&all.back(), kBytes));
        }
    }
    static unsigned value(unsigned round, std::size_t i) {
        return round * 1000 + static_cast<unsigned>(i);
    }
    void fill() {
        ++round;
        for (std::size_t i = 0; i < all.size(); ++i)
            MUST(cuMemsetD32(all[i], value(round, i), kBytes / 4));
    }
    void verify() const {
        std::vector<unsigned> host(kBytes / 4);
        for (std::size_t i = 0; i < all.size(); ++i) {
            MUST(cuMemcpyDtoH(host.data(), all[i], kBytes));
            CHECK(host.front() == value(round, i) && host.back() == value(round, i));
        }
    }
    void free() {
        for (const CUdeviceptr buffer : all) MUST(cuMemFree(buffer));
        all.clear();
    }
};

/// Every buffer out and back while `work` is done.
template <class Work>
void swap_around(const Work& work) {
    Buffers buffers;
    buffers.allocate();
    for (int i = 0; i < 3; ++i) {
        buffers.fill();
        work();
        buffers.verify();
    }
    buffers.free();
}

int wait_for(pid_t child) {
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int spawn(const char* program, const char* mode, char** environment) {
    std::string words[] = {program, mode};
    char* const arguments[] = {words[0].data(), words[1].data(), nullptr};
    pid_t child = 0;
    CHECK(posix_spawn(&child, program, nullptr, nullptr, arguments, environment) == 0);
    return wait_for(child);
}

/// Children by every call: with the environment and without it, with a device of their own.
void children(const char* program) {
    open_device();
    char* nothing[] = {nullptr};
    swap_around([&] {
        CHECK(spawn(program, "small", nothing) == 0);
        CHECK(spawn(program, "quiet", environ) == 0);
        const pid_t child = vfork();
        if (child == 0) {
            execl(program, program, "small", nullptr);
            _exit(127);
        }
        CHECK(wait_for(child) == 0);
        CHECK(std::system("exit 7") == 7 << 8);
        std::FILE* pipe = popen("echo said", "r");
        char text[16] = {};
        CHECK(pipe && std::fgets(text, sizeof text, pipe) && std::strcmp(text, "said\n") == 0);
        CHECK(pclose(pipe) == 0);
    });
}

/// Replaced by another program in the midst of it.
void replaced(const char* program) {
    open_device();
    Buffers buffers;
    buffers.allocate();
    buffers.fill();
    execl(program, program, "plain", nullptr);
    CHECK(false);
}

/// Signals that all threads of the program block are the program's to take.
void signals() {
    sigset_t ours;
    sigemptyset(&ours);
    for (const int number : {SIGUSR1, SIGTERM, SIGCHLD, SIGALRM}) sigaddset(&ours, number);
    CHECK(pthread_sigmask(SIG_BLOCK, &ours, nullptr) == 0);
    open_device();
    swap_around([&] {
        for (const int number : {SIGUSR1, SIGTERM, SIGALRM}) {
            CHECK(kill(getpid(), number) == 0);
            const timespec second{1, 0};
            CHECK(sigtimedwait(&ours, nullptr, &second) == number);
        }
    });
}

void on_small_stack(void* (*work)(void*)) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    // The thread's own storage is taken from the stack too.
    CHECK(pthread_attr_setstacksize(&attributes, 96 * 1024) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, &attributes, work, nullptr) == 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
}

CUcontext g_context = nullptr;

void small_stacks() {
    open_device();
    MUST(cuCtxGetCurrent(&g_context));
    swap_around([] {
        on_small_stack([](void*) -> void* {
            MUST(cuCtxSetCurrent(g_context));
            CUdeviceptr buffer = 0;
            MUST(cuMemAlloc(&buffer, kBytes));
            MUST(cuMemsetD32(buffer, 7, kBytes / 4));
            unsigned word = 0;
            MUST(cuMemcpyDtoH(&word, buffer + kBytes - 4, 4));
            CHECK(word == 7);
            MUST(cuMemFree(buffer));
            return nullptr;
        });
    });
}

/// Threads that each begin with cuInit, all at the same moment.
void threads_at_once() {
    constexpr std::size_t kThreads = 8;
    std::barrier begin(kThreads);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i)
        threads.emplace_back([&] {
            begin.arrive_and_wait();
            open_device();
            Buffers buffers;
            buffers.allocate(3);
            begin.arrive_and_wait();
            buffers.fill();
            buffers.verify();
            begin.arrive_and_wait();
            buffers.free();
        });
    for (std::thread& thread : threads) thread.join();
}

/// Frees what it has when its thread is over.
struct ThreadsOwn {
    CUdeviceptr buffer = 0;
    ~ThreadsOwn() {
        if (buffer == 0) return;
        MUST(cuCtxSetCurrent(g_context));
        MUST(cuMemsetD32(buffer, 3, 16));
        MUST(cuMemFree(buffer));
    }
};

void late_frees() {
    open_device();
    MUST(cuCtxGetCurrent(&g_context));
    swap_around([] {
        std::thread([] {
            static thread_local ThreadsOwn own;
            MUST(cuCtxSetCurrent(g_context));
            MUST(cuMemAlloc(&own.buffer, kBytes));
        }).join();
    });
}

/// A daemon closes its standard streams; what it opens next takes their numbers.
void closed_streams() {
    std::fflush(stdout);
    const int kept = fcntl(1, F_DUPFD_CLOEXEC, 10);
    CHECK(kept >= 10);
    for (const int fd : {0, 1, 2}) close(fd);
    int files[3];
    for (int& file : files) {
        char name[] = "/tmp/libswap_streams_XXXXXX";
        file = mkostemp(name, O_CLOEXEC);
        unlink(name);
    }
    open_device();
    swap_around([] {});
    off_t written = 0;
    for (const int file : files) written += lseek(file, 0, SEEK_END);
    dup2(kept, 1);
    CHECK(written == 0);
}

void no_environment() {
    CHECK(clearenv() == 0);
    open_device();
    swap_around([] {});
}

/// A library that opens the driver, asks for a function and closes it again.
void opened_again() {
    open_device();
    swap_around([] {
        void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        CHECK(driver != nullptr);
        const auto get =
            reinterpret_cast<decltype(&cuMemGetInfo)>(dlsym(driver, "cuMemGetInfo_v2"));
        std::size_t free_bytes = 0, total_bytes = 0;
        MUST(get(&free_bytes, &total_bytes));
        CHECK(dlclose(driver) == 0);
    });
}

/// The address of a function is the same wherever it is taken.
void addresses() {
    CHECK(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") == reinterpret_cast<void*>(&cuMemAlloc));
    CHECK(dlsym(dlopen(nullptr, RTLD_NOW), "cuMemFree_v2") == reinterpret_cast<void*>(&cuMemFree));
    open_device();
    swap_around([] {});
}

}  // namespace

int main(int, char** arguments) {
    const std::string mode = arguments[1];
    if (mode == "children") children(arguments[0]);
    if (mode == "replaced") replaced(arguments[0]);
    if (mode == "signals") signals();
    if (mode == "small_stacks") small_stacks();
    if (mode == "threads_at_once") threads_at_once();
    if (mode == "late_frees") late_frees();
    if (mode == "closed_streams") closed_streams();
    if (mode == "no_environment") no_environment();
    if (mode == "opened_again") opened_again();
    if (mode == "addresses") addresses();
    if (mode == "plain") open_device(), swap_around([] {});
    if (mode == "quiet") return open_device(), swap_around([] {}), 0;
    if (mode == "small") {
        open_device();
        Buffers buffers;
        buffers.allocate(2);
        buffers.fill();
        buffers.verify();
        return 0;
    }
    std::puts("right");
    return 0;
}
