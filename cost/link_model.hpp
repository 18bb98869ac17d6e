// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <algorithm>
#include <cstdint>

namespace libswap::cost {

enum class Direction : std::uint8_t { ToHost, ToDevice };

/// LogGP of one direction of the link, alone (Alexandrov et al., 1995): a message of k bytes takes
///   setup_us() + k * G,  setup_us() = latency L + overhead o + gap g between messages,
/// G being 1 / (1000 * gbps) us per byte. Messages of up to `small_bytes` move at `small_gbps`.
struct LogGp {
    double latency_us = 0;   ///< L
    double overhead_us = 0;  ///< o: the host's part of a submission
    double gap_us = 0;       ///< g
    double gbps = 1;         ///< 1e9 bytes per second, large messages
    double small_gbps = 0;   ///< 0: as large ones
    std::uint64_t small_bytes = 0;

    double setup_us() const { return latency_us + overhead_us + gap_us; }
    double bytes_per_us(std::uint64_t message_bytes) const {
        return 1e3 * (small_gbps > 0 && message_bytes <= small_bytes ? small_gbps : gbps);
    }
};

/// Both directions and the 2x2 table: row = direction, column = is the other one busy.
struct LinkModel {
    LogGp to_host;
    LogGp to_device;
    double to_host_duplex_gbps = 1;  ///< while the other direction moves data too
    double to_device_duplex_gbps = 1;

    const LogGp& direction(Direction d) const {
        return d == Direction::ToHost ? to_host : to_device;
    }
    /// Bytes per microsecond of a message while the other direction is busy, or idle.
    double rate(Direction d, std::uint64_t message_bytes, bool other_busy) const {
        const double alone = direction(d).bytes_per_us(message_bytes);
        const double duplex =
            1e3 * (d == Direction::ToHost ? to_host_duplex_gbps : to_device_duplex_gbps);
        return other_busy ? std::min(alone, duplex) : alone;
    }
    /// Time of one message from submission to arrival. Unit us.
    double transfer_us(Direction d, std::uint64_t message_bytes, bool other_busy) const {
        return direction(d).setup_us() +
               static_cast<double>(message_bytes) / rate(d, message_bytes, other_busy);
    }
};

/// The time that bytes take which come in and go out together, by the 2x2 table, as the greater of
/// two linear forms: where what comes in limits, and where what goes out does,
///
///   in + out_beside_in * out        and        in_beside_out * in + out / out_rate
///
/// in units of the time that a byte takes to come in alone. Latencies apart.
struct LinkForms {
    double out_rate;  ///< alone, in terms of that of what comes in
    double out_beside_in;
    double in_beside_out;

    explicit LinkForms(const LinkModel& link)
        : out_rate(link.to_host.gbps / link.to_device.gbps),
          out_beside_in((1 - link.to_device_duplex_gbps / link.to_device.gbps) /
                        (link.to_host_duplex_gbps / link.to_device.gbps)),
          in_beside_out((1 - link.to_host_duplex_gbps / link.to_device.gbps / out_rate) /
                        (link.to_device_duplex_gbps / link.to_device.gbps)) {}
};

}  // namespace libswap::cost
