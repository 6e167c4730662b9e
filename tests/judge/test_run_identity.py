"""Which scorecards are of one run, whatever happens to files between them."""

from __future__ import annotations

import pytest
from ambjudge.judge.card.run_identity import RunState, identities
from hypothesis import given
from hypothesis import strategies as st

CELL = ("elm", "slake", "lite", 1)


def state(path: str, sha256: str | None, agent: str = "elm", run_id: str | None = None) -> RunState:
    return RunState(path, sha256, path if run_id is None else run_id, (agent, *CELL[1:]))


@pytest.mark.parametrize(
    ("states", "bytes_now", "runs"),
    [
        pytest.param("P:x P:y", {"P": "y"}, "aa", id="grown"),
        pytest.param("P:x P:y", {"P": "z"}, "aa", id="grown twice, the second time unseen"),
        pytest.param("P:x Q:x", {"P": None, "Q": "x"}, "aa", id="moved"),
        pytest.param("P:x Q:x", {"P": "x", "Q": "x"}, "aa", id="copied"),
        pytest.param("P:x Q:x Q:y", {"P": "x", "Q": "y"}, "aab", id="a copy went on"),
        pytest.param("P:x Q:x P:y Q:y", {"P": "y", "Q": "y"}, "aaaa", id="both went on alike"),
        pytest.param("P:x Q:x P:y Q:z", {"P": "y", "Q": "z"}, "abab", id="both went on"),
        pytest.param("P:x Q:x Q:y", {"P": None, "Q": "y"}, "aaa", id="moved, then grown"),
        pytest.param("P:x Q:x P:y", {"P": "y", "Q": "x"}, "aab", id="another run at its place"),
        pytest.param("P:x Q:x P:y", {"P": None, "Q": "x"}, "aab", id="which is gone, too"),
        pytest.param("P:x Q:y", {"P": "y", "Q": "y"}, "aa", id="one became the other"),
        pytest.param("P:x P:y P:x", {"P": "x"}, "aaa", id="back to what it was"),
        pytest.param("P:x P:y", {}, "aa", id="on another machine"),
        pytest.param("P:x P:y Q:x", {"P": None, "Q": None}, "aab", id="all of it gone"),
        pytest.param("P:x:elm P:y:oak", {"P": "y"}, "ab", id="another agent's"),
        pytest.param("P:- Q:- P:-", {}, "aba", id="bytes unknown"),
    ],
)
def test_what_is_one_run(states: str, bytes_now: dict[str, str | None], runs: str) -> None:
    """`PATH:BYTES` from the oldest to the newest; equal letters stand for one run."""
    seen = []
    for text in states.split():
        path, sha256, *agent = text.split(":")
        seen.append(state(f"/{path}", None if sha256 == "-" else sha256, *agent))
    identified = identities(seen, {f"/{path}": sha256 for path, sha256 in bytes_now.items()})
    letters = {identity: chr(97 + n) for n, identity in enumerate(dict.fromkeys(identified))}
    assert "".join(letters[identity] for identity in identified) == runs


STATES = st.lists(
    st.builds(state, st.sampled_from(["/P", "/Q", "/R"]), st.sampled_from("xyz")), max_size=8
)
NOW = st.fixed_dictionaries({p: st.sampled_from([None, *"xyz"]) for p in ("/P", "/Q", "/R")})


@given(STATES, NOW, st.data())
def test_what_is_on_the_disk_may_be_scored_without_any_change(
    states: list[RunState], bytes_now: dict[str, str | None], data: st.DataObject
) -> None:
    """Scorecards of what is there now tell nothing new of the older ones."""
    there = [state(path, sha256) for path, sha256 in bytes_now.items() if sha256]
    known = {seen.path for seen in states}
    there = [seen for seen in there if seen.path in known]
    before = identities(states, bytes_now)
    more = data.draw(st.lists(st.sampled_from(there), max_size=3)) if there else []
    assert identities([*states, *more], bytes_now)[: len(states)] == before


@given(STATES, NOW)
def test_a_part_of_the_scorecards_that_are_identified_stays_so(
    states: list[RunState], bytes_now: dict[str, str | None]
) -> None:
    known = identities(states, bytes_now)
    again = [seen._replace(identity=run) for seen, run in zip(states, known, strict=True)]
    assert identities(again[1::2], {}) == known[1::2]
