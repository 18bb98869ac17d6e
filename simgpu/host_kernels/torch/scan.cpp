// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Running sums, products and maxima: PyTorch's own scans over one dimension (torch 2.15's
// ScanUtils.cuh) and CUB's over all elements, or over those with equal keys (CCCL 3.2). Floats are
// summed in double, as PyTorch does it on the CPU.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "simgpu/host_kernels/torch/families.hpp"
#include "simgpu/host_kernels/torch/ordering.hpp"

namespace simgpu::torch {
namespace {

enum class Operation : std::uint8_t { Sum, Product, LogSumExp, Maximum, Unknown };

Operation operation_of(std::string_view type) {
    const auto has = [&](std::string_view part) {
        return type.find(part) != std::string_view::npos;
    };
    if (has("logcumsumexp")) return Operation::LogSumExp;
    if (has("plus<") || has("SumOp<")) return Operation::Sum;
    if (has("multiplies<")) return Operation::Product;
    return has("maximum<") ? Operation::Maximum : Operation::Unknown;
}

double combine(Operation operation, double a, double b) {
    switch (operation) {
        case Operation::Product:
            return a * b;
        case Operation::Maximum:
            return std::max(a, b);
        case Operation::LogSumExp: {
            const double most = std::fmax(a, b);
            return std::isinf(most) ? most : most + std::log1p(std::exp(std::fmin(a, b) - most));
        }
        default:
            return a + b;
    }
}

/// Integers wrap around, as on a device.
std::int64_t combine(Operation operation, std::int64_t a, std::int64_t b) {
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    if (operation == Operation::Maximum) return std::max(a, b);
    return static_cast<std::int64_t>(operation == Operation::Product ? x * y : x + y);
}

/// Elements that follow each other, `step` elements apart.
struct Line {
    const std::byte* in;
    std::byte* out;
    std::uint64_t number;
    std::uint64_t step = 1;
};

/// `begin`: what a sum of nothing is; with `exclusive` an element's own value does not count.
template <typename Value, typename Load, typename Store>
void scan_line(const Line& line, Operation operation, Value begin, bool exclusive, Load load_at,
               Store store_at) {
    Value sum = begin;
    for (std::uint64_t i = 0; i < line.number; ++i) {
        const Value value = load_at(i * line.step);
        if (exclusive) store_at(i * line.step, sum);
        sum = i == 0 && !exclusive ? value : combine(operation, sum, value);
        if (!exclusive) store_at(i * line.step, sum);
    }
}

void scan_line(const Line& line, Operation operation, ScalarType in, ScalarType out,
               std::int64_t begin, bool exclusive) {
    const std::uint32_t in_bytes = size_of(in);
    const std::uint32_t out_bytes = size_of(out);
    if (!is_float(out)) {
        scan_line<std::int64_t>(
            line, operation, begin, exclusive,
            [&](std::uint64_t i) { return load_integer(in, line.in + i * in_bytes); },
            [&](std::uint64_t i, std::int64_t value) {
                store_integer(out, line.out + i * out_bytes, value);
            });
        return;
    }
    scan_line<double>(
        line, operation, static_cast<double>(begin), exclusive,
        [&](std::uint64_t i) { return load(in, line.in + i * in_bytes); },
        [&](std::uint64_t i, double value) { store(out, line.out + i * out_bytes, value); });
}

/// Rows in a row (out, in, rows, elements of a row, ...), or columns of several matrices (out, in,
/// matrices, columns, rows, ...).
bool scan_dimension(const NamedLaunch& launch, ScalarType type, Operation operation, bool outer) {
    const std::uint64_t matrices = launch.get<std::uint32_t>(2);
    const std::uint64_t columns = outer ? launch.get<std::uint32_t>(3) : 1;
    const std::uint64_t length = launch.get<std::uint32_t>(outer ? 4 : 3);
    const std::uint64_t number = matrices * columns * length;
    const std::uint32_t width = size_of(type);
    auto* out = launch.write<std::byte>(launch.get<std::uint64_t>(0), number * width);
    const auto* in = launch.read<std::byte>(launch.get<std::uint64_t>(1), number * width);
    if (out == nullptr || in == nullptr) return true;
    for (std::uint64_t matrix = 0; matrix < matrices; ++matrix) {
        for (std::uint64_t column = 0; column < columns; ++column) {
            const std::uint64_t at = (matrix * columns * length + column) * width;
            scan_line({in + at, out + at, length, columns}, operation, type, type, 0, false);
        }
    }
    launch.cost(static_cast<double>(number), 2.0 * static_cast<double>(number * width));
    return true;
}

/// cummax and cummin: (in, values, indices, then as above). The last of equal ones counts.
bool scan_with_indices(const NamedLaunch& launch, ScalarType type, bool greatest, bool outer) {
    const std::uint64_t matrices = launch.get<std::uint32_t>(3);
    const std::uint64_t columns = outer ? launch.get<std::uint32_t>(4) : 1;
    const std::uint64_t length = launch.get<std::uint32_t>(outer ? 5 : 4);
    const std::uint64_t number = matrices * columns * length;
    const std::uint32_t width = size_of(type);
    const auto* in = launch.read<std::byte>(launch.get<std::uint64_t>(0), number * width);
    auto* values = launch.write<std::byte>(launch.get<std::uint64_t>(1), number * width);
    auto* indices = launch.write<std::int64_t>(launch.get<std::uint64_t>(2), number);
    if (in == nullptr || values == nullptr || indices == nullptr) return true;
    for (std::uint64_t line = 0; line < matrices * columns; ++line) {
        const std::uint64_t first = line / columns * columns * length + line % columns;
        std::uint64_t best = first;
        for (std::uint64_t i = 0; i < length; ++i) {
            const std::uint64_t at = first + i * columns;
            const double here = load(type, in + at * width);
            const double there = load(type, in + best * width);
            if (std::isnan(here) ||
                (!std::isnan(there) && (greatest ? here >= there : here <= there)))
                best = at;
            std::memcpy(values + at * width, in + best * width, width);
            indices[at] = static_cast<std::int64_t>((best - first) / columns);
        }
    }
    launch.cost(static_cast<double>(number), static_cast<double>(number * (2 * width + 8)));
    return true;
}

struct CubForm {
    ScalarType in = ScalarType::Unknown;
    ScalarType out = ScalarType::Unknown;
    Operation operation = Operation::Unknown;
    /// Of flags each counts as one, whatever its byte says.
    bool flags = false;
    bool exclusive = false;
    std::uint32_t count_bytes = 4;
};

/// What an exclusive scan begins with: whether it lies at an address, then that or itself.
bool begin_value(const NamedLaunch& launch, std::size_t parameter, std::int64_t& begin) {
    if (launch.parameter(parameter).size() < 16) return false;
    begin = launch.get<std::int64_t>(parameter, 8);
    if (launch.get<std::uint8_t>(parameter) == 0) return true;
    const auto* there = launch.read<std::int64_t>(static_cast<std::uint64_t>(begin), 1);
    if (there != nullptr) begin = *there;
    return true;
}

/// (in, out, state, first tile, operation, begin, number)
bool scan_all(const NamedLaunch& launch, const CubForm& form) {
    const std::uint64_t number =
        form.count_bytes == 8 ? launch.get<std::uint64_t>(6) : launch.get<std::uint32_t>(6);
    std::int64_t begin = 0;
    if (form.exclusive && !begin_value(launch, 5, begin)) return false;
    const auto* in =
        launch.read<std::byte>(launch.get<std::uint64_t>(0), number * size_of(form.in));
    auto* out = launch.write<std::byte>(launch.get<std::uint64_t>(1), number * size_of(form.out));
    if (in == nullptr || out == nullptr) return true;
    scan_line({in, out, number}, form.operation, form.flags ? ScalarType::Bool : form.in, form.out,
              begin, form.exclusive);
    launch.cost(static_cast<double>(number),
                static_cast<double>(number * (size_of(form.in) + size_of(form.out))));
    return true;
}

/// (keys, first keys of the tiles, values, out, state, first tile, equality, operation, begin,
/// number), numbers of 64 bits. Backwards an iterator's address is that behind its first element.
/// `constant`: each value is the iterator's, behind its place.
bool scan_by_key(const NamedLaunch& launch, Operation operation, bool backwards, bool constant) {
    const auto number = launch.get<std::uint64_t>(9);
    const auto at = [&](std::size_t parameter) {
        return launch.get<std::uint64_t>(parameter) - (backwards ? 8 * number : 0);
    };
    if (number == 0) return true;
    const auto* keys = launch.read<std::int64_t>(at(0), number);
    const auto* values = constant ? nullptr : launch.read<std::int64_t>(at(2), number);
    auto* out = launch.write<std::int64_t>(at(3), number);
    if (keys == nullptr || out == nullptr || (values == nullptr && !constant)) return true;
    std::int64_t sum = 0;
    for (std::uint64_t n = 0; n < number; ++n) {
        const std::uint64_t i = backwards ? number - 1 - n : n;
        const std::int64_t value = constant ? launch.get<std::int64_t>(2, 8) : values[i];
        const bool begins = n == 0 || keys[i] != keys[backwards ? i + 1 : i - 1];
        sum = begins ? value : combine(operation, sum, value);
        out[i] = sum;
    }
    launch.cost(static_cast<double>(number), 24.0 * static_cast<double>(number));
    return true;
}

NamedKernel find_by_key(const KernelName& name) {
    const auto& types = name.parameters;
    if (types.size() != 10 || types[9] != "unsigned long long") return {};
    const bool backwards = types[0].find("reverse_iterator<long const*>") != std::string::npos;
    const bool constant = types[2].find("constant_iterator<long") != std::string::npos;
    if (!backwards && types[0] != "long const*") return {};
    if (!backwards && !constant && types[2] != "long const*" && types[2] != "long*") return {};
    const Operation operation = operation_of(types[7]);
    if (operation == Operation::Unknown) return {};
    return [=](const NamedLaunch& launch) {
        return scan_by_key(launch, operation, backwards, constant);
    };
}

NamedKernel find_all(const KernelName& name) {
    const auto& types = name.parameters;
    if (types.size() != 7) return {};
    CubForm form;
    form.flags = types[0].find("CountMaskOp") != std::string::npos;
    form.in = form.flags ? ScalarType::Byte : element_type(types[0]);
    form.out = element_type(types[1]);
    form.operation = operation_of(types[4]);
    form.exclusive = types[5].find("NullType") == std::string::npos;
    form.count_bytes = types[6].find("long") != std::string::npos ? 8 : 4;
    const bool begins = !form.exclusive || types[5].find("InputValue<long") != std::string::npos;
    if (form.in == ScalarType::Unknown || form.out == ScalarType::Unknown ||
        form.operation == Operation::Unknown || !begins)
        return {};
    return [form](const NamedLaunch& launch) { return scan_all(launch, form); };
}

}  // namespace

NamedKernel find_scan(const KernelName& name) {
    const auto& types = name.parameters;
    // They prepare scratch that only the scan behind them reads.
    if (name.base == "DeviceScanInitKernel" || name.base == "DeviceScanByKeyInitKernel")
        return do_nothing;
    if (name.base == "DeviceScanKernel") return find_all(name);
    if (name.base == "DeviceScanByKeyKernel") return find_by_key(name);
    if (!name.base.starts_with("tensor_kernel_scan_") || types.size() < 7) return {};
    const bool outer = name.base.find("outer_dim") != std::string::npos;
    const ScalarType type = element_type(types[0]);
    if (type == ScalarType::Unknown) return {};
    if (name.base.ends_with("_with_indices")) {
        const bool greatest = types.back().find("greater_equal<") != std::string::npos;
        if (!greatest && types.back().find("less_equal<") == std::string::npos) return {};
        return [=](const NamedLaunch& launch) {
            return scan_with_indices(launch, type, greatest, outer);
        };
    }
    const Operation operation = operation_of(types.back());
    if (operation == Operation::Unknown) return {};
    return
        [=](const NamedLaunch& launch) { return scan_dimension(launch, type, operation, outer); };
}

}  // namespace simgpu::torch
