"""A state machine over whole commands: whatever is done to runs, rubrics, judges and stores, in
whatever order, a run counts once in every place, nothing is asked twice and nothing is lost.

`tests/journeys/test_state_machine.py` runs some steps, `benchmarks/journeys.py` many.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar

import ambjudge
import polars as pl
from cohort_places import MEDIUM, PLACES, QUICK, Desk, Numbers, assert_same_numbers
from hypothesis import HealthCheck, Phase, assume, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    get_state_machine_test,
    initialize,
    invariant,
    precondition,
    rule,
)
from workshop import JUDGES, Workshop

AGENTS = ("elm", "oak")
TASKS = ("kidney-seg-task", "liver-seg-task")
WORDS = ("Was the input read before the network ran?", "Was an input looked at?")
PICK = st.integers(0, 99)
"""Stands for one of what there is, modulo its number."""


def step(**arguments: Any) -> Callable[..., Any]:
    """A rule whose steps are noted in the machine's log."""

    def noted(function: Callable[..., None]) -> Any:
        @wraps(function)
        def run(machine: CohortMachine, **values: Any) -> None:
            machine.now = None
            machine.log.append(f"{function.__name__}({', '.join(map(str, values.values()))})")
            function(machine, **values)

        return rule(**arguments)(run)

    return noted


class CohortMachine(RuleBasedStateMachine):
    """What people do to a folder of runs."""

    last_places = PLACES
    """Read after the last step."""
    kills = False
    """Whether processes are killed, each of which takes seconds to start."""
    log: ClassVar[list[str]] = []
    """The steps that were made."""

    def __init__(self) -> None:
        super().__init__()
        self.now: Desk | None = None
        """What commands say after the latest step."""
        self.shop = Workshop(Path(tempfile.mkdtemp()) / "shop")
        self.rubric: Path | None = None
        self.rubrics: list[Path] = []
        self.names = 0
        self.scored_stores: set[Path | None] = set()
        self.judged: set[tuple[Path | None, str]] = set()

    def teardown(self) -> None:
        try:
            if self._can_be_read():
                assert_same_numbers(self.desk, self.last_places)
        finally:
            self.shop.close()

    # Runs

    @initialize(number=st.integers(0, 1_000_000))
    def begin(self, number: int) -> None:
        # Hypothesis begins with the simplest sequence, which repeats one rule.
        assume(number)
        self.log.clear()
        for agent in AGENTS:
            for task in TASKS:
                self.shop.add_run(self._name(), agent=agent, task=task)
        self.shop.score()
        self.scored_stores.add(None)

    @step(agent=st.sampled_from(AGENTS), task=st.sampled_from(TASKS), share=st.integers(0, 20))
    def a_run_is_added(self, agent: str, task: str, share: int) -> None:
        assume(len(self.shop.run_folders()) < 9)
        self.shop.add_run(self._name(), agent=agent, task=task, task_score=share / 20)

    @step(name=st.sampled_from(["run-a", "run-b"]))
    def two_agents_have_runs_of_one_name(self, name: str) -> None:
        assume(len(self.shop.run_folders()) < 9)
        for agent in AGENTS:
            self._add_run_at(f"{agent}/{name}", agent)

    @step(pick=PICK)
    def a_run_is_copied(self, pick: int) -> None:
        assume(len(self.shop.run_folders()) < 9)
        self.shop.copy(self._run(pick), self._name())

    @step(pick=PICK)
    def a_run_is_moved(self, pick: int) -> None:
        self.shop.move(self._run(pick), self._name())

    @step(pick=PICK)
    def a_run_takes_the_place_of_one_that_was_moved(self, pick: int) -> None:
        assume(len(self.shop.run_folders()) < 9)
        folder = self._run(pick)
        self.shop.move(folder, self._name())
        self.shop.add_run(str(folder.relative_to(self.shop.runs)))

    @step(pick=PICK)
    def a_run_grows(self, pick: int) -> None:
        self.shop.grow(self._run(pick))

    @step(pick=PICK)
    def a_run_is_deleted(self, pick: int) -> None:
        assume(len(self.shop.run_folders()) > 3)
        self.shop.delete(self._run(pick))

    # Judges

    @step()
    def rules_score(self) -> None:
        self.shop.score("rules", *self._rubric_flags())
        self._note_scored("rules")

    @step(judge=st.sampled_from(JUDGES))
    def a_model_scores(self, judge: str) -> None:
        self.shop.score(judge, *self._rubric_flags())
        self._note_scored(judge)

    @step(judge=st.sampled_from(JUDGES), answers=st.integers(0, 9))
    def a_model_is_cut_off_while_scoring(self, judge: str, answers: int) -> None:
        self.shop.fail_after(answers)
        self.shop.score(JUDGES[0], *self._rubric_flags(), code=(0, 1, 3))
        self.shop.recover()
        if (self.shop.store or self.shop.folder / ".ambjudge" / "ambjudge.db").exists():
            self._note_scored(JUDGES[0])

    @precondition(lambda self: self.kills)
    @step(answers=st.integers(0, 9))
    def a_process_is_killed_while_scoring(self, answers: int) -> None:
        self.shop.kill_while_scoring(answers)
        self.judged.add((self.shop.store, JUDGES[0]))

    @precondition(lambda self: self._judges())
    @step(pick=PICK)
    def a_model_judges_again(self, pick: int) -> None:
        judges = self._judges()
        self.shop.rejudge(judges[pick % len(judges)], *self._rubric_flags())

    @precondition(lambda self: (self.shop.store, JUDGES[0]) in self.judged)
    @step(answers=st.integers(0, 9))
    def a_model_is_cut_off_while_judging_again(self, answers: int) -> None:
        self.shop.fail_after(answers)
        self.shop.rejudge(JUDGES[0], *self._rubric_flags(), code=(0, 1, 3))
        self.shop.recover()

    @step(judge=st.sampled_from(JUDGES), question=st.sampled_from(["Was a plan made?", "Why not?"]))
    def a_question_is_asked(self, judge: str, question: str) -> None:
        self.shop.ask(question, judge)

    @step()
    def another_store_is_used(self) -> None:
        self.shop.store = self.shop.folder / "second.db" if self.shop.store is None else None
        if self.shop.store not in self.scored_stores:
            self.shop.score("rules", *self._rubric_flags())
            self._note_scored("rules")

    # Rubrics

    @step(
        id=st.sampled_from(["own", "other"]),
        version=st.sampled_from(["2.0", "3.0"]),
        words=st.sampled_from(WORDS),
        weight=st.sampled_from([1, 3]),
    )
    def the_rubric_is_edited(self, id: str, version: str, words: str, weight: float) -> None:
        self.rubric = self.shop.rubric(id=id, version=version, words=words, weight=weight)

    @step()
    def the_rubric_that_ships_is_in_force_again(self) -> None:
        self.rubric = None

    # Labels, files

    @step(pick=PICK, value=st.sampled_from([0, 1]))
    def a_run_is_labelled(self, pick: int, value: int) -> None:
        runs = self._counted().sort("run_id")["run_id"]
        label = {"run": runs[pick % len(runs)], "annotator": "a1", "criteria": {"S1a": value}}
        file = self.shop.folder / "label.json"
        file.write_text(_json(label), encoding="utf-8")
        store = self.shop.store or self.shop.folder / ".ambjudge" / "ambjudge.db"
        self.shop.desk().call("label", "import", file, "--store", store)
        flags = ["--labels", store, *self._store_flags()]
        text, err = self.shop.desk().call("agreement", "runs", *flags, code=(0, 2))
        assert text or "nothing to compare" in err, err
        n = re.search(r"^S1a +(\d+)", text, re.MULTILINE)
        assert n is None or int(n[1]) <= len(runs), "agreement counts a run twice"

    @step(agent=st.sampled_from(AGENTS))
    def a_part_is_filtered(self, agent: str) -> None:
        if agent in self._counted()["agent"]:
            numbers = assert_same_numbers(self.shop.desk(where=f"agent={agent}"), self._places())
            assert set(numbers.agents or {}) == {agent}

    @step(pick=PICK)
    def a_judge_is_named(self, pick: int) -> None:
        judges = sorted(self._all_judges()["judge"].unique())
        assert_same_numbers(self.shop.desk(judge=judges[pick % len(judges)]), self._places())

    @step()
    def scorecards_go_to_a_file(self) -> None:
        """A file of scorecards says what the store says."""
        desk = self.shop.desk()
        numbers = assert_same_numbers(desk, QUICK)
        file = self.shop.folder / "cards.jsonl"
        desk.read("export", "--what", "scorecards", "--out", file)
        frame = ambjudge.analysis.frame(file)
        assert frame.height == numbers.n_runs
        in_file = dict(frame.select("path", "overall").iter_rows())
        in_store = dict(desk.cohort.runs.select("path", "overall").iter_rows())
        assert in_file == in_store

    # Invariants

    @invariant()
    def every_place_says_the_same(self) -> None:
        if self._can_be_read():
            assert_same_numbers(self.desk, self._places())

    @invariant()
    def a_run_counts_once(self) -> None:
        if not self._can_be_read():
            return
        runs = self._counted()
        # Another agent's run may stand where one was that is gone.
        assert runs.select("path", "sha256").n_unique() == runs.height
        assert runs.select("sha256", "agent", "task").unique().height == runs.height
        judges = self._all_judges()
        assert judges.select("path", "sha256", "judge").unique().height == judges.height
        assert judges.select("sha256", "agent", "task", "judge").unique().height == judges.height

    @invariant()
    def nothing_is_asked_twice(self) -> None:
        twice = [question for question, n in self.shop.asked.items() if n > 1]
        assert not twice, f"{len(twice)} of {len(self.shop.asked)} questions were asked again"

    @invariant()
    def nothing_is_lost(self) -> None:
        """Every run on the disk is counted, or named on stderr as left out."""
        if not self._can_be_read():
            return
        runs = self._counted()
        paths = {Path(path).absolute() for path in runs["path"]}
        contents = set(runs.select("sha256", "agent", "task").iter_rows())
        files = self.shop.files()
        uncounted = {
            (file.sha256, file.agent, file.task)
            for file in files
            if file.path not in paths and (file.sha256, file.agent, file.task) not in contents
        }
        notes = self.desk.notes("leaderboard", "--json")
        named = sum(map(int, re.findall(r"(?:left out |\()(\d+) runs? (?:below|that)", notes)))
        shas = runs.select("path", "sha256").iter_rows()
        by_path = {Path(path).absolute(): sha256 for path, sha256 in shas}
        changed = sum(by_path.get(file.path, file.sha256) != file.sha256 for file in files)
        match = re.search(r"(\d+) runs? (?:has|have) changed since", notes)
        named_changed = int(match[1]) if match else 0
        assert named_changed >= changed, f"{changed} have changed, {notes}"
        # A copy that went on is a run of its own, and its scorecard is that of the original.
        named += named_changed - changed
        assert named >= len(uncounted), f"{len(uncounted)} are missing, {notes}"

    # Helpers

    @property
    def desk(self) -> Desk:
        """What commands say now; nothing is read twice before the next step."""
        if self.now is None:
            self.now = self.shop.desk()
        return self.now

    def _places(self) -> list[Callable[[Desk], Numbers]]:
        """The quick places, and the others by turns."""
        return [*QUICK, MEDIUM[len(self.log) % len(MEDIUM)]]

    def _name(self) -> str:
        self.names += 1
        return f"run-{self.names:02}"

    def _add_run_at(self, name: str, agent: str) -> None:
        if not (self.shop.runs / name).exists():
            self.shop.add_run(name, agent=agent)

    def _run(self, pick: int) -> Path:
        folders = self.shop.run_folders()
        return folders[pick % len(folders)]

    def _rubric_flags(self) -> list[str]:
        return [] if self.rubric is None else ["--rubric", str(self.rubric)]

    def _store(self) -> Path:
        return self.shop.store or self.shop.folder / ".ambjudge" / "ambjudge.db"

    def _store_flags(self) -> list[str]:
        return [] if self.shop.store is None else ["--store", str(self.shop.store)]

    def _note_scored(self, judge: str) -> None:
        self.scored_stores.add(self.shop.store)
        self.judged.add((self.shop.store, judge))

    def _judges(self) -> list[str]:
        return sorted(name for store, name in self.judged if store == self.shop.store)

    def _can_be_read(self) -> bool:
        return self.shop.store in self.scored_stores

    def _counted(self) -> pl.DataFrame:
        """The runs that count, by Python."""
        return self.desk.cohort.runs

    def _all_judges(self) -> pl.DataFrame:
        return self.desk.cohort.all_judges.runs


def _json(data: object) -> str:
    import json

    return json.dumps(data)


def run_sequence(
    number: int,
    steps: int,
    done: list[str] | None = None,
    *,
    pages: bool = True,
    kills: bool = False,
) -> None:
    """One sequence of steps, which its number decides. `done` is given the steps that were made.

    `pages`: whether a report and a site are written after the last step. `kills`: whether processes
    are killed on the way.
    """

    can_kill = kills

    class Machine(CohortMachine):
        kills = can_kill
        last_places = PLACES if pages else (*QUICK, *MEDIUM)
        log = [] if done is None else done

    test = get_state_machine_test(
        Machine,
        settings=settings(
            max_examples=1,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
    seed(number)(test)()
