"""Output of the plain console: whole lines and growing text, each safe for a terminal, around a prompt that
is open.

Nothing here moves a cursor: what was written stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tui_agent.terminal_text import sanitize

if TYPE_CHECKING:
    from tui_agent.frontend.ascii_glyphs import AsciiGlyphs
    from tui_agent.headless_output import Outlet

PROMPT = "> "
PIECE = 80
"""Characters of a line that is not complete yet from which on what ends at a space is written: a screen reader speaks
what is written at once, so words and sentences should come whole."""


class Paper:
    """Standard output as lines, in the characters of `glyphs` if that is given.

    `typed` tells what stands in the prompt while one is open, else None.
    """

    def __init__(self, outlet: Outlet, glyphs: AsciiGlyphs | None = None) -> None:
        self._outlet = outlet
        self._glyphs = glyphs
        self.typed: Callable[[], str | None] = lambda: None
        self._pending = ""
        self._open = False
        self._held: list[str] | None = None

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Another program writes on it inside; what comes meanwhile is written afterwards."""
        held: list[str] = []
        self._held = held
        try:
            yield
        finally:
            self._held = None
            if held:
                self._write("".join(held))

    def line(self, text: str = "") -> None:
        """One line or several, made safe by whoever wrote them."""
        self.end()
        self._write(text + "\n")

    def lines(self, texts: Iterable[str], indent: str = "") -> None:
        """Each on a line of its own."""
        block = "\n".join(f"{indent}{text}".rstrip() for text in texts)
        if block:
            self.line(block)

    def stream(self, text: str) -> None:
        """More of a growing text: complete lines are written at once, a long one in pieces."""
        self._pending += text
        end = self._pending.rfind("\n") + 1
        if not end and len(self._pending) > PIECE and self.typed() is None:
            end = self._pending.rfind(" ") + 1
        if end:
            ready, self._pending = self._pending[:end], self._pending[end:]
            self._write(sanitize(ready))
            self._open = not ready.endswith("\n")

    def end(self) -> None:
        """The growing text is complete."""
        rest, self._pending = self._pending, ""
        if rest or self._open:
            self._open = False
            self._write(sanitize(rest) + "\n")

    def prompt(self) -> None:
        """Ask for a line, if no editor of lines does it."""
        self._outlet.write(PROMPT)

    def _write(self, text: str) -> None:
        """Around an open prompt: below what stands there, and the prompt again with what was typed."""
        if self._held is not None:
            self._held.append(text)
            return
        text = text if self._glyphs is None else self._glyphs.text(text)
        typed = self.typed()
        if typed is None:
            self._outlet.write(text)
        else:
            self._outlet.write(f"\n{text}{PROMPT}{typed}")
