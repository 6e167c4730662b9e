"""Entering the functions that code calls: what their bodies show, with the values that the call gives."""

from __future__ import annotations

import ast

from .code_flow import Called
from .code_forward import Forward
from .code_modules import Facts, Module
from .code_names import is_case, last_name, mentions, size_of_value
from .code_records import Record
from .code_values import UNKNOWN, Namespace, key_of, one_of
from .command_lines import Launch, cases_asked

QUIET = ("no_grad", "inference_mode")
"""What switches gradients off: within it, a model is applied and not trained."""
_VARIANTS = 4
"""How often a function is read with different values of its parameters; after that without them."""


class Functions(Forward):
    """Functions of the run's own, each read once for every set of values that it is called with."""

    def enter(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, owner: Module, node: ast.Call, output: bool, size: int,
        given: Namespace | None = None,
    ) -> None:  # fmt: skip
        """Facts of a function called here; a recursion adds nothing. `given`: values of its parameters, where they do
        not stand in the call."""
        if not self.within_function:
            self.scope.globals[id(self.module)] = self.values
        expressions = passed(function, node)
        known: dict[str, object] = {}
        for parameter, (value, is_default) in expressions.items():
            if given is not None:
                known[parameter] = given.get(parameter, UNKNOWN)
            else:
                known[parameter] = (
                    self.value_of(value) if not is_default or isinstance(value, ast.Constant) else UNKNOWN
                )
        if "self" in expressions and isinstance(node.func, ast.Attribute):
            owned = self.value_of(node.func.value)
            known["self"] = owned if isinstance(owned, Record) else UNKNOWN
        values = tuple((p, key_of(v)) for p, v in known.items() if v is not UNKNOWN)
        key = (id(function), output, values)
        if key not in self.memo:
            self.scope.variants[id(function)] = self.scope.variants.get(id(function), 0) + 1
            if self.scope.variants[id(function)] > _VARIANTS:
                known, key = {}, (id(function), output, ())
        if key not in self.memo:
            self.memo[key] = Called(Facts())
            self.memo[key] = self.read(function, owner, node, given, expressions, known)
        found = self.memo[key]
        self.returns[id(function)], self.scope.returned[id(function)] = found.size, found.value
        before = self.facts.scope
        self.facts.merge(found.facts)
        self.facts.scope = max(
            before, size if found.facts.scope == 1 else max(found.facts.scope, size) if found.facts.scope else 0
        )
        if found.facts.loaded:
            self.facts.loaded = max(self.facts.loaded, size)
        if found.facts.scope and self.unknown_loops:
            self.facts.open_ended = True
        self.exits = found.exits
        (self.model_makers.add if found.model else self.model_makers.discard)(id(function))

    def read(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, owner: Module, node: ast.Call, given: Namespace | None,
        expressions: dict[str, tuple[ast.expr | None, bool]], known: dict[str, object],
    ) -> Called:  # fmt: skip
        """One reading of a function's body, with what the call tells of its parameters."""
        line = _command_line(node)
        asked = self.arguments if line is None else cases_asked(Launch("", line, ""), ())
        inner = type(self)(owner, self.library, self.outputs, asked, self.depth + 1, self)
        inner.within_function = True
        inner.values = dict(self.scope.globals.get(id(owner), {}))
        if owner is self.module and function.col_offset > 0:  # a function in a function sees the names around it
            inner.values.update(self.values)
        inner.params = set(expressions)
        for parameter in inner.params:
            inner.sizes[parameter] = None
            inner.numbers.pop(parameter, None)
        inner.of_case -= inner.params
        for parameter, (value, _) in expressions.items():
            held = known.get(parameter, UNKNOWN)
            inner.bind(ast.Name(parameter, ast.Store()), held)
            if given is not None:
                inner.sizes[parameter] = size_of_value(held)
                continue
            if value is None:
                continue
            inner.sizes[parameter] = self.size_of(value)
            one = isinstance(value, ast.Constant) and is_case(value.value)
            if one or mentions(value, self.of_case):
                inner.of_case.add(parameter)
            nothing = isinstance(value, ast.Constant) and not value.value
            (inner.unlimited.add if nothing else inner.unlimited.discard)(parameter)
            number = self.number(value)
            if number is not None and number > 0:
                inner.numbers[parameter] = number
            if not isinstance(held, Record) and self.is_output(value):
                inner.tainted.add(parameter)
            else:
                inner.tainted.discard(parameter)
            if self.is_model(value):
                inner.models.add(parameter)
        inner.no_grad += any(last_name(d) in QUIET for d in function.decorator_list)
        left = inner.block(function.body, 1)
        self.options |= inner.options
        returned = [s.value for s in function.body if isinstance(s, ast.Return)]
        size = inner.size_of(returned[-1]) if returned else 1
        if inner.pruned and len(inner.results_reached) == 1:
            size = inner.results_reached[0][1]
        results = [held for _, _, held in inner.results_reached] + ([None] if not left else [])
        model = bool(returned) and returned[-1] is not None and inner.is_model(returned[-1])
        return Called(inner.facts, size, one_of(results), left == "exit", model)


def _command_line(node: ast.Call) -> str | None:
    """The command line in main(["--limit", "2"]); None where no list of options is passed."""
    for argument in (*node.args, *(k.value for k in node.keywords)):
        if isinstance(argument, ast.List):
            words = [str(e.value) for e in argument.elts if isinstance(e, ast.Constant)]
            if words and words[0].startswith("-"):
                return " " + " ".join(words)[:1_000]
    return None


def passed(function: ast.FunctionDef | ast.AsyncFunctionDef, node: ast.Call) -> dict[str, tuple[ast.expr | None, bool]]:
    """What a call gives to each parameter, and whether that is its default; None where it cannot be told."""
    arguments = function.args
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args) if a.arg not in ("self", "cls")]
    found: dict[str, tuple[ast.expr | None, bool]] = dict.fromkeys(
        (a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)), (None, False)
    )
    spread = any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords)
    if not spread:
        defaults = zip(positional[::-1], arguments.defaults[::-1], strict=False)
        found.update({name: (value, True) for name, value in defaults})
        keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        found.update({a.arg: (value, True) for a, value in keyword if value is not None})
        found.update({name: (value, False) for name, value in zip(positional, node.args, strict=False)})
    found.update({k.arg: (k.value, False) for k in node.keywords if k.arg in found})
    return found
