"""Parse f-strings as Python 3.12 does (PEP 701), on Python 3.11.

PEP 701 allows any expression in braces, with quotes and backslashes. Expressions that 3.11 refuses
are replaced by names; each is parsed by itself and put back into the tree.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

_STRING = re.compile(r"#[^\n]*|(?P<prefix>[A-Za-z]{0,2})(?P<quote>'''|\"\"\"|'|\")")
_IN_CODE = re.compile(_STRING.pattern + r"|(?P<sign>[\[\](){}]|!(?!=)|:(?!=))")
_BRACE = re.compile(r"[{}]")
_REFUSED = re.compile(r"['\"\\#\n]")
_NAME = "_expression_{}_"


class _Reader:
    """Walks over a text once and replaces the expressions that 3.11 refuses by names."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._copied = 0
        """Characters that are in the output already."""
        self._output: list[str] = []
        self.parts: dict[str, str] = {}
        """Name -> the expression that it replaces."""

    def text(self) -> str:
        """The text with names in place of the refused expressions."""
        position = 0
        match = _STRING.search(self._text, position)
        while match is not None:
            position = self._string(match, True) if match["quote"] else match.end()
            match = _STRING.search(self._text, position)
        return "".join((*self._output, self._text[self._copied :]))

    def _string(self, start: re.Match[str], replace: bool) -> int:
        """The end of a string. `replace`: its refused expressions are replaced."""
        quote, position = start["quote"], start.end()
        braces = r"|\{\{|\{" if "f" in start["prefix"].lower() else ""
        signs = re.compile(rf"\\N\{{[^}}]*\}}|\\.|{quote}{braces}", re.DOTALL)
        sign = signs.search(self._text, position)
        while sign is not None:
            if sign[0] == quote:
                return sign.end()
            position = self._field(sign.end(), replace) if sign[0] == "{" else sign.end()
            sign = signs.search(self._text, position)
        raise ValueError("a string has no end")

    def _field(self, start: int, replace: bool) -> int:
        """The end of the replacement field whose expression starts here."""
        sign = self._expression_end(start)
        expression = self._text[start : sign.start()]
        if replace and _REFUSED.search(expression):
            name = _NAME.format(len(self.parts))
            self.parts[name] = re.sub(r"(?<![=!<>])=\s*$", "", expression)  # f"{x=}"
            self._output += [self._text[self._copied : start], name]
            self._copied = sign.start()
        position, closed = sign.end(), sign["sign"] == "}"
        while not closed:  # a format may hold fields again
            brace = _BRACE.search(self._text, position)
            if brace is None:
                raise ValueError("a field has no end")
            closed = brace[0] == "}"
            position = brace.end() if closed else self._field(brace.end(), replace)
        return position

    def _expression_end(self, start: int) -> re.Match[str]:
        """The sign that ends an expression: `}`, `!` or `:` outside all brackets."""
        depth, position = 0, start
        sign = _IN_CODE.search(self._text, position)
        while sign is not None:
            position = sign.end()
            if sign["quote"]:
                position = self._string(sign, False)
            elif sign["sign"] and depth == 0 and sign["sign"] in "}!:":
                return sign
            elif sign["sign"] and sign["sign"] in "[](){}":
                depth += 1 if sign["sign"] in "[({" else -1
            sign = _IN_CODE.search(self._text, position)
        raise ValueError("a field has no end")


def parse_modern(text: str, parse: Callable[[str], ast.Module]) -> ast.Module:
    """Parse a text that `parse` of an older Python refused.

    SyntaxError or ValueError if it is not Python.
    """
    reader = _Reader(text)
    plain = reader.text()
    if not reader.parts:
        raise SyntaxError("no expression to replace")
    tree = parse(plain)
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name):
            expression = reader.parts.get(node.value.id)
            if expression is not None:
                node.value = _parse_expression(expression, node.value.lineno, parse)
    return tree


def _parse_expression(text: str, line: int, parse: Callable[[str], ast.Module]) -> ast.expr:
    """Parse one replaced expression; all of its nodes get the line of the field."""
    source = f"({text}\n)"
    try:
        module = parse(source)
    except SyntaxError:
        module = parse_modern(source, parse)
    statement = module.body[0]
    if len(module.body) != 1 or not isinstance(statement, ast.Expr):
        raise SyntaxError("not an expression")
    for node in ast.walk(statement.value):
        if isinstance(node, ast.expr):
            node.lineno = node.end_lineno = line
    return statement.value
