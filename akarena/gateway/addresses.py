"""Which network addresses a tunnel may lead to: public ones, found by the gateway's own look-up."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

from akarena.gateway.refusal import refused, upstream_error
from akarena.records.audit import RefusalReason

_LOOK_UP_SECONDS = 15.0
# Beyond what the library knows to be special: addresses that stand for others, and ranges that vary with its version.
_NOT_PUBLIC = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "100.64.0.0/10",
        "169.254.0.0/16",
        "192.0.0.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "224.0.0.0/3",
        "168.63.129.16/32",
    )
)
_PUBLIC_V6 = ipaddress.ip_network("2000::/3")
_NOT_PUBLIC_V6 = tuple(
    ipaddress.ip_network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)


def is_public(text: str) -> bool:
    """Say whether an address belongs to the public internet, and to nothing that stands for another address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if not address.is_global or address.is_multicast or address.is_reserved or address.is_unspecified:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        return address in _PUBLIC_V6 and not any(address in network for network in _NOT_PUBLIC_V6)
    return not any(address in network for network in _NOT_PUBLIC)


async def look_up(host: str) -> list[str]:
    """Find the addresses of a host.

    Raises:
        Denial: It has none.
    """
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_LOOK_UP_SECONDS):
            found = await loop.getaddrinfo(host, 443, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError, UnicodeError) as error:
        raise upstream_error(f"the name {host} can't be resolved ({type(error).__name__})") from None
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def check_public(host: str, addresses: list[str]) -> None:
    """Refuse a host when any of its addresses is not public.

    Raises:
        Denial: One is not; it is not named, since that would tell about the network outside.
    """
    if not addresses or not all(is_public(address) for address in addresses):
        raise refused(RefusalReason.PRIVATE_ADDRESS, f"{host} leads to an address that is not public")
