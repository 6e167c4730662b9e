"""Panels: votes are kept, ties and failures have rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from ambjudge.errors import ConfigError, JudgeError
from ambjudge.judge.api import ApiJudge
from ambjudge.judge.base import Reply, Request, Usage
from ambjudge.judge.heuristic import HeuristicJudge
from ambjudge.judge.panel import Ballot, Panel, combine, pairwise_agreement
from ambjudge.judge.scorecard import CriterionResult
from ambjudge.judge.transport import Retry
from ambjudge.rubrics.load import load_rubric
from ambjudge.trajectories.load import load_run
from ambjudge.trajectories.segment import segment
from hypothesis import given
from hypothesis import strategies as st

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
RUN = load_run(RECORDED / "runs" / "ldct-lite-01")
RUBRIC = load_rubric("enhancement")
REQUEST = Request(RUN, segment(RUN), RUBRIC, "S3", RUBRIC.criteria("S3"))
NA = "not_applicable"


def ballot(said: float | str, judge: str = "j", sample: int = 0) -> Ballot:
    """A vote: a value, `not_applicable`, or a reason for none."""
    if isinstance(said, float | int):
        result = CriterionResult(id="S3", value=said, status="scored", rationale=f"because {said:g}")
    elif said == NA:
        result = CriterionResult(id="S3", value=None, status="not_applicable")
    else:
        result = CriterionResult(id="S3", value=None, status="unscored", reason=said)
    return Ballot(judge, sample, Reply((result,), Usage(1, 10, 5, 0.01)))


@pytest.mark.parametrize(
    ("votes", "majority", "mean"),
    [
        ([1, 1, 0], 1.0, 2 / 3),
        ([1, 0, 0], 0.0, 1 / 3),
        ([1, 0], 0.0, 0.5),
        ([1, 1, 0, 0], 0.0, 0.5),
        ([1, 0.5, 0.2], 0.5, 1.7 / 3),
        ([1, 0.5], 0.5, 0.75),
        ([0.2], 0.2, 0.2),
        ([1, 1, "judge_error"], 1.0, 1.0),
        ([1, "judge_error"], 1.0, 1.0),
        ([1, "judge_error", "unparsable"], "judge_error", "judge_error"),
        ([0, "refused", "refused", "truncated"], "refused", "refused"),
        (["truncated"], "truncated", "truncated"),
        ([1, NA, NA], NA, NA),
        ([1, NA], 1.0, 1.0),
        ([1, 0, NA], 0.0, 0.5),
        ([NA, "judge_error"], NA, NA),
    ],
)
def test_rules(votes: list, majority: float | str, mean: float | str) -> None:
    for rule, expected in (("majority", majority), ("mean", mean)):
        (result,) = combine(REQUEST, [ballot(v, f"j{i}") for i, v in enumerate(votes)], rule).results
        got = result.value if result.status == "scored" else NA if result.status == NA else result.reason
        assert got == (pytest.approx(expected) if isinstance(expected, float) else expected)
        assert [v.judge for v in result.votes] == [f"j{i}" for i in range(len(votes))]


@given(st.lists(st.sampled_from([0.0, 0.2, 0.5, 1.0]), min_size=1, max_size=9))
def test_a_majority_always_wins_and_order_does_not_matter(values: list[float]) -> None:
    decide = lambda vs: combine(REQUEST, [ballot(v) for v in vs]).results[0].value  # noqa: E731
    for value in set(values):
        if values.count(value) * 2 > len(values):
            assert decide(values) == value
    assert decide(values) == decide(sorted(values)) == decide(values[::-1])
    assert decide(values) in values


def test_usage_and_disagreement_are_reported() -> None:
    reply = combine(REQUEST, [ballot(1, "a"), ballot(0, "b"), ballot(0, "c")])
    assert reply.usage == Usage(3, 30, 15, pytest.approx(0.03))
    assert reply.warnings == ("S3: votes differ on S3 (1, 0, 0)",)
    assert pairwise_agreement(reply.results) == pytest.approx(1 / 3)
    assert pairwise_agreement(combine(REQUEST, [ballot(1)]).results) is None


async def test_a_panel_over_http_with_the_heuristic_judge(judge_server) -> None:
    members = [ApiJudge(name, judge_server.url, retry=Retry(1)) for name in ("good", "lowest")]
    panel = Panel([*members, HeuristicJudge()])
    reply = await panel.judge(REQUEST)
    (result,) = reply.results
    assert [v.judge for v in result.votes] == ["good", "lowest", "heuristic"]
    assert (panel.name, panel.members) == ("panel", ("good", "lowest", "heuristic"))
    assert judge_server.count == 2


async def test_a_member_that_cannot_work_loses_its_vote(judge_server) -> None:
    good = ApiJudge("good", judge_server.url)
    dead = ApiJudge("401", judge_server.url)
    reply = await Panel([good, dead]).judge(REQUEST)
    (result,) = reply.results
    assert (result.value, [v.reason for v in result.votes]) == (1.0, [None, "judge_error"])
    assert any("refused the credentials" in w for w in reply.warnings)
    with pytest.raises(JudgeError):
        await Panel([dead, dead]).judge(REQUEST)


async def test_samples_get_their_own_number(judge_server) -> None:
    judge = ApiJudge("good", judge_server.url, temperature=1.0, seed=5)
    (result,) = (await Panel([judge], samples=3).judge(REQUEST)).results
    assert [v.sample for v in result.votes] == [0, 1, 2]
    assert sorted(b["seed"] for b in judge_server.requests) == [5, 6, 7]


def test_identity_covers_members_and_rule() -> None:
    a, b = ApiJudge("a"), ApiJudge("b", temperature=1.0)
    assert dict(Panel([a, b]).parameters) != dict(Panel([a, b], rule="mean").parameters)
    assert Panel([a, b]).parameters["1.b.temperature"] == 1.0
    assert Panel([a]).evidence_sha256(REQUEST) != a.evidence_sha256(REQUEST)
    assert Panel([HeuristicJudge()]).prompt_sha256 is None


@pytest.mark.parametrize("options", [{"judges": []}, {"judges": [1], "rule": "max"}, {"judges": [1], "samples": 0}])
def test_misuse(options: dict) -> None:
    with pytest.raises(ConfigError):
        Panel(**options)
