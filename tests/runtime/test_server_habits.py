"""Runs against servers that refuse a conversation as it is: each learns the server's habits, says so, and ends well."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.kept_host import KeptHost
from tests.openai_server import Answer, Recorded, chunk, error, json_answer, stream
from tests.runtime.scripted import ScriptedOperator
from tests.servers import ModelServer, Said
from tests.servers.chat import OpenAIChat
from tests.servers.make import event
from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.models import kept_habits
from tui_agent.models.choose import ModelByName
from tui_agent.session.opening import open_session

pytestmark = pytest.mark.asyncio(loop_scope="session")

Body = Mapping[str, Any]
Refuses = Callable[[Body], Answer | None]


class StrictServer(ModelServer):
    """A server that refuses what a function finds wrong in a request, and answers all others in turn."""

    def __init__(self, refuses: Refuses, *said: Said, make: OpenAIChat | None = None) -> None:
        super().__init__(make or OpenAIChat(), *said)
        self.refuses = refuses

    def respond(self, request: Recorded) -> Answer:
        """See `OpenAIServer`."""
        refusal = self.refuses(request.body) if "messages" in request.body else None
        if refusal is not None:
            self.requests.append(request)
            return refusal
        return super().respond(request)

    @property
    def bodies(self) -> list[str]:
        """The model calls that came in, as text."""
        return [json.dumps(request.body, sort_keys=True) for request in self.requests]


async def run(
    host: KeptHost, folder: Path, server: StrictServer, model: str = "openai/some", **options: Any
) -> tuple[events.RunFinished, list[str], list[dict[str, Any]]]:
    """The end of one run, what was said about the server, and the messages of the last request."""
    (folder / "workspace").mkdir(exist_ok=True)
    settings = Settings(
        model=model,
        api_base=server.url,
        approve="all",
        sandbox="off",
        workspace=folder / "workspace",
        state_dir=folder / "state",
        **options,
    )
    session = await open_session(settings, ScriptedOperator(present=False), ModelByName(settings, host))
    seen: list[events.Event] = []
    session.subscribe(lambda event, _: seen.append(event))
    await session.submit("Fix it.")
    finished = await session.wait()
    await session.close()
    assert finished is not None
    notices = [each.text for each in seen if isinstance(each, events.Notice) and each.origin == "server"]
    return finished, notices, server.requests[-1].body["messages"]


def missing(path: str) -> Said:
    """A call that fails, so that a note follows."""
    return Said(calls=(("read_file", {"path": path}),))


LIST = ("list_dir", {})
ANSWER = Said("It is done.")
FAILS_TWICE = (missing("nowhere.txt"), missing("nowhere.txt"), Said(calls=(LIST,)), ANSWER)


def roles(body: Body) -> list[str]:
    return [str(message["role"]) for message in body["messages"]]


def user_after_tool(body: Body) -> bool:
    return ("tool", "user") in pairwise(roles(body))


TEMPLATE = (
    "\n------------\nWhile executing CallExpression at line 19, column 27 in source:\n...% 2 == 0) -%}\n"
    "Error: Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/..."
)
ORDERS = {
    "Mistral": lambda: error(
        400, "Unexpected role 'user' after role 'tool'", code="3230", kind="invalid_request_message_order"
    ),
    "llama.cpp": lambda: json_answer(
        {"error": {"code": 500, "message": TEMPLATE, "type": "server_error"}}, 500
    ),
    "a gateway": lambda: json_answer(
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {"raw": json.dumps({"message": "Unexpected role 'user' after role 'tool'"})},
            }
        },
        400,
    ),
    "nobody knows": lambda: error(422, "E4711: no."),
}


@pytest.mark.parametrize("server", ORDERS)
async def test_a_note_goes_into_the_last_result_where_no_user_may_follow_it(
    host: KeptHost, tmp_path: Path, server: str
) -> None:
    async with StrictServer(
        lambda body: ORDERS[server]() if user_after_tool(body) else None, *FAILS_TWICE
    ) as strict:
        finished, said, messages = await run(host, tmp_path, strict)
        bodies = strict.bodies
        name = kept_habits.server_name(strict.url, "")
    assert (finished.outcome, finished.answer) == ("answered", "It is done.")
    assert len(set(bodies)) == len(bodies) <= 6
    sent = [message for body in bodies for message in json.loads(body)["messages"]]
    noted = [
        each for each in sent if each["role"] != "system" and "<recovery_note>" in str(each.get("content"))
    ]
    assert noted[-1]["role"] == "tool"
    assert "<recovery_note>" not in str(messages[1:]), "the note is in no later request"
    [notice] = said
    assert notice.startswith(
        f"{name} takes no message of the user after a tool's result: recovery's notes go into"
    )
    [kept], _ = kept_habits.read(tmp_path / "state")
    assert (kept.server, kept.model, kept.habits.after_tool) == (name, "openai/some", "result")


async def test_a_server_that_is_known_is_asked_in_its_shape_from_the_first(
    host: KeptHost, tmp_path: Path
) -> None:
    def refuses(body: Body) -> Answer | None:
        ids = [call["id"] for message in body["messages"] for call in message.get("tool_calls") or ()]
        if user_after_tool(body) or not all(re.fullmatch("[a-zA-Z0-9]{9}", each) for each in ids):
            return error(400, "no")
        return None

    async with StrictServer(refuses, *FAILS_TWICE) as strict:
        finished, said, _ = await run(host, tmp_path, strict, "openai/devstral-small")
        assert len(strict.requests) == 4
    assert finished.outcome == "answered"
    assert said == []


async def test_a_template_that_takes_nothing_ends_the_call_and_never_sees_a_request_twice(
    host: KeptHost, tmp_path: Path
) -> None:
    words = "\n------------\nError: Jinja Exception: Cannot put it together"
    async with StrictServer(
        lambda body: error(500, words) if len(body["messages"]) > 2 else None, *FAILS_TWICE
    ) as strict:
        finished, _, _ = await run(host, tmp_path, strict)
        bodies = strict.bodies
    assert finished.outcome == "model_failed"
    assert len(set(bodies)) == len(bodies) <= 8
    assert kept_habits.read(tmp_path / "state") == ([], "")


async def test_a_template_without_results_of_tools_gets_calls_as_text(host: KeptHost, tmp_path: Path) -> None:
    def refuses(body: Body) -> Answer | None:
        alternate = all((role == "user") == (at % 2 == 0) for at, role in enumerate(roles(body)[1:]))
        return None if alternate else error(500, TEMPLATE)

    async with StrictServer(refuses, missing("nowhere.txt"), ANSWER) as strict:
        finished, _, _ = await run(host, tmp_path, strict)
        bodies = strict.bodies
    assert (finished.outcome, finished.answer) == ("answered", "It is done.")
    assert len(set(bodies)) == len(bodies)


def textless(body: Body, *, taken: Callable[[Any], bool]) -> bool:
    held = [message for message in body["messages"] if message.get("tool_calls")]
    return any(not taken(message.get("content", None)) for message in held)


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        ("invalid message content type: <nil>", lambda content: content == ""),
        ("The content field is a required field.", lambda content: content == ""),
        ("messages: text content blocks must be non-empty", bool),
    ],
)
async def test_the_content_beside_calls_is_what_the_server_takes(
    host: KeptHost, tmp_path: Path, words: str, taken: Callable[[Any], bool]
) -> None:
    def refuses(body: Body) -> Answer | None:
        return error(400, words) if textless(body, taken=taken) else None

    async with StrictServer(refuses, Said(calls=(LIST,)), ANSWER) as strict:
        finished, said, _ = await run(host, tmp_path, strict)
        assert len(set(strict.bodies)) == len(strict.bodies) <= 5
    assert finished.outcome == "answered"
    assert any("beside calls" in each for each in said)


class Thinks(OpenAIChat):
    """A server whose thoughts come in a field of this name."""

    def __init__(self, field: str = "reasoning_content") -> None:
        self.field = field

    def _thought(self, words: str) -> bytes:
        return chunk({self.field: words})


THOUGHT = (Said(calls=(LIST,), reasoning="First I look."), Said(calls=(LIST,)), ANSWER)


def with_calls(body: Body) -> list[dict[str, Any]]:
    return [message for message in body["messages"] if message.get("tool_calls")]


@pytest.mark.parametrize("filled", [False, True])
async def test_reasoning_that_is_wanted_goes_back_with_every_call(
    host: KeptHost, tmp_path: Path, filled: bool
) -> None:
    def refuses(body: Body) -> Answer | None:
        fields = [message.get("reasoning_content") for message in with_calls(body)]
        wrong = any(not each if filled else each is None for each in fields)
        words = "The `reasoning_content` in the thinking mode must be passed back to the API."
        return error(400, words, kind="invalid_request_error") if wrong else None

    async with StrictServer(refuses, *THOUGHT, make=Thinks()) as strict:
        finished, said, messages = await run(host, tmp_path, strict)
    assert finished.outcome == "answered"
    first, second = (message["reasoning_content"] for message in messages if message.get("tool_calls"))
    assert first == "First I look."
    assert bool(second) is filled
    assert any("wants the reasoning back" in each for each in said)


async def test_reasoning_goes_back_in_the_field_in_which_it_came(host: KeptHost, tmp_path: Path) -> None:
    async with StrictServer(lambda _: None, *THOUGHT, make=Thinks("reasoning")) as strict:
        finished, _, messages = await run(host, tmp_path, strict)
    assert finished.outcome == "answered"
    first = next(message for message in messages if message.get("tool_calls"))
    assert (first.get("reasoning"), first.get("reasoning_content")) == ("First I look.", None)


async def test_reasoning_that_is_refused_is_left_out(host: KeptHost, tmp_path: Path) -> None:
    def refuses(body: Body) -> Answer | None:
        wrong = any("reasoning_content" in message for message in body["messages"])
        return error(400, "property 'reasoning_content' is unsupported") if wrong else None

    async with StrictServer(refuses, *THOUGHT, make=Thinks()) as strict:
        finished, said, _ = await run(host, tmp_path, strict)
        assert len(strict.requests) == 4
    assert finished.outcome == "answered"
    assert any("does not take the reasoning of earlier replies back" in each for each in said)


class Signs(OpenAIChat):
    """A server that signs each call in a field of its own, in a piece that comes late."""

    def stream(self, said: Said) -> list[bytes]:
        pieces = super().stream(said)
        if not said.calls:
            return pieces
        extra = {"extra_content": {"google": {"thought_signature": f"sig-{len(said.calls)}"}}}
        signed = [chunk({"tool_calls": [{"index": at, **extra}]}) for at in range(len(said.calls))]
        return [*pieces[:-3], *signed, *pieces[-3:]]


@pytest.mark.parametrize("signs", [True, False])
async def test_signatures_of_calls_come_back_and_others_get_the_one_for_none(
    host: KeptHost, tmp_path: Path, signs: bool
) -> None:
    def signatures(body: Body) -> list[Any]:
        held = [call for message in with_calls(body) for call in message["tool_calls"]]
        return [
            ((call.get("extra_content") or {}).get("google") or {}).get("thought_signature") for call in held
        ]

    def refuses(body: Body) -> Answer | None:
        words = (
            "Function call is missing a thought_signature in functionCall parts. Additional data, position 2."
        )
        return (
            None if all(signatures(body)) else json_answer([{"error": {"code": 400, "message": words}}], 400)
        )

    async with StrictServer(
        refuses, Said(calls=(LIST, LIST)), ANSWER, make=Signs() if signs else None
    ) as strict:
        finished, said, _ = await run(host, tmp_path, strict)
        last = signatures(strict.requests[-1].body)
    assert finished.outcome == "answered"
    assert last == (["sig-2", "sig-2"] if signs else ["skip_thought_signature_validator"] * 2)
    assert bool(said) is not signs


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "Your organization must be verified to stream this model."),
        (400, "Unsupported value: 'stream' does not support true with this model."),
        (501, "streaming unsupported"),
    ],
)
async def test_a_server_that_does_not_stream_is_asked_without(
    host: KeptHost, tmp_path: Path, status: int, words: str
) -> None:
    def refuses(body: Body) -> Answer | None:
        return error(status, words) if body.get("stream") or "stream_options" in body else None

    said = (Said("I look.", calls=(LIST,), reasoning="Hm."), ANSWER)
    async with StrictServer(refuses, *said, make=Thinks()) as strict:
        finished, notices, messages = await run(host, tmp_path, strict)
        assert len(strict.requests) == 3
    assert (finished.outcome, finished.answer) == ("answered", "It is done.")
    assert any("does not stream" in each for each in notices)
    called = next(message for message in messages if message.get("tool_calls"))
    assert (called["content"], called["reasoning_content"]) == ("I look.", "Hm.")


async def test_ids_are_unique_though_a_server_gives_the_same_with_every_reply(
    host: KeptHost, tmp_path: Path
) -> None:
    async with StrictServer(lambda _: None, Said(calls=(LIST, LIST)), Said(calls=(LIST,)), ANSWER) as strict:
        finished, _, messages = await run(host, tmp_path, strict)
    assert finished.outcome == "answered"
    ids = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    assert len(set(ids)) == len(ids) == 3
    assert ids[:2] == ["call_0", "call_1"]
    assert [message["tool_call_id"] for message in messages if message["role"] == "tool"] == ids


async def test_ids_are_unique_in_a_session_that_is_gone_on_with(host: KeptHost, tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    folder: Path | None = None
    async with StrictServer(lambda _: None, Said(calls=(LIST,)), ANSWER) as strict:
        for _ in range(2):
            settings = Settings(
                model="openai/some",
                api_base=strict.url,
                approve="all",
                sandbox="off",
                workspace=tmp_path / "workspace",
                state_dir=tmp_path / "state",
            )
            model = ModelByName(settings, host)
            session = await open_session(settings, ScriptedOperator(present=False), model, folder)
            strict.say(Said(calls=(LIST,)), ANSWER)
            await session.submit("Look.")
            await session.wait()
            await session.close()
            folder = session.folder
        messages = strict.requests[-1].body["messages"]
    ids = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    assert len(set(ids)) == len(ids) == 2


@pytest.mark.parametrize(
    ("status", "words", "form"),
    [
        (400, "Tool call id was call_0 but must be a-z, A-Z, 0-9, with a length of 9.", r"[a-zA-Z0-9]{9}"),
        (500, "Tool call id was call_0 but must be a-z, A-Z, 0-9, with a length of 9", r"[a-zA-Z0-9]{9}"),
    ],
)
async def test_ids_have_the_form_that_a_server_wants(
    host: KeptHost, tmp_path: Path, status: int, words: str, form: str
) -> None:
    def refuses(body: Body) -> Answer | None:
        ids = [call["id"] for message in with_calls(body) for call in message["tool_calls"]]
        return None if all(re.fullmatch(form, each) for each in ids) else error(status, words)

    async with StrictServer(refuses, Said(calls=(LIST,)), Said(calls=(LIST,)), ANSWER) as strict:
        finished, _, messages = await run(host, tmp_path, strict)
        assert len(strict.requests) == 4
    assert finished.outcome == "answered"
    ids = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    assert [message["tool_call_id"] for message in messages if message["role"] == "tool"] == ids


RENAMED = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
NO_FIELD = (
    'Invalid JSON payload received. Unknown name "additionalProperties" at '
    "'tools[0].function_declarations[0].parameters': Cannot find field."
)


def _several(body: Body) -> bool:
    return any(len(message["tool_calls"]) > 1 for message in with_calls(body))


@pytest.mark.parametrize(
    ("refuses", "words", "status"),
    [
        (lambda body: "system" in roles(body), "System role not supported", 400),
        (_several, "This model only supports single tool-calls at once!", 400),
        (lambda body: "max_tokens" in body, RENAMED, 400),
        (lambda body: "tool_choice" in body, "tool_choice is not supported", 400),
        (
            lambda body: "stream_options" in body,
            "Unrecognized request argument supplied: stream_options",
            400,
        ),
        (lambda body: "additionalProperties" in json.dumps(body["tools"]), NO_FIELD, 400),
    ],
    ids=["system", "single calls", "max_tokens", "tool_choice", "stream_options", "schema"],
)
async def test_what_a_server_does_not_take_is_put_another_way(
    host: KeptHost, tmp_path: Path, refuses: Callable[[Body], bool], words: str, status: int
) -> None:
    said = (Said(calls=(LIST, LIST)), ANSWER)
    async with StrictServer(lambda body: error(status, words) if refuses(body) else None, *said) as strict:
        finished, notices, _ = await run(host, tmp_path, strict, parameters={"max_tokens": 500})
        assert len(strict.requests) <= 3
        sent = strict.requests[-1].body
    assert finished.outcome == "answered"
    assert len(notices) <= 1
    assert sent.get("max_tokens", sent.get("max_completion_tokens")) == 500
    assert any(
        "Be" in str(message["content"]) or len(str(message["content"])) > 500 for message in sent["messages"]
    )


async def test_what_a_run_learnt_is_known_to_the_next_and_said_no_more(
    host: KeptHost, tmp_path: Path
) -> None:
    async with StrictServer(
        lambda body: ORDERS["Mistral"]() if user_after_tool(body) else None, *FAILS_TWICE
    ) as strict:
        _, first, _ = await run(host, tmp_path, strict)
        tried = len(strict.requests)
        strict.say(*FAILS_TWICE)
        finished, second, _ = await run(host, tmp_path, strict)
        assert (tried, len(strict.requests)) == (5, 4)
    assert finished.outcome == "answered"
    assert first
    assert second == []


class JsonOnly(OpenAIChat):
    """A server that answers every request in one piece, whatever was asked for."""

    def answer(self, said: Said, request: Recorded) -> Answer:
        """See `Make`."""
        return json_answer(self.whole(said))


async def test_a_server_that_answers_in_one_piece_is_not_asked_twice(host: KeptHost, tmp_path: Path) -> None:
    said = (Said(calls=(LIST,)), Said(calls=(LIST,)), Said(calls=(LIST,)), ANSWER)
    async with StrictServer(lambda _: None, *said, make=JsonOnly()) as strict:
        finished, _, _ = await run(host, tmp_path, strict)
    assert finished.outcome == "answered"
    assert len(strict.requests) == len(said)


async def test_a_refusal_in_the_stream_of_a_reply_that_has_not_begun_teaches_as_well(
    host: KeptHost, tmp_path: Path
) -> None:
    def refuses(body: Body) -> Answer | None:
        words = (
            'Error rendering prompt with jinja template: "Conversation roles must alternate user/assistant".'
        )
        begun = chunk({"role": "assistant", "content": None})
        refusal = stream(begun, event({"error": {"message": words}, "message": words}, "error"))
        return refusal if user_after_tool(body) else None

    async with StrictServer(refuses, *FAILS_TWICE) as strict:
        finished, notices, _ = await run(host, tmp_path, strict)
        assert len(set(strict.bodies)) == len(strict.bodies)
    assert finished.outcome == "answered"
    assert any("after a tool's result" in each for each in notices)
