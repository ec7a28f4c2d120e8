"""Keys are the operator's: any action's can be another one, but for those that no terminal sends or that texts need."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import Input

from tests.console.live_harness import live
from tests.console.real_session import real_live
from tui_agent import console
from tui_agent.config.errors import ConfigError
from tui_agent.config.keys import key_problem, written
from tui_agent.config.settings import Settings, load_settings, user_config_file
from tui_agent.console import panes
from tui_agent.console.screens.ask import LeaveScreen
from tui_agent.console.screens.help import HelpScreen, command_rows, sections
from tui_agent.console.screens.keys import KeyCapture, KeysScreen
from tui_agent.console.screens.report import ReportScreen
from tui_agent.core.events import ApprovalAsked, EscalationRaised
from tui_agent.frontend.commands.command import key_label
from tui_agent.frontend.commands.place_keys import PLACES
from tui_agent.frontend.commands.registry import BACKWARDS, BINDABLE, BY_NAME, shown_key, use_keys
from tui_agent.frontend.lines.approval import choices
from tui_agent.frontend.lines.escalation import choices_for


@pytest.fixture(autouse=True)
def default_keys() -> Iterator[None]:
    yield
    use_keys({})


@pytest.mark.parametrize(
    "key", ["F11", "ctrl+t", "alt+x", "shift+f5", "ctrl+alt+d", "shift+ctrl+f2", "escape"]
)
def test_function_keys_and_letters_with_ctrl_or_alt_can_be_had(key: str) -> None:
    assert key_problem(written(key)) == ""


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("ctrl+i", "Tab"), ("ctrl+m", "Enter"), ("ctrl+h", "Backspace"), ("shift+ctrl+x", "same for both"),
        ("ctrl+1", "not sent"), ("x", "what you type"), ("shift+a", "what you type"), ("f99", "no key f99"),
        ("enter", "texts"), ("up", "moves"), ("ctrl+c", "interrupts"), ("", "no key"),
    ],
)  # fmt: skip
def test_keys_that_cannot_be_had_are_refused_with_the_reason(key: str, why: str) -> None:
    assert why in key_problem(written(key) if key else key)


def test_chosen_keys_outweigh_defaults_and_what_is_wrong_is_said() -> None:
    assert use_keys({"diff": "f5", "help": "", "step": "alt+s"}) == []
    assert [shown_key(name) for name in ("diff", "auto", "help", "step", "pause")] == [
        "F5",
        "/auto",
        "/help",
        "alt+s",
        "F6",
    ]
    remarks = use_keys({"diff": "f11", "plan": "f11", "diif": "f12", "profile": "f9"})
    assert [BY_NAME[name].pressed for name in ("diff", "plan")] == ["f11", ""]
    assert "diff has it" in remarks[0]
    assert "did you mean diff?" in remarks[1]
    assert "no action profile" in remarks[2]
    use_keys({})
    assert all(command.pressed == command.key for command in BINDABLE)
    pressed = [command.key for command in BINDABLE if command.key]
    assert len(pressed) == len(set(pressed))
    assert all(not key_problem(command.key, command.name) for command in BINDABLE if command.key)


def test_the_help_names_no_key_that_an_action_had_by_default() -> None:
    moved = [command for command in BINDABLE if command.key[:1] == "f" or command.key.startswith("ctrl+")]
    use_keys({command.name: f"alt+shift+f{place}" for place, command in enumerate(moved, 1)})
    said = [f"{left} {right}" for title, rows in sections() if title != "Vim keys" for left, right in rows]
    words = set(re.findall(r"\^[A-Z]\b|\bF\d+\b", "\n".join(said)))
    assert not words & {key_label(command.key) for command in moved}
    assert any(BY_NAME["note"].pressed in row and "edits it" in row for row in said)


async def test_the_key_that_asks_before_leaving_leaves_when_it_is_pressed_again() -> None:
    async with live() as console:
        console.app.use_keys(Settings(keys={"quit": "f11"}))
        console.session.start()
        await console.until(lambda: "Message for the next step" in console.shown())
        await console.press("f11")
        asked = await console.opens(LeaveScreen)
        left: list[bool | None] = []
        asked.dismiss = left.append
        await console.press("ctrl+q", "f11")
        assert left == [True]


@pytest.mark.parametrize(
    ("action", "key", "why"),
    [
        ("replay-error", "r", ""), ("replay-error", "f11", ""), ("replay-play", "space", ""), ("replay-fork", "7", ""),
        ("replay-error", "w", "panes"), ("replay-error", "enter", "texts"), ("replay-error", "left", "moves"),
        ("status", "n", "what you type"), ("status", "space", "texts"),
    ],
)  # fmt: skip
def test_a_key_of_the_replay_may_be_a_letter_that_its_panes_do_not_have(
    action: str, key: str, why: str
) -> None:
    problem = key_problem(written(key), action)
    assert (why in problem) if why else not problem


@pytest.mark.parametrize("pane", [panes.ConversationPane, *panes.RECOVERY_PANES])
def test_no_action_of_the_replay_takes_a_letter_of_a_pane(pane: type[Widget]) -> None:
    bindings = [binding for each in pane.__mro__ for binding in vars(each).get("BINDINGS", ())]
    letters = [key for binding in bindings for key in binding.key.split(",") if len(key) == 1]
    assert not [key for key in letters if not key_problem(written(key), "replay-error")]


def test_a_checkout_binds_no_keys_and_a_wrong_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('[keys]\nhelp = "ctrl+i"\n', "utf-8")
    (tmp_path / ".agent-tui.toml").write_text('[keys]\nquit = "f1"\n', "utf-8")
    with pytest.raises(ConfigError) as raised:
        load_settings({"workspace": tmp_path}, tmp_path / "own.toml", {})
    assert "terminals send the same for both" in raised.value.message
    assert "it decides what your keys do" in raised.value.message


async def test_an_action_gets_another_key_by_pressing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    async with real_live(tmp_path, [], size=(120, 30)) as console:
        await console.say("/keys")
        screen = await console.opens(KeysScreen)

        async def give(action: str, *keys: str) -> None:
            screen.query_one(Input).value = f"/{action} "
            await console.until(lambda: screen.list.chosen.name == action)
            await console.press("enter")
            await console.opens(KeyCapture)
            await console.press(*keys)

        await give("status", "ctrl+i")
        assert "reaches a program as Tab" in console.shown() or "is needed in texts" in console.shown()
        taken = {command.pressed for command in BINDABLE}
        free = next(key for key in (f"f{number}" for number in range(11, 25)) if key not in taken)
        await console.press(free)
        await console.opens(KeysScreen)
        await console.until(lambda: BY_NAME["status"].pressed == free)
        # What another action has is taken by pressing it twice; that one says so itself.
        await give("help", "f5")
        assert "F5 is the key of /auto" in console.shown()
        await console.press("f5")
        await console.opens(KeysScreen)
        await console.until(lambda: BY_NAME["help"].pressed == "f5")
        assert tomllib.loads(user_config_file().read_text())["keys"] == {"status": free, "help": "f5"}
        # Textual goes through the key map at every key that is typed.
        assert set(console.app._keymap) == {"status", "help", "auto"}
        await console.press("escape")

        assert "F5 help" in console.shown()
        assert "auto" not in console.shown().splitlines()[-1]
        assert any(left.startswith("F5") and "/help" in left for left, _ in command_rows())
        await console.press(free)
        await console.opens(ReportScreen)
        await console.press("escape")
        await console.press("f1")
        assert console.app.screen is console.screen
        await console.press("f5")
        await console.opens(HelpScreen)
        await console.press("f5")
        assert console.app.screen is console.screen

        # The default again, also for what had lost it.
        await console.say("/keys")
        screen = await console.opens(KeysScreen)
        screen.query_one(Input).value = "/help "
        await console.until(lambda: screen.list.chosen.name == "help")
        await console.press("ctrl+r")
        await console.until(lambda: (BY_NAME["help"].pressed, BY_NAME["auto"].pressed) == ("f1", "f5"))
        await console.press("escape", "f1")
        await console.opens(HelpScreen)


def _bindings() -> Iterator[tuple[str, Binding]]:
    """Every binding of every class of the console, with the class's name."""
    for module in pkgutil.walk_packages(console.__path__, f"{console.__name__}."):
        for name, kind in vars(importlib.import_module(module.name)).items():
            if isinstance(kind, type) and kind.__module__ == module.name:
                for binding in vars(kind).get("BINDINGS", ()):
                    yield name, binding


def test_every_key_of_the_console_is_a_command_or_stands_with_the_keys_of_its_place() -> None:
    commands = {command.name: command.key for command in BINDABLE}
    places = {f"{place}.{key.name}": key for place, (_, keys) in PLACES.items() for key in keys}
    bound = list(_bindings())
    for name, binding in bound:
        if key := places.get(binding.id or ""):
            assert (binding.key, binding.action, binding.priority) == (key.keys, key.does, key.first), name
        elif binding.id not in BACKWARDS:
            assert binding.key == commands[binding.id] or binding.key.startswith("none_"), (name, binding)
    unbound = [
        each for each, key in places.items() if key.does and each not in {binding.id for _, binding in bound}
    ]
    assert unbound == []


def test_no_place_has_one_key_for_two_things_at_once() -> None:
    for place, (_, keys) in PLACES.items():
        names = [name for key in keys if key.does for name in key.keys.split(",")]
        assert len(set(names)) == len(names), place
        assert len({key.name for key in keys}) == len(keys), place
        assert all(key.shown and key.help for key in keys), place


def test_the_letters_of_cards_stand_with_the_keys_of_cards() -> None:
    sources = ("ask_operator", "budget", "steps", "plan", "model", "attempts", "ring")
    asked = [
        EscalationRaised(id="e1", source=source, question="?", options=("one",), until=9.0)
        for source in sources
    ]
    letters = {choice.key for each in asked for choice in choices_for(each)}
    approval = ApprovalAsked(id="a1", call_id="c1", tool="bash", input={}, others=(("bash(x)",),))
    letters |= {choice.key for choice in choices(approval, ("bash(make)",))}
    known = {name for key in PLACES["card"].keys for name in key.keys.split(",")}
    assert letters - known == set()


def test_the_keys_of_the_document_are_current() -> None:
    script = Path(__file__).parents[2] / "docs" / "write_keys.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


async def test_the_key_to_the_card_is_the_operators_too() -> None:
    async with live() as driven:
        driven.app.use_keys(Settings(keys={"card": "f11"}))
        driven.session.start()
        driven.screen.prompt.put("half a")
        driven.ask()
        await driven.until(lambda: "F11 answer" in driven.shown())
        await driven.press("f8")
        assert not driven.in_card
        await driven.press("f11")
        await driven.until(lambda: driven.in_card)
