"""Foreign text for terminals, logs and documents: nothing in it acts, and nothing in it is hidden.

For text that leaves as text; widgets have a door of their own (`console.sanitize`).
"""

from __future__ import annotations

import re

_BIDI = "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"
_CONTROL = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}\ud800-\udfff]")


def visible(text: str) -> str:
    """Text that no terminal acts on: controls as pictures (`␛`), invisible marks spelled out, tabs and
    breaks kept.
    """
    if _CONTROL.search(text) is None:
        return text
    return _CONTROL.sub(lambda found: _picture(ord(found[0])), text.replace("\r\n", "\n"))


def _picture(code: int) -> str:
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"‹U+{code:04X}›"
