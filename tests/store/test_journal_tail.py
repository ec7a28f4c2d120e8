"""A look at the end of a long journal: what it shows is what the whole shows there, or it shows nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.session_events import iteration, run_started, start, write_session
from tui_agent.core.events import Event, IterationStarted, ModelCallStarted, Outcome, ReplyDelta, RunFinished
from tui_agent.core.fold import fold
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.store import journal_tail
from tui_agent.store.journal import JOURNAL_NAME
from tui_agent.store.journal_tail import latest

ENDED: list[Event] = [RunFinished(outcome=Outcome.ANSWERED, answer="done")]
REPLYING: list[Event] = [
    IterationStarted(iteration=9),
    ModelCallStarted(iteration=9, model="scripted/a"),
    ReplyDelta(text="Let me "),
]


@pytest.fixture(autouse=True)
def short_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_tail, "TAIL", 30_000)
    monkeypatch.setattr(journal_tail, "ENOUGH", 50)


def runs(count: int, iterations: int = 8, end: list[Event] = ENDED) -> list[Event]:
    events: list[Event] = [start()]
    for run in range(1, count + 1):
        events.append(run_started(run))
        for number in range(1, iterations + 1):
            failing = "no such file: a.py" if number in (2, 3, 5) else ""
            events += iteration(number, call=f"c{run}-{number}", fails=failing)
        events += ENDED if run < count else end
    return events


@pytest.mark.parametrize("end", [ENDED, REPLYING])
@pytest.mark.parametrize("torn", [b"", b'{"seq":9999,"at":1.0,"v":2,"ty'])
def test_the_newest_runs_are_shown_as_the_whole_shows_them(
    tmp_path: Path, end: list[Event], torn: bytes
) -> None:
    whole = fold(write_session(tmp_path, runs(20, end=end)))
    with (tmp_path / JOURNAL_NAME).open("ab") as file:
        file.write(torn)
    seen = latest(tmp_path)
    assert seen is not None
    entries = list(seen.conversation.entries)
    assert 10 < len(entries) < len(whole.conversation.entries) / 2
    assert entries == whole.conversation.entries.tail(len(whole.conversation.entries) - len(entries))
    assert (seen.conversation.reply, seen.conversation.calls) == (
        whole.conversation.reply,
        whole.conversation.calls,
    )
    assert (seen.run, seen.phase, seen.recovery.of(AttemptLedger)) == (
        whole.run,
        whole.phase,
        whole.recovery.of(AttemptLedger),
    )


def test_of_a_run_that_is_longer_the_last_iterations_are_shown(tmp_path: Path) -> None:
    whole = fold(write_session(tmp_path, runs(1, 100)))
    seen = latest(tmp_path)
    assert seen is not None
    seqs = [entry.seq for entry in seen.conversation.entries]
    assert len(seqs) > 10
    assert seqs == [entry.seq for entry in whole.conversation.entries][-len(seqs) :]


@pytest.mark.parametrize(
    "bad", [b"{}", b"nonsense", b'{"seq":3000,"at":1.0,"v":99,"type":"notice"}', b"\xff", b"[" * 100_000]
)
def test_an_end_that_cannot_be_read_shows_nothing(tmp_path: Path, bad: bytes) -> None:
    write_session(tmp_path, runs(20))
    with (tmp_path / JOURNAL_NAME).open("ab") as file:
        file.write(bad + b"\n")
    assert latest(tmp_path) is None


def test_a_short_journal_or_none_is_not_worth_a_look(tmp_path: Path) -> None:
    write_session(tmp_path, runs(1))
    assert latest(tmp_path) is None
    assert latest(tmp_path / "missing") is None
