// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "generate.hpp"

#include <algorithm>
#include <optional>

#include "kernels.hpp"
#include "memory.hpp"
#include "random.hpp"

namespace random_programs {
namespace {

/// Knows what is live, so that steps are about something.
class Generator {
  public:
    Generator(std::uint64_t seed, const Shape& shape) : shape_(shape), random_(seed) {}

    std::vector<Step> steps() {
        settings();
        const bool large = random_.one_in(3);  // one buffer with most of it
        if (large) allocate(0, std::min(shape_.live_mib * 1024 * 2 / 5, 16u * 1024));
        for (int i = 0; i < 30 && live_kib_ < shape_.live_mib * 1024 * 3 / 4; ++i) {
            turn();
            allocate(stream());
        }
        const std::size_t end = steps_.size() + shape_.steps;
        while (steps_.size() < end) {
            turn();
            if (random_.one_in(12))
                loop();
            else
                one();
        }
        return std::move(steps_);
    }

  private:
    struct Live {
        unsigned kib = 0;
        bool is_table = false;
    };

    void add(Op op, std::vector<std::uint32_t> numbers) { steps_.push_back({op, numbers}); }
    std::uint32_t below(std::size_t n) { return random_.below(static_cast<std::uint32_t>(n)); }
    std::uint32_t stream() { return below(shape_.devices > 1 ? 4 : 3); }

    void settings() {
        const std::uint32_t threshold = random_.one_in(3) ? 1u << 20 : below(64);
        const std::uint32_t first = random_.one_in(2) ? below(shape_.threads > 1 ? 2 : 3) : 0;
        add(Op::program,
            {shape_.threads, shape_.devices, first, below(2), below(2), below(2), threshold});
    }

    /// Another thread's.
    void turn() { residue_ = below(shape_.threads); }

    std::vector<unsigned> live(bool tables) const {
        std::vector<unsigned> slots;
        for (unsigned i = residue_; i < kSlots; i += shape_.threads)
            if (live_[i].kib > 0 && live_[i].is_table == tables) slots.push_back(i);
        if (tables) slots.push_back(kSlots + residue_);
        return slots;
    }
    std::optional<unsigned> pick(bool table = false) {
        const auto slots = live(table);
        if (slots.empty()) return std::nullopt;
        return slots[below(slots.size())];
    }
    /// Most buffers are used from their start; large ones anywhere.
    std::uint32_t place(unsigned slot) {
        const unsigned kib = live_[slot].kib;
        return random_.one_in(kib > 6 * 1024 ? 1 : 4) ? below(kib) : 0;
    }
    std::uint32_t byte_in(unsigned slot) { return below(live_[slot].kib * std::size_t{1024}); }
    std::uint32_t bytes(std::uint32_t most) {
        return 1 + below(random_.one_in(3) ? 1 + most / 256 : most);
    }

    void allocate(std::uint32_t s, std::uint32_t kib = 0) {
        std::vector<unsigned> empty;
        for (unsigned i = residue_; i < kSlots; i += shape_.threads)
            if (live_[i].kib == 0) empty.push_back(i);
        if (empty.empty()) return;
        const unsigned slot = empty[below(empty.size())];
        // Many of a few chunks, some tiny, few large.
        const std::uint32_t size = below(10);
        if (kib == 0)
            kib = size < 2   ? 4 + below(60)
                  : size < 8 ? 1024 + below(3 * 1024)
                             : 4096 + below(8 * 1024);
        const std::uint32_t how = below(16);
        if (live_kib_ + kib > shape_.live_mib * 1024) return;
        const Kind kind = shape_.cached && how < 14 ? Kind::Cached
                          : how < 7                 ? Kind::Plain
                          : how < 10                ? Kind::Pooled
                          : how < 13                ? Kind::OwnPool
                          : how < 14                ? Kind::Pitched
                          : how < 15                ? Kind::Managed
                                                    : Kind::Pinned;
        // What is not the engine's to move is small.
        if (kind == Kind::Managed || kind == Kind::Pinned) kib = std::min(kib, 512u);
        add(Op::alloc, {s, slot, static_cast<std::uint32_t>(kind), kib, below(256)});
        live_[slot] = {kib, false};
        live_kib_ += kib;
    }

    void release() {
        const auto slot = pick(random_.one_in(8));
        if (!slot || *slot >= kSlots || live(false).size() < 3) return;
        add(Op::free, {stream(), *slot, below(8)});
        live_kib_ -= live_[*slot].kib;
        live_[*slot] = {};
    }

    void mix(std::uint32_t s) {
        const auto d = pick(), a = pick(), b = pick();
        if (!d || !a || !b) return;
        const std::uint32_t length =
            random_.one_in(3) ? 64 + below(1024) : std::uint32_t{16} * 1024;
        const std::uint32_t words = random_.one_in(3) ? below(256) : 0;
        add(Op::mix, {s, *d, place(*d), *a, place(*a), *b, place(*b), length, words, random_.next(),
                      passing()});
    }
    /// Seldom by base and index.
    std::uint32_t passing() {
        return random_.one_in(10) ? static_cast<std::uint32_t>(Passing::Base) : below(3);
    }

    /// A table, if there is none, and all of its entries.
    void table(std::uint32_t s) {
        auto slot = pick(true);
        if (live(true).size() < 3 && random_.one_in(2)) {
            for (unsigned i = residue_; i < kSlots; i += shape_.threads)
                if (live_[i].kib == 0) slot = i;
            const std::uint32_t kib = random_.one_in(3) ? 2048 : 1;
            if (*slot < kSlots && live_[*slot].kib == 0) {
                add(Op::table, {s, *slot, below(3), kib});
                live_[*slot] = {kib, true};
                live_kib_ += kib;
            }
        }
        std::uint32_t length = 16 * 1024;
        for (unsigned i = 0; i < kTableEntries; ++i) {
            const auto target = pick();
            if (!target) return;
            const std::uint32_t at = place(*target);
            length = std::min(length, live_[*target].kib - at);
            add(Op::entry, {s, *slot, i, *target, at});
        }
        if (random_.one_in(3)) {
            if (const auto other = pick(true); other && *other != *slot) {
                add(Op::tcopy, {s, *other, *slot, below(4)});
                slot = other;
            }
        }
        for (unsigned i = 0; i <= below(3); ++i) add(Op::tmix, {s, *slot, length, random_.next()});
        lengths_[*slot] = length;
    }

    void table_again(std::uint32_t s) {
        const auto slot = pick(true);
        if (!slot || lengths_[*slot] == 0) return table(s);
        if (const auto target = pick(); target && random_.one_in(2))
            add(Op::entry, {s, *slot, below(kTableEntries), *target, 0});
        add(Op::tmix, {s, *slot, lengths_[*slot], random_.next()});
    }

    void copy(std::uint32_t s) {
        const auto to = pick(), from = pick();
        if (!to || !from) return;
        if (random_.one_in(4))
            add(Op::batch, {s, *to, place(*to), *from, place(*from), 1 + below(256), below(8)});
        else
            add(Op::copy, {s, *to, byte_in(*to), *from, byte_in(*from), bytes(8u << 20), below(4)});
    }

    void host_copy(std::uint32_t s) {
        const auto slot = pick();
        if (!slot) return;
        if (random_.one_in(2))
            add(Op::in, {s, *slot, byte_in(*slot), bytes(1u << 20), below(65536), below(3)});
        else
            add(Op::out, {s, *slot, byte_in(*slot), bytes(1u << 20), below(3)});
    }

    void set(std::uint32_t s) {
        const auto slot = pick();
        if (slot) add(Op::set, {s, *slot, byte_in(*slot), bytes(8u << 20), below(256), below(2)});
    }

    void scratch(std::uint32_t s) {
        const auto slot = pick();
        if (slot) add(Op::scratch, {s, *slot, place(*slot), 1 + below(3000), below(256)});
    }

    /// What a graph may hold.
    void captured() {
        const std::uint32_t s = stream();
        const std::uint32_t r = below(20);
        if (r < 10) return mix(s);
        if (r < 13) return set(s);
        if (r < 15) return copy(s);
        if (r < 16) return scratch(s);
        if (r < 17) return host_copy(s);
        if (r < 18) return add(Op::host, {s, residue_});
        if (r < 19 && random_.one_in(2)) return add(Op::misuse, {s, residue_, 0});
        const auto slot = pick(true);
        if (slot && lengths_[*slot] > 0) add(Op::tmix, {s, *slot, lengths_[*slot], random_.next()});
    }

    unsigned graph_slot() { return residue_ + shape_.threads * below(kGraphs / shape_.threads); }

    void graph() {
        const unsigned g = graph_slot();
        const std::uint32_t r = below(10);
        if (graphs_[g] && r < 5) return add(Op::launch, {stream(), g, below(3)});
        if (graphs_[g] && r < 6) {
            graphs_[g] = false;
            return add(Op::drop, {0, g});
        }
        const std::size_t at = steps_.size();
        add(graphs_[g] ? Op::update : Op::graph, {0, g, below(3), 0});
        if (graphs_[g] && random_.one_in(2) && !last_graph_.empty())
            // The same shape with other numbers: what an update can do.
            for (Step step : last_graph_) {
                if (step.op == Op::mix) step.numbers[9] = random_.next();
                if (step.op == Op::set) step.numbers[4] = below(256);
                steps_.push_back(step);
            }
        else
            for (std::uint32_t i = 0, n = 1 + below(7); i < n; ++i) captured();
        last_graph_.assign(steps_.begin() + static_cast<std::ptrdiff_t>(at) + 1, steps_.end());
        if (last_graph_.size() > 15) last_graph_.clear();
        steps_[at].numbers[3] = static_cast<std::uint32_t>(steps_.size() - at - 1);
        graphs_[g] = true;
        add(Op::launch, {stream(), g, below(3)});
    }

    void misc(std::uint32_t s) {
        const std::uint32_t r = below(16);
        const unsigned slot = residue_ + shape_.threads * below(kSlots / shape_.threads);
        if (r < 4) return add(Op::wait, {s, residue_, below(5)});
        if (r < 6) return add(Op::pause, {0, residue_, below(2000)});
        if (r < 9) return add(Op::ask, {s, slot});
        if (r < 10) return add(Op::trim, {s, residue_, below(32)});
        if (r < 12) return add(Op::restream, {s, residue_, below(2)});
        if (r < 14) return add(Op::misuse, {s, slot, below(8)});
        add(Op::host, {s, residue_});
    }

    void work(std::uint32_t s) {
        const std::uint32_t r = below(20);
        if (r < 11) return mix(s);
        if (r < 13) return table_again(s);
        if (r < 15) return copy(s);
        if (r < 17) return host_copy(s);
        if (r < 18) return scratch(s);
        if (r < 19) return set(s);
        add(Op::launch, {s, graph_slot(), below(2)});
    }

    void one() {
        const std::uint32_t s = stream();
        const std::uint32_t r = below(100);
        if (r < 12) return allocate(s);
        if (r < 20) return release();
        if (r < 24) return table(s);
        if (r < 32 && !shape_.cached) return graph();
        if (r < 42) return misc(s);
        if (r < 46 && shape_.threads > 1) return add(Op::barrier, {});
        work(s);
    }

    /// A few steps again and again, as training does.
    void loop() {
        const std::size_t first = steps_.size();
        for (std::uint32_t i = 0, n = 4 + below(8); i < n; ++i) work(stream());
        const std::vector<Step> body(steps_.begin() + static_cast<std::ptrdiff_t>(first),
                                     steps_.end());
        for (std::uint32_t i = 0, n = 2 + below(3); i < n; ++i)
            steps_.insert(steps_.end(), body.begin(), body.end());
    }

    const Shape shape_;
    Random random_;
    std::vector<Step> steps_;
    std::vector<Step> last_graph_;
    Live live_[kSlots];
    std::uint32_t lengths_[kSlots + kThreads] = {};
    bool graphs_[kGraphs] = {};
    unsigned live_kib_ = 0;
    unsigned residue_ = 0;
};

}  // namespace

Program generate(std::uint64_t seed, const Shape& shape) {
    return {std::to_string(seed), Generator(seed, shape).steps()};
}

}  // namespace random_programs
