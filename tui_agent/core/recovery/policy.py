"""The policy: the parameters of recovery in one value, and the five presets.

Everything that a detector may do differently from one policy to another is a parameter: in its own file, or in
`parameters` if others go by it, too. A policy is data: it travels in `RunStarted`, so that a replay judges as the run
did.
"""

from __future__ import annotations

import json
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

from pydantic import ConfigDict, ValidationError

from tui_agent.core.recovery.detectors import DETECTORS
from tui_agent.core.recovery.parameters import together

if TYPE_CHECKING:
    from tui_agent.core.recovery.form import FormParameters
    from tui_agent.core.recovery.implicit import ImplicitParameters
    from tui_agent.core.recovery.model_faults import FaultParameters
    from tui_agent.core.recovery.ring import RingParameters
    from tui_agent.core.recovery.streak import StreakParameters
    from tui_agent.core.recovery.stuck import StuckParameters
    from tui_agent.core.recovery.tool_breaker import BreakerParameters
    from tui_agent.core.recovery.trials import TrialParameters

    class _OfDetectors(
        ImplicitParameters,
        FaultParameters,
        BreakerParameters,
        StuckParameters,
        StreakParameters,
        RingParameters,
        FormParameters,
        TrialParameters,
    ):
        """Parameters that are read outside of their detector's file."""

else:

    class _OfDetectors(*together(dict.fromkeys(detector.parameters for detector in reversed(DETECTORS)))):
        """Parameters of all detectors, in the order of the detectors."""


class RecoveryPolicy(_OfDetectors):
    """One way to recover. Each detector has a switch; a detector that is off is still shown, but has no say."""

    model_config = ConfigDict(defer_build=False)

    @property
    def detectors(self) -> frozenset[str]:
        """The names of those that have a say."""
        return frozenset(detector.name for detector in DETECTORS if detector.has_a_say(self))

    @property
    def ladder(self) -> frozenset[str]:
        """Whatever failing calls may lead to: levels of verdicts, and `withhold` for a call that is not run again."""
        return frozenset[str]().union(*(detector.rungs(self) for detector in DETECTORS))


UNJUDGED: MappingProxyType[str, Any] = MappingProxyType(
    {
        **{key: value for detector in DETECTORS for key, value in detector.off.items()},
        "playbook": False,
        "closing_turn": False,
        "fresh_starts": 0,
        "denials_limit": 0,
        "search_results": False,
        "findings": False,
        "unfinished": False,
        "work_only": False,
        "reads_text": False,
        "text_only": "answer",
        "batch_once": False,
    }
)
"""Parameters with which no detector has a say and nothing is read into results and replies."""

PRESETS: MappingProxyType[str, RecoveryPolicy] = MappingProxyType(
    {
        "forge": RecoveryPolicy(
            **{**UNJUDGED, "text_only": "failure", "ring": "stop", "ring_signature": "exact_note"},
            name="forge",
            note="forge",
        ),
        "gigi": RecoveryPolicy(
            **{**UNJUDGED, "attempts": "advise"},
            name="gigi",
            note="gigi",
            attempts_key="as_sent",
            attempts_reset="never",
            attempts_of="every_call",
        ),
        "funnelcanary": RecoveryPolicy(
            **{**UNJUDGED, "cognition": "walk", "model_faults": "next_iteration"},
            name="funnelcanary",
            note="funnelcanary",
            stall_threshold=3,
        ),
        "hpd": RecoveryPolicy(
            **{**UNJUDGED, "streak": "stop"}, name="hpd", note="none", error_prefix="every_tool"
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
