"""Errors that say that something did not answer, or was busy: the same call may work later, though nothing was changed.

Only words that programs print for it themselves count; a missing file or a wrong argument stays what it is.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_agent.core.events import Failure

_HEAD, _TAIL = 500, 2_000
"""Characters of a message that are looked at, from its beginning and its end."""

_ABSENT = re.compile(
    r"""
      \bconnection\ (?:refused|reset|aborted|timed\ out|closed\ by\ remote)
    | \bE(?:CONNREFUSED|CONNRESET|CONNABORTED|TIMEDOUT|HOSTUNREACH|NETUNREACH|AI_AGAIN|BUSY|AGAIN)\b
    | \bConnection(?:Refused|Reset|Aborted)Error\b
    | \bno\ route\ to\ host | \bnetwork\ is\ unreachable
    | \btemporary\ failure\ in\ name\ resolution | \bcould\ not\ resolve\ host
    | \bfailed\ to\ connect\ to\b | \bcould\ not\ connect\ to\b | \bcannot\ connect\ to\ the\ docker\ daemon
    | \b(?:operation|request|read|connect)\ timed\ out\b
    | \b(?:503|502|504|429)\b.{0,40}\b(?:unavailable|bad\ gateway|timeout|too\ many\ requests)
    | \b(?:returned\ error|status(?:\ code)?|HTTP(?:/[\d.]+)?|HTTP\ Error):?\ (?:429|502|503|504)\b
    | \b(?:service|temporarily)\ unavailable\b | \btoo\ many\ requests\b
    | \bdatabase\ (?:table\ )?is\ locked\b | \bcould\ not\ get\ lock\b | \bresource\ temporarily\ unavailable\b
    | \bdevice\ or\ resource\ busy\b | \btext\ file\ busy\b
    """,
    re.VERBOSE | re.IGNORECASE,
)


def did_not_answer(failure: Failure) -> bool:
    """True if a failed call met something that was not there at that moment, or busy."""
    return failure.transient or _says_so(failure.message[:_HEAD], failure.message[-_TAIL:])


@lru_cache(maxsize=64)
def _says_so(head: str, tail: str) -> bool:
    return _ABSENT.search(head) is not None or _ABSENT.search(tail) is not None
