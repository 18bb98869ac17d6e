// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "microbench/device/chunks.hpp"

namespace libswap::bench {

Chunks::Chunks(Session& session, std::uint64_t chunk_bytes, std::size_t count)
    : Chunks(session, chunk_bytes, count, {CU_MEM_LOCATION_TYPE_DEVICE, {session.device()}}) {}

Chunks::Chunks(Session& session, std::uint64_t chunk_bytes, std::size_t count,
               CUmemLocation location)
    : driver_(session.driver()), bytes_(chunk_bytes), handles_(count, 0), mapped_(count, false) {
    properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties_.location = location;
    access_ = {{CU_MEM_LOCATION_TYPE_DEVICE, {session.device()}},
               CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    BENCH_CU(driver_, cuMemAddressReserve(&range_, bytes_ * count, 0, 0, 0));
}

Chunks::~Chunks() {
    for (std::size_t k = 0; k < handles_.size(); ++k) {
        if (mapped_[k]) driver_.cuMemUnmap(at(k), bytes_);
        if (handles_[k] != 0) driver_.cuMemRelease(handles_[k]);
    }
    driver_.cuMemAddressFree(range_, bytes_ * handles_.size());
}

void Chunks::create(std::size_t k) {
    BENCH_CU(driver_, cuMemCreate(&handles_[k], bytes_, &properties_, 0));
}

void Chunks::map(std::size_t k) {
    BENCH_CU(driver_, cuMemMap(at(k), bytes_, 0, handles_[k], 0));
    mapped_[k] = true;
}

void Chunks::grant(std::size_t k) { BENCH_CU(driver_, cuMemSetAccess(at(k), bytes_, &access_, 1)); }

void Chunks::unmap(std::size_t k) {
    BENCH_CU(driver_, cuMemUnmap(at(k), bytes_));
    mapped_[k] = false;
}

void Chunks::release(std::size_t k) {
    BENCH_CU(driver_, cuMemRelease(handles_[k]));
    handles_[k] = 0;
}

void Chunks::make(std::size_t k) {
    create(k);
    map(k);
    grant(k);
}

}  // namespace libswap::bench
