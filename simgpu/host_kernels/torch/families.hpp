// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include "simgpu/host_kernels/named_kernel.hpp"

/// Families of PyTorch's kernels. Each answers with the work of the kernel of that name, or with
/// nothing where it is none of its family, or not in a form that is known. @thread any
namespace simgpu::torch {

NamedKernel find_cat(const KernelName& name);
NamedKernel find_elementwise(const KernelName& name);
NamedKernel find_embedding(const KernelName& name);
NamedKernel find_flash_attention(const KernelName& name);
NamedKernel find_layer_norm(const KernelName& name);
NamedKernel find_loss(const KernelName& name);
NamedKernel find_max_pool(const KernelName& name);
NamedKernel find_multi_tensor(const KernelName& name);
/// Whether what lies at `offset` of a launch's first parameter may be an address: behind its last
/// entry a list of tensors holds what the stack held before. True for all that have no such lists.
bool lists_address(const KernelName& name, std::span<const std::byte> lists, std::uint32_t blocks,
                   std::size_t offset);
NamedKernel find_reduce(const KernelName& name);
NamedKernel find_scatter_gather(const KernelName& name);
NamedKernel find_softmax(const KernelName& name);

}  // namespace simgpu::torch
