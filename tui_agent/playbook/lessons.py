"""Lessons of a run: the keys by which its failures are known again, the attempts against them, and their
success.

Read from the incidents of the run, so live sessions, hooks and imported recordings teach alike. Two levels: what a
workspace keeps names its commands and paths; what the user's level keeps of it names bare programs only, and of an
error no more than a digest of its shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tui_agent.core.names import REPLY_FORM
from tui_agent.core.projections.call_subject import families_of, relation, subject_of
from tui_agent.core.projections.incidents import Incident, Incidents
from tui_agent.core.recovery.error_shape import error_shape
from tui_agent.core.recovery.iteration import command_of
from tui_agent.core.recovery.signature import normalise
from tui_agent.headline import headline
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

Form = Literal["instead", "first"]
"""Another call in the place of the one that failed, or a command before the same call again."""

LONGEST_EXAMPLE = 160
"""Characters of a command that may be shown as an example; of a longer one, or one of several lines, none is."""
_LONGEST_NAME = 120
_LONGEST_SIGN = 300
_PROGRAM = re.compile(r"(?![A-Z]{2,}\b)[\w./+@-]{2,}(?: .*)?")
"""Names that may be a program: no keyword of another language that a tool is given as its command."""
_BARE = re.compile(r"[A-Za-z][\w+-]{0,30}(?:\.py)?(?: -[mc])?(?: [a-z][\w:-]{0,30})?")
"""A program by its name alone, with a module or a verb: it says nothing of the workspace."""
_FILE = re.compile(r"^(\S+) [\w-]+\.\w+$")
"""An interpreter and a script beside it: models give each script another name."""
_PREPARES = re.compile(
    r"(?:pip3?|uv|poetry|conda|npm|yarn|pnpm|cargo|go|gem|bundle|apt|apt-get|brew|docker|podman|make|chmod"
    r"|service|systemctl|createdb|alembic|manage\.py|python3? -m (?:pip|venv|build))\b"
)
"""Beginnings of a command that prepares another one; edits, and scripts that a model wrote, are no recipe."""


class FailureSign(NamedTuple):
    """Keys by which a failure is known again, from the narrowest to the widest; "" if a level has none."""

    exact: str
    """Tool, what was called, and the line that says what is wrong, with its names."""
    shape: str
    """The same with the names taken out."""
    general: str
    """A digest for the user's level."""
    about: str
    """The subject of the call: a command's family, or a path."""


class Repair(NamedTuple):
    """A way to recover. `example`: the call itself; `general`: it may be kept at the user's level."""

    form: Form
    name: str
    example: str
    general: bool


class Try(NamedTuple):
    """One repair that was tried against a failure. `told`: the playbook had named it."""

    repair: Repair
    worked: bool
    told: bool


class Lesson(NamedTuple):
    """One failure of a run. `at_once`: the next step recovered it; `told`: the playbook had a say."""

    sign: FailureSign
    error: str
    at_once: bool
    told: bool
    tries: tuple[Try, ...]


def sign_of(tool: str, arguments: Mapping[str, Any], message: str) -> FailureSign:
    """By what this failure is known again."""
    about, said = _about(tool, arguments, message), headline(message)
    exact = f"{tool}|{about}|{normalise(said)}"[:_LONGEST_SIGN]
    shape = f"{tool}|{about}|{error_shape(said)}"[:_LONGEST_SIGN]
    general = ""
    if command_of(arguments) is not None and _BARE.fullmatch(about):
        general = blake2b(shape.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return FailureSign(exact, shape, general, about)


def _families(command: str) -> tuple[str, ...]:
    return tuple(family for family in families_of(command) if _PROGRAM.fullmatch(family))


def _about(tool: str, arguments: Mapping[str, Any], message: str) -> str:
    command = command_of(arguments)
    if command is None:
        return subject_of(tool, arguments).word[:_LONGEST_NAME]
    families = _families(command)
    said = headline(message)
    named = [family for family in families if family.rpartition(" ")[2] in said]
    family = (named or list(families) or [""])[-1]
    script = _FILE.match(family)
    return (f"{script.group(1)} FILE" if script else family)[:_LONGEST_NAME]


def repair_by(
    failed: Incident, tool: str, arguments: Mapping[str, Any], prepared: Iterable[str] = ()
) -> Repair | None:
    """The repair in this call, if it can be named again: None for a mere repetition, other arguments, or the
    right content.
    """
    if tool != failed.tool:
        return None
    command, was = command_of(arguments), command_of(failed.input)
    if dict(arguments) == dict(failed.input):
        recipes = [
            (family, one) for one in prepared for family in families_of(one) if _PREPARES.match(family)
        ]
        return _repair("first", *recipes[-1]) if recipes else None
    if command is not None and was is not None:
        families = _families(command)
        family = families[-1] if families else ""
        before = _families(was)
        if not (family and before) or family in before or _FILE.match(family) or family.endswith(" -c"):
            return None
        return _repair("instead", family, command)
    path, other = subject_of(tool, arguments).word, subject_of(failed.tool, failed.input).word
    if command is None and path and other and path != other and len(path) <= _LONGEST_NAME:
        return Repair("instead", one_line(path, _LONGEST_NAME), "", general=False)
    return None


def _repair(form: Form, family: str, command: str) -> Repair:
    command = command.strip()
    example = one_line(command) if len(command) <= LONGEST_EXAMPLE and "\n" not in command else ""
    return Repair(form, family[:_LONGEST_NAME], example, _BARE.fullmatch(family) is not None)


def lessons_of(incidents: Incidents) -> tuple[Lesson, ...]:
    """The lessons of the run's failures, in the order in which the failures began."""
    calls = calls_of(incidents)
    return tuple(_lesson(one, calls) for one in calls)


def calls_of(incidents: Incidents) -> list[Incident]:
    """The failures of calls, in the order in which they began."""
    calls = [
        one for one in (*incidents.recovered, *incidents.open.values()) if one.tool and one.key != REPLY_FORM
    ]
    return sorted(calls, key=lambda one: one.course[0].seq)


def _lesson(failed: Incident, calls: Iterable[Incident]) -> Lesson:
    first, recovery = failed.course[0], failed.recovery
    recovered = recovery is not None and recovery.why != "not_needed"
    return Lesson(
        sign_of(failed.tool, failed.input, first.message),
        headline(first.message, 200),
        at_once=recovered
        and failed.times == 1
        and recovery is not None
        and recovery.iteration <= first.iteration + 1,
        told=any(attempt.known for attempt in failed.course),
        tries=tuple(_tries(failed, calls)),
    )


def _tries(failed: Incident, calls: Iterable[Incident]) -> Iterator[Try]:
    """Each repair that was tried, once, and last the one that worked."""
    told = {(one.known.form, one.known.repair) for one in failed.course if one.known is not None}
    recovery = failed.recovery
    worked = None
    if recovery is not None and recovery.tool:
        worked = repair_by(failed, recovery.tool, recovery.input, recovery.prepared)
    vain: dict[tuple[Form, str], Repair] = {}
    for attempt in failed.course[1:]:
        repair = repair_by(failed, failed.tool, failed.input, attempt.prepared)
        if repair is not None:
            vain[repair[:2]] = repair
    for other in calls:
        if _was_tried_against(failed, other):
            repair = repair_by(failed, other.tool, other.input)
            if repair is not None:
                vain[repair[:2]] = repair
    for key, repair in vain.items():
        if worked is None or key != worked[:2]:
            yield Try(repair, worked=False, told=key in told)
    if worked is not None:
        yield Try(worked, worked=True, told=worked[:2] in told)


def _was_tried_against(failed: Incident, other: Incident) -> bool:
    """True if another failing call would have recovered this failure, had it succeeded."""
    began, other_began = failed.course[0].seq, other.course[0].seq
    ended = failed.recovery.seq if failed.recovery is not None else None
    if other is failed or other_began <= began or (ended is not None and other_began >= ended):
        return False
    return relation(failed.tool, failed.subject, failed.error, other.tool, other.subject) != ""
