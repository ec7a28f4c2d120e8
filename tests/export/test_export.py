"""Exports: nothing foreign gets out of its place, nothing is lost, and the same events give the same text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.importers import samples
from tui_agent import events as e
from tui_agent.sessions.export import FORMATS, Format, export_session, transcript_text
from tui_agent.sessions.export.markdown import code, fenced, inline, quoted
from tui_agent.sessions.importers.load import load_transcript
from tui_agent.sessions.importers.own import read_events
from tui_agent.sessions.importers.reading import read_recording
from tui_agent.sessions.importers.transcript import ImportReport
from tui_agent.sessions.visible import visible
from tui_agent.state import fold

HOSTILE = (
    "</pre></details><script>alert(1)</script>"
    '<img src=x onerror="alert(1)">" onmouseover="x" \'><style>*{}</style><svg/onload=x>'
    "\x1b]52;c;x\x07\x1b[2J\x00\x9b31m ```\n# heading\n[x](javascript:alert(1)) ![y](http://e.vil/p.png) "
    "| a | b |\n\u202egnp.exe\u202c &lt;b&gt; <!-- --> ]]> {{ }} \ud7ff~~~"
)


def hostile_session() -> list[e.Event]:
    """A session in which every foreign text is the hostile one."""
    text = HOSTILE
    call = e.ToolCall(id=text, name=text, arguments=text)
    failure = e.Failure(kind=e.FailureKind.TOOL_EXECUTION, message=text, tool=text, input={text: text})
    records = (
        e.VerdictRecord(level=e.Level.ESCALATE, detector=text, reason=text),
        e.VerdictRecord(level=e.Level.GUIDE, detector=f"{text}2", reason=text),
    )
    common = {"call_id": text, "tool": text, "input": {text: [text]}, "content": text}
    events: list[e.Event] = [
        e.SessionStarted(
            session_id=text,
            workspace=text,
            title=text,
            source=text,
            parent=e.ParentPoint(session_id=text, seq=3),
        ),
        e.Notice(text=text, severity="warning"),
        e.RunStarted(run=1, task=text, policy=text, model=text, system_prompt=text, tools=(text,)),
        e.IterationStarted(iteration=1),
        e.ModelCallStarted(iteration=1, model=text, note=text),
        e.ModelFaulted(
            fault=e.Fault(kind=e.FaultKind.SERVER, message=text),
            iteration=1,
            action="retry",
            partial_text=text,
        ),
        e.ModelCallStarted(iteration=1, attempt=2, model=text),
        e.ReplyFinished(text=text, reasoning=text, calls=(call,), model=text),
        e.ToolStarted(call_id=text, tool=text, input={text: [text]}),
        e.ToolFailed(**common, failure=failure),
        e.IterationFinished(iteration=1),
        e.VerdictReached(iteration=1, level=e.Level.ESCALATE, detector=text, reason=text, verdicts=records),
        e.NotePrepared(text=text),
        e.EscalationRaised(id="q", question=text, source=text, tool=text, input={text: text}),
        e.EscalationAnswered(id="q", choice="answer", text=text, message=text),
        e.IterationStarted(iteration=2),
        e.ModelCallStarted(iteration=2, model=text),
        e.ReplyFinished(calls=(call,), model=text),
        e.ToolStarted(call_id=text, tool=text, input={text: [text]}),
        e.ToolSucceeded(**common, changed=(text,), diff=f"+{text}\n-{text}"),
        e.IterationFinished(iteration=2),
        e.HookReported(hook="PreToolUse", command=text, status="failed", error=text, context=text),
        e.OperatorSpoke(text=text),
        e.RunFinished(outcome=e.Outcome.PARTIAL, reason=text, answer=text, detector=text),
    ]
    return [event.stamped(seq, 1_700_000_000.0 + seq) for seq, event in enumerate(events, 1)]


class Page(HTMLParser):
    """Elements and attributes of a page, checked for being closed in order."""

    VOID = {"meta", "line", "circle", "polygon", "polyline"}

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.values: list[str] = []
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.values += [value or "" for name, value in attrs if name in {"href", "class", "id"}]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.VOID:
            return
        assert self.open
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


PLAIN_ELEMENTS = frozenset(
    {"html", "head", "meta", "title", "style", "body", "header", "main", "div", "section", "aside", "footer"}
    | {"p", "h1", "h2", "dl", "dt", "dd", "ol", "li", "a", "b", "i", "em", "small", "span", "code", "pre"}
    | {"details", "summary", "time", "ins", "del", "svg", "line", "polygon", "polyline", "circle", "text"}
)
PLAIN_ATTRIBUTES = frozenset(
    {"lang", "charset", "http-equiv", "content", "name", "class", "id", "href", "aria-label", "role"}
    | {"viewbox", "x", "x1", "x2", "y", "y1", "y2", "cx", "cy", "r", "points"}
)


def parsed(page: str) -> Page:
    parser = Page()
    parser.feed(page)
    parser.close()
    return parser


def test_hostile_text_adds_no_element_and_no_attribute_to_the_page() -> None:
    page = parsed(export_session(hostile_session(), "html"))
    assert page.open == []
    assert page.elements <= PLAIN_ELEMENTS
    assert page.attributes <= PLAIN_ATTRIBUTES
    assert all(re.fullmatch(r"#?[\w -]*", value) for value in page.values)
    assert "<script>alert(1)</script>" in "".join(page.text)


@pytest.mark.parametrize("form", ["html", "markdown", "text"])
def test_no_control_character_reaches_an_export_for_people(form: Format) -> None:
    text = export_session(hostile_session(), form)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert "␛" in text


def test_the_page_allows_its_own_style_and_nothing_else() -> None:
    page = export_session(hostile_session(), "html")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert policy is not None
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy[1].startswith(f"default-src 'none'; style-src 'sha256-{digest}';")
    assert not re.search(r"(?:src|href)=\"(?:https?:|//|data:|javascript:)", page)
    assert "url(" not in style[1]
    assert "@import" not in style[1]


@pytest.mark.parametrize("name", samples.NAMES)
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_takes_every_recording_and_gives_the_same_each_time(
    name: str, form: Format, tmp_path: Path
) -> None:
    events = load_transcript(samples.write(tmp_path, name)).events
    once = export_session(events, form)
    assert once == export_session(events, form)
    assert once.endswith("\n")
    if form == "html":
        assert parsed(once).open == []


def test_the_json_export_holds_every_event_as_it_was(tmp_path: Path) -> None:
    for events in (hostile_session(), load_transcript(samples.write(tmp_path, "codex")).events):
        path = tmp_path / "export.json"
        path.write_text(export_session(events, "json"))
        restored = read_events(read_recording(path), ImportReport("", ""))
        assert restored == events
        assert fold(restored) == fold(events)


def test_the_messages_are_the_history_and_can_be_imported_again(tmp_path: Path) -> None:
    events = load_transcript(samples.write(tmp_path, "openai_messages")).events
    exported = json.loads(export_session(events, "messages"))
    assert exported["model"] == "gpt-x"
    assert [message["role"] for message in exported["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    path = tmp_path / "again.json"
    path.write_text(json.dumps(exported))
    again = load_transcript(path)
    ends = [type(event) for event in events if isinstance(event, e.ToolResult)]
    assert [type(event) for event in again.events if isinstance(event, e.ToolResult)] == ends


def test_the_page_shows_the_curve_the_timeline_and_every_call(tmp_path: Path) -> None:
    events = load_transcript(samples.write(tmp_path, "claude_code")).events
    page = export_session(events, "html")
    assert page.count('<details class="call') == sum(isinstance(event, e.ToolResult) for event in events)
    assert "<polyline" in page
    assert 'class="mark guide"' in page
    verdicts = [
        event
        for event in events
        if isinstance(event, e.VerdictReached) and event.level is not e.Level.CONTINUE
    ]
    assert page.count('<div class="verdict ') == len(verdicts)
    for anchor in re.findall(r'href="#(e\d+)"', page):
        assert page.count(f'id="{anchor}"') == 1


def test_the_transcript_says_what_happened_without_times(tmp_path: Path) -> None:
    events = load_transcript(samples.write(tmp_path, "codex")).events
    text = transcript_text(events)
    assert "TOOL exec_command FAILED (tool_execution)\n    1 failed\n" in text
    assert "» VERDICT guide by attempts: exec_command failed (attempt 1/3)\n" in text
    assert text.split("RECOVERY TIMELINE\n")[1].splitlines()[-1] == "    1.7 outcome: answered"
    later = [event.stamped(event.seq, event.at + 12.5 * event.seq) for event in events]
    assert transcript_text(later) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[2J\x07", "␛[2J␇"),
        ("a\r\nb\rc", "a\nb␍c"),
        ("\x9b31m\x7f", "‹U+009B›31m␡"),
        ("\u202eevil", "‹U+202E›evil"),
        ("\ud800", "‹U+D800›"),
    ],
)
def test_control_characters_are_made_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("a ``` b", "````"),
        ("`" * 9, "`" * 10),
        ("plain", "```"),
    ],
)
def test_a_fence_is_longer_than_any_in_it(text: str, inside: str) -> None:
    first, *_, last = fenced(text).splitlines()
    assert first == f"{inside}text"
    assert last == inside


def test_foreign_text_means_nothing_to_markdown() -> None:
    assert inline("a *b* [c](d)\n<e> `f` | #") == "a \\*b\\* \\[c\\](d) \\<e\\> \\`f\\` \\| \\#"
    assert quoted("# no heading\n- no item\n1. none\n    no code") == (
        "> \\# no heading  \n> \\- no item  \n> 1\\. none  \n> no code"
    )
    assert code("a `` b") == "```a `` b```"
    assert code("`x") == "`` `x ``"


def test_a_journal_can_be_exported_by_its_folder(tmp_path: Path) -> None:
    from tui_agent.sessions.importers.load import import_sessions

    (session,) = import_sessions([samples.write(tmp_path, "codex")], tmp_path / "sessions")
    assert "# Fix the test" in export_session(tmp_path / "sessions" / session, "markdown")


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(ValueError, match="choose one of markdown, html"):
        export_session([], "pdf")


@pytest.mark.parametrize("form", FORMATS)
def test_an_empty_session_can_be_exported(form: Format) -> None:
    assert export_session([], form)
