"""A session's effects on the world, from its journal alone: files, commands, hosts, and the permission behind
each.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tui_agent.call_names import short_input
from tui_agent.core import events
from tui_agent.core.tool_facts import UNRECORDED, Use, facts_of
from tui_agent.permissions.rules import PermissionRule
from tui_agent.store.journal import read_journal
from tui_agent.terminal_text import revealed_line

Effect = dict[str, Any]
"""`seq`, `at` (seconds since 1970), `kind`, `run`, and what the kind has; plain values for JSON.

file: path, sha256_before, sha256, tool, allowed_by · command: command, exit_code, outcome, sandbox, allowed_by ·
background: id, command, exit_code, outcome · model: server, model · network: address, outcome, allowed_by ·
call: tool, input, outcome, allowed_by · refused: tool, input, reason · hook: hook, command, outcome ·
server: server, status · taken back: text · changed: paths (the workspace after an iteration) · rewound: paths ·
approval: mode · receipt: of (its kind), standing, claim, command, exit_code, said, step, changed_since, text
None is what is not known: an imported recording names no server, sandbox or hash, and holds no mode of approval.
"""

_SHORT_HASH = 12


def effects_of(journal: Iterable[events.Event]) -> list[Effect]:
    """Every effect, in the order of their happening. Calls to a model are one for each server and model."""
    return list(_Audit().read(journal))


def rule_uses(folder: Path, rules: Iterable[PermissionRule]) -> Counter[str]:
    """Count how often each rule let a call run or refused one, by its decision and text."""
    recorded = read_journal(folder).events
    steps = (event.event if isinstance(event, events.LaneEvent) else event for event in recorded)
    said = [
        step.allowed_by if isinstance(step, events.ToolStarted) else step.reason
        for step in steps
        if isinstance(step, events.ToolStarted | events.ToolRefused)
    ]
    names = {f"{rule.decision} {rule.text}" for rule in rules}
    return Counter({name: sum(f"{name} (" in text for text in said) for name in names})


_OUTCOMES = {
    "tool_succeeded": "ok",
    "tool_failed": "failed",
    "tool_cancelled": "cancelled",
    "tool_ended": "not known",
}


class _Audit:
    def __init__(self) -> None:
        self._run = 0
        self._imported = False
        self._sandbox: str | None = None
        self._allowed: dict[tuple[str, str], str] = {}
        """The permission that let a call run, by lane and id."""
        self._does: dict[tuple[str, str], str] = {}
        """The effect of a call's tool, by lane and id."""
        self._lane = ""
        self._servers: set[tuple[str, str]] = set()

    def read(self, journal: Iterable[events.Event]) -> Iterator[Effect]:
        for event in journal:
            self._begin(event)
            for kind, facts in self._effects(event):
                yield {"seq": event.seq, "at": event.at, "run": self._run, "kind": kind, **facts}

    def _begin(self, event: events.Event) -> None:
        match event:
            case events.SessionStarted():
                self._imported = bool(event.source)
            case events.SessionResumed() if event.workspace:
                self._imported = False  # what follows was done here
            case events.RunStarted():
                self._run, self._sandbox = event.run, None if self._imported else event.sandbox
                self._servers.clear()

    def _effects(self, event: events.Event) -> Iterator[tuple[str, Effect]]:
        match event:
            case events.RunStarted() if not self._imported:
                yield "approval", {"mode": str(event.approve)}
            case events.SettingChanged(setting="approve"):
                yield "approval", {"mode": event.value}
            case events.ModelCallStarted() if (event.server, event.model) not in self._servers:
                self._servers.add((event.server, event.model))
                yield "model", {"server": None if self._imported else event.server, "model": event.model}
            case events.ReplyFinished() | events.ToolStarted():
                self._remember(event)
            case events.ToolSucceeded() | events.ToolFailed() | events.ToolCancelled() | events.ToolEnded():
                yield from self._call(event)
            case events.ToolRefused():
                yield "refused", {"tool": event.tool, "input": event.input, "reason": event.reason}
            case events.BackgroundEnded():
                facts = {"id": event.id, "command": event.command, "exit_code": event.code}
                yield "background", {**facts, "outcome": event.how}
            case events.CheckpointSaved() if event.files:
                yield "changed", {"paths": list(event.files)}
            case events.Rewound() if event.files:
                yield "rewound", {"paths": list(event.files)}
            case events.HookReported() | events.Notice() | events.ServerChanged() | events.RunFinished():
                yield from self._around(event)
            case events.LaneEvent() if not isinstance(event.event, events.RunStarted):
                self._lane = event.lane
                yield from self._effects(event.event)
                self._lane = ""

    def _remember(self, event: events.ReplyFinished | events.ToolStarted) -> None:
        if isinstance(event, events.ToolStarted):
            self._allowed[self._lane, event.call_id] = event.allowed_by
        else:
            self._does.update({(self._lane, call.id): call.effect for call in event.calls})

    def _around(
        self, event: events.HookReported | events.Notice | events.ServerChanged | events.RunFinished
    ) -> Iterator[tuple[str, Effect]]:
        match event:
            case events.HookReported():
                yield "hook", {"hook": event.hook, "command": event.command, "outcome": event.status}
            case events.Notice(origin="sandbox"):
                yield "taken back", {"text": event.text}
            case events.ServerChanged():
                yield "server", {"server": event.server, "status": event.status}
            case events.RunFinished():
                for one in event.receipts:
                    facts = one.model_dump(mode="json", exclude={"kind"})
                    text = f"{one.standing}: {one.in_words}"
                    yield "receipt", {**facts, "of": one.kind, "standing": one.standing, "text": text}

    def _call(
        self, event: events.ToolSucceeded | events.ToolFailed | events.ToolCancelled | events.ToolEnded
    ) -> Iterator[tuple[str, Effect]]:
        allowed = self._allowed.pop((self._lane, event.call_id), None)
        effect = self._does.pop((self._lane, event.call_id), "")
        facts = facts_of(event)
        if allowed is None or (effect or facts.effect) in UNRECORDED:
            return  # it never ran, or did nothing
        outcome = _OUTCOMES[event.type]
        done: Effect = {"outcome": outcome, "allowed_by": allowed}
        if isinstance(event, events.ToolSucceeded) and event.changed:
            for path in event.changed:
                hashes = {"sha256_before": event.before.get(path), "sha256": event.files.get(path)}
                yield "file", {"path": path, **hashes, "tool": event.tool, "allowed_by": allowed}
        elif (name := facts.argument(Use.RUNS) or "command") in event.input:
            code = getattr(event, "exit_code", None)
            command = {"command": event.input[name], "exit_code": code, "sandbox": self._sandbox}
            yield "command", command | done
        elif (name := facts.argument(Use.SENDS) or "url") in event.input:
            yield "network", {"address": event.input[name]} | done
        else:
            yield "call", {"tool": event.tool, "input": event.input} | done


def in_words(effects: Iterable[Effect]) -> list[str]:
    """A line for each effect, and what let it happen below it."""
    lines: list[str] = []
    run = None
    for effect in effects:
        if effect["run"] != run:
            run = effect["run"]
            lines += [*([""] if lines else []), f"run {run}" if run else "before the first run"]
        clock = time.strftime("%H:%M:%S", time.gmtime(effect["at"]))
        lines.append(
            f"  {clock}  {effect['seq']:>5}  {effect['kind']:<10}  {revealed_line(_said(effect), 160)}"
        )
        if effect.get("allowed_by"):
            lines.append(f"  {'':<8}  {'':<5}  {'':<10}  let by {revealed_line(effect['allowed_by'], 160)}")
    return lines or ["It did nothing."]


def _said(effect: Effect) -> str:
    match effect["kind"]:
        case "file":
            before, after = (str(effect[key] or "none")[:_SHORT_HASH] for key in ("sha256_before", "sha256"))
            hashes = "" if before == after == "none" else f"sha256 {before} -> {after} "
            # If a recording names no file, the tool's name stands in its place.
            path = "a file" if effect["path"] == effect["tool"] else effect["path"]
            return f"{path} {hashes}({effect['tool']})"
        case "command":
            sandbox = {"off": "no sandbox", "": "sandbox not known"}.get(effect["sandbox"], effect["sandbox"])
            return f"{effect['command']} -> {_code(effect)}" + (f" ({sandbox})" if sandbox else "")
        case "background":
            return f"{effect['id']}: {effect['command']} -> {_code(effect)}"
        case "model":
            place = (
                "" if effect["server"] is None else f" at {effect['server'] or 'the address of its provider'}"
            )
            return f"{effect['model'] or 'not named'}{place}"
        case "network":
            return f"{effect['address']}  ({effect['outcome']})"
        case "refused":
            return f"{_call(effect)}: {effect['reason']}"
        case "call":
            return f"{_call(effect)}  ({effect['outcome']})"
        case "changed" | "rewound":
            return ", ".join(effect["paths"])
        case "hook":
            return f"{effect['hook']}: {effect['command']}  ({effect['outcome']})"
        case "taken back" | "receipt":
            return str(effect["text"])
        case "server":
            return f"{effect['server']}: {effect['status']}"
        case _:
            return f"--approve {effect['mode']}"


def _call(effect: Effect) -> str:
    return f"{effect['tool']} {short_input(effect['tool'], effect['input'])}".rstrip()


def _code(effect: Effect) -> str:
    return str(effect["outcome"]) if effect["exit_code"] is None else f"exit code {effect['exit_code']}"
