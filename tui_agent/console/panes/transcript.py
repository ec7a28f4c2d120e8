"""The conversation as rows: which blocks there are, how high they are, and the lines of those that are looked at.

No widget here. Closed entries are drawn when they come near the viewport and kept for a while; until then their
heights are estimates. What is open (the reply that streams, the calls that run, a question) is the tail, drawn anew.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from textual.strip import Strip

from tui_agent.console.panes.block_context import BlockContext
from tui_agent.console.panes.blocks import (
    RoughSize,
    draw_block,
    draw_reply,
    draw_run,
    follows_closely,
    head_of,
    is_silent,
    iteration_rule,
    rough_heights,
    rough_size,
)
from tui_agent.console.panes.call_block import shown_state
from tui_agent.console.panes.density import LONGEST_RUN, Density, Lookups, looks_by
from tui_agent.console.panes.found import said
from tui_agent.console.panes.heights import HeightIndex
from tui_agent.console.panes.prose import Prose
from tui_agent.core.names import UNDONE, CallState, Outcome
from tui_agent.frontend.lines.styled import Line, Span, clip
from tui_agent.quantities import counted, seconds

if TYPE_CHECKING:
    from tui_agent.core.projections.conversation import Conversation
    from tui_agent.core.projections.entries import AnyEntry, CallEntry, EscalationEntry, OpenReply

_OPENING = frozenset({"call", "escalation", "fault", "note", "operator", "own_command", "summary"})
"""Kinds of blocks that can be opened."""

KEPT = 300
"""Drawn blocks that are kept in memory; the others are drawn again when they are looked at."""


@dataclass
class Drawn:
    """A block's lines and the strips made of them so far."""

    lines: list[Line]
    head: int = 0
    """Lines before the block itself: a rule, a blank."""
    strips: dict[tuple[int, bool], Strip] = field(default_factory=dict)


class OpenReplyBlock:
    """The reply that comes in: only lines that are looked at are put together."""

    def __init__(self, head: list[Line], prose: Prose, before: int) -> None:
        """`head`: the lines before the text, of which `before` are no part of the reply."""
        self._head = head
        self.head = before
        self._prose = prose

    def __len__(self) -> int:
        return len(self._head) + len(self._prose)

    def line(self, number: int) -> Line:
        """One line of the block."""
        if number < len(self._head):
            return self._head[number]
        number -= len(self._head)
        return (Span("◆ " if not number else "  ", "model bold"), *self._prose[number])


class ConversationRows:
    """Blocks by index: closed entries first, then the tail."""

    def __init__(self) -> None:
        self.width = 0
        self.room = 0
        """Rows of the pane."""
        self.heights = HeightIndex()
        self._log: Sequence[AnyEntry] = ()
        self._limits: list[int] = []
        self._sizes: list[RoughSize] = []
        self._exact: set[int] = set()
        self._cache: OrderedDict[int, Drawn] = OrderedDict()
        self._expanded: set[tuple[int, str]] = set()
        self.density = Density.NORMAL
        self._runs: list[Lookups] = []
        self._run_at: dict[int, Lookups] = {}
        """The run that a closed block is a part of."""
        self._unfolded: set[tuple[int, str]] = set()
        """Runs that the operator opened, by the key of their first call."""
        self._failed: dict[int, list[tuple[int, int]]] = {}
        self._marks: dict[int, tuple[str, int]] = {}
        self._prose: Prose | None = None
        self._prose_seq = -1
        self._before_reply: tuple[AnyEntry, ...] = ()
        self._after_reply: tuple[AnyEntry, ...] = ()
        self._reply: OpenReply | None = None
        self._open: tuple[AnyEntry | OpenReply, ...] = ()
        """The entries of the tail."""
        self._iteration = 0
        self._tail: list[Drawn | OpenReplyBlock] = []
        self._waiting = False
        self._limit = 0
        self._now = 0.0
        self._frame = "⠿"

    # --- content ---------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._log) + len(self._tail)

    @property
    def closed(self) -> int:
        return len(self._log)

    @property
    def rows(self) -> int:
        """Rows of all blocks, as far as they are known."""
        return self.heights.total + sum(self._tail_height(block) for block in self._tail)

    @property
    def moving(self) -> bool:
        """Something on screen changes by itself: a call runs, a wait counts down, the model is silent."""
        reply = self._reply
        silent = reply is not None and not reply.text and not reply.reasoning
        return self._waiting or silent or any(_works(entry) for entry in self._after_reply)

    def update(
        self, conversation: Conversation, limit: int, waiting: bool, question: EscalationEntry | None = None
    ) -> int:
        """Take over a conversation. `limit`: attempts a call has; `question`: the open one, if it stands
        here. Returns how many entries were closed.
        """
        self._limit = limit
        before = len(self._log)
        log = conversation.entries
        if log is not self._log:
            common = self._common(log)
            if common < before:
                self._cut(common)
            self._log = log
            for index in range(common, len(log)):
                self._append(index, log[index])
        self._waiting = waiting
        note = conversation.note if conversation.note_sent else None
        self._before_reply = tuple(entry for entry in (note, conversation.fault) if entry is not None)
        self._after_reply = (*conversation.calls, *(() if question is None else (question,)))
        self._reply, self._iteration = conversation.reply, conversation.iteration
        reply = () if self._reply is None else (self._reply,)
        self._open = (*self._before_reply, *reply, *self._after_reply)
        return len(log) - before

    def advance(self, now: float, frame: str) -> None:
        """Draw what is open for the time `now`, with the spinner's sign `frame`."""
        self._now, self._frame = now, frame
        if self.width > 0:
            self._tail = self._draw_tail()

    def resize(self, width: int) -> None:
        """Another width: heights are estimated anew, nothing is drawn."""
        if width == self.width:
            return
        self.width = width
        self._cache.clear()
        self._exact.clear()
        self._prose = None
        self._estimate()
        self.advance(self._now, self._frame)

    def use_density(self, density: Density) -> None:
        """Draw from now on so densely; what the operator opened stays open."""
        if density is self.density:
            return
        self.density = density
        self._cache.clear()
        self._exact.clear()
        self._runs.clear()
        self._run_at.clear()
        self._sizes = [rough_size(entry, density) for entry in self._log]
        for index, entry in enumerate(self._log):
            self._join(index, entry)
        self._estimate()
        self.advance(self._now, self._frame)

    def _estimate(self) -> None:
        """Estimate all heights."""
        rough = rough_heights(self._sizes, self.width)
        self.heights = HeightIndex(0 if self._hides(index) else high for index, high in enumerate(rough))

    def repaint(self) -> None:
        """Colours changed: strips are made again, lines and heights stay."""
        for drawn in self._cache.values():
            drawn.strips.clear()

    def _common(self, log: Sequence[AnyEntry]) -> int:
        """How many entries are shown already; a replay may have gone back."""
        old = self._log
        size = min(len(old), len(log))
        while size and old[size - 1] is not log[size - 1]:
            size = size // 2 if size > 64 else size - 1
        return size

    def _cut(self, size: int) -> None:
        self.heights = HeightIndex(self.heights[index] for index in range(size))
        del self._limits[size:]
        del self._sizes[size:]
        self._exact = {index for index in self._exact if index < size}
        for index in [index for index in self._cache if index >= size]:
            del self._cache[index]
        for index, (_, by) in list(self._marks.items()):
            if index >= size or by >= size:
                del self._marks[index]
                if index < size:
                    self._forget(index)
        self._failed = {}
        self._log = self._log[:size]
        self._cut_runs(size)

    def _append(self, index: int, entry: AnyEntry) -> None:
        self._limits.append(self._limit)
        size = rough_size(entry, self.density)
        self._sizes.append(size)
        self.heights.append(*rough_heights((size,), self.width))
        if self._join(index, entry):
            self._fold(self._runs[-1])
        if entry.kind == "call":
            self._note_call(index, entry)
        elif entry.kind == "outcome" and entry.outcome is not Outcome.ANSWERED:
            self._note_end(index, entry)
        elif entry.kind == "operator" and not entry.iteration:
            self._failed = {}

    # --- runs of calls that only look ------------------------------------------------------------------------

    def _join(self, index: int, entry: AnyEntry) -> bool:
        """Let a call that only looks begin a run, or lengthen the newest; returns whether it did the latter."""
        how = looks_by(entry) if entry.kind == "call" and self.density is not Density.FULL else ""
        if entry.kind != "call" or not how:
            return False
        run = self._runs[-1] if self._runs else None
        longer = run is not None and run.calls < LONGEST_RUN and self._adjoins(run.last, index)
        if run is None or not longer:
            run = Lookups(index, index, unfolded=_key(entry) in self._unfolded)
            self._runs.append(run)
        self._run_at.update(dict.fromkeys(range(run.last, index + 1), run))
        run.add(index, entry, how)
        return longer

    def _adjoins(self, last: int, index: int) -> bool:
        """True if nothing was said between two calls: at most a reply that only thought."""
        return index - last == 1 or (index - last == 2 and is_silent(self._log[index - 1]))

    def _fold(self, run: Lookups) -> None:
        """Draw a run again that has changed: in one line, or its newest blocks one by one."""
        self._forget(run.first)
        if run.folded:
            for index in range(run.last, run.first, -1):
                if index in self._exact and not self.heights[index]:
                    break  # the others are hidden already
                self._cache.pop(index, None)
                self.heights.set(index, 0)
                self._exact.add(index)

    def _unfold(self, run: Lookups) -> None:
        """Show the blocks of a run."""
        run.unfolded = True
        self._unfolded.add(_key(self._log[run.first]))
        for index in range(run.first, run.last + 1):
            self._forget(index)
            self.heights.set(index, *rough_heights((self._sizes[index],), self.width))

    def _cut_runs(self, size: int) -> None:
        """Shorten the run that goes beyond the first `size` entries."""
        while self._runs and self._runs[-1].last >= size:
            run = self._runs.pop()
            for index in range(run.first, run.last + 1):
                self._run_at.pop(index, None)
            for index in range(run.first, size):
                self._forget(index)
                self.heights.set(index, *rough_heights((self._sizes[index],), self.width))
                if self._join(index, self._log[index]):
                    self._fold(self._runs[-1])

    def _hides(self, index: int) -> bool:
        run = self._run_at.get(index)
        return run is not None and run.hides(index)

    def shown(self, index: int) -> int:
        """The block that stands for this one: the first of its run if that is folded, else itself."""
        return self._run_at[index].first if self._hides(index) else index

    def before(self, index: int) -> int:
        """The block above this one; -1: there is none."""
        return self.shown(index - 1)

    def after(self, index: int) -> int:
        """The block below this one; `len(self)`: there is none."""
        run = self._run_at.get(index)
        return run.last + 1 if run is not None and run.folded else index + 1

    def _note_call(self, index: int, entry: CallEntry) -> None:
        if entry.state is CallState.FAILED:
            self._failed.setdefault(_call_hash(entry), []).append((index, entry.iteration))
        elif entry.state is CallState.SUCCEEDED and self._failed:
            for failed, _ in self._failed.pop(_call_hash(entry), ()):
                self._marks[failed] = ("recovered", index)
                self._forget(failed)

    def _note_end(self, index: int, outcome: AnyEntry) -> None:
        """The run ended without an answer: the failures of its last iteration stand."""
        for failures in self._failed.values():
            for number, iteration in failures:
                if iteration == outcome.iteration:
                    self._marks[number] = ("final", index)
                    self._forget(number)

    def _forget(self, index: int) -> None:
        """Draw a block again when it is next looked at; its height stays as an estimate."""
        self._cache.pop(index, None)
        self._exact.discard(index)

    # --- drawing ---------------------------------------------------------------------------------------------

    def measure(self, index: int) -> int:
        """The height of a block, drawn if need be."""
        if index >= len(self._log):
            return self._tail_height(self._tail[index - len(self._log)])
        if index not in self._exact:
            self.drawn(index)
        return self.heights[index]

    def drawn(self, index: int) -> Drawn:
        """A closed block, drawn if need be."""
        drawn = self._cache.get(index)
        if drawn is None:
            entry = self._log[index]
            context = self._context(index, entry)
            drawn = self._cache[index] = self._draw_closed(index, entry, context)
            lines = drawn.lines
            self.heights.set(index, len(lines))
            self._exact.add(index)
            while len(self._cache) > KEPT:
                self._cache.popitem(last=False)
        else:
            self._cache.move_to_end(index)
        return drawn

    def _draw(self, entry: AnyEntry, context: BlockContext) -> Drawn:
        head = head_of(entry, context, self.width)
        return Drawn([*head, *draw_block(entry, self.width, context)], len(head))

    def _draw_closed(self, index: int, entry: AnyEntry, context: BlockContext) -> Drawn:
        run = self._run_at.get(index)
        if run is None or run.calls < 2 or index != run.first:
            return Drawn([]) if self._hides(index) else self._draw(entry, context)
        head = head_of(entry, context, self.width)
        calls = [] if run.folded else draw_block(entry, self.width, context)
        return Drawn([*head, draw_run(run, self.width), *calls], len(head))

    def _context(self, index: int, entry: AnyEntry) -> BlockContext:
        mark = self._marks.get(index, ("", 0))[0]
        prose = None
        if entry.kind == "reply" and entry.seq == self._prose_seq and self._prose is not None:
            prose = self._prose.finish(entry.text) if self._prose.text == entry.text else None
        return BlockContext(
            previous=self._log[index - 1] if index else None,
            expanded=_key(entry) in self._expanded,
            limit=self._limits[index],
            density=self.density,
            room=self.room,
            final=mark == "final",
            recovered=mark == "recovered",
            now=self._now,
            frame=self._frame,
            prose=prose,
        )

    def _draw_tail(self) -> list[Drawn | OpenReplyBlock]:
        blocks: list[Drawn | OpenReplyBlock] = []
        previous = self._log[-1] if self._log else None
        for entry in self._before_reply:
            blocks.append(self._draw(entry, self._open_context(entry, previous)))
            previous = entry
        if self._reply is not None:
            blocks.append(self._open_reply(self._reply, previous))
        for entry in self._after_reply:
            blocks.append(self._draw(entry, self._open_context(entry, previous)))
            previous = entry
        return blocks

    def _open_context(self, entry: AnyEntry, previous: AnyEntry | None) -> BlockContext:
        return BlockContext(
            previous=previous,
            expanded=_key(entry) in self._expanded,
            limit=self._limit,
            density=self.density,
            room=self.room,
            open=True,
            waiting=self._waiting,
            now=self._now,
            frame=self._frame,
        )

    def _open_reply(self, reply: OpenReply, previous: AnyEntry | None) -> OpenReplyBlock:
        if self._prose is None or self._prose_seq != reply.seq:
            self._prose, self._prose_seq = Prose(self.width - 2), reply.seq
        self._prose.feed(reply.text)
        closely = previous is not None and follows_closely(reply, previous, self.density)
        head: list[Line] = [()] if previous is not None and not closely else []
        fresh = self._iteration and (previous is None or previous.iteration != self._iteration)
        if fresh and not closely and self.density is not Density.COMPACT:
            head.append(iteration_rule(self._iteration, self.width))
        before = len(head)
        if reply.reasoning:
            expanded = (reply.seq, "") in self._expanded
            head.extend(draw_reply([], reply.reasoning, self.width, expanded, thinking=not reply.text))
        elif not reply.text:
            passed = seconds(self._now - reply.at)
            steps = counted(reply.summarises, "step")
            what = f"summarising {steps}" if reply.summarises else "waiting for the model"
            label = f"{what}  {passed}" if self._now > reply.at else what
            head.append(clip((Span(f"{self._frame} ", "model"), Span(label, "muted")), self.width))
        return OpenReplyBlock(head, self._prose, before)

    def _tail_height(self, block: Drawn | OpenReplyBlock) -> int:
        return len(block.lines) if isinstance(block, Drawn) else len(block)

    # --- rows ------------------------------------------------------------------------------------------------

    def locate(self, row: int) -> tuple[int, int] | None:
        """Index of the block under a row, and the row within it; None beyond the end."""
        if row < 0:
            return None
        if row < self.heights.total:
            return self.heights.locate(row)
        row -= self.heights.total
        for number, block in enumerate(self._tail):
            height = self._tail_height(block)
            if row < height:
                return len(self._log) + number, row
            row -= height
        return None

    def offset(self, index: int) -> int:
        """The row at which a block begins."""
        closed = len(self._log)
        if index <= closed:
            return self.heights.offset(index)
        return self.heights.total + sum(self._tail_height(block) for block in self._tail[: index - closed])

    def head(self, index: int) -> int:
        """Lines of a block that stand before the block itself."""
        closed = len(self._log)
        block = self.drawn(index) if index < closed else self._tail[index - closed]
        return block.head

    def line(self, index: int, number: int) -> Line:
        """One line of a block."""
        closed = len(self._log)
        if index < closed:
            lines = self.drawn(index).lines
            return lines[number] if number < len(lines) else ()
        block = self._tail[index - closed]
        return block.lines[number] if isinstance(block, Drawn) else block.line(number)

    # --- keys and mouse --------------------------------------------------------------------------------------

    def entry(self, index: int) -> AnyEntry | None:
        """The entry of a block; None for the open reply, and beyond the end."""
        said = self._said(index)
        return None if said is None or said.kind == "open_reply" else said

    def toggle(self, index: int) -> bool:
        """Open or fold a block. Returns whether it is one that can be.

        The first block of a run stands for it: it opens the run, then its own call, then folds both.
        """
        entry = self.entry(index)
        run = self._run_at.get(index)
        if entry is None:
            if self._reply is None or not self._reply.reasoning:
                return False
            self._expanded ^= {(self._reply.seq, "")}
        elif run is not None and run.folded:
            self._unfold(run)
        elif entry.kind in _OPENING or (entry.kind == "reply" and entry.reasoning):
            self._expanded ^= {_key(entry)}
            if run is not None and index == run.first and _key(entry) not in self._expanded:
                run.unfolded = False
                self._unfolded.discard(_key(entry))
                self._fold(run)
        else:
            return False
        if index < len(self._log):
            self._forget(index)
        self.advance(self._now, self._frame)
        return True

    def unfold(self, index: int) -> None:
        """Show a block that a folded run hides."""
        run = self._run_at.get(index)
        if run is not None and run.folded:
            self._unfold(run)

    def open(self, index: int) -> None:
        """Open a block that is folded."""
        self.unfold(index)
        entry = self.entry(index)
        if entry is not None and _key(entry) not in self._expanded:
            self.toggle(index)

    def hidden_by(self, index: int) -> list[AnyEntry]:
        """The calls that the line of a folded run stands for; none for another block."""
        run = self._run_at.get(index)
        if run is None or not run.folded:
            return []
        return [entry for entry in self._log[run.first : run.last + 1] if entry.kind == "call"]

    def with_words(self, index: int, pattern: re.Pattern[str]) -> int:
        """This block, or one that began with the same event (calls of one reply) and has more of the words."""
        first = self._first_of_event(index)
        last = index
        while (after := self._said(last + 1)) is not None and after.seq == self._seq(index):
            last += 1
        texts = {place: self.text(place) for place in range(first, last + 1)}
        return max(texts, key=lambda place: (len(set(pattern.findall(texts[place]))), place == index))

    def text(self, index: int) -> str:
        """The text of a block, as it came; "" beyond the ends."""
        shown = self._said(index) if index >= 0 else None
        return "" if shown is None else said(shown)

    def find(self, seq: int) -> int | None:
        """The block of the event `seq`: the newest that began with it or before it, a failed call first."""
        began = bisect_right(self._log, seq, key=lambda entry: entry.seq)
        began += sum(said.seq <= seq for said in self._open)
        if not began:
            return 0 if self._said(0) is not None else None
        found = began - 1
        for index in range(self._first_of_event(found), found + 1):
            said = self._said(index)
            if said is not None and said.kind == "call" and said.state in UNDONE:
                return index
        return found

    def _first_of_event(self, index: int) -> int:
        """The first block that began with the same event as this one."""
        while index and self._seq(index - 1) == self._seq(index):
            index -= 1
        return index

    def _seq(self, index: int) -> int:
        said = self._said(index)
        return 0 if said is None else said.seq

    def _said(self, index: int) -> AnyEntry | OpenReply | None:
        """The entry of a block, closed or open; None beyond the end."""
        closed = len(self._log)
        if index < closed:
            return self._log[index]
        return self._open[index - closed] if index - closed < len(self._open) else None


def _key(entry: AnyEntry) -> tuple[int, str]:
    """A key that a block keeps when it closes."""
    return entry.seq, entry.call_id if entry.kind == "call" else ""


def _works(entry: AnyEntry) -> bool:
    return entry.kind == "call" and shown_state(entry) is CallState.RUNNING


def _call_hash(entry: CallEntry) -> int:
    return hash((entry.tool, repr(sorted(entry.input.items(), key=lambda item: item[0]))))
