"""One session: journal, model, tools, operator and loop put together, behind the interface of the front doors.

What a front door does goes through here and becomes events; what it shows comes from `state`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tui_agent.config.mcp_servers import ServerEntry
from tui_agent.config.settings import Settings, user_config_file
from tui_agent.config.user_file import UserFile
from tui_agent.core import events
from tui_agent.core.names import ASK_OPERATOR, BUDGET_KEYS, Decision, Phase, unanswered
from tui_agent.core.projections.history import estimate_tokens
from tui_agent.core.recovery.policy import preset
from tui_agent.core.state import RunState
from tui_agent.models import keychain
from tui_agent.models.choose import ModelByName, NameCheck
from tui_agent.models.keychain import key_variable
from tui_agent.models.protocol import Model, ModelFault
from tui_agent.permissions.findings import Judgement
from tui_agent.permissions.rules import PermissionRule, parse_rule
from tui_agent.playbook.store import Playbook
from tui_agent.quantities import resets
from tui_agent.runtime.approvals import Approvals, obeyed_by
from tui_agent.runtime.checkpointer import Checkpointer
from tui_agent.runtime.driver import Driver
from tui_agent.runtime.executor import Executor
from tui_agent.runtime.hooks import HookRunner
from tui_agent.runtime.model_call import ModelCaller
from tui_agent.runtime.operator import Operator
from tui_agent.runtime.recorder import Recorder, RecordingFailed
from tui_agent.runtime.system_prompt import system_prompt
from tui_agent.runtime.waiting import Wait
from tui_agent.sandbox.choose import choose, switched_off
from tui_agent.sandbox.inside import in_words as taken_back_in_words
from tui_agent.sandbox.left_behind import WorkspaceRecord
from tui_agent.sandbox.mechanisms import Sandbox
from tui_agent.sandbox.named import names_in
from tui_agent.sandbox.taken_back import TakenBack
from tui_agent.sandbox.watch import Watch
from tui_agent.session.checkpointer import SessionCheckpointer
from tui_agent.session.counters import Counters
from tui_agent.session.fork_outputs import OUTPUT_FOLDER
from tui_agent.session.learning import Learning
from tui_agent.session.rewind import Rewinding, kept_before_run
from tui_agent.session.sandboxes import for_server, sandbox_policy
from tui_agent.session.servers import SessionServers
from tui_agent.session.sub_agents import SubAgents
from tui_agent.store.audit import rule_uses
from tui_agent.store.checkpoints import Checkpoints
from tui_agent.store.errors import SessionError
from tui_agent.store.images import IMAGES_FOLDER, keep_images, may_name_images, names_images
from tui_agent.store.kept_rules import KeptRules
from tui_agent.store.recorder import Listener, SessionRecorder
from tui_agent.terminal_text import one_line
from tui_agent.tools.background import BackgroundCommands
from tui_agent.tools.errors import ToolError, in_words
from tui_agent.tools.mcp.servers import McpServers
from tui_agent.tools.registry import ToolRegistry, subject_key
from tui_agent.tools.shell import Bash
from tui_agent.tools.skills import BadSkill, ReadSkill, Skills, find_skills
from tui_agent.tools.task import Task
from tui_agent.tools.tool import ToolContext
from tui_agent.tools.workspace import Workspace

logger = logging.getLogger(__name__)

SERVERS_PATIENCE = 5.0
"""Seconds that the first model call waits for MCP servers, from their start on; what comes later joins later calls."""
SCRATCH_FOLDER = "tmp"
"""In a session's folder: what commands in a sandbox see as their temporary folder, for as long as it is open."""
TAKEN_BACK_FOLDER = "taken-back"
"""In a session's folder: copies of what the sandbox took back from commands."""


NEXT_RUN = frozenset(BUDGET_KEYS) | {
    "policy",
    "max_iterations",
    "budget_warning",
    "context_tokens",
    "fallback_models",
    "fallbacks",
    "on_limit",
    "wait_at_most",
    "summary_model",
    "compact_at",
    "tool_calls",
    "recovery",
}
"""Settings that hold from the next run on when they change in an open session."""
OWN_COMMAND_TIMEOUT = 3_600.0
"""Seconds that a command of the operator's may take."""


LONGEST_TITLE = 200
"""Characters of a name that the operator gives."""


class Session:
    """A session that is open. Made by `open_session`; used from one event loop; ended by `close`."""

    def __init__(
        self,
        settings: Settings,
        operator: Operator,
        model: Model,
        tools: ToolRegistry,
        recorder: SessionRecorder,
        folder: Path,
        background: BackgroundCommands,
        checkpoints: Checkpoints | None = None,
        jitter: Callable[[], float] = random.random,
        wait: Callable[[], Wait] = Wait,
    ) -> None:
        self.background = background
        self.id = folder.name
        self.folder = folder
        self.settings = settings
        self.recorder = recorder
        self._operator = operator
        self._model = model
        self._tools = tools if operator.present else tools.hiding(ASK_OPERATOR)
        workspace = Path(recorder.state.session.workspace)
        self._workspace = workspace
        self.checkpoints = checkpoints or Checkpoints(
            settings.state_dir, workspace, self.id, secrets=recorder.secrets
        )
        self.checkpointer = SessionCheckpointer(recorder, self.checkpoints)
        self.rewinding = Rewinding(recorder, self.checkpoints)
        if settings.sub_agents:
            lanes = SubAgents(
                recorder,
                lambda: self._tools,
                operator,
                self.checkpointer,
                lambda prompt: self._run_started(prompt, (), ""),
                self._make_driver,
                settings.sub_agents,
            )
            self._tools = self._tools.having(Task(lanes.run))
        self.kept_rules = KeptRules(settings.state_dir, workspace)
        self._approvals = Approvals(
            workspace,
            settings.permission_rules(),
            self.kept_rules.rules,
            self.kept_rules.add,
            self._keep_everywhere,
            settings.permissions.reads,
        )
        self._approvals.obeyed = self._obeyed
        self.playbook = Playbook(settings.state_dir, workspace)
        self._learning = Learning(self.playbook)
        self._counters = Counters(settings.state_dir, self.playbook.name, self.checkpoints)
        self._hooks = HookRunner(settings.hooks, self.id, workspace, settings.environment.passed)
        self._jitter = jitter
        self._wait = wait
        self._servers = SessionServers(
            recorder, operator, self._tools, settings.state_dir, workspace, self.sandbox_of_server
        )
        self._driver = self._make_driver(recorder, self._tools, operator, self.checkpointer)
        self._run: asyncio.Task[events.RunFinished | None] | None = None
        self._warming: asyncio.Task[None] | None = None
        self._sandbox: asyncio.Task[Sandbox] | None = None
        self._trying: asyncio.Task[Sandbox] | None = None
        recorder.subscribe(self._accept_own_writes)
        recorder.subscribe(self._learning.heard)
        self._servers_until = 0.0
        self._bad_skills: set[BadSkill] = set()
        self.unprepared = ""
        """Why the newest run could not be prepared: its message waits. Empty where it could."""

    def _make_driver(
        self, recorder: Recorder, tools: ToolRegistry, operator: Operator, checkpointer: Checkpointer
    ) -> Driver:
        """The loop over a recorder: the session's own, or a lane of it."""
        settings = self.settings
        executor = Executor(
            recorder,
            tools,
            operator,
            Workspace(self._workspace),
            self.folder / OUTPUT_FOLDER,
            self._approvals,
            self._hooks,
            self.sandbox,
            checkpointer,
            tuple((rule.pattern, rule.hint) for rule in settings.recovery.hints),
            self.playbook.suggestion,
        )
        caller = ModelCaller(
            recorder,
            self._model,
            tools,
            tools_ready=self._tools_ready,
            api_base=settings.api_base,
            server_of=lambda name: urlsplit(settings.called(name).api_base or "").netloc.rpartition("@")[2],
            silence_timeout=settings.model_timeout,
            waits_for_prompts=not settings.says("model_timeout"),
            images=self.folder / IMAGES_FOLDER,
            workspace=self._workspace,
            jitter=self._jitter,
            wait=self._wait(),
        )
        return Driver(recorder, caller, executor, operator, checkpointer)

    @property
    def state(self) -> RunState:
        """Everything there is to show."""
        return self.recorder.state

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Hear every event as it happens, with the state after it; returns what ends that."""
        return self.recorder.subscribe(listener)

    @property
    def running(self) -> bool:
        """Whether a run goes on in this process."""
        return self._run is not None and not self._run.done()

    def warm_up(
        self, begun: asyncio.Task[None] | None = None, trying: asyncio.Task[Sandbox] | None = None
    ) -> None:
        """Get model and sandbox ready in the background, so that the first run need not wait for them; `begun` and
        `trying` (`sandboxes.tried_out`): that is under way.
        """
        self._trying = trying
        loop = asyncio.get_running_loop()
        self._warming = begun or loop.create_task(self._start_model(), name="warm-up")
        self._start_sandbox()

    async def _start_model(self) -> None:
        # What is wrong with the model is said when it is called.
        with suppress(ModelFault):
            await self._model.start()

    async def sandbox(self) -> Sandbox:
        """The sandbox of commands, found out once."""
        return await asyncio.shield(self._start_sandbox())

    def _start_sandbox(self) -> asyncio.Task[Sandbox]:
        if self._sandbox is None or _failed(self._sandbox):
            self._sandbox = asyncio.get_running_loop().create_task(self._choose_sandbox(), name="sandbox")
        return self._sandbox

    async def _choose_sandbox(self) -> Sandbox:
        if self.settings.sandbox.mode == "off":
            return switched_off(self.settings.environment.passed)
        if self._trying is not None:
            await asyncio.gather(self._trying, return_exceptions=True)
        policy = sandbox_policy(self.settings, self._workspace, self.folder / SCRATCH_FOLDER)
        record = WorkspaceRecord.of(self.settings.state_dir, self._workspace)
        watch = Watch(policy.places, self.folder / TAKEN_BACK_FOLDER, record)
        self._say_taken_back(await asyncio.to_thread(watch.recover), "The last run here was killed. ")
        passed = self.settings.environment.passed
        chosen = await choose(self.settings.sandbox.mode, policy, passed, watch, self._say_taken_back)
        self.checkpoints.inside(chosen)
        self._approvals.sandbox = chosen
        return chosen

    async def sandbox_of_server(self, entry: ServerEntry) -> Sandbox:
        """The sandbox that an MCP server runs in."""
        return for_server(self.settings, entry, await self.sandbox())

    def _say_taken_back(self, taken: Sequence[TakenBack], before: str = "") -> None:
        if taken:
            text = before + taken_back_in_words(taken)
            self.recorder.record(events.Notice(severity="warning", text=text, origin="sandbox"))

    def _accept_own_writes(self, event: events.Event, _: RunState) -> None:
        """What our own tools wrote by leave of the operator is none of a command's."""
        match event:
            case events.ToolSucceeded(changed=paths) | events.Rewound(files=paths) if paths:
                if (watch := self._watch) is not None:
                    for path in paths:
                        watch.accept(self._workspace / path)

    def _obeyed(self, path: str) -> str:
        """What outside obeys a file by itself: a name that programs look for, or git's settings and hooks by name."""
        if (watch := self._watch) is not None:
            return watch.why_obeyed(self._workspace / path)
        said = names_in((self._workspace,), (self._workspace / ".git",)).about(self._workspace / path)
        return said or obeyed_by(path)

    @property
    def _watch(self) -> Watch | None:
        done = self._sandbox is not None and self._sandbox.done() and not _failed(self._sandbox)
        return self._sandbox.result().watch if self._sandbox is not None and done else None

    async def _settle_sandbox(self) -> None:
        """The last look, when nothing runs any more. What changed after the last command is the operator's doing."""
        if (watch := self._watch) is not None:
            if watch.owed:
                self._say_taken_back(await asyncio.to_thread(watch.settle))
            if watch.record is not None:
                watch.record.close()

    def connect_servers(self, patience: float = SERVERS_PATIENCE) -> None:
        """Start the MCP servers in the background; the first model call waits `patience` seconds for them."""
        if self.settings.mcp:
            self._servers_until = asyncio.get_running_loop().time() + patience
            self._servers.start()

    @property
    def servers(self) -> McpServers | None:
        """The MCP servers; None where none is configured, or the configuration has not been read yet."""
        return self._servers.servers

    async def trust_server(self, name: str) -> bool:
        """Start a server of the workspace, now and from now on; False where there is none to be trusted."""
        return await self._servers.trust(name)

    async def reconnect_server(self, name: str) -> bool:
        """Connect to a server anew; False where none of that name was started."""
        return self.servers is not None and self.servers.reconnect(name)

    async def _tools_ready(self) -> None:
        rest = self._servers_until - asyncio.get_running_loop().time()
        if rest > 0:
            await self._servers.ready(rest)
            self._servers_until = 0.0
        elif self.servers is not None:
            await self.servers.listed()

    async def submit(self, text: str, typed: str | None = None, model: str = "") -> None:
        """Start a run with `text` as its task, or queue it for the run that goes on. `model`: for this run alone.

        Images that are named in `typed`, what the operator wrote of it (None: all), go along as copies. Raises
        `SessionError` for one that cannot be sent, and for a model of its own while a run goes on.
        """
        wanted = text if typed is None else typed
        images: tuple[events.Image, ...] = ()
        if may_name_images(wanted):  # else without a pause in which the run would go on without the message
            images = await asyncio.to_thread(
                keep_images, wanted, self._workspace, self.folder / IMAGES_FOLDER
            )
        if self.running and model:
            raise SessionError(
                f"{model} is for one run alone, and another run is under way",
                "a message that is queued would go to that run's model",
                "Send it when the run has ended; /stop ends it.",
            )
        if self.running:
            self._queue(text, images)
        elif self.unprepared and self.state.queue:
            self._queue(text, images)
            self.send_waiting()
        else:
            self._start(self._new_run(text, self.state.seq, images, model))

    def _queue(self, text: str, images: tuple[events.Image, ...]) -> None:
        self.recorder.record(events.MessageQueued(id=secrets.token_hex(4), text=text, images=images))

    def send_waiting(self) -> bool:
        """Start the run that could not be prepared, with the message that waits; False where none does."""
        if self.running or not (self.unprepared and self.state.queue):
            return False
        self._start(self._next_queued())
        return True

    def go_on(self) -> bool:
        """Go on with an unfinished run of a resumed session; False where there is none."""
        if self.running or not self.state.running:
            return False
        self.find_skills()
        self._start(self._driver.resume())
        waiting = self.state.waiting
        if waiting is not None:
            # Nothing else is recorded until the limit resets, and screens follow events.
            text = (
                f"The run waits for the limit of {waiting.model}, which {resets(waiting.until, time.time())}."
            )
            self.recorder.record(events.Notice(text=text, about=waiting.model))
        return True

    def unqueue(self, message_id: str) -> None:
        """Take back a queued message."""
        if any(message.id == message_id for message in self.state.queue):
            self.recorder.record(events.MessageUnqueued(id=message_id))

    def set_mode(self, mode: events.Mode) -> None:
        """AUTO, STEP or PAUSED, from the next iteration on."""
        if mode is not self.state.session.mode:
            self.recorder.record(events.ModeChanged(mode=mode))

    async def interrupt(self) -> None:
        """Cut short what runs; the run pauses and nothing is lost."""
        if self.running:
            self._driver.interrupt()

    def compact(self, instructions: str = "") -> str:
        """Have the older part of the conversation summarised: now, or before the next model call of the run.
        `instructions` say what the summary should hold in particular. Gives words for when that is; "": at once.
        """
        self.recorder.record(events.CompactionRequested(instructions=instructions))
        if not self.running:
            self._start(self._driver.summarise())
            return ""
        if self.state.session.mode is events.Mode.PAUSED:
            return "The run is paused: the older part is summarised when it goes on (/auto)."
        return "The older part is summarised before the next call of the model."

    def skip_wait(self) -> bool:
        """Try a model call that waits for its server now; False where none waits."""
        waits = self.running and self.state.phase is Phase.BACKOFF
        if waits:
            self._driver.skip_wait()
        return waits

    async def stop(self, reason: str = "The operator stopped the run.") -> None:
        """End the run as interrupted, with a partial answer, and wait until it is recorded."""
        if self.running:
            self._driver.stop(reason)
            await self.wait()

    def set_policy(self, name: str) -> None:
        """Judge by another policy from the next run on. Raises `ValueError` for an unknown one."""
        preset(name)
        self.recorder.record(events.SettingChanged(setting="policy", value=name))

    def set_model(self, name: str) -> None:
        """Use another model from the next call on. Raises `ValueError` for a name that cannot be one."""
        if not name.strip() or any(not character.isprintable() for character in name):
            raise ValueError(f"{name!r} cannot be the name of a model; name one as `provider/model`.")
        self.recorder.record(events.SettingChanged(setting="model", value=name))

    async def check_model(self, name: str) -> NameCheck:
        """Whether `set_model` would name a model that can be called; may take as long as the model host's start."""
        return await self._model.check(name) if isinstance(self._model, ModelByName) else NameCheck()

    async def blind_model(self, text: str) -> str:
        """The model that would get the names alone of the images that a text names; "" where none is known to."""
        name = self.state.model or self.settings.model
        if (
            not isinstance(self._model, ModelByName)
            or not may_name_images(text)
            or not await asyncio.to_thread(names_images, text, self._workspace)
        ):
            return ""
        return "" if await self._model.sees(name) else name

    def key_variable(self, wanted: str = "") -> str:
        """The variable of the key that `log_in` takes: of the next call's model, or as `wanted` names it. Raises
        `ValueError`.
        """
        return key_variable(self.settings.called(self.state.model or self.settings.model), wanted)

    async def log_in(self, variable: str, key: str) -> str:
        """Call models with this key from now on, and keep it in the platform's keyring; what became of it, in words."""
        self.recorder.learn_secrets({variable: key})
        if isinstance(self._model, ModelByName):
            await self._model.use_key(variable, key)
        try:
            await asyncio.to_thread(keychain.keep, variable, key)
        except keychain.NoKeyringError as error:
            return (
                f"The key is used until this console ends. It is not kept: {error}. For the next start set {variable} "
                "in your environment."
            )
        said = "The key is in the keyring of this system, and is used from the next call on."
        if variable in os.environ:
            said += f" {variable} in your environment outweighs it at the next start: take it out there."
        return said

    async def log_out(self, variable: str) -> str:
        """Remove a key from the platform's keyring and use it no longer; what became of it, in words."""
        if isinstance(self._model, ModelByName):
            await self._model.use_key(variable, os.environ.get(variable, ""))
        try:
            kept = await asyncio.to_thread(keychain.forget, variable)
        except keychain.NoKeyringError as error:
            return f"Nothing is kept: {error}."
        return f"{variable} was removed from the keyring." if kept else f"The keyring holds no {variable}."

    def set_profile(self, name: str) -> None:
        """Use a profile of the configuration from the next call on. Raises `ValueError` for one that is not there."""
        names = sorted(self.settings.profiles)
        if name not in names:
            there = f"There are {', '.join(names)}." if names else "[profiles.NAME] in config.toml makes one."
            raise ValueError(f"There is no profile {name!r}. {there}")
        self.set_model(name)

    def set_approve(self, mode: events.Approval) -> None:
        """Ask for more, or for less, from the next call on."""
        self.recorder.record(events.SettingChanged(setting="approve", value=mode.value))

    def rules(self) -> list[PermissionRule]:
        """Every permission rule in force, each with where it comes from."""
        return self._approvals.rules(self.state)

    def change_rules(
        self, added: Sequence[str] = (), removed: Sequence[str] = (), decision: Decision = Decision.ALLOW
    ) -> None:
        """Make permission rules for this session, or take such rules back. Raises `ValueError` for what is no rule."""
        for text in added:
            parse_rule(decision, text, "")
        changed = events.RulesChanged(decision=decision, added=tuple(added), removed=tuple(removed))
        self.recorder.record(changed)

    def _keep_everywhere(self, texts: Sequence[str]) -> None:
        """Allow calls by these rules in every workspace. Raises `ConfigError`, `ValueError`."""
        file = UserFile(self.settings.user_file, {"workspace": self._workspace})
        self.use_rules(file.add_rules(Decision.ALLOW, texts))

    def use_rules(self, settings: Settings) -> None:
        """Judge by these settings' permission rules from now on."""
        self._approvals.configured = tuple(settings.permission_rules())

    def use(self, key: str, settings: Settings) -> bool:
        """Take over a setting that was changed, from the next run on; False where this session cannot."""
        name = key.partition(".")[0]
        if name not in NEXT_RUN:
            return False
        self.settings = self.settings.replaced(**{name: getattr(settings, name)})
        return True

    def judge(self, line: str) -> Judgement:
        """What would become of a command, or of `TOOL SUBJECT` for a tool with a path or an address. Looks into the
        workspace."""
        name, _, subject = line.partition(" ")
        tool = self._tools.get(name)
        if tool is None:
            tool, subject = Bash(), line
        return self._approvals.judge(self.state, tool, {subject_key(tool): subject.strip()})

    def rule_uses(self) -> Counter[str]:
        """How often each rule of `rules` let a call of this session run, or refused one. Reads the journal."""
        return rule_uses(self.folder, self.rules())

    def holds_secret(self, text: str) -> bool:
        """Whether a text holds a secret of this environment, or what looks like one."""
        return self.recorder.holds_secret(text)

    def set_breaker(self, tool: str, *, opened: bool) -> None:
        """Withhold a tool, or give it back. Raises `ValueError` for a tool that is not there."""
        if tool not in self._tools.names:
            raise ValueError(f"There is no tool {tool!r}; there are {', '.join(self._tools.names)}.")
        self.recorder.record(events.BreakerSet(tool=tool, open=opened))

    def set_title(self, title: str) -> None:
        """Name the session, in one line that lists have room for."""
        self.recorder.record(events.TitleChanged(title=one_line(title, LONGEST_TITLE)))

    def edit_note(self, text: str | None) -> None:
        """Change or drop the note that goes with the next model call."""
        self.recorder.record(events.NotePrepared(text=text or None, edited=True))

    async def stop_background(self, name: str) -> None:
        """End a command in the background. Raises `ValueError` where none of that id runs."""
        if name not in self.state.background.running:
            running = ", ".join(self.state.background.running) or "none"
            raise ValueError(f"There is no command {name!r} in the background; running: {running}.")
        await self.background.stop(name, "operator")

    async def changes(self) -> str | None:
        """What the newest run has changed in the workspace, by tools or commands, as a patch; None: nothing was kept
        that would tell.
        """
        ref = kept_before_run(self.state)
        if not ref:
            return None
        try:
            return await self.checkpoints.patch(ref)
        except SessionError:
            return None

    async def wait(self) -> events.RunFinished | None:
        """Until the run under way (and those that queued messages start) has ended; None where none ran."""
        return None if self._run is None else await asyncio.shield(self._run)

    async def close(self) -> None:
        """End the run, the model and the journal, in this order. Raises `SessionError` where the disk refuses."""
        try:
            await self.stop("The session was closed.")
        finally:
            async with AsyncExitStack() as closing:
                # Unwound from the last to the first; a fault of one keeps none of the others from closing.
                closing.push_async_callback(self.recorder.close)
                closing.push_async_callback(self._model.close)
                closing.push_async_callback(self._settle_sandbox)
                closing.push_async_callback(self._servers.close)
                closing.push_async_callback(self._learning.settle)
                closing.push_async_callback(self.checkpointer.settle)
                closing.push_async_callback(self.background.close)
                if self._warming is not None:
                    self._warming.cancel()
                if self._sandbox is not None:
                    self._sandbox.cancel()
                    await asyncio.wait([self._sandbox])  # a program that tries the sandbox ends with it
                    await asyncio.to_thread(shutil.rmtree, self.folder / SCRATCH_FOLDER, True)

    def _start(self, work: Coroutine[Any, Any, events.RunFinished | None]) -> None:
        self._run = asyncio.get_running_loop().create_task(self._run_all(work), name=f"run-{self.id}")
        self._run.add_done_callback(self._run_ended)

    def _run_ended(self, run: asyncio.Task[events.RunFinished | None]) -> None:
        """Say what broke: who waits for the run gets it, but nobody has to."""
        bug = None if run.cancelled() else run.exception()
        if bug is not None:
            logger.error("the run broke", exc_info=bug)
            with suppress(RecordingFailed):  # which the journal says by itself
                text = f"Internal error: {type(bug).__name__}: {bug}"
                self.recorder.record(events.Notice(severity="error", text=text))

    async def _run_all(
        self, work: Coroutine[Any, Any, events.RunFinished | None]
    ) -> events.RunFinished | None:
        """One run (or the summary that was asked for between runs), then one for each message that waits, then the
        summary that was asked for too late for them.
        """
        self.unprepared = ""
        finished = await self._ended(work)
        ended = {events.Outcome.INTERRUPTED, events.Outcome.ERROR}
        while (
            self.state.queue
            and not self.unprepared
            and self.state.stop is None
            and (finished is None or finished.outcome not in ended)
        ):
            finished = await self._ended(self._next_queued())
        if self.state.stop is None and not self.unprepared:
            await self._driver.summarise()
        return finished

    async def _ended(self, work: Coroutine[Any, Any, events.RunFinished | None]) -> events.RunFinished | None:
        """The run to its end, with what it hands on."""
        finished = await work
        if finished is not None and self.state.recovery.policy.persist:
            await self._counters.keep(self.state)
        return finished

    async def run_own_command(self, command: str, progress: Callable[[str], None] = lambda _: None) -> str:
        """Run a command of the operator's in the workspace; what it printed, as the model reads it.

        It stands in the conversation and is no call: nothing judges it. The model reads it with the next message.
        `progress` takes pieces of its output as they come. Cancellation ends it, and records nothing.
        """
        bash = Bash(timeout=OWN_COMMAND_TIMEOUT)
        context = ToolContext(
            Workspace(self._workspace),
            self.folder / OUTPUT_FOLDER,
            f"own-{self.state.seq}",
            progress,
            self.recorder.new_mask,
        )
        try:
            output = await bash.run({"command": command}, context)
            printed, exit_code = output.content, output.exit_code
        except ToolError as error:
            printed, exit_code = error.message, error.exit_code
        self.record_own_command(command, printed, exit_code)
        return printed

    def record_own_command(self, command: str, printed: str, exit_code: int | None = None) -> None:
        """Put a command of the operator's into the conversation, with what it printed."""
        ended = events.OwnCommandEnded(command=command, printed=printed, exit_code=exit_code)
        self.recorder.record(ended)

    def find_skills(self) -> Skills:
        """The skills that there are now, offered from now on; what is no good is said once."""
        found = find_skills(self._workspace, user_config_file().parent)
        for bad in found.bad:
            if bad not in self._bad_skills:
                text = f"The skill in {bad.place} is left out: {bad.reason}."
                self.recorder.record(events.Notice(severity="warning", text=text))
        self._bad_skills.update(found.bad)
        self._tools.put("skills", [ReadSkill(found)] if found.skills else [])
        return found

    async def _new_run(
        self, task: str, asked_at: int, images: tuple[events.Image, ...], own_model: str = ""
    ) -> events.RunFinished | None:
        """A run of its own; None where it could not be prepared. Stopped before it begins, it ends at once.

        `asked_at`: the last event before. `own_model` is for this run alone.
        """
        start = await self._prepared(task, images, own_model)
        if start is None:
            self._queue(task, images)
            return None
        stop = self.state.stop
        stopped = stop.reason if stop is not None and stop.seq > asked_at else ""
        return await self._driver.run(start, stopped)

    async def _next_queued(self) -> events.RunFinished | None:
        """A run with the oldest message that waits, which goes on waiting where the run does not begin."""
        message, asked_at = self.state.queue[0], self.state.seq
        start = await self._prepared(message.text, message.images)
        if start is None or (self.state.stop is not None and self.state.stop.seq > asked_at):
            return None
        self.recorder.record(events.MessageUnqueued(id=message.id))
        return await self._driver.run(start)

    async def _prepared(
        self, task: str, images: tuple[events.Image, ...], own_model: str = ""
    ) -> events.RunStarted | None:
        """What begins a run; None, with the cause said, where that cannot be made."""
        try:
            return await self._run_started(task, images, own_model)
        except Exception as error:
            logger.debug("a run could not be prepared", exc_info=True)
            cause = str(error) if isinstance(error, SessionError) else in_words(error)
            self.unprepared = f"The run was not started: {cause}"
            text = (
                f"{self.unprepared}\nThe message waits, and goes out with /auto or before the next message."
            )
            self.recorder.record(events.Notice(severity="error", text=text))
            return None

    async def _run_started(
        self, task: str, images: tuple[events.Image, ...], own_model: str
    ) -> events.RunStarted:
        sandbox = await self.sandbox()
        skills = self.find_skills()
        session, settings = self.state.session, self.settings
        name = session.policy or settings.policy
        model = session.model or settings.model
        policy = preset(name, **settings.recovery.overrides())
        kept = await self._counters.begin() if policy.persist else None
        return events.RunStarted(
            run=self.state.run.number + 1,
            task=task,
            policy=name,
            policy_settings=policy.model_dump(mode="json"),
            model=own_model or model,
            session_model=model if own_model else "",
            api_base=_without_password(settings.api_base),
            system_prompt=system_prompt(
                self._workspace,
                operator_present=self._operator.present,
                personal=user_config_file().parent,
                skills=skills.skills,
            ),
            tools=self._tools.names,
            effects=self._tools.effects,
            approve=session.approve or settings.approve,
            max_iterations=settings.max_iterations,
            asks_for_steps=self._operator.present and not settings.asked_steps,
            max_cost=settings.max_cost,
            budgets=settings.budgets(),
            budget_warning=settings.budget_warning,
            context_tokens=settings.context_tokens,
            tools_tokens=sum(estimate_tokens(str(tool)) for tool in self._tools.specifications()),
            fallback_models=tuple(settings.fallback_models),
            fallbacks=settings.fallbacks.by_kind(),
            on_limit=settings.on_limit,
            wait_at_most=settings.wait_at_most,
            summary_model=settings.summary_model,
            compact_at=settings.compact_at,
            advisor=settings.recovery.advisor,
            tool_calls=settings.tool_calls,
            operator_present=self._operator.present,
            on_escalation=unanswered(name, settings.on_escalation),
            sandbox=sandbox.description,
            images=images,
            kept=kept,
        )


def _failed(task: asyncio.Task[Sandbox]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def _without_password(api_base: str | None) -> str:
    return "" if api_base is None or "@" in urlsplit(api_base).netloc else api_base
