// Convolutions of few channels out, such as the last of a decoder: tensor cores would idle, and memory is what they wait for.
#pragma once
#include "number.cuh"

struct Window {
    int taps_t, taps_h, taps_w;
    int step_t, step_h, step_w;
    // of the padded input
    int rows, columns, padded;
    // of the result
    int height, width, outputs;
};

// Pixels side by side, and outputs, that a group of threads adds up at once.
constexpr int STRIP = 8, TOGETHER = 3;

// `lanes` threads share a strip of pixels, each with its own channels. Grid: rows of the result (x), strips (y).
template <class T>
__device__ inline void narrow(const T *in, const T *weight, const float *bias, const T *add, T *out, Window of, int lanes) {
    const int lane = threadIdx.x % lanes;
    const int x0 = (blockIdx.y * (blockDim.x / lanes) + threadIdx.x / lanes) * STRIP;
    const int t = blockIdx.x / of.height, h = blockIdx.x % of.height;
    const int taps = of.taps_t * of.taps_h * of.taps_w;
    const int last = (of.width - 1) * of.step_w;
    for (int o = 0; o < of.outputs; o += TOGETHER) {
        float sum[STRIP][TOGETHER] = {};
        for (int first = lane * WIDE; first < of.padded; first += lanes * WIDE)
            for (int dt = 0; dt < of.taps_t; dt++)
                for (int dh = 0; dh < of.taps_h; dh++) {
                    const T *row =
                        in + (((i64)t * of.step_t + dt) * of.rows + (i64)h * of.step_h + dh) * of.columns * of.padded + first;
                    for (int dw = 0; dw < of.taps_w; dw++) {
                        const int tap = (dt * of.taps_h + dh) * of.taps_w + dw;
                        float k[TOGETHER][WIDE];
#pragma unroll
                        for (int j = 0; j < TOGETHER; j++)
                            load8(weight + ((i64)min(o + j, of.outputs - 1) * taps + tap) * of.padded + first, k[j]);
#pragma unroll
                        for (int p = 0; p < STRIP; p++) {
                            float x[WIDE];
                            load8(row + (i64)(min((x0 + p) * of.step_w, last) + dw) * of.padded, x);
#pragma unroll
                            for (int j = 0; j < TOGETHER; j++)
#pragma unroll
                                for (int i = 0; i < WIDE; i++) sum[p][j] = fmaf(x[i], k[j][i], sum[p][j]);
                        }
                    }
                }
#pragma unroll
        for (int p = 0; p < STRIP; p++)
#pragma unroll
            for (int j = 0; j < TOGETHER; j++) {
                float x = sum[p][j];
                for (int offset = lanes / 2; offset; offset /= 2) x += __shfl_xor_sync(0xffffffffu, x, offset);
                if (lane != (p * TOGETHER + j) % lanes || x0 + p >= of.width || o + j >= of.outputs) continue;
                const i64 at = ((i64)blockIdx.x * of.width + x0 + p) * of.outputs + o + j;
                if (bias) x += bias[o + j];
                if (add) x += one(add[at]);
                put(out + at, x);
            }
    }
}

#define KERNEL(T, kind)                                                                                                        \
    extern "C" __global__ void narrow_##kind(const T *in, const T *weight, const float *bias, const T *add, T *out, Window of, \
                                             int lanes) {                                                                      \
        narrow<T>(in, weight, bias, add, out, of, lanes);                                                                      \
    }
EACH_KIND(KERNEL)
#undef KERNEL
