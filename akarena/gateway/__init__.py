"""The only way out of an agent's sandbox: a process outside that leads to one model service, and to nothing else.

This module holds what a caller needs. The process itself is ``python -m akarena.gateway``; ``forwarder.py`` runs in
the sandbox.
"""

from akarena.gateway.backoff import Patience
from akarena.gateway.client import Gateway, missing_key
from akarena.gateway.services import BUILT_IN, KeyHeader, Service, Style, find
from akarena.gateway.settings import Budgets, Totals

__all__ = [
    "BUILT_IN",
    "Budgets",
    "Gateway",
    "KeyHeader",
    "Patience",
    "Service",
    "Style",
    "Totals",
    "find",
    "missing_key",
]
