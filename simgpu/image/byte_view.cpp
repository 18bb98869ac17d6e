// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/image/byte_view.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <new>

namespace libswap::simgpu::image {

std::optional<std::vector<std::byte>> copy_readable(const void* source, std::size_t bytes) {
    std::vector<std::byte> copy;
    try {
        copy.resize(bytes);
    } catch (const std::bad_alloc&) {
        return std::nullopt;
    }
    std::size_t done = 0;
    while (done < bytes) {
        // The kernel answers EFAULT where a plain memcpy would end the process.
        iovec local{copy.data() + done, bytes - done};
        iovec remote{const_cast<std::byte*>(static_cast<const std::byte*>(source)) + done,
                     bytes - done};
        const ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
        if (got < 0 && (errno == ENOSYS || errno == EPERM)) {
            // Forbidden in some containers: trust the header after all.
            std::memcpy(copy.data(), source, bytes);
            return copy;
        }
        if (got <= 0) {
            return std::nullopt;
        }
        done += static_cast<std::size_t>(got);
    }
    return copy;
}

}  // namespace libswap::simgpu::image
