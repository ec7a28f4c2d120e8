"""Questions that nobody answers at the screen, asked and answered by a topic of a server on this machine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.ntfy_server import NtfyServer, ntfy_server
from tui_agent.agents.notices import Notices
from tui_agent.agents.waiting import Clock
from tui_agent.config.sections import NotifySettings
from tui_agent.config.settings import Settings
from tui_agent.core.events import ApprovalAsked, EscalationRaised
from tui_agent.core.values import Reach
from tui_agent.frontend.away import Away, answer, permission, words_of
from tui_agent.frontend.operator import ConsoleOperator
from tui_agent.frontend.startup import whoever_is_away
from tui_agent.runtime.operator import ApprovalReply, EscalationReply
from tui_agent.store.redaction import Redactor

server = ntfy_server
ASKED = {"seq": 1, "at": 0.0, "id": "q1"}


def approval(**fields: Any) -> ApprovalAsked:
    call = {"call_id": "c1", "tool": "bash", "input": {"command": "make"}, "preview": "make"}
    return ApprovalAsked.model_validate({**ASKED, **call, **fields})


def escalation(**fields: Any) -> EscalationRaised:
    return EscalationRaised.model_validate({**ASKED, "question": "How?", "source": "ring", **fields})


LONG = {"input": {"command": "make " + "x" * 2_000}, "preview": "make " + "x" * 2_000}
DANGER = {"reaches": (Reach(kind="danger", text="runs what it downloads"),)}
REPLIES: dict[str, tuple[Any, str, Any]] = {
    "allowed": (approval(), "allow once", ApprovalReply("once")),
    "denied": (approval(), "deny", ApprovalReply("deny")),
    "denied in words": (approval(), "use ninja", ApprovalReply("deny", "use ninja")),
    "dangerous": (approval(**DANGER), "allow once", ApprovalReply("deny", "allow once")),
    "more than a notice holds": (approval(**LONG), "allow once", ApprovalReply("deny", "allow once")),
    "a choice": (escalation(tool="bash", input={"command": "make"}), "retry once", EscalationReply("retry")),
    "an option": (
        escalation(source="ask_operator", options=("blue", "red")), "red", EscalationReply("answer", "red"),
    ),
    "words": (escalation(), "look into it", EscalationReply("answer", "look into it")),
    "another model": (escalation(source="model"), "a/b", EscalationReply("retry", "a/b")),
    "stop": (escalation(), "stop", EscalationReply("stop")),
}  # fmt: skip


@pytest.mark.parametrize("case", REPLIES)
def test_words_from_away_are_the_reply_that_a_card_would_give(case: str) -> None:
    asked, said, reply = REPLIES[case]
    given = permission(asked, said) if isinstance(asked, ApprovalAsked) else answer(asked, said)
    assert given == reply
    text, choices = words_of(asked)
    assert ("allow once" in choices) == (case in {"allowed", "denied", "denied in words"})
    assert ("make" in text) == ("make" in str(asked.input))


@pytest.mark.parametrize("asked", [approval(), escalation()], ids=["approval", "escalation"])
async def test_a_question_that_stands_open_is_answered_by_the_topic(
    asked: Any, server: NtfyServer, tmp_path: Path
) -> None:
    given = NotifySettings(ntfy=f"{server.address}/nights", replies=f"{server.address}/answers")
    notices = Notices(given, tmp_path / "kept", Clock(), print, Redactor({}))
    operator = ConsoleOperator()
    away = Away(notices, tmp_path, unanswered=0.0)
    operator.ask_away = away.ask
    is_approval = isinstance(asked, ApprovalAsked)
    waits = asyncio.create_task(operator.approve(asked) if is_approval else operator.answer(asked))
    await asyncio.to_thread(server.press, "deny" if is_approval else "skip")
    assert await waits == (ApprovalReply("deny") if is_approval else EscalationReply("skip"))
    assert operator.questions == []
    await away.close()


def test_nobody_is_away_unless_the_settings_say_how_they_are_reached(tmp_path: Path) -> None:
    settings = Settings(workspace=tmp_path, state_dir=tmp_path)
    assert whoever_is_away(settings) is None
    assert whoever_is_away(settings.replaced(notify=NotifySettings(command=("say",)))) is not None


async def test_nobody_is_told_of_what_is_answered_at_the_screen(server: NtfyServer, tmp_path: Path) -> None:
    notices = Notices(NotifySettings(ntfy=f"{server.address}/nights"), tmp_path, Clock(), print, Redactor({}))
    operator = ConsoleOperator()
    away = Away(notices, tmp_path)
    operator.ask_away = away.ask
    waits = asyncio.create_task(operator.approve(approval()))
    await asyncio.sleep(0)
    operator.questions[0].future.set_result(ApprovalReply("once"))
    assert await waits == ApprovalReply("once")
    await away.close()
    assert server.cache == []
