// Eight channels at a time, computed in single precision whatever they are stored in.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef long long i64;

// A row of a clip may have a number of channels that is no multiple of eight; the buffers that convolutions read have one.
constexpr int WIDE = 8;

struct alignas(16) Half8 {
    __half2 v[4];
};
struct alignas(16) Bf8 {
    __nv_bfloat162 v[4];
};

__device__ inline void load8(const float *at, float (&x)[WIDE]) {
    const float4 a = reinterpret_cast<const float4 *>(at)[0], b = reinterpret_cast<const float4 *>(at)[1];
    x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w, x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
}
__device__ inline void load8(const __half *at, float (&x)[WIDE]) {
    const Half8 all = *reinterpret_cast<const Half8 *>(at);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float2 two = __half22float2(all.v[i]);
        x[2 * i] = two.x, x[2 * i + 1] = two.y;
    }
}
__device__ inline void load8(const __nv_bfloat16 *at, float (&x)[WIDE]) {
    const Bf8 all = *reinterpret_cast<const Bf8 *>(at);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float2 two = __bfloat1622float2(all.v[i]);
        x[2 * i] = two.x, x[2 * i + 1] = two.y;
    }
}
__device__ inline void store8(float *at, const float (&x)[WIDE]) {
    reinterpret_cast<float4 *>(at)[0] = make_float4(x[0], x[1], x[2], x[3]);
    reinterpret_cast<float4 *>(at)[1] = make_float4(x[4], x[5], x[6], x[7]);
}
__device__ inline void store8(__half *at, const float (&x)[WIDE]) {
    Half8 all;
#pragma unroll
    for (int i = 0; i < 4; i++) all.v[i] = __floats2half2_rn(x[2 * i], x[2 * i + 1]);
    *reinterpret_cast<Half8 *>(at) = all;
}
__device__ inline void store8(__nv_bfloat16 *at, const float (&x)[WIDE]) {
    Bf8 all;
#pragma unroll
    for (int i = 0; i < 4; i++) all.v[i] = __floats2bfloat162_rn(x[2 * i], x[2 * i + 1]);
    *reinterpret_cast<Bf8 *>(at) = all;
}

__device__ inline float one(float x) { return x; }
__device__ inline float one(__half x) { return __half2float(x); }
__device__ inline float one(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline void put(float *at, float x) { *at = x; }
__device__ inline void put(__half *at, float x) { *at = __float2half_rn(x); }
__device__ inline void put(__nv_bfloat16 *at, float x) { *at = __float2bfloat16_rn(x); }

// Eight of `channels` numbers from `first` on; beyond the last, and where `whole` is false in doubt, zeros.
template <class T> __device__ inline void load_up_to_8(const T *row, int first, int channels, bool whole, float (&x)[WIDE]) {
    if (whole) {
        load8(row + first, x);
        return;
    }
#pragma unroll
    for (int i = 0; i < WIDE; i++) x[i] = first + i < channels ? one(row[first + i]) : 0.0f;
}

// x * sigmoid(x): exact enough for what it is stored in.
template <class T> __device__ inline float silu(float x) { return __fdividef(x, 1.0f + __expf(-x)); }
template <> __device__ inline float silu<float>(float x) { return x / (1.0f + expf(-x)); }

// Names of the three kinds: NAME_f32, NAME_f16, NAME_bf16.
#define EACH_KIND(KERNEL) KERNEL(float, f32) KERNEL(__half, f16) KERNEL(__nv_bfloat16, bf16)
