// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "options.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace train_cnn {
namespace {

constexpr const char* kHelp =
    "Trains a convolutional network on 8 x 8 images of hand-written digits.\n"
    "  --batch N         images a step (240)\n"
    "  --iterations N    steps (10)\n"
    "  --channels N      channels of every convolution, a multiple of 4 (128)\n"
    "  --layers N        convolutions, at least 3; the last two come after the pooling (8)\n"
    "  --filter 3|5      side of every convolution's filters (5)\n"
    "  --seed N          of the first weights and of the order of the images (1)\n"
    "  --lr X            learning rate (0.002)\n"
    "  --momentum X      (0.9)\n"
    "  --alloc once|iteration|arena   activations and their gradients: allocated once, anew in\n"
    "                    every step, or as parts of one allocation (once)\n"
    "  --graph no|yes    capture the second step as a CUDA graph, and launch that (no); not with\n"
    "                    --alloc iteration\n"
    "  --cudnn           convolve by cuDNN instead of cuBLAS\n"
    "  --leave BYTES     train with that much device memory, having taken all else (0: take "
    "nothing)\n"
    "  --data FILE       the images (examples/data/digits.txt)\n"
    "  --json FILE       write the results there too\n";

bool parse_int(const char* text, long long least, long long most, long long& value) {
    char* end = nullptr;
    value = std::strtoll(text, &end, 10);
    return end != text && *end == '\0' && value >= least && value <= most;
}

bool parse_float(const char* text, float& value) {
    char* end = nullptr;
    value = std::strtof(text, &end);
    return end != text && *end == '\0' && value >= 0;
}

bool set_option(Options& options, const char* name, const char* text) {
    long long value = 0;
    auto number = [&](int& field, long long least, long long most) {
        const bool valid = parse_int(text, least, most, value);
        field = static_cast<int>(value);
        return valid;
    };
    if (std::strcmp(name, "--batch") == 0) {
        return number(options.batch, 1, 1 << 16);
    }
    if (std::strcmp(name, "--iterations") == 0) {
        return number(options.iterations, 1, 1 << 20);
    }
    if (std::strcmp(name, "--channels") == 0) {
        return number(options.channels, 4, 1 << 12) && options.channels % 4 == 0;
    }
    if (std::strcmp(name, "--layers") == 0) {
        return number(options.layers, 3, 1 << 10);
    }
    if (std::strcmp(name, "--filter") == 0) {
        return number(options.filter, 3, 5) && options.filter != 4;
    }
    if (std::strcmp(name, "--seed") == 0) {
        const bool valid = parse_int(text, 0, 1LL << 62, value);
        options.seed = static_cast<std::uint64_t>(value);
        return valid;
    }
    if (std::strcmp(name, "--lr") == 0) {
        return parse_float(text, options.lr);
    }
    if (std::strcmp(name, "--momentum") == 0) {
        return parse_float(text, options.momentum);
    }
    if (std::strcmp(name, "--alloc") == 0) {
        options.alloc_each_iteration = std::strcmp(text, "iteration") == 0;
        options.alloc_arena = std::strcmp(text, "arena") == 0;
        return options.alloc_each_iteration || options.alloc_arena ||
               std::strcmp(text, "once") == 0;
    }
    if (std::strcmp(name, "--graph") == 0) {
        options.graph = std::strcmp(text, "yes") == 0;
        return options.graph || std::strcmp(text, "no") == 0;
    }
    if (std::strcmp(name, "--cudnn") == 0) {
        options.cudnn = std::strcmp(text, "yes") == 0;
        return options.cudnn || std::strcmp(text, "no") == 0;
    }
    if (std::strcmp(name, "--leave") == 0) {
        const bool valid = parse_int(text, 0, 1LL << 62, value);
        options.leave_bytes = static_cast<std::uint64_t>(value);
        return valid;
    }
    if (std::strcmp(name, "--data") == 0) {
        options.data = text;
        return true;
    }
    if (std::strcmp(name, "--json") == 0) {
        options.json = text;
        return true;
    }
    return false;
}

}  // namespace

int parse_options(int argc, char** argv, Options& options) {
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--help") == 0) {
            std::fputs(kHelp, stdout);
            return 0;
        }
        // --name value, or --name=value
        std::string name = argv[i];
        std::string value;
        if (const auto equals = name.find('='); equals != std::string::npos) {
            value = name.substr(equals + 1);
            name.resize(equals);
        } else if (name == "--cudnn") {
            value = "yes";
        } else if (i + 1 < argc) {
            value = argv[++i];
        }
        if (!set_option(options, name.c_str(), value.c_str())) {
            std::fprintf(stderr, "%s: not understood: %s %s (--help lists the options)\n", argv[0],
                         name.c_str(), value.c_str());
            return 2;
        }
    }
    if (options.graph && options.alloc_each_iteration) {
        std::fprintf(stderr, "%s: --graph yes needs memory that stays: --alloc once\n", argv[0]);
        return 2;
    }
    return -1;
}

}  // namespace train_cnn
