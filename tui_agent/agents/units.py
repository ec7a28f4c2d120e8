"""Units of a service manager that go on with a night after a reboot. They are text: a person installs them, or not.

A unit begins nothing: it goes on with the tasks that are open. Keys of providers do not stand in it.
"""

from __future__ import annotations

import plistlib
import re
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tui_agent import processes

_LABEL = "agent-tui-night"
_SECONDS = 2.0
"""Longest time for the service manager's answer."""


def systemd(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    """A unit for systemd's user manager."""
    variables = "".join(f"Environment={_word(f'{name}={value}')}\n" for name, value in environment.items())
    return f"""\
# Save it as ~/.config/systemd/user/{_LABEL}.service, then:
#   systemctl --user daemon-reload
#   systemctl --user enable {_LABEL}.service
#   loginctl enable-linger        (so that it starts without a login)
# Keys that the agents need: EnvironmentFile= with a file that only you can read.

[Unit]
Description=agent-tui goes on with the tasks of a night
After=network-online.target

[Service]
Type=exec
WorkingDirectory={_escaped(str(folder))}
{variables}ExecStart={" ".join(_word(word).replace("$", "$$") for word in command)}
Restart=on-abnormal
RestartSec=10

[Install]
WantedBy=default.target
"""


def launchd(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    """A property list for launchd, as an agent of the user."""
    entries = {
        "Label": _LABEL,
        "ProgramArguments": list(command),
        "WorkingDirectory": str(folder),
        "EnvironmentVariables": dict(environment),
        "RunAtLoad": True,
        "KeepAlive": {"Crashed": True},
    }
    listed = plistlib.dumps(entries, sort_keys=False).decode()
    how = (
        f"<!-- Save it as ~/Library/LaunchAgents/{_LABEL}.plist, then:\n"
        f"     launchctl bootstrap gui/$UID ~/Library/LaunchAgents/{_LABEL}.plist -->\n"
    )
    head, _, rest = listed.partition("<plist")
    return f"{head}{how}<plist{rest}"


UNITS = {"systemd": systemd, "launchd": launchd}
"""By the names that `--print-unit` takes."""


def machine_goes_down() -> bool:
    """Tell if systemd says that the machine is being shut down: then nobody has stopped what ends now. Blocking."""
    program = processes.own_program("systemctl", Path("/"))
    if program is not None:
        with suppress(OSError, subprocess.TimeoutExpired):
            asked = [program, "is-system-running"]
            done = subprocess.run(asked, capture_output=True, timeout=_SECONDS, check=False)
            return done.stdout.strip() == b"stopping"
    return False


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _word(text: str) -> str:
    """A word as systemd reads it."""
    if re.fullmatch(r"[A-Za-z0-9_./:=,@+-]+", text):
        return text
    return '"' + _escaped(text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) + '"'
