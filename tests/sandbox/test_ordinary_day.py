"""What is done on an ordinary day works within the sandbox, as long as the programs for it are here."""

from __future__ import annotations

import shutil

import pytest

from tests.sandbox.test_planted import Desk, empty

__all__ = ["empty"]

POOL = "import multiprocessing as m\nif __name__ == '__main__': print(m.Pool(2).map(abs, [-1, 2]))"
WORK = {
    "python3": "python3 -m venv --without-pip v && v/bin/python -c 'print(1)'",
    "node": "echo \"require('child_process').fork('b.js').on('exit', process.exit)\" > a.js; : > b.js; node a.js",
    "npm": "npm init -y && npm pkg set scripts.test='node -e 1' && npm install --offline && npm test",
    "cargo": "cargo new -q hello && cd hello && cargo build -q --offline && ./target/debug/hello",
    "make": "printf 'all:\\n\\techo made > out\\n' > Makefile && make && cat out",
    "curl": "python3 -m http.server 8123 --bind 127.0.0.1 & curl -sf --retry 9 --retry-connrefused 127.0.0.1:8123/",
    "mktemp": "f=$(mktemp) && echo x > $f && cat $f && mkdir -p ~/.cache/tool && echo x > ~/.cache/tool/y",
    "git": "git init -q && echo a > a && git add . && git -c user.name=x -c user.email=x@x.x commit -qm x && git log",
}


QUICK = {"python3", "make", "mktemp", "git"}


@pytest.mark.parametrize(
    "program", [pytest.param(one, marks=() if one in QUICK else pytest.mark.slow) for one in WORK]
)
def test_it_works(empty: Desk, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not here")
    if program == "curl" and empty.sandbox.mechanism == "landlock":
        pytest.skip("there is no loopback under Landlock")
    ended, text = empty.command(WORK[program])
    assert (ended.code, ended.taken) == (0, ()), text


def test_processes_share_work(empty: Desk) -> None:
    (empty.workspace / "pool.py").write_text(POOL)
    ended, text = empty.command("python3 pool.py")
    assert (ended.code, text) == (0, "[1, 2]\n")
