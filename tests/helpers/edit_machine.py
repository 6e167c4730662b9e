"""A state machine of edits between two rejudges: whatever is edited, undone or interrupted, the
scorecards become those of a fresh score, and no question is asked that is answered already.

The judge of the loopback server answers by all that it is asked (`@words`), so that a scorecard
that keeps the verdict of another text, prompt, parameter or file shows.

`tests/journeys/test_edit_machine.py` runs some sequences, `benchmarks/edits.py` many.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import loopback_server
import yaml
from ambjudge.error_codes import taxonomy
from ambjudge.judge.questions import items, prompts
from workshop import Workshop

MODELS = ("openai/good@words", "openai/codes@words")
TRACKS = ("segmentation", "classification")
_NOT_COMPARED = {
    "judge": {
        "calls",
        "input_tokens",
        "output_tokens",
        "cached_tokens",
        "cache_write_tokens",
        "cost_usd",
        "estimated_calls",
    }
}
"""What asking cost, which a fresh score pays again."""

Rubric = dict[str, Any]


@dataclass(frozen=True)
class Situation:
    """All that decides a scorecard."""

    rubrics: Mapping[str, Rubric] = field(default_factory=dict)
    """The edited rubrics in force, by track."""
    model: str = MODELS[0]
    temperature: float = 0.0
    samples: int = 1
    system_prompt: str = ""
    """Added to the prompt that ships."""
    code_texts: Mapping[str, str] = field(default_factory=dict)
    """The edited descriptions of error codes."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The files of all runs, by path below the folder of runs."""


class EditMachine:
    """A folder of runs, a store, and edits between two rejudges."""

    def __init__(self, number: int, log: list[str], *, kills: bool) -> None:
        """`log` is given the steps. `kills`: whether processes are killed, each of which takes
        seconds to start."""
        self.random = Random(number)
        self.kills = kills
        self.log = log
        self.folder = Path(tempfile.mkdtemp())
        self.shop = Workshop(self.folder / "shop")
        self.shop.add_run("a", track="segmentation", task="kidney-seg-task")
        self.shop.add_run("b", track="segmentation", task="liver-seg-task", tier="standard")
        self.shop.add_run("c", track="classification", task="crc-task", tier="standard")
        self.original_texts = (taxonomy.TAXONOMIES_FILE, prompts.files)
        self.now = Situation(files=self._files_on_disk())
        self.earlier = [self.now]
        self.allowed = Counter[str]()
        """How often each item may have been asked so far: once for each of its samples."""
        self.asked = Counter[str]()
        self._n_requests = 0

    def run(self, steps: int) -> None:
        """Score, then edit, rejudge and compare so many times; AssertionError at a fault."""
        try:
            self._judge("score")
            self._compare()
            for _ in range(steps):
                self._edit()
                self._maybe_interrupt()
                if self.random.random() < 0.8:
                    self._rejudge_to_the_end()
                    self._compare()
        finally:
            self._restore_texts()
            self.shop.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    # Edits

    def _edit(self) -> None:
        edits: list[Callable[[], Situation]] = [
            self._reword,
            self._edit_level,
            self._split,
            self._remove,
            self._reweigh,
            self._edit_credit,
            self._edit_preamble,
            self._edit_prompt,
            self._edit_parameters,
            self._change_model,
            self._change_files,
            self._edit_code,
            self._go_back,
            self._go_back,
        ]
        edit = self.random.choice(edits)
        self.log.append(edit.__name__.strip("_"))
        self._enter(edit())

    def _reword(self) -> Situation:
        words = self.random.choice(["Was it done with care?", "Did it happen at all?"])
        return self._with_criterion(lambda c: c | {"text": words})

    def _edit_level(self) -> Situation:
        levels = self.random.choice([(0.0, 0.3, 1.0), (0.0, 0.5, 0.8, 1.0)])
        scale = [{"value": value, "text": f"It was done to {value}."} for value in levels]
        return self._with_criterion(lambda c: c | {"scale": scale})

    def _split(self) -> Situation:
        def split(stage: Rubric) -> None:
            criterion = self.random.choice(stage["criteria"])
            part = criterion | {"id": f"{criterion['id'][:2]}x", "text": "Was the other half done?"}
            if part["id"] not in [c["id"] for c in stage["criteria"]] and len(criterion["id"]) > 2:
                stage["criteria"].append(part)

        return self._with_stage(split)

    def _remove(self) -> Situation:
        def remove(stage: Rubric) -> None:
            required = {id for c in stage["criteria"] for id in c.get("requires", ())}
            free = [c for c in stage["criteria"] if c["id"] not in required]
            if len(stage["criteria"]) > 1 and free:
                stage["criteria"].remove(self.random.choice(free))

        return self._with_stage(remove)

    def _reweigh(self) -> Situation:
        weight = self.random.choice([1, 2, 5])
        return self._with_criterion(lambda c: c | {"weight": weight})

    def _edit_credit(self) -> Situation:
        credit = self.random.choice([[], ["lite"], ["lite", "standard"]])
        return self._with_criterion(lambda c: c | {"credit": credit})

    def _edit_preamble(self) -> Situation:
        preamble = self.random.choice(["Be strict.", "Be lenient, it was a hard task.", ""])

        track = self.random.choice(TRACKS)
        rubric = self._rubric(track) | {"preamble": preamble}
        if not preamble:
            del rubric["preamble"]
        return replace(self.now, rubrics={**self.now.rubrics, track: rubric})

    def _edit_prompt(self) -> Situation:
        return replace(self.now, system_prompt=self.random.choice(["", "Be brief.", "Be exact."]))

    def _edit_parameters(self) -> Situation:
        temperature = self.random.choice([0.0, 0.4])
        return replace(self.now, temperature=temperature, samples=self.random.choice([1, 1, 3]))

    def _change_model(self) -> Situation:
        return replace(self.now, model=self.random.choice(MODELS))

    def _change_files(self) -> Situation:
        """A run goes on, or the harness's report of it is another one."""
        folder = self.random.choice(self.shop.run_folders())
        if self.random.random() < 0.5:
            self.shop.grow(folder)
        else:
            report = folder / "detail_report.json"
            data = json.loads(report.read_text("utf-8"))
            data["format"]["completion_rate"] = self.random.choice([0.25, 0.5, 1.0])
            report.write_text(json.dumps(data), encoding="utf-8")
        return replace(self.now, files=self._files_on_disk())

    def _edit_code(self) -> Situation:
        code = self.random.choice(["E1", "E3", "E5"])
        text = self.random.choice(["Something else went wrong.", "A check was left out."])
        return replace(self.now, code_texts={**self.now.code_texts, code: text})

    def _go_back(self) -> Situation:
        return self.random.choice(self.earlier)

    def _with_criterion(self, edit: Callable[[Rubric], Rubric]) -> Situation:
        def edit_one(stage: Rubric) -> None:
            place = self.random.randrange(len(stage["criteria"]))
            stage["criteria"][place] = edit(stage["criteria"][place])

        return self._with_stage(edit_one)

    def _with_stage(self, edit: Callable[[Rubric], None]) -> Situation:
        """A judged stage of a track's rubric edited; the version may stay the same."""
        track = self.random.choice(TRACKS)
        rubric = self._rubric(track)
        edit(rubric["stages"][self.random.choice(["S1", "S2", "S3"])])
        if self.random.random() < 0.5:
            rubric["version"] = self.random.choice(["2.0", "3.0"])
        return replace(self.now, rubrics={**self.now.rubrics, track: rubric})

    def _rubric(self, track: str) -> Rubric:
        """A copy of the rubric in force, to be edited."""
        if track in self.now.rubrics:
            return json.loads(json.dumps(self.now.rubrics[track]))
        text, _ = self.shop.desk().call("rubric", "new", track)
        return yaml.safe_load(text) | {"id": f"own-{track}"}

    # The situation in force

    def _enter(self, situation: Situation) -> None:
        self.now = situation
        self.earlier.append(situation)
        self._write_files(situation.files)
        self._write_texts(situation)

    def _files_on_disk(self) -> dict[str, bytes]:
        runs = self.shop.runs
        files = (path for path in runs.rglob("*") if path.is_file())
        return {path.relative_to(runs).as_posix(): path.read_bytes() for path in files}

    def _write_files(self, files: Mapping[str, bytes]) -> None:
        for name, content in files.items():
            path = self.shop.runs / name
            if path.read_bytes() != content:
                path.write_bytes(content)

    def _write_texts(self, situation: Situation) -> None:
        """Edit the prompt and the taxonomy as somebody who edits these files does."""
        self._restore_texts()
        if situation.system_prompt:
            folder = self.folder / "prompts"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(Path(prompts.__file__).parent, folder)
            with (folder / "system.txt").open("a", encoding="utf-8") as file:
                file.write(situation.system_prompt)
            prompts.files = lambda _: folder
        if situation.code_texts:
            data = yaml.safe_load(taxonomy.TAXONOMIES_FILE.read_text("utf-8"))
            for code, text in situation.code_texts.items():
                data["paper"]["codes"][code]["description"] = text
            taxonomy.TAXONOMIES_FILE = self.folder / "taxonomies.yaml"
            taxonomy.TAXONOMIES_FILE.write_text(yaml.safe_dump(data), encoding="utf-8")
        self._forget_texts()

    def _restore_texts(self) -> None:
        taxonomy.TAXONOMIES_FILE, prompts.files = self.original_texts
        self._forget_texts()

    @staticmethod
    def _forget_texts() -> None:
        prompts.load.cache_clear()
        prompts.prompt_sha256.cache_clear()
        taxonomy._read.cache_clear()
        items.diagnosis_items.cache_clear()

    # Commands

    def _flags(self) -> list[str]:
        flags = ["--temperature", str(self.now.temperature), "--samples", str(self.now.samples)]
        # Rubrics stay in force until others are given, so that each track names its own.
        for track in TRACKS:
            flags += ["--rubric", str(self._rubric_file(track))]
        return flags

    def _rubric_file(self, track: str) -> str | Path:
        if track not in self.now.rubrics:
            return track
        path = self.folder / f"{track}.yaml"
        # A copy without shared parts, which YAML would write as anchors.
        rubric = json.loads(json.dumps(self.now.rubrics[track]))
        content = yaml.safe_dump(rubric, sort_keys=False)
        path.write_text(content, encoding="utf-8")
        return path

    def _judge(self, command: str, *more: str | Path, code: tuple[int, ...] = (0,)) -> str:
        """`score` or `rejudge` in the situation in force; stdout."""
        call = self.shop.score if command == "score" else self.shop.rejudge
        n_good = len(self.shop.server.script) - 1 if self.shop.server.script else None
        stdout, _ = call(self.now.model, *self._flags(), *more, code=code)
        self._count_items(n_good)
        return stdout

    def _maybe_interrupt(self) -> None:
        """Perhaps a rejudge that the provider cuts off after some answers."""
        luck = self.random.random()
        n_answers = self.random.randrange(6)
        if luck < 0.1 and self.kills and not self._texts_are_edited():
            self.log.append(f"killed after {n_answers}")
            self.shop.kill_while_scoring(
                n_answers, self.now.model, *self._flags(), command="rejudge"
            )
            self._count_items(n_answers)
        elif luck < 0.4:
            self.log.append(f"interrupted after {n_answers}")
            model = self.now.model.partition("/")[2]
            self.shop.server.script = [*[model] * n_answers, "401"]
            self._judge("rejudge", code=(0, 1, 3))
            self.shop.recover()

    def _texts_are_edited(self) -> bool:
        """Whether a process of its own would read other texts than this one."""
        return bool(self.now.system_prompt or self.now.code_texts)

    def _rejudge_to_the_end(self) -> None:
        plan = json.loads(self._judge("rejudge", "--dry-run", "--json"))
        before = self.shop.server.count
        self._judge("rejudge")
        n_requests = self.shop.server.count - before
        assert n_requests == plan["calls"], f"{plan['calls']} calls planned, {n_requests} made"
        plan = json.loads(self._judge("rejudge", "--dry-run", "--json"))
        assert (plan["calls"], plan["cards_to_renew"]) == (0, 0), "something is stale once more"

    def _count_items(self, n_good: int | None) -> None:
        """Count each item that was asked and answered; none more often than it has samples."""
        bodies = self.shop.server.requests[self._n_requests :]
        self._n_requests = len(self.shop.server.requests)
        asked = Counter[str]()
        for body in bodies[:n_good]:
            around = [body["model"], body.get("temperature"), body["messages"][0]]
            record = loopback_server.record_of(body)
            for id, text in loopback_server.item_texts(body).items():
                asked[json.dumps([around, record, id, text])] += 1
        self.asked += asked
        for item in asked:
            self.allowed[item] = max(self.allowed[item], self.now.samples)
        again = [item for item in asked if self.asked[item] > self.allowed[item]]
        assert not again, f"{len(again)} items were asked again, such as {json.loads(again[0])[2]}"

    # The fresh score

    def _compare(self) -> None:
        """The scorecards in force are those of a fresh score in an empty store."""
        in_force = self._cards()
        fresh_store = self.folder / "fresh.db"
        for file in self.folder.glob("fresh.db*"):
            file.unlink()
        store, self.shop.store = self.shop.store, fresh_store
        try:
            self.shop.score(self.now.model, *self._flags(), code=(0,))
            fresh = self._cards()
        finally:
            self.shop.store = store
            self._n_requests = len(self.shop.server.requests)
        assert in_force.keys() == fresh.keys()
        for run, card in fresh.items():
            differences = [*_differences(in_force[run], card)]
            assert not differences, f"{run}: {'; '.join(differences[:5])}"

    def _cards(self) -> dict[str, dict[str, Any]]:
        """The scorecards in force of the judge in force, by run, without what asking cost."""
        store = [] if self.shop.store is None else ["--store", str(self.shop.store)]
        command = ["export", "runs", "--what", "scorecards", "--judged-by", self.now.model]
        stdout, _ = self.shop.desk().call(*command, *store)
        cards = (json.loads(line) for line in stdout.splitlines())
        return {card["run"]["id"]: _compared(card) for card in cards}


def _compared(card: dict[str, Any]) -> dict[str, Any]:
    for part, names in _NOT_COMPARED.items():
        for name in names:
            card[part].pop(name, None)
    card["run"]["path"] = str(Path(card["run"]["path"]).absolute())
    return card


def _differences(first: Any, second: Any, place: str = "") -> list[str]:
    """Where two documents differ."""
    if isinstance(first, dict) and isinstance(second, dict):
        names = [*first, *(name for name in second if name not in first)]
        pairs = ((name, first.get(name), second.get(name)) for name in names)
        return [text for name, a, b in pairs for text in _differences(a, b, f"{place}.{name}")]
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        pairs = zip(range(len(first)), first, second, strict=True)
        return [text for i, a, b in pairs for text in _differences(a, b, f"{place}[{i}]")]
    return [] if first == second else [f"{place.strip('.')} is {first}, fresh {second}"]


def run_edits(
    number: int, steps: int, done: list[str] | None = None, *, kills: bool = False
) -> None:
    """One sequence of edits, which its number decides. `done` is given the steps that were made."""
    machine = EditMachine(number, [] if done is None else done, kills=kills)
    try:
        machine.run(steps)
    except AssertionError as error:
        raise AssertionError(f"{error} after {', '.join(machine.log)}") from error
