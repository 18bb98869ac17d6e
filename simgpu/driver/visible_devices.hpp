// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

namespace simgpu::driver {

/// Stable across runs and different for each device, by its number among all there are.
CUuuid uuid_of(int number);
/// As nvidia-smi prints it.
std::string uuid_text(const CUuuid& uuid);

/// The numbers of the devices that a process sees, in its order, of `count` there are. `text` is
/// CUDA_VISIBLE_DEVICES, or null: all. Entries are numbers, or UUIDs as nvidia-smi prints them
/// ("GPU-73696d67-..."), which may be cut short as long as they name one device. What comes from
/// the first entry on that names none is not seen, and where one is named twice none is (CUDA
/// programming guide, environment variables).
std::vector<int> visible_devices(const char* text, int count);

}  // namespace simgpu::driver
