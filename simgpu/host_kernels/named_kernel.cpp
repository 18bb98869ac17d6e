// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/host_kernels/named_kernel.hpp"

#include "simgpu/host_kernels/torch/families.hpp"

namespace simgpu {

NamedKernel find_named_kernel(const KernelName& name) {
    for (const auto find : {torch::find_elementwise,  torch::find_reduce,
                            torch::find_softmax,      torch::find_layer_norm,
                            torch::find_loss,         torch::find_embedding,
                            torch::find_max_pool,     torch::find_flash_attention,
                            torch::find_multi_tensor, torch::find_scatter_gather,
                            torch::find_cat,          torch::find_indices,
                            torch::find_radix_sort,   torch::find_sort,
                            torch::find_top_k,        torch::find_scan,
                            torch::find_unique,       torch::find_histograms,
                            torch::find_arg_reduce,   torch::find_embedding_segments,
                            torch::find_index_rows,   torch::find_layout,
                            torch::find_random,       torch::find_group_norm,
                            torch::find_interpolate,  torch::find_recurrent_cells,
                            torch::find_spatial_loss, torch::find_efficient_attention}) {
        if (NamedKernel kernel = find(name)) return kernel;
    }
    return {};
}

}  // namespace simgpu
