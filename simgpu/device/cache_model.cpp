// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/device/cache_model.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace simgpu {

namespace {

constexpr std::size_t kMostLanes = 32;

bool passes(const CacheLevel& level, LoadPath path) {
    switch (path) {
        case LoadPath::Global:
            return level.per_sm;
        case LoadPath::ReadOnly:
            return !level.read_only;
        case LoadPath::Data:
            break;
    }
    return !level.data;
}

std::uint32_t sectors_of(const CacheLevel& level) {
    return static_cast<std::uint32_t>(level.shape.line_bytes / level.sector_bytes);
}

}  // namespace

CacheTags::CacheTags(const CacheShape& shape, std::uint32_t sectors, std::uint64_t seed)
    : shape_(shape),
      index_bits_(static_cast<std::uint32_t>(std::bit_width(shape.sets) - 1)),
      all_sectors_(sectors >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << sectors) - 1),
      ways_(std::size_t{shape.sets} * shape.ways),
      right_(shape.replacement == Replacement::PseudoLru ? ways_.size() : 0),
      random_(static_cast<std::uint32_t>(seed % 2147483646 + 1)) {}

std::uint32_t CacheTags::set_of(std::uint64_t line) const {
    if (shape_.index == SetIndex::Modulo) return static_cast<std::uint32_t>(line % shape_.sets);
    if (index_bits_ == 0) return 0;
    std::uint64_t folded = 0;
    for (std::uint64_t rest = line; rest != 0; rest >>= index_bits_) folded ^= rest;
    return static_cast<std::uint32_t>(folded & (shape_.sets - 1));
}

bool CacheTags::access(std::uint64_t line, std::uint32_t sector) {
    const std::uint32_t set = set_of(line);
    Way* const first = &ways_[std::size_t{set} * shape_.ways];
    std::uint32_t empty = shape_.ways;
    const std::uint64_t bit = std::uint64_t{1} << sector & all_sectors_;
    for (std::uint32_t w = 0; w < shape_.ways; ++w) {
        if (first[w].used == 0) {
            empty = std::min(empty, w);
        } else if (first[w].line == line) {
            const bool there = (first[w].sectors & bit) != 0;
            first[w].sectors |= bit;
            touch(set, w, false);
            return there;
        }
    }
    const std::uint32_t way = empty < shape_.ways ? empty : victim(set);
    first[way] = {line, 0, bit};
    touch(set, way, true);
    return false;
}

void CacheTags::touch(std::uint32_t set, std::uint32_t way, bool is_new) {
    const std::size_t base = std::size_t{set} * shape_.ways;
    ++clock_;
    if (is_new || shape_.replacement != Replacement::Fifo) ways_[base + way].used = clock_;
    if (shape_.replacement != Replacement::PseudoLru) return;
    std::uint32_t low = 0;
    std::uint32_t high = shape_.ways;
    while (high - low > 1) {
        const std::uint32_t middle = (low + high + 1) / 2;
        right_[base + middle] = way < middle ? 1 : 0;
        (way < middle ? high : low) = middle;
    }
}

std::uint32_t CacheTags::victim(std::uint32_t set) {
    const std::size_t base = std::size_t{set} * shape_.ways;
    if (shape_.replacement == Replacement::Random)
        return std::uniform_int_distribution<std::uint32_t>(0, shape_.ways - 1)(random_);
    if (shape_.replacement == Replacement::PseudoLru) {
        std::uint32_t low = 0;
        std::uint32_t high = shape_.ways;
        while (high - low > 1) {
            const std::uint32_t middle = (low + high + 1) / 2;
            (right_[base + middle] != 0 ? low : high) = middle;
        }
        return low;
    }
    const auto first = ways_.begin() + static_cast<std::ptrdiff_t>(base);
    const auto oldest = std::min_element(
        first, first + shape_.ways, [](const Way& a, const Way& b) { return a.used < b.used; });
    return static_cast<std::uint32_t>(oldest - first);
}

void CacheTags::clear() {
    std::fill(ways_.begin(), ways_.end(), Way{});
    std::fill(right_.begin(), right_.end(), std::uint8_t{0});
}

CacheModel::CacheModel(const CacheProfile& profile, std::uint32_t sm_count)
    : profile_(profile),
      sm_count_(std::max<std::uint32_t>(1, sm_count)),
      least_sector_bytes_(32),
      random_(static_cast<std::uint32_t>(profile.seed % 2147483646 + 1)) {
    for (const CacheLevel& level : profile_.caches) {
        least_sector_bytes_ = std::min(least_sector_bytes_, level.sector_bytes);
        caches_.emplace_back(level.per_sm ? sm_count_ : 1);
    }
    std::uint64_t seed = profile.seed;
    for (const TlbLevel& level : profile_.tlbs) tlbs_.emplace_back(level.shape, 1, ++seed);
}

void CacheModel::start_kernel() {
    for (std::size_t level = 0; level < caches_.size(); ++level) {
        if (!profile_.caches[level].per_sm) continue;
        for (auto& tags : caches_[level]) {
            if (tags != nullptr) tags->clear();
        }
    }
}

std::uint32_t CacheModel::load(std::span<const std::uint64_t> addresses, LoadPath path,
                               std::uint32_t sm) {
    std::uint64_t seen[kMostLanes];
    std::size_t count = 0;
    double cycles = 0;
    for (const std::uint64_t address : addresses.first(std::min(addresses.size(), kMostLanes))) {
        const std::uint64_t sector = address / least_sector_bytes_;
        if (std::find(seen, seen + count, sector) != seen + count) continue;
        seen[count++] = sector;
        cycles = std::max(cycles, one_load(address, path, sm % sm_count_));
    }
    return static_cast<std::uint32_t>(std::lround(cycles));
}

double CacheModel::one_load(std::uint64_t address, LoadPath path, std::uint32_t sm) {
    bool translated = false;
    double translation = 0;
    for (std::size_t k = 0; k < caches_.size(); ++k) {
        const CacheLevel& level = profile_.caches[k];
        if (passes(level, path)) continue;
        if (!level.is_virtual && !translated) {
            translation = translate(address);
            translated = true;
        }
        auto& tags = caches_[k][level.per_sm ? sm : 0];
        if (tags == nullptr) {
            tags = std::make_unique<CacheTags>(level.shape, sectors_of(level),
                                               profile_.seed + 1000 * (k + 1) + sm);
        }
        const std::uint64_t line = address / level.shape.line_bytes;
        const auto sector =
            static_cast<std::uint32_t>(address % level.shape.line_bytes / level.sector_bytes);
        if (tags->access(line, sector)) return noisy(level.latency_cycles + translation);
    }
    if (!translated) translation = translate(address);
    return noisy(profile_.memory_latency_cycles + translation);
}

double CacheModel::translate(std::uint64_t address) {
    double cycles = 0;
    for (std::size_t k = 0; k < tlbs_.size(); ++k) {
        const TlbLevel& level = profile_.tlbs[k];
        if (tlbs_[k].access(address / level.shape.line_bytes)) break;
        cycles += level.miss_cycles;
    }
    return cycles;
}

double CacheModel::noisy(double cycles) {
    if (profile_.noise == 0) return cycles;
    constexpr double kLeast = 0.25;
    return cycles * std::max(kLeast, 1 + profile_.noise * normal_(random_));
}

}  // namespace simgpu
