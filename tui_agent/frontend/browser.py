"""The operator's browser, if this machine has one that shows itself in a window."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

_PATIENCE = 10.0
"""Seconds for a browser to come up."""


def has_browser(environ: Mapping[str, str], platform: str) -> bool:
    """True if a page that is opened here is seen by the operator, and not drawn over this terminal."""
    if environ.get("BROWSER"):
        return True
    if environ.get("SSH_CONNECTION"):
        return False
    return platform in {"darwin", "win32"} or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def open_page(address: str) -> bool:
    """Open a page in a window of its own; False if nothing here can. May take seconds."""
    if not has_browser(os.environ, sys.platform):
        return False
    try:
        done = subprocess.run(
            [sys.executable, "-m", "webbrowser", address],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            timeout=_PATIENCE, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return True  # a browser that stays in the foreground
    except OSError:
        return False
    return done.returncode == 0
