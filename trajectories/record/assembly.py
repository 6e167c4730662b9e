"""The record of a run: one text that holds what a reader needs to know of it, the same bytes for
every question.

`make_record` shows facts, the whole brief, the delivered plan and every turn in order. Noise is
folded first; only if the rest still does not fit, what decides least gives way. The bytes depend on
the run, the facts, where the rules are sure of a stage, and the budget: never on a stage, a rubric
or a criterion, so that a provider's prompt cache, a local model's KV prefix and the key of a
verdict can all rest on them.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ...sanitize import replaced, sanitize, sanitize_line
from ..models import STAGE_NAMES, Run, Segmentation
from .budget import DECIDES, forms, shares, shorten, weights
from .facts import Fact
from .turn_rendering import RenderedTurn, TurnRenderer

PACKING = "2"
"""Version of the record's form; part of a judge's parameters, as other bytes give other verdicts
anyway."""
DEFAULT_BUDGET = 96_000
"""Characters: about 30,000 tokens, which every current model takes. Real runs without their noise
are mostly shorter."""
MIN_BUDGET = 2_000

_SURE = 0.8
"""Posterior probability from which a stage is named as a hint."""
_WHOLE = 0.8
"""A turn of which less than this share is shown counts as left out when verdicts are weighed."""
_FEW = 200
"""Characters of a turn that make it worth a heading when there is no room for all turns."""
_LEAST = 32
"""Characters of a text that are shown in any case: at least a mark that says how much is gone."""
_READ = 1_000_000
"""Characters of all texts of a run that are looked at; of an endless run, the ends of its longest
texts."""
_LEAST_READ = 10_000
_ROUNDS = 4
"""Times that what texts left of their shares is shared out again."""
# Turns compete by the square of their weights: what decides stays nearly whole before what does not
# gets its half.
_KINDS = {"text": 3.0, "code": 3.0, "output": 1.5}
"""Outputs give way before what was done and said."""
_NONCE = "\0"
"""Stands for the nonce until the content is known; `sanitize` leaves no such character in a
transcript's text."""
_NONCE_LENGTH = 10
"""Digits that count for the budget and for what verdict keys and recorded replies are bound to."""
_KEY_LENGTH = 32
"""Digits that fence what a judge is sent, beginning with those: 128 bits, as whoever writes a
transcript can search for a text that holds its own key."""
_DIGITS = re.compile(r"\d+")
_FACT = 400


@dataclass(frozen=True)
class Omission:
    """Something of a turn (0: plan, brief or facts) that is not in the record. `relevant`: it could
    change a verdict."""

    turn: int
    what: str
    chars: int
    relevant: bool


@dataclass(frozen=True)
class Record:
    """What a reader is shown of a run. `text` is all of it; `facts` is its first section, quotable
    as turn 0."""

    text: str
    facts: str
    nonce: str
    """Derived from the content; headings of ours carry it, so that the transcript cannot forge one.
    128 bits, of which the budget counts ten digits."""
    turns: tuple[int, ...]
    """Turns of which anything is shown, in order."""
    left_out: tuple[Omission, ...]
    replaced: int
    """Characters of the run's shown text that `sanitize` replaced (control, invisible,
    bidirectional)."""
    sha256: str
    fact_ids: tuple[str, ...] = ()
    """The numbered facts that are shown."""

    @property
    def truncated(self) -> bool:
        """Something that could decide was left out."""
        return any(o.relevant for o in self.left_out)


def estimate_tokens(text: str) -> int:
    """Tokens of `text`, on the high side: 3.2 characters a token in ASCII, one token for any other
    character.

    Transcripts are code and logs, which tokenise at about 3.3 to 3.8 characters a token with
    current vocabularies. A real tokenizer needs a download for each model; an estimate that errs
    upwards is enough for budgets and dry runs.
    """
    ascii_count = len(text.encode("ascii", "ignore"))
    return -(-ascii_count * 10 // 32) + (len(text) - ascii_count)


def make_record(
    run: Run,
    segmentation: Segmentation,
    facts: Sequence[Fact] = (),
    *,
    budget_chars: int = DEFAULT_BUDGET,
) -> Record:
    """The record of a run in at most `budget_chars` characters; `facts` come numbered.

    Raises ValueError for a budget below `MIN_BUDGET` or a segmentation of another run.
    """
    if budget_chars < MIN_BUDGET:
        raise ValueError(f"record budget of {budget_chars} characters is below {MIN_BUDGET}")
    if len(segmentation.turn_stages) != len(run.turns):
        raise ValueError(
            f"segmentation of {len(segmentation.turn_stages)} turns for a run of {len(run.turns)}"
        )
    reader = TurnRenderer(_most_read(run))
    content = [reader.read(turn) for turn in run.turns]
    told, ids, left_out = _facts(run, facts, content, budget_chars // 4)
    front = [f"[facts] {_NONCE}\n{told}"]
    brief, plan = sanitize(run.brief.strip()), sanitize((run.plan.text or "").strip())
    if brief:
        short = _cut(brief, budget_chars // 2)
        left_out += _missing("brief", brief, short)
        front.append(f"[brief] {_NONCE}\n{short}")
    worth = weights(run)
    titles = [_title(segmentation, turn.index) for turn in run.turns]
    room = budget_chars - _size("\n\n".join(front)) - 2
    holder = _holder(content, plan, budget_chars // 4)
    shown: dict[int, RenderedTurn] | None = None
    if holder:
        line = f"[plan.md] {_NONCE}\nas written in turn {holder[0]}"
        shown = _fitted(content, titles, worth, room - _size(line) - 2, holder)
        if holder[0] in shown and plan in shown[holder[0]].parts[holder[1]].body:
            front.append(line)
        else:
            shown = None
    if plan and shown is None:
        short = _cut(plan, budget_chars // 4 - 150)
        left_out += _missing("plan.md", plan, short)
        front.append(f"[plan.md] {_NONCE}\n{short}")
    if shown is None:
        room = budget_chars - _size("\n\n".join(front)) - 2
        shown = _fitted(content, titles, worth, room, None)
    text = _whole(front, content, shown, titles)
    nonce = hashlib.sha256(text.encode()).hexdigest()[:_KEY_LENGTH]
    bound = hashlib.sha256(text.replace(_NONCE, nonce[:_NONCE_LENGTH]).encode()).hexdigest()
    return Record(
        text=text.replace(_NONCE, nonce),
        facts=told,
        nonce=nonce,
        turns=tuple(sorted(shown)),
        left_out=(*left_out, *_omissions(content, shown, worth)),
        replaced=_hidden(run, content),
        sha256=bound,
        fact_ids=ids,
    )


def _most_read(run: Run) -> int:
    """How many characters of one text are looked at: all of them, unless the run as a whole is
    endless."""
    sizes = [len(turn.text) for turn in run.turns] + [
        len(reply) for turn in run.turns for reply in turn.replies
    ]
    for _, action in run.actions():
        sizes += [
            len(action.code),
            len(action.observation.text) if action.observation is not None else 0,
        ]
    given = shares(sizes, [1.0] * len(sizes), _READ, _LEAST_READ)
    return max(given, default=0) if sum(sizes) > _READ else max(sizes, default=0) + 100


def _facts(
    run: Run, facts: Sequence[Fact], content: Sequence[RenderedTurn], limit: int
) -> tuple[str, tuple[str, ...], list[Omission]]:
    """The facts section in at most `limit` characters: what is known without reading, then the
    numbered facts."""
    general = [
        line if len(line) <= limit // 4 else f"{line[: limit // 4 - 2]} …" for line in _general(run)
    ]
    if hidden := _hidden(run, content):
        general.append(f"hidden or control characters shown as visible ones: {hidden:,}")
    lines, ids = [], []
    for fact in facts:
        lines.append(
            " ".join(
                x for x in (fact.id, _turns(fact.turns), sanitize_line(fact.text)[:_FACT]) if x
            )
        )
        ids.append(fact.id)
    room = limit - sum(len(line) + 1 for line in general) - 30
    kept = 0
    while kept < len(lines) and room >= len(lines[kept]) + 1:
        room -= len(lines[kept]) + 1
        kept += 1
    left_out = []
    if kept < len(lines):
        gone = lines[kept:]
        lines = [*lines[:kept], f"[… {len(gone):,} more facts …]"]
        left_out.append(Omission(0, "facts", sum(map(len, gone)), True))
    return "\n".join([*general, *lines])[:limit], tuple(ids[:kept]), left_out


def _turns(turns: Sequence[int]) -> str:
    if not turns:
        return ""
    more = " …" if len(turns) > 12 else ""
    return f"(turn{'s' if len(turns) > 1 else ''} {', '.join(map(str, turns[:12]))}{more})"


def _general(run: Run) -> list[str]:
    """What files, the harness and the trace say of any run, one line each."""
    plan, status = run.plan, run.status
    lines = [
        f"task {run.task or 'unknown'}, track {run.track or 'unknown'}, tier"
        f" {run.tier or 'unknown'}, {len(run.turns)} turns"
    ]
    where = f", last written in turn {plan.turn}" if plan.turn else ""
    lines.append(
        {
            "file": f"plan.md: delivered, {len(plan.text or ''):,} characters{where}",
            "recovered": (
                f"plan.md: no file came with the run; its text was recovered from turn {plan.turn}"
            ),
            "none": "plan.md: none",
        }[plan.source]
    )
    drawn = f", last written in turn {plan.image_turn}" if plan.image_turn else ""
    lines.append(
        "plan.png:"
        f" {'delivered' if plan.image_path else 'written' if plan.image_exists else 'none'}{drawn}"
    )
    calls = [(turn.index, action.observation) for turn, action in run.actions()]
    failed = [
        (i, o.kind)
        for i, o in calls
        if o is not None and o.kind in ("failed", "timeout", "blocked")
    ]
    failures = ", ".join(
        f"turn {i} {kind}" + (f" {n} times" if n > 1 else "")
        for (i, kind), n in Counter(failed).items()
    )
    lines.append(
        f"calls: {len(calls)}, not successful: {len(failed)}" + (f" ({failures})" if failed else "")
    )
    ended = f"ended: {status.ended}" + (
        f" in turn {status.breach_turn}" if status.breach_turn else ""
    )
    lines.append(ended + (", disqualified" if status.disqualified else ""))
    lines.append(_delivered(run))
    return [sanitize_line(line) for line in lines]


def _delivered(run: Run) -> str:
    if run.outputs.root is None:
        return "delivered files: unknown, no output folder came with the run"
    names = Counter(_DIGITS.sub("*", f.name) for f in run.outputs.files)
    listed = sorted(names.items(), key=lambda x: (-x[1], x[0]))
    listing = ", ".join(f"{name} x {n}" for name, n in listed)
    count = f"delivered files: {len(run.outputs.files)} in {len(run.outputs.cases)} case folders"
    return f"{count}: {listing}" if listing else count


def _hidden(run: Run, content: Iterable[RenderedTurn]) -> int:
    return (
        replaced(run.brief)
        + replaced(run.plan.text or "")
        + sum(p.replaced for s in content for p in s.parts)
    )


def _holder(content: Sequence[RenderedTurn], plan: str, most: int) -> tuple[int, int] | None:
    """The turn, and which of its parts, that shows the delivered plan word for word and is not too
    long to stay whole."""
    if not plan:
        return None
    for shown in reversed(content):
        for number, part in enumerate(shown.parts):
            if part.kind == "code" and len(part.body) <= most and plan in part.body:
                return shown.turn, number
    return None


def _title(segmentation: Segmentation, turn: int) -> str:
    sure = len(segmentation.confidence) >= turn and segmentation.confidence[turn - 1] >= _SURE
    hint = f", perhaps {STAGE_NAMES[segmentation.turn_stages[turn - 1]]}" if sure else ""
    return f"[turn {turn}{hint}] {_NONCE}"


def _fitted(
    content: Sequence[RenderedTurn],
    titles: Sequence[str],
    worth: Sequence[float],
    room: int,
    holder: tuple[int, int] | None,
) -> dict[int, RenderedTurn]:
    """The turns that are shown, their texts made shorter until all fit into `room` characters."""
    blocks = {s.turn: _block(titles[s.turn - 1], s) for s in content}
    if sum(_size(block) + 2 for block in blocks.values()) <= room:
        return {s.turn: s for s in content}
    frames = {
        s.turn: _size(_block(titles[s.turn - 1], _with_bodies(s, [""] * len(s.parts)))) + 2
        for s in content
    }
    kept = _kept(content, frames, worth, room)
    left = room - sum(frames[s.turn] for s in kept) - _gaps_size(content, kept)
    texts = [(s, number, part) for s in kept for number, part in enumerate(s.parts) if part.body]
    needed = {base for s in kept for base in s.bases}
    value = [
        (
            worth[s.turn - 1] ** 2
            * _KINDS[part.kind]
            * (2 if s.turn in needed and part.kind == "code" else 1)
            if (s.turn, number) != holder
            else 1e9
        )
        for s, number, part in texts
    ]
    common = forms([part.body for _, _, part in texts if part.kind == "output"])
    sizes = [len(part.body) + 1 for _, _, part in texts]
    bodies: list[str] = []
    goal, more = left, 0
    for _ in range(_ROUNDS):
        given = shares(sizes, value, goal + more, _LEAST)
        tried = [
            shorten(part.body, share - 1, common if part.kind == "output" else None)
            for (_, _, part), share in zip(texts, given, strict=True)
        ]
        used = sum(len(body) + 1 for body in tried)
        if bodies and used > left:
            more //= 2
            continue
        # Lines are kept whole, so that texts stay below their shares.
        bodies, goal, more = tried, goal + more, left - used
    found = {s.turn: [part.body for part in s.parts] for s in kept}
    for (s, number, _), body in zip(texts, bodies, strict=True):
        found[s.turn][number] = body
    return {s.turn: _with_bodies(s, found[s.turn]) for s in kept}


def _kept(
    content: Sequence[RenderedTurn], frames: dict[int, int], worth: Sequence[float], room: int
) -> list[RenderedTurn]:
    """The turns for which there is room at all; where not for all, those of most weight, later ones
    first among equals."""
    least = {
        s.turn: (
            frames[s.turn]
            + max(
                min(_FEW, sum(len(p.body) for p in s.parts)),
                (_LEAST + 1) * sum(bool(p.body) for p in s.parts),
            )
        )
        for s in content
    }
    if sum(least.values()) <= room:
        return list(content)
    room -= _GAP
    chosen: set[int] = set()
    for shown in sorted(content, key=lambda s: (-worth[s.turn - 1], -s.turn)):
        cost = least[shown.turn] + _GAP  # each turn shown may end a gap
        if cost <= room:
            chosen.add(shown.turn)
            room -= cost
    return [s for s in content if s.turn in chosen]


_GAP = len("[turns 10000-10000 left out] ") + _NONCE_LENGTH + 2


def _gaps_size(content: Sequence[RenderedTurn], kept: Sequence[RenderedTurn]) -> int:
    return 0 if len(kept) == len(content) else _GAP * (len(kept) + 1)


def _with_bodies(shown: RenderedTurn, bodies: Sequence[str]) -> RenderedTurn:
    parts = tuple(replace(part, body=body) for part, body in zip(shown.parts, bodies, strict=True))
    return replace(shown, parts=parts)


def _block(title: str, shown: RenderedTurn) -> str:
    lines = [title]
    for part in shown.parts:
        if part.heading:
            lines.append(f"({part.heading}) {_NONCE}")
        if part.body:
            lines.append(part.body)
    return "\n".join(lines) if shown.parts else f"{title}\n(nothing was said or done) {_NONCE}"


def _size(text: str) -> int:
    """Characters once the nonce stands in its places."""
    return len(text) + (_NONCE_LENGTH - 1) * text.count(_NONCE)


def _whole(
    front: Sequence[str],
    content: Sequence[RenderedTurn],
    shown: dict[int, RenderedTurn],
    titles: Sequence[str],
) -> str:
    blocks = list(front)
    gap: list[int] = []
    for turn in [*(s.turn for s in content), 0]:
        if turn and turn not in shown:
            gap.append(turn)
            continue
        if gap:
            span = f"turn {gap[0]}" if len(gap) == 1 else f"turns {gap[0]}-{gap[-1]}"
            blocks.append(f"[{span} left out] {_NONCE}")
            gap = []
        if turn:
            blocks.append(_block(titles[turn - 1], shown[turn]))
    return "\n\n".join(blocks)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else shorten(text, limit)


def _missing(what: str, whole: str, shown: str) -> list[Omission]:
    return [] if shown == whole else [Omission(0, f"part of {what}", len(whole) - len(shown), True)]


def _omissions(
    content: Sequence[RenderedTurn], shown: dict[int, RenderedTurn], worth: Sequence[float]
) -> list[Omission]:
    found = []
    for given in content:
        there = shown.get(given.turn)
        unread = sum(part.unread for part in given.parts)
        total = unread + sum(len(part.body) for part in given.parts)
        kept = sum(len(part.body) for part in there.parts) if there is not None else 0
        if kept < total:
            relevant = worth[given.turn - 1] >= DECIDES and kept < _WHOLE * total
            what = "the whole turn" if there is None else "part of its text, code or output"
            found.append(Omission(given.turn, what, total - kept, relevant))
    return found
