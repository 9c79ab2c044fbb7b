// The older header of bfloat16: the same type here.
#pragma once

#include "hip_bf16.h"
