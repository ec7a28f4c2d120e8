"""The docstrings under the fields of a class, for what is made from them: documents, the settings screen."""

from __future__ import annotations

import ast
import inspect
import itertools

from tui_agent.core.recovery.parameters import Parameters


def field_notes(model: type) -> dict[str, str]:
    """Read the note under each field of `model`, and of the parameters that it is put together from, on one line."""
    notes: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if kind is model or issubclass(kind, Parameters):
            notes |= _own_notes(kind)
    return notes


def _own_notes(model: type) -> dict[str, str]:
    parsed = ast.parse(inspect.getsource(model).strip())
    body = next(node for node in parsed.body if isinstance(node, ast.ClassDef)).body
    notes: dict[str, str] = {}
    for field, note in itertools.pairwise(body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(note, ast.Expr)
            and isinstance(note.value, ast.Constant)
        ):
            notes[field.target.id] = " ".join(str(note.value.value).split())
    return notes
