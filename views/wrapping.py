"""Where a line is cut into rows of the screen."""

from __future__ import annotations

from rich.cells import get_character_cell_size

from ..sanitize import sanitize_line


def cuts(text: str, width: int, words: bool = False) -> list[int]:
    """Offsets at which a line is cut into rows of at most `width` columns; the first is always 0.

    Measured as shown, that is after `sanitize_line`: wide characters count two columns, combining
    ones none.
    """
    if 2 * len(text) <= width:
        return [0]
    if text.isascii():
        if not words:
            return list(range(0, len(text), width)) or [0]
        starts, end = [0], len(text)
        while end - starts[-1] > width:
            space = text.rfind(" ", starts[-1] + 1, starts[-1] + width)
            starts.append(space + 1 if space >= 0 else starts[-1] + width)
        return starts
    starts, used, after_space, used_after = [0], 0, 0, 0
    for offset, char in enumerate(sanitize_line(text)):
        size = 1 if char.isascii() else get_character_cell_size(char)
        if used + size > width:
            if words and after_space > starts[-1]:
                starts.append(after_space)
                used = used_after
            else:
                starts.append(offset)
                used = 0
            used_after = 0
        used += size
        used_after += size
        if char == " ":
            after_space, used_after = offset + 1, 0
    return starts
