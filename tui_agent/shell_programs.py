"""Programs that are known by their names alone: shells, wrappers of other programs, writers of the files they
get.

`sudo nice -n 5 timeout 60 pytest` runs pytest and ends as it ends; so does `poetry run pytest`, but poetry may fail by
itself. Shells and interpreters run what they are given. Recovery takes these lists as they are; approvals add what is
dangerous besides (`permissions.programs`). Pure, and bounded in time for any text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

WRAPPERS = {
    "timeout": "ks", "nice": "n", "env": "uCS", "nohup": "", "stdbuf": "ioe", "time": "fo", "sudo": "ugpCh",
    "builtin": "", "exec": "a", "ionice": "cnp", "setsid": "", "unbuffer": "",
}  # fmt: skip
"""Programs that end as the one after them does, with the letters of their options that take a value."""
RUNNERS = {
    **dict.fromkeys(("poetry", "uv", "pipenv", "pdm", "hatch", "rye", "conda", "mamba", "pixi"), "run"),
    **dict.fromkeys(("pipx", "coverage", "dotenv"), "run"),
    **dict.fromkeys(("bundle", "npm", "pnpm", "yarn", "mise", "asdf"), "exec"),
}
"""Programs that run the one behind a word of their own."""
FRONTS = frozenset({"npx", "bunx", "pnpx", "uvx", "xvfb-run", "winpty", "dotenv"})
"""Programs that run the one behind their options."""
_VALUED = frozenset({"-n", "-p", "-C", "--with", "--python", "--project", "--package", "--extra", "--group"})
"""Options of theirs that a value follows."""
_MOST_WORDS = 12
"""Words of an interpreter among which its module is looked for."""
SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh", "ash"})
FILE_WRITERS = frozenset({
    "tee", "patch", "ed", "ex", "mv", "cp", "rm", "rmdir", "ln", "mkdir", "touch", "install", "rsync", "chmod", "chown",
    "chgrp", "setfacl", "truncate", "dd", "unzip", "gzip", "gunzip", "bunzip2", "unxz", "shred", "unlink", "mkfifo",
    "sponge",
})  # fmt: skip
"""Programs that change the files which they are given."""
GIT_OPTIONS = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"}
)
"""Options of git before its subcommand that a value follows."""
INLINE = re.compile(r"-\w*[cep]|--eval|--print|-")
"""How an interpreter is given its program: on the command line, or from its standard input."""
SHELL_CODE = re.compile(r"-[a-z]*c")
"""How a shell is given its commands as text."""
_INTERPRETER = re.compile(
    r"(?:python|pypy|ipython|node|nodejs|deno|bun|ruby|perl|php|Rscript|tsx|ts-node)[\d.]*"
)
_SYSTEM_FOLDERS = frozenset({"", "/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"})


_CONTAINERS = frozenset({"docker", "podman", "nerdctl", "docker-compose"})
_EXEC_VALUED = frozenset({"-e", "--env", "-u", "--user", "-w", "--workdir", "--env-file", "--index"})
_XARGS_VALUED = frozenset({"-n", "-I", "-P", "-L", "-d", "-s", "-E", "-a"})
_SU_CODE = re.compile(r"-[a-z]*c|--command")


def program_name(word: str) -> str:
    """The program's name; a script of the project (`bin/test`) keeps its path, and so is none that is known."""
    folder, _, name = word.rpartition("/")
    return name if folder in _SYSTEM_FOLDERS else word


def base_name(word: str) -> str:
    """The program's name, wherever it lies."""
    name = word.rpartition("/")[2]
    return (name[:-4] if name.endswith((".exe", ".cmd", ".bat")) else name) or word


def interprets(name: str) -> bool:
    """True if a program of this name runs the code that it is given; shells are asked about apart."""
    return _INTERPRETER.fullmatch(name) is not None


def unwrapped(words: Sequence[str]) -> Sequence[str]:
    """From the program on that the exit code is of."""
    while words and program_name(words[0]) in WRAPPERS:
        wrapper, words = program_name(words[0]), words[1:]
        valued = WRAPPERS[wrapper]
        while words and words[0].startswith("-"):
            takes_next = len(words[0]) == 2 and words[0][1] in valued
            words = words[2:] if takes_next else words[1:]
        if wrapper == "timeout":
            words = words[1:]
        while wrapper in {"env", "sudo"} and words and re.match(r"\w+=", words[0]):
            words = words[1:]
    return words


def working(words: Sequence[str]) -> Sequence[str]:
    """From the program (or Python's module) on that does the work, behind those that run another one too."""
    while True:
        words = unwrapped(words)
        name = base_name(words[0]) if words else ""
        if module := _module(words) if name.startswith(("python", "pypy")) else 0:
            words = words[module:]
            continue
        if len(words) > 1 and RUNNERS.get(name) == words[1]:
            words = behind_options(words[2:], _VALUED)
        elif name in FRONTS:
            words = behind_options(words[1:], _VALUED)
        else:
            return words


def behind_options(words: Sequence[str], valued: Collection[str]) -> Sequence[str]:
    """The words behind the options that they begin with; `valued`: those that a value follows."""
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in valued else words[1:]
    return words


def _module(words: Sequence[str]) -> int:
    """The index of the module that `python -m` runs; 0 for none. Arguments behind a script are the script's."""
    for place, word in enumerate(words[1:_MOST_WORDS], 1):
        if word == "-m" and place + 1 < len(words):
            return place + 1
        if word == "-c" or word.endswith(".py"):
            break
    return 0


def shell_code(words: Sequence[str]) -> str | None:
    """The commands that `bash -c` and the like are given as text; None for any other."""
    if not words or program_name(words[0]) not in SHELLS:
        return None
    flags = (at for at, word in enumerate(words[:-1]) if at and SHELL_CODE.fullmatch(word))
    flag = next(flags, None)
    return None if flag is None else words[flag + 1]


def handed_over(words: Sequence[str]) -> str | Sequence[str]:
    """The command that these words hand to another user, a container or a pod, which end as it ends: as text, or as
    words; "" for any other.
    """
    name = program_name(words[0]) if words else ""
    if name in {"su", "runuser"}:
        flag = next((at for at, word in enumerate(words[:-1]) if at and _SU_CODE.fullmatch(word)), None)
        return words[flag + 1] if flag is not None else words[_behind(words, "--") :] if "--" in words else ""
    if name == "kubectl" and "exec" in words[1:3] and "--" in words:
        return words[_behind(words, "--") :]
    if name in _CONTAINERS and "exec" in words[1:_MOST_WORDS]:
        return behind_options(words[_behind(words, "exec") :], _EXEC_VALUED)[1:]
    return ""


def _behind(words: Sequence[str], word: str) -> int:
    return list(words).index(word) + 1


def run_by_xargs(words: Sequence[str]) -> Sequence[str]:
    """The command that `xargs` runs; nothing for any other program."""
    return behind_options(words[1:], _XARGS_VALUED) if words and program_name(words[0]) == "xargs" else ()
