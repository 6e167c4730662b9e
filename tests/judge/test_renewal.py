"""Scorecards that are renewed under an edited rubric without reading their runs: over all recorded
runs they equal those of runs that are read."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import yaml
from ambjudge.judge.card.fields import Policy
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.rejudge.execute import execute_plan
from ambjudge.judge.rejudge.staleness import plan_rejudge
from ambjudge.judge.rejudge.update import rescore, without_calls
from ambjudge.judge.session import ScoreOptions, make_scorer, run_session
from ambjudge.judge.store import Store

RUNS = ("bccd-lite-04", "crc-std-01", "ldct-lite-02", "vqa-std-01")
RUBRICS = Path(__file__).parents[2] / "rubrics"
TRACKS = ("segmentation", "classification", "detection", "enhancement", "vqa")


def reweigh(rubric: dict) -> None:
    for stage in rubric["stages"].values():
        stage["weight"] = 0.2
        for number, criterion in enumerate(stage.get("criteria", ())):
            criterion["weight"] = 1 + number % 3


def require(rubric: dict) -> None:
    first, *others = rubric["stages"]["S2"]["criteria"]
    for criterion in others:
        criterion["requires"] = [first["id"]]


def shorten(rubric: dict) -> None:
    rubric["derived"] = True
    for stage in ("S1", "S2"):
        del rubric["stages"][stage]["criteria"][-1]
        for criterion in rubric["stages"][stage]["criteria"]:
            criterion.pop("requires", None)


def reword(rubric: dict) -> None:
    rubric["preamble"] = "Be strict."


EDITS = {
    "weights": (reweigh,),
    "requirements": (require,),
    "fewer criteria": (shorten, reweigh),
    "texts": (reword,),
}


def edited(edits: Iterable[Callable[[dict], None]], folder: Path) -> list[Path]:
    files = []
    for track in TRACKS:
        rubric = yaml.safe_load((RUBRICS / f"{track}.yaml").read_text("utf-8"))
        for edit in edits:
            edit(rubric)
        files.append(folder / f"{track}.yaml")
        files[-1].write_text(yaml.safe_dump(rubric, sort_keys=False), "utf-8")
    return files


def garble(path: Path) -> bytes:
    """Make a file unreadable as a conversation while its size and time stay; what was in it."""
    content, status = path.read_bytes(), path.stat()
    path.write_bytes(b"?" * len(content))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    return content


def restore(path: Path, content: bytes) -> None:
    status = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_renewed_scorecard_is_the_one_of_a_run_that_is_read(
    judge_server, store: Store, runs: list[Path], tmp_path: Path
) -> None:
    judge_server.script = ["good@words"]
    judge = ApiJudge("openai/good", judge_server.url, images=False)
    asyncio.run(run_session(runs, judge, ScoreOptions(), lambda _: None, store=store))
    for name, edits in EDITS.items():
        options = ScoreOptions(rubric=edited(edits, tmp_path))
        plan = plan_rejudge(store, runs, judge, options.scope())
        asyncio.run(execute_plan(plan, store, judge, signals=False))
        contents = {path: garble(path) for path in runs}
        scorer = make_scorer(judge, without_calls(options), store)
        renewed, errors = asyncio.run(rescore(store, runs, judge, options, scorer))
        assert (len(renewed), errors) == (len(runs), ()), name
        for path, content in contents.items():
            restore(path, content)
            card = next(store.cards(path, judge=judge.name)).to_json()
            assert card == asyncio.run(scorer.score(path)).to_json(), (name, path)


def test_a_run_is_read_where_more_than_the_rubric_changed(
    judge_server, store: Store, runs: list[Path], tmp_path: Path
) -> None:
    judge = ApiJudge("openai/good", judge_server.url, images=False)
    path = runs[0]
    asyncio.run(run_session([path], judge, ScoreOptions(), lambda _: None, store=store))
    garble(path)
    options = ScoreOptions(rubric=edited((reweigh,), tmp_path))
    strict = replace(options, policy=Policy(strict_evidence=True))
    harness = replace(options, policy=Policy(like="harness"))
    for changed, errors in ((options, 0), (strict, 1), (harness, 1)):
        scorer = make_scorer(judge, without_calls(changed), store)
        result = asyncio.run(rescore(store, [path], judge, changed, scorer))
        assert len(result[1]) == errors, changed.policy
