#!/usr/bin/env python3
"""Ask for a judgement of the files as they are now, and print what came of it. Standard library only.

Runs in the agent's sandbox; it holds no secret and decides nothing.
"""

import json
import socket
import sys
from pathlib import Path


def main() -> int:
    """Ask, print; the exit code is 0 where everything that could be checked is right."""
    path = str(Path(__file__).resolve().parent / "check.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        connection.sendall(b"c")
        data = b""
        while piece := connection.recv(65536):
            data += piece
    answer = json.loads(data or b"{}")
    if "cases" not in answer:
        print(answer.get("message", "no answer"))
        return 2
    print(answer["message"])
    if answer["log"]:
        print(answer["log"])
    for case in answer["cases"]:
        values = ", ".join(f"{name} = {value}" for name, value in case["configuration"]["values"].items())
        state = {True: "correct", False: "WRONG", None: "not verified"}[case["correct"]]
        line = f"{state:12}  {values}"
        if case["worst_error_ratio"] is not None:
            line += f"  error/tolerance {case['worst_error_ratio']:.3g}"
        if case["candidate_us"] is not None:
            line += f"  {case['candidate_us']:.2f} us (baseline {case['baseline_us']:.2f} us)"
        if case["reason"]:
            line += f"  {case['reason']}"
        print(line)
    print(f"{answer['calls_left']} calls left")
    return 0 if answer["compiled"] and all(case["correct"] is not False for case in answer["cases"]) else 1


if __name__ == "__main__":
    sys.exit(main())
