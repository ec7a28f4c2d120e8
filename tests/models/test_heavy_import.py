"""What a library does not import that a chat does not need, and that it is there when it is asked for."""

import subprocess
import sys
from pathlib import Path

import pytest

from tui_agent.models.heavy_import import as_if_missing, packages_when_asked

_PACKAGE = {
    "__init__.py": "from .large import Large\nfrom .circle import Circle\n",
    "large.py": "class Large: pass\n",
    "circle.py": "import quiet_types\nfrom . import large\nclass Circle(large.Large): pass\n",
    "small/__init__.py": "from .leaf import LEAF\n",
    "small/leaf.py": "LEAF = 1\n",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a package whose own code imports all that is in it."""
    for name, code in _PACKAGE.items():
        file = tmp_path / "quiet_types" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.startswith("quiet_types")]:
        monkeypatch.delitem(sys.modules, name)
    return "quiet_types"


def test_a_module_is_imported_without_the_package_around_it_until_a_name_of_that_is_asked_for(
    package: str,
) -> None:
    with packages_when_asked(package):
        import quiet_types.small.leaf
    assert quiet_types.small.leaf.LEAF == 1
    assert f"{package}.large" not in sys.modules
    from quiet_types.small import LEAF

    assert LEAF == 1
    assert quiet_types.Circle.__mro__[1] is quiet_types.Large
    with pytest.raises(AttributeError, match="no attribute 'Square'"):
        _ = quiet_types.Square


def test_a_module_that_is_not_imported_yet_is_missing_for_a_while(package: str) -> None:
    with as_if_missing(package), pytest.raises(ImportError):
        import quiet_types
    import quiet_types

    with as_if_missing(package):
        from quiet_types import Large
    assert Large is quiet_types.Large


_LOADED = """
import sys
from tui_agent.models import openai_client
openai = openai_client.load()
late = "aiohttp", "openai.types.responses.response", "openai.types.batch"
assert not [name for name in late if name in sys.modules]
assert openai.types.Batch.__name__ == "Batch" and "aiohttp" not in sys.modules
import aiohttp
"""


def test_the_client_imports_no_types_of_other_endpoints_and_no_second_http_library() -> None:
    subprocess.run([sys.executable, "-c", _LOADED], check=True)
