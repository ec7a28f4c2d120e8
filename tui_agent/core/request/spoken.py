"""The words of a reply for its reader: its text without the thoughts, channels and tokens of the model's own
form.

A server that knows the form takes them out. Pure; the forms stand in `forms`, the calls are read by `written_calls`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tui_agent.core.request.code_spans import without_code
from tui_agent.core.request.forms import ANSWERS, SENTENCES, THOUGHTS, TURN_BEGINS, TURN_ENDS


class Spoken(NamedTuple):
    """A reply's text and its thoughts, apart."""

    text: str
    reasoning: str


_CHANNEL = re.compile(
    r"(?:<\|start\|>)?(?:assistant)?(?P<before>\s+to=[^<]*)?<\|channel\|>\s*(?P<channel>analysis|commentary|final)\b"
    r"(?P<head>[^<]*(?:<\|constrain\|>[^<]*)?)<\|message\|>(?P<said>.*?)"
    r"(?:<\|(?:end|call|return)\|>\s*|(?=<\|(?:start|channel)\|>)|\Z)",
    re.DOTALL,
)
_ANY_CHANNEL = re.compile(r"<\|channel\|>\s*(?:analysis|commentary|final)\b")
_PLAIN_START = re.compile(r"\A(?:analysis(?=[A-Z\"'(])|assistant(?=final|analysis|commentary))")
_PLAIN_CHANNEL = re.compile(r"(?:\A|assistant)(analysis|commentary|final)")
"""Harmony after a server dropped its tokens: `analysisThey ask.assistantfinalNine.`"""

_CLOSED = "|".join(re.escape(end.strip()) for _, end in THOUGHTS)
_BLOCK = re.compile(
    rf"(?:^ {{0,3}}|(?<=[.!?])[ \t]?)(?:{'|'.join(re.escape(begin.strip()) for begin, _ in THOUGHTS)})",
    re.MULTILINE,
)
_BLOCK_END = re.compile(rf"(?:{_CLOSED})[ \t]*\n?")
_OPENED = re.compile("|".join(re.escape(begin.strip()) for begin, _ in THOUGHTS))
_END_OF_THOUGHTS = re.compile(
    rf"(?:^[ \t]*|(?<=[.!?…:;\"”')\]}}*。！？])[ \t]?)(?:{_CLOSED})(?=[ \t]*(?:\n|\Z)|\S)", re.MULTILINE
)

_PLAIN = ("analysis", "assistant", SENTENCES[0])
"""How a text begins that has thoughts in it, though no token."""

_ENDS = "|".join(sorted(map(re.escape, TURN_ENDS), key=len, reverse=True))
_LAST_END = re.compile(rf"(?:(?<=[.!?…:;\"”')\]}}*>`。！？\w])|(?<=[.!?…。！？\s])\s|^)(?:{_ENDS})\s*\Z")
_NEXT_TURN = re.compile(
    rf"(?:{_ENDS})\s*(?=<\|im_start\|>|<\|start_header_id\|>|<start_of_turn>|<\|turn>|<\|start\|>(?!assistant)"
    r"|<\|start_of_role\|>|<｜User｜>|<\|user\|>|<\|observation\|>)"
)
_LONGEST_END = 40


def spoken(text: str, reasoning: str = "") -> Spoken:
    """Put what is thought in the text beside `reasoning`, and leave out the tokens around the turn."""
    if reasoning and not text.strip():
        # A server that missed the end of the thoughts took the answer for one of them.
        text, reasoning = _by_end(reasoning) if _END_OF_THOUGHTS.search(reasoning) else (text, reasoning)
    thoughts = [reasoning] if reasoning.strip() else []
    if not any(mark in text for mark in "<[◁") and not text.startswith(_PLAIN):
        return Spoken(text, reasoning)
    text = _without_turns(text)
    for part in (_by_channels, _by_sentences, _by_blocks, _by_end):
        text, thought = part(text)
        if thought.strip():
            thoughts.append(thought.strip())
            text = _unwrapped(text)
    return Spoken(_without_turns(text), "\n\n".join(thoughts))


def _without_turns(text: str) -> str:
    """Leave out what opens and closes the turn of a model, and turns that the model made up."""
    begins = next((token for token in TURN_BEGINS if text.lstrip().startswith(token)), "")
    if begins and not _CHANNEL.match(text.lstrip()):
        text = text.lstrip()[len(begins) :].lstrip("\n")
    following = _NEXT_TURN.search(without_code(text))
    if following is not None:
        text = text[: following.start()]
    while (last := _LAST_END.search(text, max(0, len(text) - _LONGEST_END))) is not None:
        if "</s>" in last[0] and "<s>" in text:
            break  # text that is struck out, in HTML
        text = text[: last.start()].rstrip()
    return text


def _by_channels(text: str) -> tuple[str, str]:
    """Split a text by the channels of Harmony; calls stay in it."""
    if "<|channel|>" not in text or _ANY_CHANNEL.search(without_code(text)) is None:
        return _by_plain_channels(text)
    said, thought, place = list[str](), list[str](), 0
    for found in _CHANNEL.finditer(text):
        said.append(text[place : found.start()].strip())
        place = found.end()
        to = f"{found['before'] or ''}{found['head']}"
        if "to=" in to:
            said.append(f"<|channel|>commentary {to.strip()}<|message|>{found['said']}<|call|>")
        elif found["channel"] == "analysis":
            thought.append(found["said"].strip())
        else:
            said.append(found["said"].strip())
    said.append(text[place:].strip())
    return "\n\n".join(filter(None, said)), "\n\n".join(filter(None, thought))


def _by_plain_channels(text: str) -> tuple[str, str]:
    if _PLAIN_START.match(text) is None:
        return text, ""
    said, thought = list[str](), list[str]()
    _, *parts = _PLAIN_CHANNEL.split(text)
    for channel, part in zip(parts[::2], parts[1::2], strict=True):
        if part.lstrip().startswith("to="):
            said.append(f"{channel} {part.strip()}")
        else:
            (thought if channel == "analysis" else said).append(part.strip())
    return "\n\n".join(filter(None, said)), "\n\n".join(filter(None, thought))


def _by_sentences(text: str) -> tuple[str, str]:
    if not text.startswith(SENTENCES[0]) or SENTENCES[1] not in text:
        return text, ""
    thought, _, said = text.removeprefix(SENTENCES[0]).partition(SENTENCES[1])
    return said.strip(), thought


def _by_blocks(text: str) -> tuple[str, str]:
    """Take out thoughts between two tags, of which the first begins a line or follows a sentence."""
    if _OPENED.search(text) is None:
        return text, ""
    bare = without_code(text, keep_open=True)
    said, thought, place = list[str](), list[str](), 0
    while (begun := _BLOCK.search(bare, place)) is not None:
        ended = _BLOCK_END.search(bare, begun.end())
        if ended is None:
            break
        said.append(text[place : begun.start()])
        thought.append(text[begun.end() : ended.start()].strip())
        place = ended.end()
    return "".join([*said, text[place:]]), "\n\n".join(thought)


def _by_end(text: str) -> tuple[str, str]:
    """Take out thoughts that end with their tag and never began, since a template wrote their beginning."""
    bare = without_code(text, keep_open=True)
    found = next(reversed(list(_END_OF_THOUGHTS.finditer(bare))), None)
    if found is None or _OPENED.search(bare, 0, found.start()) is not None:
        return text, ""
    return text[found.end() :].lstrip(), text[: found.start()]


def _unwrapped(text: str) -> str:
    """Leave out the tags around the whole answer behind thoughts."""
    bare = text.strip()
    for begin, end in ANSWERS:
        if bare.startswith(begin):
            return bare.removeprefix(begin).removesuffix(end).strip()
    return text
