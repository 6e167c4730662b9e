"""The errors that users see: one line that says what is wrong, where, and what to do about it."""

from __future__ import annotations

from pathlib import Path


class AmbjudgeError(Exception):
    """Base of every error that ambjudge raises on purpose.

    `message` says what is wrong and where; `hint` says what to do. Both are one line each. Example:
    `except ambjudge.AmbjudgeError as error: print(error.hint)`.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class InputError(AmbjudgeError):
    """A file or folder that cannot be read as what it should be."""

    def __init__(self, message: str, hint: str = "", path: str | Path | None = None) -> None:
        super().__init__(message if path is None else f"{path}: {message}", hint)
        self.path = None if path is None else Path(path)


class RubricError(InputError):
    """A rubric that breaks its schema or contradicts itself."""

    position: tuple[int, int] = (0, 0)
    """Line and column, counted from 1; zeros for the file as a whole."""


class ConfigError(AmbjudgeError):
    """A setting or option that is unknown or has a value out of its range."""


class JudgeError(AmbjudgeError):
    """A judge or provider that cannot be used at all.

    A single failed reply is not an error but an unscored verdict.
    """

    exit_code = 3


class StoreError(AmbjudgeError):
    """A verdict store that cannot be opened, read or written."""


def unexpected(error: Exception, path: str | Path) -> AmbjudgeError:
    """Turn an exception that one file caused into an error about that file.

    The other files can then continue; -vv logs the traceback.
    """
    import logging

    logging.getLogger(__name__).debug("%s", path, exc_info=error)
    text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return AmbjudgeError(
        f"{path}: internal error: {text}", "run again with -vv for the traceback and report it"
    )
