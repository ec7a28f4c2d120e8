"""Secrets: none reaches an event that is kept, whole or split, and ordinary text is left alone."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sessions.session_events import one_of_every_type, stamp
from tui_agent import events as e
from tui_agent.secret_names import named_like_a_secret
from tui_agent.sessions.lines import decode, encode
from tui_agent.sessions.redaction import Redactor, worth_masking

ENVIRONMENT = {
    "OPENAI_API_KEY": "my-own-odd-key",
    "DB_PASSWORD": 'pa"ss\\wörd 1',
    "PGPASSWORD": "hunter2",
    "AWS_SECRET_ACCESS_KEY": "/wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    "LONG_TOKEN": "my-own-odd-key-and-more",
    "PATH": "/usr/bin:/bin",
    "MAX_TOKENS": "16384",
    "SSH_KEY_FILE": "/home/me/.ssh/id_rsa",
    "SECRET_MODE": "production",
    "EMPTY_TOKEN": "",
    "HOME": "/home/me",
}
REDACTOR = Redactor.from_environment(ENVIRONMENT)

MASKED = {
    "a named value": ("x my-own-odd-key y", "x [masked:OPENAI_API_KEY] y"),
    "the longest value": ("my-own-odd-key-and-more", "[masked:LONG_TOKEN]"),
    "a short password": ("-p hunter2", "-p [masked:PGPASSWORD]"),
    "a value in JSON": ('{"a":"pa\\"ss\\\\w\\u00f6rd 1"}', '{"a":"[masked:DB_PASSWORD]"}'),
    "a value in an address": ("?p=pa%22ss%5Cw%C3%B6rd%201&x", "?p=[masked:DB_PASSWORD]&x"),
    "OpenAI": ("key sk-proj-aB3dE5fG7hI9jK1lM3nO5", "key [masked:api-key]"),
    "Anthropic": ("sk-ant-api03-abcdefghij1234567890", "[masked:api-key]"),
    "GitHub": ("ghp_" + "a1B2" * 9, "[masked:github-token]"),
    "GitHub, fine-grained": ("github_pat_" + "a1_B2" * 9, "[masked:github-token]"),
    "Slack": ("xoxb-1234567890-abcdef", "[masked:slack-token]"),
    "AWS": ("AKIAIOSFODNN7EXAMPLE", "[masked:aws-key-id]"),
    "Google": ("AIzaSyA-1234567890abcdefghijklmnopqrstu", "[masked:google-key]"),
    "a web token": ("t=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcDEF_123;", "t=[masked:jwt];"),
    "a header": ("Authorization: Bearer abcdef1234567890abcd", "Authorization: Bearer [masked:bearer-token]"),
    "a private key": (
        (
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAbC+/=\n"
            "-----END RSA PRIVATE KEY-----\nafter"
        ),
        "[masked:private-key]\nafter",
    ),
    "a private key cut short": ("-----BEGIN PRIVATE KEY-----\nAbC+/=\n", "[masked:private-key]"),
    "a private key in JSON": ('{"c":"-----BEGIN PRIVATE KEY-----\\nabc\\n"}', '{"c":"[masked:private-key]"}'),
    "a password in an address": ("https://me:passw0rd1@host/x", "https://me:[masked:url-password]@host/x"),
    "a line of an environment file": (
        "A=1\nexport FOO_TOKEN='abc12345XYZ'\nB=2",
        "A=1\nexport FOO_TOKEN='[masked:FOO_TOKEN]'\nB=2",
    ),
    "several": (
        "hunter2 hunter2 AKIAIOSFODNN7EXAMPLE",
        "[masked:PGPASSWORD] [masked:PGPASSWORD] [masked:aws-key-id]",
    ),
}

UNTOUCHED = [
    "task-list-of-1000000000000000000000 and a risk-based-approach-with-12345678",
    "class sk-toggleable__content-with-a-long-name",
    "MAX_TOKENS=16384 and 16384 again",
    "the production system under /usr/bin:/bin in /home/me/.ssh/id_rsa",
    "token = tokenizer.next_token(12345678)",
    'API_KEY=os.environ["OPENAI_API_KEY"]',
    "SECRET_KEY=./keys/one",
    "The bearer authentication scheme of RFC 6750 needs a header.",
    "see https://example.com:8443/path@1.2.3",
    "postgres://user:$PASSWORD@localhost/db1",
    "base64: eyJhIjoxfQ== alone",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "",
    "hunter 2",
]


@pytest.mark.parametrize("name", MASKED)
def test_a_secret_is_masked_and_the_mask_says_which(name: str):
    text, expected = MASKED[name]
    assert REDACTOR.text(text) == expected


@pytest.mark.parametrize("name", MASKED)
def test_masking_twice_changes_nothing_more(name: str):
    _, expected = MASKED[name]
    assert REDACTOR.text(expected) is expected


@pytest.mark.parametrize("text", UNTOUCHED)
def test_ordinary_text_is_the_same_object(text: str):
    assert REDACTOR.text(text) is text


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 1000])
def test_a_secret_split_over_pieces_is_masked_like_a_whole_one(name: str, size: int):
    text, expected = MASKED[name]
    stream = REDACTOR.stream()
    pieces = [stream.feed(text[start : start + size]) for start in range(0, len(text), size)]
    assert "".join(pieces) + stream.flush() == expected


@pytest.mark.parametrize("text", UNTOUCHED)
@pytest.mark.parametrize("size", [1, 4])
def test_ordinary_text_in_pieces_comes_out_whole(text: str, size: int):
    stream = REDACTOR.stream()
    pieces = [stream.feed(text[start : start + size]) for start in range(0, len(text), size)]
    assert "".join(pieces) + stream.flush() == text


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                *(text for text, _ in MASKED.values()),
                "my-own",
                "-odd-key",
                "sk-",
                "Bearer ",
                "\n",
                " ",
                "x",
                "ey",
                "://",
            ]
        ),
        max_size=6,
    ),
    st.lists(st.integers(1, 30), min_size=1, max_size=20),
)
def test_no_way_of_cutting_a_text_lets_a_named_value_through(parts: list[str], sizes: list[int]):
    text = "".join(parts)
    stream = REDACTOR.stream()
    out, position = [], 0
    while position < len(text):
        size = sizes[len(out) % len(sizes)]
        out.append(stream.feed(text[position : position + size]))
        position += size
    shown = "".join(out) + stream.flush()
    for secret in ("my-own-odd-key", "hunter2", ENVIRONMENT["DB_PASSWORD"]):
        assert secret not in shown
    # A shape inside a longer word is none; what is one in the whole text is one in pieces too.
    assert shown.count("AKIAIOSFODNN7EXAMPLE") <= REDACTOR.text(text).count("AKIAIOSFODNN7EXAMPLE")


def test_a_secret_right_behind_another_is_masked_in_pieces_too():
    stream = REDACTOR.stream()
    text = "my-own-odd-key-and-moreAKIAIOSFODNN7EXAMPLE"
    shown = "".join(stream.feed(text[start : start + 7]) for start in range(0, len(text), 7)) + stream.flush()
    assert shown == REDACTOR.text(text) == "[masked:LONG_TOKEN][masked:aws-key-id]"


def test_ordinary_words_are_shown_at_once():
    stream = REDACTOR.stream()
    assert stream.feed("Let me look at the file.") == "Let me look at the file."


def test_a_secret_without_an_end_is_held_back_only_up_to_the_limit_and_swallowed():
    stream = REDACTOR.stream()
    shown = stream.feed("key sk-1")
    for _ in range(100):
        shown += stream.feed("a1" * 500)
    shown += stream.feed("a1 and more") + stream.flush()
    assert shown == "key [masked:api-key] and more"


def test_long_text_that_only_looks_like_a_beginning_is_not_swallowed():
    stream = REDACTOR.stream()
    text = "eyJ" + "a" * 40_000 + " end"
    shown = "".join(stream.feed(text[start : start + 1000]) for start in range(0, len(text), 1000))
    assert shown + stream.flush() == text


@pytest.mark.parametrize("event", stamp(one_of_every_type()), ids=lambda event: event.type)
def test_an_event_without_secrets_is_the_same_object(event: e.Event):
    assert REDACTOR.redact(event) is event


def test_no_field_of_any_event_lets_a_secret_through():
    for event in one_of_every_type():
        text_fields = {
            name: value for name, value in event.__dict__.items() if type(value) is str and name != "type"
        }
        for name in text_fields:
            if type(event).model_fields[name].annotation is not str and type(event).model_fields[
                name
            ].annotation != (str | None):
                continue
            hostile = event.model_copy(update={name: "before hunter2 after"})
            assert "hunter2" not in REDACTOR.redact(hostile).model_dump_json(), (event.__dict__["type"], name)


def test_nested_parts_of_events_are_masked():
    failure = e.Failure(
        kind=e.FailureKind.TOOL_EXECUTION,
        message="m hunter2",
        tool="bash",
        input={"a": [{"hunter2": "x hunter2"}]},
    )
    events = [
        e.ReplyRejected(failure=failure),
        e.ReplyFinished(calls=(e.ToolCall(id="1", name="bash", arguments='{"c":"echo hunter2"}'),)),
        e.VerdictReached(
            iteration=1,
            level=e.Level.STOP,
            verdicts=(e.VerdictRecord(level=e.Level.STOP, detector="d", reason="hunter2"),),
        ),
        e.ToolStarted(call_id="1", tool="bash", input={"env": {"X": ["hunter2", 1, None]}}),
    ]
    for event in events:
        kept = REDACTOR.redact(event)
        assert "hunter2" not in encode(kept).decode()
        assert "[masked:PGPASSWORD]" in encode(kept).decode()
        assert decode(encode(kept)) == kept
        assert type(kept) is type(event)


def test_masked_arguments_are_still_json():
    call = e.ToolCall(
        id="1", name="bash", arguments=json.dumps({"command": f"psql '{ENVIRONMENT['DB_PASSWORD']}'"})
    )
    kept = REDACTOR.redact(e.ReplyFinished(calls=(call,)))
    assert json.loads(kept.calls[0].arguments) == {"command": "psql '[masked:DB_PASSWORD]'"}


def _deep(levels: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "given_input",
    [
        {"a": "\ud800 lone"},
        {"\udfff": "x"},
        {"a": math.nan},
        {"a": [math.inf]},
        {"a": "\x00\x1b[2J"},
        {"a": 10**400},
        _deep(500),
    ],
    ids=["surrogate", "surrogate key", "nan", "inf", "controls", "huge number", "deep"],
)
def test_what_json_cannot_hold_is_made_storable(given_input: dict[str, object]):
    event = e.ToolStarted.model_construct(
        seq=1, at=1.0, v=1, type="tool_started", call_id="c", tool="bash", input=given_input, index=0
    )
    kept = REDACTOR.redact(event)
    assert decode(encode(kept)) == kept


NAMES = {
    "OPENAI_API_KEY": True,
    "GITHUB_TOKEN": True,
    "PGPASSWORD": True,
    "db-password": True,
    "AWS_SECRET_ACCESS_KEY": True,
    "MY_CREDENTIALS": True,
    "GH_PAT": True,
    "PATH": False,
    "KEYBOARD_LAYOUT": False,
    "PWD": False,
    "OLDPWD": False,
    "TOKENIZERS_PARALLELISM": False,
    "SSH_AUTH_SOCK": False,
    "HOME": False,
}


@pytest.mark.parametrize(("name", "secret"), NAMES.items())
def test_names_like_secrets_are_known(name: str, secret: bool):
    assert named_like_a_secret(name) is secret


VALUES = {
    "hunter2": True,
    "abcdefgh": True,
    "/wJalrXUtnFEMI/K7MDENG": True,
    "12345": False,
    "1": False,
    "true": False,
    "aaaaaaaa": False,
    "/home/me/key.pem": False,
    "~/.netrc": False,
    "production": False,
    "123456789012345": True,
}


@pytest.mark.parametrize(("value", "worth"), VALUES.items())
def test_values_that_are_no_secrets_are_left_alone(value: str, worth: bool):
    assert worth_masking(value) is worth
