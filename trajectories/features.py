"""What each turn of a run does, read statically from its code, tools, paths, outputs and words.

One vocabulary of facts for the segmentation, the heuristic judge and the error-code detectors. A fact is true when
executed code (or a tool) shows it, not when the text claims it; `quotes` gives the line on which it was seen.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath

from .case_scope import case_scope, scope_label
from .code_modules import Facts
from .code_parts import Part, clip, split
from .executed_parts import line_with, read_python, read_shell
from .memo import once_a_run
from .models import STAGES, Action, Run, Stage, Turn
from .own_files import store
from .shell_functions import defines_or_sources, written_out
from .turn_features import TurnFeatures
from .world import World, world_of

_PLAN = re.compile(r"(?<![\w-])plan\.md$", re.IGNORECASE)
_PLAN_NAMED = re.compile(r"(?<![\w-])plan\.md\b", re.IGNORECASE)
_PLAN_IMAGE = re.compile(r"(?<![\w-])plan\.png\b", re.IGNORECASE)
_READS = re.compile(
    r"load\w{0,20}\(|\bopen\((?![^)\n]{0,200},\s?(?:mode=)?['\"][wax])|read\w{0,20}\(|ReadImage|agents_outputs|glob|listdir(?!\([^)\n]{0,100}plan\b)",
    re.IGNORECASE,
)
"""What code does that works on data; the plan that it writes and the plan's folder are none."""
_STAGE_COMMENT = re.compile(
    r"(?:^|\n)[ \t]{0,8}(?:#|//|--)[ \t#*=-]{0,8}(?:Stage |Step |Phase )?(S[1-5])\b", re.IGNORECASE
)
_STAGE_TEXT = re.compile(r"(?:^|[\n.:!;(*#] ?)\**(S[1-5])\b(?! ?(?:-|to|–) ?S?[1-5])")
_DOCUMENT = re.compile(r"\.(?:md|rst|txt|py|ya?ml|toml|cfg|ipynb|r|sh|js|c|h|cpp)$|readme", re.IGNORECASE)
_SHOWS = re.compile(r"print|echo|\b_{0,2}log(?:ger|ging)?_{0,2}\.(?:debug|info|warning|error)\b", re.I)
_COMPARISON = re.compile(
    r"\bcompar|\bcandidate|\bversus\b|\bvs\.? |\bvariant|\bablat|\bbaseline|\bthreshold sweep|\btta\b", re.IGNORECASE
)
_CHECK_WORDS = re.compile(r"\b(?:verif|check|validat|confirm|sanity|complete|missing|ok\b)", re.IGNORECASE)
_TEST_FILE = re.compile(r"tests?_\w{1,60}\.py|\w{1,60}_tests?\.py|tests?\.py|selftest\.py|unittests?\.py")
_SUBMIT_CALL = re.compile(r"(?:^|\n)\s{0,8}submit_results\s*\(", re.IGNORECASE)
_STATE_PROGRAMS = re.compile(
    "nvidia-smi|rocm-smi|free|df|du|ps|top|uptime|vmstat|printenv|locale|ulimit|uname|arch|hostname|lscpu|lsblk|lspci|"
    "lsmem|nproc|getconf|date|whoami|id|groups|pwd|ls|tree|find|which|type"
)
_PACKAGE_LISTS = {
    "pip": ("list", "freeze", "show", "check"),
    "conda": ("list", "info", "env"),
    "mamba": ("list", "info", "env"),
    "npm": ("list", "ls"),
    "apt": ("list",),
    "dpkg": ("-l", "--list"),
    "rpm": ("-qa",),
}
_READERS = re.compile("head|tail|sort|uniq|grep|wc|cut|tr|awk|sed|column|less|more|cat")
"""After a pipe they only pass on or cut what comes; before one they read files."""
_FIND_ACTS = re.compile(r"-(?:exec|execdir|ok|okdir|delete|fprint\w*|fls)")
_MACHINE_FILE = re.compile(r"/(?:proc|sys|etc)/")
_SUBSTITUTION = re.compile(r"\$\(([^()\n]{0,400})\)")
_LOOK_CHARS = 2_000
"""A look at the machine is a short command; longer code is not read for one."""
_FLAGS = tuple(name for name, info in TurnFeatures.model_fields.items() if info.annotation is bool)
_USES = {
    "applies_module",
    "forward_pass",
    "writes_outputs",
    "reads_outputs",
    "loads_inputs",
    "training",
    "made_up_input",
}


@once_a_run
def features(run: Run) -> tuple[TurnFeatures, ...]:
    """Facts for every turn of a run, in order; empty for a run without turns. Pure: the same run gives the same facts."""
    world = world_of(run)
    last = len(run.turns)
    return tuple(_turn_features(turn, world, turn.index == last) for turn in run.turns)


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
        if action.kind == "execute" and action.language in ("bash", "sh") and defines_or_sources(action.code):
            files = {PurePosixPath(p.path).name: p.text for p in split(action) if p.kind == "file"}
            action = action.model_copy(update={"code": written_out(action.code, world.texts | files)})
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
            store(part, action, world)
        inside = sum(p.lines for p in own) if action.language == "python" else 0
        for part in parts:
            if part.kind == "shell":
                executed_lines += part.lines
                executed_text.append(part.text)
                read_shell(part.text, world, facts, quotes, started)
            elif part.kind == "python":
                executed_lines += max(0, part.lines - inside)
                code = _without(part.text, own)
                executed_text.append(code)
                shown = facts.seen.keys() & _USES
                read_python(part, world, facts, quotes, started)
                if _PLAN_IMAGE.search(code) and not _READS.search(code) and facts.seen.keys() & _USES == shown:
                    drawing_lines += max(0, part.lines - inside)
    for fact, quote in facts.seen.items():
        quotes.setdefault(fact, quote)
    if "plan.md" in turn.code and "writes_plan" not in quotes and _python_plan(turn):
        quotes["writes_plan"] = line_with(turn.code, _PLAN_NAMED)
    if "revises_plan" in quotes:
        quotes.setdefault("writes_plan", quotes.pop("revises_plan"))
    world.planned = world.planned or "writes_plan" in quotes

    imports_own = any(PurePosixPath(p).stem in _imported(executed_text) for p in world.texts)
    ran_own = any(PurePosixPath(p).name in {PurePosixPath(s).name for s in started} for p in written)
    # An import alone shows that the module can be read; it runs nothing.
    imports_own = imports_own and bool(quotes.keys() & _USES)
    used = imports_own or ran_own or bool(started)
    scope, share, cases = case_scope(turn, world, facts, executed_text, bool(started))
    has_work = "forward_pass" in quotes or "writes_outputs" in quotes
    observations = [a.observation for a in turn.actions if a.observation is not None]
    comment = _comment(turn)
    if comment:
        quotes["stage_comment"] = comment[1]
    if "loads_inputs" in quotes and (
        "prints_statistics" in quotes or "prints_shapes" in quotes or _SHOWS.search(quotes["loads_inputs"])
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
        quotes.setdefault("writes_plan_image", line_with(turn.code, _PLAN_IMAGE))
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
        asks_machine=bool(turn.actions)
        and not quotes.keys() & {"reads_outputs", "writes_outputs"}
        and all(map(_asks_machine, turn.actions)),
        failed=turn.failed,
        blocked=any(o.kind == "blocked" for o in observations),
        timed_out=any(o.kind == "timeout" for o in observations),
        unanswered=any(a.observation is None for a in turn.actions),
        executed=bool(executed_text),
    )
    return TurnFeatures(
        turn=turn.index, cases_scope=scope, cases_share=share, cases=cases, inputs_scope=scope_label(facts.loaded, world.total),
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


def _asks_machine(action: Action) -> bool:
    """Whether an action searches files with a tool, or starts nothing but programs that show the machine's state."""
    if action.kind == "search":
        return True
    code = action.code.replace("\\\n", " ")
    if action.kind != "execute" or action.language not in ("bash", "sh") or len(code) > _LOOK_CHARS:
        return False
    inner = _SUBSTITUTION.findall(code)
    found: list[bool | None] = []
    for line in [*_SUBSTITUTION.sub("0", code).split("\n"), *inner]:
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        command: list[str] = []
        piped = False
        try:
            for token in [*words, ";"]:
                if command[-1:] == [">"]:
                    if token != "/dev/null" and not token.isdecimal():
                        return False
                    command.pop()
                elif ">" in token and set(token) <= set("<>&"):
                    command = [*(command[:-1] if command[-1:] in (["1"], ["2"]) else command), ">"]
                elif set(token) <= set(";|&()"):
                    found.append(_shows_state(command, piped))
                    command, piped = [], token.endswith("|") and not token.endswith("||")
                else:
                    command.append(token)
        except ValueError:  # a quote that spans lines: more than a look
            return False
    return None not in found and True in found


def _shows_state(words: list[str], piped: bool) -> bool | None:
    """True where a command shows the machine's state, False where it adds nothing to one that does, else None."""
    while words and (words[0] in ("sudo", "time") or re.match(r"\w+=", words[0])):
        words = words[1:]
    words = words[2:] if words[:1] == ["timeout"] else words
    words = words[2:] if words[1:2] == ["-m"] and words[0].startswith("python") else words
    if not words or words[0] in ("echo", "printf", "true", ":", "cd"):
        return False
    program, options = PurePosixPath(words[0]).name, words[1:]
    if _STATE_PROGRAMS.fullmatch(program):
        return None if program == "find" and any(map(_FIND_ACTS.fullmatch, options)) else True
    if options in (["--version"], ["-V"]) or (program == "command" and options[:1] == ["-v"]):
        return True
    if program == "env":  # with a program behind it, it starts that one
        return None if any("=" not in word and not word.startswith("-") for word in options) else True
    if _READERS.fullmatch(program):
        files = [word for word in options if "/" in word]
        return False if piped else True if files and all(map(_MACHINE_FILE.match, files)) else None
    return True if options[:1] and options[0] in _PACKAGE_LISTS.get(program.rstrip("3"), ()) else None


def _without(text: str, files: Iterable[Part]) -> str:
    """Executed code without the texts of the files that it writes."""
    for file in files:
        text = text.replace(file.text, "", 1)
    return text


def _todo_done(action: Action) -> bool:
    todos = (action.arguments or {}).get("todos") if action.kind == "todo" else None
    done = [t.get("status") == "completed" for t in todos if isinstance(t, dict)] if isinstance(todos, list) else []
    return bool(done) and all(done)


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
