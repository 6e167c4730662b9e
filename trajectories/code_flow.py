"""Which statements run: branches that known values rule out, and what an exit, a return or a break leaves out."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from .code_evaluation import Values, stored
from .code_modules import Facts
from .code_values import UNKNOWN, same

_STRENGTH = ("", "loop", "return", "exit")


@dataclass(frozen=True)
class Called:
    """What one call of a function showed: its facts, how many cases its result stands for, and the result."""

    facts: Facts
    size: int | None = 1
    value: object = UNKNOWN
    exits: bool = False
    """Whether the program certainly ends in it."""
    model: bool = False
    """Whether it returns a model that was loaded."""


class Flow(Values):
    """Statements in order, each alternative from the same values."""

    exits = False
    """Whether the call that was read last ends the program."""
    pruned = False

    def statement(self, node: ast.stmt, size: int) -> str:
        raise NotImplementedError

    def walk(self, node: ast.AST, size: int) -> None:
        raise NotImplementedError

    def block(self, body: Sequence[ast.stmt], size: int) -> str:
        """Statements in order up to one that certainly leaves the block, and how that one does it."""
        for statement in body:
            left = self.statement(statement, size)
            if left:
                return left
        return ""

    def branching(self, node: ast.stmt, size: int) -> str:
        """A statement that branches or leaves; all others are walked."""
        if isinstance(node, ast.If):
            self.walk(node.test, size)
            taken = self.truth_of(node.test)
            self.pruned |= taken is not None
            if taken is not None:
                return self.block(node.body if taken else node.orelse, size)
            return self.alternatives([node.body, node.orelse], size)
        if isinstance(node, ast.Match):
            return self.match(node, size)
        if isinstance(node, (ast.Try, ast.TryStar)):
            return self.attempt(node, size)
        self.exits = False
        self.walk(node, size)
        if isinstance(node, ast.AugAssign):
            self.forget([node.target])
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                self.values.pop((alias.asname or alias.name).split(".", 1)[0], None)
        if isinstance(node, (ast.Continue, ast.Break)):
            return "loop"
        if isinstance(node, ast.Raise):
            return "exit"
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            return "exit" if leaves(node.value) or self.exits else ""
        return ""

    def alternatives(self, bodies: Sequence[Sequence[ast.stmt]], size: int) -> str:
        """One of several blocks runs: all are read, and only what holds after each of them is known afterwards."""
        before, ends, after = self.values, [], []
        for body in bodies:
            self.values = dict(before)
            left = self.block(body, size)
            ends.append(left)
            if not left:
                after.append(self.values)
        self.values = _joined(after) if after else dict(before)
        return min(ends, key=_STRENGTH.index, default="")

    def match(self, node: ast.Match, size: int) -> str:
        self.walk(node.subject, size)
        subject = self.value_of(node.subject)
        bodies: list[Sequence[ast.stmt]] = []
        sure = False
        for case in node.cases:
            for name in (n.name for n in ast.walk(case.pattern) if isinstance(n, (ast.MatchAs, ast.MatchStar))):
                self.values.pop(name or "", None)
            fits = self.fits(case.pattern, subject)
            if fits is not False and case.guard is not None:
                guarded = self.truth_of(case.guard)
                fits = False if guarded is False else fits if guarded else None
            if fits is not False:
                bodies.append(case.body)
            sure = fits is True
            if sure:
                break
        self.pruned |= len(bodies) < len(node.cases)
        return self.alternatives(bodies if sure else [*bodies, []], size)

    def fits(self, pattern: ast.pattern, subject: object) -> bool | None:
        """Whether a value fits a pattern; None when that is not known."""
        if isinstance(pattern, ast.MatchAs):
            return True if pattern.pattern is None else self.fits(pattern.pattern, subject)
        if isinstance(pattern, ast.MatchOr):
            each = [self.fits(p, subject) for p in pattern.patterns]
            return True if True in each else None if None in each else False
        plain = subject is None or isinstance(subject, (bool, int, float, str))
        if isinstance(pattern, ast.MatchSingleton):
            return subject is pattern.value if plain else None
        if isinstance(pattern, ast.MatchValue):
            value = self.value_of(pattern.value)
            return subject == value if plain and value is not UNKNOWN else None
        if isinstance(pattern, ast.MatchSequence) and isinstance(subject, list):
            parts = pattern.patterns
            if any(isinstance(p, ast.MatchStar) for p in parts):
                return None
            each = [self.fits(p, s) for p, s in zip(parts, subject, strict=False)]
            return False if len(parts) != len(subject) or False in each else None if None in each else True
        return False if plain and subject is not UNKNOWN and isinstance(pattern, ast.MatchSequence) else None

    def attempt(self, node: ast.Try | ast.TryStar, size: int) -> str:
        """What is tried may stop anywhere; then a handler runs."""
        before = dict(self.values)
        left = self.block(node.body, size) or self.block(node.orelse, size)
        after = [] if left else [self.values]
        ends = [left]
        for name in stored(node.body):
            before.pop(name, None)
        for handler in node.handlers:
            self.values = dict(before)
            self.values.pop(handler.name or "", None)
            if handler.type is not None:
                self.walk(handler.type, size)
            end = self.block(handler.body, size)
            ends.append(end)
            if not end:
                after.append(self.values)
        self.values = _joined(after) if after else before
        return self.block(node.finalbody, size) or min(ends, key=_STRENGTH.index)

    def choice(self, node: ast.IfExp | ast.BoolOp, size: int) -> None:
        """The parts of a conditional expression that are evaluated."""
        if isinstance(node, ast.IfExp):
            self.walk(node.test, size)
            taken = self.truth_of(node.test)
            for side in [node.body, node.orelse] if taken is None else [node.body if taken else node.orelse]:
                self.walk(side, size)
            return
        for side in node.values:
            self.walk(side, size)
            held = self.truth_of(side)
            if held is not None and held is isinstance(node.op, ast.Or):
                return


def leaves(node: ast.expr) -> bool:
    """Whether a call ends the program: sys.exit(), quit(), parser.error()."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func
    if isinstance(name, ast.Name):
        return name.id in ("exit", "quit")
    if not (isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name)):
        return False
    if name.attr in ("exit", "_exit"):
        return name.value.id in ("sys", "os", "ap", "parser", "p")
    return name.attr == "error" and name.value.id in ("ap", "parser", "p")


def breaks(body: Sequence[ast.stmt], names: set[str], known: Values) -> int | None:
    """How many rounds a loop makes before it leaves: at once, or when its counter reaches a number; else None."""
    for statement in body:
        if isinstance(statement, (ast.Break, ast.Return, ast.Raise)):
            return 1
        if isinstance(statement, ast.Expr) and leaves(statement.value):
            return 1
        if isinstance(statement, ast.If):
            taken = known.truth_of(statement.test)
            if taken is not None:
                rounds = breaks(statement.body if taken else statement.orelse, names, known)
                if rounds is not None:
                    return rounds
            elif any(isinstance(s, ast.Break) for s in statement.body):
                return _counted(statement.test, names, known)
            elif isinstance(statement.body[-1], ast.Continue) and (quota := _quota(statement.test, body)):
                return quota
        elif isinstance(statement, ast.Continue):
            return None
    return None


def _counted(test: ast.expr, names: set[str], known: Values) -> int | None:
    """The number that a loop's counter is compared with: `i == 3`, `limit and i >= limit`."""
    tests = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    for part in tests:
        if isinstance(part, ast.Compare) and isinstance(part.left, ast.Name) and part.left.id in names:
            number = known.value_of(part.comparators[0])
            return max(1, number) if isinstance(number, int) and not isinstance(number, bool) else None
        if known.truth_of(part) is not True:
            return None
    return None


def _quota(test: ast.expr, body: Sequence[ast.stmt]) -> int | None:
    """A number of rounds of each kind, after which a loop passes the others by: `if seen[kind] > 2: continue`."""
    if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Gt | ast.GtE)):
        return None
    most, left = test.comparators[0], test.left
    table = left.value if isinstance(left, ast.Subscript) else left
    if not (
        isinstance(most, ast.Constant) and type(most.value) is int and most.value > 0 and isinstance(table, ast.Name)
    ):
        return None
    for statement in body:
        if isinstance(statement, ast.Assign | ast.AugAssign) and isinstance(statement.value, ast.BinOp | ast.Constant):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(getattr(getattr(t, "value", t), "id", "") == table.id for t in targets):
                return max(2, most.value)
    return None


def _joined(each: Sequence[dict[str, object]]) -> dict[str, object]:
    """The values that hold on every path."""
    first, *others = each
    if not others:
        return first
    return {name: value for name, value in first.items() if all(same(value, o.get(name, UNKNOWN)) for o in others)}
