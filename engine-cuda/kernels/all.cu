// All kernels, in one module.
#include "finish.cuh"
#include "narrow.cuh"
#include "prepare.cuh"
#include "reduce.cuh"
