"""The help screen: what is where on the screen, then keys and commands from the registry, and what each pane shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from tui_agent.console.panes import PlanLine, pane_facts
from tui_agent.console.screens.report import ReportScreen
from tui_agent.frontend.commands.command import key_label
from tui_agent.frontend.commands.registry import COMMANDS, REPLAY_ACTIONS, shown_key
from tui_agent.frontend.lines.glyphs import CALL_STATES, LEVELS, MODES, TIMELINE
from tui_agent.frontend.lines.incident import LADDER, MODEL_LADDER
from tui_agent.frontend.lines.styled import Line, Span, fit, pad, width_of, wrap

Rows = Sequence[tuple[str, str]]

_NAMED = re.compile(r"\{([a-z-]+)\}")

READABLE = 76
"""Cells in which a section can be read well; where there is room for two, they stand side by side."""

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
        "Opens over the conversation when you are needed: to allow a call, or to answer. F8 goes to it.",
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
PROMPT_KEYS: Rows = (
    ("Enter", "Send; while a run goes on the message is queued"),
    ("Shift+Enter ^J Alt+Enter", "New line"),
    ("Up Down", "Earlier texts, from the first or last line"),
    ("PgUp PgDn", "Read back and on in the conversation; End in an empty prompt goes to its end"),
    ("Alt+Up", "Take the newest queued message back"),
    (
        "Up",
        "In an empty prompt while messages wait: go to them; Enter edits, s sends all now, d drops, Esc leaves",
    ),
    (
        "s c",
        "Alone in the prompt while a failed model call waits, then Enter: skip the wait, cancel (pause the run)",
    ),
    ("@", "A file of the workspace by its letters; an image goes along, also by a pasted path"),
    ("!COMMAND", "Run a command of your own; the model reads what it printed with your next message"),
    (
        "/NAME",
        "A text of your own: commands/*.md beside config.toml, or .agent-tui/commands/*.md of a checkout",
    ),
    ("Tab", "Complete a command or a file; otherwise the next pane"),
    ("^_", "Undo what was typed"),
    ("^P", "Command palette"),
)
VIM_KEYS: Rows = (
    ("/vim", "Vim keys in the prompt; `vim = true` in config.toml keeps them"),
    ("Esc", "Normal mode; in normal mode what it does without Vim"),
    ("i a I A o O", "Insert mode; / : ! @ in an empty prompt begin a command or a name"),
    (
        "h j k l w b e W B E 0 ^ $ gg G f F t T ; ,",
        "Move, with a count before them; j and k also go to earlier and later texts",
    ),
    (
        "d c y > < gu gU g~",
        'Cut, change, copy, shift, set the case up to a motion, or of what iw a" i( ip … name; twice: whole lines',
    ),
    (
        "v V gv",
        "Select characters, lines, the same again: motions and text objects extend it, o goes to its other end",
    ),
    ("d c y p r ~ u U J > <", "With what is selected; . does it again with as much; Esc selects nothing"),
    ("x X s S D C Y", "Cut or change a character, the line, the rest of it; copy the line"),
    ("r ~ J . p P u ^R", "Replace, switch case, join lines, repeat, put in, undo, do again"),
)
CARD_KEYS: Rows = (
    ("F8, Enter", "Go to the card from an empty prompt; Esc goes back, and the question stays"),
    (
        "y a w g n e",
        "Approval: once, this session, for good here, for good everywhere, deny, edit the arguments",
    ),
    ("c", "Approval: what the lasting answers allow, from exactly this call to every call of the tool"),
    ("a shown key", "Marks its choice (▸), and Enter takes it; what is typed on makes all of it text"),
    ("y n", "Approval: at once, after a second in which nothing was typed and without a draft in the prompt"),
    ("Enter, Down or Tab", "Escalation: send the answer; go to the choices"),
    ("Left Right Enter", "Choose and take; a click does the same"),
    ("PgUp PgDn End", "Read on in a long card: what was not on the screen is not accepted"),
    ("^C", "Copy what is selected, else interrupt the run, else empty the prompt (Up brings it back)"),
    (
        "^S ^E ^_ Esc",
        "Edited arguments: take them, all as JSON, undo, leave the call as it was; a draft stays for the next time",
    ),
)
BOARD: Rows = (
    ("A row", "A run: the verdict of our policy or how it ended, its step, and the error ring."),
    (
        "fails",
        "How often the call that failed most has failed; ⊘: calls are not run until something changes.",
    ),
    ("chance", "That the next step succeeds, where it can be told."),
    ("asks", "Questions that wait for you."),
    ("Line below", "What the chosen run fails at, or how it ended."),
)
BOARD_KEYS: Rows = (
    ("Up Down PgUp PgDn Home End", "Choose a run"),
    ("Enter", "Its panes, in a tab; Esc there goes back to the board"),
    ("{inbox}", "All questions of all runs; Enter goes to the card"),
    (
        "s S",
        "Stop this run, all runs: they end as interrupted. Runs of others (`fleet watch`) are not touched",
    ),
    ("{quit}", "Leave: open runs stay as they are, and the same command goes on"),
)
TAB_KEYS: Rows = (
    ("{new}", "A session in a tab of its own, with its own run; /new TASK begins at once"),
    ("{next-tab} ^PgDn ^PgUp", "The next tab, the one before; Alt+1 to Alt+9 or a click: that one"),
    ("{inbox}", "The inbox: everything that waits for you in any tab; Enter goes to its card"),
    ("●", "The session needs you. Runs go on in tabs that are not shown"),
    ("/close", "Close this tab; {quit} closes all and prints how to resume each"),
)
PANE_KEYS: Rows = (
    (
        "< >",
        "More room for the panes at the side, for the conversation; dragging the edge between them does the same",
    ),
    (
        "+ -",
        "More rows for the recovery pane that has the keys, fewer; dragging its upper edge does the same",
    ),
    ("/panes 45%", "This much of the width for the side; /panes reset takes all sizes back"),
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
        ("Left Right", "One event back, on"),
        ("Shift+Left Shift+Right", "One step back, on"),
        ("Home End", "Beginning, end"),
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
    keys: list[tuple[str, Rows]] = [("Board", BOARD_KEYS) if board else ("Replay", replay_rows())]
    commands: list[tuple[str, Rows]] = [("Commands and their keys", command_rows(replay=replay))]
    prompt: list[tuple[str, Rows]] = [("Prompt", PROMPT_KEYS), ("Vim keys", VIM_KEYS), ("Cards", CARD_KEYS)]
    areas = BOARD if board else [row for row in SCREEN if not (replay and row[0] in OF_A_RUN)]
    shown = [
        *([("This pane", (here,))] if here else []),
        ("The screen", areas),
        *(keys + commands if replay else commands + prompt),
        ("Tabs", TAB_KEYS),
        ("Room for the panes", PANE_KEYS),
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
    """Sections below each other, the later ones beside the first where there is room for both."""
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

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1", "dismiss(None)", "Back", show=False, priority=True, id="help"),
    ]

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
