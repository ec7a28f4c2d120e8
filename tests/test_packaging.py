"""What is built from the checkout is whole: the program's wheel, and the engine alone with pydantic and tree-sitter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from importlib.metadata import EntryPoints
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.test_layers import PACKAGE, imports, modules
from tui_agent import __version__

ROOT = Path(__file__).resolve().parents[1]
ENGINE = ROOT / "packaging" / "recovery"
ACP = ROOT / "packaging" / "acp"
NEEDED = (
    "annotated_types",
    "pydantic",
    "pydantic_core",
    "tree_sitter",
    "tree_sitter_bash",
    "typing_extensions",
    "typing_inspection",
)
"""The modules of pydantic and tree-sitter, with what they need."""
USED = """
import importlib, json, pkgutil, sys
sys.path[:0] = sys.argv[1:]
from tui_agent import Recovery

levels = {}
for policy in ("forge", "gigi", "funnelcanary", "hpd", "combined"):
    recovery = Recovery(policy, tools=("bash",))
    make = {"command": "cd sub && make -j4 2>&1 | tail -5"}
    said = []
    for _ in range(3):
        recovery.tool_failed("bash", make, "exit code 2: no rule to make target 'all'")
        said.append(recovery.end_iteration().level)
    recovery.model_failed("rate_limit", "busy")
    Recovery.from_json(recovery.to_json()).operator_answered("Run it in the folder above.", "skip")
    levels[policy] = [*said, recovery.permit("bash", make).rule]
assert "asyncio" not in sys.modules
import tui_agent.core
for found in pkgutil.walk_packages(tui_agent.core.__path__, "tui_agent.core."):
    importlib.import_module(found.name)
assert "tree_sitter_bash" in sys.modules  # commands were read by their grammar
print(json.dumps([tui_agent.__file__, levels]))
"""


def places(name: str) -> Path:
    """The folder or file of a module."""
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    origin = Path(spec.origin)
    return origin.parent if origin.name == "__init__.py" else origin


def built(what: str, project: Path, into: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Build a `wheel` or `sdist` without the network, by the build backend that is installed."""
    backend = pytest.importorskip("hatchling.build", reason="the build backend, hatchling, is not installed")
    monkeypatch.chdir(project)
    into.mkdir(exist_ok=True)
    return into / str(getattr(backend, f"build_{what}")(str(into)))


def built_twice(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Build the wheel from what the source distribution holds, as those do who get nothing else."""
    source = built("sdist", project, tmp_path / "source", monkeypatch)
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    unpacked = tmp_path / "source" / source.name.removesuffix(".tar.gz")
    return built("wheel", unpacked, tmp_path / "again", monkeypatch)


def pip_installed(wheel: Path, into: Path) -> Path:
    """The folder into which a wheel was installed, alone."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target"]
    subprocess.run([*pip, into, wheel], check=True, timeout=120)
    return into


def used_alone(package: Path, tmp_path: Path) -> tuple[Path, dict[str, list[str]]]:
    """Where the engine stands and what it says, with nothing else to import but pydantic and tree-sitter."""
    beside = tmp_path / "beside"
    beside.mkdir()
    for name in NEEDED:
        place = places(name)
        (beside / place.name).symlink_to(place)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", USED, package, beside],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    file, levels = json.loads(done.stdout)
    return Path(file), levels


def test_the_engine_needs_pydantic_and_tree_sitter_alone(tmp_path: Path) -> None:
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / PACKAGE).symlink_to(ROOT / PACKAGE)
    _, levels = used_alone(tmp_path / "checkout", tmp_path)
    assert levels["combined"] == ["guide", "guide", "escalate", "attempts.block"]


@pytest.mark.process
def test_the_engine_alone_is_a_small_distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = built("wheel", ENGINE, tmp_path, monkeypatch)
    assert wheel.stat().st_size <= 2_000_000
    assert wheel.read_bytes() == built_twice(ENGINE, tmp_path, monkeypatch).read_bytes()
    folder = pip_installed(wheel, tmp_path / "installed")
    file, levels = used_alone(folder, tmp_path)
    assert file.is_relative_to(folder)
    assert len(levels) == 5
    parts = [folder, *map(places, NEEDED)]
    files = [file for part in parts for file in ([part] if part.is_file() else part.rglob("*"))]
    assert sum(file.stat().st_size for file in files) <= 20_000_000


def test_the_engines_distribution_holds_every_module_that_it_imports() -> None:
    settings = tomllib.loads((ENGINE / "pyproject.toml").read_text())
    kept = settings["tool"]["hatch"]["build"]["only-include"]
    held = {
        name for name, path in modules().items() if any(path.is_relative_to(ROOT / place) for place in kept)
    }
    missing = {
        f"{name} imports {needed}"
        for name in held - {PACKAGE}
        for needed in (imports(name) & modules().keys()) - held
    }
    assert missing == set()


def test_both_distributions_want_the_same_releases() -> None:
    whole, engine = (tomllib.loads((folder / "pyproject.toml").read_text()) for folder in (ROOT, ENGINE))
    assert set(engine["project"]["dependencies"]) < set(whole["project"]["dependencies"])
    for key in ("requires-python", "license"):
        assert engine["project"][key] == whole["project"][key]
    assert engine["build-system"] == whole["build-system"]
    assert (ENGINE / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@pytest.mark.process
def test_the_wheel_that_a_client_of_the_protocol_starts_is_one_command_and_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = built("wheel", ACP, tmp_path, monkeypatch)
    assert wheel.read_bytes() == built_twice(ACP, tmp_path, monkeypatch).read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        held = {Path(name).name: archive.read(name) for name in archive.namelist()}
    assert held.keys() == {"METADATA", "WHEEL", "RECORD", "entry_points.txt"}
    told = message_from_bytes(held["METADATA"])
    assert (told["Name"], told["Version"]) == ("tui-agent-acp", __version__)
    needs = f"tui-agent[acp,keyring]=={__version__}"
    assert told.get_all("Requires-Dist") == [needs]
    entry = json.loads((ACP / "agent.json").read_text())
    assert entry["distribution"]["uvx"]["package"] == f"{told['Name']}=={told['Version']}"
    [command] = EntryPoints._from_text_for(held["entry_points.txt"].decode(), None)
    assert (command.group, command.name) == ("console_scripts", told["Name"])
    assert callable(command.load())
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {"acp", "keyring"} <= extras.keys()


@pytest.mark.process
def test_the_wheel_holds_what_its_commands_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = built_twice(ROOT, tmp_path, monkeypatch)
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path / "installed")
    there = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / PACKAGE).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    left_out = {name for name in there if name.startswith("tui_agent/lab/evaluation/")}
    assert left_out
    assert {name for name in names if "dist-info" not in name} == (there - left_out) | {
        "tui_agent/docs/RECOVERY.md",
        *(f"tui_agent/themes/{path.name}" for path in (ROOT / "themes").iterdir()),
    }
    code = (
        "from tui_agent.cli import main; import sys; "
        "sys.exit(main(['bench', '--list']) or main(['explain', 'ring.stop']) or main(['demo', '--list']))"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    for words in ("polling/", "policies: ", "ring.stop", "recovery"):
        assert words in done.stdout
