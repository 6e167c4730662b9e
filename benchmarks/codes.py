"""How well the fired codes agree with gold labels, and failures with what foreign runs recorded.

    python benchmarks/codes.py [--recorded DIR] [--external DIR] [--stages ours|gold] [--misses]

Unit of the code tables: one (run, code); circular codes (`from_score`) are left out. Intervals are
95 % percentile bootstraps over runs. The external tables need ../shared/data/external and are left
out, aloud, without it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ambjudge.error_codes.context import CodeContext, code_context
from ambjudge.error_codes.fired_codes import fired_codes
from ambjudge.error_codes.models import FiredCode
from ambjudge.judge.checks.check_outputs import check_outputs
from ambjudge.trajectories.models import Run, Segmentation
from ambjudge.trajectories.reading.load import iter_runs, load_run
from ambjudge.trajectories.turns.failures import action_failure, failures
from ambjudge.trajectories.turns.segment import segment

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "tests" / "data" / "recorded"
EXTERNAL = Path(
    os.environ.get("AMBJUDGE_EXTERNAL_DATA", ROOT.parent / "shared" / "data" / "external")
)
CODES = ("E1", "E2", "E3", "E4", "E5")
REPLICATES = 2_000
Pair = tuple[frozenset[str], frozenset[str]]
"""FiredCode codes and gold codes of one run."""


class Scores(NamedTuple):
    """Of one code over runs; None where undefined."""

    precision: float | None
    recall: float | None
    f1: float | None
    kappa: float | None


def counts(pairs: Sequence[Pair], code: str) -> tuple[int, int, int, int]:
    """True positives, false positives, false negatives, true negatives."""
    both = [(code in got, code in gold) for got, gold in pairs]
    return tuple(
        both.count(cell) for cell in ((True, True), (True, False), (False, True), (False, False))
    )  # type: ignore[return-value]


def scores(tp: int, fp: int, fn: int, tn: int) -> Scores:
    total = tp + fp + fn + tn
    precision = tp / (tp + fp) if tp + fp else None
    recall = tp / (tp + fn) if tp + fn else None
    f1 = 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else None
    kappa = None
    if total:
        expected = ((tp + fp) * (tp + fn) + (fn + tn) * (fp + tn)) / total**2
        kappa = ((tp + tn) / total - expected) / (1 - expected) if expected < 1 else None
    return Scores(precision, recall, f1, kappa)


def micro(pairs: Sequence[Pair]) -> tuple[int, int, int, int]:
    cells = [counts(pairs, code) for code in CODES]
    return tuple(map(sum, zip(*cells, strict=True)))  # type: ignore[return-value]


def interval(
    pairs: Sequence[Pair], value: Callable[[Sequence[Pair]], float | None], seed: int = 0
) -> str:
    """95 % percentile bootstrap over runs, as text."""
    rng = random.Random(seed)
    drawn = []
    for _ in range(REPLICATES):
        sample = rng.choices(pairs, k=len(pairs))
        got = value(sample)
        if got is not None:
            drawn.append(got)
    if len(drawn) < REPLICATES // 2:
        return "-"
    drawn.sort()
    low = drawn[int(0.025 * len(drawn))]
    high = drawn[min(int(0.975 * len(drawn)), len(drawn) - 1)]
    return f"{low:.2f}-{high:.2f}"


def show(value: float | None) -> str:
    return "  - " if value is None else f"{value:4.2f}"


def code_table(title: str, pairs: Sequence[Pair]) -> None:
    print(f"\n{title}: {len(pairs)} runs, {sum(len(gold) for _, gold in pairs)} gold codes")
    print("code   gold fired  prec  rec   F1   F1 95 %      kappa  kappa 95 %")
    for code in CODES:
        cell = counts(pairs, code)
        s = scores(*cell)
        f1 = (
            interval(pairs, lambda p, c=code: scores(*counts(p, c)).f1) if s.f1 is not None else "-"
        )
        kappa = (
            interval(pairs, lambda p, c=code: scores(*counts(p, c)).kappa)
            if s.kappa is not None
            else "-"
        )
        print(
            f"{code:6} {cell[0] + cell[2]:4} {cell[0] + cell[1]:5}  {show(s.precision)} "
            f" {show(s.recall)} {show(s.f1)}  {f1:12} {show(s.kappa)}   {kappa}"
        )
    s = scores(*micro(pairs))
    print(
        f"micro  F1 {show(s.f1)} ({interval(pairs, lambda p: scores(*micro(p)).f1)}), precision"
        f" {show(s.precision)}, recall {show(s.recall)}"
    )
    clean = [got for got, gold in pairs if not gold]
    print(f"clean runs: {len(clean)}, codes fired on them: {sum(map(len, clean))}")


def labelled(run: Run, label: dict, stages: str) -> Segmentation:
    if stages == "ours":
        return segment(run)
    return Segmentation(
        turn_stages=tuple(label["stages"][str(t.index)] for t in run.turns), segments=()
    )


def codes_of(ctx: CodeContext) -> frozenset[str]:
    return frozenset(code.code for code in fired_codes(ctx) if code.independence != "from_score")


def gold_pairs(
    jobs: Iterable[tuple[Path, Path]], stages: str, misses: bool, public: Path | None
) -> list[Pair]:
    pairs = []
    for folder, label_path in jobs:
        run, label = load_run(folder), json.loads(label_path.read_text(encoding="utf-8"))
        facts = check_outputs(run, public=public).s4_checks if run.track is not None else None
        ctx = code_context(run, labelled(run, label, stages), facts)
        got, gold = codes_of(ctx), frozenset(label["codes"])
        pairs.append((got, gold))
        if misses and got != gold:
            print(f"  {run.id}: fired {sorted(got)}, gold {sorted(gold)}")
    return pairs


# -- foreign runs
def failures_from_text(folder: Path) -> None:
    """Can a failed execution be told from its text alone? Judged by the exit codes recorded, which
    are hidden here."""
    tp = fp = fn = tn = 0
    for run in iter_runs(folder):
        if not isinstance(run, Run):
            continue
        for turn, action in run.actions():
            seen = action.observation
            if seen is None or seen.exit_code is None or action.kind != "execute":
                continue
            blind = action.model_copy(
                update={
                    "observation": seen.model_copy(update={"exit_code": None, "kind": "unknown"})
                }
            )
            found = action_failure(turn.index, 0, blind)
            said, failed = found is not None and found.confidence >= 0.6, seen.exit_code != 0
            tp, fp, fn, tn = (
                tp + (said and failed),
                fp + (said and not failed),
                fn + (failed and not said),
                tn + (not said and not failed),
            )
    s = scores(tp, fp, fn, tn)
    print(
        f"\n{folder.name}: failed executions from text alone, {tp + fp + fn + tn} executions,"
        f" {tp + fn} failed (a recorded exit code other than 0)"
    )
    print(
        f"precision {show(s.precision)}, recall {show(s.recall)}, F1 {show(s.f1)}, kappa"
        f" {show(s.kappa)}; false alarms include pipes that hide an exit code"
    )


def codes_against_tests(folder: Path) -> None:
    """Do fired codes go with failed tests? A table of runs, no claim of causes."""
    table: Counter[tuple[bool, bool]] = Counter()
    for run in iter_runs(folder):
        if not isinstance(run, Run):
            continue
        outcome = run.folder / "outcome.json"
        if outcome.is_file():
            passed = json.loads(outcome.read_text(encoding="utf-8")).get(
                "is_resolved", json.loads(outcome.read_text(encoding="utf-8")).get("resolved")
            )
            if isinstance(passed, bool):
                table[(bool(codes_of(code_context(run, segment(run)))), passed)] += 1
    print(
        f"{folder.name}: with a code {table[(True, True)]} passed, {table[(True, False)]} failed;"
        f" without {table[(False, True)]} passed, {table[(False, False)]} failed"
    )


BIOAGENT = {
    "coder_issue": "E4",
    "missing_environment_dependency": "E2",
    "interrupted_execution": "E4",
    "planner_issue": "E4",
    "round_or_time_limit_exceeded": "E5",
    "early_stopping_fault": "E5",
    "poor_instruction_following": "E1",
    "ambiguous_input_prompt": "E1",
    "redundant_process_or_code": "E4",
}
"""Our reading of which code a class should show; classes about planning or dialogue have none."""


def bioagent_classes(folder: Path) -> None:
    print(
        f"\n{folder.name}: error class of the authors beside the fired codes (one or two runs a"
        " class: no test)"
    )
    hits = total = 0
    for run in iter_runs(folder):
        label = run.folder / "labels.json" if isinstance(run, Run) else None
        if label is None or not label.is_file() or not isinstance(run, Run):
            continue
        name = json.loads(label.read_text(encoding="utf-8"))["error_type"]
        got, want = codes_of(code_context(run, segment(run))), BIOAGENT.get(name)
        total, hits = total + (want is not None), hits + (want in got)
        print(f"  {name:40} expected {want or '-':3} fired {' '.join(sorted(got)) or '-'}")
    print(f"expected code among the fired: {hits} of {total}")


def step_turns(conversation: Path) -> list[int]:
    """Message index -> the turn it belongs to (1 before the first)."""
    data = json.loads(conversation.read_text(encoding="utf-8"))
    messages = data if isinstance(data, list) else data["messages"]
    turns, turn = [], 0
    for message in messages:
        turn += message.get("role") == "assistant"
        turns.append(max(turn, 1))
    return turns


def first_trouble(run: Run, codes: Sequence[FiredCode]) -> int:
    """Our guess at the decisive turn: the earliest turn of a fired code, else of a sure failure,
    else the first turn."""
    fired_turns = [min(code.turns) for code in codes]
    failed = [f.turn for f in failures(run) if f.confidence >= 0.6]
    return min(fired_turns or failed or [1])


def mistake_step(folder: Path) -> None:
    rows: list[tuple[int, int, int]] = []  # gold turn, our turn, turns
    for run in iter_runs(folder):
        label = run.folder / "labels.json" if isinstance(run, Run) else None
        if label is None or not label.is_file() or not isinstance(run, Run) or not run.turns:
            continue
        data = json.loads(label.read_text(encoding="utf-8"))
        steps, turns = data["history_step_to_message_index"], step_turns(run.path)
        try:
            gold = turns[steps[int(data["mistake_step"])]]
        except (ValueError, IndexError, TypeError):
            continue
        rows.append(
            (gold, first_trouble(run, fired_codes(code_context(run, segment(run)))), len(run.turns))
        )
    if not rows:
        return
    n = len(rows)
    common = Counter(gold for gold, _, _ in rows)
    leave_one_out = sum(
        max(
            (c for c in common if common[c] - (c == gold) > 0),
            key=lambda c: common[c] - (c == gold),
        )
        == gold
        for gold, _, _ in rows
    )
    print(f"\n{folder.name}: decisive mistake, exact turn, {n} runs")
    print(
        f"ours {sum(g == o for g, o, _ in rows) / n:.3f}, random"
        f" {sum(1 / t for _, _, t in rows) / n:.3f}, majority turn {leave_one_out / n:.3f}, last"
        f" turn {sum(g == t for g, _, t in rows) / n:.3f}"
    )


def sound(folder: Path) -> None:
    """Every code and episode of every run names turns that the run has; AssertionError
    otherwise."""
    runs = [run for run in iter_runs(folder) if not isinstance(run, Exception)]
    for run in runs:
        ctx = code_context(run, segment(run))
        for code in fired_codes(ctx):
            assert code.turns, (run.id, code)
            assert 1 <= min(code.turns) <= max(code.turns) <= len(run.turns), (run.id, code)
        for episode in ctx.episodes:
            assert episode.attempts >= len(episode.turns) >= 1, (run.id, episode)
            assert episode.resolved_at is None or episode.resolved_at >= episode.turns[-1], (
                run.id,
                episode,
            )
    print(f"\n{folder.name}: codes and episodes of {len(runs)} runs name turns that are there")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--recorded", type=Path, default=RECORDED)
    parser.add_argument("--external", type=Path, default=EXTERNAL)
    parser.add_argument("--stages", choices=("ours", "gold"), default="ours")
    parser.add_argument("--misses", action="store_true", help="print the runs where codes differ")
    args = parser.parse_args()
    jobs = [
        (args.recorded / "runs" / p.stem, p)
        for p in sorted((args.recorded / "labels" / "gold").glob("*.json"))
    ]
    code_table(
        f"recorded runs, stages {args.stages}",
        gold_pairs(jobs, args.stages, args.misses, args.recorded / "public"),
    )
    if not args.external.is_dir():
        print(f"\nNO EXTERNAL DATA at {args.external}: foreign runs are not measured")
        return
    labels = args.external.parent / "external_labels"
    jobs = [(args.external / p.parent.name / p.stem, p) for p in sorted(labels.glob("*/*.json"))]
    if jobs:
        code_table(
            f"external labelled runs, stages {args.stages}",
            gold_pairs(jobs, args.stages, args.misses, None),
        )
    for folder in ("codetracer_tb", "mlrbench", "bioagent", "autokaggle"):
        sound(args.external / folder)
    failures_from_text(args.external / "codetracer_tb")
    codes_against_tests(args.external / "codetracer_tb")
    bioagent_classes(args.external / "bioagent")
    mistake_step(args.external / "whoandwhen")


if __name__ == "__main__":
    main()
