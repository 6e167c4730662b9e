"""F-strings as Python 3.12 reads them (PEP 701: any expression in braces, quotes and backslashes
included), for a 3.11.

Expressions that 3.11 refuses are taken out and named; each is parsed by itself and put back into
the tree.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

_STRING = re.compile(r"#[^\n]*|(?P<prefix>[A-Za-z]{0,2})(?P<quote>'''|\"\"\"|'|\")")
_IN_CODE = re.compile(_STRING.pattern + r"|(?P<sign>[\[\](){}]|!(?!=)|:(?!=))")
_REFUSED = re.compile(r"['\"\\#\n]")
_NAME = "_expression_{}_"


class _Reader:
    """Walks over a text once; `text()` is what is left of it, `parts` the expressions taken out, by
    their names."""

    def __init__(self, text: str) -> None:
        self._text, self._done, self._out = text, 0, list[str]()
        self.parts: dict[str, str] = {}

    def text(self) -> str:
        at = 0
        while (found := _STRING.search(self._text, at)) is not None:
            at = self._string(found, True) if found["quote"] else found.end()
        return "".join((*self._out, self._text[self._done :]))

    def _string(self, found: re.Match[str], take: bool) -> int:
        """Where a string ends. `take`: its expressions are taken out where they must be."""
        formatted, quote, at = "f" in found["prefix"].lower(), found["quote"], found.end()
        ends = re.compile(
            rf"\\N\{{[^}}]*\}}|\\.|{quote}" + (r"|\{\{|\{" if formatted else ""), re.S
        )
        while (sign := ends.search(self._text, at)) is not None:
            at = self._field(sign.end(), take) if sign[0] == "{" else sign.end()
            if sign[0] == quote:
                return at
        raise ValueError("a string without an end")

    def _field(self, start: int, take: bool) -> int:
        """Where the replacement field ends whose expression starts here; a format may hold fields
        again."""
        depth, at = 0, start
        while (sign := _IN_CODE.search(self._text, at)) is not None:
            at = sign.end()
            if sign["quote"]:
                at = self._string(sign, False)
            elif sign["sign"] and depth == 0 and sign["sign"] in "}!:":
                break
            elif sign["sign"] and sign["sign"] in "[](){}":
                depth += 1 if sign["sign"] in "[({" else -1
        if sign is None:
            raise ValueError("a field without an end")
        expression = self._text[start : sign.start()]
        if take and _REFUSED.search(expression):
            name = _NAME.format(len(self.parts))
            self.parts[name] = re.sub(r"(?<![=!<>])=\s*$", "", expression)
            self._out += [self._text[self._done : start], name]
            self._done = sign.start()
        while sign["sign"] != "}":
            ends = re.compile(r"[{}]").search(self._text, at)
            if ends is None:
                raise ValueError("a field without an end")
            if ends[0] == "}":
                return ends.end()
            at = self._field(ends.end(), take)
        return at


def parse_modern(text: str, parse: Callable[[str], ast.Module]) -> ast.Module:
    """The tree of a text that `parse` of an older Python refused; SyntaxError or ValueError when it
    is no Python."""
    reader = _Reader(text)
    plain = reader.text()
    if not reader.parts:
        raise SyntaxError("nothing to take out")
    tree = parse(plain)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.FormattedValue)
            and isinstance(node.value, ast.Name)
            and node.value.id in reader.parts
        ):
            line, inside = node.value.lineno, f"({reader.parts[node.value.id]}\n)"
            try:
                within = parse(inside)
            except SyntaxError:
                within = parse_modern(inside, parse)
            value = within.body[0]
            if len(within.body) != 1 or not isinstance(value, ast.Expr):
                raise SyntaxError("no expression")
            node.value = value.value
            for below in ast.walk(value.value):
                if isinstance(below, ast.expr):
                    below.lineno = below.end_lineno = line
    return tree
