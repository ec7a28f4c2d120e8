"""Arguments that the command line hands to the console: parsed, validated, and light.

Nothing here imports more than the standard library, so that the command line can be read before anything is
painted; the values become `Settings` only after the first paint.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tui_agent import untrusted_files

if TYPE_CHECKING:
    from tui_agent.fleet.opening import FleetArguments
    from tui_agent.frontend.commands.host import ChosenSession
    from tui_agent.session.session import Session


WRONG_USAGE = 2
LEFT_BY_SIGNAL = 130
"""Exit codes of a console."""


class Newest(Enum):
    """Stands for "the newest session" in place of a session's name."""

    LATEST = "latest"


LATEST: Final = Newest.LATEST


class ConsoleArguments(NamedTuple):
    """One start of the console.

    At most one of `task`, `demo`, `replay`, `watch` and `resume` is set; with none, the console waits for a message.
    """

    overrides: Mapping[str, object] = MappingProxyType({})
    """Option values from the command line, by the name of their setting."""
    config: Path | None = None
    """`--config`: read instead of the user's own file."""
    task: str | None = None
    demo: str | None = None
    """Name of a built-in scenario."""
    replay: str | Newest | None = None
    """A session's id or title, the newest one, or a file to play."""
    watch: tuple[str, ...] = ()
    """Sessions of other agents to look at while they go on: files or folders, each in a tab."""
    replay_speed: float = 1.0
    """Times the recorded speed."""
    at_event: int = 0
    """Event to start a replay at, from 0 (nothing folded yet), or to show first of a session that is gone on with."""
    at_words: tuple[str, ...] = ()
    """Words to show of that event, in small letters."""
    resume: str | Newest | None = None
    """A session's id or title, or the newest."""
    step: bool = False
    """Start paused before every iteration."""
    follow: bool = False
    """The replayed session grows: begin at its end, and stay there."""
    fleet: FleetArguments | None = None
    """Many runs, on a board."""
    watched_folder: Path | None = None
    """A folder of growing sessions, on a board."""

    @property
    def is_live(self) -> bool:
        """It begins with a prompt: no board, and nothing to play or to look at."""
        elsewhere = (self.fleet, self.watched_folder, self.replay)
        return not self.watch and not self.follow and all(each is None for each in elsewhere)

    def opening(self, chosen: ChosenSession, without: frozenset[str] = frozenset()) -> ConsoleArguments:
        """To open another session as this start would, but for the options in `without`."""
        return self._replace(
            fleet=None,
            watched_folder=None,
            follow=False,
            overrides={name: value for name, value in self.overrides.items() if name not in without},
            task=None,
            demo=None,
            step=False,
            at_event=chosen.at,
            at_words=chosen.words,
            resume=chosen.session_id if chosen.what == "resume" else None,
            replay=chosen.session_id if chosen.what == "replay" else None,
        )

    def anew(self, task: str, session: Session | None) -> ConsoleArguments:
        """To begin a session, with the model that `session` has now, and its server."""
        overrides = dict(self.overrides)
        if session is not None and self.demo is None:
            now = {"model": session.state.session.model, "api_base": session.settings.api_base}
            start = {"model": session.settings.model, "api_base": overrides.get("api_base")}
            overrides |= {key: value for key, value in now.items() if value and value != start[key]}
        begun = self._replace(demo=None, resume=None, replay=None, at_event=0, at_words=())
        return begun._replace(overrides=overrides, task=task or None)


def in_browser() -> bool:
    """True if a server of this machine draws for us: `agent-tui serve` started this console for a tab."""
    return os.environ.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")


def wanted_early(key: str, arguments: ConsoleArguments) -> object:
    """A setting that the first paint needs, from option, variable or the operator's own file; None if none
    sets it.

    What is wrong in the file is reported when the whole configuration is read.
    """
    return _given(key, arguments) or _in_file(arguments.config).get(key)


class EarlyModel(NamedTuple):
    """The model that a start names, unchecked: what is wrong is said when the whole configuration is read."""

    name: object
    api_base: object = None
    client: object = None
    """The client that its profile wants."""


def model_early(arguments: ConsoleArguments) -> EarlyModel:
    """The model of this start, as `wanted_early` finds a setting; through its profile or alias, if it has one."""
    file = _in_file(arguments.config)
    chosen = _given("profile", arguments) or file.get("profile")
    named, address = _given("model", arguments), wanted_early("api_base", arguments)
    name = chosen or named or file.get("model")
    profile = _table(_table(file, "profiles"), str(_table(file, "aliases").get(str(name), name)))
    if not profile:
        return EarlyModel(named or file.get("model"), address)
    model = named if chosen and named else profile.get("model")
    own = _given("api_base", arguments) if chosen else None
    return EarlyModel(model, own or profile.get("api_base", address), profile.get("client"))


_LARGEST = 1_000_000
"""Bytes of a configuration."""


def _given(key: str, arguments: ConsoleArguments) -> object:
    """The value of an option or a variable."""
    return arguments.overrides.get(key) or os.environ.get(f"AGENT_TUI_{key.upper()}")


def _table(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = values.get(key)
    return found if isinstance(found, Mapping) else {}


def _in_file(config: Path | None) -> Mapping[str, Any]:
    """The values of the operator's own file; none if it cannot be read."""
    from platformdirs import user_config_path

    path = config or user_config_path("agent-tui", appauthor=False) / "config.toml"
    try:
        text = untrusted_files.content(path, _LARGEST).decode()
    except (OSError, ValueError):
        return {}
    import tomllib  # the first paint waits for it only if there is a file to read

    try:
        return tomllib.loads(text)
    except ValueError:
        return {}
