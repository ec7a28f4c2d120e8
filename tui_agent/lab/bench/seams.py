"""Seams for faults: in front of the model, around each tool, and in the workspace. The engine sees only the
signs that a real fault of that kind would show.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from tui_agent.core.events import Fault
from tui_agent.core.names import FaultKind
from tui_agent.core.tool_facts import Effect
from tui_agent.lab.bench.case import InjectedFault
from tui_agent.lab.bench.clock import Clock
from tui_agent.models.protocol import Delta, Model, ModelFault, ModelRequest, Reply
from tui_agent.tools.errors import ToolError
from tui_agent.tools.registry import ToolRegistry
from tui_agent.tools.tool import Tool, ToolContext, ToolOutput, uses_of
from tui_agent.tools.workspace import Workspace

TOOL_SECONDS = 0.5
"""The simulated time of a call, besides its `sleep`."""

_SLEEP = re.compile(r"\bsleep (\d+(?:\.\d+)?)")
_WORDS = {
    FaultKind.RATE_LIMIT: (429, "Rate limit reached for requests"),
    FaultKind.OVERLOADED: (529, "Overloaded"),
    FaultKind.SERVER: (500, "The server had an error while processing your request"),
    FaultKind.TIMEOUT: (None, "The model was silent for longer than the limit"),
    FaultKind.CONNECTION: (None, "Connection refused"),
    FaultKind.STREAM_CUT: (None, "The stream ended in the middle of the reply"),
    FaultKind.BAD_OUTPUT: (200, "The reply held no choices"),
    FaultKind.CONTEXT_OVERFLOW: (400, "This model's maximum context length is 8192 tokens"),
    FaultKind.AUTH: (401, "Incorrect API key provided"),
    FaultKind.QUOTA: (429, "You exceeded your current quota"),
}
"""Status and words of a provider's faults."""


class FaultyModel:
    """A model behind which requests fail as the case says."""

    def __init__(self, model: Model, faults: tuple[InjectedFault, ...], clock: Clock) -> None:
        self._model = model
        self._faults = tuple(fault for fault in faults if fault.seam == "model")
        self._clock = clock
        self._requests = 0
        self._raised: list[Fault] = []

    def raised(self, fault: Fault) -> bool:
        """True if a fault is of the case, and not of the model behind it."""
        return fault in self._raised

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `protocol.Model`."""
        self._requests += 1
        for fault in self._faults:
            if self._clock.passed < fault.until if fault.until else fault.covers(self._requests):
                self._clock.pass_(1.0)
                status, words = _WORDS.get(fault.kind, (None, fault.kind.in_words))
                value = Fault(
                    kind=fault.kind,
                    message=fault.message or words,
                    status=status,
                    retry_after=fault.retry_after,
                )
                self._raised.append(value)
                raise ModelFault(value)
        self._clock.requests += 1
        async for piece in self._model.stream(request):
            yield piece

    async def start(self) -> None:
        """See `protocol.Model`."""
        await self._model.start()

    async def context_tokens(
        self, model: str, api_base: str | None = None, api_key_variable: str | None = None
    ) -> int | None:
        """See `protocol.Model`."""
        return await self._model.context_tokens(model, api_base, api_key_variable)

    async def close(self) -> None:
        """See `protocol.Model`."""
        await self._model.close()


class World:
    """Events around the tools of one run: their faults, changes by others, and the time that they take.

    `before` is asked about every call first and may refuse it by raising `ToolError`.
    """

    def __init__(
        self,
        faults: tuple[InjectedFault, ...],
        workspace: Path,
        clock: Clock,
        before: Callable[[str, Mapping[str, Any]], Awaitable[None]],
    ) -> None:
        self.clock = clock
        self.before = before
        self._workspace = workspace
        self._changes = sorted((one for one in faults if one.seam == "world"), key=lambda one: one.at)
        self._faults = [fault for fault in faults if fault.seam == "tool"]
        self._met = dict.fromkeys(range(len(self._faults)), 0)

    def around(self, tools: ToolRegistry) -> ToolRegistry:
        """The same tools within this world."""
        found = (tools.get(name) for name in tools.names)
        return ToolRegistry([
            InWorld(tool, self) if tool.effect is not Effect.DIALOGUE else tool for tool in found if tool
        ])  # fmt: skip

    def goes_on(self) -> None:
        """Let others change the workspace, if it was their turn meanwhile."""
        while self._changes and self._changes[0].at <= self.clock.requests:
            change = self._changes.pop(0)
            for name in change.remove:
                (self._workspace / name).unlink(missing_ok=True)
            for name, content in change.write.items():
                path = self._workspace / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8")

    def fault_of(self, tool: str, arguments: Mapping[str, Any]) -> InjectedFault | None:
        """The fault that this call meets."""
        said = "\n".join(map(str, arguments.values()))
        for place, fault in enumerate(self._faults):
            if fault.tool == tool and re.search(fault.match, said, re.MULTILINE):
                self._met[place] += 1
                if fault.back:
                    if self.clock.requests < fault.back:
                        return fault
                elif fault.covers(self._met[place]):
                    return fault
        return None


class InWorld:
    """A real tool within a world."""

    def __init__(self, tool: Tool, world: World) -> None:
        self._tool = tool
        self._world = world
        self.name, self.description, self.effect = tool.name, tool.description, tool.effect
        self.uses = uses_of(tool) or {}
        self.parameters = tool.parameters
        self.accepted = getattr(tool, "accepted", tool.parameters)

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        """See `Tool.preview`."""
        return self._tool.preview(arguments, workspace)

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """See `Tool.run`."""
        world = self._world
        world.goes_on()
        await world.before(self.name, arguments)
        if not world.clock.real:
            world.clock.pass_(TOOL_SECONDS)
            command = arguments.get("command")
            if isinstance(command, str):
                world.clock.pass_(sum(map(float, _SLEEP.findall(command))))
                arguments = {**arguments, "command": _SLEEP.sub("sleep 0", command)}
        fault = world.fault_of(self.name, arguments)
        if fault is None:
            return await self._tool.run(arguments, context)
        if fault.effect == "says":
            return ToolOutput(fault.message)
        if fault.effect == "after":
            await self._tool.run(arguments, context)
        raise ToolError(fault.message, transient=fault.transient, unknown_effect=fault.effect == "after")
