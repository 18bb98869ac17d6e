// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// The link to the host: transfers alone, in both directions, from pageable memory, in chunks.
#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "microbench/device/suite.hpp"
#include "microbench/link/sampling.hpp"

namespace libswap::bench {

namespace {

constexpr std::uint64_t kMib = 1 << 20;
using cost::Direction;

const char* name_of(Direction direction) {
    return direction == Direction::ToHost ? "to host" : "to device";
}

void copy(const Driver& driver, Direction direction, CUdeviceptr device, void* host,
          std::uint64_t bytes, CUstream stream) {
    if (direction == Direction::ToHost) {
        BENCH_CU(driver, cuMemcpyDtoHAsync(host, device, bytes, stream));
    } else {
        BENCH_CU(driver, cuMemcpyHtoDAsync(device, host, bytes, stream));
    }
}

std::vector<double> rates(const std::vector<double>& times_us, std::uint64_t bytes) {
    std::vector<double> all;
    for (const double us : times_us) all.push_back(1e-3 * static_cast<double>(bytes) / us);
    return all;
}

/// Memory on both sides, as large as the largest transfer.
struct Ends {
    Ends(Session& session, std::uint64_t bytes_of)
        : bytes(std::min(bytes_of, session.free_bytes() / 4 / kMib * kMib)),
          device(session.driver(), bytes),
          host(session.driver(), bytes) {}
    std::uint64_t bytes;
    DeviceBuffer device;
    PinnedBuffer host;
};

class Transfers {
  public:
    Transfers(Bench& bench, Ends& ends)
        : session_(bench.session),
          ends_(ends),
          other_(session_.driver()),
          begin_(session_.driver()),
          end_(session_.driver()) {}

    LinkMeasurements measure(Direction direction, LinkEffort effort, Table& table) {
        effort.most_bytes = ends_.bytes;
        const LinkSource source{
            [&](std::uint64_t bytes) { return session_.time_us([&] { once(direction, bytes); }); },
            [&](std::uint32_t count, std::uint64_t bytes) {
                LinkSource::TrainTime train;
                train.us = session_.time_us([&] {
                    train.submit_us = host_us([&] {
                        for (std::uint32_t n = 0; n < count; ++n) once(direction, bytes);
                    });
                });
                train.submit_us /= count;
                return train;
            }};
        LinkMeasurements measured = measure_link(source, effort);
        std::map<std::uint64_t, std::vector<double>> by_size;
        for (const cost::LinkSample& s : measured.transfers) by_size[s.bytes].push_back(s.us);
        for (const auto& [bytes, us] : by_size)
            table.add(
                fmt::format("{}, {}", name_of(direction), size_name(static_cast<double>(bytes))),
                us);
        return measured;
    }

  private:
    void once(Direction direction, std::uint64_t bytes) {
        copy(session_.driver(), direction, ends_.device.address, ends_.host.pointer, bytes,
             session_.stream());
    }

    /// What the host's thread spends in `work`, by events of a stream in which nothing happens.
    template <typename Work>
    double host_us(Work work) {
        BENCH_CU(session_.driver(), cuEventRecord(begin_.handle, other_.handle));
        work();
        BENCH_CU(session_.driver(), cuEventRecord(end_.handle, other_.handle));
        BENCH_CU(session_.driver(), cuEventSynchronize(end_.handle));
        float ms = 0;
        BENCH_CU(session_.driver(), cuEventElapsedTime(&ms, begin_.handle, end_.handle));
        return 1e3 * static_cast<double>(ms);
    }

    Session& session_;
    Ends& ends_;
    Stream other_;
    Event begin_, end_;
};

/// Median times as dots, the fit as a line.
void draw(Plot& plot, const char* name, const LinkMeasurements& measured,
          const cost::LogGp& model) {
    std::map<std::uint64_t, std::vector<double>> by_size;
    for (const cost::LinkSample& s : measured.transfers) by_size[s.bytes].push_back(s.us);
    Series dots{fmt::format("{}, measured", name), {}, true};
    Series line{fmt::format("{}, fitted", name), {}, false};
    for (const auto& [bytes, us] : by_size) {
        const auto x = static_cast<double>(bytes);
        dots.points.push_back({x, median(us)});
        line.points.push_back({x, model.setup_us() + x / model.bytes_per_us(bytes)});
    }
    const std::size_t sentence = plot.series.empty() ? 0 : 1;
    plot.shows[sentence] = fmt::format("A transfer {} takes {:.1f} us and then moves {:.1f} GB/s.",
                                       name, model.setup_us(), model.gbps);
    plot.series.push_back(std::move(dots));
    plot.series.push_back(std::move(line));
}

void fit(Bench& bench, Direction direction, const LinkMeasurements& measured, Table& table) {
    const auto fitted = fit_loggp(measured, bench.full() ? 40 : 0);
    const char* name = name_of(direction);
    if (!fitted) {
        bench.report.not_measured.push_back(fmt::format("link {}: {}", name, fitted.error()));
        bench.report.missing.emplace_back("link");
        return;
    }
    const cost::LogGp& model = fitted->fit.model;
    (direction == Direction::ToHost ? bench.report.profile.machine.link.to_host
                                    : bench.report.profile.machine.link.to_device) = model;
    table.add(fmt::format("{}: L, latency", name), model.latency_us);
    table.add(fmt::format("{}: o, of the host per message", name), model.overhead_us);
    table.add(fmt::format("{}: g, between messages", name), model.gap_us);
    table.add(fmt::format("{}: 1/G, GB/s", name), model.gbps);
    if (model.small_gbps > 0)
        table.add(fmt::format("{}: 1/G up to {}, GB/s", name,
                              size_name(static_cast<double>(model.small_bytes))),
                  model.small_gbps);
    std::string note = fmt::format(
        "{}: half of the transfers are within {:.1f} % of the fit, 95 % within {:.1f} %", name,
        100 * fitted->fit.median_error, 100 * fitted->fit.p95_error);
    if (bench.full())
        note += fmt::format(
            "; L {:.2f} to {:.2f} us, L + o + g {:.2f} to {:.2f} us, 1/G {:.2f} to {:.2f} GB/s (95 "
            "%)",
            fitted->latency_us.low, fitted->latency_us.high, fitted->setup_us.low,
            fitted->setup_us.high, fitted->gbps.low, fitted->gbps.high);
    table.notes.push_back(std::move(note));
    draw(bench.report.plots.back(), name, measured, model);
}

/// Rates of copies in both directions at once, each long enough to meet the other all along: one
/// direction's copies are timed in the middle of twice as many of the other's.
std::vector<double> rates_beside(Session& session, Ends& ends, Direction direction, int times) {
    const Driver& driver = session.driver();
    const Direction against =
        direction == Direction::ToHost ? Direction::ToDevice : Direction::ToHost;
    const std::uint64_t bytes = ends.bytes / 4;
    auto* host = static_cast<char*>(ends.host.pointer);
    Stream other(driver);
    Event begun(driver);
    std::vector<double> all;
    for (int k = 0; k <= times; ++k) {
        // Other memory on both sides than the timed copy's.
        copy(driver, against, ends.device.address + 2 * bytes, host + 2 * bytes, bytes / 4,
             other.handle);
        BENCH_CU(driver, cuEventRecord(begun.handle, other.handle));
        for (int n = 0; n < 3; ++n)
            copy(driver, against, ends.device.address + 2 * bytes, host + 2 * bytes, bytes,
                 other.handle);
        BENCH_CU(driver, cuStreamWaitEvent(session.stream(), begun.handle, 0));
        const double us = session.time_us(
            [&] { copy(driver, direction, ends.device.address, host, bytes, session.stream()); });
        BENCH_CU(driver, cuStreamSynchronize(other.handle));
        if (k > 0) all.push_back(1e-3 * static_cast<double>(bytes) / us);
    }
    return all;
}

}  // namespace

void measure_transfers(Bench& bench) {
    const LinkEffort& effort = bench.full() ? kFullLink : kQuickLink;
    Ends ends(bench.session, effort.most_bytes);
    Transfers transfers(bench, ends);
    Table times{"transfers", "How long does a transfer take, pinned?", "us", {}, {}};
    Table fits{"loggp", "What is the link's LogGP?", "us", {}, {}};
    Plot plot{"link", "Time of a transfer", "bytes", "us", {}, {}, true};
    bench.report.plots.push_back(std::move(plot));
    for (const Direction direction : {Direction::ToDevice, Direction::ToHost})
        fit(bench, direction, transfers.measure(direction, effort, times), fits);
    bench.report.tables.push_back(std::move(times));
    bench.report.tables.push_back(std::move(fits));
}

void measure_duplex(Bench& bench) {
    Ends ends(bench.session, (bench.full() ? 256 : 32) * kMib);
    Table& table = bench.table(
        "duplex", "How fast is each direction while the other is idle, or busy?", "GB/s");
    cost::LinkModel& link = bench.report.profile.machine.link;
    const int times = bench.full() ? 10 : 3;
    double most = 0;
    for (const Direction direction : {Direction::ToDevice, Direction::ToHost}) {
        const std::uint64_t bytes = ends.bytes / 4;
        const auto alone = rates(
            bench.session.times_us(static_cast<std::size_t>(times),
                                   [&] {
                                       copy(bench.session.driver(), direction, ends.device.address,
                                            ends.host.pointer, bytes, bench.session.stream());
                                   }),
            bytes);
        const auto beside = rates_beside(bench.session, ends, direction, times);
        table.add(fmt::format("{}, other idle", name_of(direction)), alone);
        table.add(fmt::format("{}, other busy", name_of(direction)), beside);
        const double gbps = median(beside);
        (direction == Direction::ToHost ? link.to_host_duplex_gbps : link.to_device_duplex_gbps) =
            gbps;
        most = std::max(most, gbps / median(alone));
    }
    // With one engine for both, a copy waits for all the other direction's before it.
    table.notes.push_back(fmt::format("copy engines: {} by the device's word, {} by its work",
                                      bench.session.info().copy_engines,
                                      most > 0.45 ? "one per direction" : "one"));
}

void measure_pageable(Bench& bench) {
    const std::uint64_t bytes = (bench.full() ? 64 : 8) * kMib;
    Ends ends(bench.session, bytes);
    std::vector<char> pageable(ends.bytes, 1);
    Table& table = bench.table("pageable", "What does pinning bring?", "GB/s");
    const std::size_t times = bench.full() ? 10 : 3;
    for (const Direction direction : {Direction::ToDevice, Direction::ToHost}) {
        for (const bool pinned : {true, false}) {
            void* host = pinned ? ends.host.pointer : pageable.data();
            const auto us = bench.session.times_us(times, [&] {
                copy(bench.session.driver(), direction, ends.device.address, host, ends.bytes,
                     bench.session.stream());
            });
            table.add(fmt::format("{}, {}, {}", name_of(direction), pinned ? "pinned" : "pageable",
                                  size_name(static_cast<double>(ends.bytes))),
                      rates(us, ends.bytes));
        }
    }
}

void measure_chunks(Bench& bench) {
    if (!bench.full()) return;
    Ends ends(bench.session, 64 * kMib);
    const Driver& driver = bench.session.driver();
    Table& table =
        bench.table("chunks", "Do several chunks in flight move faster than one?", "GB/s");
    for (const Direction direction : {Direction::ToDevice, Direction::ToHost}) {
        for (const std::uint64_t chunk : {kMib / 4, 2 * kMib, 16 * kMib}) {
            for (const std::size_t streams : {1, 2, 4}) {
                std::vector<std::unique_ptr<Stream>> side;
                std::vector<std::unique_ptr<Event>> done;
                for (std::size_t k = 0; k < streams; ++k) {
                    side.push_back(std::make_unique<Stream>(driver));
                    done.push_back(std::make_unique<Event>(driver));
                }
                Event begin(driver);
                const auto us = bench.session.times_us(5, [&] {
                    BENCH_CU(driver, cuEventRecord(begin.handle, bench.session.stream()));
                    for (auto& s : side)
                        BENCH_CU(driver, cuStreamWaitEvent(s->handle, begin.handle, 0));
                    auto* host = static_cast<char*>(ends.host.pointer);
                    for (std::uint64_t at = 0, n = 0; at < ends.bytes; at += chunk, ++n)
                        copy(driver, direction, ends.device.address + at, host + at, chunk,
                             side[n % streams]->handle);
                    for (std::size_t k = 0; k < streams; ++k) {
                        BENCH_CU(driver, cuEventRecord(done[k]->handle, side[k]->handle));
                        BENCH_CU(driver,
                                 cuStreamWaitEvent(bench.session.stream(), done[k]->handle, 0));
                    }
                });
                table.add(fmt::format("{}, {}, {} in flight", name_of(direction),
                                      size_name(static_cast<double>(chunk)), streams),
                          rates(us, ends.bytes));
            }
        }
    }
}

}  // namespace libswap::bench
