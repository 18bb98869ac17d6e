// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <string>

#include "tools/trace_dump.hpp"

namespace libswap::tools {

/// A dump in the Trace Event Format (JSON), which ui.perfetto.dev and chrome://tracing open: rows
/// for compute, copies to the host, copies to the device and the host's waits, and a counter of
/// memory.
///
/// The device's clock, which operations are timed by, and the host's are not the same. The device's
/// times are moved by the smallest amount that lets no operation begin before it was issued, so one
/// that found the device idle begins when it was issued. One of which only its duration is known
/// begins when it was issued, or when those before it are over.
std::string format_chrome_trace(const TraceDump& dump);

}  // namespace libswap::tools
