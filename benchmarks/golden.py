"""Golden scorecards: what some runs are scored as by the rules judge.

    python benchmarks/golden.py [--scores] [FOLDER ...]

Two files for each run below tests/data/golden. scores/NAME.json must never move: S4, S5, Task,
Overall and the fired codes. details/NAME.json may move with a deliberate change: stages of the
turns, verdicts of rules, presumed values, the judged stages, and the wording of facts. The runs are
the recorded ones, one constructed run for each track and tier, and some more, so that every
detector that fires on constructed runs is covered. tests/data/layouts/golden.jsonl has a line for
each run in the layouts of the public harness, and belongs to the scores.

tests/judge/test_golden.py compares. This script writes the details anew and prints what changed;
it writes scores only with --scores, and otherwise exits with 1 if they would move. FOLDERs, below
tests/data, are runs to add.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.judge.engine import PreparedRun, ask_all, assemble, prepare
from ambjudge.judge.judges.rules import RulesJudge
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.load import iter_runs, load_run

DATA = Path(__file__).parents[1] / "tests" / "data"
SCORES = DATA / "golden" / "scores"
DETAILS = DATA / "golden" / "details"
LAYOUTS = DATA / "layouts"
LAYOUT_ROWS = LAYOUTS / "golden.jsonl"


def judged(folder: Path) -> tuple[PreparedRun, ScoreCard]:
    """A run and its scorecard by the rules judge; recorded runs have their public inputs."""
    public = DATA / "recorded" / "public" if folder.is_relative_to(DATA / "recorded") else None
    ready, judge = prepare(load_run(folder), public=public), RulesJudge()
    return ready, assemble(ready, judge, asyncio.run(ask_all(judge, ready.requests(judge))))


def scores_of(folder: Path, card: ScoreCard) -> dict[str, Any]:
    """What must never move."""
    numbers = {
        "S4": card.stages["S4"].score,
        "S5": card.stages["S5"].score,
        "task": card.task,
        "overall": card.overall,
    }
    return {
        "folder": folder.relative_to(DATA).as_posix(),
        "track": f"{card.run.track} {card.run.tier}",
        "scores": {name: _rounded(value) for name, value in numbers.items()},
        "codes": [f"{c.code} {c.by.partition(':')[2]} {_turns(c.turns)}" for c in card.codes],
    }


def details_of(ready: PreparedRun, card: ScoreCard) -> dict[str, Any]:
    """What may move with a deliberate change."""
    judged_stages = {stage: card.stages[stage].score for stage in ("S1", "S2", "S3")}
    numbers = {**judged_stages, "agentic": card.agentic}
    return {
        "stages": " ".join(stage[1] for stage in card.turn_stages),
        "scores": {name: _rounded(value) for name, value in numbers.items()},
        "criteria": _values(card, "scored"),
        "presumed": _values(card, "presumed"),
        "codes_read": card.codes_read,
        "primary_failure": card.primary_failure,
        "facts": [
            f"{fact.kind} ({fact.source}) {_turns(fact.turns)}: {fact.text}" for fact in ready.facts
        ],
    }


def _values(card: ScoreCard, status: str) -> dict[str, float | None]:
    results = [result for stage in card.stages.values() for result in stage.criteria]
    return {result.id: result.value for result in results if result.status == status}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _turns(turns: Sequence[int]) -> str:
    return ",".join(map(str, turns)) or "-"


def layout_row(folder: Path) -> dict[str, Any]:
    """What is read of a run in one of the harness's layouts, and the numbers that follow."""
    ready, card = judged(folder)
    run, grades, use = ready.run, card.grades, card.resources
    return {
        "folder": folder.relative_to(LAYOUTS).as_posix(),
        "id": run.id,
        "track": run.track,
        "tier": run.tier,
        "task": run.task,
        "brief": run.brief.splitlines()[0][:30] if run.brief else None,
        "stages": "".join(s[1] for s in card.turn_stages),
        "outputs": len(run.outputs.cases),
        "report": run.report.path.name if run.report and run.report.path else None,
        "S4": card.stages["S4"].score,
        "S5": card.stages["S5"].score,
        "Task": card.task,
        "time": use.wall_time_s,
        "tokens": [use.input_tokens, use.output_tokens],
        "cost": use.cost_usd,
        "ended": card.status.ended,
        "medal": grades.medal,
        "rating": grades.rating,
        "progress": grades.progress,
        "failure": grades.failure,
        "pass_rate": grades.pass_rate,
        "shuffled": grades.shuffled,
        "parts": {f"{part.by} {part.name}": part.value for part in grades.parts},
    }


def layout_rows() -> list[dict[str, Any]]:
    """`layout_row` of every run in the harness's layouts, rounded."""
    rows = [layout_row(run.folder) for run in iter_runs(LAYOUTS) if isinstance(run, Run)]
    return [
        json.loads(json.dumps(row), parse_float=lambda text: round(float(text), 4)) for row in rows
    ]


def golden_folders() -> list[Path]:
    """The folders of the runs that have files."""
    scores = [json.loads(path.read_text("utf-8")) for path in sorted(SCORES.glob("*.json"))]
    return [DATA / each["folder"] for each in scores]


def _texts(folders: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Every golden file with the text that it should have."""
    for folder in folders:
        ready, card = judged(folder)
        yield SCORES / f"{folder.name}.json", _as_json(scores_of(folder, card))
        yield DETAILS / f"{folder.name}.json", _as_json(details_of(ready, card))
    rows = [json.dumps(row, ensure_ascii=False) for row in layout_rows()]
    yield LAYOUT_ROWS, "".join(f"{row}\n" for row in rows)


def _as_json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def write(folders: Sequence[Path], with_scores: bool) -> bool:
    """Write the files that changed and print the differences; whether scores were left
    unwritten."""
    refused = False
    for path, text in _texts(folders):
        before = path.read_text("utf-8") if path.exists() else ""
        if text == before:
            continue
        print(f"{path.relative_to(DATA)}:")
        for line in unified_diff(before.splitlines(), text.splitlines(), n=0, lineterm=""):
            if not line.startswith(("---", "+++", "@@")):
                print(f"  {line}")
        if before and path.parent != DETAILS and not with_scores:
            refused = True
            print("  not written: scores and codes must not move (--scores writes them)")
        else:
            path.write_text(text, encoding="utf-8")
    return refused


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scores", action="store_true", help="write scores and codes too")
    parser.add_argument(
        "folders", type=Path, nargs="*", help="runs to add, below tests/data; none: all again"
    )
    flags = parser.parse_args()
    folders = [path.resolve() for path in flags.folders] or golden_folders()
    return int(write(folders, flags.scores))


if __name__ == "__main__":
    sys.exit(main())
