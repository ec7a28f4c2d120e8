"""Every command, once: slash commands, the palette, the key bindings, the hints, the help and its document are made
from this list. What each does stands on its class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from tui_agent.frontend.commands import choosing, lending, panes, rewind, running, sessions, showing, tabs
from tui_agent.frontend.commands.command import Command, Completion, ReplayKey, key_label, keys_in_force

AnyCommand = Command[Any]
ValuesOf = Callable[[AnyCommand], Sequence[str]]

BY_NAME: dict[str, AnyCommand] = {
    command.name: command
    for command in (
        showing.Help(),
        running.Auto(),
        running.Pause(),
        running.Step(),
        running.Interrupt(),
        running.SkipWait(),
        running.Stop(),
        choosing.Policy(),
        choosing.Model(),
        choosing.Login(),
        choosing.Profile(),
        choosing.Approve(),
        running.Note(),
        choosing.Keys(),
        choosing.Settings(),
        choosing.Permissions(),
        lending.Skills(),
        showing.Context(),
        running.Compact(),
        choosing.Breaker(),
        lending.Playbook(),
        lending.Background(),
        lending.Mcp(),
        running.Unqueue(),
        running.Queue(),
        running.Image(),
        panes.Theme(),
        panes.Panes(),
        panes.View(),
        showing.Why(),
        showing.Plan(),
        panes.NextPane(),
        panes.Jump(),
        panes.Find(),
        showing.History(),
        showing.Editor(),
        choosing.Vim(),
        tabs.New(),
        tabs.Clear(),
        tabs.Tabs(),
        tabs.Tab(),
        tabs.NextTab(),
        tabs.Close(),
        tabs.Inbox(),
        showing.Status(),
        showing.Cost(),
        showing.Diff(),
        sessions.Title(),
        sessions.Sessions(),
        sessions.Fork(),
        rewind.Rewind(),
        rewind.Undo(),
        rewind.Redo(),
        sessions.Export(),
        showing.Copy(),
        showing.Suspend(),
        tabs.Quit(),
    )
}
"""In the order of lists."""

    text: str
    """Ends with a space where an argument must follow."""
    label: str
    help: str


@dataclass(frozen=True)
class Command:
    """One thing that the operator can ask for."""

    name: str
    help: str
    argument: str = ""
    """How the argument is called in the help; in brackets where it may be left out."""
    values: tuple[str, ...] = ()
    """What the argument can be; where it depends on the session, `session_commands.values_of` knows."""
    key: str = ""
    """Textual's name of the key; shown by `key_label`."""
    replay: bool = False
    """Also makes sense over a saved session."""
    slash: bool = True
    """Can be written in the prompt; else it is a key's alone, of the replay."""

    @property
    def pressed(self) -> str:
        """The key that is in force; empty: none."""
        return _in_force.get(self.name, self.key)

    @property
    def needs_argument(self) -> bool:
        """Without an argument the command means nothing."""
        return bool(self.argument) and not self.argument.startswith("[")

    @property
    def title(self) -> str:
        """How it is called where keys are listed."""
        return f"/{self.name}" if self.slash else self.name

    @property
    def usage(self) -> str:
        """`/name ARGUMENT`."""
        return f"/{self.name} {self.argument}".rstrip()


ValuesOf = Callable[[Command], Sequence[str]]

COMMANDS: tuple[Command, ...] = (
    Command("help", "Keys, commands and what each pane means", key="f1", replay=True),
    Command("auto", "Go on by itself", key="f5"),
    Command("pause", "Pause after this step", key="f6"),
    Command("step", "Run one step, then wait", key="f10"),
    Command(
        "interrupt",
        "Interrupt the call or tool that runs; the run pauses, nothing is lost",
        key="escape",
    ),
    Command(
        "skip-wait",
        "Wait no longer for a server that is away or busy: call the model again now",
    ),
    Command(
        "card",
        "Go to the card that waits, also to one in another tab; without one, wait no longer for the model",
        key="f8",
        replay=True,
    ),
    Command("stop", "End the run with a partial answer"),
    Command("policy", "Recovery policy of the next run", "NAME", POLICIES),
    Command(
        "model",
        "Model of the next call: its litellm name, a profile or an alias; alone: choose one",
        "[NAME]",
    ),
    Command(
        "login",
        "Give a provider's key, kept in the keyring of this system: the next call's provider, or the one named; "
        "`--forget` removes it",
        "[PROVIDER|VARIABLE] [--forget]",
    ),
    Command("profile", "Model profile of the next call", "NAME"),
    Command(
        "approve",
        "What asks you first: plan (edits are refused), ask (writes and commands), writes (commands only), all "
        "(nothing); alone, or Shift+Tab in the prompt: the next of them",
        "[MODE]",
        APPROVALS,
    ),
    Command(
        "note",
        "Edit the recovery note before it is sent; with a text: replace it; `drop`: send none",
        "[TEXT|drop]",
        key="f4",
    ),
    Command("keys", "All actions with their keys; press another key for one"),
    Command(
        "settings", "Every setting and where its value comes from; change it in your own file", key="f12"
    ),
    Command(
        "permissions",
        "Permission rules: try them, add, change, take back; `allow|ask|deny RULE [session|workspace|always]` makes "
        "one, `remove N` takes one back",
        "[allow|ask|deny RULE [SCOPE]|remove N]",
        ("allow", "ask", "deny", "remove"),
    ),
    Command("skills", "The skills that the agent can read; with a name: ask for that one", "[NAME]"),
    Command("context", "What fills the model's context window, by kind", replay=True),
    Command(
        "compact",
        "Replace the older part of the conversation by a summary; with a text: what it should hold",
        "[TEXT]",
    ),
    Command("breaker", "Open or close a tool's circuit breaker by hand", "TOOL open|close"),
    Command(
        "playbook",
        "What helped against failures in earlier runs; `forget ID|all` forgets, `edit ID WORDS` puts your own words",
        "[forget ID|all|edit ID WORDS]",
        ("forget", "edit"),
    ),
    Command("background", "Commands that run in the background; `stop ID` ends one", "[stop ID]"),
    Command(
        "mcp",
        "MCP servers: how they stand; `trust NAME` starts one of this workspace, `reconnect NAME` tries again now",
        "[trust|reconnect NAME]",
    ),
    Command("unqueue", "Take the newest queued message back into the prompt"),
    Command("queue", "Messages that wait: edit, drop, or send now (Up in an empty prompt)"),
    Command("theme", "Change the colours; alone: look at all themes and keep one", "[NAME]", replay=True),
    Command(
        "panes",
        "Recovery panes: line (the strip alone), auto (beside the conversation, slim until something fails), wide "
        "(45%: so wide), full (the whole screen), reset (their own sizes); alone: the next form",
        "[FORM]",
        ("line", "auto", "wide", "full", "reset"),
        key="f2",
        replay=True,
    ),
    Command(
        "view",
        "How much of a call is shown: compact (a line each, no rules between steps), normal (a line each, edits with "
        "their changes), full (with output); alone: the next. Remembered",
        "[DENSITY]",
        ("compact", "normal", "full"),
        replay=True,
    ),
    Command(
        "why",
        "Why: what happened, what was counted, what the model read, the rule, what comes next",
        key="f9",
        replay=True,
    ),
    Command("plan", "Open or close the model's plan", key="f7", replay=True),
    Command("next-pane", "Go to the next recovery pane", key="f3", replay=True),
    Command("jump", "Jump to a pane", "[PANE]", key="ctrl+o", replay=True),
    Command(
        "find",
        "Find a text in the conversation; Enter goes there, then n and N from match to match",
        "[TEXT]",
        key="ctrl+f",
        replay=True,
    ),
    Command("history", "Look through earlier prompts", key="ctrl+r"),
    Command("editor", "Write the prompt in your editor ($VISUAL, $EDITOR)", key="ctrl+g"),
    Command(
        "vim",
        "Vim keys in the prompt, for this session; `vim = true` in config.toml keeps them",
        "[on|off]",
        ("on", "off"),
    ),
    Command("new", "Start a session in a tab of its own; with a task: at once", "[TASK]", key="ctrl+t"),
    Command("clear", "Start a new session in this one's place; this one is kept"),
    Command("tabs", "The sessions that are open: choose one", replay=True),
    Command("tab", "Go to a tab by its number", "N", replay=True),
    Command("next-tab", "Go to the next tab", key="ctrl+n", replay=True),
    Command("close", "Close this tab; its session is kept", replay=True),
    Command("inbox", "Everything that waits for you, in all tabs", key="ctrl+l", replay=True),
    Command("status", "Session, model, policy, approvals, what was used", replay=True),
    Command("cost", "Tokens and money of this run and of the session", replay=True),
    Command("diff", "All changes of this run, file by file", replay=True),
    Command("title", "Name this session", "TITLE"),
    Command("sessions", "Look through saved sessions", replay=True),
    Command(
        "fork",
        "Start a new session from here: what if the policy, model, answer or note were different",
        replay=True,
    ),
    Command(
        "rewind",
        "Go back: conversation, files or both; shows what would change. `undo` takes the newest one back",
        "[undo]",
        ("undo",),
    ),
    Command(
        "undo", "Take back what your last message led to: conversation and files; shows what would change"
    ),
    Command("redo", "Take the newest /undo or /rewind back"),
    Command(
        "export",
        "Write the session to a file, in the form that is named (markdown, html, …)",
        "[FORMAT] [FILE]",
        replay=True,
    ),
    Command("copy", "Copy the newest reply to the clipboard", replay=True),
    Command("suspend", "Back to the shell for a while; fg returns here", key="ctrl+z", replay=True),
    Command("quit", "Leave; the session is kept", key="ctrl+q", replay=True),
)

BY_NAME = {command.name: command for command in COMMANDS}
REPLAY_ACTIONS = (
    ReplayKey("replay-play", "Play, or pause", "space"),
    ReplayKey("replay-error", "Next error; with Shift the one before", "e"),
    ReplayKey("replay-verdict", "Next verdict; with Shift the one before", "v"),
    ReplayKey("replay-escalation", "Next question; with Shift the one before", "x"),
    ReplayKey("replay-slower", "Slower", "left_square_bracket"),
    ReplayKey("replay-faster", "Faster", "right_square_bracket"),
    ReplayKey("replay-fork", "Fork from here", "f"),
)
BACKWARDS = ("replay-error-back", "replay-verdict-back", "replay-escalation-back")
"""Bindings of the replay that have the key of their action with Shift."""
BINDABLE = (*(command for command in COMMANDS if not command.needs_argument), *REPLAY_ACTIONS)
"""The effects that a key can have."""


def use_keys(chosen: Mapping[str, str]) -> list[str]:
    """Let commands have these keys, "" for none; a default key that was given away is free. What is wrong, in words."""
    notices = []
    taken: dict[str, str] = {}
    for name, key in chosen.items():
        if name not in {command.name for command in BINDABLE}:
            notices.append(_no_action(name))
        elif key in taken:
            notices.append(
                f"[keys] gives {key_label(key)} to {taken[key]} and to {name}; {taken[key]} has it."
            )
        elif key:
            taken[key] = name
    keys_in_force.clear()
    for command in (*COMMANDS, *REPLAY_ACTIONS):
        given = command.name in chosen
        mine = next((key for key, name in taken.items() if name == command.name), "")
        free = "" if command.key in taken else command.key
        keys_in_force[command.name] = mine if given else free
    return notices


def _no_action(name: str) -> str:
    near = get_close_matches(name, [command.name for command in BINDABLE], n=1, cutoff=0.4)
    return f"[keys]: there is no action {name} that a key can have{f'; did you mean {near[0]}?' if near else '.'}"


def with_shift(key: str) -> str:
    """The keys of Textual that are a letter with Shift; "" for what is no letter."""
    return f"{key.upper()},shift+{key}" if len(key) == 1 and key.isalpha() else ""


def shown_key(name: str) -> str:
    """Give the key of a command as it is written on the screen; without one, its slash command."""
    return BY_NAME[name].shown


def suggestions(
    typed: str, values_of: ValuesOf, offered: Iterable[AnyCommand] = COMMANDS
) -> list[Completion]:
    """Completions of `typed`: commands of those that are offered while the name is open, values after it."""
    name, space, argument = typed.removeprefix("/").partition(" ")
    if not space:
        begins = [command for command in offered if command.name.startswith(name.lower())]
        within = [command for command in offered if name.lower() in command.name and command not in begins]
        return [_of_command(command) for command in (*begins, *within)]
    command = BY_NAME.get(name.lower())
    if command is None:
        return []
    values = values_of(command)
    if argument in values:
        return []
    fitting = [value for value in values if argument.lower() in value.lower()]
    return [Completion(f"/{command.name} {value}", value, "") for value in fitting]


def _of_command(command: AnyCommand) -> Completion:
    text = f"/{command.name} " if command.needs_argument else f"/{command.name}"
    key = f"  ({key_label(command.pressed)})" if command.pressed else ""
    return Completion(text, command.usage, command.help + key)
