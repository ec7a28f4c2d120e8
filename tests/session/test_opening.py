"""How a session is named."""

from __future__ import annotations

from tui_agent.session.opening import new_session_id


def test_a_thousand_sessions_of_one_second_have_names_of_their_own() -> None:
    assert len({new_session_id(0.0) for _ in range(1_000)}) == 1_000
