"""How the hooks of another agent look, as data: names of events and fields, marks of a failure, forms of an answer.

A file beside this one fills it in for each agent. What is done with an event is `advisor`'s, whoever sent it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum, auto
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from tui_agent import untrusted_files
from tui_agent.agents import json_text
from tui_agent.agents.headless import Headless
from tui_agent.formats.importers.transcript import Call, Result
from tui_agent.formats.importers.values import content_text, objects_at, plain, text_at, value_at
from tui_agent.formats.importers.values import json_text as as_json

Record = Mapping[str, Any]
Scope = Literal["user", "project"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
Form = Callable[[str, str], dict[str, Any]]
"""Makes an answer of the event's name and a text."""


class Moment(StrEnum):
    """The subject of an event."""

    PROMPT = auto()
    """The person said something."""
    BEFORE_CALL = auto()
    """A call is about to run, and may still be refused."""
    CALL_FAILED = auto()
    """A call of a reply has failed; that the reply's calls have ended is still to come."""
    CALLS_ENDED = auto()
    """Calls have ended, well or badly: one, or all of a reply."""
    ANSWERED = auto()
    """The model is done, unless it is told to go on."""
    MODEL_FAILED = auto()
    NOTICE = auto()
    ENDED = auto()
    """The conversation is over."""


@dataclass(frozen=True)
class Heard:
    """One event. `lane` names the sub-agent it is about, "" for the main line."""

    event: str
    moment: Moment
    session: str
    lane: str = ""
    workspace: str = ""
    calls: tuple[tuple[Call, Result | None], ...] = ()
    """The calls with their results; before a call runs it has none."""
    text: str = ""
    """The words of the person, the model, the fault or the notice."""
    goes_on: bool = False
    """The model goes on already because a hook told it to, or it was stopped."""
    attended: bool = True
    """Somebody may be there to ask."""


@dataclass(frozen=True)
class Fields:
    """Names of an event's fields; "" if the agent has none."""

    event: str = "hook_event_name"
    session: str = "session_id"
    lane: str = "agent_id"
    workspace: str = "cwd"
    tool: str = "tool_name"
    input: str = "tool_input"
    call: str = "tool_use_id"
    names: Mapping[str, str] = field(default_factory=dict)
    """Names of tools that are not the same in all events, and the ones by which they go here."""
    batch: str = ""
    """The list of a reply's calls, if one event has them all."""
    texts: Mapping[Moment, str] = field(default_factory=dict)
    goes_on: str = "stop_hook_active"
    transcript: str = "transcript_path"
    """The path of the session's file, which holds the last words of the model if an event has none."""


@dataclass(frozen=True)
class Answers:
    """Forms of what the agent takes; None: it takes no such answer."""

    refuse: Form
    """A call does not run, and the model reads why."""
    note: Form | None = None
    """Text for the model, with the next thing that it reads."""
    ask: Form | None = None
    """The person is asked whether a call runs."""
    go_on: Form | None = None
    """The model has to go on, and reads why."""
    frames_notes: bool = False
    """It marks by itself what comes from a hook."""


class Registry(Protocol):
    """How hooks are written into a settings file. Both raise `ValueError` for a text that cannot be changed."""

    def add(self, text: str, events: Iterable[str], command: str) -> str:
        """The text with a hook at each of the events."""

    def remove(self, text: str, events: Iterable[str], mark: str) -> str:
        """The text without the hooks whose command holds `mark`."""


@dataclass(frozen=True)
class JsonRegistry:
    """A list of hooks for each event, under `hooks`."""

    hook: Callable[[str], dict[str, Any]]
    """The text that is written for a command."""
    version: int | None = None
    """The version of the file's form, if it says one."""

    def add(self, text: str, events: Iterable[str], command: str) -> str:
        """The text with a hook at each of the events. Raises `JsonTextError`."""
        if self.version is not None:
            text = json_text.put(text, "version", self.version)
        for event in events:
            text = json_text.add(text, ("hooks", event), self.hook(command))
        return text

    def remove(self, text: str, events: Iterable[str], mark: str) -> str:
        """The text without the hooks whose command holds `mark`. Raises `JsonTextError`."""
        for event in events:
            text = json_text.remove(text, ("hooks", event), lambda item: mark in item)
        return text


def in_group(timeout: int) -> Callable[[str], dict[str, Any]]:
    """A hook as Claude Code and those after it write it: in a group for all tools. `timeout`: in the agent's unit."""

    def form(command: str) -> dict[str, Any]:
        return {"hooks": [{"type": "command", "command": command, "timeout": timeout}]}

    return form


def context(event: str, text: str) -> dict[str, Any]:
    """Text for the model, as Claude Code and those after it take it."""
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def permission(decision: str) -> Form:
    """Permission answers for a call, in the form of Claude Code and those after it."""

    def form(event: str, reason: str) -> dict[str, Any]:
        given = {"hookEventName": event, "permissionDecision": decision, "permissionDecisionReason": reason}
        return {"hookSpecificOutput": given}

    return form


def decision(word: str) -> Form:
    """Answers of one word and the reason, in the form of Claude Code's end of a turn."""
    return lambda _, reason: {"decision": word, "reason": reason}


@dataclass(frozen=True)
class TomlRegistry:
    """A table `[[hooks]]` for each hook."""

    event: str = "type"
    """The key that names the event."""
    named: bool = True
    """A hook has a name."""

    def add(self, text: str, events: Iterable[str], command: str) -> str:
        """The text with a table for each of the events at its end. Raises `ValueError`."""
        for event in events:
            gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
            name = {"name": f"agent-tui-{event}"} if self.named else {}
            rows = {**name, self.event: event, "command": command}
            table = "".join(f"{key} = {json.dumps(value)}\n" for key, value in rows.items())
            text += f"{gap}[[hooks]]\n{table}timeout = 10\n"
        tomllib.loads(text)  # a list of hooks in another form would make two of one key
        return text

    def remove(self, text: str, events: Iterable[str], mark: str) -> str:
        """The text without the tables that hold `mark`."""
        return _HOOK_TABLE.sub(lambda table: "" if mark in table[0] else table[0], text)


_HOOK_TABLE = re.compile(r"^\n?\[\[hooks\]\]\n(?:(?!\n?\[).*\n?)*", re.MULTILINE)


@dataclass(frozen=True)
class SettingsFile:
    """The file in which the agent's hooks are registered."""

    home: str
    """The agent's folder in the home folder."""
    file: str
    """In that folder."""
    project: str
    """In the workspace: the file of settings for one person on one machine; "" if no hooks are read there."""
    home_variable: str
    """The variable that names another folder than `home`; "" if there is none."""
    registry: Registry
    then: str = ""
    """The step that a person has to take in the agent before the hooks run."""


@dataclass(frozen=True)
class Dialect:
    """One agent. `name` is that of `--agent`, `title` the one people know, `program` its command."""

    name: str
    title: str
    program: str
    settings: SettingsFile
    events: Mapping[str, Moment]
    fields: Fields
    answers: Answers
    result: Callable[[Call, Record], Result]
    """How a call has ended, from the record that tells its end."""
    unattended: Callable[[Record], bool] = lambda _: False
    """True if nobody is asked for anything."""
    stopped: Callable[[Record], bool] = lambda _: False
    """True if the model did not end by itself."""
    sends: Callable[[Record], bool] = lambda _: True
    """True if a record is this agent's: others run its hooks too."""
    said: Callable[[Record], str] | None = None
    """The model's words in a record of the session's file."""
    headless: Headless | None = None
    """How it runs a task without a person; None: it is not supervised."""

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Where its hooks can be."""
        return SCOPES if self.settings.project else SCOPES[:1]

    def read(self, record: Record) -> Heard | None:
        """The content of an event; None for one that is of no use. Raises `ValueError` if it names no
        session.
        """
        fields = self.fields
        event = text_at(record, fields.event)
        moment = self.events.get(event)
        if moment is None or not self.sends(record):
            return None
        session = text_at(record, fields.session)
        if not session:
            raise ValueError(f"{event} of {self.title} names no session")
        calls: tuple[tuple[Call, Result | None], ...] = ()
        if moment is Moment.BEFORE_CALL:
            calls = ((self._call(record), None),)
        elif moment in {Moment.CALL_FAILED, Moment.CALLS_ENDED}:
            whole = fields.batch and moment is Moment.CALLS_ENDED
            ended = objects_at(record, fields.batch) if whole else [record]
            calls = tuple((call, self.result(call, one)) for one in ended if (call := self._call(one)).name)
        text = content_text(value_at(record, fields.texts.get(moment, "")))
        if moment is Moment.ANSWERED and not text and self.said is not None:
            spoken = map(self.said, latest_records(text_at(record, fields.transcript)))
            text = next(filter(None, spoken), "")
        workspace = value_at(record, fields.workspace)
        return Heard(
            event,
            moment,
            session,
            lane=text_at(record, fields.lane),
            workspace=content_text(workspace[:1] if isinstance(workspace, list) else workspace),
            calls=calls,
            text=text,
            goes_on=bool(value_at(record, fields.goes_on)) or self.stopped(record),
            attended=not self.unattended(record),
        )

    def _call(self, record: Record) -> Call:
        given = value_at(record, self.fields.input)
        values = plain(given) if isinstance(given, dict) else None
        name = text_at(record, self.fields.tool)
        name = self.fields.names.get(name, name)
        return Call(text_at(record, self.fields.call), name, as_json(given), values)


_TAIL = 1 << 18
"""Bytes of a session's file, from its end, in which what has just happened stands."""


def latest_records(path: str, holding: str = "") -> Iterator[Record]:
    """The records at the end of a session's file, the newest first; with `holding`, those whose line has this text."""
    with suppress(OSError, ValueError):
        for line in reversed(untrusted_files.tail(Path(path), _TAIL).split(b"\n")):
            if holding.encode() in line:
                with suppress(ValueError, RecursionError):
                    record = json.loads(line)
                    if isinstance(record, dict):
                        yield record
