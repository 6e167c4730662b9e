"""The flow of grids on its own: what it follows, and that hostile code costs nothing."""

from __future__ import annotations

import ast
import time

import pytest
from ambjudge.error_codes.grids.flow import Flow
from hypothesis import given, settings
from hypothesis import strategies as st


def seen(code):
    return Flow([ast.parse(code)]).seen


START = "im = nib.load(p)\nc = nib.as_closest_canonical(im)\n"


@pytest.mark.parametrize(
    ("code", "pending"),
    [
        pytest.param("y = net(c.get_fdata())", {"orient"}, id="through-a-net"),
        pytest.param("y = [net(s) for s in c.get_fdata()]", {"orient"}, id="slice-by-slice"),
        pytest.param("y = np.zeros(im.shape)\nfor k in range(9):\n    y[..., k] = net(c.get_fdata()[..., k])", {"orient"}, id="into-zeros"),
        pytest.param("y = c.get_fdata() if flag else im.get_fdata()", {"orient"}, id="either-way"),
        pytest.param("y = net(c.get_fdata())\nif turned:\n    y = np.flip(y, 0)", set(), id="turned-back-sometimes"),
        pytest.param("try:\n    y = net(c.get_fdata())\nexcept Exception:\n    y = im.get_fdata()", {"orient"}, id="in-a-try"),
        pytest.param("y = back(net(c.get_fdata()), im)", set(), id="what-is-not-followed-restores"),
        pytest.param("y = im.get_fdata()", set(), id="never-turned"),
        pytest.param("f = lambda v: v\ny = f(c.get_fdata())", {"orient"}, id="through-a-lambda"),
    ],
)  # fmt: skip
def test_what_is_left_to_undo(code, pending):
    found = seen(f"{START}{code}\nnib.save(nib.Nifti1Image(y, im.affine), out)")
    assert [set(array.pending) for array, _, _ in found.saved] == [pending]


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("def f(x):\n    return f(f(x))\nf(nib.load(p))", id="calls-itself-twice"),
        pytest.param("\n".join(f"def f{i}(x):\n    return f{i + 1}(x), f{i + 1}(x)" for i in range(60)) + "\nf0(1)", id="a-tree-of-calls"),
        pytest.param("x = " + "(" * 40 + "1" + ",)" * 40, id="nested-tuples"),
        pytest.param("x = [1, 2]\n" + "x = (x, x)\n" * 300, id="a-value-that-doubles"),
        pytest.param("x = nib.load(p)\n" + "x = {'a': x, 'b': x}\n" * 300, id="dictionaries-that-double"),
        pytest.param("x = np.array([1, 2]) * [1, 2]\n" + "x = x * (x, x)\n" * 200, id="products-that-double"),
        pytest.param("def f(*, a, b=1, *c): pass" if False else "def f(a, /, b=2, *c, d=3, **e):\n    return a\nf(1, 2, 3, d=4, z=5)", id="every-kind-of-argument"),
        pytest.param("y = " + " + ".join(["x"] * 900), id="a-long-sum"),
        pytest.param("class A:\n    def __call__(self): return A()()\nA()()", id="objects-that-call-themselves"),
    ],
)  # fmt: skip
def test_hostile_code_is_cheap(code):
    start = time.process_time()
    seen(code)
    assert time.process_time() - start < 3


_WORDS = st.sampled_from(
    ["im", "c", "(", ")", "[", "]", ":", ",", "=", "\n", "nib.load(p)", "nib.as_closest_canonical(im)", ".shape", "*", "/", "2",
     "np.where(c)", "i, j", "for i, j in", "def f(x):\n    return", "f(", "{'x1': i, 'y1': j}", "*im", "x[::-1]", "dict(", "zip("]
)  # fmt: skip


@given(st.lists(_WORDS, max_size=14).map(" ".join))
@settings(max_examples=150, deadline=None)
def test_any_code_that_parses_is_read(code):
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return
    Flow([tree])
