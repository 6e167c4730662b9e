"""What Python 3.12 reads as an f-string is read on 3.11 too, and what is no Python stays none."""

from __future__ import annotations

import ast

import pytest
from ambjudge.trajectories.turns.python_code import parse

READ = {
    'print(f"{row["a"]} of {n}")': ["row", "n", "a"],
    "f\"{'\\n'.join(names)}\"": ["names", "\n"],
    'f"{f"{deep["x"]:>{width}}"!r}"': ["deep", "width", "x"],
    'f"{total["sum"]=:.2f} {{kept}} \\N{EM DASH} {a != b["c"]}"': ["total", "a", "b", "sum", "c"],
    'f"""{d["k"]}"""; g = rf\'{x[\'y\']}\'': ["d", "x", "g", "k", "y"],
    'a = \'it {is} "plain"\'  # f"{\nopen(f"{d["k"]}")': ["open", "d", "k"],
}


@pytest.mark.parametrize("code", READ)
def test_any_expression_may_stand_in_braces(code):
    tree = parse(code)
    assert tree is not None
    words = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    words |= {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
    assert set(READ[code]) <= words


@pytest.mark.parametrize(
    "code",
    [
        'f"{a["b"}"',
        'f"{a["b"]',
        'f"{x y["z"]}"',
        "it's {not} code",
        'f"{"',
        "f'{x!",
        'f"{}" + f"{d["k"]}"',
        'f"{' * 3000,
        'f"{a["' * 3000,
        "'" * 99_999 + "{",
    ],
)
def test_what_is_no_python_stays_none(code, no_runaway):
    with no_runaway():
        assert parse(code) is None
