"""The agent's ``check``, server side: one judgement for each connection to a unix socket."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from akarena.agents.base import Check
from akarena.errors import AkarenaError
from akarena.records.trial import Step, StepKind

_REQUEST_SECONDS = 2.0


class CheckServer:
    """Answers ``check`` while an agent works. One call at a time, and no more than it has.

    Args:
        path: Where the socket is made.
        check: Judges the workspace as it is now.
        calls: How many calls the agent has.
    """

    def __init__(self, path: Path, check: Check, calls: int) -> None:
        self.path = path
        self.calls = 0
        self._check = check
        self._most = calls
        self._log: list[tuple[float, str]] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> CheckServer:
        """Listen."""
        self._socket.bind(str(self.path))
        self.path.chmod(0o600)
        self._socket.listen(4)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; a judgement that is under way is finished first."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def steps(self, began: float) -> tuple[Step, ...]:
        """Return the calls as steps of the trajectory, with times since ``began``."""
        return tuple(
            Step(kind=StepKind.CHECK, seconds=max(0.0, at - began), text="check", result=answer[:20000])
            for at, answer in self._log
        )

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.settimeout(_REQUEST_SECONDS)
                # Who hangs up without a word, by its death too, has asked nothing.
                if connection.recv(1):
                    connection.sendall(self._answer())

    def _answer(self) -> bytes:
        at = time.monotonic()
        if self.calls >= self._most:
            return _refusal(f"no call is left of {self._most}")
        self.calls += 1
        try:
            answer = self._check()
        except AkarenaError as error:
            answer = _refusal(f"the check itself failed: {error}")
        self._log.append((at, answer.decode(errors="replace")))
        return answer


def _refusal(message: str) -> bytes:
    return json.dumps({"message": message}).encode() + b"\n"
