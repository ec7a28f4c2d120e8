"""A console over a session that the test moves by hand: events go in, calls of the session are noted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeVar

from tests.console.driven import DrivenConsole
from tests.console.waiting import picture
from tui_agent.config.settings import Settings
from tui_agent.console.cards.card import Card
from tui_agent.console.program import ConsoleApp
from tui_agent.console.screens.live import LiveScreen
from tui_agent.console.tabs.tab import Tab
from tui_agent.core.decision.answers import escalation_answered
from tui_agent.core.events import (
    Approval,
    ApprovalAnswered,
    ApprovalAsked,
    BackgroundEnded,
    EscalationRaised,
    Event,
    IterationStarted,
    MessageQueued,
    MessageUnqueued,
    Mode,
    ModeChanged,
    ModelCallStarted,
    Outcome,
    RunFinished,
    RunStarted,
    ServerAnswered,
    ServerAsked,
    SessionStarted,
)
from tui_agent.core.fold import apply
from tui_agent.core.state import RunState
from tui_agent.frontend.arguments import ConsoleArguments
from tui_agent.models.choose import NameCheck
from tui_agent.runtime.operator import ApprovalReply, EscalationReply, GateReply, RequestOutline, ServerReply
from tui_agent.tools.skills import Skills

T = TypeVar("T")


class HandSession:
    """The interface of `sessions.session.Session`, without a loop, a model or a disk."""

    def __init__(self) -> None:
        self.state = RunState()
        self.id = "by-hand"
        self.mcp = SimpleNamespace(servers=None, lent=None)
        self.has_agent = False
        self.runs = self.models = self.skills = self
        self.background = SimpleNamespace(stop=self.stop_in_background)
        self.settings = Settings(model="scripted:x")
        self.running = False
        self.found = Skills()
        self.done: list[tuple[Any, ...]] = []
        self._listeners: list[Callable[[Event, RunState], None]] = []
        self.record(SessionStarted(session_id=self.id, workspace="/nowhere"))

    def record(self, *events: Event) -> None:
        for event in events:
            stamped = event.stamped(self.state.seq + 1, 1_000.0 + self.state.seq)
            self.state = apply(self.state, stamped)
            for listener in self._listeners:
                listener(stamped, self.state)

    def subscribe(self, listener: Callable[[Event, RunState], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def submit(self, text: str, typed: str | None = None, model: str = "") -> None:
        self.done.append(("submit", text))
        if self.running:
            self.record(MessageQueued(id=f"q{self.state.seq}", text=text))
        else:
            self.start(text)

    def send_waiting(self) -> bool:
        return False

    def start(self, task: str = "fix it") -> None:
        self.running = True
        self.record(
            RunStarted(run=1, task=task, policy="combined", model="scripted:x", tools=("bash", "read_file"))
        )
        self.record(IterationStarted(iteration=1), ModelCallStarted(iteration=1, model="scripted:x"))

    def go_on(self) -> bool:
        self.done.append(("go_on",))
        return False

    def drop(self, message_id: str) -> None:
        self.record(MessageUnqueued(id=message_id))

    def set_mode(self, mode: Mode) -> None:
        self.done.append(("mode", mode.value))
        if mode is not self.state.session.mode:
            self.record(ModeChanged(mode=mode))

    async def interrupt(self) -> None:
        self.done.append(("interrupt",))
        self.record(ModeChanged(mode=Mode.PAUSED))

    async def stop(self) -> None:
        self.done.append(("stop",))
        self.running = False
        self.record(RunFinished(outcome=Outcome.INTERRUPTED))

    def set_policy(self, name: str) -> None:
        if name == "nonsense":
            raise ValueError("There is no policy nonsense.")
        self.done.append(("policy", name))

    def find(self) -> Skills:
        return self.found

    def compact(self, instructions: str) -> str:
        self.done.append(("compact", instructions))
        return ""

    async def check(self, name: str) -> NameCheck:
        usable = not name.startswith("nosuch/")
        return NameCheck(usable, "" if usable else f"litellm knows no provider for {name!r}.")

    def set_model(self, name: str) -> None:
        self.done.append(("model", name))

    def set_approve(self, mode: Approval) -> None:
        self.done.append(("approve", mode.value))

    def set_breaker(self, tool: str, **how: bool) -> None:
        self.done.append(("breaker", tool, how["opened"]))

    async def stop_in_background(self, name: str, _: str) -> None:
        self.record(BackgroundEnded(id=name, how="operator"))

    def set_title(self, title: str) -> None:
        self.done.append(("title", title))

    def edit_note(self, text: str | None) -> None:
        self.done.append(("note", text))

    async def close(self) -> None:
        self.done.append(("close",))
        self.running = False


@dataclass
class _HandOpened:
    session: HandSession
    settings: None = None
    scratch: None = None
    away: None = None

    def clean_up(self) -> None:
        """Nothing was made."""


class HandConsole(ConsoleApp):
    """The real program over a session by hand, and a clock that only the test turns."""

    def __init__(self, session: HandSession) -> None:
        super().__init__(ConsoleArguments())
        self.hand = session
        self.time = 100.0
        self.clock = lambda: self.time

    async def _open(self, screen: Tab) -> None:
        assert isinstance(screen, LiveScreen)
        await screen.complete()
        screen.opened = _HandOpened(self.hand)
        await screen.attach(self.hand)


@dataclass
class LiveSession(DrivenConsole):
    """A console over the session by hand."""

    app: HandConsole
    session: HandSession
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    @property
    def card(self) -> Card | None:
        card_host = self.screen.card_host
        return None if card_host is None else card_host.card

    @property
    def in_card(self) -> bool:
        return self.card is not None and self.card.has_focus_within

    def type(self, text: str) -> Any:
        return self.press(*["space" if char == " " else "slash" if char == "/" else char for char in text])

    def ask(self, **fields: Any) -> asyncio.Task[ApprovalReply]:
        """The loop asks for an approval."""
        number = len(self.tasks)
        asked = ApprovalAsked(
            **{
                "id": f"a{number}",
                "call_id": f"c{number}",
                "tool": "bash",
                "input": {"command": f"make {number}"},
                "preview": f"make {number}",
                "covers": "every plain `make …` command",
                "rules": ("bash(make)",),
                **fields,
            }
        )

        def answered(reply: ApprovalReply) -> Event:
            return ApprovalAnswered(id=asked.id, decision=reply.decision, reason=reply.reason)

        return self._waits(asked, self.screen.live.operator.approve(asked), answered)

    def escalate(self, **fields: Any) -> asyncio.Task[EscalationReply]:
        """The loop needs an answer."""
        raised = EscalationRaised(
            **{
                "id": "e1",
                "question": "read_file has failed 3 times",
                "source": "attempts",
                "tool": "read_file",
                "input": {"path": "a.py"},
                **fields,
            }
        )

        def answered(reply: EscalationReply) -> Event:
            return escalation_answered(raised, reply.choice, reply.text, reply.input, reply.by)

        return self._waits(raised, self.screen.live.operator.answer(raised), answered)

    def consult(self, **fields: Any) -> asyncio.Task[ServerReply]:
        """An MCP server asks, or is to be trusted."""
        asked = ServerAsked(
            **{"id": "s1", "server": "bench", "purpose": "elicitation", "message": "Which?", **fields}
        )

        def answered(reply: ServerReply) -> Event:
            return ServerAnswered(id=asked.id, server=asked.server, decision=reply.decision)

        return self._waits(asked, self.screen.live.operator.consult(asked), answered)

    def gate(self, note: str | None = None) -> asyncio.Task[GateReply]:
        """The loop is about to send a request."""
        outline = RequestOutline(4, "scripted:x", 12, 3_400, 2, ("bash", "read_file"), note)
        return self._task(self.screen.live.operator.gate(outline))

    def _waits(
        self, asked: Event, reply: Coroutine[Any, Any, T], answered: Callable[[T], Event]
    ) -> asyncio.Task[T]:
        """The question is recorded before it is put, and its answer when it comes."""
        self.session.record(asked)

        async def wait() -> T:
            given = await reply
            self.session.record(answered(given))
            return given

        return self._task(wait())

    def _task(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.ensure_future(work)
        self.tasks.append(task)
        return task

    async def choose(self, *keys: str) -> None:
        """Press keys, and Enter for the choice that they mark."""
        await self.press(*keys, "enter")

    async def card_appears(self) -> None:
        await self.until(lambda: self.card is not None)

    async def grace_passes(self) -> None:
        """Enough time goes on for a card to have the keys."""
        await self.time_passes(1.0)

    async def time_passes(self, seconds: float) -> None:
        """Time goes on, and the card host looks at it."""
        self.app.time += seconds
        assert self.screen.card_host is not None
        self.screen.card_host.settle()
        await self.pilot.pause()

    async def card_takes_keys(self) -> None:
        """A card appears, and its grace passes."""
        await self.card_appears()
        await self.grace_passes()

    async def card_for(self, asked: T) -> T:
        """The same, for the card of what was asked."""
        await self.card_takes_keys()
        return asked

    async def chosen(self, raised: asyncio.Task[EscalationReply]) -> tuple[str, str]:
        """The choice and the text of the answer, once it is given."""
        await self.until(raised.done)
        return raised.result().choice, raised.result().text


@asynccontextmanager
async def live(size: tuple[int, int] = (120, 40)) -> AsyncIterator[LiveSession]:
    """A console that is ready."""
    session = HandSession()
    app = HandConsole(session)
    async with app.run_test(size=size, notifications=True) as pilot:
        made = LiveSession(app, pilot, session)
        await made.until(lambda: made.screen.dashboard is not None and made.screen.live.session is not None)
        await made.until(lambda: made.screen.status is not None and made.screen.status.is_attached)
        yield made
        picture(app)  # what cannot be drawn fails the test
        for task in made.tasks:
            task.cancel()
        await asyncio.gather(*made.tasks, return_exceptions=True)
