"""How much of the evidence that annotators cite reaches the judge: our packing beside the public harness's cut.

    python benchmarks/evidence.py [--recorded DIR] [--budgets 24000 8000] [--segmentation gold|ours] [--misses]

Unit: one (run, stage, turn) that the labels of S1-S3 criteria cite. A turn counts as shown when at least 80 % of the
characters of its text, code and output stand in the stage's prompt (compared line by line).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ambjudge.judge.evidence import pack
from ambjudge.sanitize import sanitize
from ambjudge.trajectories.load import load_run
from ambjudge.trajectories.models import Run, Segment, Segmentation, Stage
from ambjudge.trajectories.segment import segment

RECORDED = Path(__file__).parents[1] / "tests" / "data" / "recorded"
SHOWN = 0.8
JUDGED: tuple[Stage, ...] = ("S1", "S2", "S3")


def gold_segmentation(label: dict, turns: int) -> Segmentation:
    stages = tuple(label["stages"][str(i)] for i in range(1, turns + 1))
    segments, first = [], 1
    for i in range(1, turns + 1):
        if i == turns or stages[i] != stages[first - 1]:
            segments.append(Segment(stage=stages[first - 1], first_turn=first, last_turn=i))
            first = i + 1
    return Segmentation(turn_stages=stages, segments=tuple(segments), confidence=(1.0,) * turns)


def share_shown(run: Run, index: int, prompt: str) -> float:
    """Share of the turn's characters in lines that stand, whole, in the prompt."""
    turn = run.turn(index)
    lines = [sanitize(x).strip() for text in (turn.text, turn.code, turn.output) for x in text.split("\n")]
    lines = [x for x in lines if x]
    there = {x.strip() for x in prompt.split("\n")}
    total = sum(map(len, lines))
    return sum(len(x) for x in lines if x in there) / total if total else 1.0


def harness_cut(run: Run, limit: int = 24_000, message: int = 600) -> str:
    """The conversation as the public harness shows it: each message cut to 600 characters, then head, middle and tail."""
    messages = []
    for turn in run.turns:
        messages.append(f"[ASSISTANT] {turn.text} {turn.code}"[:message])
        messages += [f"[TOOL] {a.observation.text}"[:message] for a in turn.actions if a.observation is not None]
    text = "\n".join(messages)
    if len(text) <= limit:
        return text
    part, middle = limit // 3, len(text) // 2
    return "\n...\n".join((text[:part], text[middle - part // 2 : middle + part // 2], text[-part:]))


def measure(
    recorded: Path, budgets: list[int], segmentation: str, misses: bool = False
) -> dict[str, dict[str, list[float]]]:
    """For each packing and stage, the share shown of every cited turn."""
    found: dict[str, dict[str, list[float]]] = {}
    for path in sorted((recorded / "labels" / "gold").glob("*.json")):
        label = json.loads(path.read_text())
        run = load_run(recorded / "runs" / path.stem)
        stages = segment(run) if segmentation == "ours" else gold_segmentation(label, len(run.turns))
        prompts: dict[str, dict[Stage, str]] = {}
        for budget in budgets:
            prompts[f"ours, {budget:,}"] = {s: pack(run, stages, s, budget_chars=budget).text for s in JUDGED}
        prompts["harness cut, 24,000"] = dict.fromkeys(JUDGED, harness_cut(run))
        cited: dict[str, set[int]] = {stage: set() for stage in JUDGED}
        for criterion, turns in label["evidence"].items():
            cited[criterion[:2]] |= set(turns)
        for name, by_stage in prompts.items():
            for stage, turns in cited.items():
                for turn in sorted(turns):
                    share = share_shown(run, turn, by_stage[stage])
                    found.setdefault(name, {}).setdefault(stage, []).append(share)
                    if misses and share < SHOWN and not name.startswith("harness"):
                        print(f"{name}: {run.id} {stage} turn {turn}: {share:.2f}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--recorded", type=Path, default=RECORDED)
    parser.add_argument("--budgets", type=int, nargs="+", default=[24_000, 8_000])
    parser.add_argument("--segmentation", choices=("gold", "ours"), default="ours")
    parser.add_argument("--misses", action="store_true", help="name every cited turn that is not shown")
    args = parser.parse_args()
    found = measure(args.recorded, args.budgets, args.segmentation, args.misses)
    print(f"{'packing':24} {'S1':>6} {'S2':>6} {'S3':>6} {'all':>6}  n")
    for name, by_stage in found.items():
        whole = [x for shares in by_stage.values() for x in shares]
        cells = [sum(x >= SHOWN for x in xs) / len(xs) for xs in (*by_stage.values(), whole)]
        print(f"{name:24} " + " ".join(f"{c:6.3f}" for c in cells) + f"  {len(whole)}")


if __name__ == "__main__":
    main()
