"""plan.md and plan.png: the files when they are there, else the text recovered from the code that wrote it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from .layout import find_plan
from .models import Action, Plan, Turn
from .reading import MAX_BYTES

_HEREDOC = re.compile(
    r"(?:cat|tee)\b[^\n<]*?(?P<append>>>|-a\b)?[^\n<]*?<<-?\s*(?P<q>['\"]?)(?P<tag>\w+)(?P=q)(?P<rest>[^\n]*)\n(?P<body>.*?)\n\t*(?P=tag)[ \t]*(?:\n|$)",
    re.DOTALL,
)
_PLAN_NAME = re.compile(r"(?<![\w-])plan\.md\b", re.IGNORECASE)
_IMAGE_WRITE = re.compile(
    r"(?:savefig|\.save|imwrite|write_image|render|dot\s+-T\s?png[^\n]*|convert|mmdc|to_file)\b[^\n]*plan\.png|plan\.png[^\n]*\b(?:savefig|save|imwrite)\b|-o\s*\S*plan\.png",
    re.IGNORECASE,
)


def read_plan(folder: Path, turns: Sequence[Turn], warnings: list[str]) -> Plan:
    """The run's plan. When no file came with the run, the last text that succeeded code wrote to a plan.md."""
    path, image = find_plan(folder, "plan.md"), find_plan(folder, "plan.png")
    writes = [
        (turn.index, text, append) for turn in turns for action in turn.actions for text, append in plan_writes(action)
    ]
    turn = writes[-1][0] if writes else None
    image_turn = next(
        (t.index for t in reversed(turns) for a in t.actions if _succeeded(a) and writes_plan_image(a)), None
    )
    text: str | None = None
    if path is not None:
        try:
            data = path.read_bytes()[:MAX_BYTES]
        except OSError as error:
            warnings.append(f"plan: {path.name} cannot be read: {error.strerror}")
            path = None
        else:
            text = data.decode("utf-8", errors="replace")
            if "\ufffd" in text:
                warnings.append("plan: plan.md is not UTF-8; broken characters were replaced")
            return Plan(text=text, source="file", path=path, turn=turn, image_path=image, image_turn=image_turn)
    recovered = ""
    for _, written, append in writes:
        recovered = f"{recovered}\n{written}" if append and recovered else written
    if recovered.strip():
        warnings.append(f"plan: no plan.md came with the run; its text was recovered from the code of turn {turn}")
        return Plan(text=recovered, source="recovered", turn=turn, image_path=image, image_turn=image_turn)
    return Plan(image_path=image, image_turn=image_turn)


def _succeeded(action: Action) -> bool:
    return action.observation is not None and action.observation.kind in ("ok", "unknown")


def plan_writes(action: Action) -> Iterator[tuple[str, bool]]:
    """(text, appended) for each write of a plan.md by an action that did not fail. Edits of a plan are not texts."""
    if not _succeeded(action):
        return
    if action.kind == "write" and action.path and _PLAN_NAME.search(action.path):
        yield action.code, False
        return
    if action.kind != "execute" or not _PLAN_NAME.search(action.code):
        return
    if action.language != "python":
        for match in _HEREDOC.finditer(action.code):
            line = match.group(0).split("\n", 1)[0]
            if _PLAN_NAME.search(line):
                yield match.group("body"), ">>" in line or " -a" in line
    yield from _python_writes(action.code)


def _python_writes(code: str) -> Iterator[tuple[str, bool]]:
    """String literals given to open(...plan.md).write, Path(...plan.md).write_text or f.write in a with of plan.md."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    names = {
        t.id: v
        for n in ast.walk(tree)
        if isinstance(n, ast.Assign)
        for t in n.targets
        if isinstance(t, ast.Name)
        for v in [n.value]
    }

    def text_of(node: ast.AST, depth: int = 0) -> str | None:
        if depth > 6:
            return None
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        if isinstance(node, ast.Name) and node.id in names:
            return text_of(names[node.id], depth + 1)
        if isinstance(node, ast.JoinedStr):
            return "".join(str(v.value) if isinstance(v, ast.Constant) else "{…}" for v in node.values)
        if isinstance(node, ast.BinOp):
            left, right = text_of(node.left, depth + 1), text_of(node.right, depth + 1)
            return None if left is None and right is None else (left or "") + (right or "")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "join" and node.args and isinstance(node.args[0], ast.List | ast.Tuple):
                return "\n".join(t for t in (text_of(e, depth + 1) for e in node.args[0].elts) if t is not None)
            if node.func.attr in ("strip", "lstrip", "rstrip", "format", "encode", "dedent"):
                inner = node.args[0] if node.func.attr == "dedent" and node.args else node.func.value
                return text_of(inner, depth + 1)
        return None

    def names_plan(node: ast.AST, depth: int = 0) -> bool:
        if depth > 6:
            return False
        for child in ast.walk(node):
            if isinstance(child, ast.Constant) and isinstance(child.value, str) and _PLAN_NAME.search(child.value):
                return True
            if isinstance(child, ast.Name) and child.id in names and names_plan(names[child.id], depth + 1):
                return True
        return False

    handles = {
        item.optional_vars.id: _mode(item.context_expr)
        for n in ast.walk(tree) if isinstance(n, ast.With)
        for item in n.items
        if isinstance(item.optional_vars, ast.Name) and names_plan(item.context_expr)
    }  # fmt: skip
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        target, method = node.func.value, node.func.attr
        if method in ("write_text", "write_bytes") and names_plan(target):
            append = False
        elif method == "write" and isinstance(target, ast.Name) and target.id in handles:
            append = "a" in handles[target.id]
        elif method == "write" and isinstance(target, ast.Call) and names_plan(target):
            append = "a" in _mode(target)
        else:
            continue
        text = text_of(node.args[0])
        if text is not None:
            yield text, append


def _mode(call: ast.AST) -> str:
    if isinstance(call, ast.Call):
        for value in [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "mode")]:
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                return value.value
    return "r"


def writes_plan_image(action: Action) -> bool:
    """Whether the action's code saves a plan.png."""
    return (
        action.kind == "execute"
        and "plan.png" in action.code
        and bool(
            _IMAGE_WRITE.search(action.code)
            or re.search(r"savefig|\.save\(|imwrite|Digraph|graphviz|dot -T", action.code)
        )
    )
