"""A judge behind any model that litellm reaches: one structured call a question, at most one repair, failures kept apart.

    judge = ApiJudge("openai/gpt-5.4-mini")
    reply = await judge.judge(request)

Outcomes of a call become verdicts in `replies`; what can go wrong on the way becomes `unscored` with its reason:
cut by length `truncated`, refused `refused`, no usable JSON `unparsable`, provider down `judge_error`. JudgeError is
raised only when no call can succeed (credentials, unknown model, rejected request, nobody listening).
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import math
import os
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit, urlunsplit

from ...errors import ConfigError, JudgeError
from ...trajectories.models import STAGE_NAMES, Run
from ...trajectories.record import DEFAULT_BUDGET, MIN_BUDGET, PACKING, Record, estimate_tokens, make_record
from ...trajectories.record.quotes import QuoteIndex
from .. import prompts
from ..base import CRITERIA, Estimate, QuestionName, Reply, Request, Usage
from ..panel import Ballot, combine
from ..questions.forms import FORMS
from ..questions.items import AskItem
from ..questions.replies import Parsed, describe_omissions, parse_reply, reply_schema, to_results, unscored
from ..scorecard import CriterionResult, UnscoredReason
from .pictures import PLAN, Picture, output_pictures, plan_picture
from .prices import Price, effective_api_base, price_of
from .transport import (
    CallFailed,
    Completion,
    Retry,
    complete,
    litellm,
    request_body,
    takes_cache_control,
    takes_images,
)

Form = Literal["schema", "json", "prompt"]
"""How the form of a reply is asked for: by JSON Schema, by JSON mode, or by the prompt alone."""
_WEAKER: dict[Form, Form] = {"schema": "json", "json": "prompt"}
_REFUSED = ("content_filter", "refusal", "safety")
_KEPT = 16
_PICTURE_TOKENS = 1_600
"""Of one picture, at the most that providers count for this size."""


class Breaker:
    """Stops calling a provider that failed `after` times in a row; after `rest_s` seconds one call tries again."""

    def __init__(self, after: int = 5, rest_s: float = 60.0) -> None:
        self.after, self.rest_s = after, rest_s
        self._failures = 0
        self._opened = 0.0

    @property
    def open(self) -> bool:
        return self._failures >= self.after and time.monotonic() - self._opened < self.rest_s

    def record(self, ok: bool) -> None:
        self._failures = 0 if ok else self._failures + 1
        self._opened = 0.0 if ok else time.monotonic()


_K = TypeVar("_K")
_V = TypeVar("_V")


def _kept(cache: OrderedDict[_K, _V], key: _K, make: Callable[[], _V]) -> _V:
    """What is kept under the key, made when it is not; the oldest of too many goes."""
    if key not in cache:
        cache[key] = make()
        while len(cache) > _KEPT:
            cache.popitem(last=False)
    return cache[key]


class ApiJudge:
    """A `Judge` (see base.py) over litellm.

    model: as litellm names it; with `api_base` and no provider in the name, an OpenAI-compatible server is meant.
    temperature: 0-2. max_tokens: of a reply. evidence_budget: characters of a run's record. timeout: seconds a try.
    seed: sent when given, plus the sample's number. samples: answers asked for each question, made one as panel.py says.
    api_key: only when not from the provider's variable; never shown.
    images: send plan.png along where the model takes images; outputs: also a picture of one output of each kind.
    prices: a table instead of the built-in one; price: what this model costs at this address, whatever a table says.
    """

    def __init__(
        self,
        model: str,
        api_base: str | None = None,
        *,
        temperature: float = 0.0,
        max_tokens: int = 8_192,
        evidence_budget: int = DEFAULT_BUDGET,
        timeout: float = 120.0,
        seed: int | None = None,
        samples: int = 1,
        api_key: str | None = None,
        retry: Retry | None = None,
        breaker: Breaker | None = None,
        prices: Mapping[str, Price] | None = None,
        price: Price | None = None,
        images: bool = True,
        outputs: bool = False,
    ) -> None:
        if not model.strip():
            raise ConfigError("a judge needs a model's name", "for example --judge openai/gpt-5.4-mini")
        if not 0 <= temperature <= 2:
            raise ConfigError(f"temperature {temperature} is outside 0-2", "use 0 for the most repeatable verdicts")
        if evidence_budget < MIN_BUDGET:
            raise ConfigError(f"evidence budget {evidence_budget} is below {MIN_BUDGET} characters", f"the default is {DEFAULT_BUDGET}")  # fmt: skip
        if max_tokens < 1 or not 0 < timeout < math.inf or samples < 1:
            raise ConfigError("max_tokens, timeout and samples must be above 0", "leave them out for the defaults")
        if api_base is not None and not re.match(r"https?://[^/\s]", api_base):
            raise ConfigError(f"{api_base.rpartition('@')[2]!r} is no http(s) address", "for example --api-base http://localhost:8000/v1")  # fmt: skip
        self._model = model
        self._api_base = effective_api_base(model, api_base)
        self._target = f"openai/{model}" if api_base is not None and "/" not in model else model
        self._temperature, self._max_tokens, self._timeout, self._seed = temperature, max_tokens, timeout, seed
        self._budget = evidence_budget
        self._samples = samples
        self._api_key = api_key
        self._retry = retry or Retry()
        self._breaker = breaker or Breaker()
        self._price = price or price_of(model, api_base, None if prices is None else dict(prices))
        self._form: Form | None = None
        self._dropped: set[str] = set()
        self._reached = False
        self._breakpoint = takes_cache_control(self._target)
        self._images = images and takes_images(self._target)
        self._outputs = outputs and self._images
        self._records: OrderedDict[tuple[object, ...], Record] = OrderedDict()
        self._pictures: OrderedDict[tuple[str, Path | None], tuple[Picture, ...]] = OrderedDict()
        self._indexes: OrderedDict[str, QuoteIndex] = OrderedDict()

    @property
    def name(self) -> str:
        return self._model

    @property
    def members(self) -> tuple[str, ...]:
        return ()

    @property
    def prompt_sha256(self) -> str | None:
        return prompts.prompt_sha256()

    @property
    def price(self) -> Price | None:
        """List price of the model where it is served from; None when unknown."""
        return self._price

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool | None]:
        return {
            "temperature": self._temperature,
            "max_tokens": self._max_tokens,
            "seed": self._seed,
            "samples": self._samples,
            "api_base": without_credentials(self._api_base),
            "evidence_budget": self._budget,
            "packing": PACKING,
            **({"images": True} if self._images else {}),
            **({"outputs": True} if self._outputs else {}),
        }

    @property
    def questions(self) -> frozenset[QuestionName]:
        return frozenset(FORMS)

    def record(self, request: Request) -> Record:
        """The record of a request's run, kept for a few runs as keys, estimates and calls all ask for it."""
        run, stages, facts = request.run, request.segmentation, request.facts
        key = (run.content_sha256, run.track, run.tier, stages.turn_stages, facts)
        return _kept(self._records, key, lambda: make_record(run, stages, facts, budget_chars=self._budget))

    def pictures(self, request: Request) -> tuple[Picture, ...]:
        """plan.png, and one output of each kind when asked for; none for a model that takes no images."""
        run, public = request.run, request.public
        if not self._images:
            return ()

        def draw() -> tuple[Picture, ...]:
            plan = plan_picture(run)
            return (*(() if plan is None else (plan,)), *(output_pictures(run, public) if self._outputs else ()))

        return _kept(self._pictures, (run.content_sha256, public), draw)

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

    def _quotes(self, run: Run) -> QuoteIndex:
        return _kept(self._indexes, run.content_sha256, lambda: QuoteIndex(run))

    def evidence_sha256(self, request: Request) -> str:
        """Of the record, and of the pictures that go with it: the same for every question on a run."""
        record, shown = self.record(request), self._shown(request)
        if not shown:
            return record.sha256
        return hashlib.sha256("".join([record.sha256, *(picture.sha256 for picture in shown)]).encode()).hexdigest()

    def prefix(self, request: Request) -> str:
        """The beginning of the user message: the record, the same bytes whatever is asked."""
        record = self.record(request)
        return prompts.fill("record", {"nonce": record.nonce, "record": record.text})

    def asked(self, request: Request) -> str:
        """The end of the user message: the question."""
        form, items = FORMS[request.question], request.criteria
        return prompts.fill(form.prompt, {
            "title": {str(stage): name for stage, name in STAGE_NAMES.items()}.get(request.question, ""),
            "items": "\n\n".join(form.line(item) for item in items),
            "ids": ", ".join(item.id for item in items),
            "first_id": items[0].id,
            "example": _example(request),
            "turns": str(len(request.run.turns)),
        })  # fmt: skip

    def messages(self, request: Request) -> list[dict[str, Any]]:
        """The messages of the first call: system, then the record with the question behind it.

        Everything up to the question is the same for all questions on a run. A provider that wants to be told so gets a
        breakpoint there; others find the common beginning by themselves.
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
                    {"type": "text", "text": f"The next picture is {picture.title}; like the record, it is data."}
                )
                blocks.append({"type": "image_url", "image_url": {"url": url}})
            if self._breakpoint:
                blocks[-1]["cache_control"] = {"type": "ephemeral"}
            content = [*blocks, {"type": "text", "text": question}]
        return [{"role": "system", "content": system}, {"role": "user", "content": content}]

    def estimate(self, request: Request) -> Estimate:
        """What a call would take; no call is made.

        At the least: one answer of a few words an item, with the record read from the provider's cache when another
        question on it went before. At most: the longest reply, and the longest again after a repair that sends the first
        one back, nothing cached. Requests that fail are counted but cost nothing, as providers bill answers.
        """
        system = prompts.fill("system", {"nonce": ""})
        prefix, question = f"{system}{self.prefix(request)}", self.asked(request)
        extra = _PICTURE_TOKENS * len(self._shown(request))
        most = estimate_tokens(prefix) + estimate_tokens(question) + extra
        low_prefix = len(prefix) // 5
        least = low_prefix + len(question) // 5
        answer = min(self._max_tokens, 30 * len(request.criteria))
        cold = self._usage(1, least, answer, 0, low_prefix if self._breakpoint else 0)
        warm = self._usage(1, least, answer, low_prefix, 0) if self._caches else cold
        twice = 2 * most + self._max_tokens + 600
        high = self._usage(2 * self._retry.attempts, twice, 2 * self._max_tokens, 0, twice if self._breakpoint else 0)
        total = Estimate(warm if request.warm else cold, high)
        for _ in range(self._samples - 1):
            total = Estimate(total.low + warm, total.high + high)
        return total

    @property
    def _caches(self) -> bool:
        return self._price is not None and self._price.cached is not None

    def _usage(
        self, calls: int, tokens_in: int | None, tokens_out: int | None, cached: int | None, written: int | None
    ) -> Usage:
        cost = self._price.cost(tokens_in, tokens_out, cached, written) if self._price else None
        return Usage(calls, tokens_in, tokens_out, cost, cached, written)

    async def judge(self, request: Request) -> Reply:
        """Verdicts on `request.criteria`; JudgeError when this judge cannot work at all."""
        if not request.criteria:
            return Reply(results=())
        if self._samples == 1:
            return await self._sample(request)
        first, *others = self._samples_of(request)
        # The first goes alone, so that the others find the record in the provider's cache.
        replies = [await self._sample(first)]
        replies += await asyncio.gather(*(self._sample(r) for r in others))
        ballots = zip((first, *others), replies, strict=True)
        return combine(request, [Ballot(self.name, r.sample, reply) for r, reply in ballots])

    def _samples_of(self, request: Request) -> list[Request]:
        first = request.sample * self._samples
        return [replace(request, sample=first + i) for i in range(self._samples)]

    # The same calls by other means (provider batches): what would be sent, and what an answer comes to.

    def endpoint(self) -> tuple[str, str | None]:
        """OpenAI-compatible address and API key (None: none is set; never to be shown or kept).

        ConfigError for a model that is reached in another way.
        """
        if "/" in self._target and not self._target.startswith("openai/"):
            raise ConfigError(f"{self.name} is not reached at an OpenAI-compatible address", "name it openai/MODEL and give --api-base")  # fmt: skip
        if "/" not in self._target and not self._target.startswith(("gpt-", "o1", "o3", "o4", "chatgpt")):
            raise ConfigError(f"{self.name}: no OpenAI-compatible address is known for this model", "give --api-base")
        base = self._api_base or "https://api.openai.com/v1"
        return base.rstrip("/"), self._api_key or os.environ.get("OPENAI_API_KEY") or None

    def bodies(self, request: Request) -> tuple[dict[str, Any], ...]:
        """The bodies of the first calls for a request, one a sample, as live calls would send them."""
        messages = self.messages(request)
        found = []
        for sample in self._samples_of(request):
            while True:
                used = (self._form, frozenset(self._dropped))
                try:
                    found.append(request_body(self._target, messages, self._options(sample)))
                    break
                except CallFailed as failed:
                    if not self._weaken(failed.message, used):
                        raise JudgeError(f"{self.name}: {failed.message}", "check the model's name and parameters") from None  # fmt: skip
        return tuple(found)

    def once(self, request: Request) -> Usage:
        """The most that one answer to each body can take, without retries and repairs."""
        most = estimate_tokens(prompts.fill("system", {"nonce": ""}) + self.prefix(request) + self.asked(request))
        total = Usage()
        for _ in range(self._samples):
            total += self._usage(1, most + _PICTURE_TOKENS * len(self._shown(request)), self._max_tokens, 0, 0)
        return total

    def reply_to(self, request: Request, answers: Sequence[Completion | CallFailed]) -> Reply:
        """What live calls would make of these answers, one a sample; there is no repair round.

        The request's criteria and evidence must be those that the bodies were made of.
        """
        first = request.sample * len(answers)
        ballots = []
        for number, answer in enumerate(answers):
            sample = replace(request, sample=first + number)
            ballots.append(Ballot(self.name, sample.sample, self._reply_to(sample, answer)))
        return ballots[0].reply if len(ballots) == 1 else combine(request, ballots)

    def _used(self, calls: int, answer: Completion) -> Usage:
        return self._usage(
            calls, answer.input_tokens, answer.output_tokens, answer.cached_tokens, answer.cache_write_tokens
        )

    def _parse(self, request: Request, answer: Completion) -> Parsed:
        return parse_reply(answer.text, request.question, request.criteria, len(request.run.turns))

    def _reply_to(self, request: Request, answer: Completion | CallFailed) -> Reply:
        if isinstance(answer, CallFailed):
            return self._conclude(request, None, (_reason(answer), answer.message), Usage(answer.calls), ())
        usage, raw = self._used(1, answer), (answer.text or answer.refusal or "",)
        if (end := _ended_badly(answer)) is not None:
            return self._conclude(request, None, end, usage, raw)
        parsed = self._parse(request, answer)
        return self._conclude(request, parsed, ("unparsable", parsed.problem), usage, raw)

    async def _sample(self, request: Request) -> Reply:
        messages = self.messages(request)
        usage, raw = Usage(), []
        best: Parsed | None = None
        lost: tuple[UnscoredReason, str] = ("unparsable", "")
        for _ in range(2):
            try:
                answer, spent = await self._call(messages, request)
            except _Stopped as stopped:
                usage += stopped.usage
                lost = (stopped.reason, stopped.message)
                break
            usage += spent
            raw.append(answer.text or answer.refusal or "")
            if (end := _ended_badly(answer)) is not None:
                lost = end
                break
            parsed = self._parse(request, answer)
            best = parsed if best is None else _merge(best, parsed)
            if not best.problems:
                break
            lost = ("unparsable", best.problem)
            messages = [
                *messages,
                {"role": "assistant", "content": answer.text or "(empty)"},
                {"role": "user", "content": prompts.fill("repair", {"problem": best.problem})},
            ]
        return self._conclude(request, best, lost, usage, tuple(raw))

    def _conclude(
        self, request: Request, best: Parsed | None, lost: tuple[UnscoredReason, str], usage: Usage,
        raw: tuple[str, ...],
    ) -> Reply:  # fmt: skip
        """The reply from the best that was parsed (None: nothing) and why the rest is missing."""
        record = self.record(request)
        warnings = [f"{self.name}: {describe_omissions(record)}"] if record.truncated else []
        unseen = [picture for picture in self.pictures(request) if picture.png is None]
        warnings += [f"{self.name}: not shown: {picture.title}: {picture.problem}" for picture in unseen]
        if best is None:
            results = unscored(request.criteria, *lost)
        else:
            results = to_results(best, request.question, request.criteria, record, self._quotes(request.run))
            results = tuple(_with_reason(r, lost) for r in results)
            looked = self._looked(request)
            on_plan = {c.id for c in request.criteria if request.question in CRITERIA and "plan.png" in c.text}
            results = tuple(_with_detail(r, looked) if r.id in on_plan else r for r in results)
            warnings += [f"{self.name}, {request.question}: {text}" for text in (*best.ignored, *_citations(results))]
        if self._dropped:
            warnings.append(f"{self.name}: does not take {', '.join(sorted(self._dropped))}; its defaults were used")
        # A reply cut by its length limit may be whole next time; evidence left out will be left out again.
        cut = best is None and lost[0] == "truncated"
        transient = {r.id for r in results if r.status == "unscored" and (r.reason == "unparsable" or cut)}
        return Reply(
            results=results, usage=usage, warnings=tuple(warnings), raw=raw, transient=frozenset(transient),
        )  # fmt: skip

    async def _call(self, messages: list[dict[str, Any]], request: Request) -> tuple[Completion, Usage]:
        """One completion, with the request's form weakened step by step when the provider does not take it."""
        if self._breaker.open:
            raise _Stopped(
                "judge_error", "the provider failed repeatedly and is left alone for a while; run again later"
            )
        while True:
            options = self._options(request)
            used = (self._form, frozenset(self._dropped))
            try:
                answer, calls = await complete(self._target, messages, options, self._retry, self._key(), self.name)
            except CallFailed as failed:
                if failed.kind == "parameter" and self._weaken(failed.message, used):
                    continue
                if failed.kind == "parameter":
                    raise JudgeError(f"{self.name}: the provider rejected the request: {failed.message}", "check the model's name and parameters") from None  # fmt: skip
                if failed.kind == "unreachable" and not self._reached:
                    raise JudgeError(f"{self.name}: {failed.message}", "check --api-base and the network") from None
                if failed.kind in ("provider", "unreachable"):
                    self._breaker.record(ok=False)
                raise _Stopped(_reason(failed), failed.message, failed.calls) from None
            self._breaker.record(ok=True)
            self._reached = True
            return answer, self._used(calls, answer)

    def _options(self, request: Request) -> dict[str, Any]:
        if self._form is None:
            self._form = _first_form(self._target)
        options: dict[str, Any] = {
            "timeout": self._timeout,
            "temperature": self._temperature,
            "max_tokens": self._max_tokens,
        }
        if self._api_base is not None:
            options["api_base"] = self._api_base
        if self._seed is not None or request.sample:
            options["seed"] = (self._seed or 0) + request.sample
        if self._form == "schema":
            schema = {"name": "verdicts", "strict": True, "schema": reply_schema(request.question, request.criteria)}
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif self._form == "json":
            options["response_format"] = {"type": "json_object"}
        return {k: v for k, v in options.items() if k not in self._dropped}

    def _weaken(self, message: str, used: tuple[Form | None, frozenset[str]]) -> bool:
        """Ask for less next time; False when there is nothing left to drop. Remembered for all later calls.

        `used` is what the rejected call asked for: a call beside it may have weakened the request already.
        """
        if used != (self._form, frozenset(self._dropped)):
            return True
        text = message.lower()
        for name in ("temperature", "seed", "max_tokens"):
            if name in text and name not in self._dropped:
                self._dropped.add(name)
                return True
        if self._form in _WEAKER:
            self._form = _WEAKER[self._form]
            return True
        return False

    def _key(self) -> str | None:
        """A stand-in for a local server that wants no key; else whatever litellm finds in the environment."""
        if self._api_key is None and self._api_base is not None and self._target.startswith("openai/"):
            return os.environ.get("OPENAI_API_KEY") or "none"
        return self._api_key


class _Stopped(Exception):
    """No answer came; the criteria are unscored for this reason."""

    def __init__(self, reason: UnscoredReason, message: str, calls: int = 0) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message
        self.usage = Usage(calls=calls)  # failed requests are calls, but bring no tokens to bill


def _reason(failed: CallFailed) -> UnscoredReason:
    return "refused" if failed.kind == "policy" else "judge_error"


def _example(request: Request) -> str:
    """A value of the first item, as it would stand in the reply."""
    item = request.criteria[0]
    if isinstance(item, AskItem):
        return {"yes_no": "true", "choice": json.dumps(next(iter(item.answer.options), "")), "number": "3.5", "text": '"..."', "json": "{...}"}[item.answer.kind]  # fmt: skip
    return f"{item.values[0]:g}"


def _ended_badly(answer: Completion) -> tuple[UnscoredReason, str] | None:
    """Looked at before the text: a reply that was cut or refused may still hold something that parses."""
    if answer.refusal is not None or answer.finish in _REFUSED:
        return "refused", (answer.refusal or f"finish reason {answer.finish}")[:200]
    if answer.finish == "length":
        return "truncated", "the reply reached its token limit; raise max_tokens"
    return None


def _merge(first: Parsed, second: Parsed) -> Parsed:
    """What was usable at first stays; the repair fills in only what was missing."""
    stated = {**second.stated, **first.stated}
    problems = {name: what for name, what in second.problems.items() if name not in stated}
    return Parsed(stated, problems, second.ignored)


def _with_reason(result: CriterionResult, lost: tuple[UnscoredReason, str]) -> CriterionResult:
    """An unparsable criterion whose repair was cut, refused or failed says so."""
    if result.reason != "unparsable" or lost[0] == "unparsable":
        return result
    return result.model_copy(update={"detail": f"{result.detail}; repair: {lost[1]}"[:300]})


def _with_detail(result: CriterionResult, words: str) -> CriterionResult:
    return result.model_copy(update={"detail": "; ".join(filter(None, (result.detail, words)))})


def _citations(results: tuple[CriterionResult, ...]) -> list[str]:
    """How many of the judge's quotes stand where it says, when not all do."""
    checks = [e.check for r in results for e in r.evidence]
    good = checks.count("verified")
    if good == len(checks):
        return []
    return [
        f"{good} of {len(checks)} quotes verified, {checks.count('moved')} moved, {checks.count('not_found')} not found"
    ]


def citation_validity(results: tuple[CriterionResult, ...]) -> float | None:
    """Share of quotes that stand in the turn they are cited from, in [0, 1]; None without quotes."""
    checks = [e.check for r in results for e in r.evidence]
    return checks.count("verified") / len(checks) if checks else None


def _first_form(target: str) -> Form:
    """By JSON Schema where the model is known to take it or is unknown (local servers mostly do), else JSON mode."""
    module = litellm()
    try:
        if module.supports_response_schema(model=target):
            return "schema"
        if "response_format" not in (module.get_supported_openai_params(model=target) or ()):
            return "prompt"
        return "json" if target.removeprefix("openai/") in module.model_cost else "schema"
    except Exception:  # litellm raises many types for names it does not know
        return "schema"


def without_credentials(url: str | None) -> str | None:
    """The address as it may be stored: without user, password, query and fragment."""
    if url is None:
        return None
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
