// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Texture and surface instructions, a lane at a time: what they do is long, whatever the CPU.

#include <algorithm>
#include <bit>
#include <cstring>

#include "simgpu/exec/texel.hpp"
#include "simgpu/exec/warp.hpp"

namespace simgpu::exec {

namespace {

const TextureSite& site_of(const Warp& w, const Inst& i) {
    return w.frame->function->textures[static_cast<std::size_t>(i.imm)];
}

template <class T>
T lane_value(const Warp& w, std::uint32_t slot, int lane) {
    T value{};
    if (slot != kNoSlot)
        std::memcpy(&value, w.regs + slot + static_cast<std::size_t>(lane) * sizeof(T), sizeof(T));
    return value;
}

template <class T>
void set_lane(Warp& w, std::uint32_t slot, int lane, T value) {
    if (slot != kNoSlot)
        std::memcpy(w.regs + slot + static_cast<std::size_t>(lane) * sizeof(T), &value, sizeof(T));
}

/// Calls `f` for each lane that is on, until the launch has failed.
template <class F>
void each_lane(const Warp& w, F f) {
    for (std::uint32_t left = w.exec; left != 0 && w.launch->status == RunStatus::Ok;
         left &= left - 1)
        f(std::countr_zero(left));
}

/// The lane's object, which `find` looks up where it is not the one used last; null, and a fault,
/// if there is none.
template <class Object>
const Object* object_of(Warp& w, const TextureSite& site, int lane, Launch::LastUsed<Object>& last,
                        const Object* (Textures::*find)(std::uint64_t), const char* kind) {
    const auto handle = lane_value<std::uint64_t>(w, site.handle, lane);
    if (last.object == nullptr || last.handle != handle) {
        Textures* textures = w.launch->options->textures;
        last = {handle, textures != nullptr ? (textures->*find)(handle) : nullptr};
    }
    if (last.object == nullptr)
        w.fault(RunStatus::UnknownTexture, 0, std::string(kind) + " " + std::to_string(handle));
    return last.object;
}

const Texture* texture_of(Warp& w, const TextureSite& site, int lane) {
    return object_of(w, site, lane, w.launch->texture, &Textures::texture, "texture");
}

const Surface* surface_of(Warp& w, const TextureSite& site, int lane) {
    return object_of(w, site, lane, w.launch->surface, &Textures::surface, "surface");
}

/// Device memory; what cannot be read is a fault of the warp.
class WarpTexels final : public TexelSource {
  public:
    explicit WarpTexels(Warp& warp) : warp_(warp) {}
    const std::byte* bytes(std::uint64_t va) override {
        const std::byte* found = warp_.launch->host(va, false);
        if (found == nullptr) warp_.fault(RunStatus::IllegalAddress, va);
        return found;
    }

  private:
    Warp& warp_;
};

TexturePoint point_of(const Warp& w, const TextureSite& site, int lane) {
    TexturePoint point;
    point.integers = site.integers;
    point.layer = lane_value<std::int32_t>(w, site.layer, lane);
    for (std::size_t k = 0; k < site.at.size(); ++k) {
        if (site.integers)
            point.texel[k] = lane_value<std::int32_t>(w, site.at[k], lane);
        else
            point.at[k] = lane_value<float>(w, site.at[k], lane);
    }
    return point;
}

float level_of(const Warp& w, const TextureSite& site, const Texture& texture, int lane) {
    switch (site.level_source) {
        case LevelSource::Base:
            return 0;
        case LevelSource::Operand:
            return site.integers ? static_cast<float>(lane_value<std::int32_t>(w, site.level, lane))
                                 : lane_value<float>(w, site.level, lane);
        case LevelSource::Gradients:
            break;
    }
    std::array<float, 3> dx{}, dy{};
    for (std::size_t k = 0; k < dx.size(); ++k) {
        dx[k] = lane_value<float>(w, site.dx[k], lane);
        dy[k] = lane_value<float>(w, site.dy[k], lane);
    }
    return level_of_gradients(texture, site.shape, dx, dy);
}

void set_texel(Warp& w, const TextureSite& site, int lane, const Texel& texel) {
    for (std::size_t k = 0; k < texel.size(); ++k) set_lane(w, site.values[k], lane, texel[k]);
}

/// All texels are where they should be: there is no sparse memory here.
void set_resident(Warp& w, const TextureSite& site) {
    if (site.resident == kNoSlot) return;
    std::uint32_t predicate = 0;
    std::memcpy(&predicate, w.regs + site.resident, sizeof predicate);
    predicate |= w.exec;
    std::memcpy(w.regs + site.resident, &predicate, sizeof predicate);
}

/// A texel per lane: neighbours that a filter mixes are other lanes' too, and in the cache.
void count_loads(Warp& w, std::uint64_t lane_bytes) {
    w.launch->counters.global_bytes_loaded +=
        lane_bytes * static_cast<std::uint64_t>(std::popcount(w.exec));
}

/// Gives each lane what `read` finds for it in its texture.
template <class Read>
void read_texels(Warp& w, const TextureSite& site, Read read) {
    WarpTexels source(w);
    std::uint64_t texel_bytes = 0;
    each_lane(w, [&](int lane) {
        const Texture* from = texture_of(w, site, lane);
        Texel texel{};
        if (from == nullptr || !read(*from, lane, source, texel)) return;
        set_texel(w, site, lane, texel);
        texel_bytes = from->format.bytes();
    });
    set_resident(w, site);
    count_loads(w, texel_bytes);
}

void texture(Warp& w, const Inst& i) {
    const TextureSite& site = site_of(w, i);
    read_texels(w, site, [&](const Texture& from, int lane, TexelSource& source, Texel& texel) {
        return sample(from, site.shape, point_of(w, site, lane), level_of(w, site, from, lane),
                      source, texel);
    });
}

void texture_gather(Warp& w, const Inst& i) {
    const TextureSite& site = site_of(w, i);
    read_texels(w, site, [&](const Texture& from, int lane, TexelSource& source, Texel& texel) {
        return gather(from, point_of(w, site, lane), site.channel, source, texel);
    });
}

std::uint32_t answer(TextureQuery query, const TexturePlane& plane, std::size_t levels) {
    switch (query) {
        case TextureQuery::Width:
            return plane.width;
        case TextureQuery::Height:
            return plane.height;
        case TextureQuery::Depth:
        case TextureQuery::Layers:
            return plane.depth;
        case TextureQuery::Levels:
            return static_cast<std::uint32_t>(levels);
    }
    return 0;
}

void texture_query(Warp& w, const Inst& i) {
    const TextureSite& site = site_of(w, i);
    each_lane(w, [&](int lane) {
        const Texture* texture = site.of_surface ? nullptr : texture_of(w, site, lane);
        const Surface* surface = site.of_surface ? surface_of(w, site, lane) : nullptr;
        if (texture != nullptr)
            set_lane(w, site.values[0], lane,
                     answer(site.query, texture->levels[0], texture->levels.size()));
        if (surface != nullptr)
            set_lane(w, site.values[0], lane, answer(site.query, surface->plane, 1));
    });
}

/// Where a surface access goes.
struct SurfacePlace {
    bool inside = false;
    std::uint64_t va = 0;
};

/// x counts bytes. False, and a fault, where the access stops the kernel.
bool surface_place(Warp& w, const TextureSite& site, const Surface& surface, int lane,
                   SurfacePlace& out) {
    const TexturePlane& plane = surface.plane;
    const std::int64_t bytes = std::int64_t{site.elements} * site.element_bytes;
    std::array<std::int64_t, 3> at{};
    for (std::size_t k = 0; k < at.size(); ++k)
        at[k] = lane_value<std::int32_t>(w, site.at[k], lane);
    if (site.layer != kNoSlot) at[2] = lane_value<std::int32_t>(w, site.layer, lane);
    if (at[0] % bytes != 0) {
        w.fault(RunStatus::MisalignedAddress, plane.va);
        return false;
    }
    const std::int64_t row = std::int64_t{plane.width} * surface.format.bytes();
    const std::array<std::int64_t, 3> last{row - bytes, std::int64_t{plane.height} - 1,
                                           std::int64_t{plane.depth} - 1};
    out.inside = true;
    for (std::size_t k = 0; k < at.size(); ++k) {
        if (at[k] >= 0 && at[k] <= last[k]) continue;
        // A row that is shorter than the access has no nearest place either.
        if (site.edge == SurfaceEdge::Clamp && last[k] >= 0)
            at[k] = std::clamp<std::int64_t>(at[k], 0, last[k]);
        else
            out.inside = false;
    }
    if (!out.inside && site.edge != SurfaceEdge::Zero) {
        w.fault(RunStatus::OutsideSurface);
        return false;
    }
    out.va = plane.va + static_cast<std::uint64_t>(at[0]) +
             static_cast<std::uint64_t>(at[1]) * plane.row_bytes +
             static_cast<std::uint64_t>(at[2]) * plane.slice_bytes;
    return true;
}

/// The bytes of one access.
struct SurfaceValue {
    std::array<std::byte, 16> bytes{};
    std::size_t count = 0;
};

/// Copies them to or from the surface, in two pieces where they lie in two pages: the rows of an
/// array need not begin where an access would be aligned. False, and a fault, if it may not.
bool transfer(Warp& w, std::uint64_t va, SurfaceValue& value, bool write) {
    for (std::size_t done = 0; done < value.count;) {
        const std::uint64_t at = va + done;
        const std::size_t piece =
            std::min<std::uint64_t>(value.count - done, kPageBytes - at % kPageBytes);
        std::byte* place = w.launch->host(at, write);
        if (place == nullptr) {
            w.fault(RunStatus::IllegalAddress, at);
            return false;
        }
        if (write)
            std::memcpy(place, value.bytes.data() + done, piece);
        else
            std::memcpy(value.bytes.data() + done, place, piece);
        done += piece;
    }
    return true;
}

/// One lane's access. Outside of the surface nothing is written, and zeros are read.
bool access_surface(Warp& w, const TextureSite& site, int lane, SurfaceValue& value, bool write) {
    const Surface* surface = surface_of(w, site, lane);
    SurfacePlace place;
    if (surface == nullptr || !surface_place(w, site, *surface, lane, place)) return false;
    return !place.inside || transfer(w, place.va, value, write);
}

void surface_load(Warp& w, const Inst& i) {
    const TextureSite& site = site_of(w, i);
    const std::size_t bytes = std::size_t{site.elements} * site.element_bytes;
    each_lane(w, [&](int lane) {
        SurfaceValue value;
        value.count = bytes;
        if (!access_surface(w, site, lane, value, false)) return;
        for (std::uint32_t k = 0; k < site.elements; ++k) {
            std::uint64_t element = 0;
            std::memcpy(&element, value.bytes.data() + k * site.element_bytes, site.element_bytes);
            if (site.element_bytes == 8)
                set_lane(w, site.values[k], lane, element);
            else
                set_lane(w, site.values[k], lane, static_cast<std::uint32_t>(element));
        }
    });
    count_loads(w, bytes);
}

void surface_store(Warp& w, const Inst& i) {
    const TextureSite& site = site_of(w, i);
    const std::size_t bytes = std::size_t{site.elements} * site.element_bytes;
    each_lane(w, [&](int lane) {
        SurfaceValue value;
        value.count = bytes;
        for (std::uint32_t k = 0; k < site.elements; ++k) {
            const std::uint64_t element = site.element_bytes == 8
                                              ? lane_value<std::uint64_t>(w, site.values[k], lane)
                                              : lane_value<std::uint32_t>(w, site.values[k], lane);
            std::memcpy(value.bytes.data() + k * site.element_bytes, &element, site.element_bytes);
        }
        access_surface(w, site, lane, value, true);
    });
    w.launch->counters.global_bytes_stored +=
        bytes * static_cast<std::uint64_t>(std::popcount(w.exec));
}

}  // namespace

Handler find_texture_handler(const OpKey& key) {
    switch (key.op) {
        case Op::Texture:
            return &texture;
        case Op::TextureGather:
            return &texture_gather;
        case Op::TextureQuery:
            return &texture_query;
        case Op::SurfaceLoad:
            return &surface_load;
        case Op::SurfaceStore:
            return &surface_store;
        default:
            return nullptr;
    }
}

}  // namespace simgpu::exec
