"""An escalation in words: its question, the call it is about, the attempts, and the choices."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

from rich.cells import cell_len

from tui_agent.call_names import main_argument, of_lane, short_input
from tui_agent.core.events import EscalationRaised
from tui_agent.core.names import ABOUT_BUDGET, ABOUT_PLAN, ABOUT_STEPS, OF_NO_FAILURE, CallState
from tui_agent.core.projections.entries import CallEntry, FaultEntry, OperatorEntry
from tui_agent.core.recovery.signature import normalise
from tui_agent.core.tool_facts import named
from tui_agent.frontend.lines.passages import GAP, Choice, Passage
from tui_agent.headline import headline, innermost
from tui_agent.quantities import clock_time

if TYPE_CHECKING:
    from tui_agent.core.state import RunState


LOOKED_BACK = 60
"""Closed entries that are searched for what was tried: constant work however long the session is."""


_OF_NO_CALL = OF_NO_FAILURE | {"model"}
"""Sources of questions that no failed call led to."""


ATTEMPTS_SHOWN = 5


_STEP_KEYS = "cn"
"""Of going on by as many steps, and of going on without a limit."""

LONGEST_CHOICE = 30
"""Cells of an option that still stands among the choices."""


SHORT = 2
"""Lines of an error that is shown whole at once if it begins with its cause; else the line of the cause comes
first.
"""


class EarlierFailure(NamedTuple):
    """One failure that led here: which call or model, and the error in full."""

    what: str
    error: str
    changed: tuple[str, ...] = ()
    """Files that were changed between the failure before and this one."""


def title_of(asked: EscalationRaised) -> str:
    """The card's title, by who asks."""
    if asked.until is not None:
        return of_lane("The model's limit is reached", asked.lane)
    titles = {
        "ask_operator": "The agent asks",
        "model": "The model cannot be used",
        ABOUT_BUDGET: "A budget is used up",
        ABOUT_STEPS: "All steps are used up",
        ABOUT_PLAN: asked.in_words,
    }
    return of_lane(titles.get(asked.source, "The agent needs you"), asked.lane)


def choices_for(asked: EscalationRaised) -> list[Choice]:
    """The model's own options by number, then the choices that make sense for this question."""
    said = not _long(asked.options)
    options = [
        Choice(str(place + 1), option if said else "", f"option:{place}")
        for place, option in enumerate(asked.options)
    ]
    retry = Choice("r", "retry once", "retry")
    edit = Choice("e", "edit and retry", "edit", short="edit")
    skip = Choice("s", "skip", "skip")
    afresh = Choice("f", "fresh start", "fresh_start")
    ends = [
        Choice("p", "partial answer", "partial", short="partial"),
        Choice("x", "stop", "stop"),
        *([] if asked.source == "ask_operator" else [Choice("w", "why?", "why")]),
    ]
    if asked.source == "ask_operator":
        return [*options, skip._replace(label="skip, decide yourself"), *ends]
    if asked.source == ABOUT_BUDGET:
        return [*options, *ends]
    if asked.source == ABOUT_STEPS:
        keyed = [one._replace(key=key) for key, one in zip(_STEP_KEYS, options, strict=False)]
        return [*keyed, *ends]
    if asked.source == ABOUT_PLAN:
        return [*options, Choice("s", "keep it as the answer", "keep")]
    if asked.source == "model":
        wait = (
            []
            if asked.until is None
            else [Choice("u", f"wait until {clock_time(asked.until, asked.at)}", "wait")]
        )
        return [*wait, *options, retry, *ends]
    if asked.tool:
        return [retry, edit, skip, afresh, *options, *ends]
    return [retry, skip, afresh, *options, *ends]


Detail = Literal["line", "around", "whole"]
"""How much of the last error is shown below the line that says what is wrong: nothing, what stands around the innermost
place, all of it."""


def subject(
    asked: EscalationRaised,
    attempts: Sequence[EarlierFailure],
    detail: Detail = "around",
    *,
    plan: bool = True,
) -> Iterable[Passage]:
    """The question; the call; the attempts, the last one with its error in this detail. Without the `plan` that it is
    about if that stands above.
    """
    if asked.source == ABOUT_PLAN:
        yield Passage(asked.question) if plan else Passage("The plan stands above.", "muted")
        return
    yield Passage(asked.question, "bold")
    if asked.tool and asked.source != "ask_operator":
        yield GAP
        main = main_argument(named(asked.tool), asked.input)
        yield Passage(f"{asked.tool} {asked.input.get(main, '')}".rstrip(), "code", verbatim=True)
        for name, value in asked.input.items():
            if name != main:
                said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
                yield Passage(f"{name}: {said}", "code", indent=2, verbatim=True)
    if _long(asked.options):
        yield GAP
        for place, option in enumerate(asked.options, 1):
            yield Passage(option, number=str(place))
    if attempts:
        yield GAP
        yield from tried(attempts, detail)


def _long(options: Sequence[str]) -> bool:
    """True if the options stand in the subject, because a row of choices would cut them."""
    return any(cell_len(option) > LONGEST_CHOICE for option in options)


def folds(attempts: Sequence[EarlierFailure]) -> bool:
    """True if the last error is longer than the part that is shown."""
    return bool(attempts) and attempts[-1].error.strip("\n").count("\n") > len(innermost(attempts[-1].error))


def tried(attempts: Sequence[EarlierFailure], detail: Detail = "around") -> Iterable[Passage]:
    """The attempts with the line that says what is wrong, once for those in a row that failed in the same way, and what
    was changed in between; the last with its error in this detail.
    """
    groups = [list(alike) for _, alike in groupby(attempts, key=lambda attempt: normalise(attempt.error))]
    several = len(groups) > 1
    if several:
        yield Passage("Tried:", "muted")
    number, last = 0, len(attempts) if detail != "line" else -1
    for alike in groups:
        first, number = number + 1, number + len(alike)
        which = f"{first}–{number}." if len(alike) > 1 else f"{number}."
        how = ": the same error" if len(alike) > 1 else ""
        what = ", ".join(dict.fromkeys(attempt.what for attempt in alike))
        changed = ", ".join(dict.fromkeys(name for attempt in alike for name in attempt.changed))
        between = f" · changed in between: {changed}" if changed else ""
        begins = which if several else "Tried:"
        yield Passage(f"{begins} {what}{how}{between}", "muted", indent=int(several))
        error, said = alike[-1].error.rstrip("\n"), headline(alike[-1].error)
        if number == last and error.count("\n") < SHORT and error.startswith(said):
            yield Passage(error, "error", indent=4, squeezed=True)
            continue
        yield Passage(said, "error", indent=4)
        if number == last:
            shown = error.split("\n") if detail == "whole" else innermost(error)
            yield from [Passage("\n".join(shown), "muted", indent=4, squeezed=True)] if shown else []


def attempts_before(state: RunState, asked: EscalationRaised) -> list[EarlierFailure]:
    """The failures that led to the question, oldest first: of the same call if it is about one, of a model
    call its tries.
    """
    conversation = state.asker(asked).conversation
    skipped = max(0, len(conversation.entries) - LOOKED_BACK)
    entries = [*conversation.entries.tail(skipped), *conversation.calls]
    found: list[EarlierFailure] = []
    changed: dict[str, None] = {}
    for entry in reversed(entries):
        if isinstance(entry, CallEntry) and entry.changed and found:
            changed.update(dict.fromkeys(reversed(entry.changed)))
        match entry:
            case OperatorEntry(iteration=0):
                break
            case CallEntry(state=CallState.FAILED | CallState.FOUND) if asked.source not in _OF_NO_CALL:
                same = entry.tool == asked.tool and entry.input == asked.input
                if same if asked.tool else entry.state is CallState.FAILED:
                    called = f"{entry.tool} {short_input(entry.tool, entry.input)}".strip()
                    what = f"step {entry.iteration}" if asked.tool else called
                    if found:
                        found[-1] = found[-1]._replace(changed=tuple(reversed(changed)))
                    changed = {}
                    found.append(
                        EarlierFailure(what, entry.failure.message if entry.failure else entry.content)
                    )
            case FaultEntry() if asked.until is not None:
                return []  # the question is its words
            case FaultEntry() if asked.source == "model":
                tries = [*entry.earlier, entry][-ATTEMPTS_SHOWN:]
                return [EarlierFailure(f"{one.model}, try {one.attempt}", one.fault.message) for one in tries]
            case _:
                pass
        if len(found) == ATTEMPTS_SHOWN:
            break
    return found[::-1]
