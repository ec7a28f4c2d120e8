"""Requests that are refused: what a client reads of it."""

from __future__ import annotations

from typing import Any

from acp.exceptions import RequestError


class Refused(RequestError):
    """The answer to a request that cannot be carried out: a code of JSON-RPC, and a sentence for a person."""

    def __init__(self, code: int, said: str, data: Any | None = None) -> None:
        super().__init__(code, said or "The request cannot be carried out.", data)
