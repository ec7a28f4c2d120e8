"""Addresses on which a server of ours may listen."""

from __future__ import annotations

import contextlib
import ipaddress


def is_loopback(host: str) -> bool:
    """Nothing but this machine reaches it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refusal(host: str, *, allow_remote: bool, danger: str) -> str:
    """The reason why a server may not listen there; empty if it may. `danger`: what whoever reaches it can do."""
    if is_loopback(host):
        return ""
    if not allow_remote:
        return (
            f"{host} can be reached by other machines, and {danger}.\n"
            "Leave --host out, and reach it through ssh -L; or say --allow-remote (the way there is not encrypted)."
        )
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_unspecified:
            return (
                f"{host} is no address that a browser can open: name the one of this machine that others use."
            )
    return ""
