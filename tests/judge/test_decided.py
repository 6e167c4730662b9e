"""Criteria that facts decide: not asked, not paid for, and not to be denied, met or not met."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest
from ambjudge.analysis.statistics.raters import judge_pairs
from ambjudge.analysis.tables.cohorts import cohort
from ambjudge.judge.card.fields import Policy
from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.judge.card.verify import parse_card, verify
from ambjudge.judge.engine import judge_run, make_scorecard, prepare
from ambjudge.judge.facts.decided import decode, encode
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.judges.api.transport import Retry
from ambjudge.judge.judges.panel import Panel, Samples
from ambjudge.judge.judges.rules import RulesJudge, bindings
from ambjudge.judge.questions.items import QuestionSet
from ambjudge.judge.rejudge.staleness import plan_rejudge
from ambjudge.judge.scope import Scope
from ambjudge.judge.session import ScoreOptions, run_session
from ambjudge.judge.store import Store
from ambjudge.rubrics.load import load_rubric
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.load import load_run
from conversations import SUBMIT, bash, converse, python

DATA = Path(__file__).parents[1] / "data"
RECORDED = DATA / "recorded"
RUNS = ("bccd-lite-04", "crc-lite-01", "crc-std-01", "kidney-lite-01")
ALL = QuestionSet(ask_all=True)
STRICT = Policy(strict_evidence=True)
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\2\0\0\0\1\x08\0\0\0\0" + zlib.crc32(b"IHDR").to_bytes(
    4, "big"
)
NO_PACKAGE = (
    'Traceback (most recent call last):\n  File "run.py", line 1\nModuleNotFoundError: No module'
    " named 'monai'"
)
WRITE_REPORT = python("open('/workspace/agents_outputs/case_1/report.txt', 'w').write(text)", "ok")


def judge_of(server, behaviour: str) -> ApiJudge:
    """A model that always plays this behaviour of the loopback server."""
    return ApiJudge(behaviour, server.url, retry=Retry(attempts=1), images=False)


def by_facts(card: ScoreCard) -> dict[str, float | None]:
    return {
        result.id: result.value
        for stage in card.stages.values()
        for result in stage.criteria
        if result.by == "facts"
    }


def results_of(card: ScoreCard) -> dict:
    return {result.id: result for stage in card.stages.values() for result in stage.criteria}


def denied(card: ScoreCard) -> set[str]:
    """Criteria, not codes, whose verdict a fact contradicts."""
    return {c.criterion for c in card.contradictions if not c.criterion.startswith("E")}


def asked(server, loopback) -> set[str]:
    """Every item that the server was asked about."""
    return {name for body in server.requests for name in loopback.entries_of(body)}


# One small run a way in which facts decide.


def everything_there(folder: Path, track: str | None) -> Run:
    files = {"case_1/report.txt": "Findings: none."} if track == "report_generation" else {}
    run = converse(
        folder,
        bash("ls /data", "scan"),
        WRITE_REPORT,
        SUBMIT,
        outputs=files,
        track=track,
        tier="pro",
    )
    plan = folder / "outputs" / "plan"
    plan.mkdir(parents=True)
    (plan / "plan.md").write_text("# Plan\nRead, try one case, then all.")
    (plan / "plan.png").write_bytes(PNG)
    return load_run(run.folder)


def nothing_there(folder: Path, track: str | None) -> Run:
    return converse(folder, "First a plan: plan.md, plan.png.", SUBMIT, track=track, tier="pro")


def everything_failed(folder: Path, track: str | None) -> Run:
    failed = [bash("python3 run.py", NO_PACKAGE, 1)] * 6
    return converse(folder, *failed, SUBMIT, track=track, tier="pro")


def placeholders(folder: Path, track: str | None) -> Run:
    return load_run(DATA / "constructed" / "c" / "runs" / "derm-std-01")


IMAGES = (
    "segmentation",
    "segmentation-multiclass",
    "detection",
    "enhancement",
    "classification",
    "synthesis",
)
NOT_SET_UP = dict.fromkeys(("S2a", "S2b", "S2c", "S2d", "S2e", "S3"), 0.0)
NOT_REPORTED = dict.fromkeys(
    ("S2a", "S2b", "S2c", "S2d", "S2e", "S2f", "S3a", "S3b", "S3c", "S3d", "S3e", "S3f"), 0.0
)
CASES = {
    **{(id, everything_there): {"S1a": 1.0, "S1e": 1.0, "S2d": 1.0} for id in IMAGES},
    **{(id, nothing_there): {"S1a": 0.0, "S1e": 0.0, **NOT_SET_UP} for id in IMAGES},
    **{(id, everything_failed): {"S1a": 0.0, "S1e": 0.0, "S2c": 0.0, "S2d": 0.0} for id in IMAGES},
    ("vqa", everything_there): {"S1a": 1.0, "S2d": 1.0},
    ("vqa", nothing_there): {"S1a": 0.0, **NOT_SET_UP},
    ("vqa", everything_failed): {"S1a": 0.0, "S2c": 0.0, "S2d": 0.0},
    ("vqa", placeholders): {"S1a": 1.0, "S3": 0.0},
    ("report_generation", everything_there): {"S1a": 1.0, "S1i": 1.0, "S2e": 1.0},
    ("report_generation", nothing_there): {"S1a": 0.0, "S1i": 0.0, **NOT_REPORTED},
    ("workflow", nothing_there): {"S2b": 0.0, "S2c": 0.0, "S3": 0.0},
    ("workflow", everything_failed): {},
}
"""(rubric, run) -> what facts prove of its criteria."""


def test_the_cases_cover_all_that_facts_decide() -> None:
    """Whoever lets facts decide more gives the run that shows it."""
    declared = {
        (rubric, bound.binding.criterion, value)
        for bound in bindings()
        for rubric in bound.binding.rubrics
        for value in bound.decides
    }
    shown = {
        (rubric, criterion, value)
        for (rubric, _), proven in CASES.items()
        for criterion, value in proven.items()
    }
    assert shown == declared


@pytest.mark.parametrize(
    ("rubric", "made", "proven"),
    [(rubric, made, proven) for (rubric, made), proven in CASES.items()],
    ids=[f"{rubric}-{made.__name__}" for rubric, made in CASES],
)
async def test_what_facts_decide_is_not_asked_and_not_denied(
    tmp_path, judge_server, loopback, rubric, made, proven
) -> None:
    run = made(tmp_path, load_rubric(rubric).track)
    card = await judge_run(run, judge_of(judge_server, "good"), rubric=rubric)
    decided = by_facts(card)
    assert proven.items() <= decided.items()
    required = {c.id: c.requires for c in load_rubric(rubric).criteria()}
    assert all(
        decided[id] == 0 and any(decided.get(other) == 0 for other in required[id])
        for id in decided.keys() - proven.keys()
    ), "beside these, only what requires one that is proven not met"
    assert not asked(judge_server, loopback) & decided.keys()
    assert denied(card) & decided.keys() == set()
    facts = {fact.id: fact.text for fact in card.facts}
    for id in decided:
        named = [
            fact
            for fact, text in facts.items()
            if f"{fact}: {text}" in results_of(card)[id].rationale
        ]
        assert len(named) == 1, "the reason is one fact of the scorecard"
    assert verify(card, load_rubric(rubric)) == []
    for behaviour, value in (("lowest", 1.0), ("good", 0.0)):
        against = {id for id, fact in proven.items() if fact == value}
        judge = judge_of(judge_server, behaviour)
        all_asked = await judge_run(run, judge, rubric=rubric, questions=ALL)
        assert by_facts(all_asked) == {}
        assert denied(all_asked) & proven.keys() == against
        assert asked(judge_server, loopback) >= proven.keys()
        strict = await judge_run(run, judge, rubric=rubric, questions=ALL, policy=STRICT)
        results = results_of(strict)
        assert {results[id].reason for id in against} <= {"no_evidence"}
        assert {results[id].value for id in against} <= {None}
        assert verify(strict, load_rubric(rubric)) == []


# What is no proof.


def with_plan(folder: Path, run: Run, name: str, content: bytes) -> Run:
    (folder / "outputs" / "plan").mkdir(parents=True, exist_ok=True)
    (folder / "outputs" / "plan" / name).write_bytes(content)
    return load_run(run.folder)


def seg(folder: Path, *turns) -> Run:
    return converse(folder, *turns, SUBMIT, track="segmentation", tier="pro")


def report_by_tool(folder: Path) -> Run:
    """A report that a tool wrote; the code beside it writes none."""
    path = "/workspace/agents_outputs/case_1/report.txt"
    arguments = json.dumps({"file_path": path, "content": "Findings: none."})
    run = converse(
        folder,
        WRITE_REPORT,
        SUBMIT,
        outputs={"case_1/report.txt": "Findings: none."},
        track="report_generation",
        tier="pro",
    )
    data = json.loads(run.path.read_text())
    function = {"name": "write_file", "arguments": arguments}
    data["messages"] += [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "w", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "w", "content": "written"},
    ]
    run.path.write_text(json.dumps(data))
    return load_run(run.folder)


UNPROVEN = {
    "a plan that a script may have written": (
        lambda f: seg(f, bash("python3 make_plan.py --out plan.md", "done")),
        "S1a",
    ),
    "a plan in a call that was never answered": (
        lambda f: seg(f, bash("cp draft plan.md", None)),
        "S1a",
    ),
    "an empty plan": (lambda f: with_plan(f, seg(f, bash("ls")), "plan.md", b" \n"), "S1a"),
    "a plan of a call without an exit code": (
        lambda f: seg(f, ("bash", "cat > plan.md <<'EOF'\n# Plan\nEOF", {"output": ""})),
        "S1a",
    ),
    "a picture that is none": (
        lambda f: with_plan(f, seg(f, bash("touch plan.png")), "plan.png", b"one step, then all"),
        "S1e",
    ),
    "a picture without pixels": (
        lambda f: with_plan(f, seg(f, bash("ls")), "plan.png", PNG[:16] + bytes(8)),
        "S1e",
    ),
    "a picture that code says it saves": (
        lambda f: seg(f, python("fig.savefig('plan.png')", "saved")),
        "S1e",
    ),
    "one execution that worked": (
        lambda f: seg(f, bash("echo ok", "ok"), *[bash("python3 run.py", NO_PACKAGE, 1)] * 6),
        "S2c",
    ),
    "six failures of the agent's own code": (
        lambda f: seg(f, bash("echo ok", "ok"), *[bash("python3 run.py", "KeyError: 'a'", 1)] * 6),
        "S2d",
    ),
    "failures that nobody counted": (
        lambda f: seg(f, bash("echo ok"), *[("bash", "pip install x", {"output": "?"})] * 6),
        "S2d",
    ),
    "a report that a tool wrote": (report_by_tool, "S2e"),
    "a model that code names": (
        lambda f: seg(f, python("model = load_model('w.pt')\nprint(model(x).shape)", "(1, 2)")),
        "S2e",
    ),
}


@pytest.mark.parametrize(("made", "criterion"), UNPROVEN.values(), ids=UNPROVEN)
async def test_what_may_be_otherwise_is_asked(
    tmp_path, judge_server, loopback, made, criterion
) -> None:
    run = made(tmp_path)
    card = await judge_run(run, judge_of(judge_server, "lowest"))
    assert criterion not in by_facts(card)
    assert criterion in asked(judge_server, loopback)
    assert criterion not in denied(card)


def test_an_edited_criterion_is_left_to_the_judge() -> None:
    """Facts are bound to the words that somebody read them against."""
    run, rubric = load_run(RECORDED / "runs" / "kidney-lite-01"), load_rubric("segmentation")
    first, *others = rubric.stages["S1"].criteria
    edited = first.model_copy(update={"text": "Did the agent sing about bananas?"})
    stage = rubric.stages["S1"].model_copy(update={"criteria": (edited, *others)})
    ready = prepare(
        run, rubric=rubric.model_copy(update={"stages": {**rubric.stages, "S1": stage}})
    )
    assert "S1a" not in ready.proven()
    assert "S1a" in prepare(run, rubric=rubric).proven()


# Real runs.


@pytest.fixture(scope="module")
def recorded() -> list[Run]:
    return [load_run(path) for path in sorted((RECORDED / "runs").iterdir())]


def test_no_proof_differs_from_the_labels(recorded) -> None:
    proven = 0
    for run in recorded:
        label = RECORDED / "labels" / "gold" / f"{run.folder.name}.json"
        gold = json.loads(label.read_text("utf-8"))["criteria"]
        rulings = prepare(run).proven()
        assert {id: gold[id] for id in rulings} == {id: r.value for id, r in rulings.items()}
        proven += len(rulings)
    assert proven >= 30


async def test_a_judge_that_grades_everything_0(recorded, judge_server, loopback) -> None:
    """It is asked less, it pays less, and where it is asked it denies facts on every run."""
    judge = judge_of(judge_server, "lowest")
    denials = 0
    for run in recorded:
        judge_server.requests.clear()
        card = await judge_run(run, judge)
        decided = by_facts(card)
        assert not asked(judge_server, loopback) & decided.keys()
        assert denied(card) == set()
        all_asked = await judge_run(run, judge, questions=ALL)
        assert denied(all_asked) == {id for id, value in decided.items() if value == 1}
        assert card.judge.input_tokens < all_asked.judge.input_tokens
        assert card.judge.calls <= all_asked.judge.calls
        strict = await judge_run(run, judge, questions=ALL, policy=STRICT)
        if not run.status.disqualified:
            assert strict.stages["S2"].bounds[1] > all_asked.stages["S2"].bounds[1]
            assert card.agentic > all_asked.agentic
        denials += len(denied(all_asked))
    assert denials == 29


async def test_a_stage_that_facts_decide_as_a_whole_is_not_asked(judge_server, loopback) -> None:
    run = load_run(RECORDED / "runs" / "crc-lite-01")
    card = await judge_run(run, judge_of(judge_server, "good"))
    assert judge_server.count == card.judge.calls == 3, "S2, S3 and the codes"
    assert by_facts(card) == {"S1a": 0.0, "S1b": 0.0, "S1c": 0.0, "S2d": 1.0}
    assert card.stages["S1"].score == 0.5, "three are credited in lite"
    assert card.stages["S1"].bounds == (0.5, 0.5)


async def test_members_of_a_panel_and_samples_are_not_asked_either(judge_server, loopback) -> None:
    run = load_run(RECORDED / "runs" / "kidney-lite-01")
    panel = Panel([judge_of(judge_server, "lowest"), judge_of(judge_server, "good"), RulesJudge()])
    card = await judge_run(run, panel)
    assert by_facts(card) == {"S1a": 1.0, "S2d": 1.0}
    assert all(results_of(card)[id].votes == () for id in ("S1a", "S2d"))
    assert not asked(judge_server, loopback) & {"S1a", "S2d"}
    samples = Samples(ApiJudge("lowest", judge_server.url, temperature=0.5, images=False), 3)
    assert by_facts(await judge_run(run, samples)) == {"S1a": 1.0, "S2d": 1.0}
    assert not asked(judge_server, loopback) & {"S1a", "S2d"}


def test_the_rules_judge_says_the_same_and_is_nobody_else(recorded) -> None:
    for run in recorded:
        card = make_scorecard(run)
        assert by_facts(card) == {}
        results = results_of(card)
        for id, ruling in prepare(run).proven().items():
            assert (results[id].value, results[id].status) == (ruling.value, "scored")
        assert denied(card) == set()


def test_verify_knows_what_facts_may_decide() -> None:
    run, rubric = load_run(RECORDED / "runs" / "kidney-lite-01"), load_rubric("segmentation")
    data = make_scorecard(run, rubric=rubric).to_dict()
    _, first = data["stages"]["S1"]["criteria"][:2]
    first |= {"status": "scored", "value": 1.0, "by": "facts", "rationale": "F1: So it is."}
    differences = [str(d) for d in verify(parse_card(data, "card"), rubric)]
    assert any(line.startswith("S1b.by: stated facts") for line in differences)
    assert any(line.startswith("S1b.rationale") for line in differences)


# Store, plans and forecasts.


async def score(store: Store, runs: list[Path], judge, questions: QuestionSet) -> list[ScoreCard]:
    cards: list = []
    options = ScoreOptions(questions=questions)
    await run_session(
        runs, judge, options, lambda o: cards.append(o.card), store=store, signals=False
    )
    return cards


async def test_a_plan_makes_the_calls_that_it_forecasts(
    judge_server, loopback, store: Store, runs: list[Path]
) -> None:
    judge = judge_of(judge_server, "lowest")
    forecast = plan_rejudge(store, runs, judge, Scope())
    everything = plan_rejudge(store, runs, judge, Scope(questions=ALL))
    assert everything.calls == 4 * len(runs)
    assert forecast.calls == everything.calls - 2, "two runs have no plan: S1 is decided"
    cards = await score(store, runs, judge, QuestionSet())
    assert judge_server.count == forecast.calls
    decided = sum(len(by_facts(card)) for card in cards)
    assert everything.stale - forecast.stale == decided > 0
    # From the store alone: no run is read, nothing is asked again.
    again = plan_rejudge(store, runs, judge, Scope())
    assert (again.calls, again.read, again.current) == (0, 0, forecast.stale)
    reworded = load_rubric("classification")
    stage = reworded.stages["S1"]
    criteria = tuple(
        c.model_copy(update={"text": f"{c.text} Say why."}) if c.id in ("S1a", "S1c") else c
        for c in stage.criteria
    )
    stages = {**reworded.stages, "S1": stage.model_copy(update={"criteria": criteria})}
    edited = reworded.model_copy(update={"stages": stages, "sha256": "e" * 64})
    after_edit = plan_rejudge(store, runs, judge, Scope((edited,)))
    assert after_edit.read == 0
    assert {need.path.parts[-3]: set(need.reasons) for need in after_edit.needs} == {
        "crc-lite-01": {"S1a", "S1b", "S1c"},  # the edited S1a is no longer a fact's
        "crc-std-01": {"S1a", "S1c"},
    }


async def test_asking_all_asks_what_facts_decided_and_nothing_twice(
    judge_server, loopback, store: Store, runs: list[Path]
) -> None:
    judge = judge_of(judge_server, "lowest")
    cards = await score(store, runs, judge, QuestionSet())
    decided = sum(len(by_facts(card)) for card in cards)
    plan = plan_rejudge(store, runs, judge, Scope(questions=ALL))
    assert plan.stale == decided
    judge_server.requests.clear()
    before = judge_server.count
    all_asked = await score(store, runs, judge, ALL)
    assert judge_server.count - before == plan.calls
    assert asked(judge_server, loopback) == {id for card in cards for id in by_facts(card)}
    assert all(by_facts(card) == {} for card in all_asked)
    assert plan_rejudge(store, runs, judge, Scope(questions=ALL)).calls == 0
    before = judge_server.count
    again = await score(store, runs, judge, QuestionSet())
    assert [by_facts(card) for card in again] == [by_facts(card) for card in cards]
    assert [card.agentic for card in again] == [card.agentic for card in cards]
    assert judge_server.count == before


def test_what_the_store_remembers_of_a_run(recorded) -> None:
    for run in recorded:
        values = prepare(run).proven_values
        assert values
        assert decode(encode(values)) == values
        assert len(encode(values)) <= 64


# Agreement.


async def test_what_facts_decided_is_no_agreement_of_judges(judge_server) -> None:
    runs = [load_run(RECORDED / "runs" / name) for name in RUNS[2:]]
    for questions, expected in ((QuestionSet(), set()), (ALL, {"S1a", "S2d"})):
        cards = [
            await judge_run(run, judge_of(judge_server, behaviour), questions=questions)
            for run in runs
            for behaviour in ("good", "lowest")
        ]
        table = cohort(cards)
        pairs = judge_pairs(table)
        assert set(pairs["item"]) & {"S1a", "S2d"} == expected
        assert {"S2a", "S3"} <= set(pairs["item"])
        by = dict(table.criteria.filter(criterion="S2d").group_by("by").len().iter_rows())
        assert by.keys() == {None if questions is ALL else "facts"}
