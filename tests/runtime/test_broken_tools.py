"""Whatever a tool, a hook, a rule or a hint raises is a failed call with a clear text; the run goes on."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import pytest

from tests.runtime.session_harness import LiveSession, replayed, start_session
from tui_agent.config.sections import HookSettings
from tui_agent.core import events
from tui_agent.core.tool_facts import Effect, Use, Uses
from tui_agent.runtime import executor, hooks, instructions
from tui_agent.runtime.approvals import Approvals
from tui_agent.runtime.recorder import RecordingFailed
from tui_agent.store.checkpoints import Checkpoints
from tui_agent.tools.errors import ToolError
from tui_agent.tools.registry import ToolRegistry, default_tools
from tui_agent.tools.tool import ToolContext, ToolOutput
from tui_agent.tools.workspace import Workspace

LONG = "a" * 300


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "args": arguments}


def broken(error: BaseException) -> Callable[..., NoReturn]:
    def raises(*_: Any, **__: Any) -> NoReturn:
        raise error

    return raises


class Raises:
    """A tool that raises what it is given."""

    name = "fragile"
    effect = Effect.READ
    uses: ClassVar[Uses] = {"path": Use.READS}
    description = "Raises."
    parameters: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        raise RuntimeError("no preview")

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        raise self.error


@pytest.fixture
def start_agent(tmp_path: Path) -> Callable[..., Awaitable[LiveSession]]:
    async def started(*calls: dict[str, Any], **options: Any) -> LiveSession:
        turns = [{"calls": list(calls)}, {"calls": [call("finish", answer="done")]}]
        return await start_session(tmp_path, turns, files={"a.txt": "x"}, **options)

    return started


async def failures(live: LiveSession) -> list[str]:
    """The texts of the calls that failed in a run that was answered all the same."""
    finished = await live.run()
    await live.close()
    assert (finished.outcome, finished.answer) == ("answered", "done"), finished.reason
    assert replayed(live.session) == live.state
    return [event.failure.message for event in live.of(events.ToolFailed)]


LONG_NAMES = [
    call("read_file", path=LONG),
    call("read_file", path=f"sub/{LONG}/b"),
    call("write_file", path=LONG, content="x"),
    call("write_file", path=f"{LONG}/b", content="x"),
    call("edit_file", path=LONG, old="a", new="b"),
    call("list_dir", path=LONG),
    call("grep", pattern="x", path=LONG),
    call("glob", pattern=f"{LONG}/*"),
]


@pytest.mark.parametrize("calls", [[each] for each in LONG_NAMES] + [LONG_NAMES[:2] + LONG_NAMES[5:7]])
async def test_a_name_that_no_file_system_takes_fails_the_call_and_not_the_run(
    start_agent: Callable[..., Awaitable[LiveSession]], tmp_path: Path, calls: list[dict[str, Any]]
) -> None:
    live = await start_agent(*calls)
    (tmp_path / "workspace/sub").mkdir()
    said = await failures(live)
    if calls[0]["tool"] == "glob":
        assert said == []  # nothing matches, which is a result
    else:
        assert len(said) == len(calls)
        assert all("File name too long. Choose a shorter name." in text for text in said), said
        assert all(str(tmp_path) not in text for text in said)


@pytest.fixture
def as_nobody() -> Iterator[Path]:
    """A workspace with folders that may not be entered or read, and no right to do so all the same."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to give the workspace to somebody else and back")
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        root.chmod(0o755)
        (root / "shut/in").mkdir(parents=True)
        (root / "shut/in/a.txt").write_text("x")
        (root / "a.txt").write_text("x")
        (root / "shut").chmod(0o600)
        yield root


@pytest.mark.parametrize("name", ["shut", "shut/in", "shut/in/a.txt", "shut/none", "none/none"])
def test_instructions_are_looked_for_also_where_a_folder_may_not_be_entered(
    as_nobody: Path, name: str
) -> None:
    os.seteuid(65_534)
    try:
        assert instructions.for_path(Workspace(as_nobody), name) == ()
        assert instructions.above(as_nobody / name) == ()
    finally:
        os.seteuid(0)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_file", {"path": "shut/in/a.txt"}),
        ("list_dir", {"path": "shut/in"}),
        ("grep", {"pattern": "x", "path": "shut/in"}),
        ("write_file", {"path": "shut/in/b.txt", "content": "x"}),
        ("edit_file", {"path": "shut/in/a.txt", "old": "x", "new": "y"}),
    ],
)
async def test_a_folder_that_may_not_be_entered_is_said(
    as_nobody: Path, tool: str, arguments: dict[str, Any], tmp_path: Path
) -> None:
    from tests.tools.box import Box

    box = Box(as_nobody, tmp_path)
    await box.call("list_dir")  # imports what it needs as the one who may
    box.registry.parse(events.ToolCall(id="1", name=tool, arguments="{}")) if tool == "list_dir" else None
    os.seteuid(65_534)
    try:
        error = await box.fail(tool, **arguments)
    finally:
        os.seteuid(0)
    assert "Permission denied. The permissions do not allow it." in error.message


FAULTS = [
    (OSError(36, "File name too long", "/somewhere/else"), "File name too long. Choose a shorter name."),
    (PermissionError(13, "Permission denied", "/x"), "Permission denied."),
    (RuntimeError("boom"), "broke: RuntimeError: boom"),
    (RecursionError("maximum recursion depth exceeded"), "broke: RecursionError"),
    (MemoryError(), "broke: MemoryError"),
    (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"), "surrogates not allowed"),
    (ValueError("embedded null byte"), "embedded null byte"),
    (ExceptionGroup("unhandled errors", [ValueError("one"), OSError(28, "No space left on device")]), "one"),
    (ExceptionGroup("a", [ExceptionGroup("b", [KeyError("deep")])]), "KeyError: 'deep'"),
    (RuntimeError("x" * 1_000_000), "broke: RuntimeError: xxx"),
]


@pytest.mark.parametrize(("error", "words"), FAULTS, ids=lambda value: str(value)[:30])
async def test_what_a_tool_raises_is_said_by_its_cause(
    start_agent: Callable[..., Awaitable[LiveSession]], error: Exception, words: str
) -> None:
    tools = ToolRegistry([Raises(error), *(t for t in [default_tools().get("finish")] if t)])
    (said,) = await failures(await start_agent(call("fragile"), tools=tools))
    assert words in said
    assert "ExceptionGroup" not in said
    assert len(said) < 2_000


PLACES: list[tuple[Any, str, str]] = [
    (Approvals, "judge", "could not judge this call"),
    (executor, "hint_for", "There is no file"),
    (instructions, "for_path", ""),
    (instructions, "still_to_give", ""),
    (Checkpoints, "save", ""),
    (hooks.HookRunner, "run", ""),
]


@pytest.mark.parametrize(("owner", "name", "said"), PLACES, ids=[f"{o.__name__}.{n}" for o, n, _ in PLACES])
@pytest.mark.parametrize("at_once", [1, 2])
async def test_what_stands_around_a_tool_may_break_too(
    start_agent: Callable[..., Awaitable[LiveSession]],
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    said: str,
    at_once: int,
) -> None:
    missing = call("read_file", path="nothing-like-it.md")
    wanted = (
        call("write_file", path="b.txt", content="y")
        if owner is Checkpoints
        else call("read_file", path="a.txt")
    )
    live = await start_agent(
        *([missing if name == "hint_for" else wanted] * at_once), call("read_file", path="a.txt")
    )
    real = getattr(owner, name)

    def only_once(*arguments: Any, **more: Any) -> Any:
        if any(isinstance(value, dict) and "answer" in value for value in arguments):
            return real(*arguments, **more)
        raise RuntimeError("the place broke")

    monkeypatch.setattr(owner, name, only_once)
    texts = await failures(live)
    assert all(said in text for text in texts)
    results = [event for event in live.events if isinstance(event, events.ToolResult)]
    assert len({event.call_id for event in results}) == len(results) == at_once + 2


async def test_a_hook_that_cannot_be_run_is_reported_and_never_fatal(
    start_agent: Callable[..., Awaitable[LiveSession]], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = HookSettings.model_validate(
        {"PreToolUse": [{"hooks": [{"command": "true\0"}]}], "PostToolUse": [{"hooks": [{"command": "x\0"}]}]}
    )
    live = await start_agent(call("read_file", path="a.txt"), hooks=settings)
    assert await failures(live) == []
    assert {report.status for report in live.of(events.HookReported)} == {"failed"}


@pytest.mark.parametrize("at_once", [1, 2])
async def test_a_journal_that_cannot_be_written_still_ends_the_run(
    start_agent: Callable[..., Awaitable[LiveSession]], at_once: int
) -> None:
    tools = ToolRegistry([Raises(RecordingFailed("the disk is gone"))])
    live = await start_agent(*[call("fragile")] * at_once, tools=tools)
    finished = await live.run()
    await live.close()
    assert (finished.outcome, finished.reason) == ("error", "the disk is gone")


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "object", "properties": {"path": {"pattern": "("}}},
        {"$ref": "#/nowhere"},
        {"type": "nonsense"},
        {"required": 5},
    ],
    ids=str,
)
async def test_a_schema_that_nobody_can_check_by_lets_the_tool_look_itself(
    start_agent: Callable[..., Awaitable[LiveSession]], parameters: dict[str, Any]
) -> None:
    tool = Raises(ToolError("the tool has looked"))
    tool.parameters = parameters
    tools = ToolRegistry([tool, *(t for t in [default_tools().get("finish")] if t)])
    assert await failures(await start_agent(call("fragile", path="a"), tools=tools)) == [
        "the tool has looked"
    ]
