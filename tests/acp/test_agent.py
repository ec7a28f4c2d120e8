"""Sessions that a client drives, through the connection, the real engine and real tools."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.acp.editor import Editor, Refusal, connected
from tests.scripted_model import scripted_model
from tui_agent.acp import wire
from tui_agent.acp_agent.updates import META
from tui_agent.core.events import OperatorSpoke, RunStarted
from tui_agent.core.names import APPROVALS, POLICIES
from tui_agent.session.sandbox import SessionSandbox
from tui_agent.store.errors import SessionError
from tui_agent.store.journal import read_journal

PNG = base64.b64encode(
    base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
).decode()


def calls(*made: tuple[str, dict[str, Any]], text: str = "") -> dict[str, Any]:
    return {"text": text, "calls": [{"tool": tool, "args": arguments} for tool, arguments in made]}


def bash(command: str) -> dict[str, Any]:
    return calls(("bash", {"command": command}))


SLEEP = bash("echo it runs; sleep 60")


def printed(editor: Editor) -> bool:
    return "it runs" in str(editor.updates("tool_call_update")[1:])


async def started(editor: Editor, folder: Path, **capabilities: Any) -> str:
    await editor.initialize(**capabilities)
    return await editor.new(folder / "work")


async def test_a_turn_streams_text_calls_plan_and_usage_and_fails_what_failed(tmp_path: Path) -> None:
    plan = {"plan": [{"step": "look", "status": "completed"}, {"step": "write", "status": "in_progress"}]}
    turns = [
        {"reasoning": "Hm.", **calls(("update_plan", plan), text="I look.")},
        calls(("read_file", {"path": "nothing.py"})),
        calls(("write_file", {"path": "a.txt", "content": "one\n"})),
        calls(("edit_file", {"path": "a.txt", "old": "one", "new": "two"})),
        bash("echo hi; exit 3"),
        bash("grep absent a.txt"),
        bash("echo done"),
        {
            **calls(("finish", {"answer": "All is built."})),
            "usage": {"prompt": 900, "completion": 100, "cost": 0.25},
        },
    ]
    async with connected(tmp_path, turns, approve="all", context_tokens=50_000) as editor:
        session = await started(editor, tmp_path)
        answer = await editor.prompt(session, "build it")
        assert answer["stopReason"] == "end_turn"
        assert answer["_meta"][META]["outcome"] == "answered"
        assert editor.said() == "I look.All is built."
        assert "Hm." in editor.said("agent_thought_chunk")
        [plan_update] = editor.updates("plan")
        assert [(one["content"], one["status"]) for one in plan_update["entries"]] == [
            ("look", "completed"),
            ("write", "in_progress"),
        ]
        assert [
            (one["title"], one["status"], one["kind"], one["name"]) for one in map(editor.call, TITLES)
        ] == [
            ("read_file nothing.py", "failed", "read", "read_file"),
            ("write_file a.txt", "completed", "edit", "write_file"),
            ("edit_file a.txt", "completed", "edit", "edit_file"),
            ("bash echo hi; exit 3", "failed", "execute", "bash"),
            ("bash grep absent a.txt", "completed", "execute", "bash"),
            ("bash echo done", "completed", "execute", "bash"),
        ]
        failed = editor.call("bash echo hi")
        assert failed["rawOutput"]["exit_code"] == failed["_meta"][META]["exitCode"] == 3
        assert editor.call("bash grep")["rawOutput"]["exit_code"] == 1
        place = str((tmp_path / "work" / "a.txt").resolve())
        edited = editor.call("edit_file")
        assert edited["content"] == [{"type": "diff", "path": place, "oldText": "one\n", "newText": "two\n"}]
        assert edited["locations"] == [{"path": place}]
        [used] = editor.updates("usage_update")
        assert (used["used"], used["size"], used["cost"]) == (
            1000,
            50_000,
            {"amount": 0.25, "currency": "USD"},
        )
        assert (answer["usage"]["totalTokens"], answer["usage"]["inputTokens"]) == (1000, 900)
        [title] = editor.updates("session_info_update")
        assert title["title"] == "build it"
        assert all(one["sessionUpdate"] != "user_message_chunk" for one in editor.updates())
        assert editor.got[-1]["id"], "the answer comes behind every update of its turn"


TITLES = (
    "read_file nothing.py",
    "write_file",
    "edit_file",
    "bash echo hi",
    "bash grep",
    "bash echo done",
)


async def test_commands_are_named_only_once_the_client_knows_the_session(tmp_path: Path) -> None:
    async with connected(tmp_path, ["Hello."]) as editor:
        session = await started(editor, tmp_path)
        await editor.until(lambda: editor.updates("available_commands_update"))
        places = {str(message.get("id") or message["method"]): at for at, message in enumerate(editor.got)}
        assert places["2"] < places["session/update"]
        names = {one["name"] for one in editor.updates("available_commands_update")[0]["availableCommands"]}
        assert names >= {"why", "status", "diff", "rewind", "compact"}
        assert not names & {"quit", "login", "theme", "new"}
        await editor.prompt(session, "/status")
        assert "workspace" in editor.said()
        await editor.prompt(session, "/login")
        await editor.prompt(session, "/nonsense")
        assert "agent-tui acp --login" in editor.said()
        assert "There is no command /nonsense" in editor.said()


@pytest.mark.parametrize(
    ("chosen", "ran"), [("once", True), ("session", True), ("deny", False), ("unknown", False)]
)
async def test_an_approval_is_a_permission_request(tmp_path: Path, chosen: str, ran: bool) -> None:
    async with connected(tmp_path, [bash("touch x"), bash("touch x"), "Done."]) as editor:
        session = await started(editor, tmp_path)
        editor.answers.extend([chosen, "deny"])
        await editor.prompt(session, "touch it")
        asked = editor.asked[0]["params"]
        assert asked["toolCall"]["toolCallId"] == editor.updates("tool_call")[0]["toolCallId"]
        assert "touch x" in json.dumps(asked["toolCall"]["content"])
        kinds = {one["optionId"]: one["kind"] for one in asked["options"]}
        assert kinds["once"] == "allow_once"
        assert kinds["deny"] == "reject_once"
        assert [kind for kind in kinds.values() if kind == "allow_always"]
        assert "everywhere" not in kinds
        assert (tmp_path / "work" / "x").exists() is ran
        assert len(editor.asked) == (1 if chosen == "session" else 2)


@pytest.mark.parametrize(
    "answer",
    [
        {"outcome": {"outcome": "cancelled"}},
        {"code": -32601, "message": "Method not found"},
    ],
)
async def test_a_client_that_answers_no_question_denies_and_the_run_goes_on(
    tmp_path: Path, answer: dict[str, Any]
) -> None:
    async with connected(tmp_path, [bash("touch x"), "Then not."]) as editor:
        session = await started(editor, tmp_path)
        editor.answers.append(answer)
        assert (await editor.prompt(session, "touch it"))["stopReason"] == "end_turn"
        assert not (tmp_path / "work" / "x").exists()
        assert editor.call("bash")["status"] == "failed"
        assert editor.said() == "Then not."


async def test_a_sub_agents_calls_and_approvals_are_shown_as_its_own(tmp_path: Path) -> None:
    """As reported of other agents: a sub-agent's question that nobody sees, and a session that hangs."""
    turns = [
        calls(("task", {"name": "toucher", "prompt": "touch x"})),
        bash("touch x"),
        calls(("finish", {"answer": "Touched."})),
        "All done.",
    ]
    async with connected(tmp_path, turns) as editor:
        session = await started(editor, tmp_path)
        editor.choose = lambda options: options[0]["optionId"]
        await editor.prompt(session, "go")
        asked = editor.asked[0]["params"]["toolCall"]
        task = editor.updates("tool_call")[0]["toolCallId"]
        assert asked["toolCallId"].startswith(f"{task}/")
        assert "toucher" in asked["title"]
        of_it = [one for one in editor.updates() if one.get("toolCallId") == asked["toolCallId"]]
        assert [one["status"] for one in of_it] == ["pending", "in_progress", "completed"]
        assert "toucher: ended, answered" in editor.said("agent_thought_chunk")


QUESTION = calls(("ask_operator", {"question": "Which port?", "options": ["8080", "9090"]}))


async def test_a_question_is_answered_by_an_option_by_a_form_or_by_the_next_prompt(tmp_path: Path) -> None:
    model = scripted_model([QUESTION, "One.", QUESTION, "Two."])
    async with connected(tmp_path, model) as editor:
        session = await started(editor, tmp_path, elicitation={"form": {}})
        editor.answers.append("option:1")
        await editor.prompt(session, "ask")
        editor.answers.extend(["words", {"action": "accept", "content": {"answer": "7070"}}])
        await editor.prompt(session, "ask")
        form = editor.asked[-1]["params"]
        assert (form["mode"], form["message"]) == ("form", "Which port?")
        await editor.initialize()  # a client without forms
        other = await editor.new(tmp_path / "work")
        editor.answers.append("next-prompt")
        assert await editor.prompt(other, "ask") == {"stopReason": "end_turn"}
        assert editor.said() == "One.Two."
        await editor.prompt(other, "6060")
        assert editor.said() == "One.Two.One."
    sent = json.dumps([list(request.messages) for request in model.requests], default=str)
    assert all(port in sent for port in ("9090", "7070", "6060"))


async def test_a_prompt_answers_a_question_whose_request_is_open(tmp_path: Path) -> None:
    async with connected(tmp_path, [QUESTION, "Done."]) as editor:
        session = await started(editor, tmp_path)
        turn = editor.ask(session, "ask")
        await editor.until(lambda: editor.asked)
        await editor.prompt(session, "4040")
        assert (await editor.ends(turn))["stopReason"] == "end_turn"
        question = editor.call("The agent asks")
        assert (question["status"], question["rawOutput"]["text"]) == ("completed", "4040")


async def test_a_client_that_takes_the_first_choice_neither_repeats_a_failing_call_nor_raises_a_bound(
    tmp_path: Path,
) -> None:
    turns = [{**bash("ls /nope"), "usage": {"prompt": 100, "completion": 10}}] * 30
    async with connected(tmp_path, turns, approve="all", max_run_tokens=1_500) as editor:
        session = await started(editor, tmp_path)
        editor.choose = lambda options: options[0]["optionId"]
        answer = await editor.prompt(session, "go")
        assert answer["_meta"][META]["iterations"] <= 15
        for asked in editor.asked:
            options = [(one["kind"], one["optionId"]) for one in asked["params"]["options"]]
            assert options[0] in {("allow_once", "skip"), ("allow_once", "partial")}
            assert "allow_always" not in dict(options), "some clients look for it first"


# --- ends of a turn ------------------------------------------------------------------------------------------


async def test_cancel_in_mid_tool_ends_the_turn_as_cancelled_and_the_session_goes_on(tmp_path: Path) -> None:
    """As reported of other agents: `end_turn` for a cancelled turn, a session that is stuck or gone after it."""
    async with connected(tmp_path, [SLEEP, "Back again."], approve="all") as editor:
        session = await started(editor, tmp_path)
        editor.notify("session/cancel", sessionId=session)  # nothing is under way: nothing happens
        turn = editor.ask(session, "sleep")
        waits = editor.ask(session, "and then this")
        await editor.until(lambda: printed(editor))
        editor.notify("session/cancel", sessionId=session)
        editor.notify("session/cancel", sessionId=session)
        assert await editor.ends(turn) == {"stopReason": "cancelled"}
        assert await editor.ends(waits) == {"stopReason": "cancelled"}
        assert editor.call("bash")["status"] == "failed"
        assert editor.call("bash")["_meta"][META]["cancelled"] is True
        assert editor.said() == ""
        count = len(editor.updates())
        assert (await editor.prompt(session, "again"))["stopReason"] == "end_turn"
        assert editor.updates()[count:][-1]["content"]["text"] == "Back again."


async def test_cancel_while_a_question_waits_and_by_the_id_of_the_request(tmp_path: Path) -> None:
    async with connected(tmp_path, [bash("touch x"), "On.", "Off."]) as editor:
        session = await started(editor, tmp_path)
        turn = editor.ask(session, "touch")
        await editor.until(lambda: editor.asked)
        editor.notify("session/cancel", sessionId=session)
        assert await editor.ends(turn) == {"stopReason": "cancelled"}
        editor.notify("$/cancel_request", requestId=99)
        editor.notify("$/unknown", a=1)
        assert (await editor.prompt(session, "go on"))["stopReason"] == "end_turn"


async def test_a_request_is_cancelled_by_its_id(tmp_path: Path) -> None:
    async with connected(tmp_path, [SLEEP, "On."], approve="all") as editor:
        session = await started(editor, tmp_path)
        turn = editor.ask(session, "sleep")
        await editor.until(lambda: printed(editor))
        editor.notify("$/cancel_request", requestId=3)
        assert await editor.ends(turn) == {"stopReason": "cancelled"}


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ({"kind": "auth", "message": "no such key"}, wire.AUTH_REQUIRED),
        ({"kind": "not_found", "message": "no such model"}, wire.INTERNAL_ERROR),
    ],
)
async def test_a_model_that_cannot_be_used_is_an_error_and_the_session_stays(
    tmp_path: Path, fault: dict[str, Any], code: int
) -> None:
    async with connected(tmp_path, [{"fault": fault}], policy="forge") as editor:
        session = await started(editor, tmp_path)
        editor.answers.append("stop")
        with pytest.raises(Refusal) as refused:
            await editor.prompt(session, "go")
        assert refused.value.code == code
        assert refused.value.data[META]["outcome"] == "model_failed"
        assert (await editor.prompt(session, "/status"))["stopReason"] == "end_turn"
        assert "1 failure" in editor.said()


async def test_without_a_model_a_prompt_says_so_and_one_can_be_chosen(tmp_path: Path) -> None:
    async with connected(tmp_path, ["Hello."], model="") as editor:
        session = await started(editor, tmp_path)
        with pytest.raises(Refusal, match="model"):
            await editor.prompt(session, "hello")
        chosen = {"sessionId": session, "configId": "model", "value": "scripted"}
        answer = await editor.request("session/set_config_option", **chosen)
        [model] = [one for one in answer["configOptions"] if one["id"] == "model"]
        assert model["currentValue"] == "scripted"
        assert (await editor.prompt(session, "hello"))["stopReason"] == "end_turn"


async def test_used_up_steps_are_max_turn_requests(tmp_path: Path) -> None:
    async with connected(tmp_path, [bash("true")] * 5, approve="all", max_iterations=2) as editor:
        session = await started(editor, tmp_path)
        answer = await editor.prompt(session, "go")
        assert answer["stopReason"] == "max_turn_requests"


async def test_a_run_that_cannot_be_prepared_is_an_error_and_its_message_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none_works(_: SessionSandbox) -> None:
        raise SessionError("A sandbox is required", "none works here", "Install one.")

    async with connected(tmp_path, ["Hello.", "Again."]) as editor:
        session = await started(editor, tmp_path)
        with monkeypatch.context() as patched:
            patched.setattr(SessionSandbox, "ready", none_works)
            with pytest.raises(Refusal, match="none works here"):
                await editor.prompt(session, "hello")
        assert (await editor.prompt(session, "/status"))["stopReason"] == "end_turn"
        assert (await editor.prompt(session, "again"))["stopReason"] == "end_turn"
        assert editor.said().endswith("Hello.")
    said = [
        event.text
        for event in read_journal(tmp_path / "state" / "sessions" / session).events
        if isinstance(event, OperatorSpoke)
    ]
    assert said == ["again"], "it joins the run that waited"


# --- notices -------------------------------------------------------------------------------------------------

RECOVERED = [
    bash("cat a.txt"),
    calls(("write_file", {"path": "a.txt", "content": "x"})),
    bash("cat a.txt"),
    "Done.",
]


@pytest.mark.parametrize("announced", [True, False])
async def test_verdicts_and_recoveries_are_notices_or_thoughts(tmp_path: Path, announced: bool) -> None:
    async with connected(tmp_path, RECOVERED, approve="all") as editor:
        session = await started(editor, tmp_path, **({"session": {"notices": {}}} if announced else {}))
        await editor.prompt(session, "go")
        notices = editor.updates("notice")
        titles = [one["title"] for one in notices] if announced else [editor.said("agent_thought_chunk")]
        assert any("verdict: guide" in title for title in titles)
        assert any("recovered: bash cat a.txt, on the 2nd try" in title for title in titles)
        assert bool(notices) is announced
        assert bool(editor.updates("agent_thought_chunk")) is not announced
        ended = editor.call("bash cat")
        assert ended["_meta"][META]["recovered"]


@pytest.mark.parametrize("announced", [True, False])
async def test_a_summary_is_a_compaction_or_a_thought(tmp_path: Path, announced: bool) -> None:
    model = scripted_model([*([bash("echo x")] * 4), "Done.", "We echoed x four times."])
    async with connected(tmp_path, model, approve="all") as editor:
        session = await started(editor, tmp_path, **({"session": {"compaction": {}}} if announced else {}))
        await editor.prompt(session, "go")
        await editor.prompt(session, "/compact")
        updates = editor.updates("compaction_update")
        assert [one["status"] for one in updates] == (["in_progress", "completed"] if announced else [])
        assert len({one["compactionId"] for one in updates}) == (1 if announced else 0)
        assert announced or "summar" in editor.said("agent_thought_chunk")


# --- sessions ------------------------------------------------------------------------------------------------


async def test_a_session_is_loaded_with_its_calls_resumed_forked_listed_closed_and_deleted(
    tmp_path: Path,
) -> None:
    """As reported of other agents: history without calls, or none; questions of the past that come again."""
    turns = [bash("echo hi; exit 3"), "It failed.", "Once more."]
    async with connected(tmp_path, turns, approve="all") as editor:
        session = await started(editor, tmp_path)
        await editor.prompt(session, "first")
        before = editor.call("bash")
    async with connected(tmp_path, turns, approve="all") as editor:
        await editor.initialize(session={"notices": {}})
        where = {"cwd": str(tmp_path / "work"), "mcpServers": []}
        listed = await editor.request("session/list", cwd=where["cwd"])
        assert [(one["sessionId"], one["title"]) for one in listed["sessions"]] == [(session, "first")]
        loaded = await editor.request("session/load", sessionId=session, **where)
        assert {one["id"] for one in loaded["configOptions"]} == {"mode", "model", "approve", "sandbox"}
        assert editor.said("user_message_chunk") == "first"
        assert editor.said() == "It failed."
        assert editor.call("bash")["status"] == "failed"
        assert editor.call("bash")["rawOutput"] == before["rawOutput"]
        assert not editor.updates("notice"), "notices are not history"
        assert (
            "result" in editor.got[-1] or editor.updates()[-1]["sessionUpdate"] == "available_commands_update"
        )
        assert (await editor.prompt(session, "second"))["stopReason"] == "end_turn"
        fork = (await editor.request("session/fork", sessionId=session, **where))["sessionId"]
        assert (await editor.prompt(fork, "third"))["stopReason"] == "end_turn"
        assert editor.said().endswith("Once more.")
        await editor.request("session/close", sessionId=session)
        with pytest.raises(Refusal, match="is not open"):
            await editor.prompt(session, "gone")
        count = len(editor.updates())
        await editor.request("session/resume", sessionId=session, **where)
        assert all(one["sessionUpdate"] == "available_commands_update" for one in editor.updates()[count:])
        for name in (session, fork, fork, "never-was", "../state"):
            await editor.request("session/delete", sessionId=name)
        assert (await editor.request("session/list"))["sessions"] == []
        with pytest.raises(Refusal) as refused:
            await editor.request("session/load", sessionId=session, **where)
        assert refused.value.code == wire.NOT_FOUND


async def test_what_was_rewound_is_no_history(tmp_path: Path) -> None:
    async with connected(tmp_path, ["One.", "Two."]) as editor:
        session = await started(editor, tmp_path)
        await editor.prompt(session, "first")
        await editor.prompt(session, "second")
        await editor.prompt(session, "/undo")
        assert "y does it" in editor.said()
        await editor.prompt(session, "y")
        assert "/redo takes it back" in editor.said()
        await editor.prompt(session, "/undo")
        await editor.prompt(session, "/cost")  # another command gives up the one that waits for a line
        assert "Tokens" in editor.said() or "tokens" in editor.said()
        await editor.prompt(session, "/undo")
        editor.notify("session/cancel", sessionId=session)
        where = {"cwd": str(tmp_path / "work"), "mcpServers": []}
        count = len(editor.updates())
        await editor.request("session/load", sessionId=session, **where)
        texts = [one["content"]["text"] for one in editor.updates()[count:] if "content" in one]
        assert texts == ["first", "One."]


async def test_two_clients_have_sessions_of_their_own_and_one_session_has_one_client(tmp_path: Path) -> None:
    async with connected(tmp_path, ["For one."]) as one, connected(tmp_path, ["For two."]) as two:
        mine, its = await started(one, tmp_path), await started(two, tmp_path)
        await asyncio.gather(one.prompt(mine, "a"), two.prompt(its, "b"))
        assert (one.said(), two.said()) == ("For one.", "For two.")
        with pytest.raises(Refusal, match="is in use"):
            await two.request("session/load", sessionId=mine, cwd=str(tmp_path / "work"), mcpServers=[])
        assert (await one.prompt(mine, "/cost"))["stopReason"] == "end_turn"


async def test_a_client_that_dies_leaves_a_session_that_another_one_loads(tmp_path: Path) -> None:
    async with connected(tmp_path, [SLEEP], approve="all") as editor:
        session = await started(editor, tmp_path)
        turn = editor.ask(session, "sleep")
        await editor.until(lambda: printed(editor))
        editor.writer.transport.abort()
    turn.cancel()
    events = read_journal(tmp_path / "state" / "sessions" / session).events
    assert events[-1].type == "run_finished"
    async with connected(tmp_path, ["Never.", "Back."], approve="all") as editor:
        await editor.initialize()
        await editor.request("session/load", sessionId=session, cwd=str(tmp_path / "work"), mcpServers=[])
        assert editor.call("bash")["status"] == "failed"
        assert (await editor.prompt(session, "again"))["stopReason"] == "end_turn"


async def test_options_and_modes_change_the_session(tmp_path: Path) -> None:
    async with connected(tmp_path, [bash("true"), "Done."]) as editor:
        session = await started(editor, tmp_path)
        await editor.request("session/set_mode", sessionId=session, modeId="hpd")
        wanted = (("approve", "all"), ("sandbox", "auto"), ("sandbox", "off"), ("model", "scripted"))
        for key, value in wanted:
            answer = await editor.request(
                "session/set_config_option", sessionId=session, configId=key, value=value
            )
            assert value in {one["currentValue"] for one in answer["configOptions"] if one["id"] == key}
        now = {one["id"]: one["currentValue"] for one in answer["configOptions"]}
        assert now == {"mode": "hpd", "approve": "all", "sandbox": "off", "model": "scripted"}
        values = {one["id"]: [each["value"] for each in one["options"]] for one in answer["configOptions"]}
        assert (values["mode"], values["approve"]) == ([*POLICIES], [*APPROVALS])
        await editor.prompt(session, "/policy gigi")
        assert editor.updates("current_mode_update")[-1]["currentModeId"] == "gigi"
        assert (await editor.prompt(session, "go"))["_meta"][META]["policy"] == "gigi"
        assert not editor.asked, "nothing asks any more"
        for key, value in (("approve", "never"), ("mode", ""), ("colour", "red"), ("sandbox", "maybe")):
            with pytest.raises(Refusal) as refused:
                await editor.request(
                    "session/set_config_option", sessionId=session, configId=key, value=value
                )
            assert refused.value.code == wire.INVALID_PARAMS


# --- prompts -------------------------------------------------------------------------------------------------


async def test_files_images_and_resources_of_a_prompt_reach_the_model(tmp_path: Path) -> None:
    model = scripted_model(["Seen."])
    async with connected(tmp_path, model) as editor:
        session = await started(editor, tmp_path)
        place = (tmp_path / "work" / "a b.py").resolve()
        blocks = [
            {"type": "text", "text": "Look at"},
            {"type": "resource_link", "name": "a", "uri": place.as_uri()},
            {"type": "resource", "resource": {"uri": "file:///x.py", "text": "x = 1\ny = 2\n"}},
            {"type": "image", "mimeType": "image/png", "data": PNG},
        ]
        await editor.request("session/prompt", sessionId=session, prompt=blocks)
    [request] = model.requests
    sent = json.dumps(request.messages, default=str)
    assert "@a b.py" in sent
    assert "x = 1" in sent
    assert "image" in sent
    events = read_journal(tmp_path / "state" / "sessions" / session).events
    [run] = [event for event in events if isinstance(event, RunStarted)]
    assert len(run.images) == 1


UNSENDABLE: list[Any] = [
    [],
    [{"type": "text", "text": " \n"}],
    [{"type": "image", "mimeType": "image/png", "data": "no base64!"}],
    [{"type": "image", "mimeType": "text/html", "data": ""}],
    [{"type": "audio", "mimeType": "audio/wav", "data": ""}],
    [{"type": "video"}],
    "text",
    None,
]


async def test_a_prompt_that_cannot_be_sent_is_refused(tmp_path: Path) -> None:
    async with connected(tmp_path, ["Still here."]) as editor:
        session = await started(editor, tmp_path)
        for blocks in UNSENDABLE:
            with pytest.raises(Refusal) as refused:
                await editor.request("session/prompt", sessionId=session, prompt=blocks)
            assert refused.value.code == wire.INVALID_PARAMS, blocks
        await editor.prompt(session, "hello")
        assert editor.said() == "Still here."


# --- rubbish -------------------------------------------------------------------------------------------------


WRONG: list[tuple[str, Any, str]] = [
    ("session/new", {"cwd": "work", "mcpServers": []}, "absolute"),
    ("session/new", {"cwd": "/no/such/folder", "mcpServers": []}, "does not exist"),
    ("session/new", {"cwd": 7}, "cwd"),
    ("session/new", None, "cwd"),
    ("session/new", [1], "dictionary"),
    ("session/load", {"sessionId": "../..", "cwd": "/", "mcpServers": []}, "There is no session"),
    ("session/prompt", {"sessionId": "none", "prompt": []}, "is not open"),
    ("session/list", {"cursor": "-1"}, "cursor"),
    ("session/list", {"cursor": "٣"}, "cursor"),
    ("session/invented", {}, "no method"),
    ("_zed.dev/x", {}, "no method"),
    ("authenticate", {"methodId": "login"}, "--login"),
]


async def test_a_wrong_request_is_answered_in_words_and_the_session_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(tmp_path, ["Hello."]) as editor:
        session = await started(editor, tmp_path)
        for method, params, said in WRONG:
            with pytest.raises(Refusal, match=said) as refused:
                await editor.ends(editor.begin_with(method, params))
            assert "Traceback" not in refused.value.message
        editor.notify("session/cancel")
        editor.notify("session/cancel", sessionId=[session])
        editor.notify("$/cancel_request", requestId={})
        await editor.prompt(session, "hello")
        assert editor.said() == "Hello."
    assert not caplog.records


async def test_rubbish_between_messages_and_before_the_first_one_ends_nothing(tmp_path: Path) -> None:
    """As reported of other agents: a line that is no message, or a version that is no number, and they are silent."""
    async with connected(tmp_path, ["Hello."]) as editor:
        with pytest.raises(Refusal, match="initialize"):
            await editor.new(tmp_path / "work")
        for line in (
            b"rubbish",
            b"[]",
            b"\xff",
            b'{"id":5,"result":{}}',
            b'{"method":"session/update"}',
            b"{}",
        ):
            editor.raw(line)
        for version in (2, "1.0", "2024-11-05", None):
            given = {"protocolVersion": version, "clientCapabilities": {"session": 7, "fs": []}}
            assert (await editor.request("initialize", **given))["protocolVersion"] == 1
        session = await editor.new(tmp_path / "work")
        await editor.prompt(session, "hello")
        assert editor.said() == "Hello."


@pytest.mark.slow
async def test_a_thousand_prompts_in_one_session(tmp_path: Path) -> None:
    async with connected(tmp_path, ["Again."] * 1_000) as editor:
        session = await started(editor, tmp_path)
        for number in range(1_000):
            answer = await editor.prompt(session, f"prompt {number}")
            assert answer["stopReason"] == "end_turn"
        assert len(editor.updates("agent_message_chunk")) == 1_000


async def test_a_flood_of_prompts_is_bounded(tmp_path: Path) -> None:
    async with connected(tmp_path, [SLEEP], approve="all") as editor:
        session = await started(editor, tmp_path)
        turn = editor.ask(session, "sleep")
        await editor.until(lambda: printed(editor))
        flood = [editor.ask(session, f"and {number}") for number in range(80)]
        await editor.until(lambda: sum(one.done() for one in flood) >= 30)
        editor.notify("session/cancel", sessionId=session)
        assert await editor.ends(turn) == {"stopReason": "cancelled"}
        answers = [await asyncio.wait_for(one, 60) for one in flood]
        refused = [one for one in answers if "error" in one]
        assert len(refused) == 30
        assert all(one["result"] == {"stopReason": "cancelled"} for one in answers if "result" in one)


@pytest.mark.parametrize(
    ("capabilities", "methods"),
    [
        ({"auth": {"terminal": True}}, ["terminal"]),
        ({"terminal": True, "_meta": {"terminal_output": True, "terminal-auth": True}}, ["terminal"]),
        ({"auth": {"terminal": False}}, []),
        ({}, []),
    ],
)
async def test_a_login_is_offered_to_clients_that_have_a_terminal_for_it(
    tmp_path: Path, capabilities: dict[str, Any], methods: list[str]
) -> None:
    async with connected(tmp_path, []) as editor:
        answer = await editor.initialize(**capabilities)
        assert [one["type"] for one in answer["authMethods"]] == methods
        assert all(one["args"] == ["--login"] for one in answer["authMethods"])


async def test_servers_of_a_client_join_the_session_and_what_was_not_announced_is_refused(
    tmp_path: Path,
) -> None:
    async with connected(tmp_path, ["Hello."]) as editor:
        await editor.initialize()
        where = str(tmp_path / "work")
        gone = {"name": "gone", "command": "/no/such/${HOME}/server", "args": [], "env": []}
        session = (await editor.request("session/new", cwd=where, mcpServers=[gone]))["sessionId"]
        await editor.prompt(session, "hello")  # the first call of the model waits for servers
        await editor.prompt(session, "/mcp")
        assert "gone" in editor.said()
        old = {"type": "sse", "name": "old", "url": "http://127.0.0.1:9", "headers": []}
        with pytest.raises(Refusal, match="not announced"):
            await editor.request("session/new", cwd=where, mcpServers=[old])
        with pytest.raises(Refusal, match="one folder"):
            await editor.request("session/new", cwd=where, mcpServers=[], additionalDirectories=["/tmp"])
