// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "cache.hpp"

#include <algorithm>
#include <cstdint>

namespace c10 {

struct Device {
    std::int8_t type;
    std::int8_t index;
};
/// PyTorch's, and libswap's where that is preloaded.
[[gnu::weak]] void reportMemoryUsageToProfiler(void* address, std::int64_t change,
                                               std::size_t allocated, std::size_t reserved,
                                               Device device);

}  // namespace c10

namespace random_programs {
namespace {

constexpr std::size_t kPieceBytes = 512;
constexpr std::size_t kSegmentBytes = std::size_t{6} << 20;
constexpr std::size_t kArenaBytes = std::size_t{24} << 20;

}  // namespace

void Cache::report(char* at, std::int64_t change) {
    if (tells_ && c10::reportMemoryUsageToProfiler)
        c10::reportMemoryUsageToProfiler(at, change, 0, 0, {1, 0});
}

std::size_t Cache::rounded(std::size_t bytes) {
    return (bytes + kPieceBytes - 1) / kPieceBytes * kPieceBytes;
}

cudaError_t Cache::take(char** at, std::size_t bytes, int stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    bytes = rounded(bytes);
    Pieces& pieces = free_[stream];
    auto best = pieces.end();
    for (auto piece = pieces.begin(); piece != pieces.end(); ++piece)
        if (piece->second >= bytes && (best == pieces.end() || piece->second < best->second))
            best = piece;
    if (best == pieces.end()) {
        void* segment = nullptr;
        const std::size_t most = std::max(bytes, tells_ ? kSegmentBytes : kArenaBytes);
        if (const cudaError_t error = cudaMalloc(&segment, most); error != cudaSuccess)
            return error;
        segments_.push_back(static_cast<char*>(segment));
        best = pieces.emplace(segments_.back(), most).first;
    }
    const auto [begin, size] = *best;
    pieces.erase(best);
    if (size > bytes) pieces.emplace(begin + bytes, size - bytes);
    *at = begin;
    report(begin, static_cast<std::int64_t>(bytes));
    return cudaSuccess;
}

void Cache::give_back(char* at, std::size_t bytes, int stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    bytes = rounded(bytes);
    report(at, -static_cast<std::int64_t>(bytes));
    Pieces& pieces = free_[stream];
    const auto place = pieces.emplace(at, bytes).first;
    // Segments of the driver may lie side by side, and are no one piece.
    const auto joins = [&](Pieces::iterator before, Pieces::iterator behind) {
        return before->first + before->second == behind->first &&
               std::find(segments_.begin(), segments_.end(), behind->first) == segments_.end();
    };
    if (const auto next = std::next(place); next != pieces.end() && joins(place, next)) {
        place->second += next->second;
        pieces.erase(next);
    }
    if (place == pieces.begin()) return;
    const auto before = std::prev(place);
    if (!joins(before, place)) return;
    before->second += place->second;
    pieces.erase(place);
}

cudaError_t Cache::release_all() {
    cudaError_t result = cudaSuccess;
    for (char* segment : segments_)
        if (const cudaError_t error = cudaFree(segment); error != cudaSuccess) result = error;
    segments_.clear();
    free_.clear();
    return result;
}

}  // namespace random_programs
