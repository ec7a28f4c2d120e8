"""How much masking slows a big output down: the same command with and without a redactor.

    python benchmarks/masking.py [MEGABYTES]

Prints seconds and MB/s for three kinds of output; the ratio is what masking costs.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
import tempfile
import time
from pathlib import Path

from tui_agent.store.redaction import Redactor
from tui_agent.tools.shell import Bash
from tui_agent.tools.tool import TextMask, ToolContext
from tui_agent.tools.workspace import Workspace

KINDS = {
    "short lines": "abcdefghij",
    "a log": "2026-03-01T10:00:00Z INFO src/app/server.py:120 request id=4711 took 12.5 ms https://example.com/a",
    "settings": "export FEATURE_KEY=$(cat name) # the token-list of task-1, next_token=12345678 -----BEGIN",
}


async def seconds(line: str, size: int, redactor: Redactor | None) -> float:
    """How long a command takes that prints `size` bytes of `line`."""

    def mask() -> TextMask | None:
        return redactor.stream() if redactor else None

    with tempfile.TemporaryDirectory() as folder:
        context = ToolContext(Workspace(Path(folder)), Path(folder, "outputs"), "1", lambda _: None, mask)
        started = time.perf_counter()
        await Bash(timeout=600).run({"command": f"yes {shlex.quote(line)} | head -c {size}"}, context)
        return time.perf_counter() - started


async def main() -> None:
    """Measure and print."""
    size = int(sys.argv[1]) * 1_000_000 if len(sys.argv) > 1 else 200_000_000
    redactor = Redactor({f"SERVICE_{number}_TOKEN": f"secret-value-{number}-zz" for number in range(5)})
    for name, line in KINDS.items():
        plain, masked = await seconds(line, size, None), await seconds(line, size, redactor)
        print(
            f"{name:12} {size / 1e6:.0f} MB: unmasked {plain:.2f} s, masked {masked:.2f} s "
            f"({size / masked / 1e6:.0f} MB/s), ratio {masked / plain:.1f}"
        )


if __name__ == "__main__":
    asyncio.run(main())
