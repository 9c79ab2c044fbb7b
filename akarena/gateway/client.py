"""The caller's side of a gateway: starts the process, hands out its socket, and brings back what was used."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType

from akarena import paths
from akarena.errors import InfrastructureError, UserError
from akarena.gateway.backoff import Patience
from akarena.gateway.services import Service, Style
from akarena.gateway.settings import Budgets, Settings, Totals
from akarena.sandbox.ownership import prepare_writable
from akarena.temporary import OwnedFolder

_START_SECONDS = 30.0
_STOP_SECONDS = 10.0
_SOCKET = "gateway.sock"
_MAX_SOCKET_PATH = 107
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "TZ")
"""What the process needs of the caller's environment to start, and to trust a certificate of the user's own."""


class Gateway:
    """The gateway of one trial, as a context manager.

    Attributes:
        path: The socket, once it is entered; to be mounted in the agent's sandbox.
        totals: What the trial used; there once it is left.

    Args:
        service: The one service that it leads to.
        audit: The file for the audit lines; its folder exists.
        models: The only models that may be asked; empty for any.
        budgets: What the trial may use.
        patience: How long the gateway itself asks again where the service has no room.

    Raises:
        UserError: The service's key is not in the environment.
    """

    def __init__(
        self,
        service: Service,
        audit: Path,
        *,
        models: tuple[str, ...] = (),
        budgets: Budgets | None = None,
        patience: Patience | None = None,
    ) -> None:
        self.totals: Totals | None = None
        problem = missing_key(service)
        if problem:
            raise UserError(problem)
        self._service = service
        self._folder = OwnedFolder("gateway")
        self.path = Path(self._folder.name) / _SOCKET
        self._settings = Settings(
            service, str(self.path), str(audit.absolute()), models, budgets or Budgets(), patience or Patience()
        )
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Gateway:
        """Start the process and wait until it listens.

        Raises:
            InfrastructureError: It does not start.
        """
        try:
            self._start()
            prepare_writable(self.path)
        except BaseException:
            self._stop()
            self._folder.cleanup()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the process and keep its totals.

        Raises:
            InfrastructureError: It had died, so that what the trial used is not known. Not raised over another error.
        """
        output, errors = self._stop()
        self._folder.cleanup()
        try:
            self.totals = Totals.from_json(output)
        except InfrastructureError as error:
            if value is None:
                raise InfrastructureError(f"{error}: {errors or 'it said nothing'}") from None

    def _start(self) -> None:
        if len(os.fsencode(self.path)) > _MAX_SOCKET_PATH:
            raise InfrastructureError(f"{self.path}: too long for a unix socket, expected a shorter TMPDIR")
        errors = (Path(self._folder.name) / "stderr").open("wb")
        with errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "akarena.gateway"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self._environment(),
                cwd=self._folder.name,
                start_new_session=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        killer = threading.Timer(_START_SECONDS, self._process.kill)
        killer.start()
        try:
            self._process.stdin.write(self._settings.to_json())
            self._process.stdin.flush()
            ready = self._process.stdout.readline() == b"ready\n"
        except BrokenPipeError:
            ready = False
        finally:
            killer.cancel()
            killer.join()
        if not ready:
            raise InfrastructureError(f"the gateway does not start: {self._stop()[1] or 'it said nothing'}")

    def _environment(self) -> dict[str, str]:
        names: tuple[str, ...] = _PASSED_ON
        if self._service.key_variable and self._service.style is not Style.TUNNEL:
            names = (*names, self._service.key_variable)
        kept = {name: os.environ[name] for name in names if name in os.environ}
        code = str(paths.package().parent)
        search = [code, *filter(None, [kept.get("PYTHONPATH")])]
        return {**kept, "PYTHONPATH": os.pathsep.join(search), "LC_ALL": "C.UTF-8"}

    def _stop(self) -> tuple[bytes, str]:
        """End the process; give its totals and the last line that it wrote to standard error."""
        if self._process is None:
            return b"", ""
        try:
            output, _ = self._process.communicate(timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            output, _ = self._process.communicate()
        self._process = None
        lines = (Path(self._folder.name) / "stderr").read_text("utf-8", "replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "")
        return output, last[:300]


def missing_key(service: Service) -> str | None:
    """Say which key a service lacks, in one line; None where it lacks none."""
    variable = service.key_variable
    if variable is None:
        return None
    value = os.environ.get(variable, "")
    if not value:
        return f"environment variable {variable}: is not set; set it to a key of the service {service.name}"
    if not value.isascii() or not value.isprintable() or value != value.strip():
        return f"environment variable {variable}: holds other characters than a key can"
    return None
