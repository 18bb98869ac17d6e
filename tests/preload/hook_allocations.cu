// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

// Counts what libswap allocates from the heap while the program launches, allocates and frees. The
// first iterations may: tables grow, and the iteration is learned. The last ones may not.
//
// usage: hook_allocations BUFFERS ITERATIONS LAST

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

// nvcc takes malloc for a function of the device too.
#pragma nv_diag_suppress 20011

// This program's malloc is everybody's. What libswap asks for is known by where the call comes
// from; its operator new is its own, and calls this.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
}

namespace {

thread_local bool t_counting = false;
thread_local unsigned long t_allocations = 0;
std::uintptr_t g_begin = 0;  // of libswap's code
std::uintptr_t g_end = 0;

void count(const void* caller) {
    const auto address = reinterpret_cast<std::uintptr_t>(caller);
    if (t_counting && address >= g_begin && address < g_end) ++t_allocations;
}

}  // namespace

extern "C" {
__attribute__((noinline)) void* malloc(size_t bytes) noexcept {
    count(__builtin_return_address(0));
    return __libc_malloc(bytes);
}
__attribute__((noinline)) void* calloc(size_t count_of, size_t bytes) noexcept {
    count(__builtin_return_address(0));
    return __libc_calloc(count_of, bytes);
}
__attribute__((noinline)) void* realloc(void* memory, size_t bytes) noexcept {
    count(__builtin_return_address(0));
    return __libc_realloc(memory, bytes);
}
__attribute__((noinline)) void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
    count(__builtin_return_address(0));
    return __libc_memalign(alignment, bytes);
}
}

namespace {

constexpr size_t kBufferBytes = size_t{2} << 20;
constexpr size_t kWords = kBufferBytes / sizeof(unsigned);

struct Eight {
    unsigned* at[8];
};

__global__ void mix(Eight buffers, unsigned salt, unsigned** table) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned sum = salt;
    for (unsigned* buffer : buffers.at) sum = sum * 31 + buffer[i * 64];
    buffers.at[0][i * 64] = sum;
    if (table) table[i % 2][i * 64] ^= sum;
}

void check(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "hook_allocations: %s: %s\n", what, cudaGetErrorString(error));
    std::exit(1);
}
#define CHECK(call) check(call, #call)

/// Where the library lies in memory that holds the hook.
void find_libswap() {
    Dl_info info;
    void* hook = dlsym(RTLD_DEFAULT, "cuLaunchKernel");
    if (!hook || !dladdr(hook, &info) || !std::strstr(info.dli_fname, "/libswap.so")) return;
    char line[512];
    FILE* maps = std::fopen("/proc/self/maps", "r");
    while (maps && std::fgets(line, sizeof line, maps)) {
        unsigned long begin = 0, end = 0;
        if (!std::strstr(line, "/libswap.so") || std::sscanf(line, "%lx-%lx", &begin, &end) != 2)
            continue;
        if (!g_begin) g_begin = begin;
        g_end = end;
    }
    if (maps) std::fclose(maps);
}

unsigned long counted(unsigned long* sum) {
    const unsigned long before = t_allocations;
    *sum += before;
    t_allocations = 0;
    return before;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    const int count_of = std::atoi(argv[1]);
    const int iterations = std::atoi(argv[2]);
    const int last = std::atoi(argv[3]);
    find_libswap();
    std::vector<unsigned*> buffers(count_of);
    for (unsigned*& buffer : buffers) {
        CHECK(cudaMalloc(reinterpret_cast<void**>(&buffer), kBufferBytes));
        CHECK(cudaMemset(buffer, 1, kBufferBytes));
    }
    unsigned** table = nullptr;
    CHECK(cudaMalloc(reinterpret_cast<void**>(&table), 2 * sizeof *table));
    CHECK(cudaMemcpy(table, buffers.data(), 2 * sizeof *table, cudaMemcpyHostToDevice));
    unsigned long first_launches = 0, first_pairs = 0, launches = 0, pairs = 0;
    for (int iteration = 0; iteration < iterations; ++iteration) {
        const bool steady = iteration >= iterations - last;
        for (int i = 0; i < count_of; ++i) {
            Eight eight;
            for (int k = 0; k < 8; ++k) eight.at[k] = buffers[(i + k) % count_of];
            t_counting = true;
            mix<<<kWords / 64 / 128, 128>>>(eight, i, i % 16 == 0 ? table : nullptr);
            t_counting = false;
            CHECK(cudaGetLastError());
            counted(steady ? &launches : &first_launches);
        }
        CHECK(cudaDeviceSynchronize());
        for (const size_t bytes : {size_t{1} << 10, kBufferBytes, 3 * kBufferBytes}) {
            void* memory = nullptr;
            t_counting = true;
            const cudaError_t allocated = cudaMalloc(&memory, bytes);
            const cudaError_t freed = cudaFree(memory);
            t_counting = false;
            CHECK(allocated);
            CHECK(freed);
            counted(steady ? &pairs : &first_pairs);
        }
    }
    std::uint64_t digest = 0xcbf29ce484222325u;
    std::vector<unsigned> host(kWords);
    for (unsigned* buffer : buffers) {
        CHECK(cudaMemcpy(host.data(), buffer, kBufferBytes, cudaMemcpyDeviceToHost));
        for (const unsigned word : host) digest = (digest ^ word) * 0x100000001b3u;
    }
    std::printf("digest %016llx first %lu %lu last %lu %lu\n",
                static_cast<unsigned long long>(digest), first_launches, first_pairs, launches,
                pairs);
    return 0;
}
