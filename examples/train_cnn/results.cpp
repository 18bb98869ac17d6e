// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "results.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace train_cnn {

void print_loss(int iteration, float loss) {
    std::printf("iteration %d loss %.6f\n", iteration, loss);
    std::fflush(stdout);
}

void print_summary(const Results& results) {
    std::printf("accuracy %.4f\ndigest %016" PRIx64 "\n", results.accuracy, results.digest);
    if (results.peak_bytes != 0) {
        std::printf("peak %" PRIu64 " bytes\n", results.peak_bytes);
    }
    std::printf("iteration %.3f ms (median, %s)\n", results.iteration_ms, results.clock.c_str());
}

bool write_json(const Results& results, const std::string& path) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    if (file == nullptr) {
        std::perror(path.c_str());
        return false;
    }
    std::fputs("{\"losses\": [", file);
    for (std::size_t i = 0; i < results.losses.size(); ++i) {
        std::fprintf(file, "%s%.9g", i == 0 ? "" : ", ", results.losses[i]);
    }
    std::fputs("], \"iterations_ms\": [", file);
    for (std::size_t i = 0; i < results.iterations_ms.size(); ++i) {
        std::fprintf(file, "%s%.6g", i == 0 ? "" : ", ", results.iterations_ms[i]);
    }
    std::fprintf(file,
                 "], \"accuracy\": %.6g, \"digest\": \"%016" PRIx64 "\", \"peak_bytes\": %" PRIu64
                 ", \"device_bytes\": %" PRIu64 ", \"iteration_ms\": %.6g, \"clock\": \"%s\"}\n",
                 results.accuracy, results.digest, results.peak_bytes, results.device_bytes,
                 results.iteration_ms, results.clock.c_str());
    if (std::fclose(file) != 0) {
        std::perror(path.c_str());
        return false;
    }
    return true;
}

double median(std::vector<float> values) {
    if (values.empty()) {
        return 0;
    }
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2.0;
}

}  // namespace train_cnn
