// Sums for the group norm, and the softmax.
#pragma once
#include "number.cuh"

// Pixels that are added up in single precision before the sum goes to double.
constexpr int SHORT = 64;

// Pixels that a thread has in flight.
constexpr int FLIGHT = 4;

// Sum and sum of squares of each group over a share of the pixels of one batch entry: grid (shares, batch), shared memory for two
// doubles a channel and row of threads, `partial` (batch, shares, groups, 2).
template <class T>
__device__ inline void group_sums(const T *clip, double *partial, i64 pixels, int channels, int groups, double *shared) {
    const int vectors = (channels + WIDE - 1) / WIDE, step = blockDim.x / vectors;
    const int first = threadIdx.x % vectors * WIDE, own = threadIdx.x / vectors;
    const bool whole = channels % WIDE == 0;
    double sum[WIDE] = {}, squares[WIDE] = {};
    if (own < step) {
        const T *entry = clip + (i64)blockIdx.y * pixels * channels;
        const i64 stride = (i64)gridDim.x * step;
        i64 at = (i64)blockIdx.x * step + own;
        while (at < pixels) {
            float a[WIDE] = {}, b[WIDE] = {};
            int n = 0;
            for (; n < SHORT && at + (FLIGHT - 1) * stride < pixels; n += FLIGHT) {
                float x[FLIGHT][WIDE];
#pragma unroll
                for (int p = 0; p < FLIGHT; p++)
                    load_up_to_8(entry + (at + p * stride) * channels, first, channels, whole, x[p]);
#pragma unroll
                for (int p = 0; p < FLIGHT; p++)
#pragma unroll
                    for (int i = 0; i < WIDE; i++) a[i] += x[p][i], b[i] = fmaf(x[p][i], x[p][i], b[i]);
                at += FLIGHT * stride;
            }
            for (; n < SHORT && at < pixels; n++, at += stride) {
                float x[WIDE];
                load_up_to_8(entry + at * channels, first, channels, whole, x);
#pragma unroll
                for (int i = 0; i < WIDE; i++) a[i] += x[i], b[i] = fmaf(x[i], x[i], b[i]);
            }
#pragma unroll
            for (int i = 0; i < WIDE; i++) sum[i] += a[i], squares[i] += b[i];
        }
    }
    // rows of threads one after the other, so that the order of the additions is always the same
    for (int i = threadIdx.x; i < 2 * vectors * WIDE; i += blockDim.x) shared[i] = 0;
    for (int row = 0; row < step; row++) {
        __syncthreads();
        if (own == row)
            for (int i = 0; i < WIDE; i++) shared[2 * (first + i)] += sum[i], shared[2 * (first + i) + 1] += squares[i];
    }
    __syncthreads();
    const int each = channels / groups;
    for (int at = threadIdx.x; at < 2 * groups; at += blockDim.x) {
        double all = 0;
        for (int i = 0; i < each; i++) all += shared[2 * (at / 2 * each + i) + at % 2];
        partial[((i64)blockIdx.y * gridDim.x + blockIdx.x) * 2 * groups + at] = all;
    }
}

// The shares added up: grid (batch), a warp a number.
extern "C" __global__ void add_shares(const double *partial, double *out, int shares, int numbers) {
    const int lane = threadIdx.x % 32;
    for (int at = threadIdx.x / 32; at < numbers; at += blockDim.x / 32) {
        double all = 0;
        for (int share = lane; share < shares; share += 32) all += partial[((i64)blockIdx.x * shares + share) * numbers + at];
        for (int offset = 16; offset; offset /= 2) all += __shfl_xor_sync(0xffffffffu, all, offset);
        if (lane == 0) out[(i64)blockIdx.x * numbers + at] = all;
    }
}

// Each row of `scores` (rows, stride) to weights that add up to 1, over its first `count` numbers; zeros from there to the stride.
template <class T> __device__ inline void softmax(const float *scores, T *out, int count, i64 stride) {
    __shared__ float part[2][32];
    const float *row = scores + (i64)blockIdx.x * stride;
    T *to = out + (i64)blockIdx.x * stride;
    float top = -INFINITY, sum = 0;
    for (int i = threadIdx.x * 4; i < count; i += blockDim.x * 4) {
        const float4 four = *reinterpret_cast<const float4 *>(row + i);
        const float x[4] = {four.x, i + 1 < count ? four.y : -INFINITY, i + 2 < count ? four.z : -INFINITY, i + 3 < count ? four.w : -INFINITY};
        const float most = fmaxf(fmaxf(x[0], x[1]), fmaxf(x[2], x[3]));
        if (most > top) sum *= __expf(top - most), top = most;
        for (int j = 0; j < 4; j++) sum += __expf(x[j] - top);
    }
    float most = top;
    for (int offset = 16; offset; offset /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, offset));
    if (threadIdx.x % 32 == 0) part[0][threadIdx.x / 32] = most;
    __syncthreads();
    for (int i = 0; i < blockDim.x / 32; i++) most = fmaxf(most, part[0][i]);
    sum = sum == 0 ? 0 : sum * __expf(top - most);
    for (int offset = 16; offset; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0) part[1][threadIdx.x / 32] = sum;
    __syncthreads();
    float all = 0;
    for (int i = 0; i < blockDim.x / 32; i++) all += part[1][i];
    const float factor = 1.0f / all;
    for (int i = threadIdx.x * 4; i < stride; i += blockDim.x * 4) {
        const float4 four = *reinterpret_cast<const float4 *>(row + i);
        const float x[4] = {four.x, four.y, four.z, four.w};
        for (int j = 0; j < 4; j++) put(to + i + j, i + j < count ? __expf(x[j] - most) * factor : 0.0f);
    }
}

#define KERNEL(T, kind)                                                                                                         \
    extern "C" __global__ void group_sums_##kind(const T *clip, double *partial, i64 pixels, int channels, int groups) {        \
        extern __shared__ double shared[];                                                                                      \
        group_sums<T>(clip, partial, pixels, channels, groups, shared);                                                         \
    }                                                                                                                           \
    extern "C" __global__ void softmax_##kind(const float *scores, T *out, int count, i64 stride) {                             \
        softmax<T>(scores, out, count, stride);                                                                                 \
    }
EACH_KIND(KERNEL)
#undef KERNEL
