"""The model's history: what is stored and may be sent again, in whole groups.

A group is a message of the operator alone, or an assistant message with all the results of its calls. Groups
enter the history when they are complete, so a stored call never lacks its result.
Messages are plain dictionaries in OpenAI's chat form, made once and shared by every request; nobody alters them. What
only some providers take stands beside the content, under keys of ours (`carried`, `images`), until the call goes out.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from tui_agent.core import events
from tui_agent.core.append_log import AppendLog
from tui_agent.core.evolve import evolve
from tui_agent.core.projections.background import in_words

Message = dict[str, Any]
AnyResult = Annotated[
    events.ToolSucceeded | events.ToolFailed | events.ToolRefused | events.ToolCancelled | events.ToolEnded,
    Field(discriminator="type"),
]
GroupKind = Literal["task", "operator", "exchange", "summary", "news"]

INTERRUPTED = "[This reply was interrupted.]"
"""Stands behind what a reply had said until then."""
_ODD_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_MESSAGE_OVERHEAD = 6
_CHARACTERS_A_TOKEN = 4


def estimate_tokens(*texts: str) -> int:
    """A cheap estimate of a message's tokens (about four characters a token and a few for its frame)."""
    return (
        _MESSAGE_OVERHEAD + sum(len(text.encode("utf-8", "replace")) for text in texts) // _CHARACTERS_A_TOKEN
    )


def _image_tokens(image: events.Image) -> int:
    """Providers count pixels, and make large pictures smaller before they do."""
    return max(85, min(1_600, image.width * image.height // 750))


@dataclass(frozen=True)
class Group:
    """Messages that stay or go together; `tokens` is their estimate, `seq` that of the event that closed it."""

    kind: GroupKind
    messages: tuple[Message, ...]
    tokens: int
    run: int
    seq: int


@dataclass(frozen=True)
class Summary:
    """The text in the place of the exchanges up to `to_seq`; `seq` is that of its event."""

    group: Group
    to_seq: int
    words_from: int
    """The operator's messages from this event on stay."""
    seq: int


@dataclass(frozen=True)
class History:
    """Closed groups in order and the exchange that is under way."""

    groups: AppendLog[Group] = field(default_factory=AppendLog)
    totals: AppendLog[int] = field(default_factory=AppendLog)
    """For each group, the estimated tokens of all groups up to it."""
    messages_at: AppendLog[int] = field(default_factory=AppendLog)
    """Places of the groups that are one message each: tasks, the operator's messages, news."""
    run: int = 0
    reply: events.ReplyFinished | None = None
    results: tuple[AnyResult, ...] = ()
    own_commands: tuple[events.OwnCommandEnded, ...] = ()
    """Those of the operator; the model reads them with his next message."""
    news: tuple[str, ...] = ()
    """Events beside the exchange that is under way; the model reads them after it."""
    cut: events.WindowCut | None = None
    """The newest cut of the window: what requests leave out."""
    summaries: tuple[Summary, ...] = ()
    """Oldest first; the newest one counts, and covers what those before it covered."""
    rewound_from: tuple[int, History] | None = None
    """The newest rewind's `seq` and the history before it, until the next run: what an undo brings back."""

    def apply(self, event: events.Event) -> History:
        """Fold one event."""
        handler = HANDLERS.get(type(event))
        return self if handler is None else handler(self, event)

    @property
    def summary(self) -> Summary | None:
        """The summary that requests hold."""
        return self.summaries[-1] if self.summaries else None

    @property
    def cut_up_to(self) -> int:
        """The newest cut took what was closed up to this event."""
        return 0 if self.cut is None else self.cut.to_seq

    @property
    def gone_up_to(self) -> int:
        """Results up to this event are in no request any more."""
        return max(self.cut_up_to, self.summaries[-1].to_seq if self.summaries else 0)

    def texts(self, run: int) -> Iterator[str]:
        """Texts of the model in this run, the newest first."""
        for position in range(len(self.groups) - 1, -1, -1):
            group = self.groups[position]
            if group.run != run:
                return
            if group.kind == "exchange" and group.messages[0]["content"]:
                yield str(group.messages[0]["content"])

    def tokens(self, start: int) -> int:
        """Estimate for the groups from place `start` on."""
        return self.totals[-1] - (self.totals[start - 1] if start else 0) if self.totals else 0

    def plus(self, group: Group, **changes: Any) -> History:
        """The history with one more group, and with `changes`."""
        if group.kind != "exchange":
            changes["messages_at"] = self.messages_at.append(len(self.groups))
        totals = self.totals.append(self.tokens(0) + group.tokens)
        return evolve(self, groups=self.groups.append(group), totals=totals, **changes)

    def open_calls(self) -> list[tuple[int, events.ToolCall]]:
        """Calls of the open reply that have no result, with their place in it."""
        if self.reply is None or len(self.results) >= len(self.reply.calls):
            return []
        answered = {result.call_id for result in self.results}
        return [(index, call) for index, call in enumerate(self.reply.calls) if call.id not in answered]

    def _spoken(
        self, kind: Literal["task", "operator"], text: str, seq: int, images: tuple[events.Image, ...] = ()
    ) -> History:
        """A message of the operator, behind what he ran himself since the one before."""
        before = (self.groups[place] for place in reversed(self.messages_at))
        since = next((group.seq for group in before if group.kind in {"task", "operator"}), 0)
        ran = (command.said for command in self.own_commands if command.seq > since)
        return self._said(kind, "\n\n".join([*ran, text]), seq, images)

    def _said(self, kind: GroupKind, text: str, seq: int, images: tuple[events.Image, ...] = ()) -> History:
        message: Message = {"role": "user", "content": text}
        tokens = estimate_tokens(text)
        if images:
            message["images"] = [image.model_dump() for image in images]
            tokens += sum(_image_tokens(image) for image in images)
        return self.plus(Group(kind, (message,), tokens, self.run, seq))

    def _closed(self, seq: int) -> History:
        """The exchange is over; what happened beside it comes after it."""
        closed = self._exchange(seq)
        return evolve(closed._said("news", "\n".join(self.news), seq), news=()) if self.news else closed

    def _exchange(self, seq: int) -> History:
        """Close the exchange: the assistant message and its results in the order of its calls."""
        reply = self.reply
        if reply is None or (not reply.text.strip() and not reply.calls):
            return evolve(self, reply=None, results=())
        messages: list[Message] = [_assistant(reply)]
        tokens = estimate_tokens(reply.text, *(call.name + call.arguments for call in reply.calls))
        if reply.carried is not None:
            tokens += estimate_tokens(reply.reasoning)
        by_id = {result.call_id: result for result in self.results}
        for call in reply.calls:
            result = by_id.get(call.id)
            if result is not None:
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result.content})
                tokens += estimate_tokens(result.content)
        return self.plus(Group("exchange", tuple(messages), tokens, self.run, seq), reply=None, results=())


def _assistant(reply: events.ReplyFinished) -> Message:
    # Some providers refuse a text of blanks alone, which models write before their calls.
    message: Message = {"role": "assistant", "content": reply.text if reply.text.strip() else None}
    if reply.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": _function(call)} for call in reply.calls
        ]
    if reply.carried is not None:
        carried = reply.carried.model_dump(mode="json", exclude_defaults=True)
        if reply.carried.reasoning:
            carried["reasoning"] = reply.reasoning
        message["carried"] = carried
    return message


def _function(call: events.ToolCall) -> Message:
    """The call as a provider takes it back: many refuse a history with odd names or broken argument JSON."""
    arguments = call.arguments
    try:
        sound = isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        sound = False
    if not sound:
        # Whatever stood here instead would be an argument that the model learns; the result says what was wrong.
        arguments = "{}"
    return {"name": _ODD_NAME.sub("_", call.name)[:64] or "unnamed", "arguments": arguments}


def _run_started(history: History, event: events.RunStarted) -> History:
    started = evolve(history, run=event.run, reply=None, results=(), news=(), rewound_from=None)
    return started._spoken("task", event.task, event.seq, event.images)


def _operator_spoke(history: History, event: events.OperatorSpoke) -> History:
    return history._spoken("operator", event.text, event.seq, event.images)


def _own_command_ended(history: History, event: events.OwnCommandEnded) -> History:
    return evolve(history, own_commands=(*history.own_commands, event))


def _escalation_answered(history: History, event: events.EscalationAnswered) -> History:
    return history._spoken("operator", event.message, event.seq) if event.message else history


def _background_ended(history: History, event: events.BackgroundEnded) -> History:
    if event.how == "stopped":
        return history
    command = event.command if len(event.command) <= 200 else f"{event.command[:200]}..."
    kept = f" What it wrote is in {event.output_file}." if event.how == "process_ended" else ""
    text = f"[The background command {event.id} (`{command}`) {in_words(event)}.{kept}]"
    # What an open reply started cannot end before it.
    return (
        history._said("news", text, event.seq)
        if history.reply is None
        else evolve(history, news=(*history.news, text))
    )


def _reply_finished(history: History, event: events.ReplyFinished) -> History:
    return evolve(history, reply=event, results=())


def _tool_ended(history: History, event: AnyResult) -> History:
    return evolve(history, results=(*history.results, event))


def _iteration_finished(history: History, event: events.IterationFinished) -> History:
    if not event.cut_reply:
        return history._closed(event.seq)
    # The model reads what it had said, and that it was cut short: "go on" has something to go on from.
    said = evolve(history, reply=events.ReplyFinished(text=event.cut_reply), results=())._closed(event.seq)
    return said._said("news", INTERRUPTED, event.seq)


def _window_cut(history: History, event: events.WindowCut) -> History:
    return evolve(history, cut=event)


def _summarised(history: History, event: events.Compacted | events.StartedAfresh) -> History:
    message: Message = {"role": "user", "content": event.remark}
    group = Group("summary", (message,), estimate_tokens(event.remark), history.run, event.to_seq)
    summary = Summary(group, event.to_seq, event.words_from, event.seq)
    return evolve(history, summaries=(*history.summaries, summary), cut=None)


def _rewound(history: History, event: events.Rewound) -> History:
    if event.scope == "files":
        if not history.groups or history.groups[-1].seq <= event.to_seq:
            return history  # a fork: they are as the model knows them
        # The model believes in its edits; that they are gone is news which no other message brings.
        names = ", ".join(event.files)
        text = f"The operator brought these files of the workspace back to an earlier state: {names}."
        return history._spoken("operator", text, event.seq) if event.files else history
    before = history.rewound_from
    if event.undoes:
        return before[1] if before is not None and before[0] == event.undoes else history
    length = bisect_right(history.groups, event.to_seq, key=lambda group: group.seq)
    return evolve(
        history,
        groups=history.groups.prefix(length),
        totals=history.totals.prefix(length),
        messages_at=history.messages_at.prefix(bisect_left(history.messages_at, length)),
        reply=None,
        results=(),
        news=(),
        own_commands=tuple(command for command in history.own_commands if command.seq <= event.to_seq),
        cut=history.cut if history.cut is not None and history.cut.seq <= event.to_seq else None,
        summaries=tuple(summary for summary in history.summaries if summary.seq <= event.to_seq),
        rewound_from=(event.seq, history),
    )


HANDLERS: dict[type[events.Event], Callable[[History, Any], History]] = {
    events.RunStarted: _run_started,
    events.OperatorSpoke: _operator_spoke,
    events.OwnCommandEnded: _own_command_ended,
    events.EscalationAnswered: _escalation_answered,
    events.BackgroundEnded: _background_ended,
    events.ReplyFinished: _reply_finished,
    events.ToolSucceeded: _tool_ended,
    events.ToolFailed: _tool_ended,
    events.ToolRefused: _tool_ended,
    events.ToolCancelled: _tool_ended,
    events.ToolEnded: _tool_ended,
    events.IterationFinished: _iteration_finished,
    events.WindowCut: _window_cut,
    events.Compacted: _summarised,
    events.StartedAfresh: _summarised,
    events.Rewound: _rewound,
}
