"""E3: outputs that are the input unchanged, seen from the code and the help texts where no input files came with the run."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from ...trajectories.code_names import last_name
from ...trajectories.code_parts import parse, split
from ..context import CodeContext
from ..registry import Finding, detector
from .checks import MAX_ROWS

MAX_CODE = 200_000
_DELIVERED = re.compile(r"enhanced\.npy|sct\.nii|agents_outputs")
_COPIED = re.compile(
    r"\b(?:cp (?:-\w{1,6} )?|shutil\.copy\w{0,4}\()([^\s,]{1,300}\.(?:npy|nii\.gz)['\"]?)(?:,\s?|\s{1,3})[^\s,]{0,300}(?:enhanced\.npy|sct\.nii\.gz)"
)
_CONVERTS = frozenset({"astype", "copy", "squeeze", "float32", "asarray", "array", "ascontiguousarray"})
_OPTION = re.compile(r"(--[a-z][\w-]{1,30})[ =]([A-Z][A-Z_]{0,20})\b")
_NO_EFFECT = re.compile(
    r"\b0(?:\.0)?\s{0,2}[=:]\s{0,2}(?:the )?(?:input|off|no effect|no change|unchanged|identity|disabled|nothing|original)\b",
    re.I,
)
_DEFAULT_ZERO = re.compile(r"\bdefault(?:s to|:| is)?\s{0,2}=?\s{0,2}0(?:\.0)?(?![\d.]*[1-9])", re.IGNORECASE)
_SCRIPT = re.compile(r"\b[\w-]{1,60}\.(?:py|sh)\b")


@detector("default_changes_nothing", code="E3", stage="S3", independence="from_trace")
def default_changes_nothing(ctx: CodeContext) -> Iterable[Finding]:
    """A tool's help, printed in the run, says that its default leaves the input as it is, and the option was never set."""
    used = "\n".join(
        t.code for t in ctx.run.turns if ctx.stage(t.index) in ("S3", "S4") and not ctx.feature(t.index).blocked
    )
    if not ctx.handed_over:
        return
    for turn in ctx.run.turns[: ctx.last - 1]:
        lines = [line[:600] for line in turn.output[:200_000].splitlines()[:MAX_ROWS]]
        idle = next((line for line in lines if _NO_EFFECT.search(line) and _DEFAULT_ZERO.search(line)), None)
        if idle is None:
            continue
        options = {m[2]: m[1] for line in lines for m in _OPTION.finditer(line)}
        named = next((o for n, o in options.items() if re.search(rf"(?<![\w-]){re.escape(n)}\b", idle)), None)
        scripts = dict.fromkeys(name for line in lines for name in _SCRIPT.findall(line))
        script = next((name for name in scripts if name in used), None)
        if named and script and not re.search(rf"{re.escape(named)}\b", used):
            calls = [
                t.index for t in ctx.run.turns[turn.index :] if script in t.code and ctx.stage(t.index) in ("S3", "S4")
            ]
            why = f"{script} returns its input unless {named} is set, which its help says and the calls never do."
            yield Finding(tuple(sorted({turn.index, *calls, ctx.last})), why, 0.8)
            return


@detector("input_saved_as_output", code="E3", stage="S4", independence="from_trace")
def input_saved_as_output(ctx: CodeContext) -> Iterable[Finding]:
    """The code that wrote the outputs saves the array that it loaded, or copies the file; nothing was done to it."""
    final = ctx.final_write
    if ctx.run.track not in ("enhancement", "synthesis") or final is None or not ctx.handed_over:
        return
    for action in ctx.turn(final).actions:
        for part in split(action):
            text = part.text[:MAX_CODE]
            copied = next((source for source in _COPIED.findall(text) if not _DELIVERED.search(source)), None)
            name = saved_input(text) if part.kind in ("python", "file") else None
            if name or copied:
                what = f"saves {name} as it was loaded" if name else "copies an input to the place of the output"
                turns = tuple(sorted({final, *ctx.checks, ctx.last}))
                yield Finding(turns, f"The code {what}, and no check compared output and input.", 0.8)
                return


def saved_input(code: str) -> str | None:
    """Name of an array that a script loads, never changes, and saves as a deliverable; None when there is none."""
    tree = parse(code)
    if tree is None:
        return None
    loaded: set[str] = set()
    bound: Counter[str] = Counter()
    saved: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            words = _calls(node.value)
            if words and words <= {"load", "get_fdata", *_CONVERTS} and "load" in words and not _delivered(node.value):
                loaded.add(node.targets[0].id)
        if isinstance(node, ast.Call) and last_name(node.func) in ("save", "Nifti1Image"):
            where, what = (
                (node.args[-1], node.args[0])
                if last_name(node.func) != "save"
                else (node.args[0], node.args[-1])
                if node.args
                else (None, None)
            )
            name = _plain(what)
            if name is not None and (
                last_name(node.func) == "Nifti1Image" or _delivered(where) or isinstance(where, ast.Name)
            ):
                saved.setdefault(name, name)
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and last_name(node.value) not in ("print", "save")
        ):
            bound.update(arg.id for arg in node.value.args if isinstance(arg, ast.Name))  # may work in place
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] += 1
        elif (
            isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and (inner := _plain(node.value))
        ) or (isinstance(node, ast.keyword) and node.arg in ("out", "output") and (inner := _plain(node.value))):
            bound[inner] += 1
    if not _DELIVERED.search(code):
        return None
    return next((name for name in saved if name in loaded and bound[name] == 1), None)


def _calls(node: ast.expr) -> set[str]:
    """Names of all calls in an expression; a calculation counts as a call of its own."""
    return {last_name(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)} | {
        "calculation" for n in ast.walk(node) if isinstance(n, (ast.BinOp, ast.UnaryOp)) and not _path(n)
    }


def _path(node: ast.AST) -> bool:
    """Whether an operation joins strings or paths rather than arrays."""
    return any(isinstance(n, ast.Constant) and isinstance(n.value, str) for n in ast.walk(node))


def _strings(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def _delivered(node: ast.AST | None) -> bool:
    return node is not None and any(_DELIVERED.search(text[:2_000]) for text in _strings(node))


def _plain(node: ast.expr | None) -> str | None:
    """The name behind an expression that only converts its type: `x`, `x.astype(...)`, `np.asarray(x)`."""
    for _ in range(5):
        if isinstance(node, ast.Name):
            return node.id
        if not isinstance(node, ast.Call) or last_name(node.func) not in _CONVERTS:
            return None
        inner = node.func.value if isinstance(node.func, ast.Attribute) else None
        module = isinstance(inner, ast.Name) and inner.id in ("np", "numpy")
        node = inner if inner is not None and not module else (node.args[0] if node.args else None)
    return None
