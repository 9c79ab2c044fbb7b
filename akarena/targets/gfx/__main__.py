"""The command line; prints one JSON object, and nothing else, on standard output.

The exit code is 0 whatever was found out (compiled, failed, unavailable) and 2 when the flags are wrong.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from .bounds import MAX_LOG_BYTES
from .compile_hip import compile_hip
from .compile_triton import compile_triton, find_triton_versions
from .kernels import Compiled
from .toolchain import LDS_LIMIT_BYTES, Unavailable, find
from .triton_arguments import InvalidArgumentsError, load_arguments

MAX_OUTPUT_BYTES = 64 * 1024


class Status(StrEnum):
    """What is said about a source."""

    COMPILED = "compiled"
    """Every architecture that was asked for has a code object."""
    FAILED = "failed"
    """The source is at fault."""
    UNAVAILABLE = "unavailable"
    """The tool chain is missing or broken: nothing is known about the source."""


def main(argv: Sequence[str] | None = None) -> int:
    """Compile as the flags say, print the answer and return the exit code."""
    options = _parse(argv)
    toolchain: dict[str, str] = {}
    outcomes: list[Compiled] = []
    try:
        outcomes = _compile(options, toolchain)
        reasons = [outcome.reason for outcome in outcomes if outcome.reason is not None]
        status, reason = (Status.FAILED, reasons[0]) if reasons else (Status.COMPILED, None)
    except Unavailable as error:
        status, reason = Status.UNAVAILABLE, str(error)
    kernels = [dataclasses.asdict(kernel) for outcome in outcomes for kernel in outcome.kernels]
    log = "\n".join(outcome.log for outcome in outcomes if outcome.log)
    sys.stdout.write(render(status, reason, toolchain, kernels, log) + "\n")
    return 0


def render(status: Status, reason: str | None, toolchain: dict[str, str], kernels: list[Any], log: str) -> str:
    """Return the answer as one line of JSON of at most ``MAX_OUTPUT_BYTES``, newline included.

    What does not fit is left out from the end of the list of kernels, and ``kernels_left_out`` counts it.
    """
    if len(log) > MAX_LOG_BYTES:
        log = log[: MAX_LOG_BYTES // 2] + "\n[...]\n" + log[-MAX_LOG_BYTES // 2 :]
    answer: dict[str, Any] = {"status": status, "reason": reason, "toolchain": toolchain, "kernels": [], "log": log}
    answer["kernels_left_out"] = len(kernels)
    while len(json.dumps(answer)) > MAX_OUTPUT_BYTES // 2:
        # Escaping makes a log up to six times as long.
        answer["log"] = log = log[len(log) // 2 :]
    room = MAX_OUTPUT_BYTES - len(json.dumps(answer)) - 1
    for kernel in kernels:
        room -= len(json.dumps(kernel)) + 2
        if room < 0:
            break
        answer["kernels"].append(kernel)
    answer["kernels_left_out"] = len(kernels) - len(answer["kernels"])
    return json.dumps(answer)


def _compile(options: argparse.Namespace, toolchain: dict[str, str]) -> list[Compiled]:
    outcomes = []
    if options.kind == "hip":
        found = find()
        toolchain.update(found.versions)
        for architecture in options.architecture:
            outcomes.append(compile_hip(options.source, architecture, options.out, found))
    else:
        toolchain.update(find_triton_versions())
        for architecture in options.architecture:
            outcomes.append(compile_triton(options.source, architecture, options.out, options.entry, options.arguments))
    return outcomes


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}", description=__doc__)
    parser.add_argument("--kind", choices=["hip", "triton"], required=True, help="the language of the source")
    parser.add_argument("--source", type=Path, required=True, help="the file to compile")
    parser.add_argument(
        "--architecture", action="append", choices=sorted(LDS_LIMIT_BYTES), required=True, help="may be repeated"
    )
    parser.add_argument("--entry", help="triton: the host function; by default the one that --arguments names")
    parser.add_argument("--arguments", type=Path, help="triton: a JSON file with the arguments of the host function")
    parser.add_argument("--out", type=Path, required=True, help="the folder for the code objects")
    options = parser.parse_args(argv)
    options.architecture = list(dict.fromkeys(options.architecture))
    if not options.source.is_file():
        parser.error(f"--source {options.source}: no such file")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--out {options.out}: {error.strerror}, expected a folder")
    if options.kind == "triton":
        if options.arguments is None:
            parser.error("--arguments is needed for --kind triton")
        try:
            named, _ = load_arguments(options.arguments)
        except InvalidArgumentsError as error:
            parser.error(f"--arguments {error}")
        options.entry = options.entry or named
        if options.entry is None:
            parser.error(f"--entry is needed: {options.arguments} names no 'entry'")
    return options


if __name__ == "__main__":
    sys.exit(main())
