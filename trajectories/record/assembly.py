"""Assembles the record of a run: one text with what a judge needs to know of it.

`make_record` shows facts, the brief, the delivered plan and every turn in order. Noise is folded
first; only if the run still does not fit, what decides least gives way.

The bytes are the same for every question. They depend on the run, the facts, the stages that the
rules are sure of, and the budget: never on a stage, a rubric or a criterion. A provider's prompt
cache, a local model's KV prefix and the keys of verdicts all rest on that. For the same reason no
text that goes into the record may be reworded without a new `PACKING`.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...sanitize import replaced, sanitize, sanitize_line
from ..models import STAGE_NAMES, Run, Segmentation, Turn
from ..summary import speaker_name
from .budget import DECISIVE_WEIGHT, allocate, count_line_forms, shorten, turn_weights
from .facts import Fact
from .strangers import Stranger
from .turn_rendering import Part, RenderedTurn, TurnRenderer

PACKING = "2"
"""Version of the record's form; one of a judge's parameters, as other bytes give other verdicts."""
DEFAULT_BUDGET = 96_000
"""Characters: about 30,000 tokens, which every current model takes. Real runs without their noise
are mostly shorter."""
MIN_BUDGET = 2_000
"""Characters."""

_SURE = 0.8
"""Posterior probability from which a turn's title names its stage as a hint."""
_COMPLETE_SHARE = 0.8
"""A turn of which less than this share is shown counts as left out when verdicts are weighed."""
_MIN_TURN_CHARS = 200
"""Characters that make a turn worth its title if there is no room for all turns."""
_MIN_TEXT_CHARS = 32
"""Characters of a text that are always shown: at least a mark that says how much is missing."""
_MAX_READ_CHARS = 1_000_000
"""Characters of a run that are looked at. Of a longer run, only the ends of its longest texts."""
_MIN_READ_CHARS = 10_000
"""Characters of each text that are looked at in any case."""
_SHARING_ROUNDS = 4
"""How often the room that texts left unused is shared out again."""
_KIND_WEIGHTS = {"text": 3.0, "code": 3.0, "output": 1.5}
"""Outputs give way before what the agent did and said."""
_NEEDED_CODE_FACTOR = 2
"""Code counts more if a later turn shows a file by its changes against it."""
_PLAN_WEIGHT = 1e9
"""For the text that shows the delivered plan: it is never shortened."""
_NONCE = "\0"
"""Stands for the nonce until the content is known; `sanitize` leaves no such character in a
transcript's text."""
_NONCE_LENGTH = 10
"""Digits that count for the budget. With these the hash is made that verdict keys and recorded
replies are bound to."""
_KEY_LENGTH = 32
"""Digits that fence what a judge is sent, beginning with those: 128 bits, because whoever writes a
transcript can search for a text that holds its own key."""
_MAX_FACT_CHARS = 400
_MAX_LISTED_TURNS = 12
_DIGITS = re.compile(r"\d+")

_Position = tuple[int, int]
"""A turn, from 1, and the index of one of its parts."""


@dataclass(frozen=True)
class Omission:
    """Something of a turn (0: plan, brief or facts) that is not in the record.

    `relevant`: it could change a verdict.
    """

    turn: int
    label: str
    """What it is: `facts`, `part of brief`, `the whole turn`, ..."""
    chars: int
    relevant: bool


@dataclass(frozen=True)
class Record:
    """What a judge is shown of a run.

    `text` is all of it. `facts` is its first section, which can be quoted as turn 0.
    """

    text: str
    facts: str
    nonce: str
    """Derived from the content; the record's own headings carry it, so that a transcript cannot
    forge one. 128 bits, of which the budget counts ten digits."""
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
        """Whether something that could change a verdict was left out."""
        return any(omission.relevant for omission in self.left_out)


def estimate_tokens(text: str) -> int:
    """An estimate of a text's tokens that errs upwards.

    3.2 characters a token in ASCII, one token for any other character. Transcripts are code and
    logs, which tokenise at about 3.3 to 3.8 characters a token with current vocabularies. A real
    tokenizer needs a download for each model; the estimate is enough for budgets and dry runs.
    """
    ascii_count = len(text.encode("ascii", "ignore"))
    return -(-ascii_count * 10 // 32) + (len(text) - ascii_count)


def make_record(
    run: Run,
    segmentation: Segmentation,
    facts: Sequence[Fact] = (),
    *,
    budget_chars: int = DEFAULT_BUDGET,
    pictures: Sequence[str] = (),
) -> Record:
    """The record of a run in at most `budget_chars` characters; `facts` are numbered.

    `pictures`: one line for each picture of an output that is sent after the record.

    Raises ValueError for a budget below `MIN_BUDGET` or a segmentation of another run.
    """
    _check_arguments(run, segmentation, budget_chars)
    renderer = TurnRenderer(_readable_chars(run))
    rendered = [renderer.render(turn) for turn in run.turns]
    n_replaced = _replaced_characters(run, rendered)
    facts_text, fact_ids, left_out = _facts_section(run, facts, n_replaced, budget_chars // 4)
    sections = [f"[facts] {_NONCE}\n{facts_text}"]
    if pictures:
        lines = "\n".join(map(sanitize_line, pictures))
        sections.append(f"[pictures] {_NONCE}\n{lines}")
    brief = sanitize(run.brief.strip())
    if brief:
        shown_brief = shorten(brief, budget_chars // 2)
        left_out += _omitted_text("brief", brief, shown_brief)
        sections.append(f"[brief] {_NONCE}\n{shown_brief}")

    turns = _Turns(rendered, run, segmentation)
    shown_turns, plan_sections, plan_omissions = _fit_plan_and_turns(
        run, turns, sections, budget_chars
    )
    sections += plan_sections
    left_out += plan_omissions
    text = turns.render(sections, shown_turns)
    # A transcript cannot hold the nonce of its own record: it depends on the transcript.
    nonce = hashlib.sha256(text.encode()).hexdigest()[:_KEY_LENGTH]
    bound_text = text.replace(_NONCE, nonce[:_NONCE_LENGTH])
    return Record(
        text=text.replace(_NONCE, nonce),
        facts=facts_text,
        nonce=nonce,
        turns=tuple(sorted(shown_turns)),
        left_out=(*left_out, *turns.omissions(shown_turns)),
        replaced=n_replaced,
        sha256=hashlib.sha256(bound_text.encode()).hexdigest(),
        fact_ids=fact_ids,
    )


def _check_arguments(run: Run, segmentation: Segmentation, budget_chars: int) -> None:
    if budget_chars < MIN_BUDGET:
        raise ValueError(f"record budget of {budget_chars} characters is below {MIN_BUDGET}")
    if len(segmentation.turn_stages) != len(run.turns):
        raise ValueError(
            f"segmentation of {len(segmentation.turn_stages)} turns for a run of {len(run.turns)}"
        )


def _fit_plan_and_turns(
    run: Run, turns: _Turns, sections: Sequence[str], budget_chars: int
) -> tuple[dict[int, RenderedTurn], list[str], list[Omission]]:
    """Decide between showing the plan as a section and referring to the turn that wrote it.

    Returns the turns that are shown, the plan's section if there is a plan, and what is left out
    of the plan.
    """
    plan = sanitize((run.plan.text or "").strip())
    position = turns.plan_position(plan, budget_chars // 4)
    if position is not None:
        # A turn shows the plan word for word: refer to it rather than show the plan twice.
        turn, part = position
        reference = f"[plan.md] {_NONCE}\nas written in turn {turn}"
        shown_turns = turns.fit(_room(budget_chars, [*sections, reference]), position)
        if turn in shown_turns and plan in shown_turns[turn].parts[part].body:
            return shown_turns, [reference], []
    if not plan:
        return turns.fit(_room(budget_chars, sections), None), [], []
    shown_plan = shorten(plan, budget_chars // 4 - 150)
    section = f"[plan.md] {_NONCE}\n{shown_plan}"
    shown_turns = turns.fit(_room(budget_chars, [*sections, section]), None)
    return shown_turns, [section], _omitted_text("plan.md", plan, shown_plan)


def _size(text: str) -> int:
    """Characters of a text once the nonce is filled in."""
    return len(text) + (_NONCE_LENGTH - 1) * text.count(_NONCE)


def _room(budget_chars: int, sections: Sequence[str]) -> int:
    """The characters that are left for turns after these sections."""
    return budget_chars - _size("\n\n".join(sections)) - 2


def _readable_chars(run: Run) -> int:
    """How many characters of one text are looked at: all of them, unless the run is too long."""
    sizes = [len(turn.text) for turn in run.turns]
    sizes += [len(reply) for turn in run.turns for reply in turn.replies]
    for _, action in run.actions():
        sizes.append(len(action.code))
        sizes.append(0 if action.observation is None else len(action.observation.text))
    if sum(sizes) <= _MAX_READ_CHARS:
        return max(sizes, default=0) + 100
    shares = allocate(sizes, [1.0] * len(sizes), _MAX_READ_CHARS, _MIN_READ_CHARS)
    return max(shares)


def _replaced_characters(run: Run, rendered: Iterable[RenderedTurn]) -> int:
    """Characters of the run's shown text that `sanitize` replaced."""
    in_turns = sum(part.replaced for turn in rendered for part in turn.parts)
    return replaced(run.brief) + replaced(run.plan.text or "") + in_turns


def _facts_section(
    run: Run, facts: Sequence[Fact], n_replaced: int, limit: int
) -> tuple[str, tuple[str, ...], list[Omission]]:
    """The facts in at most `limit` characters: the general ones, then the numbered ones.

    Returns the text, the ids of the numbered facts shown, and what was left out.
    """
    max_line = limit // 4
    general = [
        line if len(line) <= max_line else f"{line[: max_line - 2]} …"
        for line in _general_facts(run)
    ]
    if n_replaced:
        general.append(f"hidden or control characters shown as visible ones: {n_replaced:,}")
    lines = [_fact_line(fact) for fact in facts]
    room = limit - sum(len(line) + 1 for line in general) - 30
    n_shown = 0
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        n_shown += 1
    visible, missing = lines[:n_shown], lines[n_shown:]
    left_out = []
    if missing:
        visible.append(f"[… {len(missing):,} more facts …]")
        left_out.append(Omission(0, "facts", sum(map(len, missing)), True))
    text = "\n".join([*general, *visible])[:limit]
    return text, tuple(fact.id for fact in facts[:n_shown]), left_out


def _fact_line(fact: Fact) -> str:
    words = (fact.id, _turn_list(fact.turns), sanitize_line(fact.text)[:_MAX_FACT_CHARS])
    return " ".join(word for word in words if word)


def _turn_list(turns: Sequence[int]) -> str:
    if not turns:
        return ""
    noun = "turn" if len(turns) == 1 else "turns"
    more = " …" if len(turns) > _MAX_LISTED_TURNS else ""
    return f"({noun} {', '.join(map(str, turns[:_MAX_LISTED_TURNS]))}{more})"


def _general_facts(run: Run) -> list[str]:
    """What files, the harness and the trace say of any run, one line each."""
    task, track, tier = (str(Stranger(x or "unknown")) for x in (run.task, run.track, run.tier))
    lines = [
        f"task {task}, track {track}, tier {tier}, {len(run.turns)} turns",
        _plan_fact(run),
        _plan_image_fact(run),
        _calls_fact(run),
        _ending_fact(run),
        _delivered_fact(run),
    ]
    return [sanitize_line(line) for line in lines]


def _plan_fact(run: Run) -> str:
    plan = run.plan
    if plan.source == "none":
        return "plan.md: none"
    if plan.source == "recovered":
        return f"plan.md: no file came with the run; its text was recovered from turn {plan.turn}"
    written = f", last written in turn {plan.turn}" if plan.turn else ""
    return f"plan.md: delivered, {len(plan.text or ''):,} characters{written}"


def _plan_image_fact(run: Run) -> str:
    plan = run.plan
    state = "none"
    if plan.image_path:
        state = "delivered"
    elif plan.image_exists:
        state = "written"
    written = f", last written in turn {plan.image_turn}" if plan.image_turn else ""
    return f"plan.png: {state}{written}"


def _calls_fact(run: Run) -> str:
    n_calls = 0
    failed: Counter[tuple[int, str]] = Counter()
    for turn, action in run.actions():
        n_calls += 1
        if action.observation is not None and action.observation.failed:
            failed[turn.index, action.observation.kind] += 1
    line = f"calls: {n_calls}, not successful: {failed.total()}"
    if not failed:
        return line
    failures = []
    for (index, kind), n in failed.items():
        times = f" {n} times" if n > 1 else ""
        failures.append(f"turn {index} {kind}{times}")
    return f"{line} ({', '.join(failures)})"


def _ending_fact(run: Run) -> str:
    if run.status.ended == "running":
        return "ended: not yet, the run still goes on: what is missing so far may still come"
    line = f"ended: {run.status.ended}"
    if run.status.breach_turn:
        line += f" in turn {run.status.breach_turn}"
    return line + (", disqualified" if run.status.disqualified else "")


def _delivered_fact(run: Run) -> str:
    if run.status.ended == "running":
        return "delivered files: not looked at before the run has ended"
    if run.outputs.root is None:
        return "delivered files: unknown, no output folder came with the run"
    line = f"delivered files: {len(run.outputs.files)} in {len(run.outputs.cases)} case folders"
    names = Counter(_DIGITS.sub("*", file.name) for file in run.outputs.files)
    by_count = sorted(names.items(), key=lambda item: (-item[1], item[0]))
    listing = ", ".join(f"{Stranger(name, 200)} x {n}" for name, n in by_count)
    return f"{line}: {listing}" if listing else line


def _omitted_text(label: str, text: str, shown_text: str) -> list[Omission]:
    if shown_text == text:
        return []
    return [Omission(0, f"part of {label}", len(text) - len(shown_text), True)]


class _Turns:
    """The rendered turns of a run, with what decides how much of each is shown."""

    def __init__(
        self, rendered: Sequence[RenderedTurn], run: Run, segmentation: Segmentation
    ) -> None:
        self._rendered = rendered
        self._weights = turn_weights(run)
        self._titles = [_title(segmentation, turn) for turn in run.turns]

    def plan_position(self, plan: str, limit: int) -> _Position | None:
        """The last code that shows the plan word for word, if short enough to be shown whole."""
        if not plan:
            return None
        for turn in reversed(self._rendered):
            for index, part in enumerate(turn.parts):
                if part.kind == "code" and len(part.body) <= limit and plan in part.body:
                    return turn.turn, index
        return None

    def fit(self, room: int, plan_position: _Position | None) -> dict[int, RenderedTurn]:
        """The turns that are shown, by number, shortened until they fit into `room` characters."""
        if sum(_size(self._block(turn)) + 2 for turn in self._rendered) <= room:
            return {turn.turn: turn for turn in self._rendered}
        # The size of each turn without the bodies of its parts: title, headings, line breaks.
        frame_sizes = {
            turn.turn: _size(self._block(_with_bodies(turn, [""] * len(turn.parts)))) + 2
            for turn in self._rendered
        }
        chosen = self._choose(frame_sizes, room)
        room -= sum(frame_sizes[turn.turn] for turn in chosen)
        if len(chosen) < len(self._rendered):
            room -= _GAP_SIZE * (len(chosen) + 1)
        positions = [
            (turn.turn, index)
            for turn in chosen
            for index, part in enumerate(turn.parts)
            if part.body
        ]
        by_number = {turn.turn: turn for turn in chosen}
        parts = [by_number[turn].parts[index] for turn, index in positions]
        bodies = _shorten_parts(parts, self._part_weights(chosen, plan_position), room)
        shown_bodies = {turn.turn: [part.body for part in turn.parts] for turn in chosen}
        for (turn, index), body in zip(positions, bodies, strict=True):
            shown_bodies[turn][index] = body
        return {turn.turn: _with_bodies(turn, shown_bodies[turn.turn]) for turn in chosen}

    def _part_weights(
        self, chosen: Sequence[RenderedTurn], plan_position: _Position | None
    ) -> list[float]:
        """The weight of each part with a body.

        Turns compete by the square of their weights: what decides stays nearly whole before what
        does not gets its half.
        """
        bases = {base for turn in chosen for base in turn.bases}
        weights = []
        for turn in chosen:
            for index, part in enumerate(turn.parts):
                if not part.body:
                    continue
                weight = self._weights[turn.turn - 1] ** 2 * _KIND_WEIGHTS[part.kind]
                if turn.turn in bases and part.kind == "code":
                    weight *= _NEEDED_CODE_FACTOR
                if (turn.turn, index) == plan_position:
                    weight = _PLAN_WEIGHT
                weights.append(weight)
        return weights

    def _choose(self, frame_sizes: Mapping[int, int], room: int) -> list[RenderedTurn]:
        """The turns for which there is room at all.

        If not for all, those of highest weight, and of equal ones the later.
        """
        min_sizes = {
            turn.turn: frame_sizes[turn.turn] + _min_body_chars(turn) for turn in self._rendered
        }
        if sum(min_sizes.values()) <= room:
            return list(self._rendered)
        room -= _GAP_SIZE
        chosen: set[int] = set()
        for turn in sorted(min_sizes, key=lambda turn: (-self._weights[turn - 1], -turn)):
            cost = min_sizes[turn] + _GAP_SIZE  # each turn that is shown may end a gap
            if cost <= room:
                chosen.add(turn)
                room -= cost
        return [turn for turn in self._rendered if turn.turn in chosen]

    def render(self, sections: Sequence[str], shown_turns: Mapping[int, RenderedTurn]) -> str:
        """The record's text: the sections, then the turns with a mark for each gap."""
        blocks = list(sections)
        gap: list[int] = []
        for turn in self._rendered:
            if turn.turn not in shown_turns:
                gap.append(turn.turn)
                continue
            if gap:
                blocks.append(_gap_mark(gap))
                gap = []
            blocks.append(self._block(shown_turns[turn.turn]))
        if gap:
            blocks.append(_gap_mark(gap))
        return "\n\n".join(blocks)

    def omissions(self, shown_turns: Mapping[int, RenderedTurn]) -> list[Omission]:
        """What is not shown of the turns."""
        omissions = []
        for turn in self._rendered:
            total = sum(part.unread + len(part.body) for part in turn.parts)
            shown_turn = shown_turns.get(turn.turn)
            n_shown = 0
            if shown_turn is not None:
                n_shown = sum(len(part.body) for part in shown_turn.parts)
            if n_shown < total:
                is_decisive = self._weights[turn.turn - 1] >= DECISIVE_WEIGHT
                relevant = is_decisive and n_shown < _COMPLETE_SHARE * total
                label = "part of its text, code or output"
                if shown_turn is None:
                    label = "the whole turn"
                omissions.append(Omission(turn.turn, label, total - n_shown, relevant))
        return omissions

    def _block(self, turn: RenderedTurn) -> str:
        """A turn under its title."""
        lines = [self._titles[turn.turn - 1]]
        if not turn.parts:
            lines.append(f"(nothing was said or done) {_NONCE}")
        for part in turn.parts:
            if part.heading:
                lines.append(f"({part.heading}) {_NONCE}")
            if part.body:
                lines.append(part.body)
        return "\n".join(lines)


def _title(segmentation: Segmentation, turn: Turn) -> str:
    """The turn's number, its likely stage if that is sure, and who spoke if the source says so."""
    index = turn.index
    hint = ""
    if len(segmentation.confidence) >= index and segmentation.confidence[index - 1] >= _SURE:
        hint = f", perhaps {STAGE_NAMES[segmentation.turn_stages[index - 1]]}"
    speaker = "" if not turn.speaker else f", by {Stranger(speaker_name(turn.speaker))}"
    return f"[turn {index}{hint}{speaker}] {_NONCE}"


def _gap_mark(turns: Sequence[int]) -> str:
    span = f"turn {turns[0]}" if len(turns) == 1 else f"turns {turns[0]}-{turns[-1]}"
    return f"[{span} left out] {_NONCE}"


_GAP_SIZE = len("[turns 10000-10000 left out] ") + _NONCE_LENGTH + 2
"""Largest size of a mark for a gap, with the line breaks after it."""


def _min_body_chars(turn: RenderedTurn) -> int:
    """The least characters of a turn's texts that make it worth showing."""
    total = sum(len(part.body) for part in turn.parts)
    n_texts = sum(bool(part.body) for part in turn.parts)
    return max(min(_MIN_TURN_CHARS, total), (_MIN_TEXT_CHARS + 1) * n_texts)


def _with_bodies(turn: RenderedTurn, bodies: Sequence[str]) -> RenderedTurn:
    parts = tuple(replace(part, body=body) for part, body in zip(turn.parts, bodies, strict=True))
    return replace(turn, parts=parts)


def _shorten_parts(parts: Sequence[Part], weights: Sequence[float], room: int) -> list[str]:
    """The bodies of the parts, shortened to fit into `room` characters together.

    Only whole lines are shown, so texts stay below their shares: what is left is shared out again,
    in several rounds, by pretending that there is more room.
    """
    form_counts = count_line_forms([part.body for part in parts if part.kind == "output"])
    sizes = [len(part.body) + 1 for part in parts]
    bodies: list[str] = []
    target, extra = room, 0
    for _ in range(_SHARING_ROUNDS):
        shares = allocate(sizes, weights, target + extra, _MIN_TEXT_CHARS)
        attempt = [
            shorten(part.body, share - 1, form_counts if part.kind == "output" else None)
            for part, share in zip(parts, shares, strict=True)
        ]
        used = sum(len(body) + 1 for body in attempt)
        if bodies and used > room:
            extra //= 2
            continue
        bodies, target, extra = attempt, target + extra, room - used
    return bodies
