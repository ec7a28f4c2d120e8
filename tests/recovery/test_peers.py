"""Loops and non-loops from other projects' suites: we see theirs in time, and let go on what they let go on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.recovery.cases import CASES_DIR, PeerCase, Player, load_peer_cases
from tui_agent import events as e

CASES = load_peer_cases()

pytestmark = pytest.mark.skipif(not CASES, reason=f"no peer cases in {CASES_DIR}")

STUCK = {"stuck", "trip"}
ENDS = {"escalate", "degrade", "stop"}

Step = dict[str, Any]


def steps_of(case: PeerCase) -> list[Step]:
    """The case as steps, one an iteration or an operator's message; `end` is its last event's index."""
    steps: list[Step] = []
    turns: dict[Any, Step] = {}
    for index, event in enumerate(case.events):
        match event["kind"]:
            case "tool_call":
                call = {"tool": event["name"], "input": event["arguments"], "ok": True, "content": ""}
                turn = event.get("turn", f"alone {index}")
                if turn not in turns:
                    turns[turn] = {"calls": []}
                    steps.append(turns[turn])
                turns[turn]["calls"].append({**call, "id": event.get("id")})
                turns[turn]["end"] = index
            case "tool_result" | "tool_error" as kind:
                step = turns[event["turn"]] if "turn" in event else steps[-1]
                call = next(one for one in step["calls"] if one["id"] == event.get("id"))
                call.update(content=event["text"], error=event["text"], ok=kind == "tool_result")
                if "not found" in event["text"]:
                    call["kind"] = e.FailureKind.UNKNOWN_TOOL
                step["end"] = index
            case "llm_message" if not event.get("reasoning"):
                steps.append({"text": event["text"], "reject": event.get("malformed", False), "end": index})
            case "user_message":
                steps.append({"operator": event["text"], "end": index})
            case "api_error":
                raise NotImplementedError(f"{case.id}: no peer case had an api_error when this was written")
    return steps


def play(player: Player, step: Step) -> None:
    if "calls" in step:
        player.batch(*step["calls"])
    elif "text" in step:
        player.text(step["text"], reject=step["reject"])
    elif player.iteration:
        player.feed(e.OperatorSpoke(text=step["operator"]))


def seen(player: Player) -> bool:
    return player.level != "continue"


def continuation(case: PeerCase, steps: list[Step]) -> list[Step]:
    """The pattern of a stuck case, drawn out by its next two steps."""
    turns = [step for step in steps if "operator" not in step]
    if case.expected["pattern"] in {"cycle", "monologue", "malformed_replies"}:
        return turns[-2:]
    turns = [step for step in turns if "calls" in step]
    return [turns[-1]] * 2


def checkpoints(case: PeerCase) -> list[tuple[int, bool]]:
    """(index of an event, stuck or not) as the peer judges, the last event included."""
    points = [
        (point["after_event"], point["verdict"] in STUCK) for point in case.expected.get("checkpoints", [])
    ]
    return [*points, (len(case.events) - 1, case.expected["verdict"] in STUCK)]


@pytest.mark.parametrize("operator_present", [True, False], ids=["operator", "nobody"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_a_peer_calls_stuck_is_seen_at_most_two_calls_later(
    case: PeerCase, operator_present: bool
) -> None:
    steps = steps_of(case)
    for index, stuck in checkpoints(case):
        if not stuck:
            continue
        player = Player(operator_present=operator_present)
        sightings = 0
        for step in steps:
            if step["end"] <= index:
                play(player, step)
                sightings += seen(player)
        late = continuation(case, [step for step in steps if step["end"] <= index])
        while not sightings and late:
            play(player, late.pop(0))
            sightings += seen(player)
        assert sightings, f"not seen two calls after event {index}"


@pytest.mark.parametrize("operator_present", [True, False], ids=["operator", "nobody"])
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.expected["verdict"] in STUCK], ids=lambda case: case.id
)
def test_a_pattern_that_goes_on_for_two_rounds_after_it_was_seen_comes_to_an_end(
    case: PeerCase, operator_present: bool
) -> None:
    player = Player(operator_present=operator_present)
    steps = steps_of(case)
    calls_only = case.expected["pattern"] in {"cycle", "repeat_call", "repeat_action_observation"}
    rounds = 4 if case.expected["pattern"] == "cycle" else 2
    was_seen, extended, levels = False, 0, []
    for step in [*steps, *continuation(case, steps), *continuation(case, steps)]:
        extended += was_seen and ("calls" in step or not calls_only)
        play(player, step)
        was_seen = was_seen or seen(player)
        levels.append(player.level)
        if extended == rounds and case.expected["pattern"] != "malformed_replies":
            assert player.level in ENDS
            break
    assert levels[-1] in ({"escalate", "stop"} if operator_present else {"stop", "degrade"})


@pytest.mark.parametrize("operator_present", [True, False], ids=["operator", "nobody"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_a_peer_lets_go_on_is_not_escalated_degraded_or_stopped(
    case: PeerCase, operator_present: bool
) -> None:
    steps = steps_of(case)
    for index, stuck in checkpoints(case):
        if stuck:
            continue
        player = Player(operator_present=operator_present)
        for step in steps:
            if step["end"] <= index:
                play(player, step)
                later_than_a_loop = any(end < step["end"] and looped for end, looped in checkpoints(case))
                assert later_than_a_loop or player.level not in ENDS
        assert player.level not in ENDS
        assert case.expected["verdict"] in STUCK or not player.refused


def test_the_peers_loops_are_not_seen_with_the_stuck_detector_taken_away() -> None:
    from tui_agent.recovery.policy import preset

    case = next(case for case in CASES if case.id == "oh-01-repeat-success-boundary")
    player = Player(preset("combined", stuck=False))
    for step in steps_of(case):
        play(player, step)
    assert not seen(player)
