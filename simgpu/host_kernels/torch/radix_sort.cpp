// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// CUB's radix sort (CCCL 3.2, as torch 2.15 has it): one histogram of all digits, its exclusive
// sums, and a pass per digit of eight bits that puts each element behind those before it; or all at
// once, for what fits into one tile. NaNs come last here, whatever their sign.

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "simgpu/host_kernels/torch/families.hpp"
#include "simgpu/host_kernels/torch/ordering.hpp"

namespace simgpu::torch {
namespace {

constexpr std::int32_t kDigitBits = 8;
constexpr std::size_t kDigits = 1 << kDigitBits;

/// What the name says of a kernel of the sort.
struct Form {
    ScalarType key = ScalarType::Unknown;
    /// 0 where there are keys alone.
    std::uint32_t value_bytes = 0;
    bool descending = false;
    /// Of the numbers in the histogram.
    std::uint32_t count_bytes = 0;

    std::uint64_t bits(const std::byte* from) const {
        return descending ? descending_bits(key, from) : ordered_bits(key, from);
    }
};

/// The histogram's numbers, of 4 or 8 bytes.
class Bins {
  public:
    Bins(const NamedLaunch& launch, std::uint64_t va, std::uint32_t width, std::size_t number)
        : width_(width), data_(launch.write<std::byte>(va, number * width)) {}
    explicit operator bool() const { return data_ != nullptr; }
    std::uint64_t get(std::size_t i) const {
        std::uint64_t value = 0;
        std::memcpy(&value, data_ + i * width_, width_);
        return value;
    }
    void set(std::size_t i, std::uint64_t value) {
        std::memcpy(data_ + i * width_, &value, width_);
    }

  private:
    std::uint32_t width_;
    std::byte* data_;
};

std::size_t digit(std::uint64_t bits, std::int32_t from, std::int32_t number) {
    return bits >> from & ((std::uint64_t{1} << number) - 1);
}

/// (bins, keys, number, first bit, end bit, decomposer): adds to what is there.
bool histogram(const NamedLaunch& launch, const Form& form) {
    const auto number =
        form.count_bytes == 8 ? launch.get<std::uint64_t>(2) : launch.get<std::uint32_t>(2);
    const auto begin = launch.get<std::int32_t>(3);
    const auto end = launch.get<std::int32_t>(4);
    if (begin < 0 || end <= begin || end > 64) return false;
    const auto passes = static_cast<std::size_t>((end - begin + kDigitBits - 1) / kDigitBits);
    const std::uint32_t width = size_of(form.key);
    const auto* keys = launch.read<std::byte>(launch.get<std::uint64_t>(1), number * width);
    Bins bins(launch, launch.get<std::uint64_t>(0), form.count_bytes, passes * kDigits);
    if (keys == nullptr || !bins) return true;
    std::vector<std::uint64_t> counts(passes * kDigits);
    for (std::uint64_t i = 0; i < number; ++i) {
        const std::uint64_t bits = form.bits(keys + i * width);
        for (std::size_t pass = 0; pass < passes; ++pass) {
            const std::int32_t from = begin + static_cast<std::int32_t>(pass) * kDigitBits;
            ++counts[pass * kDigits + digit(bits, from, std::min(kDigitBits, end - from))];
        }
    }
    for (std::size_t i = 0; i < counts.size(); ++i) bins.set(i, bins.get(i) + counts[i]);
    launch.cost(static_cast<double>(number * passes), static_cast<double>(number * width));
    return true;
}

/// (bins): a pass per block.
bool exclusive_sums(const NamedLaunch& launch, std::uint32_t count_bytes) {
    const std::size_t passes = launch.grid()[0];
    Bins bins(launch, launch.get<std::uint64_t>(0), count_bytes, passes * kDigits);
    if (!bins) return true;
    for (std::size_t pass = 0; pass < passes; ++pass) {
        std::uint64_t sum = 0;
        for (std::size_t i = pass * kDigits; i < (pass + 1) * kDigits; ++i) {
            const std::uint64_t count = bins.get(i);
            bins.set(i, sum);
            sum += count;
        }
    }
    return true;
}

/// (look-back, counters, bins out, bins, keys out, keys, values out, values, number, bit, bits,
/// decomposer). The first two are scratch. What a pass adds to the bins the next portion of the
/// same digit begins with.
bool one_sweep(const NamedLaunch& launch, const Form& form) {
    const auto number = static_cast<std::uint64_t>(launch.get<std::uint32_t>(8));
    const auto bit = launch.get<std::int32_t>(9);
    const auto bits = launch.get<std::int32_t>(10);
    if (bit < 0 || bits <= 0 || bits > kDigitBits || bit + bits > 64) return false;
    const std::uint32_t key_bytes = size_of(form.key);
    const std::uint32_t value_bytes = form.value_bytes;
    const auto* starts =
        launch.read<std::byte>(launch.get<std::uint64_t>(3), kDigits * form.count_bytes);
    const auto* keys = launch.read<std::byte>(launch.get<std::uint64_t>(5), number * key_bytes);
    if (starts == nullptr || keys == nullptr) return true;
    std::vector<std::uint64_t> at(kDigits);
    for (std::size_t d = 0; d < kDigits; ++d)
        std::memcpy(&at[d], starts + d * form.count_bytes, form.count_bytes);
    std::vector<std::uint64_t> place(number);
    for (std::uint64_t i = 0; i < number; ++i)
        place[i] = at[digit(form.bits(keys + i * key_bytes), bit, bits)]++;
    const std::uint64_t end = number == 0 ? 0 : *std::max_element(place.begin(), place.end()) + 1;
    const auto move = [&](std::size_t to, const std::byte* from, std::uint32_t width) {
        auto* out = launch.write<std::byte>(launch.get<std::uint64_t>(to), end * width);
        for (std::uint64_t i = 0; out != nullptr && i < number; ++i)
            std::memcpy(out + place[i] * width, from + i * width, width);
    };
    move(4, keys, key_bytes);
    if (value_bytes != 0) {
        const auto* values =
            launch.read<std::byte>(launch.get<std::uint64_t>(7), number * value_bytes);
        if (values == nullptr) return true;
        move(6, values, value_bytes);
    }
    if (const auto next = launch.get<std::uint64_t>(2); next != 0) {
        Bins bins(launch, next, form.count_bytes, kDigits);
        for (std::size_t d = 0; bins && d < kDigits; ++d) bins.set(d, at[d]);
    }
    launch.cost(static_cast<double>(number),
                2.0 * static_cast<double>(number * (key_bytes + value_bytes)));
    return true;
}

/// Sorts keys and values, parameters 0 to 3, by some of the keys' bits.
bool sort_by_bits(const NamedLaunch& launch, const Form& form, std::uint64_t number,
                  std::int32_t begin, std::int32_t bits) {
    const std::uint32_t key_bytes = size_of(form.key);
    const auto* keys = launch.read<std::byte>(launch.get<std::uint64_t>(0), number * key_bytes);
    if (keys == nullptr) return true;
    std::vector<std::uint64_t> sorted_by(number);
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bits);
    for (std::uint64_t i = 0; i < number; ++i)
        sorted_by[i] = form.bits(keys + i * key_bytes) >> begin & mask;
    std::vector<std::uint64_t> order(number);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint64_t a, std::uint64_t b) { return sorted_by[a] < sorted_by[b]; });
    // Keys may be sorted where they lie.
    const auto move = [&](std::size_t from, std::uint32_t width) {
        const auto* in = launch.read<std::byte>(launch.get<std::uint64_t>(from), number * width);
        auto* out = launch.write<std::byte>(launch.get<std::uint64_t>(from + 1), number * width);
        if (in == nullptr || out == nullptr) return;
        const std::vector<std::byte> copy(in, in + number * width);
        for (std::uint64_t i = 0; i < number; ++i)
            std::memcpy(out + i * width, copy.data() + order[i] * width, width);
    };
    move(0, key_bytes);
    if (form.value_bytes != 0) move(2, form.value_bytes);
    launch.cost(static_cast<double>(number),
                2.0 * static_cast<double>(number * (key_bytes + form.value_bytes)));
    return true;
}

/// (keys, keys out, values, values out, sums, number, bit, bits, how blocks share it, decomposer):
/// a pass of those types that have no quicker one. What the kernels before it counted into the sums
/// it counts itself.
bool downsweep(const NamedLaunch& launch, const Form& form) {
    const auto number =
        form.count_bytes == 8 ? launch.get<std::uint64_t>(5) : launch.get<std::uint32_t>(5);
    const auto bit = launch.get<std::int32_t>(6);
    const auto bits = launch.get<std::int32_t>(7);
    if (bit < 0 || bits <= 0 || bit + bits > 64) return false;
    return sort_by_bits(launch, form, number, bit, bits);
}

/// (keys, keys out, values, values out, number, first bit, end bit, decomposer)
bool single_tile(const NamedLaunch& launch, const Form& form) {
    const auto number =
        form.count_bytes == 8 ? launch.get<std::uint64_t>(4) : launch.get<std::uint32_t>(4);
    const auto begin = launch.get<std::int32_t>(5);
    const auto end = launch.get<std::int32_t>(6);
    if (begin < 0 || end <= begin || end > 64) return false;
    return sort_by_bits(launch, form, number, begin, end - begin);
}

/// Of what a parameter points to: 0 for NullType, none where it is not known.
bool value_bytes(std::string_view type, std::uint32_t& bytes) {
    constexpr std::string_view kOpaque = "OpaqueType<";
    if (type.find("NullType") != std::string_view::npos) {
        bytes = 0;
        return true;
    }
    if (const std::size_t at = type.find(kOpaque); at != std::string_view::npos) {
        bytes = static_cast<std::uint32_t>(
            std::strtoul(type.data() + at + kOpaque.size(), nullptr, 10));
        return bytes != 0;
    }
    bytes = size_of(element_type(type));
    return bytes != 0;
}

std::uint32_t count_bytes(std::string_view type) {
    return type.find("long") != std::string_view::npos ? 8 : 4;
}

}  // namespace

NamedKernel find_radix_sort(const KernelName& name) {
    if (name.base == "RadixSortScanBinsKernel") return do_nothing;
    if (!name.base.starts_with("DeviceRadixSort")) return {};
    const auto& types = name.parameters;
    Form form;
    for (const std::string& argument : name.template_arguments)
        form.descending = form.descending || argument.ends_with("SortOrder)1");
    if (name.base == "DeviceRadixSortExclusiveSumKernel" && types.size() == 1)
        return [bytes = count_bytes(types[0])](const NamedLaunch& launch) {
            return exclusive_sums(launch, bytes);
        };
    // A decomposer takes keys of several parts apart.
    if (types.empty() || types.back().find("identity_decomposer_t") == std::string::npos) return {};
    if (name.base == "DeviceRadixSortHistogramKernel" && types.size() == 6) {
        form.key = element_type(types[1]);
        form.count_bytes = count_bytes(types[0]);
        if (form.key == ScalarType::Unknown) return {};
        return [form](const NamedLaunch& launch) { return histogram(launch, form); };
    }
    if (name.base == "DeviceRadixSortUpsweepKernel") return do_nothing;
    const bool sweep = name.base == "DeviceRadixSortOnesweepKernel" && types.size() == 12;
    const bool tile = name.base == "DeviceRadixSortSingleTileKernel" && types.size() == 8;
    const bool down = name.base == "DeviceRadixSortDownsweepKernel" && types.size() == 10;
    if (!sweep && !tile && !down) return {};
    form.key = element_type(types[sweep ? 5 : 0]);
    form.count_bytes = count_bytes(types[sweep ? 3 : 4]);
    if (form.key == ScalarType::Unknown || !value_bytes(types[sweep ? 6 : 2], form.value_bytes))
        return {};
    return [=](const NamedLaunch& launch) {
        if (down) return downsweep(launch, form);
        return sweep ? one_sweep(launch, form) : single_tile(launch, form);
    };
}

}  // namespace simgpu::torch
