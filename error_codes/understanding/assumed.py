"""E1: a property of the device or series that nothing shown states, with a figure that the code applies to every case.

Facts beside one statement: the figure stands in the code that made the outputs, as a value that is computed with, and
neither the brief nor anything printed before holds it or a number that rounds to it. The statement says of this device,
series or site that it has the figure. What the agent calls an assumption, measured, or tried out is its own choice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..context import CodeContext
from ..registry import Finding, detector
from ..serving import without_comments
from .invented import TAKEN_BACK, known_before, printed_number, told_units, units_of

_DEVICE = r"(?:detectors?|scanners?|cameras?|sensors?|chips?|tubes?|consoles?|devices?|machines?|collimators?|probes?|transducers?|microscopes?|digiti[sz]ers?|amplifiers?|coils?|gantr(?:y|ies)|stations?)"
_SUBJECT = re.compile(
    rf"\b(?:this|these|the|that|such|our) (?:[\w-]{{1,20}} ){{0,3}}?{_DEVICE}\b|\b{_DEVICE} (?:of|in|from) (?:this|that|the|these) (?:\w+ )?(?:series|family|type|vendor|generation|model|make|site|unit|hospital|data ?set|study)",
    re.IGNORECASE,
)
_HAS = re.compile(
    r"\b(?:has|have|had|is|are|was|uses?|shows?|adds?|applies|apply|loses?|leaks?|saturates?|suffers?|comes?|records?|exports?|stores?|carr(?:y|ies)|known)\b",
    re.IGNORECASE,
)
_OWN = re.compile(
    r"\b(?:assum\w*|assumption|typical\w*|usual\w*|about|around|approx\w*|roughly|guess\w*|estimat\w*|measured?|fit(?:ted)?|fits|found|tried|try|tun\w+|chos\w+|choose|pick\w*|seems?|looks?|probably|perhaps|maybe|may|might|could|would|if|whether|say|e\.g|default|set to|unknown|not)\b|[?~\u2248]",
    re.IGNORECASE,
)
_FIGURE = re.compile(r"(?<![\w.@=-])(\d{1,4}\.\d{1,6})(?![\w.]*\d)")
_COMPARED = re.compile(r"[<>]=?|==|\bprint\(|\bassert\b|\blog\w{0,4}\.|allclose|isclose|atol|rtol")
MAX_CLAIMS = 200
"""Figures of one run that are looked up."""


@detector("invented_property", code="E1", stage="S1", independence="from_trace")
def invented_property(ctx: CodeContext) -> Iterable[Finding]:
    """The outputs are corrected by a property of the device that no brief, card, header or output states."""
    final = ctx.final_write
    if final is None or not ctx.handed_over:
        return
    code: list[str] | None = None
    looked_up = 0
    planned = ctx.run.plan.turn
    for turn in ctx.run.turns[:final]:
        plan = (ctx.run.plan.text or "") if turn.index == planned else ""
        for unit in (*told_units(ctx.run, turn.index), *units_of(plan)):
            numbers = _FIGURE.findall(unit)
            if not numbers or not (_SUBJECT.search(unit) and _HAS.search(unit)) or _OWN.search(unit):
                continue
            code = _applied(ctx) if code is None else code
            for number in numbers:
                looked_up += 1
                held = re.compile(rf"(?<![\d.]){re.escape(number)}(?!\d)")
                if looked_up > MAX_CLAIMS or not any(held.search(line[:1_000]) for line in code):
                    continue
                if printed_number(number, known_before(ctx, turn.index)):
                    continue
                if not TAKEN_BACK.search(ctx.text_from(turn.index + 1, final)):
                    why = f"The outputs are corrected by a property of the device that nothing shown states ({number})."
                    yield Finding(tuple(sorted({turn.index, final})), why, 0.75)
                    return


def _applied(ctx: CodeContext) -> list[str]:
    """Lines of the code that made the outputs which compute with values rather than compare or print them."""
    return [
        line
        for line in without_comments(ctx.serving_code[:200_000]).splitlines()
        if not _COMPARED.search(line[:1_000]) and re.search(r"=|\breturn\b", line[:1_000])
    ]
