"""Which IP addresses belong to the public internet.

`ipaddress.is_global` is not enough: it says True for multicast, NAT64 and 6to4. The tables are the
special-purpose registries of IANA, plus what clouds put on public-looking addresses.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

_DENIED_4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
    )
)
_GLOBAL_6 = IPv6Network("2000::/3")
_DENIED_6 = tuple(
    IPv6Network(block) for block in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)
_METADATA_4 = tuple(
    IPv4Network(block)
    for block in (
        "169.254.169.0/24",
        "169.254.170.0/24",
        "168.63.129.16/32",
        "100.100.100.200/32",
        "192.0.0.192/32",
    )
)
_METADATA_6 = tuple(IPv6Network(block) for block in ("fd00:ec2::/32", "fd20:ce::/32"))
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")


def parse_address(text: str) -> Address:
    """An address without its IPv6 zone. Raises ValueError for text that is none."""
    return ip_address(text.partition("%")[0])


def is_public(address: Address) -> bool:
    """Whether a page may be fetched from `address` without being allowed by name."""
    if isinstance(address, IPv4Address):
        return not any(address in block for block in _DENIED_4)
    if address in _MAPPED or address in _NAT64:
        return is_public(_last_32_bits(address))
    return address in _GLOBAL_6 and not any(address in block for block in _DENIED_6)


def is_metadata(address: Address) -> bool:
    """Whether `address`, or an IPv4 address carried inside it, is a cloud's metadata service."""
    if isinstance(address, IPv4Address):
        return any(address in block for block in _METADATA_4)
    return any(address in block for block in _METADATA_6) or any(map(is_metadata, _carried(address)))


def _carried(address: IPv6Address) -> Iterator[IPv4Address]:
    if any(address in block for block in (_MAPPED, _NAT64, _COMPATIBLE, _LOCAL_NAT64)):
        yield _last_32_bits(address)
    if address.sixtofour:
        yield address.sixtofour
    if address.teredo:
        yield from address.teredo


def _last_32_bits(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFFFFFF)
