"""The rocm and cuda targets on stand-ins for their bases: the layout of the real ones, with hollow libraries.

They prove which files are found, taken and described. That the real base is built on is proven nowhere here.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator

import pytest
from docker import DockerClient

from akarena.images import compare, lock
from akarena.records.image import ImageLockRecord, ImageRole
from akarena.records.task import TargetName
from tests.docker.conftest import Builder, lock_kept
from tests.docker.test_images import run

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(900)]

LIBRARY = "RUN mkdir -p {folder} && echo 'int {symbol}(void) {{ return 7; }}' | g++ -shared -fPIC -x c++ - "
LIBRARY += "-Wl,-soname,{name} -Wl,-rpath,'$ORIGIN' {options} -o {folder}/{name}\n"
TORCH = """
RUN python3 -m venv --without-pip /opt/venv && for name in torch triton numpy; do \\
    cd /opt/venv/lib/python3.*/site-packages && mkdir $name && touch $name/__init__.py; done
"""
PROGRAM = "RUN mkdir -p {folder} && printf '#!/bin/sh\\necho tool\\necho {version}\\n' > {folder}/{name} && "
PROGRAM += "chmod 0755 {folder}/{name}\n"
ROCM = "/opt/rocm-7.2.4/lib"
CUDA = "/usr/local/cuda-13.0/targets/x86_64-linux/lib"
BASES = {
    "rocm": TORCH
    + LIBRARY.format(folder=ROCM, name="libhsa-runtime64.so.1", symbol="hsa", options="")
    + f"RUN ln -s libhsa-runtime64.so.1 {ROCM}/libhsa-runtime64.so\n"
    + LIBRARY.format(
        folder=ROCM,
        name="libamdhip64.so.7",
        symbol="hip",
        options=f"-Wl,--no-as-needed -L {ROCM} -l hsa-runtime64",
    )
    + LIBRARY.format(folder=ROCM, name="libamd_comgr.so.3", symbol="comgr", options="")
    + LIBRARY.format(folder=ROCM, name="librocblas.so.5", symbol="blas", options="")
    + "RUN ln -s rocm-7.2.4 /opt/rocm\n"
    + PROGRAM.format(folder="/opt/rocm-7.2.4/bin", name="hipcc", version="HIP version: 7.2.4"),
    "cuda": TORCH
    + LIBRARY.format(folder=CUDA, name="libcudart.so.13", symbol="cuda", options="")
    + "RUN ln -s cuda-13.0 /usr/local/cuda && ln -s targets/x86_64-linux/lib /usr/local/cuda-13.0/lib64\n"
    + PROGRAM.format(folder="/usr/local/cuda-13.0/bin", name="nvcc", version="release 13.0, V13.0.88"),
}
EXPECTED = {
    "rocm": (f"{ROCM}/libamdhip64.so.7", "hip", "HIP version: 7.2.4", "/opt/rocm/bin/hipcc"),
    "cuda": (f"{CUDA}/libcudart.so.13", "cuda", "release 13.0, V13.0.88", "/usr/local/cuda/bin/nvcc"),
}


@pytest.fixture(scope="module", params=sorted(BASES))
def images(
    request: pytest.FixtureRequest, client: DockerClient, base: str, builder: Builder
) -> Iterator[ImageLockRecord]:
    """The three roles on a stand-in."""
    target: str = request.param
    tag = f"akarena-test:{target}"
    text = f"FROM {base}\n{BASES[target]}".encode()
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
    stream.seek(0)
    client.images.build(fileobj=stream, custom_context=True, tag=tag, network_mode="none", rm=True)
    with lock_kept(TargetName(target)):
        done = builder("--target", target, "--json", base=tag)
        assert done.code == 0, done.err
        record = ImageLockRecord.model_validate_json(done.out)
        yield record
    for image in record.images:
        client.images.remove(image.id, force=True)
    client.images.remove(tag, force=True)


def test_worker_has_the_runtime_and_what_it_needs(client: DockerClient, images: ImageLockRecord) -> None:
    worker = lock.find(images, ImageRole.WORKER)
    library, prefix, _, _ = EXPECTED[images.target.value]
    assert worker.facts.runtime is not None
    assert (worker.facts.runtime.library, worker.facts.runtime.prefix) == (library, prefix)
    code = f"import ctypes; ctypes.CDLL({library!r}); ctypes.CDLL({library.rpartition('/')[2]!r}); print('loaded')"
    shown = run(client, worker.id, worker.facts.python.bare_executable, "-I", "-S", "-c", code)
    assert shown == "loaded\n", "by its path, and by its name from the loader's cache"
    (contents,) = compare.snapshot(client, worker.id)
    found = {path.rpartition("/")[2] for path in contents}
    assert not found & {"librocblas.so.5", "hipcc", "nvcc", "torch", "sh"}
    if prefix == "hip":
        assert {"libhsa-runtime64.so.1", "libamd_comgr.so.3"} <= found, "needed, and loaded by itself"


def test_judge_and_agent_use_what_the_base_brings(images: ImageLockRecord) -> None:
    library, prefix, version, compiler = EXPECTED[images.target.value]
    for role in (ImageRole.JUDGE, ImageRole.AGENT):
        facts = lock.find(images, role).facts
        assert facts.python.executable == "/opt/venv/bin/python"
        assert facts.compiler is not None
        assert (facts.compiler.path, facts.compiler.version) == (compiler, version)
        assert facts.runtime is not None
        assert (facts.runtime.library, facts.runtime.prefix) == (library, prefix)
    assert {package.name for package in lock.find(images, ImageRole.JUDGE).facts.python_packages} >= {"pydantic"}
    assert lock.find(images, ImageRole.AGENT).facts.python_packages == ()


def test_nothing_is_installed_over_the_base(client: DockerClient, images: ImageLockRecord) -> None:
    under = client.images.get(images.base.id).attrs["RootFS"]["Layers"]
    for role in (ImageRole.JUDGE, ImageRole.AGENT):
        image = lock.find(images, role)
        assert list(image.layers[: len(under)]) == under
        added = image.size_bytes - client.images.get(images.base.id).attrs["Size"]
        assert added < 20_000_000, role
