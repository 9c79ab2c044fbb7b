// CUDA's bfloat16 under both of HIP's names. The functions have the same names in both.
#pragma once

#include <cuda_bf16.h>

#include "hip_runtime.h"

using __hip_bfloat16 = __nv_bfloat16;
using __hip_bfloat162 = __nv_bfloat162;
using hip_bfloat16 = __nv_bfloat16;
