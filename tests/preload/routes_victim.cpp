// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

// A program that needs more memory than it may use: eight buffers of 8 MiB, written and read back
// in turn, three times. How it gets at CUDA is a macro: LINKED (-lcuda), SHARED_RUNTIME (-lcudart),
// LOOKED_UP (dlopen, dlsym) or ASKED (cuGetProcAddress). It prints a digest of all it read, and
// "right" if that was what it wrote.

namespace {

constexpr int kBuffers = 8;
constexpr int kRounds = 3;
constexpr std::size_t kBytes = std::size_t{8} << 20;

void check(int result, const char* what) {
    if (result == 0) return;
    std::printf("%s: error %d\n", what, result);
    std::exit(1);
}
#define CHECK(call) check(static_cast<int>(call), #call)

#if defined(SHARED_RUNTIME)

struct Cuda {
    void start() { CHECK(cudaSetDevice(0)); }
    std::uint64_t alloc() {
        void* address = nullptr;
        CHECK(cudaMalloc(&address, kBytes));
        return reinterpret_cast<std::uint64_t>(address);
    }
    void fill(std::uint64_t at, unsigned char value) {
        CHECK(cudaMemset(reinterpret_cast<void*>(at), value, kBytes));
    }
    void read(void* to, std::uint64_t at) {
        CHECK(cudaMemcpy(to, reinterpret_cast<void*>(at), kBytes, cudaMemcpyDeviceToHost));
    }
    void free(std::uint64_t at) { CHECK(cudaFree(reinterpret_cast<void*>(at))); }
};

#else

/// One function of the driver, by the way that this program goes.
template <class Function>
Function* get(const char* exported, const char* base, Function* linked) {
#if defined(LINKED)
    (void)exported, (void)base;
    return linked;
#else
    (void)linked;
    static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
#if defined(LOOKED_UP)
    (void)base;
    return reinterpret_cast<Function*>(dlsym(driver, exported));
#else
    (void)exported;
    using Ask = CUresult (*)(const char*, void**, int, cuuint64_t, void*);
    static const auto ask = reinterpret_cast<Ask>(dlsym(driver, "cuGetProcAddress_v2"));
    void* function = nullptr;
    CHECK(ask(base, &function, CUDA_VERSION, 0, nullptr));
    return reinterpret_cast<Function*>(function);
#endif
#endif
}

#if defined(LINKED)
#define GET(exported, base) get(#exported, #base, &exported)
#else
#define GET(exported, base) get<decltype(exported)>(#exported, #base, nullptr)
#endif

struct Cuda {
    void start() {
        CUdevice device = 0;
        CUcontext context = nullptr;
        CHECK(GET(cuInit, cuInit)(0));
        CHECK(GET(cuDeviceGet, cuDeviceGet)(&device, 0));
        CHECK(GET(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain)(&context, device));
        CHECK(GET(cuCtxSetCurrent, cuCtxSetCurrent)(context));
    }
    std::uint64_t alloc() {
        CUdeviceptr address = 0;
        CHECK(GET(cuMemAlloc_v2, cuMemAlloc)(&address, kBytes));
        return address;
    }
    void fill(std::uint64_t at, unsigned char value) {
        CHECK(GET(cuMemsetD8_v2, cuMemsetD8)(at, value, kBytes));
    }
    void read(void* to, std::uint64_t at) {
        CHECK(GET(cuMemcpyDtoH_v2, cuMemcpyDtoH)(to, at, kBytes));
    }
    void free(std::uint64_t at) { CHECK(GET(cuMemFree_v2, cuMemFree)(at)); }
};

#endif

}  // namespace

int main() {
    Cuda cuda;
    cuda.start();
    std::vector<std::uint64_t> buffers;
    for (int i = 0; i < kBuffers; ++i) buffers.push_back(cuda.alloc());
    std::vector<unsigned char> host(kBytes), wanted(kBytes);
    std::uint64_t digest = 14695981039346656037U;
    bool right = true;
    for (int round = 0; round < kRounds; ++round) {
        for (int i = 0; i < kBuffers; ++i)
            cuda.fill(buffers[i], static_cast<unsigned char>(16 * round + i));
        for (int i = 0; i < kBuffers; ++i) {
            cuda.read(host.data(), buffers[i]);
            std::memset(wanted.data(), 16 * round + i, kBytes);
            right = right && host == wanted;
            for (std::size_t at = 0; at < kBytes; at += 4096)
                digest = (digest ^ host[at]) * 1099511628211U;
        }
    }
    for (const std::uint64_t buffer : buffers) cuda.free(buffer);
    std::printf("%s %016llx\n", right ? "right" : "wrong", static_cast<unsigned long long>(digest));
    return right ? 0 : 1;
}
