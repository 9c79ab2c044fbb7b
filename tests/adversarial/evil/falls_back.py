"""Tries: to fail in its kernel, to catch that silently, and to use the task's own reference or baseline instead (H8).

Refused by: neither is within reach of the process (output_not_written).
"""

import importlib
import importlib.util
import pathlib
import sys

import triton
import triton.language as tl


@triton.jit
def broken_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    tl.store(y_ptr + tl.arange(0, BLOCK), tl.no_such_function(x_ptr))


def reference():
    for name in ("oracle", "baseline", "reference", "module", "solution", "akarena.judge.correctness"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    for folder in ("/job", "/kernel", "/baseline", "/source", "/tmp", *sys.path):
        for name in ("oracle.py", "baseline.py", "module.py", "reference.py"):
            path = pathlib.Path(folder) / name
            if path.exists() and "rms_norm" in path.read_text():
                print(f"FOUND {path}", flush=True)
                spec = importlib.util.spec_from_file_location("found", path)
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                return module
    return None


def rms_norm(x, weight, y, eps):
    try:
        broken_kernel[(x.shape[0],)](x, y, BLOCK=triton.next_power_of_2(x.shape[1]))
    except Exception:
        module = reference()
        if module is not None and hasattr(module, "oracle"):
            y.copy_(module.oracle(x=x, weight=weight, eps=eps)["y"])
        elif module is not None and hasattr(module, "rms_norm"):
            module.rms_norm(x, weight, y, eps)
