"""Images in a message: copied, named in the journal, carried by requests to models that see, named to others."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from pathlib import Path

import pytest

from tests.kept_host import KeptHost
from tests.openai_server import Answer, Recorded, error
from tests.runtime.test_reasoning import run, session_at
from tests.servers import Make, ModelServer, Said
from tests.servers.anthropic import Anthropic
from tests.servers.chat import DeepSeek, LlamaCpp, Vllm
from tests.servers.gemini import Gemini
from tests.servers.responses import OpenAIResponses
from tui_agent.core.events import SettingChanged
from tui_agent.formats.exporters import FORMATS, export_session
from tui_agent.models.images import refuses_images
from tui_agent.session.fork import ForkChoice, fork_session
from tui_agent.store.errors import SessionError
from tui_agent.store.images import LARGEST, MOST, keep_images
from tui_agent.store.journal import JOURNAL_NAME

loop_tests = pytest.mark.asyncio(loop_scope="session")


def png(width: int = 640, height: int = 480) -> bytes:
    def piece(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"\0" * (width + 1) * min(height, 1_000))
    return b"\x89PNG\r\n\x1a\n" + piece(b"IHDR", header) + piece(b"IDAT", rows) + piece(b"IEND", b"")


ENCODED = base64.b64encode(png()).decode()


def with_picture(folder: Path) -> Path:
    (folder / "workspace").mkdir(exist_ok=True)
    picture = folder / "workspace" / "pic.png"
    picture.write_bytes(png())
    return picture


@loop_tests
@pytest.mark.parametrize(
    "make", [Anthropic(), OpenAIResponses(), Gemini(), DeepSeek()], ids=lambda make: make.name
)
async def test_each_protocol_carries_the_image_or_its_name(
    host: KeptHost, tmp_path: Path, make: Make
) -> None:
    with_picture(tmp_path)
    async with ModelServer(make, Said("A black picture.")) as server:
        session = await session_at(server, host, tmp_path)
        assert await session.models.blind("What is in @nowhere.png?") == ""
        blind = await session.models.blind("What is in @pic.png?")
        assert bool(blind) is (make.name == "deepseek"), "it is known before anything is sent"
        await run(session, "What is in @pic.png?")
        await session.close()
        sent = json.dumps(server.requests[-1].body)
        notices = [entry.text for entry in session.state.conversation.entries if hasattr(entry, "severity")]
        if make.name == "deepseek":
            assert ENCODED not in sent
            assert "The image pic.png is not here: this model cannot see images" in sent
            assert any("cannot see images: it got their names alone" in text for text in notices)
        else:
            assert ENCODED in sent
            assert not any("cannot see" in text for text in notices)


@loop_tests
async def test_the_copy_goes_again_after_a_resume_and_into_a_fork_and_the_journal_holds_no_bytes(
    host: KeptHost, tmp_path: Path
) -> None:
    picture = with_picture(tmp_path)
    async with ModelServer(Vllm(), Said("Black.")) as server:
        session = await session_at(server, host, tmp_path)
        await run(session, "What is in @pic.png, and once more @pic.png?")
        await session.close()
        picture.unlink()
        journal = (session.folder / JOURNAL_NAME).read_text()
        assert ENCODED[:60] not in journal
        (message,) = [m for m in server.requests[-1].body["messages"] if m["role"] == "user"]
        text, image = message["content"]
        assert text == {"type": "text", "text": "What is in @pic.png, and once more @pic.png?"}
        assert image["image_url"]["url"] == f"data:image/png;base64,{ENCODED}"
        for form in FORMATS:
            exported = export_session(session.folder, form)
            assert ENCODED[:60] not in exported
            assert "pic.png" in exported
            if form != "json":
                assert "image 640×480 png, 1 kB" in exported

        fork = await fork_session(session.folder, tmp_path / "state" / "sessions", ForkChoice(None))
        for folder in (session.folder, fork):
            server.say(Said("Still black."))
            resumed = await session_at(server, host, tmp_path, resume=folder)
            await run(resumed, "And now?")
            await resumed.close()
            assert ENCODED in json.dumps(server.requests[-1].body)

        (copy,) = (fork / "images").iterdir()
        copy.unlink()
        copy.symlink_to("/etc/passwd")
        server.say(Said("Gone."))
        resumed = await session_at(server, host, tmp_path, resume=fork)
        await run(resumed, "And now?")
        await resumed.close()
        sent = json.dumps(server.requests[-1].body)
        assert ENCODED not in sent
        assert "The image pic.png is not here: its copy is gone" in sent
        assert base64.b64encode(b"root:x:").decode()[:8] not in sent


class Blind(LlamaCpp):
    """A server whose model has no eyes."""

    def answer(self, said: Said, request: Recorded) -> Answer:
        if any(isinstance(message.get("content"), list) for message in request.body["messages"]):
            return error(500, "image input is not supported - hint: you may need to provide the mmproj")
        return super().answer(said, request)


@loop_tests
async def test_a_refusal_of_images_is_learnt_once_and_said(host: KeptHost, tmp_path: Path) -> None:
    with_picture(tmp_path)
    said = Said("I cannot see it.")
    async with ModelServer(Blind(), said, said) as server:
        session = await session_at(server, host, tmp_path, tool_calls="text")
        await run(session, "What is in @pic.png?")
        assert len(server.requests) == 2
        server.say(said)
        await run(session, "And now?")
        await session.close()
        assert len(server.requests) == 1
        texts = [getattr(entry, "text", "") for entry in session.state.conversation.entries]
        assert sum("cannot see images" in text for text in texts) == 1
        assert SettingChanged not in {type(entry) for entry in session.state.conversation.entries}


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ("Qwen/Qwen3-8B is not a multimodal model", True),
        ("unknown variant `image_url`, expected `text`", True),
        ("messages[1].content must be a string", True),
        ("No endpoints found that support image input", True),
        ("Image input is not enabled for this model", True),
        ("image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes", False),
        ("Could not process image", False),
    ],
)
def test_what_servers_say(said: str, refused: bool) -> None:
    assert refuses_images(said) is refused


def test_what_a_message_names_and_what_cannot_be_sent(tmp_path: Path) -> None:
    workspace, folder, elsewhere = (
        tmp_path / "workspace",
        tmp_path / "session" / "images",
        tmp_path / "my pics",
    )
    workspace.mkdir()
    elsewhere.mkdir()
    for place in (workspace / "a.png", elsewhere / "b c.PNG"):
        place.write_bytes(png(2, 3))
    spaced = f"{elsewhere}/b c.PNG"
    for text, names in {
        "a.png is only spoken of, and so is @missing.png": [],
        "Look at @a.png.": ["a.png"],
        "(see ./a.png), then": ["./a.png"],
        "./a.png": ["./a.png"],
        spaced.replace(" ", "\\ "): [spaced],
        f"'{spaced}' \"{spaced}\"": [spaced],
        f"file://{spaced.replace(' ', '%20')}!": [f"file://{spaced.replace(' ', '%20')}"],
    }.items():
        found = keep_images(text, workspace, folder)
        assert [image.name for image in found] == names, text
        assert all((image.width, image.height, image.media) == (2, 3, "image/png") for image in found)
    assert len(list(folder.iterdir())) == 1, "one copy of the same bytes"

    bad = {
        "text.png": (b"no picture", "is no PNG"),
        "head.png": (png()[:20], "is no PNG"),
        "wide.png": (png(9_000, 1), "9000×1 pixels"),
        "huge.png": (png() + b"\0" * LARGEST, "MB go at most"),
    }
    for name, (data, why) in bad.items():
        (workspace / name).write_bytes(data)
        with pytest.raises(SessionError, match=why):
            keep_images(f"@{name}", workspace, folder)
    for number in range(MOST + 1):
        (workspace / f"{number}.png").write_bytes(png(1, 1))
    with pytest.raises(SessionError, match="11 images"):
        keep_images(" ".join(f"@{number}.png" for number in range(MOST + 1)), workspace, folder)
