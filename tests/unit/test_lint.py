import subprocess
import sys
from pathlib import Path

import pytest

from akarena import tasks
from akarena.lint import Problem, lint, lint_all
from tests.tasks import fixtures
from tests.tasks.fixtures import HIP, PYTORCH, TRITON, copy, edit

ROOT = Path(__file__).resolve().parents[2]
REAL = tasks.discover(ROOT / "tasks")
Y = '"output"\nname = "y"\ndtype = "fp32"\n'
X = '"input"\nname = "x"\ndtype = "fp32"\n'

# Task, edits of its task.toml, key, essence of the reason.
BROKEN: dict[str, tuple[str, list[tuple[str, str]], str, str]] = {
    "not-toml": (HIP, [("schema_version = 1", "schema_version =")], "", "is not TOML"),
    "infinite": (HIP, [("large = 16.0", "large = inf")], "arguments[1].distribution.large", "a finite number"),
    "unknown-key": (HIP, [("difficulty = 1", "difficulty = 1\nhint = 2")], "hint", "is not a known key"),
    "wrong-type": (HIP, [("difficulty = 1", 'difficulty = "1"')], "difficulty", "should be a valid integer"),
    "missing-key": (HIP, [('entry = "scale_shift"\n', "")], "entry", "is required"),
    "no-dtype-key": (HIP, [('dtype = "fp32"\n', "")], "arguments[0].dtype", "is required"),
    "id": (HIP, [("hip2hip/scale_shift", "hip2hip/other")], "id", "the folder is 'hip2hip/scale_shift'"),
    "category": (HIP, [('category = "hip2hip"', 'category = "pytorch2hip"')], "category", "the id begins with"),
    "editable": (HIP, [('["kernel.hip"]', '["kernel.cu"]')], "editable[0]", "expected 'kernel.hip'"),
    "editable-twice": (HIP, [('["kernel.hip"]', '["kernel.hip", "kernel.hip"]')], "editable", "names a file twice"),
    "editable-baseline": (PYTORCH, [('"kernel.hip"]', '"kernel.hip", "module.py"]')], "editable", "is the baseline"),
    "target-twice": (HIP, [('["cpu", "cuda", "rocm"]', '["cpu", "cpu"]')], "targets", "names a target twice"),
    "cap": (HIP, [("memory_cap_mib = 512", "memory_cap_mib = 4096")], "memory_cap_mib", "at most 1024"),
    "min-over-max": (HIP, [("min = 8\nmax = 16384", "min = 8\nmax = 4")], "axes.cols", "min 8 is larger than max 4"),
    "no-multiple": (HIP, [("min = 8\nmax = 16384", "min = 13\nmax = 15")], "axes.cols", "holds no multiple of 4"),
    "production-range": (HIP, [("[768, 1024", "[4, 1024")], "axes.cols.production", "4 is outside 8..16384"),
    "production-step": (HIP, [("[768, 1024", "[770, 1024")], "axes.cols.production", "770 is not a multiple of 4"),
    "production-twice": (HIP, [("[768, 1024", "[1024, 1024")], "axes.cols.production", "names a value twice"),
    "choice-twice": (HIP, [("[0.5, 2.0]", "[0.5, 2.0, 2.0]")], "axes.scale.choices", "names a value twice"),
    "unused-axis": (
        TRITON,
        [("[axes.dtype]", '[axes.spare]\nkind = "size"\nmin = 1\nmax = 9\n\n[axes.dtype]')],
        "axes.spare",
        "is never used",
    ),
    "unpassed-axis": (HIP, [('[[arguments]]\nrole = "scalar"\nname = "scale"\n', "")], "axes.scale", "is no argument"),
    "one-size-axis": (
        TRITON,
        [('[axes.rows]\nkind = "size"\nmin = 1\nmax = 65536\nproduction = [1, 64, 4096]\n', "")],
        "axes",
        "fewer than two size axes",
    ),
    "dtype-axis-in-hip": (
        HIP,
        [("[axes.scale]", '[axes.kind]\nkind = "dtype"\nchoices = ["fp32"]\n\n[axes.scale]')],
        "axes.kind",
        "the C types of a HIP entry are fixed",
    ),
    "axis-named-dtype": (TRITON, [("[axes.dtype]", "[axes.fp8]")], "axes.fp8", "has the name of a dtype"),
    "duplicate-argument": (HIP, [('name = "shift"', 'name = "x"')], "arguments[1].name", "the name of 2 arguments"),
    "keyword-argument": (HIP, [('name = "shift"', 'name = "in"')], "arguments[2].name", "is a word of Python"),
    "argument-and-axis": (HIP, [('name = "shift"', 'name = "scale"')], "arguments[2].name", "the name of an axis too"),
    "size-no-axis": (HIP, [('"size"\nname = "cols"', '"size"\nname = "width"')], "arguments[4].name", "no size axis"),
    "size-scalar": (HIP, [('"size"\nname = "cols"', '"size"\nname = "scale"')], "arguments[4].name", "no size axis"),
    "scalar-size": (HIP, [('"scalar"\nname = "scale"', '"scalar"\nname = "rows"')], "arguments[5].name", "no scalar"),
    "dtype": (HIP, [(X, X.replace("fp32", "fp64"))], "arguments[1].dtype", "'fp64' is neither a dtype"),
    "dtype-is-size": (HIP, [(X, X.replace("fp32", "rows"))], "arguments[1].dtype", "'rows' is neither a dtype"),
    "shape-name": (HIP, [('["cols"]', '["width"]')], "arguments[2].shape[0]", "uses 'width', which is no axis"),
    "shape-zero": (HIP, [('["cols"]', '["cols - 256"]')], "arguments[2].shape[0]", "expected a positive whole number"),
    "shape-fraction": (HIP, [('["cols"]', '["cols / 3"]')], "arguments[2].shape[0]", "a positive whole number"),
    "shape-syntax": (HIP, [('["cols"]', '["cols +"]')], "arguments[2].shape[0]", "invalid syntax"),
    "shape-call": (HIP, [('["cols"]', '["abs(cols)"]')], "arguments[2].shape[0]", "not allowed in an expression"),
    "constraint-name": (HIP, [('"rows * cols <=', '"lines * cols <=')], "constraints[0]", "uses 'lines'"),
    "constraint-divides": (HIP, [('"rows * cols <=', '"rows % (cols - cols) <=')], "constraints[0]", "zero"),
    "std": (HIP, [('std = "2"', 'std = "0 * rows"')], "arguments[1].distribution.std", "expected more than 0"),
    "uniform": (HIP, [("low = -1.0", "low = 1.0")], "arguments[2].distribution", "is not below high 1.0"),
    "integers-for-float": (
        HIP,
        [('kind = "normal", std = "2", large = 16.0, special = "zeros"', 'kind = "integers", high = "9"')],
        "arguments[1].distribution",
        "does not fit the dtype fp32",
    ),
    "normal-for-integer": (HIP, [(X, X.replace("fp32", "int32"))], "arguments[1].distribution", "does not fit"),
    "integers-too-large": (
        HIP,
        [
            (X, X.replace("fp32", "int8")),
            ('kind = "normal", std = "2", large = 16.0, special = "zeros"', 'kind = "integers", high = "129"'),
        ],
        "arguments[1].distribution",
        "does not fit into int8",
    ),
    "integers-empty": (
        HIP,
        [
            (X, X.replace("fp32", "int32")),
            ('kind = "normal", std = "2", large = 16.0, special = "zeros"', 'kind = "integers", high = "rows - rows"'),
        ],
        "arguments[1].distribution",
        "low 0 is not below high 0",
    ),
    "seen-range": (HIP, [("rows = 16384", "rows = 70000")], "seen[3]", "not legal: rows = 70000 is outside 1..65536"),
    "seen-multiple": (HIP, [("cols = 996", "cols = 998")], "seen[2]", "998 is not a multiple of 4"),
    "seen-choice": (HIP, [("scale = 0.5", "scale = 0.7")], "seen[0]", "scale = 0.7 is none of"),
    "seen-axes": (HIP, [("rows = 16384", "lines = 16384")], "seen[3]", "needs exactly the axes"),
    "seen-constraint": (HIP, [("rows = 3\n", "rows = 5000\n")], "seen[4]", "does not meet 'rows * cols"),
    "seen-cap": (HIP, [("memory_cap_mib = 512", "memory_cap_mib = 120")], "seen[1]", "needs 129 MiB, the cap is 120"),
    "seen-twice": (HIP, [("rows = 1000\ncols = 996", "rows = 64\ncols = 256")], "seen[2]", "is the same as seen[0]"),
    "seen-none-large": (
        HIP,
        [("rows = 4096\ncols = 4096", "rows = 496\ncols = 4096"), ("rows = 16384\ncols = 768", "rows = 9\ncols = 768")],
        "seen",
        "none is memory-bound: the largest moves 15.5 MiB",
    ),
    "seen-none-small": (
        HIP,
        [("rows = 64\ncols = 256", "rows = 640\ncols = 256"), ("rows = 3\ncols", "rows = 30\ncols")],
        "seen",
        "none is small: the smallest moves 1.25 MiB",
    ),
    "tolerance-missing": (
        HIP,
        [("[tolerance.fp32]", "[tolerance.fp16]")],
        "tolerance.fp32",
        "the output y can be fp32",
    ),
    "tolerance-axis": (TRITON, [("[tolerance.fp16]", "[tolerance.bf16]")], "tolerance.fp16", "is missing"),
    "tolerance-surplus": (HIP, [("[tolerance.fp32]", "[tolerance.fp8]\n[tolerance.fp32]")], "tolerance.fp8", "no out"),
    "tolerance-wide": (HIP, [('absolute = "1e-6"', 'absolute = "0.5"')], "tolerance.fp32.absolute", "less than 0.5"),
    "tolerance-grows": (
        HIP,
        [('relative = "1e-6"', 'relative = "cols / 32000"')],
        "tolerance.fp32.relative",
        "is 0.5, expected 0 or more and less than 0.5 in rows = 3, cols = 16000",
    ),
    "tolerance-negative": (HIP, [('relative = "1e-6"', 'relative = "0 - 1"')], "tolerance.fp32.relative", "is -1"),
    "tolerance-name": (HIP, [('relative = "1e-6"', 'relative = "k"')], "tolerance.fp32.relative", "uses 'k'"),
    "tolerance-fails": (HIP, [('relative = "1e-6"', 'relative = "sqrt(8 - cols)"')], "tolerance.fp32.relative", "math"),
    "tolerance-units": (HIP, [('absolute = "1e-6"', "units = 1")], "tolerance.fp32", "units, which are for integers"),
    "work-zero": (HIP, [('"8 * rows * cols + 4 * cols"', '"0"')], "work.bytes", "is 0, expected more than 0"),
    "work-too-much": (HIP, [('"8 * rows', '"80 * rows')], "work.bytes", "all inputs and outputs once"),
    "work-fails": (HIP, [('"8 * rows', '"8 / (rows - rows) * rows')], "work.bytes", "division by zero"),
    "flops-negative": (HIP, [('flops = "2', 'flops = "-2')], "work.flops", "expected 0 or more"),
    "cpu-not-target": (HIP, [('["cpu", "cuda"', '["cuda"')], "cpu", "targets does not list cpu"),
    "cpu-max-lacks": (HIP, [("max = { rows = 64, cols = 512 }", "max = { rows = 64 }")], "cpu.max", "lacks cols"),
    "cpu-max-name": (HIP, [("max = { rows = 64,", "max = { rows = 64, n = 2,")], "cpu.max.n", "is no size axis"),
    "cpu-max-wider": (HIP, [("{ rows = 64, cols = 512 }", "{ rows = 64, cols = 20000 }")], "cpu.max.cols", "above the"),
    "cpu-min-lower": (HIP, [("[cpu]", "[cpu]\nmin = { cols = 4 }")], "cpu.min.cols", "below the axis' own 8"),
    "cpu-production": (HIP, [("cols = [64, 128", "cols = [66, 128")], "cpu.production.cols", "66 is not a multiple"),
    "cpu-seen": (HIP, [("rows = 32\n", "rows = 65\n")], "cpu.seen[1]", "not legal: rows = 65 is outside 1..64"),
    "undrawable": (HIP, [("min = 1\nmax = 65536", "min = 1\nmax = 16384"), ("2 ** 26", "2 ** 24")], "axes", "scale_up"),
}


def broken(root: Path, task: str, *changes: tuple[str, str]) -> list[Problem]:
    folder = copy(root, task)
    edit(folder / "task.toml", *changes)
    return lint(folder)


def named(problems: list[Problem], file: str, key: str, essence: str) -> bool:
    return any(p.file == file and p.key == key and essence in p.reason for p in problems)


@pytest.mark.parametrize("name", REAL)
def test_real_task_is_sound(name: str) -> None:
    assert [str(problem) for problem in lint(REAL[name])] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_task_is_sound_when_run(name: str) -> None:
    assert [str(problem) for problem in lint(REAL[name], deep=True)] == []


@pytest.mark.parametrize("task", fixtures.ALL)
def test_fixture_is_sound(task: str) -> None:
    assert lint(fixtures.HERE / task, deep=True) == []


@pytest.mark.parametrize("name", BROKEN)
def test_broken_record(tmp_path: Path, name: str) -> None:
    task, changes, key, essence = BROKEN[name]
    problems = broken(tmp_path, task, *changes)
    assert named(problems, f"{task}/task.toml", key, essence), "\n".join(map(str, problems))


def test_one_fault_gives_one_problem(tmp_path: Path) -> None:
    problems = broken(tmp_path, HIP, ("cols = 996", "cols = 998"))
    assert [str(p) for p in problems] == [
        "hip2hip/scale_shift/task.toml: seen[2]: is not legal: cols = 998 is not a multiple of 4"
    ]


def test_faults_are_all_named_at_once(tmp_path: Path) -> None:
    problems = broken(tmp_path, HIP, ("hip2hip/", "hip2hip/a"), ("[768", "[4"), ("rows = 16384", "rows = 70000"))
    assert [p.key for p in problems] == ["axes.cols.production", "id", "seen[3]"]


def test_schema_faults_are_named_one_by_one(tmp_path: Path) -> None:
    problems = broken(tmp_path, HIP, ("difficulty = 1", "difficulty = 9"), ("min = 1\n", "min = 0\n"))
    assert [p.key for p in problems] == ["axes.rows.min", "difficulty"]


def test_arguments_out_of_order(tmp_path: Path) -> None:
    folder = copy(tmp_path, HIP)
    blocks = (folder / "task.toml").read_text().split("[[arguments]]")
    blocks[1], blocks[2] = blocks[2], blocks[1]
    (folder / "task.toml").write_text("[[arguments]]".join(blocks))
    problems = lint(folder)
    assert named(problems, f"{HIP}/task.toml", "arguments", "not in the order outputs, inputs, sizes, scalars")
    assert named(problems, f"{HIP}/agent/kernel.hip", "scale_shift", "parameter 1 is 'float* y', expected 'const")


def test_no_output(tmp_path: Path) -> None:
    folder = copy(tmp_path, TRITON)
    text = (folder / "task.toml").read_text()
    (folder / "task.toml").write_text(text.replace('role = "output"', 'role = "input"'))
    assert named(lint(folder), f"{TRITON}/task.toml", "arguments[2].distribution", "is required")
    (folder / "task.toml").write_text(
        text.replace('role = "output"', 'role = "input"\ndistribution = { kind = "normal" }')
    )
    assert named(lint(folder), f"{TRITON}/task.toml", "arguments", "has no output")


def test_cpu_table_missing(tmp_path: Path) -> None:
    folder = copy(tmp_path, HIP)
    text = (folder / "task.toml").read_text()
    (folder / "task.toml").write_text(text.partition("[cpu]")[0])
    assert [(p.key, p.reason) for p in lint(folder)] == [("cpu", "is missing, but targets lists cpu")]


def test_cpu_configurations_that_are_never_verified(tmp_path: Path) -> None:
    folder = copy(tmp_path, TRITON)
    text = (folder / "task.toml").read_text().replace("fp16", "bf16")
    gpu, _, cpu = text.partition("[cpu]")
    (folder / "task.toml").write_text(f"{gpu}[cpu]{cpu.replace('fp32', 'bf16')}")
    assert [p.key for p in lint(folder)] == ["cpu.seen"]
    assert "bf16 or fp8, which the cpu target does not verify" in lint(folder)[0].reason


def test_cpu_space_without_a_larger_problem(tmp_path: Path) -> None:
    problems = broken(tmp_path, HIP, ("max = { rows = 64, cols = 512 }", "max = { rows = 33, cols = 512 }"))
    assert problems == []
    folder = tmp_path / "tasks" / HIP
    edit(folder / "task.toml", ("rows = 32\ncols = 256", "rows = 33\ncols = 512"))
    assert named(lint(folder), f"{HIP}/task.toml", "cpu", "no scale_up configuration was found")


# Files.


@pytest.mark.parametrize(
    ("task", "file"),
    [
        (HIP, "agent/kernel.hip"),
        (HIP, "solution/kernel.hip"),
        (HIP, "judge/oracle.py"),
        (TRITON, "agent/kernel.py"),
        (PYTORCH, "agent/module.py"),
        (PYTORCH, "agent/kernel.hip"),
    ],
)
def test_missing_file(tmp_path: Path, task: str, file: str) -> None:
    folder = copy(tmp_path, task)
    (folder / file).unlink()
    assert lint(folder) == [Problem(f"{task}/{file}", "", "is missing")]


def test_missing_record(tmp_path: Path) -> None:
    folder = copy(tmp_path)
    (folder / "task.toml").unlink()
    assert lint(folder) == [Problem(f"{HIP}/task.toml", "", "cannot be read (No such file or directory)")]
    assert lint_all(tmp_path) == lint(folder)


def test_surplus_files(tmp_path: Path) -> None:
    folder = copy(tmp_path)
    (folder / "agent" / "answer.hip").write_text("")
    assert lint(folder) == [Problem(f"{HIP}/agent/answer.hip", "", "does not belong to a task of hip2hip")]
    for index in range(2):
        (folder / f"notes{index}.md").write_text("")
    assert Problem(HIP, "", "has 7 files, expected at most 6") in lint(folder)


def test_caches_do_not_count(tmp_path: Path) -> None:
    folder = copy(tmp_path)
    (folder / "judge" / "__pycache__").mkdir()
    (folder / "judge" / "__pycache__" / "oracle.pyc").write_bytes(b"")
    assert lint(folder) == []


@pytest.mark.parametrize("file", ["agent/kernel.hip", "judge/oracle.py", "task.toml"])
def test_link(tmp_path: Path, file: str) -> None:
    folder = copy(tmp_path)
    (folder / file).unlink()
    (folder / file).symlink_to(fixtures.HERE / HIP / file)
    assert named(lint(folder), f"{HIP}/{file}", "", "is a link or a special file")


def test_linked_folder(tmp_path: Path) -> None:
    folder = tmp_path / "tasks" / HIP
    folder.parent.mkdir(parents=True)
    folder.symlink_to(fixtures.HERE / HIP)
    assert lint_all(tmp_path) == [Problem(HIP, "", "is a link, expected a folder")]


def test_unknown_category(tmp_path: Path) -> None:
    copy(tmp_path).parent.rename(tmp_path / "tasks" / "cuda2hip")
    assert [str(p) for p in lint_all(tmp_path)] == [
        "cuda2hip: is no category, expected hip2hip, pytorch2hip, triton2triton"
    ]


def test_lint_all_takes_every_task(tmp_path: Path) -> None:
    for task in fixtures.ALL:
        copy(tmp_path, task)
    assert lint_all(tmp_path) == []
    (tmp_path / "tasks" / PYTORCH / "agent" / "module.py").unlink()
    (tmp_path / "tasks" / TRITON / "judge" / "oracle.py").unlink()
    assert [p.file for p in lint_all(tmp_path)] == [f"{PYTORCH}/agent/module.py", f"{TRITON}/judge/oracle.py"]


# Signatures.

SIGNATURES: dict[str, tuple[str, str, tuple[str, str], str, str]] = {
    "no-extern": (
        HIP,
        "agent/kernel.hip",
        ('extern "C" int scale_shift(f', "int scale_shift(f"),
        "scale_shift",
        "not def",
    ),
    "only-declared": (
        HIP,
        "solution/kernel.hip",
        ("stream) {", "stream);\nint f() {"),
        "scale_shift",
        "is not defined",
    ),
    "void": (
        HIP,
        "agent/kernel.hip",
        ('"C" int scale_shift(f', '"C" void scale_shift(f'),
        "scale_shift",
        "returns 'void'",
    ),
    "number": (HIP, "agent/kernel.hip", ("int rows, ", ""), "scale_shift", "takes 6 parameters, expected 7"),
    "swapped": (
        HIP,
        "agent/kernel.hip",
        ("int rows, int cols", "int cols, int rows"),
        "scale_shift",
        "parameter 4 is 'int cols', expected 'int rows'",
    ),
    "c-type": (
        HIP,
        "solution/kernel.hip",
        ("const float* __restrict__ x", "const double* __restrict__ x"),
        "scale_shift",
        "parameter 2 is 'const double* x', expected 'const float* x'",
    ),
    "const": (
        HIP,
        "agent/kernel.hip",
        ("(float* y, const float* x, const float* shift, int", "(float* y, float* x, const float* shift, int"),
        "scale_shift",
        "parameter 2 is 'float* x'",
    ),
    "by-value": (PYTORCH, "agent/kernel.hip", ("float* y", "float y"), "row_dot", "parameter 1 is 'float y'"),
    "scalar-type": (
        PYTORCH,
        "solution/kernel.hip",
        ("int cols, float scale, hip", "int cols, double scale, hip"),
        "row_dot",
        "expected 'float scale'",
    ),
    "stream": (HIP, "agent/kernel.hip", ("hipStream_t stream", "void* stream"), "scale_shift", "the last parameter is"),
    "not-utf8": (HIP, "agent/kernel.hip", ("// One", "// \udcff"), "", "cannot be read as UTF-8"),
    "triton-name": (TRITON, "agent/kernel.py", ("def bias_add", "def add_bias"), "bias_add", "is not defined"),
    "triton-order": (
        TRITON,
        "agent/kernel.py",
        ("(x, bias, y):", "(y, x, bias):"),
        "bias_add",
        "expected the parameters (x, bias, y)",
    ),
    "triton-star": (
        TRITON,
        "agent/kernel.py",
        ("(x, bias, y):", "(*tensors):"),
        "bias_add",
        "is def bias_add(*tensors)",
    ),
    "triton-syntax": (
        TRITON,
        "agent/kernel.py",
        ("(x, bias, y):", "(x, bias, y)"),
        "bias_add",
        "the file is not Python",
    ),
    "module": (
        PYTORCH,
        "agent/module.py",
        ("b: torch.Tensor, scale: float", "b: torch.Tensor"),
        "forward",
        "expected the parameters (a, b, scale)",
    ),
    "oracle-lacks": (HIP, "judge/oracle.py", (", scale: float", ""), "oracle", "does not accept scale"),
    "oracle-asks": (HIP, "judge/oracle.py", ("scale: float", "scale: float, y: int"), "oracle", "asks for y"),
    "oracle-positional": (
        HIP,
        "judge/oracle.py",
        ("(*, x: torch.Tensor,", "(x: torch.Tensor, /, "),
        "oracle",
        "positional-only",
    ),
    "oracle-missing": (HIP, "judge/oracle.py", ("def oracle", "def reference"), "oracle", "is not defined"),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(tmp_path: Path, name: str) -> None:
    task, file, (old, new), key, essence = SIGNATURES[name]
    path = copy(tmp_path, task) / file
    text = path.read_text()
    assert old in text
    path.write_bytes(text.replace(old, new, 1).encode("utf-8", "surrogateescape"))
    problems = lint(tmp_path / "tasks" / task)
    assert named(problems, f"{task}/{file}", key, essence), "\n".join(map(str, problems))


@pytest.mark.parametrize(
    "signature",
    [
        'extern "C" int scale_shift(float *y, float const * __restrict x, const float*shift, const int rows,\n'
        "  int cols /* of a row */, float scale, hipStream_t s) {",
        'extern  "C"  hipError_t scale_shift(float* const y, const float* x, const float* shift, int rows, int cols,\n'
        "  float scale, // one number\n  hipStream_t stream) noexcept\n{",
    ],
)
def test_other_ways_to_write_the_same_signature(tmp_path: Path, signature: str) -> None:
    folder = copy(tmp_path)
    path = folder / "agent" / "kernel.hip"
    head, _, rest = path.read_text().partition('extern "C" int scale_shift(float* y')
    path.write_text(head + signature + rest.partition("{")[2])
    assert lint(folder) == []


def test_without_torch(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; sys.modules['torch'] = None\n"
        "from akarena.lint import lint_all; print(*lint_all(pathlib.Path(sys.argv[1])), sep='\\n')"
    )
    edit(copy(tmp_path) / "task.toml", ("rows = 16384", "rows = 70000"))
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert result.stdout.startswith(f"{HIP}/task.toml: seen[3]: ")
    assert result.stdout.count("\n") == 1


# The deep part.

Y_IS = "scale * x.double() + shift.double()"
DEEP: dict[str, tuple[tuple[str, tuple[str, str]], str, str, str]] = {
    "import": (
        ("judge/oracle.py", ("import torch", "import torch\nimport no_such_module")),
        "judge/oracle.py",
        "oracle",
        "cannot be imported",
    ),
    "raises": (
        ("judge/oracle.py", (Y_IS, "x @ x")),
        "judge/oracle.py",
        "oracle",
        "fails in the ordinary round of cpu.seen[0]",
    ),
    "no-output": (("judge/oracle.py", ('"y":', '"z":')), "judge/oracle.py", "oracle", "gives no y"),
    "more-outputs": (
        ("judge/oracle.py", ('"y":', '"z": x, "y":')),
        "judge/oracle.py",
        "oracle",
        "gives y, z, expected y",
    ),
    "shape": (
        ("judge/oracle.py", (Y_IS, f"({Y_IS}).T")),
        "judge/oracle.py",
        "oracle",
        "gives y the shape (32, 8), expected (8, 32)",
    ),
    "dtype": (
        ("judge/oracle.py", (Y_IS, "scale * x + shift")),
        "judge/oracle.py",
        "oracle",
        "as torch.float32, expected torch.float64",
    ),
    "infinite": (
        ("judge/oracle.py", (Y_IS, f"({Y_IS}) / 0")),
        "judge/oracle.py",
        "oracle",
        "not finite in torch.float32",
    ),
    "nan": (("judge/oracle.py", (Y_IS, f"({Y_IS}) / 0 * 0")), "judge/oracle.py", "oracle", "gives NaN in y"),
    "overflows": (
        ("judge/oracle.py", (Y_IS, f"({Y_IS}) * 1e39")),
        "judge/oracle.py",
        "oracle",
        "not finite in torch.float32",
    ),
    "changes-input": (
        ("judge/oracle.py", (Y_IS, "x.mul_(2).double() * scale + shift")),
        "judge/oracle.py",
        "oracle",
        "changes its inputs",
    ),
    "ignores-input": (
        ("judge/oracle.py", (" + shift.double()", "")),
        "task.toml",
        "arguments[2]",
        "other values of shift change no",
    ),
    "ignores-scalar": (
        ("judge/oracle.py", ("scale * x", "x")),
        "task.toml",
        "axes.scale",
        "another choice changes no output",
    ),
    "tiny-input": (
        ("judge/oracle.py", ("shift.double()", "1e-9 * shift.double()")),
        "task.toml",
        "arguments[2]",
        "a kernel could ignore it",
    ),
    "wide": (
        ("task.toml", ('relative = "1e-6"\nabsolute = "1e-6"', 'relative = "0.4"\nabsolute = "0.4"')),
        "task.toml",
        "cpu.seen[1]",
        "only the rms error tells the wrong answer one_element_wrong for output y",
    ),
    "constant": (
        ("judge/oracle.py", (Y_IS, "10 + 1e-5 * (scale * x.double() + shift.double())")),
        "task.toml",
        "cpu.seen[1]",
        "takes the wrong answer",
    ),
}


@pytest.mark.parametrize("name", DEEP)
def test_deep(tmp_path: Path, name: str) -> None:
    (edited, change), file, key, essence = DEEP[name]
    folder = copy(tmp_path)
    edit(folder / edited, change)
    assert lint(folder) == []
    problems = lint(folder, deep=True)
    assert named(problems, f"{HIP}/{file}", key, essence), "\n".join(map(str, problems))


def test_deep_is_left_out_where_the_record_is_broken(tmp_path: Path) -> None:
    folder = copy(tmp_path)
    edit(folder / "task.toml", ("rows = 16384", "rows = 70000"))
    edit(folder / "judge" / "oracle.py", ('"y":', '"z":'))
    assert lint(folder, deep=True) == lint(folder)


def test_deep_without_a_cpu_table(tmp_path: Path) -> None:
    folder = copy(tmp_path)
    path = folder / "task.toml"
    path.write_text(path.read_text().partition("[cpu]")[0].replace('"cpu", ', ""))
    assert lint(folder, deep=True) == []
