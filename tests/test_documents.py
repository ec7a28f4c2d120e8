"""What documents and texts of the program name is there: pages, their sections, files and folders."""

from __future__ import annotations

import inspect
import re
import shlex
import textwrap
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path

import pytest

from tui_agent import cli
from tui_agent.config.settings import load_settings

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
DOCUMENTS = sorted(
    {
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("tests/**/README.md"),
        *ROOT.glob("tui_agent/**/README.md"),
        *ROOT.glob("packaging/**/*.md"),
    }
    - {ROOT / "docs/lab/playbook/text.md"}  # the beginning of docs/lab/PLAYBOOK.md, whose links begin there
)
ROOTS = (ROOT, ROOT / "tui_agent", ROOT / "tui_agent" / "core", ROOT / "tui_agent" / "tools")
"""Where a path of a document may begin; in a section about one folder its files are named alone."""
ROOMS = "tui_agent|tests|docs|packaging|benchmarks|core|runtime|store|models|formats|console|cli|tools|lab"


@cache
def prose(document: Path) -> str:
    """The text without blocks of code and comments."""
    return re.sub(r"```.*?```|~~~.*?~~~|<!--.*?-->", "", document.read_text("utf-8"), flags=re.DOTALL)


def links(document: Path) -> set[tuple[str, str]]:
    """Pages and sections that are linked to, without other sites; "" stands for the page itself."""
    targets = {target for target in re.findall(r"\]\(([^)\s]+)\)", prose(document)) if "://" not in target}
    return {(page, section) for page, _, section in (target.partition("#") for target in targets)}


@cache
def sections(document: Path) -> frozenset[str]:
    """The names by which links reach the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(document), re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return frozenset(re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain)


def paths(text: str) -> set[str]:
    """Code that looks like a path of this project: `core/decision/decide.py`, `tests/cases/`."""
    return set(re.findall(rf"`((?:{ROOMS})/[\w./]*)`", text))


def commands(document: Path) -> Iterator[str]:
    """What stands behind `agent-tui` in code, line by line; a line that goes on in the next one is one."""
    text = document.read_text("utf-8").replace("\\\n", " ")
    for code in re.findall(r"```.*?```|`[^`\n]+`|^    .+$", text, re.DOTALL | re.MULTILINE):
        yield from re.findall(r"(?:^|[|;&/$] ?)\s*`?agent-tui +([^|`\n]+)", code, re.MULTILINE)


@cache
def has_option(command: str, option: str) -> bool:
    """True if the command or one of its verbs has the option."""
    module = cli.command_module(command)
    return module.parser().takes_value(option) is not None or f'"{option}"' in inspect.getsource(module)


def named(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_links_lead_to_pages_and_sections_that_are_there(document: Path) -> None:
    missing = []
    for page, section in sorted(links(document)):
        target = (document.parent / page).resolve() if page else document
        known = target.exists() and (not section or section in sections(target))
        if not known:
            missing.append(f"{page}#{section}")
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_paths_in_the_text_are_there(document: Path) -> None:
    found = paths(document.read_text("utf-8"))
    roots = (*ROOTS, document.parent)
    assert [path for path in found if not any((root / path).exists() for root in roots)] == []


def test_some_other_document_leads_to_every_page() -> None:
    reached = {
        (document.parent / page).resolve() for document in DOCUMENTS for page, _ in links(document) if page
    }
    alone = {named(page) for page in DOCUMENTS if page.is_relative_to(ROOT / "docs") and page not in reached}
    assert alone == set()


def test_pages_that_the_program_names_are_there() -> None:
    texts = [*ROOT.glob("tui_agent/**/*.py"), *ROOT.glob("docs/*.py"), ROOT / "pyproject.toml"]
    found = {
        f"{path.name}: {page}"
        for path in texts
        for page in re.findall(r"(?<![\w./-])docs/[\w/]+\.md\b", path.read_text("utf-8"))
        if not (ROOT / page).exists()
    }
    assert found == set()


def test_commands_in_the_text_are_there_with_their_options() -> None:
    wrong, seen = [], 0
    for document in DOCUMENTS:
        for said in commands(document):
            words = shlex.split(said, comments=True)
            first = next((word for word in words if not word.startswith("-")), "")
            command = first if first in cli.COMMANDS else "console"
            given = {word.partition("=")[0] for word in takewhile("--".__ne__, words) if word[:2] == "--"}
            wrong += [f"{named(document)}: {said}" for one in given if not has_option(command, one)]
            seen += 1
    assert wrong == []
    assert seen > 100


def test_configuration_in_the_text_is_taken_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = (ROOT / "docs/reference/SETTINGS.md").read_text("utf-8")
    texts = [
        textwrap.dedent(block) for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", settings, re.MULTILINE)
    ]
    for page in PAGES:
        texts += re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    file = tmp_path / "config.toml"
    monkeypatch.setenv("AGENT_TUI_CONFIG", str(file))
    for text in texts:
        file.write_text(text)
        load_settings({})
    assert len(texts) > 10


def test_a_person_reads_no_more_than_fifteen_pages_and_the_readme_leads_to_each() -> None:
    """Pages that scripts write stand apart, in docs/reference; those of the laboratory in docs/lab."""
    assert len(PAGES) <= 15
    for page in ROOT.glob("docs/reference/*.md"):
        assert "Do not edit. -->" in page.read_text("utf-8"), page.name
    assert {f"docs/{page.name}" for page in PAGES} <= {page for page, _ in links(ROOT / "README.md")}
    assert not [page.name for page in PAGES if "Do not edit. -->" in page.read_text("utf-8")]
