"""Names of output files that a brief spells out as paths below the output folder."""

from __future__ import annotations

import re

MAX_BRIEF = 200_000
"""Characters of a brief that are searched."""
_CASE_FILE = re.compile(
    r"agents?_outputs/(?:[<{\[][^>}\]\n/]{1,40}[>}\]]|case_?id|\*)/([\w-]{1,60}\.\w{1,8}(?:\.gz)?)\b"
)


def case_files(brief: str) -> tuple[str, ...]:
    """Files of a case, as in `agents_outputs/<case>/mask.nii.gz`, in the order of the brief."""
    return tuple(dict.fromkeys(_CASE_FILE.findall(brief[:MAX_BRIEF])))
