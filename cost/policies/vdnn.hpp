// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// vDNN: Rhu, Gimelshein, Clemons, Zulfiqar and Keckler, "vDNN: Virtualized Deep Neural Networks for
// Scalable, Memory-Efficient Neural Network Design", MICRO 2016.
//
// From the paper: only feature maps move, weights and workspaces stay. A layer's input goes to the
// host while the layer runs forward (its last forward user, where several read it) and leaves the
// device then. In the backward pass each layer, as it starts, fetches for the nearest earlier layer
// whose input is away, searching no further than the next convolution. Dynamic choice: nothing, the
// inputs of convolutions, all inputs, whichever is first to fit.
//
// Decided here: an operation is a layer; the backward pass begins where most bytes of activations
// lie idle; in networks without convolutions, matrix products stand for them. The paper's waits at
// the end of each layer are left out, and so is its choice of algorithms (a workload's times are
// fixed): both in its favour or neutral. Where no choice fits, which it cannot run, demand paging.
#pragma once

#include "cost/policies/rival.hpp"

namespace libswap::cost {

RivalResult vdnn_plan(const RivalInput& input);

}  // namespace libswap::cost
