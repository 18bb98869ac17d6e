// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/device/graph.hpp"
#include "simgpu/device/memory.hpp"
#include "simgpu/device/operation.hpp"
#include "simgpu/device/profile.hpp"
#include "simgpu/device/status.hpp"

namespace simgpu {

class Context;
class Event;
class Machine;
class Stream;
class Timeline;
struct EventState;
struct StreamState;
struct ContextState;

/// A CUevent. Owned by whoever created it; a pending record or wait stays valid when it goes away.
class Event {
  public:
    ~Event();
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    /// SUCCESS when complete or never recorded, NOT_READY, or the context's sticky error.
    Status query();
    Status synchronize();
    /// What query() says, for the driver's own use: it makes no poller of the calling thread.
    bool complete() const;
    /// From `start` to `end`; NOT_READY, INVALID_HANDLE (never recorded, or no timing) as
    /// documented.
    static Result<float> elapsed_ms(const Event& start, const Event& end);
    unsigned flags() const;
    Context& context() const;

  private:
    friend class Context;
    friend class Stream;
    friend class Timeline;
    explicit Event(std::shared_ptr<EventState> state);
    std::shared_ptr<EventState> state_;
};

/// A CUstream. All submitting calls return at once unless it says otherwise, and answer the
/// context's sticky error when there is one. Destroying it lets submitted work complete.
class Stream {
  public:
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    Status launch(KernelLaunch launch);
    /// cuMemcpy*Async: waits where one side is pageable, as documented (small copies from pageable
    /// memory are staged at once).
    Status copy_async(const CopyRequest& request);
    /// cuMemcpy*: returns when done (device to device copies return at once, as documented).
    Status copy(const CopyRequest& request);
    Status memset_async(const MemsetRequest& request);
    /// cuMemset*: asynchronous to the host unless the target is host memory.
    Status memset(const MemsetRequest& request);
    /// cuLaunchHostFunc: not called once the context has failed.
    Status host_function(std::function<void()> function);
    /// cuStreamAddCallback: called with the stream's status in any case.
    Status callback(std::function<void(Status)> function);
    Status record(Event& event);
    Status wait(const Event& event);
    Status write_value(std::uint64_t va, std::uint64_t value, unsigned value_bytes);
    Status wait_value(std::uint64_t va, std::uint64_t value, unsigned value_bytes,
                      WaitCompare compare);
    /// Behind the stream's earlier work and behind `run`, which afterwards stands for this launch.
    Status launch_graph(const std::vector<GraphStep>& steps, GraphRun& run);

    Status query();
    Status synchronize();
    /// Whether what comes next in this stream is behind what `event` stands for in any case.
    bool follows(const Event& event) const;

    unsigned flags() const;  ///< CUstream_flags.
    int priority() const;
    std::uint64_t id() const;
    Context& context() const;

  private:
    friend class Context;
    explicit Stream(std::shared_ptr<StreamState> state);
    std::shared_ptr<StreamState> state_;
};

/// What runs on one device for one CUcontext.
class Context {
  public:
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    Machine& machine() const;
    int device() const;

    std::unique_ptr<Stream> create_stream(unsigned flags, int priority);
    std::unique_ptr<Event> create_event(unsigned flags);
    Stream& legacy_stream();
    /// The calling thread's.
    Stream& per_thread_stream();

    /// Waits for everything submitted so far.
    Status synchronize();
    /// The first fault, kept until the context goes away; SUCCESS else.
    Status sticky_error() const;
    /// One line about the first fault (kernel, address), empty else.
    std::string fault_detail() const;
    /// For faults that the driver itself finds.
    void fail(Status status, std::string detail);

  private:
    friend class Machine;
    friend class Event;
    friend class Stream;
    friend class Timeline;
    explicit Context(std::shared_ptr<ContextState> state);
    std::shared_ptr<ContextState> state_;
    std::unique_ptr<Stream> legacy_;
    std::mutex per_thread_lock_;
    std::map<int, std::unique_ptr<Stream>> per_thread_;  ///< By thread id.
};

struct MachineConfig {
    MachineProfile profile;
    MemoryConfig memory;
    std::string delays;  ///< As in SIMGPU_DELAYS.
    /// How many times faster than this computer the imitated machine's processors are: what the
    /// program's threads compute takes that much less simulated time. At least 1.
    double host_speed = 1;
};

/// Class of operation in statistics and delays.
enum class OpClass : std::uint8_t { Kernel, H2d, D2h, D2d, H2h, Memset, HostFunction, Other };
inline constexpr int kOpClasses = 8;
const char* op_class_name(OpClass op_class);

struct OpStatistics {
    std::uint64_t count = 0, bytes = 0, busy_ns = 0;
};

/// All devices of the process, their memory and the one simulated clock. The driver keeps one, made
/// at cuInit and never destroyed.
class Machine {
  public:
    explicit Machine(const MachineConfig& config);
    /// Waits for submitted work, then ends the threads. All contexts must be gone.
    ~Machine();
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;

    const MachineProfile& profile() const;
    Memory& memory();
    std::unique_ptr<Context> create_context(int device);

    /// Simulated nanoseconds since the machine was made.
    std::uint64_t now_ns() const;

    // Memory calls with their modelled cost: as in Memory, and the calling thread's simulated time
    // moves on.
    Result<HandleId> create(std::uint64_t bytes, Location location);
    Status map(std::uint64_t va, std::uint64_t bytes, std::uint64_t offset, HandleId handle);
    Status unmap(std::uint64_t va, std::uint64_t bytes);
    Status set_access(std::uint64_t va, std::uint64_t bytes, std::span<const AccessGrant> grants);
    Result<std::uint64_t> allocate(int device, std::uint64_t bytes);
    /// Waits for all work of the memory's device first, as cuMemFree does.
    Status free(std::uint64_t va);
    Result<void*> host_allocate(std::uint64_t bytes, unsigned flags);
    Status host_free(void* pointer);
    Status host_register(void* pointer, std::uint64_t bytes, unsigned flags);
    Status host_unregister(void* pointer);

    /// Replaces the delays; false and nothing changed when the text does not parse (`error`: one
    /// line).
    bool set_delays(std::string_view spec, std::string* error);

    OpStatistics statistics(OpClass op_class) const;
    /// JSON object: simulated now, classes, peak of device memory.
    std::string statistics_json() const;

    /// At process exit: no new work is begun; waits shortly for the work under way. Any thread.
    void park();
    /// In the child of a fork: forgets the threads, which do not exist there. Calls that would wait
    /// return DEINITIALIZED.
    void after_fork_in_child();

  private:
    std::shared_ptr<Timeline> timeline_;
    std::unique_ptr<Memory> memory_;
    friend class Context;
};

}  // namespace simgpu
