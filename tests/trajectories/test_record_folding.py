"""What is folded as noise and what is not; every line that is shown is the transcript's own."""

from __future__ import annotations

import random

import pytest
from ambjudge.trajectories.record.folding import Earlier, fold, fold_written
from hypothesis import given, settings
from hypothesis import strategies as st

RESULT = ["start", "dice 0.913 over 8 cases"]


def around(lines: list[str]) -> str:
    return "\n".join([RESULT[0], *lines, RESULT[1]])


TQDM = [
    f"cases: {i:3d}%|{'█' * (i // 10)}{' ' * (10 - i // 10)}| {i}/100 [00:{i // 2:02d}<00:10,"
    " 2.00it/s]"
    for i in range(101)
]
PIP = [
    *(
        f"Requirement already satisfied: {p} in /usr/lib/python3/site-packages (1.2)"
        for p in ("numpy", "scipy", "six")
    ),
    "Collecting einops==0.8",
    "  Downloading einops-0.8.0-py3-none-any.whl (43 kB)",
    "     ━━━━━━━━━━━━━━━━━━━━ 43.2/43.2 kB 1.1 MB/s eta 0:00:00",
    "Installing collected packages: einops",
]
APT = [
    f"Get:{i} http://mirror/debian stable/main amd64 lib{i} amd64 1.{i} [{i} kB]"
    for i in range(1, 9)
] + [f"Unpacking lib{i} (1.{i}) ..." for i in range(1, 9)]
WARNINGS = [
    f"/env/lib/site-packages/p{i}/core.py:{i}: FutureWarning: the default of `p{i}_mode` will"
    " change"
    for i in range(1, 30)
]
DEBUG = [
    f"2026-05-{i:02d} 10:20:{i:02d},123 DEBUG urllib3.connectionpool: connection {i} kept alive"
    for i in range(1, 28)
]
BASE64 = ["iVBORw0KGgoAAAANSUhEUgAA" * 3 + f"Ab{i:02d}" for i in range(40)]
LISTING = [
    f"-rw-r--r-- 1 root root {i * 37 % 901} Nov 21 08:00 {chr(97 + i % 26)}{chr(97 + i // 26)}.py"
    for i in range(90)
]
CASES = [f"processing case_{i:03d}" for i in range(40)]


@pytest.mark.parametrize(
    ("lines", "mark", "most"),
    [
        pytest.param(TQDM, "100 progress", 3, id="tqdm"),
        pytest.param(PIP, "6 installer", 4, id="pip"),
        pytest.param(APT, "16 installer", 3, id="apt"),
        pytest.param(WARNINGS, "28 warning", 3, id="warnings"),
        pytest.param(DEBUG, "26 log", 3, id="debug-log"),
        pytest.param(BASE64, "39 lines of encoded data", 3, id="base64"),
        pytest.param(LISTING, "73 listed lines", 19, id="long-listing"),
        pytest.param(["epoch done"] * 30, "27 identical lines", 5, id="identical"),
        pytest.param(CASES, "37 similar lines", 5, id="counter"),
        pytest.param(
            random.Random(1).sample([*TQDM, *PIP, *WARNINGS, *DEBUG, *APT], 160),
            "log",
            8,
            id="interleaved",
        ),
    ],
)
def test_noise_is_folded_with_a_mark_and_results_stay(
    lines: list[str], mark: str, most: int
) -> None:
    folded = fold(around(lines)).split("\n")
    assert folded[0] == RESULT[0]
    assert folded[-1] == RESULT[1]
    assert len(folded) - 2 <= most
    marks = [line for line in folded if line.startswith("[… ")]
    assert marks
    assert any(mark in line for line in marks), marks
    if lines is TQDM:
        assert TQDM[-1] in folded  # the last state
    assert all(line in {*lines, *RESULT, *marks} for line in folded)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(
            [f"case_{i:03d} dice 0.{i * 37 % 97:02d} hd95 {i * 13 % 29}.5" for i in range(40)],
            id="measures",
        ),
        pytest.param(
            [f"[{i}/40] case_{i:03d} dice 0.{i * 37 % 97:02d}" for i in range(1, 41)],
            id="counter-and-measure",
        ),
        pytest.param([f"epoch {i} loss {1 / (i + 1):.4f}" for i in range(60)], id="training-curve"),
        pytest.param(
            [
                f"2026-05-01 10:20:{i:02d} INFO eval.run: case_{i} dice 0.{i * 37 % 97:02d}"
                for i in range(40)
            ],
            id="own-log",
        ),
        pytest.param([f"    x = f({'y' * i})" for i in range(40)], id="code"),
    ],
)
def test_what_an_agent_measures_stays_whole(lines: list[str]) -> None:
    assert fold(around(lines)) == around(lines)


def test_tables_show_through_interleaved_noise() -> None:
    rng = random.Random(7)
    table = [f"case_{i:03d} dice 0.{i * 37 % 97:02d}" for i in range(30)]
    mixed: list[str] = []
    for row in table:
        mixed += [rng.choice([*TQDM[:-1], *PIP, *WARNINGS, *DEBUG]) for _ in range(4)] + [row]
    folded = fold("\n".join(mixed)).split("\n")
    assert [line for line in folded if line in set(table)] == table
    assert len(folded) < len(table) + 10


def test_a_long_table_keeps_its_ends() -> None:
    rows = [f"case_{i:04d} dice 0.{i * 37 % 97:02d}" for i in range(900)]
    folded = fold("\n".join(rows)).split("\n")
    assert folded[:24] == rows[:24]
    assert folded[-8:] == rows[-8:]
    assert folded[24] == "[… 868 similar lines …]"


def test_encoded_data_in_a_line_leaves_its_surroundings() -> None:
    folded = fold('{"id": 7, "png": "' + "iVBORw0KGgo1" * 100 + '", "label": "tumour"}')
    assert folded.startswith('{"id": 7, "png": "iVBOR')
    assert folded.endswith('characters of encoded data …]", "label": "tumour"}')
    assert len(folded) < 200


def test_library_frames_of_a_traceback_are_folded() -> None:
    frames = [
        x
        for i in range(9)
        for x in (f'  File "/env/site-packages/lib/m{i}.py", line {i}, in f', f"    f{i}(x)")
    ]
    trace = [
        "Traceback (most recent call last):",
        '  File "run.py", line 3, in <module>',
        "    main()",
        *frames,
        "ValueError: bad",
    ]
    folded = fold("\n".join(trace)).split("\n")
    assert folded == [*trace[:5], "[… 7 frames of libraries …]", *trace[-3:]]


def test_a_message_or_reminder_shown_by_earlier_outputs_is_counted_not_shown_again() -> None:
    reminder = (
        "The list was saved. Remember to keep it up to date while you work and to finish every"
        " point of it before you stop." * 2
    )
    earlier, folded = Earlier(), []
    for turn in (1, 2, 3):
        earlier.turn = turn
        folded.append(fold("\n".join(["ok", *DEBUG[:5], reminder]), earlier))
    assert [reminder in text for text in folded] == [True, True, False]
    assert [DEBUG[0] in text for text in folded] == [True, False, False]
    assert "[… 1 line seen before, as in turn 1 …]" in folded[2]


def test_what_the_agent_wrote_is_folded_only_where_nothing_is_lost() -> None:
    code = "\n".join([*CASES, *TQDM, "pad", "pad", "pad", "pad", "pad", "end"])
    assert fold_written(code) == "\n".join(
        [*CASES, *TQDM, "pad", "pad", "[… 2 identical lines …]", "pad", "end"]
    )


LINES = st.sampled_from(
    ["a", "", "x 1", "x 2", "x 0.5", *TQDM[:3], *PIP[:3], *DEBUG[:3], *WARNINGS[:3], "q" * 300]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(LINES, max_size=80))
def test_folding_only_takes_lines_away_and_says_so(lines: list[str]) -> None:
    text = "\n".join(lines)
    folded = fold(text).split("\n")
    lines = iter(text.split("\n"))
    for line in folded:
        if not line.startswith("[… "):
            assert line in lines  # each kept line is one of the text's, in order
    assert text.split("\n") == folded or any(line.startswith("[… ") for line in folded)
