"""Makes `serve.png`: the console of `agent-tui serve` in a headless Chromium, driven over its DevTools protocol.

    python screenshots/serve.py [NAME.png [SECONDS]]

The picture is taken from the real page: server, guard, websocket, console, browser; it is taken so many seconds
after it was opened.
"""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import aiohttp

HERE = Path(__file__).resolve().parent
SIZE = (1280, 760)
PATIENCE = 90.0
"""Seconds until the page shows what is looked for."""


async def main(target: Path) -> int:
    """Serve the demo, look at it, end both programs."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.stderr.write("There is no Chromium here.\n")
        return 1
    with tempfile.TemporaryDirectory() as state:
        server = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tui_agent", "serve", "--demo", "recovery", "--state-dir", state),
            env={**os.environ, "AGENT_TUI_CAPTIONS": "false"},
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            assert server.stdout is not None
            line = (await server.stdout.readline()).decode()
            url = line.rpartition(" ")[2].strip()
            await photograph(chromium, url, target)
        finally:
            server.terminate()
            await server.wait()
    return 0


async def photograph(chromium: str, url: str, target: Path) -> None:
    """Open the page, wait until the terminal in it shows the run, and keep a picture."""
    with tempfile.TemporaryDirectory() as profile:
        browser = await asyncio.create_subprocess_exec(
            *(
                chromium,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--no-first-run",
            ),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *("--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"),
            f"--window-size={SIZE[0]},{SIZE[1]}",
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            assert browser.stderr is not None
            while b"DevTools listening on" not in (line := await browser.stderr.readline()):
                if not line:
                    raise RuntimeError("Chromium did not start")
            port = line.decode().split("127.0.0.1:")[1].split("/")[0]
            async with aiohttp.ClientSession() as http:
                async with http.get(f"http://127.0.0.1:{port}/json") as pages:
                    page = next(page for page in await pages.json() if page["type"] == "page")
                async with http.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as devtools:
                    picture = await looked_at(devtools, url)
                    await asyncio.to_thread(target.write_bytes, picture)
        finally:
            browser.terminate()
            await browser.wait()


async def looked_at(devtools: aiohttp.ClientWebSocketResponse, url: str) -> bytes:
    """The picture, once the page has drawn for a while."""
    numbers = iter(range(1, 10_000))

    async def ask(method: str, **parameters: Any) -> dict[str, Any]:
        number = next(numbers)
        await devtools.send_json({"id": number, "method": method, "params": parameters})
        while True:
            answer = await devtools.receive_json(timeout=PATIENCE)
            if answer.get("id") == number:
                return dict(answer.get("result", {}))

    await ask(
        "Emulation.setDeviceMetricsOverride", width=SIZE[0], height=SIZE[1], deviceScaleFactor=1, mobile=False
    )
    await ask("Page.navigate", url=url)
    await asyncio.sleep(float(sys.argv[2]) if len(sys.argv) > 2 else 25.0)
    where = await ask("Runtime.evaluate", expression="location.href")
    sys.stdout.write(f"{where['result']['value']}\n")
    shot = await ask("Page.captureScreenshot", format="png")
    return base64.b64decode(shot["data"])


if __name__ == "__main__":
    name = sys.argv[1] if len(sys.argv) > 1 else "serve.png"
    sys.exit(asyncio.run(main(HERE / name)))
