// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "simgpu/host_kernels/named_kernel.hpp"

/// Families of PyTorch's kernels. Each answers with the work of the kernel of that name, or with
/// nothing where it is none of its family, or not in a form that is known. @thread any
namespace simgpu::torch {

NamedKernel find_arg_reduce(const KernelName& name);
NamedKernel find_cat(const KernelName& name);
NamedKernel find_efficient_attention(const KernelName& name);
NamedKernel find_elementwise(const KernelName& name);
NamedKernel find_embedding(const KernelName& name);
NamedKernel find_embedding_segments(const KernelName& name);
NamedKernel find_flash_attention(const KernelName& name);
NamedKernel find_group_norm(const KernelName& name);
NamedKernel find_histograms(const KernelName& name);
NamedKernel find_index_rows(const KernelName& name);
NamedKernel find_indices(const KernelName& name);
NamedKernel find_interpolate(const KernelName& name);
NamedKernel find_layout(const KernelName& name);
NamedKernel find_layer_norm(const KernelName& name);
NamedKernel find_loss(const KernelName& name);
NamedKernel find_max_pool(const KernelName& name);
NamedKernel find_multi_tensor(const KernelName& name);
NamedKernel find_radix_sort(const KernelName& name);
NamedKernel find_random(const KernelName& name);
NamedKernel find_recurrent_cells(const KernelName& name);
NamedKernel find_reduce(const KernelName& name);
NamedKernel find_scan(const KernelName& name);
NamedKernel find_scatter_gather(const KernelName& name);
NamedKernel find_softmax(const KernelName& name);
NamedKernel find_sort(const KernelName& name);
NamedKernel find_spatial_loss(const KernelName& name);
NamedKernel find_top_k(const KernelName& name);
NamedKernel find_unique(const KernelName& name);

/// Of the places in a launch's parameter where a live address was found those that the launch can
/// use, where the struct's layout is known: the rest holds what the stack held before. `grid`:
/// three numbers of blocks.
std::vector<std::uint32_t> addresses_in(const KernelName& name, std::size_t parameter,
                                        std::span<const std::byte> bytes, const std::uint32_t* grid,
                                        std::vector<std::uint32_t> offsets);
/// The same for one place in the lists of tensors of multi_tensor_apply_kernel.
bool lists_address(const KernelName& name, std::span<const std::byte> lists, std::uint32_t blocks,
                   std::size_t offset);

}  // namespace simgpu::torch
