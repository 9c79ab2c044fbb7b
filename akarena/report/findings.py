"""What in a candidate's text a person should look at: names that kernels seldom need. Nothing is decided by it.

A text can hide anything from such a search, and honest code may well use every name; what refuses a candidate is what
it does in the judge's sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

_MOST_CHARACTERS = 200_000
_MOST_LINES = 3
"""Lines that are named for one finding."""


class Finding(StrEnum):
    """Kinds of what may be found, in the words of the report."""

    PROCESSES = "starts or signals processes"
    THREADS = "uses host threads or signal handlers"
    FILES = "uses files, sockets or the environment"
    LOADER = "loads or looks up other code"
    ASSEMBLER = "holds assembler"
    BEFORE_MAIN = "runs code when it is loaded"
    FOREIGN_INCLUDE = "includes a header beyond runtime, C and C++ libraries"
    FOREIGN_IMPORT = "imports a module beyond torch, triton and plain helpers"
    LIBRARY = "names a library of ready kernels"
    TORCH_COMPUTES = "calls torch to compute"
    PATCHES = "sets attributes of a module"
    DYNAMIC = "runs or looks up code by name"
    TIMING = "uses clocks or device events"
    CAPTURE = "handles graphs or asks whether it is recorded"
    CALLER = "looks at its caller or at the interpreter"
    OTHER_STREAM = "makes streams of its own or calls back to the host"
    DEVICE_MEMORY = "allocates or copies device memory itself"
    ADDRESSES = "looks at addresses of tensors"


_CPP = {
    Finding.PROCESSES: r"v?fork|exec(l|lp|le|v|vp|vpe|ve)|system|popen|posix_spawnp?|kill|ptrace|prctl|setsid|syscall",
    Finding.THREADS: r"pthread_\w+|std\s*::\s*(j?thread|async)|sem_\w+|condition_variable|atexit|sigaction|signal",
    Finding.FILES: r"f?open(at)?|[io]?fstream|mmap|shm_open|memfd_create|socket|connect|opendir|getenv|environ",
    Finding.LOADER: r"dlm?open|dlv?sym|dl_iterate_phdr|(cu|hip)ModuleLoad\w*|nvrtc\w+|hiprtc\w+",
    Finding.ASSEMBLER: r"asm|__asm|__asm__",
    Finding.BEFORE_MAIN: r"constructor|init_priority|ifunc",
    Finding.LIBRARY: r"(roc|hip|cu)blas\w*|cudnn\w*|miopen\w*|cutlass|rocwmma|composable_kernel",
    Finding.TIMING: r"(hip|cuda)Event\w+|(steady|system|high_resolution)_clock|clock_gettime|gettimeofday|\w+sleep",
    Finding.CAPTURE: r"(hip|cuda)(Graph|StreamBeginCapture|StreamEndCapture|StreamIsCapturing|StreamGetCaptureInfo)\w*",
    Finding.OTHER_STREAM: r"(hip|cuda)(StreamCreate|LaunchHostFunc|StreamAddCallback|DeviceSetLimit|CtxCreate)\w*",
    Finding.DEVICE_MEMORY: r"(hip|cuda)(Malloc|Free|Memcpy|HostAlloc|HostMalloc|Ipc|MemPool|HostRegister)\w*",
}
_PYTHON = {
    Finding.DYNAMIC: r"exec|eval|compile|__import__|setattr|globals|locals",
    Finding.CALLER: r"sys\.(_getframe|modules|settrace|setprofile|argv)|inspect\.\w+|gc\.\w+|traceback\.\w+",
    Finding.FILES: r"open|os\.\w+|pathlib\.\w+|socket\.\w+|io\.\w+|mmap\.\w+",
    Finding.PROCESSES: r"os\.(fork|kill|system|exec\w+|posix_spawn|waitpid)|subprocess\.\w+|multiprocessing\.\w+",
    Finding.THREADS: r"(threading|concurrent|asyncio|atexit|signal)\.\w+",
    Finding.LOADER: r"(ctypes|importlib|cffi|torch\.utils\.cpp_extension|torch\.ops)\.\w+",
    Finding.TIMING: r"time\.\w+|torch\.cuda\.Event|triton\.testing\.\w+",
    Finding.CAPTURE: r"torch\.cuda\.(CUDAGraph|graphs?|is_current_stream_capturing|make_graphed_callables)",
    Finding.OTHER_STREAM: r"torch\.cuda\.(Stream|stream|ExternalStream|set_stream)",
    Finding.ADDRESSES: r"[\w.]+\.(data_ptr|untyped_storage|storage|_cdata)",
    Finding.TORCH_COMPUTES: (
        r"torch\.(nn|functional|special|linalg|compile|matmul|mm|bmm|addmm|baddbmm|einsum|softmax|log_softmax"
        r"|layer_norm|rms_norm|conv\w*|sum|mean|var|std|exp|log|sqrt|rsqrt|sigmoid|relu|tanh|where|cumsum|sort|topk"
        r"|index_select|gather|scatter\w*|mul|add|div|sub|clamp|amax|amin|max|min|logsumexp|_scaled_mm|_inductor)"
        r"(\.\w+)*"
    ),
}
_PLAIN_MODULES = frozenset({"torch", "triton", "math", "functools", "typing", "dataclasses", "itertools", "__future__"})
_PLAIN_HEADER = re.compile(
    r"hip/[\w./]+|cuda\w*\.h|c?(assert|float|limits|math|stddef|stdint|stdio|stdlib|string)(\.h)?"
    r"|algorithm|array|bit|concepts|exception|initializer_list|memory|new|numeric|stdexcept|tuple|type_traits|utility"
    r"|vector"
)
# Each alternative ends somewhere, closed or not, so that a hostile text cannot make the search slow.
_QUOTED = r"""'(?:\\.|[^'\\\n])*'?|"(?:\\.|[^"\\\n])*"?"""
_CPP_SILENT = re.compile(
    rf"(?P<kept>^[ \t]*#[ \t]*include[^\n]*)|//[^\n]*|/\*.*?(?:\*/|\Z)|{_QUOTED}", re.DOTALL | re.MULTILINE
)
_PYTHON_SILENT = re.compile(rf"(?P<kept>(?!))|#[^\n]*|\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)|{_QUOTED}", re.DOTALL)
_INCLUDED = re.compile(r"#\s*include\s*[<\"]([^>\"]+)")
_IMPORT = re.compile(r"^\s*(?:import\s+(?P<all>[\w., ]+)|from\s+(?P<one>[\w.]+)\s+import\b(?P<names>[\w, ]*))")
_SET = re.compile(r"^\s*(?P<module>[A-Za-z_]\w*)(?:\.\w+)+\s*=[^=]")


def findings(name: str, text: str) -> tuple[str, ...]:
    """Search one file of a candidate.

    Args:
        name: Its name, whose ending tells the language.
        text: What is in it; of a very long one only the beginning is searched.

    Returns:
        One sentence for each kind that was found, with the first lines where.
    """
    searched = text[:_MOST_CHARACTERS]
    found = _in_python(searched) if name.endswith(".py") else _in_cpp(searched)
    where: dict[Finding, set[int]] = {}
    for finding, number in found:
        where.setdefault(finding, set()).add(number)
    said = [f"{name}:{_numbers(where[finding])}: {finding.value}" for finding in Finding if finding in where]
    if len(text) > _MOST_CHARACTERS:
        said.append(f"{name}: only the first {_MOST_CHARACTERS} of {len(text)} characters were searched")
    return tuple(said)


def _numbers(lines: set[int]) -> str:
    first = sorted(lines)[:_MOST_LINES]
    rest = len(lines) - len(first)
    return ",".join(map(str, first)) + (f" and {rest} more" if rest else "")


def _whole_names(names: dict[Finding, str]) -> dict[Finding, re.Pattern[str]]:
    return {finding: re.compile(rf"(?<![\w.])(?:{pattern})(?!\w)") for finding, pattern in names.items()}


_CPP_NAMES = _whole_names(_CPP)
_PYTHON_NAMES = _whole_names(_PYTHON)


def _code_lines(text: str, silent: re.Pattern[str]) -> list[str]:
    """Return the lines without comments and without what is in strings."""
    return silent.sub(lambda match: match["kept"] or "\n" * match[0].count("\n"), text).split("\n")


def _named(lines: list[str], names: dict[Finding, re.Pattern[str]]) -> Iterator[tuple[Finding, int]]:
    for number, line in enumerate(lines, 1):
        for finding, pattern in names.items():
            if pattern.search(line):
                yield finding, number


def _in_cpp(text: str) -> Iterator[tuple[Finding, int]]:
    lines = _code_lines(text, _CPP_SILENT)
    yield from _named(lines, _CPP_NAMES)
    for number, line in enumerate(lines, 1):
        included = _INCLUDED.search(line)
        if included and not _PLAIN_HEADER.fullmatch(included[1]):
            yield Finding.FOREIGN_INCLUDE, number


def _in_python(text: str) -> Iterator[tuple[Finding, int]]:
    lines = _code_lines(text, _PYTHON_SILENT)
    yield from _named(lines, _PYTHON_NAMES)
    imported: set[str] = set()
    for number, line in enumerate(lines, 1):
        match = _IMPORT.match(line)
        if match is None:
            continue
        modules = [match["one"]] if match["one"] else match["all"].split(",")
        if any(module.split()[0].split(".")[0] not in _PLAIN_MODULES for module in modules if module.split()):
            yield Finding.FOREIGN_IMPORT, number
        # A module goes by its first name, or by the one after "as"; what is imported from one may be a module, too.
        bound = [*([] if match["one"] else modules), *(match["names"] or "").split(",")]
        imported |= {part.split()[-1].split(".")[0] for part in bound if part.split()}
    for number, line in enumerate(lines, 1):
        assigned = _SET.match(line)
        if assigned and assigned["module"] in imported:
            yield Finding.PATCHES, number
