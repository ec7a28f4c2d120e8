"""One session: journal, model, tools, operator and loop put together, behind the interface of the front doors.

What a front door does goes through here and becomes events; what it shows comes from `state`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

from tui_agent.config.mcp_servers import ServerEntry
from tui_agent.config.settings import Settings, user_config_file
from tui_agent.core import events
from tui_agent.core.names import ASK_OPERATOR, BUDGET_KEYS, Phase, SandboxMode, unanswered
from tui_agent.core.projections.history import estimate_tokens
from tui_agent.core.recovery.policy import preset
from tui_agent.core.state import RunState
from tui_agent.models.protocol import Model, ModelFault
from tui_agent.playbook.store import Playbook
from tui_agent.quantities import resets
from tui_agent.runtime.checkpointer import Checkpointer
from tui_agent.runtime.driver import Driver
from tui_agent.runtime.executor import Executor
from tui_agent.runtime.hooks import HookRunner
from tui_agent.runtime.model_call import ModelCaller
from tui_agent.runtime.operator import Operator
from tui_agent.runtime.recorder import Recorder
from tui_agent.runtime.system_prompt import system_prompt
from tui_agent.runtime.waiting import Wait
from tui_agent.sandbox.mechanisms import Sandbox
from tui_agent.session.checkpointer import SessionCheckpointer
from tui_agent.session.counters import Counters
from tui_agent.session.fork_outputs import OUTPUT_FOLDER
from tui_agent.session.goal import Goal, GoalKeeper
from tui_agent.session.learning import Learning
from tui_agent.session.model_access import ModelAccess
from tui_agent.session.other_agent import OtherAgent
from tui_agent.session.permission_rules import PermissionRules
from tui_agent.session.rewind import Rewinding
from tui_agent.session.runs import Runs
from tui_agent.session.sandbox import SessionSandbox
from tui_agent.session.servers import SessionServers
from tui_agent.session.skills import SessionSkills
from tui_agent.session.sub_agents import SubAgents
from tui_agent.store.checkpoints import Checkpoints
from tui_agent.store.errors import SessionError
from tui_agent.store.images import IMAGES_FOLDER, keep_images, may_name_images
from tui_agent.store.recorder import Listener, SessionRecorder
from tui_agent.telemetry.export import exported
from tui_agent.terminal_text import one_line
from tui_agent.tools.background import BackgroundCommands
from tui_agent.tools.registry import ToolRegistry
from tui_agent.tools.task import Task
from tui_agent.tools.workspace import Workspace

logger = logging.getLogger(__name__)

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
        agent: OtherAgent | None = None,
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
        self.permissions = PermissionRules(settings, recorder, self._tools, folder)
        self.sandbox = SessionSandbox(
            settings, workspace, folder, recorder, self.checkpoints, self.permissions.approvals
        )
        self.models = ModelAccess(model, recorder, lambda: self.settings, workspace)
        self.skills = SessionSkills(recorder, self._tools, workspace)
        self.playbook = Playbook(settings.state_dir, workspace)
        self._learning = Learning(self.playbook)
        self._counters = counters = Counters(settings.state_dir, self.playbook.name, self.checkpoints)
        self._hooks = HookRunner(settings.hooks, self.id, workspace, settings.environment.passed)
        self._jitter = jitter
        self._wait = wait
        self.mcp = SessionServers(
            recorder,
            operator,
            self._tools,
            settings.state_dir,
            workspace,
            self.sandbox.of_server if agent is None else _without_sandbox,
            wanted=settings.mcp,
            lends=agent is not None,
        )
        self._agent = agent
        self._driver = (
            self._make_driver(recorder, self._tools, operator, self.checkpointer)
            if agent is None
            else agent.driver(
                recorder,
                operator,
                self.checkpointer,
                self.permissions.approvals,
                self._tools,
                self.mcp.lend,
                jitter,
                wait(),
            )
        )
        self.goal_keeper = GoalKeeper(lambda: self.goal, workspace)
        self._check_seconds = Goal.seconds
        self.runs = Runs(recorder, self._driver, counters, self._run_started, self.id, self.goal_keeper)
        self._warming: asyncio.Task[None] | None = None
        recorder.subscribe(self._learning.heard)
        self._telemetry = exported(settings.telemetry, self.id, recorder)

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
            self.permissions.approvals,
            self._hooks,
            self.sandbox.ready,
            checkpointer,
            tuple((rule.pattern, rule.hint) for rule in settings.recovery.hints),
            self.playbook.suggestion,
        )
        caller = ModelCaller(
            recorder,
            self._model,
            tools,
            tools_ready=self.mcp.listed,
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
        """A run goes on in this process."""
        return self.runs.running

    def warm_up(
        self, begun: asyncio.Task[None] | None = None, trying: asyncio.Task[Sandbox] | None = None
    ) -> None:
        """Get model and sandbox ready in the background, so that the first run need not wait for them; `begun` and
        `trying` (`sandboxes.tried_out`): that is under way.
        """
        loop = asyncio.get_running_loop()
        starting = self._start_model if self._agent is None else self._agent.start
        self._warming = begun or loop.create_task(starting(), name="warm-up")
        self.sandbox.start(trying)

    async def _start_model(self) -> None:
        # What is wrong with the model is said when it is called.
        with suppress(ModelFault):
            await self._model.start()

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
            self.runs.put(text, images)
        elif self.runs.unprepared and self.state.queue:
            self.runs.put(text, images)
            self.runs.send_waiting()
        else:
            self.runs.begin(text, images, model)

    def go_on(self) -> bool:
        """Go on with an unfinished run of a resumed session; False if there is none."""
        if self.running or not self.state.running:
            return False
        self.skills.find()
        self.runs.follow(self._driver.resume())
        waiting = self.state.waiting
        if waiting is not None:
            # Nothing else is recorded until the limit resets, and screens follow events.
            text = (
                f"The run waits for the limit of {waiting.model}, which {resets(waiting.until, time.time())}."
            )
            self.recorder.record(events.Notice(text=text, about=waiting.model))
        return True

    def set_mode(self, mode: events.Mode) -> None:
        """AUTO, STEP or PAUSED, from the next iteration on."""
        if mode is not self.state.session.mode:
            self.recorder.record(events.ModeChanged(mode=mode))

    async def interrupt(self) -> None:
        """Cut short what runs; the run pauses and nothing is lost."""
        if self.running:
            self._driver.interrupt()
            self.goal_keeper.interrupt()

    def compact(self, instructions: str = "") -> str:
        """Have the older part of the conversation summarised: now, or before the next model call of the run.
        `instructions` say what the summary should hold in particular. Gives words for when that is; "": at once.
        """
        self.recorder.record(events.CompactionRequested(instructions=instructions))
        if not self.running:
            self.runs.follow(self._driver.summarise())
            return ""
        if self.state.session.mode is events.Mode.PAUSED:
            return "The run is paused: the older part is summarised when it goes on (/auto)."
        return "The older part is summarised before the next call of the model."

    def skip_wait(self) -> bool:
        """Try a model call that waits for its server now; False if none waits."""
        waits = self.running and self.state.phase is Phase.BACKOFF
        if waits:
            self._driver.skip_wait()
        return waits

    async def stop(self, reason: str = "The operator stopped the run.") -> None:
        """End the run as interrupted, with a partial answer, and wait until it is recorded."""
        if self.running:
            self._driver.stop(reason)
            self.goal_keeper.interrupt()
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

    def set_approve(self, mode: events.Approval) -> None:
        """Ask for more, or for less, from the next call on."""
        self.recorder.record(events.SettingChanged(setting="approve", value=mode.value))

    @property
    def has_agent(self) -> bool:
        """Another agent takes the steps."""
        return self._agent is not None

    async def choose(self, option: str, value: str) -> str:
        """Give an option of the agent that takes the steps a value, by its id, kind or name; the value's name.

        Raises `ValueError`, `SessionError`.
        """
        if self._agent is None:
            raise ValueError("No other agent takes the steps.")
        return await self._agent.choose(option, value)

    @property
    def goal(self) -> Goal | None:
        """The goal of all runs, each of whose answers is checked; None without a check."""
        facts = self.state.session
        return Goal(facts.check, facts.goal, self._check_seconds) if facts.check else None

    def set_goal(self, goal: Goal | None) -> None:
        """Have answers checked from now on, or (None) no more."""
        check, words = (goal.check, goal.words) if goal is not None else ("", "")
        facts = self.state.session
        if check != facts.check:
            self.recorder.record(events.SettingChanged(setting="check", value=check))
        if words != facts.goal:
            self.recorder.record(events.SettingChanged(setting="goal", value=words))
        self._check_seconds = Goal.seconds if goal is None else goal.seconds

    def use(self, key: str, settings: Settings) -> bool:
        """Take over a setting that was changed, from the next run on; False if this session cannot."""
        name = key.partition(".")[0]
        if name not in NEXT_RUN:
            return False
        self.settings = self.settings.replaced(**{name: getattr(settings, name)})
        return True

    async def use_sandbox(self, mode: SandboxMode) -> None:
        """Run the commands of later runs in another sandbox. Raises `SessionError` while a run goes on."""
        if self.running:
            raise SessionError(
                "The sandbox was not changed", "a run goes on in it", "Change it when the run has ended."
            )
        changed = self.settings.sandbox.model_copy(update={"mode": mode})
        self.settings = self.settings.replaced(sandbox=changed)
        await self.sandbox.change(self.settings)

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

    async def wait(self) -> events.RunFinished | None:
        """Wait until the run under way (and those that queued messages start) has ended; None if none ran."""
        return await self.runs.wait()

    async def close(self) -> None:
        """End the run, the model and the journal, in this order. Raises `SessionError` if the disk refuses."""
        try:
            await self.stop("The session was closed.")
        finally:
            async with AsyncExitStack() as closing:
                # Unwound from the last to the first; a fault of one keeps none of the others from closing.
                if self._telemetry is not None:
                    closing.push_async_callback(self._telemetry.close)
                closing.push_async_callback(self.recorder.close)
                closing.push_async_callback(self._model.close)
                if self._agent is not None:
                    closing.push_async_callback(self._agent.close)
                closing.push_async_callback(self.sandbox.settle)
                closing.push_async_callback(self.mcp.close)
                closing.push_async_callback(self._learning.settle)
                closing.push_async_callback(self.checkpointer.settle)
                closing.push_async_callback(self.background.close)
                if self._warming is not None:
                    self._warming.cancel()
                await self.sandbox.close()

    async def _run_started(
        self, task: str, images: tuple[events.Image, ...], own_model: str
    ) -> events.RunStarted:
        sandbox = await self.sandbox.ready()
        skills = self.skills.find()
        session, settings = self.state.session, self.settings
        name = session.policy or settings.policy
        model = session.model or settings.model
        policy = preset(name, **settings.recovery.overrides())
        kept = await self._counters.begin() if policy.persist else None
        start = events.RunStarted(
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
            asks_for_steps=not settings.asked_steps,
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
        return start if self._agent is None else self._agent.begins(start)


async def _without_sandbox(_: ServerEntry) -> Sandbox:
    """Another agent starts its servers itself."""
    return Sandbox()


def _without_password(api_base: str | None) -> str:
    return "" if api_base is None or "@" in urlsplit(api_base).netloc else api_base
