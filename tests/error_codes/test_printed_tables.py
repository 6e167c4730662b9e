"""How printed tables are read: headers, rulers, known ids, units and thousands; and what counts as far off."""

from __future__ import annotations

import pytest
from ambjudge.error_codes.verification.case_tables import columns, rows, sections
from ambjudge.error_codes.verification.printed_levels import degenerate
from ambjudge.error_codes.verification.printed_sizes import before_after, odd_sizes, size_columns
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("output", "key", "value"),
    [
        pytest.param("case | organ | lesion\n---- + ----- + ----\nc_1 | 721 | 29", ("organ", 0), 721, id="ruler"),
        pytest.param("case shape ok organ\nc_1 (48, 48, 20) True 721", None, None, id="one-number-is-no-table"),
        pytest.param("case shape ok organ hu\nc_1 (48, 48, 20) True 721 104", ("organ", 0), 721, id="cell-by-cell"),
        pytest.param("c_1 organ 1,205 vox", ("organ", 0), 1205, id="thousands"),
        pytest.param("c_1 organ 11.6ml", ("organ", 0), 11.6, id="unit-behind"),
        pytest.param("c_1 counts [908,920,765]", ("counts", 1), 920, id="a-list-is-no-thousands"),
        pytest.param("patient min max\nc_1 -1000 436", ("min", 0), -1000, id="min-beside-max"),
        pytest.param("c_1 took min 3", None, None, id="minutes"),
        pytest.param("eye_a mean 29.8", ("mean", 0), 29.8, id="known-id"),
        pytest.param("INFO cli eye_a mean 29.8", ("mean", 0), 29.8, id="known-id-behind-a-logger"),
        pytest.param("eye_ab mean 29.8", None, None, id="another-id"),
        pytest.param("c_1 (48, 48, 20) organ 721", ("organ", 0), 721, id="shape-left-out"),
    ],
)
def test_columns(output, key, value):
    found = columns(rows(output, ("eye_a", "eye_b")))
    if key is None:
        assert not {k for k in found if k[0] in ("organ", "mean", "min")}
    else:
        assert list(found[key].values()) == [value]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param("c_1 organ 721 vox, lesion 29 vox", [("organ  vox", 721), ("lesion  vox", 29)], id="before"),
        pytest.param("c_1: 721 organ voxels, 29 lesion voxels", [("organ voxels", 721), ("lesion voxels", 29)], id="behind"),
        pytest.param("c_1 LV/MYO [908, 920]", [("LV/MYO", 908), ("LV/MYO", 920)], id="list"),
    ],
)  # fmt: skip
def test_sections(row, expected):
    found = [(" ".join(s.words.split()), s.value) for s in sections(rows(row)[0])]
    assert found == [(" ".join(words.split()), value) for words, value in expected]


@pytest.mark.parametrize(
    ("row", "pair"),
    [
        pytest.param("c_1 raw 1301 kept 650", (1301, 650), id="raw-kept"),
        pytest.param("c_1 mask 1301 -> 650", (1301, 650), id="arrow"),
        pytest.param("c_1 raw 50 lesion 3", None, id="one-alone"),
        pytest.param("c_1 raw 650 kept 1301", None, id="it-grew"),
        pytest.param("c_1 spacing 1000 -> 500", None, id="spacing"),
    ],
)
def test_before_after(row, pair):
    assert before_after(rows(row)[0]) == pair


SIZE = st.integers(1, 100_000).map(float)
COLUMN = st.dictionaries(st.integers(1, 99).map("c_{}".format), SIZE, max_size=12)


@given(COLUMN, st.sampled_from((0.5, 2.0, 8.0)))
def test_odd_sizes_are_few_far_off_and_independent_of_the_unit(column, unit):
    odd = odd_sizes(column)
    assert 2 * len(odd) < len(column) or not odd
    rest = [v for c, v in column.items() if c not in odd]
    assert all(column[c] > max(rest) or column[c] < min(rest) for c in odd)
    assert set(odd_sizes({c: v * unit for c, v in column.items()})) == set(odd)


@given(st.text(max_size=400) | st.text(alphabet="c_1 0,.|-[]()'\":ab\n>", max_size=400))
def test_any_text_can_be_read(text):
    table = rows(text, ("ab", "c_1", "((", "b_a"))
    for row in table:
        sections(row)
        before_after(row)
    size_columns(table)
    degenerate(table)
