// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <atomic>
#include <memory>

namespace simgpu::driver {

/// What a CUuserObject points at: something of the program's that graphs keep alive. @thread any
class UserObject {
  public:
    UserObject(void* pointer, CUhostFn destroy, unsigned references)
        : pointer_(pointer), destroy_(destroy), references_(references) {}

    CUuserObject handle() { return reinterpret_cast<CUuserObject>(this); }
    void retain(unsigned count) { references_ += count; }
    /// The last reference calls the program's destructor, here and now, and voids the handle.
    void release(unsigned count);
    unsigned references() const { return references_; }

  private:
    void* const pointer_;
    const CUhostFn destroy_;
    std::atomic<unsigned> references_;
};

/// CUDA_ERROR_INVALID_VALUE for a handle that is none.
CUresult find_user_object(CUuserObject handle, std::shared_ptr<UserObject>& out);

}  // namespace simgpu::driver
