"""What is inside a sandbox and what is not, apart from how an operating system holds it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

SECRET_PLACES = (
    *(
        "~/.ssh",
        "~/.gnupg",
        "~/.aws",
        "~/.azure",
        "~/.config/gcloud",
        "~/.kube",
        "~/.docker",
        "~/.netrc",
        "~/.npmrc",
    ),
    *(
        "~/.pypirc",
        "~/.git-credentials",
        "~/.config/git/credentials",
        "~/.config/gh",
        "~/.config/hub",
        "~/.config/glab-cli",
    ),
    *(
        "~/.password-store",
        "~/.local/share/keyrings",
        "~/.config/op",
        "~/.config/rclone",
        "~/.terraform.d",
        "~/.vault-token",
    ),
    *(
        "~/.cargo/credentials.toml",
        "~/.gem/credentials",
        "~/.m2/settings.xml",
        "~/.gradle/gradle.properties",
        "~/.pgpass",
    ),
    *("~/.my.cnf", "~/.mozilla", "~/.thunderbird", "~/.config/google-chrome", "~/.config/chromium"),
    *("~/.config/BraveSoftware", "~/.bash_history", "~/.zsh_history", "~/.python_history"),
    *("~/Library/Keychains", "~/Library/Application Support/Google/Chrome"),
    *("/etc/shadow", "/etc/gshadow", "/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_rsa_key"),
)
"""Files and folders that hold keys, passwords or what a person did; commands cannot read them."""
_RUN_LATER = (".git/hooks", ".git/config", ".git/info/attributes", ".agent-tui.toml", ".mcp.json")
"""Within the workspace: what others run or obey later, and a command therefore must not write."""


@dataclass(frozen=True)
class Walls:
    """The paths are absolute and real (without links)."""

    workspace: Path
    scratch: Path
    """What commands see as their temporary folder; it lasts as long as the session."""
    network: bool = False
    hidden: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    """Beside the workspace and the temporary folder."""

    @classmethod
    def around(
        cls,
        workspace: Path,
        scratch: Path,
        *,
        network: bool = False,
        hide: tuple[str, ...] = (),
        writable: tuple[str, ...] = (),
        state_dir: Path | None = None,
    ) -> Walls:
        """The walls for a workspace; `hide` and `writable` come from the configuration (`~` stands for the home)."""
        hidden = map(_real, (*SECRET_PLACES, *hide, *([os.fspath(state_dir)] if state_dir else ())))
        named = tuple(dict.fromkeys(path for path in map(_real, writable) if path.exists()))
        inside = _real(os.fspath(workspace))
        return cls(
            inside,
            _real(os.fspath(scratch)),
            network,
            tuple(
                path
                for path in dict.fromkeys(hidden)
                if os.path.lexists(path) and path not in {inside, *named}
            ),
            named,
        )

    @property
    def protected(self) -> tuple[Path, ...]:
        """What there is in the workspace that may be read and not written."""
        return tuple(
            path for name in _RUN_LATER if (path := self.workspace / name).exists() and not path.is_symlink()
        )

    @property
    def hidden_within(self) -> tuple[Path, ...]:
        """What is hidden in a place that may be written."""
        return tuple(filter(self.within, self.hidden))

    @property
    def holding(self) -> tuple[Path, ...]:
        """Folders that may be written and hold what may not: renamed, they would take it out of its place."""
        kept = (*self.protected, *self.hidden_within)
        above = {folder for path in kept for folder in path.parents if self.within(folder)}
        return tuple(sorted(folder for folder in above if not folder.is_symlink()))

    def within(self, path: Path) -> bool:
        """Whether a path is in the workspace, or in what may be written beside it."""
        return any(path.is_relative_to(place) for place in (self.workspace, *self.writable))


def _real(path: str) -> Path:
    return Path(os.path.realpath(os.path.expanduser(path)))  # noqa: PTH111 - any user's home
