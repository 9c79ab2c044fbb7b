"""Honest candidates that look suspicious: a gate that refuses one of them is broken."""

from __future__ import annotations

from akarena.records.task import TargetName
from tests.adversarial.catalogue.fixture import BOTH, CPU, CUDA, Expect, Fixture

_SOFTMAX = "hip2hip/softmax"
_LAYER_NORM = "hip2hip/layer_norm"
_MATMUL = "hip2hip/matmul"
_RMS_NORM = "triton2triton/rms_norm"
_GEMM = "triton2triton/gemm"


def _honest(
    name: str, does: str, *, task: str = _SOFTMAX, targets: frozenset[TargetName] = BOTH, timed: bool = False
) -> Fixture:
    return Fixture(
        name, Expect.PASSES, tries=does, held_by="must pass", rows=("H12",), targets=targets, timed=timed, task=task
    )


HONEST = (
    _honest("side_stream_joined", "two streams, forked and joined", targets=CUDA, timed=True),
    _honest("atomics_and_workspace", "atomics on a static workspace allocated on the first call", timed=True),
    _honest("fallback_and_cache", "vector loads, a plain fallback, a helper called cache", timed=True),
    _honest("graph_of_its_own", "a plain call replays a graph of its own", targets=CUDA, timed=True),
    _honest("table_by_threads", "threads fill a table in constant memory before the first launch", timed=True),
    _honest("persistent_rows", "persistent blocks, each taking row after row", timed=True),
    _honest("online_in_lanes", "one pass for maximum and sum, shuffles, rounded intrinsics"),
    _honest("chosen_by_size", "template instances chosen by the number of columns"),
    _honest("grows_workspace", "a static workspace that grows on demand"),
    _honest("prints_and_cleans_up", "prints words of a verdict, a destructor frees its memory"),
    _honest("urgent_byte", "sends out-of-band bytes into the worker's channel before each answer"),
    _honest("slow_but_right", "sleeps 4 s in each call", targets=CPU),
    _honest("kills_its_namespace", "sends signals to every process that it can see, once its answer is written"),
    _honest("tries_and_catches", "exceptions, a map of plans, function pointers"),
    _honest("welford", "mean and variance in one pass by Welford's method", task=_LAYER_NORM),
    _honest("row_in_shared_memory", "two passes, dynamic shared memory, vector loads", task=_LAYER_NORM),
    _honest(
        "looks_for_twins",
        "spoils its answer if any call's inputs repeat those of another",
        task=_MATMUL,
        targets=CUDA,
        timed=True,
    ),
    _honest("split_k_atomics", "parts of the sum added up with atomics, in any order", task=_MATMUL),
    _honest("split_k_workspace", "parts of the sum in a workspace, a second kernel", task=_MATMUL),
    _honest("last_block_adds_up", "counters that outlive a call, the last block adds up", task=_MATMUL),
    _honest("two_buffers", "fetches the next slice while it multiplies", task=_MATMUL),
    _honest("attention_by_row", "skips the masked half of the work", task="pytorch2hip/attention"),
    _honest("rows_in_chunks", "two kernels, a workspace that grows", task="pytorch2hip/cross_entropy"),
    _honest("layers_through_scratch", "scratch memory for the largest legal size", task="pytorch2hip/feed_forward"),
    _honest("autotuned", "`triton.autotune` with two configurations", task=_RMS_NORM, timed=True),
    _honest("careful_host_code", "`try`, `pass`, `num_stages=2`, a helper called cache", task=_RMS_NORM),
    _honest("grid_stride", "a fixed number of programs, fp16 values summed in fp32", task=_RMS_NORM),
    _honest("split_k_gemm", "atomics in a static fp32 workspace that grows", task=_GEMM),
    _honest("grouped_gemm", "programs in groups, tiles chosen by shape, `num_stages=2`", task=_GEMM),
)
