"""From the first paint to an open session: heavy imports, settings, the model, the journal.

Everything here happens while somebody may be typing: modules are loaded in a thread that gives way often,
files are read in threads, and the model lives in a process of its own.
"""

from __future__ import annotations

import asyncio
import importlib
import shutil
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.console.arguments import ConsoleArguments, Newest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_agent.agent.operator import Operator
    from tui_agent.config import Settings
    from tui_agent.sessions.recordings import Recording
    from tui_agent.sessions.replay import Replay
    from tui_agent.sessions.session import Session

LOOKS = (
    "tui_agent.console.sanitize",
    "tui_agent.console.panes.ink",
    "tui_agent.console.panes.pane",
    "tui_agent.console.panes",
    "tui_agent.console.cards.tray",
    "tui_agent.console.queued",
)
"""What the screen still lacks after its first paint."""

MODULES = (
    "pydantic",
    "tui_agent.events",
    "tui_agent.state",
    "pydantic_settings",
    "tui_agent.config",
    "tui_agent.agent.operator",
    "tui_agent.sessions.session",
)
"""In the order in which they lean on each other: small steps instead of one large one."""

REPLAY_MODULES = (
    *MODULES[:5],
    "tui_agent.sessions.replay",
    "tui_agent.sessions.recordings",
)
"""What a replay needs of them, and its own."""

PATIENCE = 0.0005
"""Seconds after which the loading thread lets the screen's thread run."""


class BootError(Exception):
    """The console cannot start; `message` says what happened, why, and what to do."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


@contextmanager
def giving_way() -> Iterator[None]:
    """While inside, threads let the screen's thread run at once."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(PATIENCE)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


async def load_modules(names: Sequence[str]) -> None:
    """Import a module at a time, keys answered in between."""
    with giving_way():
        for name in names:
            await asyncio.to_thread(importlib.import_module, name)
            await asyncio.sleep(0)


@dataclass(frozen=True)
class Opened:
    """What the live screen starts with. `scratch` is a throwaway folder that goes when the console is left."""

    session: Session
    settings: Settings
    task: str | None = None
    scratch: Path | None = None

    def clean_up(self) -> None:
        """Remove the throwaway workspace."""
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)


async def boot(arguments: ConsoleArguments, operator: Operator) -> Opened:
    """An open session for these arguments. Raises `BootError` for everything that the operator can mend."""
    await load_modules(MODULES)
    from tui_agent.config import load_settings, require_model, require_workspace
    from tui_agent.config_errors import ConfigError
    from tui_agent.sessions.errors import SessionError
    from tui_agent.sessions.session import open_session

    overrides = dict(arguments.overrides)
    if arguments.step:
        overrides["step"] = True
    try:
        settings = await asyncio.to_thread(load_settings, overrides, arguments.config)
        if arguments.demo is not None:
            return await _open_demo(arguments.demo, overrides, settings, operator)
        folder = None
        if arguments.resume is not None:
            folder = await asyncio.to_thread(_saved, arguments.resume, settings)
        else:
            require_workspace(settings)
            require_model(settings)
        session = await open_session(settings, operator, resume=folder)
        session.warm_up()
        return Opened(session, settings, arguments.task)
    except ConfigError as error:
        raise BootError(error.message) from error
    except SessionError as error:
        raise BootError(str(error)) from error


async def _open_demo(
    name: str, overrides: Mapping[str, object], settings: Settings, operator: Operator
) -> Opened:
    """A scenario as the model, in a workspace of its own. What the command line says outweighs the scenario."""
    from tui_agent.models.scenario import materialise
    from tui_agent.models.scenario_checks import ScenarioError
    from tui_agent.models.scenario_file import load_scenario
    from tui_agent.sessions.session import open_session

    try:
        scenario = await asyncio.to_thread(load_scenario, name)
    except ScenarioError as error:
        raise BootError(str(error)) from error
    scratch = Path(tempfile.mkdtemp(prefix="agent-tui-demo-"))
    await asyncio.to_thread(materialise, scenario, scratch)
    wanted: dict[str, object] = {
        "policy": scenario.policy,
        "approve": scenario.approve,
        "max_iterations": scenario.max_iterations,
        "context_tokens": scenario.context_tokens,
    }
    chosen = {key: value for key, value in wanted.items() if value is not None and key not in overrides}
    adapted = settings.replaced(**chosen, model=f"scripted:{name}", workspace=scratch)
    session = await open_session(adapted, operator)
    return Opened(session, adapted, scenario.task, scratch)


@dataclass(frozen=True)
class Recorded:
    """What the replay starts with; it can be looked at, and is yet to be folded through (`Replay.prepare`)."""

    replay: Replay
    recording: Recording
    settings: Settings

    @property
    def path(self) -> Path:
        """The file or folder that it came from."""
        return self.recording.path


async def open_replay(arguments: ConsoleArguments) -> Recorded:
    """A saved session or a recording of another program. Raises `BootError`."""
    await load_modules(REPLAY_MODULES)
    from tui_agent.config import load_settings
    from tui_agent.config_errors import ConfigError
    from tui_agent.sessions.errors import SessionError
    from tui_agent.sessions.recordings import open_recording
    from tui_agent.sessions.replay import Replay

    try:
        settings = await asyncio.to_thread(load_settings, arguments.overrides, arguments.config)
        wanted = arguments.replay if arguments.replay is not None else Newest.LATEST
        path = wanted if isinstance(wanted, Path) else await asyncio.to_thread(_saved, wanted, settings)
        with giving_way():
            recording = await asyncio.to_thread(open_recording, path, settings)
            replay = await asyncio.to_thread(Replay, recording.source)
        return Recorded(replay, recording, settings)
    except ConfigError as error:
        raise BootError(error.message) from error
    except SessionError as error:
        raise BootError(str(error)) from error


def _saved(wanted: str | Newest, settings: Settings) -> Path:
    """The folder of a saved session: by id, a beginning of it, or title. Raises `BootError`, `SessionError`."""
    from tui_agent.sessions.store import SessionStore

    store = SessionStore(settings.state_dir)
    if not isinstance(wanted, Newest):
        return store.find(wanted)
    newest = store.newest()
    if newest is None:
        raise BootError(
            f"No session is saved under {store.sessions_dir} yet. agent-tui demo makes one without a key."
        )
    return newest
