"""Before the first trial: from inside the sandbox, an agent's service is reached, and nothing beside it."""

from __future__ import annotations

import json
from pathlib import Path

from akarena.agents.way_out import PORT, behind_forwarder, service_of
from akarena.gateway import Gateway, Service, Style
from akarena.records.run import AgentConfiguration, PreflightCheck
from akarena.sandbox.base import Command, End, Limits, Role
from akarena.sandbox.runtime import python_of
from akarena.site import Site
from akarena.temporary import OwnedFolder

_MIB = 1 << 20
_LIMITS = Limits(60.0, 512 * _MIB, 64, _MIB, 16 * _MIB, 16 * _MIB)
_NO_ANSWER = (502, 503, 504)

# Runs inside; prints the status of each request. Its arguments are the port and the requests as JSON.
_PROBE = """
import http.client, json, sys
found = []
for method, target in json.loads(sys.argv[2]):
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=40)
    try:
        connection.request(method, target)
        found.append(connection.getresponse().status)
    except (OSError, http.client.HTTPException) as error:
        found.append(0)
    finally:
        connection.close()
print(json.dumps(found))
"""


def check(site: Site, configuration: AgentConfiguration) -> list[PreflightCheck]:
    """Ask the service of a configuration for something harmless, and for something that must be refused.

    Returns:
        The checks; none for a configuration without a service.

    Raises:
        InfrastructureError: The gateway or the sandbox does not start.
    """
    service = service_of(configuration)
    if service is None:
        return []
    with (
        OwnedFolder("reach") as name,
        Gateway(service, Path(name) / "audit.jsonl") as gateway,
    ):
        result = site.sandbox.run(_command(site, gateway.path, service))
    if result.end is not End.EXITED or result.exit_code != 0:
        said = result.stderr.decode(errors="replace").strip()[-300:]
        detail = f"{result.end} {result.exit_code} {result.detail} {said}"
        return [PreflightCheck(check=f"service {service.name}: the probe ran", ok=False, detail=detail[:2000])]
    allowed, refused = json.loads(result.stdout)
    reached = 0 < allowed < 600 and allowed not in _NO_ANSWER
    return [
        PreflightCheck(
            check=f"service {service.name} is reached",
            ok=reached,
            detail=f"status {allowed}" if allowed else "no answer",
        ),
        PreflightCheck(
            check=f"service {service.name}: what is not allowed is refused",
            ok=refused == 403,
            detail=f"status {refused}" if refused else "no answer",
        ),
    ]


def _command(site: Site, socket: Path, service: Service) -> Command:
    python = python_of(site.sandbox, Role.AGENT)
    if service.style is Style.TUNNEL:
        requests = [("CONNECT", f"{service.hosts[0]}:443"), ("CONNECT", "example.com:443")]
    else:
        requests = [("GET", "/v1/models"), ("GET", "/v1/files")]
    command = Command(
        argv=(python.path, "-I", "-S", "-c", _PROBE, str(PORT), json.dumps(requests)),
        environment={},
        mounts=python.mounts,
        limits=_LIMITS,
        role=Role.AGENT,
    )
    return behind_forwarder(command, python.path, socket)
