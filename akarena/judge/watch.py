"""A look at a replay while it runs: the calls of a chain must come one after another.

A process that receives a whole replay could carry its calls out together, whatever it was told. But the judge shares
the memory. A look in the middle of a replay must find the calls done up to some point, at most one in work, and none
begun behind it; and as many must be done as the time says, or they were only kept back. The device gives its processes
turns, so nothing moves while the judge looks.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch

from akarena.judge.arena import Memory, Slot
from akarena.judge.sample import Pieces, places_in

PIECES_A_CALL = 4
_LEAST_PROGRESS = 0.5
_START_SECONDS = 0.0005
"""A replay may take as long to begin."""


class Watch:
    """Secret places in the outputs of every call of a replay.

    Args:
        memory: The arena.
        slots: The outputs in it.
        order: The calls, in the order in which they must be carried out.
        word: The poison that lies in the outputs before the replay.
        numbers: The secret generator.
        wait_seconds: How long after the request to look.
        whole_seconds: How long the replay takes when nobody looks.

    Attributes:
        done: How many calls the look found done, of all; None before it.
    """

    def __init__(
        self,
        memory: Memory,
        slots: Sequence[Slot],
        order: Sequence[int],
        word: int,
        numbers: np.random.Generator,
        wait_seconds: float,
        whole_seconds: float,
    ) -> None:
        self._calls = len(order)
        self._wait_seconds = wait_seconds
        self._whole_seconds = whole_seconds
        # The last call comes first: should a look be torn in two, its later part sees the earlier calls.
        backwards = np.asarray(order)[::-1]
        pieces = [places_in(slots[index % len(slots)], backwards, numbers) for index in range(PIECES_A_CALL)]
        self._pieces = Pieces(memory, np.stack(pieces, 1).reshape(-1, pieces[0].shape[1]), word)
        self._found: torch.Tensor | None = None
        self._asked_seconds = 0.0
        self.done: int | None = None

    def prepare(self) -> None:
        """Look once while nothing happens, so that nothing has to be loaded later."""
        self._pieces.read()

    def look(self) -> None:
        """Wait and look; called right after the replay was asked for."""
        started = time.perf_counter()
        time.sleep(self._wait_seconds)
        self._asked_seconds = time.perf_counter() - started
        self._found = self._pieces.read()

    def fault(self) -> str | None:
        """Say why the calls were not carried out one after another, or None."""
        assert self._found is not None
        shape = (self._calls, PIECES_A_CALL)
        written = self._pieces.written(self._found).view(shape).flip(0).any(dim=1)
        unwritten = self._pieces.unwritten(self._found).view(shape).flip(0).any(dim=1)
        open_calls = torch.nonzero(unwritten)
        self.done = int(open_calls[0]) if len(open_calls) else self._calls
        ahead = int(written[self.done + 1 :].sum())
        if ahead:
            return f"{ahead} calls had begun before call {self.done} of {self._calls} was done"
        part = min((self._asked_seconds - _START_SECONDS) / self._whole_seconds, 1.0)
        if self.done < _LEAST_PROGRESS * part * self._calls - 1:
            return f"{self.done} of {self._calls} calls were done after {part:.0%} of the time"
        return None
