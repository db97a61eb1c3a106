// What stands in front of a convolution: normalise, activate, pad and enlarge, into the buffer it reads.
#pragma once
#include "number.cuh"

struct Source {
    const void *front, *body;
    int front_frames, height, width, channels;
};
struct Maps {
    // Where each index of the buffer comes from; -1: zero.
    const int *t, *h, *w;
};

template <class T> __device__ inline const T *row_of(const Source &from, int t, int h) {
    const i64 row = (i64)from.width * from.channels;
    const bool front = t < from.front_frames;
    const T *frame = front ? (const T *)from.front + (i64)t * from.height * row
                           : (const T *)from.body + (i64)(t - from.front_frames) * from.height * row;
    return frame + h * row;
}

// One block a row of the buffer; a thread keeps to its eight channels, so that their scale and shift stay in registers.
template <class T>
__device__ inline void prepare(Source from, Maps maps, T *out, const float *scale, const float *shift, int activate, int rows,
                               int columns, int padded) {
    const int vectors = padded / WIDE, step = blockDim.x / vectors;
    const int first = threadIdx.x % vectors * WIDE;
    const bool whole = from.channels % WIDE == 0;
    const int t = maps.t[blockIdx.x / rows], h = maps.h[blockIdx.x % rows];
    T *to = out + (i64)blockIdx.x * columns * padded + first;
    if (threadIdx.x >= step * vectors) return;
    float a[WIDE], b[WIDE];
#pragma unroll
    for (int i = 0; i < WIDE; i++) {
        const bool is = scale && first + i < from.channels;
        a[i] = is ? scale[first + i] : 1.0f;
        b[i] = is ? shift[first + i] : 0.0f;
    }
    const bool zero = t < 0 || h < 0;
    const T *row = zero ? nullptr : row_of<T>(from, t, h);
#pragma unroll 4
    for (int at = threadIdx.x / vectors; at < columns; at += step) {
        const int w = zero ? -1 : maps.w[at];
        float x[WIDE] = {};
        if (w >= 0) {
            load_up_to_8(row + (i64)w * from.channels, first, from.channels, whole, x);
#pragma unroll
            for (int i = 0; i < WIDE; i++) {
                x[i] = fmaf(x[i], a[i], b[i]);
                if (activate) x[i] = silu<T>(x[i]);
            }
        }
        store8(to + (i64)at * padded, x);
    }
}

// The same after a norm over the channels of each pixel: `lanes` threads of a warp share a pixel, each with up to N times eight
// channels, and have P pixels in flight.
template <class T, int N, int P>
__device__ inline void prepare_rms(const Source &from, const Maps &maps, T *out, const float *gamma, int activate, int rows, int columns,
                                   int padded, int lanes) {
    const int lane = threadIdx.x % lanes, step = blockDim.x / lanes;
    const bool whole = from.channels % WIDE == 0;
    const int t = maps.t[blockIdx.x / rows], h = maps.h[blockIdx.x % rows];
    const bool zero = t < 0 || h < 0;
    const T *row = zero ? nullptr : row_of<T>(from, t, h);
    T *to = out + (i64)blockIdx.x * columns * padded;
    const float root = sqrtf((float)from.channels);
    float g[N][WIDE];
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < WIDE; i++) {
            const int channel = (n * lanes + lane) * WIDE + i;
            g[n][i] = channel < from.channels ? gamma[channel] * root : 0.0f;
        }
    // all lanes of a warp take part in the sums, so all go round equally often
    for (int base = 0; base < columns; base += step * P) {
        float x[P][N][WIDE] = {}, sum[P] = {};
#pragma unroll
        for (int p = 0; p < P; p++) {
            const int at = base + p * step + threadIdx.x / lanes;
            const int w = zero || at >= columns ? -1 : maps.w[at];
#pragma unroll
            for (int n = 0; n < N; n++) {
                const int first = (n * lanes + lane) * WIDE;
                if (w >= 0 && first < from.channels) load_up_to_8(row + (i64)w * from.channels, first, from.channels, whole, x[p][n]);
            }
        }
#pragma unroll
        for (int p = 0; p < P; p++)
#pragma unroll
            for (int n = 0; n < N; n++)
#pragma unroll
                for (int i = 0; i < WIDE; i++) sum[p] = fmaf(x[p][n][i], x[p][n][i], sum[p]);
        for (int offset = lanes / 2; offset; offset /= 2)
#pragma unroll
            for (int p = 0; p < P; p++) sum[p] += __shfl_xor_sync(0xffffffffu, sum[p], offset);
#pragma unroll
        for (int p = 0; p < P; p++) {
            const int at = base + p * step + threadIdx.x / lanes;
            const float factor = 1.0f / fmaxf(sqrtf(sum[p]), 1e-12f);
#pragma unroll
            for (int n = 0; n < N; n++) {
                const int first = (n * lanes + lane) * WIDE;
                if (at >= columns || first >= padded) continue;
#pragma unroll
                for (int i = 0; i < WIDE; i++) {
                    x[p][n][i] *= factor * g[n][i];
                    if (activate) x[p][n][i] = silu<T>(x[p][n][i]);
                }
                store8(to + (i64)at * padded + first, x[p][n]);
            }
        }
    }
}

#define RMS(T, kind, N, P)                                                                                                        \
    extern "C" __global__ void prepare_rms##N##_##kind(Source from, Maps maps, T *out, const float *gamma, int activate, int rows,  \
                                                       int columns, int padded, int lanes) {                                      \
        prepare_rms<T, N, P>(from, maps, out, gamma, activate, rows, columns, padded, lanes);                                     \
    }
#define KERNEL(T, kind)                                                                                                           \
    extern "C" __global__ void prepare_##kind(Source from, Maps maps, T *out, const float *scale, const float *shift, int activate, \
                                              int rows, int columns, int padded) {                                                \
        prepare<T>(from, maps, out, scale, shift, activate, rows, columns, padded);                                               \
    }                                                                                                                             \
    RMS(T, kind, 1, 4)                                                                                                            \
    RMS(T, kind, 2, 2)                                                                                                            \
    RMS(T, kind, 3, 2)                                                                                                            \
    RMS(T, kind, 4, 1)
EACH_KIND(KERNEL)
#undef KERNEL
#undef RMS
