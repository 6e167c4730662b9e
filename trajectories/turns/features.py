"""What each turn of a run does, read statically from its code, tools, paths, outputs and words.

One vocabulary of facts for the segmentation, the heuristic judge and the error-code detectors. A
fact is true when executed code (or a tool) shows it, not when the text claims it; `quotes` gives
the line on which it was seen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from ..models import STAGES, Action, Run, Stage, Turn
from ..reading.plan_files import writes_plan_image
from .actions import PLAN_NAME, Part, clip, split
from .cases import case_ids, cases_in, output_places
from .executed import Files, Shown
from .per_run_cache import once_a_run
from .python_module import ALL
from .shell import file_name, listed_commands
from .shell_facts import asks_machine
from .turn_features import Scope, TurnFeatures

_PLAN_IMAGE = re.compile(r"(?<![\w-])plan\.png\b", re.IGNORECASE)
_STAGE_COMMENT = re.compile(
    r"(?:^|\n)[ \t]{0,8}(?:#|//|--)[ \t#*=-]{0,8}(?:Stage |Step |Phase )?(S[1-5])\b", re.IGNORECASE
)
_STAGE_TEXT = re.compile(r"(?:^|[\n.:!;(*#] ?)\**(S[1-5])\b(?! ?(?:-|to|–) ?S?[1-5])")
_DOCUMENT = re.compile(
    r"\.(?:md|rst|txt|py|ya?ml|toml|cfg|ipynb|r|sh|js|c|h|cpp)$|readme", re.IGNORECASE
)
_SOURCE = frozenset(
    [
        ".py",
        ".sh",
        ".ipynb",
        ".r",
        ".js",
        ".ts",
        ".c",
        ".cpp",
        ".rs",
        ".go",
        ".java",
        ".yaml",
        ".yml",
        ".toml",
        "",
    ]
)
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
        "made_up_input",
    ]
)


@dataclass
class _Known:
    """What is known of the run when a turn is read."""

    files: Files
    total: int | None
    """How many cases there are."""
    planned: bool = False


@once_a_run
def features(run: Run) -> tuple[TurnFeatures, ...]:
    """Facts for every turn of a run, in order; empty for a run without turns. Pure: the same run
    gives the same facts."""
    ids = case_ids(run)
    prefixes = tuple({case.rstrip("0123456789") for case in ids} - {""})
    known = _Known(Files(output_places(run), frozenset(ids), prefixes), len(ids) or None)
    last = len(run.turns)
    return tuple(_turn_features(turn, known, turn.index == last) for turn in run.turns)


def _turn_features(turn: Turn, known: _Known, last: bool) -> TurnFeatures:
    files, quotes = known.files, dict[str, str]()
    shown = Shown()
    executed_lines = plan_lines = module_lines = drawing_lines = 0
    written: list[str] = []
    executed: list[str] = []
    for action in turn.actions:
        _tool_facts(action, files, quotes)
        parts = split(action)
        own = [part for part in parts if part.kind == "file"]
        for part in own:
            written.append(part.path)
            if PLAN_NAME.search(part.path):
                quotes.setdefault("writes_plan", f"{part.path}: {part.text.strip()[:120]}")
                plan_lines += part.lines
            else:
                module_lines += part.lines
                _file_facts(part, files, quotes)
            _store(part, action, files)
            if files.only_looks(part.path):
                quotes.setdefault("module_looks", part.path)
        for part in parts:
            if part.kind == "shell":
                executed_lines += part.lines
                executed.append(part.text)
                files.shell(part.text, shown)
            elif part.kind == "python":
                code = _without(part.text, own)
                lines = Part("python", code).lines
                executed_lines += lines
                executed.append(code)
                before = shown.facts.keys() & _USES
                files.python(part, shown)
                if (
                    "plan.png" in code.lower()
                    and _PLAN_IMAGE.search(code)
                    and shown.facts.keys() & _USES == before
                ):
                    drawing_lines += lines
    for fact, quote in shown.facts.items():
        quotes.setdefault(fact, quote)
    if "revises_plan" in quotes:
        quotes.setdefault("writes_plan", quotes.pop("revises_plan"))
    revised = known.planned and "writes_plan" in quotes
    known.planned = known.planned or "writes_plan" in quotes

    started = shown.started
    imports_own = not _USES.isdisjoint(quotes) and not _imported(executed).isdisjoint(
        PurePosixPath(p).stem for p in files.texts
    )
    ran_own = not {file_name(p) for p in started}.isdisjoint(map(file_name, written))
    has_work = "forward_pass" in quotes or "writes_outputs" in quotes
    scope, share, cases = _case_scope(turn, known, shown, executed)
    comment = _comment(turn)
    if comment:
        quotes["stage_comment"] = comment[1]
    if any(_TEST_FILE.fullmatch(file_name(path)) for path in started):
        quotes.setdefault("runs_tests", quotes.get("runs_script", ""))
    image = next((a for a in turn.actions if writes_plan_image(a)), None)
    if image is not None:
        quotes.setdefault("writes_plan_image", _line_with(image.code, _PLAN_IMAGE))
    _combined(quotes, shown, bool(cases))
    message = not turn.actions
    observations = [a.observation for a in turn.actions if a.observation is not None]
    flags = {name: name in quotes for name in _FLAGS}
    flags.update(
        revises_plan=revised,
        runs_script=bool(started) or imports_own,
        module_only="writes_module" in quotes
        and not (imports_own or ran_own or started or has_work),
        submits=any(a.kind == "submit" for a in turn.actions)
        or any(_SUBMIT_CALL.search(t) for t in executed),
        closing_message=message and last and bool(turn.text.strip()),
        message_only=message,
        imports_only=bool(executed) and not has_work and all(map(_imports_only, executed)),
        todo_done=any(map(_todo_done, turn.actions)),
        todo_only=bool(turn.actions) and all(a.kind == "todo" for a in turn.actions),
        asks_machine=bool(turn.actions)
        and not quotes.keys() & {"reads_outputs", "writes_outputs"}
        and all(map(_asks_machine, turn.actions)),
        failed=turn.failed,
        blocked=any(o.kind == "blocked" for o in observations),
        timed_out=any(o.kind == "timeout" for o in observations),
        unanswered=any(a.observation is None for a in turn.actions),
        executed=bool(executed),
    )
    return TurnFeatures(
        turn=turn.index,
        cases_scope=scope,
        cases_share=share,
        cases=cases,
        inputs_scope=_scope(shown.loaded, known.total),
        stage_comment=comment[0] if comment else None,
        code_lines=executed_lines,
        plan_lines=plan_lines,
        drawing_lines=drawing_lines,
        module_lines=module_lines,
        run_lines=max((_lines(files.texts.get(file_name(p), "")) for p in started), default=0),
        written_paths=tuple(written),
        run_paths=tuple(started),
        quotes={k: v for k, v in quotes.items() if v and (k in flags or k == "stage_comment")},
        **flags,
    )


def _combined(quotes: dict[str, str], shown: Shown, cases: bool) -> None:
    """Facts that follow from others."""
    printed = quotes.get("prints_statistics") or quotes.get("prints_shapes")
    if "loads_inputs" in quotes and (printed is not None or "print" in quotes["loads_inputs"]):
        quotes.setdefault("inspects_inputs", quotes["loads_inputs"])
    if "reads_outputs" in quotes and "counts_files" in quotes:
        quotes.setdefault("checks_outputs", quotes["reads_outputs"])
    if "made_up_input" in quotes and (
        "applies_module" not in quotes or "loads_inputs" in quotes or cases
    ):
        del quotes["made_up_input"]
    for fact, source in (
        ("inspects_values", "prints_statistics"),
        ("inspects_shapes", "prints_shapes"),
    ):
        if source in quotes:
            quotes.setdefault(fact, quotes[source])
    if "forward_pass" in quotes and len(shown.weights) > 1:
        quotes.setdefault("compares_candidates", quotes["forward_pass"])
    if "forward_pass" in quotes and "writes_files" in quotes and "writes_outputs" not in quotes:
        quotes["stores_results"] = quotes["writes_files"]


def _case_scope(
    turn: Turn, known: _Known, shown: Shown, executed: Iterable[str]
) -> tuple[Scope, float | None, tuple[str, ...]]:
    """The scope of a turn's work, its share of the known cases in [0, 1], and the case ids it names
    or prints."""
    ids = known.files.known
    named, printed = cases_in("\n".join(executed), ids), cases_in(clip(turn.output), ids)
    cases = tuple(dict.fromkeys((*named, *printed)))
    if not shown.scope:
        return "none", None, cases
    size = shown.scope
    if size == 1 and len(printed) > 1 and shown.started and not shown.told:
        size = len(printed)  # a script whose loop was not seen, but which prints a line a case
    elif size == 1 and len(named) > 1:
        size = len(named)
    share = min(1.0, size / known.total) if known.total else 1.0 if size >= ALL else None
    return _scope(size, known.total), share, cases


def _scope(size: int, total: int | None) -> Scope:
    """The word for so many cases out of `total` (None: not known)."""
    if size <= 0:
        return "none"
    if size >= ALL or (total is not None and total >= 3 and size >= 0.9 * total):
        return "all"
    return "one" if size == 1 else "few"


def _file_facts(part: Part, files: Files, quotes: dict[str, str]) -> None:
    """What a written file is that is no plan: a report, a source, a deliverable."""
    if part.path.lower().endswith((".md", ".rst")):
        quotes.setdefault("writes_report", part.path)
    elif PurePosixPath(part.path).suffix.lower() in _SOURCE:
        quotes.setdefault("writes_module", part.path)
    if files.outputs.search(part.path):
        quotes.setdefault("writes_outputs", part.path)


def _store(part: Part, action: Action, files: Files) -> None:
    """Keep the text of a file that an action writes, adds to or edits; an edit of an unknown file
    leaves nothing."""
    before = files.texts.get(file_name(part.path))
    if action.kind != "edit":
        files.store(part.path, f"{before or ''}\n{part.text}" if part.append else part.text)
    elif before is not None:
        arguments = action.arguments or {}
        old = arguments.get("old_string") or arguments.get("old_str")
        known = isinstance(old, str) and old in before
        files.store(
            part.path,
            clip(before.replace(str(old), part.text, 1) if known else f"{before}\n{part.text}"),
        )


def _tool_facts(action: Action, files: Files, quotes: dict[str, str]) -> None:
    """Facts of tools that execute nothing: readers, searchers, web, background output."""
    path = action.path or ""
    if action.tool.lower() == "bashoutput":
        quotes.setdefault("watches_progress", action.tool)
    elif action.kind == "read":
        if PLAN_NAME.search(path):
            return
        if files.outputs.search(path):
            quotes.setdefault("reads_outputs", path)
        elif file_name(path) in files.texts or _DOCUMENT.search(path):
            quotes.setdefault("reads_docs", path)
        else:
            quotes.setdefault("loads_inputs", path)
            quotes.setdefault("inspects_inputs", path)
    elif action.kind == "search":
        quotes.setdefault("lists_inputs", f"{action.tool} {path}".strip())
        if files.outputs.search(path):
            quotes.setdefault("reads_outputs", path)
    elif action.kind == "web":
        quotes.setdefault("reads_docs", action.tool)


def _asks_machine(action: Action) -> bool:
    """Whether an action searches files with a tool, or starts nothing but programs that show the
    machine's state."""
    if action.kind == "search":
        return True
    shell = (
        action.kind == "execute"
        and action.language in ("bash", "sh")
        and len(action.code) <= _LOOK_CHARS
    )
    return shell and asks_machine(listed_commands(action.code))


def _without(text: str, files: Iterable[Part]) -> str:
    """Executed code without the texts of the files that it writes."""
    for file in files:
        text = text.replace(file.text, "", 1)
    return text


def _todo_done(action: Action) -> bool:
    todos = (action.arguments or {}).get("todos") if action.kind == "todo" else None
    done = (
        [t.get("status") == "completed" for t in todos if isinstance(t, dict)]
        if isinstance(todos, list)
        else []
    )
    return bool(done) and all(done)


def _comment(turn: Turn) -> tuple[Stage, str] | None:
    """The stage most often named in comments; else the first that the text names at the beginning
    of a clause."""
    found = Counter(match.group(1).upper() for match in _STAGE_COMMENT.finditer(clip(turn.code)))
    if found:
        best = max(STAGES, key=lambda stage: found.get(stage, 0))
        quote = next(
            m.group(0).strip()
            for m in _STAGE_COMMENT.finditer(clip(turn.code))
            if m.group(1).upper() == best
        )
        return best, quote
    match = _STAGE_TEXT.search(turn.text[:400])
    if match is None:
        return None
    stage = next(s for s in STAGES if s == match.group(1).upper())
    return stage, turn.text[max(0, match.start(1) - 20) : match.end(1) + 60].strip()


def _imported(executed: Iterable[str]) -> set[str]:
    return {
        found[1].rsplit(".", 1)[-1]
        for text in executed
        for line in text.split("\n")
        if ("import" in line or "from" in line) and (found := _IMPORT.match(line))
    }


def _lines(text: str) -> int:
    return sum(1 for line in text.split("\n") if line.strip())


def _imports_only(text: str) -> bool:
    lines = [
        line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")
    ]
    imports = sum(1 for line in lines if re.match(r"\s{0,8}(?:import|from)\s\w", line))
    return imports > 0 and imports * 2 >= len(lines)


def _line_with(text: str, pattern: re.Pattern[str]) -> str:
    """The line on which a pattern is first found, at most 160 characters of it; "" where it is not."""
    return next((line.strip()[:160] for line in text.split("\n") if pattern.search(line)), "")
