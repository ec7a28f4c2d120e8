"""Attempts: the ledger of failing calls (Gigi), of the run and of its sub-agents at work: what is blocked first, then
what is open, the newest first, with a pip for each failure up to the limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tui_agent.call_names import subject_of, telling_arguments
from tui_agent.console.looks.pane_facts import PaneFacts
from tui_agent.console.panes.pane import Asked, StatePane, newest_rule, not_used, nothing
from tui_agent.core.projections.tally import with_lanes
from tui_agent.frontend.lines.glyphs import pips
from tui_agent.frontend.lines.styled import Line, Span, fit, fit_middle, justified, pad, wrap
from tui_agent.headline import headline
from tui_agent.quantities import counted
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.core.projections.incidents import Incident
    from tui_agent.core.recovery.attempts import AttemptEntry
    from tui_agent.core.state import RunState

FADES_AFTER = 4
"""Steps for which a recovered call is still shown."""

_MOST_RECOVERED = 20

SHOWN = 200
"""Entries that are drawn; older ones are counted."""

_NARROW, _WIDE = 30, 56
"""Columns from which a word stands beside a sign, and from which it may be a sentence."""


class AttemptsPane(StatePane):
    """A table by call: pips, tool, input, and the call's state."""

    facts = PaneFacts(
        "attempts",
        "Attempts",
        "Failures of each call, a filled circle each. The third one asks you, and the call is blocked until you allow "
        "it. What was recovered is green, then fades.",
        "a",
        row=1,
        column=0,
    )

    DEFAULT_CSS = """
    AttemptsPane { height: 8; min-height: 3; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._part: object = None
        """What it was drawn from."""
        self._entries: list[Row] = []
        self._telling: list[frozenset[str]] = []
        """For each entry that is drawn, the arguments that tell it from the others."""
        self._recovered: dict[str, Incident] = {}
        self._fresh: tuple[str, ...] = ()

    def show(self, state: RunState, now: float) -> None:
        policy, rule = state.recovery.policy, newest_rule(state, "attempts")
        recovered, fresh = _lately_recovered(state)
        rows = [row for each in with_lanes(state) for row in _rows(each, recovered if each is state else {})]
        rows.sort(key=lambda row: (not row.blocked, row.incident is None))
        part = (rows, policy, rule, recovered, fresh)
        if part == self._part and self.lines:
            return
        self._part, self._entries, self._fresh = part, rows, fresh
        self._recovered = recovered
        self._telling = telling_arguments([(row.entry.tool, row.entry.input) for row in rows[:SHOWN]])
        blocked = sum(row.blocked for row in rows)
        unused = not_used(policy, policy.attempts == "off")
        self.say_below(f"⊘ {blocked} blocked" if blocked else "", unused=unused, rule=rule)
        self.redraw()

    def subject(self) -> Asked | None:
        """The newest failure of the first call, or of the one that was recovered last."""
        incident = next((row.incident for row in self._entries if not row.lane), None)
        incident = incident or next(reversed(self._recovered.values()), None)
        return None if incident is None else Asked(incident.newest.seq)

    @property
    def speaks(self) -> bool:
        return bool(self._entries or self._recovered)

    def draw(self, width: int, height: int) -> list[Line]:
        """Draw what is blocked first, what was recovered last; each entry with its message if all have a row for it."""
        entries = self._entries
        still = {row.entry.key for row in entries}
        recovered = [
            self._recovered_row(incident, width)
            for incident in reversed(self._recovered.values())
            if incident.key not in still
        ]
        if not entries:
            about = "A call that fails is counted here until it is recovered."
            return recovered or nothing("no call has failed", about, width, height)
        lines: list[Line] = []
        pip_width = max(len(pips(row.entry.count, row.entry.limit)) for row in entries[:SHOWN])
        tool_width = min(max(len(row.tool) for row in entries[:SHOWN]), max(4, width // 4))
        messages = _messages(entries[:SHOWN], width - pip_width - 1, height - len(recovered) - len(entries))
        for entry, telling, message in zip(entries, self._telling, messages, strict=False):
            lines.append(self._row(entry, telling, width, pip_width, tool_width))
            lines.extend((Span(" " * (pip_width + 1) + row, "muted"),) for row in message)
        if len(entries) > SHOWN:
            lines.append((Span(fit(f"… {len(entries) - SHOWN} older", width), "muted"),))
        return [*lines, *recovered]

    def _recovered_row(self, incident: Incident, width: int) -> Line:
        """Green while it is new, then faded."""
        role = "ok" if incident.key in self._fresh else "muted"
        same = incident.recovery is not None and incident.recovery.how == "same_call"
        left = (
            Span("✓ ", f"{role} bold"),
            Span(f"{one_line(incident.tool)} ", f"{role} bold"),
            Span(subject_of(incident), role),
        )
        return justified(left, (Span(_recovered_words(incident.times, width, same=same), role),), width)

    def _row(self, row: Row, telling: frozenset[str], width: int, pip_width: int, tool_width: int) -> Line:
        entry = row.entry
        out_of_tries = entry.count >= entry.limit
        role = "blocked" if row.blocked or entry.denials else "error" if out_of_tries else "warn"
        loud = f"{role} bold" if out_of_tries or row.blocked else "blocked" if entry.denials else "muted"
        status = _status(row, width)
        call = subject_of(entry, telling=telling)
        room = width - pip_width - tool_width - 2 - len(status) - 1
        left = (
            Span(pad(pips(entry.count, entry.limit), pip_width) + " ", role),
            Span(pad(row.tool, tool_width) + " ", "bold"),
            Span(fit_middle(call, room)),
        )
        return justified(left, (Span(status, loud),), width)


class Row(NamedTuple):
    """A call that fails, in the run or in a sub-agent (`lane`). `blocked`: it would not run now."""

    entry: AttemptEntry
    incident: Incident | None
    lane: str
    blocked: bool
    ended: bool

    @property
    def tool(self) -> str:
        """The tool's name, behind that of the sub-agent."""
        tool = one_line(self.entry.tool)
        return f"{one_line(self.lane)} › {tool}" if self.lane else tool


def _rows(state: RunState, recovered: Mapping[str, Incident]) -> list[Row]:
    """List the calls that fail or are blocked, the newest first. Nothing is blocked when the run has ended."""
    from tui_agent.core.recovery.attempts import AttemptLedger

    recovery, ended = state.recovery, state.run.outcome is not None
    opened = state.metrics.incidents.open
    # If a policy never clears an entry, its count matters after the trouble is over too.
    lasting = recovery.policy.attempts_reset == "never"
    rows = []
    for entry in recovery.of(AttemptLedger).newest_first():
        blocked = not ended and recovery.blocks(entry)
        stands = entry.key not in recovered and (lasting or entry.key in opened or bool(entry.denials))
        if blocked or stands:
            rows.append(Row(entry, opened.get(entry.key), state.lane_name, blocked, ended))
    return rows


def _recovered_words(times: int, width: int, *, same: bool) -> str:
    """Say how a call that failed so often was recovered."""
    if width < _WIDE:
        return "works now" if same else "another way"
    return f"worked after {counted(times, 'failure')}" if same else "solved in another way"


def _messages(entries: Sequence[Row], width: int, rows: int) -> list[list[str]]:
    """Lay out what the newest failure of each entry says, in `rows` for all: a line each from the first on, and more if
    rows are left.
    """
    if width < 1:
        return [[] for _ in entries]
    messages: list[list[str]] = [[] for _ in entries[max(0, rows) :]]
    told = entries[: max(0, rows)]
    spare = rows - len(told)
    for place, entry in enumerate(told):
        whole = wrap(headline(entry.entry.last_message), width)
        more = min(spare, len(whole) - 1)
        spare -= more
        messages.insert(place, [*whole[:more], fit(" ".join(whole[more:]), width)])
    return messages


def _lately_recovered(state: RunState) -> tuple[dict[str, Incident], tuple[str, ...]]:
    """Calls that were recovered in the last steps, the newest last, and the keys of those of the newest step."""
    found: dict[str, Incident] = {}
    fresh: list[str] = []
    log = state.metrics.incidents.recovered
    for place in range(len(log) - 1, max(-1, len(log) - 1 - _MOST_RECOVERED), -1):
        incident = log[place]
        recovery = incident.recovery
        if recovery is None or state.run.iteration - recovery.iteration > FADES_AFTER:
            break
        if incident.tool and recovery.tool:
            found[incident.key] = incident
            if state.run.iteration - recovery.iteration <= 1:
                fresh.append(incident.key)
    return dict(reversed(found.items())), tuple(fresh)


def _status(row: Row, width: int) -> str:
    entry = row.entry
    count = f"{entry.count}/{entry.limit}"
    if row.blocked:
        return "⊘ blocked" if width >= _NARROW else "⊘"
    if row.ended:
        return f"{count} · left open" if row.incident is not None else count
    if entry.blocked:
        return f"{count} · {'1 more try' if entry.allowed else 'may run again'}"
    if entry.on_trial:
        changes = counted(entry.trials, "change")
        return f"the same after {changes}" if width >= _WIDE else changes
    if entry.denials:
        return f"⊘ ×{entry.denials} · {count}" if entry.count else f"⊘ denied ×{entry.denials}"
    return count
