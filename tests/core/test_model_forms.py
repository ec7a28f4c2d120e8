"""Calls and thoughts in the forms of models: each is read, and no text about them is taken for one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib import metadata
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model_forms import CALLS, SEPARATE, written
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.request.broken_reply import broken_reply
from tui_agent.core.request.spoken import spoken
from tui_agent.core.request.tool_names import meant
from tui_agent.core.request.written_calls import calls_of, is_unreadable, written_calls
from tui_agent.tools.registry import default_tools

TOOLS = default_tools().names
ROOT = Path(__file__).resolve().parents[2]


def calls_in(text: str) -> list[tuple[str, object]]:
    found = written_calls(spoken(text).text, TOOLS)
    return [] if found is None else [(call.name, json.loads(call.arguments)) for call in found.calls]


def bash(command: str) -> tuple[str, object]:
    return "bash", {"command": command}


@pytest.mark.parametrize("form", CALLS)
def test_a_call_in_a_models_own_form_is_read_alone_behind_words_and_in_another_case(form: str) -> None:
    call = written(form, "ls -l 'a b'")
    assert calls_in(call) == [bash("ls -l 'a b'")]
    assert calls_in(f"I look what is there.\n\n{call}") == [bash("ls -l 'a b'")]
    assert calls_in(written(form, "ls", "Bash")) == [bash("ls")]
    thought = "The operator wants a list. " * 100
    assert calls_in(f"{thought}\n</think>\n\n{call}") == [bash("ls -l 'a b'")]


@pytest.mark.parametrize("form", [form for form in CALLS if form not in SEPARATE and "JSON" not in form])
def test_two_calls_in_a_row_are_both_read(form: str) -> None:
    two = f"{written(form, 'ls a')}\n{written(form, 'ls b')}"
    assert calls_in(two) == [bash("ls a"), bash("ls b")]


NAMED_LATER = frozenset({"marks within a fence", "Claude 2", "Apertus", "Command", "Command R"})
"""Forms in which the name does not stand right behind the mark."""
MARKED = [
    form for form in CALLS if "JSON" not in form and form not in {"ReAct", "Llama 4 without its tokens"}
]


@pytest.mark.parametrize("form", MARKED)
def test_a_call_that_breaks_off_is_neither_run_nor_an_answer(form: str) -> None:
    whole = written(form, "ls -l")
    half = spoken(f"I look.\n\n{whole[: whole.index('ls -l') + 2]}").text
    assert written_calls(half, TOOLS) is None
    assert is_unreadable(half) or form == "marks within a fence"


@pytest.mark.parametrize("form", [form for form in MARKED if form not in NAMED_LATER])
def test_a_call_that_the_length_limit_cut_is_one_that_is_incomplete(form: str) -> None:
    whole = written(form, "ls -l")
    half = spoken(f"I look.\n\n{whole[: whole.index('ls -l') + 2]}").text
    found = written_calls(half, TOOLS, cut=True)
    assert found is not None
    assert [call.name for call in found.calls] == ["bash"]
    with pytest.raises(ValueError, match=r"."):
        json.loads(found.calls[0].arguments)


REMAINS = {
    "an unknown tool": ('<tool_call>\n{"name": "fly", "arguments": {"to": "x"}}\n</tool_call>', True),
    "only the end of a call": ("ls\n</parameter>\n</function>\n</tool_call>", False),
    "arguments without their names": ('```tool_code\nbash("ls")\n```', False),
    "a value that is computed": ('```tool_code\nbash(command="ls " + name)\n```', False),
    "a channel without its message": ("<|channel|>final There are nine.", False),
    "an argument that may end at two places": ("call:write_file{content:one, two,path:a.txt}", False),
}


@pytest.mark.parametrize(("text", "called"), REMAINS.values(), ids=REMAINS)
def test_what_is_left_of_a_call_is_no_answer(text: str, called: bool) -> None:
    found = written_calls(text, TOOLS)
    assert (found is not None) is called
    assert called or is_unreadable(text)


CALL = '{"name": "bash", "arguments": {"command": "ls"}}'

PROSE: dict[str, str] = {
    "tags in backticks": "Qwen writes `<tool_call>` before a call and `</tool_call>` behind it.",
    "tags in a sentence": "Qwen writes <tool_call> before a call and </tool_call> behind it.",
    "an example in a fence": f"So:\n\n```xml\n<tool_call>\n{CALL}\n</tool_call>\n```\n\nThe server takes it out.",
    "an example at the end": f"The format is:\n\n```xml\n<tool_call>\n{CALL}\n</tool_call>\n```",
    "two examples": f"Hermes:\n```\n<tool_call>\n{CALL}\n</tool_call>\n```\nLlama:\n```\n<|python_tag|>{CALL}\n```",
    "an example that is announced": f"For example:\n<tool_call>\n{CALL}\n</tool_call>",
    "an indented example": f"Hermes' form\n\n    <tool_call>\n    {CALL}\n    </tool_call>\n\nand Llama another.",
    "tags of thoughts in backticks": "Thoughts stand between `<think>` and `</think>`. The answer follows.",
    "tags of thoughts in a sentence": "The tag </think> ends the thoughts, and <think> begins them.",
    "a tag alone on a line": "The template opens the thoughts itself, so a reply has only\n`</think>`\nin it.",
    "thoughts in a fence": "```\n<think>\nHm\n</think>\nNine.\n```\nis what it says.",
    "a list of tags": "- `<think>`: opens\n- `</think>`: closes",
    "the end of a turn in backticks": "The token of the end of a turn is `<|im_end|>`.",
    "the end of a turn in a sentence": "Llama 3 ends its turn with <|eot_id|>",
    "struck text": "In HTML, <s>old</s> strikes text out.",
    "struck text at the end": "It renders as <s>struck</s>",
    "Harmony in backticks": "gpt-oss has the channels `<|channel|>analysis` and `<|channel|>final`.",
    "Harmony in a sentence": "The token <|channel|> comes before the name, and <|message|> before the text.",
    "Mistral's mark": "Mistral's template writes [TOOL_CALLS] and then a list of calls.",
    "Mistral's marks": "The markers are [TOOL_CALLS], [ARGS] and [CALL_ID].",
    "an action point": "Action: run the tests\nOwner: me\nDue: Friday",
    "an action that is a tool": "Action: bash\n\nThat is the field of the log that names the tool.",
    "a call to somebody": "call:me maybe",
    "a notation that is explained": "The notation is call:name{key:value} with bare keys.",
    "code that calls": 'Call it like so:\n\n```python\nbash(command="ls")\n```',
    "a list that is explained": '[bash(command="ls")] is what Llama 4 writes.',
    "a schema": '{"name": "bash", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}',
    "versions": '{"bash": "5.2", "git": "2.43"}',
    "a name alone": '{"name": "list_dir"}',
    "elements of XML": '<tools>\n  <tool name="hammer"/>\n</tools>',
    "parameters of XML": '<parameter name="a">1</parameter>\n<parameter name="b">2</parameter>',
    "a function of XML": '<function name="f"/> declares f.',
    "a word with a colon": "analysis: the test fails since n is 0.",
    "a heading": "analysis\n\nThe test fails.",
    "a word that begins alike": "assistantships are paid at 20 hours.",
    "a sentence of Granite's": "Here is my thought process: I looked at calc.py, then at its test. Nine are left.",
    "a template": "{%- for m in x %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>' }}{%- endfor %}",
    "a table": "| model | mark |\n|---|---|\n| Kimi | `<\\|tool_calls_section_begin\\|>` |\n| GLM | `<tool_call>` |",
    "a diff": "```diff\n-<tool_call>\n+<tool_calls>\n```\nThat is the change.",
    "an expression": "Use r'<tool_call>(.*?)</tool_call>' with re.DOTALL.",
}


@pytest.mark.parametrize("text", PROSE.values(), ids=PROSE)
def test_an_answer_about_the_forms_stays_as_it_is(text: str) -> None:
    assert spoken(text) == (text, "")
    assert written_calls(text, TOOLS) is None
    assert broken_reply(text, "", "stop", TOOLS, native=True, lost_before=False) is None


NOTHING = (
    "(empty content)",
    "[No response generated]",
    "<empty response>",
    "(no content).",
    "(calls)",
    "(continues)",
)
SOMETHING = (
    "(empty)ness is a word",
    "No output.",
    "[1, 2]",
    "(see the file)",
    "(empty content) is what the server sent",
)


@pytest.mark.parametrize("text", NOTHING)
def test_words_in_the_place_of_nothing_are_no_answer(text: str) -> None:
    found = broken_reply(text, "", "stop", TOOLS, native=True, lost_before=False)
    assert found is not None
    assert found.rule == Rule.FORM_NO_ANSWER


@pytest.mark.parametrize("text", SOMETHING)
def test_a_short_answer_is_one(text: str) -> None:
    assert broken_reply(text, "", "stop", TOOLS, native=True, lost_before=False) is None


LEAST, MOST, LONGEST = 500, 600, 6_000
"""Texts that there must be, texts that are read, and characters of one."""


def documents() -> Iterator[Path]:
    """Documents and chat templates of what is installed and of this program, and what litellm says of models' forms."""
    yield from sorted(ROOT.glob("*.md"))
    yield from sorted((ROOT / "docs").glob("*.md"))
    packages = {Path(str(distribution.locate_file(""))) for distribution in metadata.distributions()}
    for folder in sorted(packages):
        known = folder / "litellm"
        for about in (known / "litellm_core_utils" / "prompt_templates", known / "llms"):
            yield from sorted(about.glob("**/*.py"))
        for inside, _, names in os.walk(folder):
            for name in sorted(names):
                if name == "METADATA" or name.endswith((".md", ".rst", ".j2", ".jinja", ".jinja2")):
                    yield Path(inside, name)


def texts() -> Iterator[tuple[Path, str]]:
    seen = set[str]()
    for path in documents():
        text = path.read_text("utf-8", "replace")[:LONGEST]
        if text.strip() and text not in seen:
            seen.add(text)
            yield path, text


def test_no_document_is_taken_for_a_call_or_a_thought() -> None:
    taken, read = [], 0
    for path, text in islice(texts(), MOST):
        read += 1
        said = spoken(text)
        answer = broken_reply(text, "", "stop", TOOLS, native=True, lost_before=False) is None
        if said.reasoning or said.text.strip() != text.strip() or written_calls(text, TOOLS) or not answer:
            taken.append(path)
    assert taken == []
    assert read >= LEAST


THOUGHTS: dict[str, tuple[str, str, str]] = {
    "the end alone": ("Is it nine? Yes.\n</think>\n\nNine.", "Nine.", "Is it nine? Yes."),
    "the end at a sentence's end": ("Is it nine? Yes.</think>Nine.", "Nine.", "Is it nine? Yes."),
    "the end after very much": (
        "Is it nine? " * 5_000 + "\n</think>\nNine.",
        "Nine.",
        ("Is it nine? " * 5_000).strip(),
    ),
    "nothing before the end": ("</think>\n\nNine.", "Nine.", ""),
    "an open fence in the thoughts": (
        "Try:\n```python\nx = 9\n\n</think>\n\nNine.",
        "Nine.",
        "Try:\n```python\nx = 9",
    ),
    "tags in backticks behind them": ("Hm.\n</think>\nWrite `</think>`.", "Write `</think>`.", "Hm."),
    "another tag": ("Nine?\n</thinking>\nNine.", "Nine.", "Nine?"),
    "Magistral": ("Nine?\n[/THINK]Nine.", "Nine.", "Nine?"),
    "Kimi": ("Nine?\n◁/think▷Nine.", "Nine.", "Nine?"),
    "Seed": ("Nine?\n</seed:think>\nNine.", "Nine.", "Nine?"),
    "Command": ("Nine?<|END_THINKING|><|START_RESPONSE|>Nine.<|END_RESPONSE|>", "Nine.", "Nine?"),
    "Granite": ("Here is my thought process:\nNine?\n\nHere is my response:\nNine.", "Nine.", "Nine?"),
    "thoughts in the middle": ("I count.\n<think>\nNine?\n</think>\nNine.", "I count.\nNine.", "Nine?"),
    "an answer in tags": ("Nine?\n</think>\n<answer>\nNine.\n</answer>", "Nine.", "Nine?"),
    "Harmony": (
        "<|channel|>analysis<|message|>Nine?<|end|><|start|>assistant<|channel|>final<|message|>Nine.<|return|>",
        "Nine.",
        "Nine?",
    ),
    "Harmony without its tokens": ("analysisNine?assistantfinalNine.", "Nine.", "Nine?"),
    "Harmony, thoughts alone": ("<|channel|>analysis<|message|>Nine?", "", "Nine?"),
    "the end of a turn": ("Nine.<|im_end|>", "Nine.", ""),
    "two ends of a turn": ("Nine.\n<|eot_id|></s>", "Nine.", ""),
    "DeepSeek's end": ("Nine.<｜end▁of▁sentence｜>", "Nine.", ""),
    "the beginning of a turn": ("<|im_start|>assistant\nNine.<|im_end|>\n", "Nine.", ""),
    "a turn that is made up": ("Nine.<|im_end|>\n<|im_start|>user\nAnd ten?<|im_end|>", "Nine.", ""),
    "Gemma's turn": ("Nine.<end_of_turn>\n<start_of_turn>user\nAnd ten?", "Nine.", ""),
}


@pytest.mark.parametrize(("sent", "text", "reasoning"), THOUGHTS.values(), ids=THOUGHTS)
def test_thoughts_and_tokens_are_told_from_the_answer(sent: str, text: str, reasoning: str) -> None:
    said = spoken(sent)
    assert (said.text.strip(), said.reasoning.strip()) == (text, reasoning)


def test_an_answer_that_a_server_took_for_thoughts_is_the_answer() -> None:
    assert spoken("", "Nine? Yes.\n</think>\n\nNine.") == ("Nine.", "Nine? Yes.\n")
    assert spoken("", "Nine? Yes.") == ("", "Nine? Yes.")
    assert spoken("Nine.", "Nine?\n</think>\nTen?") == ("Nine.", "Nine?\n</think>\nTen?")


NAMES: dict[str, str] = {
    "bash<|channel|>commentary": "bash",
    "bash<|channel|>commentary<|constrain|>json": "bash",
    "<|channel|>commentary to=functions.bash": "bash",
    "functions.bash": "bash",
    "functions.bash:0": "bash",
    "bash:12": "bash",
    "default_api.read_file": "read_file",
    "default_api:read_file": "read_file",
    "<|tool_call_begin|>functions.bash:1<|tool_call_argument_begin|>": "bash",
    "<｜tool▁call▁begin｜>bash": "bash",
    "bash[ARGS]": "bash",
    "bash<arg_key>": "bash",
    '"bash"': "bash",
    "Bash": "bash",
    "READ_FILE": "read_file",
    "ReadFile": "read_file",
    "read-file": "read_file",
    "shell<|channel|>commentary": "shell",
    "no such tool": "no such tool",
    "fly": "fly",
    "": "",
}


@pytest.mark.parametrize(("name", "tool"), NAMES.items(), ids=[repr(name) for name in NAMES])
def test_a_name_with_tokens_means_the_one_tool_that_it_holds(name: str, tool: str) -> None:
    assert meant(name, TOOLS) == tool


def test_a_name_that_could_mean_two_tools_means_none() -> None:
    assert meant("Look", ("look", "LOOK")) == "Look"
    assert meant("look<|channel|>seek", ("look", "seek")) != "seek"


@pytest.mark.parametrize(
    "generation",
    [
        'bash{"command": "ls"}</function>',
        '<function=bash={"command": "ls"}</function>',
        CALL,
        f"```\n{CALL}\n```",
    ],
)
def test_what_a_server_could_not_read_is_read_as_the_call_that_it_is(generation: str) -> None:
    found = calls_of(generation, TOOLS)
    assert found is not None
    assert [(call.name, json.loads(call.arguments)) for call in found.calls] == [bash("ls")]


ALPHABET = [
    *'{}[]"<>:,=/`abn \n|_()',
    "<tool_call>",
    "</think>",
    "<|channel|>",
    "call:bash{",
    "bash(",
    "```",
    "to=",
]


@given(st.lists(st.sampled_from(ALPHABET), max_size=40).map("".join), st.booleans())
def test_reading_a_reply_never_fails(text: str, cut: bool) -> None:
    said = spoken(text)
    found = written_calls(said.text, TOOLS, cut=cut)
    assert found is None or found.calls
    broken_reply(said.text, said.reasoning, "stop", TOOLS, native=True, lost_before=False)


HOSTILE = {
    "thoughts that never end": ("", "<think>\n"),
    "keys without values": ("<tool_call>", "a<arg_key>b</arg_key><arg_value>"),
    "blank lines in a parameter": ("<function=bash>\n<parameter=a>\n", " \n"),
    "channels": ("", "<|channel|>analysis<|message|>"),
    "brackets": ("call:bash{", "a:["),
}


@pytest.mark.parametrize(("begin", "again"), HOSTILE.values(), ids=HOSTILE)
def test_a_long_text_of_marks_is_read_in_one_pass(begin: str, again: str) -> None:
    # What tries each mark against the rest of the text takes minutes for these, and not a second.
    text = begin + again * (150_000 // len(again))
    said = spoken(text)
    assert written_calls(said.text, TOOLS) is None
