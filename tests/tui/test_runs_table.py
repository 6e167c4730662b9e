"""The table's pure parts: what cells say, which columns fit, how rows sort."""

from __future__ import annotations

import pytest
from ambjudge.views.run_columns import COLUMNS, fit_columns, flags_text, sort_rows
from ambjudge.views.run_rows import RunRow


@pytest.mark.parametrize("width", [80, 100, 120, 160, 240])
def test_columns_fit_and_the_scores_always_stay(width: int) -> None:
    chosen = fit_columns(width)
    assert sum(size + 1 for _, size in chosen) + 1 <= width
    assert {"Run", "S1", "S2", "S3", "S4", "S5", "Agnt", "Ovrl", "Codes"} <= {
        column.title for column, _ in chosen
    }


def test_unknown_values_sort_last_either_way() -> None:
    rows = [
        RunRow(n, f"r{n}", "", "scored", overall=value)
        for n, value in enumerate([50.0, None, 10.0, None, 90.0])
    ]
    overall = next(column for column in COLUMNS if column.key == "overall")
    assert sort_rows(rows, range(5), overall, False) == [2, 0, 4, 1, 3]
    assert sort_rows(rows, range(5), overall, True) == [4, 0, 2, 1, 3]


@pytest.mark.parametrize("column", COLUMNS, ids=[column.key for column in COLUMNS])
def test_every_column_shows_and_sorts_any_row(column: object) -> None:
    rows = [
        RunRow(0, "a", "", "waiting"),
        RunRow(1, "b", "", "error", error="x"),
        RunRow(
            2,
            "c",
            "",
            "scored",
            "x",
            codes=("E1",),
            overall=1.0,
            agentic=0.1,
            stages=(1.0,) * 5,
            turns=3,
            tier="pro",
            ended="cut",
            task="t",
            task_score=0.5,
        ),
    ]
    assert all(isinstance(column.text(row), str) for row in rows)  # type: ignore[attr-defined]
    assert sorted(sort_rows(rows, range(3), column, True)) == [0, 1, 2]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("row", "signs"),
    [
        (RunRow(0, "a", "", "waiting"), "…"),
        (RunRow(0, "a", "", "error"), "✗"),
        (RunRow(0, "a", "", "scored"), ""),
        (RunRow(0, "a", "", "scored", contradictions=1, unscored=2, unverified=3), "!?≠"),
    ],
)
def test_flags(row: RunRow, signs: str) -> None:
    assert flags_text(row) == signs
