"""The demo's files from cohort.yaml: run folders, a judge's replies about each, and labels.

The same bytes every time. The YAML has texts with $names and, for each step, verdict and code, the
traits of a run (`when`) to which it belongs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import Template
from typing import Any

from ..package_data import read_package_yaml

JUDGE = "replay:answers"
SETTINGS = (
    "# Who judges here: answers that were written with the runs, so that no model is"
    f' needed.\njudge = ["{JUDGE}"]\n'
)
_Entry = Mapping[str, Any]


def files() -> Iterator[tuple[str, str]]:
    """Path in the demo's folder and content of every file."""
    data = read_package_yaml(Path(__file__).with_name("cohort.yaml"))
    yield "ambjudge.toml", SETTINGS
    for agent, tasks in data["runs"].items():
        for task, runs in tasks.items():
            for number, words in enumerate(runs, 1):
                *traits, accuracy = words.split()
                run = _DemoRun(data, agent, task, number, frozenset(traits), float(accuracy))
                yield from run.files()


@dataclass(frozen=True)
class _DemoRun:
    """A run of the cohort: its files, and what a judge and a person say of it."""

    data: Mapping[str, Any]
    """The content of cohort.yaml."""
    agent: str
    task: str
    number: int
    """Which of several runs of the agent on the task, from 1."""
    traits: frozenset[str]
    """What the agent did or left undone, such as `plan` or `crash`."""
    accuracy: float

    @property
    def id(self) -> str:
        """The name of the run's folder."""
        return f"{self.agent.removeprefix('agent-')}-{self.task.split('-')[0]}-{self.number}"

    def files(self) -> Iterator[tuple[str, str]]:
        """Path and content of the run's files, the judge's replies and the labels."""
        folder = f"runs/{self.id}"
        summary = {"case_ids": self.cases, "repeat_idx": self.number - 1}
        yield f"{folder}/process/conversation.json", _json(self.conversation())
        yield f"{folder}/process/agent_summary.json", _json(summary)
        yield f"{folder}/detail_report.json", _json(self.report())
        yield f"{folder}/outputs/agents_outputs/predictions.csv", self.predictions_csv()
        if "plan" in self.traits:
            yield f"{folder}/outputs/plan/plan.md", self.names["plan"]
        replies = self.replies()
        yield f"answers/{self.id}.json", _json(replies)
        drawn = self._drawn()
        if drawn is not None:
            yield f"labels/{self.id}.json", _json(self.labels(replies, drawn))

    # What the run is made of

    @property
    def cases(self) -> list[str]:
        """The names of all cases."""
        return [f"case_{n:04d}" for n in range(1, self.data["cases"] + 1)]

    @cached_property
    def predictions(self) -> list[str]:
        """The predicted class of each case; a run that crashed has only the first cases."""
        classes = self._class_order.split(", ")
        seed = sum(map(ord, self.id))
        predictions = []
        for n in range(len(self.cases)):
            index = (seed * (n + 2) + n * n + n // 3) % len(classes)
            predictions.append(classes[index])
        return predictions[: 3 + self.number] if "crash" in self.traits else predictions

    @property
    def _class_order(self) -> str:
        """The order of classes that the agent uses; sorted by name, it swaps them."""
        task = self.data["tasks"][self.task]
        order: str = task["sorted" if "swap" in self.traits else "order"]
        return order

    @cached_property
    def names(self) -> dict[str, Any]:
        """The values of the $names in texts."""
        task = self.data["tasks"][self.task]
        classes = task["order"].split(", ")
        first = self.predictions[0]
        others = [name for name in classes if name != first]
        top_score = 0.7 + self.number / 20
        scores = dict.fromkeys(others, (1 - top_score) / len(others)) | {first: top_score}
        counts = Counter(self.predictions).most_common()
        read_cases = self.cases[: len(self.predictions) + 1]
        names = {
            **task,
            "n": len(classes),
            "used": self._class_order,
            "first": first,
            "pilot_scores": ", ".join(f"'{name}': {scores[name]:.3f}" for name in classes),
            "counts": ", ".join(f"'{name}': {count}" for name, count in counts),
            "read": "".join(f"reading {case}\n" for case in read_cases),
            "first_used": self.predictions[0],
            "second_used": self.predictions[1],
        }
        return {**names, "plan": Template(self.data["plan"]).substitute(names)}

    def _text(self, template: str) -> str:
        """A text with its $names filled in."""
        return Template(template).substitute(self.names)

    @property
    def steps(self) -> list[_Entry]:
        """The steps of this run, one a turn."""
        return [step for step in self.data["steps"] if self._applies(step)]

    def _applies(self, entry: _Entry) -> bool:
        """Whether an entry is for runs with these traits: `when` lists traits, `!` negates one."""
        for trait in entry.get("when", ()):
            if trait.startswith("!"):
                if trait[1:] in self.traits:
                    return False
            elif trait not in self.traits:
                return False
        return True

    def _first_applicable(self, entries: Sequence[_Entry]) -> _Entry | None:
        for entry in entries:
            if self._applies(entry):
                return entry
        return None

    # Files of the run

    def predictions_csv(self) -> str:
        """The submission."""
        rows = zip(self.cases, self.predictions, strict=False)
        return "patient_id,label\n" + "".join(f"{case},{label}\n" for case, label in rows)

    def conversation(self) -> dict[str, Any]:
        """conversation.json."""
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": "Begin. The method has been chosen for you."}
        ]
        for turn, step in enumerate(self.steps, 1):
            call, result = self._call(step)
            tool_call = {"id": f"c{turn}", "type": "function", "function": call}
            messages.append(
                {"role": "assistant", "content": step["says"], "tool_calls": [tool_call]}
            )
            messages.append(
                {"role": "tool", "tool_call_id": f"c{turn}", "content": json.dumps(result)}
            )
        return {
            "agent": self.agent,
            "model": self.data["agents"][self.agent],
            "task": self.task,
            "tier": self.data["tier"],
            "system_prompt": self._text(self.data["brief"]),
            "messages": messages,
        }

    def _call(self, step: _Entry) -> tuple[dict[str, Any], dict[str, Any]]:
        """The tool call of a step and its result."""
        if step["id"] == "end":
            return {"name": "submit_results", "arguments": "{}"}, {"status": "ok"}
        arguments = {
            "language": step.get("language", "python"),
            "code": self._text(step["code"]),
        }
        exit_code, output = step.get("exit", 0), self._text(step["output"])
        result = {
            "exit_code": exit_code,
            "stdout": "" if exit_code else output,
            "stderr": output if exit_code else "",
        }
        return {"name": "execute_code", "arguments": json.dumps(arguments)}, result

    def report(self) -> dict[str, Any]:
        """detail_report.json."""
        turns = len(self.steps)
        completion = len(self.predictions) / len(self.cases)
        return {
            "header": {"agent": self.agent, "task": self.task, "tier": self.data["tier"]},
            "runtime": {
                "wall_time_s": 20.0 * turns + self.number,
                "api_calls": turns,
                "input_tokens": 900 * turns * turns,
                "output_tokens": 160 * turns,
                "estimated_cost_usd": round(0.004 * turns * turns, 4),
                "code_executions": turns - 1,
            },
            "task_score": {"score": self.accuracy},
            "format": {
                "submission_format_valid": True,
                "output_format_valid": completion == 1,
                "completion_rate": completion,
            },
        }

    # What is said of the run

    def replies(self) -> dict[str, Any]:
        """A judge's replies by question, in the form of a model's."""
        turns = {step["id"]: number for number, step in enumerate(self.steps, 1)}
        replies: dict[str, Any] = {"S1": {}, "S2": {}, "S3": {}}
        for criterion, entries in self.data["verdicts"].items():
            entry = self._first_applicable(entries)
            assert entry is not None
            replies[criterion[:2]][criterion] = {
                "evidence": [self._quote(entry, turns)],
                "reason": self._text(entry["reason"]),
                "value": entry["value"],
            }
        codes = {
            code: self._code_reply(self._first_applicable(entries), turns)
            for code, entries in self.data["codes"].items()
        }
        plan = {"commitments": self._commitments(turns)}
        return {**replies, "diagnosis": {**codes, "plan": plan}}

    def _quote(self, entry: _Entry, turns: Mapping[str, int]) -> dict[str, Any]:
        return {"turn": turns[entry["at"]], "quote": self._text(entry["quote"])}

    def _code_reply(self, entry: _Entry | None, turns: Mapping[str, int]) -> dict[str, Any]:
        """A reply about an error code; without an entry it is absent."""
        if entry is None:
            return {
                "turns": [],
                "quote": {"turn": 0, "quote": ""},
                "facts": [],
                "why": "Nothing in the run shows it.",
                "verdict": "absent",
                "confidence": 0.9,
            }
        return {
            "turns": [turns[entry["at"]]],
            "quote": self._quote(entry, turns),
            "facts": [],
            "why": self._text(entry["reason"]),
            "verdict": "present",
            "confidence": 0.9,
        }

    def _commitments(self, turns: Mapping[str, int]) -> list[dict[str, Any]]:
        """What became of the plan's promise, if the run made one."""
        promised = self.data["promised"]
        return [
            {
                "commitment": promised["commitment"],
                "turns": [turns[promised[state]["at"]]],
                "quote": self._quote(promised[state], turns),
                "state": state,
            }
            for state in ("kept", "broken")
            if self._applies(promised[state])
        ]

    def _drawn(self) -> dict[str, Any] | None:
        """How the run was drawn for labelling; None if it was not."""
        for stratum, sample in self.data["labels"]["drawn"].items():
            size, runs = sample["size"], sample["runs"]
            if self.id in runs:
                return {"probability": len(runs) / size, "stratum": stratum, "size": size}
        return None

    def labels(self, replies: Mapping[str, Any], drawn: Mapping[str, Any]) -> dict[str, Any]:
        """A person's labels: those of the judge, but for a few that differ."""
        labels = self.data["labels"]
        values = {
            criterion: entry["value"]
            for stage in ("S1", "S2", "S3")
            for criterion, entry in replies[stage].items()
        }
        codes = {
            code: {"turns": entry["turns"], "why": entry["why"]}
            for code, entry in replies["diagnosis"].items()
            if entry.get("verdict") == "present"
        }
        return {
            "run": self.id,
            "annotator": labels["annotator"],
            "drawn": drawn,
            "criteria": values | labels["otherwise"].get(self.id, {}),
            "codes": codes,
        }


def _json(value: Any) -> str:
    return json.dumps(value, indent=1) + "\n"
