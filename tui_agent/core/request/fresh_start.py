"""The fresh start: the window begins anew with the task and a summary of what was learned (`fresh.start`).

The summary has a fixed form and is made from results alone, without a model: whoever is stuck would write down what he
believes. The operator's words of the run stay as they were said, and files as the steps before left them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from tui_agent.core.events import StartedAfresh
from tui_agent.core.framed import cleaned
from tui_agent.core.names import FINISH, UPDATE_PLAN
from tui_agent.core.partial_answer import commands_that_succeeded
from tui_agent.core.projections.history import History
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.request.window import messages_in_window, tokens_in_window
from tui_agent.core.state import RunState
from tui_agent.core.tool_facts import Effect, named
from tui_agent.headline import headline
from tui_agent.quantities import counted
from tui_agent.terminal_text import clipped, escaped_line

_LISTED = 12
_LONGEST_LINE, _LONGEST_CALL = 300, 120

_HEAD = (
    "[Fresh start {number}: {steps} led nowhere ({reason}) and {are} not shown any more. Files are as they left "
    "them. Begin anew with the task above, by a way that differs in kind from those that failed.]"
)


def started_afresh(
    state: RunState, reason: str, detector: str, ended_by: str, *, by_operator: bool = False
) -> StartedAfresh:
    """Make the event of a fresh start in the place of an end for `reason`."""
    history, run = state.history, state.run.number
    shown = [group for group in messages_in_window(history, run) if group.kind in {"exchange", "news"}]
    started = StartedAfresh(
        iteration=state.run.iteration,
        number=state.recovery.fresh_starts + 1,
        reason=reason,
        detector=detector,
        ended_by=ended_by,
        groups=sum(group.kind == "exchange" for group in shown),
        to_seq=history.groups[-1].seq if history.groups else 0,
        words_from=_task_of(history, run),
        remark=_summary(state, reason, state.run.iteration),
        tokens_before=tokens_in_window(history, run),
        by="operator" if by_operator else "policy",
        rule=Rule.OPERATOR_FRESH_START if by_operator else Rule.FRESH_START,
    )
    after = history.apply(started.stamped(state.seq + 1, state.at))
    return started.model_copy(update={"tokens_after": tokens_in_window(after, run)})


def _task_of(history: History, run: int) -> int:
    places = (history.groups[place] for place in reversed(history.messages_at))
    return next((group.seq for group in places if group.kind == "task" and group.run == run), 0)


def _summary(state: RunState, reason: str, steps: int) -> str:
    head = _HEAD.format(
        number=state.recovery.fresh_starts + 1,
        steps=counted(steps, "step"),
        reason=_line(reason.rstrip(".")),
        are="is" if steps == 1 else "are",
    )
    sections = (
        ("Goal", ["what the task above asks for"]),
        ("What results showed", _shown(state)),
        ("Tried without success; never repeat it unchanged", _tried(state)),
        ("Not tried yet", _untried(state)),
    )
    return "\n\n".join((head, *(text for title, lines in sections if (text := _section(title, list(lines))))))


def _section(title: str, lines: list[str]) -> str:
    listed = list(dict.fromkeys(map(_line, lines)))
    more = [f"… and {len(listed) - _LISTED} more"] if len(listed) > _LISTED else []
    return "\n".join((f"{title}:", *(f"- {line}" for line in (*listed[:_LISTED], *more)))) if listed else ""


def _shown(state: RunState) -> Iterator[str]:
    for name in reversed(state.metrics.files_changed):
        yield f"changed: {escaped_line(name)}"
    for command, said in reversed(list(commands_that_succeeded(state))):
        yield f"succeeded: {command}{f': {said}' if said else ''}"
    for one in state.background.running.values():
        yield f"runs in the background: {one.id}: {one.command}"


def _tried(state: RunState) -> Iterator[str]:
    """Failures that nothing has recovered, the newest first, and calls that failed in the same way again and again."""
    failing = state.metrics.incidents.open
    for incident in reversed(failing.values()):
        call = _called(incident.tool, incident.input) or incident.key
        times = "once" if incident.times == 1 else f"{incident.times} times"
        yield f"{call} (failed {times}): {headline(incident.newest.message)}"
    for entry in state.recovery.of(AttemptLedger).newest_first():
        if entry.key not in failing and entry.last_message:
            yield f"{_called(entry.tool, entry.input)}: {headline(entry.last_message)}"


def _called(tool: str, arguments: Mapping[str, Any]) -> str:
    return clipped(f"{tool} {next(map(str, arguments.values()), '')}".strip(), _LONGEST_CALL)


def _untried(state: RunState) -> Iterator[str]:
    """Ways that errors have named, steps of the plan that wait, and tools that were not called."""
    incidents = reversed(state.metrics.incidents.open.values())
    yield from (incident.newest.hint for incident in incidents if incident.newest.hint)
    plan = state.conversation.plan
    yield from (step.text for step in plan.steps if step.status == "pending") if plan is not None else ()
    groups = state.history.groups.tail(0)
    messages = chain.from_iterable(group.messages for group in groups if group.run == state.run.number)
    called = {call["function"]["name"] for message in messages for call in message.get("tool_calls") or ()}
    unused = [
        name
        for name in state.run.tools
        if name not in called
        and name not in {FINISH, UPDATE_PLAN}
        and named(name).effect is not Effect.DIALOGUE
    ]
    if called and unused:
        yield f"tools that were not called: {', '.join(unused)}"


def _line(text: str) -> str:
    return clipped(" ".join(cleaned(text).split()), _LONGEST_LINE)
