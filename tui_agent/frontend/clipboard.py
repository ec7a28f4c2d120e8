"""A text to the clipboard, by the platform's own tool and by the terminal (OSC 52), which says nothing; an image from
it, by a tool alone.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from tui_agent.processes import uncancelled
from tui_agent.terminal_text import sanitize_between_tabs

PATIENCE = 2.0
"""Seconds for a tool to take the text."""

TERMINAL_LIMIT = 74_000
"""Bytes that terminals take by OSC 52; xterm takes the fewest."""


def tools(env: Mapping[str, str]) -> list[Sequence[str]]:
    """Commands that may take the text on their standard input, the most likely first."""
    found: list[Sequence[str]] = []
    if sys.platform == "darwin":
        found.append(["pbcopy"])
    if env.get("WAYLAND_DISPLAY"):
        found.append(["wl-copy"])
    if env.get("DISPLAY"):
        found += [["xclip", "-selection", "clipboard"], ["xsel", "--input", "--clipboard"]]
    if env.get("WSL_DISTRO_NAME"):
        found.append(["clip.exe"])
    if env.get("TMUX"):
        found.append(["tmux", "load-buffer", "-"])
    return found


async def copy_by_tool(text: str, env: Mapping[str, str] = os.environ) -> str:
    """Hand the text to the first tool that takes it: the tool's name, or "" if none did."""
    for command in tools(env):
        path = shutil.which(command[0], path=env.get("PATH"))
        if path is not None and await _fed(path, *command[1:], text=text):
            return command[0]
    return ""


async def _fed(*command: str, text: str) -> bool:
    nothing = asyncio.subprocess.DEVNULL
    with suppress(OSError):
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=nothing,
            stderr=nothing,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(PATIENCE):
                await process.communicate(text.encode())
        except TimeoutError:
            pass
        finally:
            if process.returncode is None:
                process.kill()
                await uncancelled(process.wait())
        return process.returncode == 0
    return False


IMAGE_KINDS = {"image/png": (b"\x89PNG\r\n", ".png"), "image/jpeg": (b"\xff\xd8\xff", ".jpg")}
"""Kinds of images: how their bytes begin, and how their files end."""


def image_tools(env: Mapping[str, str], kind: str) -> list[Sequence[str]]:
    """Give the commands that may print an image of this kind, the most likely first."""
    found: list[Sequence[str]] = []
    if env.get("WAYLAND_DISPLAY"):
        found.append(["wl-paste", "--no-newline", "--type", kind])
    if env.get("DISPLAY"):
        found.append(["xclip", "-selection", "clipboard", "-target", kind, "-out"])
    if sys.platform == "darwin" and kind == "image/png":
        found.append(["pngpaste", "-"])
    return found


async def image() -> tuple[bytes, str] | None:
    """Take the image that is in the clipboard, by the first tool that has it: its bytes, and how its file ends."""
    for kind, (beginning, ending) in IMAGE_KINDS.items():
        for command in image_tools(os.environ, kind):
            path = shutil.which(command[0])
            printed = b"" if path is None else await _printed(path, *command[1:])
            if printed.startswith(beginning):
                return printed, ending
    return None


async def _printed(*command: str) -> bytes:
    nothing = asyncio.subprocess.DEVNULL
    with suppress(OSError, TimeoutError):
        process = await asyncio.create_subprocess_exec(
            *command, stdin=nothing, stdout=asyncio.subprocess.PIPE, stderr=nothing, start_new_session=True
        )
        try:
            async with asyncio.timeout(PATIENCE):
                return (await process.communicate())[0]
        finally:
            if process.returncode is None:
                process.kill()
                await uncancelled(process.wait())
    return b""


async def copy(text: str, what: str, terminal: Callable[[str], None] | None = None) -> str:
    """Copy a text, made safe, by a tool and by what writes to the terminal; what was copied, and how."""
    text = sanitize_between_tabs(text)
    if not text:
        return "There is nothing to copy."
    if terminal is not None and len(text.encode()) <= TERMINAL_LIMIT:
        terminal(text)
    return copied(text, what, await copy_by_tool(text), in_terminal=terminal is not None)


def copied(text: str, what: str, tool: str, *, in_terminal: bool = True) -> str:
    """A sentence about a copy: its size, its subject, and its way."""
    lines = text.count("\n") + 1
    size = (
        f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters" if len(text) != 1 else "1 character"
    )
    by_terminal = in_terminal and len(text.encode()) <= TERMINAL_LIMIT
    if tool:
        ways = f"by {tool}{' and the terminal (OSC 52)' if by_terminal else ''}"
    elif by_terminal:
        ways = "sent to the terminal (OSC 52), which does not say whether it took it"
    else:
        too_much = f"{size} are too much for the terminal, and " if in_terminal else ""
        return f"{what.capitalize()} was not copied: {too_much}there is no clipboard tool that takes it."
    return f"Copied {what}, {size}: {ways}."
