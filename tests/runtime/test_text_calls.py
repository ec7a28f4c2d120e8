"""Models without tool calls write them as text: learnt from the server's refusal, kept over a resume, or chosen."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kept_host import KeptHost
from tests.openai_server import DONE, Answer, Recorded, chunk
from tests.runtime.test_reasoning import run, session_at
from tests.servers import Make, ModelServer, Said
from tests.servers.chat import LlamaCpp, Vllm
from tests.servers.ollama import Ollama
from tui_agent.core.events import Outcome
from tui_agent.core.projections.entries import CallEntry, NoticeEntry
from tui_agent.core.recovery.echo import echoed
from tui_agent.core.request.text_calls import as_text, read
from tui_agent.core.request.written_calls import written_calls
from tui_agent.tools.registry import default_tools

SWITCHED = "form.text_protocol"

loop_tests = pytest.mark.asyncio(loop_scope="session")


def without_tools(make: type[Make]) -> Make:
    """A server of that make whose model cannot call tools."""

    class Toolless(make):
        def answer(self, said: Said, request: Recorded) -> Answer:
            refused = self.fault("no_tools")
            assert refused is not None
            return refused if request.body.get("tools") else super().answer(said, request)

    made: Make = Toolless()
    return made


def written(name: str, **arguments: Any) -> str:
    return f"```tool_call\n{json.dumps({'name': name, 'arguments': arguments})}\n```"


@loop_tests
@pytest.mark.parametrize("make", [Ollama, LlamaCpp, Vllm], ids=lambda make: make.name)
async def test_a_refusal_of_tools_is_learnt_once_and_kept_over_a_resume(
    host: KeptHost, tmp_path: Path, make: type[Make]
) -> None:
    script = [
        Said("I look. " + written("write_file", path="a.txt", content="one\ntwo ```not a fence```\n")),
        Said(written("read_file", path="a.txt")),
        Said("It says one, two."),
    ]
    # The refusal takes no turn of the script.
    async with ModelServer(without_tools(make), script[0], *script) as server:
        session = await session_at(server, host, tmp_path)
        assert await run(session, "What does a.txt say?") == "It says one, two."
        await session.close()
        assert (tmp_path / "workspace" / "a.txt").read_text() == "one\ntwo ```not a fence```\n"
        state = session.state
        assert (state.run.iteration, state.metrics.model_faults) == (3, 1)
        calls = [entry.tool for entry in state.conversation.entries if isinstance(entry, CallEntry)]
        assert calls == ["write_file", "read_file"]
        refused, *answered = [request.body for request in server.requests]
        assert refused["tools"]
        assert not any("tools" in body or "tool_choice" in body for body in answered)
        roles = [message["role"] for message in answered[-1]["messages"]]
        assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
        assert "## read_file" in answered[-1]["messages"][0]["content"]
        assert "two ```not" in answered[-1]["messages"][-1]["content"]

        server.say(Said("Still so."))
        resumed = await session_at(server, host, tmp_path, resume=session.folder)
        assert await run(resumed, "And now?") == "Still so."
        await resumed.close()
        assert len(server.requests) == 1


@loop_tests
async def test_native_calls_insisted_on_are_a_fault_that_says_what_to_do(
    host: KeptHost, tmp_path: Path
) -> None:
    async with ModelServer(without_tools(Ollama), Said("never")) as server:
        session = await session_at(server, host, tmp_path, tool_calls="native")
        await session.submit("Hello.")
        finished = await asyncio.wait_for(session.wait(), 60)
        await session.close()
        assert finished is not None
        assert finished.outcome is Outcome.MODEL_FAILED
        assert 'tool_calls = "text"' in finished.reason
        assert len(server.requests) == 1


@loop_tests
async def test_a_broken_call_is_explained_and_the_next_one_works(host: KeptHost, tmp_path: Path) -> None:
    two = f"{written('list_dir')}\n{written('list_dir', path='.')}"
    async with ModelServer(
        LlamaCpp(), Said(two), Said(written("list_dir")), Said("Nothing there.")
    ) as server:
        session = await session_at(server, host, tmp_path, tool_calls="text")
        assert await run(session, "What is there?") == "Nothing there."
        await session.close()
        assert not any("tools" in request.body for request in server.requests)
        explained = server.requests[1].body["messages"][-1]["content"]
        assert "holds 2 calls" in explained
        assert session.state.metrics.recoveries == 1


CALL = '{"name": "bash", "arguments": {"command": "ls"}}'

READ: dict[str, tuple[str, str]] = {
    "fenced": (f"Look:\n```tool_call\n{CALL}\n```", "bash"),
    "without its end": (f"```tool_call\n{CALL}", "bash"),
    "as a tag": (f"<tool_call>\n{CALL}\n</tool_call>", "bash"),
    "with a guess at the result behind it": (f"```tool_call\n{CALL}\n```\nResult of bash:\na.txt", "bash"),
    "with line breaks in its strings": (
        '```tool_call\n{"name": "bash", "arguments": {"command": "a\nb"}}\n```',
        "bash",
    ),
    "with a fence in its strings": (
        '```tool_call\n{"name": "bash", "arguments": {"command": "```tool_call"}}\n```',
        "bash",
    ),
    "as JSON of a known tool": (f"```json\n{CALL}\n```", "bash"),
    "under another label": (f"```tool\n{CALL}\n```", "bash"),
    "JSON of nothing known": ('```json\n{"name": "Ada", "arguments": {}}\n```', ""),
    "a known name in a text of another label": ("```text\nbash\n```", ""),
    "talk of calls": ("Use ```bash ls``` for that.", ""),
}


@pytest.mark.parametrize(("text", "name"), READ.values(), ids=READ)
def test_a_call_is_found_where_it_is_one(text: str, name: str) -> None:
    reply = read(text, ("bash",))
    assert reply.problem is None
    assert (reply.called, reply.name) == (bool(name), name)
    assert "Result of" not in reply.text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"```tool_call\n{CALL}\n```\n```tool_call\n{CALL}\n```", "holds 2 calls"),
        ("```tool_call\nls -la\n```", "no JSON"),
        ('```tool_call\n["bash"]\n```', "no JSON object"),
        ('```tool_call\n{"arguments": {}}\n```', 'no "name"'),
        ('```tool_call\n{"name": "bash", "arguments": "ls"}\n```', '"arguments" are no JSON object'),
    ],
)
def test_a_broken_form_names_what_is_wrong_and_the_form(text: str, why: str) -> None:
    reply = read(text)
    assert reply.problem is not None
    assert why in reply.problem.message
    assert "exactly one call" in reply.problem.message
    assert reply.problem.rule == "form.text_call"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.text(), st.dictionaries(st.text(), values, max_size=4))
def test_what_is_written_for_the_model_is_read_as_the_same_call(say: str, arguments: dict[str, Any]) -> None:
    function = {"name": "bash", "arguments": json.dumps(arguments)}
    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": function}]}
    (text,) = as_text([message], [])
    reply = read(text["content"])
    assert (reply.name, json.loads(reply.arguments)) == ("bash", arguments)
    assert read(say) is not None


# --- calls as text although tools were offered ------------------------------------------------------------------

TOOLS = frozenset({"bash", "read_file"})

CALLS_IN_TEXT: dict[str, str] = {
    "alone": CALL,
    "behind prose": f"I look what is there.\n\n{CALL}",
    "in a fence": f"Let me look.\n```json\n{CALL}\n```",
    "between tags": f"<tool_call>\n{CALL}\n</tool_call>",
    "with a guess at its result": f"<tool_call>\n{CALL}\n</tool_call>\n<tool_response>\na.txt\n</tool_response>",
    "as an element": "<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>",
    "as Llama writes it": '<|python_tag|>{"type": "function", "name": "bash", "parameters": {"command": "ls"}}',
    "as Mistral writes it": '[TOOL_CALLS] [{"name": "bash", "arguments": {"command": "ls"}}]',
    "as the protocol has it": '{"tool_calls": [{"id": "a", "type": "function", "function": '
    '{"name": "bash", "arguments": "{\\"command\\": \\"ls\\"}"}}]}',
}


@pytest.mark.parametrize("text", CALLS_IN_TEXT.values(), ids=CALLS_IN_TEXT)
def test_text_that_is_a_call_is_found(text: str) -> None:
    found = written_calls(text, TOOLS)
    assert found is not None
    assert [(call.name, json.loads(call.arguments)) for call in found.calls] == [("bash", {"command": "ls"})]


def test_several_calls_are_found_in_their_order() -> None:
    second = '{"name": "read_file", "arguments": {"path": "a"}}'
    for text in (
        f"{CALL}\n{second}",
        f"[{CALL}, {second}]",
        f"<tool_call>{CALL}</tool_call>\n<tool_call>{second}",
    ):
        found = written_calls(text, TOOLS)
        assert found is not None
        assert [call.name for call in found.calls] == ["bash", "read_file"]


ANSWERS: dict[str, str] = {
    "a call that is explained": f"A call looks like this:\n```json\n{CALL}\n```",
    "a call with words behind it": f"```json\n{CALL}\n```\nThat lists the folder.",
    "a configuration": 'This goes into package.json:\n```json\n{"name": "app", "version": "1.0.0"}\n```',
    "JSON alone": '{"name": "Ada", "born": 1815}',
    "a fence of an unknown name": '```json\n{"name": "Ada", "arguments": {}}\n```',
    "the description of a tool": '{"name": "bash", "parameters": {"type": "object", "properties": {}}}',
    "a tag in a sentence": "Such models write `<tool_call>` before their calls.",
    "two fences": f"First:\n```\nls\n```\nThen:\n```json\n{CALL}\n```",
    "much prose": f"{'The tools are described here. ' * 60}\n{CALL}",
    "no JSON": "{bash: ls}",
    "deep JSON": '{"name":' * 5_000,
}


@pytest.mark.parametrize("text", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_that_shows_json_or_a_call_stays_an_answer(text: str) -> None:
    assert written_calls(text, TOOLS) is None


def test_a_call_that_the_length_limit_cut_is_no_text_to_go_on_with() -> None:
    found = written_calls('{"name": "bash", "arguments": {"command": "ls -l', TOOLS, cut=True)
    assert found is not None
    assert found.calls[0].arguments == '{"command": "ls -l'
    assert written_calls("The report begins with", TOOLS, cut=True) is None


@given(st.text(alphabet='{}[]"<>:,=/`abn \n|_', max_size=60))
def test_reading_calls_never_fails(text: str) -> None:
    found = written_calls(text, TOOLS)
    assert found is None or found.calls


@loop_tests
async def test_a_call_written_as_text_is_carried_out_and_said_once(host: KeptHost, tmp_path: Path) -> None:
    script = [
        Said('{"name": "write_file", "arguments": {"path": "a.txt", "content": "one\\n"}}'),
        Said('I read it.\n```json\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n```'),
        Said('{"name": "read_file", "arguments": {"file": "a.txt"}}'),
        Said("It says one."),
    ]
    async with ModelServer(LlamaCpp(), *script) as server:
        session = await session_at(server, host, tmp_path)
        assert await run(session, "Write a.txt and read it.") == "It says one."
        await session.close()
        entries = session.state.conversation.entries
        assert [(entry.tool, entry.state.value) for entry in entries if isinstance(entry, CallEntry)] == [
            ("write_file", "succeeded"),
            ("read_file", "succeeded"),
            ("read_file", "failed"),
        ]
        said = [entry.text for entry in entries if isinstance(entry, NoticeEntry)]
        assert len([text for text in said if "wrote its call as text" in text]) == 1
        assert server.requests[1].body["messages"][2]["tool_calls"][0]["function"]["name"] == "write_file"
        # A model that wrote three calls and called none is told the form of a call in its prompt from then on.
        (switched,) = [
            entry for entry in entries if isinstance(entry, NoticeEntry) and entry.rule == SWITCHED
        ]
        assert "does not call tools as its server has it" in switched.text
        assert all("tools" in request.body for request in server.requests[:3])
        told = server.requests[3].body
        assert "tools" not in told
        assert "## read_file" in told["messages"][0]["content"]
        assert [message["role"] for message in told["messages"]][2:] == ["assistant", "user"] * 3
        assert "'path' missing" in told["messages"][-1]["content"]

        server.say(Said("Still one."))
        resumed = await session_at(server, host, tmp_path, resume=session.folder)
        assert await run(resumed, "And now?") == "Still one."
        await resumed.close()
        assert not any("tools" in request.body for request in server.requests)


@loop_tests
@pytest.mark.parametrize("insisted", [True, False], ids=["native calls insisted on", "one call of the API"])
async def test_a_model_that_can_call_tools_is_not_switched_for_what_it_writes(
    host: KeptHost, tmp_path: Path, insisted: bool
) -> None:
    wrote = [
        Said(f'{{"name": "list_dir", "arguments": {{"path": "{"./" * times}."}}}}') for times in range(4)
    ]
    first = Said(calls=(("list_dir", {}),))
    script = wrote if insisted else [wrote[0], first, *wrote[1:]]
    async with ModelServer(LlamaCpp(), *script, Said("Nothing is there.")) as server:
        form = {"tool_calls": "native"} if insisted else {}
        session = await session_at(server, host, tmp_path, **form)
        assert await run(session, "What is there?") == "Nothing is there."
        await session.close()
        assert all("tools" in request.body for request in server.requests)
        assert session.state.metrics.tool_successes == len(script)


@loop_tests
async def test_json_that_is_a_call_is_one_in_the_text_protocol_too(host: KeptHost, tmp_path: Path) -> None:
    script = [Said('{"name": "write_file", "arguments": {"path": "a.txt", "content": "one"}}'), Said("Done.")]
    async with ModelServer(LlamaCpp(), *script) as server:
        session = await session_at(server, host, tmp_path, tool_calls="text")
        assert await run(session, "Write a.txt.") == "Done."
        await session.close()
    assert (tmp_path / "workspace" / "a.txt").read_text() == "one"


@loop_tests
async def test_a_reply_that_repeats_the_note_is_not_the_answer(host: KeptHost, tmp_path: Path) -> None:
    script = [
        Said(calls=(("read_file", {"path": "nowhere.txt"}),)),
        Said(calls=(("read_file", {"path": "nowhere.txt"}),)),
        Said("<recovery_note>\nIf it fails once more, it will not be executed any more. Correct it."),
        Said("There is no such file."),
    ]
    async with ModelServer(LlamaCpp(), *script) as server:
        session = await session_at(server, host, tmp_path)
        assert await run(session, "Read it.") == "There is no such file."
        await session.close()
        assert (
            "only repeats the <recovery_note> message" in server.requests[3].body["messages"][-1]["content"]
        )


@loop_tests
async def test_a_description_of_the_tools_that_was_cut_is_broken_form_and_not_continued(
    host: KeptHost, tmp_path: Path
) -> None:
    tools = json.dumps(default_tools().specifications(), ensure_ascii=False)
    parroted = chunk({"role": "assistant", "content": f"```json\n[{{{tools[3000:4500]}"})
    cut = Said(raw=parroted + chunk(finish="length") + DONE)
    async with ModelServer(LlamaCpp(), cut, Said("Done.")) as server:
        session = await session_at(server, host, tmp_path, tool_calls="text")
        assert await run(session, "Go.") == "Done."
        await session.close()
        assert (
            "only repeats the description of the tools" in server.requests[1].body["messages"][-1]["content"]
        )


ECHOES = [
    ("Reach the goal in another way.", "recovery engine"),
    ("<recovery_note>", "<recovery_note>"),
    ("<recovery_note>\nDo it. Correct it, or reach the goal in another way.", "<recovery_note>"),
    ("I reached the goal: all four tests pass now, and the report is in out.txt.", ""),
    ("Done.", ""),
    ("The tag is `<recovery_note>`; it marks what the engine says to a model.", ""),
]


@pytest.mark.parametrize(("text", "what"), ECHOES)
def test_what_a_reply_repeats_is_named(text: str, what: str) -> None:
    note = "The second failure of this call of bash. Correct it, or reach the goal in another way."
    found = echoed(text, "recovery_note", [note], "")
    assert what in found
    assert bool(found) is bool(what)


def test_a_list_of_the_tools_in_prose_is_an_answer() -> None:
    tools = json.dumps(default_tools().specifications())
    described = "\n".join(f"- {tool['function']['description']}" for tool in json.loads(tools))
    assert echoed(described, "recovery_note", [], tools) == ""
    assert echoed(tools[:800], "recovery_note", [], tools) == "the description of the tools"


@loop_tests
async def test_a_reply_that_repeats_itself_is_cut_while_it_streams(host: KeptHost, tmp_path: Path) -> None:
    loop = b"".join(chunk({"content": "I will now read the file. " * 5}) for _ in range(100))
    async with ModelServer(LlamaCpp(), Said(raw=loop + chunk(finish="stop") + DONE), Said("Done.")) as server:
        session = await session_at(server, host, tmp_path)
        assert await run(session, "Go.") == "Done."
        await session.close()
        assert "again and again" in server.requests[1].body["messages"][-1]["content"]
        kept = server.requests[1].body["messages"][-2]["content"]
        assert len(kept) < 60
        assert kept.count("I will now read") == 1
