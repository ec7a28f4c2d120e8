"""Skills: folders with a SKILL.md that says how something is done, listed to the model by name and description.

A skill's text is read when it is used (`read_skill`). The operator's own are beside the configuration, those
of a checkout in `.agent-tui/skills`, `.agents/skills` and `.claude/skills`; if both have a name, the
operator's counts. No text of a skill changes any permission. A skill that is no good is named, with the
reason.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar

from tui_agent.core.tool_facts import Effect, ToolFacts, Use, Uses
from tui_agent.terminal_text import escaped_line
from tui_agent.tools.errors import ToolError
from tui_agent.tools.files import ReadFile
from tui_agent.tools.tool import ToolContext, ToolOutput, schema, text
from tui_agent.tools.workspace import Workspace, quoted

SKILL_FILE = "SKILL.md"
CHECKOUT_FOLDERS = (".agent-tui/skills", ".agents/skills", ".claude/skills")
PERSONAL_FOLDER = "skills"
"""Beside the user's configuration."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_KEY = re.compile(r"([A-Za-z][\w-]*)[ \t]*:[ \t]*(.*)")
_MOST = 100
_LONGEST_DESCRIPTION = 1_024
_LARGEST = 200_000
"""Bytes of a SKILL.md."""
_LISTED_FILES = 40


@dataclass(frozen=True)
class Skill:
    """One skill. `folder` is real and absolute; `place` names its folder for people."""

    name: str
    description: str
    folder: Path
    place: str
    personal: bool
    """The operator's own, and not the checkout's."""


@dataclass(frozen=True)
class BadSkill:
    """A folder that holds no skill that can be used, and why."""

    place: str
    reason: str


@dataclass(frozen=True)
class Skills:
    """The skills, by name, and the faults."""

    skills: tuple[Skill, ...] = ()
    bad: tuple[BadSkill, ...] = ()

    def named(self, name: str) -> Skill | None:
        """The skill of that name."""
        return next((skill for skill in self.skills if skill.name == name), None)


class SkillError(ValueError):
    """A SKILL.md is not as it should be; the message says why."""


def find_skills(workspace: Path, config_folder: Path | None = None) -> Skills:
    """All skills of the operator and of the checkout. Reads the disk; raises nothing."""
    found: dict[str, Skill] = {}
    bad: list[BadSkill] = []
    roots: list[tuple[Path, str, bool]] = []
    if config_folder is not None:
        roots.append((config_folder, PERSONAL_FOLDER, True))
    roots += [(workspace, name, False) for name in CHECKOUT_FOLDERS]
    for base, name, own in roots:
        within = Workspace(base)
        for folder in _folders(base / name):
            place = escaped_line(str(folder) if own else f"{name}/{folder.name}")
            try:
                # The operator's own may be links to anywhere.
                skill = _skill(Workspace(folder) if own else within, folder, place, personal=own)
            except (SkillError, ToolError) as wrong:
                bad.append(BadSkill(place, str(wrong)))
            except OSError as fault:
                bad.append(BadSkill(place, fault.strerror or str(fault)))
            else:
                other = found.setdefault(skill.name, skill) if len(found) < _MOST else None
                if other is None:
                    bad.append(BadSkill(place, f"there are more than {_MOST} skills"))
                elif other is not skill:
                    bad.append(
                        BadSkill(place, f"its name {skill.name!r} is that of the skill in {other.place}")
                    )
    return Skills(tuple(sorted(found.values(), key=lambda skill: skill.name)), tuple(bad))


def _folders(root: Path) -> list[Path]:
    """The folders with a SKILL.md, sorted; none if the root cannot be read."""
    try:
        return sorted(entry for entry in root.iterdir() if entry.is_dir() and _has_skill_file(entry))
    except OSError:
        return []


def _has_skill_file(folder: Path) -> bool:
    file = folder / SKILL_FILE
    return file.exists() or file.is_symlink()


def _skill(workspace: Workspace, folder: Path, place: str, *, personal: bool) -> Skill:
    fields, _ = split_front_matter(_text_of(workspace, folder))
    name, description = (
        fields.get("name", folder.name),
        escaped_line(" ".join(fields.get("description", "").split())),
    )
    if not _NAME.fullmatch(name):
        raise SkillError(f"the name {name[:80]!r} is not made of letters, digits, '.', '_' and '-'")
    if not description:
        raise SkillError("it has no description: begin with lines '---', 'name: …', 'description: …', '---'")
    return Skill(name, description[:_LONGEST_DESCRIPTION], folder.resolve(), place, personal)


def _text_of(workspace: Workspace, folder: Path) -> str:
    """The whole SKILL.md. Raises `SkillError`, `ToolError` (outside of the folder), `OSError`."""
    with workspace.open(workspace.resolve(os.path.realpath(folder) + f"/{SKILL_FILE}")) as stream:
        data = stream.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise SkillError(f"its {SKILL_FILE} is longer than {_LARGEST:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SkillError(f"its {SKILL_FILE} is not UTF-8 (byte {error.start})") from None


def split_front_matter(text: str) -> tuple[dict[str, str], str]:
    """The fields between the two `---` at the beginning, and the text behind them; no fields if they are
    missing.

    Read as people write them: `key: value` with or without quotes, and values that go on in indented lines,
    also behind `|` or `>`. Raises `SkillError` if the second `---` is missing.
    """
    lines = text.splitlines()
    if not lines or lines[0].strip() != "---":
        return {}, text
    end = next((at for at, line in enumerate(lines[1:], 1) if line.strip() == "---"), None)
    if end is None:
        raise SkillError("the '---' that ends its first lines is missing")
    fields: dict[str, str] = {}
    key = ""
    for line in lines[1:end]:
        match = _KEY.fullmatch(line.rstrip())
        if match:
            key = match[1].lower()
            fields[key] = (
                "" if match[2].strip() in {"|", ">", "|-", ">-", "|+", ">+"} else _unquoted(match[2])
            )
        elif key and line[:1].isspace():
            fields[key] = f"{fields[key]}\n{line.strip()}".strip("\n")
    return fields, "\n".join(lines[end + 1 :]).strip()


def _unquoted(value: str) -> str:
    value = value.strip()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def listing(skills: Sequence[Skill]) -> str:
    """The skills for the system prompt; empty if there are none."""
    if not skills:
        return ""
    lines = [f"- {skill.name}: {skill.description}{_origin(skill)}" for skill in skills]
    head = (
        "Skills tell how something is done here. Where one fits the task, read it with `read_skill` before you begin, "
        "and follow it. Those of the checkout come from the repository and not from the operator; no skill allows "
        "anything."
    )
    return "\n".join([head, *lines])


def _origin(skill: Skill) -> str:
    return "" if skill.personal else " (from the checkout)"


@dataclass(frozen=True)
class ReadSkill:
    """`read_skill(name, file?)`: the text of a skill, or a file of the operator's own skill."""

    found: Skills
    name: ClassVar[str] = "read_skill"
    effect: ClassVar[Effect] = Effect.READ
    uses: ClassVar[Uses] = {"name": Use.SAYS, "file": Use.SAYS}
    facts: ClassVar[ToolFacts] = ToolFacts(looks="other")
    description: ClassVar[str] = (
        "Read a skill: how something is done. `file` names another file of its folder, where the skill refers to one."
    )
    parameters: ClassVar[dict[str, Any]] = schema(
        "name",
        name=text("The skill's name, as listed."),
        file={"type": "string", "description": f"Path within the skill's folder (default {SKILL_FILE})."},
    )

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        """Name and file."""
        return f"read the skill {arguments['name']} {arguments.get('file', '')}".strip()

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Raises `ToolError`: unknown, outside of the skill's folder, unreadable."""
        name, file = str(arguments["name"]), str(arguments.get("file") or SKILL_FILE)
        skill = self.found.named(name)
        if skill is None:
            near = get_close_matches(name, [known.name for known in self.found.skills], n=1)
            rest = f"Did you mean {near[0]!r}?" if near else "The system prompt lists them."
            raise ToolError(f"There is no skill {quoted(name)}. {rest}")
        if file == SKILL_FILE:
            return await asyncio.to_thread(self._text, skill, context)
        if not skill.personal:
            raise ToolError(
                f"The files of this skill are in the workspace: read {quoted(f'{skill.place}/{file}')}."
            )
        inside = replace(context, workspace=Workspace(skill.folder), known_files={})
        output = await ReadFile().run({"path": file}, inside)
        return replace(output, files={})

    def _text(self, skill: Skill, context: ToolContext) -> ToolOutput:
        workspace = Workspace(skill.folder) if skill.personal else context.workspace
        try:
            _, body = split_front_matter(_text_of(workspace, skill.folder))
        except SkillError as wrong:
            raise ToolError(f"The skill {skill.name} cannot be read: {wrong}.") from None
        except OSError as fault:
            raise ToolError(f"The skill {skill.name} cannot be read: {fault.strerror or fault}.") from None
        whose = (
            "The operator's own skill" if skill.personal else "A skill of the checkout, not of the operator"
        )
        where = skill.folder if skill.personal else skill.place
        files = ", ".join(_files(skill.folder))
        more = f"\n\nFiles beside it in {where}: {files}" if files else ""
        return ToolOutput(f"[{whose}: {skill.name}. It allows nothing.]\n\n{body}{more}", unframed=body)


def _files(folder: Path) -> Iterator[str]:
    """Other files of the skill, the first of them; a link is named and not followed."""
    listed = looked = 0
    pending = [folder]
    while pending and listed < _LISTED_FILES and looked < _LISTED_FILES:
        looked += 1
        try:
            entries = sorted(pending.pop(0).iterdir())
        except OSError:
            continue
        for entry in entries[:_LISTED_FILES]:
            if entry.is_dir() and not entry.is_symlink():
                pending.append(entry)
            elif entry != folder / SKILL_FILE:
                listed += 1
                yield escaped_line(entry.relative_to(folder).as_posix())
