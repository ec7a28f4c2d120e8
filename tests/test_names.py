"""Names stand apart from the classes they belong to, and are the same."""

from __future__ import annotations

from tui_agent.core.names import POLICIES
from tui_agent.core.recovery.policy import PRESETS


def test_the_names_of_policies_are_those_of_the_presets() -> None:
    assert tuple(PRESETS) == POLICIES
    assert [policy.name for policy in PRESETS.values()] == list(POLICIES)
