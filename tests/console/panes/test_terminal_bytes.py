"""What really reaches a terminal: the bytes of a pseudo-terminal in which all panes show hostile texts.

Textual's pilot cannot see this fault: it looks at segments, the terminal reads bytes.
"""

from __future__ import annotations

import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

fcntl = pytest.importorskip("fcntl", reason="pseudo-terminals need a POSIX system")

ROOT = Path(__file__).resolve().parents[3]
DONE = b"<<all shown>>"
PAINTED = b"reply"
CTRL_Q = b"\x11"
PROGRAM = """
import sys
sys.path.insert(0, {root!r})
from tests.console.panes.stage import ALL, Stage
from tests.console.panes.stories import Story
from tui_agent.core import events

BAD = {bad!r}
story = Story(model="m" + BAD).run("task " + BAD)
story.ask_model("note " + BAD)
calls = [("bash", {{"command": "c" + BAD}}), ("t" + BAD, {{"a" + BAD: BAD}})]
(call, other) = story.reply("reply " + BAD, *calls, reasoning="r" + BAD)
story.fail(call, "failed " + BAD)
story.refuse(other, "denied", "why " + BAD)
story.judge("note " + BAD)
story.add(events.Notice(text="notice " + BAD))
fault = events.Fault(kind="timeout", message="f" + BAD, advice="a" + BAD)
story.add(events.ModelFaulted(fault=fault, action="ask", model="m" + BAD))
story.add(events.EscalationRaised(id="q", question="q" + BAD, source="s" + BAD))
story.add(events.EscalationAnswered(id="q", choice="answer", text="a" + BAD))
story.add(events.RunFinished(outcome="partial", reason="r" + BAD, answer="a" + BAD))
story.ask_model()
story.add(events.ReplyDelta(text="open " + BAD))

class Shown(Stage):
    def on_mount(self):
        self.show(story.state, story.now)

Shown(*ALL, theme={theme!r}).run()
print({done!r}, flush=True)
"""

TITLE = "\x1b]0;owned\x07"
CLIPBOARD = "\x1b]52;c;c3RvbGVu\x07"
BAD = (
    f"{TITLE}{CLIPBOARD}\x1b]8;;http://evil.example\x1b\\x\x1b[2J\x1b[31;47mR\x1bP+q544e\x1b\\\x9b2J\x9d0;own2\x9c\x1b[?1049l\x1bc"
    "\x00\x08\x0e\x0f\x7f\r\n\x0b\x0c\u202eabc\u2066\ud800"
)


def bytes_of(theme: str, columns: int = 100, rows: int = 320) -> bytes:
    """Everything the program writes to its terminal, until it was painted and left by Ctrl+Q."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    program = PROGRAM.format(root=str(ROOT), bad=BAD, theme=theme, done=DONE.decode())
    environment = {
        **os.environ,
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "TEXTUAL_ANIMATIONS": "none",
    }
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        environment.pop(name, None)
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        close_fds=True,
        env=environment,
        cwd=ROOT,
    )
    os.close(slave)
    written = b""
    left = False
    try:
        while DONE not in written:
            ready, _, _ = select.select([master], [], [], 60)
            if not ready:
                break
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            written += piece
            if not left and PAINTED in written:
                left = True
                os.write(master, CTRL_Q)
    finally:
        process.kill()
        process.wait()
        os.close(master)
    assert DONE in written, written[-2000:].decode("utf-8", "replace")
    return written


@pytest.mark.process
def test_no_hostile_sequence_reaches_the_terminal() -> None:
    written = bytes_of("agent-dark")
    text = written.decode("utf-8")
    assert "reply" in text
    assert set(re.findall("\x1b\\](\\d*)", text)) <= {"22"}, (
        "the pointer's shape is Textual's own, all else is not"
    )
    assert not re.search("\x1b[P^_Xc]", text)
    assert "\x1b[31;47m" not in text
    assert not re.search("[\x00\x08\x0b\x0c\x0e\x0f\x7f\x80-\x9f]", text)
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", text)
    # Leaving the alternate screen happens once: by us, at the end.
    assert text.count("\x1b[?1049l") == 1
    assert text.index("\x1b[?1049l") > text.index("reply")


@pytest.mark.process
def test_the_terminal_theme_uses_the_terminals_own_sixteen_colours() -> None:
    written = bytes_of("terminal").decode("utf-8")
    assert "reply" in written
    codes = set(re.findall("\x1b\\[([0-9;]+)m", written))
    assert not [code for code in codes if re.search(r"(?:^|;)[34]8;[25];", code)], codes
    assert any(re.search(r"(?:^|;)(?:3[1-7]|9[0-7])(?:;|$)", code) for code in codes)


@pytest.mark.process
def test_our_dark_theme_uses_true_colour() -> None:
    written = bytes_of("agent-dark").decode("utf-8")
    assert "\x1b[" in written
    assert re.search(r"38;2;\d+;\d+;\d+", written)
