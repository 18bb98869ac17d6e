// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "tools/files.hpp"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>

namespace libswap::tools {

namespace {

struct CloseGz {
    void operator()(gzFile file) const { gzclose(file); }
};
using GzFile = std::unique_ptr<gzFile_s, CloseGz>;

tl::unexpected<std::string> failed(const std::string& path, const char* what) {
    return tl::unexpected(fmt::format("{}: {}", path, what));
}

}  // namespace

tl::expected<std::string, std::string> read_file(const std::string& path) {
    errno = 0;
    const GzFile file(gzopen(path.c_str(), "rb"));
    if (!file) return failed(path, std::strerror(errno));
    std::string content;
    char buffer[1 << 16];
    for (;;) {
        const int n = gzread(file.get(), buffer, sizeof buffer);
        if (n > 0) content.append(buffer, static_cast<std::size_t>(n));
        if (n == 0) break;
        if (n < 0) {
            int code = 0;
            const char* text = gzerror(file.get(), &code);
            return failed(path, code == Z_ERRNO ? std::strerror(errno) : text);
        }
    }
    // A truncated gzip file reads short without an error of gzread's.
    int code = 0;
    gzerror(file.get(), &code);
    if (code != Z_OK && code != Z_STREAM_END) return failed(path, "the file is cut short");
    return content;
}

tl::expected<void, std::string> write_file(const std::string& path, std::string_view content) {
    errno = 0;
    const bool packed = path.ends_with(".gz");
    GzFile file(gzopen(path.c_str(), packed ? "wb9" : "wbT"));
    if (!file) return failed(path, std::strerror(errno));
    const int n = gzwrite(file.get(), content.data(), static_cast<unsigned>(content.size()));
    const bool written = content.empty() || n == static_cast<int>(content.size());
    if (gzclose(file.release()) != Z_OK || !written) return failed(path, "cannot write");
    return {};
}

}  // namespace libswap::tools
