"""What the filter language finds and what it refuses: one table for the browser and for the pages of a site."""

from __future__ import annotations

from ambjudge.tui.run_rows import RunRow

ROWS = [
    RunRow(0, "kidney-lite-01", "p", "scored", "agent-a", "gpt", "kidney-seg-task", "segmentation", "lite", 1, 20, (1.0, 0.8, 0.4, 1.0, 1.0), 0.8, 0.7, 75.0, ("E3", "E5"), "S3:E3", "submitted", cost=1.5),
    RunRow(1, "vqa-std-02", "p", "scored", "agent-b", "gpt", "slake-task", "vqa", "standard", 2, 40, (1.0, 1.0, 1.0, None, 1.0), 0.9, None, None, (), None, "stopped", contradictions=2, unscored=1),
    RunRow(2, "bccd-pro-03", "p", "waiting"),
    RunRow(3, "odd run", "p", "error", error="broken"),
    RunRow(4, "ldct-lite-04", "p", "scored", "agent-a", None, "ldct-denoising-task", "enhancement", "lite", 3, 30, (0.0,) * 5, 0.0, 0.0, 0.0, ("E1",), None, "breach", True, 4, unverified=1, unknown=("E3",)),
]  # fmt: skip

MARKED = frozenset({1})
"""Numbers of marked rows."""
FINDS = [
    ("", [0, 1, 2, 3, 4]),
    ("LITE", [0, 4]),
    ("kidney lite", [0]),
    ("track:vqa", [1]),
    ("track:vqa track:enh", [1, 4]),
    ("tier:lite agent:agent-a", [0, 4]),
    ("-tier:lite", [1, 2, 3]),
    ("code:E3", [0]),
    ("code:e3 code:E1", [0, 4]),
    ("code:none", [1]),
    ("code:any", [0, 4]),
    ("-code:E3", [1]),
    ("-code:e5 -code:E1", [1]),
    ("-code:any", [1]),
    ("-code:none", [0, 4]),
    ("unread:E3", [4]),
    ("unread:any", [4]),
    ("unread:none", [0, 1]),
    ("-unread:any scored", [0, 1]),
    ("S3<0.5", [0, 4]),
    ("S4>=1", [0]),
    ("stage<0.5", [0, 4]),
    ("overall>50", [0]),
    ("taskscore=0.7", [0]),
    ("codes>=2", [0]),
    ("turns<=30 scored", [0, 4]),
    ("unscored", [1, 2, 3]),
    ("contradictions", [1]),
    ("waiting", [2]),
    ("error", [3]),
    ("disqualified", [4]),
    ("unverified", [4]),
    ("-error -waiting", [0, 1, 4]),
    ('"odd run"', [3]),
    ('id:"odd run"', [3]),
    ('"waiting"', []),
    ("model:none", [2, 3, 4]),
    ("ended:breach", [4]),
    ("primary:E3", [0]),
    ("marked", [1]),
    ("-marked scored", [0, 4]),
    ("-", [0, 1, 2, 4]),
    ("AGENT:Agent-A overall<=7.5e1", [0, 4]),
    ("turns>=3_0 S3<inf", [1, 4]),
    ('"KIDNEY', [0]),
    ("id:odd task:none", [3]),
    ("stage=0 repeat>2", [4]),
]
REFUSES = [
    ("colour:red", "no facet colour:"),
    ("agnet:x", "did you mean agent?"),
    ("S9<0.5", "no number 'S9'"),
    ("S3<half", "is not a number"),
    ("S3<", "is not a number"),
    ("code:", "code: needs a value"),
]
