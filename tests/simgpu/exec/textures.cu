// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Reads and writes through texture and surface objects, one thread each.

#define SAMPLE(name, type, expression)                                                      \
    extern "C" __global__ void name(cudaTextureObject_t t, const float4* points, type* out, \
                                    int count) {                                            \
        const int i = blockIdx.x * blockDim.x + threadIdx.x;                                \
        if (i >= count) return;                                                             \
        const float4 p = points[i];                                                         \
        out[i] = expression;                                                                \
    }

SAMPLE(line, float4, tex1D<float4>(t, p.x))
SAMPLE(plane, float4, (tex2D<float4>(t, p.x, p.y)))
SAMPLE(volume, float4, (tex3D<float4>(t, p.x, p.y, p.z)))
SAMPLE(lines, float4, (tex1DLayered<float4>(t, p.x, static_cast<int>(p.w))))
SAMPLE(planes, float4, (tex2DLayered<float4>(t, p.x, p.y, static_cast<int>(p.w))))
SAMPLE(cube, float4, (texCubemap<float4>(t, p.x, p.y, p.z)))
SAMPLE(cubes, float4, (texCubemapLayered<float4>(t, p.x, p.y, p.z, static_cast<int>(p.w))))
SAMPLE(plane_level, float4, (tex2DLod<float4>(t, p.x, p.y, p.w)))
SAMPLE(plane_gradient, float4,
       (tex2DGrad<float4>(t, p.x, p.y, make_float2(p.z, 0), make_float2(0, p.w))))
SAMPLE(plane_integers, int4, (tex2D<int4>(t, p.x, p.y)))
SAMPLE(plane_scalar, float, (tex2D<float>(t, p.x, p.y)))
SAMPLE(gather_red, float4, (tex2Dgather<float4>(t, p.x, p.y, 0)))
SAMPLE(gather_blue, float4, (tex2Dgather<float4>(t, p.x, p.y, 2)))
SAMPLE(fetch_scalar, float, tex1Dfetch<float>(t, static_cast<int>(p.x)))
SAMPLE(fetch_short, short2, tex1Dfetch<short2>(t, static_cast<int>(p.x)))

/// Every second thread looks through the other texture.
extern "C" __global__ void choose(cudaTextureObject_t even, cudaTextureObject_t odd, float* out) {
    const int i = threadIdx.x;
    out[i] = tex1Dfetch<float>((i & 1) != 0 ? odd : even, i);
}

extern "C" __global__ void resident(cudaTextureObject_t t, int* out) {
    bool there = false;
    const float value = tex2D<float>(t, 0.5F, 0.5F, &there);
    out[threadIdx.x] = (there ? 1000 : 0) + static_cast<int>(value);
}

/// Moves a place to its neighbour on the right in another surface, doubled.
extern "C" __global__ void shift_plane(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
    const int x = static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.x);
    const float2 v = surf2Dread<float2>(from, x * 8, y, cudaBoundaryModeTrap);
    surf2Dwrite(make_float2(v.x * 2, v.y * 2), to, (x + 1) * 8, y, cudaBoundaryModeZero);
}

#define SURFACE_READ(name, type, expression)                                            \
    extern "C" __global__ void name(cudaSurfaceObject_t s, const int4* at, type* out) { \
        const int4 p = at[threadIdx.x];                                                 \
        out[threadIdx.x] = expression;                                                  \
    }

SURFACE_READ(read_byte_zero, unsigned char,
             (surf2Dread<unsigned char>(s, p.x, p.y, cudaBoundaryModeZero)))
SURFACE_READ(read_short_clamped, short, (surf2Dread<short>(s, p.x, p.y, cudaBoundaryModeClamp)))
SURFACE_READ(read_four_trap, uint4, (surf2Dread<uint4>(s, p.x, p.y, cudaBoundaryModeTrap)))
SURFACE_READ(read_two_longs, longlong2, (surf2Dread<longlong2>(s, p.x, p.y, cudaBoundaryModeZero)))
SURFACE_READ(read_line, int, (surf1Dread<int>(s, p.x, cudaBoundaryModeZero)))
SURFACE_READ(read_volume, int, (surf3Dread<int>(s, p.x, p.y, p.z, cudaBoundaryModeZero)))
SURFACE_READ(read_lines, int, (surf1DLayeredread<int>(s, p.x, p.w, cudaBoundaryModeZero)))
SURFACE_READ(read_planes, int, (surf2DLayeredread<int>(s, p.x, p.y, p.w, cudaBoundaryModeZero)))

#define SURFACE_WRITE(name, type, statement)                                                 \
    extern "C" __global__ void name(cudaSurfaceObject_t s, const int4* at, const type* in) { \
        const int4 p = at[threadIdx.x];                                                      \
        const type v = in[threadIdx.x];                                                      \
        statement;                                                                           \
    }

SURFACE_WRITE(write_byte_clamped, unsigned char, surf2Dwrite(v, s, p.x, p.y, cudaBoundaryModeClamp))
SURFACE_WRITE(write_four_trap, uint4, surf2Dwrite(v, s, p.x, p.y, cudaBoundaryModeTrap))
SURFACE_WRITE(write_volume, int, surf3Dwrite(v, s, p.x, p.y, p.z, cudaBoundaryModeZero))
SURFACE_WRITE(write_planes, int, surf2DLayeredwrite(v, s, p.x, p.y, p.w, cudaBoundaryModeZero))
