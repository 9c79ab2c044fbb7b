"""Hears from the daemon when the kernel kills a process of a container for its memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from docker.errors import DockerException
from requests import RequestException
from urllib3.exceptions import HTTPError

from akarena.errors import InfrastructureError
from akarena.images.daemon import told
from akarena.sandbox.docker import streams

if TYPE_CHECKING:
    from docker import APIClient

_JOIN_SECONDS = 5.0


class OutOfMemoryWatch:
    """A thread on the daemon's stream of events."""

    def __init__(self, api: APIClient, label: str, hear: Callable[[str], None]) -> None:
        """Begin to listen.

        Args:
            api: The daemon.
            label: Which containers to listen for.
            hear: Called from the thread with the id of a container.
        """
        with told("the Docker daemon's events"):
            # From a moment ago: the daemon may answer before it begins to listen itself.
            filters = {"type": "container", "event": "oom", "label": label}
            self._events = api.events(since=int(time.time()) - 1, filters=filters, decode=True)
        self._hear = hear
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        # A daemon that dies is noticed by whoever waits for a container.
        with suppress(DockerException, RequestException, HTTPError, OSError, ValueError, InfrastructureError):
            for event in self._events:
                self._hear(event["Actor"]["ID"])

    def close(self) -> None:
        """Stop listening."""
        streams.stop(self._events)
        self._thread.join(_JOIN_SECONDS)
        streams.close(self._events)
