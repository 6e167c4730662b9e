"""What must not move unnoticed: scores, stages, criteria, codes and facts of some runs, as they are
judged without a model.

    python benchmarks/golden.py [FOLDER ...]

One JSON file a run in tests/data/golden: the recorded runs, and of the constructed ones one a track
and tier and some more, so that every detector that ever fires there is held. A line a run in
tests/data/layouts/golden.jsonl: what is read of the layouts of the public harness.
tests/judge/test_golden.py compares; `make golden` writes all anew after a deliberate change, and
the diff says what the change did.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.judge.engine import Prepared, ask_all, assemble, prepare
from ambjudge.judge.judges.rules import RulesJudge
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.load import iter_runs, load_run

DATA = Path(__file__).parents[1] / "tests" / "data"
GOLDEN = DATA / "golden"
LAYOUTS = DATA / "layouts"


def judged(folder: Path) -> tuple[Prepared, ScoreCard]:
    """A run and its card by the rules judge, with the public inputs of the recorded ones."""
    public = DATA / "recorded" / "public" if folder.is_relative_to(DATA / "recorded") else None
    ready, judge = prepare(load_run(folder), public=public), RulesJudge()
    return ready, assemble(ready, judge, asyncio.run(ask_all(judge, ready.requests(judge))))


def golden(ready: Prepared, card: ScoreCard) -> dict[str, Any]:
    """The fields that are held, as plain values."""
    rounded = {
        key: None if value is None else round(value, 6)
        for key, value in (
            *((stage, result.score) for stage, result in card.stages.items()),
            ("agentic", card.agentic),
            ("task", card.task),
            ("overall", card.overall),
        )
    }
    return {
        "run": card.run.id,
        "track": f"{card.run.track} {card.run.tier}",
        "scores": rounded,
        "stages": " ".join(stage[1] for stage in card.turn_stages),
        "criteria": {
            c.id: c.value
            for result in card.stages.values()
            for c in result.criteria
            if c.status == "scored"
        },
        "presumed": {
            c.id: c.value
            for result in card.stages.values()
            for c in result.criteria
            if c.status == "presumed"
        },
        "codes": [f"{c.code} {c.by.partition(':')[2]} {_turns(c.turns)}" for c in card.codes],
        "codes_read": card.codes_read,
        "primary_failure": card.primary_failure,
        "facts": [f"{f.kind} ({f.source}) {_turns(f.turns)}: {f.text}" for f in ready.facts],
    }


def layout_row(folder: Path) -> dict[str, Any]:
    """What is held of a run in one of the harness's layouts: what was found of it, and the numbers
    that follow."""
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
    """`layout_row` of every run there, rounded."""
    rows = [layout_row(run.folder) for run in iter_runs(LAYOUTS) if isinstance(run, Run)]
    return [
        json.loads(json.dumps(row), parse_float=lambda text: round(float(text), 4)) for row in rows
    ]


def _turns(turns: tuple[int, ...]) -> str:
    return ",".join(map(str, turns)) or "-"


def write(run: Path, out: Path = GOLDEN) -> None:
    """Write the file of one run, given by its folder."""
    text = json.dumps(
        {"folder": run.relative_to(DATA).as_posix(), **golden(*judged(run))},
        indent=1,
        ensure_ascii=False,
    )
    (out / f"{run.name}.json").write_text(text + "\n", encoding="utf-8")


def held(out: Path = GOLDEN) -> list[Path]:
    """Folders of the runs that have a file."""
    return [
        DATA / json.loads(path.read_text("utf-8"))["folder"] for path in sorted(out.glob("*.json"))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "folders", type=Path, nargs="*", help="runs to add below tests/data; none: write all anew"
    )
    for folder in [path.resolve() for path in parser.parse_args().folders] or held():
        write(folder)
    lines = (json.dumps(row, ensure_ascii=False) for row in layout_rows())
    (LAYOUTS / "golden.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
