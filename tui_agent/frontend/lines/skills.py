"""The skills that the agent can read, and those that are left out: the lines that `/skills` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.frontend.lines.styled import Line, Span, clip, wrap
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.tools.skills import Skills


def skill_lines(found: Skills, width: int) -> list[Line]:
    """A skill with its description and place, then what is wrong with others."""
    lines: list[Line] = []
    for skill in found.skills:
        whose = "yours" if skill.personal else "of the checkout"
        lines.append(
            clip((Span(skill.name, "accent bold"), Span(f"  {whose} · {skill.place}", "muted")), width)
        )
        lines += [(Span(f"  {text}"),) for text in wrap(one_line(skill.description, 1_100), width - 2)]
    for bad in found.bad:
        lines.append(clip((Span("✗ left out ", "warn bold"), Span(bad.place)), width))
        lines += [(Span(f"  {text}", "warn"),) for text in wrap(one_line(bad.reason, 400), width - 2)]
    if not lines:
        lines.append((Span("There is none.", "bold"),))
    hint = (
        "A skill is a folder with a SKILL.md, which begins with its name and description. It lies in "
        ".agent-tui/skills, .agents/skills or .claude/skills of the workspace, or in skills beside your config.toml. "
        "/skills NAME asks for one."
    )
    return [*lines, (), *((Span(text, "muted"),) for text in wrap(hint, width))]
