"""The keys of every place of the console that has some of its own (`keys` says what a key is)."""

from __future__ import annotations

from tui_agent.frontend.commands.keys import Key, Place


def _text(name: str, label: str, says: str) -> Key:
    """Describe keys that are letters of a language of their own, or any of several."""
    return Key(name, "", "", says, label=label)


def _read(name: str, keys: str, says: str) -> Key:
    """Describe keys that the place reads itself."""
    return Key(name, keys, "", says)


_READ = (
    Key("back", "pageup", "read(-1)", "Read back", True),
    Key("on", "pagedown", "read(1)", "Read on", True),
)

PLACES: dict[str, Place] = {
    "anywhere": Place(
        "Tabs and the terminal",
        (
            *(Key(f"tab-{n}", f"alt+{n}", f"command('tab', '{n}')", "That tab", True) for n in range(1, 10)),
            Key("next-tab", "ctrl+pagedown", "command('next-tab')", "The next tab", True),
            Key("tab-before", "ctrl+pageup", "command('next-tab', '-1')", "The tab before", True),
        ),
    ),
    "live": Place(
        "A session",
        (
            Key(
                "copy-or-interrupt",
                "ctrl+c",
                "copy_or_interrupt",
                "Copy what is selected, else interrupt the run, else empty the prompt",
                True,
            ),
            _read("palette", "ctrl+p", "Command palette"),
        ),
    ),
    "prompt": Place(
        "Prompt",
        (
            _read("send", "enter", "Send; while a run goes on the message is queued"),
            _read("new-line", "shift+enter,ctrl+j,alt+enter", "New line"),
            _read("earlier", "up,down", "Earlier texts, from the first or last line"),
            _read(
                "read",
                "pageup,pagedown",
                "Read back and on in the conversation; End in an empty prompt goes to its end",
            ),
            Key(
                "unqueue", "alt+up", "screen.command('unqueue')", "Take the newest queued message back", True
            ),
            _read("queue", "up", "In an empty prompt while messages wait: go to them"),
            _read(
                "wait",
                "s,c",
                "Alone in the prompt while a failed model call waits, then Enter: skip the wait, or pause the run",
            ),
            _read(
                "file",
                "@",
                "A file of the workspace by its letters; an image goes along, also by a pasted path",
            ),
            Key(
                "own-command",
                "!",
                "",
                "Run a command of your own; the model reads what it printed with your next message",
                label="!COMMAND",
            ),
            Key(
                "command",
                "/",
                "",
                "A command, or a text of your own: commands/*.md beside config.toml, or .agent-tui/commands/*.md of a "
                "checkout",
                label="/NAME",
            ),
            Key("complete", "tab", "complete", "Complete a command or a file; otherwise the next pane"),
            Key("approve", "shift+tab", "screen.command('approve')", "The next approval mode"),
        ),
    ),
    "text": Place("Text fields", (Key("undo", "ctrl+underscore", "undo", "Undo what was typed"),)),
    "vim": Place(
        "Vim keys",
        (
            _read("on", "/vim", "Vim keys in the prompt; `vim = true` in config.toml keeps them"),
            _read("normal", "escape", "Normal mode; in normal mode what it does without Vim"),
            _text(
                "insert", "i a I A o O", "Insert mode; / : ! @ in an empty prompt begin a command or a name"
            ),
            _text(
                "move",
                "h j k l w b e W B E 0 ^ $ gg G f F t T ; ,",
                "Move, with a count before them; j and k also go to earlier and later texts",
            ),
            _text(
                "change",
                "d c y > < gu gU g~",
                'Cut, change, copy, shift, set the case up to a motion, or of what iw a" i( ip … name; twice: whole '
                "lines",
            ),
            _text(
                "select",
                "v V gv",
                "Select characters, lines, the same again: motions and text objects extend it, o goes to its other end",
            ),
            _text(
                "selected",
                "d c y p r ~ u U J > <",
                "With what is selected; . does it again with as much; Esc selects nothing",
            ),
            _text(
                "characters",
                "x X s S D C Y",
                "Cut or change a character, the line, the rest of it; copy the line",
            ),
            _text(
                "repeat",
                "r ~ J . p P u ^R",
                "Replace, switch case, join lines, repeat, put in, undo, do again",
            ),
        ),
    ),
    "card": Place(
        "Cards",
        (
            _read(
                "enter",
                "enter",
                "From an empty prompt: go to the card; Esc goes back, and the question stays",
            ),
            _read(
                "approval",
                "y,a,w,g,n,e",
                "Approval: once, this session, for good here, for good everywhere, deny, edit the arguments",
            ),
            _read(
                "cover",
                "c",
                "Approval: what the lasting answers allow, from exactly this call to every call of the tool",
            ),
            _read("small-print", "?", "Approval: the small print, what the lasting answers cover"),
            Key(
                "escalation",
                "1,2,3,4,5,6,7,8,9,r,e,s,f,u,p,x,c,n,w,t",
                "",
                "Question: the choices that it shows, each with its number or letter",
                label="1 … 9, a letter",
            ),
            _read("watched", "w,d", "Question of another agent's session: why, not now"),
            _text(
                "mark",
                "a shown key",
                "Marks its choice (▸), and Enter takes it; what is typed on makes all of it text",
            ),
            _read(
                "at-once",
                "y,n",
                "Approval: at once, after a second in which nothing was typed and without a draft in the prompt",
            ),
            _read("send", "enter", "Question: send the answer"),
            _read("choices", "down,tab", "Question: go to the choices"),
            _read("choose", "left,right,enter", "Choose and take; a click does the same"),
            _read(
                "read",
                "pageup,pagedown,end",
                "Read on in a long card: what was not on the screen is not accepted",
            ),
        ),
    ),
    "note-card": Place(
        "A request that waits",
        (
            Key("keep", "ctrl+s", "keep", "Keep the note as it was edited", True),
            _read("drop", "backspace", "Send no note"),
        ),
    ),
    "arguments": Place(
        "Arguments that are edited",
        (
            Key("take", "ctrl+s", "accept", "Take the arguments", True),
            Key(
                "leave", "escape", "leave", "Leave the call as it was; a draft stays for the next time", True
            ),
            Key("json", "ctrl+e", "as_json", "All arguments as JSON", True),
        ),
    ),
    "queue": Place(
        "Messages that wait",
        (
            Key("up", "up", "move(-1)", "Up"),
            Key("down", "down", "move(1)", "Down"),
            Key("edit", "enter,e", "choose('edit')", "Edit it in the prompt"),
            Key("send", "s", "choose('send')", "Send all now"),
            Key("drop", "d,x,delete,backspace", "choose('drop')", "Drop it"),
            Key("leave", "escape", "leave", "Back to the prompt"),
        ),
    ),
    "pane": Place(
        "Every pane",
        (
            Key("why", "w", "why", "Why?"),
            Key("wider", "less_than_sign", "screen.widen_side(4)", "More room for the panes at the side"),
            Key("narrower", "greater_than_sign", "screen.widen_side(-4)", "More room for the conversation"),
            Key(
                "higher",
                "plus",
                "screen.heighten(1)",
                "More rows for this pane; its upper edge can be dragged, too",
            ),
            Key("lower", "minus", "screen.heighten(-1)", "Fewer rows for this pane"),
        ),
    ),
    "conversation": Place(
        "Conversation",
        (
            Key("before", "up,k", "move(-1)", "The block before"),
            Key("next", "down,j", "move(1)", "The next block"),
            Key("open", "enter,space", "open_block", "Open or fold the block"),
            Key("open-all", "o", "open_all", "Open all, or fold all"),
            Key("copy", "c", "copy_block", "Copy the block"),
            Key("skip-wait", "s", "skip_wait", "Wait no longer for the model"),
            Key("back", "backspace", "back", "Back to the timeline"),
            Key("page-up", "pageup", "page(-1)", "A page up"),
            Key("page-down", "pagedown", "page(1)", "A page down"),
            Key("match", "n", "next_match(1)", "The next match"),
            Key("match-before", "N", "next_match(-1)", "The match before"),
            Key("unmark", "escape", "unmark", "Mark no match"),
            Key("top", "home,g", "top", "The beginning"),
            Key("end", "end,G", "follow", "The end, and follow it"),
        ),
    ),
    "timeline": Place(
        "Timeline",
        (
            Key("up", "up,k", "move(-1)", "Up"),
            Key("down", "down,j", "move(1)", "Down"),
            Key("page-up", "pageup", "page(-1)", "A page up"),
            Key("page-down", "pagedown", "page(1)", "A page down"),
            Key("first", "home,g", "edge(0)", "The first line"),
            Key("last", "end,G", "edge(1)", "The last line"),
            Key("show", "enter", "select", "Show its place in the conversation"),
        ),
    ),
    "replay": Place(
        "Replay",
        (
            Key("event-back", "left", "event(-1)", "One event back", True),
            Key("event-on", "right", "event(1)", "One event on", True),
            Key("step-back", "shift+left", "stop_at('iteration', True)", "One step back", True),
            Key("step-on", "shift+right", "stop_at('iteration')", "One step on", True),
            Key("beginning", "home", "edge(0)", "The beginning", True),
            Key("end", "end", "edge(1)", "The end", True),
        ),
    ),
    "followed": Place("A run of another process", (Key("board", "escape", "board", "Back to the board"),)),
    "watched": Place(
        "A session of another agent",
        (Key("ended", "m", "open_ended", "Open the other sessions, which ended in the last minutes"),),
    ),
    "board": Place(
        "Board",
        (
            Key("up", "up", "move(-1)", "The run above", True),
            Key("down", "down", "move(1)", "The run below", True),
            Key("page-up", "pageup", "move(-10)", "A page up", True),
            Key("page-down", "pagedown", "move(10)", "A page down", True),
            Key("first", "home", "move(-1000000)", "The first run", True),
            Key("last", "end", "move(1000000)", "The last run", True),
            Key("open", "enter", "open_run", "Its panes, in a tab; Esc there goes back to the board", True),
            Key(
                "stop",
                "s",
                "stop_run",
                "Stop this run: it ends as interrupted. Runs of others (`fleet watch`) are not touched",
            ),
            Key("stop-all", "S", "stop_all", "Stop all runs"),
        ),
    ),
    "list": Place(
        "Lists",
        (
            Key("leave", "escape", "dismiss(None)", "Back", True),
            Key("up", "up", "move(-1)", "Up", True),
            Key("down", "down", "move(1)", "Down", True),
            Key("page-up", "pageup", "move(-10)", "A page up", True),
            Key("page-down", "pagedown", "move(10)", "A page down", True),
        ),
    ),
    "catalog": Place("Lists to take from", (Key("take", "enter", "take", "Take it", True),)),
    "pick": Place("Choices in a list", (Key("down", "ctrl+r", "move(1)", "Down", True),)),
    "sessions": Place(
        "/sessions",
        (
            Key("replay", "ctrl+r", "choose('replay')", "Replay it", True),
            Key("rename", "f2", "rename", "Rename it", True),
            Key("export", "ctrl+e", "export", "Export it", True),
            Key("delete", "ctrl+d", "delete", "Delete it", True),
        ),
    ),
    "keys": Place(
        "/keys",
        (
            Key("default", "ctrl+r", "reset", "The default", True),
            Key("none", "ctrl+d", "none", "No key", True),
        ),
    ),
    "rules": Place(
        "/permissions",
        (
            Key("add", "ctrl+n,insert", "add", "Add a rule", True),
            Key("forget", "ctrl+d,f8", "forget", "Take a rule back", True),
        ),
    ),
    "inbox": Place("Inbox", (Key("choose", "enter", "choose", "Go to its card", True),)),
    "rewind": Place(
        "/rewind",
        (
            Key("leave", "escape", "dismiss(None)", "Leave all as it is", True),
            Key("confirm", "enter", "confirm", "Go back", True),
            Key("up", "up", "move(-1)", "Up", True),
            Key("down", "down", "move(1)", "Down", True),
            Key("newest", "home", "move(-100000)", "The newest point", True),
            Key("oldest", "end", "move(100000)", "The oldest point", True),
            Key("scope-before", "left", "turn(-1)", "What goes back: the choice before", True),
            Key("scope-next", "right", "turn(1)", "What goes back: the next choice", True),
            Key("both", "b", "scope('both')", "Conversation and files go back", True),
            Key("conversation", "c", "scope('conversation')", "The conversation alone goes back", True),
            Key("files", "f", "scope('files')", "The files alone go back", True),
            *_READ,
        ),
    ),
    "fork": Place(
        "/fork",
        (
            Key("leave", "escape", "dismiss(None)", "Leave", True),
            Key("confirm", "enter", "confirm", "Fork", True),
            *_READ,
        ),
    ),
    "fork-text": Place(
        "Texts of /fork", (Key("new-line", "shift+enter,ctrl+j,alt+enter", "newline", "New line", True),)
    ),
    "diff": Place(
        "/diff",
        (
            Key("leave", "escape,q", "dismiss(None)", "Close", True),
            Key("before", "left,p", "file(-1)", "The file before", True),
            Key("next", "right,n,tab", "file(1)", "The next file", True),
            Key("turn", "v", "turn", "Side by side, or not", True),
        ),
    ),
    "report": Place("Reports", (Key("leave", "escape,q,enter,w", "dismiss(None)", "Back", True),)),
    "reading": Place("Texts to read", _READ),
    "frame": Place(
        "Dialogs",
        (
            # Taken before the field is asked: what is typed next is for the next field.
            Key("next", "tab", "app.focus_next", "The next field", True),
            Key("before", "shift+tab", "app.focus_previous", "The field before", True),
        ),
    ),
    "question": Place("Questions of the console", (Key("no", "escape", "dismiss(False)", "No"),)),
    "field": Place(
        "Fields",
        (
            Key("leave", "escape", "dismiss(False)", "Leave it", True),
            Key("take", "enter", "accept", "Take it", True),
        ),
    ),
    "table": Place(
        "Tables of settings",
        (
            Key("keep", "ctrl+s", "accept", "Keep it", True),
            Key("leave", "escape", "leave", "Leave it", True),
        ),
    ),
    "line": Place("One line", (Key("leave", "escape", "dismiss('')", "Back", True),)),
    "background": Place("/background", (Key("leave", "escape", "dismiss('')", "Back"),)),
    "jump": Place("Jump mode", (Key("leave", "escape", "dismiss(None)", "Back"),)),
}


def key_rows(*places: str) -> list[tuple[str, str]]:
    """Say what the keys of these places do; keys in a row that do the same stand together."""
    rows: list[tuple[str, str]] = []
    for key in (key for place in places for key in PLACES[place].keys):
        if rows and rows[-1][1] == key.help:
            rows[-1] = (f"{rows[-1][0].partition(' … ')[0]} … {key.shown}", key.help)
        else:
            rows.append((key.shown, key.help))
    return rows
