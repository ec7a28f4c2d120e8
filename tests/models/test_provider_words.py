"""What providers really say is the kind of fault that it is, with its time and its window; live and recorded alike."""

from __future__ import annotations

import tomllib
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tui_agent.core.events import Fault, FaultKind
from tui_agent.formats.importers.faults import classified
from tui_agent.models.fault_advice import CallFacts
from tui_agent.models.faults import fault_of_answer

NOW = datetime(2026, 9, 5, 11, 47, tzinfo=ZoneInfo("Europe/Berlin"))
FACTS = CallFacts("openai/m", "openai", "http://127.0.0.1:1/v1")
SAID: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("provider_words.toml").read_text("utf-8")
)["said"]
SURE = 0.98


def fault_of(case: dict[str, Any]) -> Fault:
    if "status" in case:
        return fault_of_answer(case["status"], {}, case["text"].encode(), FACTS, now=NOW)
    return classified(case["text"], now=NOW)


def test_the_kind_of_a_real_message_is_right_in_98_of_100_and_of_each_kind_that_is_named() -> None:
    judged = [(case, fault_of(case).kind.value) for case in SAID]
    wrong = [(case["kind"], kind, case["text"][:90]) for case, kind in judged if case["kind"] != kind]
    assert len(SAID) >= 60
    assert len(wrong) <= (1 - SURE) * len(SAID), wrong
    for named in {kind for _, kind in judged}:
        right = [case["kind"] == named for case, kind in judged if kind == named]
        assert sum(right) >= SURE * len(right), (named, wrong)


@pytest.mark.parametrize(
    "case", [case for case in SAID if {"resets", "waits"} & case.keys()], ids=lambda c: c["text"][:50]
)
def test_the_time_of_a_limit_is_what_its_words_mean(case: dict[str, Any]) -> None:
    fault = fault_of(case)
    if "waits" in case:
        assert fault.retry_after == pytest.approx(case["waits"])
        if case["kind"] == "usage_limit":
            assert fault.resets_at == pytest.approx(NOW.timestamp() + case["waits"])
    else:
        assert fault.resets_at is not None
        assert datetime.fromtimestamp(fault.resets_at, NOW.tzinfo) == datetime.fromisoformat(case["resets"])


@pytest.mark.parametrize("case", [case for case in SAID if "window" in case], ids=lambda c: c["text"][:50])
def test_an_overflow_names_the_window(case: dict[str, Any]) -> None:
    assert fault_of(case).window == case["window"]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Too Many Requests", FaultKind.RATE_LIMIT),
        ("RESOURCE_EXHAUSTED", FaultKind.RATE_LIMIT),
        ("Unauthorized", FaultKind.AUTH),
        ("Forbidden", FaultKind.PERMISSION),
        ("Weekly limit reached", FaultKind.USAGE_LIMIT),
        ("You're out of extra usage", FaultKind.USAGE_LIMIT),
        ("Service Unavailable", FaultKind.SERVER),
        ("Bad gateway", FaultKind.SERVER),
        ("Internal Server Error", FaultKind.SERVER),
        ("Payment Required", FaultKind.QUOTA),
        ("Gateway timeout", FaultKind.TIMEOUT),
        ("fetch failed", FaultKind.CONNECTION),
        ("ECONNRESET", FaultKind.CONNECTION),
        ("socket hang up", FaultKind.STREAM_CUT),
        ("model not found", FaultKind.NOT_FOUND),
        ("requests.get(url, timeout=timeout)", FaultKind.UNKNOWN),
        ("the frobnicator is purple", FaultKind.UNKNOWN),
    ],
)
def test_ordinary_words_without_a_status_are_each_their_kind(words: str, kind: FaultKind) -> None:
    assert classified(words).kind is kind
