"""Writes docs/lab/IMPLICIT.md: how often the rules of silent failures fire on recorded runs, and how often rightly.

`python -m tui_agent.lab.evaluation.implicit NAME=FOLDER…` counts again. The judgements by hand stand in
docs/lab/implicit_judged.toml. With `--list` every firing is printed instead, as it is to be judged. Nothing is run
again.
"""

from __future__ import annotations

import statistics
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tui_agent.core import events
from tui_agent.core.fold import apply
from tui_agent.core.recovery.claims import claims_pass, files_claimed
from tui_agent.core.recovery.implicit import ImplicitFailures
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.state import RunState
from tui_agent.formats.importers.load import Imported, judge
from tui_agent.lab.evaluation import PAGES
from tui_agent.lab.evaluation.next_step.counting import recordings as runs_of
from tui_agent.lab.evaluation.policies import Recordings, markdown_table, recordings_of

TARGET = PAGES / "IMPLICIT.md"
JUDGED = PAGES / "implicit_judged.toml"

RULES = tuple(rule for rule in Rule if rule.startswith("implicit."))
MEANT = "a script of the model's own prints an error under exit code 0"
"""Cases that `implicit.error` leaves out: counted and judged too, as the reason for leaving them out."""

INTRODUCTION = """\
# Silent failures over recorded runs

<!-- Written by tui_agent/lab/evaluation/implicit.py from recorded runs and implicit_judged.toml. Do not edit. -->

The rules `implicit.*` ([RECOVERY.md](../RECOVERY.md#silent-failures)) remark on results that look like
successes and are none. Here `combined` judged recorded runs of other agents. Nothing was run again.

- A **firing** is one remark. A cause is remarked on once in a run.
- **Judged**: somebody read the firing together with the replies around it.
- **Right**: the remark is true of that result, and what it names is a failure of the run.
- **Seen**: of the right ones, those where the model's next reply says the same by itself. There the remark was not
  needed. If a recording holds no words of the model, a remark counts as not seen.
- **Kept**: a rule is left out if less than 80 % of what was judged is right.

Counted again with:

```sh
python -m tui_agent.lab.evaluation.implicit NAME=FOLDER…
```
"""


@dataclass(frozen=True)
class Firing:
    """One remark in a recorded run: its place and its words."""

    file: str
    run: int
    solved: bool | None
    rule: str
    step: int
    said: str


@dataclass
class Counted:
    """One set of recordings."""

    name: str
    runs: dict[bool | None, int] = field(default_factory=dict)
    firings: list[Firing] = field(default_factory=list)
    per_run: dict[bool | None, list[int]] = field(default_factory=dict)
    meant: list[Firing] = field(default_factory=list)
    answers: int = 0
    """Last replies that claim that tests pass."""
    answers_asked: int = 0
    """Of these, the ones that would be sent back."""
    answers_shown: int = 0
    """Of these, the ones that a test run shows which followed the last edit."""
    replies: int = 0
    """Replies before the last that claim so, as though each were an answer."""
    replies_asked: int = 0
    replies_shown: int = 0
    of_files: int = 0
    """Last replies that tell what a file holds that the task names and no call has shown, as though it were there."""
    replies_of_files: int = 0
    """Of all replies before the last, each taken as an answer, those that do so."""


def counted(recordings: Recordings) -> Counted:
    """All runs of one set."""
    total = Counted(recordings.name)
    for file, run in runs_of(recordings.paths):
        _count(total, file, run)
    return total


def _count(total: Counted, file: Path, run: Imported) -> None:
    solved = None if run.reward is None else run.reward >= 1.0
    judged = judge(run, "combined", operator_present=False).events
    last = max((at for at, event in enumerate(judged) if isinstance(event, events.ReplyFinished)), default=-1)
    state, notes = RunState(), 0
    for at, event in enumerate(judged):
        implicit = state.recovery.of(ImplicitFailures)
        if isinstance(event, events.ReplyFinished):
            untold = bool(files_claimed(event.text, implicit.unshown, only=not implicit.called))
            total.of_files += untold and at == last
            total.replies_of_files += untold and at != last
        if isinstance(event, events.ReplyFinished) and claims_pass(event.text):
            asked, evidence = implicit.unproved(event.text) is not None, implicit.evidence
            tests = evidence.tests
            shown = tests is not None and not (tests.failed or evidence.changed or evidence.other)
            if at == last:
                total.answers += 1
                total.answers_asked += asked
                total.answers_shown += shown
            else:
                total.replies += 1
                total.replies_asked += asked
                total.replies_shown += shown
        state = apply(state, event)
        if not isinstance(event, events.IterationFinished):
            continue
        implicit, step = state.recovery.of(ImplicitFailures), event.iteration
        place = (file.name, run.index + 1, solved)
        notes += len(implicit.remarks)
        total.firings += [Firing(*place, one.rule.value, step, one.reason) for one in implicit.remarks]
        if implicit.waiting is not None:
            total.meant.append(Firing(*place, MEANT, step, implicit.waiting.reason))
    total.runs[solved] = total.runs.get(solved, 0) + 1
    total.per_run.setdefault(solved, []).append(notes)


def judgements() -> dict[tuple[str, int, str, int], str]:
    """By file, run, rule and step: `right`, `seen` (right, and the model saw it by itself) or `wrong`."""
    tables = tomllib.loads(JUDGED.read_text("utf-8"))["firing"]
    return {(one["file"], one["run"], one["rule"], one["step"]): one["verdict"] for one in tables}


def claims_judged() -> str:
    """What was made of the last replies that were read by hand, in a sentence."""
    read = tomllib.loads(JUDGED.read_text("utf-8"))["claim"]
    shown = [one for one in read if one["found"] == "shown"]
    right = sum(one["verdict"] == "right" for one in read)
    return (
        f"{len(read)} last replies were read by hand. {len(shown)} are shown, and {len(read) - len(shown)} were taken "
        f"because nothing says otherwise. That was right in {right} ({right / len(read):.0%}); the others claim what "
        "no run shows."
    )


def document(sets: Sequence[Counted]) -> str:
    """The whole document."""
    judged = judgements()
    parts = [INTRODUCTION, _conclusion(sets, judged)]
    parts += [_section(one, judged) for one in sets]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _verdicts(firings: Sequence[Firing], judged: dict[tuple[str, int, str, int], str]) -> list[str]:
    keys = [(one.file, one.run, one.rule, one.step) for one in firings]
    return [judged[key] for key in keys if key in judged]


def _conclusion(sets: Sequence[Counted], judged: dict[tuple[str, int, str, int], str]) -> str:
    head = ("rule", "firings", "judged", "right", "seen", "kept")
    rows = []
    for rule in [*RULES, MEANT]:
        firings = [one for total in sets for one in (*total.firings, *total.meant) if one.rule == rule]
        verdicts = _verdicts(firings, judged)
        right = len(verdicts) - verdicts.count("wrong")
        kept = "yes" if not verdicts or right >= 0.8 * len(verdicts) else "no"
        name = f"`{rule}`" if rule != MEANT else rule
        share = f"{right} ({right / len(verdicts):.0%})" if verdicts else "·"
        seen = str(verdicts.count("seen")) if verdicts else "·"
        rows.append((name, f"{len(firings):,}", str(len(verdicts)), share, seen, kept))
    answers, asked, shown = (
        sum(getattr(one, name) for one in sets) for name in ("answers", "answers_asked", "answers_shown")
    )
    replies, doubted, proved = (
        sum(getattr(one, name) for one in sets) for name in ("replies", "replies_asked", "replies_shown")
    )
    of_files, doubtful = (
        sum(getattr(one, name) for one in sets) for name in ("of_files", "replies_of_files")
    )
    runs = sum(number for one in sets for number in one.runs.values())
    claims = (
        f"`implicit.claim` sends an answer back that claims that tests pass if no test run shows it. {answers} last "
        f"replies claim so. {asked} of them would be sent back. A test run after the last edit shows {shown}. Of the "
        f"others the recording does not say whether they are right. {claims_judged()}\n\n"
        f"{replies} replies before the last claim so too. Taken as answers, {doubted} of them would be sent back, and "
        f"{proved} are shown.\n\n"
        "The same rule sends an answer back that says what a file holds which the task names and no call has shown. "
        f"Of the last replies of {runs:,} runs {of_files} say so. Of all replies before the last, taken as answers, "
        f"{doubtful} do. The recordings do not say whether these files are there, so no more than these would be sent "
        "back.\n\n"
        "A rule that never fired is kept, because it cost nothing here. Its case shows what it is for."
    )
    return f"## All sets\n\n{markdown_table(head, rows, 1)}\n{claims}\n"


def _section(total: Counted, judged: dict[tuple[str, int, str, int], str]) -> str:
    grades = {True: "solved", False: "unsolved", None: "without a grade"}
    shown = [grade for grade in grades if total.runs.get(grade)]
    head = ("rule", *(f"in {grades[grade]} runs" for grade in shown), "judged", "right")
    rows = []
    for rule in RULES:
        firings = [one for one in total.firings if one.rule == rule]
        verdicts = _verdicts(firings, judged)
        cells = [str(sum(one.solved is grade for one in firings)) for grade in shown]
        right = str(len(verdicts) - verdicts.count("wrong"))
        if firings:
            rows.append((f"`{rule}`", *cells, str(len(verdicts)), right))
    notes = "; ".join(
        f"{total.runs[grade]:,} {grades[grade]}: {statistics.mean(total.per_run[grade]):.3f} remarks a run, "
        f"at most {max(total.per_run[grade])}"
        for grade in shown
    )
    table = markdown_table(head, rows, 1) if rows else "No rule fired.\n"
    return f"## {total.name}\n\n{notes}.\n\n{table}"


def listed(sets: Sequence[Counted]) -> Iterator[str]:
    """Every firing as a table of docs/lab/implicit_judged.toml, to be judged."""
    for total in sets:
        for one in (*total.firings, *total.meant):
            yield f"# {total.name}, solved: {one.solved}: {one.said}\n[[firing]]\n"
            yield f'file = "{one.file}"\nrun = {one.run}\nrule = "{one.rule}"\nstep = {one.step}\nverdict = ""\n\n'


def main(arguments: Sequence[str]) -> int:
    """Count and write. 2: nothing was named, or something that is not there."""
    named = [argument for argument in arguments if argument != "--list"]
    if not named:
        sys.stderr.write(
            "No recordings are named. Give folders: python -m tui_agent.lab.evaluation.implicit NAME=FOLDER…\n"
        )
        return 2
    try:
        sets = [counted(recordings_of(argument)) for argument in named]
    except FileNotFoundError as error:
        sys.stderr.write(f"{error}: there are no recordings. Name a folder or a pattern of files.\n")
        return 2
    if "--list" in arguments:
        sys.stdout.writelines(listed(sets))
    else:
        TARGET.write_text(document(sets), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
