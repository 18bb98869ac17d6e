// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Random numbers (torch 2.15's DistributionTemplates.h, Dropout.cu, MultinomialKernel.cu,
// Randperm.cuh): each thread of the launch draws from its own stream, and which element gets which
// number follows from the launch's shape. They are those of a GPU with as many multiprocessors, up
// to rounding.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "simgpu/host_kernels/torch/families.hpp"
#include "simgpu/host_kernels/torch/offsets.hpp"
#include "simgpu/host_kernels/torch/ordering.hpp"
#include "simgpu/host_kernels/torch/philox.hpp"
#include "simgpu/host_kernels/torch/tensor_info.hpp"

namespace simgpu::torch {
namespace {

struct Seed {
    std::uint64_t seed = 0;
    std::uint64_t offset = 0;

    Philox stream(std::uint64_t thread) const { return {seed, thread, offset}; }

    /// PhiloxCudaState: seed and offset, or their addresses while a graph is captured, what is
    /// added to the offset then, and which of them. False where they may not be read.
    bool read(const NamedLaunch& launch, std::size_t parameter, std::size_t at = 0) {
        seed = launch.get<std::uint64_t>(parameter, at);
        offset = launch.get<std::uint64_t>(parameter, at + 8);
        if (launch.get<std::uint8_t>(parameter, at + 24) == 0) return true;
        const auto* there = launch.read<std::uint64_t>(seed, 1);
        const auto* before = launch.read<std::uint64_t>(offset, 1);
        if (there == nullptr || before == nullptr) return false;
        seed = *there;
        offset = *before + launch.get<std::uint64_t>(parameter, at + 16);
        return true;
    }
};

std::uint64_t threads(const NamedLaunch& launch) {
    return std::uint64_t{launch.grid()[0]} * launch.block()[0];
}

enum class Draw : std::uint8_t { Uniform, Normal, Exponential, Bernoulli, FromTo, Whole };

struct Form {
    Draw draw = Draw::Uniform;
    ScalarType type = ScalarType::Unknown;
    /// Draws doubles, or words of 64 bits: two at once, else four.
    bool wide = false;
};

/// Draws as many numbers as fit into four words, as doubles or, where whole, as words.
std::vector<double> draw_some(Philox& stream, const Form& form) {
    if (form.draw == Draw::Normal) {
        const auto a = stream.normal_pair(form.wide);
        if (form.wide) return {a[0], a[1]};
        const auto b = stream.normal_pair(false);
        return {a[0], a[1], b[0], b[1]};
    }
    std::vector<double> all(form.wide ? 2 : 4);
    for (double& x : all)
        x = form.wide ? stream.uniform_double() : static_cast<double>(stream.uniform());
    return all;
}

/// What becomes of a number: the functor's values begin at `at` in the lambda, the third parameter.
double transform(const NamedLaunch& launch, const Form& form, std::size_t at, double x) {
    const auto held = [&](std::size_t place) {
        return form.wide ? launch.get<double>(3, place)
                         : static_cast<double>(launch.get<float>(3, place));
    };
    const std::size_t width = form.wide ? 8 : 4;
    switch (form.draw) {
        case Draw::Normal:
            return held(at) + x * held(at + width);
        case Draw::Exponential: {
            const double epsilon = form.wide
                                       ? std::numeric_limits<double>::epsilon()
                                       : static_cast<double>(std::numeric_limits<float>::epsilon());
            return -(x >= 1 - epsilon / 2 ? -epsilon / 2 : std::log(x)) / held(at);
        }
        case Draw::Bernoulli:
            // In the type of the number, which is a float for all but doubles.
            return form.wide
                       ? x < launch.get<double>(3, at)
                       : static_cast<float>(x) < static_cast<float>(launch.get<double>(3, at));
        default: {
            // The span, then both ends as elements; the upper one is the lower instead.
            const auto parameter = launch.parameter(3);
            const std::uint32_t bytes = size_of(form.type);
            if (at + width + 2 * bytes > parameter.size()) return 0;
            std::array<std::byte, 8> rounded{};
            const double low = load(form.type, parameter.data() + at + width);
            store(form.type, rounded.data(), x * held(at) + low);
            const double value = load(form.type, rounded.data());
            return value == load(form.type, parameter.data() + at + width + bytes) ? low : value;
        }
    }
}

/// The same of a word, for whole numbers.
std::int64_t transform_word(const NamedLaunch& launch, const Form& form, std::size_t at,
                            std::uint64_t word) {
    if (form.draw == Draw::FromTo) {
        const auto range = launch.get<std::uint64_t>(3, at);
        return static_cast<std::int64_t>(range == 0 ? word : word % range) +
               launch.get<std::int64_t>(3, at + 8);
    }
    switch (form.type) {
        case ScalarType::Half:
            return static_cast<std::int64_t>(word % 2049);
        case ScalarType::BFloat16:
            return static_cast<std::int64_t>(word % 257);
        case ScalarType::Float:
            return static_cast<std::int64_t>(word % ((1U << 24) + 1));
        case ScalarType::Double:
            return static_cast<std::int64_t>(word % ((std::uint64_t{1} << 53) + 1));
        case ScalarType::Bool:
            return static_cast<std::int64_t>(word & 1);
        default:
            break;
    }
    const bool sign = form.type != ScalarType::Byte;
    const std::uint32_t bits = 8 * size_of(form.type) - (sign ? 1 : 0);
    return static_cast<std::int64_t>(word & ((std::uint64_t{1} << bits) - 1));
}

/// (number, seed, distribution, lambda), which has captured the output and its stride, or offsets
/// and the output, then what becomes of a number.
bool fill(const NamedLaunch& launch, const Form& form) {
    const auto number = launch.get<std::uint64_t>(0);
    const auto lambda = launch.parameter(3);
    constexpr std::size_t kStrided = (Offsets::bytes_of(1) + 7) / 8 * 8;
    const bool strided = lambda.size() > kStrided;
    const bool whole = form.draw == Draw::FromTo || form.draw == Draw::Whole;
    const std::size_t alignment = form.wide || whole || form.draw == Draw::Bernoulli ? 8 : 4;
    const std::size_t at = strided ? kStrided + 8 : alignment == 8 ? 16 : 12;
    const std::uint32_t width = size_of(form.type);
    Offsets offsets;
    Seed seed;
    if (strided ? !offsets.read(lambda, 1) : launch.get<std::int32_t>(3, 8) < 0) return false;
    if (!seed.read(launch, 1) || number == 0) return true;
    const std::array<std::uint32_t, 1> stride{launch.get<std::uint32_t>(3, 8)};
    if (!strided) offsets.set_dense(stride);
    std::vector<std::uint64_t> places;
    if (strided)
        offsets.for_each(number, [&](std::uint64_t, const auto& p) { places.push_back(p[0]); });
    const auto va = launch.get<std::uint64_t>(3, strided ? kStrided : 0);
    auto* out = launch.write<std::byte>(va, offsets.extent(0, number, width));
    if (out == nullptr) return true;
    const std::uint64_t all = threads(launch);
    const std::uint64_t unroll = form.wide ? 2 : 4;
    for (std::uint64_t thread = 0; thread < std::min(all, number); ++thread) {
        Philox stream = seed.stream(thread);
        for (std::uint64_t first = thread; first < number; first += all * unroll) {
            std::vector<double> numbers;
            if (!whole) numbers = draw_some(stream, form);
            for (std::uint64_t i = 0; i < unroll; ++i) {
                const std::uint64_t word = !whole      ? 0
                                           : form.wide ? stream.two_words()
                                                       : stream.word();
                const std::uint64_t element = first + i * all;
                if (element >= number) continue;
                std::byte* to = out + (strided ? places[element] : element * stride[0]);
                if (whole)
                    store_integer(form.type, to, transform_word(launch, form, at, word));
                else
                    store(form.type, to, transform(launch, form, at, numbers[i]));
            }
        }
    }
    launch.cost(40.0 * static_cast<double>(number), static_cast<double>(number * width));
    return true;
}

NamedKernel find_fill(const KernelName& name) {
    constexpr std::string_view kNullary = "distribution_nullary_kernel<";
    const std::size_t at = name.full.find(kNullary);
    if (at == std::string::npos) return {};
    // <element, what it calculates in, what is drawn at once, ...>
    const auto types = split_list(inside_bracket(name.full, at + kNullary.size() - 1));
    if (types.size() < 3) return {};
    Form form;
    form.type = scalar_type(types[0]);
    form.wide = types[2] == "double2" || types[2] == "ulonglong2";
    if (form.type == ScalarType::Unknown) return {};
    for (const auto& [text, draw] :
         {std::pair<std::string_view, Draw>{"::random_from_to_kernel<", Draw::FromTo},
          {"::random_kernel<", Draw::Whole},
          {"::exponential_kernel<", Draw::Exponential},
          {"::bernoulli_kernel<", Draw::Bernoulli},
          {"::normal_kernel<", Draw::Normal},
          {"::uniform_kernel<", Draw::Uniform}}) {
        if (!name.mentions(text)) continue;
        form.draw = draw;
        return [form](const NamedLaunch& launch) { return fill(launch, form); };
    }
    return {};
}

/// (in, out, mask, number, chance to stay, seed). `together`: elements that a thread takes in a
/// row; 0 where it takes four that are as far apart as there are threads.
bool drop(const NamedLaunch& launch, ScalarType type, std::uint32_t index_bytes,
          std::uint64_t together) {
    TensorInfo in;
    TensorInfo out;
    TensorInfo mask;
    Seed seed;
    if (!in.read(launch, 0, index_bytes) || !out.read(launch, 1, index_bytes) ||
        !mask.read(launch, 2, index_bytes))
        return false;
    const std::uint64_t number =
        index_bytes == 8 ? launch.get<std::uint64_t>(3) : launch.get<std::uint32_t>(3);
    const bool wide = launch.parameter(4).size() == 8;
    const double stays = wide ? launch.get<double>(4) : static_cast<double>(launch.get<float>(4));
    if (!seed.read(launch, 5) || number == 0) return true;
    const std::uint32_t width = size_of(type);
    const auto in_at = in.offsets(number);
    const auto* from = launch.read<std::byte>(in.va(), extent_of(in_at, 0) * width);
    auto* to = launch.write<std::byte>(out.va(), number * width);
    auto* kept = launch.write<std::uint8_t>(mask.va(), number);
    if (from == nullptr || to == nullptr || kept == nullptr) return true;
    const std::uint64_t all = threads(launch);
    const std::uint64_t apart = together == 0 ? all : 1;
    const std::uint64_t group = together == 0 ? 4 : together;
    for (std::uint64_t thread = 0; thread < all; ++thread) {
        Philox stream = seed.stream(thread);
        const std::uint64_t start = together == 0 ? thread : thread * together;
        for (std::uint64_t first = start; first < number; first += all * group) {
            for (std::uint64_t i = 0; i < group; ++i) {
                const bool stay = static_cast<double>(stream.uniform()) < stays;
                const std::uint64_t e = first + i * apart;
                if (e >= number) continue;
                kept[e] = stay ? 1 : 0;
                store(type, to + e * width, stay ? load(type, from + in_at[e] * width) / stays : 0);
            }
        }
    }
    launch.cost(40.0 * static_cast<double>(number), static_cast<double>(number * (2 * width + 1)));
    return true;
}

/// (out, chances, number, lambda), which has captured the seed: each group of four elements draws
/// anew from the beginning of its thread's stream.
bool draw_by_chance(const NamedLaunch& launch, ScalarType type, ScalarType chance) {
    TensorInfo out;
    TensorInfo chances;
    Seed seed;
    if (!out.read(launch, 0, 4) || !chances.read(launch, 1, 4)) return false;
    const std::uint64_t number = launch.get<std::uint32_t>(2);
    if (!seed.read(launch, 3) || number == 0) return true;
    const auto out_at = out.offsets(number);
    const auto chance_at = chances.offsets(number);
    auto* to = launch.write<std::byte>(out.va(), extent_of(out_at, 0) * size_of(type));
    const auto* from =
        launch.read<std::byte>(chances.va(), extent_of(chance_at, 0) * size_of(chance));
    if (to == nullptr || from == nullptr) return true;
    const std::uint64_t all = threads(launch);
    for (std::uint64_t first = 0; first < number; first += 4) {
        Philox stream = seed.stream(first / 4 % all);
        for (std::uint64_t e = first; e < std::min(first + 4, number); ++e) {
            const double x = static_cast<double>(stream.uniform());
            store(type, to + out_at[e] * size_of(type),
                  x <= load(chance, from + chance_at[e] * size_of(chance)) ? 1 : 0);
        }
    }
    launch.cost(40.0 * static_cast<double>(number),
                static_cast<double>(number * (size_of(type) + size_of(chance))));
    return true;
}

/// (weights, rows, columns): each row is divided by its sum.
bool normalise_rows(const NamedLaunch& launch, ScalarType type) {
    const auto rows = launch.get<std::uint64_t>(1);
    const auto columns = launch.get<std::uint64_t>(2);
    const std::uint32_t width = size_of(type);
    auto* data = launch.write<std::byte>(launch.get<std::uint64_t>(0), rows * columns * width);
    if (data == nullptr) return true;
    for (std::uint64_t row = 0; row < rows; ++row) {
        double sum = 0;
        for (std::uint64_t i = row * columns; i < (row + 1) * columns; ++i)
            sum += load(type, data + i * width);
        for (std::uint64_t i = row * columns; sum > 0 && i < (row + 1) * columns; ++i)
            store(type, data + i * width, load(type, data + i * width) / sum);
    }
    launch.cost(2.0 * static_cast<double>(rows * columns),
                2.0 * static_cast<double>(rows * columns * width));
    return true;
}

/// (seed, samples of a row, samples out, rows, categories, running sums of chances, chances)
bool choose(const NamedLaunch& launch, ScalarType type) {
    Seed seed;
    const auto samples = launch.get<std::int32_t>(1);
    const auto rows = launch.get<std::uint64_t>(3);
    const auto categories = launch.get<std::int32_t>(4);
    if (samples <= 0 || categories <= 0 || !seed.read(launch, 0)) return true;
    const auto number = static_cast<std::uint64_t>(categories);
    const auto per_row = static_cast<std::uint64_t>(samples);
    const std::uint32_t width = size_of(type);
    auto* out = launch.write<std::int64_t>(launch.get<std::uint64_t>(2), rows * per_row);
    const auto* sums = launch.read<std::byte>(launch.get<std::uint64_t>(5), rows * number * width);
    const auto* chances =
        launch.read<std::byte>(launch.get<std::uint64_t>(6), rows * number * width);
    if (out == nullptr || sums == nullptr || chances == nullptr) return true;
    const std::uint64_t across = threads(launch);
    std::vector<Philox> streams;
    for (std::uint64_t thread = 0; thread < across * launch.grid()[1]; ++thread)
        streams.push_back(seed.stream(thread));
    for (std::uint64_t row = 0; row < rows; ++row) {
        for (std::uint64_t sample = 0; sample < per_row; ++sample) {
            Philox& stream = streams[sample % across + row % launch.grid()[1] * across];
            const double x = static_cast<double>(stream.uniform());
            for (int unused = 0; unused < 3; ++unused) stream.word();
            std::uint64_t place = 0;
            while (place < number && load(type, sums + (row * number + place) * width) < x) ++place;
            place = std::min(place, number - 1);
            while (place > 0 && load(type, chances + (row * number + place) * width) == 0) --place;
            out[row * per_row + sample] = static_cast<std::int64_t>(place);
        }
    }
    launch.cost(40.0 * static_cast<double>(rows * per_row),
                8.0 * static_cast<double>(rows * per_row));
    return true;
}

/// (sorted keys, data, mask of what counts of a key, number, seed): shuffles data of equal keys.
bool shuffle_equals(const NamedLaunch& launch, std::uint32_t key_bytes, std::uint32_t width) {
    Seed seed;
    const auto number = static_cast<std::uint64_t>(launch.get<std::uint32_t>(3));
    const auto mask = key_bytes == 8 ? launch.get<std::uint64_t>(2) : launch.get<std::uint32_t>(2);
    const auto* keys = launch.read<std::byte>(launch.get<std::uint64_t>(0), number * key_bytes);
    auto* data = launch.write<std::byte>(launch.get<std::uint64_t>(1), number * width);
    if (keys == nullptr || data == nullptr || !seed.read(launch, 4)) return true;
    const auto key = [&](std::uint64_t i) {
        return static_cast<std::uint64_t>(load_integer(
                   key_bytes == 8 ? ScalarType::Long : ScalarType::Int, keys + i * key_bytes)) &
               mask;
    };
    for (std::uint64_t first = 0; first < number;) {
        std::uint64_t end = first + 1;
        while (end < number && key(end) == key(first)) ++end;
        Philox stream = seed.stream(first);
        for (std::uint64_t i = end - first - 1; i > 0; --i) {
            const std::uint64_t other = stream.word() % (i + 1);
            if (i != other)
                std::swap_ranges(data + (first + i) * width, data + (first + i + 1) * width,
                                 data + (first + other) * width);
        }
        first = end;
    }
    launch.cost(0, static_cast<double>(number * key_bytes));
    return true;
}

NamedKernel find_dropout(const KernelName& name) {
    const auto& arguments = name.template_arguments;
    if (name.parameters.size() != 6 || arguments.size() < 4) return {};
    const ScalarType type = scalar_type(arguments[0]);
    if (type == ScalarType::Unknown) return {};
    // <element, what it calculates in, index, dimensions, elements together, mask>
    const std::uint64_t together =
        name.base.ends_with("_vec") ? std::strtoul(arguments[4].c_str(), nullptr, 10) : 0;
    const std::uint32_t index_bytes = index_bytes_of(name.parameters[0]);
    return [=](const NamedLaunch& launch) { return drop(launch, type, index_bytes, together); };
}

}  // namespace

NamedKernel find_random(const KernelName& name) {
    const auto& types = name.parameters;
    if (name.base == "distribution_elementwise_grid_stride_kernel") return find_fill(name);
    if (name.base == "fused_dropout_kernel" || name.base == "fused_dropout_kernel_vec")
        return find_dropout(name);
    // It stops the device where the flag is not set, and writes nothing.
    if (name.base == "_assert_async_cuda_kernel") return do_nothing;
    if (types.empty()) return {};
    if (name.base == "kernelPointwiseApply2" && name.mentions("bernoulli_tensor_cuda_kernel") &&
        types.size() == 4 && types[0].ends_with("unsigned int>")) {
        const ScalarType type = element_type(types[0]);
        const ScalarType chance = element_type(types[1]);
        if (type == ScalarType::Unknown || chance == ScalarType::Unknown) return {};
        return [=](const NamedLaunch& launch) { return draw_by_chance(launch, type, chance); };
    }
    const ScalarType first = element_type(types[0]);
    if (name.base == "renormRowsL1" && first != ScalarType::Unknown)
        return [first](const NamedLaunch& launch) { return normalise_rows(launch, first); };
    if (name.base == "sampleMultinomialWithReplacement" && types.size() == 7) {
        const ScalarType type = element_type(types[6]);
        if (type == ScalarType::Unknown) return {};
        return [type](const NamedLaunch& launch) { return choose(launch, type); };
    }
    constexpr std::string_view kOpaque = "OpaqueType<";
    if (name.base == "randperm_handle_duplicate_keys_kernel" && types.size() == 5 &&
        types[1].find(kOpaque) != std::string::npos && first != ScalarType::Unknown) {
        const auto width = static_cast<std::uint32_t>(
            std::strtoul(types[1].c_str() + types[1].find(kOpaque) + kOpaque.size(), nullptr, 10));
        return [width, key_bytes = size_of(first)](const NamedLaunch& launch) {
            return shuffle_equals(launch, key_bytes, width);
        };
    }
    return {};
}

}  // namespace simgpu::torch
