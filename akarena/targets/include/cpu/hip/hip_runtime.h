// HIP on a CPU: builds an unchanged HIP source with g++ or clang (C++17, Linux, x86-64 or aarch64).
//
// One fiber stands for one GPU thread, operating system threads share the blocks of a grid, and a wave has 64 lanes.
// It is made to find faults, not to be fast: see docs/hip-on-cpu.md for what it reports and what it does not prove.
// Sources that use kernel<<<...>>>(...) or `extern __shared__` go through akarena/targets/chevrons.py first.
#pragma once

#include "cpu_types.h"
#include "cpu_launch.h"
#include "cpu_device.h"
#include "cpu_math.h"
#include "cpu_host_api.h"
