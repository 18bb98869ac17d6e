// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// A program that begins to profile itself in the middle, as PyTorch's profiler does: tags around
// its operations, and the records that CUPTI gives it for them. Says how many of its operations it
// saw.
//
//   late_profiler ITERATIONS FIRST LAST      profiles iterations FIRST to LAST - 1; -1: from before
//                                            there is anything to move
//
// With -DLINKED it is linked against CUPTI, else it opens it when it begins.

#include <cuda.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "cupti_trace/records.hpp"

#ifdef LINKED
extern "C" {
#define CUPTI_FUNCTION(member, symbol, parameters) int symbol parameters;
#include "cupti_trace/functions.def"
#undef CUPTI_FUNCTION
}
#endif

namespace {

using namespace libswap::cupti;

constexpr std::size_t kBuffers = 10;
constexpr std::size_t kBytes = std::size_t{4} << 20;
constexpr std::uint32_t kCustom0 = 3;  ///< PyTorch's
constexpr std::uint32_t kLaunchKernel = 307, kMemsetD8Async = 216, kMemcpyDtoDAsync = 281;

void check(int code, const char* what) {
    if (code == 0) return;
    std::fprintf(stderr, "%s: %d\n", what, code);
    std::exit(1);
}
#define CHECK(call) check(static_cast<int>(call), #call)

struct Functions {
#define CUPTI_FUNCTION(member, symbol, parameters) int(*member) parameters = nullptr;
#include "cupti_trace/functions.def"
#undef CUPTI_FUNCTION
};

Functions functions() {
    Functions found;
#ifdef LINKED
#define CUPTI_FUNCTION(member, symbol, parameters) found.member = symbol;
#else
    void* library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) check(1, dlerror());
#define CUPTI_FUNCTION(member, symbol, parameters)             \
    {                                                          \
        void* address = dlsym(library, #symbol);               \
        if (address == nullptr) check(1, #symbol);             \
        std::memcpy(&found.member, &address, sizeof(address)); \
    }
#endif
#include "cupti_trace/functions.def"
#undef CUPTI_FUNCTION
    return found;
}

/// The records of one session.
class Profiler {
  public:
    void begin() {
        cupti_ = functions();
        CHECK(cupti_.register_buffers(requested, completed));
        for (const std::uint32_t kind : kKinds) CHECK(cupti_.enable(kind));
        for (const std::uint32_t call : {kLaunchKernel, kMemsetD8Async, kMemcpyDtoDAsync})
            CHECK(cupti_.enable_driver_call(call, 1));
        on_ = true;
    }
    void end() {
        CHECK(cupti_.flush(1));
        for (const std::uint32_t kind : kKinds) CHECK(cupti_.disable(kind));
        on_ = false;
        // What libswap calls inside an operation of the program's has its tag too.
        std::set<std::uint64_t> answered;
        for (const auto& [correlation, tag] : tags_)
            if (seen_.count(correlation) != 0) answered.insert(tag);
        answered_ = answered.size();
    }
    template <typename Call>
    void tagged(Call call) {
        if (on_) CHECK(cupti_.push_external(kCustom0, ++last_tag_));
        call();
        if (on_) CHECK(cupti_.pop_external(kCustom0, nullptr));
    }
    std::uint64_t tagged() const { return last_tag_; }
    std::size_t answered() const { return answered_; }
    std::size_t others() const { return others_; }

  private:
    static constexpr std::uint32_t kKinds[] = {kKindMemcpy, kKindMemset, kKindConcurrentKernel,
                                               kKindExternalCorrelation};
    static inline Profiler* g_profiler = nullptr;

    static void requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
        *size = std::size_t{1} << 20;
        *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *size));
        *most = 0;
    }
    static void completed(void*, std::uint32_t, std::uint8_t* buffer, std::size_t,
                          std::size_t valid) {
        g_profiler->read(buffer, valid);
        std::free(buffer);
    }
    void read(std::uint8_t* buffer, std::size_t valid) {
        void* record = nullptr;
        while (cupti_.next_record(buffer, valid, &record) == 0) {
            const std::uint32_t kind = *static_cast<std::uint32_t*>(record);
            if (kind == kKindConcurrentKernel)
                seen_.insert(static_cast<KernelRecord*>(record)->correlation);
            if (kind == kKindMemcpy || kind == kKindMemset)
                seen_.insert(static_cast<MemoryRecord*>(record)->correlation);
            if (kind != kKindExternalCorrelation) continue;
            const auto& external = *static_cast<ExternalRecord*>(record);
            if (external.external_kind == kCustom0)
                tags_[external.correlation] = external.id;
            else
                ++others_;
        }
    }

    Functions cupti_;
    bool on_ = false;
    std::uint64_t last_tag_ = 0;
    std::size_t answered_ = 0;
    std::size_t others_ = 0;  ///< tags of somebody else
    std::map<std::uint32_t, std::uint64_t> tags_;
    std::set<std::uint32_t> seen_;

  public:
    Profiler() { g_profiler = this; }
};

constexpr const char* kPtx = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry add_one(.param .u64 data, .param .u32 count) {
    .reg .b32 %r<6>; .reg .b64 %d<4>; .reg .pred %p;
    ld.param.u64 %d1, [data]; ld.param.u32 %r1, [count];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
    mad.lo.u32 %r2, %r2, %r3, %r4;
    setp.ge.u32 %p, %r2, %r1; @%p ret;
    mul.wide.u32 %d2, %r2, 4; add.u64 %d1, %d1, %d2;
    ld.global.u32 %r5, [%d1]; add.u32 %r5, %r5, 1; st.global.u32 [%d1], %r5;
    ret;
})";

struct Training {
    CUfunction function = nullptr;
    std::vector<CUdeviceptr> buffers = std::vector<CUdeviceptr>(kBuffers);
    Profiler& profiler;

    void iteration() {
        for (std::size_t k = 0; k < kBuffers; ++k) {
            profiler.tagged([&] { launch(buffers[k]); });
            profiler.tagged([&] {
                CHECK(cuMemcpyDtoDAsync(buffers[(k + 1) % kBuffers], buffers[k], kBytes / 2,
                                        nullptr));
            });
        }
        profiler.tagged([&] { CHECK(cuMemsetD8Async(buffers[0], 1, kBytes / 4, nullptr)); });
        CHECK(cuCtxSynchronize());
    }
    void launch(CUdeviceptr data) {
        unsigned count = kBytes / 16;
        void* parameters[] = {&data, &count};
        CHECK(cuLaunchKernel(function, count / 256, 1, 1, 256, 1, 1, 0, nullptr, parameters,
                             nullptr));
    }
    std::uint64_t digest() {
        std::vector<std::uint32_t> words(kBytes / 4);
        std::uint64_t sum = 14695981039346656037U;
        for (const CUdeviceptr buffer : buffers) {
            CHECK(cuMemcpyDtoH(words.data(), buffer, kBytes));
            for (const std::uint32_t word : words) sum = (sum ^ word) * 1099511628211U;
        }
        return sum;
    }
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    const int iterations = std::atoi(argv[1]), first = std::atoi(argv[2]),
              last = std::atoi(argv[3]);
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, kPtx));
    Profiler profiler;
    Training training{.profiler = profiler};
    CHECK(cuModuleGetFunction(&training.function, module, "add_one"));
    if (first < 0) profiler.begin();
    for (CUdeviceptr& buffer : training.buffers) {
        CHECK(cuMemAlloc(&buffer, kBytes));
        CHECK(cuMemsetD8(buffer, 0, kBytes));
    }
    for (int k = 0; k < iterations; ++k) {
        if (k == first) profiler.begin();
        training.iteration();
        if (k + 1 == last) profiler.end();
    }
    std::printf("digest %016llx\n", static_cast<unsigned long long>(training.digest()));
    std::printf("operations %llu, seen %zu, tags of others %zu\n",
                static_cast<unsigned long long>(profiler.tagged()), profiler.answered(),
                profiler.others());
    return 0;
}
