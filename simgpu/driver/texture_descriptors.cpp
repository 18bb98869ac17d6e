// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/texture_descriptors.hpp"

#include <algorithm>
#include <optional>

#include "simgpu/driver/arrays.hpp"
#include "simgpu/driver/gpu.hpp"

namespace simgpu::driver {

namespace {

using Kind = exec::TexelFormat::Kind;

constexpr std::uint64_t kTextureAlignment = 512, kPitchAlignment = 32;
constexpr std::size_t kMaxLinearTexels = std::size_t{1} << 28;
constexpr std::size_t kMaxPitchedWidth = 131072, kMaxPitchedHeight = 65000;
constexpr std::size_t kMaxPitchedBytes = 2097120;
constexpr unsigned kKnownFlags = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES |
                                 CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION |
                                 CU_TRSF_SEAMLESS_CUBEMAP;

bool on_device(CUdeviceptr va) {
    const PointerKind kind = machine().memory().find(va).kind;
    return kind != PointerKind::None && kind != PointerKind::Reserved;
}

std::optional<exec::TexelFormat> texel_format(CUarray_format format, unsigned channels) {
    const unsigned bytes = format_bytes(format);
    if (bytes == 0 || (channels != 1 && channels != 2 && channels != 4)) return std::nullopt;
    const bool is_float = format == CU_AD_FORMAT_HALF || format == CU_AD_FORMAT_FLOAT;
    const bool is_signed = format == CU_AD_FORMAT_SIGNED_INT8 ||
                           format == CU_AD_FORMAT_SIGNED_INT16 ||
                           format == CU_AD_FORMAT_SIGNED_INT32;
    return exec::TexelFormat{is_float    ? Kind::Float
                             : is_signed ? Kind::Signed
                                         : Kind::Unsigned,
                             static_cast<std::uint8_t>(bytes * 8),
                             static_cast<std::uint8_t>(channels)};
}

/// A view's formats follow each other: three numbers of channels for each kind of texel.
std::optional<exec::TexelFormat> view_format(CUresourceViewFormat format) {
    struct Texels {
        Kind kind;
        std::uint8_t bits;
    };
    constexpr Texels kTexels[] = {{Kind::Unsigned, 8}, {Kind::Signed, 8},    {Kind::Unsigned, 16},
                                  {Kind::Signed, 16},  {Kind::Unsigned, 32}, {Kind::Signed, 32},
                                  {Kind::Float, 16},   {Kind::Float, 32}};
    constexpr std::uint8_t kChannels[] = {1, 2, 4};
    if (format < CU_RES_VIEW_FORMAT_UINT_1X8 || format > CU_RES_VIEW_FORMAT_FLOAT_4X32)
        return std::nullopt;
    const auto number = static_cast<unsigned>(format - CU_RES_VIEW_FORMAT_UINT_1X8);
    const Texels& texels = kTexels[number / 3];
    return exec::TexelFormat{texels.kind, texels.bits, kChannels[number % 3]};
}

exec::TexturePlane plane_of(const Array& array) {
    exec::TexturePlane plane;
    plane.va = array.va;
    plane.width = static_cast<std::uint32_t>(array.descriptor.Width);
    plane.height = static_cast<std::uint32_t>(array.rows());
    plane.depth = static_cast<std::uint32_t>(array.slices());
    plane.row_bytes = array.row_bytes();
    plane.slice_bytes = array.row_bytes() * array.rows();
    return plane;
}

CUresult texels_of(const Array& array, exec::Texture& out) {
    const auto format = texel_format(array.descriptor.Format, array.descriptor.NumChannels);
    if (!format) return CUDA_ERROR_INVALID_VALUE;
    out.format = *format;
    out.levels.push_back(plane_of(array));
    return CUDA_SUCCESS;
}

CUresult texels_of_array(CUarray handle, exec::Texture& out) {
    std::shared_ptr<Array> array;
    SIMGPU_TRY(find_array(handle, array));
    return texels_of(*array, out);
}

CUresult texels_of_mipmapped(CUmipmappedArray handle, exec::Texture& out) {
    std::shared_ptr<MipmappedArray> mipmapped;
    SIMGPU_TRY(find_mipmapped_array(handle, mipmapped));
    for (const auto& level : mipmapped->levels) SIMGPU_TRY(texels_of(*level, out));
    return CUDA_SUCCESS;
}

bool aligned_texels(CUdeviceptr va) {
    return va != 0 && va % kTextureAlignment == 0 && on_device(va);
}

/// Fetched by number; outside there is nothing, whatever the addressing says.
CUresult texels_of_linear(const CUDA_RESOURCE_DESC& given, exec::Texture& out) {
    const auto& linear = given.res.linear;
    const auto format = texel_format(linear.format, linear.numChannels);
    if (!format || !aligned_texels(linear.devPtr)) return CUDA_ERROR_INVALID_VALUE;
    const std::size_t texels = linear.sizeInBytes / format->bytes();
    if (texels == 0 || texels > kMaxLinearTexels) return CUDA_ERROR_INVALID_VALUE;
    out.format = *format;
    exec::TexturePlane plane;
    plane.va = linear.devPtr;
    plane.width = static_cast<std::uint32_t>(texels);
    out.levels.push_back(plane);
    out.address.fill(exec::AddressMode::Border);
    out.border = {};
    out.linear_filter = false;
    return CUDA_SUCCESS;
}

CUresult texels_of_pitched(const CUDA_RESOURCE_DESC& given, exec::Texture& out) {
    const auto& pitched = given.res.pitch2D;
    const auto format = texel_format(pitched.format, pitched.numChannels);
    if (!format || !aligned_texels(pitched.devPtr)) return CUDA_ERROR_INVALID_VALUE;
    const bool extents = pitched.width != 0 && pitched.width <= kMaxPitchedWidth &&
                         pitched.height != 0 && pitched.height <= kMaxPitchedHeight;
    const bool fits = pitched.pitchInBytes >= pitched.width * format->bytes() &&
                      pitched.pitchInBytes % kPitchAlignment == 0 &&
                      pitched.pitchInBytes <= kMaxPitchedBytes;
    if (!extents || !fits) return CUDA_ERROR_INVALID_VALUE;
    out.format = *format;
    exec::TexturePlane plane;
    plane.va = pitched.devPtr;
    plane.width = static_cast<std::uint32_t>(pitched.width);
    plane.height = static_cast<std::uint32_t>(pitched.height);
    plane.row_bytes = pitched.pitchInBytes;
    out.levels.push_back(plane);
    return CUDA_SUCCESS;
}

CUresult texels_of(const CUDA_RESOURCE_DESC& given, exec::Texture& out) {
    if (given.flags != 0) return CUDA_ERROR_INVALID_VALUE;
    switch (given.resType) {
        case CU_RESOURCE_TYPE_ARRAY:
            return texels_of_array(given.res.array.hArray, out);
        case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
            return texels_of_mipmapped(given.res.mipmap.hMipmappedArray, out);
        case CU_RESOURCE_TYPE_LINEAR:
            return texels_of_linear(given, out);
        case CU_RESOURCE_TYPE_PITCH2D:
            return texels_of_pitched(given, out);
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult sampling_of(const CUDA_TEXTURE_DESC& given, exec::Texture& out) {
    const auto is_filter = [](CUfilter_mode mode) {
        return mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR;
    };
    for (std::size_t axis = 0; axis < out.address.size(); ++axis) {
        const CUaddress_mode mode = given.addressMode[axis];
        if (mode < CU_TR_ADDRESS_MODE_WRAP || mode > CU_TR_ADDRESS_MODE_BORDER)
            return CUDA_ERROR_INVALID_VALUE;
        out.address[axis] = static_cast<exec::AddressMode>(mode);
    }
    if (!is_filter(given.filterMode) || !is_filter(given.mipmapFilterMode) ||
        (given.flags & ~kKnownFlags) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const auto flag = [&](unsigned which) { return (given.flags & which) != 0; };
    out.linear_filter = given.filterMode == CU_TR_FILTER_MODE_LINEAR;
    out.linear_between_levels = given.mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
    out.normalized_coordinates = flag(CU_TRSF_NORMALIZED_COORDINATES);
    out.read_as_integer = flag(CU_TRSF_READ_AS_INTEGER);
    out.srgb = flag(CU_TRSF_SRGB);
    out.level_bias = given.mipmapLevelBias;
    out.least_level = given.minMipmapLevelClamp;
    out.most_level = given.maxMipmapLevelClamp;
    std::copy_n(given.borderColor, out.border.size(), out.border.begin());
    return CUDA_SUCCESS;
}

/// Another format of the same size, and a part of the levels and layers. Compressed formats are
/// not built.
CUresult look_through(const CUDA_RESOURCE_VIEW_DESC& view, bool layered, exec::Texture& out) {
    const exec::TexturePlane& whole = out.levels.front();
    const auto or_one = [](std::size_t extent) { return std::max<std::size_t>(extent, 1); };
    if (view.format > CU_RES_VIEW_FORMAT_FLOAT_4X32) return CUDA_ERROR_NOT_SUPPORTED;
    if (view.width != whole.width || or_one(view.height) != whole.height ||
        (!layered && or_one(view.depth) != whole.depth))
        return CUDA_ERROR_INVALID_VALUE;
    if (view.firstMipmapLevel > view.lastMipmapLevel || view.lastMipmapLevel >= out.levels.size() ||
        view.firstLayer > view.lastLayer || (layered && view.lastLayer >= whole.depth))
        return CUDA_ERROR_INVALID_VALUE;
    if (view.format != CU_RES_VIEW_FORMAT_NONE) {
        const auto format = view_format(view.format);
        if (!format || format->bytes() != out.format.bytes()) return CUDA_ERROR_INVALID_VALUE;
        out.format = *format;
    }
    out.levels.resize(view.lastMipmapLevel + 1);
    out.levels.erase(out.levels.begin(), out.levels.begin() + view.firstMipmapLevel);
    for (exec::TexturePlane& plane : out.levels) {
        if (!layered) continue;
        plane.va += view.firstLayer * plane.slice_bytes;
        plane.depth = view.lastLayer - view.firstLayer + 1;
    }
    return CUDA_SUCCESS;
}

bool is_layered(const CUDA_RESOURCE_DESC& resource) {
    std::shared_ptr<Array> array;
    std::shared_ptr<MipmappedArray> mipmapped;
    if (resource.resType == CU_RESOURCE_TYPE_ARRAY)
        static_cast<void>(find_array(resource.res.array.hArray, array));
    else if (find_mipmapped_array(resource.res.mipmap.hMipmappedArray, mipmapped) == CUDA_SUCCESS)
        array = mipmapped->levels.front();
    constexpr unsigned kLayers = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP;
    return array != nullptr && (array->descriptor.Flags & kLayers) != 0;
}

}  // namespace

CUresult describe_texture(const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& texture,
                          const CUDA_RESOURCE_VIEW_DESC* view, exec::Texture& out) {
    const bool arrays = resource.resType == CU_RESOURCE_TYPE_ARRAY ||
                        resource.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    if (view != nullptr && !arrays) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(sampling_of(texture, out));
    SIMGPU_TRY(texels_of(resource, out));
    return view != nullptr ? look_through(*view, is_layered(resource), out) : CUDA_SUCCESS;
}

CUresult describe_surface(const CUDA_RESOURCE_DESC& resource, exec::Surface& out) {
    std::shared_ptr<Array> array;
    if (resource.resType != CU_RESOURCE_TYPE_ARRAY || resource.flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(find_array(resource.res.array.hArray, array));
    if ((array->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST) == 0) return CUDA_ERROR_INVALID_VALUE;
    const auto format = texel_format(array->descriptor.Format, array->descriptor.NumChannels);
    if (!format) return CUDA_ERROR_INVALID_VALUE;
    out = {plane_of(*array), *format};
    return CUDA_SUCCESS;
}

}  // namespace simgpu::driver
