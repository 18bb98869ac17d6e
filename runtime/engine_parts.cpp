// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/engine_parts.hpp"

namespace libswap {
namespace {

/// A thread's operations live as long as the thread. The pointers are trivially destructible: a
/// hook that runs after the cleaner makes new ones.
thread_local Operation* t_operations[OperationParts::kMost] = {};
struct OperationCleaner {
    ~OperationCleaner() {
        for (Operation*& operation : t_operations) {
            delete operation;
            operation = nullptr;
        }
    }
};

Operation& fresh_operation(std::size_t slot) {
    Operation*& operation = t_operations[slot];
    if (!operation) {
        thread_local OperationCleaner cleaner;
        (void)&cleaner;
        operation = new Operation;
        operation->blocks.reserve(1024);
        operation->changes.reserve(1024);
        operation->spans.reserve(256);
        operation->parts.reserve(64);
        operation->operands_named.reserve(Trials::kMaxWatches);
        operation->tables.reserve(64);
        operation->targets.reserve(1024);
        operation->foreign.reserve(64);
        operation->operands.reserve(1024);
        operation->commands.reserve(256);
    }
    operation->clear();
    return *operation;
}

}  // namespace

Operation& OperationParts::of(Device& device) {
    std::size_t place = 0;
    while (place < count_ && parts_[place].device->ordinal() < device.ordinal()) ++place;
    if (place < count_ && parts_[place].device == &device) return *parts_[place].op;
    Operation& op = fresh_operation(count_);
    for (std::size_t i = count_; i > place; --i) parts_[i] = parts_[i - 1];
    parts_[place] = {&device, &op};
    ++count_;
    return op;
}

CUresult OperationParts::run_from(std::size_t index, Device* home, CUcontext context,
                                  CUstream stream, RealCall real) {
    if (index == count_) return real();
    Device& device = *parts_[index].device;
    const auto rest = [&] { return run_from(index + 1, home, context, stream, real); };
    // Nothing moves on a device without a worker; only its own contexts start one.
    if (&device != home && !device.swaps()) return rest();
    return device.run(*parts_[index].op, context, stream, rest);
}

}  // namespace libswap
