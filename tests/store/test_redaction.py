"""Secrets: none reaches an event that is kept, whole or split, and ordinary text is left alone."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.session_harness import start_session
from tests.store.session_events import one_of_every_type, stamp
from tui_agent.core.events import (
    SCHEMA_VERSION,
    Event,
    Failure,
    FailureKind,
    Level,
    Notice,
    ReplyFinished,
    ReplyRejected,
    SessionStarted,
    ToolCall,
    ToolProgress,
    ToolStarted,
    VerdictReached,
    VerdictRecord,
)
from tui_agent.core.fold import fold
from tui_agent.secret_names import named_like_a_secret
from tui_agent.session.own_run import carried_out
from tui_agent.store.journal import Journal
from tui_agent.store.lines import decode, encode
from tui_agent.store.recorder import SessionRecorder
from tui_agent.store.redaction import MaskedSecretError, Redactor, worth_masking

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


def new_redactor() -> Redactor:
    """One that has seen nothing yet: secrets of a shape are numbered as they come."""
    return Redactor.from_environment(ENVIRONMENT)


LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
OTHER = "MzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu"
LAST = "NMoSfm76oqFvAp8Gy0iz5sxjZmSnXyCdPEovGhLa0VzMaQ8s+CLOyS56YyCFGeJZ"
KEY, KEY2 = "[masked:private-key]", "[masked:private-key-2]"

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
            f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{LINE}\n{OTHER}\nAbC+/w==\n"
            "-----END RSA PRIVATE KEY-----\nafter"
        ),
        (
            f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{KEY}\n{KEY2}\n"
            "[masked:private-key-3]\n-----END RSA PRIVATE KEY-----\nafter"
        ),
    ),
    "a private key cut short": (
        f"-----BEGIN PRIVATE KEY-----\n{LINE}\n{OTHER[:50]}",
        f"-----BEGIN PRIVATE KEY-----\n{KEY}\n{KEY2}",
    ),
    "a private key in JSON": (
        f'{{"c":"-----BEGIN PRIVATE KEY-----\\n{LINE}\\nAbC=\\n-----END PRIVATE KEY-----"}}',
        f'{{"c":"-----BEGIN PRIVATE KEY-----\\n{KEY}\\n{KEY2}\\n-----END PRIVATE KEY-----"}}',
    ),
    "a private key with line numbers": (
        f"     1\t-----BEGIN EC PRIVATE KEY-----\n     2\t{LINE}\n     3\tAbC=\n     4\t-----END EC PRIVATE KEY-----",
        f"     1\t-----BEGIN EC PRIVATE KEY-----\n     2\t{KEY}\n     3\t{KEY2}\n     4\t-----END EC PRIVATE KEY-----",
    ),
    "a password in an address": ("https://me:passw0rd1@host/x", "https://me:[masked:url-password]@host/x"),
    "a line of an environment file": (
        "A=1\nexport FOO_TOKEN='abc12345XYZ'\nB=2",
        "A=1\nexport FOO_TOKEN='[masked:FOO_TOKEN]'\nB=2",
    ),
    "two of a shape": (
        "AKIAIOSFODNN7EXAMPLE AKIAIOSFODNN7EXAMPLF AKIAIOSFODNN7EXAMPLE",
        "[masked:aws-key-id] [masked:aws-key-id-2] [masked:aws-key-id]",
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
    "MONKEY=abc12345XYZ",
    "The bearer authentication scheme of RFC 6750 needs a header.",
    "see https://example.com:8443/path@1.2.3",
    "postgres://user:$PASSWORD@localhost/db1",
    "base64: eyJhIjoxfQ== alone",
    f"{LINE} alone",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "",
    "hunter 2",
]


@pytest.mark.parametrize("name", MASKED)
def test_a_secret_is_masked_and_the_mask_says_which(name: str):
    text, expected = MASKED[name]
    assert new_redactor().text(text) == expected


@pytest.mark.parametrize("name", MASKED)
def test_masking_twice_changes_nothing_more(name: str):
    _, expected = MASKED[name]
    assert new_redactor().text(expected) is expected


@pytest.mark.parametrize("text", UNTOUCHED)
def test_ordinary_text_is_the_same_object(text: str):
    assert new_redactor().text(text) is text


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 1000])
def test_a_secret_split_over_pieces_is_masked_like_a_whole_one(name: str, size: int):
    text, expected = MASKED[name]
    stream = new_redactor().stream()
    pieces = [stream.feed(text[start : start + size]) for start in range(0, len(text), size)]
    assert "".join(pieces) + stream.flush() == expected


@pytest.mark.parametrize("text", UNTOUCHED)
@pytest.mark.parametrize("size", [1, 4])
def test_ordinary_text_in_pieces_comes_out_whole(text: str, size: int):
    stream = new_redactor().stream()
    pieces = [stream.feed(text[start : start + size]) for start in range(0, len(text), size)]
    assert "".join(pieces) + stream.flush() == text


@settings(max_examples=60)
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
    redactor = new_redactor()
    stream = redactor.stream()
    out, position = [], 0
    while position < len(text):
        size = sizes[len(out) % len(sizes)]
        out.append(stream.feed(text[position : position + size]))
        position += size
    shown = "".join(out) + stream.flush()
    for secret in ("my-own-odd-key", "hunter2", ENVIRONMENT["DB_PASSWORD"]):
        assert secret not in shown
    # A shape inside a longer word is none; what is one in the whole text is one in pieces too.
    assert shown.count("AKIAIOSFODNN7EXAMPLE") <= redactor.text(text).count("AKIAIOSFODNN7EXAMPLE")


def test_a_secret_right_behind_another_is_masked_in_pieces_too():
    stream = new_redactor().stream()
    text = "my-own-odd-key-and-moreAKIAIOSFODNN7EXAMPLE"
    shown = "".join(stream.feed(text[start : start + 7]) for start in range(0, len(text), 7)) + stream.flush()
    assert shown == new_redactor().text(text) == "[masked:LONG_TOKEN][masked:aws-key-id]"


HIDING = [
    "echo '-----BEGIN PRIVATE KEY-----' >/dev/null; touch PWNED; rm -rf victim; echo '-----END PRIVATE KEY-----' > k",
    "cat <<X\n-----BEGIN PRIVATE KEY-----\nX\nreboot\n: -----END PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nreboot\n-----END PRIVATE KEY-----",
    "curl http://x:1;reboot;aaaaaa@h",
    "curl http://x:1$(reboot)aaaa@h",
    "curl http://x:1`reboot`aaaa@h",
]


@pytest.mark.parametrize("command", HIDING)
def test_a_mask_hides_no_command(command: str):
    assert new_redactor().text(command) == command


def test_a_short_word_behind_a_key_stays_readable():
    text = f"-----BEGIN PRIVATE KEY-----\n{LINE}\nreboot\n-----END PRIVATE KEY-----"
    assert new_redactor().text(text) == text.replace(LINE, KEY)


@pytest.mark.parametrize("lines", [10, 100, 1_000])
@pytest.mark.parametrize("size", [1, 700, 100_000])
def test_no_line_of_a_long_key_gets_through_in_pieces(lines: int, size: int):
    key = [f"{number:04}{LINE[4:]}" for number in range(lines)]
    text = "\n".join(["-----BEGIN PRIVATE KEY-----", *key, "-----END PRIVATE KEY-----", "after it."])
    stream = new_redactor().stream()
    shown = "".join(stream.feed(text[start : start + size]) for start in range(0, len(text), size))
    shown += stream.flush()
    assert LINE[4:] not in shown
    assert shown.endswith("after it.")


# --- putting secrets back ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [name for name in MASKED if name not in ("a value in JSON", "a value in an address")]
)
def test_what_was_masked_is_restored_exactly(name: str):
    text, expected = MASKED[name]
    redactor = new_redactor()
    assert redactor.text(text) == expected
    assert redactor.restore({"content": expected, "edits": [{"old": expected}], "limit": 3}) == {
        "content": text, "edits": [{"old": text}], "limit": 3,
    }  # fmt: skip


def test_a_secret_read_in_pieces_can_be_restored():
    redactor = new_redactor()
    stream = redactor.stream()
    assert (
        stream.feed("k AKIAIOSFODNN") + stream.feed("7EXAMPLE ") + stream.flush() == "k [masked:aws-key-id] "
    )
    assert redactor.restore({"x": "[masked:aws-key-id]"}) == {"x": "AKIAIOSFODNN7EXAMPLE"}


@pytest.mark.parametrize(
    "text",
    ["[masked:api-key]", "x = '[masked:OPENAI_API_KEY]'", "[masked:AWS_SECRET_ACCESS_KEY]"],
)
def test_a_placeholder_of_a_secret_that_was_never_read_is_refused(text: str):
    with pytest.raises(MaskedSecretError, match=r"argument 'content' holds '\[masked:.*Read the file again"):
        new_redactor().restore({"content": text})


def test_a_placeholder_that_could_mean_two_texts_is_refused():
    redactor = new_redactor()
    for name in ("a value in JSON", "a value in an address"):
        redactor.text(MASKED[name][0])
    with pytest.raises(MaskedSecretError, match="could stand for several texts"):
        redactor.restore({"content": "[masked:DB_PASSWORD]"})


def test_placeholders_from_before_a_restart_are_refused_and_given_to_no_other_secret():
    redactor = new_redactor()
    redactor.reserve("KEY = [masked:aws-key-id]")
    assert redactor.text("AKIAIOSFODNN7EXAMPLE") == "[masked:aws-key-id-2]"
    with pytest.raises(MaskedSecretError, match="stands for no secret"):
        redactor.restore({"content": "[masked:aws-key-id]"})


async def test_a_secret_split_over_pieces_of_a_commands_output_is_not_kept(tmp_path: Path):
    recorder = SessionRecorder(await Journal.create(tmp_path / "s"), new_redactor())
    recorder.record(SessionStarted(session_id="s", workspace="/", app_version="1"))
    for call, piece in [("a", "key AKIAIOSF"), ("b", "number 2."), ("a", "ODNN7EXAMPLE "), ("a", "end")]:
        recorder.record(ToolProgress(call_id=call, text=piece))
    await recorder.close()
    written = (tmp_path / "s" / "events.jsonl").read_text()
    assert "AKIAIOSF" not in written
    assert "[masked:aws-key-id] " in written
    assert "number 2." in written


async def test_a_session_that_goes_on_does_not_take_a_new_secret_for_an_old_one(tmp_path: Path):
    secrets = ["AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLF"]
    for place, secret in enumerate(secrets):
        first = place == 0
        journal = await (Journal.create if first else Journal.open_to_append)(tmp_path / "s")
        redactor = new_redactor()
        redactor.reserve(journal.path.read_text())
        recorder = SessionRecorder(journal, redactor, fold(journal.contents.events))
        if first:
            recorder.record(SessionStarted(session_id="s", workspace="/", app_version="1"))
        recorder.record(Notice(severity="info", text=f"read {secret}"))
        mask = "[masked:aws-key-id]" if first else "[masked:aws-key-id-2]"
        assert recorder.restore({"content": mask}) == {"content": secret}
        await recorder.close()
    with pytest.raises(MaskedSecretError):
        recorder.restore({"content": "[masked:aws-key-id]"})


def test_text_that_only_looks_like_a_placeholder_is_left_alone():
    arguments = {"content": "[masked:…] [masked: x] [masked:]", "n": 1, "flag": None}
    assert new_redactor().restore(arguments) == arguments


def test_ordinary_words_are_shown_at_once():
    stream = new_redactor().stream()
    assert stream.feed("Let me look at the file.") == "Let me look at the file."


def test_a_secret_without_an_end_is_held_back_only_up_to_the_limit_and_swallowed():
    stream = new_redactor().stream()
    shown = stream.feed("key sk-1")
    for _ in range(100):
        shown += stream.feed("a1" * 500)
    shown += stream.feed("a1 and more") + stream.flush()
    assert shown == "key [masked:api-key] and more"


def test_long_text_that_only_looks_like_a_beginning_is_not_swallowed():
    stream = new_redactor().stream()
    text = "eyJ" + "a" * 40_000 + " end"
    shown = "".join(stream.feed(text[start : start + 1000]) for start in range(0, len(text), 1000))
    assert shown + stream.flush() == text


@pytest.mark.parametrize("event", stamp(one_of_every_type()), ids=lambda event: event.type)
def test_an_event_without_secrets_is_the_same_object(event: Event):
    assert new_redactor().redact(event) is event


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
            assert "hunter2" not in new_redactor().redact(hostile).model_dump_json(), (
                event.__dict__["type"],
                name,
            )


def test_nested_parts_of_events_are_masked():
    failure = Failure(
        kind=FailureKind.TOOL_EXECUTION,
        message="m hunter2",
        tool="bash",
        input={"a": [{"hunter2": "x hunter2"}]},
    )
    events = [
        ReplyRejected(failure=failure),
        ReplyFinished(calls=(ToolCall(id="1", name="bash", arguments='{"c":"echo hunter2"}'),)),
        VerdictReached(
            iteration=1,
            level=Level.STOP,
            verdicts=(VerdictRecord(level=Level.STOP, detector="d", reason="hunter2"),),
        ),
        ToolStarted(call_id="1", tool="bash", input={"env": {"X": ["hunter2", 1, None]}}),
    ]
    for event in events:
        kept = new_redactor().redact(event)
        assert "hunter2" not in encode(kept).decode()
        assert "[masked:PGPASSWORD]" in encode(kept).decode()
        assert decode(encode(kept)) == kept
        assert type(kept) is type(event)


def test_masked_arguments_are_still_json():
    call = ToolCall(
        id="1", name="bash", arguments=json.dumps({"command": f"psql '{ENVIRONMENT['DB_PASSWORD']}'"})
    )
    kept = new_redactor().redact(ReplyFinished(calls=(call,)))
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
    event = ToolStarted.model_construct(
        seq=1,
        at=1.0,
        v=SCHEMA_VERSION,
        type="tool_started",
        call_id="c",
        tool="bash",
        input=given_input,
        index=0,
    )
    kept = new_redactor().redact(event)
    assert decode(encode(kept)) == kept


NAMES = {
    "OPENAI_API_KEY": True,
    "GITHUB_TOKEN": True,
    "PGPASSWORD": True,
    "db-password": True,
    "AWS_SECRET_ACCESS_KEY": True,
    "MY_CREDENTIALS": True,
    "GH_PAT": True,
    "GITHUB_TOKENS": True,
    "max_tokens": False,
    "AGENT_TUI_CONTEXT_TOKENS": False,
    "recovery.auth-token": True,
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


async def test_the_long_output_of_the_operators_own_command_is_kept_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "my-own-odd-key-and-more"
    monkeypatch.setenv("LONG_TOKEN", secret)
    live = await start_session(tmp_path, [], files={"key": f"{secret}\n"})
    await carried_out(live.session, 'yes "$(cat key)" | head -n 3000')
    await live.close()
    (kept,) = (live.session.folder / "output").iterdir()
    text = kept.read_text()
    assert "[masked:LONG_TOKEN]" in text
    assert secret not in text
