// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "simgpu/device/status.hpp"

namespace simgpu {

inline constexpr std::uint64_t kPageBytes = 2u << 20;
inline constexpr int kMaxDevices = 4;

class SharedUsage;

/// Where physical memory lies.
struct Location {
    enum class Kind : std::uint8_t { Device, HostNuma, Host };
    Kind kind = Kind::Device;
    int id = 0;  ///< Device ordinal, or NUMA node.

    bool operator==(const Location&) const = default;
};

/// One entry of cuMemSetAccess.
struct AccessGrant {
    Location location;  ///< A device, or the host (HostNuma or Host).
    bool readable = false;
    bool writable = false;
};

/// A physical allocation (CUmemGenericAllocationHandle). Never 0.
using HandleId = std::uint64_t;

struct MemoryConfig {
    std::uint64_t window_bytes =
        0;  ///< 0: SIMGPU_WINDOW, else 1 TiB (64 GiB under ThreadSanitizer); halved until it fits.
    int device_count = 1;
    std::array<std::uint64_t, kMaxDevices> capacity_bytes{};
    std::uint8_t fill_byte = 0xA5;
    bool without_data =
        false;  ///< No bytes exist: accesses are checked and counted, span() answers nullptr.
    std::shared_ptr<SharedUsage> shared;  ///< What other processes hold counts too; may be null.
    /// The numbers that other processes know the devices by.
    std::array<int, kMaxDevices> numbers = {0, 1, 2, 3};
};

enum class PointerKind : std::uint8_t {
    None,        ///< Unknown to us: pageable host memory, or nothing.
    Device,      ///< cuMemAlloc.
    Vmm,         ///< Inside a mapped part of a reservation.
    Reserved,    ///< Inside a reservation, not mapped.
    HostPinned,  ///< cuMemHostAlloc.
    HostRegistered,
};

/// What is known about an address.
struct PointerInfo {
    PointerKind kind = PointerKind::None;
    Location location;  ///< Of the memory behind it.
    std::uint64_t base = 0,
                  bytes =
                      0;  ///< The allocation; for Vmm the mapping; for Reserved the reservation.
    std::uint64_t range_base = 0,
                  range_bytes = 0;  ///< The reservation (Vmm, Reserved), else the allocation.
    std::uint64_t buffer_id = 0;    ///< Unique per allocation or handle, never reused.
    HandleId handle = 0;            ///< Vmm only.
    bool device_readable = false;   ///< Of the device asked for.
    bool device_writable = false;
    unsigned host_flags = 0;  ///< HostPinned, HostRegistered: the flags given.
};

/// What an access was resolved to: a host address, or the first address that faults.
struct Access {
    std::byte* host = nullptr;
    std::uint64_t fault_va = 0;
    bool ok = false;
};

/// The physical and virtual memory of all devices of the process, and host memory that devices may
/// use.
///
/// Two windows of one size: the program window, whose addresses the program sees (unreadable to the
/// CPU, but for memory with host access), and the shadow window at a constant distance, where the
/// bytes are. Thread-safe: the table of access bits is read without locks; everything else under
/// one lock. Unmapping never makes a host address that was handed out crash: what lies there
/// afterwards is scratch memory, and who used it is told through AccessSet.
class Memory {
  public:
    explicit Memory(const MemoryConfig& config);
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    std::uint64_t window_base() const;
    std::uint64_t window_bytes() const;
    bool without_data() const;

    // Virtual memory management. Sizes and addresses are multiples of kPageBytes, else
    // INVALID_VALUE.

    /// `hint` 0: anywhere. A hint that is taken or outside the window is ignored, as the driver
    /// may.
    Result<std::uint64_t> reserve(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t hint);
    /// Exactly a whole reservation, with nothing mapped in it.
    Status free_range(std::uint64_t va, std::uint64_t bytes);
    /// OUT_OF_MEMORY when the device is full; host memory counts against no device.
    Result<HandleId> create(std::uint64_t bytes, Location location);
    /// One reference less; physical memory goes when no reference and no mapping is left.
    Status release(HandleId handle);
    /// The handle mapped at `va`, with one more reference.
    Result<HandleId> retain(std::uint64_t va);
    struct HandleInfo {
        std::uint64_t bytes = 0;
        Location location;
    };
    Result<HandleInfo> handle_info(HandleId handle) const;
    Status map(std::uint64_t va, std::uint64_t bytes, std::uint64_t offset, HandleId handle);
    /// Exactly one or several whole mappings.
    Status unmap(std::uint64_t va, std::uint64_t bytes);
    Status set_access(std::uint64_t va, std::uint64_t bytes, std::span<const AccessGrant> grants);
    /// What `location` may do at `va`: flags of CUmemAccess_flags.
    Result<unsigned> get_access(std::uint64_t va, Location location) const;

    // Plain allocations (cuMemAlloc): 512-byte aligned, small ones share pages.

    Result<std::uint64_t> allocate(int device, std::uint64_t bytes);
    /// INVALID_VALUE unless `va` is what allocate returned.
    Status free(std::uint64_t va);
    /// Lets kernels of `device` use plain allocations of `owner`, present and future, or not.
    void set_peer_access(int device, int owner, bool granted);

    // Host memory that devices may use at its own address.

    Result<void*> host_allocate(std::uint64_t bytes, unsigned flags);
    Status host_free(void* pointer);
    Status host_register(void* pointer, std::uint64_t bytes, unsigned flags);
    Status host_unregister(void* pointer);

    /// Attributes of `va`, as seen from `device`.
    PointerInfo find(std::uint64_t va, int device = 0) const;

    struct Usage {
        std::uint64_t total = 0, used = 0, peak = 0;  ///< By this process.
        std::uint64_t others = 0;                     ///< Used by other processes.
        std::uint64_t free() const { return total - used - others; }
    };
    Usage usage(int device) const;

    /// For checks outside of operations: `bytes` from `va` for `device`. In the window: granted and
    /// mapped throughout; outside: pinned or registered host memory.
    Access resolve(int device, std::uint64_t va, std::uint64_t bytes, bool write);

    /// Whether a thread is in one of the calls above.
    bool busy() const;
    /// How many have begun.
    std::uint64_t calls() const;

    /// How often operations wrote to the physical 2 MiB chunk behind `va` (0 where nothing is
    /// mapped).
    std::uint64_t write_count(std::uint64_t va) const;

  private:
    friend class AccessSet;
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace simgpu
