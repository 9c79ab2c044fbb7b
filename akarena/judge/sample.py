"""A secret sample of timed outputs: untouched when the clock starts, written when it stops, unchanged afterwards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from akarena.judge.arena import Memory, Slot
from akarena.judge.workers import WorkerFaultError
from akarena.records.evaluation import FailReason

PIECES = 128
"""Pieces in one sample; a candidate that leaves one output in a hundred out is seen within a few blocks."""
PIECE_BYTES = 16
_LAST_CALL_EVERY = 4


class Pieces:
    """Pieces of outputs in which poison lies.

    Args:
        memory: The arena.
        places: Address of each byte, of shape [pieces, 16]; see :func:`places_in`.
        word: The poison.
    """

    def __init__(self, memory: Memory, places: np.ndarray, word: int) -> None:
        self._bytes = memory.bytes
        offsets = places[:, :1]
        # A piece never begins at an odd byte of an output, so the poison's two bytes alternate in it.
        high = (places - offsets) % 2 == 1
        self._poison = torch.from_numpy(np.where(high, word >> 8, word & 0xFF).astype(np.uint8))
        # One byte alone cannot be told from a result.
        self._telling = torch.from_numpy(places[:, 1] != places[:, 0])
        self._places = torch.from_numpy(places).to(self._bytes.device)

    def read(self) -> torch.Tensor:
        """Return the bytes at all places, of shape [pieces, 16], on the host."""
        return self._bytes[self._places].cpu()

    def written(self, found: torch.Tensor) -> torch.Tensor:
        """Say of each piece that was read whether anything was written there."""
        return (found != self._poison).any(dim=1)

    def unwritten(self, found: torch.Tensor) -> torch.Tensor:
        """Say of each piece that was read whether certainly nothing was."""
        return (found == self._poison).all(dim=1) & self._telling


class Sample:
    """Places all over the outputs of some calls, drawn in secret; every fourth lies in the last of them.

    Args:
        memory: The arena.
        slots: The outputs in it.
        calls: Which of the laid out calls, in their order.
        word: The poison that lies in the outputs before the replay.
        numbers: The secret generator.
    """

    def __init__(
        self, memory: Memory, slots: Sequence[Slot], calls: Sequence[int], word: int, numbers: np.random.Generator
    ) -> None:
        share = -(-PIECES // len(slots))
        places = []
        for slot in slots:
            chosen = np.asarray(calls)[numbers.integers(0, len(calls), share)]
            chosen[::_LAST_CALL_EVERY] = calls[-1]
            places.append(places_in(slot, chosen, numbers))
        self._pieces = Pieces(memory, np.concatenate(places), word)

    def read(self) -> torch.Tensor:
        """Return the bytes at all places, of shape [pieces, 16], on the host."""
        return self._pieces.read()

    def require_untouched(self, found: torch.Tensor) -> None:
        """Check what was read right before the clock starts.

        Raises:
            WorkerFaultError: Something was written before the replay was asked for.
        """
        self._require_poison(found, FailReason.ANSWERED_EARLY, "outputs were written before the clock started")

    def require_apart(self, found: torch.Tensor) -> None:
        """Check what was read after a replay of other calls.

        Raises:
            WorkerFaultError: Something was written that was not asked for.
        """
        text = "outputs of calls that were not asked for were written"
        self._require_poison(found, FailReason.CALLS_NOT_APART, text)

    def _require_poison(self, found: torch.Tensor, reason: FailReason, text: str) -> None:
        touched = int(self._pieces.written(found).sum())
        if touched:
            raise WorkerFaultError(reason, f"{touched} of {len(found)} sampled {text}")

    def require_written(self, early: torch.Tensor, later: torch.Tensor) -> None:
        """Check what was read right after the answer, and once more after that.

        Raises:
            WorkerFaultError: Something was not written when the worker answered, or changed afterwards.
        """
        missing = int(self._pieces.unwritten(early).sum())
        if missing:
            text = f"{missing} of {len(early)} sampled outputs were not written when the worker answered"
            raise WorkerFaultError(FailReason.ANSWERED_EARLY, text)
        changed = int((early != later).any(dim=1).sum())
        if changed:
            text = f"{changed} of {len(early)} sampled outputs changed after the worker had answered"
            raise WorkerFaultError(FailReason.ANSWERED_EARLY, text)


def places_in(slot: Slot, calls: np.ndarray, numbers: np.random.Generator) -> np.ndarray:
    """Return the addresses of a piece of an output for each of these calls, of shape [calls, 16].

    Outputs that are shorter than a piece repeat their bytes.
    """
    length = min(PIECE_BYTES, slot.size)
    starts = numbers.integers(0, max(slot.size // PIECE_BYTES, 1), len(calls)) * PIECE_BYTES
    within = np.arange(PIECE_BYTES) % length
    first = slot.base + calls * slot.stride + starts
    return np.asarray(first[:, None] + within[None, :])
