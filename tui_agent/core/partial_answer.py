"""The partial answer: what a run leaves behind when it ends without an answer.

It is composed from the state alone; no further model call is needed for it (`partial.answer`, FunnelCanary).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tui_agent.core.names import NOT_COMPLETED, CallState
from tui_agent.core.projections.entries import CallEntry
from tui_agent.core.recovery.attempts import AttemptEntry, AttemptLedger
from tui_agent.core.recovery.cognition import CognitiveState, tool_failed_line
from tui_agent.core.recovery.model_faults import ModelFaults
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.core.recovery.streak import ErrorStreak, exceeded_message
from tui_agent.core.state import RunState
from tui_agent.headline import headline, telling_line
from tui_agent.quantities import counted
from tui_agent.terminal_text import clipped, escaped_line

LONGEST_TEXT = 500
"""Characters of the model's last text that are quoted."""

LONGEST_CLOSING = 8_000
"""Characters of what the model says in its closing turn: it is as good as the answer."""

PROBLEMS = 3
"""Open problems that are listed, the newest."""

_LOOKED_AT = 500
"""Entries of the conversation in which the results of commands are looked for, the newest."""

_TRIED = 5
_FILES = 20
_LONGEST_LINE = 200
_FEWEST_WORDS = 4
"""A text with fewer words says nothing by itself ("Again.")."""


def compose(reason: str, state: RunState, question: str = "") -> str:
    """The partial answer of a run that ends for `reason`; `question` is what an operator would be asked."""
    recovery, metrics = state.recovery, state.metrics
    why = reason.rstrip(".") or "the run was ended"
    lines = [f"{NOT_COMPLETED}{_literal(why)}{'' if why.endswith(('?', '!')) else '.'}"]
    if recovery.policy.streak == "stop" and recovery.strongest().detector == ErrorStreak.name:
        lines.insert(0, exceeded_message(recovery.of(ErrorStreak).limit))
    closing = state.closing_words.strip()
    if closing:
        lines += ["", "The agent's closing words:", clipped(closing, LONGEST_CLOSING)]
    lines += [
        "",
        _confidence(state),
        f"Completed steps: {metrics.completed_iterations}",
    ]
    done = [f"Changed: {escaped_line(name)}" for name in metrics.files_changed[:_FILES]]
    if len(metrics.files_changed) > _FILES:
        done.append(f"… and {counted(len(metrics.files_changed) - _FILES, 'more file')}")
    done += [_ran(command, said) for command, said in commands_that_succeeded(state)]
    lines += _section("Done:", done)
    lines += _section("Tried without success:", list(_tried(state, reason)))
    lines += _section("Open problems:", list(_problems(state, reason)))
    if question:
        lines += ["", "A question for you:", _line(question)]
    text = "" if closing else meaningful_text(state)
    if text:
        lines += ["", "The agent's last text:", clipped(text, LONGEST_TEXT)]
    return "\n".join(lines)


def commands_that_succeeded(state: RunState) -> Iterator[tuple[str, str]]:
    """Give the commands that succeeded, each with the line of its newest result that tells most."""
    left = dict.fromkeys(state.metrics.commands_succeeded, "")
    entries = state.conversation.entries
    for place in range(len(entries) - 1, max(-1, len(entries) - _LOOKED_AT), -1):
        entry = entries[place]
        if not isinstance(entry, CallEntry) or entry.state is not CallState.SUCCEEDED:
            continue
        command = " ".join(str(entry.input.get("command", "")).split())
        for known, said in left.items():
            if not said and command.startswith(known):
                left[known] = telling_line(entry.content)
    return iter(left.items())


def _ran(command: str, said: str) -> str:
    return _line(f"Ran: {command}: {said}" if said else f"Ran: {command}")


def _confidence(state: RunState) -> str:
    return f"Confidence: {state.recovery.of(CognitiveState).confidence:.0%}"


def meaningful_text(state: RunState) -> str:
    """The newest text of the run that says something; the newest of all if none does."""
    newest = ""
    for text in state.history.texts(state.run.number):
        text = text.strip()
        newest = newest or text
        if len(text.split()) >= _FEWEST_WORDS:
            return text
    return newest


def _section(title: str, items: list[str]) -> list[str]:
    return ["", title, *(f"- {item}" for item in items)] if items else []


def _failed_calls(state: RunState) -> list[AttemptEntry]:
    return [entry for entry in state.recovery.of(AttemptLedger).newest_first()[:_TRIED] if entry.count]


def _tried(state: RunState, reason: str) -> Iterator[str]:
    """List the calls that failed, with the errors that the reason does not name."""
    for entry in _failed_calls(state):
        times = "once" if entry.count == 1 else f"{entry.count} times"
        what = next((str(value) for value in entry.input.values()), "")
        cause = headline(entry.last_message)
        yield _line(f"{entry.tool} {what} ({times})" + ("" if cause.rstrip(".") in reason else f": {cause}"))


def _problems(state: RunState, reason: str) -> Iterator[str]:
    """List what is open, with the errors that neither the reason nor a call above names."""
    above = {entry.last_message for entry in _failed_calls(state)}
    recovery = state.recovery
    newest = {entry.tool: entry.last_message for entry in recovery.of(AttemptLedger).entries.values()}
    newest |= {slot.tool: slot.message for slot in recovery.of(ErrorRing).slots if slot is not None}
    faulted = recovery.of(ModelFaults).last
    if faulted is not None:
        newest[faulted.fault.kind.in_words] = faulted.fault.message
    for problem in recovery.of(CognitiveState).uncertainties[-PROBLEMS:]:
        about = problem.rpartition(": ")[2]
        message = newest.get(about, "")
        of_tool = problem == tool_failed_line(about)
        said = f"{about} failed" if of_tool else problem
        told = not message or message in above or message.rstrip(".") in reason
        cause = headline(message)
        yield _line(said if told else f"{said}: {cause}" if of_tool else f"{said} ({cause})")


def _line(text: str) -> str:
    return _literal(clipped(" ".join(text.split()), _LONGEST_LINE))


def _literal(text: str) -> str:
    """Text that Markdown shows as it is: words that hold its signs are code."""
    return _MARKED.sub(lambda word: _code(word[0]), text)


def _code(word: str) -> str:
    ticks, space = "`" * (1 + max(map(len, re.findall("`*", word)))), " " if "`" in word else ""
    return f"{ticks}{space}{word}{space}{ticks}"


_MARKED = re.compile(r"(?=\S*?(?:[*`\[\]<\\]|~~|&#?\w+;|(?<![^\W_])_|_(?![^\W_])))\S+")
"""A word in which something is a sign of Markdown: an underscore between letters is none."""
