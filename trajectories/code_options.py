"""The options and commands that a script defines, and what they hold after a given command line is parsed.

argparse with sub-parsers, and functions whose signature is the command line (click, typer, fire).
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .code_evaluation import Scope
from .code_modules import Module
from .code_values import MANY, MAX_ITEMS, UNKNOWN, Function, Namespace, number, one_of
from .command_lines import Launch

Literal = Callable[[ast.AST], object]
_EXPANDS = re.compile(r"\$\([^()]{0,400}\)|`[^`]{0,400}`|\$\{?[@*]\}?|\$\{\w{1,40}\[[@*]\]\}")
_NUMBER = re.compile(r"-\d")
_HERE = re.compile(r"\bpython[\d.]{0,5}(?:[ \t]+-[a-zA-Z]{1,3}){0,3}(?:[ \t]+-(?=[ \t<]))?([^<|;&\n]{0,300})<<[^\n]*$")


def words(arguments: str, before: str = "") -> tuple[object, ...]:
    """The words of a command line: UNKNOWN for one that a variable completes, MANY where any number may stand.

    `before` is the text before the command: xargs adds words of its own.
    """
    text = re.split(r"(?:^|\s)#|<", _EXPANDS.sub(" $@ ", arguments), maxsplit=1)[0]
    try:
        found = shlex.split(text)
    except ValueError:
        found = text.replace('"', " ").replace("'", " ").split()
    added = [MANY] if re.search(r"\b(?:xargs|parallel)\b[^;|&\n]{0,200}$", before) else []
    return (*(_word(w) for w in found), *added)


def scope_of(launch: Launch, *, constants: bool = True) -> Scope:
    """The words and variables that a start gives to its script."""
    variables = {name: _word(value.strip("'\"")) for name, value in launch.variables.items()}
    return Scope(words(launch.arguments, launch.before), variables, constants)


def _word(word: str) -> object:
    if word == "$@" or "*" in word or re.search(r"\{[^{}]*(?:,|\.\.)[^{}]*\}", word):
        return MANY
    if word.startswith("-") and "=$" in word:
        return word[: word.index("=") + 1] + "$"
    return UNKNOWN if "$" in word or word == "{}" else word


def here_scope(before: str) -> Scope:
    """The words that a Python here-document is given (`python - pilot <<EOF`); not known for other code."""
    given = _HERE.search(before)
    return Scope(None if given is None else words(given.group(1), before[: given.start()]))


@dataclass
class Option:
    """One option or, without flags, one positional argument."""

    flags: tuple[str, ...]
    dest: str
    arity: object = None
    """Values that it takes: 0 for a switch, None for one, a number, '?', '*' or '+'."""
    default: object = None
    const: object = True
    kind: str = "store"
    convert: str = ""
    """int, float, '' for text, '?' for what is not known."""
    off: str = ""
    """The flag that says no to a switch (--no-x)."""

    def take(self, given: Sequence[object]) -> object:
        """The value for the words given to it."""
        values = [UNKNOWN if w is MANY else _converted(w, self.convert) for w in given]
        if self.arity == 0:
            return self.const
        if self.arity is None:
            return values[0] if values else UNKNOWN
        if self.arity == "?":
            return values[0] if values else self.const
        return UNKNOWN if MANY in given else values[:MAX_ITEMS]

    def most(self) -> int:
        if self.arity == 0:
            return 0
        if self.arity in (None, "?"):
            return 1
        return self.arity if isinstance(self.arity, int) else MAX_ITEMS


@dataclass
class Parser:
    """Options, positional arguments and commands of one parser."""

    options: list[Option] = field(default_factory=list)
    defaults: dict[str, object] = field(default_factory=dict)
    commands: dict[str, Parser] = field(default_factory=dict)
    command: str = ""
    """Where the name of the command is kept."""

    def parse(self, given: Sequence[object]) -> Namespace | None:
        """Every argument's value: as given, else its default; None when the words do not fit what is known of it."""
        chain = [self]
        values = Namespace()
        positional = [o for o in self.options if not o.flags]
        sure, plain, i = True, False, 0
        while i < len(given):
            word = given[i]
            i += 1
            if word is MANY and not positional:
                sure = False
            elif isinstance(word, str) and len(word) > 1 and word[0] == "-" and not plain and not _NUMBER.match(word):
                if word == "--":
                    plain = True
                    continue
                flag, equals, attached = word.partition("=")
                option = next((o for p in reversed(chain) if (o := p.find(flag)) is not None), None)
                if option is None:
                    return None
                if option.off == flag:
                    values[option.dest] = False
                    continue
                taken: list[object] = [UNKNOWN if attached == "$" else attached] if equals else []
                while not equals and i < len(given) and len(taken) < option.most() and not _is_flag(given[i]):
                    taken.append(given[i])
                    i += 1
                _note(values, option, taken)
            elif positional:
                option, taken = positional.pop(0), [word]
                keep = sum(1 for o in positional if o.arity is None)
                while i + keep < len(given) and len(taken) < option.most() and not _is_flag(given[i]):
                    taken.append(given[i])
                    i += 1
                _note(values, option, taken)
            elif chain[-1].commands:
                chosen = chain[-1].commands.get(word) if isinstance(word, str) else None
                if chosen is None and isinstance(word, str):
                    return None
                if chain[-1].command:
                    values[chain[-1].command] = word
                if chosen is None:
                    sure = False
                    break
                chain.append(chosen)
                positional = [o for o in chosen.options if not o.flags]
            elif isinstance(word, str):
                return None
            else:
                sure = False
        for parser in reversed(chain):
            for dest, default in parser.defaults.items():
                values.setdefault(dest, default)
            for option in parser.options:
                values.setdefault(option.dest, option.default if sure else UNKNOWN)
        last = chain[-1]
        if last.commands:
            if last.command:
                values.setdefault(last.command, None if sure else UNKNOWN)
            for dest in {d for p in last.commands.values() for d in p.defaults}:
                each = [p.defaults.get(dest, UNKNOWN) for p in last.commands.values()]
                values[dest] = one_of([e for e in each if e is not UNKNOWN])
        return values

    def find(self, flag: str) -> Option | None:
        """The option of this flag, which argparse also knows by a beginning that is its own."""
        exact = next((o for o in self.options if flag in o.flags or flag == o.off), None)
        if exact is not None or len(flag) < 3:
            return exact
        begun = [o for o in self.options if any(f.startswith(flag) for f in o.flags)] if flag[1] == "-" else []
        return begun[0] if len(begun) == 1 else None


def parsers(module: Module, literal: Literal) -> Parser:
    """The parser that a module builds with argparse, sub-parsers inside. Several parsers of one module read as one."""
    root = Parser()
    named: dict[str, _Rows] = {}
    made: dict[int, _Rows] = {}
    targets: dict[int, str] = {}
    calls: list[ast.Call] = []
    loops: dict[int, ast.For] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            targets[id(node.value)] = node.targets[0].id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _DEFINES:
            calls.append(node)
        elif isinstance(node, ast.For):
            simple = (s.value for s in node.body if isinstance(s, ast.Assign | ast.Expr))
            loops.update({id(n): node for value in simple for n in ast.walk(value) if isinstance(n, ast.Call)})
    calls.sort(key=lambda n: (n.end_lineno or 0, n.end_col_offset or 0))

    def owners(node: ast.AST) -> _Rows:
        while isinstance(node, ast.Call) and id(node) not in made and isinstance(node.func, ast.Attribute):
            node = node.func.value
        known = named.get(node.id) if isinstance(node, ast.Name) else made.get(id(node))
        return known or [(root, {})]

    for call in calls:
        rows = owners(call.func.value) if isinstance(call.func, ast.Attribute) else []
        kind = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if kind == "add_parser":
            loop = loops.get(id(call))
            each = [{}] if loop is None else _rounds(loop.target, literal(loop.iter))
            rows = [new for row in each for parser, _ in rows[:1] if (new := _command(parser, call, row, literal))]
            made[id(call)] = rows
        for parser, row in rows:
            known = _with(row, literal)
            if kind == "add_subparsers":
                dest = next((known(k.value) for k in call.keywords if k.arg == "dest"), "")
                parser.command = dest if isinstance(dest, str) else ""
            elif kind == "set_defaults":
                parser.defaults.update({k.arg: known(k.value) for k in call.keywords if k.arg})
            elif kind == "add_argument" and len(parser.options) < MAX_ITEMS:
                option = option_of(call, known)
                if option is not None:
                    parser.options.append(option)
        if id(call) in targets:
            named[targets[id(call)]] = rows
    return root


_Rows = list[tuple[Parser, dict[str, object]]]
"""Parsers that an expression stands for, each with the names of the loop that made it."""
_DEFINES = frozenset(["add_argument", "add_subparsers", "add_parser", "set_defaults"])


def _rounds(target: ast.AST, rows: object) -> list[dict[str, object]]:
    """The names of a loop over a literal, one dictionary a round."""
    names = [t.id for t in (target.elts if isinstance(target, ast.Tuple) else [target]) if isinstance(t, ast.Name)]
    listed = list(rows) if isinstance(rows, list | dict) else []
    each = [row if isinstance(row, list) and isinstance(target, ast.Tuple) else [row] for row in listed]
    return [dict(zip(names, row, strict=True)) for row in each[:MAX_ITEMS] if len(row) == len(names)]


def _with(row: dict[str, object], literal: Literal) -> Literal:
    return lambda node: row[node.id] if isinstance(node, ast.Name) and node.id in row else literal(node)


def _command(
    parser: Parser, call: ast.Call, row: dict[str, object], literal: Literal
) -> tuple[Parser, dict[str, object]] | None:
    """A sub-parser under its name and its other names; None when its name is not known."""
    known = _with(row, literal)
    name = known(call.args[0]) if call.args else UNKNOWN
    others = next((known(k.value) for k in call.keywords if k.arg == "aliases"), [])
    new = Parser()
    for each in (name, *(others if isinstance(others, list) else ())):
        if isinstance(each, str) and len(parser.commands) < MAX_ITEMS:
            parser.commands[each] = new
    return (new, row) if isinstance(name, str) else None


def option_of(call: ast.Call, literal: Literal) -> Option | None:
    """An option from add_argument(...), or from click's option(...) and argument(...)."""
    names = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    words = [part for name in names for part in name.split("/")]
    flags = tuple(w for w in words if w.startswith("-"))
    if not words:
        return None
    keywords = {k.arg: k.value for k in call.keywords if k.arg}
    known = {name: literal(value) for name, value in keywords.items()}
    long = next((f for f in flags if f.startswith("--")), words[0])
    plain = next((w for w in words if not w.startswith("-")), "")
    dest = known.get("dest", plain or long.lstrip("-").replace("-", "_"))
    action = known.get("action", "store")
    if isinstance(keywords.get("action"), ast.Attribute):
        action = "switch"  # argparse.BooleanOptionalAction
    switch = action in ("store_true", "store_false", "switch") or known.get("is_flag") is True or "/" in "".join(names)
    option = Option(flags, str(dest), default=known.get("default"), convert=_conversion(keywords.get("type")))
    if switch:
        option.arity, option.const = 0, action != "store_false"
        option.default = known.get("default", None if action == "switch" else action == "store_false")
        option.off = f"--no-{long[2:]}" if action == "switch" else words[1] if "/" in "".join(names) else ""
    elif action in ("store_const", "count", "append_const"):
        option.arity, option.const = 0, known.get("const") if action == "store_const" else UNKNOWN
    elif action == "append" or known.get("multiple") is True:
        option.kind = "append"
    elif action not in ("store", "extend"):
        option.arity, option.const, option.default = 0, UNKNOWN, UNKNOWN
    else:
        option.arity = "*" if known.get("nargs") == -1 else known.get("nargs")
        option.const = known.get("const")
        if not flags and option.arity == "*" and option.default is None:
            option.default = []
        if known.get("required") is True or (not flags and option.arity in (None, "+")):
            option.default = known.get("default", UNKNOWN)
    return option


def signature(function: ast.FunctionDef | ast.AsyncFunctionDef, literal: Literal) -> Parser:
    """The parser that click, typer or fire make of a function: of its decorators, else of its parameters."""
    parser = Parser()
    for decorator in reversed(function.decorator_list):
        if isinstance(decorator, ast.Call) and getattr(decorator.func, "attr", "") in ("option", "argument"):
            option = option_of(decorator, literal)
            parser.options[:0] = [option] if option else []
    if parser.options:
        return parser
    arguments = function.args
    first = len(arguments.args) - len(arguments.defaults)
    for i, parameter in enumerate([*arguments.args, *arguments.kwonlyargs][:MAX_ITEMS]):
        spec = arguments.defaults[i - first] if first <= i < len(arguments.args) else None
        if i >= len(arguments.args):
            spec = arguments.kw_defaults[i - len(arguments.args)]
        flag = "--" + parameter.arg.replace("_", "-")
        option = Option((flag, "--" + parameter.arg), parameter.arg, convert=_conversion(parameter.annotation))
        if isinstance(spec, ast.Call) and getattr(spec.func, "attr", "") in ("Option", "Argument"):
            option.default = literal(spec.args[0]) if spec.args else UNKNOWN
            others = (a.value for a in spec.args[1:] if isinstance(a, ast.Constant))
            option.flags = tuple(str(f) for f in others) or option.flags
            spec = spec if getattr(spec.func, "attr", "") == "Option" else None
        elif spec is not None:
            option.default = literal(spec)
        else:
            option.default = UNKNOWN
        if isinstance(option.default, bool):
            option.arity, option.off = 0, f"--no-{flag[2:]}"
        if spec is None:
            option.flags = ()
        parser.options.append(option)
    return parser


def _conversion(node: ast.AST | None) -> str:
    if isinstance(node, ast.BinOp):  # int | None
        node = node.left
    name = getattr(node, "id", getattr(node, "attr", ""))
    if node is None or name in ("str", "Path"):
        return ""
    return name if name in ("int", "float") else "?"


def _converted(word: object, kind: str) -> object:
    if not isinstance(word, str) or not kind:
        return word
    return UNKNOWN if kind == "?" else number(word, kind)


def _is_flag(word: object) -> bool:
    return isinstance(word, str) and len(word) > 1 and word[0] == "-" and not _NUMBER.match(word)


def _note(values: Namespace, option: Option, taken: Sequence[object]) -> None:
    value = option.take(taken)
    before = values.get(option.dest)
    values[option.dest] = [*(before if isinstance(before, list) else []), value] if option.kind == "append" else value


_MAKERS = frozenset(["click", "typer", "fire"])
Entry = list[tuple[Function, Namespace]]


def entry_points(node: ast.Call, module: Module, literal: Literal, given: Sequence[object] | None) -> Entry:
    """The functions that click, typer or fire start for a command line, each with its parameters' values."""
    if not _MAKERS.intersection(module.aliases.values()) or len(node.args) > 1 or not isinstance(node.func, (ast.Name, ast.Attribute)):  # fmt: skip
        return []
    name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
    given = (MANY,) if given is None else given
    if name == "Fire" or (name == "run" and getattr(getattr(node.func, "value", None), "id", "") == "typer"):
        value = literal(node.args[0]) if node.args else {n: Function(f, module) for n, f in module.functions.items()}
        if isinstance(value, dict):
            commands = {str(key): f for key, f in value.items() if isinstance(f, Function)}
            return _started(commands, given, literal)
        return _with_words([value], given, literal) if isinstance(value, Function) else []
    if node.args or not isinstance(node.func, ast.Name):
        return []
    commands = {}
    for function in module.functions.values():
        for decorator in function.decorator_list:
            made = decorator.func if isinstance(decorator, ast.Call) else decorator
            if not (isinstance(made, ast.Attribute) and made.attr == "command" and isinstance(made.value, ast.Name)):
                continue
            if function.name == name:  # @click.command() def main(): main()
                return _with_words([Function(function, module)], given, literal)
            if made.value.id == name:
                named = decorator.args if isinstance(decorator, ast.Call) else []
                called = literal(named[0]) if named else function.name.replace("_", "-")
                commands[str(called)] = Function(function, module)
    alone = name not in module.functions and len(commands) == 1  # typer leaves the name of an only command out
    return _with_words(list(commands.values()), given, literal) if alone else _started(commands, given, literal)


def _started(commands: dict[str, Function], given: Sequence[object], literal: Literal) -> Entry:
    """The command that the first plain word names; all of them where that word is not known."""
    place = next((i for i, word in enumerate(given) if not _is_flag(word)), None)
    if place is None:
        return []
    word = given[place]
    if isinstance(word, str):
        chosen = commands.get(word) or commands.get(word.replace("_", "-")) or commands.get(word.replace("-", "_"))
        return _with_words([chosen], given[place + 1 :], literal) if chosen else []
    return [(f, Namespace()) for f in commands.values()]


def _with_words(chosen: Sequence[Function], given: Sequence[object], literal: Literal) -> Entry:
    return [(f, signature(f.node, literal).parse(given) or Namespace()) for f in chosen]
