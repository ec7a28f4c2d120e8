"""What a sandboxed command plants for programs outside: git, shells, editors and agents of the operator find nothing.

Each attack is carried out by a real command, and then by what the operator does next: a marker tells whether it ran.
"""

from __future__ import annotations

import asyncio
import subprocess
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.sandbox.boxes import MECHANISMS, folder_at_home, needed
from tui_agent.sandbox.inside import in_words
from tui_agent.sandbox.mechanisms import Mechanism, Sandbox
from tui_agent.sandbox.policy import SandboxPolicy
from tui_agent.sandbox.taken_back import TakenBack
from tui_agent.sandbox.watch import Watch
from tui_agent.tools.git_door import changes_git_settings
from tui_agent.tools.running import CommandEnd, run_command

IDENTITY = "git config user.name a && git config user.email a@b.c"


class Kept:
    """Takes a command's output."""

    def __init__(self) -> None:
        self.text = ""

    def feed(self, data: bytes) -> None:
        self.text += data.decode()


@dataclass
class Desk:
    """The operator's folder: `workspace` is the checkout, `marker` is made by planted code that runs outside."""

    folder: Path
    sandbox: Sandbox
    reported: list[TakenBack] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def marker(self) -> Path:
        return self.folder / "MARKER"

    def command(self, script: str, *, door: bool = False) -> tuple[CommandEnd, str]:
        """Run by the model; MARK stands for what plants the marker."""
        return asyncio.run(self.started(script, door=door))

    async def started(self, script: str, *, door: bool = False) -> tuple[CommandEnd, str]:
        kept = Kept()
        script = script.replace("MARK", f"touch {self.marker}")
        ended = await run_command(
            ["bash", "-c", script],
            self.workspace,
            60,
            0.5,
            kept,
            lambda _: None,
            sandbox=self.sandbox,
            git_settings=not (door and changes_git_settings(script)),
        )
        return ended, kept.text

    def operator(self, *argv: str, place: str = ".") -> str:
        """What the operator does outside."""
        done = subprocess.run(
            argv, cwd=self.workspace / place, capture_output=True, text=True, timeout=60, check=False
        )
        return done.stdout + done.stderr

    def looks_round(self, *places: str) -> None:
        """git as the operator uses it next, in these folders."""
        for place in (".", *places):
            if (self.workspace / place).is_dir():
                for argv in (
                    ("git", "status"),
                    ("git", "add", "-A"),
                    (
                        "git",
                        "-c",
                        "user.name=o",
                        "-c",
                        "user.email=o@o.o",
                        "commit",
                        "-qm",
                        "x",
                        "--allow-empty",
                    ),
                    ("git", "checkout", "-q", "-b", f"branch-{time.monotonic_ns()}"),
                    ("git", "diff", "HEAD~1"),
                    ("git", "rebase", "--continue"),
                    ("git", "fetch", "--all"),
                ):
                    self.operator(*argv, place=place)


def desk_for(mechanism: Mechanism, folder: Path) -> Desk:
    workspace, scratch = folder / "workspace", folder / "scratch"
    workspace.mkdir(exist_ok=True)
    scratch.mkdir(exist_ok=True)
    policy = SandboxPolicy.around(workspace, scratch)
    desk = Desk(folder, Sandbox())
    desk.sandbox = Sandbox(
        mechanism, policy, watch=Watch(policy.places, folder / "kept"), report=desk.reported.extend
    )
    return desk


@pytest.fixture(params=MECHANISMS)
def empty(request: pytest.FixtureRequest) -> Iterator[Desk]:
    """A workspace with nothing in it."""
    needed(request.param)
    with folder_at_home() as folder:
        yield desk_for(request.param, folder)


def furnished(desk: Desk) -> Desk:
    """With a repository that has a commit, one below, and a worktree."""
    made = f"git init -q -b main . && {IDENTITY} && echo a > a.txt && git add . && git commit -qm a"
    desk.operator("bash", "-c", made)
    below = f"mkdir sub && cd sub && git init -q && {IDENTITY} && git commit -qm b --allow-empty"
    desk.operator("bash", "-c", below)
    desk.operator("git", "worktree", "add", "-q", "tree")
    return desk


@pytest.fixture
def desk(empty: Desk) -> Desk:
    """A checkout to work in."""
    return furnished(empty)


PLANTS: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("plants.toml").read_text("utf-8"))
"""By name what is tried, a command, and perhaps one that comes `then`. All are attacks of `tests/adversarial`."""


@pytest.mark.parametrize(
    "name", ["fsmonitor", "include", "commondir", "nested_new", "bare_in_a_folder", "hook"]
)
def test_git_would_have_run_it_without_the_sandbox(name: str) -> None:
    """The attacks are real ones."""
    with folder_at_home() as folder:
        bare = Desk(folder, Sandbox())
        bare.workspace.mkdir()
        bare.operator("bash", "-c", f"git init -q -b main . && {IDENTITY} && git commit -qm a --allow-empty")
        bare.command(PLANTS[name]["command"])
        bare.looks_round("sub", "tree", "deep", "deep/er")
        assert bare.marker.exists()


def test_a_repository_that_did_not_exist_is_kept_without_what_runs(empty: Desk) -> None:
    ended, _ = empty.command(
        f"git init -q -b main . && {IDENTITY} && git config core.fsmonitor 'MARK;' && "
        "echo a > a && git add . && git commit -qm first"
    )
    empty.looks_round()
    assert not empty.marker.exists()
    assert "first" in empty.operator("git", "log", "--format=%s")
    assert empty.operator("git", "config", "user.name") == "a\n"
    said = in_words(ended.taken)
    assert ".git/config" in said
    assert Path(ended.taken[0].kept).is_relative_to(empty.folder / "kept")
    assert "fsmonitor" in Path(ended.taken[0].kept).read_text()
    assert empty.reported == list(ended.taken)


ORDINARY = [
    "git init -q fresh && cd fresh && git config user.name x && git commit -q --allow-empty -m x",
    "echo b > b.txt && git add b.txt && git -c user.name=x commit -qm b && git log --oneline | wc -l",
    "git checkout -q -b feature && echo c > c.txt && git add . && git commit -qm c && git checkout -q main",
    "git worktree add -q other && cd other && git status --short && git worktree list | grep other",
    "echo d >> a.txt && git stash -q && git stash pop -q && git diff --quiet a.txt || echo changed",
    "git config user.name New && git config user.name | grep New",
    "git config branch.main.remote . && git config --get branch.main.remote",
    "git remote add origin https://example.org/x.git && git remote -v | grep -c example",
    "git submodule --quiet add ./sub mod && git submodule status",
    "git tag v1 && git branch topic && git branch -D -q topic && git gc -q",
    "git rebase -q HEAD && git cherry-pick --abort || true",
]


@pytest.mark.parametrize("script", ORDINARY)
def test_work_with_git_goes_on_as_ever(desk: Desk, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file")
    ended, text = desk.command(script, door=True)
    assert (ended.code, ended.taken) == (0, ()), text


def test_settings_of_a_repository_are_written_by_a_command_of_git_alone(desk: Desk) -> None:
    if not desk.sandbox.mounts:
        pytest.skip("nothing is mounted")
    ended, text = desk.command("true; python3 -c 1; git config user.name New", door=True)
    assert ended.code != 0
    assert "config" in text
    assert desk.command("git config user.name New", door=True)[0].code == 0
    assert desk.operator("git", "config", "user.name") == "New\n"


DOORS = {
    "git config user.name 'A B' && git config user.email a@b.c && git commit -m x": True,
    "cd sub && git remote add origin https://example.org/x": True,
    "git push -u origin main": True,
    "git submodule add https://example.org/x lib": True,
    "git config core.fsmonitor evil": False,
    "git config --local include.path x": False,
    "git config user.name $(evil)": False,
    "git config user.name x; make": False,
    "make && git config user.name x": False,
    "git -c alias.x='!evil' x": False,
    "X=1 git config user.name x": False,
    "git submodule foreach evil": False,
    "git fetch --upload-pack=evil": False,
    "git config user.name x > .git/config": False,
    "git config user.name x | head -1 && git remote -v | grep x": True,
    "git config user.name x && find . -exec evil": False,
    "git status": False,
    "ls": False,
}


@pytest.mark.parametrize(("command", "opens"), DOORS.items())
def test_the_door_to_settings_opens_for_git_alone(command: str, opens: bool) -> None:
    assert changes_git_settings(command) is opens


FILES = [
    *(
        ".envrc",
        ".vscode/tasks.json",
        ".vscode/settings.json",
        ".idea/startup.xml",
        ".idea/runConfigurations/x.xml",
    ),
    *(
        ".mcp.json",
        ".agent-tui.toml",
        ".claude/settings.json",
        ".claude/hooks/x.sh",
        ".claude/skills/x/SKILL.md",
    ),
    *(
        ".codex/config.toml",
        ".gemini/settings.json",
        ".cursor/mcp.json",
        ".agent-tui/commands/x.md",
        ".ENVRC",
    ),
    *(".nvim.lua", "sub/.envrc", "sub/.vscode/tasks.json", "deep/er/.mcp.json", "deep/.claude/commands/x.md"),
]


QUICK = {".envrc", ".vscode/tasks.json", ".agent-tui.toml", ".claude/settings.json", "deep/er/.mcp.json"}
"""Tried each time; the others are slow ones."""
SOME_QUICKLY = [
    pytest.param(file, marks=() if file in QUICK else pytest.mark.slow, id=file) for file in FILES
]


@pytest.mark.parametrize("file", SOME_QUICKLY)
def test_what_editors_shells_and_agents_take_up_is_taken_back(desk: Desk, file: str) -> None:
    ended, _ = desk.command(f"mkdir -p $(dirname {file}) && echo planted > {file}")
    assert not (desk.workspace / file).exists()
    assert [one.path for one in ended.taken] == [file]
    assert Path(ended.taken[0].kept).read_text() == "planted\n"


@pytest.mark.parametrize("file", SOME_QUICKLY)
def test_what_was_there_is_there_again(desk: Desk, file: str) -> None:
    path = desk.workspace / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine\n")
    desk.command(f"echo planted >> {file}; ls; rm -f {file}; echo planted > {file}; cp {file} copy.txt")
    assert path.read_text() == "mine\n"
    # The same content elsewhere, as in another working tree, is nothing new.
    ended, _ = desk.command(f"mkdir -p again/$(dirname {file}) && cp {file} again/{file}")
    assert ended.taken == ()
    assert (desk.workspace / "again" / file).read_text() == "mine\n"


def test_what_is_no_setting_stays(desk: Desk) -> None:
    ended, _ = desk.command(
        "mkdir -p .vscode .idea && echo x > .vscode/extensions.json; echo x > .idea/vcs.xml;"
        "echo x > AGENTS.md; echo x > .env; echo x > Makefile; echo x > .gitignore; echo x > .gitattributes"
    )
    assert (ended.code, ended.taken) == (0, ())


def test_the_operator_changes_what_they_like_between_commands(desk: Desk) -> None:
    desk.command("true")
    desk.operator("git", "config", "core.fsmonitor", "false;")
    desk.operator("git", "init", "-q", "new")
    desk.operator("git", "config", "core.sshCommand", "my-ssh", place="new")
    (desk.workspace / ".envrc").write_text("mine")
    desk.command("true")
    desk.command("echo x >> .envrc; echo x > file")
    assert (desk.workspace / ".envrc").read_text() == "mine"
    assert desk.operator("git", "config", "core.fsmonitor") == "false;\n"
    assert desk.operator("git", "config", "core.sshCommand", place="new") == "my-ssh\n"


async def test_a_command_that_plants_again_and_again_is_ended(request: pytest.FixtureRequest) -> None:
    needed("bubblewrap")
    with folder_at_home() as folder:
        desk = desk_for("bubblewrap", folder)
        desk.operator("git", "init", "-q")
        began = time.monotonic()
        ended, _ = await desk.started("while :; do echo ../evil > .git/commondir; sleep 0.01; done")
        assert ended.persisted
        assert time.monotonic() - began < 120
        assert not (desk.workspace / ".git" / "commondir").exists()


@pytest.mark.parametrize("place", [".git/commondir", ".envrc", "sub/.git/commondir"])
async def test_what_is_planted_is_gone_while_the_command_goes_on(place: str) -> None:
    needed("bubblewrap")
    with folder_at_home() as folder:
        desk = desk_for("bubblewrap", folder)
        desk.operator("git", "init", "-q")
        desk.operator("git", "init", "-q", "sub")
        script = f"echo ../evil > {place}; for i in $(seq 100); do sleep 0.1; [ -e {place} ] || exit 3; done"
        ended, _ = await desk.started(script)
        assert ended.code == 3


async def test_commands_at_the_same_time_are_looked_after_together(request: pytest.FixtureRequest) -> None:
    needed("bubblewrap")
    with folder_at_home() as folder:
        desk = desk_for("bubblewrap", folder)
        desk.operator("git", "init", "-q")
        results = await asyncio.gather(
            desk.started("sleep 0.5; echo a > .envrc"),
            desk.started("echo b > .mcp.json; sleep 1"),
            desk.started("true"),
        )
        assert [ended.code for ended, _ in results] == [0, 0, 0]
        assert sorted({one.path for one in desk.reported}) == [".envrc", ".mcp.json"]
        assert not (desk.workspace / ".envrc").exists()


def test_links_lead_this_program_nowhere(desk: Desk) -> None:
    """A folder is changed for a link out of the workspace after something was planted in it."""
    other = desk.folder / "other"
    desk.operator("git", "init", "-q", str(other))
    (other / ".git" / "hooks" / "pre-commit").write_text("mine")
    desk.command(f"mkdir d; cd d; git init -q; rm -rf .git; ln -s {other}/.git .git")
    desk.command(f"rm -rf d; ln -s {other} d")
    assert (other / ".git" / "hooks" / "pre-commit").read_text() == "mine"
    assert "worktree" not in (other / ".git" / "config").read_text()


def test_a_large_workspace_costs_a_bounded_time(tmp_path: Path) -> None:
    for number in range(1_500):
        (tmp_path / "w" / str(number // 40) / str(number)).mkdir(parents=True)
    watch = Watch(SandboxPolicy.around(tmp_path / "w", tmp_path / "s").places, tmp_path / "kept")
    watch.look()
    began = time.process_time()
    token, _ = watch.begin()
    (tmp_path / "w" / "3" / "130" / ".envrc").write_text("x")
    taken = watch.end(token)
    assert [one.path for one in taken] == ["3/130/.envrc"]
    assert time.process_time() - began < 1.0


def test_what_is_taken_away_and_put_there_again_is_compared_with_what_was_there(tmp_path: Path) -> None:
    watch = Watch(SandboxPolicy.around(tmp_path, tmp_path / "s").places, tmp_path / "kept")
    (tmp_path / ".envrc").write_text("mine")
    watch.look()
    token, _ = watch.begin()
    (tmp_path / ".envrc").unlink()
    assert watch.settle(live=True) == []
    (tmp_path / ".envrc").write_text("planted")
    assert [one.path for one in watch.end(token)] == [".envrc"]
    assert (tmp_path / ".envrc").read_text() == "mine"


def test_a_file_that_is_being_written_is_looked_at_again(tmp_path: Path) -> None:
    git = tmp_path / ".git" / "worktrees" / "tree"
    git.mkdir(parents=True)
    watch = Watch(SandboxPolicy.around(tmp_path, tmp_path / "s").places, tmp_path / "kept")
    watch.look()
    token, _ = watch.begin()
    (git / "commondir").write_text("")
    assert watch.settle(live=True) == []
    assert watch.unsettled()
    (git / "commondir").write_text("../..\n")
    assert watch.end(token) == []
    assert (git / "commondir").read_text() == "../..\n"
