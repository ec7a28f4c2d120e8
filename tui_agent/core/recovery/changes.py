"""Changes since a call failed: files of the workspace and the environment, by whom, and when.

A failure after a change is a trial, one without is a repeat; both are counted elsewhere. A change is known
from an edit tool, from a look at the workspace after a step (`CheckpointSaved`), and from the text of a
command: any command if nobody looks, only one that surely writes if somebody does, since a look shows no
environment and no ignored folder.

What a call changes itself is no change between two failures of it, and neither is what tools keep for themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.iteration import CallResult, CallStatus, Iteration, command_of
from tui_agent.core.recovery.signature import normalise
from tui_agent.core.recovery.writes import Writes, writes, writes_before_its_end
from tui_agent.core.tool_facts import UNTOUCHED, Effect

_KEPT = 64
"""Newest changes that are kept with their authors and files."""

_OUTCOMES = 200
"""Commands whose outcome is remembered: the same command that ends alike again has changed nothing new."""

_FILES = 20
"""Files of one change that are named."""

_LONGEST_NAME = 120
_BEGINNING = 600
"""Characters of an outcome by which a command's are told apart, before what is volatile is left out."""

_BY_TOOLS = re.compile(
    r"""(?:^|/)(?:__pycache__|\.pytest_cache|\.mypy_cache|\.ruff_cache|\.hypothesis|\.cache|\.tox|\.nox|\.nyc_output
        |htmlcov|coverage|\.ipynb_checkpoints|\.gradle|\.parcel-cache|\.turbo|\.next|\.idea|\.vscode)/
      | (?:^|/)agent-tui/sessions/ | ^\.claude\.json | ^\.local/(?:share|state)/(?:opencode|goose|crush)/
      | ^\.claude/(?:projects|todos|tasks|file-history|shell-snapshots|session-env|sessions|debug|statsig|telemetry)/
      | ^\.(?:claude|codex)/history\.jsonl | ^\.codex/(?:(?:archived_)?sessions|shell_snapshots|log|tmp|.*\.sqlite)
      | ^\.(?:gemini|qwen)/tmp/ | ^\.copilot/(?:session-state|logs)/ | ^\.cursor/(?:chats|projects)/ | ^\.vibe/logs/
      | \.(?:pyc|pyo|log|swp|tmp|pid|tsbuildinfo|gcda|gcno|o|class)$
      | (?:^|/)(?:\.coverage(?:\..+)?|coverage\.(?:xml|json|lcov)|lcov\.info|junit.*\.xml|test-results?\.xml
        |\.eslintcache|\.stylelintcache|nohup\.out|\.DS_Store|core|\.dmypy\.json|\.testmondata|\.python_history)$
    """,
    re.VERBOSE,
)
"""Files that test runners, compilers and editors write by themselves, and the state that agents, ours too, keep in a
home folder.
"""

_ENDED = frozenset({CallStatus.SUCCEEDED, CallStatus.FAILED, CallStatus.UNFINISHED})
_BEGUN = _ENDED | {CallStatus.CANCELLED, CallStatus.NOT_KNOWN}


@dataclass(frozen=True)
class Change:
    """One change. `by`: keys of the calls that may have made it, empty if it was none of them."""

    number: int
    by: frozenset[str] = frozenset()
    files: tuple[str, ...] = ()
    """Names of files, or the command that made it if they are not known."""


@dataclass(frozen=True)
class Changes:
    """The changes of a run, numbered from 1. `watched`: the workspace is looked at after steps that may write."""

    count: int = 0
    newest: tuple[Change, ...] = ()
    watched: bool = False
    authors: tuple[str, ...] = ()
    """Calls of the last iteration that may have changed what nobody has seen yet."""
    outcomes: Mapping[str, str] = field(default_factory=dict)
    """By key of a command that writes by its text: how it ended last."""
    beside: frozenset[str] = frozenset()
    """Ids of the run's commands that run in the background."""
    logs: frozenset[str] = frozenset()
    """Files that they write to again and again."""

    # --- folding ---------------------------------------------------------------------------------------------

    def apply(
        self, results: Sequence[CallResult], effects: Mapping[int, str], seen: Sequence[str] = ()
    ) -> tuple[Changes, tuple[int, ...], tuple[bool, ...]]:
        """Fold the results of an iteration, in call order. `effects`: what the tools may do, by the call's place;
        `seen`: files that were seen to have changed in it.

        Beside the changes: for each result the number of the last change before it, and whether it changed something.
        """
        state, marks, moved = self, list[int](), list[bool]()
        seen = [name for name in unexplained(results, seen) if name not in self.logs]
        authors = _authors(results, effects)
        for result in results:
            marks.append(state.count)
            if result.changed:
                state = state.by((result.key,), result.changed_files)
            elif seen and result.index in authors:
                state = state.by(authors.values(), seen)
            else:
                state = state._by_text(result, effects.get(result.index, ""))
            moved.append(state.count > marks[-1])
        if seen and not authors:
            state = state.by((), seen)
        if authors or state.authors:
            state = evolve(state, authors=tuple(authors.values()))
        return state, tuple(marks), tuple(moved)

    def by(self, keys: Iterable[str], files: Sequence[str] = ()) -> Changes:
        """One more change."""
        names = tuple(name[:_LONGEST_NAME] for name in files[:_FILES])
        change = Change(self.count + 1, frozenset(keys), names)
        return evolve(self, count=self.count + 1, newest=(*self.newest, change)[-_KEPT:])

    def by_others(self, files: Sequence[str]) -> Changes:
        """Take in what was seen to have changed by no call. While a command runs in the background it is the first time
        for each file: a server writes its log whatever is done.
        """
        files = [name for name in files if name not in self.logs]
        if not files:
            return self
        changed = self.by((), files)
        return evolve(changed, logs=self.logs.union(files)) if self.beside else changed

    def begun_beside(self, name: str, keys: Iterable[str], command: str) -> Changes:
        """A command runs in the background from now on."""
        return evolve(self.by(keys, (command,)), beside=self.beside | {name})

    def ended_beside(self, name: str) -> Changes:
        """It has ended: whatever changes its files from now on is somebody else."""
        beside = self.beside - {name}
        return evolve(self, beside=beside, logs=self.logs if beside else frozenset())

    def seen_after(self, iteration: Iteration, files: Sequence[str]) -> Changes:
        """Changes of the last iteration, known only after it was folded."""
        seen = [name for name in unexplained(iteration.results, files) if name not in self.logs]
        return self.by(self.authors, seen) if seen else self

    def not_own(self, files: Sequence[str]) -> tuple[str, ...]:
        """Of these files those that no change by a call of the run names."""
        own = {name for change in self.newest if change.by for name in change.files}
        return tuple(name for name in files if name not in own)

    def looked_at(self, *, watched: bool) -> Changes:
        """The workspace is looked at from now on, or cannot be any more."""
        return self if watched == self.watched else evolve(self, watched=watched)

    def _by_text(self, result: CallResult, effect: str) -> Changes:
        """The changes that a command's text announces. One that ends as it did before has done nothing new."""
        if not _may_have_changed(result, effect, watched=self.watched):
            return self
        outcome = normalise(result.content[:_BEGINNING])[:_LONGEST_NAME] + str(result.passed)
        if self.outcomes.get(result.key) == outcome:
            return self
        known = {key: text for key, text in self.outcomes.items() if key != result.key}
        if len(known) >= _OUTCOMES:
            del known[next(iter(known))]
        changed = self.by((result.key,), (_first_line(result.input),))
        return evolve(changed, outcomes={**known, result.key: outcome})

    # --- asking ----------------------------------------------------------------------------------------------

    def since(self, mark: int, key: str, until: int | None = None) -> tuple[Change, ...]:
        """Changes after the one numbered `mark`, up to `until`, other than by the call `key` alone."""
        end = self.count if until is None else until
        if end <= mark:
            return ()
        own = frozenset({key})
        return tuple(
            change
            for change in self.newest
            if mark < change.number <= end and (not change.by or change.by - own)
        )


def unexplained(results: Sequence[CallResult], seen: Sequence[str]) -> tuple[str, ...]:
    """Of the files that were seen to have changed, those that no result of an edit tool names and that tools do not
    write for themselves.
    """
    if not seen:
        return ()
    named = {name for result in results for name in result.changed_files}
    return tuple(name for name in seen if name not in named and not _BY_TOOLS.search(name))


def _authors(results: Sequence[CallResult], effects: Mapping[int, str]) -> dict[int, str]:
    """Who may have changed what was seen: calls that succeeded and may write, else those that failed; keys by place."""
    able = [
        result for result in results if not result.changed and _able(result, effects.get(result.index, ""))
    ]
    if not able:
        return {}
    best = [result for result in able if result.passed] or able
    return {result.index: result.key for result in best}


def _able(result: CallResult, effect: str) -> bool:
    if result.status not in _BEGUN or result.facts.looks_only:
        return False
    command = command_of(result.input)
    if command is None:
        return effect in {"command", "write", "task"}
    return writes(command) is not Writes.NOTHING or not result.passed


def _may_have_changed(result: CallResult, effect: str, *, watched: bool) -> bool:
    """By the text of its command; another tool's call if nobody looks and it may write."""
    if effect in UNTOUCHED or effect == Effect.WRITE or result.facts.looks_only:
        return False
    command = command_of(result.input)
    if command is None:
        return effect in {"command", "task"} and not watched and result.passed
    if result.status not in _ENDED:
        return False
    if not result.passed:
        return writes_before_its_end(command, result.failure.message if result.failure else result.content)
    kind = writes(command)
    return kind >= Writes.OUTPUT or (kind is Writes.MAYBE and not watched)


def _first_line(arguments: Mapping[str, Any]) -> str:
    return (command_of(arguments) or "").strip().partition("\n")[0]
