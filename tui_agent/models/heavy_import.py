"""Importing a large library in less time than a plain `import` takes."""

from __future__ import annotations

import gc
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
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


@contextmanager
def packages_when_asked(top: str) -> Iterator[None]:
    """While inside, the package `top` and those in it run their own code only when one of their names is asked for.

    A module in such a package can be imported without the package's hundreds of others.
    """
    finder = _FinderWhenAsked(top)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


@contextmanager
def as_if_missing(name: str) -> Iterator[None]:
    """While inside, a module that is not imported yet cannot be: for libraries that can do without it."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # so says the import system's own reference
    try:
        yield
    finally:
        del sys.modules[name]


class _FinderWhenAsked:
    def __init__(self, top: str) -> None:
        self._top = top

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`: None leaves a module to the usual finders."""
        if name != self._top and not name.startswith(f"{self._top}."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None or spec.submodule_search_locations is None:
            return None
        spec.loader = _LoaderWhenAsked(spec.loader)
        return spec


class _LoaderWhenAsked(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def exec_module(self, module: types.ModuleType) -> None:
        """Have the package's code run by the first look for a name that it lacks."""
        one_at_a_time = threading.RLock()
        begun = False

        def asked(name: str) -> Any:
            nonlocal begun
            with one_at_a_time:
                if not begun and not name.startswith("__"):
                    begun = True
                    self._loader.exec_module(module)
            if name in module.__dict__:
                return module.__dict__[name]
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        module.__dict__["__getattr__"] = asked
