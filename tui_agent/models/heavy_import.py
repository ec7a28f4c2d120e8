"""Importing a large library in less time than a plain `import` takes."""

from __future__ import annotations

import gc
import types
from typing import Any

_SLOTS = 70_000
"""Places for values in a frame, of eight bytes each; CPython makes a megabyte of them."""


def imported(function: Any) -> Any:
    """Call a function that imports a library and returns it, without collecting garbage meanwhile.

    An import drops hardly anything, and is searched for garbage forty times: a sixth of its time.
    """
    gc.disable()
    try:
        return _with_room(function)
    finally:
        gc.freeze()
        gc.enable()


def _with_room(function: Any) -> Any:
    """Call a function that is written in Python, with room for the frames of all that it calls in one block of memory.

    CPython gives frames 16 KB at a time. If an import within imports comes to the end of them, each call there maps
    and unmaps memory: ten thousand times while litellm is imported.
    """
    code = function.__code__.replace(co_stacksize=_SLOTS)
    return types.FunctionType(code, function.__globals__, closure=function.__closure__)()
