"""What is private to Textual and used all the same: one list, held against the installed release and our classes.

A listed name that is not found has left Textual; one that is found and not listed would replace a part of Textual
without anybody having meant it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from pkgutil import resolve_name

import pytest

import tui_agent

PRIVATE = {
    "textual._compositor:Compositor": {"_dirty_regions", "_full_map", "_render_chops"},
    "textual._xterm_parser:XTermParser": {"_sequence_to_key_events"},
    "textual.app:App": {
        "_css_update_count", "_dom_ready", "_driver", "_exit", "_fatal_error", "_filters", "_notifications",
        "_refresh_notifications", "_screen_stack", "_unnotify",
    },
    "textual.css.stylesheet:Stylesheet": {"_parse_cache", "_parse_rules", "_variables"},
    "textual.dom:DOMNode": {"_bindings"},
    "textual.driver:Driver": {"_auto_restart"},
    "textual.drivers.linux_driver:LinuxDriver": {
        "_file", "_get_terminal_size", "_in_band_window_resize", "_must_signal_resume", "_sigtstp_application",
    },
    "textual.message_pump:MessagePump": {"_close_messages_no_wait"},
    "textual.screen:Screen": {
        "_compositor", "_compositor_refresh", "_css_update_count", "_dirty_widgets", "_on_idle",
        "_on_timer_update", "_refresh_layout", "_screen_resized", "_update_timer",
    },
    "textual.widget:Widget": {"_scroll_update"},
    "textual.widgets:Input": {"_on_key", "_on_paste"},
    "textual_serve.app_service:AppService": {"_build_environment", "_open_app_process", "_process", "_stdin"},
    "textual_serve.server:Server": {"_make_app", "_process_messages"},
}  # fmt: skip

PACKAGE = Path(tui_agent.__file__).parent
LIBRARIES = ("textual.", "textual_serve.")


@cache
def modules() -> dict[str, ast.Module]:
    """Our modules that know Textual, and what is written there."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if "textual" in (text := path.read_text()):
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


def test_each_private_name_taken_from_another_object_is_ours_or_listed() -> None:
    known = set().union(*PRIVATE.values(), *(names(tree, read=False) for tree in modules().values()))
    for module, tree in modules().items():
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(attr=name) if name.startswith("_") and not name.endswith("_"):
                    assert name in known, f"{module}:{node.lineno}: {ast.unparse(node)}"
                case ast.ImportFrom(module=str(source)) if source.startswith("textual._"):
                    assert any(owner.startswith(f"{source}:") for owner in PRIVATE), f"{module}: {source}"


@pytest.mark.parametrize("owner", PRIVATE)
def test_what_is_listed_is_in_the_installed_release_and_is_used(owner: str) -> None:
    theirs = resolve_name(owner)
    assert PRIVATE[owner] <= names(written(theirs), read=False), "it has left the release"
    attributes = {
        node.attr for tree in modules().values() for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    }
    assert PRIVATE[owner] <= attributes | inherited().get(theirs, set()), "nobody uses it any more"
