// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/device/timeline_log.hpp"

#include <cinttypes>
#include <cstdlib>

#include "simgpu/device/op.hpp"

namespace simgpu {

TimelineLog::TimelineLog() {
    const char* path = std::getenv("SIMGPU_TIMELINE");
    if (path == nullptr || *path == '\0') return;
    file_ = std::fopen(path, "we");
    if (file_ == nullptr) {
        std::fprintf(stderr, "simgpu: no timeline: cannot write %s\n", path);
        return;
    }
    std::fputs("class,stream,submit_ns,ready_ns,start_ns,end_ns,bytes,name\n", file_);
}

TimelineLog::~TimelineLog() {
    if (file_ != nullptr) std::fclose(file_);
}

void TimelineLog::write(const Op& op) {
    if (op.kind == Op::Kind::Marker || op.stream == nullptr) return;
    std::fprintf(file_,
                 "%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%s\n",
                 op_class_name(op.op_class), op.stream->id, op.submit_ns, op.ready_ns, op.start_ns,
                 op.end_ns, op.bytes(), op.launch.name.c_str());
}

void TimelineLog::write_call(pid_t thread, std::uint64_t start_ns, std::uint64_t ns) {
    std::fprintf(file_, "call,%d,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",0,\n", thread,
                 start_ns, start_ns, start_ns, start_ns + ns);
}

}  // namespace simgpu
