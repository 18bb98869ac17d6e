// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/device/shared_usage.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace simgpu {

using Amount = std::atomic<std::uint64_t>;
static_assert(Amount::is_always_lock_free, "processes share it");

/// A new file is all zeros, which is a table that nobody uses.
struct SharedUsage::Table {
    std::array<std::array<Amount, kMaxDevices>, kMaxProcesses> held;
};

namespace {

/// The byte whose lock covers the table; that of a place comes behind it. Locks may lie anywhere,
/// whatever the file holds there.
constexpr off_t kTableByte = 0;
constexpr off_t byte_of(int place) { return 1 + place; }

struct flock lock_of(off_t byte, short type) {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte;
    lock.l_len = 1;
    return lock;
}

bool lock_byte(int fd, off_t byte, short type, int command) {
    struct flock lock = lock_of(byte, type);
    int status = 0;
    do {
        status = fcntl(fd, command, &lock);
    } while (status != 0 && errno == EINTR);
    return status == 0;
}

class TableLock {
  public:
    explicit TableLock(int fd) : fd_(fd) { lock_byte(fd_, kTableByte, F_WRLCK, F_SETLKW); }
    ~TableLock() { lock_byte(fd_, kTableByte, F_UNLCK, F_SETLK); }
    TableLock(const TableLock&) = delete;
    TableLock& operator=(const TableLock&) = delete;

  private:
    int fd_;
};

}  // namespace

std::shared_ptr<SharedUsage> SharedUsage::open(const std::string& path, std::string* error, As as) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || ftruncate(fd, sizeof(Table)) != 0) {
        *error = path + ": " + std::strerror(errno);
        if (fd >= 0) close(fd);
        return nullptr;
    }
    void* mapped = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) {
        *error = path + ": " + std::strerror(errno);
        close(fd);
        return nullptr;
    }
    std::shared_ptr<SharedUsage> usage(new SharedUsage(fd, static_cast<Table*>(mapped)));
    if (as == As::Watcher || usage->claim()) return usage;
    *error = path + ": used by " + std::to_string(kMaxProcesses) + " processes already";
    return nullptr;
}

SharedUsage::~SharedUsage() {
    if (own_ >= 0) {
        for (auto& amount : table_->held[static_cast<std::size_t>(own_)]) amount = 0;
    }
    munmap(table_, sizeof(Table));
    close(fd_);
}

bool SharedUsage::claim() {
    const TableLock lock(fd_);
    for (int place = 0; place < kMaxProcesses; ++place) {
        if (!lock_byte(fd_, byte_of(place), F_WRLCK, F_SETLK)) continue;
        own_ = place;
        for (auto& amount : table_->held[static_cast<std::size_t>(place)]) amount = 0;
        return true;
    }
    return false;
}

std::uint32_t SharedUsage::holder(int place) const {
    struct flock lock = lock_of(byte_of(place), F_WRLCK);
    if (fcntl(fd_, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return 0;
    return static_cast<std::uint32_t>(lock.l_pid);
}

std::vector<SharedUsage::Process> SharedUsage::processes(int number) const {
    std::vector<Process> processes;
    for (int place = 0; place < kMaxProcesses; ++place) {
        const std::uint64_t held =
            table_->held[static_cast<std::size_t>(place)][static_cast<std::size_t>(number)];
        const std::uint32_t pid = place != own_ && held != 0 ? holder(place) : 0;
        if (pid != 0) processes.push_back({pid, held});
    }
    return processes;
}

std::uint64_t SharedUsage::sum_of_others(int number) const {
    std::uint64_t sum = 0;
    for (const Process& process : processes(number)) sum += process.bytes;
    return sum;
}

std::uint64_t SharedUsage::others(int number) const {
    const TableLock lock(fd_);
    return sum_of_others(number);
}

bool SharedUsage::take(int number, std::uint64_t bytes, std::uint64_t capacity_bytes) {
    const TableLock lock(fd_);
    auto& own = table_->held[static_cast<std::size_t>(own_)][static_cast<std::size_t>(number)];
    const std::uint64_t held = own + sum_of_others(number);
    if (held > capacity_bytes || bytes > capacity_bytes - held) return false;
    own += bytes;
    return true;
}

void SharedUsage::give_back(int number, std::uint64_t bytes) {
    table_->held[static_cast<std::size_t>(own_)][static_cast<std::size_t>(number)] -= bytes;
}

}  // namespace simgpu
