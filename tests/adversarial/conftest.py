"""The fixtures of the attacks: a workspace for tools, and the command line in a home of its own."""

from tests.cli.conftest import cli as cli
from tests.console.conftest import start as start
from tests.tools.conftest import box as box
