"""Which scorecard of a run counts: a table of what can happen to a run, and properties."""

from __future__ import annotations

from pathlib import Path

import pytest
from ambjudge.errors import InputError
from ambjudge.judge.card.choice import ALL_JUDGES, CardChoice, CardHead, RubricName, choose
from hypothesis import given
from hypothesis import strategies as st


def head(
    run: str = "run-1",
    judge: str = "rules",
    rubric: str = "vqa",
    version: str = "1.1",
    *,
    folder: str = "runs",
    content: str | None = None,
    track: str = "vqa",
) -> CardHead:
    """The head of a scorecard; `content` stands for the bytes of the run."""
    return CardHead(
        run_id=run,
        path=f"{folder}/{run}/process/conversation.json",
        sha256=run if content is None else content,
        agent="elm",
        task="slake",
        tier="lite",
        repeat=1,
        track=track,
        judge=judge,
        rubric=rubric,
        version=version,
    )


RULES = [head("run-1"), head("run-2"), head("run-3")]
MODEL = [head("run-1", "m"), head("run-2", "m"), head("run-3", "m")]


@pytest.mark.parametrize(
    ("heads", "choice", "numbers"),
    [
        pytest.param([], CardChoice(), [], id="nothing"),
        pytest.param(RULES, CardChoice(), [0, 1, 2], id="each run once"),
        pytest.param([*RULES, head("run-2")], CardChoice(), [0, 2, 3], id="scored again"),
        pytest.param(
            [*RULES, head("run-2", rubric="own", version="2.0")],
            CardChoice(),
            [0, 2, 3],
            id="judged by a rubric of another id",
        ),
        pytest.param([*RULES, *MODEL[:2]], CardChoice(), [0, 1, 2], id="a model judged fewer runs"),
        pytest.param([*RULES, *MODEL], CardChoice(), [3, 4, 5], id="a model judged as many"),
        pytest.param([*RULES, *MODEL], CardChoice("rules"), [0, 1, 2], id="the judge is named"),
        pytest.param([*RULES, *MODEL[:1]], CardChoice(ALL_JUDGES), [0, 1, 2, 3], id="all judges"),
        pytest.param(
            [head(version="1.0"), head(), head("run-2")],
            CardChoice(rubrics=(RubricName("vqa", "1.0"),)),
            [0],
            id="a version of a rubric is named",
        ),
        pytest.param(
            [head(version="1.0"), head(), head("run-2", rubric="segmentation", track="other")],
            CardChoice(rubrics=(RubricName("vqa", "1.0"),)),
            [0, 2],
            id="runs of other tracks keep their rubric",
        ),
        pytest.param(
            [head(version="1.0"), head(version="1.1"), head(version="1.1")],
            CardChoice(versions=True),
            [0, 2],
            id="each version of a rubric",
        ),
        pytest.param(
            [head(folder="old"), head(folder="new")], CardChoice(), [1], id="moved or copied"
        ),
        pytest.param(
            [head(content="a"), head(content="a and more")], CardChoice(), [1], id="grown"
        ),
        pytest.param(
            [head(folder="a", content="a"), head(folder="b", content="b")],
            CardChoice(),
            [0, 1],
            id="two runs of one name",
        ),
        pytest.param(
            [head(content=""), head("run-2", content="")],
            CardChoice(),
            [0, 1],
            id="bytes unknown",
        ),
    ],
)
def test_a_run_counts_once(heads: list[CardHead], choice: CardChoice, numbers: list[int]) -> None:
    assert list(choose(heads, choice).numbers) == numbers


def test_of_copies_that_are_there_the_first_counts(tmp_path: Path) -> None:
    """Labels know a run by the name that it had first."""
    for folder in ("runs", "copies"):
        file = tmp_path / folder / "run-1" / "process" / "conversation.json"
        file.parent.mkdir(parents=True)
        file.touch()
    original = head(folder=f"{tmp_path}/runs")
    copy = head(folder=f"{tmp_path}/copies")
    selection = choose([original, copy])
    assert (selection.numbers, selection.copies) == ((0,), 1)
    assert choose([original, copy, original]).numbers == (2,)
    (tmp_path / "runs" / "run-1" / "process" / "conversation.json").unlink()
    assert choose([original, copy]).numbers == (1,)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (CardChoice("gpt"), "no scorecards of judge 'gpt' (choose from m, rules)"),
        (
            CardChoice(rubrics=(RubricName("own", "2.0"),)),
            "no scorecards by rubric own@2.0 (choose from vqa@1.1)",
        ),
    ],
    ids=["judge", "rubric"],
)
def test_what_is_not_there_is_an_error(choice: CardChoice, message: str) -> None:
    with pytest.raises(InputError) as error:
        choose([*RULES, *MODEL], choice)
    assert message in str(error.value)


def test_the_sentence_says_what_counts_and_what_does_not() -> None:
    assert choose(RULES).sentence() == ""
    own = head("run-1", "m", "own", "2.0")
    assert choose([*RULES, *MODEL[:2], own, *MODEL[2:]]).sentence() == (
        "scorecards of judge m, rubrics vqa 1.1 (2), own 2.0 (1);"
        " left out: 3 of other judges, 1 outdated"
    )
    assert (
        choose([*RULES, MODEL[0]], CardChoice("m"))
        .sentence()
        .endswith("left out: 3 of other judges (2 runs that m did not judge)")
    )
    mixed = choose([head("run-1", version="1.0"), head("run-2")]).sentence()
    assert mixed == "scorecards of judge rules, rubrics vqa 1.0 (1), vqa 1.1 (1)"


HEADS = st.builds(
    head,
    st.sampled_from(["run-1", "run-2", "run-3"]),
    st.sampled_from(["rules", "m", "n"]),
    st.sampled_from(["vqa", "own"]),
    st.sampled_from(["1", "2"]),
    folder=st.sampled_from(["a", "b"]),
    content=st.sampled_from(["x", "y", None]),
)


@given(st.lists(HEADS, max_size=12), st.booleans())
def test_every_scorecard_is_counted_or_left_out_for_a_reason(
    heads: list[CardHead], is_all: bool
) -> None:
    selection = choose(heads, CardChoice(ALL_JUDGES if is_all else None))
    left_out = selection.outdated + selection.copies + len(selection.other_judges)
    assert len(selection.numbers) + left_out == len(heads)
    assert not set(selection.numbers) & set(selection.other_judges)
    judges = {heads[number].judge for number in selection.numbers}
    assert set(selection.judges) == judges
    assert is_all or len(judges) <= 1


@given(st.lists(HEADS, min_size=1, max_size=12))
def test_scoring_a_run_again_changes_nothing_but_that_run(heads: list[CardHead]) -> None:
    """The newest scorecard of a run counts, and the number of runs stays."""
    before = choose(heads, CardChoice(ALL_JUDGES))
    again = heads[-1]._replace(version="3")
    after = choose([*heads, again], CardChoice(ALL_JUDGES))
    assert len(after.numbers) == len(before.numbers)
    assert len(heads) in after.numbers
