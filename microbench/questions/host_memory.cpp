// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Memory of the host that the device maps, and pinned memory.
#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "microbench/device/chunks.hpp"
#include "microbench/device/work_ptx.hpp"
#include "microbench/questions/answers.hpp"

namespace libswap::bench {

namespace {

constexpr std::uint64_t kMib = 1 << 20;
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
constexpr unsigned kThreads = 256;

template <typename T>
std::string attribute(const Driver& driver, CUpointer_attribute which, CUdeviceptr pointer) {
    T value{};
    const CUresult code = driver.cuPointerGetAttribute(&value, which, pointer);
    return code == CUDA_SUCCESS ? fmt::format("{}", value) : code_name(driver, code);
}

/// What the driver says of an address, before its memory moves and after.
struct Looks {
    Looks(const Driver& driver, CUdeviceptr pointer)
        : memory_type(attribute<unsigned>(driver, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer)),
          buffer_id(attribute<unsigned long long>(driver, CU_POINTER_ATTRIBUTE_BUFFER_ID, pointer)),
          ordinal(attribute<int>(driver, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer)),
          mapped(attribute<unsigned>(driver, CU_POINTER_ATTRIBUTE_MAPPED, pointer)),
          range_bytes(attribute<std::size_t>(driver, CU_POINTER_ATTRIBUTE_RANGE_SIZE, pointer)) {
        CUdeviceptr base = 0;
        std::size_t bytes = 0;
        const CUresult code = driver.cuMemGetAddressRange(&base, &bytes, pointer);
        address_range = code == CUDA_SUCCESS
                            ? fmt::format("{} bytes, {} below", bytes, pointer - base)
                            : code_name(driver, code);
    }
    void tell(Answer& answer, const char* when) const {
        const auto name = [&](const char* what) { return fmt::format("{}, {}", what, when); };
        answer.fact(name("MEMORY_TYPE (1 host, 2 device)"), memory_type);
        answer.fact(name("BUFFER_ID"), buffer_id);
        answer.fact(name("DEVICE_ORDINAL"), ordinal);
        answer.fact(name("MAPPED"), mapped);
        answer.fact(name("RANGE_SIZE"), range_bytes);
        answer.fact(name("cuMemGetAddressRange"), address_range);
    }
    std::string memory_type, buffer_id, ordinal, mapped, range_bytes, address_range;
};

/// Kernels that read or write all of a range.
class Streams4 {
  public:
    Streams4(Session& session, std::uint64_t bytes)
        : session_(session), bytes_(bytes), sink_(session.driver(), 4096) {}

    std::vector<double> gbps(Stream4 kind, CUdeviceptr address, std::size_t times) {
        Module module(session_.driver(), stream_ptx(kind, 4).c_str());
        CUfunction function = module.function("bench_stream");
        std::uint64_t count = bytes_ / 16;
        float zero = 0;
        CUdeviceptr sink = sink_.address;
        void* parameters[] = {&address, &address, &sink, &count, &zero};
        const auto blocks = static_cast<unsigned>(std::clamp<std::uint64_t>(
            count / kThreads, 1, 16ULL * static_cast<unsigned>(session_.info().sm_count)));
        const auto us = session_.times_us(times, [&] {
            BENCH_CU(session_.driver(), cuLaunchKernel(function, blocks, 1, 1, kThreads, 1, 1, 0,
                                                       session_.stream(), parameters, nullptr));
        });
        std::vector<double> rates;
        for (const double t : us) rates.push_back(1e-3 * static_cast<double>(bytes_) / t);
        return rates;
    }

  private:
    Session& session_;
    std::uint64_t bytes_;
    DeviceBuffer sink_;
};

/// Puts memory of the host under the addresses of chunk 0; its bytes come along.
void move_to_host(Session& session, Chunks& device, Chunks& host) {
    const Driver& driver = session.driver();
    host.make(0);
    BENCH_CU(driver,
             cuMemcpyDtoDAsync(host.at(0), device.at(0), device.chunk_bytes(), session.stream()));
    session.synchronize();
    device.unmap(0);
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {session.device()}},
                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    BENCH_CU(driver, cuMemMap(device.at(0), device.chunk_bytes(), 0, host.handle(0), 0));
    BENCH_CU(driver, cuMemSetAccess(device.at(0), device.chunk_bytes(), &access, 1));
}

/// `bytes` from the address on, by one copy: half on the host, half on the device.
std::string mixed_copy(Session& session, CUdeviceptr address, std::uint64_t bytes) {
    const Driver& driver = session.driver();
    PinnedBuffer copy(driver, bytes);
    const CUresult code = driver.cuMemcpyDtoHAsync(copy.pointer, address, bytes, session.stream());
    if (code != CUDA_SUCCESS) return code_name(driver, code);
    session.synchronize();
    const auto* read = static_cast<const unsigned char*>(copy.pointer);
    const bool right = std::all_of(read, read + bytes, [](unsigned char b) { return b == 0x5a; });
    return right ? "the right bytes" : "wrong bytes";
}

/// The driver's codes, and whether what was asked about is there at all.
void tell_support(Session& session, Answer& answer) {
    const std::pair<const char*, CUdevice_attribute> kAttributes[] = {
        {"attribute HOST_NUMA_ID", CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID},
        {"attribute HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED",
         CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
        {"attribute GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED",
         CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED}};
    for (const auto& [name, which] : kAttributes)
        answer.fact(name, fmt::format("{}", session.attribute(which)));
}

}  // namespace

Answer ask_host_memory(Session& session, const AskOptions& options) {
    const Driver& driver = session.driver();
    const std::uint64_t bytes = (options.quick ? 2 : 64) * kMib;
    Answer answer;
    tell_support(session, answer);
    const int node = std::max(session.attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID), 0);
    // The host's chunk outlives the mapping at the device's address, which is undone first.
    Chunks host(session, bytes, 1, {CU_MEM_LOCATION_TYPE_HOST_NUMA, {node}});
    Chunks device(session, bytes, 2);
    device.make(0);
    device.make(1);
    BENCH_CU(driver, cuMemsetD8(device.at(0), 0x5a, 2 * bytes));
    Streams4 kernels(session, bytes);
    Table& table = answer.table("host_bandwidth", "How fast are kernels on such memory?", "GB/s");
    const std::size_t times = options.quick ? 2 : 7;
    table.add("read, on the device", kernels.gbps(Stream4::Read, device.at(0), times));
    const Looks before(driver, device.at(0));

    move_to_host(session, device, host);
    struct Undo {
        const Driver& driver;
        CUdeviceptr at;
        std::uint64_t bytes;
        ~Undo() { driver.cuMemUnmap(at, bytes); }
    } undo{driver, device.at(0), bytes};
    const Looks after(driver, device.at(0));
    before.tell(answer, "on the device");
    after.tell(answer, "on the host");
    answer.fact("copy to the host, half from there, half from the device",
                mixed_copy(session, device.at(0), 2 * bytes));
    table.add("read, through the address on the host",
              kernels.gbps(Stream4::Read, device.at(0), times));
    table.add("write, through the address on the host",
              kernels.gbps(Stream4::Write, device.at(0), times));
    answer.in_short = fmt::format(
        "MEMORY_TYPE {} becomes {}, BUFFER_ID {}; kernels read it at {:.1f} GB/s",
        before.memory_type, after.memory_type,
        before.buffer_id == after.buffer_id ? "stays" : "changes", table.rows[1].value.median);
    return answer;
}

Answer ask_pinned_memory(Session& session, const AskOptions& options) {
    const Driver& driver = session.driver();
    Answer answer;
    Table& table = answer.table("pinned_memory", "What does pinned memory cost?", "ms per GiB");
    std::vector<std::uint64_t> sizes{64 * kMib, 256 * kMib, 1024 * kMib};
    if (options.quick) sizes = {16 * kMib};
    for (const std::uint64_t bytes : sizes) {
        const double per_gib = 1e-3 * kGib / static_cast<double>(bytes);
        std::vector<double> alloc;
        std::vector<double> release;
        for (int k = 0; k < 3; ++k) {
            void* pinned = nullptr;
            alloc.push_back(per_gib * session.time_us([&] {
                BENCH_CU(driver, cuMemHostAlloc(&pinned, bytes, CU_MEMHOSTALLOC_PORTABLE));
            }));
            release.push_back(per_gib *
                              session.time_us([&] { BENCH_CU(driver, cuMemFreeHost(pinned)); }));
        }
        const std::string size = size_name(static_cast<double>(bytes));
        table.add("cuMemHostAlloc, " + size, alloc);
        answer.in_short =
            fmt::format("{:.0f} ms per GiB in pieces of {}", table.rows.back().value.median, size);
        table.add("cuMemFreeHost, " + size, release);
    }
    return answer;
}

}  // namespace libswap::bench
