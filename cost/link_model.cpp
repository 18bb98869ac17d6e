// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "cost/link_model.hpp"

#include <algorithm>

namespace libswap::cost {

double LinkModel::rate(Direction d, std::uint64_t message_bytes, bool other_busy) const {
    const double alone = direction(d).bytes_per_us(message_bytes);
    const double duplex =
        1e3 * (d == Direction::ToHost ? to_host_duplex_gbps : to_device_duplex_gbps);
    return other_busy ? std::min(alone, duplex) : alone;
}

double LinkModel::transfer_us(Direction d, std::uint64_t message_bytes, bool other_busy) const {
    return direction(d).setup_us() +
           static_cast<double>(message_bytes) / rate(d, message_bytes, other_busy);
}

}  // namespace libswap::cost
