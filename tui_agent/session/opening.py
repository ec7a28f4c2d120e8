"""How a session is opened: a new one, or a saved one, read again, repaired and gone on with."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from tui_agent import __version__
from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.core.fold import apply
from tui_agent.core.names import unanswered
from tui_agent.core.projections.background import lost
from tui_agent.core.state import RunState
from tui_agent.models.choose import ModelByName
from tui_agent.models.protocol import Model
from tui_agent.runtime.operator import Operator
from tui_agent.runtime.waiting import Wait
from tui_agent.session.other_agent import FindAgent, own_loop
from tui_agent.session.own_run import checked
from tui_agent.session.sandboxes import tried_out
from tui_agent.session.session import Session
from tui_agent.store import saved_state
from tui_agent.store.checkpoints import Checkpoints
from tui_agent.store.errors import SessionError
from tui_agent.store.journal import Journal, sessions_folder
from tui_agent.store.no_collection import no_collection
from tui_agent.store.private import unblocked
from tui_agent.store.provenance import is_foreign
from tui_agent.store.recorder import Listener, SessionRecorder
from tui_agent.store.redaction import Redactor
from tui_agent.store.repair import repair_events
from tui_agent.tools.background import BackgroundCommands
from tui_agent.tools.file_checks import FileChecks
from tui_agent.tools.registry import ToolRegistry, default_tools


def new_session_id(now: float) -> str:
    """A sortable, unique name: UTC time to the second, and eight random hex digits, since a fleet opens hundreds of
    sessions in one second.
    """
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{secrets.token_hex(4)}"


async def open_session(
    settings: Settings,
    operator: Operator,
    model: Model | None = None,
    resume: Path | None = None,
    *,
    tools: ToolRegistry | None = None,
    environment: Mapping[str, str] | None = None,
    clock: Callable[[], float] = time.time,
    listener: Listener | None = None,
    checkpoints: Checkpoints | None = None,
    jitter: Callable[[], float] = random.random,
    wait: Callable[[], Wait] = Wait,
    hosted: Model | None = None,
    agent: FindAgent = own_loop,
) -> Session:
    """A new session, or the saved one in the folder `resume`, ready for `submit`.

    `listener` hears every event from the first one on, as if it had subscribed before the session was there.
    `checkpoints` keep the workspace in place of the store in the state folder; `jitter` spreads the waits
    between tries of a model call, by numbers from 0 to 1, and `wait` makes the object that keeps them;
    `hosted` makes the calls through litellm in place of a host of its own; `agent` finds another agent that
    takes the steps. Raises `SessionError` if the
    journal cannot be opened, or a sandbox is required and none works.
    """
    if settings.sandbox.mode == "require":
        await _require_sandbox(settings)
    redactor = Redactor.from_environment(os.environ if environment is None else environment)
    if resume is None:
        folder = sessions_folder(settings.state_dir) / new_session_id(clock())
        recorder = SessionRecorder(await Journal.create(folder), redactor, clock=clock)
        foreign, dropped_bytes = False, 0
    else:
        folder = resume
        foreign = is_foreign(folder, sessions_folder(settings.state_dir))
        recorder, dropped_bytes = await _go_on(folder, redactor, clock, foreign=foreign)
    if listener is not None:
        recorder.subscribe(listener)
    if resume is None:
        recorder.record(
            events.SessionStarted(
                session_id=folder.name, workspace=str(settings.workspace), app_version=__version__
            )
        )
        if settings.step:
            recorder.record(events.ModeChanged(mode=events.Mode.STEP))
    else:
        recorder.record(
            events.SessionResumed(
                app_version=__version__,
                dropped_bytes=dropped_bytes,
                operator_present=operator.present,
                on_escalation=unanswered(recorder.state.run.policy, settings.on_escalation),
                workspace=str(settings.workspace) if foreign else "",
            )
        )
        gone = lost(recorder.state.background)
        for event in (*gone, *repair_events(recorder.state), *_chosen_now(settings, recorder.state)):
            recorder.record(event)
        if not foreign:
            settings = _where_it_was(settings, recorder.state)
    background = BackgroundCommands(recorder.record, recorder.state.background.started)
    session = Session(
        settings,
        operator,
        model or ModelByName(settings, hosted),
        tools
        or default_tools(
            settings.command_timeout,
            checks=FileChecks(settings.format, settings.diagnostics),
            background=background,
            web=settings.web,
        ),
        recorder,
        folder,
        background,
        checkpoints,
        jitter,
        wait,
        agent(recorder.state.session),
    )
    if foreign or recorder.state.session.source:
        session.set_goal(None)  # a command that somebody else wrote is not run
    session.goal_keeper.carry_out = partial(checked, session)
    return session


async def _go_on(
    folder: Path, redactor: Redactor, clock: Callable[[], float], *, foreign: bool
) -> tuple[SessionRecorder, int]:
    """The recorder of a saved session, and how many bytes its journal was rid of. What others saved is not used."""
    with no_collection():
        saved = saved_state.NOTHING if foreign else await asyncio.to_thread(saved_state.load, folder)
        state = saved.state

        def take(event: events.Event) -> None:
            nonlocal state
            state = apply(state, event)

        journal = await Journal.open_to_append(folder, after=saved.mark, take=take)
        await asyncio.to_thread(_reserve, redactor, journal.path)
    return SessionRecorder(journal, redactor, state, clock), journal.contents.dropped_bytes


def _reserve(redactor: Redactor, journal: Path) -> None:
    """Keep the placeholders of a journal from standing for new secrets."""
    with open(journal, encoding="utf-8", errors="replace", opener=unblocked) as lines:
        for line in lines:  # one at a time, so that no other thread waits
            redactor.reserve(line)


async def _require_sandbox(settings: Settings) -> None:
    found = await tried_out(settings)
    if found.mechanism is None:
        raise SessionError(
            "A sandbox is required (--sandbox require), and none works here",
            found.why,
            "Install bubblewrap, or start with --sandbox auto; `agent-tui doctor` says what was tried.",
        )


def _chosen_now(settings: Settings, state: RunState) -> list[events.Event]:
    """Options of this start that differ from the saved session."""
    chosen: list[events.Event] = []
    for setting in ("policy", "model", "approve"):
        value = getattr(settings, setting)
        if settings.sources[setting].startswith("--") and value != getattr(state.session, setting):
            chosen.append(events.SettingChanged(setting=setting, value=str(value)))
    return chosen


def _where_it_was(settings: Settings, state: RunState) -> Settings:
    """The settings with the server that the newest run's models were called at, if this start names neither a
    server nor a model: the session's words go to nobody else.
    """
    address = state.run.api_base
    if not address or settings.api_base is not None or settings.sources["model"].startswith("--"):
        return settings
    return settings.replaced(api_base=address)
