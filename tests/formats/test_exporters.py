"""Exports: nothing foreign gets out of its place, nothing is lost, and the same events give the same text."""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.formats import samples
from tests.formats.loading import load_transcript
from tests.runtime.session_harness import start_session
from tui_agent.core.events import (
    ApprovalAnswered,
    EscalationAnswered,
    EscalationRaised,
    Event,
    Failure,
    FailureKind,
    Fault,
    FaultKind,
    HookReported,
    IterationFinished,
    IterationStarted,
    Level,
    ModelCallStarted,
    ModelFaulted,
    NotePrepared,
    Notice,
    OperatorSpoke,
    Outcome,
    ParentPoint,
    ReplyFinished,
    ReplyRejected,
    Rewound,
    RunFinished,
    RunStarted,
    SessionStarted,
    ToolCall,
    ToolFailed,
    ToolRefused,
    ToolResult,
    ToolStarted,
    ToolSucceeded,
    VerdictReached,
    VerdictRecord,
    parse_event,
)
from tui_agent.core.fold import fold
from tui_agent.core.state import RunState
from tui_agent.event_lines import WORDS, event_line
from tui_agent.formats.exporters import FORMATS, Format, export_session, transcript_text
from tui_agent.formats.exporters.html import to_html
from tui_agent.formats.exporters.markdown import code, fenced, inline, quoted
from tui_agent.formats.importers.load import load_transcripts
from tui_agent.headless_output import Outlet, presenter
from tui_agent.terminal_text import visible

HOSTILE = (
    "</pre></details><script>alert(1)</script>"
    '<img src=x onerror="alert(1)">" onmouseover="x" \'><style>*{}</style><svg/onload=x>'
    "\x1b]52;c;x\x07\x1b[2J\x00\x9b31m ```\n# heading\n[x](javascript:alert(1)) ![y](http://e.vil/p.png) "
    "| a | b |\n\u202egnp.exe\u202c &lt;b&gt; <!-- --> ]]> {{ }} \ud7ff~~~"
)


def hostile_session() -> list[Event]:
    """A session in which every foreign text is the hostile one."""
    text = HOSTILE
    call = ToolCall(id=text, name=text, arguments=text)
    failure = Failure(kind=FailureKind.TOOL_EXECUTION, message=text, tool=text, input={text: text})
    records = (
        VerdictRecord(level=Level.ESCALATE, detector=text, reason=text),
        VerdictRecord(level=Level.GUIDE, detector=f"{text}2", reason=text),
    )
    common = {"call_id": text, "tool": text, "input": {text: [text]}, "content": text}
    events: list[Event] = [
        SessionStarted(
            session_id=text,
            workspace=text,
            title=text,
            source=text,
            parent=ParentPoint(session_id=text, seq=3),
        ),
        Notice(text=text, severity="warning"),
        RunStarted(run=1, task=text, policy=text, model=text, system_prompt=text, tools=(text,)),
        IterationStarted(iteration=1),
        ModelCallStarted(iteration=1, model=text, note=text),
        ModelFaulted(
            fault=Fault(kind=FaultKind.SERVER, message=text),
            iteration=1,
            action="retry",
            partial_text=text,
        ),
        ModelCallStarted(iteration=1, attempt=2, model=text),
        ReplyFinished(text=text, reasoning=text, calls=(call,), model=text),
        ToolStarted(call_id=text, tool=text, input={text: [text]}),
        ToolFailed(**common, failure=failure),
        IterationFinished(iteration=1),
        VerdictReached(iteration=1, level=Level.ESCALATE, detector=text, reason=text, verdicts=records),
        NotePrepared(text=text),
        EscalationRaised(id="q", question=text, source=text, tool=text, input={text: text}),
        EscalationAnswered(id="q", choice="answer", text=text, message=text),
        IterationStarted(iteration=2),
        ModelCallStarted(iteration=2, model=text),
        ReplyFinished(calls=(call,), model=text),
        ToolStarted(call_id=text, tool=text, input={text: [text]}),
        ToolSucceeded(**common, changed=(text,), diff=f"+{text}\n-{text}"),
        IterationFinished(iteration=2),
        HookReported(hook="PreToolUse", command=text, status="failed", error=text, context=text),
        OperatorSpoke(text=text),
        RunFinished(outcome=Outcome.PARTIAL, reason=text, answer=text, detector=text),
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


@pytest.mark.parametrize("form", FORMATS)
def test_no_control_character_reaches_an_export(form: Format) -> None:
    text = export_session(hostile_session(), form)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]", text)
    assert ("\\u202e" if form in {"atif", "json", "messages"} else "␛") in text


def test_events_printed_as_lines_of_json_hold_no_raw_control_character() -> None:
    stream = io.StringIO()
    lines = presenter("jsonl", Outlet(stream), io.StringIO())
    for event in hostile_session():
        lines.event(event, RunState())
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", stream.getvalue())
    assert [parse_event(line) for line in stream.getvalue().splitlines()] == hostile_session()


RULES = {
    "verdict": "attempts.escalate",
    "note": "note.attempts",
    "refusal": "attempts.block",
    "outcome": "operator.absent",
}


@pytest.mark.parametrize("form", ["html", "markdown", "text"])
def test_verdicts_notes_refusals_and_outcomes_show_their_rule(form: Format) -> None:
    records = (
        VerdictRecord(level=Level.ESCALATE, detector="attempts", reason="again", rule=RULES["verdict"]),
    )
    listed: list[Event] = [
        SessionStarted(session_id="s", workspace="/w"),
        RunStarted(run=1, task="t", policy="combined"),
        IterationStarted(iteration=1),
        ModelCallStarted(iteration=1),
        ReplyFinished(calls=(ToolCall(id="c", name="bash"),)),
        ToolRefused(call_id="c", tool="bash", refusal="blocked", reason="asked", rule=RULES["refusal"]),
        IterationFinished(iteration=1),
        VerdictReached(
            iteration=1,
            level=Level.ESCALATE,
            detector="attempts",
            reason="again",
            rule=RULES["verdict"],
            verdicts=records,
        ),
        NotePrepared(text="try", rules=(RULES["note"],)),
        RunFinished(outcome=Outcome.PARTIAL, reason="nobody", rule=RULES["outcome"]),
    ]
    text = export_session([event.stamped(seq, float(seq)) for seq, event in enumerate(listed, 1)], form)
    text = text.replace("\\", "")
    assert {name for name, rule in RULES.items() if rule not in text} == set()


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_steps_and_times_are_in_the_words_of_the_screen(form: Format) -> None:
    listed: list[Event] = [
        SessionStarted(session_id="s", workspace="/w"),
        RunStarted(run=1, task="t", policy="combined"),
        IterationStarted(iteration=1),
        ModelCallStarted(iteration=1),
        ReplyFinished(calls=(ToolCall(id="c", name="bash"),)),
        ToolSucceeded(call_id="c", tool="bash", duration=0.006),
        IterationFinished(iteration=1),
        RunFinished(outcome=Outcome.ANSWERED, answer="done"),
    ]
    text = export_session([event.stamped(seq, float(seq)) for seq, event in enumerate(listed, 1)], form)
    shown = re.sub(r"<style>.*?</style>|<[^>]+>", "", text, flags=re.DOTALL).lower()
    assert all(part in shown for part in ("step 1", "1 step ", "6 ms"))
    assert "iteration" not in shown


@pytest.mark.parametrize("form", ["html", "markdown", "text"])
def test_what_people_read_holds_no_name_of_the_code(form: Format) -> None:
    raw = {*FaultKind, *FailureKind, *Outcome, "next_iteration", "text_calls", "ask_operator", "timed_out"}
    listed: list[Event] = [SessionStarted(session_id="s", workspace="/w")]
    for outcome in Outcome:
        listed += [RunStarted(run=1, task="t", policy="combined"), IterationStarted(iteration=1)]
        for kind in FaultKind:
            for action in (
                "retry",
                "fallback",
                "shrink",
                "next_iteration",
                "text_calls",
                "ask",
                "degrade",
                "stop",
            ):
                fault = Fault(kind=kind, message="it failed")
                listed.append(
                    ModelFaulted.model_validate({"fault": fault, "action": action, "next_model": "m"})
                )
        for failed in FailureKind:
            failure = Failure(kind=failed, message="it failed", tool="bash")
            listed += [
                ReplyFinished(calls=(ToolCall(id="c", name="bash"),)),
                ToolFailed(call_id="c", tool="bash", failure=failure),
                IterationFinished(iteration=1),
            ]
        for choice in ("answer", "retry", "edit", "skip", "partial", "stop", "continue"):
            answered = {"id": "q", "choice": choice, "tool": "bash", "input": {"command": "make"}}
            listed += [
                EscalationRaised(id="q", question="?", source="ask_operator"),
                EscalationAnswered.model_validate(answered),
            ]
        for decision in ("once", "session", "always", "everywhere", "deny"):
            listed.append(ApprovalAnswered.model_validate({"id": "a", "decision": decision, "by": "rule"}))
        listed.append(Rewound(scope="both", to_seq=1))
        listed.append(HookReported(hook="PreToolUse", command="check", status="timed_out"))
        listed.append(RunFinished(outcome=outcome))
    events = [event.stamped(seq, float(seq)) for seq, event in enumerate(listed, 1)]
    text = re.sub(r"<style>.*?</style>|<[^>]+>|\\", "", export_session(events, form), flags=re.DOTALL)
    assert [name for name in raw if "_" in name and name in text] == []
    assert "retry once" in text
    if form == "text":
        assert "APPROVAL allowed in this workspace for good by a permission rule\n" in text
        assert "REWOUND conversation and files went back to event 1\n" in text
    lines = "\n".join(event_line(event, WORDS) for event in events)
    assert [name for name in raw if "_" in name and name in lines] == []


@pytest.mark.parametrize("form", ["html", "markdown", "text"])
def test_the_timeline_says_what_is_wrong_and_not_how_the_output_began(form: Format) -> None:
    listed: list[Event] = [
        SessionStarted(session_id="s", workspace="/w"),
        RunStarted(run=1, task="t", policy="combined"),
        IterationStarted(iteration=1),
        ReplyFinished(calls=(ToolCall(id="c", name="bash"),)),
        _ended("make", "exit code 2\nmaking it\nKeyError: 'NL'\nsee the log"),
    ]
    events = [event.stamped(seq, float(seq)) for seq, event in enumerate(listed, 1)]
    text = re.sub(r"<style>.*?</style>|<[^>]+>|\\", "", export_session(events, form), flags=re.DOTALL)
    timeline = html.unescape(text).lower().rpartition("timeline")[2]
    assert "bash: keyerror: 'nl'" in timeline
    assert "making it" not in timeline


def _ended(command: str, printed: str) -> ToolFailed:
    failure = Failure(kind=FailureKind.TOOL_EXECUTION, message=printed, tool="bash")
    return ToolFailed(call_id="c", tool="bash", input={"command": command}, failure=failure, content=printed)


@pytest.mark.parametrize("form", ["html", "markdown", "text"])
@pytest.mark.parametrize(
    ("policy", "command", "says"),
    [
        ("combined", "pytest -q", {"html": "findings", "markdown": "findings", "text": "TOOL bash FINDINGS"}),
        ("combined", "grep x a.py", {"html": "succeeded", "markdown": "succeeded", "text": "TOOL bash ok"}),
        (
            "gigi",
            "pytest -q",
            {"html": "failed", "markdown": "failed", "text": "TOOL bash FAILED"},
        ),
    ],
)
def test_an_answer_by_its_exit_code_is_no_failure_in_an_export(
    form: Format, policy: str, command: str, says: dict[str, str]
) -> None:
    printed = (
        "exit code 1" if command.startswith("grep") else "exit code 1\nE  assert 1 == 2\n1 failed in 0.1s"
    )
    listed: list[Event] = [
        SessionStarted(session_id="s", workspace="/w"),
        RunStarted(run=1, task="t", policy=policy),
        IterationStarted(iteration=1),
        ReplyFinished(calls=(ToolCall(id="c", name="bash"),)),
        _ended(command, printed),
        IterationFinished(iteration=1),
        RunFinished(outcome=Outcome.ANSWERED, answer="done"),
    ]
    events = [event.stamped(seq, float(seq)) for seq, event in enumerate(listed, 1)]
    text = re.sub(r"<style>.*?</style>|<[^>]+>|\\", "", export_session(events, form), flags=re.DOTALL)
    assert says[form] in text
    timeline = text.lower().rpartition("timeline")[2]
    assert ("1 failed in 0.1s" in timeline) is (policy == "gigi")
    ended = fold(events).metrics.incidents.answer(events[4])
    line = {"combined": "findings:", "gigi": "failed:"}[policy] if command == "pytest -q" else "done:"
    assert event_line(events[4], WORDS, ended).startswith(f"{line} bash {command}")


def test_a_claim_that_is_sent_back_is_told_as_no_failure() -> None:
    failure = Failure(kind=FailureKind.UNVERIFIED_CLAIM, message="No result shows it.")
    events = [ReplyRejected(failure=failure, rule="implicit.claim").stamped(1, 1.0)]
    assert (
        event_line(events[0], WORDS)
        == "notice: sent back to be verified: No result shows it. [implicit.claim]"
    )
    text = export_session(events, "text")
    assert "ANSWER SENT BACK: No result shows it." in text
    assert "0.0 refused: No result shows it." in text
    notice = fold(events).conversation.entries[-1]
    assert getattr(notice, "text", "") == "Sent back to be verified: No result shows it."


def test_the_templates_are_imported_for_a_page_only() -> None:
    code = (
        "import sys; from tui_agent.formats.exporters import export_session; export_session([], 'markdown');"
        "assert 'jinja2' not in sys.modules; export_session([], 'html'); assert 'jinja2' in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


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
        restored = load_transcripts(path)[0].events
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
    ends = [type(event) for event in events if isinstance(event, ToolResult)]
    assert [type(event) for event in again.events if isinstance(event, ToolResult)] == ends


async def test_runs_that_ended_by_their_final_call_are_these_runs_again_when_their_messages_are_imported(
    tmp_path: Path,
) -> None:
    def finish(answer: str) -> dict[str, Any]:
        return {"calls": [{"tool": "finish", "args": {"answer": answer}}]}

    wrong = [{"calls": [{"tool": "nowhere"}]}, {"calls": [{"tool": "bash", "raw": "{bad"}]}]
    live = await start_session(tmp_path, [*wrong, finish("one"), finish("two")])
    await live.run("first")
    await live.run("second")
    await live.close()
    path = tmp_path / "again.json"
    path.write_text(export_session(live.events, "messages"))
    again = load_transcript(path)
    kinds = (RunStarted, RunFinished)
    assert [
        (event.type, getattr(event, "outcome", ""), getattr(event, "answer", ""))
        for event in again.events
        if isinstance(event, kinds)
    ] == [
        ("run_started", "", ""),
        ("run_finished", Outcome.ANSWERED, "one"),
        ("run_started", "", ""),
        ("run_finished", Outcome.ANSWERED, "two"),
    ]
    kinds_of_failure = [event.failure.kind for event in again.events if isinstance(event, ToolFailed)]
    assert kinds_of_failure == [FailureKind.UNKNOWN_TOOL, FailureKind.INVALID_TOOL_CALL]


def test_the_page_shows_the_curve_the_timeline_and_every_call(tmp_path: Path) -> None:
    events = load_transcript(samples.write(tmp_path, "claude_code")).events
    page = export_session(events, "html")
    assert page.count('<details class="call') == sum(isinstance(event, ToolResult) for event in events)
    assert "<polyline" in page
    assert 'class="mark guide"' in page
    verdicts = [
        event for event in events if isinstance(event, VerdictReached) and event.level is not Level.CONTINUE
    ]
    assert page.count('<div class="verdict ') == len(verdicts)
    for anchor in re.findall(r'href="#(e\d+)"', page):
        assert page.count(f'id="{anchor}"') == 1


@pytest.mark.parametrize(
    ("policy", "threshold"), [("combined", ""), ("funnelcanary", ">conclude 0.7</text>")]
)
def test_the_curve_is_the_confidence_with_the_thresholds_at_which_the_policy_acts(
    policy: str, threshold: str, tmp_path: Path
) -> None:
    page = export_session(load_transcript(samples.write(tmp_path, "claude_code"), policy).events, "html")
    assert "<h2>Confidence</h2>" in page
    assert threshold in page
    assert ("conclude 0.7" in page) == bool(threshold)


@pytest.mark.parametrize("form", ["html", "markdown", "text"])
def test_a_run_ends_with_what_became_of_its_failures(form: Format, tmp_path: Path) -> None:
    text = export_session(load_transcript(samples.write(tmp_path, "tau_bench"), "combined").events, form)
    said = "2 calls (50% failed) · 1 failure, recovered · worked round: 1"
    assert said in text.replace("\\", "")


def test_the_transcript_says_what_happened_without_times(tmp_path: Path) -> None:
    events = load_transcript(samples.write(tmp_path, "codex")).events
    text = transcript_text(events)
    assert "TOOL exec_command FAILED (tool failed)\n    1 failed\n" in text
    assert "» VERDICT guide by attempts: exec_command failed (attempt 1/3)" in text
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
    from tui_agent.formats.importers.load import save

    (session,) = save(samples.write(tmp_path, "codex"), tmp_path / "sessions").sessions
    assert "# Fix the test" in export_session(tmp_path / "sessions" / session, "markdown")


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(ValueError, match="choose one of markdown, html"):
        export_session([], "pdf")


@pytest.mark.parametrize("form", FORMATS)
def test_an_empty_session_can_be_exported(form: Format) -> None:
    assert export_session([], form)


def test_a_transcript_names_the_rules_where_the_journal_does() -> None:
    events = [
        RunStarted(run=1, task="Build it.", policy="combined", model="m", tools=()),
        VerdictReached(
            iteration=1, level=Level.STOP, detector="ring", reason="Five identical errors.", rule="ring.stop"
        ),
        NotePrepared(text="Stop.", rules=("note.error", "note.pivot")),
        RunFinished(outcome=Outcome.STOPPED, reason="Enough.", rule="ring.stop"),
    ]
    text = transcript_text([event.stamped(number, 1.0) for number, event in enumerate(events, 1)])
    assert "» VERDICT stop by ring: Five identical errors. [ring.stop]\n" in text
    assert "» NOTE [note.error, note.pivot]\n" in text
    assert "RUN ENDED stopped: Enough. [ring.stop]\n" in text
    assert "stop by ring: Five identical errors. [ring.stop]\n" in text.split("RECOVERY TIMELINE\n")[1]


def test_a_page_draws_markdown_and_nothing_in_it_becomes_a_tag_a_link_or_a_picture() -> None:
    text = (
        "# Done\n\n**two** `files`\n\n- one\n\n<script>alert(1)</script> <img src=x onerror=y> "
        "[here](javascript:evil) ![p](https://a.b/p.png) <https://a.b> \n\n[r]: https://a.b\n\n[r]"
    )
    banner = f"The command failed with exit code 1.\n{'=' * 20} FAILURES {'=' * 20}\nKeyError: 'NL'"
    listed: list[Event] = [
        SessionStarted(session_id="s", workspace="/w"),
        RunStarted(run=1, task="t", policy="combined"),
        IterationStarted(iteration=1),
        ReplyFinished(text=text, calls=(ToolCall(id="c", name="bash"),)),
        _ended("make", banner),
        IterationFinished(iteration=1),
    ]
    page = to_html([event.stamped(seq, 1.0) for seq, event in enumerate(listed, 1)])
    for part in ("<h1>Done</h1>", "<strong>two</strong>", "<code>files</code>", "<li>one</li>"):
        assert part in page
    for tag in ("<script", "<img", '<a href="http', '<a href="java'):
        assert tag not in page
    assert "<em>KeyError: &#39;NL&#39;</em>" in page
