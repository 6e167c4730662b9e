"""E3: what a card, a help text or the brief states in plain words, printed in the run, and the pipeline does otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..context import CodeContext, names_weights
from ..registry import Finding, detector
from .checks import admits
from .class_signs import printed_strange_labels
from .input_conventions import weights_in

_ORDER = re.compile(r"\border:?\s{1,3}((?:[\w-]{1,20},\s?){1,12}[\w-]{1,20})", re.IGNORECASE)
_QUOTED_LIST = re.compile(r"[\[(]((?:\s{0,8}['\"][\w -]{1,30}['\"]\s{0,4},?){2,13})\s{0,8}[\])]")
_NUMBERED = re.compile(
    r"(?<![\w.-])(\d{1,2})(?:\s{0,2}[:=]\s{0,2}|\s{1,2}(?:is )?)(?:an? |the )?['\"]?([A-Za-z][\w-]{0,29})"
)
_SHIFTS = re.compile(
    r"\[\s?:\s?,\s?1\s?:|\[1:\]|(?:argmax\([^()\n]{0,40}\)(?:\.item\(\))?\)?|\bi|\bidx|\bk|\bindex|\bpred)\s{0,2}[-+]\s{0,2}1\b"
)


@detector("label_order_missed", code="E3", stage="S3", independence="from_trace")
def label_order_missed(ctx: CodeContext) -> Iterable[Finding]:
    """The card states the order of the model's labels, and the code maps the outputs in another order."""
    final, code = ctx.final_write, ctx.pipeline_code
    if final is None:
        return
    lists = [tuple(re.findall(r"['\"]([\w -]{1,30})['\"]", inner)) for inner in _QUOTED_LIST.findall(code)]
    for turn in ctx.run.turns[:final]:
        for line in turn.output[:200_000].splitlines():
            match = _ORDER.search(line[:600])
            if match is None or not any(names_weights(code, stem) for stem in weights_in(line[:600])):
                continue
            stated = tuple(name.strip() for name in match[1].split(","))
            used = [names for names in lists if sorted(map(str.lower, names)) == sorted(map(str.lower, stated))]
            if used and all(tuple(map(str.lower, names)) != tuple(map(str.lower, stated)) for names in used):
                order = ", ".join(used[0])
                yield Finding(
                    (final, *ctx.checks),
                    f"The card orders the labels {', '.join(stated)}, the code reads them as {order}.",
                    0.8,
                )
                return


@detector("label_index_missed", code="E3", stage="S3", independence="from_trace")
def label_index_missed(ctx: CodeContext) -> Iterable[Finding]:
    """The card numbers the model's outputs, and the code reads the labels off a list with other positions."""
    final, code = ctx.final_write, ctx.pipeline_code
    if final is None or _SHIFTS.search(code):
        return
    lists = [
        tuple(n.lower() for n in re.findall(r"['\"]([\w -]{1,30})['\"]", inner)) for inner in _QUOTED_LIST.findall(code)
    ]
    for turn in ctx.run.turns[:final]:
        for raw in turn.output[:200_000].splitlines():
            line = raw[:600]
            if not any(names_weights(code, stem) for stem in weights_in(line)):
                continue
            stated = numbered(line)
            if len(stated) < 3:
                continue
            used = [names for names in lists if len(names) >= 3 and all(name in stated for name in names)]
            if used and all(any(stated[n] != i for i, n in enumerate(names)) for names in used):
                name = next(n for i, n in enumerate(used[0]) if stated[n] != i)
                pilot = [t for t in ctx.model_turns if ctx.stage(t) == "S3" and t < final]
                why = (
                    f"The card gives {name} the index {stated[name]}, the code's list the index {used[0].index(name)}."
                )
                yield Finding(tuple(sorted({*pilot, final, *ctx.checks})), why, 0.8)
                return


def numbered(line: str) -> dict[str, int]:
    """Names that a line numbers upwards from 0 or 1 ("0 background, 1 nodule, 2 calc"), in lower case."""
    found: dict[str, int] = {}
    last: int | None = None
    for match in _NUMBERED.finditer(line):
        index = int(match[1])
        if (index in (0, 1) and last is None) or (last is not None and index == last + 1):
            found[match[2].lower()] = last = index
    return found


@detector("strange_labels_accepted", code="E3", stage="S5", independence="from_trace")
def strange_labels_accepted(ctx: CodeContext) -> Iterable[Finding]:
    """The run's own listing shows labels that the brief does not allow, and the masks were handed over as they are."""
    found = printed_strange_labels(ctx)
    if found is None or not ctx.handed_over or admits(ctx):
        return
    turn, labels = found
    shown = ", ".join(map(str, labels[:5]))
    yield Finding(
        tuple(sorted({turn, ctx.last})), f"The listing shows the labels {shown}, which the brief does not allow.", 0.8
    )
