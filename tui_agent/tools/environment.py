"""The environment that commands are given: the program's own, without secrets and without anything that
waits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tui_agent.processes import without_secrets

_SET = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "NO_COLOR": "1",
    "CLICOLOR": "0",
    "GIT_TERMINAL_PROMPT": "0",
    # Editors would wait for keys: git takes the message as it is, or says that it is empty.
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    # Output in the order in which it was written, also when the command is stopped.
    "PYTHONUNBUFFERED": "1",
}
_UNSET = (
    "FORCE_COLOR", "CLICOLOR_FORCE", "BASH_ENV", "ENV", "PROMPT_COMMAND",
    # `cd -` and `cd src` would lead to the former folder of the operator's shell, which no judge of the
    # command can see.
    "OLDPWD", "CDPATH",
)  # fmt: skip


def command_environment(environment: Mapping[str, str], passed: Collection[str] = ()) -> dict[str, str]:
    """The part of `environment` that a command gets: no provider key or other secret but those `passed` by
    name, no colours, no pager, no questions.
    """
    kept = {name: value for name, value in without_secrets(environment, passed).items() if name not in _UNSET}
    return kept | _SET
