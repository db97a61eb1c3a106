// What stands behind a convolution.
#pragma once
#include "number.cuh"

// out += bias + add, in place; `channels` is a multiple of eight.
template <class T> __device__ inline void finish(T *out, const float *bias, const T *add, i64 count, int channels) {
    for (i64 at = ((i64)blockIdx.x * blockDim.x + threadIdx.x) * WIDE; at < count; at += (i64)gridDim.x * blockDim.x * WIDE) {
        const int channel = at % channels;
        float x[WIDE], y[WIDE];
        load8(out + at, x);
        if (bias) {
            load8(bias + channel, y);
#pragma unroll
            for (int i = 0; i < WIDE; i++) x[i] += y[i];
        }
        if (add) {
            load8(add + at, y);
#pragma unroll
            for (int i = 0; i < WIDE; i++) x[i] += y[i];
        }
        store8(out + at, x);
    }
}

struct Grid {
    // of the sums: rows and columns of a frame
    int rows, columns;
    // of the result
    int height, width, channels;
    int step_t, step_h, step_w;
};

// The result out of sums on the grid of the padded input: every `step`-th place, plus bias and add.
template <class T> __device__ inline void gather(const float *sums, T *out, const float *bias, const T *add, Grid grid, i64 count) {
    for (i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += (i64)gridDim.x * blockDim.x) {
        const int channel = at % grid.channels;
        i64 rest = at / grid.channels;
        const int w = rest % grid.width;
        rest /= grid.width;
        const int h = rest % grid.height;
        const i64 t = rest / grid.height;
        const i64 from = ((t * grid.step_t * grid.rows + (i64)h * grid.step_h) * grid.columns + (i64)w * grid.step_w) * grid.channels;
        float x = sums[from + channel];
        if (bias) x += bias[channel];
        if (add) x += one(add[at]);
        put(out + at, x);
    }
}

// A convolution over an axis whose indices come in pairs is two of two taps each over the axis of half the length. All of them
// were computed as one, their results side by side in the channels; here they take their places. A place is twice the index in
// `parts`, plus which of the two.
struct Places {
    const int *t, *h, *w;
    // how many there are side by side for each axis: 1 or 2
    int of_h, of_w;
    // of `parts`
    int rows, columns;
    int height, width, channels, all;
};

// One block a row of the result.
template <class T> __device__ inline void place(const T *parts, T *out, const float *bias, const T *add, Places to) {
    const int vectors = to.channels / WIDE, h = to.h[blockIdx.x % to.height], t = to.t[blockIdx.x / to.height];
    const T *row = parts + ((i64)(t >> 1) * to.rows + (h >> 1)) * to.columns * to.all + ((t & 1) * to.of_h + (h & 1)) * to.of_w * to.channels;
    const i64 first = (i64)blockIdx.x * to.width * to.channels;
#pragma unroll 4
    for (int i = threadIdx.x; i < to.width * vectors; i += blockDim.x) {
        const int w = to.w[i / vectors], channel = i % vectors * WIDE;
        const i64 at = first + (i64)i * WIDE;
        float x[WIDE], y[WIDE];
        load8(row + (i64)(w >> 1) * to.all + (w & 1) * to.channels + channel, x);
        if (bias) {
            load8(bias + channel, y);
#pragma unroll
            for (int j = 0; j < WIDE; j++) x[j] += y[j];
        }
        if (add) {
            load8(add + at, y);
#pragma unroll
            for (int j = 0; j < WIDE; j++) x[j] += y[j];
        }
        store8(out + at, x);
    }
}

struct Fold {
    // taps of the weight, and of what is made of it
    int taps[3], folded[3];
    // parts of each axis
    int parts[3];
    // of each axis and part: which of `folded` each of `taps` is added to
    int reads[3][2][3];
    int outputs, inputs;
};

// Weights (parts * O, taps', I) of (O, taps, I): taps that read the same index are added up.
template <class T> __device__ inline void fold(const T *weight, T *out, Fold of, i64 count) {
    for (i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += (i64)gridDim.x * blockDim.x) {
        const int input = at % of.inputs;
        i64 rest = at / of.inputs;
        int tap[3], part[3];
        for (int axis = 2; axis >= 0; axis--) tap[axis] = rest % of.folded[axis], rest /= of.folded[axis];
        const i64 output = rest % of.outputs;
        rest /= of.outputs;
        for (int axis = 2; axis >= 0; axis--) part[axis] = rest % of.parts[axis], rest /= of.parts[axis];
        float sum = 0;
        for (int t = 0; t < of.taps[0]; t++)
            for (int h = 0; h < of.taps[1]; h++)
                for (int w = 0; w < of.taps[2]; w++) {
                    const int k[3] = {t, h, w};
                    bool mine = true;
                    for (int axis = 0; axis < 3; axis++) mine = mine && of.reads[axis][part[axis]][k[axis]] == tap[axis];
                    if (mine) sum += one(weight[(((output * of.taps[0] + t) * of.taps[1] + h) * of.taps[2] + w) * of.inputs + input]);
                }
        put(out + at, sum);
    }
}

// Numbers that look random, from -range to range: what engines are timed on.
template <class T> __device__ inline void scatter(T *out, float range, i64 count, int seed) {
    for (i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += (i64)gridDim.x * blockDim.x) {
        unsigned x = (unsigned)at * 2654435761u + (unsigned)seed * 40503u;
        x ^= x >> 16, x *= 2246822519u, x ^= x >> 13, x *= 3266489917u, x ^= x >> 16;
        put(out + at, range * (x * (2.0f / 4294967296.0f) - 1.0f));
    }
}

#define KERNEL(T, kind)                                                                                                        \
    extern "C" __global__ void finish_##kind(T *out, const float *bias, const T *add, i64 count, int channels) {               \
        finish<T>(out, bias, add, count, channels);                                                                            \
    }                                                                                                                          \
    extern "C" __global__ void gather_##kind(const float *sums, T *out, const float *bias, const T *add, Grid grid, i64 count) { \
        gather<T>(sums, out, bias, add, grid, count);                                                                          \
    }                                                                                                                          \
    extern "C" __global__ void place_##kind(const T *parts, T *out, const float *bias, const T *add, Places to) {              \
        place<T>(parts, out, bias, add, to);                                                                                   \
    }                                                                                                                          \
    extern "C" __global__ void scatter_##kind(T *out, float range, i64 count, int seed) { scatter<T>(out, range, count, seed); } \
    extern "C" __global__ void fold_##kind(const T *weight, T *out, Fold of, i64 count) { fold<T>(weight, out, of, count); }
EACH_KIND(KERNEL)
#undef KERNEL
