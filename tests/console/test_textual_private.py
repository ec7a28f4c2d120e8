"""What is private to Textual and used all the same: one list, held against the installed release and our classes.

A listed name that is not found has left Textual; one that is found and not listed would replace a part of Textual
without anybody having meant it. What Textual itself might take over stands behind "waits for", with its issue there or,
where none was found, in words; the rest is ours to keep.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from pkgutil import resolve_name

import pytest
import textual

import tui_agent

PRIVATE = {
    # waits for: lines of a container that its contents cover are not drawn; a map that is made between two layouts
    # hides no change from the next; `Strip.divide` keeps no strip in its own cache
    "textual._compositor:Compositor": {"_dirty_regions", "_full_map", "_render_chops"},
    # waits for: a sequence ends by ECMA-48's grammar however it was cut, and an unknown one is not typed
    "textual._xterm_parser:XTermParser": {"_sequence_to_key_events"},
    # waits for: 6692, `suspend` takes the terminal back where its block raises (`_exit`, `_driver`); a hook for what
    # is written after a crash (`_fatal_error`); a filter of colours of one's own (`_filters`)
    "textual.app:App": {
        "_css_update_count", "_dom_ready", "_driver", "_exit", "_fatal_error", "_filters", "_notifications",
        "_refresh_notifications", "_screen_stack", "_unnotify",
    },
    # waits for: styles for another theme are parsed and applied in pieces, or in a thread
    "textual.css.stylesheet:Stylesheet": {"_parse_cache", "_parse_rules", "_variables"},
    "textual.dom:DOMNode": {"_bindings"},
    "textual.driver:Driver": {"_auto_restart"},
    # waits for: 6456, a byte that is no UTF-8 ends no input; 6690, nor does the end of it keep a processor busy; 6298,
    # Ctrl+Z stops the whole job; a writer thread that outlives a failed write; sizes in the order of their signals
    "textual.drivers.linux_driver:LinuxDriver": {
        "_file", "_get_terminal_size", "_in_band_window_resize", "_must_signal_resume", "_sigtstp_application",
    },
    "textual.message_pump:MessagePump": {"_close_messages_no_wait"},
    # waits for: one layout for a size, one painting for a frame, and the widget with the focus before the rest
    "textual.screen:Screen": {
        "_compositor", "_compositor_refresh", "_css_update_count", "_dirty_widgets", "_on_idle",
        "_on_timer_update", "_refresh_layout", "_screen_resized", "_update_timer",
    },
    "textual.widget:Widget": {"_scroll_update"},
    "textual.widgets:TextArea": {"_on_key"},
    "textual_serve.app_service:AppService": {"_build_environment", "_open_app_process", "_process", "_stdin"},
    "textual_serve.server:Server": {"_make_app", "_process_messages"},
}  # fmt: skip

PACKAGE, TEXTUAL = Path(tui_agent.__file__).parent, Path(textual.__file__).parent
LIBRARIES = ("textual.", "textual_serve.")


@cache
def modules() -> dict[str, ast.Module]:
    """Parse our modules that know Textual, or stand on those that do."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if "textual" in (text := path.read_text()) or path.is_relative_to(PACKAGE / "console"):
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            found[".".join(part for part in parts if part != "__init__")] = ast.parse(text)
    return found


@cache
def names(tree: ast.AST, *, read: bool) -> set[str]:
    """The private names that a class gives itself; with `read`, also those that it takes from itself."""
    found = set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if read or isinstance(
                node.ctx, ast.Store
            ):
                found.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                found.add(name)
    return {name for name in found if name.startswith("_") and not name.startswith("__")}


@cache
def written(owner: type) -> ast.AST:
    """The source of a class."""
    return ast.parse(textwrap.dedent(inspect.getsource(owner)))


@cache
def attributes() -> set[str]:
    """Every name that one of those modules takes from an object."""
    trees = modules().values()
    return {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def our_classes() -> Iterator[type]:
    for name in modules():
        for value in vars(importlib.import_module(name)).values():
            if inspect.isclass(value) and value.__module__ == name:
                yield value


@cache
def inherited() -> dict[type, set[str]]:
    """What our classes name of the private parts of Textual's classes that they are."""
    found = defaultdict[type, set[str]](set)
    for ours in our_classes():
        theirs = [base for base in ours.__mro__ if base.__module__.startswith(LIBRARIES)]
        parts = [base for base in ours.__mro__ if base is ours or base.__module__.startswith("tui_agent.")]
        for name in set().union(*(names(written(part), read=True) for part in parts)) if theirs else ():
            owner = next((base for base in theirs if name in names(written(base), read=False)), None)
            if owner is not None:
                found[owner].add(name)
    return dict(found)


def test_each_private_name_of_textual_that_a_class_uses_is_listed() -> None:
    listed = {resolve_name(owner): allowed for owner, allowed in PRIVATE.items()}
    missing = {owner: used - listed.get(owner, set()) for owner, used in inherited().items()}
    assert not {owner: rest for owner, rest in missing.items() if rest}


def test_each_private_name_taken_from_another_object_is_ours_alone_or_listed() -> None:
    ours = set().union(*(names(tree, read=False) for tree in modules().values()))
    text = "\n".join(path.read_text() for path in TEXTUAL.rglob("*.py"))
    theirs = set(re.findall(r"(?:\.|def )(_\w+)", text))
    listed = {"_replace", "_asdict"}.union(*PRIVATE.values())  # those two are a NamedTuple's, and public
    for module, tree in modules().items():
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(value, attr=name) if name.startswith("_") and not name.endswith("_"):
                    itself = isinstance(value, ast.Name) and value.id in {"self", "cls"}
                    known = listed | (ours if itself else ours - theirs)
                    assert name in known, f"{module}:{node.lineno}: {ast.unparse(node)}"
                case ast.ImportFrom(module=str(source)) if source.startswith("textual._"):
                    assert any(owner.startswith(f"{source}:") for owner in PRIVATE), f"{module}: {source}"


@pytest.mark.parametrize("owner", PRIVATE)
def test_what_is_listed_is_in_the_installed_release_and_is_used(owner: str) -> None:
    theirs = resolve_name(owner)
    assert PRIVATE[owner] <= names(written(theirs), read=False), "it has left the release"
    assert PRIVATE[owner] <= attributes() | inherited().get(theirs, set()), "nobody uses it any more"
