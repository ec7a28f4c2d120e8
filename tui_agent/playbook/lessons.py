"""Lessons of a run: the keys by which its failures are known again, the attempts against them, and their
success.

Read from the incidents of the run, so live sessions, hooks and imported recordings teach alike. A failure is known by
what was missing, else by its call and the line of its innermost cause. Two levels: what a workspace keeps names its
commands and paths; what the user's level keeps of it names bare programs only, and of an error no more than a digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

from tui_agent.core.names import REPLY_FORM
from tui_agent.core.projections.call_subject import relation, subject_of
from tui_agent.core.projections.incidents import Incident, Incidents
from tui_agent.core.recovery.error_shape import error_shape
from tui_agent.core.recovery.iteration import command_of
from tui_agent.core.recovery.signature import normalise
from tui_agent.playbook.missing import Kind, cause_line, missing_in
from tui_agent.playbook.repairs import (
    LONGEST_NAME,
    Form,
    Repair,
    is_bare,
    programs_of,
    repair_instead,
    repairs_before,
    without_script,
)

_LONGEST_SIGN = 300


class FailureSign(NamedTuple):
    """Keys by which a failure is known again, from the narrowest to the widest; "" if a level has none."""

    exact: str
    """The tool and what was missing; if nothing is named: the tool, what was called, and the line of its cause."""
    shape: str
    """The same with the names taken out of that line; of what was missing the name stays."""
    general: str
    """A digest for the user's level."""
    about: str
    """The subject of the call: a command's family, or a path."""
    kind: Kind | Literal[""] = ""
    """Of what was missing."""


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
    about, lacks = _about(tool, arguments, message), missing_in(message)
    if lacks is not None:
        exact = shape = f"{tool}|{lacks.kind} {lacks.name}"[:_LONGEST_SIGN]
    else:
        said = cause_line(message)
        exact = f"{tool}|{about}|{normalise(said)}"[:_LONGEST_SIGN]
        shape = f"{tool}|{about}|{error_shape(said)}"[:_LONGEST_SIGN]
    general = ""
    if command_of(arguments) is not None and is_bare(about):
        general = blake2b(shape.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return FailureSign(exact, shape, general, about, lacks.kind if lacks is not None else "")


def _about(tool: str, arguments: Mapping[str, Any], message: str) -> str:
    command = command_of(arguments)
    if command is None:
        return subject_of(tool, arguments).word[:LONGEST_NAME]
    families, said = programs_of(command), cause_line(message)
    named = [family for family in families if family.rpartition(" ")[2] in said]
    return without_script((named or list(families) or [""])[-1])[:LONGEST_NAME]


def lessons_of(incidents: Incidents) -> tuple[Lesson, ...]:
    """The lessons of the run's failures, in the order in which the failures began."""
    calls = calls_of(incidents)
    return tuple(lesson for one in calls for lesson in lessons_of_call(one, calls))


def calls_of(incidents: Incidents) -> list[Incident]:
    """The failures of calls, in the order in which they began."""
    calls = [
        one for one in (*incidents.recovered, *incidents.open.values()) if one.tool and one.key != REPLY_FORM
    ]
    return sorted(calls, key=lambda one: one.course[0].seq)


def lessons_of_call(failed: Incident, calls: Iterable[Incident]) -> Iterator[Lesson]:
    """A lesson for each thing that a call lacked, one after the other: what brought the first does not bring the
    next.
    """
    signs = [sign_of(failed.tool, failed.input, attempt.message) for attempt in failed.course]
    others = [other for other in calls if _was_tried_against(failed, other)]
    for place, sign in enumerate(signs):
        if sign.exact not in [one.exact for one in signs[:place]]:
            yield _lesson(failed, signs, place, others)


def _lesson(failed: Incident, signs: list[FailureSign], place: int, others: list[Incident]) -> Lesson:
    first, recovery, sign = failed.course[place], failed.recovery, signs[place]
    told = {(one.known.form, one.known.repair) for one in failed.course if one.known is not None}
    recovered = recovery is not None and recovery.why != "not_needed" and signs[-1].exact == sign.exact
    return Lesson(
        sign,
        cause_line(first.message)[:200],
        at_once=recovered
        and recovery is not None
        and place == len(signs) - 1
        and recovery.iteration <= first.iteration + 1,
        told=bool(told),
        tries=tuple(
            Try(repair, worked, told=repair[:2] in told)
            for repair, worked in _outcomes(failed, signs, place, others).values()
        ),
    )


def _outcomes(
    failed: Incident, signs: list[FailureSign], place: int, others: list[Incident]
) -> dict[tuple[Form, str], tuple[Repair, bool]]:
    """Each repair that was tried, and whether the failure went away by it; last, the one that worked."""
    lacks, wanted = missing_in(failed.course[place].message), signs[place].exact
    found: dict[tuple[Form, str], tuple[Repair, bool]] = {}

    def count(repairs: Iterable[Repair], *, worked: bool) -> None:
        for repair in repairs:
            if worked or repair[:2] not in found:
                found.pop(repair[:2], None)
                found[repair[:2]] = (repair, worked)

    for other in others:
        instead = repair_instead(lacks, failed.input, other.tool, other.input) or _as_told(failed, other)
        count([instead] if instead else [], worked=False)
    for before, after, attempt in zip(signs, signs[1:], failed.course[1:], strict=False):
        # An error that names nothing as missing may give way to another without being mended.
        if before.exact == wanted and (after.exact == wanted or lacks is not None):
            repairs = repairs_before(lacks, attempt.prepared, same_call=True)
            count(repairs, worked=after.exact != wanted)
    recovery = failed.recovery
    if recovery is not None and recovery.tool and signs[-1].exact == wanted:
        instead = repair_instead(lacks, failed.input, recovery.tool, recovery.input)
        if instead is not None:
            count([instead], worked=True)
        else:
            same = recovery.how == "same_call"
            count(repairs_before(lacks, recovery.prepared, same_call=same), worked=True)
    return found


def _as_told(failed: Incident, other: Incident) -> Repair | None:
    """The repair that the playbook had named, if the other call was a try of it."""
    programs = programs_of(command_of(other.input) or "")
    named = (one.known for one in failed.course if one.known is not None and one.known.form == "instead")
    return next(
        (Repair("instead", one.repair, "", is_bare(one.repair)) for one in named if one.repair in programs),
        None,
    )


def _was_tried_against(failed: Incident, other: Incident) -> bool:
    """True if another failing call would have recovered this failure, had it succeeded."""
    began, other_began = failed.course[0].seq, other.course[0].seq
    ended = failed.recovery.seq if failed.recovery is not None else None
    if other is failed or other_began <= began or (ended is not None and other_began >= ended):
        return False
    return relation(failed.tool, failed.subject, failed.error, other.tool, other.subject) != ""
