"""The fresh start: the window begins anew with the task and a summary of what was learned (`fresh.start`).

The summary has a fixed form and is made from results alone, without a model: whoever is stuck would write down what he
believes. The operator's words of the run stay as they were said. Files stay as the steps before left them, unless the
operator wants those of the last checkpoint at which more tests passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from tui_agent.core.events import CheckpointSaved, StartedAfresh
from tui_agent.core.framed import cleaned
from tui_agent.core.names import FINISH, UPDATE_PLAN
from tui_agent.core.partial_answer import commands_that_succeeded
from tui_agent.core.projections.entries import CallEntry, OperatorEntry
from tui_agent.core.projections.history import History
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.iteration import command_of
from tui_agent.core.recovery.output_signs import RanTests, ran_tests
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.request.window import messages_in_window, tokens_in_window
from tui_agent.core.state import RunState
from tui_agent.core.tool_facts import Effect, named
from tui_agent.headline import headline
from tui_agent.quantities import counted
from tui_agent.terminal_text import clipped, escaped_line

_LISTED = 12
_LONGEST_LINE, _LONGEST_CALL = 300, 120

_LOOKED_AT = 500
"""Entries of the conversation in which test runs are looked for, the newest."""

_HEAD = (
    "[Fresh start {number}: {steps} led nowhere ({reason}) and {are} not shown any more. Files are as {files}. "
    "Begin anew with the task above, by a way that differs in kind from those that failed.]"
)


class BetterFiles(NamedTuple):
    """The workspace as it was when more tests passed than now: its checkpoint, and the step after which it was kept."""

    ref: str
    step: int
    passed: int
    now: int

    @property
    def option(self) -> str:
        """The choice of a fresh start with these files."""
        return (
            f"fresh start, files of step {self.step} ({self.passed} passed, now {self.now}; see /diff back)"
        )


def better_files(state: RunState) -> BetterFiles | None:
    """Find the checkpoint of this run at which the tests that ran last had passed more; None if there is none."""
    newest: CallEntry | None = None
    now = best = RanTests(0, 0, "")
    found: CallEntry | None = None
    entries = state.conversation.entries
    for place in range(len(entries) - 1, max(-1, len(entries) - _LOOKED_AT), -1):
        entry = entries[place]
        if isinstance(entry, OperatorEntry) and entry.iteration == 0:
            break
        if not isinstance(entry, CallEntry) or (newest is not None and entry.input != newest.input):
            continue
        ran = ran_tests(entry.content) if command_of(entry.input) is not None else None
        if ran is None:
            continue
        if newest is None:
            newest, now, best = entry, ran, ran
        elif ran.passed > best.passed and ran.failed <= now.failed:
            found, best = entry, ran
    kept = None if found is None else _kept_at(state, found.iteration)
    if kept is None or kept.ref == state.checkpoints[-1].ref:
        return None
    return BetterFiles(kept.ref, kept.iteration, best.passed, now.passed)


def _kept_at(state: RunState, step: int) -> CheckpointSaved | None:
    """Find the checkpoint of the workspace as this step of the run found it."""
    began = _task_of(state.history, state.run.number)
    for saved in reversed(state.checkpoints):
        if saved.seq < began:
            return None
        if saved.iteration < step or (saved.before and saved.iteration == step):
            return saved
    return None


def started_afresh(
    state: RunState,
    reason: str,
    detector: str,
    ended_by: str,
    *,
    by_operator: bool = False,
    files: BetterFiles | None = None,
) -> StartedAfresh:
    """Make the event of a fresh start in the place of an end for `reason`. `files`: those that are brought back."""
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
        remark=_summary(state, reason, state.run.iteration, files),
        ref="" if files is None else files.ref,
        tokens_before=tokens_in_window(history, run),
        by="operator" if by_operator else "policy",
        rule=Rule.OPERATOR_FRESH_START if by_operator else Rule.FRESH_START,
    )
    after = history.apply(started.stamped(state.seq + 1, state.at))
    return started.model_copy(update={"tokens_after": tokens_in_window(after, run)})


def _task_of(history: History, run: int) -> int:
    places = (history.groups[place] for place in reversed(history.messages_at))
    return next((group.seq for group in places if group.kind == "task" and group.run == run), 0)


def _summary(state: RunState, reason: str, steps: int, files: BetterFiles | None) -> str:
    head = _HEAD.format(
        number=state.recovery.fresh_starts + 1,
        steps=counted(steps, "step"),
        reason=_line(reason.rstrip(".")),
        are="is" if steps == 1 else "are",
        files="they left them"
        if files is None
        else f"they were at step {files.step}: {files.passed} tests passed",
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
