// The driver of matrix products: blocking loops, packing and threads around generated kernels (gemm_abi.h).
#pragma once
#include "runtime/gemm_abi.h"
