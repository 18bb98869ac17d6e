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
NamedKernel find_reduce(const KernelName& name);
NamedKernel find_scatter_gather(const KernelName& name);
NamedKernel find_softmax(const KernelName& name);

}  // namespace simgpu::torch
