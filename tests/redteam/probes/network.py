"""Ways to another host, or to the host itself, that do not lead through the gateway."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from .kit import NotRun, Plan, Stopped, doors, nothing, probe

_NO_WAY = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""What a connection gives where there is no way at all. A refusal or silence would mean that packets left."""
_SECONDS = 2.0
_OUTSIDE = ("1.1.1.1", "8.8.8.8", "169.254.169.254", "10.0.0.1", "172.17.0.1", "192.168.0.1", "100.100.100.200")
_OUTSIDE_6 = ("2606:4700::1111", "2001:4860:4860::8888", "fd00:ec2::254", "64:ff9b::101:101")
_ENGINES = (
    "/var/run/docker.sock",
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/run/crio/crio.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
    "/run/systemd/journal/socket",
    "/run/snapd.socket",
)
_AF_VSOCK = 40
_UNUSUAL = {"packet": 17, "key": 15, "can": 29, "tipc": 30, "bluetooth": 31, "alg": 38, "kcm": 41, "qipcrtr": 42}
_UNUSUAL_2 = {"smc": 43, "xdp": 44, "rds": 21, "llc": 26, "ax25": 3, "appletalk": 5, "nfc": 39, "mctp": 45}
_UNUSED_ADDRESS = "198.51.100.7"


def connect(host: str, port: int, family: int = socket.AF_INET) -> None:
    """Open a connection and close it."""
    with socket.socket(family, socket.SOCK_STREAM) as stream:
        stream.settimeout(_SECONDS)
        stream.connect((host, port))


def _send(host: str, port: int, family: int = socket.AF_INET) -> None:
    with socket.socket(family, socket.SOCK_DGRAM) as datagrams:
        datagrams.sendto(b"?", (host, port))


@probe("network.direct")
def direct(plan: Plan) -> str:
    hosts = [*_OUTSIDE, *(host for host in plan.facts["addresses"] if ":" not in host)]
    actions: dict[str, Callable[[], object]] = {}
    for host in hosts:
        for port in (80, 443):
            actions[f"tcp {host}:{port}"] = partial(connect, host, port)
        actions[f"udp {host}:53"] = partial(_send, host, 53)
    return doors(actions, *_NO_WAY)


@probe("network.ipv6")
def ipv6(plan: Plan) -> str:
    hosts = [*_OUTSIDE_6, *(host for host in plan.facts["addresses"] if ":" in host)]
    actions: dict[str, Callable[[], object]] = {}
    for host in hosts:
        actions[f"tcp [{host}]:443"] = partial(connect, host, 443, socket.AF_INET6)
        actions[f"udp [{host}]:53"] = partial(_send, host, 53, socket.AF_INET6)
    return doors(actions, *_NO_WAY, errno.EINVAL)


@probe("network.names")
def names(plan: Plan) -> str:
    found, said = [], ""
    for name in ("example.com", "localhost.example.com", "host.docker.internal", "metadata.google.internal"):
        try:
            found.append(f"{name} is {socket.getaddrinfo(name, 443)[0][4][0]}")
        except socket.gaierror as error:
            said = str(error)
    for resolver in ("127.0.0.53", "127.0.0.11", "127.0.0.1"):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            datagrams.settimeout(0.3)
            datagrams.connect((resolver, 53))
            datagrams.send(b"\0\7\1\0\0\1\0\0\0\0\0\0\7example\3com\0\0\1\0\1")
            with suppress(ConnectionRefusedError):
                found.append(f"{resolver} answers {len(datagrams.recv(512))} bytes")
    return nothing(", ".join(found), f"{said}; no resolver on loopback")


def _make(family: int, kind: int, protocol: int = 0) -> None:
    socket.socket(family, kind, protocol).close()


@probe("network.raw")
def raw(plan: Plan) -> str:
    actions: dict[str, Callable[[], object]] = {
        name: partial(_make, socket.AF_INET, socket.SOCK_RAW, number)
        for name, number in {"raw icmp": 1, "raw tcp": 6, "raw udp": 17, "raw ip": 255}.items()
    }
    actions["raw icmpv6"] = lambda: socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58).close()
    actions["packet"] = lambda: socket.socket(17, socket.SOCK_RAW, 0x0300).close()
    actions["packet, cooked"] = lambda: socket.socket(17, socket.SOCK_DGRAM, 0x0300).close()
    return doors(actions, errno.EPERM, errno.EAFNOSUPPORT)


@probe("network.ping")
def ping(plan: Plan) -> str:
    def send(family: int, protocol: int, host: str, kind: int) -> None:
        with socket.socket(family, socket.SOCK_DGRAM, protocol) as echo:
            echo.sendto(struct.pack("!BBHHH", kind, 0, 0, 1, 1), (host, 0))

    actions: dict[str, Callable[[], object]] = {
        "icmp echo": lambda: send(socket.AF_INET, 1, "1.1.1.1", 8),
        "icmpv6 echo": lambda: send(socket.AF_INET6, 58, "2606:4700::1111", 128),
    }
    return doors(actions, errno.EACCES, errno.EPERM, errno.EPROTONOSUPPORT, *_NO_WAY)


@probe("network.vsock")
def vsock(plan: Plan) -> str:
    def reach(cid: int) -> None:
        with socket.socket(_AF_VSOCK, socket.SOCK_STREAM) as stream:
            stream.settimeout(_SECONDS)
            stream.connect((cid, 1024))

    return doors({"hypervisor": lambda: reach(0), "host": lambda: reach(2)}, errno.EAFNOSUPPORT, errno.EPERM)


@probe("network.families")
def families(plan: Plan) -> str:
    actions: dict[str, Callable[[], object]] = {}
    for name, number in (_UNUSUAL | _UNUSUAL_2).items():
        for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM):
            actions[f"{name} {int(kind)}"] = partial(_make, number, kind)
    return doors(actions, errno.EAFNOSUPPORT, errno.EPERM)


def _netlink(kind: int, body: bytes) -> None:
    """Ask the kernel for a change of the network, and raise its refusal."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        netlink.settimeout(_SECONDS)
        # Request, acknowledge, create.
        netlink.send(struct.pack("=IHHII", 16 + len(body), kind, 0x0405, 1, 0) + body)
        number = struct.unpack_from("=i", netlink.recv(4096), 16)[0]
        if number:
            raise OSError(-number, os.strerror(-number))


def _attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


@probe("network.interfaces")
def interfaces(plan: Plan) -> str:
    def link(kind: bytes) -> None:
        _netlink(16, struct.pack("=BxHiII", 0, 0, 0, 0, 0) + _attribute(18, _attribute(1, kind)))

    address = socket.inet_aton(_UNUSED_ADDRESS)
    actions: dict[str, Callable[[], object]] = {
        "dummy": lambda: link(b"dummy"),
        "veth": lambda: link(b"veth"),
        "bridge": lambda: link(b"bridge"),
        "address": lambda: _netlink(20, struct.pack("=BBBBI", 2, 32, 0, 0, 1) + _attribute(2, address)),
        "route": lambda: _netlink(
            24, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 3, 0, 1, 0) + _attribute(4, struct.pack("=I", 1))
        ),
        "tun": lambda: os.close(os.open("/dev/net/tun", os.O_RDWR)),
    }
    return doors(actions, errno.EPERM, errno.ENOENT)


@probe("network.host_loopback")
def host_loopback(plan: Plan) -> str:
    ports = {"a server of the host": plan.facts["port"], "the model service": plan.facts["service_port"]}
    actions: dict[str, Callable[[], object]] = {}
    for name, port in ports.items():
        actions[name] = partial(connect, "127.0.0.1", port)
        actions[f"{name}, by 0.0.0.0"] = partial(connect, "0.0.0.0", port)
        actions[f"{name}, by ::1"] = partial(connect, "::ffff:127.0.0.1", port, socket.AF_INET6)
    return doors(actions, errno.ECONNREFUSED, *_NO_WAY)


def connect_unix(address: str) -> None:
    """Open a connection to a unix socket and close it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.settimeout(_SECONDS)
        stream.connect(address)


@probe("network.abstract")
def abstract(plan: Plan) -> str:
    return doors({"abstract": lambda: connect_unix("\0" + plan.facts["abstract"])}, errno.ECONNREFUSED)


@probe("network.engines")
def engines(plan: Plan) -> str:
    actions: dict[str, Callable[[], object]] = {
        path: partial(connect_unix, path) for path in (*_ENGINES, *plan.facts["sockets"])
    }
    return doors(actions, errno.ENOENT, errno.EACCES)


@probe("network.tables")
def tables(plan: Plan) -> str:
    """Sockets of the host in the kernel's tables would show that the network namespace is the host's."""
    port = f":{plan.facts['port']:04X} "
    found = []
    for table in ("tcp", "tcp6", "unix"):
        try:
            with open(f"/proc/net/{table}") as file:
                text = file.read()
        except FileNotFoundError:
            continue
        if port in text or plan.facts["abstract"] in text:
            found.append(f"/proc/net/{table}")
    listed = {name for _, name in socket.if_nameindex()}
    with suppress(FileNotFoundError):
        listed |= set(os.listdir("/sys/class/net"))
    found += [f"interface {one}" for one in sorted(listed) if one != "lo" and not one.startswith(_TUNNELS)]
    return nothing(", ".join(found), "no socket or interface of the host is listed")


_TUNNELS = ("tunl", "gre", "gretap", "erspan", "ip_vti", "ip6_vti", "sit", "ip6tnl", "ip6gre")
"""Fall-back devices that some kernels put, shut, into every network namespace."""


@probe("network.raw_gateway")
def raw_gateway(plan: Plan) -> str:
    """Descriptors sent along with a request would live on in the gateway, outside."""
    path = plan.facts["gateway"]
    if not os.path.exists(path):
        raise NotRun("there is no gateway")
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.settimeout(10)
        stream.connect(path)
        socket.send_fds(stream, [b"GET /v1/files HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"], [writer])
        os.close(writer)
        while stream.recv(65536):
            pass
    try:
        kept = os.read(reader, 1) != b""
    except BlockingIOError:
        kept = True
    if kept:
        return "the gateway holds a descriptor of the agent"
    raise Stopped("the descriptor was closed: the gateway takes bytes alone")
