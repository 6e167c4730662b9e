"""A folder of tiny runs, a judge's server, and what people do to runs between two commands.

Used by journeys and by the state machine, which also runs long (benchmarks/journeys.py).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import loopback_server
import yaml
from cohort_places import Desk
from tiny_runs import messages_of, say, submit

JUDGES = ("openai/good@run", "openai/codes:E3@run")
"""Two models: how they judge follows from the run and the criterion (loopback_server.py)."""
BRIEF = "You are an autonomous medical-AI research agent. Track: {track}. Tier: {tier}.\nTASK. Go."


@dataclass(frozen=True)
class RunFile:
    """A run on the disk, as anybody could tell it from others: by its cell and its bytes."""

    path: Path
    sha256: str
    agent: str
    task: str


class Workshop:
    """A folder with settings, runs and stores, and a server that a judge is reached at."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.runs = folder / "runs"
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        # Settings make this folder the project's root, where the store is.
        (folder / "ambjudge.toml").write_text("", encoding="utf-8")
        self.server = loopback_server.JudgeServer().start()
        self.store: Path | None = None
        """None: the store of the folder."""
        self.asked: Counter[str] = Counter()
        """Questions that a model answered, by store."""
        self.rubrics: dict[Path, None] = {}
        """Every rubric that was ever written."""
        self._count = 0
        self._requests = 0

    def close(self) -> None:
        self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def desk(self, **choice: Any) -> Desk:
        """What the commands are given."""
        os.chdir(self.folder)
        return Desk(Path("runs"), self.scratch, store=self.store, rubrics=[*self.rubrics], **choice)

    # Runs

    def add_run(
        self,
        name: str,
        *,
        agent: str = "elm",
        task: str = "kidney-seg-task",
        track: str = "segmentation",
        tier: str = "lite",
        task_score: float = 0.5,
    ) -> Path:
        """A run of three turns whose words differ from those of all others."""
        self._count += 1
        folder = self.runs / name
        turns = [
            say(f"First a look at the inputs, in way {self._count}.", "ls", out="scan.nii.gz"),
            say("Now the network runs over every case.", "python run.py", out="8 cases done"),
            submit("All masks are written."),
        ]
        conversation = {
            "agent": agent,
            "model": f"{agent}-1",
            "task": task,
            "tier": tier,
            "system_prompt": BRIEF.format(track=track, tier=tier),
            "messages": [{"role": "user", "content": "Begin."}, *messages_of(turns)],
        }
        report = {
            "task_score": {"score": task_score},
            "format": {
                "submission_format_valid": True,
                "output_format_valid": True,
                "completion_rate": 1.0,
            },
        }
        (folder / "process").mkdir(parents=True)
        _write(folder / "process" / "conversation.json", conversation)
        _write(folder / "detail_report.json", report)
        return folder

    def grow(self, folder: Path) -> None:
        """The agent goes on: a turn more."""
        file = folder / "process" / "conversation.json"
        data = json.loads(file.read_text("utf-8"))
        n_turns = sum(message["role"] == "assistant" for message in data["messages"])
        more = say(f"I check the masks once more, turn {n_turns + 1}.", "ls out", out="8 files")
        data["messages"] += messages_of([more])
        _write(file, data)

    def copy(self, folder: Path, name: str) -> Path:
        """The same bytes under another name."""
        copy = self.runs / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(folder, copy)
        return copy

    def move(self, folder: Path, name: str) -> Path:
        """The run's folder under another name."""
        place = self.runs / name
        place.parent.mkdir(parents=True, exist_ok=True)
        folder.rename(place)
        return place

    def delete(self, folder: Path) -> None:
        shutil.rmtree(folder)

    def run_folders(self) -> list[Path]:
        """The folders of all runs, by path."""
        return sorted(file.parents[1] for file in self.runs.rglob("conversation.json"))

    def files(self) -> list[RunFile]:
        """All runs on the disk; copies are there as often as their files."""
        files = []
        for folder in self.run_folders():
            path = folder / "process" / "conversation.json"
            content = path.read_bytes()
            data = json.loads(content)
            sha256 = hashlib.sha256(content).hexdigest()
            files.append(RunFile(path, sha256, data["agent"], data["task"]))
        return files

    # Rubrics

    def rubric(self, *, id: str = "own", version: str = "2.0", **edit: Any) -> Path:
        """The built-in rubric of segmentation under another id or version, edited.

        `words`: of S2b; `weight`: of S3.
        """
        text, _ = self.desk().call("rubric", "new", "segmentation")
        rubric = yaml.safe_load(text)
        rubric |= {"id": id, "version": version}
        if "weight" in edit:
            rubric["stages"]["S2"]["criteria"][0]["weight"] = edit["weight"]
        if "words" in edit:
            rubric["stages"]["S2"]["criteria"][1]["text"] = edit["words"]
        content = yaml.safe_dump(rubric, sort_keys=False)
        digest = hashlib.sha256(content.encode()).hexdigest()[:8]
        path = self.folder / f"{id}-{version}-{digest}.yaml"
        path.write_text(content, encoding="utf-8")
        self.rubrics[path] = None
        return path

    # Judges

    def score(self, judge: str | None = None, *more: str | Path, code=(0, 1)) -> tuple[str, str]:
        """`score` by this judge."""
        return self._judged("score", "runs", judge=judge, more=more, code=code)

    def rejudge(self, judge: str | None = None, *more: str | Path, code=(0, 1)) -> tuple[str, str]:
        """`rejudge`, by the judge of the stored verdicts unless one is named."""
        return self._judged("rejudge", "runs", judge=judge, more=more, code=code)

    def ask(self, question: str, judge: str, code=(0, 1)) -> tuple[str, str]:
        """`ask`, which is yes or no."""
        return self._judged("ask", "runs", question, judge=judge, code=code)

    def fail_after(self, n_answers: int) -> None:
        """The server refuses everything after so many answers, until `recover`."""
        model = [JUDGES[0].partition("/")[2]] * n_answers
        self.server.script = [*model, "401"]

    def kill_while_scoring(
        self, n_answers: int, judge: str = JUDGES[0], *more: str | Path, command: str = "score"
    ) -> None:
        """A command in a process of its own, killed when it has this many answers and asks on."""
        self.desk()
        self.server.script = [*[judge.partition("/")[2]] * n_answers, "slow:60"]
        before = self.server.count
        args = [command, "runs", "--judge", judge, "--api-base", self.server.url]
        args += ["--concurrency", "1", *map(str, more)]
        args += [] if self.store is None else ["--store", str(self.store)]
        process = subprocess.Popen(
            [sys.executable, "-m", "ambjudge.cli", *args],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while process.poll() is None and self.server.count <= before + n_answers:
            time.sleep(0.02)
        process.kill()
        process.wait()
        self._note_questions(n_answers)
        self.recover()

    def recover(self) -> None:
        self.server.script = []

    def _judged(self, *args: str, judge=None, more=(), code=(0, 1)) -> tuple[str, str]:
        flags = [] if judge is None else ["--judge", judge]
        flags += ["--api-base", self.server.url] if judge != "rules" else []
        flags += [] if self.store is None else ["--store", str(self.store)]
        n_good = None
        if self.server.script:
            n_good = len(self.server.script) - 1
            # A call under way when another one is refused is lost, and rightly made again.
            more = (*more, "--concurrency", "1")
        try:
            return self.desk().call(*args, *flags, *more, code=code)
        finally:
            self._note_questions(n_good)

    def _note_questions(self, n_good: int | None) -> None:
        """Count the questions that were answered; the server refused all after `n_good`."""
        bodies = self.server.requests[self._requests :]
        self._requests = len(self.server.requests)
        contents = (json.dumps([body["model"], body["messages"]]) for body in bodies[:n_good])
        self.asked.update(f"{self.store}: {content}" for content in contents)


def _write(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data), encoding="utf-8")
