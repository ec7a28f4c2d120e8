"""Recovery through the whole path: an OpenAI server on loopback, litellm in its host process, real tools."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import deque
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests import openai_server as server
from tests.kept_host import KeptHost
from tests.mcp.harness import RAW_SERVER, eventually
from tests.openai_server import Answer, OpenAIServer
from tests.runtime.scripted import ScriptedOperator
from tests.runtime.served_session import no_waiting as no_waiting
from tests.runtime.served_session import run_agent
from tests.runtime.session_harness import replayed
from tests.servers import ModelServer, Said
from tests.servers.anthropic import Anthropic
from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.core.names import ASK_OPERATOR
from tui_agent.core.projections.entries import CallEntry, FaultEntry, ReplyEntry
from tui_agent.core.projections.history import estimate_tokens
from tui_agent.models.choose import ModelByName
from tui_agent.runtime.operator import ServerReply
from tui_agent.runtime.system_prompt import system_prompt
from tui_agent.session.opening import open_session
from tui_agent.session.session import Session
from tui_agent.store.journal import read_journal
from tui_agent.tools.registry import default_tools

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("no_waiting")]


def calls(*wanted: tuple[str, dict[str, Any]]) -> Answer:
    return server.calls([(name, json.dumps(arguments)) for name, arguments in wanted])


MISSING = calls(("read_file", {"path": "nowhere.txt"}))


async def test_a_failed_call_is_noted_worked_round_and_answered(host: KeptHost, tmp_path: Path) -> None:
    answers = [
        calls(("read_file", {"path": "main.py"})),
        calls(("write_file", {"path": "main.py", "content": "print('hi')\n"})),
        calls(("bash", {"command": "python3 main.py"})),
        server.text("It prints hi."),
    ]
    session, finished, requests = await run_agent(host, tmp_path, answers)
    assert (finished.outcome, finished.answer) == (events.Outcome.ANSWERED, "It prints hi.")
    assert "main.py" in requests[1][-1]["content"]
    assert requests[1][-1]["role"] == "tool", "the error says it all"
    assert requests[3][-1]["content"].startswith("hi")
    metrics = session.state.metrics
    assert (metrics.failures, metrics.recoveries, metrics.unrecovered) == (1, 0, 1)
    assert session.state.metrics.usage.prompt_tokens == 44


async def test_the_ring_stops_identical_failures_of_a_real_stream(host: KeptHost, tmp_path: Path) -> None:
    _, finished, requests = await run_agent(host, tmp_path, [MISSING], policy="forge")
    assert (finished.outcome, finished.detector) == (events.Outcome.STOPPED, "ring")
    assert len(requests) == 5


async def test_broken_json_is_told_and_the_history_stays_one_that_providers_take(
    host: KeptHost, tmp_path: Path
) -> None:
    answers = [
        server.calls([("write_file", '{"path": "a", "content": ')]),
        server.text("ok"),
        server.text("done"),
    ]
    session, _, requests = await run_agent(host, tmp_path, answers)
    sent = requests[1][-3]["tool_calls"][0]["function"]["arguments"]
    assert isinstance(json.loads(sent), dict)
    assert "properly formatted" in requests[1][-1]["content"]
    (call,) = [entry for entry in session.state.conversation.entries if isinstance(entry, CallEntry)]
    assert call.failure is not None
    assert call.failure.kind is events.FailureKind.INVALID_TOOL_CALL


async def test_calls_of_odd_names_go_back_with_names_that_servers_take(
    host: KeptHost, tmp_path: Path
) -> None:
    answers = [server.calls([("", '{"command": "ls"}'), ("my tool!", "{}")]), server.text("ok")]
    _, _, requests = await run_agent(host, tmp_path, answers, policy="gigi")
    (asked,) = [message for message in requests[1] if message.get("tool_calls")]
    assert [call["function"]["name"] for call in asked["tool_calls"]] == ["unnamed", "my_tool_"]


async def test_a_call_that_the_length_limit_cut_is_not_blamed_on_its_json(
    host: KeptHost, tmp_path: Path
) -> None:
    half = server.calls([("write_file", '{"path": "a", "content": "once upon')], finish="length")
    session, _, requests = await run_agent(host, tmp_path, [half, server.text("Shorter?")])
    note = requests[1][-1]["content"]
    assert "The reply was too long" in note
    assert "properly formatted" not in note
    (call,) = [entry for entry in session.state.conversation.entries if isinstance(entry, CallEntry)]
    assert call.failure is not None
    assert call.failure.rule == "form.cut"


@pytest.mark.parametrize("blank", [server.text("  \n\t"), server.text("", reasoning="Hm")])
async def test_a_reply_that_says_nothing_is_asked_for_again_and_no_answer(
    host: KeptHost, tmp_path: Path, blank: server.Answer
) -> None:
    session, finished, requests = await run_agent(host, tmp_path, [blank, server.text("done")])
    assert finished.answer == "done"
    assert len(requests) == 2
    assert requests[1][:-1] == requests[0]
    assert "give the answer" in requests[1][-1]["content"] or "Say the answer" in requests[1][-1]["content"]
    assert not any(isinstance(entry, FaultEntry) for entry in session.state.conversation.entries)


async def test_thoughts_that_a_server_leaves_in_the_text_are_no_answer_and_no_words_to_send_back(
    host: KeptHost, tmp_path: Path
) -> None:
    answers = [
        server.calls([("bash", '{"command": "exit 3"}')], say="<think>Try it.</think>\nLet me see."),
        server.text("<think>Should I ask? No.</think>\n\nI give up."),
        server.text("<think>Again.</think>Done."),
    ]
    session, finished, requests = await run_agent(host, tmp_path, answers)
    assert finished.answer == "Done."
    assert len(requests) == 3  # the question was a thought: the second reply is rejected
    assert "think>" not in json.dumps([message.get("content") for message in requests[-1]])
    assert "Let me see." in json.dumps(requests[-1])
    texts = [entry.reasoning for entry in session.state.conversation.entries if isinstance(entry, ReplyEntry)]
    assert texts == ["Try it.", "Should I ask? No.", "Again."]


async def test_a_text_of_blanks_is_no_message_of_the_model(host: KeptHost, tmp_path: Path) -> None:
    answers = [
        server.text(" \n"),
        server.calls([("bash", '{"command": "true"}')], say="\n\n"),
        server.calls([("finish", '{"answer": "done"}')]),
    ]
    _, finished, requests = await run_agent(host, tmp_path, answers, policy="forge")
    assert finished.answer == "done"
    (said,) = [message for message in requests[-1] if message["role"] == "assistant"]
    assert said["tool_calls"]
    assert not said.get("content")


FAULTS = [
    ("a busy server", server.error(429, retry_after=0.01), "rate_limit"),
    ("a broken server", server.error(503), "server"),
    ("an overloaded one", server.error(529), "overloaded"),
    ("a cut stream", server.stream(server.chunk({"content": "half"}), server.Step.CUT), "stream_cut"),
    ("a clean close without an end", server.stream(server.chunk({"content": "half"})), "stream_cut"),
]


@pytest.mark.parametrize(("answer", "kind"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
async def test_a_passing_fault_is_retried_without_costing_an_iteration(
    host: KeptHost, tmp_path: Path, answer: Answer, kind: str
) -> None:
    session, finished, requests = await run_agent(host, tmp_path, [answer, server.text("there")])
    assert finished.answer == "there"
    assert len(requests) == 2
    assert session.state.run.iteration == 1
    assert session.state.metrics.model_retries == 1
    stored = [message["content"] for group in session.state.history.groups for message in group.messages]
    assert stored == ["Fix it.", "there"]
    faults = [entry.fault for entry in session.state.conversation.entries if isinstance(entry, FaultEntry)]
    assert [fault.kind for fault in faults] == [kind]


TERMINAL = [
    ("a wrong key", server.error(401, code="invalid_api_key"), "auth"),
    ("an unknown model", server.error(404, code="model_not_found"), "not_found"),
    ("an empty purse", server.error(429, code="insufficient_quota", kind="insufficient_quota"), "quota"),
]


@pytest.mark.parametrize(("answer", "kind"), [row[1:] for row in TERMINAL], ids=[row[0] for row in TERMINAL])
async def test_a_terminal_fault_ends_the_run_at_once_and_says_what_to_do(
    host: KeptHost, tmp_path: Path, answer: Answer, kind: str
) -> None:
    session, finished, requests = await run_agent(host, tmp_path, [answer])
    assert finished.outcome is events.Outcome.MODEL_FAILED
    assert len(requests) == 1
    (fault,) = [entry.fault for entry in session.state.conversation.entries if isinstance(entry, FaultEntry)]
    assert fault.kind == kind
    assert fault.advice in finished.reason
    assert session.state.verdict is not None
    assert (session.state.verdict.level, session.state.verdict.detector) == (events.Level.STOP, "model")


@pytest.mark.parametrize(
    ("status", "tries"), [(503, 5), (500, 3)], ids=["a gateway", "the same words thrice"]
)
async def test_faults_that_stay_end_in_the_fallback_models_and_then_in_a_partial_answer(
    host: KeptHost, tmp_path: Path, status: int, tries: int
) -> None:
    session, finished, requests = await run_agent(
        host, tmp_path, [server.error(status)], fallback_models=("openai/second",)
    )
    assert finished.outcome is events.Outcome.MODEL_FAILED
    assert len(requests) == 2 * tries
    (last,) = [entry for entry in session.state.conversation.entries if isinstance(entry, FaultEntry)]
    calls = [entry.model for entry in (*last.earlier, last)]
    assert calls == ["openai/test"] * tries + ["openai/second"] * tries
    assert session.state.run.model == "openai/test"


async def test_a_prompt_that_is_too_long_is_shrunk_by_whole_groups(host: KeptHost, tmp_path: Path) -> None:
    overflow = server.error(400, "maximum context length is 4096 tokens", code="context_length_exceeded")
    work = [calls(("bash", {"command": f"seq {n} 4000"})) for n in range(1, 6)]
    session, finished, requests = await run_agent(
        host, tmp_path, [*work, overflow, server.text("short enough")]
    )
    assert finished.answer == "short enough"
    assert len(requests[-1]) < len(requests[-2])
    assert requests[-1][1]["content"] == "Fix it."
    assert session.state.metrics.coherence_violations == 0


@pytest.mark.parametrize("window", [4096, 8192, 16_384, 131_072])
@pytest.mark.parametrize("counted", [0, 21_000, 131_000])
async def test_a_first_result_that_alone_overflows_the_window_is_cut(
    host: KeptHost, tmp_path: Path, window: int, counted: int
) -> None:
    said = f"This model's maximum context length is {window} tokens."
    said += f" However, your messages resulted in {counted} tokens." if counted else ""
    overflow = server.error(400, said, code="context_length_exceeded")
    work = calls(("bash", {"command": "seq 1 3000"}))
    session, finished, requests = await run_agent(
        host, tmp_path, [work, overflow, server.text("short enough")]
    )
    assert finished.answer == "short enough", finished.reason
    before, after = (len(messages[-1]["content"]) for messages in requests[-2:])
    assert "characters left out" in requests[-1][-1]["content"]
    assert after < 0.6 * before
    assert session.state.metrics.coherence_violations == 0


@pytest.mark.parametrize("present", [False, True])
async def test_what_fits_no_window_ends_with_the_ways_on_and_asks_nothing(
    host: KeptHost, tmp_path: Path, present: bool
) -> None:
    overflow = server.error(400, "the prompt is too long", code="context_length_exceeded")
    answers = [calls(("bash", {"command": "seq 1 3000"})), *[overflow] * 6]
    _, finished, _ = await run_agent(host, tmp_path, answers, present=present)
    assert finished.outcome is events.Outcome.PARTIAL
    assert "a model with a larger context window" in finished.answer
    assert "/compact" in finished.answer
    assert "?" not in finished.answer


async def test_a_cheap_model_writes_the_summary_and_its_tokens_are_counted(
    host: KeptHost, tmp_path: Path
) -> None:
    work = [calls(("bash", {"command": f"seq {n} 1500"})) for n in range(1, 4)]
    answers = [*work, server.text("Goal: count.", usage=(700, 30)), server.text("Counted.")]
    tools = default_tools(120).hiding(ASK_OPERATOR).specifications()
    beside = estimate_tokens(system_prompt(tmp_path)) + sum(estimate_tokens(str(tool)) for tool in tools)
    session, finished, requests = await run_agent(
        host, tmp_path, answers, summary_model="openai/cheap", context_tokens=beside + 5_000
    )
    assert finished.answer == "Counted."
    journal = read_journal(session.folder).events
    (started,) = [event for event in journal if isinstance(event, events.CompactionStarted)]
    (made,) = [event for event in journal if isinstance(event, events.Compacted)]
    assert (started.model, made.prompt_tokens, made.completion_tokens) == ("openai/cheap", 700, 30)
    assert session.state.metrics.usage.prompt_tokens == 4 * 11 + 700
    assert requests[3][:-1] == requests[2][: len(requests[3]) - 1]
    assert "Goal: count." in requests[4][2]["content"]
    assert session.state.metrics.coherence_violations == 0


async def test_parallel_calls_of_a_stream_each_get_their_result_in_order(
    host: KeptHost, tmp_path: Path
) -> None:
    batch = calls(
        ("bash", {"command": "echo one"}), ("read_file", {"path": "no"}), ("bash", {"command": "echo two"})
    )
    _, _, requests = await run_agent(host, tmp_path, [batch, server.text("ok")])
    results = [message["content"] for message in requests[1] if message["role"] == "tool"]
    assert [result.split("\n")[0][:5] for result in results] == ["one", "Error", "two"]


async def test_hpd_counts_and_stops_through_the_same_path(host: KeptHost, tmp_path: Path) -> None:
    _, finished, requests = await run_agent(host, tmp_path, [MISSING], policy="hpd")
    assert finished.reason == "Exceeded maximum consecutive errors (3)"
    assert len(requests) == 4
    assert all(messages[-1]["role"] == "tool" for messages in requests[1:])


async def test_gigi_escalates_at_the_third(host: KeptHost, tmp_path: Path) -> None:
    session, _, requests = await run_agent(
        host, tmp_path, [MISSING, MISSING, MISSING, server.text("I stop.")], policy="gigi"
    )
    assert session.state.metrics.escalations == 1
    assert "Tool read_file failed (attempt 1/3)." in requests[1][-1]["content"]
    assert "Tool read_file has failed 3 times." in requests[3][-1]["content"]


# --- profiles ------------------------------------------------------------------------------------------------


async def run_with(host: KeptHost, folder: Path, **options: Any) -> tuple[Session, list[events.Event]]:
    """One run with these settings, by the names of profiles and models."""
    (folder / "workspace").mkdir()
    settings = Settings(**options, sandbox="off", workspace=folder / "workspace", state_dir=folder / "state")
    session = await open_session(settings, ScriptedOperator(present=False), ModelByName(settings, host))
    seen: list[events.Event] = []
    session.subscribe(lambda event, _: seen.append(event))
    await session.submit("Fix it.")
    await session.wait()
    await session.close()
    assert replayed(session) == session.state
    return session, seen


async def test_a_profiles_parameters_headers_and_fields_reach_its_server_and_no_other(
    host: KeptHost, tmp_path: Path
) -> None:
    busy = server.error(429, "no credit", code="insufficient_quota", kind="insufficient_quota")
    async with OpenAIServer(busy) as first, OpenAIServer(server.text("done")) as second:
        session, seen = await run_with(
            host,
            tmp_path,
            model="quick",
            aliases={"quick": "mine"},
            parameters={"seed": 7, "temperature": 0.9},
            profiles={
                "mine": {
                    "model": "openai/qwen",
                    "api_base": first.url,
                    "api_key_variable": "PATH",
                    "reasoning_effort": "low",
                    "temperature": 0.25,
                    "top_p": 0.5,
                    "max_tokens": 321,
                    "extra_headers": {"X-Team": "blue ${HOME}"},
                    "extra_body": {"top_k": 5, "chat_template_kwargs": {"enable_thinking": False}},
                },
                "other": {"model": "openai/llama", "api_base": second.url},
            },
            fallbacks={"quota": ("other",)},
        )
    (sent,), (then,) = first.requests, second.requests
    shown = {
        key: sent.body[key] for key in ("reasoning_effort", "temperature", "top_p", "max_tokens", "seed")
    }
    assert shown == {
        "reasoning_effort": "low",
        "temperature": 0.25,
        "top_p": 0.5,
        "max_tokens": 321,
        "seed": 7,
    }
    assert (sent.body["top_k"], sent.body["chat_template_kwargs"]) == (5, {"enable_thinking": False})
    assert sent.headers["x-team"].startswith("blue /")
    assert sent.headers["authorization"] == f"Bearer {os.environ['PATH']}"
    assert (then.body["model"], then.body["seed"], then.body["temperature"]) == ("llama", 7, 0.9)
    assert not {"top_k", "max_tokens", "reasoning_effort"} & then.body.keys()
    assert "x-team" not in then.headers
    assert os.environ["PATH"] not in then.headers["authorization"]
    asked = [request.headers.get("authorization", "") for request in first.questions]
    assert asked
    assert set(asked) == {f"Bearer {os.environ['PATH']}"}
    assert session.state.run.answer == "done"
    assert [event.model for event in seen if isinstance(event, events.ReplyFinished)] == ["openai/llama"]


async def test_what_a_model_does_not_take_is_left_out_and_said_once(host: KeptHost, tmp_path: Path) -> None:
    refusing = [answer.refusing("top_p") for answer in (calls(("list_dir", {})), server.text("done"))]
    async with OpenAIServer(refusing) as provider:
        session, seen = await run_with(
            host, tmp_path, model="openai/fixed", api_base=provider.url, parameters={"top_p": 0.5, "seed": 7}
        )
    assert session.state.run.answer == "done"
    assert [("top_p" in request.body, request.body["seed"]) for request in provider.requests] == [
        (True, 7),
        (False, 7),
        (False, 7),
    ]
    said = [event.text for event in seen if isinstance(event, events.Notice)]
    assert said == ["openai/fixed does not take top_p: called without."]


async def test_a_header_whose_variable_is_not_set_goes_nowhere(host: KeptHost, tmp_path: Path) -> None:
    async with OpenAIServer(server.text("done")) as provider:
        profile = {
            "model": "openai/m",
            "api_base": provider.url,
            "extra_headers": {"X-Token": "${NO_SUCH_TOKEN_HERE}"},
        }
        session, _ = await run_with(host, tmp_path, model="p", profiles={"p": profile})
    assert provider.requests == []
    assert "NO_SUCH_TOKEN_HERE is not set" in session.state.run.reason


async def test_tools_of_a_server_go_out_with_the_request_and_its_result_comes_back(
    host: KeptHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the MCP package installed litellm has a handler of its own, which must stay out of it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    # A checkout's server runs in the sandbox, which sees the workspace and perhaps not where the tests are.
    script = shutil.copy(RAW_SERVER, workspace)
    server = {"command": sys.executable, "args": ["-S", script, ""]}
    (workspace / ".mcp.json").write_text(json.dumps({"mcpServers": {"raw": server}}))
    answers = [calls(("raw__echo", {"a": 1})), calls(("finish", {"answer": "done"}))]
    async with OpenAIServer(answers) as provider:
        settings = Settings(
            model="openai/test",
            approve="all",
            api_base=provider.url,
            workspace=workspace,
            state_dir=tmp_path / "state",
        )
        operator = ScriptedOperator(consultations=deque([ServerReply("accept")]))
        session = await open_session(settings, operator, host)
        session.mcp.connect(60)
        await eventually(lambda: "raw" in session.state.servers)
        await session.submit("Say it.")
        finished = await session.wait()
        await session.close()
        assert finished is not None
        assert finished.outcome is events.Outcome.ANSWERED
        offered = [tool["function"]["name"] for tool in provider.requests[0].body["tools"]]
        assert offered[-1] == "raw__echo"
        assert provider.requests[1].body["messages"][-1]["content"] == 'echo {"a": 1}'


# --- prompt caching ------------------------------------------------------------------------------------------


def cached_order(body: dict[str, Any]) -> tuple[list[str], list[int]]:
    """Tools, system prompt and blocks of a request to Claude in the order of its cache, and where the marks stand."""
    blocks = [*body["tools"], *body["system"]]
    for message in body["messages"]:
        blocks += [{"role": message["role"], **block} for block in message["content"]]
    marks = [at for at, block in enumerate(blocks) if block.pop("cache_control", None)]
    return [json.dumps(block) for block in blocks], marks


async def test_each_request_finds_all_that_the_one_before_wrote_to_claudes_cache(
    host: KeptHost, tmp_path: Path
) -> None:
    said = [
        Said(f"Step {n}.", calls=(("list_dir", {}),) if n % 3 else (("read_file", {"path": f"no-{n}"}),))
        for n in range(8)
    ]
    async with ModelServer(Anthropic(), *said, Said("done")) as provider:
        session, _ = await run_with(host, tmp_path, model=Anthropic.model, api_base=provider.url)
    requests = [cached_order(request.body) for request in provider.requests]
    assert session.state.metrics.failures
    assert len(requests) > 5
    for (before, written), (now, marks) in pairwise(requests):
        assert len(marks) <= 4
        assert written[-1] in marks
        assert now[: written[-1] + 1] == before[: written[-1] + 1]


async def test_broken_arguments_leave_nothing_in_the_history_that_a_model_could_learn(
    host: KeptHost, tmp_path: Path
) -> None:
    answers = [server.calls([("list_dir", '{"path": "."')]), calls(("list_dir", {})), server.text("Nothing.")]
    _, finished, requests = await run_agent(host, tmp_path, answers)
    assert finished.outcome is events.Outcome.ANSWERED
    (call,) = requests[1][2]["tool_calls"]
    assert call["function"] == {"name": "list_dir", "arguments": "{}"}
    assert "not valid JSON" in requests[1][3]["content"]


async def test_a_summary_has_room_whatever_the_longest_reply_is(host: KeptHost, tmp_path: Path) -> None:
    async with OpenAIServer([server.text("Done.")]) as provider:
        settings = Settings(
            model="openai/test",
            approve="all",
            api_base=provider.url,
            parameters={"max_tokens": 300},
            workspace=tmp_path,
            state_dir=tmp_path / "state",
        )
        session = await open_session(settings, ScriptedOperator(present=False), ModelByName(settings, host))
        for task in ("One.", "Two."):
            await session.submit(task)
            await session.wait()
        assert session.compact() == ""
        await session.wait()
        await session.close()
    *replies, summary = [request.body["max_tokens"] for request in provider.requests if request.body]
    assert set(replies) == {300}
    assert summary >= 2_000
