// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include "simgpu/cudnn/descriptors.hpp"

/// Without states nothing is dropped.
struct cudnnDropoutStruct {
    float rate = 0;
    void* states = nullptr;
    unsigned long long seed = 0;
};
