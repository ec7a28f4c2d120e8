"""A run as it is read aloud: each event in words, the model's text and a command's output as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.call_names import subject_of
from tui_agent.core import events
from tui_agent.core.names import RAN_UNASKED, UPDATE_PLAN
from tui_agent.core.projections.entries import OutcomeEntry
from tui_agent.core.projections.plan import plan_of
from tui_agent.core.receipt_lines import listed
from tui_agent.core.tool_facts import facts_of
from tui_agent.event_lines import WORDS, call_words, ended_as, event_line
from tui_agent.frontend.lines.account import account
from tui_agent.frontend.lines.glyphs import RECEIPTS
from tui_agent.frontend.lines.incident import incident_name, next_words, recovered_words
from tui_agent.headline import headline
from tui_agent.quantities import counted
from tui_agent.terminal_text import one_line, revealed_line, sanitize

if TYPE_CHECKING:
    from tui_agent.core.state import RunState
    from tui_agent.plain.paper import Paper

SHOWN_LINES = 12
"""Lines of a result that are written if none came while it ran; `/show` writes all."""

STREAMED_LINES = 400
"""Lines of a running command that are written as they come."""


class Narration:
    """Writes what happens. `typed` holds messages that stand at the prompt already, so they are not repeated."""

    def __init__(self, paper: Paper) -> None:
        self._paper = paper
        self.typed: set[str] = set()
        self._note: str | None = None
        self._stream = ""
        self._answer = ""
        self._output: dict[str, str] = {}
        self._streamed: dict[str, int] = {}
        self._recovered = 0

    def take(self, event: events.Event, state: RunState) -> None:
        """Write what the event says to the operator."""
        match event:
            case events.ReplyDelta():
                self._reply(event)
            case events.ToolProgress():
                self._progress(event)
            case events.ToolStarted():
                self._started(event)
            case events.ToolResult():
                self._result(event, state)
            case events.ModelCallStarted() | events.ReplyFinished() | events.CompactionStarted():
                self._call(event)
            case (
                events.RunStarted()
                | events.OperatorSpoke()
                | events.IterationStarted()
                | events.RunFinished()
            ):
                self._run(event, state)
            case events.EscalationRaised():
                pass  # a dialogue asks it
            case events.OwnCommandEnded():
                pass  # it was written as it ran
            case _:
                self._say(_settings_line(event) or event_line(event, WORDS))
        self._tell_recovered(state)
        self._forecast(event, state)

    def _say(self, text: str) -> None:
        if text:
            self._end_stream()
            self._paper.line(text)

    # --- the model ------------------------------------------------------------------------------------------

    def _call(self, event: events.ModelCallStarted | events.ReplyFinished | events.CompactionStarted) -> None:
        match event:
            case events.ModelCallStarted():
                self._answer = ""
                self.tell_note(event.note, "Note that the model reads now:")
            case events.ReplyFinished():
                if event.text.startswith(self._answer):  # what did not come as a piece
                    self._reply(events.ReplyDelta(text=event.text[len(self._answer) :]))
                self._end_stream()
            case events.CompactionStarted():
                self._say(f"summary: {counted(event.groups, 'step')} are being summarised")

    def tell_note(self, note: str | None, title: str) -> None:
        """Write a note, without the paragraphs that the one before had."""
        before = set((self._note or "").split("\n\n"))
        if note and note != self._note:
            paragraphs = note.strip().split("\n\n")
            fresh = [paragraph for paragraph in paragraphs if paragraph not in before]
            rest = "" if len(fresh) == len(paragraphs) else "\n(and what the note before said)"
            self._say(title)
            self._excerpt("\n".join(fresh) + rest)
        self._note = note

    def _reply(self, event: events.ReplyDelta) -> None:
        for name, text in (("Thinking", event.reasoning), ("Model", event.text)):
            if not text or (self._stream != name and not text.strip()):
                continue
            if self._stream != name:
                self._end_stream()
                self._stream, text = name, f"{name}: {text.lstrip()}"
            self._paper.stream(text)
        self._answer += event.text

    def _end_stream(self) -> None:
        if self._stream:
            self._stream = ""
            self._paper.end()

    # --- calls ----------------------------------------------------------------------------------------------

    def _started(self, event: events.ToolStarted) -> None:
        if not facts_of(event).aside:
            self._say(f"Call: {one_line(event.tool, 60)}: {subject_of(event)}".rstrip(": "))
            if event.reads_only:
                self._say(f"  {RAN_UNASKED}")

    def _progress(self, event: events.ToolProgress) -> None:
        text = self._output.get(event.call_id, "") + event.text
        whole, _, self._output[event.call_id] = text.rpartition("\n")
        if whole:
            self._written(event.call_id, sanitize(whole).split("\n"))

    def _written(self, call_id: str, lines: list[str]) -> None:
        before = self._streamed.get(call_id, 0)
        self._streamed[call_id] = before + len(lines)
        self._end_stream()
        self._paper.lines(lines[: max(0, STREAMED_LINES - before)], "  ")
        if before <= STREAMED_LINES < before + len(lines):
            self._paper.line("  (more lines come; they are left out here)")

    def _result(self, event: events.ToolResult, state: RunState) -> None:
        rest = self._output.pop(event.call_id, "")
        if rest:
            self._written(event.call_id, sanitize(rest).split("\n"))
        streamed = self._streamed.pop(event.call_id, 0)
        match event:
            case events.ToolSucceeded(tool=tool) if tool == UPDATE_PLAN:
                self._say("Plan:")
                self._paper.lines(sanitize(plan_of(event.input).as_text()).split("\n"), "  ")
                return
            case events.ToolSucceeded() if facts_of(event).aside:
                return
        answer = state.metrics.incidents.answer(event)
        match event:
            case events.ToolFailed() if "\n" in event.failure.message.strip():
                begins = ended_as(answer, WORDS)
                self._say(f"{begins} {call_words(event)}: {headline(event.failure.message)}")
                if not streamed:
                    self._excerpt(event.failure.message)
            case events.ToolSucceeded() if not streamed:
                self._say(event_line(event, WORDS))
                self._excerpt(event.diff or event.content)
            case _:
                self._say(event_line(event, WORDS, answer))

    def _excerpt(self, text: str) -> None:
        lines = sanitize(text).strip("\n").split("\n") if text.strip() else []
        left_out = len(lines) - SHOWN_LINES
        if left_out > 1:
            half = SHOWN_LINES // 2
            lines = [*lines[:half], f"({left_out} lines left out; /show writes all)", *lines[-half:]]
        self._end_stream()
        self._paper.lines(lines, "  ")

    # --- runs -----------------------------------------------------------------------------------------------

    def _run(
        self,
        event: events.RunStarted | events.OperatorSpoke | events.IterationStarted | events.RunFinished,
        state: RunState,
    ) -> None:
        match event:
            case events.RunStarted():
                self._note, self._recovered = None, 0
                self._say_task(event.task)
                alone = " (for this run alone)" if event.session_model else ""
                self._say(f"Run {event.run}: {one_line(event.model)}{alone}, policy {event.policy}")
            case events.OperatorSpoke():
                self._say_task(event.text)
            case events.IterationStarted():
                self._say(f"Step {event.iteration}.")
            case events.RunFinished():
                self._finished(event, state)

    def _say_task(self, text: str) -> None:
        if text in self.typed:
            self.typed.discard(text)
        else:
            self._say("You: " + sanitize(text).strip())

    def _finished(self, event: events.RunFinished, state: RunState) -> None:
        answer = event.answer.strip()
        if answer and answer != self._answer.strip():
            self._say("Answer: " + sanitize(answer))
        self._answer = ""
        entries = state.conversation.entries
        last = entries[-1] if entries else None
        for standing, words in listed(event.receipts):
            self._say(f"{RECEIPTS[standing].word}: {one_line(words)}")
        parts = list(account(last)) if isinstance(last, OutcomeEntry) else []
        rule = f" [{one_line(event.rule)}]" if event.rule else ""
        why = f": {one_line(event.reason)}{rule}" if event.reason else ""
        self._say(f"The run ended, {event.outcome.in_words}{why}. {', '.join(parts)}.".replace("..", "."))

    def _tell_recovered(self, state: RunState) -> None:
        recovered = state.metrics.incidents.recovered
        for place in range(min(self._recovered, len(recovered)), len(recovered)):
            incident = recovered[place]
            if incident.recovery is not None and incident.recovery.why != "not_needed":
                self._say(f"recovered: {recovered_words(incident)}")
        self._recovered = len(recovered)

    def _forecast(self, event: events.Event, state: RunState) -> None:
        """The next step, once a verdict above `continue` was given."""
        if not isinstance(event, events.VerdictReached):
            return
        if not events.Level.CONTINUE.rank < event.level.rank < events.Level.ESCALATE.rank:
            return
        incident = state.metrics.incidents.current
        then = next_words(state, incident) if incident is not None else ""
        if then and incident is not None:
            often = f"the same error {incident.same} times; " if incident.same > 1 else ""
            self._say(f"  {incident_name(incident)}: {often}if it fails again, {then}")


def _settings_line(event: events.Event) -> str:
    match event:
        case events.MessageQueued():
            return f"queued: {one_line(event.text, 100)}"
        case events.ModeChanged():
            return f"mode: {event.mode}"
        case events.SettingChanged():
            return f"{event.setting}: now {one_line(event.value)}"
        case events.AgentOptionChosen():
            return one_line(event.in_words)
        case events.ClosingTurnOpened():
            return f"closing turn: {one_line(event.reason)}"
        case events.StartedAfresh():
            return one_line(event.in_words)
        case events.BudgetRaised():
            return f"budget: {one_line(event.in_words)}"
        case events.BreakerSet():
            return f"breaker: {one_line(event.tool)} {'opened' if event.open else 'closed'}"
        case events.BackgroundStarted():
            return f"background: {event.id} runs: {revealed_line(event.command, 200)}"
        case events.NotePrepared(edited=True):
            return "note: changed" if event.text else "note: dropped"
        case events.TitleChanged():
            return f"title: {one_line(event.title)}"
    return ""
