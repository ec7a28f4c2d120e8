"""How a tool says that a call failed."""

from __future__ import annotations


class ToolError(Exception):
    """The call failed; the message is what the model reads, so it says what, why and what would help.

    `transient` marks infrastructure faults (the disk is full, a server is gone) that are not the model's
    doing; `unknown_effect` a call that may have had its effect (a command that timed out).
    """

    def __init__(
        self,
        message: str,
        *,
        transient: bool = False,
        unknown_effect: bool = False,
        output_file: str = "",
        exit_code: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.transient = transient
        self.unknown_effect = unknown_effect
        self.output_file = output_file
        self.exit_code = exit_code


_LONGEST_CAUSE = 500
"""Characters of an unexpected error that are shown."""


def in_words(error: BaseException) -> str:
    """An unexpected error in bounded words: of the system's its reason and the file, else its type too."""
    if isinstance(error, OSError) and error.strerror:
        said = error.strerror if error.filename is None else f"{error.strerror}: {error.filename}"
    else:
        said = f"{type(error).__name__}: {error}".removesuffix(": ")
    return said if len(said) <= _LONGEST_CAUSE else f"{said[:_LONGEST_CAUSE]} ..."
