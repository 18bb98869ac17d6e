// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache.hpp"
#include "kernels.hpp"
#include "memory.hpp"
#include "program.hpp"
#include "random.hpp"

namespace random_programs {

/// Runs one program. Whatever touches the same memory from two streams is ordered by events, so the
/// bytes it ends with are the same on every run and every machine.
class Runner {
  public:
    /// `verbose`: names each error on standard error.
    Runner(const Program& program, bool verbose);
    void run();
    /// One line: the program's name, the digest of all that was read back, its errors.
    std::string line() const;

  private:
    static constexpr std::size_t kPinnedBytes = std::size_t{1} << 20;

    struct Capture {
        bool may_fork = true;
        std::vector<Region> regions;  ///< what the graph touches
        std::vector<unsigned> generations;
        std::vector<std::pair<unsigned, std::size_t>> tables;  ///< slot, bytes behind each entry
        std::vector<Region> forked;                            ///< not joined yet
    };
    struct Graph {
        cudaGraphExec_t exec = nullptr;
        Capture reach;
    };
    struct Pending {
        const char* host;
        std::size_t bytes;
    };
    /// What belongs to one thread of the program.
    struct Thread {
        unsigned index = 0;
        unsigned device = 0;
        Digest digest;
        std::vector<std::pair<std::size_t, int>> errors;
        std::size_t step = 0;
        cudaEvent_t events[2] = {};  ///< one a device
        cudaEvent_t fork_event = nullptr;
        cudaStream_t capture_stream = nullptr;
        cudaStream_t fork_stream = nullptr;
        char* pinned = nullptr;
        std::size_t pinned_used = 0;
        std::vector<Pending> pending;
        std::vector<char> pageable;
        std::vector<void*> allowed_in_capture;
        Capture* capture = nullptr;
    };

    void begin();
    void finish();
    void run_section(std::size_t first, std::size_t last);
    void run_steps(Thread& t, const std::vector<std::size_t>& steps);
    void meet();
    unsigned owner(unsigned slot) const { return (slot + shift_) % setting_.threads; }

    // Streams and order.
    unsigned device_of(unsigned stream) const;
    int stream_of(const Thread& t, const Step& step) const;
    void use_device(Thread& t, unsigned device);
    void wait_for(Thread& t, std::uint32_t streams, int stream);
    void synchronize(Thread& t, unsigned stream);
    /// Where to submit what touches the regions: the stream of the step, ordered behind all that
    /// touched them, or the one that captures. Nothing if the step cannot be done there.
    std::optional<cudaStream_t> order(Thread& t, const Step& step, const Regions& regions);
    cudaStream_t order_captured(Thread& t, bool forks, const Regions& regions);
    void join_fork(Thread& t);
    void settle(Thread& t, std::uint32_t streams);
    void expect(Thread& t, cudaError_t error);

    // Steps.
    void step(Thread& t, const Step& step);
    void allocate(Thread& t, const Step& step, bool table);
    cudaError_t take(Thread& t, int stream, Buffer& buffer);
    void free_one(Thread& t, const Step& step);
    void give_back(Thread& t, Buffer& buffer);
    void mix(Thread& t, const Step& step);
    void copy_in(Thread& t, const Step& step);
    void copy_out(Thread& t, const Step& step);
    void copy_across(Thread& t, const Step& step);
    cudaError_t copy_shaped(unsigned how, char* to, const char* from, std::size_t bytes,
                            unsigned to_device, unsigned from_device, cudaStream_t stream);
    void copy_batch(Thread& t, const Step& step);
    void set(Thread& t, const Step& step);
    void scratch(Thread& t, const Step& step);
    void set_entry(Thread& t, const Step& step);
    void mix_table(Thread& t, const Step& step);
    /// What a launch with that table touches; nothing if an entry points nowhere.
    std::optional<Regions> behind_table(unsigned slot, std::size_t bytes) const;
    cudaError_t copy_entries(unsigned how, const Buffer& to, const Buffer& from,
                             cudaStream_t stream);
    void copy_table(Thread& t, const Step& step);
    void wait(Thread& t, const Step& step);
    void ask(Thread& t, const Step& step);
    void misuse(Thread& t, const Step& step);
    void remake_stream(Thread& t, const Step& step);
    char* pinned_room(Thread& t, std::size_t bytes);
    void flush(Thread& t);

    // Graphs.
    std::size_t make_graph(Thread& t, const Step& step, const std::vector<std::size_t>& steps,
                           std::size_t next);
    void launch_graph(Thread& t, const Step& step);
    void drop_graph(Thread& t, const Step& step);
    Regions reach_of(const Capture& capture) const;

    /// A part within the buffer that the wanted one wraps round to.
    Region part(unsigned slot, std::size_t first, std::size_t bytes, bool writes) const;
    bool is_here(const Thread& t, unsigned slot) const { return owner(slot) == t.index; }
    bool is_data(const Thread& t, unsigned slot) const {
        return is_here(t, slot) && buffers_[slot].is_data();
    }
    bool is_table(const Thread& t, unsigned slot) const {
        return is_here(t, slot) && buffers_[slot].is_table;
    }

    const Program& program_;
    const bool verbose_;
    Setting setting_;
    unsigned shift_ = 0;
    Buffer buffers_[kSlots + kThreads];
    Graph graphs_[kGraphs];
    cudaStream_t streams_[kStreams] = {};
    cudaMemPool_t pool_ = nullptr;
    Cache cache_[2];  ///< one a device
    Thread threads_[kThreads];
    std::vector<std::unique_ptr<std::vector<char>>> kept_[kThreads];  ///< what graphs copy from
    std::atomic<unsigned> host_calls_{0};
};

/// What all programs of a process need of two devices. False if there are none.
bool let_devices_share();

}  // namespace random_programs
