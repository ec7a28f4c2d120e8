"""The help screen: the places on the screen, then keys and commands from the registry, and the content of
each pane.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import ClassVar

from textual import events
from textual.binding import BindingType

from tui_agent.console.looks.command_keys import closing
from tui_agent.console.panes import PlanLine, pane_facts
from tui_agent.console.screens.report import ReportScreen
from tui_agent.frontend.commands.command import key_label
from tui_agent.frontend.commands.place_keys import key_rows
from tui_agent.frontend.commands.registry import COMMANDS, REPLAY_ACTIONS, shown_key
from tui_agent.frontend.lines.glyphs import CALL_STATES, LEVELS, MODES, TIMELINE
from tui_agent.frontend.lines.incident import LADDER, MODEL_LADDER
from tui_agent.frontend.lines.styled import Line, Span, fit, pad, width_of, wrap

Rows = Sequence[tuple[str, str]]

_NAMED = re.compile(r"\{([a-z-]+)\}")

READABLE = 76
"""Cells in which a section can be read well; if there is room for two, they stand side by side."""

GAP = " " * 3

WIDE = 170
"""Columns of the terminal from which on the frame has that room."""

# `{name}` stands for the key of the command of that name, as it is in force.
SCREEN: Rows = (
    (
        "Conversation",
        "Your task, what the model says, and a line for each tool call: ✓ succeeded, ✗ failed. The newest stands last.",
    ),
    (
        "Recovery panes",
        "What failed, how often, and what the model is told of it: at the side where there is room, else with {panes}.",
    ),
    (
        "Card",
        "Opens over the conversation when you are needed: to allow a call, or to answer. {card} goes to it.",
    ),
    (
        "Line below",
        "What fails now, and what happens if it fails again. One calm line says that all is well.",
    ),
    (
        "Prompt",
        "Your task, or a message for the next step. / lists commands, @ files; ! runs a command of yours.",
    ),
    (
        "Status line",
        "AUTO goes on by itself, STEP and PAUSED wait for you; then step, model, policy, tokens, cost and time.",
    ),
    ("Last line", "The keys that matter now; a click presses them."),
)
"""From top to bottom."""
OF_A_RUN = frozenset({"Card", "Prompt"})
"""Areas that a replay lacks."""
BOARD: Rows = (
    ("A row", "A run: the verdict of our policy or how it ended, its step, and the error ring."),
    (
        "fails",
        "How often the call that failed most has failed; ⊘: calls are not run until something changes.",
    ),
    ("conf.", "The confidence, from 0 to 1."),
    ("asks", "Questions that wait for you."),
    ("Line below", "What the chosen run fails at, or how it ended."),
)
OF_ALL_RUNS: Rows = (
    ("{inbox}", "All questions of all runs; Enter goes to the card"),
    ("{quit}", "Leave: open runs stay as they are, and the same command goes on"),
)
"""Commands that mean something else on the board."""
TAB_KEYS: Rows = (
    ("{new}", "A session in a tab of its own, with its own run; /new TASK begins at once"),
    ("{next-tab}", "The next tab; a click goes to any"),
    ("{inbox}", "The inbox: everything that waits for you in any tab; Enter goes to its card"),
    ("●", "The session needs you. Runs go on in tabs that are not shown"),
    ("/close", "Close this tab; {quit} closes all and prints how to resume each"),
)


def panes_explained() -> dict[str, tuple[str, str]]:
    """Say of each pane what it shows, by the id of its widget."""
    return {facts.name: (facts.title, facts.help) for facts in (*pane_facts(), PlanLine.facts)}


STRIP: Rows = (
    (
        "Incident strip",
        (
            "What fails now: the call and why; each failure with its step; the ladder. Others: further calls that "
            "failed and were never recovered, though their tools may work for other calls."
        ),
    ),
    *dict.fromkeys((rung.word, rung.happens) for rung in (*LADDER.values(), *MODEL_LADDER.values())),
)
BADGES: Rows = (
    ("CONTINUE", "Go on as planned."),
    ("GUIDE", "Something failed: the model is told what to do about it."),
    ("DOUBTFUL", "Nothing is asked yet, but runs in this state seldom went on well."),
    ("PIVOT", "No progress, and errors repeat: the model is asked for another approach."),
    ("BLOCKED", "A call failed too often and is not run until you allow it, or something has changed."),
    ("ASK", "You are asked."),
    ("WAITING", "An approval or a server's question waits for you."),
    ("DEGRADE", "Too much is unresolved: the run ends with a partial answer."),
    ("STOP", "The run is stopped."),
    ("CONCLUDE", "Nothing is open and confidence is high: the model is asked for its answer."),
)
SIGNS: Rows = tuple(
    (sign.glyph, meaning)
    for table in (CALL_STATES, LEVELS, TIMELINE, MODES)
    for name, sign in table.items()
    if (meaning := sign.word or name)
)


def replay_rows() -> Rows:
    """The keys of the replay, those that are in force."""
    return [
        *key_rows("replay"),
        *(
            (key_label(action.pressed), action.help.removeprefix("Replay: "))
            for action in REPLAY_ACTIONS
            if action.pressed
        ),
    ]


def sections(focused: str = "", *, replay: bool = False, board: bool = False) -> list[tuple[str, Rows]]:
    """All sections, that of the pane with this id first, else the screen's; in a replay, and on the board of many runs,
    those that are of use there, their keys before the others.
    """
    explained = panes_explained()
    here = explained.pop(focused, None)
    others = list(explained.values())
    own: Rows = [*key_rows("board"), *OF_ALL_RUNS] if board else replay_rows()
    keys: list[tuple[str, Rows]] = [("Board" if board else "Replay", own)]
    commands: list[tuple[str, Rows]] = [("Commands and their keys", command_rows(replay=replay))]
    prompt: list[tuple[str, Rows]] = [
        ("Prompt", key_rows("prompt", "text", "live")),
        ("Vim keys", key_rows("vim")),
        ("Cards", key_rows("card", "note-card", "arguments")),
        ("Messages that wait", key_rows("queue")),
    ]
    areas = BOARD if board else [row for row in SCREEN if not (replay and row[0] in OF_A_RUN)]
    shown = [
        *([("This pane", (here,))] if here else []),
        ("The screen", areas),
        *(keys + commands if replay else commands + prompt),
        ("Tabs", [*TAB_KEYS, *key_rows("anywhere")]),
        ("Keys of every pane", key_rows("pane")),
        ("Keys of the conversation", key_rows("conversation")),
        ("Keys of the timeline", key_rows("timeline")),
        ("Panes", others),
        ("The strip and its ladder", STRIP),
        ("Where the run stands", BADGES),
        ("Signs", SIGNS),
        *([] if replay else keys),
    ]
    return [(title, [(_keyed(left), _keyed(right)) for left, right in rows]) for title, rows in shown]


def _keyed(text: str) -> str:
    """The text with the keys that are in force."""
    return _NAMED.sub(lambda named: shown_key(named[1]), text)


def help_lines(shown: Sequence[tuple[str, Rows]], width: int) -> list[Line]:
    """Sections below each other, the later ones beside the first if there is room for both."""
    if width < 2 * READABLE + len(GAP):
        return section_lines(shown, width)
    half = (width - len(GAP)) // 2
    columns = [
        [section_lines(part, half) for part in (shown[:place], shown[place:])]
        for place in range(1, len(shown))
    ]
    left, right = min(columns, key=lambda sides: max(map(len, sides)))
    return [
        (*one, Span(" " * (half - width_of(one)) + GAP), *other)
        for one, other in zip_longest(left, right, fillvalue=())
    ]


def section_lines(shown: Sequence[tuple[str, Rows]], width: int) -> list[Line]:
    """Sections in two columns: the key, and its meaning wrapped."""
    left = min(30, width // 3)
    lines: list[Line] = []
    for title, rows in shown:
        lines += [(Span(title, "accent bold"),)]
        for key, meaning in rows:
            meant = wrap(meaning, width - left)
            short = len(key) < left
            head = pad(key, left) if short else fit(key, width)
            lines.append((Span(head, "bold"), Span(meant.pop(0) if short else "")))
            lines += [(Span(" " * left), Span(line)) for line in meant]
        lines.append(())
    return lines[:-1]


class HelpScreen(ReportScreen):
    """Closed by its own key too."""

    DEFAULT_CSS = """
    HelpScreen {
        & ReportPane { width: 110; }
        &.-wide ReportPane { width: 180; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [closing("help")]

    def __init__(self, focused: str = "", *, replay: bool = False, board: bool = False) -> None:
        """`focused`: id of the pane that is explained first."""
        shown = sections(focused, replay=replay, board=board)
        super().__init__("Help", lambda width: help_lines(shown, width))

    def on_resize(self, event: events.Resize) -> None:
        """Two sections side by side need a wider frame."""
        self.set_class(event.size.width >= WIDE, "-wide")


def command_rows(*, replay: bool = False) -> Rows:
    """All commands; for a replay those that make sense there."""
    rows = []
    for command in COMMANDS:
        if replay and not command.replay:
            continue
        key = f"{key_label(command.pressed)} " if command.pressed else ""
        rows.append((f"{key:<4}{command.usage}", command.help))
    return rows
