// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Kernels that kernels_test.cpp compares with computations on the host.

#include <cooperative_groups.h>

extern "C" {

__global__ void saxpy(float* y, const float* x, float a, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void block_sum(const float* in, float* out, int n) {
    __shared__ float partial[32];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0.0f;
        for (int offset = 16; offset > 0; offset /= 2)
            sum += __shfl_down_sync(0xffffffffu, sum, offset);
        if (threadIdx.x == 0) out[blockIdx.x] = sum;
    }
}

__global__ void tree_sum(const float* in, float* out) {
    extern __shared__ float values[];
    const int t = threadIdx.x;
    values[t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) values[t] += values[t + half];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = values[0];
}

__global__ void softmax_rows(const float* in, float* out, int columns) {
    __shared__ float scratch[32];
    const float* row = in + blockIdx.x * columns;
    float top = -1e30f;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) top = fmaxf(top, row[c]);
    for (int offset = 16; offset > 0; offset /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = top;
    __syncthreads();
    top = scratch[0];
    for (int w = 1; w < blockDim.x / 32; ++w) top = fmaxf(top, scratch[w]);
    __syncthreads();
    float sum = 0;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += expf(row[c] - top);
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int w = 0; w < blockDim.x / 32; ++w) sum += scratch[w];
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        out[blockIdx.x * columns + c] = expf(row[c] - top) / sum;
}

// Online softmax of causal attention scores, one warp a row.
__global__ void attention_softmax(float* out, const float* in, float scale, int rows, int t_count) {
    const int lane = threadIdx.x % 32;
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= rows) return;
    const int last = row % t_count;
    const float* x = in + row * t_count;
    float top = -3.0e38f, sum = 0.0f;
    for (int i = lane; i <= last; i += 32) {
        const float before = top;
        top = fmaxf(top, x[i]);
        sum = sum * expf(scale * (before - top)) + expf(scale * (x[i] - top));
    }
    float all_top = top;
    for (int offset = 16; offset > 0; offset /= 2)
        all_top = fmaxf(all_top, __shfl_xor_sync(0xffffffffu, all_top, offset));
    sum *= expf(scale * (top - all_top));
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    const float norm = 1.0f / sum;
    for (int i = lane; i < t_count; i += 32)
        __stcs(out + row * t_count + i,
               i <= last ? expf(scale * (__ldcs(x + i) - all_top)) * norm : 0.0f);
}

__global__ void layernorm_forward(float* out, float* mean, float* rstd, const float* in,
                                  const float* weight, const float* bias, int rows, int channels) {
    const int lane = threadIdx.x % 32;
    const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    const float* x = in + row * channels;
    float sum = 0;
    for (int c = lane; c < channels; c += 32) sum += x[c];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    const float m = sum / channels;
    float squares = 0;
    for (int c = lane; c < channels; c += 32) squares += (x[c] - m) * (x[c] - m);
    for (int offset = 16; offset > 0; offset /= 2)
        squares += __shfl_xor_sync(0xffffffffu, squares, offset);
    const float s = rsqrtf(squares / channels + 1e-5f);
    if (lane == 0) {
        mean[row] = m;
        rstd[row] = s;
    }
    for (int c = lane; c < channels; c += 32)
        out[row * channels + c] = s * (x[c] - m) * weight[c] + bias[c];
}

__global__ void layernorm_backward(float* dx, float* dweight, float* dbias, const float* dout,
                                   const float* in, const float* weight, const float* mean,
                                   const float* rstd, int rows, int channels) {
    extern __shared__ float sums[];
    float* bias_sums = sums;
    float* weight_sums = sums + channels;
    for (int c = threadIdx.x; c < 2 * channels; c += blockDim.x) sums[c] = 0;
    __syncthreads();
    const int lane = threadIdx.x % 32;
    const int warps = blockDim.x / 32 * gridDim.x;
    for (int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; row < rows; row += warps) {
        float mean_dnorm = 0, mean_dnorm_norm = 0;
        for (int c = lane; c < channels; c += 32) {
            const float norm = (in[row * channels + c] - mean[row]) * rstd[row];
            const float dnorm = weight[c] * dout[row * channels + c];
            mean_dnorm += dnorm;
            mean_dnorm_norm += dnorm * norm;
        }
        for (int offset = 16; offset > 0; offset /= 2) {
            mean_dnorm += __shfl_xor_sync(0xffffffffu, mean_dnorm, offset);
            mean_dnorm_norm += __shfl_xor_sync(0xffffffffu, mean_dnorm_norm, offset);
        }
        mean_dnorm /= channels;
        mean_dnorm_norm /= channels;
        for (int c = lane; c < channels; c += 32) {
            const float d = dout[row * channels + c];
            const float norm = (in[row * channels + c] - mean[row]) * rstd[row];
            atomicAdd(&bias_sums[c], d);
            atomicAdd(&weight_sums[c], norm * d);
            dx[row * channels + c] +=
                (weight[c] * d - mean_dnorm - norm * mean_dnorm_norm) * rstd[row];
        }
    }
    __syncthreads();
    for (int c = threadIdx.x; c < channels; c += blockDim.x) {
        atomicAdd(&dbias[c], bias_sums[c]);
        atomicAdd(&dweight[c], weight_sums[c]);
    }
}

__global__ void adamw(float* p, const float* g, float* m, float* v, int n, float rate, float beta1,
                      float beta2, float correction1, float correction2, float epsilon,
                      float decay) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    m[i] = beta1 * m[i] + (1.0f - beta1) * g[i];
    v[i] = beta2 * v[i] + (1.0f - beta2) * g[i] * g[i];
    p[i] -= rate * (m[i] / correction1 / (sqrtf(v[i] / correction2) + epsilon) + decay * p[i]);
}

// Loss and gradient of a softmax classifier, one block a row, four logits at a time.
__global__ void fused_classifier(float* logits, float* losses, const int* targets, int columns,
                                 int padded) {
    __shared__ float tops[32], sums[32];
    float* row = logits + blockIdx.x * padded;
    float top = -3.0e38f, sum = 0;
    for (int c = threadIdx.x; c < padded / 4; c += blockDim.x) {
        const float4 four = reinterpret_cast<const float4*>(row)[c];
        const float values[4] = {four.x, four.y, four.z, four.w};
        for (int k = 0; k < 4; ++k) {
            if (c * 4 + k >= columns) continue;
            const float before = top;
            top = fmaxf(top, values[k]);
            sum = sum * expf(before - top) + expf(values[k] - top);
        }
    }
    float warp_top = top;
    for (int offset = 16; offset > 0; offset /= 2)
        warp_top = fmaxf(warp_top, __shfl_down_sync(0xffffffffu, warp_top, offset));
    warp_top = __shfl_sync(0xffffffffu, warp_top, 0);
    sum *= expf(top - warp_top);
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0) {
        tops[threadIdx.x / 32] = warp_top;
        sums[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    float all_top = tops[0], all = 0;
    for (int w = 1; w < blockDim.x / 32; ++w) all_top = fmaxf(all_top, tops[w]);
    for (int w = 0; w < blockDim.x / 32; ++w) all += sums[w] * expf(tops[w] - all_top);
    const int target = targets[blockIdx.x];
    if (threadIdx.x == 0) losses[blockIdx.x] = -logf(expf(row[target] - all_top) / all);
    __syncthreads();
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        row[c] = expf(row[c] - all_top) / all - (c == target ? 1.0f : 0.0f);
}

__global__ void matmul_tiled(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float ta[16][17], tb[16][17];
    const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int tile = 0; tile < (k + 15) / 16; ++tile) {
        const int ka = tile * 16 + threadIdx.x, kb = tile * 16 + threadIdx.y;
        ta[threadIdx.y][threadIdx.x] = row < m && ka < k ? a[row * k + ka] : 0.0f;
        tb[threadIdx.y][threadIdx.x] = column < n && kb < k ? b[kb * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}

__global__ void histogram(const unsigned char* in, unsigned* bins, int n) {
    __shared__ unsigned local[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x) local[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[in[i]], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x) atomicAdd(&bins[b], local[b]);
}

__global__ void prefix_sum(const int* in, int* out) {
    __shared__ int totals[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int value = in[threadIdx.x];
    for (int offset = 1; offset < 32; offset *= 2) {
        const int below = __shfl_up_sync(0xffffffffu, value, offset);
        if (lane >= offset) value += below;
    }
    if (lane == 31) totals[warp] = value;
    __syncthreads();
    if (warp == 0) {
        int total = lane < blockDim.x / 32 ? totals[lane] : 0;
        for (int offset = 1; offset < 32; offset *= 2) {
            const int below = __shfl_up_sync(0xffffffffu, total, offset);
            if (lane >= offset) total += below;
        }
        totals[lane] = total;
    }
    __syncthreads();
    out[threadIdx.x] = value + (warp > 0 ? totals[warp - 1] : 0);
}

__global__ void bitonic_sort(int* values) {
    extern __shared__ int shared_values[];
    shared_values[threadIdx.x] = values[threadIdx.x];
    __syncthreads();
    for (int k = 2; k <= blockDim.x; k *= 2) {
        for (int j = k / 2; j > 0; j /= 2) {
            const int other = threadIdx.x ^ j;
            if (other > threadIdx.x) {
                const int a = shared_values[threadIdx.x], b = shared_values[other];
                if ((a > b) == ((threadIdx.x & k) == 0)) {
                    shared_values[threadIdx.x] = b;
                    shared_values[other] = a;
                }
            }
            __syncthreads();
        }
    }
    values[threadIdx.x] = shared_values[threadIdx.x];
}

__global__ void transpose(const float* in, float* out, int width, int height) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) {
        if (x < width && y + j < height)
            tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    }
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) {
        if (x < height && y + j < width)
            out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
    }
}

__global__ void scale_float4(float4* values, float by, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = values[i];
    v.x *= by;
    v.y += by;
    v.z -= by;
    v.w /= by;
    values[i] = v;
}

__global__ void double_math(const double* in, double* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const double x = in[i];
    out[i * 6 + 0] = exp(x);
    out[i * 6 + 1] = log(fabs(x) + 1.0);
    out[i * 6 + 2] = sqrt(fabs(x));
    out[i * 6 + 3] = sin(x);
    out[i * 6 + 4] = pow(fabs(x), 1.5);
    out[i * 6 + 5] = 1.0 / (x + 20.0);
}

__global__ void float_math(const float* in, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float x = in[i];
    out[i * 12 + 0] = expf(x);
    out[i * 12 + 1] = logf(fabsf(x));
    out[i * 12 + 2] = tanhf(x);
    out[i * 12 + 3] = powf(fabsf(x), 1.7f);
    out[i * 12 + 4] = sinf(x);
    out[i * 12 + 5] = cosf(x * 1000.0f);
    out[i * 12 + 6] = erff(x);
    out[i * 12 + 7] = __expf(x);
    out[i * 12 + 8] = fmodf(x, 0.75f);
    out[i * 12 + 9] = cbrtf(x);
    out[i * 12 + 10] = atan2f(x, 2.0f);
    out[i * 12 + 11] = log1pf(fabsf(x));
}

__global__ void integer_math(const int* a, const int* b, long long* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const long long wide = (long long)a[i] * 1000003LL + b[i];
    out[i * 8 + 0] = b[i] ? a[i] / b[i] : 0;
    out[i * 8 + 1] = b[i] ? a[i] % b[i] : 0;
    out[i * 8 + 2] = b[i] ? (unsigned)a[i] / (unsigned)b[i] : 0;
    out[i * 8 + 3] = b[i] ? wide / b[i] : 0;
    out[i * 8 + 4] = a[i] / 7;
    out[i * 8 + 5] = (unsigned)a[i] % 1000u;
    out[i * 8 + 6] = __mulhi(a[i], b[i]);
    out[i * 8 + 7] = __popc(a[i]) + __clz(b[i]) + __ffs(a[i]) + (int)__brev(b[i] & 0xff);
}

// Lanes with different numbers of rounds, breaks, continues and early returns.
// Each round needs what all other CTAs wrote in the one before.
__global__ void grid_rounds(int* values, int n, int rounds) {
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    const int i = static_cast<int>(grid.thread_rank());
    for (int round = 0; round < rounds; ++round) {
        const int next = i < n ? values[(i + 1) % n] : 0;
        grid.sync();
        if (i < n) values[i] = next + 1;
        grid.sync();
    }
}

// Row sums of a block in one pass after another. The partial sums are written again without a
// barrier after they were read, as in many a published softmax.
__global__ void repeated_sums(const float* in, float* out, int rows, int columns) {
    __shared__ float partial[32];
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    if (warp == 0) partial[lane] = 0;
    for (int row = 0; row < rows; ++row) {
        float sum = 0;
        for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += in[row * columns + c];
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0U, sum, step);
        partial[warp] = sum;
        __syncthreads();
        sum = partial[lane];
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0U, sum, step);
        out[row * blockDim.x + threadIdx.x] = sum;
    }
}

__global__ void wander(const int* in, int* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = in[i], steps = 0;
    if (x < 0) {
        out[i] = -1;
        return;
    }
    while (x != 1) {
        if (steps > 60) break;
        ++steps;
        if (x % 2 == 0) {
            x /= 2;
            continue;
        }
        for (int k = 0; k < x % 5; ++k) {
            if (k == 3) break;
            steps += k;
        }
        x = 3 * x + 1;
    }
    switch (i % 7) {
        case 0:
            steps += 100;
            break;
        case 1:
            steps *= 2;
            break;
        case 2:
            steps -= 7;  // falls through
        case 3:
            steps ^= 5;
            break;
        case 4:
            steps = ~steps;
            break;
        case 5:
            steps = steps << 3;
            break;
        default:
            steps += x;
    }
    out[i] = steps;
}

__global__ void return_before_barrier(int* out) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    if (threadIdx.x % 3 == 1) return;
    atomicAdd(&sum, 1);
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void spin_lock(int* lock, int* counter) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    *(volatile int*)counter += 1;
    __threadfence();
    atomicExch(lock, 0);
}

// Each block waits for the one before it.
__global__ void chain(volatile int* flags, int* order) {
    if (threadIdx.x == 0) {
        if (blockIdx.x + 1 < gridDim.x) {
            while (flags[blockIdx.x + 1] == 0) {
            }
        }
        order[blockIdx.x] = atomicAdd(order + gridDim.x, 1);
        __threadfence();
        flags[blockIdx.x] = 1;
    }
}

__global__ void barrier_votes(const int* in, int* out) {
    const int t = threadIdx.x;
    out[t * 3 + 0] = __syncthreads_count(in[t] > 3);
    out[t * 3 + 1] = __syncthreads_and(in[t] > 0);
    out[t * 3 + 2] = __syncthreads_or(in[t] > 8);
}

__global__ void warp_votes(const int* in, unsigned* out) {
    const int t = threadIdx.x;
    out[t * 8 + 0] = __ballot_sync(0xffffffffu, in[t] & 1);
    out[t * 8 + 1] = __all_sync(0xffffffffu, in[t] >= 0);
    out[t * 8 + 2] = __any_sync(0xffffffffu, in[t] == 7);
    out[t * 8 + 3] = __activemask();
    unsigned half = 0;
    if (t % 2 == 0)
        half = __ballot_sync(0x55555555u, in[t] & 2);
    else
        half = __ballot_sync(0xaaaaaaaau, in[t] & 2);
    out[t * 8 + 4] = half;
    out[t * 8 + 5] = __shfl_sync(0xffffffffu, in[t], 5, 8);
    out[t * 8 + 6] = __shfl_up_sync(0xffffffffu, in[t], 3, 16);
    out[t * 8 + 7] = __shfl_down_sync(0xffffffffu, in[t], 2);
}

__global__ void im2col(const float* image, float* columns, int channels, int height, int width,
                       int kernel, int pad, int stride, int out_h, int out_w) {
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= channels * out_h * out_w) return;
    const int w = index % out_w, h = index / out_w % out_h, c = index / out_w / out_h;
    for (int i = 0; i < kernel; ++i) {
        for (int j = 0; j < kernel; ++j) {
            const int y = h * stride - pad + i, x = w * stride - pad + j;
            columns[((c * kernel + i) * kernel + j) * out_h * out_w + h * out_w + w] =
                y >= 0 && x >= 0 && y < height && x < width ? image[(c * height + y) * width + x]
                                                            : 0;
        }
    }
}

__global__ void col2im(const float* columns, float* image, int channels, int height, int width,
                       int kernel, int pad, int stride, int out_h, int out_w) {
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= channels * height * width) return;
    const int x = index % width + pad, y = index / width % height + pad, c = index / width / height;
    float sum = 0;
    const int w0 = x < kernel ? 0 : (x - kernel) / stride + 1, w1 = min(x / stride + 1, out_w);
    const int h0 = y < kernel ? 0 : (y - kernel) / stride + 1, h1 = min(y / stride + 1, out_h);
    for (int h = h0; h < h1; ++h) {
        for (int w = w0; w < w1; ++w)
            sum +=
                columns[((c * kernel + y - h * stride) * kernel + x - w * stride) * out_h * out_w +
                        h * out_w + w];
    }
    image[index] += sum;
}

__global__ void maxpool(const float* in, float* out, int* where, int channels, int height,
                        int width, int size, int stride) {
    const int out_h = (height - size) / stride + 1, out_w = (width - size) / stride + 1;
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= channels * out_h * out_w) return;
    const int w = index % out_w, h = index / out_w % out_h, c = index / out_w / out_h;
    float best = -INFINITY;
    int best_at = -1;
    for (int i = 0; i < size; ++i) {
        for (int j = 0; j < size; ++j) {
            const int at = (c * height + h * stride + i) * width + w * stride + j;
            if (in[at] > best) {
                best = in[at];
                best_at = at;
            }
        }
    }
    out[index] = best;
    where[index] = best_at;
}

__global__ void batchnorm_statistics(const float* x, float* mean, float* variance, int batch,
                                     int filters, int spatial) {
    __shared__ float sums[128], squares[128];
    const int f = blockIdx.x;
    float sum = 0, square = 0;
    for (int i = threadIdx.x; i < batch * spatial; i += blockDim.x) {
        const float v = x[(i / spatial * filters + f) * spatial + i % spatial];
        sum += v;
        square += v * v;
    }
    sums[threadIdx.x] = sum;
    squares[threadIdx.x] = square;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int t = 1; t < blockDim.x; ++t) {
            sum += sums[t];
            square += squares[t];
        }
        mean[f] = sum / (batch * spatial);
        variance[f] = square / (batch * spatial) - mean[f] * mean[f];
    }
}

__global__ void dropout(float* x, const float* random, float probability, float scale, int n) {
    const int i = (blockIdx.x + blockIdx.y * gridDim.x) * blockDim.x + threadIdx.x;
    if (i < n) x[i] = random[i] < probability ? 0 : x[i] * scale;
}

__global__ void add_bias(float* x, const float* bias, int batch, int n, int spatial) {
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < batch * n * spatial) x[index] += bias[index / spatial % n];
}

}  // extern "C"
