// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// TFLMS v2: Le, Imai, Negishi and Kawachiya, "Automatic GPU Memory Management for Large Neural
// Models in TensorFlow", ISMM 2019, and IBM/tensorflow-large-model-support, branch tflmsv2 (lms.py,
// simulator.py).
//
// From the source: variables stay resident. A tensor goes to the host when it has been produced, if
// a consumer is more than swapout_threshold levels away; the near consumers use it first. Consumers
// that follow each other within swapin_groupby levels share one swap-in, after which the copy on
// the device is gone; a swap-in is triggered swapin_ahead levels before its first consumer. The
// four modes of synchronisation differ in the simulation: an asynchronous swap-out holds memory one
// level longer, a synchronous swap-in holds it from its consumer on only. Auto-tuning simulates
// memory, never time: off if everything fits; else the greatest threshold that fits, raising the
// mode until one does; then the greatest swapin_ahead, then the greatest swapin_groupby that still
// fit.
//
// Decided here: every operation is a level (the order of launches is the graph serialised); each
// write makes a new tensor, as TensorFlow's are immutable; tensors under 1 MiB stay, which stands
// for "at least two dimensions"; the whole budget is used, not 90 % of it, as there is no
// fragmentation here; while the threshold is searched, ahead is 1 and groupby 0. A copy to the host
// that is found to end before the near consumers is issued at once, others after them: whichever
// replays faster. Where no parameters fit, it cannot run: demand paging.
#pragma once

#include "cost/policies/rival.hpp"

namespace libswap::cost {

RivalResult tflms_plan(const RivalInput& input);

}  // namespace libswap::cost
