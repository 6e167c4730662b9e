"""cohort.yaml to files: run folders, a reader's answers about each, and labels; the same bytes
every time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from ..package_data import read_package_yaml

JUDGE = "replay:answers"
SETTINGS = (
    "# Who judges here: answers that were written with the runs, so that no model is"
    f' needed.\njudge = ["{JUDGE}"]\n'
)


def files() -> Iterator[tuple[str, str]]:
    """Path in the demo's folder and content of every file."""
    data = read_package_yaml(Path(__file__).with_name("cohort.yaml"))
    yield "ambjudge.toml", SETTINGS
    for agent, tasks in data["runs"].items():
        for task, runs in tasks.items():
            for number, words in enumerate(runs, 1):
                *did, accuracy = words.split()
                yield from _MadeRun(
                    data, agent, task, number, frozenset(did), float(accuracy)
                ).files()


def _fits(entry: Mapping[str, Any], did: frozenset[str]) -> bool:
    return all(
        (word[1:] not in did) if word.startswith("!") else word in did
        for word in entry.get("when", ())
    )


@dataclass(frozen=True)
class _MadeRun:
    """A run of the cohort and what is said of it."""

    data: Mapping[str, Any]
    agent: str
    task: str
    number: int
    did: frozenset[str]
    accuracy: float

    @property
    def id(self) -> str:
        return f"{self.agent.removeprefix('agent-')}-{self.task.split('-')[0]}-{self.number}"

    @property
    def cases(self) -> list[str]:
        return [f"case_{n:04d}" for n in range(1, self.data["cases"] + 1)]

    def labels(self) -> list[str]:
        """What was predicted, case by case; a run that crashed has the first cases only."""
        names = self.data["tasks"][self.task]["sorted" if "swap" in self.did else "order"].split(
            ", "
        )
        seed = sum(map(ord, self.id))
        made = [
            names[(seed * (n + 2) + n * n + n // 3) % len(names)] for n in range(len(self.cases))
        ]
        return made[: 3 + self.number] if "crash" in self.did else made

    def names(self) -> dict[str, Any]:
        """What stands for the $names of the texts."""
        task = self.data["tasks"][self.task]
        order = task["order"].split(", ")
        made, share = self.labels(), 0.7 + self.number / 20
        first = made[0]
        left = [name for name in order if name != first]
        scores = {first: share} | {name: (1 - share) / len(left) for name in left}
        shown = ", ".join(f"'{name}': {scores[name]:.3f}" for name in order)
        counts = ", ".join(f"'{name}': {n}" for name, n in Counter(made).most_common())
        used = task["sorted" if "swap" in self.did else "order"]
        known = {
            **task,
            "n": len(order),
            "used": used,
            "first": first,
            "pilot_scores": shown,
            "counts": counts,
        }
        known["read"] = "".join(f"reading {case}\n" for case in self.cases[: len(made) + 1])
        known |= {"first_used": made[0], "second_used": made[1]}
        return {**known, "plan": Template(self.data["plan"]).substitute(known)}

    def steps(self) -> list[dict[str, Any]]:
        return [step for step in self.data["steps"] if _fits(step, self.did)]

    def files(self) -> Iterator[tuple[str, str]]:
        names, root = self.names(), f"runs/{self.id}"
        yield f"{root}/process/conversation.json", _json(self.conversation(names))
        yield (
            f"{root}/process/agent_summary.json",
            _json({"case_ids": self.cases, "repeat_idx": self.number - 1}),
        )
        yield f"{root}/detail_report.json", _json(self.report())
        rows = "".join(
            f"{case},{label}\n" for case, label in zip(self.cases, self.labels(), strict=False)
        )
        yield f"{root}/outputs/agents_outputs/predictions.csv", "patient_id,label\n" + rows
        if "plan" in self.did:
            yield f"{root}/outputs/plan/plan.md", names["plan"]
        answers = self.answers(names)
        yield f"answers/{self.id}.json", _json(answers)
        labels = self.data["labels"]
        if self.id in labels["runs"]:
            said = {
                item: entry["value"]
                for stage in ("S1", "S2", "S3")
                for item, entry in answers[stage].items()
            }
            codes = {
                code: entry
                for code, entry in answers["diagnosis"].items()
                if entry.get("verdict") == "present"
            }
            made = {
                "run": self.id,
                "annotator": labels["annotator"],
                "criteria": said | labels["otherwise"].get(self.id, {}),
                "codes": {
                    code: {"turns": entry["turns"], "why": entry["why"]}
                    for code, entry in codes.items()
                },
            }
            yield f"labels/{self.id}.json", _json(made)

    def conversation(self, names: Mapping[str, Any]) -> dict[str, Any]:
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": "Begin. The method has been chosen for you."}
        ]
        for turn, step in enumerate(self.steps(), 1):
            ended, printed = step.get("exit", 0), Template(step["output"]).substitute(names)
            code = Template(step["code"]).substitute(names)
            asked = {"language": step.get("language", "python"), "code": code}
            answer = {
                "exit_code": ended,
                "stdout": "" if ended else printed,
                "stderr": printed if ended else "",
            }
            call = {"name": "execute_code", "arguments": json.dumps(asked)}
            if step["id"] == "end":
                call, answer = {"name": "submit_results", "arguments": "{}"}, {"status": "ok"}
            messages += [
                {
                    "role": "assistant",
                    "content": step["says"],
                    "tool_calls": [{"id": f"c{turn}", "type": "function", "function": call}],
                },
                {"role": "tool", "tool_call_id": f"c{turn}", "content": json.dumps(answer)},
            ]
        head = {
            "agent": self.agent,
            "model": self.data["agents"][self.agent],
            "task": self.task,
            "tier": self.data["tier"],
        }
        return {
            **head,
            "system_prompt": Template(self.data["brief"]).substitute(names),
            "messages": messages,
        }

    def report(self) -> dict[str, Any]:
        turns = len(self.steps())
        runtime = {
            "wall_time_s": 20.0 * turns + self.number,
            "api_calls": turns,
            "input_tokens": 900 * turns * turns,
            "output_tokens": 160 * turns,
            "estimated_cost_usd": round(0.004 * turns * turns, 4),
            "code_executions": turns - 1,
        }
        share = len(self.labels()) / len(self.cases)
        form = {
            "submission_format_valid": True,
            "output_format_valid": share == 1,
            "completion_rate": share,
        }
        head = {"agent": self.agent, "task": self.task, "tier": self.data["tier"]}
        return {
            "header": head,
            "runtime": runtime,
            "task_score": {"score": self.accuracy},
            "format": form,
        }

    def answers(self, names: Mapping[str, Any]) -> dict[str, Any]:
        """What a reader says, in the form of its replies."""
        turn = {step["id"]: number for number, step in enumerate(self.steps(), 1)}

        def quote(entry: Mapping[str, Any]) -> dict[str, Any]:
            return {"turn": turn[entry["at"]], "quote": Template(entry["quote"]).substitute(names)}

        said: dict[str, Any] = {"S1": {}, "S2": {}, "S3": {}}
        for item, choices in self.data["verdicts"].items():
            entry = next(one for one in choices if _fits(one, self.did))
            reason = Template(entry["reason"]).substitute(names)
            said[item[:2]][item] = {
                "evidence": [quote(entry)],
                "reason": reason,
                "value": entry["value"],
            }
        codes: dict[str, Any] = {}
        for code, choices in self.data["codes"].items():
            found = next((one for one in choices if _fits(one, self.did)), None)
            words, turns = (
                (quote(found), [turn[found["at"]]]) if found else ({"turn": 0, "quote": ""}, [])
            )
            why = (
                Template(found["reason"]).substitute(names)
                if found
                else "Nothing in the run shows it."
            )
            verdict = "present" if found else "absent"
            codes[code] = {
                "turns": turns,
                "quote": words,
                "facts": [],
                "why": why,
                "verdict": verdict,
                "confidence": 0.9,
            }
        promised = self.data["promised"]
        fate = [state for state in ("kept", "broken") if _fits(promised[state], self.did)]
        commitments = [
            {
                "commitment": promised["commitment"],
                "turns": [turn[promised[state]["at"]]],
                "quote": quote(promised[state]),
                "state": state,
            }
            for state in fate
        ]
        return {**said, "diagnosis": {**codes, "plan": {"commitments": commitments}}}


def _json(value: Any) -> str:
    return json.dumps(value, indent=1) + "\n"
