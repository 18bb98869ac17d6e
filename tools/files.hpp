// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace libswap::tools {

/// A whole file, unpacked if it is gzip. The error is one line that names the file.
tl::expected<std::string, std::string> read_file(const std::string& path);

/// Writes a whole file, packed if its name ends in .gz.
tl::expected<void, std::string> write_file(const std::string& path, std::string_view content);

}  // namespace libswap::tools
