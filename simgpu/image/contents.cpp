// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <algorithm>

#include "simgpu/image/image.hpp"

namespace libswap::simgpu::image {

const KernelInfo* Contents::find_kernel(std::string_view name) const {
    const auto found =
        std::find_if(kernels.begin(), kernels.end(),
                     [name](const KernelInfo& kernel) { return kernel.name == name; });
    return found == kernels.end() ? nullptr : &*found;
}

const VariableInfo* Contents::find_variable(std::string_view name) const {
    const auto found =
        std::find_if(variables.begin(), variables.end(),
                     [name](const VariableInfo& variable) { return variable.name == name; });
    return found == variables.end() ? nullptr : &*found;
}

}  // namespace libswap::simgpu::image
