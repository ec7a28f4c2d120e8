"""The interface of a tool: a name, a schema, an effect, and a coroutine from arguments to a result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tui_agent.core.tool_facts import UNKNOWN, Effect, ToolFacts, Uses
from tui_agent.sandbox.mechanisms import Sandbox

if TYPE_CHECKING:
    from tui_agent.sandbox.taken_back import TakenBack
    from tui_agent.tools.workspace import Workspace


def uses_of(tool: Tool) -> Uses | None:
    """Give what a tool does with its arguments; None for one that takes none and says nothing."""
    uses: Uses | None = getattr(tool, "uses", None)
    return uses


def facts_of(tool: Tool | type[Tool]) -> ToolFacts:
    """Give all that a tool says about itself: its effect, its uses, and its `facts` if it has any."""
    uses: Uses | None = getattr(tool, "uses", None)
    return replace(getattr(tool, "facts", UNKNOWN), effect=tool.effect, uses=uses or {})


def schema(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an object with these properties and no others."""
    needed = {"required": [*required]} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}


def text(description: str = "", **rules: int) -> dict[str, Any]:
    """The JSON Schema of a text that is not empty."""
    said = {"description": description} if description else {}
    return {"type": "string", "minLength": 1, **rules, **said}


class TextMask(Protocol):
    """Masks secrets in a text that comes in pieces; what may be half a secret is held back until `flush`."""

    def feed(self, piece: str) -> str: ...
    def flush(self) -> str: ...


@dataclass(frozen=True)
class ToolContext:
    """The context of a running call."""

    workspace: Workspace
    output_dir: Path
    """The folder for whole outputs that are cut (readable by the model through `read_file`)."""
    call_id: str
    progress: Callable[[str], None]
    """Takes pieces of output as they come, for the screen only."""
    new_mask: Callable[[], TextMask | None] = lambda: None
    """Makes what masks the secrets in an output that is kept in a file."""
    known_files: Mapping[str, str] = field(default_factory=dict)
    """Workspace files as the model last read or wrote them: SHA-256 of their bytes, by path."""
    sandbox: Sandbox = field(default_factory=Sandbox)
    """The sandbox of commands."""
    may_read: Callable[[str], bool] = lambda _: True
    """True if no permission rule keeps a file of the workspace from being read, for tools that read many."""
    hold: Callable[[Sequence[TakenBack]], Awaitable[str]] | None = None
    """Asks the operator about what the sandbox took back of a command, and says what became of it; None: nobody can be
    asked."""


@dataclass(frozen=True)
class ToolOutput:
    """A success. `content` is for the model; `changed` lists workspace files that really changed."""

    content: str
    changed: tuple[str, ...] = ()
    diff: str = ""
    output_file: str = ""
    unframed: str | None = None
    """The tool's own output, if `content` frames it (line numbers); None: `content` is it."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Workspace files that the model knows by this call: SHA-256 of their bytes, by path."""
    before: Mapping[str, str] = field(default_factory=dict)
    """Of those that the call wrote, the ones that had been there: SHA-256 of their bytes before, by path."""
    exit_code: int | None = None
    """Of a command."""


class Tool(Protocol):
    """One tool. Descriptions and parameters are what the model sees."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments (an object). If a tool takes other ones, they are its `accepted`."""

    @property
    def effect(self) -> Effect: ...
    @property
    def uses(self) -> Uses:
        """The use of each of its arguments. One that is missing keeps the tool from being registered."""

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        """The effect of the call in full, for the operator's approval: a unified diff or the command."""

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Do it. Raises `ToolError`; cancellation leaves nothing running."""
