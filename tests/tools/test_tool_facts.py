"""A fact about a tool stands on its class: what judges, counts, shows and lists its calls derives from there."""

from __future__ import annotations

import ast
import json
import runpy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.runtime.session_harness import LiveSession, replayed, start_session
from tui_agent.console.panes.block_context import BlockContext
from tui_agent.console.panes.call_block import draw_call
from tui_agent.console.panes.density import Lookups, looks_by
from tui_agent.core import events
from tui_agent.core.names import Approval, CallState, Decision
from tui_agent.core.own_tools import ROWS
from tui_agent.core.projections.entries import CallEntry
from tui_agent.core.recovery.iteration import did_work
from tui_agent.core.tool_facts import OWN, Effect, ToolFacts, Use, Uses, carried
from tui_agent.event_lines import GLYPHS, event_line
from tui_agent.formats.exporters.html import to_html
from tui_agent.formats.exporters.markdown import to_markdown
from tui_agent.frontend.lines.styled import text_of
from tui_agent.permissions.judge import Permissions
from tui_agent.permissions.rules import parse_rule
from tui_agent.store.audit import effects_of, in_words
from tui_agent.store.journal import read_journal
from tui_agent.tools.registry import ToolRegistry, default_tools
from tui_agent.tools.tool import ToolContext, ToolOutput, schema, text
from tui_agent.tools.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]


class Press:
    """Writes a flower into a book; a tool that nothing else in the program has heard of."""

    name: ClassVar[str] = "press_flower"
    description: ClassVar[str] = "Press a flower in a book."
    effect: ClassVar[Effect] = Effect.WRITE
    uses: ClassVar[Uses] = {"flower": Use.SAYS, "book": Use.WRITES, "notes": Use.SAYS}
    facts: ClassVar[ToolFacts] = ToolFacts(
        subject="flower", beside=(("book", " between the pages of {}"),), label="herbarium", folded=1
    )
    parameters: ClassVar[dict[str, Any]] = schema("flower", "book", flower=text(), book=text(), notes=text())

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        return f"{arguments['flower']} goes into {arguments['book']}"

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        path = context.workspace.root / arguments["book"]
        before = path.read_text("utf-8") if path.exists() else ""
        path.write_text(arguments["flower"], "utf-8")
        changed = (arguments["book"],) if before != arguments["flower"] else ()
        return ToolOutput("pressed\n" * 9, changed=changed, files={arguments["book"]: "0" * 64})


class Smell:
    """Looks for a scent; it only shows something."""

    name: ClassVar[str] = "smell"
    description: ClassVar[str] = "Look for a scent."
    effect: ClassVar[Effect] = Effect.READ
    uses: ClassVar[Uses] = {"scent": Use.SAYS}
    facts: ClassVar[ToolFacts] = ToolFacts(subject="scent", looks="search")
    parameters: ClassVar[dict[str, Any]] = schema("scent", scent=text())

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        return str(arguments)

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        return ToolOutput("nothing\nto speak of")


class Dig:
    """Runs a command under another name."""

    name: ClassVar[str] = "dig"
    description: ClassVar[str] = "Dig by a command."
    effect: ClassVar[Effect] = Effect.COMMAND
    uses: ClassVar[Uses] = {"spade": Use.RUNS}
    parameters: ClassVar[dict[str, Any]] = schema("spade", spade=text())

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        return str(arguments["spade"])

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        return ToolOutput("dug", exit_code=0)


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "args": arguments}]}


@pytest.fixture
async def live(tmp_path: Path) -> LiveSession:
    """A run in which each of the three tools is called, the first one twice with the same result."""
    press = call("press_flower", flower="cornflower", book="herbarium.txt", notes="blue")
    turns = [
        press,
        press,
        call("smell", scent="hay"),
        call("dig", spade="dig deep"),
        call("finish", answer="done"),
    ]
    tools = ToolRegistry([*map(default_tools().get, default_tools().names), Press(), Smell(), Dig()])
    started = await start_session(tmp_path, turns, tools=tools, approve="all")
    await started.run()
    await started.close()
    return started


@pytest.mark.parametrize(
    ("approve", "rule", "tool", "arguments", "decision"),
    [
        ("ask", "", Press, {"flower": "rose", "book": "a.txt"}, Decision.ASK),
        ("writes", "", Press, {"flower": "rose", "book": "a.txt"}, Decision.ALLOW),
        ("plan", "", Press, {"flower": "rose", "book": "a.txt"}, Decision.DENY),
        ("all", "edit_file(kept/**)", Press, {"flower": "rose", "book": "kept/a.txt"}, Decision.DENY),
        ("all", "press_flower(kept/**)", Press, {"flower": "rose", "book": "kept/a.txt"}, Decision.DENY),
        ("plan", "", Smell, {"scent": "hay"}, Decision.ALLOW),
        ("writes", "", Dig, {"spade": "make"}, Decision.ASK),
        ("all", "bash(rm *)", Dig, {"spade": "rm -rf x"}, Decision.DENY),
    ],
)
def test_rules_and_modes_judge_a_new_tool_by_its_effect_and_its_uses(
    tmp_path: Path, approve: str, rule: str, tool: type[Any], arguments: dict[str, str], decision: Decision
) -> None:
    rules = [parse_rule(Decision.DENY, rule, "test")] if rule else []
    permissions = Permissions(rules, tmp_path, Approval(approve))
    judged = permissions.judge(tool.name, tool.effect, arguments, tool.uses)
    assert judged.decision is decision


def test_a_tool_of_ours_is_not_taken_for_another_agent_s_of_the_same_name() -> None:
    """`view` of other agents only shows a file; of this one its class says that it may do anything."""
    shown = CallEntry(1, 0.0, 1, "1", "view", {"path": "a"}, state=CallState.SUCCEEDED)
    assert looks_by(shown) == "file"
    facts = carried("view", ToolFacts(Effect.COMMAND, uses={"path": Use.ANYTHING}))
    assert facts is not None
    assert looks_by(replace(shown, facts=facts)) == ""
    event = events.ToolStarted(call_id="1", tool="view", input={}, facts=facts)
    assert json.loads(event.model_dump_json())["facts"] == {"effect": "command"}
    assert events.parse_event(event.model_dump_json()) == event


async def test_a_new_tool_is_counted_shown_exported_and_audited_by_what_its_class_says(
    live: LiveSession,
) -> None:
    """From the journal alone, as a replay reads it: the process need not have heard of the tool."""
    journal = read_journal(live.session.folder).events
    assert replayed(live.session) == live.state
    first, second, _, _, _ = [event for event in journal if isinstance(event, events.ToolSucceeded)]
    assert did_work(first)
    assert not did_work(second), "it wrote what was there already"
    assert event_line(first, GLYPHS).startswith("✓ herbarium cornflower between the pages of herbarium.txt")

    entries = [entry for entry in live.state.conversation.entries if isinstance(entry, CallEntry)]
    pressed = "\n".join(text_of(line) for line in draw_call(entries[0], 100, BlockContext()))
    assert "herbarium  cornflower between the pages of herbarium.txt " in pressed
    assert "notes" not in pressed
    assert "8 more lines" in pressed
    (smelt,) = (entry for entry in entries if entry.tool == "smell")
    assert looks_by(smelt) == "search"
    looked = Lookups(0, 0)
    looked.add(0, smelt, looks_by(smelt))
    assert (looked.words, looked.names) == ("searched once", "hay")

    audit = "\n".join(in_words(effects_of(journal)))
    assert "herbarium.txt" in audit
    assert "dig deep -> exit code 0" in audit
    assert "hay" not in audit
    assert "cornflower" in to_markdown(journal)
    assert "cornflower between the pages of herbarium.txt" in to_html(journal)


def test_the_core_s_copy_of_the_facts_is_what_the_classes_say() -> None:
    """`python docs/write_tools.py` writes it."""
    script = runpy.run_path(str(ROOT / "docs" / "write_tools.py"))
    classes = {tool.name: script["row"](script["facts_of"](tool)) for tool in script["own_tools"]()}
    assert classes == ROWS
    assert classes.keys() >= set(default_tools().names)


_ALSO_HERE = ("core/own_tools.py", "formats/importers/tools_of_others.py", "lab/")
"""Where names of tools are listed: the copy for the core, other agents' tools, the tools that a benchmark offers."""


def lists_of_tools(source: str) -> Iterator[int]:
    """Lines of collections that hold two names of tools, one of them at least a word of this program alone."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Set(elts=elements) | ast.Tuple(elts=elements) | ast.List(elts=elements):
                held: list[Any] = list(elements)
            case ast.Dict(keys=keys):
                held = list(keys)
            case _:
                continue
        names = {one.value for one in held if isinstance(one, ast.Constant)} & OWN.keys()
        if len(names) > 1 and any("_" in name for name in names):
            yield node.lineno


def test_no_list_of_tools_stands_beside_their_classes() -> None:
    package = ROOT / "tui_agent"
    assert [*lists_of_tools('READS = {"read_file": 1, "grep": 2}\nOTHER = ("glob", "bash")')] == [1]
    found = [
        f"{path.relative_to(package)}:{line}"
        for path in package.rglob("*.py")
        if not str(path.relative_to(package)).startswith(_ALSO_HERE)
        for line in lists_of_tools(path.read_text("utf-8"))
    ]
    assert not found
