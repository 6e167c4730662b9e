"""What statements show: assignments, loops and how many cases they go through, classes, imports of own modules."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .any_case import AnyCase
from .code_calls import Calls
from .code_flow import breaks
from .code_forward import WEIGHTS
from .code_functions import QUIET, passed
from .code_measures import stored
from .code_names import ALL, first_name, integer, is_case, last_name, mentions
from .code_records import Record, class_of, computed, fields
from .code_values import PLACE, UNKNOWN
from .syntax_tree import COMPREHENSIONS, LOOPS, children, descendants

_CONCERN = AnyCase(
    r"missing|mismatch|complete|valid|bad\b|problem|error|ok\b|schema|expected|dup|count|rows|total|present"
)
_SILENT = (ast.Name, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
"""A name alone shows nothing, and a definition runs nothing."""
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.NamedExpr)


class Statements(Calls):
    """Statements in the order in which they run, and the expressions in them."""

    def statement(self, node: ast.stmt, size: int) -> str:
        """Facts of one statement; how it leaves the block ("loop", "return", "exit"), "" where what follows may run."""
        if isinstance(node, LOOPS):
            self.walk(node.iter, size)
            if self.value_of(node.iter) == []:  # no words were given: nothing to go through
                self.pruned = True
                return self.block(node.orelse, size)
            self.forget([node.target, *node.body])
            self.bind_each(node.target, self.value_of(node.iter))
            inner = self.loop(node.target, node.iter, node.body, size)
            self.block(node.body, inner)
            self.forget([node.target, *node.body])
            self.leave(node.iter)
            self.block(node.orelse, size)
        elif isinstance(node, ast.While):
            self.walk(node.test, size)
            rounds = [self.sizes.get(n.id) or 1 for n in descendants(node.test) if isinstance(n, ast.Name)]
            self.forget(node.body)
            if self.truth_of(node.test) is not False:
                self.block(node.body, max(size, *rounds, 1))
                self.forget(node.body)
            self.block(node.orelse, max(size, *rounds, 1))
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            return self.within(node, size)
        elif isinstance(node, ast.Return):
            if node.value is not None:
                self.walk(node.value, size)
            self.results_reached.append(
                (node.value, self.size_of(node.value), self.value_of(node.value) if node.value else None)
            )
            return "return"
        elif isinstance(node, ast.ClassDef):
            self.define(node)
        else:
            return self.branching(node, size)
        return ""

    def define(self, node: ast.ClassDef) -> None:
        """A class statement: the values of its fields, and which of its attributes are places of outputs or cases."""

        def believed(value: ast.AST) -> object:
            literal = isinstance(value, ast.Constant) and not self.scope.constants
            return UNKNOWN if literal else self.held(value)

        self.bind(ast.Name(node.name, ast.Store()), class_of(node, believed))
        for name, value in (*fields(node), *computed(node)):
            if value is not None:
                self.note_attribute(name, value)

    def note_attribute(self, name: str, value: ast.AST) -> None:
        """An attribute is set, of an object that may not be known later: what holds for any object's."""
        if isinstance(self.value_of(value), Record):
            return
        if self.is_output(value):
            self.options.add(name)
        size = self.size_of(value)
        if size is not None and size > 1:
            self.attribute_sizes[name] = max(size, self.attribute_sizes.get(name, 0))

    def within(self, node: ast.With | ast.AsyncWith, size: int) -> str:
        quiet = any(last_name(item.context_expr) in QUIET for item in node.items)
        for item in node.items:
            self.walk(item.context_expr, size)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, UNKNOWN)
            if isinstance(item.optional_vars, ast.Name):
                handle, opened = item.optional_vars.id, item.context_expr
                if self.is_output(opened):
                    self.tainted.add(handle)
                (self.of_case.add if mentions(opened, self.of_case) else self.of_case.discard)(handle)
        self.no_grad += quiet
        left = self.block(node.body, size)
        self.no_grad -= quiet
        return "" if any(last_name(item.context_expr) in ("suppress", "raises") for item in node.items) else left

    def walk(self, node: ast.AST, size: int) -> None:
        if isinstance(node, _SILENT):
            return
        if isinstance(node, (ast.IfExp, ast.BoolOp)):
            self.choice(node, size)
        elif isinstance(node, COMPREHENSIONS):
            inner = size
            for generator in node.generators:
                self.walk(generator.iter, size)
                self.bind_each(generator.target, self.value_of(generator.iter))
                inner = self.loop(generator.target, generator.iter, [ast.copy_location(ast.Expr(node), node)], inner)
                for condition in generator.ifs:
                    self.walk(condition, inner)
            for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
                self.walk(part, inner)
            self.forget([generator.target for generator in node.generators])
        elif isinstance(node, _ASSIGNMENTS):
            self.assign(node, size)
        elif isinstance(node, ast.Call):
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            made = self.module.functions.get(last_name(owner)) if isinstance(owner, ast.Call) else None
            if owner is not None and made is not None and made.name == "__init__":
                self.walk(owner, size)  # Job().run(): what makes the object sets its attributes
            self.call(node, size)
            for child in children(node):
                self.walk(child, size)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self.imports(node, size)
        elif isinstance(node, ast.Assert):
            self.facts.note("asserts", self.quote(node))
            self.walk(node.test, size)
        elif (
            isinstance(node, ast.Attribute)
            and node.attr in ("__version__", "version")
            and isinstance(node.value, ast.Name)
        ):
            self.facts.note("checks_environment", self.quote(node))
        else:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 300:
                self.constant(node, node.value)
            for child in children(node):
                self.walk(child, size)

    def constant(self, node: ast.AST, text: str) -> None:
        if WEIGHTS.search(text) and "." in text and " " not in text:
            self.facts.weights.add(text.rsplit("/", 1)[-1])
        if "names_concern" not in self.facts.seen and _CONCERN.search(text):
            self.facts.note("names_concern", self.quote(node))

    def loop(self, target: ast.AST, iterable: ast.AST, body: Sequence[ast.stmt], size: int) -> int:
        found = self.size_of(iterable)
        names = {n.id for n in descendants(target) if isinstance(n, ast.Name)}
        if self.is_output(iterable):
            self.tainted |= names
        for name in names:
            self.sizes[name] = 1
            self.numbers.pop(name, None)
        self.of_case |= names
        self.measured.update(dict.fromkeys(names, self.measures(iterable)))
        if (
            isinstance(iterable, ast.Call)
            and last_name(iterable) in ("items", "values")
            and first_name(iterable) in self.models
        ):
            self.models |= {n.id for n in descendants(target) if isinstance(n, ast.Name)}
        if isinstance(target, ast.Name) and isinstance(iterable, ast.Tuple | ast.List):
            held = [e.value for e in iterable.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
            if held:
                self.files[target.id] = held[0][:300]
        if found is None:
            self.unknown_loops += 1
            return size
        if (
            1 < found < ALL
            and isinstance(iterable, ast.Call)
            and last_name(iterable.func) == "range"
            and not self.formats_a_path(body, names)
        ):
            return size  # epochs, folds, flips: repetitions, not cases
        return max(size, min(found, breaks(body, names, self) or found))

    def formats_a_path(self, body: Sequence[ast.AST], names: set[str], depth: int = 0) -> bool:
        """Whether a loop's variable becomes part of a file name, here or in a function that it is handed to."""
        if _formats_a_path(body, names):
            return True
        if depth > 2:
            return False
        for node in (n for statement in body for n in descendants(statement) if isinstance(n, ast.Call)):
            known = self.module.functions.get(last_name(node))
            if known is None and (found := self.library.functions.get(last_name(node))) is not None:
                known = found[0]
            if known is None:
                continue
            handed = {
                parameter
                for parameter, (value, is_default) in passed(known, node).items()
                if isinstance(value, ast.Name) and value.id in names and not is_default
            }
            if handed and self.formats_a_path(known.body, handed, depth + 1):
                return True
        return False

    def leave(self, iterable: ast.AST) -> None:
        if self.size_of(iterable) is None:
            self.unknown_loops -= 1

    def assign(self, node: ast.Assign | ast.AnnAssign | ast.NamedExpr, size: int) -> None:
        if node.value is None:
            return
        self.walk(node.value, size)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [
            n.id for t in targets for n in descendants(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        ]
        value = node.value
        known = self.value_of(value)
        if isinstance(value, ast.Constant) and not self.within_function and not self.scope.constants:
            known = UNKNOWN
        for target in targets:
            self.bind(target, known)
            for part, given in _pairs(target, value):
                if isinstance(part, ast.Attribute):
                    self.note_attribute(part.attr, given)
                    owner = self.value_of(part.value)
                    if isinstance(owner, Record) and self.is_output(given):
                        owner[part.attr] = PLACE
        # Of an object each attribute is looked at by itself.
        output = not isinstance(known, Record) and self.is_output(value)
        model, length = self.is_model(value), self.size_of(value)
        maker = self.callable_class(value)
        for target in targets:
            if isinstance(target, ast.Name | ast.Attribute):
                held = self.objects if isinstance(target, ast.Name) else self.attribute_objects
                held.pop(last_name(target), None)
                if maker is not None:
                    held[last_name(target)] = maker
        self.measured_by(targets, value)
        if model:
            self.models |= {first_name(t) for t in targets if isinstance(t, ast.Subscript)} - {""}
        result = self.is_result(value)
        # In `DATA, OUT = ...` each name has its own value.
        single_outputs = {
            part.id: self.is_output(given)
            for target in targets
            for part, given in _pairs(target, value)
            if given is not value and isinstance(part, ast.Name)
        }
        if isinstance(value, ast.Call) and last_name(value) in ("parse_args", "parse_known_args"):
            self.namespaces |= set(names)
        single = isinstance(value, ast.Attribute | ast.Call | ast.IfExp) or (
            isinstance(value, ast.BoolOp) and isinstance(value.values[-1], ast.Constant)
        )
        if single and self.is_argument(value) and length in (None, 1, self.arguments):
            self.given |= set(names)
        for name in names:
            self.sizes[name] = length
            (self.tainted.add if single_outputs.get(name, output) else self.tainted.discard)(name)
            nothing = isinstance(value, ast.Constant) and not value.value
            (self.unlimited.add if nothing else self.unlimited.discard)(name)
            number = integer(value)
            if number is not None and number > 0:
                self.numbers[name] = number
            else:
                self.numbers.pop(name, None)
            (self.results.add if result else self.results.discard)(name)
            if model:
                self.models.add(name)
            one = isinstance(value, ast.Constant) and isinstance(value.value, str) and is_case(value.value)
            (self.of_case.add if one or mentions(value, self.of_case) else self.of_case.discard)(name)
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                self.files[name] = value.value[:300]

    def measured_by(self, targets: Sequence[ast.expr], value: ast.expr) -> None:
        """Which names hold a measurement now; a row put into a table adds to what the table holds."""
        for target in targets:
            for part, given in _pairs(target, value):
                held = self.measures(given)
                if isinstance(part, ast.Subscript):
                    table = first_name(part)
                    self.measured[table] = self.measured.get(table, frozenset()) | held
                else:
                    self.measured.update(dict.fromkeys(stored(part), held))

    def imports(self, node: ast.Import | ast.ImportFrom, size: int) -> None:
        """Importing a module written in this run executes it."""
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        for name in names:
            stem = name.rsplit(".", 1)[-1]
            module = self.library.modules.get(stem)
            if module is None or stem in self.imported or self.depth > 4:
                continue
            self.imported.add(stem)
            inner = type(self)(module, self.library, self.outputs, self.arguments, self.depth + 1, self)
            inner.values["__name__"] = stem
            inner.block([s for s in module.tree.body if not _is_main_guard(s)], size)
            self.scope.globals[id(module)] = inner.values
            self.tainted |= inner.tainted
            self.models |= inner.models
            self.sizes.update(inner.sizes)
            inner.facts.seen.pop("names_concern", None)
            self.facts.merge(inner.facts)


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Each single target of an assignment with what it is given: `a.x, a.y = 1, 2`."""
    left, right = (list(n.elts) if isinstance(n, ast.Tuple | ast.List) else [] for n in (target, value))
    return list(zip(left, right, strict=True)) if left and len(left) == len(right) else [(target, value)]


def _is_main_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and any(
        isinstance(n, ast.Name) and n.id == "__name__" for n in descendants(node.test)
    )


def _texts_with(body: Sequence[ast.AST], names: set[str]) -> set[str]:
    """Names of texts that are put together with one of these (c = f"pt_{k}")."""
    found = set()
    for node in (n for statement in body for n in descendants(statement)):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            parts = descendants(node.value) if isinstance(node.value, ast.JoinedStr | ast.BinOp) else ()
            if any(isinstance(p, ast.Name) and p.id in names for p in parts) and any(
                isinstance(p, ast.Constant) and isinstance(p.value, str) for p in parts
            ):
                found.add(node.targets[0].id)
    return found


def _formats_a_path(body: Sequence[ast.AST], names: set[str]) -> bool:
    """Whether a loop variable becomes part of a file name or case id (f"/data/patient_{i:04d}"), at once or under a name."""
    names = names | _texts_with(body, names)
    for statement in body:
        for node in descendants(statement):
            if isinstance(node, ast.JoinedStr):
                parts = "".join(str(v.value) for v in node.values if isinstance(v, ast.Constant))
                for value in node.values:
                    if isinstance(value, ast.FormattedValue) and any(
                        isinstance(n, ast.Name) and n.id in names for n in descendants(value.value)
                    ):
                        spec = value.format_spec
                        padded = isinstance(spec, ast.JoinedStr) and any(
                            isinstance(v, ast.Constant) and str(v.value).startswith("0") for v in spec.values
                        )
                        if padded or "/" in parts:
                            return True
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant):
                if isinstance(node.left.value, str) and ("/" in node.left.value or "%0" in node.left.value):
                    return True
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and node.slice.id in names:
                return True
    return False
