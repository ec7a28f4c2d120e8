"""From the first paint to an open session: heavy imports, settings, the model, the journal.

Somebody may be typing meanwhile: modules are imported in a thread that yields often, files are read in threads, and the
model runs in a process of its own.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.frontend.arguments import ConsoleArguments, Newest
from tui_agent.frontend.loading import load_modules, yielding_threads

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings
    from tui_agent.core.state import RunState, SessionFacts
    from tui_agent.frontend.away import Away
    from tui_agent.models.protocol import Model
    from tui_agent.models.scenario import Caption
    from tui_agent.runtime.operator import Operator
    from tui_agent.session.other_agent import FindAgent, OtherAgent
    from tui_agent.session.recordings import OpenedRecording
    from tui_agent.session.replay import Replay
    from tui_agent.session.session import Session

SETTINGS_MODULES = ("pydantic", "tui_agent.config.settings", "tui_agent.models.choose")
"""The sources of the model's name: its host starts before anything else is imported."""

SANDBOX = "tui_agent.session.sandboxes"
"""The task that tries out the sandbox while the rest is imported."""

AGENT = "tui_agent.acp_client.session"
"""What another agent takes that is to take the steps."""

MODULES = (
    *SETTINGS_MODULES,
    "tui_agent.core.events",
    "tui_agent.core.state",
    "tui_agent.core.fold",
    "tui_agent.runtime.operator",
    "tui_agent.session.opening",
)
"""Modules that a session needs, in the order of their imports: keys are answered between two of them."""

REPLAY_MODULES = (
    *MODULES[:6],
    "tui_agent.session.replay",
    "tui_agent.session.recordings",
)
"""Modules that a replay needs."""


@dataclass(frozen=True)
class Opened:
    """Values that the live screen starts with. `scratch` is a throwaway folder that goes when the console is
    left.
    """

    session: Session
    settings: Settings
    task: str | None = None
    scratch: Path | None = None
    captions: tuple[Caption, ...] = ()
    """A demo's words about the screen."""
    away: Away | None = None
    """Who is asked if nobody answers at the screen."""

    def clean_up(self) -> None:
        """Remove the throwaway workspace."""
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)


async def open_live(
    arguments: ConsoleArguments,
    operator: Operator,
    look: Callable[[RunState], Awaitable[None]] | None = None,
    host_for: Callable[[Settings], Model | None] = lambda _: None,
) -> Opened:
    """An open session for these arguments. Raises `ConfigError`, `SessionError`, `ScenarioError`.

    `look` gets what can be seen of a long session before all of it was read (see `store.journal_tail`); `host_for`
    gives the model host that sessions share, None: each has its own.
    """
    await load_modules(SETTINGS_MODULES)
    from tui_agent.config.settings import load_settings, require_model, require_workspace

    overrides = dict(arguments.overrides)
    if arguments.step:
        overrides["step"] = True
    settings = await asyncio.to_thread(load_settings, overrides, arguments.config)
    hosted = host_for(settings)
    warming = trying = None
    if arguments.demo is None and arguments.resume is None:
        require_workspace(settings)
        if settings.agent:
            hosted = None
        else:
            require_model(settings)
        # What else a session takes is imported beside it. A session that is resumed names its model itself.
        if hosted is not None:
            warming = asyncio.create_task(_warmed_up(settings, hosted))
        await load_modules([SANDBOX])
        from tui_agent.session.sandboxes import tried_out

        trying = asyncio.create_task(tried_out(settings))
    await load_modules(MODULES)
    from tui_agent.session.opening import open_session
    from tui_agent.store.journal_tail import latest

    find_agent = await _agent_finder(settings)

    if arguments.demo is not None:
        return await _open_demo(arguments.demo, overrides, settings, operator, hosted)
    folder = None
    if arguments.resume is not None:
        folder = await asyncio.to_thread(_find, arguments.resume, settings)
        if look is not None and (seen := await asyncio.to_thread(latest, folder)) is not None:
            await look(seen)
    with yielding_threads():
        session = await open_session(settings, operator, resume=folder, hosted=hosted, agent=find_agent)
    session.warm_up(warming, trying)
    return Opened(session, session.settings, arguments.task, away=whoever_is_away(session.settings))


def whoever_is_away(settings: Settings) -> Away | None:
    """Whoever is away, if the settings say how they are reached."""
    if not settings.notify.reaches_out:
        return None
    from tui_agent.frontend.away import away_of

    return away_of(settings)


async def _agent_finder(settings: Settings) -> FindAgent:
    """What finds the agent of a session. Raises `ConfigError` for an agent that is asked for and not known."""
    if settings.agent:
        await load_modules([AGENT])
        from tui_agent.acp_client.entries import agent_entry

        await asyncio.to_thread(agent_entry, settings, settings.agent)

    def find(facts: SessionFacts) -> OtherAgent | None:
        if not settings.agent and facts.agent is None:
            return None
        from tui_agent.acp_client.session import session_agent

        return session_agent(settings, facts)

    return find


async def _warmed_up(settings: Settings, hosted: Model) -> None:
    from tui_agent.models.choose import ModelByName
    from tui_agent.models.protocol import ModelFault
    from tui_agent.models.scenario_checks import ScenarioError

    with suppress(ModelFault, ScenarioError):  # said when the session opens, or when the model is called
        await ModelByName(settings, hosted).start()


async def _open_demo(
    name: str,
    overrides: Mapping[str, object],
    settings: Settings,
    operator: Operator,
    hosted: Model | None,
) -> Opened:
    """A scenario as the model, in a workspace of its own. What the command line says outweighs the scenario."""
    from tui_agent.models.scenario import materialise
    from tui_agent.models.scenario_file import load_scenario
    from tui_agent.session.opening import open_session

    scenario = await asyncio.to_thread(load_scenario, name)
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
    session = await open_session(adapted, operator, hosted=hosted)
    return Opened(session, adapted, scenario.task, scratch, scenario.captions if adapted.captions else ())


@dataclass(frozen=True)
class Recorded:
    """Values that the replay starts with; it can be looked at, and is yet to be folded through
    (`Replay.prepare`).
    """

    replay: Replay
    recording: OpenedRecording
    settings: Settings

    @property
    def path(self) -> Path:
        """The file or folder that it came from."""
        return self.recording.path


async def open_replay(arguments: ConsoleArguments) -> Recorded:
    """A saved session or a recording of another program. Raises `ConfigError`, `SessionError`."""
    await load_modules(REPLAY_MODULES)
    from tui_agent.config.settings import load_settings
    from tui_agent.session.recordings import open_recording
    from tui_agent.session.replay import Replay

    settings = await asyncio.to_thread(load_settings, arguments.overrides, arguments.config)
    path = await asyncio.to_thread(_find, arguments.replay or Newest.LATEST, settings)
    with yielding_threads():
        recording = await asyncio.to_thread(open_recording, path, settings)
        replay = await asyncio.to_thread(Replay, recording.source)
    return Recorded(replay, recording, settings)


def _find(wanted: str | Newest, settings: Settings) -> Path:
    from tui_agent.store.session_store import SessionStore

    return SessionStore(settings.state_dir).resolve(None if isinstance(wanted, Newest) else wanted)
