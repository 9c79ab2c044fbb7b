"""Runs inside the sandbox, as a part of the hostile agent. Standard library only; see `tests.redteam.agent`."""
