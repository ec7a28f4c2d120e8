"""Error ring: the last failures in five slots (Forge). Five identical ones stop the run, and the pane flashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui_agent.console.looks.pane_facts import PaneFacts
from tui_agent.console.panes.pane import StatePane, newest_rule, not_used
from tui_agent.console.terminal.timers import once
from tui_agent.core.names import RING_SLOTS
from tui_agent.frontend.lines.glyphs import EMPTY, FULL, SAME
from tui_agent.frontend.lines.styled import Line, Span, clip, fit, justified, width_of, wrap
from tui_agent.headline import headline
from tui_agent.quantities import counted, seconds
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.core.recovery.ring import RingSlot
    from tui_agent.core.state import RunState

_FLASHES = 6
_FLASH_SECONDS = 0.18
_ROOMY, _WIDE = 34, 58
"""Cells from which an age is said as one, and from which kinds and times stand in words."""
_MOST_OF_NEWEST = 3
"""Rows for what the newest failure says."""


class RingPane(StatePane):
    """Five slots, the oldest first, each with what it shares with the newest; identical ones in a row carry a mark."""

    facts = PaneFacts(
        "ring",
        "Error ring",
        "The last five failures, and what each shares with the last. Five identical ones trip it: you are asked, or "
        "the run ends. A success clears it.",
        "r",
        row=0,
        column=0,
    )

    DEFAULT_CSS = """
    RingPane { height: 7; min-height: 3; }
    RingPane.-tripped { border: heavy $error; border-title-color: $error; border-subtitle-color: $error; }
    RingPane.-tripped.-flash { border: heavy $warning; border-title-color: $foreground; background: $error 8%; }
    RingPane.-tripped.-flash:ansi { background: ansi_default; border: heavy ansi_bright_yellow; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._ring: object = None
        self._slots: Sequence[RingSlot | None] = ()
        self._identical = 0
        self._tripped = False
        self._iteration = 0
        self._key: tuple[int, int, str, bool] | None = None
        self._now = 0.0
        self._flashes_left = 0
        self._has_failed = False
        self._policy = "ask"
        """The consequence of five identical failures."""

    def show(self, state: RunState, now: float) -> None:
        """Show the ring of `state`; ages count to `now`."""
        from tui_agent.core.recovery.ring import ErrorRing

        ring = state.recovery.of(ErrorRing)
        end = state.metrics.ended_at
        self._now = now if end is None else end
        rule = newest_rule(state, "ring")
        key = (state.run.iteration, int(self._now), rule, state.metrics.incidents.failures > 0)
        if ring is self._ring and key == self._key:
            return
        self._key = key
        tripped = bool(ring.tripped)
        if tripped and not self._tripped:
            self._flash()
        self._ring, self._slots, self._identical, self._tripped = (
            ring,
            ring.slots,
            int(ring.identical),
            tripped,
        )
        self._iteration, self._policy = state.run.iteration, state.recovery.policy.ring
        self._has_failed = state.metrics.incidents.failures > 0
        self.set_class(tripped, "-tripped")
        unused = not_used(state.recovery.policy, state.recovery.policy.ring == "off")
        self.say_below(self._summary(), unused=unused, rule=rule)
        self.redraw()

    def _summary(self) -> str:
        if self._tripped:
            return "■ tripped: 5 identical"
        filled = sum(1 for slot in self._slots if slot is not None)
        if not filled:
            return ""
        return (
            f"{self._identical} of {RING_SLOTS} identical"
            if self._identical > 1
            else f"{filled} of {RING_SLOTS}"
        )

    def _flash(self) -> None:
        """Flash by alternating classes; not if animations are off (the heavy border stays)."""
        if self.app.animation_level == "none":
            return
        self._flashes_left = _FLASHES
        self.add_class("-flash")
        once(self, _FLASH_SECONDS, self._flash_on)

    def _flash_on(self) -> None:
        self._flashes_left -= 1
        self.set_class(self._flashes_left > 0 and self._flashes_left % 2 == 0, "-flash")
        if self._flashes_left > 0:
            once(self, _FLASH_SECONDS, self._flash_on)

    @property
    def speaks(self) -> bool:
        return self._filled > 0

    def draw(self, width: int, height: int) -> list[Line]:
        """Give each slot a row, and the newest more if there is room; if there is too little, the newest come first."""
        filled = [slot for slot in self._slots if slot is not None]
        if not filled:
            none = f"{' '.join(EMPTY * RING_SLOTS)} "
            said = "empty" if self._has_failed else "nothing failed"
            return [clip((Span(none, "faint"), Span(said, "muted")), width)]
        ahead = self._ahead(RING_SLOTS - len(filled), width)
        if height < len(filled) + len(ahead):
            ahead = []
            filled = filled[-max(1, height) :]
        spare = height - len(filled) - len(ahead)
        first = self._filled - len(filled) + 1
        older = [self._slot(number, slot, width) for number, slot in enumerate(filled[:-1], first)]
        rows = self._newest(self._filled, filled[-1], width, min(_MOST_OF_NEWEST, 1 + spare))
        return [*older, *rows, *ahead] if height >= self._filled else [*rows[:1], *reversed(older)]

    def _ahead(self, empty: int, width: int) -> list[Line]:
        """The slots that are still empty, and what fills them all with one error leads to."""
        if not empty:
            return []
        signs = f"{' '.join(EMPTY * empty)}  "
        left = RING_SLOTS - self._identical
        ends = {
            "ask": f"{left} more like it: you are asked",
            "stop": f"{left} more like it: the run ends",
        }
        said = ends.get(self._policy, "")
        return [clip((Span("  "), Span(signs, "faint"), Span(said, "muted")), width)]

    def _slot(self, number: int, slot: RingSlot, width: int) -> Line:
        """A failure before the newest: what it shares with that one, and the rest of what it says."""
        newest = self._slots[self._filled - 1]
        shared = "" if newest is None else shares(slot, newest)
        same = self._in_row(number)
        role = "error" if same else "warn"
        if shared == SAME_ERROR and any(
            later.after_change for later in self._slots[number:] if later is not None
        ):
            shared = f"{SAME_ERROR} before a change"
        text = () if shared.startswith(SAME_ERROR) else (Span(self._text(slot)),)
        if slot.lane and not text:
            shared = f"{one_line(slot.lane)} › {shared}"
        head = self._head(number, role, same), Span(f"{shared}  " if text else shared, role)
        return justified((*head[0], head[1], *text), (self._age(slot, width),), width)

    def _newest(self, number: int, slot: RingSlot, width: int, rows: int) -> list[Line]:
        same = self._in_row(number) and self._identical > 1
        role = "error" if same else "warn"
        kind = f"{slot.kind.in_words}  " if width >= _WIDE or not slot.tool else ""
        head = (*self._head(number, role, same), Span(kind, role))
        age = self._age(slot, width)
        room = width - width_of(head) - width_of((age,)) - 1
        whole = wrap(self._text(slot), max(1, room))
        if len(whole) > rows:
            whole = [*whole[: rows - 1], fit(" ".join(whole[rows - 1 :]), room)]
        indent = " " * width_of(head)
        return [
            justified((*head, Span(whole[0])), (age,), width),
            *((Span(indent), Span(line)) for line in whole[1:]),
        ]

    def _head(self, number: int, role: str, same: bool) -> tuple[Span, ...]:
        return (
            Span(f"{number} ", "muted"),
            Span(FULL, role),
            Span(f" {SAME} " if same else "   ", f"{role} bold"),
        )

    def _in_row(self, number: int) -> bool:
        """The failure is one of those in a row that are identical to the newest."""
        return self._identical > 1 and number > self._filled - self._identical

    @property
    def _filled(self) -> int:
        return sum(1 for slot in self._slots if slot is not None)

    def _text(self, slot: RingSlot) -> str:
        message = headline(slot.message)
        text = f"{one_line(slot.tool)}: {message}" if slot.tool else message
        return f"{one_line(slot.lane)} › {text}" if slot.lane else text

    def _age(self, slot: RingSlot, width: int) -> Span:
        past = max(0, self._iteration - slot.iteration)
        steps = counted(past, "step") + (" ago" if width >= _ROOMY else "") if past else "now"
        passed = seconds(float(int(max(0.0, self._now - slot.at)))).replace(".0", "") if slot.at else ""
        return Span(f"{steps} · {passed}" if width >= _WIDE and passed else steps, "muted")


SAME_ERROR = "the same error"


def shares(slot: RingSlot, last: RingSlot) -> str:
    """Say what a failure has in common with the last one."""
    if slot.signature == last.signature:
        return SAME_ERROR
    if slot.key and slot.key == last.key:
        return "same call, another error"
    if slot.tool and slot.tool == last.tool:
        return "same tool"
    return "same kind" if slot.kind is last.kind and not slot.tool else "another"
