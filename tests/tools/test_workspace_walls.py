"""Nothing that a path can say leads out of the workspace."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui_agent.terminal_text import escaped_line
from tui_agent.tools import workspace as walls
from tui_agent.tools.errors import ToolError
from tui_agent.tools.workspace import WallError, Workspace, os_failure


def make_world(tmp_path: Path) -> Path:
    """A workspace `ws` beside a secret, with links of every kind."""
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file.txt").write_text("outside")
    (tmp_path / "ws-sibling").mkdir()
    ws = tmp_path / "ws"
    (ws / "src").mkdir(parents=True)
    (ws / "src" / "main.py").write_text("print()")
    for name, target in {
        "link_file": "../secret.txt",
        "link_dir": "../outside",
        "link_abs": str(tmp_path / "secret.txt"),
        "chain_1": "chain_2",
        "chain_2": "link_dir",
        "dangling": "../not-there-yet",
        "src/up": "../..",
        "root_link": "/proc/self/root",
        "cwd_link": "/proc/self/cwd",
        "loop_a": "loop_b",
        "loop_b": "loop_a",
        "inner": "src",
        "inner_file": "src/main.py",
    }.items():
        (ws / name).symlink_to(target)
    return ws


@pytest.fixture
def world(tmp_path: Path) -> Path:
    return make_world(tmp_path)


OUT = [
    "..",
    "../secret.txt",
    "../ws-sibling/x",
    "src/../../secret.txt",
    "src/../../../../../../etc/passwd",
    "not/there/../../../secret.txt",
    "/etc/passwd",
    "/",
    "//etc/passwd",
    "/proc/self/root/etc/passwd",
    "/proc/self/environ",
    "/dev/zero",
    "link_file",
    "link_dir",
    "link_dir/file.txt",
    "link_dir/new/deep.txt",
    "link_abs",
    "chain_1/file.txt",
    "dangling",
    "src/up/secret.txt",
    "inner/up/secret.txt",
    "root_link/etc/passwd",
    "cwd_link/pyproject.toml",
    "loop_a/../link_dir/file.txt",
    "loop_a/../../secret.txt",
    "~",
    "~/.ssh/id_rsa",
    "",
    "a\0b",
    "src/main.py\0.txt",
    "\ud800",
]


@pytest.mark.parametrize("path", OUT)
def test_a_path_that_leads_out_is_refused_for_reading_and_writing(world: Path, path: str) -> None:
    for resolve in (Workspace(world).resolve, Workspace(world).resolve_for_writing):
        with pytest.raises(WallError) as caught:
            resolve(path)
        assert "\0" not in caught.value.message
        caught.value.message.encode("utf-8")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../secret.txt", "by '..'"),
        ("/etc/passwd", "an absolute path"),
        ("link_file", "through a symbolic link"),
        ("link_dir/new", "through a symbolic link"),
        ("~/x", "home directory"),
        ("a\0b", "NUL"),
        ("", "empty"),
    ],
)
def test_a_refusal_says_why(world: Path, path: str, reason: str) -> None:
    with pytest.raises(WallError, match=reason.replace(".", r"\.")):
        Workspace(world).resolve(path)


@pytest.mark.parametrize(
    ("path", "real"),
    [
        (".", ""),
        ("src", "src"),
        ("src/", "src"),
        ("./src/./main.py", "src/main.py"),
        ("src/../src/main.py", "src/main.py"),
        ("not/../src/main.py", "src/main.py"),
        ("inner/main.py", "src/main.py"),
        ("inner_file", "src/main.py"),
        ("inner/new.py", "src/new.py"),
        ("new/deep/file.txt", "new/deep/file.txt"),
        ("..hidden", "..hidden"),
        ("...", "..."),
        ("~tilde", "~tilde"),
        ("with\nnewline", "with\nnewline"),
    ],
)
def test_a_path_that_stays_inside_is_taken(world: Path, path: str, real: str) -> None:
    assert Workspace(world).resolve(path) == Path(os.path.realpath(world)) / real


def test_an_absolute_path_inside_is_taken_and_shown_relative(world: Path) -> None:
    workspace = Workspace(world)
    path = workspace.resolve(str(world / "src" / "main.py"))
    assert workspace.shown(path) == "src/main.py"


def test_a_workspace_reached_by_a_link_has_the_same_walls(world: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(world)
    workspace = Workspace(tmp_path / "alias")
    assert workspace.resolve("src/main.py") == workspace.root / "src/main.py"
    with pytest.raises(WallError):
        workspace.resolve("../secret.txt")


def test_a_second_root_is_readable_and_no_more(world: Path, tmp_path: Path) -> None:
    workspace, outputs = Workspace(world), tmp_path / "outside"
    assert workspace.resolve(str(outputs / "file.txt"), also=outputs).name == "file.txt"
    with pytest.raises(WallError):
        workspace.resolve(str(tmp_path / "secret.txt"), also=outputs)
    with pytest.raises(WallError):
        workspace.resolve_for_writing(str(outputs / "file.txt"))


@pytest.mark.parametrize(
    "path", [".git/config", ".git/hooks/pre-commit", "sub/.git/config", ".agent-tui.toml", ".GIT/x"]
)
def test_files_that_make_commands_run_later_are_not_written(world: Path, path: str) -> None:
    with pytest.raises(WallError, match="not written by this tool"):
        Workspace(world).resolve_for_writing(path)
    assert Workspace(world).resolve(path)


@pytest.mark.parametrize("kind", ["fifo", "socket", "device"])
def test_a_special_file_is_neither_opened_nor_replaced(world: Path, kind: str) -> None:
    import socket

    special = world / "special"
    with socket.socket(socket.AF_UNIX) as listener:
        match kind:
            case "fifo":
                os.mkfifo(special)
            case "socket":
                here = Path.cwd()
                os.chdir(world)
                listener.bind("special")
                os.chdir(here)
            case _:
                try:
                    os.mknod(special, stat.S_IFCHR | 0o600, os.makedev(1, 5))
                except PermissionError:
                    pytest.skip("only root makes devices")
        workspace = Workspace(world)
        path = workspace.resolve("special")
        with pytest.raises((WallError, OSError)) as caught:
            workspace.open(path)
        if isinstance(caught.value, OSError):
            assert caught.value.errno == errno.ENXIO
        with pytest.raises(WallError, match="Only regular files"):
            workspace.replace(path, b"x")


def test_a_link_put_in_place_after_the_check_is_not_followed(world: Path, tmp_path: Path) -> None:
    workspace = Workspace(world)
    file, parent = workspace.resolve("src/main.py"), workspace.resolve("late/file.txt")
    (world / "src" / "main.py").unlink()
    (world / "src" / "main.py").symlink_to(tmp_path / "secret.txt")
    (world / "late").symlink_to(tmp_path / "outside")
    for path in (file, parent):
        with pytest.raises(OSError, match=r"symbolic|directory"):
            workspace.open(path)
    with pytest.raises((OSError, WallError)):
        workspace.replace(parent, b"overwritten")
    with pytest.raises((OSError, WallError)):
        workspace.replace(file, b"overwritten")
    assert (tmp_path / "secret.txt").read_text() == "secret"
    assert (tmp_path / "outside" / "file.txt").read_text() == "outside"


def test_a_hard_link_is_a_file_like_any_other(world: Path) -> None:
    os.link(world / "src" / "main.py", world / "hard.py")
    workspace = Workspace(world)
    with workspace.open(workspace.resolve("hard.py")) as stream:
        assert stream.read() == b"print()"


def test_replacing_keeps_the_mode_makes_parents_and_leaves_no_other_file(world: Path) -> None:
    workspace = Workspace(world)
    script = world / "src" / "main.py"
    script.chmod(0o751)
    workspace.replace(workspace.resolve("src/main.py"), b"new")
    workspace.replace(workspace.resolve("a/b/c.txt"), b"deep")
    assert stat.S_IMODE(script.stat().st_mode) == 0o751
    assert script.read_bytes() == b"new"
    assert (world / "a" / "b" / "c.txt").read_bytes() == b"deep"
    assert not [path for path in world.rglob("*.tmp") if not path.is_symlink()]


def test_a_replacement_that_fails_leaves_the_old_file(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(walls.os, "fsync", full)
    workspace = Workspace(world)
    with pytest.raises(OSError, match="No space"):
        workspace.replace(workspace.resolve("src/main.py"), b"half")
    assert (world / "src" / "main.py").read_text() == "print()"
    assert sorted(path.name for path in (world / "src").iterdir()) == ["main.py", "up"]


@pytest.mark.parametrize(
    ("number", "transient"),
    [
        (errno.ENOSPC, True),
        (errno.EROFS, True),
        (errno.EIO, True),
        (errno.EACCES, False),
        (errno.EISDIR, False),
        (errno.ENAMETOOLONG, False),
    ],
)
def test_a_fault_of_the_disk_is_told_from_a_mistake_of_the_model(number: int, transient: bool) -> None:
    failure = os_failure(OSError(number, os.strerror(number)), "write a.txt")
    assert failure.transient is transient
    assert failure.message.startswith(f"Could not write a.txt: {os.strerror(number)}.")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plain.txt", "plain.txt"),
        ("a\nb", "a\\nb"),
        ("\x1b[2J", "\\x1b[2J"),
        ("é", "é"),
        ("\udcff", "\\udcff"),
    ],
)
def test_a_name_is_shown_on_one_line_without_control_characters(name: str, shown: str) -> None:
    assert escaped_line(name) == shown


PARTS = st.sampled_from(
    [
        *(
            "..",
            ".",
            "",
            "src",
            "main.py",
            "link_dir",
            "link_file",
            "chain_1",
            "dangling",
            "loop_a",
            "inner",
            "up",
        ),
        *(
            "root_link",
            "cwd_link",
            "new",
            "/",
            "~",
            "\0",
            "\n",
            "\udcff",
            "\ud800",
            "a" * 300,
            "proc",
            "etc",
            "passwd",
        ),
    ]
)


@pytest.fixture(scope="module")
def shared_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("walls"))


@settings(max_examples=300, deadline=None)
@given(path=st.one_of(st.lists(PARTS, max_size=12).map("/".join), st.text(max_size=80)))
def test_any_path_ends_inside_or_in_a_typed_refusal(shared_world: Path, path: str) -> None:
    workspace = Workspace(shared_world)
    try:
        resolved = workspace.resolve(path)
    except WallError as error:
        error.message.encode("utf-8")
        return
    assert os.path.realpath(resolved) == str(resolved)
    assert resolved.is_relative_to(workspace.root)
    try:
        with workspace.open(resolved) as stream:
            assert stream.read() == b"print()"
    except (OSError, ToolError):
        pass
