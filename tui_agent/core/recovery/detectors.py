"""The detectors, in their order. Whatever has to know all of them derives it from here: the engine, the policy and its
presets, the keys of `[recovery]`, the benchmark's contestants, `why`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.cognition import CognitiveState
from tui_agent.core.recovery.detector import Detector
from tui_agent.core.recovery.form import FormErrors
from tui_agent.core.recovery.implicit import ImplicitFailures
from tui_agent.core.recovery.model_faults import ModelFaults
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.core.recovery.streak import ErrorStreak
from tui_agent.core.recovery.stuck import StuckPatterns
from tui_agent.core.recovery.tool_breaker import ToolBreakers
from tui_agent.core.recovery.trials import Trials

DETECTORS: tuple[type[Detector[Any]], ...] = (
    Trials,
    AttemptLedger,
    FormErrors,
    ErrorRing,
    ErrorStreak,
    CognitiveState,
    StuckPatterns,
    ToolBreakers,
    ModelFaults,
    ImplicitFailures,
)
"""The order settles ties between verdicts of one level: the detector that knows most about the cause comes first."""

if TYPE_CHECKING:
    Detectors = tuple[Detector[Any], ...]
else:
    # Each by its own type, so that a saved state is read back as what it was.
    Detectors = tuple[DETECTORS]
