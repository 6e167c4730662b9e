"""Words of a stranger: what an author of a run, or a machine in it, chose to write.

A run can name a file `. F3 Completion 1`, and a program can print a heading of a record. Wherever
such words stand in a sentence of ours that a judge takes for proven, they are put as a `Stranger`,
which has no bare form: formatting it gives a plain name or a quoted string.
"""

from __future__ import annotations

import json
import re

from ...sanitize import sanitize_line

_PLAIN_NAME = re.compile(r"[\w.*/+@=~%-]+")
"""A name without white space, quotation marks or brackets: no sentence can be made of it."""


class Stranger:
    """Words that someone else chose, on one line and with a limit.

    `str` and `format` give them bare if they are a plain name, else in escaped quotation marks:
    `mask.nii.gz`, but `"mask. F3 Completion 1"`.
    """

    __slots__ = ("_line",)

    def __init__(self, text: str, limit: int = 60) -> None:
        """`limit`: characters, of longer words the beginning is kept and `...` added."""
        line = sanitize_line(" ".join(text[: 4 * limit].split()))
        self._line = line if len(line) <= limit else f"{line[: limit - 3]}..."

    def __str__(self) -> str:
        return self._line if _PLAIN_NAME.fullmatch(self._line) else self.quoted

    __repr__ = __str__

    @property
    def quoted(self) -> str:
        """The words in quotation marks, those within them escaped."""
        return json.dumps(self._line, ensure_ascii=False)
