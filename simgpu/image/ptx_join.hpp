// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "simgpu/image/image.hpp"

namespace libswap::simgpu::image {

/// Makes one PTX text out of those of several translation units: one header, no declaration of what
/// another text defines, one definition of what is weak. A single text is returned as it is.
tl::expected<std::string, ImageError> join_ptx(const std::vector<std::string_view>& texts);

}  // namespace libswap::simgpu::image
