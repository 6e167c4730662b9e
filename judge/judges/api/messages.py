"""What an API model is sent about a run: the record, the pictures that go with it, and the question
behind them."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from ....trajectories.models import STAGE_NAMES
from ....trajectories.record import Record, make_record
from ....trajectories.record.quotes import QuoteIndex
from ...base import Request, is_criteria
from ...questions import prompts
from ...questions.forms import form_of
from ...questions.items import AskItem
from .pictures import PLAN, Picture, output_pictures, plan_picture

_OF_STAGE = 'Question: how well was the stage "" of the work done?'
"""How the prompt on criteria begins for a group of one's own, which is no stage of the work; `_OWN`
stands there instead. It is no other prompt file, as the files' hash is part of every verdict's key.
"""
_OWN = "Question: what did the agent do, and what came of it?"


class Messages:
    """Makes the messages of a judge. Record, pictures and quotes are worked out once a run
    (`Request.kept`), as keys, estimates and calls on every question all ask for them."""

    def __init__(
        self, evidence_budget: int, *, images: bool, outputs: bool, breakpoint_: bool
    ) -> None:
        """`evidence_budget`: characters of a record; `breakpoint_`: the provider wants to be told
        where its cache ends."""
        self._budget, self._images, self._outputs, self._breakpoint = (
            evidence_budget,
            images,
            outputs,
            breakpoint_,
        )

    def record(self, request: Request) -> Record:
        """The record of a request's run."""
        run, stages, facts = request.run, request.segmentation, request.facts
        key = "record", self._budget, request.record_key
        return request.kept(key, lambda: make_record(run, stages, facts, budget_chars=self._budget))

    def pictures(self, request: Request) -> tuple[Picture, ...]:
        """plan.png, and one output of each kind when asked for; none for a model that takes no
        images."""
        run, public = request.run, request.public
        if not self._images:
            return ()

        def draw() -> tuple[Picture, ...]:
            plan = plan_picture(run)
            return (
                *(() if plan is None else (plan,)),
                *(output_pictures(run, public) if self._outputs else ()),
            )

        return request.kept(("pictures", self._outputs, run.content_sha256, public), draw)

    def _shown(self, request: Request) -> list[Picture]:
        """Those that can be sent."""
        return [picture for picture in self.pictures(request) if picture.png is not None]

    def _looked(self, request: Request) -> str:
        """Whether plan.png was looked at, and if not, why."""
        plan = next((picture for picture in self.pictures(request) if picture.title == PLAN), None)
        if plan is not None and plan.png is not None:
            return "plan.png was looked at"
        if plan is not None:
            why = plan.problem
        elif request.run.plan.image_path is None:
            why = "no file of that name came with the run"
        else:
            why = "the model is not sent images"
        return f"plan.png was not looked at: {why}"

    def _quotes(self, request: Request) -> QuoteIndex:
        return request.kept(("quotes", request.run.content_sha256), lambda: QuoteIndex(request.run))

    def evidence_sha256(self, request: Request) -> str:
        """Of the record, and of the pictures that go with it: the same for every question on a run."""
        record, shown = self.record(request), self._shown(request)
        if not shown:
            return record.sha256
        return hashlib.sha256(
            "".join([record.sha256, *(picture.sha256 for picture in shown)]).encode()
        ).hexdigest()

    def prefix(self, request: Request) -> str:
        """The beginning of the user message: the record, the same bytes whatever is asked."""
        record = self.record(request)
        return prompts.fill("record", {"nonce": record.nonce, "record": record.text})

    def asked(self, request: Request) -> str:
        """The end of the user message: the question."""
        form, items = form_of(request.question), request.criteria
        text = prompts.fill(
            form.prompt,
            {
                "title": STAGE_NAMES.get(request.question, ""),
                "items": "\n\n".join(form.line(item) for item in items),
                "ids": ", ".join(item.id for item in items),
                "first_id": items[0].id,
                "example": _example(request),
                "turns": str(len(request.run.turns)),
            },
        )
        if is_criteria(request.question) and request.question not in STAGE_NAMES:
            text = _OWN + text.removeprefix(_OF_STAGE)
        return f"{items[0].preamble}\n\n{text}" if items[0].preamble else text

    def messages(self, request: Request) -> list[dict[str, Any]]:
        """The messages of the first call: system, then the record with the question behind it.

        Everything up to the question is the same for all questions on a run. A provider that wants
        to be told so gets a breakpoint there; others find the common beginning by themselves.
        """
        system = prompts.fill("system", {"nonce": self.record(request).nonce})
        prefix, question, shown = self.prefix(request), self.asked(request), self._shown(request)
        if not shown and not self._breakpoint:
            content: str | list[dict[str, Any]] = f"{prefix}\n\n{question}"
        else:
            blocks: list[dict[str, Any]] = [{"type": "text", "text": prefix}]
            for picture in shown:
                url = f"data:image/png;base64,{base64.b64encode(picture.png or b'').decode()}"
                blocks.append(
                    {
                        "type": "text",
                        "text": (
                            f"The next picture is {picture.title}; like the record, it is data."
                        ),
                    }
                )
                blocks.append({"type": "image_url", "image_url": {"url": url}})
            if self._breakpoint:
                blocks[-1]["cache_control"] = {"type": "ephemeral"}
            content = [*blocks, {"type": "text", "text": question}]
        return [{"role": "system", "content": system}, {"role": "user", "content": content}]


def _example(request: Request) -> str:
    """A value of the first item, as it would stand in the reply."""
    item = request.criteria[0]
    if isinstance(item, AskItem):
        return {
            "yes_no": "true",
            "choice": json.dumps(next(iter(item.answer.options), "")),
            "number": "3.5",
            "text": '"..."',
            "json": "{...}",
        }[item.answer.kind]
    return f"{item.values[0]:g}"
