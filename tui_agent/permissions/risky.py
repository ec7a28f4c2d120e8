"""Options and arguments by which a program runs another one or writes to a place that it is told: a wide rule
leaves them out.

A rule such as `bash(git *)` was written with what git does in mind, not with what any program could do behind its
options. What stands here asks under such a rule, unless the rule's own words hold it (`bash(tar --to-command=* *)`) or
it ends in `**`. Each row names the manual that says so.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from tui_agent.permissions.commands import SimpleCommand
from tui_agent.permissions.programs import becomes_no_option, runs_another, runs_code
from tui_agent.permissions.readers import reads_only
from tui_agent.shell_programs import GIT_OPTIONS, base_name


@dataclass(frozen=True)
class Risks:
    """Of one program. `words` matches a whole word that runs or writes something."""

    words: re.Pattern[str]
    said: str
    """The most telling of them, for a person."""
    source: str
    always: str = ""
    """Why a rule for all of its calls deserves a warning; "" if it does not."""


def _long(*names: str) -> str:
    """Long options, and whatever they may be shortened to."""
    tails = ((name[:2], name[2:]) for name in names)
    return "|".join(
        f"--{head}" + "".join(f"(?:{char}" for char in tail) + ")?" * len(tail) for head, tail in tails
    )


@cache
def risks() -> Mapping[str, Risks]:
    """Read `risky.toml`, which takes some milliseconds the first time."""
    given = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return {name: _risks(**row) for names, row in given.items() for name in names.split(", ")}


def _risks(words: Sequence[str] = (), options: str = "", *, examples: Any, **said: str) -> Risks:
    shortened = [f"(?:{_long(*options.split())})(?:=.*)?"] if options else []
    return Risks(re.compile("|".join([*words, *shortened]) or "(?!)", re.DOTALL), **said)


_CODE = "its arguments are a program, which can run and write anything"
_RUNS = "it runs the program that stands behind it"
_WRAPPERS = ("env", "xargs", "timeout", "nice", "nohup", "stdbuf", "time", "setsid", "ionice", "command")
RISKS: dict[str, Risks] = {
    "git": _risks(
        r"(?!)",
        "-c, --exec, --upload-pack, --open-files-in-pager, --ext-diff, --output, config, aliases",
        "git(1), git-config(1), git-fetch-pack(1), git-grep(1), git-diff(1), git-archive(1), git-rebase(1), "
        "gitremote-helpers(7)",
    ),
    # -T: a line of the list that begins with a dash is an option. -f host:file is fetched by a remote shell.
    **dict.fromkeys(
        ("tar", "gtar", "bsdtar", "cpio"),
        _risks(
            rf"(?:{_long('to-command', 'checkpoint-action', 'use-compress-program', 'rsh-command', 'info-script')}"
            rf"|{_long('new-volume-script', 'rmt-command', 'files-from', 'absolute-names')})(?:=.*)?"
            r"|-[a-zA-Z]*[IFTP].*|[a-zA-Z]*[IFTP][a-zA-Z]*|(?:--file=)?[\w.@-]+:.*",
            "--to-command, --checkpoint-action, -I, -F, -T",
            "tar(1), bsdtar(1), cpio(1)",
            "it runs what --to-command, --checkpoint-action and -I name, and unpacks over files",
        ),
    ),
    **dict.fromkeys(
        ("awk", "gawk", "mawk", "nawk"),
        _risks(r"(?!)", "programs with system(), pipes and redirections", "awk(1), gawk(1)", _CODE),
    ),
    **dict.fromkeys(
        ("sed", "gsed"),
        _risks(
            r"-[a-zA-Z]*i.*|--in-place(?:=.*)?",
            "-i, and scripts that run (`e`) or write (`w`)",
            "sed(1)",
            "its scripts can run (`e`) and write (`w`), and -i edits files",
        ),
    ),
    "find": _risks(
        r"-(?:exec|execdir|ok|okdir|delete|fprint0?|fprintf|fls|files0-from)",
        "-exec, -ok, -delete, -fprint",
        "find(1)",
    ),
    **dict.fromkeys(
        ("fd", "fdfind"), _risks(r"-[a-zA-Z]*[xX].*|--exec(?:-batch)?(?:=.*)?", "-x, --exec", "fd(1)")
    ),
    "rsync": _risks(
        rf"-[a-zA-Z]*e.*|(?:{_long('rsh', 'rsync-path', 'log-file', 'write-batch', 'only-write-batch', 'config')}"
        rf"|{_long('daemon', 'partial-dir', 'backup-dir', 'temp-dir')})(?:=.*)?",
        "-e, --rsh, --rsync-path, --log-file",
        "rsync(1)",
    ),
    **dict.fromkeys(
        ("sort", "gsort"),
        _risks(
            rf"-[a-zA-Z]*[oT].*"
            rf"|(?:{_long('output', 'compress-program', 'temporary-directory', 'files0-from')})(?:=.*)?",
            "-o, --compress-program",
            "sort(1)",
        ),
    ),
    **dict.fromkeys(_WRAPPERS, _risks(r".*", "the program that it runs", "env(1), xargs(1), timeout(1)", _RUNS)),
    **dict.fromkeys(
        ("less", "more", "most", "pg", "man", "bat", "batcat", "delta"),
        _risks(
            r"\+.*|-[a-zA-Z]*[oOPkH].*"
            r"|--(?:pager|log-file|LOG-FILE|lesskey.*|html|browser|prompt|preprocessor|map-syntax)(?:=.*)?",
            "+!command, -o, -P, --pager",
            "less(1), man(1), bat(1)",
        ),
    ),
    **dict.fromkeys(
        ("npm", "pnpm", "yarn", "bun", "npx"),
        _risks(
            r"--(?:script-shell|shell|node-options|git|editor|viewer|browser|userconfig|globalconfig|prefix|cache"
            r"|init-module|use-node-version|call|eval|cwd|config)(?:[=:].*)?|-[ceC]|config|set",
            "--script-shell, --node-options, --prefix, config",
            "npm-config(7), pnpm(1), yarn(1)",
        ),
    ),
    **dict.fromkeys(
        ("rg", "ag", "ack", "ugrep"),
        _risks(
            r"--(?:pre|hostname-bin|pager|search-zip|filter|output|save-config)(?:=.*)?|-[a-zA-Z]*z.*",
            "--pre, --hostname-bin, --pager, -z",
            "rg(1), ag(1), ack(1), ugrep(1)",
        ),
    ),
    "diff": _risks(r"-[a-zA-Z]*l.*|--paginate|--output(?:=.*)?", "-l", "diff(1)"),
    **dict.fromkeys(
        ("sdiff", "diff3"),
        _risks(r"-[a-zA-Z]*o.*|--(?:diff-program|output)(?:=.*)?", "--diff-program, -o", "sdiff(1)"),
    ),
    **dict.fromkeys(
        ("curl", "wget"),
        _risks(
            r"-[a-zA-Z]*[oOKTFdQ].*|-[Pie].*|--(?:output.*|remote-name.*|config|upload-file|form.*|data.*|json"
            r"|post-(?:data|file)|body-(?:data|file)|dump-header|cookie-jar|trace.*|stderr|libcurl|etag-save|hsts|alt-svc"
            r"|use-askpass|execute|directory-prefix|input-file|save-cookies|append-output|rejected-log|warc-file|quote"
            r"|netrc-file|engine)(?:=.*)?",
            "-o, -d, -T, --config, --use-askpass",
            "curl(1), wget(1)",
        ),
    ),
    **dict.fromkeys(
        ("ssh", "scp", "sftp"),
        _risks(
            r"-[a-zA-Z]*[oSFED].*|-J.*",
            "-o ProxyCommand=…, -S, -F",
            "ssh(1), scp(1), sftp(1), ssh_config(5)",
            "nobody judges what runs at the other end",
        ),
    ),
    "zip": _risks(r"-[a-zA-Z]*T.*|--unzip-command(?:=.*)?", "-TT, --unzip-command", "zip(1)"),
    **dict.fromkeys(("split", "gsplit"), _risks(rf"(?:{_long('filter')})(?:=.*)?", "--filter", "split(1)")),
    "make": _risks(
        r"-[a-zA-Z]*[fICEW].*|--(?:file|makefile|directory|include-dir|eval|what-if)(?:=.*)?|[^=]*=.*",
        "-f, -C, --eval, NAME=value",
        "make(1)",
    ),
    **dict.fromkeys(
        ("docker", "podman"),
        _risks(
            r"-v.*|--(?:volume|mount|privileged|device|pid|cap-add|entrypoint|output)(?:=.*)?|-o.*",
            "-v, --mount, --privileged",
            "docker(1)",
            "a container can be given the whole machine",
        ),
    ),
    "go": _risks(
        r"--?(?:exec|toolexec|vettool|overlay|ldflags|gcflags|o|C|modfile|w|cpuprofile|coverprofile|outputdir)(?:=.*)?",
        "-exec, -toolexec, -vettool, -o",
        "go help build",
    ),
    "cargo": _risks(r"\+.*|--(?:config|target-dir|out-dir)(?:=.*)?|-[ZC].*", "--config, -Z, +toolchain", "cargo(1)"),
    **dict.fromkeys(
        ("pip", "pip3"),
        _risks(r"config|--(?:target|prefix|root|log|editor|python)(?:=.*)?|-t.*", "config, --target", "pip(1)"),
    ),
    **dict.fromkeys(
        ("gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "ld.gold", "ld.lld"),
        _risks(
            r"-wrapper|-B.*|-fplugin=.*|-specs=.*|--specs=.*|-fuse-ld=.*|-plugin|--plugin(?:=.*)?|-load|-Xclang|@.*",
            "-wrapper, -B, -fplugin, -specs",
            "gcc(1), clang(1), ld(1)",
        ),
    ),
    "pandoc": _risks(
        rf"(?:{_long('filter', 'lua-filter', 'pdf-engine', 'defaults', 'data-dir', 'output', 'extract-media')})(?:=.*)?"
        r"|-[a-zA-Z]*[FLdo].*",
        "--filter, --lua-filter, --pdf-engine, -o",
        "pandoc(1)",
    ),
    "openssl": _risks(
        r"-(?:engine|provider|provider-path|config|out|keyout|writerand|CAserial|signkey_out)",
        "-engine, -provider, -config, -out",
        "openssl(1)",
    ),
    "pylint": _risks(
        r"--(?:init-hook|load-plugins|rcfile|output)(?:=.*)?", "--init-hook, --load-plugins, --rcfile", "pylint(1)"
    ),
    "bazel": _risks(
        r"--(?:run_under|bazelrc|workspace_status_command|override_repository|output_base|output_user_root)(?:=.*)?",
        "--run_under, --bazelrc",
        "bazel.build/reference/command-line-reference",
    ),
    "gh": _risks(r"alias|extensions?|ext|api|codespace|cs|config", "alias, extension, api, config", "gh(1)"),
    "tcpdump": _risks(r"-[a-zA-Z]*[zwZ].*", "-z, -w", "tcpdump(1)"),
    "kubectl": _risks(
        r"exec|cp|debug|attach|plugin|config|--(?:kubeconfig|as|editor)(?:=.*)?",
        "exec, cp, debug, config",
        "kubectl(1)",
    ),
    "tree": _risks(r"-[a-zA-Z]*[oR].*", "-o", "tree(1)"),
    "date": _risks(r"-[a-zA-Z]*s.*|--set(?:=.*)?", "-s", "date(1)"),
    "file": _risks(r"-[a-zA-Z]*[CzZ].*|--(?:compile|uncompress.*)", "-C, -z", "file(1)"),
}  # fmt: skip
"""By program."""
_OF_GIT = re.compile(
    rf"(?:{_long('exec', 'upload-pack', 'receive-pack', 'ext-diff', 'textconv', 'show-signature', 'template')}"
    rf"|{_long('open-files-in-pager', 'strategy', 'separate-git-dir', 'filters', 'output-directory', 'unsafe-paths')})"
    r"(?:=.*)?"
    r"|--output(?:=.*)?|-[a-zA-Z]*O.*|(?:ext|fd)::.*|[\w.+-]+::.*|--(?:edit|open|edit-description)|.*%G.*"
)
"""Options of subcommands that run what they name, or write a file that they name; addresses that are commands."""
_BEFORE = re.compile(
    r"-c.*|--config-env(?:=.*)?|--exec-path=.*|--git-dir(?:=.*)?|--work-tree(?:=.*)?|-p|--paginate"
)
_ONE_LETTER = {
    "clone": re.compile(r"-[cu].*|--config(?:=.*)?"),
    "rebase": re.compile(r"-[xs].*"),
    **dict.fromkeys(("merge", "pull", "cherry-pick", "revert"), re.compile(r"-s.*")),
    **dict.fromkeys(("archive", "format-patch"), re.compile(r"-o.*")),
    "branch": re.compile(r"--edit-description"),
    "notes": re.compile(r"edit"),
}
_GIT_COMMANDS = frozenset({
    "add", "am", "annotate", "apply", "archive", "blame", "branch", "bundle", "cat-file", "check-attr", "check-ignore",
    "checkout", "cherry", "cherry-pick", "clean", "clone", "commit", "count-objects", "describe", "diff", "diff-files",
    "diff-index", "diff-tree", "fetch", "for-each-ref", "format-patch", "fsck", "gc", "grep", "hash-object", "init",
    "log", "ls-files", "ls-remote", "ls-tree", "merge", "merge-base", "merge-tree", "mktag", "mktree", "mv",
    "name-rev", "notes", "pack-refs", "prune", "pull", "push", "range-diff", "read-tree", "rebase", "reflog", "remote",
    "repack", "replace", "rerere", "reset", "restore", "rev-list", "rev-parse", "revert", "rm", "shortlog", "show",
    "show-branch", "show-ref", "sparse-checkout", "stash", "status", "switch", "symbolic-ref", "tag", "update-ref",
    "var", "verify-commit", "verify-tag", "version", "whatchanged", "worktree", "write-tree",
})  # fmt: skip
"""Subcommands that by their name alone run nothing and change no setting: what is not here may be an alias."""
_CODE_READERS = frozenset({"awk", "gawk", "mawk", "nawk", "sed", "gsed"})


def risky_words(command: SimpleCommand) -> frozenset[int]:
    """Give the places of the words that run or write something under a rule for all calls of the program."""
    program, words = base_name(command.program), command.words
    known = risks().get(program)
    if known is None:
        return frozenset()
    globs = {place for place, word in enumerate(words) if place and not becomes_no_option(word)}
    if reads_only(command) is not None and not globs:
        return frozenset()
    texts = [word.text for word in words]
    found = {place for place, text in enumerate(texts) if place and known.words.fullmatch(text)}
    if program in _CODE_READERS:
        plain = tuple(word for place, word in enumerate(words) if place not in found)
        if reads_only(replace(command, words=plain)) is None:
            return frozenset(range(1, len(words)))
    if program == "git":
        found |= _risky_in_git(texts)
    # A wildcard may stand for a file that is named like an option.
    return frozenset(found | globs)


def _risky_in_git(texts: Sequence[str]) -> set[int]:
    place, found = 1, set[int]()
    while place < len(texts) and texts[place].startswith("-"):
        if _BEFORE.fullmatch(texts[place]):
            found.add(place)
        place += 2 if texts[place] in GIT_OPTIONS else 1
    if place >= len(texts) or texts[place] not in _GIT_COMMANDS:
        return set(range(1, len(texts)))
    letters = _ONE_LETTER.get(texts[place])
    for at in range(place + 1, len(texts)):
        if _OF_GIT.fullmatch(texts[at]) or (letters is not None and letters.fullmatch(texts[at])):
            found.add(at)
    return found


def warning_about(program: str) -> str:
    """Say what whoever allows all calls of a program should know; "" for nothing."""
    like = "awk" if runs_code(program.casefold()) else "env" if runs_another(program) else ""
    known = risks().get(program) or risks().get(like)
    return known.always if known is not None else ""


def still_asks(program: str) -> str:
    """Name the words of a program that a rule for all of its calls leaves out, for a person; "" for none."""
    known = risks().get(program)
    return known.said if known is not None else ""
