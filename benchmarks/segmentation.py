"""How well turns are told apart: ambjudge's segmentation against the harness's rule order, on
reference labels.

    python benchmarks/segmentation.py [--runs]

Development labels: the recorded runs (15 of the benchmark's own shape), the constructed ones (for
the table of confidence only; constructed.py has the rest) and, where present, labelled public runs
of other agents. The recorded runs are also read at the size of real ones: noise before every
output, looks at the machine between all turns; only the turns that have labels are compared.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ambjudge.trajectories.models import STAGES, Run
from ambjudge.trajectories.reading.load import load_run
from ambjudge.trajectories.turns.segment import segment
from inflated import inflate
from labelled_runs import LabelledRun, constructed, external, recorded

_COMMENT = re.compile(r"#\s*(S[1-5])\b")
_LOOP = re.compile(
    r"for \w+ in [^\n]{0,200}(?:patient|case|image|question|glob|listdir)", re.IGNORECASE
)


@dataclass(frozen=True)
class Labelled:
    """One run with its reference stages."""

    name: str
    run: Run
    gold: tuple[str, ...]
    step: int = 1
    """Every so many turns one has a label: more than one where turns were put between."""


@dataclass(frozen=True)
class Scores:
    """Turn accuracy, F1 averaged over the stages that the reference has, and boundary F1 (one turn
    off counts)."""

    accuracy: float
    macro_f1: float
    boundary_f1: float | None


def harness_rules(run: Run) -> tuple[str, ...]:
    """The stage of each turn by the public harness's guesses, in its order.

    An explicit comment, then package installation, then plan.md, then a loop over patients, else
    the stage before.
    """
    stages: list[str] = []
    for turn in run.turns:
        code = turn.code[:200_000]
        comment = _COMMENT.search(code)
        if comment:
            stages.append(comment.group(1))
        elif "pip install" in code or "venv" in code:
            stages.append("S2")
        elif "plan.md" in code:
            stages.append("S1")
        elif _LOOP.search(code):
            stages.append("S4")
        else:
            stages.append(stages[-1] if stages else "S1")
    return tuple(stages)


def ours(run: Run) -> tuple[str, ...]:
    return segment(run).turn_stages


def guessed(
    runs: Sequence[Labelled], guess: Callable[[Run], tuple[str, ...]]
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """(reference, guessed) stages of the labelled turns."""
    return [(r.gold, guess(r.run)[:: r.step]) for r in runs]


def scores(pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> Scores:
    """Scores over (reference, predicted) stage sequences, all turns pooled."""
    flat = [(g, p) for gold, found in pairs for g, p in zip(gold, found, strict=True)]
    f1 = []
    for stage in STAGES:
        gold_n, found_n = sum(g == stage for g, _ in flat), sum(p == stage for _, p in flat)
        if gold_n:
            f1.append(2 * sum(g == p == stage for g, p in flat) / (gold_n + found_n))
    hits = made = wanted = 0
    for gold, found in pairs:
        a, b = _boundaries(gold), _boundaries(found)
        hits, made, wanted = hits + _matched(a, b), made + len(b), wanted + len(a)
    return Scores(
        accuracy=sum(g == p for g, p in flat) / len(flat),
        macro_f1=sum(f1) / len(f1),
        boundary_f1=2 * hits / (made + wanted) if made + wanted else None,
    )


def _boundaries(stages: Sequence[str]) -> list[int]:
    return [i for i in range(1, len(stages)) if stages[i] != stages[i - 1]]


def _matched(gold: list[int], found: list[int]) -> int:
    """Boundaries matched one to one, at most one turn apart. Both lists ascend, so the greedy
    matching is the largest."""
    i = j = hits = 0
    while i < len(gold) and j < len(found):
        if abs(gold[i] - found[j]) <= 1:
            hits, i, j = hits + 1, i + 1, j + 1
        elif gold[i] < found[j]:
            i += 1
        else:
            j += 1
    return hits


def interval(
    pairs: Sequence[tuple[Sequence[str], Sequence[str]]], pick: Callable[[Scores], float | None]
) -> str:
    """95 % percentile bootstrap over runs (2,000 resamples, seed 0)."""
    rng = random.Random(0)
    values = sorted(
        v for _ in range(2_000) if (v := pick(scores(rng.choices(pairs, k=len(pairs))))) is not None
    )
    return (
        f"[{values[int(0.025 * len(values))]:.3f}, {values[int(0.975 * len(values)) - 1]:.3f}]"
        if values
        else "-"
    )


def at_real_size(noise: int, looks: int) -> list[Labelled]:
    """The recorded runs with about `noise` characters of log before every output and `looks` turns
    that only look at the machine between all others. What the agent did stays as it was."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for one in recorded():
            run = inflate(one.folder, Path(folder) / one.name, noise, looks)
            found.append(_labelled(LabelledRun(one.group, run, one.label), 1 + looks))
    return found


def _labelled(run: LabelledRun, step: int = 1) -> Labelled:
    stages = run.label["stages"]
    name = run.name if run.group == "recorded" else f"{run.folder.parent.name}/{run.name}"
    return Labelled(
        name, load_run(run.folder), tuple(stages[str(i)] for i in range(1, len(stages) + 1)), step
    )


def report(title: str, runs: Sequence[Labelled], each: bool) -> None:
    print(f"\n{title}: {len(runs)} runs, {sum(len(r.gold) for r in runs)} turns")
    print(
        f"{'':16}{'accuracy':>9} {'95 % over runs':<16}{'macro F1':>9}"
        f" {'95 % over runs':<16}{'boundary F1':>12}"
    )
    for name, guess in (("ambjudge", ours), ("harness rules", harness_rules)):
        pairs = guessed(runs, guess)
        found = scores(pairs)
        boundary = "-" if found.boundary_f1 is None else f"{found.boundary_f1:.3f}"
        print(
            f"{name:16}{found.accuracy:9.3f} {interval(pairs, lambda s: s.accuracy):<16}"
            f"{found.macro_f1:9.3f} {interval(pairs, lambda s: s.macro_f1):<16}{boundary:>12}"
        )
    pairs = guessed(runs, ours)
    print("confusion, ambjudge (rows: reference)")
    print("      " + "".join(f"{stage:>6}" for stage in STAGES))
    for gold_stage in STAGES:
        row = [
            sum(
                g == gold_stage and p == s
                for gold, found in pairs
                for g, p in zip(gold, found, strict=True)
            )
            for s in STAGES
        ]
        print(f"{gold_stage:>6}" + "".join(f"{n:6d}" for n in row))
    if each:
        for r, (gold, told) in zip(runs, pairs, strict=True):
            wrong = [
                f"{i}:{g}>{p}" for i, (g, p) in enumerate(zip(gold, told, strict=True), 1) if g != p
            ]
            print(f"{r.name:56} {1 - len(wrong) / len(gold):.2f} {' '.join(wrong)}")


BANDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.01)


def confidence(groups: Sequence[tuple[str, Sequence[Labelled]]]) -> None:
    """Whether the confidence of a stage says how often it is right: accuracy (and number) of
    labelled turns by band."""
    print(
        "\naccuracy (turns) by confidence\n"
        + " " * 24
        + "".join(f"{f'< {min(b, 1):.2f}':>13}" for b in BANDS)
    )
    for title, runs in groups:
        told: list[tuple[float, bool]] = []
        for r in runs:
            found = segment(r.run)
            turns = zip(
                r.gold, found.turn_stages[:: r.step], found.confidence[:: r.step], strict=True
            )
            told += [(sure, gold == stage) for gold, stage, sure in turns]
        cells = []
        for low, high in zip((0.0, *BANDS), BANDS, strict=False):
            right = [ok for sure, ok in told if low <= sure < high]
            cells.append(f"{sum(right) / len(right):.2f} ({len(right)})" if right else "-")
        print(f"{title:24}" + "".join(f"{cell:>13}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", action="store_true", help="one line a run with its wrong turns")
    options = parser.parse_args()
    small, large, public = (
        [_labelled(run) for run in recorded()],
        at_real_size(4_000, 2),
        [_labelled(run) for run in external()],
    )
    report("recorded benchmark runs", small, options.runs)
    report(
        "recorded, at real size (4,000 characters before every output, 2 looks between turns)",
        large,
        options.runs,
    )
    print("\naccuracy / macro F1 at other sizes")
    for noise, looks in ((500, 2), (10_000, 2), (4_000, 1), (4_000, 4)):
        found = scores(guessed(at_real_size(noise, looks), ours))
        print(f"{noise:6,} characters, {looks} looks: {found.accuracy:.3f} / {found.macro_f1:.3f}")
    if public:
        report("public runs of other agents", public, options.runs)
    else:
        print(
            "\npublic runs of other agents: skipped, no labelled data here (set"
            " AMBJUDGE_EXTERNAL_DATA)"
        )
    groups = [
        ("recorded", small),
        ("recorded, at real size", large),
        ("constructed", [_labelled(run) for run in constructed()]),
    ]
    confidence([*groups, ("public", public)] if public else groups)


if __name__ == "__main__":
    main()
