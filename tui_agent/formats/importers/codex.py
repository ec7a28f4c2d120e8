"""Codex CLI rollouts: `{timestamp, type, payload}` a line, in the items of OpenAI's Responses.

Texts are there twice, as items and as events: items are taken, events only if the items lack them. No result
has a flag of failure: the rules below read Codex's own framing of outputs (codex-rs, `core/src/tools/mod.rs`:
an exit code in JSON metadata or in a header line), never the output itself. A command whose frame says
nothing is not known.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.codex_scripts import (
    ITEMS,
    Script,
    item_call,
    item_of_event,
    item_result,
    script_result,
    status_of,
)
from tui_agent.formats.importers.codex_threads import started_from, thread_of
from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.reading import Record, Recording
from tui_agent.formats.importers.results import changed_files, exit_message
from tui_agent.formats.importers.step_reader import Format, used
from tui_agent.formats.importers.transcript import Call, Faulted, ImportReport, Result, Said, Transcript, Turn
from tui_agent.formats.importers.values import (
    code_at,
    content_text,
    joined,
    number_at,
    object_at,
    parsed,
    text_at,
    time_at,
    value_at,
)

_ADDED = "text added by Codex"
_OPERATORS = {"userShell", "user_shell"}
"""Whose commands are those that the operator typed."""
_ENVELOPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
_CALLS = {"function_call", "local_shell_call", "custom_tool_call", "web_search_call", "tool_search_call"}
_BESIDE = {
    "state",
    "world_state",
    "token_usage_record",
    "inter_agent_communication_metadata",
    "line without a type",
    "ghost_snapshot",
    "compaction",
}
"""Lines without a part of the conversation."""
_OUTPUTS = {f"{kind}_output" for kind in _CALLS} | {"tool_search_output"}
_ITEMS = _CALLS | _OUTPUTS | {"message", "reasoning"}
_INJECTED = (
    "<environment_context>", "<user_instructions>", "<permissions", "<turn_aborted>", "<skill",
    "<collaboration_mode>", "<model_switch>", "# AGENTS.md instructions",
)  # fmt: skip


def _entry(record: Record) -> tuple[str, Record, float | None]:
    """Kind, payload and time of a line: `item` for messages, calls and their outputs."""
    at = time_at(record, "timestamp")
    kind = text_at(record, "type")
    payload = record.get("payload")
    if isinstance(payload, dict):
        return ("item" if kind == "response_item" else kind or "line without a type"), payload, at
    if kind in _ITEMS:
        return "item", record, at
    if "instructions" in record and "id" in record:
        return "session_meta", record, at
    return kind or text_at(record, "record_type") or "line without a type", {}, at


class Codex(Format):
    """Items of one rollout. A reply ends if an output, a user's message or a token count follows.

    A text stands there as an item and as an event, in either order: it is taken once. If some items of the
    user are confirmed by events, those that are not were put in by Codex.
    """

    name = "Codex CLI"

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self.reply: Turn | None = None
        self.closed = True
        self.typed: Counter[str] = Counter()
        """Messages of the user that events told, and no item yet."""
        self.waiting_texts: Counter[str] = Counter()
        """Messages of the user that items told, and no event yet."""
        self.confirmed = False
        """There are events with messages of the user."""
        self.answered: Counter[str] = Counter()
        """Answers that events told, and no item yet."""
        self.items = False
        """There are items with answers."""
        self.scripts: dict[str, Script] = {}
        """Scripts of code mode, by their calls; those that wait for one, by theirs too."""
        self.cells: dict[str, str] = {}
        """Calls of scripts that go on in the background."""
        self.ended: dict[str, Result] = {}
        """How calls ended by their items, which come before their outputs."""
        self.spawned: dict[str, str] = {}
        """Outputs of calls that started a thread, which name it, by the calls."""
        self.fault = ""
        """The words of the failed call of the model in this turn."""

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """Envelopes with a payload, or the bare items of the first versions behind a head with `instructions`."""
        head = recording.records[:50]
        if any(text_at(one, "type") in _ENVELOPES and isinstance(one.get("payload"), dict) for one in head):
            return True
        bare = sum(1 for one in head if text_at(one, "type") in _ITEMS and "sessionId" not in one)
        return bool(bare) and (
            "instructions" in head[0] or any(one.get("record_type") == "state" for one in head)
        )

    @classmethod
    def beside(cls, path: Path) -> Iterable[Path]:
        return started_from(path)

    def read_beside(self, path: Path, records: Sequence[Any], lines: Sequence[int]) -> None:
        """Read records of a thread that this one started."""
        key = thread_of(path)
        agent = self.agent(key, f"subagent: {key}")
        agent.read(records, lines)

    @property
    def lanes(self) -> list[Transcript]:
        spawned = {**self.spawned}
        for agent in self.agents.values():
            spawned |= agent.spawned
        for key, agent in self.agents.items():
            agent.transcript.lane = next((call for call, text in spawned.items() if key in text), key)
        return super().lanes

    def take(self, record: Record) -> None:
        kind, payload, at = _entry(record)
        match kind:
            case "session_meta":
                self._meta(payload)
            case "turn_context":
                self.about(payload, model="model")
                self.transcript.workspace = self.transcript.workspace or text_at(payload, "cwd")
            case "compacted":
                self.compacted(at)
            case "item":
                self._item(payload, at)
            case "event_msg":
                self._event(payload, at)
            case _ if kind in _BESIDE:
                self.leave_out(kind)
            case _:
                self.not_known(kind, record)

    def _meta(self, payload: Record) -> None:
        transcript = self.transcript
        transcript.id = transcript.id or text_at(payload, "id")
        self.about(payload, workspace="cwd")
        if self.transcript.subagent and (name := text_at(payload, "agent_nickname")):
            transcript.title = f"subagent: {name}"
        prompt = text_at(payload, "instructions") or text_at(payload, "base_instructions", "text")
        transcript.system_prompt = transcript.system_prompt or prompt

    def _open(self, at: float | None) -> Turn:
        if self.closed or self.reply is None:
            self.reply = self.turn(at, model=self.transcript.model)
            self.closed = False
        return self.reply

    # --- items --------------------------------------------------------------------------------------------

    def _item(self, item: Record, at: float | None) -> None:
        kind = text_at(item, "type")
        if kind == "message":
            self._message(item, at)
        elif kind == "reasoning":
            text = joined(content_text(item.get("summary")), content_text(item.get("content")))
            if text:
                turn = self._open(at)
                turn.reasoning = joined(turn.reasoning, text)
        elif kind in _CALLS:
            self._call(kind, item, at)
        elif kind in _OUTPUTS:
            self.closed = True
            self._output(text_at(item, "call_id"), item.get("output", item.get("tools")), at)
        else:
            self.not_known(f"response_item {kind or 'without a type'}", item)

    def _message(self, item: Record, at: float | None) -> None:
        text = content_text(item.get("content"))
        match item.get("role"):
            case "assistant":
                self.items = True
                if self.answered[text]:
                    self.answered[text] -= 1
                    self.closed = False
                else:
                    turn = self._open(at)
                    turn.text = joined(turn.text, text)
            case "user":
                self._user_item(text, at)
            case _:
                self.leave_out(f"message of role {text_at(item, 'role') or '?'}")

    def said(self, text: str, at: float | None) -> None:
        """A message of the user, which ends a reply."""
        self.closed = True
        super().said(text, at)

    def _user_item(self, text: str, at: float | None) -> None:
        key = text.strip()
        if self.typed[key]:
            self.typed[key] -= 1
            return
        self.waiting_texts[key] += 1
        if self.confirmed or text.lstrip().startswith(_INJECTED):
            self.leave_out(_ADDED)
        else:
            self.said(text, at)

    def _user_event(self, text: str, at: float | None) -> None:
        key = text.strip()
        known = bool(self.waiting_texts[key])
        if not self.confirmed:
            self.confirmed = True
            self._drop_unconfirmed(key)
            known = known and not text.lstrip().startswith(_INJECTED)
        elif known:
            self.report.skip(_ADDED, -1)
            self.report.understood += 1
            self.said(text, at)
        if known:
            self.waiting_texts[key] -= 1
        else:
            self.typed[key] += 1
            self.said(text, at)

    def _drop_unconfirmed(self, key: str) -> None:
        """Items before the first event that no event confirms were no messages of the user."""
        steps = self.transcript.steps
        kept = [step for step in steps if not isinstance(step, Said) or step.text.strip() == key]
        for _ in range(len(steps) - len(kept)):
            self.leave_out(_ADDED)
        self.forget(0)
        steps.extend(kept)

    def _call(self, kind: str, item: Record, at: float | None) -> None:
        key = text_at(item, "call_id") or text_at(item, "id") or f"call-{len(self.calls)}"
        call = self.call(self._open(at), key, *_asked(kind, item))
        if kind == "custom_tool_call" and call.name == "exec":
            self.scripts[key] = Script(text_at(item, "input"))
        if kind == "web_search_call":
            self.closed = True  # it ran on the provider's side: what follows reads its result
            failed = text_at(item, "status") == "failed"
            result = Result("failed", "", at, "the search failed") if failed else Result("ok", "", at)
            self.end(key, lambda _: result)

    def _output(self, key: str, output: Any, at: float | None) -> None:
        text = content_text(output)
        status, cell = status_of(text)
        call = self.calls[key][1] if key in self.calls else None
        if call is not None and call.name.endswith("spawn_agent"):
            self.spawned.setdefault(key, text)
        if not status or call is None:
            self.end(key, self._ended, output, at)
            return
        if cell:
            self.cells.setdefault(cell, key)
        of = self.cells.get(text_at(call.input, "cell_id"), key)
        script = self.scripts.get(of)
        if script is not None:
            script.over = status != "running"
        if script is None or not script.ran or of != key:
            if status == "failed" and script is not None and "failed" in script.ran.values():
                self.end(key, lambda _: Result("ok", text, at))  # what failed in it is told already
            else:
                self.end(key, script_result, "" if script is None else script.text, text, at)
        elif status == "failed" and "failed" not in script.ran.values():
            turn, _ = self.calls[key]
            own = self.call(turn, f"{key}-script", "exec", {"input": script.text})
            self.end(own.id, script_result, script.text, text, at)

    def _ended(self, call: Call, output: Any, at: float | None) -> Result:
        result, told = _result(call, output, at), self.ended.get(call.id)
        if call.id in self.scripts and result.status == "ok":  # without a header of a script's
            result = Result("unknown", result.content, at)
        return told if result.status == "unknown" and told is not None else result

    def _ran(self, item: Record, at: float | None) -> None:
        """Something was run: for a call, or for a script, of which the first takes the place of the script itself."""
        key, result = text_at(item, "id"), item_result(item, at)
        if key in self.calls and key not in self.scripts:
            self.ended[key] = result
            turn, call = self.calls[key]
            if call.id in turn.results and turn.results[call.id].status == "unknown":
                self.ended_as(turn, call, result)
            return
        named = [of for of, script in self.scripts.items() if script.names(item)]
        running = [of for of, script in self.scripts.items() if not script.over]
        both = [of for of in named if of in running]
        of = next(iter((both or running)[:1] or named[-1:]), "")
        again = any(key in script.ran for script in self.scripts.values())
        if not of or again:
            if not again and text_at(item, "source") not in _OPERATORS:
                self.lose_result()
            self.leave_out(f"event_msg item_completed {text_at(item, 'type')}")
            return
        turn, script_call = self.calls[of]
        script = self.scripts[of]
        call = item_call(key if script.ran else of, item)
        place = turn.calls.index(script_call)
        if script.ran:
            turn.calls.insert(place + len(script.ran), call)
        else:
            turn.calls[place] = call
            self.calls[of] = turn, call
        self.calls[call.id] = turn, call
        script.ran[key] = result.status
        self.ended_as(turn, call, result)

    # --- events -------------------------------------------------------------------------------------------

    def _event(self, payload: Record, at: float | None) -> None:
        match payload.get("type"):
            case "token_count":
                self._usage(payload)
            case "item_completed":
                self._completed(object_at(payload, "item"), at)
            case "exec_command_end" | "mcp_tool_call_end" | "patch_apply_end":
                self._ran(item_of_event(payload), at)
            case "user_message":
                self._user_event(text_at(payload, "message"), at)
            case "agent_message":
                self._agent_event(text_at(payload, "message"), at)
            case "agent_reasoning" | "agent_reasoning_raw_content":
                pass  # the same text stands in an item
            case "turn_aborted":
                self.closed = True
                self.interrupted(at)
            case "error" | "stream_error":
                self._faulted(text_at(payload, "message"), at)
            case "task_started":
                self.fault = ""
                self.leave_out("event_msg task_started")
            case "task_complete" if failed := text_at(payload, "error", "message"):
                self._faulted(failed, at)
            case other:
                self.leave_out(f"event_msg {other if isinstance(other, str) else 'without a type'}")

    def _faulted(self, words: str, at: float | None) -> None:
        """A failed call of the model. A turn that ends with it may tell it again."""
        self.closed = True
        if words != self.fault:
            self.add(Faulted(classified(words), at))
        self.fault = words

    def _completed(self, item: Record, at: float | None) -> None:
        """Events of newer versions about texts and about commands that were run."""
        text, kind = content_text(item.get("content")), text_at(item, "type")
        if kind == "UserMessage":
            self._user_event(text, at)
        elif kind == "AgentMessage":
            self._agent_event(text, at)
        elif kind in ITEMS:
            self._ran(item, at)
        elif kind == "SubAgentActivity":
            self.spawned[text_at(item, "id")] = text_at(item, "agent_thread_id")
        else:
            self.leave_out(f"event_msg item_completed {kind}".rstrip())

    def _agent_event(self, text: str, at: float | None) -> None:
        if not self.items:
            self._open(at).text = text
            self.answered[text] += 1
            self.closed = True

    def _usage(self, payload: Record) -> None:
        """One count a model call; the first lines of a rollout have none."""
        usage = object_at(payload, "info", "last_token_usage")
        if usage and self.reply is not None:
            used(self.reply, usage, "input_tokens", "output_tokens")
            self.closed = True


def _asked(kind: str, item: Record) -> tuple[str, Any]:
    """A call's tool and its arguments."""
    match kind:
        case "function_call":
            return text_at(item, "name"), text_at(item, "arguments")
        case "custom_tool_call":
            return text_at(item, "name"), {"input": text_at(item, "input")}
        case "local_shell_call":
            return "local_shell", object_at(item, "action")
    return kind.removesuffix("_call"), object_at(item, "action") or object_at(item, "arguments")


_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)\s*$", re.MULTILINE)
_HEADER = re.compile(r"^Output:\s*$", re.MULTILINE)
_RUNS = re.compile(r"^Process running with session ID", re.MULTILINE)
_COMMANDS = frozenset(
    {
        *("exec_command", "write_stdin", "shell", "shell_command", "local_shell", "container.exec"),
        *("unified_exec", "Bash"),
    }
)
"""Tools whose results have a frame with how the command ended."""
_WALL = re.compile(r"^Wall time: (\d+(?:\.\d*)?|\.\d+) seconds", re.MULTILINE)
_INVALID = ("failed to parse function arguments", "invalid arguments", "missing field")
_UNKNOWN = ("unsupported call:", "unsupported custom tool call:", "unknown tool")
_DENIED = (
    "exec command rejected by user", "rejected by user", "patch rejected by user",
    "user cancelled mcp tool call", "command blocked by pretooluse hook",
)  # fmt: skip
_ABORTED = ("aborted by user", "aborted", "command interrupted")
_FAILED = (
    "apply_patch verification failed", "execution error:", "failed in sandbox", "sandbox error",
    "exec_command failed", "write_stdin failed", "tool call error:", "failed to ", "collab spawn failed",
)  # fmt: skip


def _result(call: Call, output: Any, at: float | None) -> Result:
    success = value_at(output, "success")
    if isinstance(output, dict) and "content" in output:
        output = output["content"]
    return result_of_output(call, content_text(output), at, failed=success is False)


def result_of_output(
    call: Call, text: str, at: float | None = None, *, code: int | None = None, failed: bool = False
) -> Result:
    """The end of a call, by its output. `code`: its exit code if it is known from elsewhere; `failed`: Codex
    marks it so.
    """
    text, said, seconds, framed = _framed(text)
    code = said if code is None else code
    lowered = text[:400].lower().strip()
    if lowered.startswith(_DENIED):
        return Result("denied", text, at, text.strip()[:500])
    if lowered.startswith(_ABORTED):
        return Result("cancelled", text, at, "interrupted by the operator")
    if code == 0 or (
        code is None and not failed and not lowered.startswith((*_INVALID, *_UNKNOWN, *_FAILED))
    ):
        if code is None and not framed and (call.name in _COMMANDS or seconds is not None):
            return Result("unknown", text, at, duration=seconds)
        return Result("ok", text, at, changed=changed_files(call.name, call.input), duration=seconds)
    kind = FailureKind.TOOL_EXECUTION
    if call.input is None or lowered.startswith(_INVALID):
        kind = FailureKind.INVALID_TOOL_CALL
    elif lowered.startswith(_UNKNOWN):
        kind = FailureKind.UNKNOWN_TOOL
    message = text.strip() if code is None else exit_message(code, text)
    timed_out = code == 124 or "command timed out after" in lowered
    return Result("failed", text, at, message, kind, duration=seconds, unknown_effect=timed_out)


def _framed(text: str) -> tuple[str, int | None, float | None, bool]:
    """The output itself, its exit code and its seconds, out of either of Codex's two frames, and whether the frame is
    one that tells how it stands.
    """
    frame = parsed(text) if text.startswith("{") else None
    code = code_at(frame, "metadata", "exit_code")
    if code is not None:
        seconds = number_at(frame, "metadata", "duration_seconds")
        known = seconds if seconds and seconds > 0 else None
        return content_text(value_at(frame, "output")), code, known, True
    mark = _HEADER.search(text, 0, 2_000)
    if mark is None:
        match = _EXIT.match(text[:200])
        return text, int(match[1][:10]) if match else None, None, bool(match)
    head, body = text[: mark.start()], text[mark.end() :].removeprefix("\n")
    match, wall = _EXIT.search(head), _WALL.search(head)
    if match is None:
        runs = bool(_RUNS.search(head))
        return (body, None, float(wall[1]), runs) if wall else (text, None, None, runs)
    return body, int(match[1][:10]), float(wall[1]) if wall else None, True
