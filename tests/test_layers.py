"""Imports point down, and none goes round in a circle: those that only types need and those within functions included.

The source is read by `ast`; no module is imported for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tui_agent.cli import COMMANDS, OF_THE_LABORATORY

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "tui_agent"

FLOORS = (
    {
        "",
        "bounded_process",
        "disk",
        "globs",
        "installed",
        "listening",
        "quantities",
        "rule_book",
        "secret_names",
        "shell_programs",
        "shell_syntax",
        "terminal_text",
        "untrusted_files",
    },
    {"cluster", "headline", "keychain"},
    {"core", "processes"},
    {"sandbox", "call_names"},
    {"permissions"},
    {"config"},
    {"models", "tools"},
    {"runtime"},
    {"store"},
    {"formats"},
    {"playbook", "telemetry"},
    {"session"},
    {"event_lines"},
    {"watch"},
    {"acp", "agents", "library"},
    {"acp_client"},
    {"headless_output"},
    {"headless", "doctor"},
    {"fleet"},
    {"frontend"},
    {"console", "plain"},
    {"acp_agent"},
    {"cli"},
    {"lab"},
    {"__main__"},
)
"""From the ground up. A part imports parts of lower floors."""

MCP = ("mcp", "mcp_types", "httpx2", "anyio")
ONLY_IN = {
    "acp": ("acp", "acp_agent"),
    "litellm": ("models",),
    "jinja2": ("formats",),
    "opentelemetry": ("telemetry",),
    "textual_serve": ("console",),
    "aiohttp": ("console",),
    "pyarrow": ("lab",),
    "duckdb": ("lab",),
    **dict.fromkeys(("dask", "distributed"), ("cluster",)),
    **dict.fromkeys(MCP, ("tools",)),
    "markdown_it": ("console", "formats"),
    "textual": ("console",),
    "rich": ("console", "frontend"),
    "pygments": ("console", "frontend"),
}
"""Libraries that one part keeps to itself."""
OF_THE_SUPERVISOR = {
    f"tui_agent.sandbox.{name}"
    for name in ("gate", "caller", "own_mounts", "socket_filter", "socket_holders", "socket_message")
}


@cache
def modules() -> dict[str, Path]:
    found = {}
    for path in (ROOT / PACKAGE).rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements, those within others included; expressions hold none."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield node
            yield from statements(node)


@cache
def imports(name: str) -> frozenset[str]:
    """Every module that this one imports anywhere, by its full name."""
    found = set()
    for node in statements(ast.parse(modules()[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            # What the supervisor loads without the program is a package by itself.
            assert not node.level or name in OF_THE_SUPERVISOR, f"{name} imports relatively"
            source = f"{name.rpartition('.')[0]}.{node.module}" if node.level else node.module
            for alias in node.names:
                full = f"{source}.{alias.name}"
                found.add(full if full in modules() else source)
    return frozenset(found - {name})


def own_imports() -> Iterator[tuple[str, str]]:
    for name in sorted(modules()):
        for imported in sorted(imports(name) & modules().keys()):
            yield name, imported


def part(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def floor(name: str) -> int:
    return next(number for number, parts in enumerate(FLOORS) if part(name) in parts)


def test_every_part_has_a_floor() -> None:
    assert {part(name) for name in modules()} == set().union(*FLOORS)


def test_the_architecture_has_a_row_for_each_part() -> None:
    rooms = (ROOT / "docs" / "ARCHITECTURE.md").read_text("utf-8").partition("## The rooms")[2]
    rows = re.findall(r"^\| (`.+?`) \|", rooms.partition("## The core")[0], re.MULTILINE)
    named = re.findall(r"`([^`]+)`", " ".join(rows))
    places = {path for path in (ROOT / PACKAGE).iterdir() if not path.name.startswith("_")}
    there = {f"{path.name}/" if path.is_dir() else path.name for path in places} - {"py.typed"}
    assert sorted(named) == sorted(there)


def test_no_room_imports_the_laboratory_and_its_commands_are_found_by_name() -> None:
    inside = f"{PACKAGE}.lab"
    assert not [f"{name} -> {to}" for name, to in own_imports() if inside in to and inside not in name]
    assert {f"{inside}.commands.{name}" for name in OF_THE_LABORATORY} == modules().keys() & {
        f"{inside}.commands.{name}" for name in COMMANDS
    }


def test_no_import_goes_round_in_a_circle() -> None:
    graph: dict[str, set[str]] = {name: set() for name in modules()}
    for name, imported in own_imports():
        graph[name].add(imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(reversed(error.args[1]))) from None


def test_imports_point_down() -> None:
    up = [
        f"{name} -> {imported}"
        for name, imported in own_imports()
        if part(name) != part(imported)
        and (name, imported)
        != (PACKAGE, f"{PACKAGE}.library")  # the door for other programs, opened when used
        and floor(name) <= floor(imported)
    ]
    assert up == []


def test_libraries_stay_in_their_part() -> None:
    strays = [
        f"{name} -> {imported}"
        for name in sorted(modules())
        for imported in sorted(imports(name))
        if part(name) not in ONLY_IN.get(imported.partition(".")[0], (part(name),))
    ]
    assert strays == []


def test_folders_of_the_console_stand_on_each_other() -> None:
    """No folder imports one that imports it, over however many others."""
    graph: dict[str, set[str]] = {}
    for name, imported in own_imports():
        above, below = (each.split(".")[1:-1] for each in (name, imported))
        if len(above) == len(below) == 2 and above[0] == below[0] == "console" and above != below:
            graph.setdefault(above[1], set()).add(below[1])
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(reversed(error.args[1]))) from None
    assert len(graph) > 5
