"""What the executed parts of an action show: shell text with the scripts and programs it starts, and Python code."""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath

from .code_facts import python_facts
from .code_modules import Facts, Module
from .code_options import here_scope, scope_of
from .code_parts import Part, split_shell
from .command_lines import Launch, cases_asked, launches, programs
from .own_files import modules_as_scripts, note_rewrites, note_shell_changes, own_file, with_files
from .shell_facts import shell_facts
from .syntax_tree import descendants
from .world import World

_CHECKER = re.compile(r"check|verif|valid|eval|score|inspect|view", re.IGNORECASE)
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


def read_shell(text: str, world: World, facts: Facts, quotes: dict[str, str], started: list[str]) -> None:
    """Facts of shell text: `quotes` gains what it shows, `facts` what its scripts do, `started` the paths it starts."""
    text = modules_as_scripts(text, world)
    for name, quote in shell_facts(text, world.outputs).items():
        quotes.setdefault(name, quote)
    note_shell_changes(text, world)
    for launch in launches(text):
        name = PurePosixPath(launch.path).name
        started.append(launch.path)
        quotes.setdefault("runs_script", line_with(text, re.compile(re.escape(name))))
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
            elsewhere = launch.output is not None and launch.output.startswith("/")
            elsewhere = elsewhere and not world.outputs.search(launch.output or "")
            if elsewhere and found.seen.pop("writes_outputs", ""):  # to a scratch folder: the run's own code is tried
                found.note("applies_module", quotes["runs_script"])
            facts.merge(found)
        elif name in world.texts and name.endswith(".sh") and world.texts[name] != text:
            inner = world.texts.pop(name)
            for part in split_shell(inner):
                if part.kind == "shell":
                    read_shell(part.text, world, facts, quotes, started)
                elif part.kind == "python":
                    read_python(part, world, facts, quotes, started)
            world.texts[name] = inner
        elif name not in world.texts and _delivers(launch, world):
            # A given tool, whose code is not known: its command line names the place of the outputs.
            facts.note("writes_outputs", quotes["runs_script"])
            facts.scope = max(facts.scope, asked or 1)
    for program in programs(text):
        if _delivers(program, world):
            facts.note("writes_outputs", program.arguments.strip()[:160])
            facts.scope = max(facts.scope, cases_asked(program, world.prefixes) or 1)


def read_python(part: Part, world: World, facts: Facts, quotes: dict[str, str], started: list[str]) -> None:
    """Facts of Python code, and of the commands and files that it starts."""
    text = with_files(part.text, world)
    module = Module.of(text)
    note_rewrites(text, world)
    if module is not None:
        asked = cases_asked(Launch("", "", part.before), world.prefixes) if part.before else None
        found = python_facts(module, world.library, world.outputs, asked, here_scope(part.before))
        if asked is not None and (found.scope == 1 or found.open_ended):
            found.scope, found.open_ended = (asked if found.scope else 0), False
            found.loaded = asked if found.loaded else 0
        facts.merge(found)
        calls = [n for n in descendants(module.tree) if isinstance(n, ast.Call)]
        commands = "\n".join([_command(n) for n in calls if _starts_process(n)] + [own_file(n) for n in calls])
        if commands.strip():
            read_shell(commands, world, facts, quotes, started)
    else:
        facts.merge(_guess(text, world))
    if "\n!" in f"\n{text}":
        read_shell(
            "\n".join(line[1:] for line in text.split("\n") if line[:1] in ("!", "%")), world, facts, quotes, started
        )


def _delivers(launch: Launch, world: World) -> bool:
    """Whether the command line sends results to the place of the outputs: by an option, or as the path after the input."""
    if launch.output is not None:
        return bool(world.outputs.search(launch.output))
    if _CHECKER.search(PurePosixPath(launch.path).name):
        return False
    kinds = [bool(world.outputs.search(path)) for path in launch.paths]
    return True in kinds and False in kinds


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


def line_with(text: str, pattern: re.Pattern[str]) -> str:
    """The line on which a pattern is first found, at most 160 characters of it; "" where it is not."""
    match = pattern.search(text)
    if match is None:
        return ""
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    return text[start : end if end >= 0 else len(text)].strip()[:160]
