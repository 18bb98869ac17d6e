// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "runtime/event_log.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include <concurrentqueue/concurrentqueue.h>
#include <fmt/format.h>

#include "runtime/blocked_signals.hpp"

namespace libswap {

namespace {

constexpr std::size_t kMostBulk = 64;  // records of one operation that are queued in one go
constexpr std::size_t kWriteBytes = std::size_t{1} << 16;
constexpr auto kIdle = std::chrono::milliseconds(5);

enum class RecordKind : std::uint8_t {
    Alloc,
    Free,
    Op,
    Operand,
    OpTime,
    Move,
    Stall,
    Iteration,
    Plan,
    Model,
    Note
};

struct Record {
    RecordKind kind = RecordKind::Note;
    std::uint8_t sub = 0;
    bool a_flag = false;
    bool b_flag = false;
    std::uint32_t name = 0;
    std::uint64_t seq = 0;
    std::uint64_t t_ns = 0;
    std::uint64_t v[5] = {};
};
static_assert(sizeof(Record) == 64);

/// Alive in this process: a fork's child has a copy of the object, but not of its thread.
std::atomic<std::uint64_t> fork_count{0};

void count_forks_once() {
    static const int registered = pthread_atfork(
        nullptr, nullptr, [] { fork_count.fetch_add(1, std::memory_order_relaxed); });
    (void)registered;
}

std::uint64_t now_ns() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000ULL +
           static_cast<std::uint64_t>(t.tv_nsec);
}

/// The rest of a string as JSON wants it. What is not UTF-8 text below 0x80 stays as it is.
void append_json_string(std::string& out, std::string_view text) {
    out += '"';
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (byte < 0x20) {
            fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
        } else {
            out += c;
        }
    }
    out += '"';
}

const char* op_kind_name(std::uint8_t kind) {
    constexpr const char* kNames[] = {"launch", "copy", "memset", "graph"};
    return kNames[kind];
}

const char* move_kind_name(std::uint8_t kind) {
    constexpr const char* kNames[] = {"evict", "drop", "copy", "fetch"};
    return kNames[kind];
}

/// Records hold whole numbers.
std::uint64_t thousandths(double value) {
    return static_cast<std::uint64_t>(std::llround(1000 * value));
}
double from_thousandths(std::uint64_t value) { return static_cast<double>(value) / 1000; }

/// One record as one line.
void append_line(std::string& out, const Record& r) {
    const auto to = std::back_inserter(out);
    fmt::format_to(to, R"({{"s":{},"t":{},)", r.seq, r.t_ns);
    switch (r.kind) {
        case RecordKind::Alloc:
            fmt::format_to(to, R"("e":"alloc","block":{},"bytes":{},"asked":{}}})", r.v[0], r.v[1],
                           r.v[2]);
            break;
        case RecordKind::Free:
            fmt::format_to(to, R"("e":"free","block":{}}})", r.v[0]);
            break;
        case RecordKind::Op:
            fmt::format_to(to,
                           R"("e":"op","op":{},"kind":"{}","name":{},"stream":{},"sig":"{:016x}",)",
                           r.v[0], op_kind_name(r.sub), r.name, r.v[1], r.v[2]);
            fmt::format_to(to, R"("workspace":{},"operands":{},"explained":{}}})", r.v[3], r.v[4],
                           r.a_flag);
            break;
        case RecordKind::Operand:
            fmt::format_to(to, R"("e":"use","op":{},"k":{},"block":{},"bytes":{},"r":{},"w":{}}})",
                           r.v[0], r.v[1], r.v[2], r.v[3], r.a_flag, r.b_flag);
            break;
        case RecordKind::OpTime:
            fmt::format_to(to, R"("e":"time","op":{},"start":{},"end":{}}})", r.v[0], r.v[1],
                           r.v[2]);
            break;
        case RecordKind::Move:
            fmt::format_to(
                to,
                R"("e":"move","do":"{}","block":{},"bytes":{},"after":{},"start":{},"end":{}}})",
                move_kind_name(r.sub), r.v[0], r.v[1], r.v[2], r.v[3], r.v[4]);
            break;
        case RecordKind::Stall:
            fmt::format_to(to, R"("e":"stall","op":{},"ns":{},"name":{}}})", r.v[0], r.v[1],
                           r.name);
            break;
        case RecordKind::Iteration:
            fmt::format_to(to, R"("e":"iteration","op":{},"loop":{},"period":{}}})", r.v[0], r.v[1],
                           r.v[2]);
            break;
        case RecordKind::Plan:
            fmt::format_to(
                to, R"("e":"plan","loop":{},"predicted_us":{},"compute_us":{},"actions":{}}})",
                r.v[0], r.v[1], r.v[2], r.v[3]);
            break;
        case RecordKind::Model:
            fmt::format_to(
                to,
                R"("e":"model","name":{},"device":{},"count":{},"mean_percent":{},"ratio":{}}})",
                r.name, r.v[0], r.v[1], from_thousandths(r.v[2]), from_thousandths(r.v[3]));
            break;
        case RecordKind::Note:
            fmt::format_to(to, R"("e":"note","name":{}}})", r.name);
            break;
    }
    out += '\n';
}

std::string header_line(const EventLogHeader& h) {
    std::string out = R"({"format":"libswap-trace/1","libswap":)";
    append_json_string(out, h.libswap_version);
    fmt::format_to(std::back_inserter(out),
                   R"(,"pid":{},"clock":"monotonic_ns","driver":{},"device":)", getpid(),
                   h.driver_version);
    append_json_string(out, h.device_name);
    fmt::format_to(std::back_inserter(out),
                   R"(,"device_bytes":{},"budget_bytes":{},"host_limit_bytes":{}}})",
                   h.device_bytes, h.budget_bytes, h.host_limit_bytes);
    out += '\n';
    return out;
}

struct RecordTraits : moodycamel::ConcurrentQueueDefaultTraits {
    static constexpr std::size_t BLOCK_SIZE = 256;
    // try_enqueue does not grow a producer's index of blocks: room for all of them at once.
    static constexpr std::size_t EXPLICIT_INITIAL_INDEX_SIZE = 1024;
};
using Queue = moodycamel::ConcurrentQueue<Record, RecordTraits>;

/// This thread's token in the log it last used. Plain data: nothing runs when a thread ends.
struct ThreadToken {
    std::uint64_t log = 0;
    moodycamel::ProducerToken* token = nullptr;
};
thread_local ThreadToken thread_token __attribute__((tls_model("initial-exec")));

std::atomic<std::uint64_t> next_log{1};

}  // namespace

class EventLog::Impl {
  public:
    Impl(int fd, std::size_t capacity)
        : queue_(capacity),
          fd_(fd),
          id_(next_log.fetch_add(1)),
          forks_at_start_(fork_count.load()) {
        tokens_.reserve(kMostThreads);
    }

    ~Impl() {
        close();
        ::close(fd_);
    }

    bool usable() const {
        return open_.load(std::memory_order_relaxed) &&
               fork_count.load(std::memory_order_relaxed) == forks_at_start_;
    }

    void start(const std::string& header) {
        buffer_ = header;
        flush();
        const BlockedSignals blocked;
        writer_ = std::thread([this] { write_loop(); });
    }

    std::uint32_t name(std::string_view text) {
        const std::lock_guard lock(names_mutex_);
        const auto next = static_cast<std::uint32_t>(names_.size());
        const auto [known, fresh] = name_numbers_.try_emplace(std::string(text), next);
        if (fresh) names_.emplace_back(text);
        return known->second;
    }

    void put(Record record) {
        record.seq = seq_.fetch_add(1, std::memory_order_relaxed);
        record.t_ns = now_ns();
        enqueue(&record, 1);
    }

    /// An operation and its operands. All of a part get in, or none.
    void put_op(Record op, std::span<const cost::TracedOperand> operands) {
        Record records[kMostBulk];
        const std::uint64_t t_ns = now_ns();
        const std::uint64_t seq = seq_.fetch_add(1 + operands.size(), std::memory_order_relaxed);
        op.seq = seq;
        op.t_ns = t_ns;
        records[0] = op;
        std::size_t count = 1;
        for (std::size_t k = 0; k < operands.size(); ++k) {
            if (count == kMostBulk) {
                enqueue(records, count);
                count = 0;
            }
            records[count++] = {RecordKind::Operand,
                                0,
                                operands[k].read,
                                operands[k].write,
                                0,
                                seq + 1 + k,
                                t_ns,
                                {op.v[0], k, operands[k].block, operands[k].bytes, 0}};
        }
        enqueue(records, count);
    }

    std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

    void close() {
        if (fork_count.load() != forks_at_start_) {
            // The thread is the parent's. Forgetting it is all a child may do.
            if (writer_.joinable()) writer_.detach();
            open_.store(false);
            return;
        }
        if (!open_.exchange(false)) return;
        stop_.store(true);
        if (writer_.joinable()) writer_.join();
    }

  private:
    static constexpr std::size_t kMostThreads = 256;

    void enqueue(const Record* records, std::size_t count) {
        moodycamel::ProducerToken* token = this_threads_token();
        const bool queued = token != nullptr && queue_.try_enqueue_bulk(*token, records, count);
        if (!queued) dropped_.fetch_add(count, std::memory_order_relaxed);
    }

    moodycamel::ProducerToken* this_threads_token() {
        if (thread_token.log == id_) return thread_token.token;
        const std::lock_guard lock(tokens_mutex_);
        // With no room for another the thread's records are dropped, and counted.
        moodycamel::ProducerToken* token = nullptr;
        if (tokens_.size() < kMostThreads) {
            tokens_.push_back(std::make_unique<moodycamel::ProducerToken>(queue_));
            if (tokens_.back()->valid()) token = tokens_.back().get();
        }
        thread_token = {id_, token};
        return token;
    }

    void write_loop() {
        std::vector<Record> batch(1024);
        for (;;) {
            // Read before the queue: what came before the stop is then in it.
            const bool last = stop_.load();
            std::size_t n = 0;
            while ((n = queue_.try_dequeue_bulk(batch.begin(), batch.size())) > 0) {
                for (std::size_t i = 0; i < n; ++i) write_record(batch[i]);
            }
            if (last) break;
            flush();
            std::this_thread::sleep_for(kIdle);
        }
        fmt::format_to(std::back_inserter(buffer_),
                       R"({{"e":"end","dropped":{},"write_errors":{}}})", dropped(), write_errors_);
        buffer_ += '\n';
        flush();
    }

    void write_record(const Record& record) {
        write_new_names(record.name);
        append_line(buffer_, record);
        if (buffer_.size() >= kWriteBytes) flush();
    }

    /// Names are defined before the first line that uses them.
    void write_new_names(std::uint32_t used) {
        if (used < names_written_) return;
        const std::lock_guard lock(names_mutex_);
        for (; names_written_ < names_.size(); ++names_written_) {
            fmt::format_to(std::back_inserter(buffer_), R"({{"e":"name","name":{},"text":)",
                           names_written_);
            append_json_string(buffer_, names_[names_written_]);
            buffer_ += "}\n";
        }
    }

    void flush() {
        std::size_t done = 0;
        while (done < buffer_.size()) {
            const ssize_t n = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) {
                ++write_errors_;  // a full disk: the program goes on, the log has a hole
                break;
            }
            done += static_cast<std::size_t>(n);
        }
        buffer_.clear();
    }

    Queue queue_;
    int fd_;
    std::uint64_t id_;
    std::uint64_t forks_at_start_;
    std::atomic<bool> open_{true};
    std::atomic<bool> stop_{false};
    std::atomic<std::uint64_t> seq_{0};
    std::atomic<std::uint64_t> dropped_{0};
    std::mutex tokens_mutex_;
    std::vector<std::unique_ptr<moodycamel::ProducerToken>> tokens_;
    std::mutex names_mutex_;
    std::vector<std::string> names_;
    std::unordered_map<std::string, std::uint32_t> name_numbers_;
    std::thread writer_;
    // Of the writer alone.
    std::string buffer_;
    std::size_t names_written_ = 0;
    std::uint64_t write_errors_ = 0;
};

EventLog::EventLog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EventLog::~EventLog() = default;

tl::expected<std::unique_ptr<EventLog>, std::string> EventLog::open(const std::string& path,
                                                                    const EventLogHeader& header,
                                                                    std::size_t capacity) {
    count_forks_once();
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        return tl::unexpected(
            fmt::format("cannot write the trace {}: {}", path, std::strerror(errno)));
    }
    auto impl = std::make_unique<Impl>(fd, capacity);
    impl->name("");  // number 0: no name
    impl->start(header_line(header));
    return std::unique_ptr<EventLog>(new EventLog(std::move(impl)));
}

std::uint32_t EventLog::name(std::string_view text) {
    return impl_->usable() ? impl_->name(text) : 0;
}

void EventLog::alloc(std::uint64_t block, std::uint64_t bytes, std::uint64_t asked_bytes) {
    if (!impl_->usable()) return;
    impl_->put({.kind = RecordKind::Alloc, .v = {block, bytes, asked_bytes}});
}

void EventLog::free(std::uint64_t block) {
    if (!impl_->usable()) return;
    impl_->put({.kind = RecordKind::Free, .v = {block}});
}

void EventLog::op(const OpEvent& e, std::span<const cost::TracedOperand> operands) {
    if (!impl_->usable()) return;
    impl_->put_op({.kind = RecordKind::Op,
                   .sub = static_cast<std::uint8_t>(e.kind),
                   .a_flag = e.explained,
                   .name = e.name,
                   .v = {e.serial, e.stream, e.signature, e.workspace_bytes, operands.size()}},
                  operands);
}

void EventLog::op_time(std::uint64_t serial, std::uint64_t start_ns, std::uint64_t end_ns) {
    if (!impl_->usable()) return;
    impl_->put({.kind = RecordKind::OpTime, .v = {serial, start_ns, end_ns}});
}

void EventLog::move(MoveKind kind, std::uint64_t block, std::uint64_t bytes,
                    std::uint64_t after_serial, std::uint64_t start_ns, std::uint64_t end_ns) {
    if (!impl_->usable()) return;
    impl_->put({.kind = RecordKind::Move,
                .sub = static_cast<std::uint8_t>(kind),
                .v = {block, bytes, after_serial, start_ns, end_ns}});
}

void EventLog::stall(std::uint64_t serial, std::uint64_t waited_ns, std::uint32_t reason_name) {
    if (!impl_->usable()) return;
    impl_->put({.kind = RecordKind::Stall, .name = reason_name, .v = {serial, waited_ns}});
}

void EventLog::iteration(std::uint64_t serial, std::uint32_t loop, std::uint64_t period) {
    if (!impl_->usable()) return;
    impl_->put({.kind = RecordKind::Iteration, .v = {serial, loop, period}});
}

void EventLog::plan(std::uint32_t loop, std::uint64_t predicted_us, std::uint64_t compute_us,
                    std::uint64_t actions) {
    if (!impl_->usable()) return;
    impl_->put({.kind = RecordKind::Plan, .v = {loop, predicted_us, compute_us, actions}});
}

void EventLog::model(std::uint32_t name, int device, std::uint64_t count, double mean_percent,
                     double ratio) {
    if (!impl_->usable()) return;
    impl_->put({.kind = RecordKind::Model,
                .name = name,
                .v = {static_cast<std::uint64_t>(device), count, thousandths(mean_percent),
                      thousandths(ratio)}});
}

void EventLog::note(std::uint32_t text_name) {
    if (!impl_->usable()) return;
    impl_->put({.kind = RecordKind::Note, .name = text_name});
}

std::uint64_t EventLog::dropped() const { return impl_->dropped(); }

void EventLog::close() { impl_->close(); }

}  // namespace libswap
