"""Tool calls put together from the pieces in which servers stream them.

Servers differ: one call's index, id or name comes late, never, in every piece or in parts; arguments come
whole, in parts, growing, or twice. Every form is read in the ways that it allows. If two ways give different
calls, none of them runs: the call has a problem, and the model sends it again.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tui_agent.core.names import FailureKind
from tui_agent.core.values import CallProblem, ToolCall

MOST_CALLS = 2_000
_MOST_CHECKS = 64

_PLACEHOLDERS = frozenset({"{}", "null", '""'})
"""Placeholders that some servers send as arguments before the real ones."""

AMBIGUOUS = (
    "The server sent this call in pieces that can be read in more than one way, so it was not run. Send the call "
    "again, one call a reply."
)


_PROBLEM = CallProblem(kind=FailureKind.INVALID_TOOL_CALL, message=AMBIGUOUS)


class TooManyCallsError(ValueError):
    """The server sends calls without end."""


@dataclass
class _Call:
    """A call in the making. `index`: under which the server sent it."""

    index: int | None
    id: str = ""
    names: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    signature: str = ""
    repeated: bool = False
    """The same whole call came again without an id: it may be one call or two."""
    tentative: bool = False
    """Begun by a name alone behind a whole call of that name: nothing, if no arguments follow."""
    checks: int = 0
    """How often its arguments were looked at while they grew."""

    @property
    def so_far(self) -> str:
        return "".join(self.arguments)

    @property
    def is_placeholder(self) -> bool:
        return len(self.arguments) == 1 and self.arguments[0].strip() in _PLACEHOLDERS

    def is_whole(self) -> bool:
        """The arguments so far are an object. Looks a bounded number of times, for joining them is not free."""
        if not self.arguments or not self.arguments[-1].rstrip().endswith("}") or self.checks >= _MOST_CHECKS:
            return False
        self.checks += 1
        return _object(self.so_far) is not None


class CallPieces:
    """Collects the pieces of a reply's calls. `tools`: names that were offered, by which parts of a name are known."""

    def __init__(self, tools: Collection[str] = ()) -> None:
        self._tools = frozenset(tools)
        self._calls: list[_Call] = []

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, index: int | None, call_id: str, name: str, arguments: str, signature: str = "") -> None:
        """A piece of a call; `signature` is what its provider signed it with. Raises `TooManyCallsError`."""
        call = self._open(index, call_id)
        if call is None or self._begins_another(call, call_id, name, arguments):
            before, call = call, self._new(index)
            if before is not None and not arguments and name in {*before.names, "".join(before.names)}:
                call.tentative = not call_id or call_id == before.id
        elif name and arguments and call.is_whole() and _same(arguments, call.so_far):
            # The whole call once more: one call, unless nothing tells it from a second one.
            call.repeated = call.repeated or (
                not (call_id and call.id == call_id) and len(list(filter(None, call.arguments))) == 1
            )
            return
        call.id = call.id or call_id
        call.signature = call.signature or signature
        if name:
            call.names.append(name)
        if arguments:
            if call.is_placeholder and arguments.lstrip().startswith("{"):
                call.arguments.clear()
            call.arguments.append(arguments)

    def _new(self, index: int | None) -> _Call:
        if len(self._calls) >= MOST_CALLS:
            raise TooManyCallsError(f"the reply has more than {MOST_CALLS:,} tool calls")
        self._calls.append(_Call(index))
        return self._calls[-1]

    def _open(self, index: int | None, call_id: str) -> _Call | None:
        """The call to which a piece with this index and id may belong: the newest of its index, the one of its id."""
        here = [call for call in self._calls if index is None or call.index in {index, None}]
        if call_id:
            named = [call for call in here if call.id == call_id]
            if named:
                return named[-1]
        return here[-1] if here else None

    def _begins_another(self, call: _Call, call_id: str, name: str, arguments: str) -> bool:
        """True if a piece for the same index is the first of another call."""
        if not name:
            # Only an id tells: of a call without a name yet, or in a server that sends names once.
            return False
        differs = bool(call_id and call.id and call_id != call.id)
        if not call.arguments:
            before = self._name(call.names)
            both = before in self._tools and name in self._tools and not name.startswith(before)
            return both and name not in call.names and not self._in_parts(call, name)
        if call.is_placeholder:
            return differs
        if not call.is_whole():
            return False
        if arguments.strip():
            return differs or not _same(arguments, call.so_far)
        # Without arguments: the next call, or the name of this one again; what follows tells.
        return True

    def _in_parts(self, call: _Call, name: str) -> bool:
        """True if the name so far and this piece make the name of a tool."""
        return "".join([*call.names, name]) in self._tools

    def calls(self, *, cut: bool) -> tuple[ToolCall, ...]:
        """The calls, each with an id; one that the server sent without a name has none.

        `cut`: the reply ended at its length limit, so the last call may be half of one. Half arguments are kept as
        they are (they fail as invalid, and the model learns why); a call cut before its arguments began is left out,
        for no arguments at all would look like a complete call.
        """
        made: list[ToolCall] = []
        for call in self._used(cut=cut):
            one = self._made(call)
            if any(one.id == other.id for other in made):
                one = one.model_copy(update={"id": _new_id()})
            if call.tentative and made and _same(one.arguments, made[-1].arguments):
                one = one.model_copy(update={"problem": _PROBLEM})
            made.append(one)
        return tuple(made)

    def signatures(self, *, cut: bool) -> tuple[str, ...]:
        """The signatures of these calls, in their order; empty for a call without one."""
        return tuple(call.signature for call in self._used(cut=cut))

    @property
    def complete(self) -> bool:
        """There are calls, and the arguments of each are whole."""
        used = list(self._used(cut=False))
        return bool(used) and all(call.names and len(_readings(call.arguments)) == 1 for call in used)

    @property
    def are_whole(self) -> bool:
        """No call is in the middle of its arguments."""
        return all(
            call.names and (not call.so_far.strip() or len(_readings(call.arguments)) == 1)
            for call in self._used(cut=False)
        )

    def _used(self, *, cut: bool) -> list[_Call]:
        used = [
            call for call in self._calls if call.arguments or ((call.names or call.id) and not call.tentative)
        ]
        if cut and used and not used[-1].arguments:
            used.pop()
        return used

    def _made(self, call: _Call) -> ToolCall:
        readings = _readings(call.arguments)
        arguments = whole_characters(readings[0] if len(readings) == 1 else call.so_far) or "{}"
        names = self._names(call.names)
        problem = _PROBLEM if call.repeated or len(readings) > 1 or len(names) > 1 else None
        name = names[0] if names else ""
        return ToolCall(id=call.id or _new_id(), name=name, arguments=arguments, problem=problem)

    def _name(self, pieces: Sequence[str]) -> str:
        names = self._names(pieces)
        return names[0] if names else ""

    def _names(self, pieces: Sequence[str]) -> list[str]:
        """Readings of the pieces of a name: repeated, in parts, or growing; only names of tools, if there are
        any.
        """
        if not pieces:
            return []
        ways = [pieces[0]] if len(set(pieces)) == 1 else ["".join(pieces)]
        if len(set(pieces)) > 1 and all(later.startswith(earlier) for earlier, later in pairwise(pieces)):
            ways = [pieces[-1], "".join(pieces), pieces[0]]
        elif len(set(pieces)) == 1 and len(pieces) > 1:
            ways = [pieces[0], "".join(pieces)]
        known = [way for way in dict.fromkeys(ways) if way in self._tools]
        return known or ways[:1]


def _new_id() -> str:
    return f"call_{uuid.uuid4().hex[:12]}"


def _readings(pieces: Sequence[str]) -> list[str]:
    """The different objects that the pieces of arguments may mean, as text; none if they mean no object."""
    found: dict[str, str] = {}
    for text in _ways([piece for piece in pieces if piece]):
        value = _object(text)
        if value is not None:
            found.setdefault(json.dumps(value, sort_keys=True), text)
    return list(found.values())


def _ways(pieces: Sequence[str]) -> Iterator[str]:
    whole = "".join(pieces)
    yield whole
    if len(pieces) > 1:
        if all(later.startswith(earlier) for earlier, later in pairwise(pieces)):
            yield pieces[-1]  # each piece is all that there is so far
        before = "".join(pieces[:-1])
        if _same(before, pieces[-1]) or (before and pieces[-1].startswith(before)):
            yield pieces[-1]  # parts, and then the whole
    half = len(whole) // 2
    if len(whole) % 2 == 0 and whole[:half] == whole[half:]:
        yield whole[:half]


def whole_characters(text: str) -> str:
    """Surrogate pairs joined, lone halves replaced: servers may cut between the two halves."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _same(one: str, other: str) -> bool:
    """Both are the same JSON object."""
    if one.strip() == other.strip():
        return bool(one.strip())
    value = _object(one)
    return value is not None and value == _object(other)
