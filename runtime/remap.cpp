// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "runtime/remap.hpp"

#include <array>
#include <bit>

namespace libswap {

bool Remapper::add_peer(int device) noexcept {
    if (device < 0 || device >= 64 || device == device_) return false;
    const std::uint64_t bit = std::uint64_t{1} << device;
    return (peers_.fetch_or(bit) & bit) == 0;
}

Status Remapper::grant(std::uint64_t base, std::uint64_t bytes) noexcept {
    std::array<CUmemAccessDesc, 65> access{};
    std::size_t count = 0;
    const auto add = [&](int device) {
        access[count].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        access[count].location.id = device;
        access[count++].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    };
    add(device_);
    for (std::uint64_t rest = peers(); rest != 0; rest &= rest - 1) add(std::countr_zero(rest));
    return LIBSWAP_CU(driver_.cuMemSetAccess(base, bytes, access.data(), count));
}

Status Remapper::map(std::uint64_t base, std::span<Chunk* const> chunks) noexcept {
    const std::uint64_t bytes = kChunkBytes[chunks[0]->size_class];
    std::size_t mapped = 0;
    Status status;
    for (; mapped < chunks.size(); ++mapped) {
        status = LIBSWAP_CU(
            driver_.cuMemMap(base + mapped * bytes, bytes, 0, chunks[mapped]->handle, 0));
        if (!status) break;
    }
    if (status) {
        status = grant(base, bytes * chunks.size());
    }
    if (!status && mapped != 0) {
        // A second try: an unmap that fails once would leave the range unusable.
        if (!LIBSWAP_CU(driver_.cuMemUnmap(base, mapped * bytes)))
            LIBSWAP_CU_IGNORE(driver_.cuMemUnmap(base, mapped * bytes));
    }
    return status;
}

bool Remapper::map_stubbornly(std::uint64_t base, std::span<Chunk* const> chunks) noexcept {
    for (int tries = 0; tries < 3; ++tries)
        if (map(base, chunks)) return true;
    return false;
}

RemapResult Remapper::unmap(std::uint64_t base, std::span<Chunk* const> chunks) noexcept {
    // One call for all of them: whole mappings in a row may go together (NVIDIA's vectorAddMMAP
    // sample frees so), and a call costs about the same whatever its range.
    const std::uint64_t bytes = kChunkBytes[chunks[0]->size_class] * chunks.size();
    return LIBSWAP_CU(driver_.cuMemUnmap(base, bytes)) ? RemapResult::Done : RemapResult::Restored;
}

RemapResult Remapper::change(std::uint64_t base, std::span<Chunk* const> from,
                             std::span<Chunk* const> to) noexcept {
    if (!from.empty())
        if (const RemapResult result = unmap(base, from); result != RemapResult::Done)
            return result;
    if (to.empty() || map(base, to)) return RemapResult::Done;
    if (from.empty()) return RemapResult::Restored;
    return map_stubbornly(base, from) ? RemapResult::Restored : RemapResult::Lost;
}

}  // namespace libswap
