"""What holds for every test: the slowest begin first, what is imported once is neither compiled nor looked through
again, and `python3` is the Python that runs the tests.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

# Commands of the tests run `python3`; what a version manager puts there takes 0.1 s to find an interpreter, and may
# find another one.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])

# Where no compiled modules are written, every process that is started compiles the whole package, and every worker
# rewrites all assertions, at each run: a third of the time of all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

gc.disable()  # until all tests are collected

FIRST = ("test_quality.py",)
"""Files with single tests so slow that one process would still be busy with them when the others are done."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in FIRST)


def pytest_collection_finish() -> None:
    """Without this the garbage collector takes a fifth of the time of all tests."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()
