"""The command that adds a package names the way in which this copy was installed, and never the program on an index."""

from __future__ import annotations

import json
import re
import shlex
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

import tui_agent
from tui_agent import installed

ROOT = Path(__file__).resolve().parents[1]
METADATA = """Metadata-Version: 2.4
Name: tui-agent
Version: 0
Provides-Extra: mcp
Requires-Dist: pydantic>=2
Requires-Dist: mcp<3,>=2.3; extra == 'mcp'
Requires-Dist: other>=1; (python_version < '3.14') and extra == "mcp"
Requires-Dist: mcp-like; extra == 'mcp-like'
"""
PACKAGES = "'mcp<3,>=2.3' 'other>=1'"
PIP = f"{shlex.quote(sys.executable)} -m pip install"


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this package is taken to be installed, with what an installer leaves beside it."""
    folder = tmp_path / "it's here" / "site-packages"
    about = folder / "tui_agent-0.dist-info"
    about.mkdir(parents=True)
    (folder / "tui_agent").mkdir()
    (about / "METADATA").write_text(METADATA)
    monkeypatch.setattr(installed, "_PACKAGE", folder / "tui_agent")
    monkeypatch.setattr(metadata, "distribution", lambda _: metadata.PathDistribution(about))
    monkeypatch.setattr(installed, "find_spec", lambda _: True)
    return folder


def came_from(copy: Path, **origin: object) -> None:
    (copy / "tui_agent-0.dist-info" / "direct_url.json").write_text(json.dumps(origin))


def project(folder: Path) -> Path:
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    return folder


def test_of_an_index_the_packages_are_named_that_are_missing(copy: Path) -> None:
    assert installed.adding("mcp") == f"{PIP} {PACKAGES}"


@pytest.mark.parametrize("editable", [True, False])
def test_of_a_folder_the_folder_is_named(copy: Path, tmp_path: Path, *, editable: bool) -> None:
    folder = project(tmp_path / "a b")
    came_from(copy, url=folder.as_uri(), dir_info={"editable": editable})
    wanted = f"-e {shlex.quote(f'{folder}[mcp]')}"
    if not editable:
        wanted = shlex.quote(f"tui-agent[mcp] @ {folder.as_uri()}")
    assert installed.adding("mcp") == f"{PIP} {wanted}"


def test_of_a_wheel_the_file_is_named_while_it_is_there(copy: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "tui_agent-0-py3-none-any.whl"
    wheel.touch()
    came_from(copy, url=wheel.as_uri(), archive_info={})
    assert installed.adding("mcp") == f"{PIP} {shlex.quote(f'tui-agent[mcp] @ {wheel.as_uri()}')}"
    wheel.unlink()
    assert installed.adding("mcp") == f"{PIP} {PACKAGES}"


def test_of_a_repository_the_commit_is_named(copy: Path) -> None:
    came_from(copy, url="https://git.example/x", vcs_info={"vcs": "git", "commit_id": "abc"})
    assert installed.adding("mcp") == f"{PIP} 'tui-agent[mcp] @ git+https://git.example/x@abc'"


@pytest.mark.parametrize(
    ("mark", "command"),
    [
        ("pipx_metadata.json", f"pipx inject tui-agent {PACKAGES}"),
        ("uv-receipt.toml", f"uv pip install --python {shlex.quote(sys.executable)} {PACKAGES}"),
    ],
)
def test_environments_of_pipx_and_uv_are_added_to_by_them(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str, command: str
) -> None:
    prefix = tmp_path / "tui-agent"
    prefix.mkdir()
    (prefix / mark).touch()
    monkeypatch.setattr(sys, "prefix", str(prefix))
    assert installed.adding("mcp") == command
    assert installed.packages("mcp<3,>=2.3", "other>=1") == command


def test_an_environment_without_pip_is_added_to_by_uv(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "find_spec", lambda _: None)
    python = shlex.quote(sys.executable)
    assert installed.adding("mcp") == f"uv pip install --python {python} {PACKAGES}"


def test_another_copy_that_is_installed_says_nothing_of_the_folder_that_runs(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project(tmp_path / "checkout")
    monkeypatch.setattr(installed, "_PACKAGE", folder / "tui_agent")
    assert installed.adding("mcp") == f"{PIP} -e {shlex.quote(f'{folder}[mcp]')}"


@pytest.mark.parametrize("said", ["{", "[]", '{"url": 1}', '{"url": "file:///gone", "dir_info": {}}'])
def test_what_an_installer_noted_may_be_nonsense(copy: Path, said: str) -> None:
    (copy / "tui_agent-0.dist-info" / "direct_url.json").write_text(said)
    assert installed.adding("mcp") == f"{PIP} {PACKAGES}"


def test_the_distribution_is_named_like_its_package() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert f'name = "{installed.DISTRIBUTION}"' in text
    assert installed.DISTRIBUTION.replace("-", "_") == tui_agent.__name__
    assert f'"{installed.DISTRIBUTION}[' in text  # the extra of development takes the others along
    assert find_spec("tui_agent") is not None


def test_no_text_tells_to_install_the_program_by_its_bare_name() -> None:
    bare = re.compile(r"(pip3?|pipx|uv tool|uvx)\s+(run\s+|install\s+)?(-U\s+)?['\"]?(agent-tui|tui-agent)\b")
    texts = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("tui_agent/**/*.py")]
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}" for path in texts for match in bare.finditer(path.read_text())
    ]
    assert found == []
    assert not [path for path in texts if "agent-tui[" in path.read_text()]
