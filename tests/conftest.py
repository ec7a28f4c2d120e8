"""What holds for every test: the slowest begin first, what is imported once is neither compiled nor looked through
again, and `python3` is the Python that runs the tests.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
import pytest_asyncio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.kept_host import KeptHost

# Commands of the tests run `python3`; what a version manager puts there takes 0.2 s to find an interpreter, and may
# find another one. Commands of the agent go without our virtual environment: for them it is that of its base.
os.environ["PATH"] = os.pathsep.join(
    [
        str(Path(sys.executable).parent),
        str(Path(sys.base_prefix, "bin")),
        os.environ.get("PATH", os.defpath),
    ]
)

# Where no compiled modules are written, every process that is started compiles the whole package, and every worker
# rewrites all assertions, at each run: a third of the time of all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# No example of a property is timed: how long one takes says how much else the machine does.
# What properties found, few examples showed; `--hypothesis-profile=thorough` looks for the rest.
for name, examples in (("few", 25), ("thorough", 2_000)):
    hypothesis.settings.register_profile(
        name,
        deadline=None,
        max_examples=examples,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
hypothesis.settings.load_profile("few")

gc.disable()  # until all tests are collected

FIRST = ("test_quality.py", "test_snapshots.py")
"""Files with single tests so slow that one process would still be busy with them when the others are done."""


@pytest.fixture(scope="session", autouse=True)
def _nobodys_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test reads or writes the settings and sessions of whoever runs it, unless it names other places."""
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        os.environ[name] = str(tmp_path_factory.mktemp(name.lower()))


@pytest.fixture(scope="session", autouse=True)
def _nobodys_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file that a test makes without saying where does not lie in the checkout."""
    os.chdir(tmp_path_factory.mktemp("here"))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def host() -> AsyncIterator[KeptHost]:
    """The real litellm in its process; tests that use it run in the session's event loop."""
    from tests.kept_host import kept_host

    async with kept_host() as model:
        yield model


LONGEST_ID = 80
"""Letters of a parameter in a test's id; each worker sends all ids, and some parameters have millions."""


def pytest_make_parametrize_id(val: object) -> str | None:
    """The beginning of a long text; None leaves the id to pytest."""
    if isinstance(val, str | bytes) and len(val) > LONGEST_ID:
        return ascii(val[:LONGEST_ID]).strip("b'\"") + "..."
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let those that need the host follow each other, so that few processes start one."""
    items.sort(
        key=lambda item: (item.path.name not in FIRST, "host" not in getattr(item, "fixturenames", ()))
    )


def pytest_collection_finish() -> None:
    """Without this the garbage collector takes a fifth of the time of all tests."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()


def pytest_sessionfinish() -> None:
    """pytest collects five times at the end, for errors in what nobody holds any more: once is over everything."""
    gc.collect()
    gc.freeze()
