"""The approval card: it shows the whole of what a call would do, and takes one of five answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.widgets import Input

from tui_agent.console.cards.card import Card
from tui_agent.console.cards.card_body import CardBody, Passage, diff_passages
from tui_agent.console.cards.choices import Choice, Choices
from tui_agent.console.cards.editor import ArgumentsEditor
from tui_agent.terminal_text import reveal

if TYPE_CHECKING:
    from textual import events
    from textual.widget import Widget

    from tui_agent.console.operator import ApprovalQuestion

CHOICES = (
    Choice("y", "once", "once"),
    Choice("a", "this session", "session"),
    Choice("w", "this workspace, always", "always"),
    Choice("n", "deny", "deny"),
    Choice("e", "edit", "edit"),
)


class ApprovalCard(Card):
    """`y` once, `a` for this session, `w` for good in this workspace, `n` deny with a reason, `e` edit first."""

    DEFAULT_CSS = """
    ApprovalCard {
        & Input { display: none; border: none; padding: 0; height: 1; margin-top: 1; background: $background; }
        &.-denying Input { display: block; }
        &.-editing CardBody, &.-editing Choices, &.-denying Choices { display: none; }
    }
    """

    question: ApprovalQuestion

    def __init__(self, question: ApprovalQuestion) -> None:
        asked = question.asked
        super().__init__(question, f"Allow {reveal(asked.tool)}?")

    def compose(self) -> ComposeResult:
        """The subject, what the session choice covers, the choices; the fields that two of them open."""
        asked = self.question.asked
        remark = (
            f"a and w cover {asked.covers}"
            if asked.rules
            else f"asks because: {asked.why}"
            if asked.why
            else ""
        )
        remarks = [Passage(remark, "muted")] if remark else []
        yield CardBody([*subject(asked.preview, asked.input), *remarks])
        remembering = {"session", "always"}
        choices = tuple(choice for choice in CHOICES if asked.rules or choice.value not in remembering)
        yield Choices(choices)
        yield Input(placeholder="Why not? The model reads it. Enter denies, Esc goes back.", compact=True)
        yield ArgumentsEditor(asked.input)

    def picked(self, value: str) -> None:
        if value == "deny":
            self.add_class("-denying")
            self.query_one(Input).focus()
        elif value == "edit":
            self.add_class("-editing")
            self.query_one(ArgumentsEditor).open()
        elif self.shows_all():
            self._reply(value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Deny, with the reason as typed."""
        event.stop()
        self._reply("deny", reason=event.value.strip())

    def on_arguments_editor_accepted(self, event: ArgumentsEditor.Accepted) -> None:
        """Run the call once, as edited."""
        event.stop()
        changed = event.arguments != self.question.asked.input
        self._reply("once", arguments=event.arguments if changed else None)

    def on_arguments_editor_left(self, event: ArgumentsEditor.Left) -> None:
        event.stop()
        self._back()

    def on_key(self, event: events.Key) -> None:
        """Esc in the reason goes back to the choices."""
        if event.key == "escape" and self.has_class("-denying"):
            event.stop()
            event.prevent_default()
            self._back()
        elif event.key in {"home", "end"} and self.has_class("-denying"):
            event.prevent_default()

    def entrance(self) -> Widget:
        """Where the operator was: in the reason, in the editor, or at the choices."""
        if self.has_class("-denying"):
            return self.query_one(Input)
        if self.has_class("-editing"):
            return self.query_one(ArgumentsEditor).entrance()
        return self.query_one(Choices)

    def _back(self) -> None:
        self.remove_class("-denying", "-editing")
        self.query_one(Choices).focus()

    def _reply(self, decision: str, *, reason: str = "", arguments: dict[str, Any] | None = None) -> None:
        from tui_agent.runtime.operator import ApprovalReply

        match decision:
            case "once" | "session" | "always" | "deny":
                self.settle(ApprovalReply(decision, reason=reason, input=arguments))
            case _:
                raise ValueError(decision)


def subject(preview: str, arguments: Mapping[str, Any]) -> Iterable[Passage]:
    """The preview, then every argument that it does not show in full."""
    if preview:
        yield from diff_passages(preview.rstrip("\n"))
    hidden = {name: value for name, value in arguments.items() if not _shown(value, preview)}
    if hidden:
        if preview:
            yield Passage("")
        yield Passage(json.dumps(hidden, indent=2, ensure_ascii=False, default=str), "code", verbatim=True)
    elif not preview:
        yield Passage("No arguments.", "muted")


def _shown(value: object, preview: str) -> bool:
    """Whether every line of `value` stands in the preview: as it is, or as a line of a diff."""
    if not preview or not isinstance(value, str | int | float):
        return False
    text = str(value)
    if text in preview:
        return True
    lines = {line[1:] for line in preview.split("\n")}
    return all(line in lines for line in text.split("\n") if line)
