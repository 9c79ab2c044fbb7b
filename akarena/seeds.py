"""The run's seed: 256 secret bits, committed to by a hash before the first trial and revealed when the run is sealed.

Until then it lies in a state file of the user, outside the run folder, so that nothing in the run folder gives away the
unseen configurations.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

from akarena.errors import UserError
from akarena.records import SeedRecord
from akarena.records.run import ManifestRecord, SeedSource
from akarena.store import RunFolder, write_record

SEED_BYTES = 32


def commitment(seed: bytes) -> str:
    """Return the hash that the manifest holds."""
    return hashlib.sha256(seed).hexdigest()


def choose(number: int | None, like: RunFolder | None) -> tuple[bytes, SeedSource]:
    """Return a seed and where it comes from.

    Args:
        number: A number that the operator chose, or None.
        like: A sealed run whose revealed seed is used again, or None.
    """
    if like is not None:
        return bytes.fromhex(like.read(SeedRecord, like.seed).seed), SeedSource.REVEALED
    if number is not None:
        return hashlib.sha256(f"akarena seed {number}".encode()).digest(), SeedSource.CHOSEN
    return secrets.token_bytes(SEED_BYTES), SeedSource.RANDOM


def keep(run_id: str, seed: bytes) -> None:
    """Write the seed into the state file of a run."""
    path = _state_file(run_id, commitment(seed))
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(seed.hex())


def recall(manifest: ManifestRecord) -> bytes:
    """Read the seed of an unsealed run.

    Raises:
        UserError: The state file is not on this machine, or holds another seed.
    """
    path = _state_file(manifest.run_id, manifest.seed_sha256)
    try:
        seed = bytes.fromhex(path.read_text().strip())
    except (OSError, ValueError):
        raise UserError(
            f"run {manifest.run_id}: its seed is not in {path}; only the user and machine that began a run resume it"
        ) from None
    if commitment(seed) != manifest.seed_sha256:
        raise UserError(f"{path}: is not the seed that manifest.json of {manifest.run_id} committed to")
    return seed


def reveal(run: RunFolder, manifest: ManifestRecord, seed: bytes) -> None:
    """Write ``seed.json``; the state file goes."""
    record = SeedRecord(schema_version=1, run_id=manifest.run_id, seed=seed.hex(), seed_source=manifest.seed_source)
    write_record(run.seed, record, replace=True)
    _state_file(manifest.run_id, manifest.seed_sha256).unlink(missing_ok=True)


def _state_file(run_id: str, seed_sha256: str) -> Path:
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / "akarena" / "seeds" / f"{run_id}-{seed_sha256[:16]}"
