// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <functional>

namespace libswap::simgpu::cublas {

/// Does part(false) and part(true), the two halves of a piece of work: at the same time if
/// `together` and the one helper thread is free, else one after the other. Which of the two it was
/// shows in the time only.
/// @thread any
void in_halves(const std::function<void(bool)>& part, bool together);

}  // namespace libswap::simgpu::cublas
