"""`agent-tui --completions SHELL`: a script by which a shell completes commands, options and values.

It is made from the parsers themselves; a word that is none of theirs is completed as a file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tui_agent.cli import COMMANDS, command_module

SHELLS = ("bash", "zsh", "fish")
HOW = {
    "bash": "agent-tui --completions bash > ~/.local/share/bash-completion/completions/agent-tui",
    "zsh": 'agent-tui --completions zsh > "${fpath[1]}/_agent-tui"',
    "fish": "agent-tui --completions fish > ~/.config/fish/completions/agent-tui.fish",
}


class Option(NamedTuple):
    """An option, whether a value follows it, what the value can be, and its help in a line."""

    name: str
    takes_value: bool
    values: tuple[str, ...]
    help: str


def options_of(command: str) -> list[Option]:
    """Give the options of a command; of the console for ""."""
    parser = command_module(command or "console").parser()
    return [
        Option(
            name,
            action.nargs != 0,
            _values_of(action),
            " ".join((action.help or "").split()),
        )
        for action in parser._actions
        for name in action.option_strings
        if name.startswith("--") and action.help != argparse.SUPPRESS
    ]


def _values_of(action: argparse.Action) -> tuple[str, ...]:
    values: Any = action.choices or getattr(action.type, "allowed", ())
    return tuple(values)


def verbs_of(command: str) -> tuple[str, ...]:
    """Give the first words that a command takes, as far as it has names for them."""
    module = command_module(command)
    verbs: Iterable[str] = getattr(module, "VERBS", ()) or getattr(module, "_VERBS", ())
    positionals = (action for action in module.parser()._actions if not action.option_strings)
    named: tuple[str, ...] = next((getattr(each.type, "allowed", ()) for each in positionals), ())
    return tuple(verbs) or named


def script(shell: str) -> str:
    """Give the script for a shell (`SHELLS`)."""
    options = {command: options_of(command) for command in ("", *COMMANDS)}
    verbs = {command: verbs_of(command) for command in COMMANDS}
    lines = {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](options, verbs)
    return "\n".join([*lines, ""])


Options = Mapping[str, list[Option]]
Verbs = Mapping[str, tuple[str, ...]]


def _values(options: Options) -> dict[str, tuple[str, ...]]:
    """Give the options with known values, each with those that it has in any command."""
    found: dict[str, tuple[str, ...]] = {}
    for each in (each for listed in options.values() for each in listed if each.values):
        found[each.name] = tuple(dict.fromkeys((*found.get(each.name, ()), *each.values)))
    return found


def _bash(options: Options, verbs: Verbs) -> Iterator[str]:
    takes = sorted({each.name for listed in options.values() for each in listed if each.takes_value})
    yield f"# {HOW['bash']}"
    yield "_agent_tui() {"
    yield "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= words= i"
    yield "  for ((i = 1; i < COMP_CWORD; i++)); do"
    yield f"    case ${{COMP_WORDS[i]}} in {'|'.join(COMMANDS)}) command=${{COMP_WORDS[i]}}; break ;; esac"
    yield "  done"
    yield "  case $prev in"
    for name, values in sorted(_values(options).items()):
        yield f"    {name}) COMPREPLY=($(compgen -W '{' '.join(values)}' -- \"$cur\")); return ;;"
    yield f"    {'|'.join(name for name in takes if name not in _values(options))}) COMPREPLY=(); return ;;"
    yield "  esac"
    yield "  case $command in"
    for command, listed in options.items():
        words = [*(verbs[command] if command else COMMANDS), *(each.name for each in listed)]
        yield f"    '{command}') words='{' '.join(words)}' ;;"
    yield "  esac"
    yield '  COMPREPLY=($(compgen -W "$words" -- "$cur"))'
    yield "}"
    yield "complete -o default -F _agent_tui agent-tui"


def _zsh(options: Options, verbs: Verbs) -> Iterator[str]:
    yield "#compdef agent-tui"
    yield f"# {HOW['zsh']}"
    yield "local command= word"
    yield "local -a offered"
    yield "for word in ${words[2,CURRENT-1]}; do"
    yield f"  case $word in {'|'.join(COMMANDS)}) command=$word; break ;; esac"
    yield "done"
    yield "case ${words[CURRENT-1]} in"
    for name, values in sorted(_values(options).items()):
        yield f"  {name}) compadd -- {' '.join(values)}; return ;;"
    yield "esac"
    yield "case $command in"
    for command, listed in options.items():
        named = (
            [(verb, "") for verb in verbs[command]]
            if command
            else [(name, purpose) for name, purpose in COMMANDS.items()]
        )
        rows = [*named, *((each.name, each.help) for each in listed)]
        offered = " ".join(_quoted(f"{name.replace(':', '')}:{words}") for name, words in rows)
        yield f"  '{command}') offered=({offered}) ;;"
    yield "esac"
    yield "_describe -o agent-tui offered || _files"


def _fish(options: Options, verbs: Verbs) -> Iterator[str]:
    yield f"# {HOW['fish']}"
    first = "__agent_tui_first"
    yield f"function {first}; not __fish_seen_subcommand_from {' '.join(COMMANDS)}; end"
    for name, purpose in COMMANDS.items():
        yield f"complete -c agent-tui -n '{first}' -a {name} -d {_quoted(purpose)}"
    for command, listed in options.items():
        when = f"__fish_seen_subcommand_from {command}" if command else first
        for verb in verbs.get(command, ()):
            yield f"complete -c agent-tui -n '{when}' -a {verb}"
        for each in listed:
            value = f" -x -a {_quoted(' '.join(each.values))}" if each.values else ""
            value = value or (" -r" if each.takes_value else "")
            yield (
                f"complete -c agent-tui -n '{when}' -l {each.name.lstrip('-')}{value} -d {_quoted(each.help)}"
            )


def _quoted(text: str) -> str:
    """Quote for zsh and fish alike: neither ends a text at a typographic quote."""
    return "'" + text.replace("\\", "/").replace("'", "’") + "'"


def print_script(shell: str) -> int:
    """Print the script on standard output."""
    sys.stdout.write(script(shell))
    return 0
