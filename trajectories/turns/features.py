"""What each turn of a run does, read statically from its code, tools, paths and outputs.

The segmentation, the rules of the judge and the error-code detectors share these facts. A fact is
true if executed code (or a tool) shows it, not if the text claims it; `quotes` gives the line on
which it was seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ..models import Action, Run, Turn
from ..reading.plan_files import writes_plan_image
from .actions import PLAN_NAME, Part, clip, split
from .case_ids import case_ids, cases_in, output_places
from .executed_code import CodeFacts, Files
from .per_run_cache import once_a_run
from .python_reader import ALL
from .shell import file_name, listed_commands
from .shell_facts import asks_machine
from .turn_features import Scope, TurnFeatures

_PLAN_IMAGE = re.compile(r"(?<![\w-])plan\.png\b", re.IGNORECASE)
_DOCUMENT = re.compile(
    r"\.(?:md|rst|txt|py|ya?ml|toml|cfg|ipynb|r|sh|js|c|h|cpp)$|readme", re.IGNORECASE
)
_SOURCE_SUFFIX = re.compile(r"(?:\.(?:py|sh|ipynb|r|[jt]s|c|cpp|rs|go|java|ya?ml|toml))?")
_TEST_FILE = re.compile(
    r"tests?_\w{1,60}\.py|\w{1,60}_tests?\.py|tests?\.py|selftest\.py|unittests?\.py"
)
_SUBMIT_CALL = re.compile(r"(?:^|\n)\s{0,8}submit_results\s*\(", re.IGNORECASE)
_IMPORT = re.compile(r"\s{0,12}(?:.{0,80};\s{0,3})?(?:from|import)\s+([\w.]{1,80})")
_LOOK_CHARS = 2_000
"""A look at the machine is a short command; longer code is not read for one."""
_FLAGS = tuple(name for name, info in TurnFeatures.model_fields.items() if info.annotation is bool)
_USES = frozenset(
    [
        "applies_module",
        "forward_pass",
        "writes_outputs",
        "reads_outputs",
        "loads_inputs",
        "training",
    ]
)
"""Facts of code that does something to cases or models."""


@dataclass
class _RunState:
    """What is known about the run when a turn is read."""

    files: Files
    total: int | None
    """Number of cases, None if unknown."""
    planned: bool = False
    """Whether an earlier turn wrote a plan."""


@dataclass
class _TurnState:
    """What is collected over the actions of one turn."""

    quotes: dict[str, str] = field(default_factory=dict)
    """Fact -> the line on which it was first seen."""
    code: CodeFacts = field(default_factory=CodeFacts)
    executed: list[str] = field(default_factory=list)
    """The texts that were executed."""
    written: list[str] = field(default_factory=list)
    """Paths of the files that were written."""
    executed_lines: int = 0
    plan_lines: int = 0
    module_lines: int = 0
    drawing_lines: int = 0

    def add(self, fact: str, quote: str) -> None:
        """Record a fact unless an earlier line showed it."""
        self.quotes.setdefault(fact, quote)


@once_a_run
def features(run: Run) -> tuple[TurnFeatures, ...]:
    """The features of every turn of a run, in order; the same run always has the same features."""
    ids = case_ids(run)
    prefixes = tuple({case.rstrip("0123456789") for case in ids} - {""})
    state = _RunState(Files(output_places(run), frozenset(ids), prefixes), len(ids) or None)
    last = len(run.turns)
    return tuple(_turn_features(turn, state, turn.index == last) for turn in run.turns)


def _turn_features(turn: Turn, run_state: _RunState, last: bool) -> TurnFeatures:
    files, state = run_state.files, _TurnState()
    for action in turn.actions:
        _tool_facts(action, files, state)
        _read_action(action, files, state)
    code, quotes = state.code, state.quotes
    for fact, quote in code.facts.items():
        state.add(fact, quote)
    if "revises_plan" in quotes:  # written by a shell command
        state.add("writes_plan", quotes.pop("revises_plan"))
    revised = run_state.planned and "writes_plan" in quotes
    run_state.planned = run_state.planned or "writes_plan" in quotes
    if any(_TEST_FILE.fullmatch(file_name(path)) for path in code.started):
        state.add("runs_tests", quotes.get("runs_script", ""))
    drawing = next((action for action in turn.actions if writes_plan_image(action)), None)
    if drawing is not None:
        state.add("writes_plan_image", _line_with(drawing.code, _PLAN_IMAGE))
    scope, share, cases = _case_scope(turn, run_state, state)
    _combine(quotes)

    imports_own = _imports_own(state, files)
    has_work = "forward_pass" in quotes or "writes_outputs" in quotes
    runs_own = imports_own or has_work or bool(code.started)
    observations = [a.observation for a in turn.actions if a.observation is not None]
    flags = {name: name in quotes for name in _FLAGS}
    flags.update(
        revises_plan=revised,
        runs_script=bool(code.started) or imports_own,
        module_only="writes_module" in quotes and not runs_own,
        submits=_submits(turn, state.executed),
        closing_message=not turn.actions and last and bool(turn.text.strip()),
        message_only=not turn.actions,
        todo_done=any(map(_todo_done, turn.actions)),
        todo_only=bool(turn.actions) and all(a.kind == "todo" for a in turn.actions),
        asks_machine=_only_asks_machine(turn, quotes),
        failed=turn.failed,
        blocked=any(o.kind == "blocked" for o in observations),
        timed_out=any(o.kind == "timeout" for o in observations),
        unanswered=any(a.observation is None for a in turn.actions),
        executed=bool(state.executed),
    )
    script_texts = [files.texts.get(file_name(path), "") for path in code.started]
    return TurnFeatures(
        turn=turn.index,
        cases_scope=scope,
        cases_share=share,
        cases=cases,
        inputs_scope=_scope(code.loaded, run_state.total),
        code_lines=state.executed_lines,
        plan_lines=state.plan_lines,
        drawing_lines=state.drawing_lines,
        module_lines=state.module_lines,
        run_lines=max(map(_count_lines, script_texts), default=0),
        written_paths=tuple(state.written),
        run_paths=tuple(code.started),
        quotes={name: quote for name, quote in quotes.items() if quote and name in flags},
        **flags,
    )


def _read_action(action: Action, files: Files, state: _TurnState) -> None:
    """Add what an action writes, then what it executes."""
    parts = split(action)
    file_parts = [part for part in parts if part.kind == "file"]
    for part in file_parts:
        _read_file(part, action, files, state)
    for part in parts:
        if part.kind == "shell":
            state.executed_lines += part.lines
            state.executed.append(part.text)
            files.shell(part.text, state.code)
        elif part.kind == "python":
            _read_python(part, file_parts, files, state)


def _read_file(part: Part, action: Action, files: Files, state: _TurnState) -> None:
    """Add a written file: a plan, a report, a source, a deliverable."""
    state.written.append(part.path)
    if PLAN_NAME.search(part.path):
        state.add("writes_plan", f"{part.path}: {part.text.strip()[:120]}")
        state.plan_lines += part.lines
    else:
        state.module_lines += part.lines
        if part.path.lower().endswith((".md", ".rst")):
            state.add("writes_report", part.path)
        elif _SOURCE_SUFFIX.fullmatch(PurePosixPath(part.path).suffix.lower()):
            state.add("writes_module", part.path)
        if files.outputs.search(part.path):
            state.add("writes_outputs", part.path)
    _store(part, action, files)
    if files.only_looks(part.path):
        state.add("module_looks", part.path)


def _read_python(part: Part, written: Sequence[Part], files: Files, state: _TurnState) -> None:
    code = part.text
    for file in written:  # texts of written files are not executed here
        code = code.replace(file.text, "", 1)
    lines = Part("python", code).lines
    state.executed_lines += lines
    state.executed.append(code)
    uses_before = state.code.facts.keys() & _USES
    files.python(part, state.code)
    draws = "plan.png" in code.lower() and _PLAN_IMAGE.search(code) is not None
    if draws and state.code.facts.keys() & _USES == uses_before:
        state.drawing_lines += lines


def _imports_own(state: _TurnState, files: Files) -> bool:
    """Whether executed code imports a file that the run wrote, and uses it."""
    if _USES.isdisjoint(state.quotes):
        return False
    stems = {PurePosixPath(path).stem for path in files.texts}
    return not stems.isdisjoint(_imported(state.executed))


def _submits(turn: Turn, executed: Iterable[str]) -> bool:
    if any(action.kind == "submit" for action in turn.actions):
        return True
    return any(_SUBMIT_CALL.search(text) for text in executed)


def _combine(quotes: dict[str, str]) -> None:
    """Add the facts that follow from others."""
    if "loads_inputs" in quotes:
        prints = "prints_statistics" in quotes or "prints_shapes" in quotes
        if prints or "print" in quotes["loads_inputs"]:
            quotes.setdefault("inspects_inputs", quotes["loads_inputs"])
    if "reads_outputs" in quotes and "counts_files" in quotes:
        quotes.setdefault("checks_outputs", quotes["reads_outputs"])
    if "prints_statistics" in quotes:
        quotes.setdefault("inspects_values", quotes["prints_statistics"])
    if "prints_shapes" in quotes:
        quotes.setdefault("inspects_shapes", quotes["prints_shapes"])
    if "forward_pass" in quotes and "writes_files" in quotes and "writes_outputs" not in quotes:
        quotes["stores_results"] = quotes["writes_files"]


def _case_scope(
    turn: Turn, run_state: _RunState, state: _TurnState
) -> tuple[Scope, float | None, tuple[str, ...]]:
    """The scope of a turn's work, its share of the cases in [0, 1], and the ids it names or prints.

    The share is None if the number of cases is unknown.
    """
    ids, total = run_state.files.case_ids, run_state.total
    named = cases_in("\n".join(state.executed), ids)
    printed = cases_in(clip(turn.output), ids)
    cases = tuple(dict.fromkeys((*named, *printed)))
    size = state.code.scope
    if not size:
        return "none", None, cases
    if size == 1:
        size = _cases_of_one_call(state.code, len(named), len(printed))
    if total:
        return _scope(size, total), min(1.0, size / total), cases
    return _scope(size, total), 1.0 if size >= ALL else None, cases


def _cases_of_one_call(code: CodeFacts, named: int, printed: int) -> int:
    """How many cases code without a loop works on: a script may print a line for each case."""
    unseen_loop = bool(code.started) and not code.scope_from_command
    if unseen_loop and printed > 1:
        return printed
    return max(1, named)


def _scope(size: int, total: int | None) -> Scope:
    """The word for a number of cases out of `total` (None: unknown)."""
    if size <= 0:
        return "none"
    if size >= ALL or (total is not None and total >= 3 and size >= 0.9 * total):
        return "all"
    return "one" if size == 1 else "few"


def _store(part: Part, action: Action, files: Files) -> None:
    """Keep the text of a file that an action writes, appends to or edits.

    An edit of an unknown file leaves nothing.
    """
    before = files.texts.get(file_name(part.path))
    if action.kind != "edit":
        files.store(part.path, f"{before or ''}\n{part.text}" if part.append else part.text)
        return
    if before is None:
        return
    arguments = action.arguments or {}
    replaced = arguments.get("old_string") or arguments.get("old_str")
    if isinstance(replaced, str) and replaced in before:
        text = before.replace(replaced, part.text, 1)
    else:
        text = f"{before}\n{part.text}"
    files.store(part.path, clip(text))


def _tool_facts(action: Action, files: Files, state: _TurnState) -> None:
    """Add the facts of tools that execute nothing: readers, searchers, web, background output."""
    path = action.path or ""
    if action.tool.lower() == "bashoutput":
        state.add("watches_progress", action.tool)
    elif action.kind == "read":
        if PLAN_NAME.search(path):
            return
        if files.outputs.search(path):
            state.add("reads_outputs", path)
        elif file_name(path) in files.texts or _DOCUMENT.search(path):
            state.add("reads_docs", path)
        else:
            state.add("loads_inputs", path)
            state.add("inspects_inputs", path)
    elif action.kind == "search":
        state.add("lists_inputs", f"{action.tool} {path}".strip())
        if files.outputs.search(path):
            state.add("reads_outputs", path)
    elif action.kind == "web":
        state.add("reads_docs", action.tool)


def _only_asks_machine(turn: Turn, quotes: dict[str, str]) -> bool:
    if not turn.actions or "reads_outputs" in quotes or "writes_outputs" in quotes:
        return False
    return all(map(_asks_machine, turn.actions))


def _asks_machine(action: Action) -> bool:
    """Whether an action only looks at the machine or searches files.

    It searches files with a tool, or only runs programs that show the state of the machine.
    """
    if action.kind == "search":
        return True
    if action.kind != "execute" or action.language not in ("bash", "sh"):
        return False
    return len(action.code) <= _LOOK_CHARS and asks_machine(listed_commands(action.code))


def _todo_done(action: Action) -> bool:
    """Whether an action writes a to-do list in which everything is completed."""
    todos = (action.arguments or {}).get("todos") if action.kind == "todo" else None
    if not isinstance(todos, list):
        return False
    statuses = [todo.get("status") for todo in todos if isinstance(todo, dict)]
    return bool(statuses) and all(status == "completed" for status in statuses)


def _imported(executed: Iterable[str]) -> set[str]:
    """Stems of the modules that executed code imports."""
    stems = set()
    for text in executed:
        for line in text.split("\n"):
            match = _IMPORT.match(line) if "import" in line or "from" in line else None
            if match is not None:
                stems.add(match[1].rpartition(".")[2])
    return stems


def _count_lines(text: str) -> int:
    return sum(1 for line in text.split("\n") if line.strip())


def _line_with(text: str, pattern: re.Pattern[str]) -> str:
    """The first line with a match, at most 160 characters of it; "" without a match."""
    return next((line.strip()[:160] for line in text.split("\n") if pattern.search(line)), "")
