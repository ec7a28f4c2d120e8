"""Settings of a session that a client offers: policies as modes; policy, model, approvals and sandbox as options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

from tui_agent.core.names import APPROVALS, POLICIES, SANDBOX_MODES, Approval, SandboxMode
from tui_agent.frontend.lines.passages import Row
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.session.session import Session

MOST_MODELS = 100
_SANDBOX = {
    "auto": "commands run in the sandbox that works here",
    "off": "commands run with your rights",
    "require": "no command runs without a sandbox",
}


class UnknownOptionError(ValueError):
    """There is no such option, or it has no such value; the message says what there is."""


def modes(session: Session) -> dict[str, Any]:
    """The recovery policies, as the modes of the session."""
    return {
        "currentModeId": _policy(session),
        "availableModes": [{"id": name, "name": name, "description": "Recovery policy"} for name in POLICIES],
    }


def options(session: Session, found: Sequence[Row] = ()) -> list[dict[str, Any]]:
    """All options with their values now; `found`: the models that can be used."""
    now = session.state.session
    approve = now.approve or session.settings.approve
    return [
        _select("mode", "Recovery policy", "mode", _policy(session), dict.fromkeys(POLICIES, "")),
        _select("model", "Model", "model", _model(session), _models(session, found)),
        _select(
            "approve", "Approvals", "_approvals", approve, {mode: Approval(mode).words for mode in APPROVALS}
        ),
        _select("sandbox", "Sandbox", "_sandbox", session.settings.sandbox.mode, _SANDBOX),
    ]


def _policy(session: Session) -> str:
    return session.state.session.policy or session.settings.policy


def _model(session: Session) -> str:
    return session.state.session.model or session.settings.model


def _models(session: Session, found: Sequence[Row]) -> dict[str, str]:
    """Names of models with a word about each: the one of now, profiles, aliases, and what was found."""
    settings = session.settings
    known = dict.fromkeys([_model(session), *settings.profiles, *settings.aliases], "")
    usable = [row for row in found if row.value.api_base in {"", settings.api_base}]
    return known | {row.value.model: row.about for row in usable[:MOST_MODELS]}


def _select(key: str, name: str, category: str, now: str, values: dict[str, str]) -> dict[str, Any]:
    return {
        "type": "select",
        "id": key,
        "name": name,
        "category": category,
        "currentValue": now,
        "options": [
            {"value": value, "name": one_line(value, 100) or "none chosen"}
            | ({"description": about} if about else {})
            for value, about in values.items()
        ],
    }


async def choose(session: Session, key: str, value: str) -> None:
    """Set an option. Raises `UnknownOptionError`, and `SessionError` for what cannot be changed now."""
    match key:
        case "mode" if value in POLICIES:
            session.set_policy(value)
        case "approve" if value in APPROVALS:
            session.set_approve(Approval(value))
        case "sandbox" if value in SANDBOX_MODES:
            await session.use_sandbox(_sandbox_mode(value))
        case "model":
            check = await session.models.check(value)
            if not check.usable:
                raise UnknownOptionError(check.message)
            session.set_model(value)
        case "mode" | "approve" | "sandbox":
            known = {"mode": POLICIES, "approve": APPROVALS, "sandbox": SANDBOX_MODES}[key]
            raise UnknownOptionError(f"{key} is one of {', '.join(known)}, not {one_line(value, 60)}.")
        case _:
            said = f"There is no option {one_line(key, 60)}; there are mode, model, approve and sandbox."
            raise UnknownOptionError(said)


def _sandbox_mode(value: str) -> SandboxMode:
    return next(mode for mode in get_args(SandboxMode) if mode == value)
