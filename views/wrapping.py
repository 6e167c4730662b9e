"""Where a line is cut into rows of the screen."""

from __future__ import annotations

from rich.cells import get_character_cell_size

from ..sanitize import sanitize_line


def cuts(text: str, width: int, words: bool = False) -> list[int]:
    """Offsets at which a line is cut into rows of at most `width` columns; the first is always 0.

    Measured as shown, that is after `sanitize_line`: wide characters count two columns, combining
    ones none. With `words` rows end at spaces where they can.
    """
    # No character takes more than two columns.
    if 2 * len(text) <= width:
        return [0]
    if not text.isascii():
        return _cuts_by_width(text, width, words)
    if words:
        return _cuts_at_spaces(text, width)
    return list(range(0, len(text), width)) or [0]


def _cuts_at_spaces(text: str, width: int) -> list[int]:
    """Cuts of an ASCII line, in which every character takes one column."""
    starts = [0]
    while len(text) - starts[-1] > width:
        space = text.rfind(" ", starts[-1] + 1, starts[-1] + width)
        starts.append(space + 1 if space >= 0 else starts[-1] + width)
    return starts


def _cuts_by_width(text: str, width: int, words: bool) -> list[int]:
    """Cuts of a line with characters of different width."""
    starts = [0]
    columns = 0
    word_start, word_columns = 0, 0
    for offset, character in enumerate(sanitize_line(text)):
        size = 1 if character.isascii() else get_character_cell_size(character)
        if columns + size > width:
            if words and word_start > starts[-1]:
                # The word that does not fit begins the next row.
                starts.append(word_start)
                columns = word_columns
            else:
                starts.append(offset)
                columns = 0
            word_columns = 0
        columns += size
        word_columns += size
        if character == " ":
            word_start, word_columns = offset + 1, 0
    return starts
