"""The evidence of one stage call: what the judge is shown of a run, and what was left out of it.

`pack` shows the facts of the run (plan, executions, delivered files) and its turns by relevance to the stage, whole
while they fit, folded or cut where they do not, in the run's order. The bytes depend on the run, its segmentation, the
stage and the budget, never on the criteria: verdicts are keyed by them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass

from ..sanitize import replaced, sanitize, sanitize_line
from ..trajectories.models import STAGE_NAMES, Run, Segmentation, Stage
from .relevance import RELEVANT, relevance
from .render import Part, cut, fold, parts, shrink

PACKING = "1"
"""Version of the packing; part of a judge's parameters, as other bytes give other verdicts anyway."""
DEFAULT_BUDGET = 24_000
"""Characters a stage call: about 7,000 tokens, which every current model takes whole."""
MIN_BUDGET = 2_000

_WHOLE = 0.8
"""A turn of which less than this share is shown counts as left out when verdicts are weighed."""
_SIZE_COST = 3.0
"""Relevance points that a turn filling the whole space would lose; recall changes little between 2 and 4."""
_NEARLY = 0.87
"""A turn that fits to this share is cut a little rather than put behind less relevant ones."""
_LEAST = 400
"""Characters below which a cut turn says too little to be worth its heading."""
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Omission:
    """Something of a turn (0: the plan) that is not in the evidence. `relevant`: its absence could change a verdict."""

    turn: int
    what: str
    chars: int
    relevant: bool


@dataclass(frozen=True)
class EvidencePack:
    """Evidence of one stage call. `text` is all of it; `facts` is its first part, quotable as turn 0."""

    stage: Stage
    text: str
    facts: str
    nonce: str
    """Derived from the content; headings of ours carry it, so that the transcript cannot forge one."""
    turns: tuple[int, ...]
    """Turns of which anything is shown, in order."""
    left_out: tuple[Omission, ...]
    replaced: int
    """Characters of the run's shown text that `sanitize` replaced (control, invisible, bidirectional)."""
    sha256: str

    @property
    def truncated(self) -> bool:
        """Something relevant to the stage was left out."""
        return any(o.relevant for o in self.left_out)


def estimate_tokens(text: str) -> int:
    """Tokens of `text`, on the high side: 3.2 characters a token in ASCII, one token for any other character.

    Transcripts are code and logs, which tokenise at about 3.3 to 3.8 characters a token with current vocabularies. A
    real tokenizer needs a download for each model; an estimate that errs upwards is enough for budgets and dry runs.
    """
    ascii_count = len(text.encode("ascii", "ignore"))
    return -(-ascii_count * 10 // 32) + (len(text) - ascii_count)


def pack(run: Run, segmentation: Segmentation, stage: Stage, *, budget_chars: int = DEFAULT_BUDGET) -> EvidencePack:
    """Evidence for a verdict on `stage`, in at most `budget_chars` characters.

    Raises ValueError for a budget below `MIN_BUDGET` or a segmentation of another run.
    """
    if budget_chars < MIN_BUDGET:
        raise ValueError(f"evidence budget of {budget_chars} characters is below {MIN_BUDGET}")
    if len(segmentation.turn_stages) != len(run.turns):
        raise ValueError(f"segmentation of {len(segmentation.turn_stages)} turns for a run of {len(run.turns)}")
    facts = _facts(run, segmentation, budget_chars // 10)
    brief = sanitize(run.brief.strip())
    if stage == "S1" and brief:  # what was asked decides whether the plan fits
        facts += f"\n[brief]\n{cut(brief, budget_chars // 10)}"
    scores = relevance(run, segmentation, stage)
    content = {
        turn.index: tuple(Part(p.kind, p.heading, fold(p.body, similar=False)) for p in parts(turn))
        for turn in run.turns
    }
    shown = _choose(content, scores, budget_chars - len(facts) - 200)
    plan, plan_omission = _plan(run, stage, shown, budget_chars - len(facts) - 200 - _length(shown))
    left_out = [*plan_omission, *_omissions(content, shown, scores)]
    hidden = replaced(run.plan.text or "") + sum(
        replaced(t.text) + replaced(t.code) + replaced(t.output) for t in run.turns if t.index in shown
    )
    if hidden:
        facts += f"\nhidden or control characters shown as visible ones: {hidden:,}"
    return _assemble(run, segmentation, stage, facts, plan, shown, left_out, hidden)


def _choose(content: dict[int, tuple[Part, ...]], scores: tuple[float, ...], room: int) -> dict[int, tuple[Part, ...]]:
    """Whole turns in order of relevance while they fit, then cut ones, then whatever else fits as filler."""
    order = sorted(content, key=lambda i: (-_worth(scores[i - 1], _size(content[i]), room), i))
    shown: dict[int, tuple[Part, ...]] = {}
    if sum(_size(p) for p in content.values()) <= room:
        return dict(content)
    waiting = []
    for index in order:
        size = _size(content[index])
        folded = content[index] if size <= room else shrink(content[index], 10**9)
        if (size := _size(folded)) > room and room >= _NEARLY * size:
            folded = shrink(folded, room - 60)
            size = _size(folded)
        if size <= room:
            shown[index], room = folded, room - size
        else:
            waiting.append(index)
    for index in waiting:
        if room < _LEAST or not content[index]:
            continue
        less = shrink(content[index], room - 60)
        if (size := _size(less)) <= room:
            shown[index], room = less, room - size
    return shown


def _worth(score: float, size: int, room: int) -> float:
    """Relevance, less for a turn that would take the space of several others."""
    return score - _SIZE_COST * size / max(room, 1)


def _size(pieces: tuple[Part, ...]) -> int:
    return sum(len(p) for p in pieces) + 60


def _length(shown: dict[int, tuple[Part, ...]]) -> int:
    return sum(_size(p) for p in shown.values())


def _omissions(
    content: dict[int, tuple[Part, ...]], shown: dict[int, tuple[Part, ...]], scores: tuple[float, ...]
) -> list[Omission]:
    found = []
    for index, pieces in content.items():
        total = sum(len(p.body) for p in pieces)
        kept = sum(len(p.body) for p in shown.get(index, ()))
        if kept < total:
            relevant = scores[index - 1] >= RELEVANT and kept < _WHOLE * total
            what = "the whole turn" if index not in shown else "part of its text, code or output"
            found.append(Omission(index, what, total - kept, relevant))
    return found


def _plan(run: Run, stage: Stage, shown: dict[int, tuple[Part, ...]], room: int) -> tuple[str, list[Omission]]:
    """The plan's text, unless a shown turn has it already; whole, cut, or left out as space allows."""
    text = sanitize((run.plan.text or "").strip())
    if not text:
        return "", []
    lines = {line.strip() for line in text.split("\n") if line.strip()}
    seen = "\n".join(p.body for pieces in shown.values() for p in pieces)
    if sum(len(x) for x in lines if x not in seen) <= 0.2 * sum(len(x) for x in lines):
        return "", []
    if len(text) <= room:
        return text, []
    if room < _LEAST:
        return "", [Omission(0, "plan.md", len(text), stage == "S1")]
    short = shrink((Part("text", "", text),), room)[0].body
    return short, [Omission(0, "part of plan.md", len(text) - len(short), stage == "S1")]


def _facts(run: Run, segmentation: Segmentation, limit: int) -> str:
    """What is known about the run without reading it, in at most about `limit` characters, most telling lines first."""
    plan, status = run.plan, run.status
    lines = [f"task {run.task or 'unknown'}, track {run.track or 'unknown'}, tier {run.tier or 'unknown'}, {len(run.turns)} turns"]  # fmt: skip
    where = f", last written in turn {plan.turn}" if plan.turn else ""
    lines.append(
        {
            "file": f"plan.md: delivered, {len(plan.text or ''):,} characters{where}",
            "recovered": f"plan.md: no file came with the run; its text was recovered from turn {plan.turn}",
            "none": "plan.md: none",
        }[plan.source]
    )
    drawn = f", last written in turn {plan.image_turn}" if plan.image_turn else ""
    lines.append(f"plan.png: {'delivered' if plan.image_path else 'written' if plan.image_exists else 'none'}{drawn}")
    lines.append("stages: " + ", ".join(f"{s.stage} {_span(s.first_turn, s.last_turn)}" for s in segmentation.segments))
    calls = [(t.index, a.observation) for t, a in run.actions() if a.kind != "submit"]
    failed = [(i, o.kind) for i, o in calls if o is not None and o.kind in ("failed", "timeout", "blocked")]
    lines.append(
        f"calls: {len(calls)}, not successful: {len(failed)}"
        + (f" ({', '.join(f'turn {i} {kind}' for i, kind in failed)})" if failed else "")
    )
    lines.append(f"ended: {status.ended}" + (", disqualified" if status.disqualified else ""))
    lines.append(_delivered(run))
    return sanitize("\n".join(line if len(line) <= limit // 3 else line[: limit // 3] + " …" for line in lines))


def _span(first: int, last: int) -> str:
    return f"turn {first}" if first == last else f"turns {first}-{last}"


def _delivered(run: Run) -> str:
    if run.outputs.root is None:
        return "delivered files: unknown, no output folder came with the run"
    names = Counter(_DIGITS.sub("*", f.name) for f in run.outputs.files)
    listing = ", ".join(
        f"{sanitize_line(name)} x {n}" for name, n in sorted(names.items(), key=lambda x: (-x[1], x[0]))
    )
    return f"delivered files: {len(run.outputs.files)} in {len(run.outputs.cases)} case folders" + (
        f": {listing}" if listing else ""
    )


def _assemble(
    run: Run, segmentation: Segmentation, stage: Stage, facts: str, plan: str,
    shown: dict[int, tuple[Part, ...]], left_out: list[Omission], hidden: int,
) -> EvidencePack:  # fmt: skip
    sections: list[tuple[str, tuple[Part, ...]]] = []
    if plan:
        sections.append(("plan.md", (Part("text", "", plan),)))
    gap: list[int] = []
    for turn in run.turns:
        if turn.index not in shown:
            gap.append(turn.index)
            continue
        if gap:
            sections.append((_gap(gap), ()))
            gap = []
        sections.append(
            (f"turn {turn.index}, {STAGE_NAMES[segmentation.turn_stages[turn.index - 1]]}", shown[turn.index])
        )
    if gap:
        sections.append((_gap(gap), ()))
    plain = json.dumps([stage, facts, [[title, [[p.heading, p.body] for p in ps]] for title, ps in sections]])
    nonce = hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    blocks = [f"[facts] {nonce}\n{facts}"]
    for title, pieces in sections:
        lines = [f"[{title}] {nonce}"]
        for piece in pieces:
            if piece.heading and piece.kind != "text":
                lines.append(f"({piece.heading})")
            if piece.body:
                lines.append(piece.body)
        blocks.append("\n".join(lines))
    text = "\n\n".join(blocks)
    return EvidencePack(
        stage=stage, text=text, facts=facts, nonce=nonce, turns=tuple(sorted(shown)),
        left_out=tuple(left_out), replaced=hidden,
        sha256=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
    )  # fmt: skip


def _gap(turns: list[int]) -> str:
    return f"{_span(turns[0], turns[-1])} left out"
