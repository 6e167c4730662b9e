"""Syntax colours of code blocks, which are lexed only when a line of them is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

Spans = tuple[tuple[int, int, str], ...]
"""(start, end, class) of the coloured pieces of one line; classes are those of `CLASSES`."""

CLASSES = ("keyword", "string", "comment", "number", "name")
LARGEST = 60_000
"""Characters of a block that are lexed. Lexers are regular expressions, and hostile text can make
those slow."""


def highlight(lines: Sequence[str], language: str | None) -> tuple[Spans, ...]:
    """The coloured pieces of every line.

    Empty for languages without a lexer, and for blocks of more than LARGEST characters.
    """
    if language is None or sum(map(len, lines)) > LARGEST:
        return ()
    lexer = _lexer(language.lower())
    if lexer is None:
        return ()
    rows: list[list[tuple[int, int, str]]] = [[]]
    column = 0
    for kind, value in lexer.get_tokens("\n".join(lines)):
        style = _class_of(kind)
        pieces = value.split("\n")
        for number, piece in enumerate(pieces):
            if number:
                rows.append([])
                column = 0
            if style and piece:
                rows[-1].append((column, column + len(piece), style))
            column += len(piece)
    return tuple(tuple(row) for row in rows)


@lru_cache(maxsize=32)
def _lexer(language: str) -> Any:
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@lru_cache(maxsize=256)
def _class_of(kind: Any) -> str | None:
    from pygments.token import Comment, Keyword, Name, Number, Operator, String

    groups = (
        ("comment", (Comment,)),
        ("string", (String,)),
        ("number", (Number,)),
        ("keyword", (Keyword, Operator.Word)),
        ("name", (Name.Function, Name.Class, Name.Decorator, Name.Builtin)),
    )
    for name, token_types in groups:
        if any(kind in token_type for token_type in token_types):
            return name
    return None
