"""How this copy of the program was installed, and so the command that adds a package to it.

A hint never names the program on the public index: whoever has the name there would be installed. It names the folder
or the file that this copy was made of, or the packages that are missing.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from importlib.metadata import Distribution

DISTRIBUTION = "tui-agent"
_PACKAGE = Path(__file__).resolve().parent


def adding(extra: str) -> str:
    """The command that adds an extra of `pyproject.toml` to this copy."""
    found = _distribution()
    if beside_it := _in_environment_of_its_own(_requirements(found, extra)):
        return beside_it
    source = _source(found)
    if source.startswith("-e "):
        return f"{_install()} -e {shlex.quote(f'{source[3:]}[{extra}]')}"
    if source:
        return f"{_install()} {shlex.quote(f'{DISTRIBUTION}[{extra}] @ {source}')}"
    return packages(*_requirements(found, extra))


def packages(*requirements: str) -> str:
    """The command that installs packages beside this copy."""
    return _in_environment_of_its_own(requirements) or f"{_install()} {_quoted(requirements)}"


def _in_environment_of_its_own(requirements: Sequence[str]) -> str:
    """The command of pipx or uv, if one of them keeps an environment for this program; else empty."""
    prefix = Path(sys.prefix)
    if not requirements:
        return ""
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx inject {shlex.quote(prefix.name)} {_quoted(requirements)}"
    if (prefix / "uv-receipt.toml").is_file():
        return f"uv pip install --python {shlex.quote(sys.executable)} {_quoted(requirements)}"
    return ""


def _install() -> str:
    if find_spec("pip") is None:  # as in the environments that uv makes
        return f"uv pip install --python {shlex.quote(sys.executable)}"
    return f"{shlex.quote(sys.executable)} -m pip install"


def _quoted(requirements: Sequence[str]) -> str:
    return " ".join(map(shlex.quote, requirements))


def _distribution() -> Distribution | None:
    """The installed distribution of this very copy; None if it runs from its folder."""
    from importlib import metadata  # hints are rare, and it takes long to import

    try:
        found = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return None
    folder = _folder(_origin(found))
    here = folder is not None and folder.resolve() == _PACKAGE.parent
    return found if here or Path(str(found.locate_file(_PACKAGE.name))).resolve() == _PACKAGE else None


def _origin(found: Distribution) -> Mapping[str, Any]:
    """The source that an installer noted (PEP 610); {} for an index."""
    try:
        origin = json.loads(found.read_text("direct_url.json") or "{}")
    except (OSError, ValueError):
        return {}
    return origin if isinstance(origin, dict) and isinstance(origin.get("url"), str) else {}


def _folder(origin: Mapping[str, Any]) -> Path | None:
    url = urlsplit(str(origin.get("url", "")))
    return Path(unquote(url.path)) if "dir_info" in origin and url.scheme == "file" else None


def _source(found: Distribution | None) -> str:
    """The source of this copy, as pip takes it: `-e` and a folder, or an address; empty if it is not known or
    is gone.
    """
    if found is None:
        return f"-e {_PACKAGE.parent}" if (_PACKAGE.parent / "pyproject.toml").is_file() else ""
    origin = _origin(found)
    url, folder = str(origin.get("url", "")), _folder(origin)
    if folder is not None:
        editable = origin["dir_info"].get("editable") is True
        if not (folder / "pyproject.toml").is_file():
            return ""
        return f"-e {folder}" if editable else folder.as_uri()
    if version := origin.get("vcs_info"):
        return f"{version.get('vcs')}+{url}@{version.get('commit_id')}"
    local = urlsplit(url)
    return url if local.scheme == "file" and Path(unquote(local.path)).is_file() else ""


def _requirements(found: Distribution | None, extra: str) -> tuple[str, ...]:
    """The packages of an extra, with their versions."""
    of_extra = re.compile(rf"""extra\s*==\s*['"]{re.escape(extra)}['"]""")
    wanted = (found.requires or ()) if found is not None else ()
    return tuple(one.partition(";")[0].strip() for one in wanted if of_extra.search(one.partition(";")[2]))
