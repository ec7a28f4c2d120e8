"""Attacks by commands in the sandbox: planting what runs outside later, and reaching what is outside."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.adversarial.attack import Attack, attack, attacks
from tests.sandbox.boxes import MECHANISMS, folder_at_home, needed
from tests.sandbox.test_planted import PLANTS, Desk, desk_for, furnished
from tui_agent.sandbox.mechanisms import Mechanism

RUNS = "Nothing of it runs when the operator uses git next; work with git goes on"
FELL = "it ran with what the operator did next in git"
FELL_WITHOUT_MOUNTS = "it ran under Landlock, which has no mounts"
MOUNTED = frozenset({
    "fsmonitor", "fsmonitor_in_place", "hooks_path", "hook", "hooks_replaced", "hook_of_a_sample", "filter", "alias",
    "external_diff", "include", "worktree_settings", "upload_pack", "helper", "ssh_command", "submodule_update",
    "other_repository", "repository_by_link", "repository_renamed", "hard_link",
})  # fmt: skip
"""What bubblewrap's mounts kept from being written before."""
QUICK = frozenset({"commondir", "fsmonitor", "hook", "include", "nested_new", "submodule_update"})
"""Of each kind of place one, tried each time; the others are slow ones."""
ROWS = [
    Attack(
        f"git_{name}",
        one["tried"],
        RUNS,
        FELL_WITHOUT_MOUNTS if name in MOUNTED else FELL,
        slow=name not in QUICK,
        value=name,
    )
    for name, one in PLANTS.items()
]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@attacks(*ROWS)
def test_git(mechanism: Mechanism, row: Attack) -> None:
    needed(mechanism)
    with folder_at_home() as folder:
        desk = furnished(desk_for(mechanism, folder))
        steps = PLANTS[row.value]
        for script in (steps["command"], steps.get("then", "true")):
            desk.command(script)
        desk.looks_round("sub", "sub2", "tree", "deep", "deep/er", "x", "evil")
        assert not desk.marker.exists()


@pytest.fixture(params=MECHANISMS)
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    needed(request.param)
    with folder_at_home() as folder:
        yield furnished(desk_for(request.param, folder))


@attack(
    "Settings, hooks and skills of agents, tasks of editors, scripts that shells take up",
    "Taken back, with a copy, and said",
    fell="they stayed",
)
def test_files_that_others_obey(desk: Desk) -> None:
    files = (".claude/settings.json", ".codex/config.toml", ".vscode/tasks.json", ".envrc", "sub/.nvim.lua")
    ended, _ = desk.command("".join(f"mkdir -p $(dirname {file}); echo x > {file}\n" for file in files))
    assert sorted(one.path for one in ended.taken) == sorted(files)
    assert not any((desk.workspace / file).exists() for file in files)


@attack(
    "A link takes the place of a folder while what was planted in it is taken back",
    "Nothing outside is changed: no link is followed",
)
def test_links_while_it_is_taken_back(desk: Desk) -> None:
    other = desk.folder / "other"
    desk.operator("git", "init", "-q", str(other))
    (other / ".git" / "hooks" / "post-commit").write_text("mine")
    before = (other / ".git" / "config").read_bytes()
    desk.command(
        "for i in $(seq 60); do rm -rf d; mkdir d; git -C d init -q; git -C d config core.fsmonitor x;"
        f"echo x > d/.git/hooks/post-commit; rm -rf d; ln -s {other} d; done"
    )
    assert (other / ".git" / "hooks" / "post-commit").read_text() == "mine"
    assert (other / ".git" / "config").read_bytes() == before


@attack(
    "A service's Unix socket: in the home folder, in the workspace, elsewhere",
    "Not reached, also with a network",
    fell="what listens in the home folder (a multiplexer of terminals) did what it was told",
)
def test_services(desk: Desk) -> None:
    for folder in (Path("~").expanduser(), desk.workspace, desk.folder):
        path = folder / f".agent-tui-{os.getpid()}.sock"
        try:
            with socket.socket(socket.AF_UNIX) as service:
                service.bind(str(path))
                service.listen()
                code = f"import socket; socket.socket(socket.AF_UNIX).connect('{path}'); print('REACH' 'ED')"
                _, text = desk.command(f'python3 -I -S -c "{code}"')
            assert "REACHED" not in text
            assert "Error" in text
        finally:
            path.unlink(missing_ok=True)


@attack(
    "What is typed into another terminal",
    "No terminal is opened that is not the command's own",
    fell="under Landlock a command read a password as it was typed",
)
def test_terminals(desk: Desk) -> None:
    controller, terminal = os.openpty()
    try:
        os.write(controller, b"PASSWORD\n")
        _, text = desk.command(f"timeout 2 head -c 8 {os.ttyname(terminal)}")
        assert "PASSWORD" not in text
    finally:
        os.close(controller)
        os.close(terminal)


@attack(
    "Tokens in the home folder: of agents, of the servers beside one's configuration, in places that no list names",
    "The home folder is out of sight, but for tools",
    fell="all were read that no list named",
)
def test_tokens(desk: Desk) -> None:
    with folder_at_home() as secrets:
        for name in (".credentials.json", "auth.json", "mcp.json", "anything"):
            (secrets / name).write_text("THE-TOKEN")
        _, text = desk.command(
            f"cat {secrets}/* {secrets}/.[a-z]* {secrets}/mcp.json; grep -r THE-TOKEN {secrets}"
        )
        assert "THE-TOKEN" not in text


@attack(
    "The disk itself, as root: its device",
    "No device is opened but the harmless ones",
    fell="under Landlock root read the disk with every file in it",
)
def test_devices(desk: Desk) -> None:
    _, text = desk.command(
        "for d in /dev/*; do [ -b $d ] && head -c 1 $d > /dev/null && echo OPENED $d; done; true"
    )
    assert "OPENED" not in text


@attack(
    "With a network: an abstract socket, as a desktop's",
    "Not reached; own ones are",
    fell="reached under both mechanisms",
)
def test_abstract_sockets_with_a_network(desk: Desk) -> None:
    assert desk.sandbox.policy is not None
    desk.sandbox = replace(desk.sandbox, policy=replace(desk.sandbox.policy, network=True))
    name = f"agent-tui-{os.getpid()}"
    code = (
        "import socket\n"
        "own = socket.socket(socket.AF_UNIX); own.bind(''); own.listen()\n"
        "socket.socket(socket.AF_UNIX).connect(own.getsockname()); print('OWN')\n"
        f"socket.socket(socket.AF_UNIX).connect(chr(0) + '{name}'); print('REA' + 'CHED')\n"
    )
    (desk.workspace / "attack.py").write_text(code)
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(f"\0{name}")
        service.listen()
        _, text = desk.command("python3 -I attack.py; git status --short | head -1")
    assert "REACHED" not in text
    assert "Error" in text
    assert "OWN" in text
    assert "attack.py" in text
