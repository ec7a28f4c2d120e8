"""Which addresses of the network may be fetched: the form of a URL, and what its host resolves to.

Pure. What is judged is the address that a connection really goes to, never the name: a name may resolve to anything,
and `http://2130706433/` is 127.0.0.1 as well.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from urllib.parse import SplitResult, quote, urljoin, urlsplit, urlunsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

LONGEST_URL = 4_000
_UNSAFE = re.compile(r"[\x00-\x20\x7f-\x9f\\\u2028\u2029]")
_HOST = re.compile(r"[A-Za-z0-9_.-]+|[0-9A-Fa-f:.]+")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")


class AddressError(ValueError):
    """The address is not fetched; the message says why and what would help."""


def checked_url(url: str) -> str:
    """The URL as it is asked for: without its fragment, with all that is not ASCII escaped. Raises `AddressError`."""
    if len(url) > LONGEST_URL:
        raise AddressError(f"The address has {len(url):,} characters; {LONGEST_URL:,} are possible.")
    if _UNSAFE.search(url):
        raise AddressError(
            "The address holds white space, control characters or a backslash. Escape them (%20)."
        )
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise AddressError(f"This is no address: {error}.") from None
    if parts.scheme not in {"http", "https"}:
        raise AddressError(
            f"Only http and https are fetched, not {parts.scheme or 'an address without a scheme'!r}."
        )
    if "@" in parts.netloc:
        raise AddressError("The address holds a user name or password; they are not sent. Leave them out.")
    if not host:
        raise AddressError("The address names no host.")
    if not _HOST.fullmatch(host):
        raise AddressError(f"The host {host!r} is not written in ASCII. Write an international name as xn--…")
    place = f"[{host}]" if ":" in host else host
    netloc = place if port is None else f"{place}:{port}"
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = quote(parts.query, safe="/%:@!$&'()*+,;=~-._?[]|")
    return urlunsplit((parts.scheme, netloc, path, query, ""))


def redirected(url: str, location: str) -> str:
    """The target of a redirect, if it may be followed without asking: to the same host, and not out of https.

    Raises `AddressError` with the new address if it may not.
    """
    try:
        target = checked_url(urljoin(url, location))
    except ValueError as error:
        raise AddressError(f"{url} redirects to what is not fetched ({location[:200]!r}): {error}") from None
    before, after = urlsplit(url), urlsplit(target)
    if before.scheme == "https" and after.scheme == "http":
        raise AddressError(
            f"{url} redirects to an address without encryption, which is not followed: {target}"
        )
    if (before.hostname or "").rstrip(".") != (after.hostname or "").rstrip("."):
        raise AddressError(
            f"{url} redirects to another host, which is not followed. To fetch it, call web_fetch with: {target}"
        )
    if _service(before) != _service(after):
        raise AddressError(
            f"{url} redirects to another port, which is not followed. To fetch it, call web_fetch with: {target}"
        )
    return target


def _service(parts: SplitResult) -> int:
    """The port; 443 also for plain http's own, from which a redirect may lead to https."""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return 443 if port == 80 and parts.scheme == "http" else port


def refusal(host: str, address: Address, allowed: Sequence[str]) -> str:
    """The reason why no connection is made to this address of a host; "" if one may be. `allowed`: hosts and
    networks of the configuration.
    """
    if is_public(address) or any(_covers(entry, host, address) for entry in allowed):
        return ""
    resolved = "" if host == str(address) else f" {address},"
    return (
        f"{host} is{resolved} an address of this machine or of a private network, and those are not fetched. Use a "
        "command (curl) if the operator approves one; the operator can allow the host in [web] private_hosts."
    )


def refused_as_written(url: str, allowed: Sequence[str]) -> str:
    """As `refusal`, as far as the URL alone shows it: its host is an address, or this machine's own name."""
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address("127.0.0.1" if host.rstrip(".") == "localhost" else host)
    except ValueError:
        return ""
    return refusal(host, address, allowed)


def is_public(address: Address) -> bool:
    """True if it is an address of the open Internet, also after an address packed in it is taken out."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inner is None and (address in _NAT64 or address in _COMPATIBLE):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address.is_site_local or address.scope_id:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _covers(entry: str, host: str, address: Address) -> bool:
    if entry.casefold().rstrip(".") == host.casefold().rstrip("."):
        return True
    try:
        network = ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address) in network
