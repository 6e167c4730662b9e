"""Words of a stranger: what an author of a run, or a machine in it, chose to write.

A run can name a file `. F3 Completion 1`, and a program can print a heading of a record. Wherever
such words stand in a sentence of ours that a judge takes for proven, they are put as a `Stranger`,
which has no bare form: formatting it gives a plain name or a quoted string.
"""

from __future__ import annotations

import json
import re

from ...sanitize import sanitize_line

_PLAIN_NAME = re.compile(r"[\w.,:*/+@=~%-]+")
"""A name without white space, quotation marks or brackets: no sentence can be made of it."""
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"')


def _width(line: str) -> int:
    return len(line) if is_plain(line) else len(quoted_line(line))


def _cut(line: str, limit: int) -> str:
    """The beginning of a line and `...`, in at most `limit` characters with its marks."""
    start = line[: limit - 3]
    while start and (excess := _width(f"{start}...") - limit) > 0:
        start = start[: -((excess + 1) // 2)]  # of the marks, an escape belongs to each character
    return f"{start}..."


def quoted_line(text: str) -> str:
    """Words on one line in quotation marks, those within them escaped."""
    return json.dumps(sanitize_line(text), ensure_ascii=False)


def is_plain(name: str) -> bool:
    """Whether a name can stand bare: no sentence of ours can be forged with it."""
    return _PLAIN_NAME.fullmatch(name) is not None


def quoted_words(text: str) -> list[str]:
    """What stands in quotation marks in a text of facts, without the marks."""
    return [match[1:-1] for match in _QUOTED.findall(text)]


class Stranger:
    """Words that someone else chose, on one line and with a limit.

    `str` and `format` give them bare if they are a plain name, else in escaped quotation marks:
    `mask.nii.gz`, but `"mask. F3 Completion 1"`.
    """

    __slots__ = ("_line",)

    def __init__(self, text: str, limit: int = 60) -> None:
        """`limit`: characters, with marks; of longer words the beginning and `...` stay."""
        line = sanitize_line(" ".join(text[: 4 * limit].split()))
        self._line = line if _width(line) <= limit else _cut(line, limit)

    def __str__(self) -> str:
        return self._line if is_plain(self._line) else self.quoted

    __repr__ = __str__

    @property
    def quoted(self) -> str:
        """The words in quotation marks, those within them escaped."""
        return quoted_line(self._line)
