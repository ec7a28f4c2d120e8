"""A call of another agent, as it grows by updates: its name, arguments and facts in our words, and how it ended.

The protocol knows a title and a kind. The tool's own name, its arguments and an exit code stand in places that differ
from one agent to another: which ones they are is said here.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
from pathlib import Path
from typing import Any

from tui_agent.acp.content import KINDS
from tui_agent.core import events
from tui_agent.core.names import UPDATE_PLAN
from tui_agent.core.tool_facts import Effect, Looks, ToolFacts, Use, named
from tui_agent.formats.importers.results import exit_message, judged
from tui_agent.formats.importers.transcript import Call, Result
from tui_agent.formats.importers.values import (
    clean,
    code_at,
    content_text,
    json_text,
    parse_arguments,
    value_at,
)
from tui_agent.terminal_text import one_line

EFFECTS: dict[str, Effect | None] = {
    **{kind: effect for effect, kind in KINDS.items() if kind != "other"},
    "search": Effect.READ,
    "delete": Effect.WRITE,
    "move": Effect.WRITE,
}
"""Effects by the kind of a call; none for any other kind."""
ENDED = frozenset({"completed", "failed"})
_NAMES = (("name",), ("_meta", "claudeCode", "toolName"), ("_meta", "tool_name"), ("_meta", "toolName"))
_CODES = (
    ("exit_code",),
    ("exitCode",),
    ("returncode",),
    ("metadata", "exit"),
    ("metadata", "exit_code"),
    ("metadata", "exitCode"),
)
"""Places of an exit code in what a call gave back."""
_EXIT = re.compile(
    r"^(?:Exit Code:|Process exited with code|Command failed with exit code:) (-?\d{1,10})\.?\s*$",
    re.MULTILINE,
)
"""The line of an exit code behind a command's output (Qwen Code, Gemini CLI, Codex, Kimi Code)."""
_SHELL_ENDED = re.compile(r"^<shellId: [^\n>]* exit code (-?\d{1,10})>", re.MULTILINE)
"""The same of Copilot CLI, which may put words of hooks behind it."""
_FRAME = 400
"""Characters at the end of an output in which that line stands."""
_COMMANDS = ("command", "cmd", "commandLine")
_PATHS = (
    "file_path",
    "filePath",
    "filepath",
    "path",
    "abs_path",
    "absolute_path",
    "target_file",
    "notebook_path",
)
_LONGEST = 400_000
"""Characters of a result that are kept."""
_MOST_LINES = 20_000
"""Lines of a file whose difference is worked out."""


class AgentCall:
    """One call. `update` takes what is newly said of it; what was said before holds on."""

    def __init__(self, key: str, workspace: Path) -> None:
        self.key = key
        self._workspace = workspace
        self._said: dict[str, Any] = {}
        self.replied = False
        """It stands in a reply."""
        self.allowed_by = ""
        """The permission that let it run, if the agent has asked."""
        self.asked = 0
        """Questions about it that are open: until they are answered it does not run, whatever it says."""
        self.denied = ""
        """Why the operator or a rule did not let it run."""
        self._terminal = ""
        """What it has printed on a terminal of the agent's, which tells it in pieces."""

    def update(self, update: dict[str, Any]) -> None:
        # A question about a call may come with empty arguments, and an update with nothing at all.
        said = {
            key: value
            for key, value in update.items()
            if value is not None and not (key in {"rawInput", "title", "locations"} and not value)
        }
        if isinstance(meta := said.get("_meta"), dict):
            self._take_terminal(meta)
            known = self._said.get("_meta")
            said["_meta"] = {**known, **meta} if isinstance(known, dict) else meta
        if written := self._written:  # other content takes its place
            self._said["rawInput"] = written
        if self.ended:  # an end holds
            said.pop("status", None)
        self._said |= said

    def _take_terminal(self, meta: dict[str, Any]) -> None:
        for key in ("terminal_output", "terminal_output_delta"):
            piece = value_at(meta, key, "data")
            if isinstance(piece, str):
                self._terminal = (self._terminal + piece)[:_LONGEST]

    @property
    def status(self) -> str:
        return str(self._said.get("status", "pending"))

    @property
    def begun(self) -> bool:
        """It runs, or has run."""
        return self.ended or (self.status != "pending" and not self.asked)

    @property
    def told(self) -> bool:
        """Its arguments are known, or it is over."""
        return self.ended or bool(self._said.get("rawInput")) or bool(self._written)

    @property
    def _written(self) -> dict[str, Any]:
        """The arguments that stand in its content while nothing else tells them, once they are whole (Kimi Code)."""
        text = "" if self.ended or self._said.get("rawInput") else self._text
        return (parse_arguments(text) or {}) if text.startswith("{") else {}

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def kind(self) -> str:
        return str(self._said.get("kind", "other"))

    @property
    def title(self) -> str:
        return one_line(str(self._said.get("title") or self.kind), 300)

    @property
    def name(self) -> str:
        """The tool's own name if the agent gives it, else the kind of the call. No tool of our loop's own."""
        given = next((found for path in _NAMES if isinstance(found := value_at(self._said, *path), str)), "")
        name = one_line(given or self.kind, 100) or "other"
        return f"{name}_" if named(name).effect is Effect.DIALOGUE else name

    @property
    def input(self) -> dict[str, Any]:
        """The arguments; its title and its file if the agent gives none."""
        raw = self._said.get("rawInput")
        found = raw if isinstance(raw, dict) else {"input": raw} if raw else self._written
        if not found and self.kind == "execute" and self._said.get("title"):
            found = {"command": clean(str(self._said["title"]))}  # Gemini CLI gives no arguments
        if not found:
            titled = {"title": self.title} if self._said.get("title") else {}
            return {**titled, **self._place()}
        for key in _COMMANDS:
            words = found.get(key)
            if isinstance(words, list) and all(isinstance(word, str) for word in words):
                found = {**found, key: _command(words)}
        return Call.of(self.key, self.name, found).input or {}

    def _place(self) -> dict[str, str]:
        place = self._said.get("locations")
        path = value_at(place[0], "path") if isinstance(place, list) and place else None
        return {"path": clean(path)} if isinstance(path, str) else {}

    @property
    def facts(self) -> ToolFacts:
        if self.name == UPDATE_PLAN:
            return named(UPDATE_PLAN)
        effect, given = EFFECTS.get(self.kind), self.input
        if effect is Effect.COMMAND and (key := _first(given, _COMMANDS)):
            return ToolFacts(effect=effect, uses={key: Use.RUNS}, subject=key, folded=6, at_end=True)
        looks: Looks = "search" if self.kind == "search" else "file" if self.kind == "read" else ""
        if effect in {Effect.READ, Effect.WRITE} and (key := _first(given, _PATHS)):
            use = Use.READS if effect is Effect.READ else Use.WRITES
            return ToolFacts(effect=effect, uses={key: use}, subject=key, looks=looks)
        return ToolFacts(effect=effect, subject="title" if "title" in given else "", looks=looks)

    @property
    def own(self) -> tuple[str, dict[str, Any]] | None:
        """The call of ours that does the same, by which permission rules judge it; None: there is none."""
        effect, given = EFFECTS.get(self.kind), self.input
        if effect is Effect.COMMAND and (key := _first(given, _COMMANDS)):
            return "bash", {"command": given[key]}
        if effect in {Effect.READ, Effect.WRITE} and (key := _first(given, _PATHS)):
            name = "read_file" if effect is Effect.READ else "edit_file"
            return name, {"path": self._relative(given[key])}
        return None

    def as_call(self, key: str) -> events.ToolCall:
        """The call as a reply holds it. `key`: its identity."""
        facts, self.replied = self.facts, True
        return events.ToolCall(
            id=self.key,
            name=self.name,
            arguments=json.dumps(self.input, ensure_ascii=False),
            key=key,
            effect=facts.effect.value if facts.effect else "",
            facts=facts,
        )

    # --- how it ended ---------------------------------------------------------------------------------------

    @property
    def printed(self) -> str:
        """The text that it gave back."""
        text = self._text
        if not self.ended and text.startswith("{"):
            return ""  # its arguments, as the model writes them
        text = text or self._terminal
        raw = self._said.get("rawOutput")
        if not text and raw not in (None, "", {}, []):
            inner = (
                next((raw[key] for key in ("output", "formatted_output", "text") if key in raw), raw)
                if isinstance(raw, dict)
                else raw
            )
            text = content_text(inner) if isinstance(inner, str | list) else json_text(inner)
        return clean(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\n…")

    @property
    def _text(self) -> str:
        blocks = self._blocks("content")
        return "\n".join(filter(None, (_text(block.get("content")) for block in blocks)))

    @property
    def exit_code(self) -> int | None:
        raw = self._said.get("rawOutput")
        known = next((code for path in _CODES if (code := code_at(raw, *path)) is not None), None)
        if known is None:
            known = code_at(self._said, "_meta", "terminal_exit", "exit_code")
        if known is not None or EFFECTS.get(self.kind) is not Effect.COMMAND:
            return known
        printed = self.printed
        framed = _SHELL_ENDED.findall(printed) or _EXIT.findall(printed[-_FRAME:])
        return int(framed[-1]) if framed else None

    @property
    def diff(self) -> str:
        """Its changes as a unified diff."""
        return "".join(self._difference(block) for block in self._blocks("diff"))

    @property
    def changed(self) -> tuple[str, ...]:
        """The files that it changed, relative to the workspace if they are in it."""
        paths = [str(block.get("path", "")) for block in self._blocks("diff")]
        if not paths and EFFECTS.get(self.kind) is Effect.WRITE and (key := _first(self.input, _PATHS)):
            paths = [self.input[key]]
        return tuple(dict.fromkeys(self._relative(path) for path in paths if path))

    def result(self) -> Result:
        """How it ended. A command with an exit code other than 0 has failed, whatever its status says."""
        code, printed = self.exit_code, self.printed
        message = exit_message(code, printed) if code else printed or self.title
        failed = self.status == "failed" or bool(code)
        call = Call.of(self.key, self.name, self.input)
        return judged(call, printed, None, message if failed else None)

    def _blocks(self, kind: str) -> list[dict[str, Any]]:
        content = self._said.get("content")
        blocks = content if isinstance(content, list) else []
        return [block for block in blocks if isinstance(block, dict) and block.get("type") == kind]

    def _difference(self, block: dict[str, Any]) -> str:
        path = self._relative(str(block.get("path", "")))
        old, new = (
            clean(str(block.get(key) or "")).splitlines(keepends=True) for key in ("oldText", "newText")
        )
        if len(old) + len(new) > _MOST_LINES:
            return ""
        before = "/dev/null" if block.get("oldText") is None else f"a/{path}"
        lines = difflib.unified_diff(old, new, before, f"b/{path}")
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def _relative(self, path: str) -> str:
        inside = Path(path).is_relative_to(self._workspace)
        return str(Path(path).relative_to(self._workspace)) if inside else path


def _first(given: dict[str, Any], names: tuple[str, ...]) -> str:
    """The first of these arguments that is given as a text."""
    return next((name for name in names if isinstance(given.get(name), str) and given[name]), "")


def _command(words: list[str]) -> str:
    """A command line of words; of a shell's `-c` the script itself."""
    script = words[2] if len(words) == 3 and words[1] in {"-c", "-lc"} else ""
    return script or shlex.join(words)


def _text(block: object) -> str:
    """The text of a block of content."""
    if not isinstance(block, dict):
        return ""
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "resource":
            return str(value_at(block, "resource", "text") or "")
        case "resource_link":
            return str(block.get("uri", ""))
        case kind:
            return f"({one_line(str(kind), 40)})"
