// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Operations while nothing can move: no pins, and no places in the blocks. What an operation names
// is only marked as used, and end_stillness() makes up for the rest.

#include "runtime/device.hpp"

namespace libswap {
namespace {

/// Leaves at the end of a scope that was entered.
class Inside {
  public:
    explicit Inside(Stillness& stillness) noexcept : stillness_(stillness) {}
    ~Inside() { stillness_.leave(); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

  private:
    Stillness& stillness_;
};

void touch_block(Block& block, std::uint64_t now) noexcept {
    block.last_touch.store(now, std::memory_order_relaxed);
    if (block.fresh.load(std::memory_order_relaxed))
        block.fresh.store(false, std::memory_order_relaxed);
}

}  // namespace

void Device::take_still_place(StreamIndex index, bool trusted) {
    if (index == kNoStream) {
        LIBSWAP_CU_IGNORE(driver_.cuCtxSynchronize());  // nobody could wait for it later
        return;
    }
    const Use use = streams_.take_place(index);
    if (trusted) return;
    gate_.note(use);
    last_unexplained_op_.store(stillness_.number(), std::memory_order_relaxed);
}

CUresult Device::run_still(Operation& op, StreamIndex index, RealCall real) {
    const Inside inside(stillness_);
    const bool trusted = op.trusted();
    const CUresult result = real();
    take_still_place(index, trusted);
    if (op.function && result == CUDA_SUCCESS) op.function->note_launch();
    note_touched(op);
    return result;
}

bool Device::launch_still(const LaunchRequest& request, CUcontext context, RealCall real,
                          CUresult* result) {
    // Where memory holds addresses of ours, what they lead to is named as well.
    if (edges_.any() || capturing() || !worker_->running()) return false;
    if (request.stream == CU_STREAM_PER_THREAD) return false;
    FunctionInfo* const info = functions_.find(request.function);
    if (!info || !info->layout_known) return false;
    const StreamIndex index = streams_.find(context, request.stream);
    if (!stillness_.enter()) return false;
    const Inside inside(stillness_);
    const bool trusted = info->trusted();
    *result = real();
    take_still_place(index, trusted);
    if (*result != CUDA_SUCCESS) return true;
    info->note_launch();
    const std::uint64_t now = stillness_.number();
    for_each_parameter_word(*info, request.params, request.extra,
                            [&](std::uint64_t word) { touch(word, now); });
    return true;
}

/// An address was named by an operation that may write there.
void Device::touch(std::uint64_t address, std::uint64_t now) noexcept {
    Block* const named = block_at(address);
    if (!named) return;
    if (named->alone) return touch_block(*named, now);
    const Buffer& buffer = blocks_.buffer_of(*named);
    for (std::uint32_t i = 0; i < buffer.count; ++i)
        touch_block(blocks_.block(buffer.first + i), now);
}

/// Called by the worker, before it begins anything: false while operations without pins are being
/// issued. Each block may have been used at any place taken so far.
bool Device::end_stillness() noexcept {
    if (!stillness_.drained()) return false;
    // From now on each operation on a per-thread stream records an event: its thread may never come
    // back.
    if (!capturing()) streams_.cover_other_threads();
    const StreamIndex streams = streams_.count();
    for (StreamIndex stream = 0; stream < streams; ++stream) {
        const Use use = Use::make(stream, streams_.last_place(stream));
        // Operations on a per-thread stream have pinned, and their places are where they belong.
        if (streams_.handle(stream) == CU_STREAM_PER_THREAD || streams_.known_complete(use))
            continue;
        for (BlockIndex i = 0; i < blocks_.end(); ++i) blocks_.block(i).publish(use);
    }
    return true;
}

}  // namespace libswap
