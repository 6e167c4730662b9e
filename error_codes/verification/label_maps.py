"""E3 and E5: the code's table from a model's output index to the brief's label, held against the names that card and brief give both."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from ...trajectories.code_parts import parse, split
from ...trajectories.syntax_tree import descendants, source
from ..context import CodeContext, names_weights
from ..registry import Finding, detector
from ..serving import written_modules
from .input_conventions import weights_in

MAX_CODE = 100_000
MAX_NAMES = 40
_ENTRY = re.compile(r"(?<![\w.-])(\d{1,2})\s{0,2}[:=]?\s{0,2}['\"]?([A-Za-z][A-Za-z /-]{1,40})")
_PAIR_BEFORE = re.compile(r"([A-Za-z][A-Za-z /-]{1,40}?)\s{0,2}[=:(]\s{0,2}(\d{1,2})(?![\w.])")
_SMALL = frozenset(
    {"the", "and", "of", "a", "an", "label", "labels", "class", "integer", "as", "with", "no", "other", "any"}
)


def names_of_numbers(text: str) -> dict[int, frozenset[str]]:
    """Number -> stems of its name, where a text numbers at least three things upwards from 0 or 1 ("0 background, 1 cortical bone")."""
    found: dict[int, frozenset[str]] = {}
    last: int | None = None
    for match in _ENTRY.finditer(re.sub(r"\([^()\n]{0,60}\)", " ", text[:4_000])):
        index = int(match[1])
        stems = frozenset(w[:6] for w in re.findall(r"[a-z]{2,}", match[2].lower()) if w not in _SMALL)
        if stems and ((index in (0, 1) and last is None) or (last is not None and index == last + 1)):
            found[index] = stems
            last = index
        if len(found) >= MAX_NAMES:
            break
    return found if len(found) >= 3 else {}


def matched(outputs: Mapping[int, frozenset[str]], labels: Mapping[int, frozenset[str]]) -> dict[int, int]:
    """Output index -> the label that is the same thing by its name: each other's only best match, background left out."""
    pairs: dict[int, int] = {}
    for index, name in outputs.items():
        best = _best(name, labels)
        if best is not None and best != 0 and _best(labels[best], outputs) == index:
            pairs[index] = best
    return pairs


def _best(name: frozenset[str], others: Mapping[int, frozenset[str]]) -> int | None:
    """The only one of `others` that shares most with a name; None where none shares anything or two share alike."""
    scores = {n: len(name & other) / len(name | other) for n, other in others.items()}
    top = max(scores.values(), default=0.0)
    best = [n for n, score in scores.items() if score == top]
    return best[0] if top > 0 and len(best) == 1 else None


@detector("labels_exchanged", code="E3", stage="S3", independence="from_trace")
def labels_exchanged(ctx: CodeContext) -> Iterable[Finding]:
    """The code gives what the card calls one structure the number that the brief gives to another."""
    for words in _exchanged(ctx):
        turns = {t for t in ctx.model_turns if ctx.stage(t) in ("S3", "S4")} | {
            ctx.final_write or ctx.last,
            *ctx.checks,
        }
        yield Finding(tuple(sorted(turns)), f"{words}, and no check told the structures apart.", 0.8)
        return


@detector("wrong_label_numbers", code="E5", stage="S5", independence="from_trace")
def wrong_label_numbers(ctx: CodeContext) -> Iterable[Finding]:
    """Multi-class masks were delivered with structures under each other's numbers: the brief's convention is broken."""
    for words in _exchanged(ctx) if ctx.run.track == "segmentation" else ():
        yield Finding(
            tuple(sorted({ctx.final_write or ctx.last, ctx.last})), f"{words}; so are the delivered masks.", 0.65
        )
        return


def _exchanged(ctx: CodeContext) -> Iterator[str]:
    final = ctx.final_write
    if final is None or not ctx.handed_over or ctx.run.track not in ("segmentation", "classification"):
        return
    labels = next((n for line in ctx.run.brief[:MAX_CODE].splitlines() if (n := names_of_numbers(line))), {})
    code = ctx.serving_code[:400_000]
    if not labels:
        return
    for outputs in _card_names(ctx, code):
        same = matched(outputs, labels)
        if len(same) < 2 or outputs == labels:
            continue
        fitting = [
            table for table in _tables(ctx)
            if set(same) <= set(table) <= {*outputs, 0} and set(table.values()) <= {*labels, 0} and table.get(0, 0) == 0
        ]  # fmt: skip
        wrong = [_faults(table, same) for table in fitting]
        if fitting and all(0 < n < len(same) for n in wrong):
            table = fitting[-1]
            index = next(i for i, label in same.items() if table[i] != label)
            yield f"The card's output {index} is what the brief calls {same[index]}, the code writes it as {table[index]}"
            return


def _faults(table: Mapping[int, int], same: Mapping[int, int]) -> int:
    """Entries of a table that are not what the names say; 0 for one that leads from labels to outputs and is right."""
    if all(table.get(label) == index for index, label in same.items()):
        return 0
    return sum(table[index] != label for index, label in same.items())


def _card_names(ctx: CodeContext, code: str) -> Iterator[dict[int, frozenset[str]]]:
    """Names of the outputs of the model that served, as lines of a card that name its weights give them."""
    for turn in ctx.run.turns[: ctx.final_write]:
        for line in turn.output[:200_000].splitlines():
            if any(names_weights(code, stem) for stem in weights_in(line[:1_000])) and (
                found := names_of_numbers(
                    line[:2_000].split("|", 2)[-1] if line.lstrip().startswith("|") else line[:2_000]
                )
            ):
                yield found


def _tables(ctx: CodeContext) -> Iterator[dict[int, int]]:
    """Tables index -> label in the code that made the outputs, see `tables`."""
    texts = [
        part.text
        for t in ctx.write_turns
        for action in ctx.turn(t).actions
        for part in split(action)
        if part.kind != "file"
    ]
    texts += written_modules(ctx.run, ctx.final_write or 0).values()
    for text in texts:
        tree = parse(text[:MAX_CODE])
        yield from tables(tree) if tree is not None else ()


def tables(tree: ast.AST) -> Iterator[dict[int, int]]:
    """Lists, tuples and dictionaries of small whole numbers, and masks written by comparison (`out[y == 1] = 3`).

    Axes handed to a call that turns an array, and lists that count upwards, are no tables of labels.
    """
    axes = {
        id(node)
        for call in descendants(tree)
        if isinstance(call, ast.Call) and _TURNS.search(source(call.func)[-40:])
        for argument in (*call.args, *(k.value for k in call.keywords))
        for node in descendants(argument)
    }
    written: dict[str, dict[int, int]] = {}
    for node in descendants(tree):
        pairs: list[tuple[int | None, int | None]] = []
        if isinstance(node, ast.List | ast.Tuple) and 3 <= len(node.elts) <= MAX_NAMES and id(node) not in axes:
            pairs = list(enumerate(map(_number, node.elts)))
        elif isinstance(node, ast.Dict) and 2 <= len(node.keys) <= MAX_NAMES:
            pairs = [(_number(key), _number(value)) for key, value in zip(node.keys, node.values, strict=True)]
        elif isinstance(node, ast.Assign) and (found := _by_comparison(node)) is not None:
            target, index, label = found
            written.setdefault(target, {})[index] = label
        table = {k: v for k, v in pairs if k is not None and v is not None}
        if len(table) == len(pairs) and any(k != v for k, v in table.items()):
            yield table
    yield from (table for table in written.values() if len(table) >= 2)


_TURNS = re.compile(r"transpose|permute|moveaxis|swapaxes|rollaxis|reshape|zeros|ones|empty|full|resize|zoom|pad$")


def _by_comparison(node: ast.Assign) -> tuple[str, int, int] | None:
    """(written array, index, label) of `out[y == index] = label`, where another array is read than written."""
    target = node.targets[0]
    if (
        not isinstance(target, ast.Subscript)
        or not isinstance(target.value, ast.Name)
        or not isinstance(target.slice, ast.Compare)
    ):
        return None
    test = target.slice
    if len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq) or source(test.left, 80) == target.value.id:
        return None
    index, label = _number(test.comparators[0]), _number(node.value)
    return None if index is None or label is None else (target.value.id, index, label)


def _number(node: ast.expr | None) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int and 0 <= node.value < 256 else None
