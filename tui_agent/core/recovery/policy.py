"""The parameters of recovery and the five presets.

Everything that a detector may do differently from one policy to another is a field here; detectors hold no
constants of their own. A policy is data: it travels in `RunStarted`, so that a replay judges as the run did.
"""

from __future__ import annotations

import json
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tui_agent.core.recovery import verdict
from tui_agent.core.recovery.findings import LARGEST_CODE

Count = Annotated[int, Field(ge=1)]
CountFrom0 = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0)]
FindingCode = Annotated[int, Field(ge=1, le=LARGEST_CODE)]
# The length is a limit of its own: counted in the pattern, it took 90 ms of every start to compile.
ProgramName = Annotated[str, Field(max_length=120, pattern=r"^[\w.+-]+( [\w:.+-]+)?$")]


class RecoveryPolicy(BaseModel):
    """One way to recover. Each detector has a switch; a detector that is off is still shown, but has no say."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "combined"
    """The preset it was made from."""

    text_only: Literal["failure", "answer", "failure_once"] = "failure_once"
    """A reply without a call: always a failure (Forge), always the answer, or once a failure after a failing step."""
    reads_text: bool = True
    """Text that is a call is carried out as one, and text that repeats the engine's own words or itself is
    no answer."""
    cut_replies: CountFrom0 = 3
    """Replies in a row that the length limit cut and that are continued; the next one ends the run as partial."""
    search_results: bool = True
    """A search or comparison that finds nothing (exit code 1 without an error text) is a result, not a failure."""
    work_only: bool = True
    """A success that did no work does not count: `finish`, a plan, and a write that changes nothing."""
    findings: bool = True
    """Exit codes by which test runners, linters and compilers say what they found are results, not failures."""
    finding_codes: dict[ProgramName, tuple[FindingCode, ...]] = {}
    """Further programs (`checker`, or `checker lint`) with the exit codes that mean findings."""
    error_prefix: Literal["every_tool", "mute_tools"] = "mute_tools"
    """Where text that starts with `Error:` is a failure: from every tool (HPD), or from tools without a better way."""
    note: Literal["merged", "forge", "gigi", "funnelcanary", "none"] = "merged"
    """What the model reads after a failure, beside the tool results."""

    ring: Literal["off", "stop", "ask"] = "ask"
    """Five identical failures in a row: not judged, stop (Forge), or ask the operator where one is there, else stop."""
    ring_signature: Literal["normalised", "exact_note"] = "normalised"
    """What makes failures identical: kind, tool and normalised message, or the exact text of the note (Forge)."""
    batch_once: bool = True
    """The same call twice in one reply counts once in the attempts. (In the ring a reply counts once in any case.)"""

    attempts: Literal["off", "advise", "block"] = "block"
    """Repeated failures of one call: not judged, escalated (Gigi), or escalated and the call blocked."""
    attempts_limit: Count = 3
    """Failures of one call at which the operator is asked."""
    attempts_key: Literal["canonical", "as_sent"] = "canonical"
    """What makes calls the same: canonical input, or the JSON in the order as sent (Gigi)."""
    attempts_reset: Literal["progress", "never"] = "progress"
    """Success of the call clears it and another error restarts it at 1, or nothing does within the run (Gigi)."""
    attempts_of: Literal["executions", "every_call"] = "executions"
    """Failures in execution that are the model's, or every failed call (Gigi)."""
    trials: Literal["off", "count"] = "count"
    """A failure after a change of the workspace: a repeat like any other, or a trial, which is never blocked."""
    trials_guide: Count = 3
    """Trials of one call without effect (the same error after a change) at which the note says so."""
    trials_ask: Count = 6
    """Trials of one call without effect at which the operator is asked, and again after as many more."""
    denials_limit: CountFrom0 = 3
    """Denials of one call at which the operator is asked; 0: never."""

    streak: Literal["off", "stop", "escalate"] = "escalate"
    """Too many failing steps in a row: not judged, stop (HPD), or ask; with nobody there `on_escalation` decides."""
    streak_limit: Count = 3
    """Failing steps in a row that are allowed; the next one exceeds it."""

    form: Literal["off", "count", "ladder"] = "ladder"
    """Replies that break the form: counted as failures like others, or by a ladder of their own; "off": not judged."""
    form_limit: Count = 3
    """Identical replies in a row that may break the form; the next one asks the operator, where one is there."""
    form_end: Count = 8
    """Identical broken replies in a row with which a run ends as partial where nobody can be asked."""
    form_row: Count = 30
    """Broken replies in a row, however they differ, at which the operator is asked and a run without one ends."""
    form_text: CountFrom0 = 3
    """Replies in a row with calls as text, or calls that cannot be read, before the first call that can: the model
    writes all its calls as text from then on; 0: never."""

    cognition: Literal["off", "walk", "chance"] = "chance"
    """What decides on PIVOT: nothing, FunnelCanary's confidence, or repetition and the chance of the next step."""
    pivot_errors: Count = 3
    """PIVOT under `chance` needs an error that has been seen before, in its shape, among so many of the newest."""
    pivot_chance: Share = 0.05
    """PIVOT under `chance` where the next step is less likely to succeed than this, whatever the errors are."""
    confidence_start: Share = 0.3
    """Confidence at the start of a run."""
    confidence_up: Share = 0.1
    """Gained by a step with a successful call."""
    confidence_down: Share = 0.1
    """Lost by a step in which all failed, and by a failed model call."""
    confidence_cap: Share = 0.9
    """Highest confidence."""
    confidence_threshold: Share = 0.7
    """CONCLUDE from here on, when no uncertainty is open."""
    degrade_threshold: Share = 0.3
    """A stall below it is DEGRADE, else PIVOT."""
    stall_threshold: Count = 3
    """Steps without a success that make a stall."""
    uncertainty_limit: Count = 5
    """Open uncertainties at which the note asks for another way (`walk`: at which the run ends as partial)."""

    model_faults: Literal["terminal", "next_iteration", "retry"] = "retry"
    """A failed model call ends the run, is left to the next step (FunnelCanary), or is retried."""
    model_tries: Count = 5
    """Calls made in all after a fault that may pass, before the next model."""
    model_patience: Seconds = 60.0
    """Seconds in all to wait for a server that cannot be reached or restarts, before the next model."""
    bad_output_retries: CountFrom0 = 2
    """Retries for empty or malformed output."""
    shrinks: CountFrom0 = 2
    """How often the request is shortened for a prompt that is too long, before the partial answer."""
    backoff_base: Seconds = 1.0
    """Seconds; upper bound of the first wait, doubled with each try."""
    backoff_cap: Seconds = 60.0
    """Seconds; upper bound of every wait that the provider did not ask for."""
    retry_after_cap: Seconds = 300.0
    """Seconds; a provider that asks for a longer wait counts as out of retries."""

    stuck: bool = True
    """Patterns of calls that bring nothing new: warned of, then withheld, then escalated or stopped."""
    stuck_window: Annotated[int, Field(ge=6)] = 20
    """How many of the newest calls are searched for patterns."""
    stuck_repeats: Annotated[int, Field(ge=2)] = 4
    """How often the same call may have the same outcome; at most `stuck_window`."""
    stuck_waits: Annotated[int, Field(ge=2)] = 30
    """The same for a call that waits: it sleeps or watches, takes a second or more, or shows a clock."""
    stuck_paraphrases: CountFrom0 = 4
    """Different calls that only look and show the same, at which the model is told; 0: never."""
    stuck_alternation: Annotated[int, Field(ge=4)] = 6
    """Calls in a row that alternate between two, with the same outcomes; at most `stuck_window`."""
    stuck_monologue: Annotated[int, Field(ge=2)] = 3
    """Assistant messages in a row without a call."""
    stuck_overflows: Count = 2
    """Overflow retries in a row without effect."""

    implicit: bool = True
    """The note names silent failures: an exit code 0 over an error, a test run without a test, and the like."""
    verify_claims: bool = True
    """An answer that claims what no result shows, of tests or of a file, is sent back once a run to be verified."""

    breaker: bool = True
    """A tool that fails over different inputs is left out for a while."""
    breaker_failures: Count = 5
    """Failures in a row that open it."""
    breaker_iterations: Count = 3
    """Steps for which it is left out the first time; doubled when the probe fails."""

    playbook: bool = True
    """What recovered failures in earlier runs is counted. The note says it where there is enough evidence."""
    playbook_elsewhere: bool = False
    """Where nothing is known of this workspace, the note says what worked in your others."""
    persist: bool = False
    """Failures of a call and of a tool count on in the next run, while the workspace has not changed since the last."""
    closing_turn: bool = True
    """Before recovery ends a run, one more reply and its calls (`combined` alone)."""

    @property
    def detectors(self) -> frozenset[str]:
        """Those that have a say and may be left out; form and model faults are always judged."""
        says = {
            verdict.TRIALS: self.trials != "off" and self.attempts != "off",
            verdict.ATTEMPTS: self.attempts != "off",
            verdict.RING: self.ring != "off",
            verdict.STREAK: self.streak != "off",
            verdict.COGNITION: self.cognition != "off",
            verdict.STUCK: self.stuck,
            verdict.BREAKER: self.breaker,
            verdict.IMPLICIT: self.implicit or self.verify_claims,
        }
        return frozenset(detector for detector, has in says.items() if has)

    @property
    def ladder(self) -> frozenset[str]:
        """What failing calls may lead to: levels of verdicts, and `withhold` for a call that is not run again."""
        asks = self.attempts != "off" or self.ring == "ask" or self.streak == "escalate" or self.stuck
        rungs = {
            "guide": asks or self.ring != "off" or self.breaker,
            "withhold": self.attempts == "block" or self.stuck or self.breaker,
            "pivot": self.cognition != "off",
            "escalate": asks,
            "degrade": self.cognition == "walk" or self.streak == "escalate",
            "stop": self.ring != "off" or self.streak == "stop" or self.stuck,
        }
        return frozenset(rung for rung, there in rungs.items() if there)


_OFF: dict[str, Any] = {
    "ring": "off",
    "attempts": "off",
    "trials": "off",
    "playbook": False,
    "closing_turn": False,
    "denials_limit": 0,
    "streak": "off",
    "form": "count",
    "search_results": False,
    "findings": False,
    "work_only": False,
    "reads_text": False,
    "cognition": "off",
    "model_faults": "terminal",
    "stuck": False,
    "breaker": False,
    "implicit": False,
    "verify_claims": False,
    "text_only": "answer",
    "batch_once": False,
}

PRESETS: MappingProxyType[str, RecoveryPolicy] = MappingProxyType(
    {
        "forge": RecoveryPolicy(
            **{**_OFF, "text_only": "failure", "ring": "stop", "ring_signature": "exact_note"},
            name="forge",
            note="forge",
        ),
        "gigi": RecoveryPolicy(
            **{**_OFF, "attempts": "advise"},
            name="gigi",
            note="gigi",
            attempts_key="as_sent",
            attempts_reset="never",
            attempts_of="every_call",
        ),
        "funnelcanary": RecoveryPolicy(
            **{**_OFF, "cognition": "walk", "model_faults": "next_iteration"},
            name="funnelcanary",
            note="funnelcanary",
        ),
        "hpd": RecoveryPolicy(
            **{**_OFF, "streak": "stop"}, name="hpd", note="none", error_prefix="every_tool"
        ),
        "combined": RecoveryPolicy(),
    }
)
"""The five policies by name."""


_SWITCHES = {
    name: field.annotation
    for name, field in RecoveryPolicy.model_fields.items()
    if "off" in get_args(field.annotation)
}
"""Parameters that can be switched off by `false`; `true` means as the preset has it."""

_VERSION_1: dict[str, dict[Any, str]] = {
    "ring": {True: "stop"},
    "cognition": {"act": "walk", "pivot": "chance"},
}
"""Values that journals of version 1 hold, and what they are called now."""


def preset(name: str, **overrides: Any) -> RecoveryPolicy:
    """The preset `name` with some parameters of one's own; a detector's may be `False` (off) or `True` (as it is).

    Raises `ValueError` for an unknown name, and for an unknown or impossible parameter.
    """
    if name not in PRESETS:
        raise ValueError(f"There is no policy {name!r}; there are {', '.join(PRESETS)}.")
    base = PRESETS[name]
    if not overrides:
        return base
    return RecoveryPolicy.model_validate({**base.model_dump(), **_switched(base, overrides)})


def _switched(base: RecoveryPolicy, overrides: dict[str, Any]) -> dict[str, Any]:
    changed = dict(overrides)
    for name in _SWITCHES.keys() & changed.keys():
        if changed[name] is False:
            changed[name] = "off"
        elif changed[name] is True:
            own = getattr(base, name)
            changed[name] = getattr(PRESETS["combined"], name) if own == "off" else own
    return changed


def policy_of_run(name: str, settings: dict[str, Any]) -> RecoveryPolicy:
    """The policy that a `RunStarted` names: its settings, else the preset, else `combined`. Never raises.

    Settings that this version does not know (a journal of a newer one) fall back to the preset.
    """
    if not settings:
        return PRESETS.get(name, PRESETS["combined"])
    return _of_run(name, json.dumps(settings, default=str))


@lru_cache(maxsize=16)
def _of_run(name: str, settings_text: str) -> RecoveryPolicy:
    """Each run of a dialogue names the same again."""
    base = PRESETS.get(name, PRESETS["combined"])
    settings: dict[str, Any] = json.loads(settings_text)
    known = {
        key: _VERSION_1[key].get(value, value) if key in _VERSION_1 else value
        for key, value in settings.items()
    }
    try:
        return RecoveryPolicy.model_validate({**base.model_dump(), **_switched(base, known)})
    except ValidationError:
        return base
