"""The contestants: what recovery does in each, and whose rule watches besides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tui_agent.core.names import PolicyName
from tui_agent.core.recovery.detectors import DETECTORS
from tui_agent.core.recovery.policy import UNJUDGED
from tui_agent.lab.bench.advisers import Kind as Adviser
from tui_agent.lab.bench.peers import DoomLoop, GeminiCli, NoPeer, OpenHands, Peer

_NONE = {**UNJUDGED, "form": "off", "cut_replies": 0, "note": "none"}
"""No recovery at all: nothing is judged, no reply is continued, and nothing is said."""
_RETRIES = {**_NONE, "model_faults": "retry"}


@dataclass(frozen=True)
class Contestant:
    """A way to recover: a preset of the engine, changed, and a peer's rule over it."""

    name: str
    policy: PolicyName = "combined"
    recovery: Mapping[str, Any] = field(default_factory=dict)
    peer: str = ""
    asks: bool = False
    """Somebody may be asked: it is compared with and without an operator."""
    earlier: int = 0
    """Runs of the same case before the one that counts, with other draws, from which the playbook learns."""

    adviser: Adviser = ""
    """The second model that is asked at a pivot; empty: none."""

    def watcher(self) -> Peer:
        """The peer's rule, new for each run."""
        match self.peer:
            case "opencode":
                return DoomLoop(within_reply=True)
            case "doom-loop":
                return DoomLoop(within_reply=False)
            case "openhands":
                return OpenHands()
            case "gemini-cli":
                return GeminiCli()
            case _:
                return NoPeer()


LEFT_OUT: Mapping[str, Mapping[str, Any]] = {detector.name: detector.off for detector in DETECTORS}
"""`combined` without each of its detectors, by the detector's name."""

CONTESTANTS: Mapping[str, Contestant] = {
    one.name: one
    for one in (
        Contestant("none", recovery=_NONE),
        Contestant("retries", recovery=_RETRIES),
        *(
            Contestant(name, recovery=_RETRIES, peer=name, asks=name == "doom-loop")
            for name in ("opencode", "doom-loop", "openhands", "gemini-cli")
        ),
        Contestant("forge", "forge"),
        Contestant("gigi", "gigi", asks=True),
        Contestant("funnelcanary", "funnelcanary"),
        Contestant("hpd", "hpd"),
        Contestant("combined", asks=True),
        *(Contestant(f"without-{name}", recovery=changes) for name, changes in LEFT_OUT.items()),
        Contestant("notes-only", recovery={"attempts": "advise", "stuck": False, "breaker": False}),
        Contestant("refusals-only", recovery={"note": "none"}),
        Contestant("playbook-6", earlier=6),
        Contestant("adviser-right", adviser="right"),
        Contestant("adviser-wrong", adviser="wrong"),
        Contestant("adviser-late", adviser="late"),
    )
}
REFERENCE = "retries"
"""The baseline for harm: a case that succeeds under it should not fail under another."""

ADVISED = tuple(name for name, one in CONTESTANTS.items() if one.adviser)
STANDARD = tuple(name for name, one in CONTESTANTS.items() if not (one.earlier or one.adviser))
"""Those that are compared if none is named."""
