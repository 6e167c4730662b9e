"""Walks of syntax trees: the nodes of `ast.walk` in its order, contexts and operators left out."""

import ast
from pathlib import Path

import pytest
from ambjudge.trajectories import code_names, code_statements, syntax_tree

LEFT_OUT = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
RARE = """
async def f(a, /, b: int = 1, *c, d=2, **e):
    async with a as (x, y), b:
        async for i in c:
            await i
    match a:
        case {"k": [1, *rest], **more} | str() as z if z > 0:
            return lambda q=1: (yield q)
    try:
        global g; del x[1:2, ...]
    except (A, B) as error:
        raise error from None
    return f"{a!r:>{b}}", {**e}, [j for j in c if j], not -a, a < b <= d, print(*c, sep="")
"""


@pytest.mark.parametrize(
    "source",
    [RARE, *(Path(m.__file__).read_text("utf-8") for m in (code_names, code_statements))],
    ids=["rare", "a", "b"],
)
def test_the_nodes_of_a_tree(source):
    tree = ast.parse(source)
    assert syntax_tree.descendants(tree) == [n for n in ast.walk(tree) if not isinstance(n, LEFT_OUT)]
    for node in ast.walk(tree):
        assert syntax_tree.children(node) == [n for n in ast.iter_child_nodes(node) if not isinstance(n, LEFT_OUT)]
