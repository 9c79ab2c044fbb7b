"""HIP and Triton kernels are compiled for AMD GPUs without one, and what they use is read from the code object."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from akarena.targets.gfx import __main__ as cli
from akarena.targets.gfx import toolchain
from akarena.targets.gfx.bounds import excerpt, read_regular, run_logged
from akarena.targets.gfx.inspect import InvalidCodeObjectError, read_kernels
from akarena.targets.gfx.triton_arguments import Argument, InvalidArgumentsError, load_arguments

SOFTMAX = """
#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>
#include <hip/hip_bf16.h>
constexpr int THREADS = 256;
template <typename F> __device__ float reduce(float value, float* shared, F combine) {
  for (int offset = warpSize / 2; offset; offset /= 2) value = combine(value, __shfl_xor(value, offset));
  if (threadIdx.x % warpSize == 0) shared[threadIdx.x / warpSize] = value;
  __syncthreads();
  value = shared[0];
  for (int i = 1; i < THREADS / warpSize; ++i) value = combine(value, shared[i]);
  __syncthreads();
  return value;
}
template <typename T> __global__ __launch_bounds__(THREADS) void softmax_kernel(T* out, const T* in, int columns) {
  __shared__ float shared[THREADS];
  const T* row = in + size_t(blockIdx.x) * columns;
  float largest = -INFINITY, sum = 0.0f;
  for (int c = threadIdx.x; c < columns; c += THREADS) largest = fmaxf(largest, float(row[c]));
  largest = reduce(largest, shared, [](float a, float b) { return fmaxf(a, b); });
  for (int c = threadIdx.x; c < columns; c += THREADS) sum += expf(float(row[c]) - largest);
  sum = reduce(sum, shared, [](float a, float b) { return a + b; });
  for (int c = threadIdx.x; c < columns; c += THREADS)
    out[size_t(blockIdx.x) * columns + c] = T(expf(float(row[c]) - largest) / sum);
}
extern "C" int softmax(void* out, const void* in, int rows, int columns, int dtype, hipStream_t stream) {
  if (dtype == 0)
    softmax_kernel<<<dim3(rows), dim3(THREADS), 0, stream>>>((float*)out, (const float*)in, columns);
  else if (dtype == 1)
    softmax_kernel<<<dim3(rows), dim3(THREADS), 0, stream>>>((__half*)out, (const __half*)in, columns);
  else
    hipLaunchKernelGGL(softmax_kernel<__hip_bfloat16>, dim3(rows), dim3(THREADS), 0, stream, (__hip_bfloat16*)out,
                       (const __hip_bfloat16*)in, columns);
  return (int)hipGetLastError();
}
"""

# 200 values live at once, and at most 128 registers for a lane of a workgroup of 1024.
SPILLS = """
#include <hip/hip_runtime.h>
extern "C" __global__ __launch_bounds__(1024) void greedy(float* out, const float* in) {
  float held[200];
#pragma unroll
  for (int i = 0; i < 200; ++i) held[i] = in[i * 1024 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 200; ++i) out[(199 - i) * 1024 + threadIdx.x] = held[i] * held[199 - i];
}
"""

HALVES = """
#include <hip/hip_bfloat16.h>
#include <hip/hip_fp16.h>
template <typename T> __device__ T wave_sum(T v) {
  for (int offset = 32; offset; offset /= 2) v = v + __shfl_xor(v, offset);
  return v;
}
extern "C" __global__ void halves(__half* h, half2* h2, __hip_bfloat16* b, __hip_bfloat162* b2, float* f) {
  int i = threadIdx.x;
  half2 pair = __hfma2(__floats2half2_rn(f[i], 2.0f), h2[i], __half2half2(__float2half(f[i])));
  pair += __shfl_down(pair, 1);
  h2[i] = h2exp(pair) * pair;
  h[i] = __hmax(hexp(h[i]), hrsqrt(wave_sum(h[i]))) + __low2half(pair) + __float2half_rz(f[i]);
  hip_bfloat16 c = __hfma(b[i], __float2bfloat16(f[i]), hexp(wave_sum(b[i])));
  b[i] = c > __hip_bfloat16(0.0f) ? c : __habs(__ldg(b + i + 1));
  b2[i] = b2[i] * b2[i + 1];
  f[i] = __bfloat162float(c) + __half22float2(pair).x + __bfloat1622float2(b2[i]).y + (__hisinf(h[i]) ? 1.0f : 0.0f);
}
"""

TRITON = """
import torch
import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({"BLOCK": 1024}, num_warps=4), triton.Config({"BLOCK": 2048})], key=["columns"])
@triton.jit
def rms_norm_kernel(x, weight, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    value = tl.load(x + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value) / columns + eps)
    scaled = value * scale * tl.load(weight + column, mask=inside, other=0.0)
    tl.store(out + row * columns + column, scaled.to(out.dtype.element_ty), mask=inside)

def rms_norm(x, weight, out, rows, eps):
    assert x.is_cuda and x.device.type == "cuda" and torch.cuda.is_available()
    scratch = torch.empty(8, device="cuda") + torch.zeros(8, device=x.device)
    for _ in range(2):
        rms_norm_kernel[(rows,)](x, weight, out, x.shape[1], eps)

@triton.jit
def gemm_kernel(a, b, c, n, k, BLOCK: tl.constexpr):
    r = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK):
        left = tl.load(a + r[:, None] * k + start + r[None, :])
        right = tl.load(b + (start + r[:, None]) * n + r[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + r[:, None] * n + r[None, :], total.to(c.dtype.element_ty))

def gemm(a, b, c, sizes):
    n = sizes[0].item()
    gemm_kernel[(1,)](a, b, c, b.shape[1] + n, a.shape[1], BLOCK=64, num_warps=8)

@triton.jit
def broken_kernel(x):
    tl.store(x, undefined_name)

def broken(x):
    broken_kernel[(1,)](x)

def dies(x):
    import os
    print('{"status": "compiled", "kernels": []}', flush=True)
    os.abort()

def forges(x):
    import os
    import pathlib
    import sys
    kernel = '{"constants": {}, "num_warps": -1, "num_stages": 2, "autotune_configs": 1, "launches": 1, "lds_bytes": 0}'
    pathlib.Path(sys.argv[-1], "kernels.json").write_text('{"error": null, "kernels": [' + kernel + ']}')
    os._exit(0)
"""


@pytest.fixture
def clang() -> toolchain.Toolchain:
    try:
        return toolchain.find()
    except toolchain.Unavailable as error:
        pytest.skip(str(error))


def call(capsys: pytest.CaptureFixture[str], *flags: str | Path) -> dict[str, Any]:
    assert cli.main([str(flag) for flag in flags]) == 0
    out = capsys.readouterr().out
    assert len(out.encode()) <= cli.MAX_OUTPUT_BYTES
    answer: dict[str, Any] = json.loads(out)
    return answer


def hip(capsys: pytest.CaptureFixture[str], tmp_path: Path, source: str, *architectures: str) -> dict[str, Any]:
    (tmp_path / "kernel.hip").write_text(source)
    flags = [flag for architecture in architectures for flag in ("--architecture", architecture)]
    return call(capsys, "--kind", "hip", "--source", tmp_path / "kernel.hip", *flags, "--out", tmp_path / "out")


@pytest.mark.clang
def test_hip_softmax_compiles_for_both_architectures(
    clang: toolchain.Toolchain, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    answer = hip(capsys, tmp_path, SOFTMAX, "gfx942", "gfx950")
    assert (answer["status"], answer["reason"]) == ("compiled", None), answer["log"]
    assert [kernel["architecture"] for kernel in answer["kernels"]] == ["gfx942"] * 3 + ["gfx950"] * 3
    for kernel in answer["kernels"]:
        assert "softmax_kernel" in kernel["name"]
        assert kernel["lds_bytes"] == 256 * 4
        assert kernel["max_flat_workgroup_size"] == 256
        assert 0 < kernel["vgpr_count"] <= 512
        assert 0 < kernel["sgpr_count"] <= 112
        assert kernel["vgpr_spill_count"] == kernel["sgpr_spill_count"] == kernel["scratch_bytes"] == 0
    assert answer["toolchain"] == clang.versions
    assert (tmp_path / "out" / "gfx950.hsaco").read_bytes()[:4] == b"\x7fELF"


@pytest.mark.clang
def test_hip_spills_are_counted(clang: toolchain.Toolchain, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (kernel,) = hip(capsys, tmp_path, SPILLS, "gfx942")["kernels"]
    assert kernel["name"] == "greedy"
    assert kernel["vgpr_spill_count"] > 0
    assert kernel["scratch_bytes"] > 0


@pytest.mark.clang
def test_hip_half_and_bfloat16_shims(
    clang: toolchain.Toolchain, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    answer = hip(capsys, tmp_path, HALVES, "gfx950")
    assert answer["status"] == "compiled", answer["log"]


@pytest.mark.clang
@pytest.mark.parametrize(
    ("source", "said"),
    [
        (SOFTMAX.replace("value = shared[0];", "value = shraed[0];"), "value = shraed[0];"),
        ('extern "C" int softmax() { return 0; }', "holds no kernel"),
        (
            "__global__ void big(int* o) { __shared__ int a[20000]; a[o[1]] = 1; __syncthreads(); o[0] = a[o[2]]; }",
            "big",
        ),
    ],
)
def test_hip_failures_name_the_cause(
    clang: toolchain.Toolchain, capsys: pytest.CaptureFixture[str], tmp_path: Path, source: str, said: str
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "gfx942.hsaco").write_bytes(b"from an earlier run")
    answer = hip(capsys, tmp_path, source, "gfx942")
    assert answer["status"] == "failed"
    assert answer["kernels"] == []
    assert said in answer["reason"] + answer["log"]
    left = tmp_path / "out" / "gfx942.hsaco"
    assert not left.exists() or left.read_bytes()[:4] == b"\x7fELF"


def test_missing_compiler_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolchain, "_LLVM_BIN", tmp_path)
    answer = hip(capsys, tmp_path, SOFTMAX, "gfx942")
    assert answer["status"] == "unavailable"
    assert "clang-22 is not installed" in answer["reason"]


def test_wrong_compiler_version_is_unavailable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiler = tmp_path / "clang-22"
    compiler.write_text("#!/bin/sh\necho 'clang version 15.0.1'\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(toolchain.Unavailable, match=r"clang 22 is needed.*15\.0\.1"):
        toolchain.find()


def tensor(name: str, *shape: int, dtype: str = "fp16") -> dict[str, Any]:
    return {"name": name, "kind": "tensor", "dtype": dtype, "shape": list(shape)}


def run_triton(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, entry: str, arguments: list[dict[str, Any]]
) -> dict[str, Any]:
    (tmp_path / "kernel.py").write_text(TRITON)
    (tmp_path / "arguments.json").write_text(json.dumps({"entry": entry, "arguments": arguments}))
    flags: list[str | Path] = ["--kind", "triton", "--source", tmp_path / "kernel.py", "--architecture", "gfx942"]
    return call(capsys, *flags, "--arguments", tmp_path / "arguments.json", "--out", tmp_path / "out")


@pytest.fixture(autouse=True)
def no_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    # The interpreter of another test would turn every kernel into plain Python; the child must drop it.
    monkeypatch.setenv("TRITON_INTERPRET", "1")


@pytest.mark.slow
def test_triton_rms_norm(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("triton")
    arguments = [tensor("x", 512, 1000), tensor("weight", 1000), tensor("out", 512, 1000)]
    arguments += [{"name": "rows", "kind": "int", "value": 512}, {"name": "eps", "kind": "float", "value": 1e-5}]
    answer = run_triton(capsys, tmp_path, "rms_norm", arguments)
    assert answer["status"] == "compiled", answer
    (kernel,) = answer["kernels"]
    assert (kernel["name"], kernel["architecture"]) == ("rms_norm_kernel", "gfx942")
    assert kernel["lds_bytes"] > 0
    assert kernel["max_flat_workgroup_size"] == 4 * 64
    launch = kernel["launch"]
    assert (launch["num_warps"], launch["autotune_configs"], launch["launches"]) == (4, 2, 2)
    assert launch["constants"] == {"BLOCK": "1024"}
    assert set(answer["toolchain"]) == {"triton", "torch", "python"}


@pytest.mark.slow
def test_triton_gemm_whose_host_reads_a_value(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("triton")
    arguments = [tensor(name, 64, 64) for name in "abc"] + [tensor("sizes", 1, dtype="int32")]
    answer = run_triton(capsys, tmp_path, "gemm", arguments)
    assert answer["status"] == "compiled", answer
    (kernel,) = answer["kernels"]
    assert kernel["name"] == "gemm_kernel"
    assert kernel["lds_bytes"] >= 64 * 64 * 2
    assert kernel["vgpr_count"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("broken", "undefined_name"),
        ("dies", "killed by signal 6"),
        ("forges", "'-1' is no count"),
        ("missing", "no function 'missing'"),
    ],
)
def test_triton_failures_name_the_cause(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, entry: str, said: str
) -> None:
    pytest.importorskip("triton")
    answer = run_triton(capsys, tmp_path, entry, [tensor("x", 8)])
    assert (answer["status"], answer["kernels"]) == ("failed", [])
    assert said in answer["reason"]


def test_triton_that_cannot_be_imported_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("triton")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "torch.py").write_text("raise ImportError('libtorch is damaged')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "broken"))
    answer = run_triton(capsys, tmp_path, "rms_norm", [tensor("x", 8)])
    assert answer["status"] == "unavailable"
    assert "libtorch is damaged" in answer["reason"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not readable as JSON"),
        ('{"arguments": {}}', "a list 'arguments'"),
        ('{"entry": "a b", "arguments": []}', "'entry'"),
        ('{"arguments": [{"name": "x", "kind": "tensor", "dtype": "fp12", "shape": [1]}]}', "dtype is 'fp12'"),
        ('{"arguments": [{"name": "x", "kind": "tensor", "dtype": "fp16", "shape": [-1]}]}', "shape"),
        ('{"arguments": [{"name": "x", "kind": "int", "value": true}]}', "value is 'True', expected int"),
        ('{"arguments": [{"name": "x", "kind": "pickle", "value": 1}]}', "kind is 'pickle'"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "arguments.json"
    path.write_text(content)
    with pytest.raises(InvalidArgumentsError, match=said):
        load_arguments(path)


def test_fp8_follows_the_architecture() -> None:
    argument = Argument("x", "fp8", (4,), None)
    assert argument.torch_dtype("gfx942") == "float8_e4m3fnuz"
    assert argument.torch_dtype("gfx950") == "float8_e4m3fn"


@pytest.mark.parametrize(
    "flags",
    [
        ["--kind", "hip", "--source", "nowhere.hip", "--architecture", "gfx942", "--out", "."],
        ["--kind", "hip", "--source", "k.hip", "--architecture", "gfx1", "--out", "."],
        ["--kind", "triton", "--source", "k.hip", "--architecture", "gfx942", "--out", "."],
    ],
)
def test_bad_flags_exit_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, flags: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.hip").write_text("")
    with pytest.raises(SystemExit) as stopped:
        cli.main(flags)
    assert stopped.value.code == 2
    assert capsys.readouterr().out == ""


def test_the_folder_alone_is_enough(tmp_path: Path) -> None:
    # A sandbox mounts this folder and neither akarena nor pydantic.
    shutil.copytree(Path(cli.__file__).parent, tmp_path / "gfx")
    code = """
import sys
import gfx.__main__
import gfx.compile_triton
foreign = {name.partition(".")[0] for name in sys.modules} & {"akarena", "pydantic", "torch", "triton"}
assert not foreign, foreign
assert str(gfx.compile_triton._IMPORT_ROOT) == sys.argv[1]
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-P", "-c", code, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_answer_stays_within_its_bound() -> None:
    kernels = [{"name": "k" * 300, "vgpr_count": index} for index in range(1000)]
    text = cli.render(cli.Status.COMPILED, None, {"clang": "22"}, kernels, "\N{SNOWMAN}" * 100_000)
    assert len(text) + 1 <= cli.MAX_OUTPUT_BYTES
    answer = json.loads(text)
    assert answer["kernels"] == kernels[: len(answer["kernels"])]
    assert len(answer["kernels"]) + answer["kernels_left_out"] == 1000
    assert len(answer["kernels"]) > 50


def test_excerpt_keeps_head_and_tail() -> None:
    text = excerpt(io.BytesIO(b"first\n" + b"x" * 10_000 + b"\nlast\x1b[2J"), limit=100)
    assert text.startswith("first\n")
    assert text.endswith("last?[2J")
    assert "bytes left out" in text
    assert len(text) < 150


def test_a_command_that_hangs_is_killed(tmp_path: Path) -> None:
    code, log = run_logged(["sh", "-c", "echo started; sleep 60 & sleep 60"], tmp_path, timeout_s=0.5)
    assert code is None
    assert log == "started\n"


def test_only_plain_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"12345")
    (tmp_path / "link").symlink_to(tmp_path / "plain")
    assert read_regular(tmp_path / "plain", 5) == b"12345"
    for name, limit in (("plain", 4), ("link", 5), ("missing", 5), (".", 5)):
        with pytest.raises(OSError):
            read_regular(tmp_path / name, limit)


def pack(value: Any) -> bytes:
    """MessagePack, in the few forms that the tests need."""
    if isinstance(value, dict):
        items = b"".join(pack(key) + pack(item) for key, item in value.items())
        return b"\xde" + struct.pack(">H", len(value)) + items
    if isinstance(value, list):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(pack(item) for item in value)
    if isinstance(value, str):
        return b"\xd9" + bytes([len(value)]) + value.encode()
    return bytes([value]) if 0 <= value < 128 else b"\xd3" + struct.pack(">q", value)


def elf(*metadata: bytes) -> bytes:
    """An ELF file with one note section that holds one AMDGPU metadata note for each of ``metadata``."""
    notes = b""
    for data in metadata:
        notes += struct.pack("<III", 7, len(data), 32) + b"AMDGPU\0\0" + data + bytes(-len(data) % 4)
    header = bytearray(64)
    header[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<H", header, 18, 224)
    struct.pack_into("<Q", header, 40, 64)
    struct.pack_into("<HH", header, 58, 64, 2)
    section = bytearray(64)
    struct.pack_into("<I", section, 4, 7)
    struct.pack_into("<QQ", section, 24, 192, len(notes))
    return bytes(header) + bytes(64) + bytes(section) + notes


KERNEL = {
    ".name": "k",
    ".vgpr_count": 200,
    ".agpr_count": 1,
    ".sgpr_count": 70000,
    ".vgpr_spill_count": 3,
    ".sgpr_spill_count": 0,
    ".group_segment_fixed_size": 4096,
    ".private_segment_fixed_size": 12,
    ".max_flat_workgroup_size": 1024,
}


def metadata(**changes: Any) -> bytes:
    return pack({"amdhsa.target": "amdgcn-amd-amdhsa--gfx942:xnack-", "amdhsa.kernels": [{**KERNEL, **changes}]})


def test_read_kernels_of_a_well_formed_note() -> None:
    (kernel,) = read_kernels(elf(metadata()), "gfx942")
    expected = ("k", "gfx942", 200, 1, 70000, 3, 0, 4096, 12, 1024, None)
    assert dataclasses.astuple(kernel) == expected


def broken_objects() -> Iterator[Any]:
    good = elf(metadata())
    yield pytest.param(elf(metadata(), metadata()), "2 AMDGPU metadata notes", id="two notes")
    yield pytest.param(elf(), "0 AMDGPU metadata notes", id="no note")
    yield pytest.param(b"MZ" + good[2:], "not a 64-bit", id="not ELF")
    yield pytest.param(elf(b"\x91" * 5000), "nested too deeply", id="deep")
    yield pytest.param(elf(b"\xdd\xff\xff\xff\xff" + b"\x00" * 300_000), "too long", id="many items")
    yield pytest.param(elf(b"\xdb\xff\xff\xff\xff"), "longer than its note", id="long text")
    yield pytest.param(elf(metadata(**{".vgpr_count": -1})), r"\.vgpr_count is -1", id="negative")
    yield pytest.param(elf(metadata(**{".vgpr_count": "many"})), "expected a count", id="text for a count")
    yield pytest.param(elf(pack({"amdhsa.target": "x-gfx950", "amdhsa.kernels": []})), "'gfx950'", id="other target")
    yield pytest.param(good[:40] + b"\xff" * 8 + good[48:], "damaged", id="table outside")


@pytest.mark.parametrize(("data", "said"), list(broken_objects()))
def test_read_kernels_refuses(data: bytes, said: str) -> None:
    with pytest.raises(InvalidCodeObjectError, match=said):
        read_kernels(data, "gfx942")


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_read_kernels_survives_any_damage(data: st.DataObject) -> None:
    damaged = bytearray(elf(metadata()))
    for _ in range(data.draw(st.integers(1, 6))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(damaged[: data.draw(st.integers(0, len(damaged)))]) if data.draw(st.booleans()) else bytes(damaged)
    try:
        kernels = read_kernels(cut, "gfx942")
    except InvalidCodeObjectError:
        return
    assert all(kernel.architecture == "gfx942" for kernel in kernels)
