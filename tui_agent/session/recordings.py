"""Sources of a replay: a saved session as it was recorded, or judged anew; another program's recording,
judged.

The console and `replay --print` both open recordings here. Nothing is folded or drawn: the result is events by number,
and notices about them. The importers are loaded only for what is no session of ours, because the screen waits for this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.core.events import Event
from tui_agent.core.recovery.policy import preset
from tui_agent.store.errors import JournalError
from tui_agent.store.journal import JOURNAL_NAME, journal_path
from tui_agent.store.journal_index import EventList, EventSource, JournalIndex

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings
    from tui_agent.formats.importers.load import Imported


@dataclass(frozen=True)
class OpenedRecording:
    """Events that can be replayed, and their source."""

    path: Path
    source: EventSource
    foreign: bool = False
    """Another program's."""
    judged_by: str = ""
    """The policy whose verdicts these are, if they are not those that were recorded."""
    notices: tuple[str, ...] = ()
    """Notes for the viewer on parts that were left out or chosen."""

    @property
    def as_recorded(self) -> bool:
        """A saved session, event for event: one can fork from what is shown."""
        return isinstance(self.source, JournalIndex)

    def readable(self) -> tuple[list[Event], JournalError | None]:
        """All events up to the first that turns out to be damaged, and that damage."""
        events: list[Event] = []
        try:
            events.extend(self._all())
        except JournalError as damage:
            return events, damage
        return events, None

    def _all(self) -> Iterator[Event]:
        return (self.source.event(number) for number in range(1, len(self.source) + 1))


def open_recording(path: Path, settings: Settings) -> OpenedRecording:
    """The session or recording in `path` (a file or a folder), as `settings` want it judged.

    Another program's run is judged by the policy of the settings. Our own keeps the verdicts that it had, unless this
    start names a policy (`--policy`): a policy in a configuration file is for runs, not for the past. `settings.run`
    chooses among the runs of a file. Raises `SessionError`: the `JournalError` of a session that cannot be read, the
    `TranscriptError` of what is no recording at all or has no such run.
    """
    try:
        index = JournalIndex(path, salvage=True)
    except JournalError as fault:
        return _imported(path, settings, fault)
    if index.damage is not None and journal_path(path).name != JOURNAL_NAME:
        return _imported(
            path, settings, index.damage
        )  # `run --output jsonl` ends with a line that is no event
    if settings.run not in {None, 1}:
        from tui_agent.formats.importers.transcript import no_such_run

        raise no_such_run(str(path), settings.run, 1)
    notices = tuple(_notices(index))
    if not settings.asked_policy:
        return OpenedRecording(path, index, notices=notices)
    return _judged_anew(OpenedRecording(path, index, notices=notices), settings)


def _judged_anew(recording: OpenedRecording, settings: Settings) -> OpenedRecording:
    from tui_agent.formats.importers.judgement import judged

    events, damage = recording.readable()
    notices = recording.notices if damage is None else (*recording.notices, _of_damage(damage))
    made = judged(events, preset(settings.policy, **settings.recovery.overrides()))
    return OpenedRecording(
        recording.path, EventList(made), False, settings.policy, (*notices, _anew(settings.policy))
    )


def _imported(path: Path, settings: Settings, fault: JournalError) -> OpenedRecording:
    """A recording of another program, or our own in another form. `fault`: why it is no journal."""
    from tui_agent.formats.importers.load import choose_run, judge, load_transcripts
    from tui_agent.formats.importers.own import OwnSession
    from tui_agent.formats.importers.transcript import TranscriptError

    try:
        runs = load_transcripts(path)
    except TranscriptError:
        if journal_path(path).name == JOURNAL_NAME:
            raise fault from None
        raise
    chosen = choose_run(runs, settings.run)
    notices = tuple(_chosen(chosen, settings.run))
    if chosen.source != OwnSession.name:
        policy = preset(settings.policy, **settings.recovery.overrides())
        return OpenedRecording(path, EventList(judge(chosen, policy).events), True, settings.policy, notices)
    if not chosen.report.clean:
        notices = (chosen.report.summary(), *notices)
    recording = OpenedRecording(path, EventList(chosen.events), notices=notices)
    return _judged_anew(recording, settings) if settings.asked_policy else recording


def _notices(index: JournalIndex) -> Iterator[str]:
    if index.damage is not None:
        yield _of_damage(index.damage)
    if index.dropped_bytes:
        yield f"A torn last line of {index.dropped_bytes} bytes was left out; all before it is here."


def _of_damage(damage: JournalError) -> str:
    return f"{damage} What comes before it is shown."


def _anew(policy: str) -> str:
    return f"Judged anew by {policy}: these are not the verdicts that the run had."


def _chosen(imported: Imported, run: int | None) -> Iterator[str]:
    there = imported.report.runs
    if there > 1 and run is None:
        title = f" ({imported.title})" if imported.title else ""
        number = "the first" if imported.index == 0 else f"run {imported.index + 1}"
        yield f"The file holds {there} runs; this is {number}{title}. --run N shows another, from 1 to {there}."
