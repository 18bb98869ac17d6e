// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/device_block.hpp"

#include "simgpu/driver/context.hpp"
#include "simgpu/driver/gpu.hpp"

namespace simgpu::driver {

Result<std::unique_ptr<DeviceBlock>> DeviceBlock::reserve(int device, std::uint64_t bytes) {
    const std::uint64_t rounded = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    if (rounded < bytes) return failed(CUDA_ERROR_OUT_OF_MEMORY);
    const auto va = machine().memory().reserve(rounded, 0, 0);
    if (!va) return failed(va.error());
    return std::unique_ptr<DeviceBlock>(new DeviceBlock(device, *va, rounded));
}

DeviceBlock::~DeviceBlock() {
    empty();
    static_cast<void>(machine().memory().free_range(va_, bytes_));
}

CUresult DeviceBlock::fill(std::span<const AccessGrant> grants) {
    if (filled_) return CUDA_SUCCESS;
    Memory& memory = machine().memory();
    const auto handle = memory.create(bytes_, {Location::Kind::Device, device_});
    if (!handle) return handle.error();
    const Status mapped = memory.map(va_, bytes_, 0, *handle);
    // The mapping keeps the memory.
    static_cast<void>(memory.release(*handle));
    SIMGPU_TRY(mapped);
    filled_ = true;
    const AccessGrant own{{Location::Kind::Device, device_}, true, true};
    SIMGPU_TRY(grant({&own, 1}));
    return grants.empty() ? CUDA_SUCCESS : grant(grants);
}

void DeviceBlock::empty() {
    if (!filled_) return;
    static_cast<void>(machine().memory().unmap(va_, bytes_));
    filled_ = false;
}

CUresult DeviceBlock::grant(std::span<const AccessGrant> grants) {
    return machine().memory().set_access(va_, bytes_, grants);
}

}  // namespace simgpu::driver
