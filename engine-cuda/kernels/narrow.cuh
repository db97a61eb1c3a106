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

// Half precision has tensor cores that take sixteen pixels and eight outputs at a time.
__device__ inline void multiply(float (&sum)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1, __half) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ inline void multiply(float (&sum)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1,
                                __nv_bfloat16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Pixels of a warp, in sixteens; outputs at a time.
constexpr int SIXTEENS = 2, EIGHT = 8;

// A warp a strip of pixels. Grid: rows of the result (x), strips (y). In which order channels are added up is free, so each thread
// reads eight that lie together, and both operands have the same order.
template <class T>
__device__ inline void narrow_half(const T *in, const T *weight, const float *bias, const T *add, T *out, Window of) {
    const int lane = threadIdx.x % 32, group = lane / 4, own = lane % 4 * WIDE;
    const int x0 = (blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32) * (16 * SIXTEENS);
    if (x0 >= of.width) return;
    const int t = blockIdx.x / of.height, h = blockIdx.x % of.height;
    const int taps = of.taps_t * of.taps_h * of.taps_w;
    int at[SIXTEENS][2];
#pragma unroll
    for (int p = 0; p < SIXTEENS; p++)
#pragma unroll
        for (int half = 0; half < 2; half++) at[p][half] = min(x0 + 16 * p + 8 * half + group, of.width - 1) * of.step_w * of.padded;
    for (int o = 0; o < of.outputs; o += EIGHT) {
        float sum[SIXTEENS][4] = {};
        const bool is = o + group < of.outputs;
        const T *k = weight + (i64)(is ? o + group : 0) * taps * of.padded + own;
        for (int tap = 0; tap < taps; tap++, k += of.padded) {
            const int dw = tap % of.taps_w, dh = tap / of.taps_w % of.taps_h, dt = tap / of.taps_w / of.taps_h;
            const T *row =
                in + ((((i64)t * of.step_t + dt) * of.rows + (i64)h * of.step_h + dh) * of.columns + dw) * of.padded + own;
#pragma unroll 4
            for (int c = 0; c < of.padded; c += 4 * WIDE) {
                const bool inside = c + own < of.padded;
                const uint4 none = make_uint4(0, 0, 0, 0);
                const uint4 b = is && inside ? *reinterpret_cast<const uint4 *>(k + c) : none;
#pragma unroll
                for (int p = 0; p < SIXTEENS; p++) {
                    const uint4 low = inside ? *reinterpret_cast<const uint4 *>(row + at[p][0] + c) : none;
                    const uint4 high = inside ? *reinterpret_cast<const uint4 *>(row + at[p][1] + c) : none;
                    multiply(sum[p], low.x, high.x, low.y, high.y, b.x, b.y, T());
                    multiply(sum[p], low.z, high.z, low.w, high.w, b.z, b.w, T());
                }
            }
        }
#pragma unroll
        for (int p = 0; p < SIXTEENS; p++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int x = x0 + 16 * p + 8 * (i / 2) + group, output = o + lane % 4 * 2 + i % 2;
                if (x >= of.width || output >= of.outputs) continue;
                const i64 to = ((i64)blockIdx.x * of.width + x) * of.outputs + output;
                float y = sum[p][i];
                if (bias) y += bias[output];
                if (add) y += one(add[to]);
                put(out + to, y);
            }
    }
}

extern "C" __global__ void narrow_f32(const float *in, const float *weight, const float *bias, const float *add, float *out, Window of,
                                      int lanes) {
    narrow<float>(in, weight, bias, add, out, of, lanes);
}
extern "C" __global__ void narrow_f16(const __half *in, const __half *weight, const float *bias, const __half *add, __half *out,
                                      Window of) {
    narrow_half<__half>(in, weight, bias, add, out, of);
}
extern "C" __global__ void narrow_bf16(const __nv_bfloat16 *in, const __nv_bfloat16 *weight, const float *bias, const __nv_bfloat16 *add,
                                       __nv_bfloat16 *out, Window of) {
    narrow_half<__nv_bfloat16>(in, weight, bias, add, out, of);
}
