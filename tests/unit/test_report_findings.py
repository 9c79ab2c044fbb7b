"""What a search through a candidate's text finds, and that a hostile text cannot make it slow."""

from __future__ import annotations

import time

import pytest

from akarena import paths, tasks
from akarena.report.findings import Finding, findings


@pytest.mark.parametrize(
    ("code", "finding"),
    [
        ("int pid = fork();", Finding.PROCESSES),
        ("std::thread worker(run);", Finding.THREADS),
        ("signal(SIGSEGV, handler);", Finding.THREADS),
        ('FILE* file = fopen("/proc/self/maps", "r");', Finding.FILES),
        ('void* all = dlopen("libcublas.so", 2);', Finding.LOADER),
        ('asm volatile("exit;");', Finding.ASSEMBLER),
        ("__attribute__((constructor)) static void first() {}", Finding.BEFORE_MAIN),
        ("#include <cublas_v2.h>", Finding.FOREIGN_INCLUDE),
        ('  #  include "/job/oracle.py"', Finding.FOREIGN_INCLUDE),
        ("hipblasSgemm(handle);", Finding.LIBRARY),
        ("hipEventElapsedTime(&ms, a, b);", Finding.TIMING),
        ("cudaStreamIsCapturing(stream, &status);", Finding.CAPTURE),
        ("cudaLaunchHostFunc(stream, call, nullptr);", Finding.OTHER_STREAM),
        ("hipMalloc(&workspace, bytes);", Finding.DEVICE_MEMORY),
    ],
)
def test_names_in_hip(code: str, finding: Finding) -> None:
    found = findings("kernel.hip", f"// nothing here\n{code}\n")
    assert f"kernel.hip:2: {finding.value}" in found


@pytest.mark.parametrize(
    ("code", "finding"),
    [
        ("import ctypes", Finding.FOREIGN_IMPORT),
        ("from akarena.worker import main", Finding.FOREIGN_IMPORT),
        ("y.copy_(torch.nn.functional.softmax(x, 1))", Finding.TORCH_COMPUTES),
        ("exec(text)", Finding.DYNAMIC),
        ("frame = sys._getframe(1)", Finding.CALLER),
        ("os.fork()", Finding.PROCESSES),
        ("threading.Thread(target=run).start()", Finding.THREADS),
        ("torch.cuda.Event(enable_timing=True)", Finding.TIMING),
        ("graph = torch.cuda.CUDAGraph()", Finding.CAPTURE),
        ("side = torch.cuda.Stream()", Finding.OTHER_STREAM),
        ("key = x.data_ptr()", Finding.ADDRESSES),
        ("torch.cuda.synchronize = lambda: None", Finding.PATCHES),
        ("tl.load = None", Finding.PATCHES),
    ],
)
def test_names_in_python(code: str, finding: Finding) -> None:
    text = f"import torch\nimport triton.language as tl\n{code}\n"
    assert f"kernel.py:3: {finding.value}" in findings("kernel.py", text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "kernel.hip",
            '// fork();\n/* dlopen\n asm */ const char* text = "hipMalloc";\n#include <hip/hip_runtime.h>\n',
        ),
        ("kernel.hip", "int thread = threadIdx.x; int opened = 0; x.open(); float constructors;\n"),
        ("kernel.py", '"""exec and fork()."""\nimport torch\nx = "os.fork()"  # eval\n'),
        ("kernel.py", "import torch\nblock = torch.empty_like(x)\nself.value = 1\n"),
    ],
)
def test_nothing_where_nothing_is(name: str, text: str) -> None:
    assert findings(name, text) == ()


def test_nothing_in_what_the_tasks_start_from_and_in_their_solutions() -> None:
    for task in tasks.load_all(paths.root() / "tasks"):
        for folder in (task.agent_folder, task.solution_folder):
            for name in task.record.editable:
                assert findings(name, (folder / name).read_text("utf-8")) == ()


def test_lines_are_named_first_ones_first() -> None:
    text = "hipMalloc(a);\n" * 5
    assert findings("k.hip", text) == (f"k.hip:1,2,3 and 2 more: {Finding.DEVICE_MEMORY.value}",)


def test_what_was_not_searched_is_told() -> None:
    assert findings("k.hip", " " * 300_000) == ("k.hip: only the first 200000 of 300000 characters were searched",)


@pytest.mark.parametrize(
    "piece", ["(", "'", '"', "a.", "/*", "\\\n", 'f"{', "#", '"\\', 'R"(', "a::", "import ", "'''"]
)
@pytest.mark.parametrize("name", ["k.hip", "k.py"])
def test_a_hostile_text_is_searched_in_linear_time(name: str, piece: str) -> None:
    began = time.monotonic()
    findings(name, piece * (200_000 // len(piece)))
    assert time.monotonic() - began < 5.0
