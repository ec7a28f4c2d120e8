"""What an attack is: a test that says what is tried and what must hold, so that documents can be made of it.

Each can be run again by its name: `pytest tests/adversarial/test_walls.py -k fifo`. The slow ones are left out unless
asked for: `pytest -m slow`.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

FOLDER = Path(__file__).parent
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Attack:
    """One attack. `fell` says what gave way when it was first tried; "" where it held."""

    name: str
    tried: str
    holds: str
    fell: str = ""
    slow: bool = False
    value: Any = None
    """What a test that many attacks share needs to know of this one."""


def attack(tried: str, holds: str, *, fell: str = "", slow: bool = False) -> Callable[[F], F]:
    """Marks a test as one attack, named like it."""

    def mark(function: F) -> F:
        made = Attack(function.__name__.removeprefix("test_"), tried, holds, fell, slow)
        function.attacks = (made,)
        return pytest.mark.slow(function) if slow else function

    return mark


def attacks(*rows: Attack) -> Callable[[F], F]:
    """Marks a test as many attacks, one a row; it gets them as `row`."""

    def mark(function: F) -> F:
        function.attacks = rows
        marked = [
            pytest.param(row, id=row.name, marks=[pytest.mark.slow] if row.slow else []) for row in rows
        ]
        return pytest.mark.parametrize("row", marked)(function)

    return mark


def groups() -> list[str]:
    """The files of attacks, by the subject in their names."""
    return sorted(
        path.stem.removeprefix("test_") for path in FOLDER.glob("test_*.py") if path.stem != "test_document"
    )


def all_attacks() -> Iterator[tuple[str, Attack]]:
    """Every attack with its group, in the order of the files."""
    for group in groups():
        for item in vars(_module(group)).values():
            for made in getattr(item, "attacks", ()):
                yield group, made


def about(group: str) -> str:
    """What a group's attacks are, in a sentence: the docstring of its file."""
    return " ".join((_module(group).__doc__ or "").split())


def _module(group: str) -> Any:
    name = f"tests.adversarial.test_{group}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"test_{group}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]
