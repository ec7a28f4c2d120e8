"""The docstrings under the fields of a class, for what is made from them: documents, the settings screen."""

from __future__ import annotations

import ast
import inspect
import itertools


def field_notes(model: type) -> dict[str, str]:
    """The docstring under each field of `model` itself, on one line, read from the source."""
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
