"""Error ring: the last failures in five slots (Forge). Five identical ones stop the run, and the pane flashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tui_agent.console.panes.pane import LinePane, newest_rule, not_used
from tui_agent.console.terminal.timers import once
from tui_agent.frontend.lines.glyphs import EMPTY, FULL, SAME, SHORT_KINDS
from tui_agent.frontend.lines.styled import Line, Span, clip, fit, justified, pad, pad_left, wrap
from tui_agent.headline import headline
from tui_agent.quantities import counted, seconds
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.core.recovery.ring import RingSlot
    from tui_agent.core.state import RunState

SLOTS = 5
_FLASHES = 6
_FLASH_SECONDS = 0.18
_WIDE = 58


class RingPane(LinePane):
    """Five slots, the oldest first; those that are identical to the newest carry its mark."""

    BORDER_TITLE: ClassVar[str] = "Error ring"

    DEFAULT_CSS = """
    RingPane { height: 7; min-height: 3; }
    RingPane.-tripped { border: heavy $error; border-title-color: $error; border-subtitle-color: $error; }
    RingPane.-tripped.-flash { border: heavy $warning; border-title-color: $foreground; background: $error 8%; }
    RingPane.-tripped.-flash:ansi { background: ansi_default; border: heavy ansi_bright_yellow; }
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._ring: object = None
        self._slots: Sequence[RingSlot | None] = ()
        self._identical = 0
        self._tripped = False
        self._iteration = 0
        self._key: tuple[int, int, str] | None = None
        self._now = 0.0
        self._flashes_left = 0

    def show(self, state: RunState, now: float) -> None:
        """Show the ring of `state`; ages count to `now`."""
        ring = state.recovery.ring
        end = state.metrics.ended_at
        self._now = now if end is None else end
        rule = newest_rule(state, "ring")
        key = (state.run.iteration, int(self._now), rule)
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
        self._iteration = state.run.iteration
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
        return f"{self._identical} of {SLOTS} identical" if self._identical > 1 else f"{filled} of {SLOTS}"

    def _flash(self) -> None:
        """Flash by alternating classes; not where animations are off (the heavy border stays)."""
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

    def draw(self, width: int, height: int) -> list[Line]:
        """One row a slot; more where there is room; the newest failures where there is not."""
        slots = [*self._slots, *[None] * (SLOTS - len(self._slots))]
        if height < SLOTS:
            return self._newest(width, height) or [
                clip((Span(EMPTY * SLOTS, "faint"), Span(" no failures", "muted")), width)
            ]
        rows = max(1, min(3, height // SLOTS))
        lines: list[Line] = []
        for number, slot in enumerate(slots, 1):
            lines.extend(self._slot(number, slot, width, rows))
        return lines

    def _slot(self, number: int, slot: RingSlot | None, width: int, rows: int) -> list[Line]:
        if slot is None:
            empty: Line = (
                Span(f"{number} ", "muted"),
                Span(EMPTY, "faint"),
                Span("   "),
                Span(fit("empty", width - 6), "muted"),
            )
            return [clip(empty, width), *[()] * (rows - 1)]
        same = self._identical > 1 and number > self._filled - self._identical
        role = "error" if same else "warn"
        wordy = rows > 1 or width >= _WIDE
        kind = f"{pad(_kind(slot, wordy), self._kind_width(wordy))}  " if wordy or self._mixed else ""
        message = headline(slot.message)
        text = f"{one_line(slot.tool)}: {message}" if slot.tool else message
        if slot.lane:
            text = f"{one_line(slot.lane)} › {text}"
        head = (
            Span(f"{number} ", "muted"),
            Span(FULL, role),
            Span(f" {SAME} " if same else "   ", f"{role} bold"),
            Span(kind, role),
        )
        age = (Span(pad_left(self._age(slot, wordy), self._age_width(wordy)), "muted"),)
        if rows == 1:
            return [justified((*head, Span(text)), age, width)]
        body = wrap(text, max(1, width - 6))
        if len(body) > rows - 1:
            body = [*body[: rows - 2], fit(" ".join(body[rows - 2 :]), width - 6)]
        lines: list[Line] = [justified(head, age, width)]
        lines.extend((Span("      "), Span(line)) for line in body)
        return [*lines, *[()] * (rows - len(lines))]

    @property
    def _mixed(self) -> bool:
        """Something else than a tool has failed, which its name would tell."""
        return any(slot is not None and not slot.tool for slot in self._slots)

    @property
    def _filled(self) -> int:
        return sum(1 for slot in self._slots if slot is not None)

    def _kind_width(self, wordy: bool) -> int:
        return max(len(_kind(slot, wordy)) for slot in self._slots if slot is not None)

    def _age_width(self, wordy: bool) -> int:
        return max(len(self._age(slot, wordy)) for slot in self._slots if slot is not None)

    def _age(self, slot: RingSlot, wordy: bool) -> str:
        past = max(0, self._iteration - slot.iteration)
        iterations = counted(past, "step") if past else "now"
        passed = seconds(float(int(max(0.0, self._now - slot.at)))).replace(".0", "") if slot.at else ""
        return f"{iterations} · {passed}" if wordy and passed else iterations

    def _newest(self, width: int, rows: int) -> list[Line]:
        """The newest failures, newest first, as far as there are rows."""
        numbered = [(number, slot) for number, slot in enumerate(self._slots, 1) if slot is not None]
        return [self._slot(number, slot, width, 1)[0] for number, slot in reversed(numbered[-rows:])]


def _kind(slot: RingSlot, wordy: bool) -> str:
    """The kind in words, in one or two where there is room."""
    return slot.kind.in_words if wordy else SHORT_KINDS[str(slot.kind)]
