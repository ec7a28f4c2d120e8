"""Receipts: for each claim of an answer that a result can show, the result that shows it, and what was left behind.

Made once, when the run is answered, from the state alone. Nothing here is a judgement: a claim without a receipt may be
true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tui_agent.core.recovery.claims import (
    Kind,
    claimed,
    commands_run,
    figures_measured,
    files_named,
    files_written,
    speaks_of,
)
from tui_agent.core.recovery.implicit import ImplicitFailures
from tui_agent.core.values import Receipt

if TYPE_CHECKING:
    from tui_agent.core.recovery.evidence import Check, Evidence
    from tui_agent.core.state import RunState

_KINDS: tuple[Kind, ...] = ("tests", "build", "lint")
_MOST = 5
"""Receipts of a kind."""
_STRAY = re.compile(
    r"(?:^|[_.-])(?:repro\w*|debug\w*|scratch|tmp|temp|verify\w*|try|check_\w+|test_(?:fix|bug|issue|repro|script|debug)\w*)"
    r"(?:[_.-]|\d|$).*\.(?:py|js|mjs|ts|sh|rb|go|php|pl|txt|log|json|diff|patch)$|\.(?:orig|rej|bak)$|~$",
    re.IGNORECASE,
)
"""Names of files that were made on the way, and that editors and patches leave."""


def receipts(state: RunState, answer: str) -> tuple[Receipt, ...]:
    """List what shows the claims of `answer`: checks, commands, files, figures; then what the run left behind."""
    implicit = state.recovery.of(ImplicitFailures)
    return (
        *_checks(implicit.evidence, answer),
        *_commands(implicit.evidence, answer),
        *_files(implicit, answer),
        *_figures(state, answer),
        *_strays(implicit, f"{state.run.task}\n{answer}"),
    )


def _checks(evidence: Evidence, answer: str) -> Iterator[Receipt]:
    for kind in _KINDS:
        words, check = claimed(answer, kind), evidence.checks.get(kind)
        if check is not None and (words or speaks_of(answer, kind, check.label)):
            yield _of_check(kind, check)
        elif words and not evidence.other:
            yield Receipt(kind=kind, claim=words)


def _commands(evidence: Evidence, answer: str) -> Iterator[Receipt]:
    known = {check.label for check in evidence.checks.values()}
    for command in commands_run(answer)[:_MOST]:
        words = " ".join(command.split())
        ran = next((check for text, check in reversed([*evidence.ran.items()]) if words in text), None)
        if ran is None:
            yield Receipt(kind="command", claim=words)
        elif ran.label not in known:
            yield _of_check("command", ran)


def _of_check(kind: str, check: Check) -> Receipt:
    return Receipt.model_validate({
        "kind": kind,
        "command": check.label,
        "exit_code": check.code,
        "failed": check.failed,
        "said": check.line,
        "step": check.step,
        "changed_since": check.edits,
    })  # fmt: skip


def _files(implicit: ImplicitFailures, answer: str) -> Iterator[Receipt]:
    for path in files_written(answer)[: 2 * _MOST]:
        step = implicit.written.get(path.rpartition("/")[2])
        if step is not None:
            yield Receipt(kind="file", claim=path, command=path, step=step)
        elif not implicit.evidence.other:
            yield Receipt(kind="file", claim=path)


def _figures(state: RunState, answer: str) -> Iterator[Receipt]:
    figures = figures_measured(answer)[:_MOST]
    groups = state.history.groups
    for figure in figures if groups else ():
        number = re.split(r"[ %a-zA-Z×]", figure, maxsplit=1)[0]
        shown = re.compile(rf"(?<![\d.]){re.escape(number)}(?![\d]|\.\d)")
        said = next(
            (
                line.strip()
                for place in range(len(groups) - 1, -1, -1)
                for message in groups[place].messages
                if message["role"] == "tool"
                for line in str(message["content"]).splitlines()
                if shown.search(line)
            ),
            "",
        )
        yield Receipt(kind="figure", claim=figure, said=said[:_LONGEST_LINE])


_LONGEST_LINE = 120


def _strays(implicit: ImplicitFailures, words: str) -> Iterator[Receipt]:
    made = [name for name, step in implicit.written.items() if step and _STRAY.search(name)]
    named = {path.rpartition("/")[2] for path in files_named(words)} if made else set()
    strays = [name for name in made if name not in named and not implicit.evidence.removed(name)]
    for name in strays[: 2 * _MOST]:
        yield Receipt(kind="stray", claim=name, command=name, step=implicit.written[name])
