"""Which calls are the same call, and which failures the same failure."""

from __future__ import annotations

from typing import Any

import pytest

from tui_agent.core.events import Failure, FailureKind
from tui_agent.core.recovery.signature import call_key, failure_signature, normalise, same_text

VOLATILE = {
    "time of day": ("failed at 12:00:11", "failed at 12:01:12"),
    "time with fraction": ("12:00:11.123 failed", "12:00:11,456 failed"),
    "date": ("built 2026-11-21", "built 2026-11-22"),
    "ISO date and time": ("at 2026-11-21T12:00:11.123Z: no", "at 2026-11-21T12:00:12Z: no"),
    "ISO with zone": ("2026-11-21 12:00:11 +0200 no", "2026-12-21 13:00:11 +0100 no"),
    "syslog": ("Nov 21 12:00:11 host: no", "Dec  1 02:10:11 host: no"),
    "date(1)": ("Sat Nov 21 12:00:11 UTC 2026", "Sun Nov 22 12:00:12 UTC 2026"),
    "HTTP date": ("Sat, 21 Nov 2026 12:00:11 GMT", "Sun, 22 Nov 2026 12:00:11 GMT"),
    "access log": ("[21/Nov/2026:12:00:11 +0000] no", "[22/Nov/2026:12:30:11 +0000] no"),
    "epoch": ("at 1764567890", "at 1764567999"),
    "epoch with fraction": ("at 1764567890.25", "at 1764567999.125"),
    "epoch in milliseconds": ("at 1764567890250", "at 1764567999125"),
    "epoch in nanoseconds": ("at 1764567890250123456", "at 1764567999125654321"),
    "duration": ("in 0.3s", "in 1.25s"),
    "milliseconds": ("took 300ms", "took 12ms"),
    "spelt out": ("after 1.5 seconds", "after 12 seconds"),
    "compound duration": ("in 1m 20s", "in 2m 3s"),
    "temporary folder": ("/tmp/build-0a9f/x.o is bad", "/tmp/build-1b2c/x.o is bad"),
    "temporary file": ("/tmp/tmpab_12x is bad", "/tmp/tmpzz9q is bad"),
    "pytest's folder": ("/tmp/pytest-of-me/pytest-12/x", "/tmp/pytest-of-me/pytest-13/x"),
    "macOS": ("/var/folders/a1/bcd/T/tmp1/x", "/private/var/folders/z9/yyy/T/tmp2/x"),
    "Windows": ("C:\\Users\\a\\AppData\\Local\\Temp\\tmp1\\x", "C:\\Users\\b\\AppData\\Local\\Temp\\tmp2\\x"),
    "address": ("<object at 0x7f00dead>", "<object at 0x7f11beef>"),
    "uuid": ("job 123e4567-e89b-12d3-a456-426614174000", "job 00000000-e89b-12d3-a456-4266141740ff"),
    "commit": ("at 1a2b3c4", "at 9f8e7d6c5b4a"),
    "pid": ("pid 123 died", "pid 45678 died"),
    "pid in brackets": ("sshd[123]: no", "sshd[4567]: no"),
    "sanitiser's pid": ("==123==ERROR", "==4567==ERROR"),
    "thread": ("in Thread-1", "in Thread-22"),
    "ephemeral port": ("refused 127.0.0.1:43210", "refused 127.0.0.1:54321"),
    "white space": ("a\n  b", "a b\n"),
}


@pytest.mark.parametrize(("one", "other"), VOLATILE.values(), ids=VOLATILE)
def test_volatile_parts_make_no_difference(one: str, other: str) -> None:
    assert one != other
    assert normalise(one) == normalise(other)


MEANING = {
    "counts": ("5 failed, first: test_0", "4 failed, first: test_1"),
    "count before a duration": ("5 failed in 0.1s", "4 failed in 0.1s"),
    "lines": ("a.py:12:30: bad", "a.py:13:30: bad"),
    "names": ("file not found: a", "file not found: b"),
    "files in a temporary folder": ("/tmp/ws/a.py is missing", "/tmp/ws/b.py is missing"),
    "temporary files named by hand": ("/tmp/notes.txt is missing", "/tmp/todo.txt is missing"),
    "exit codes": ("exit code 1", "exit code 2"),
    "versions": ("needs 3.11.7", "needs 3.12.1"),
    "progress": ("10% done", "20% done"),
    "numbers": ("27210", "36454"),
    "large numbers": ("size 1234567", "size 7654321"),
    "named ports": ("localhost:8080 refused", "localhost:9090 refused"),
    "words of hex letters": ("defaced", "acceded"),
    "identifiers": ("file_0a9f1234", "file_0a9f1235"),
}


@pytest.mark.parametrize(("one", "other"), MEANING.values(), ids=MEANING)
def test_what_means_something_stays(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)


def test_a_signature_is_kind_tool_and_normalised_message() -> None:
    failure = Failure(kind=FailureKind.TOOL_EXECUTION, tool="bash", message="no at 12:00:11")
    assert failure_signature(failure) == "tool_execution|bash|no at <time>"


def test_long_messages_differ_by_their_ends_and_their_signatures_stay_short() -> None:
    failures = [
        Failure(kind=FailureKind.TOOL_EXECUTION, message="x y " * 20_000 + end)
        for end in ("5 failed", "4 failed")
    ]
    one, other = (failure_signature(failure) for failure in failures)
    assert one != other
    assert len(one) <= 1_000


def test_texts_of_very_different_length_are_not_the_same() -> None:
    assert not same_text("a " * 10, "a " * 1_000)
    assert same_text("done in 0.1s", "done in 12.25s")


SAME_CALL: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "order": ({"a": 1, "b": {"c": 1, "d": 2}}, {"b": {"d": 2, "c": 1}, "a": 1}),
    "a command's description": ({"command": "ls", "description": "List"}, {"command": "ls"}),
    "thought": ({"path": "a", "thought": "I must"}, {"path": "a", "thought": "Once more"}),
    "reason of a read": ({"path": "a", "reason": "to see"}, {"path": "a"}),
}


@pytest.mark.parametrize(("one", "other"), SAME_CALL.values(), ids=SAME_CALL)
def test_calls_that_are_the_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert call_key("t", one) == call_key("t", other)


OTHER_CALL: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "an argument": ({"path": "a"}, {"path": "b"}),
    "a page": ({"path": "a", "offset": 1}, {"path": "a", "offset": 2}),
    "an issue's description": ({"title": "a", "description": "b"}, {"title": "a", "description": "c"}),
    "a tool for thoughts": ({"thought": "a"}, {"thought": "b"}),
    "prose that is none": ({"path": "a", "reason": ["x"]}, {"path": "a", "reason": ["y"]}),
    "type": ({"a": 1}, {"a": "1"}),
    "the end of something long": ({"content": "x" * 5_000 + "a"}, {"content": "x" * 5_000 + "b"}),
}


@pytest.mark.parametrize(("one", "other"), OTHER_CALL.values(), ids=OTHER_CALL)
def test_calls_that_are_not_the_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert call_key("t", one) != call_key("t", other)


def test_another_tool_is_another_call() -> None:
    assert call_key("a", {}) != call_key("b", {})


def test_gigi_tells_calls_apart_by_the_order_of_their_fields() -> None:
    one, other = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    assert call_key("t", one, "as_sent") != call_key("t", other, "as_sent")
    assert call_key("t", one) == call_key("t", other)


def test_keys_of_large_or_odd_input_are_short_and_never_fail() -> None:
    assert len(call_key("t", {"content": "x" * 1_000_000})) <= 1_000
    assert call_key("t", {"lone": "\ud800" * 2_000, "n": float("nan")})
