"""Attacks on who opens an export: whatever a model, a tool, a file's name or a title says, it is text there."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
import time
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from markdown_it import MarkdownIt

from tests.adversarial.attack import attack
from tests.runtime.session_harness import start_session
from tui_agent.formats.exporters import FORMATS, export_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUN = "document.title=`RAN`;new Image().src=`URL/ran`"
TEXTS = [
    f"<script>{RUN}</script>", f'<img src=URL/img onerror="{RUN}">', f"</style><script>{RUN}</script>",
    f"]]><script>{RUN}</script>", f'</pre></code></title></textarea><svg onload="{RUN}">', "![x](URL/picture.png)",
    f"[click](javascript:{RUN})", f"[c](data:text/html,<script>{RUN}</script>)", f'" onmouseover="{RUN}" x="',
    f"' autofocus onfocus='{RUN}' x='", "<iframe src=URL/frame></iframe>", "<link rel=stylesheet href=URL/css>",
    '<meta http-equiv=refresh content="0;url=URL/meta">', "<base href=URL/>",
    "<style>@import url(URL/import);body{background:url(URL/background)}</style>",
    "<object data=URL/object></object><embed src=URL/embed>", "<video src=URL/v autoplay></video>",
    f'<form action=URL/f><input autofocus onfocus="{RUN}">', f'<math><mi xlink:href="javascript:{RUN}">',
    "<svg><image href=URL/image /><use href=URL/use /></svg>", "\x1b]8;;URL/osc\x07x\x1b]8;;\x07",
    "\u202e\u2066<script>", f"<!-- --><script>{RUN}</script>", f"```\n</code></pre><script>{RUN}</script>\n```",
    f'<https://x" onclick="{RUN}>', "URL/bare", "[ref]: URL/ref\n![a][ref]", f"<script\x00>{RUN}</script>",
    f"<scr\u200bipt>{RUN}</script>",
]  # fmt: skip
"""What an export must not act on; URL stands for a server that counts who comes."""
ACTIVE = {
    *(
        "script",
        "img",
        "iframe",
        "object",
        "embed",
        "link",
        "base",
        "form",
        "input",
        "video",
        "audio",
        "image",
    ),
    *("use", "math", "foreignobject", "animate", "set", "textarea", "button"),
}


class Elements(HTMLParser):
    """The elements of a page and their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.fixture
def came() -> Iterator[tuple[str, list[str]]]:
    """The address of a server, and the paths that it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


async def exported(folder: Path, address: str) -> tuple[str, str]:
    """A session that says all of it in every place, as HTML and as Markdown, rendered with raw HTML let through."""
    texts = [text.replace("URL", address) for text in TEXTS]
    turns: list[dict[str, Any]] = []
    for text in texts:
        turns += [
            {"text": text, "calls": [{"tool": text, "args": {text: text, "path": text}}]},
            {
                "text": text,
                "calls": [
                    {"tool": "write_file", "args": {"path": text.replace("/", "_")[:80], "content": text}},
                    {"tool": "bash", "args": {"command": f"cat <<'EOF'\n{text}\nEOF\nfalse"}},
                    {"tool": "update_plan", "args": {"steps": [{"text": text, "status": "pending"}]}},
                ],
            },
        ]
    live = await start_session(folder, [*turns, {"text": "\n\n".join(texts)}], max_iterations=300)
    await live.run("\n\n".join(texts))
    live.session.set_title(texts[2] + texts[8])
    await live.close()
    page = export_session(live.session.folder, "html")
    document = export_session(live.session.folder, "markdown")
    return page, MarkdownIt("commonmark", {"html": True}).enable("table").render(document)


@attack(
    "Scripts, event attributes, `</style>`, `]]>`, `javascript:` and `data:` links, frames, remote pictures, ANSI "
    "and bidirectional marks in replies, names of tools, arguments, paths, results, plan and title",
    "Text: no element of theirs, no attribute that runs, no address in HTML; none either in rendered Markdown",
)
async def test_exports_hold_text_alone(tmp_path: Path, came: tuple[str, list[str]]) -> None:
    page, rendered = await exported(tmp_path, came[0])
    for document in (page, rendered):
        for tag, attributes in Elements(document).found:
            assert tag not in ACTIVE, (tag, attributes)
            assert not [name for name in attributes if name.startswith("on") and name != "open"]
            for name in ("src", "href", "xlink:href", "data", "action"):
                assert (attributes.get(name) or "#").startswith("#"), (tag, attributes)
            assert "url(" not in (attributes.get("style") or "")
    assert "Content-Security-Policy" in page


@attack(
    "The same, opened in a browser",
    "No script runs, no request leaves",
    slow=True,
)
async def test_exports_in_a_browser(tmp_path: Path, came: tuple[str, list[str]]) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium is installed")
    address, asked = came
    for number, document in enumerate(await exported(tmp_path, address)):
        file = tmp_path / f"{number}.html"
        file.write_text(f'<meta charset="utf-8">{document}' if number else document, encoding="utf-8")
        done = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom",
             file.as_uri()],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert len(done.stdout) > 1_000, done.stderr[-500:]
        assert not re.search(r"<title>\s*RAN", done.stdout)
    assert asked == []


UNITS = (
    *(
        "<",
        "&",
        "*",
        "**a ",
        "[",
        "![",
        "`",
        "> ",
        "|",
        "\x00",
        "\x1b[31m",
        "<script>",
        "_a_",
        "- ",
        "1. ",
        "\\",
        "](",
    ),
    *(
        "\u202e",
        "<!--",
        "| a |\n|--|\n",
        "  - a\n",
        "&#0;",
        "a\n===\n",
        "&lt;",
        "http://a.b ",
        "<a@b>",
        "\ud800",
    ),
)


@attack(
    "Lines of 1,000,000 characters that markup is made of, control characters and entities, in every form of export",
    "Each export is made in 10 s of the processor, and HTML holds no script and no control character",
    slow=True,
)
@pytest.mark.parametrize("unit", UNITS)
async def test_lines_of_a_megabyte(tmp_path: Path, unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    live = await start_session(tmp_path, [text])
    await live.run(text[:1_000])
    await live.close()
    for form in FORMATS:
        began = time.process_time()
        document = export_session(live.session.folder, form)
        assert time.process_time() - began < 10, form
        if form == "html":
            assert not [word for word in ("<script", "\x00", "\x1b", "\u202e", "\ud800") if word in document]
