#!/usr/bin/env python3
"""products_torch.py NAME...: f32 products of PyTorch on one thread, in GFLOP/s, as {"NAME": value, ...}.

A name is that of bench/gemm.cpp without the dtype: "8x4096x1024", "64 x 128x128x64 (A B^T)". Best of several rounds.
"""
import json
import re
import sys
import time

import torch

torch.set_num_threads(1)


def operand(batch, rows, columns, transposed):
    shape = (columns, rows) if transposed else (rows, columns)
    value = torch.randn(*([batch] if batch > 1 else []), *shape)
    return value.transpose(-1, -2) if transposed else value


def gflops(name):
    batch, m, n, k = re.match(r"(?:(\d+) x )?(\d+)x(\d+)x(\d+)", name).groups()
    batch, m, n, k = int(batch or 1), int(m), int(n), int(k)
    a, b = operand(batch, m, k, "A^T" in name), operand(batch, k, n, "B^T" in name)
    out = torch.matmul(a, b)
    best, end = float("inf"), time.perf_counter() + 1.5
    while time.perf_counter() < end:
        rounds = max(1, int(0.005 / best))
        start = time.perf_counter()
        for _ in range(rounds):
            torch.matmul(a, b, out=out)
        best = min(best, (time.perf_counter() - start) / rounds)
    return 2 * batch * m * n * k / best / 1e9


print(json.dumps({name: round(gflops(name), 1) for name in sys.argv[1:]}))
