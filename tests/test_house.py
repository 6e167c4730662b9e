"""The layout of the house (docs/architecture.md): imports point down, none go in circles."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

FLOORS = (
    ("errors", "version", "package_data", "sanitize", "rounding"),
    ("addresses", "atomic_files", "console", "plugins", "demo"),
    ("tasks", "tracks"),
    ("trajectories",),
    ("rubrics", "config"),
    ("error_codes",),
    ("judge",),
    ("library",),
    ("analysis",),
    ("views",),
    ("cohort_library",),
    ("tui",),
    ("web",),
    ("commands",),
    ("cli",),
    ("testing",),
)
"""Rooms from the lowest floor up. A room may import from its own floor and from lower ones."""
ANALYSIS_FLOORS = (("tables",), ("statistics", "simulated"), ("figures",), ("report",))
_OUTSIDE = {"tests", "benchmarks", "docs", "examples", "build", "data"}


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name below `ambjudge`."""
    files = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[0] in _OUTSIDE or any(part.startswith(".") for part in parts):
            continue
        name = ".".join(parts).removesuffix(".__init__")
        files["" if name == "__init__" else name] = path
    return files


MODULES = modules()


def imports(name: str) -> Iterator[str]:
    """Modules of the package that a module names in an import, wherever the import stands."""
    path = MODULES[name]
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        above = package[: len(package) - node.level + 1]
        target = ".".join([*above, *(node.module or "").split(".")]).strip(".")
        for alias in node.names:
            submodule = f"{target}.{alias.name}".strip(".")
            yield submodule if submodule in MODULES else target


GRAPH = {name: {other for other in imports(name) if other in MODULES} for name in MODULES}


def floor_of(name: str, floors: tuple[tuple[str, ...], ...], depth: int) -> int | None:
    """The number of the floor that a module's room is on; None for a module beside the rooms."""
    parts = name.split(".")
    if len(parts) <= depth:
        return None
    for number, rooms in enumerate(floors):
        if parts[depth] in rooms:
            return number
    return None


def test_every_room_has_a_floor() -> None:
    rooms = {name.split(".")[0] for name in MODULES} - {""}
    assert rooms == {room for floor in FLOORS for room in floor}


@pytest.mark.parametrize("name", sorted(set(MODULES) - {""}))
def test_imports_point_down(name: str) -> None:
    own = floor_of(name, FLOORS, 0)
    assert own is not None
    for other in GRAPH[name] - {""}:
        other_floor = floor_of(other, FLOORS, 0)
        assert other_floor is not None
        assert other_floor <= own, f"{name} imports {other}, which is above it"
    if name.startswith("analysis.") and (own := floor_of(name, ANALYSIS_FLOORS, 1)) is not None:
        for other in GRAPH[name]:
            other_floor = floor_of(other, ANALYSIS_FLOORS, 1)
            is_inside = other.startswith("analysis.") and other_floor is not None
            assert not is_inside or other_floor <= own, f"{name} imports {other}"


def test_no_imports_go_in_circles() -> None:
    """Kahn's algorithm: what cannot be ordered stands in a circle or above one."""
    remaining = {name: others - {name, ""} for name, others in GRAPH.items() if name}
    while ready := {name for name, others in remaining.items() if not others & set(remaining)}:
        for name in ready:
            del remaining[name]
    needed = set().union(*remaining.values()) if remaining else set()
    assert not {name: sorted(needs) for name, needs in remaining.items() if name in needed}


@pytest.mark.parametrize("name", sorted(MODULES))
def test_no_conditional_expression_stands_in_another_ones_else(name: str) -> None:
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    nested = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.IfExp) and isinstance(node.orelse, ast.IfExp)
    ]
    assert not nested, f"lines {nested}: write ifs, or a function with returns"
