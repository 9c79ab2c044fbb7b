// half and half2 are CUDA's own, under the same names.
#pragma once

#include <cuda_fp16.h>

#include "hip_runtime.h"
