"""How much of what annotators cite a record shows, at which length and price.

    python benchmarks/evidence.py [--recorded DIR | --constructed SETS] [--inflated [DIR]]
    [--budgets 24000 96000] [--misses]

Units: the turns that labels cite for S1-S3 criteria and for error codes. A turn counts as shown
when at least 80 % of the characters of its text, code and output (for inflated runs: of the small
run's turn) stand line by line in the turn's own section of the record. What also counts, and what
not:
- `shown` counts lines that stand there literally, in a diff after their one-character prefix, in
  the plan's section or
  that of an earlier turn which the section names ("as written in turn 4"), and lines that a fold
  took out with a mark (the fold is asked again which these are); a fold's lines count only while
  anything of the turn's output is shown.
- `literal` counts the same without folded lines.
A line cut in its middle counts for neither.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ambjudge.sanitize import sanitize
from ambjudge.trajectories.models import Run, Turn
from ambjudge.trajectories.reading.load import load_run
from ambjudge.trajectories.record import DEFAULT_BUDGET, Record, estimate_tokens, make_record
from ambjudge.trajectories.record.folding import fold, fold_written
from ambjudge.trajectories.turns.segment import segment

sys.path.insert(0, str(Path(__file__).parent))
from inflated import inflate, turn_of
from labelled_runs import RECORDED, LabelledRun, constructed, recorded

SHOWN = 0.8
QUESTIONS = 4
"""S1, S2, S3 and the diagnosis, asked of one record."""
PRICE, CACHE_WRITE, CACHE_READ = 3.0, 1.25, 0.1
"""Example: USD per million input tokens, and what writing to and reading from a prompt cache costs
of it."""
QUESTION_TOKENS, REPLY_TOKENS, REPLY_PRICE = 900, 700, 15.0


@dataclass
class Shares:
    """Per cited turn the share shown and the share shown literally; per run the record's length,
    tokens, seconds."""

    criteria: list[tuple[float, float]] = field(default_factory=list)
    codes: list[tuple[float, float]] = field(default_factory=list)
    briefs: list[bool] = field(default_factory=list)
    chars: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @staticmethod
    def rate(shares: list[tuple[float, float]], which: int = 0) -> float:
        return sum(s[which] >= SHOWN for s in shares) / len(shares) if shares else float("nan")


def cited(label: dict) -> tuple[set[int], set[int]]:
    """Turns that the labels cite for criteria of S1-S3, and for codes."""
    criteria = {
        t
        for name, turns in label["evidence"].items()
        if name[:2] in ("S1", "S2", "S3")
        for t in turns
    }
    return criteria, {t for code in label["codes"].values() for t in code["turns"]}


def sections(record: Record) -> dict[str, str]:
    """The record's sections by their titles: `facts`, `brief`, `plan.md`, `turn 4`."""
    heading = re.compile(rf"^\[([^\],\n]+)[^\]\n]*\] {record.nonce}$", re.MULTILINE)
    marks = list(heading.finditer(record.text))
    ends = [m.start() for m in marks[1:]] + [len(record.text)]
    return {m[1]: record.text[m.end() : end] for m, end in zip(marks, ends, strict=True)}


def visible(title: str, parts: dict[str, str], seen: frozenset[str] = frozenset()) -> set[str]:
    """Lines that a reader of a section can see: its own, and those of sections that it refers
    to."""
    body = parts.get(title, "")
    lines = {line.strip() for line in body.split("\n")}
    if "with these changes …]" in body:
        lines |= {line[1:].strip() for line in body.split("\n") if line[:1] in "+- "}
    for number in set(re.findall(r"as written in turn (\d+)", body)):
        if (other := f"turn {number}") not in seen:
            lines |= visible(other, parts, seen | {title})
    return lines


def share(small: Turn, large: Turn, parts: dict[str, str]) -> tuple[float, float]:
    """Shares of the small run's turn that the record shows of the large one's."""
    title = f"turn {large.index}"
    if title not in parts:
        return 0.0, 0.0
    there = visible(title, parts)
    folded: Counter[str] = Counter()
    for action in large.actions:
        if action.observation is not None:
            folded += _taken_out(action.observation.text, fold(action.observation.text))
    for text in (large.text, *(a.code for a in large.actions)):
        folded += _taken_out(text, fold_written(text))
    # What an inflated copy no longer holds (side files kept more of an output than the
    # conversation) no record can show.
    held = {
        sanitize(x).strip()
        for x in re.split(r"[\n\r]", f"{large.text}\n{large.code}\n{large.output}")
    }
    total = literal = by_mark = 0
    for line in (
        sanitize(x).strip()
        for text in (small.text, small.code, small.output)
        for x in re.split(r"[\n\r]", text)
    ):
        if line not in held:
            continue
        total += len(line)
        if line in there:
            literal += len(line)
        elif line in folded and "[… " in parts[title]:
            by_mark += len(line)
    return ((literal + by_mark) / total, literal / total) if total else (1.0, 1.0)


def _taken_out(text: str, folded: str) -> Counter[str]:
    kept = Counter(sanitize(x).strip() for x in folded.split("\n"))
    return Counter(sanitize(x).strip() for x in re.split(r"[\n\r]", text)) - kept


def pairs(runs: list[LabelledRun], large: Path | None) -> Iterator[tuple[dict, Run, Run]]:
    """Label, small run and the run that is shown (the same one, or its inflated copy)."""
    for run in runs:
        small = load_run(run.folder)
        yield run.label, small, load_run(large / run.name) if large else small


def measure(
    runs: list[LabelledRun], budgets: list[int], large: Path | None = None, misses: bool = False
) -> dict[int, Shares]:
    """For each budget, what the records of the runs show."""
    found = {budget: Shares() for budget in budgets}
    for label, small, shown in pairs(runs, large):
        criteria, codes = cited(label)
        stages = segment(shown)
        for budget, shares in found.items():
            start = time.perf_counter()
            record = make_record(shown, stages, budget_chars=budget)
            shares.seconds.append(time.perf_counter() - start)
            shares.chars.append(len(record.text))
            shares.tokens.append(estimate_tokens(record.text))
            parts = sections(record)
            shares.briefs.append(sanitize(shown.brief.strip()) in record.text)
            for turn in sorted(criteria | codes):
                at = turn_of(turn) if large else turn
                seen = share(small.turn(turn), shown.turn(at), parts)
                if turn in criteria:
                    shares.criteria.append(seen)
                if turn in codes:
                    shares.codes.append(seen)
                if misses and seen[0] < SHOWN:
                    print(
                        f"{budget:,}: {small.id} turn {turn}: {seen[0]:.2f} shown, {seen[1]:.2f}"
                        " literally"
                    )
    return found


def inflate_all(runs: list[LabelledRun], target: Path) -> Path:
    for run in runs:
        inflate(run.folder, target / run.name)
    return target


def cost(tokens: float) -> tuple[float, float]:
    """USD a run for `QUESTIONS` questions: each reading the record anew, and reading it from a
    prompt cache."""
    other = QUESTIONS * (QUESTION_TOKENS * PRICE + REPLY_TOKENS * REPLY_PRICE) / 1e6
    once = tokens * PRICE / 1e6
    return QUESTIONS * once + other, once * (CACHE_WRITE + (QUESTIONS - 1) * CACHE_READ) + other


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--recorded", type=Path, default=RECORDED, help="folder with runs/ and labels/gold/"
    )
    parser.add_argument(
        "--constructed", nargs="*", default=["x", "y", "z"], help="sets of constructed runs"
    )
    parser.add_argument(
        "--inflated",
        nargs="?",
        const="",
        help="at the size of real runs; DIR/SET/RUN holds ready-made ones",
    )
    parser.add_argument(
        "--budgets", type=int, nargs="+", default=[24_000, 48_000, DEFAULT_BUDGET, 192_000]
    )
    parser.add_argument(
        "--misses", action="store_true", help="name every cited turn that is not shown"
    )
    args = parser.parse_args()
    sets = {"recorded": recorded(args.recorded)} | {
        name: constructed(name) for name in args.constructed
    }
    print(
        f"{'runs':10} {'budget':>8}  criteria  literal    n  codes  literal    n  briefs    chars "
        " tokens  USD  cached      ms"
    )
    for name, runs in sets.items():
        with tempfile.TemporaryDirectory() as folder:
            large = None
            if args.inflated is not None:
                large = (
                    Path(args.inflated) / name if args.inflated else inflate_all(runs, Path(folder))
                )
            for budget, found in measure(runs, args.budgets, large, args.misses).items():
                n = len(found.chars)
                tokens = sum(found.tokens) / n
                whole, cached = cost(tokens)
                print(
                    f"{name:10} {budget:8,}     {found.rate(found.criteria):.3f}   "
                    f" {found.rate(found.criteria, 1):.3f} {len(found.criteria):4} "
                    f" {found.rate(found.codes):.3f}    {found.rate(found.codes, 1):.3f}"
                    f" {len(found.codes):4}  {sum(found.briefs):3}/{n:<3}"
                    f" {sum(found.chars) / n:8,.0f} {tokens:7,.0f} {whole:.3f}   {cached:.3f} "
                    f" {1000 * sum(found.seconds) / n:6.0f}"
                )


if __name__ == "__main__":
    main()
