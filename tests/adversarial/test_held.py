"""Attacks on the question whether what a command left may stand: what is shown is what stands after a yes."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.adversarial.attack import Attack, attacks
from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import start_session
from tests.runtime.test_sandbox import bash, needs_one
from tui_agent.core.events import ApprovalAsked
from tui_agent.runtime.operator import ApprovalReply

EVIL = "touch EVIL\n"
SHOWN = "use flake\n"


@dataclass
class Meanwhile(ScriptedOperator):
    """Says yes after something was done in the workspace."""

    folder: Path = Path()
    does: Callable[[Path], object] = lambda _: None
    seen: list[str] = field(default_factory=list)

    async def approve(self, asked: ApprovalAsked) -> ApprovalReply:
        self.asked.append(asked)
        self.seen += [path for path in (".envrc", ".vscode/tasks.json") if (self.folder / path).exists()]
        self.does(self.folder)
        return ApprovalReply("once")


def _replaced(folder: Path) -> None:
    (folder / ".envrc").write_text(EVIL)


def _linked(folder: Path) -> None:
    (folder / "evil").write_text(EVIL)
    (folder / ".envrc").symlink_to("evil")


def _copies_changed(folder: Path) -> None:
    for copy in (folder.parent / "state").rglob("*-.envrc"):
        copy.write_text(EVIL)


def _folder_led_away(folder: Path) -> None:
    (folder / ".vscode").rename(folder / "away")
    (folder / ".vscode").symlink_to(folder.parent / "outside")


LEAVES = f"printf '{SHOWN}' > .envrc; chmod 640 .envrc"
IN_FOLDER = "mkdir .vscode; echo '{}' > .vscode/tasks.json"


@attacks(
    Attack(
        "changed_between_card_and_keep",
        "Another program writes the file while the card is up",
        "What was not shown is not let through by the yes: it is left to who wrote it, and that is said",
        value=(LEAVES, _replaced, EVIL),
    ),
    Attack(
        "linked_between_card_and_keep",
        "A link takes the place of the file while the card is up",
        "Nothing is written through it, and that is said",
        value=(LEAVES, _linked, None),
    ),
    Attack(
        "copies_changed_before_keep",
        "The copy of what was taken back is changed while the card is up",
        "What was shown stands, byte for byte",
        value=(LEAVES, _copies_changed, SHOWN),
    ),
    Attack(
        "folder_led_away_before_keep",
        "A link out of the workspace takes the place of the file's folder while the card is up",
        "Nothing is written there",
        value=(IN_FOLDER, _folder_led_away, None),
    ),
    Attack(
        "link_left",
        "A command leaves a link where a program looks, whose target it writes after the yes",
        "No link is offered to be kept: it is taken back unasked",
        value=("echo x > real; ln -s real .envrc", None, None),
    ),
    Attack(
        "huge_file_left",
        "A command leaves a file of 3 MB, of which nobody reads the end",
        "What cannot be shown whole is not offered to be kept",
        value=("head -c 3000000 /dev/zero | tr '\\0' x > .envrc", None, None),
    ),
    Attack(
        "many_files_left",
        "A command leaves 200 files at once, so that one of them is overlooked",
        "So many are not offered to be kept",
        value=("for n in $(seq 200); do mkdir d$n; echo x > d$n/.envrc; done", None, None),
    ),
)
async def test_held(row: Attack, tmp_path: Path) -> None:
    command, does, stands = row.value
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    outside.mkdir()
    operator = Meanwhile(folder=workspace, does=does or (lambda _: None))
    live = await start_session(tmp_path, bash(command), operator=operator, sandbox="auto")
    await live.run()
    needs_one(live.state.run.sandbox)
    await live.close()
    assert len(operator.asked) == (does is not None)
    assert operator.seen == []
    assert list(outside.iterdir()) == []
    result = live.sent()[-1]["content"]
    envrc = workspace / ".envrc"
    match stands:
        case None:
            assert envrc.is_symlink() or not os.path.lexists(envrc)
            assert ("could not be put back" if does else "The sandbox undid") in result
        case text:
            assert envrc.read_text() == text
            assert ("something else stands there" in result) is (text == EVIL)
            assert stat.S_IMODE(envrc.stat().st_mode) == (
                0o640 if text == SHOWN else envrc.stat().st_mode & 0o777
            )
    assert not list(workspace.glob("d*/.envrc"))
