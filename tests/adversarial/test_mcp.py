"""Servers that lie, hang, flood and die: none of them ends a run, and nothing of them stays behind."""

from __future__ import annotations

import asyncio
import json
import re
import resource
import sys
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.adversarial.attack import Attack, attack, attacks
from tests.mcp.conftest import own_configuration as own_configuration
from tests.mcp.harness import call, connected, eventually, raw, session_with, standing, turns
from tests.mcp.test_sdk_servers import results
from tests.runtime.scripted import ScriptedOperator
from tests.scripted_model import scripted_model
from tui_agent import installed
from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.runtime.operator import ApprovalReply, ServerReply
from tui_agent.session.opening import open_session
from tui_agent.tools.mcp import connection
from tui_agent.tools.mcp.offer import offered_schema
from tui_agent.tools.mcp.patience import Patience
from tui_agent.tools.mcp.status import ServerStatus


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are counted as ever, with hardly a wait between them."""
    quick = Patience(connect=30, reconnect=20, backoff=0.01, open_for=0.2, open_cap=0.2, failures=3)
    monkeypatch.setattr(connection, "Patience", lambda: quick)


def commands_with(word: str) -> list[int]:
    """Processes that have this word in their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@attack(
    "Tools named with escapes, blanks, nothing or 200 characters; schemas with remote and circular references, "
    "bottomless, invalid or huge",
    "Names and schemas that every provider takes; nothing is fetched; what cannot be offered is named",
)
async def test_hostile_names_and_schemas_become_what_every_provider_takes(tmp_path: Path) -> None:
    script = turns(call("raw__recursive", p="a" * 40), call("raw__deep", d={}), call("raw__a_b", any=1))
    async with session_with(tmp_path, {"raw": raw("names")}, script) as live:
        await connected(live, "raw")
        await live.run()
        assert [text.partition(" ")[0] for text in results(live.events)[:3]] == ["tool_succeeded:"] * 3
        offered = {tool["function"]["name"]: tool["function"] for tool in live.model.requests[0].tools}
        ours = {name: tool for name, tool in offered.items() if name.startswith("raw__")}
        assert len(ours) == 8 + 6
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in ours)
        assert {"raw__echo", "raw__a_b", "raw__nonsense", "raw__big"} < ours.keys()
        assert all(
            len(tool["description"]) < 2_200 and tool["description"].isprintable() for tool in ours.values()
        )
        text = json.dumps(ours)
        assert "127.0.0.1:9" not in text
        assert "u202e" not in text
        assert ours["raw__top"]["parameters"].get("anyOf") is None
        assert len(json.dumps(ours["raw__big"]["parameters"])) < 21_000
        notices = " ".join(event.text for event in live.of(events.Notice))
        assert "key is left out" in notices


@attack(
    "A server with 1,000 tools",
    "128 are offered, and a notice says so",
)
async def test_a_thousand_tools_are_bounded_and_the_operator_knows(tmp_path: Path) -> None:
    async with session_with(tmp_path, {"raw": raw("many")}, turns()) as live:
        await connected(live, "raw")
        assert len(standing(live, "raw").tools) == 128
        await eventually(lambda: any("first 128" in event.text for event in live.of(events.Notice)))


@attack(
    "A result of escape sequences, a picture, a link and an embedded file",
    "Safe text, and a note for what is none",
)
async def test_every_kind_of_content_becomes_text(tmp_path: Path) -> None:
    async with session_with(tmp_path, {"raw": raw("bits")}, turns(call("raw__echo"))) as live:
        await connected(live, "raw")
        await live.run()
        assert results(live.events)[0] == (
            "tool_succeeded: see this\n[image image/png, 3 bytes: not shown]\n[resource a at file:///a]\ninside"
        )


@attacks(
    *(
        Attack(
            how,
            tried,
            "The call fails with what is known; the run goes on; nothing of the server is left",
            value=value,
        )
        for how, tried, value in (
            ("dies", "A server that ends in the middle of a call", ({}, "ended during the tool echo")),
            ("hang", "A call that is never answered", ({"timeout": 300}, "no answer")),
            ("huge", "A result of 20 MB in one line", ({}, "more than 8,000,000 bytes")),
            ("garbage", "Text that is no JSON, and a result of the wrong form", ({}, "breaks the protocol")),
            ("flood", "Two million progress messages with escape sequences", ({"timeout": 30_000}, "")),
        )
    )
)
@pytest.mark.usefixtures("impatient")
async def test_a_call_that_goes_wrong_is_an_error_for_the_model_and_no_more(
    tmp_path: Path, row: Attack
) -> None:
    how, (more, says) = row.name, row.value
    script = turns(call("raw__echo"), call("list_dir"))
    async with session_with(tmp_path, {"raw": raw(how, **more)}, script) as live:
        await connected(live, "raw")
        if how == "flood":
            await live.session.submit("go")
            await live.until(lambda state: any(len(call.progress) > 100 for call in state.conversation.calls))
            await live.session.interrupt()
            live.session.set_mode(events.Mode.AUTO)
            finished = await live.ended()
            assert "\x1b" not in "".join(event.text for event in live.of(events.ToolProgress))
        else:
            finished = await live.run()
            failed = live.of(events.ToolFailed)[0]
            assert says in failed.content
            assert failed.failure.unknown_effect
        assert finished.outcome is events.Outcome.ANSWERED
        assert results(live.events)[-2].startswith("tool_succeeded")
    await eventually(lambda: not commands_with(f"raw_server.py\0{how}"))


@attack(
    "A server that ends at once each time, and one whose program is not there",
    "Its breaker opens with exit code and last words; the run goes on",
)
@pytest.mark.usefixtures("impatient")
async def test_a_server_that_fails_again_and_again_is_given_up_and_tried_later(tmp_path: Path) -> None:
    script = turns(call("bad__echo"), call("list_dir"))
    async with session_with(
        tmp_path, {"bad": raw("dead"), "gone": {"command": "no-such-program"}}, script
    ) as live:
        await eventually(lambda: "bad" in live.state.servers and "gone" in live.state.servers)
        assert live.state.servers["bad"].status == "given up for now"
        assert "exit code 1" in live.state.servers["bad"].why
        assert "no database" in live.state.servers["bad"].why
        assert live.state.servers["gone"].status == "failed"
        finished = await live.run()
        assert finished.outcome is events.Outcome.ANSWERED
        tried = standing(live, "bad")
        assert tried.status in {ServerStatus.OPEN, ServerStatus.CONNECTING}


@attack(
    "A server that dies in the middle of a run and does not come back",
    "Its tools stay in the request, which begins as before; a call is refused with the reason",
)
@pytest.mark.usefixtures("impatient")
async def test_a_server_that_is_given_up_costs_no_prompt_cache(tmp_path: Path) -> None:
    once = raw("once", env={"MARKER": str(tmp_path / "gone")})
    script = [*turns(call("bad__echo")), *turns(call("bad__echo"))]
    async with session_with(tmp_path, {"bad": once}, script) as live:
        await connected(live, "bad")
        await live.run()
        await eventually(lambda: live.state.servers["bad"].status == "given up for now")
        await live.run("again")
        first, _, second, _ = results(live.events)
        assert "ended during the tool echo" in first
        assert re.match("tool_failed: .*cannot be reached now.*no database", second)
        offered = [request.tools for request in live.model.requests]
        assert "bad__echo" in str(offered[0])
        assert all(tools == offered[0] for tools in offered)


@attack(
    "A server that never answers, ignores SIGTERM and has started a process in a session of its own",
    "The run waits no longer than it is told to; nothing of it is left",
)
async def test_a_mute_server_holds_up_nothing_and_nothing_of_it_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "Patience", lambda: Patience(connect=0.5, backoff=60, backoff_cap=60))
    async with session_with(tmp_path, {"mute": raw("mute")}, turns(), patience=0.1) as live:
        finished = await live.run()
        assert finished.outcome is events.Outcome.ANSWERED
        await eventually(lambda: standing(live, "mute").status is ServerStatus.RETRYING)
        assert "did not answer within 0.5 s" in standing(live, "mute").why
    await eventually(lambda: not commands_with("raw_server.py\0mute") and not commands_with("sleep\x00300"))


async def test_a_server_that_does_not_survive_the_newer_protocol_is_asked_in_the_older_way(
    tmp_path: Path,
) -> None:
    async with session_with(tmp_path, {"raw": raw("old")}, turns(call("raw__echo"))) as live:
        await connected(live, "raw")
        await live.run()
        assert results(live.events)[0].startswith("tool_succeeded")


@attack(
    "200 questions to the operator at once",
    "One card at a time, the others are cancelled",
)
async def test_a_server_has_one_question_at_a_time_however_many_it_asks(tmp_path: Path) -> None:
    operator = ScriptedOperator(consultations=deque([ServerReply("accept"), *[ServerReply("decline")] * 200]))
    async with session_with(
        tmp_path, {"raw": raw("asks")}, turns(call("raw__echo")), operator=operator
    ) as live:
        await connected(live, "raw")
        open_at_once: list[int] = []
        live.session.subscribe(lambda _, state: open_at_once.append(len(state.server_questions)))
        finished = await live.run()
        assert finished.outcome is events.Outcome.ANSWERED
        assert max(open_at_once) == 1


@dataclass
class Absent(ScriptedOperator):
    """Agrees to servers and never answers their questions."""

    async def consult(self, asked: events.ServerAsked) -> ServerReply:
        if asked.purpose == "elicitation":
            await asyncio.Event().wait()
        return ServerReply("accept")


@attack(
    "A question that stays when its call is interrupted",
    "The card goes with the call",
)
async def test_a_question_goes_with_the_call_for_which_it_was_asked(tmp_path: Path) -> None:
    script = turns(call("raw__echo"))
    async with session_with(
        tmp_path, {"raw": raw("waits", timeout=1_000)}, script, operator=Absent()
    ) as live:
        await connected(live, "raw")
        await live.session.submit("go")
        await live.until(lambda state: state.server_questions)
        await asyncio.sleep(1.2)
        assert live.state.server_questions, "a question stops the clock of the call"
        await live.session.interrupt()
        await live.until(lambda state: not state.server_questions)
        live.session.set_mode(events.Mode.AUTO)
        assert (await live.ended()).outcome is events.Outcome.ANSWERED


async def test_a_session_goes_on_without_the_servers_that_it_had(tmp_path: Path) -> None:
    script = turns(call("raw__echo")) * 2
    async with session_with(tmp_path, {"raw": raw()}, script) as live:
        await connected(live, "raw")
        await live.run()
        folder = live.session.folder
        assert "raw__echo" in live.state.run.tools
    (tmp_path / "workspace" / ".mcp.json").unlink()
    settings = Settings(workspace=tmp_path / "workspace", state_dir=tmp_path / "state", model="scripted")
    model = scripted_model(script)
    session = await open_session(settings, ScriptedOperator(), model, folder)
    try:
        session.mcp.connect()
        assert session.state.servers == {}
        await session.submit("again")
        finished = await session.wait()
        assert finished is not None
        assert finished.outcome is events.Outcome.ANSWERED
        assert "raw__echo" not in session.state.run.tools
    finally:
        await session.close()


async def test_without_the_package_the_operator_is_given_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tui_agent.tools.mcp.connection", None)
    async with session_with(tmp_path, {"a": raw(), "b": raw()}, turns()) as live:
        await eventually(lambda: live.of(events.Notice))
        assert (await live.run()).outcome is events.Outcome.ANSWERED
        assert [event.text for event in live.of(events.Notice) if installed.adding("mcp") in event.text]
        assert standing(live, "a").status is ServerStatus.FAILED


@attack(
    "A tool that would run under `--approve writes`",
    "It asks like a command, with the server and its tool by their own names",
)
async def test_calls_ask_like_commands_and_a_session_approval_covers_the_tool(tmp_path: Path) -> None:
    operator = ScriptedOperator(approvals=deque([ApprovalReply("once"), ApprovalReply("deny", "no")]))
    script = turns(call("raw__echo", a=1), call("raw__echo", a=2))
    async with session_with(tmp_path, {"raw": raw()}, script, operator=operator, approve="writes") as live:
        await connected(live, "raw")
        await live.run()
        assert [text.partition(":")[0] for text in results(live.events)[:2]] == [
            "tool_succeeded",
            "tool_refused",
        ]
        assert "echo of the MCP server raw" in operator.asked[0].preview
        assert "It may change or destroy things." in operator.asked[0].preview
        assert operator.asked[0].covers == "raw__echo: every call of raw__echo"


@attack(
    "A checkout's `.mcp.json`, also one that was changed after it was agreed to",
    "Nothing starts before the operator agreed to exactly that entry",
)
async def test_a_server_of_a_checkout_starts_only_after_exactly_its_entry_was_agreed_to(
    tmp_path: Path,
) -> None:
    refusing = ScriptedOperator(consultations=deque([ServerReply("decline")]))
    async with session_with(tmp_path, {"raw": raw()}, turns(), operator=refusing) as live:
        await eventually(lambda: live.of(events.ServerAnswered))
        assert standing(live, "raw").status is ServerStatus.UNTRUSTED
        asked = refusing.consulted[0]
        assert "raw_server.py" in asked.message
    for entry, purposes in ((raw(), []), (raw("other"), ["trust"]), (raw("other"), [])):
        agreeing = ScriptedOperator(consultations=deque([ServerReply("accept")]))
        async with session_with(tmp_path, {"raw": entry}, turns(), operator=agreeing) as live:
            if entry == raw():
                await eventually(lambda live=live: standing(live, "raw").why)
            else:
                await connected(live, "raw")
            assert [asked.purpose for asked in agreeing.consulted] == purposes


@attack(
    "A checkout's `.mcp.json` where nobody can be asked",
    "Named and not started",
)
async def test_without_an_operator_a_server_of_a_checkout_is_named_and_not_started(tmp_path: Path) -> None:
    async with session_with(
        tmp_path, {"raw": raw()}, turns(), operator=ScriptedOperator(present=False)
    ) as live:
        await live.run()
        notices = [event.text for event in live.of(events.Notice)]
        assert any(
            "raw of .mcp.json was not started" in text and "agent-tui mcp trust raw" in text
            for text in notices
        )
        assert not live.of(events.ServerChanged)


@attack(
    "A server that hands on its environment",
    "It has no variable but harmless ones and its entry's; their values reach no journal",
)
async def test_secrets_reach_their_server_and_never_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-provider-0123456789")
    monkeypatch.setenv("MY_VALUE", "hush-hush-0123456789")
    shown = tmp_path / "environment"
    entry = {
        "command": "sh",
        "args": ["-c", f"env > {shown}; exit 1"],
        "env": {
            "SERVICE_TOKEN": "literal-0123456789",
            "OTHER": "${MY_VALUE}",
            "WITH_DEFAULT": "${NOT_SET:-yes}",
        },
    }
    async with session_with(tmp_path, {"leaky": entry}, turns()) as live:
        await eventually(lambda: shown.exists() and "WITH_DEFAULT=yes" in shown.read_text())
        asked = live.of(events.ServerAsked)[0].message if live.of(events.ServerAsked) else ""
        journal = live.session.folder / "events.jsonl"
    environment = shown.read_text()
    assert "SERVICE_TOKEN=literal-0123456789" in environment
    assert "OTHER=hush-hush-0123456789" in environment
    assert "sk-provider" not in environment
    assert "literal-0123456789" not in journal.read_text() + asked
    assert "hush-hush" not in journal.read_text()


def test_a_schema_that_cannot_be_read_is_opened_and_never_raises() -> None:
    for schema in (
        None,
        5,
        "text",
        [],
        {"type": "array"},
        {"properties": 7, "required": "all"},
        {"required": [[]]},
    ):
        made, _ = offered_schema(schema)
        assert made is not None
        assert made["type"] == "object"


FELL = {"endless": "it was waited for without end", "surrogates": "the answer was dropped and waited for"}


@attacks(
    *(
        Attack(
            how,
            tried,
            "The call fails or is cut, the run goes on, memory is bounded",
            FELL.get(how, ""),
            slow=how == "endless",
            value=more,
        )
        for how, tried, more in (
            ("gigantic", "A result of 100 MB in one line", {}),
            ("blocks", "A result of 50,000 pieces of text", {}),
            ("deep", "A result nested 100,000 deep", {}),
            ("numbers", "Numbers of 400 digits and beyond all bounds in a result", {}),
            ("surrogates", "Halves of surrogate pairs in a result", {}),
            (
                "endless",
                "Progress without end, each within the time that a silence may last",
                {"timeout": 150},
            ),
        )
    )
)
@pytest.mark.usefixtures("impatient")
async def test_a_result_of_any_size_and_form(tmp_path: Path, row: Attack) -> None:
    script = turns(call("raw__echo"), call("list_dir"))
    # Where this process stands beforehand; the peak of a process never falls.
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with session_with(tmp_path, {"raw": raw(row.name, **row.value)}, script) as live:
        await connected(live, "raw")
        async with asyncio.timeout(100):
            finished = await live.run()
        assert finished.outcome is events.Outcome.ANSWERED
        assert results(live.events)[1].startswith("tool_succeeded")
        assert max(len(text) for text in results(live.events)) < 100_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000
    await eventually(lambda: not commands_with(f"raw_server.py\0{row.name}"))


@attack(
    "A tool that was allowed for the session, and then has another description and other arguments",
    "It asks again: what was allowed is not what it is now",
    fell="it ran unasked",
)
async def test_a_tool_that_changes_after_it_was_approved(tmp_path: Path) -> None:
    operator = ScriptedOperator(
        approvals=deque([ApprovalReply("session"), *[ApprovalReply("deny", "no")] * 2])
    )
    script = [*turns(call("raw__echo"), call("raw__echo")), *turns(call("raw__echo", path="x"))]
    async with session_with(
        tmp_path, {"raw": raw("changes")}, script, operator=operator, approve="ask"
    ) as live:
        await connected(live, "raw")
        await live.run()
        await eventually(lambda: "Deletes" in str(standing(live, "raw").tools), 20)
        await live.run("again")
        assert len(operator.asked) > 1
        assert all("has changed it" in asked.why for asked in operator.asked[1:])


@attack(
    "Tools of one server, and two servers, whose names become one; a name that is there twice",
    "Each tool that is offered has a name of its own, under its server's; the others are left out and named",
)
async def test_names_that_collide(tmp_path: Path) -> None:
    servers = {"a b": raw("collides"), "a.b": raw("collides"), "a_b": raw("")}
    async with session_with(tmp_path, servers, turns(call("a_b__echo"))) as live:
        await connected(live, *servers)
        await live.run()
        names = [tool["function"]["name"] for tool in live.model.requests[0].tools]
        assert len(names) == len(set(names))
        owners = [row.name for row in live.session.mcp.servers.rows() for _ in row.tools]
        assert len(owners) == len([name for name in names if "__" in name])


@attack(
    "A question of a server that poses as this program and asks for a key",
    "The card says which server asks, and shows its words without what a terminal acts on or hides",
)
async def test_a_question_that_phishes(tmp_path: Path) -> None:
    operator = ScriptedOperator(consultations=deque([ServerReply("accept"), ServerReply("decline")]))
    async with session_with(
        tmp_path, {"raw": raw("phishes")}, turns(call("raw__echo")), operator=operator
    ) as live:
        await connected(live, "raw")
        await live.run()
        asked = operator.consulted[-1]
        assert asked.purpose == "elicitation"
        assert asked.server == "raw"
        assert "\x1b" not in asked.message
        assert "\u202e" not in asked.message
