"""What each turn of a run does, read statically from its code, tools, paths, outputs and words.

One vocabulary of facts for the segmentation, the heuristic judge and the error-code detectors. A fact is true when
executed code (or a tool) shows it, not when the text claims it; `quotes` gives the line on which it was seen.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Literal

from .code_facts import python_facts
from .code_modules import Facts, Module
from .code_names import ALL
from .code_options import here_scope, scope_of
from .code_parts import Part, clip, split, split_shell
from .command_lines import CASE, PLAIN_CASE, Launch, cases_asked, launches, programs
from .memo import once_a_run
from .models import STAGES, Action, Frozen, Run, Stage, Turn
from .shell_facts import shell_facts
from .syntax_tree import descendants
from .world import World, file_name, world_of

Scope = Literal["none", "one", "few", "all", "unknown"]

_PLAN = re.compile(r"(?<![\w-])plan\.md$", re.IGNORECASE)
_PLAN_NAMED = re.compile(r"(?<![\w-])plan\.md\b", re.IGNORECASE)
_PLAN_IMAGE = re.compile(r"(?<![\w-])plan\.png\b", re.IGNORECASE)
_READS = re.compile(r"load|\bopen\(|read|agents_outputs|glob|listdir", re.IGNORECASE)
_STAGE_COMMENT = re.compile(
    r"(?:^|\n)[ \t]{0,8}(?:#|//|--)[ \t#*=-]{0,8}(?:Stage |Step |Phase )?(S[1-5])\b", re.IGNORECASE
)
_STAGE_TEXT = re.compile(r"(?:^|[\n.:!;(*#] ?)\**(S[1-5])\b(?! ?(?:-|to|–) ?S?[1-5])")
_CHECKER = re.compile(r"check|verif|valid|eval|score|inspect|view", re.IGNORECASE)
_DOCUMENT = re.compile(r"\.(?:md|rst|txt|py|ya?ml|toml|cfg|ipynb|r|sh|js|c|h|cpp)$|readme", re.IGNORECASE)
_COMPARISON = re.compile(
    r"\bcompar|\bcandidate|\bversus\b|\bvs\.? |\bvariant|\bablat|\bbaseline|\bthreshold sweep|\btta\b", re.IGNORECASE
)
_CHECK_WORDS = re.compile(r"\b(?:verif|check|validat|confirm|sanity|complete|missing|ok\b)", re.IGNORECASE)
_MODULE_RUN = re.compile(r"(\bpython[\d.]{0,5} (?:-[uBOI] ){0,3})-m ([\w.]{1,80})")
_TOOLS = frozenset(["pytest", "pip", "mypy", "black", "ruff", "flake8", "coverage", "IPython", "jupyter", "torch"])
"""Modules that others wrote and that are run by name."""
_OPENED = (
    r"""(?:(?:io\.)?open|(?:pathlib\.)?Path)\(\s{0,4}['"]([^'"\n]{1,200}\.py)['"][^)\n]{0,40}\)\.read(?:_text)?\("""
)
_READ_FILE = re.compile(rf"(?m)^(\w{{1,40}}) ?= ?{_OPENED}")
_EXEC_FILE = re.compile(rf"(?m)^exec\((?:compile\()?(?:{_OPENED}|(\w{{1,40}})[,)])[^\n]{{0,200}}$")
"""An exec of a file's text, on a line of its own."""
_CHANGED = re.compile(r"\b(?:sed|perl)\s+-\w{0,4}i[^\n;|&]{0,1000}?([\w./-]{1,120}\.py)\b")
"""Files that a shell changes in place."""
_COPIES = re.compile(
    r"(?:\b(?:cp|mv|install|rsync)\b[^\n;|&]{0,80}?[ \t](?=[\w./-]{1,120}\.py[ \t])|(?<![\w./-])(?=[\w./-]{1,120}\.py\b[^\n;|&>]{0,80}>))"
    r"([\w./-]{1,120}\.py)\b[^\n;|&]{0,80}?(?:>|[ \t])[ \t]{0,3}([\w./-]{1,120}\.py)\b"
)
"""A file that is copied to another name, or changed on the way (sed ... a.py > b.py)."""
_TEST_FILE = re.compile(r"tests?_\w{1,60}\.py|\w{1,60}_tests?\.py|tests?\.py|selftest\.py|unittests?\.py")
_REWRITTEN = re.compile(_OPENED)
"""Files whose text is read, to be changed and written again."""
_SUBMIT_CALL = re.compile(r"(?:^|\n)\s{0,8}submit_results\s*\(", re.IGNORECASE)


class TurnFeatures(Frozen):
    """Facts of one turn. A failed attempt shows the facts of what it attempted; `failed` says that it failed."""

    turn: int
    writes_plan: bool = False
    """A plan.md is written or appended to."""
    revises_plan: bool = False
    """A plan.md is written although an earlier turn wrote one."""
    reads_plan: bool = False
    writes_plan_image: bool = False
    reads_docs: bool = False
    """Brief, model cards, README, source, --help or web pages are read."""
    lists_inputs: bool = False
    """Folders are listed."""
    inspects_inputs: bool = False
    """Input data is loaded and its shape, dtype, spacing, range or content printed."""
    loads_inputs: bool = False
    compares_candidates: bool = False
    """At least two weight files run in one turn, or code and text speak of variants while a model runs."""
    installs_packages: bool = False
    checks_environment: bool = False
    """Versions, devices, hardware, or installed packages are asked for."""
    obtains_weights: bool = False
    """Weights, repositories or data sets are downloaded."""
    looks_at_weights: bool = False
    """The first bytes or the kind of a file of weights, or of another file of the model's folder, are looked at."""
    loads_model: bool = False
    forward_pass: bool = False
    """A model is applied to something (a classical method shows as `writes_outputs` or `classical_method`)."""
    dummy_forward: bool = False
    """A model is applied to made-up input (zeros, random numbers)."""
    made_up_input: bool = False
    """Own code is tried on made-up arrays while no input is loaded."""
    applies_module: bool = False
    """Functions of a module of the run's own are called, other than its readers and listers."""
    shows_results: bool = False
    """What a model returned is printed, not just its shape."""
    classical_method: bool = False
    writes_module: bool = False
    """A source file is written or edited."""
    runs_script: bool = False
    """A script file is started, or a module written in this run is imported."""
    runs_tests: bool = False
    """Unit tests are started (pytest, unittest, doctest, a file of tests)."""
    module_only: bool = False
    """A source file is written and nothing of it is executed in the same turn."""
    cases_scope: Scope = "none"
    """For how many cases a model ran or an output was written in this turn."""
    cases_share: float | None = None
    """The same as a share of the known cases in [0, 1]; None where cases or total are unknown."""
    cases: tuple[str, ...] = ()
    """Case ids that the executed code or its output names, in order of appearance."""
    inputs_scope: Scope = "none"
    """Over how many cases inputs are read, whether or not a model runs."""
    writes_outputs: bool = False
    """Files of the deliverable are written."""
    stores_results: bool = False
    """A model is applied, and files are written that are none of the deliverable."""
    reads_outputs: bool = False
    """Delivered files are opened or listed."""
    checks_outputs: bool = False
    """Delivered files are opened or listed, and compared with what they must be (or counted)."""
    inspects_values: bool = False
    """Statistics, counts or contents of data or results are printed."""
    inspects_shapes: bool = False
    """Shapes, types, spacing or sizes of data or results are printed."""
    packages_outputs: bool = False
    watches_progress: bool = False
    starts_background: bool = False
    """A command is left running in the background."""
    imports_only: bool = False
    """The executed code does little more than import libraries."""
    prepares_folders: bool = False
    """The commands only make folders or set permissions."""
    training: bool = False
    builds: bool = False
    submits: bool = False
    closing_message: bool = False
    """The last message, without any tool call."""
    todo_only: bool = False
    todo_done: bool = False
    """A to-do list in which everything is completed is written."""
    writes_report: bool = False
    """A README, summary or results text (Markdown, not the plan) is written."""
    message_only: bool = False
    stage_comment: Stage | None = None
    """The stage that the turn itself names in a comment (else in a sentence's beginning). Evidence, not the law."""
    failed: bool = False
    blocked: bool = False
    timed_out: bool = False
    unanswered: bool = False
    """A call without a result: the run died in it."""
    executed: bool = False
    """Code or a command ran (or was tried)."""
    code_lines: int = 0
    """Lines of executed code, comments and written files left out."""
    plan_lines: int = 0
    drawing_lines: int = 0
    """Lines of the executed code that does nothing but draw the plan's figure."""
    module_lines: int = 0
    run_lines: int = 0
    """Lines of the longest script of its own that the turn starts."""
    written_paths: tuple[str, ...] = ()
    run_paths: tuple[str, ...] = ()
    quotes: Mapping[str, str] = {}
    """Fact name -> a line on which it was seen."""

    def has(self, *facts: str) -> bool:
        """Whether any of these facts holds."""
        return any(getattr(self, fact) is True for fact in facts)


_FLAGS = tuple(name for name, info in TurnFeatures.model_fields.items() if info.annotation is bool)


@once_a_run
def features(run: Run) -> tuple[TurnFeatures, ...]:
    """Facts for every turn of a run, in order; empty for a run without turns. Pure: the same run gives the same facts."""
    world = world_of(run)
    last = len(run.turns)
    return tuple(_turn_features(turn, world, turn.index == last) for turn in run.turns)


# -- one turn ---------------------------------------------------------------------------------------------------------


_USES = {
    "applies_module",
    "forward_pass",
    "writes_outputs",
    "reads_outputs",
    "loads_inputs",
    "training",
    "made_up_input",
}


def _turn_features(turn: Turn, world: World, last: bool) -> TurnFeatures:
    quotes: dict[str, str] = {}
    facts = Facts()
    executed_lines = plan_lines = module_lines = drawing_lines = 0
    written: list[str] = []
    started: list[str] = []
    executed_text: list[str] = []
    revised = world.planned

    for action in turn.actions:
        _tool_facts(action, world, quotes)
        parts = split(action)
        own = [p for p in parts if p.kind == "file"]
        for part in own:
            written.append(part.path)
            if _PLAN.search(part.path):
                quotes.setdefault("writes_plan", f"{part.path}: {part.text.strip()[:120]}")
                plan_lines += part.lines
            else:
                module_lines += part.lines
                if part.path.lower().endswith((".md", ".rst")):
                    quotes.setdefault("writes_report", part.path)
                elif _is_source(part.path):
                    quotes.setdefault("writes_module", part.path)
                if world.outputs.search(part.path):
                    quotes.setdefault("writes_outputs", part.path)
            _store(part, action, world)
        inside = sum(p.lines for p in own) if action.language == "python" else 0
        for part in parts:
            if part.kind == "shell":
                executed_lines += part.lines
                executed_text.append(part.text)
                _shell(part.text, world, facts, quotes, started)
            elif part.kind == "python":
                executed_lines += max(0, part.lines - inside)
                if _PLAN_IMAGE.search(part.text) and not _READS.search(part.text):
                    drawing_lines += max(0, part.lines - inside)
                executed_text.append(_without(part.text, own))
                _python(part, world, facts, quotes, started)
    for fact, quote in facts.seen.items():
        quotes.setdefault(fact, quote)
    if "plan.md" in turn.code and "writes_plan" not in quotes and _python_plan(turn):
        quotes["writes_plan"] = _line_with(turn.code, _PLAN_NAMED)
    if "revises_plan" in quotes:
        quotes.setdefault("writes_plan", quotes.pop("revises_plan"))
    world.planned = world.planned or "writes_plan" in quotes

    imports_own = any(PurePosixPath(p).stem in _imported(executed_text) for p in world.texts)
    ran_own = any(PurePosixPath(p).name in {PurePosixPath(s).name for s in started} for p in written)
    # An import alone shows that the module can be read; it runs nothing.
    imports_own = imports_own and bool(quotes.keys() & _USES)
    used = imports_own or ran_own or bool(started)
    scope, share, cases = _scope(turn, world, facts, executed_text, bool(started))
    has_work = "forward_pass" in quotes or "writes_outputs" in quotes
    observations = [a.observation for a in turn.actions if a.observation is not None]
    comment = _comment(turn)
    if comment:
        quotes["stage_comment"] = comment[1]
    if "loads_inputs" in quotes and (
        "prints_statistics" in quotes or "prints_shapes" in quotes or "print" in quotes["loads_inputs"]
    ):
        quotes.setdefault("inspects_inputs", quotes["loads_inputs"])
    if "reads_outputs" in quotes and (
        "asserts" in quotes
        or "names_concern" in quotes
        or "counts_files" in quotes
        or _CHECK_WORDS.search(turn.text[:2_000])
    ):
        quotes.setdefault("checks_outputs", quotes["reads_outputs"])
    if "made_up_input" in quotes and not ("applies_module" in quotes and "loads_inputs" not in quotes and not cases):
        del quotes["made_up_input"]
    if "prints_statistics" in quotes:
        quotes.setdefault("inspects_values", quotes["prints_statistics"])
    if "prints_shapes" in quotes:
        quotes.setdefault("inspects_shapes", quotes["prints_shapes"])
    if "forward_pass" in quotes and (
        len(facts.weights) > 1 or _COMPARISON.search("\n".join(executed_text)) or _COMPARISON.search(turn.text[:2_000])
    ):
        quotes.setdefault("compares_candidates", quotes["forward_pass"])
    if any(_TEST_FILE.fullmatch(PurePosixPath(p).name) for p in started):
        quotes.setdefault("runs_tests", quotes.get("runs_script", ""))
    if "forward_pass" in quotes and "writes_files" in quotes and "writes_outputs" not in quotes:
        quotes["stores_results"] = quotes["writes_files"]
    if _writes_image(turn):
        quotes.setdefault("writes_plan_image", _line_with(turn.code, _PLAN_IMAGE))
    message = not turn.actions
    flags = {name: name in quotes for name in _FLAGS}
    flags.update(
        revises_plan="writes_plan" in quotes and revised,
        runs_script=bool(started) or imports_own,
        module_only="writes_module" in quotes and not used and not has_work,
        submits=any(a.kind == "submit" for a in turn.actions) or any(_SUBMIT_CALL.search(t) for t in executed_text),
        closing_message=message and last and bool(turn.text.strip()),
        message_only=message,
        imports_only=bool(executed_text) and not has_work and all(_imports_only(t) for t in executed_text),
        todo_done=any(_todo_done(a) for a in turn.actions),
        todo_only=bool(turn.actions) and all(a.kind == "todo" for a in turn.actions),
        failed=turn.failed,
        blocked=any(o.kind == "blocked" for o in observations),
        timed_out=any(o.kind == "timeout" for o in observations),
        unanswered=any(a.observation is None for a in turn.actions),
        executed=bool(executed_text),
    )
    return TurnFeatures(
        turn=turn.index, cases_scope=scope, cases_share=share, cases=cases, inputs_scope=_label(facts.loaded, world.total),
        stage_comment=comment[0] if comment else None, code_lines=executed_lines, plan_lines=plan_lines, drawing_lines=drawing_lines, module_lines=module_lines,
        run_lines=max((_lines(world.texts.get(PurePosixPath(p).name, "")) for p in started), default=0),
        written_paths=tuple(written), run_paths=tuple(started),
        quotes={k: v for k, v in quotes.items() if v and (k in flags or k == "stage_comment")}, **flags,
    )  # fmt: skip


def _tool_facts(action: Action, world: World, quotes: dict[str, str]) -> None:
    """Facts of tools that execute nothing: readers, searchers, web, background output."""
    path = action.path or ""
    if action.tool.lower() == "bashoutput":
        quotes.setdefault("watches_progress", action.tool)
    elif action.kind == "read":
        if _PLAN.search(path):
            quotes.setdefault("reads_plan", path)
        elif world.outputs.search(path):
            quotes.setdefault("reads_outputs", path)
        elif PurePosixPath(path).name in world.texts or _DOCUMENT.search(path):
            quotes.setdefault("reads_docs", path)
        else:
            quotes.setdefault("loads_inputs", path)
            quotes.setdefault("inspects_inputs", path)
    elif action.kind == "search":
        quotes.setdefault("lists_inputs", f"{action.tool} {path}".strip())
        if world.outputs.search(path):
            quotes.setdefault("reads_outputs", path)
    elif action.kind == "web":
        quotes.setdefault("reads_docs", action.tool)


def _without(text: str, files: Iterable[Part]) -> str:
    """Executed code without the texts of the files that it writes."""
    for file in files:
        text = text.replace(file.text, "", 1)
    return text


def _todo_done(action: Action) -> bool:
    todos = (action.arguments or {}).get("todos") if action.kind == "todo" else None
    done = [t.get("status") == "completed" for t in todos if isinstance(t, dict)] if isinstance(todos, list) else []
    return bool(done) and all(done)


def _store(part: Part, action: Action, world: World) -> None:
    name = file_name(part.path)
    if action.kind != "edit":
        world.store(part.path, f"{world.texts.get(name, '')}\n{part.text}" if part.append else part.text)
        return
    arguments = action.arguments or {}
    old = arguments.get("old_string") or arguments.get("old_str")
    before = world.texts.get(name)
    if before is not None:
        changed = (
            before.replace(old, part.text, 1) if isinstance(old, str) and old in before else f"{before}\n{part.text}"
        )
        world.store(part.path, clip(changed))


def _shell(text: str, world: World, facts: Facts, quotes: dict[str, str], started: list[str]) -> None:
    text = _MODULE_RUN.sub(lambda match: _as_script(match, world), text)
    for name, quote in shell_facts(text, world.outputs).items():
        quotes.setdefault(name, quote)
    world.changed |= {PurePosixPath(path).name for path in _CHANGED.findall(text)}
    for source, target in _COPIES.findall(text[:20_000]):
        world.copy(source, target)
    for launch in launches(text):
        name = PurePosixPath(launch.path).name
        started.append(launch.path)
        quotes.setdefault("runs_script", _line_with(text, re.compile(re.escape(name))))
        asked = cases_asked(launch, world.prefixes)
        if name in world.files:
            scope = scope_of(launch, constants=name not in world.changed)
            found = python_facts(world.files[name], world.library, world.outputs, asked, scope)
            if asked is not None and (found.scope == 1 or asked < found.scope or found.open_ended):
                # A loop around the script, or a limit or ids given to it, say more than the script's own loop.
                found.scope, found.open_ended = (asked if found.scope else 0), False
                found.loaded = asked if found.loaded else 0
            found.told = asked is not None and found.scope > 0
            if "writes_files" in found.seen and _delivers(launch, world):
                found.note("writes_outputs", quotes["runs_script"])
                found.scope = max(found.scope, asked or 1)
            if launch.output is not None and launch.output.startswith("/") and not world.outputs.search(launch.output):
                found.seen.pop("writes_outputs", None)  # sent to a scratch folder
            facts.merge(found)
        elif name in world.texts and name.endswith(".sh") and world.texts[name] != text:
            inner = world.texts.pop(name)
            for part in split_shell(inner):
                if part.kind == "shell":
                    _shell(part.text, world, facts, quotes, started)
                elif part.kind == "python":
                    _python(part, world, facts, quotes, started)
            world.texts[name] = inner
        elif name not in world.texts and _delivers(launch, world):
            # A given tool, whose code is not known: its command line names the place of the outputs.
            facts.note("writes_outputs", quotes["runs_script"])
            facts.scope = max(facts.scope, asked or 1)
    for program in programs(text):
        if _delivers(program, world):
            facts.note("writes_outputs", program.arguments.strip()[:160])
            facts.scope = max(facts.scope, cases_asked(program, world.prefixes) or 1)


def _as_script(match: re.Match[str], world: World) -> str:
    """`python -m package.module` as the start of the file that the run wrote for it; as it is when it wrote none."""
    last = match.group(2).rsplit(".", 1)[-1]
    own = last in world.programs or ("" in world.programs and last not in sys.stdlib_module_names | _TOOLS)
    name = f"{last}.py" if f"{last}.py" in world.texts else "__main__.py" if own else None
    return f"{match.group(1)}{name}" if name else match.group(0)


def _delivers(launch: Launch, world: World) -> bool:
    """Whether the command line sends results to the place of the outputs: by an option, or as the path after the input."""
    if launch.output is not None:
        return bool(world.outputs.search(launch.output))
    if _CHECKER.search(PurePosixPath(launch.path).name):
        return False
    kinds = [bool(world.outputs.search(path)) for path in launch.paths]
    return True in kinds and False in kinds


def _python(part: Part, world: World, facts: Facts, quotes: dict[str, str], started: list[str]) -> None:
    text = _with_files(part.text, world)
    module = Module.of(text)
    if ".replace(" in text or "sub(" in text:
        world.changed |= {PurePosixPath(path).name for path in _REWRITTEN.findall(text)}
    if module is not None:
        asked = cases_asked(Launch("", "", part.before), world.prefixes) if part.before else None
        found = python_facts(module, world.library, world.outputs, asked, here_scope(part.before))
        if asked is not None and (found.scope == 1 or found.open_ended):
            found.scope, found.open_ended = (asked if found.scope else 0), False
            found.loaded = asked if found.loaded else 0
        facts.merge(found)
        calls = [n for n in descendants(module.tree) if isinstance(n, ast.Call)]
        commands = "\n".join([_command(n) for n in calls if _starts_process(n)] + [_own_file(n) for n in calls])
        if commands.strip():
            _shell(commands, world, facts, quotes, started)
    else:
        facts.merge(_guess(text, world))
    if "\n!" in f"\n{text}":
        _shell(
            "\n".join(line[1:] for line in text.split("\n") if line[:1] in ("!", "%")), world, facts, quotes, started
        )


def _starts_process(node: ast.Call) -> bool:
    return getattr(node.func, "attr", "") in (
        "run",
        "system",
        "check_output",
        "check_call",
        "Popen",
        "call",
        "getoutput",
    )


def _command(node: ast.Call) -> str:
    """The command line of subprocess.run([...]) and its like; sys.executable reads as python, the rest as $@ if any is not known."""
    words = []
    unread = False
    for part in descendants(node.args[0]) if node.args else ():
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            words.append(part.value)
        elif isinstance(part, ast.Attribute) and part.attr == "executable":
            words.insert(0, "python")
        elif isinstance(part, ast.Name) and part.id != "sys":
            unread = True
    return " ".join([*words, "$@"] if words and unread else words)


def _with_files(text: str, world: World) -> str:
    """The code with the files put in that it executes in its own name space: exec(open("x.py").read())."""
    if "exec(" not in text:
        return text
    read = dict(_READ_FILE.findall(text))

    def put_in(match: re.Match[str]) -> str:
        path = match.group(1) or read.get(match.group(2) or "", "")
        known = world.texts.get(file_name(path)) if path else None
        return match.group(0) if known is None else known

    return clip(_EXEC_FILE.sub(put_in, text))


def _own_file(node: ast.Call) -> str:
    """The command line that does what exec(open("x.py").read()), runpy.run_path("x.py") and their like do; "" for others."""
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name not in ("exec", "execfile", "run_path", "run_module", "run_line_magic") or not node.args:
        return ""
    words = [c.value for c in descendants(node) if isinstance(c, ast.Constant) and isinstance(c.value, str)]
    if name == "run_module":
        return f"python {words[0]}.py" if words else ""
    return next((f"python {word}" for word in words if re.fullmatch(r"[\w./-]{1,200}\.py", word)), "")


_GUESSES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("forward_pass", r"\.(?:predict|generate|forward|infer)\(|no_grad\(\)|inference_mode\(\)"),
        ("loads_model", r"from_pretrained\(|load_state_dict\(|torch\.load\(|load_model\(|InferenceSession\("),
        ("training", r"\.backward\(|optim\w*\.step\(|\.fit\("),
        ("checks_environment", r"__version__|cuda\.is_available|nvidia-smi"),
        ("loads_inputs", r"nib\.load\(|np\.load\(|Image\.open\(|imread\(|read_csv\(|json\.load\("),
        ("prints_statistics", r"print\(.{0,200}\.(?:min|max|mean|sum|std|unique)\("),
        ("prints_shapes", r"print\(.{0,200}\.(?:shape|dtype)"),
    )
)


def _guess(text: str, world: World) -> Facts:
    """Facts of code that does not parse, line by line; outputs count as written when a line saves and one names them."""
    found = Facts()
    saves = ""
    for line in text.split("\n"):
        for name, pattern in _GUESSES:
            if name not in found.seen and pattern.search(line[:1_000]):
                found.note(name, line.strip()[:160])
        if re.search(r"\.save\(|dump\(|to_csv\(|write_text\(|open\([^)]{0,200}['\"]w", line[:1_000]):
            saves = line.strip()[:160]
    if saves and world.outputs.search(text):
        found.note("writes_outputs", saves)
    if found.seen.keys() & {"forward_pass", "writes_outputs"}:
        found.scope, found.open_ended = 1, True
    return found


def _scope(
    turn: Turn, world: World, facts: Facts, executed: Iterable[str], started: bool
) -> tuple[Scope, float | None, tuple[str, ...]]:
    named = _cases_in("\n".join(executed), world)
    printed = _cases_in(clip(turn.output), world)
    cases = tuple(dict.fromkeys((*named, *printed)))
    if not facts.scope:
        return "none", None, cases
    size: int = facts.scope
    if facts.open_ended and size <= 1:
        if not printed:
            return "unknown", None, cases
        size = len(printed)
    elif size == 1 and len(printed) > 1 and started and not facts.told:
        size = len(printed)  # a script whose loop was not seen, but which prints a line a case
    share = min(1.0, size / world.total) if world.total else 1.0 if size >= ALL else None
    return _label(size, world.total), share, cases


def _label(size: int, total: int | None) -> Scope:
    if size <= 0:
        return "none"
    if size >= ALL or (total is not None and total >= 3 and size >= 0.9 * total):
        return "all"
    return "one" if size == 1 else "few"


def _cases_in(text: str, world: World) -> tuple[str, ...]:
    if not world.known:
        return ()
    found = (p + d for pattern in (CASE, PLAIN_CASE) for p, d in pattern.findall(text))
    return tuple(dict.fromkeys(case for case in found if case in world.known))


def _comment(turn: Turn) -> tuple[Stage, str] | None:
    """The stage most often named in comments; else the first that the text names at the beginning of a clause."""
    found = Counter(match.group(1).upper() for match in _STAGE_COMMENT.finditer(clip(turn.code)))
    if found:
        best = max(STAGES, key=lambda stage: found.get(stage, 0))
        quote = next(m.group(0).strip() for m in _STAGE_COMMENT.finditer(clip(turn.code)) if m.group(1).upper() == best)
        return best, quote
    match = _STAGE_TEXT.search(turn.text[:400])
    if match is None:
        return None
    stage = next(s for s in STAGES if s == match.group(1).upper())
    return stage, turn.text[max(0, match.start(1) - 20) : match.end(1) + 60].strip()


def _imported(executed: Iterable[str]) -> set[str]:
    return {
        name.rsplit(".", 1)[-1]
        for text in executed
        for name in re.findall(r"(?m)^\s{0,12}(?:.{0,80};\s{0,3})?(?:from|import)\s+([\w.]{1,80})", text)
    }


def _lines(text: str) -> int:
    return sum(1 for line in text.split("\n") if line.strip())


def _imports_only(text: str) -> bool:
    lines = [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    imports = sum(1 for line in lines if re.match(r"\s{0,8}(?:import|from)\s\w", line))
    return imports > 0 and imports * 2 >= len(lines)


def _is_source(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in (
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
    )


def _python_plan(turn: Turn) -> bool:
    from .planfile import plan_writes

    return any(True for action in turn.actions for _ in plan_writes(action))


def _writes_image(turn: Turn) -> bool:
    from .planfile import writes_plan_image

    return any(writes_plan_image(action) for action in turn.actions)


def _line_with(text: str, pattern: re.Pattern[str]) -> str:
    match = pattern.search(text)
    if match is None:
        return ""
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    return text[start : end if end >= 0 else len(text)].strip()[:160]
