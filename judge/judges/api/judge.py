"""A judge behind any model that litellm reaches: one structured call a question, at most one
repair, failures kept apart.

    judge = ApiJudge("openai/gpt-5.4-mini")
    reply = await judge.judge(request)

Outcomes of a call become verdicts in `questions.replies`; what can go wrong on the way becomes
`unscored` with its reason: cut by length `truncated`, refused `refused`, no usable JSON
`unparsable`, provider down `judge_error`. JudgeError is raised only when no call can succeed
(credentials, unknown model, rejected request, nobody listening).
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from ....errors import ConfigError, JudgeError
from ....trajectories.record import DEFAULT_BUDGET, MIN_BUDGET, PACKING, estimate_tokens
from ...base import BESIDE, Estimate, QuestionName, Reply, Request, Usage, is_criteria
from ...card.stage_results import UnscoredReason, unscored
from ...questions import prompts
from ...questions.replies import Parsed, describe_omissions, parse_reply, reply_schema, to_results
from ..panel import Ballot, combine
from .messages import Messages
from .outcomes import Stopped, citations, ended_badly, merge, reason_of, with_detail, with_reason
from .prices import Price, effective_api_base, key_for, price_of
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
_PICTURE_TOKENS = 1_600
"""Of one picture, at the most that providers count for this size."""


class Breaker:
    """Stops calling a provider that failed `after` times in a row; after `rest_s` seconds one call
    tries again."""

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


class ApiJudge(Messages):
    """A `Judge` (see base.py) over litellm.

    model: as litellm names it; with `api_base` and no provider in the name, an OpenAI-compatible
    server is meant. temperature: 0-2. max_tokens: of a reply. evidence_budget: characters of a
    run's record. timeout: seconds a try. seed: sent when given, plus the sample's number. samples:
    answers asked for each question, made one as panel.py says. api_key: only when not from the
    environment (`key_for`); never shown. images: send plan.png along where the model takes images;
    outputs: also a picture of one output of each kind. price: what this model costs at this
    address, whatever the built-in table says.
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
        price: Price | None = None,
        images: bool = True,
        outputs: bool = False,
    ) -> None:
        if not model.strip():
            raise ConfigError(
                "a judge needs a model's name", "for example --judge openai/gpt-5.4-mini"
            )
        if not 0 <= temperature <= 2:
            raise ConfigError(
                f"temperature {temperature} is outside 0-2",
                "use 0 for the most repeatable verdicts",
            )
        if evidence_budget < MIN_BUDGET:
            raise ConfigError(
                f"evidence budget {evidence_budget} is below {MIN_BUDGET} characters",
                f"the default is {DEFAULT_BUDGET}",
            )
        if max_tokens < 1 or not 0 < timeout < math.inf or samples < 1:
            raise ConfigError(
                "max_tokens, timeout and samples must be above 0", "leave them out for the defaults"
            )
        if api_base is not None and not re.match(r"https?://[^/\s]", api_base):
            raise ConfigError(
                f"{api_base.rpartition('@')[2]!r} is no http(s) address",
                "for example --api-base http://localhost:8000/v1",
            )
        self._model = model
        self._named_base, self._api_base = api_base, effective_api_base(model, api_base)
        self._target = f"openai/{model}" if api_base is not None and "/" not in model else model
        self._temperature, self._max_tokens, self._timeout, self._seed = (
            temperature,
            max_tokens,
            timeout,
            seed,
        )
        self._samples = samples
        self._api_key = api_key
        self._retry = retry or Retry()
        self._breaker = breaker or Breaker()
        self._price = price or price_of(model, api_base)
        self._form: Form | None = None
        self._dropped: set[str] = set()
        self._reached = False
        sees = images and takes_images(self._target)
        super().__init__(
            evidence_budget,
            images=sees,
            outputs=outputs and sees,
            breakpoint_=takes_cache_control(self._target),
        )

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
        return BESIDE

    def estimate(self, request: Request) -> Estimate:
        """What a call would take; no call is made.

        At the least: one answer of a few words an item, with the record read from the provider's
        cache when another question on it went before. At most: the longest reply, and the longest
        again after a repair that sends the first one back, nothing cached. Requests that fail are
        counted but cost nothing, as providers bill answers.
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
        high = self._usage(
            2 * self._retry.attempts,
            twice,
            2 * self._max_tokens,
            0,
            twice if self._breakpoint else 0,
        )
        first = Estimate(warm if request.warm else cold, high)
        return sum([Estimate(warm, high)] * (self._samples - 1), first)

    @property
    def _caches(self) -> bool:
        return self._price is not None and self._price.cached is not None

    def _usage(
        self,
        calls: int,
        tokens_in: int | None,
        tokens_out: int | None,
        cached: int | None,
        written: int | None,
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

    # The same calls by other means (provider batches): what would be sent, and what an answer comes
    # to.

    def endpoint(self) -> tuple[str, str | None]:
        """OpenAI-compatible address and API key (None: none is set; never to be shown or kept).

        ConfigError for a model that is reached in another way.
        """
        if "/" in self._target and not self._target.startswith("openai/"):
            raise ConfigError(
                f"{self.name} is not reached at an OpenAI-compatible address",
                "name it openai/MODEL and give --api-base",
            )
        if "/" not in self._target and not self._target.startswith(
            ("gpt-", "o1", "o3", "o4", "chatgpt")
        ):
            raise ConfigError(
                f"{self.name}: no OpenAI-compatible address is known for this model",
                "give --api-base",
            )
        base = self._api_base or "https://api.openai.com/v1"
        key = (
            self._api_key
            or key_for(self._target, self._named_base)
            or os.environ.get("OPENAI_API_KEY")
        )
        return base.rstrip("/"), key if key != "none" else None

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
                        raise JudgeError(
                            f"{self.name}: {failed.message}",
                            "check the model's name and parameters",
                        ) from None
        return tuple(found)

    def once(self, request: Request) -> Usage:
        """The most that one answer to each body can take, without retries and repairs."""
        most = estimate_tokens(
            prompts.fill("system", {"nonce": ""}) + self.prefix(request) + self.asked(request)
        )
        answer = self._usage(
            1, most + _PICTURE_TOKENS * len(self._shown(request)), self._max_tokens, 0, 0
        )
        return sum([answer] * self._samples, Usage())

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
            calls,
            answer.input_tokens,
            answer.output_tokens,
            answer.cached_tokens,
            answer.cache_write_tokens,
        )

    def _parse(self, request: Request, answer: Completion) -> Parsed:
        return parse_reply(answer.text, request.question, request.criteria, len(request.run.turns))

    def _reply_to(self, request: Request, answer: Completion | CallFailed) -> Reply:
        if isinstance(answer, CallFailed):
            return self._conclude(
                request, None, (reason_of(answer), answer.message), Usage(answer.calls), ()
            )
        usage, raw = self._used(1, answer), (answer.text or answer.refusal or "",)
        if (end := ended_badly(answer)) is not None:
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
            except Stopped as stopped:
                usage += stopped.usage
                lost = (stopped.reason, stopped.message)
                break
            usage += spent
            raw.append(answer.text or answer.refusal or "")
            if (end := ended_badly(answer)) is not None:
                lost = end
                break
            parsed = self._parse(request, answer)
            best = parsed if best is None else merge(best, parsed)
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
        self,
        request: Request,
        best: Parsed | None,
        lost: tuple[UnscoredReason, str],
        usage: Usage,
        raw: tuple[str, ...],
    ) -> Reply:
        """The reply from the best that was parsed (None: nothing) and why the rest is missing."""
        record = self.record(request)
        warnings = [f"{self.name}: {describe_omissions(record)}"] if record.truncated else []
        unseen = [picture for picture in self.pictures(request) if picture.png is None]
        warnings += [
            f"{self.name}: not shown: {picture.title}: {picture.problem}" for picture in unseen
        ]
        if best is None:
            results = unscored(request.criteria, *lost)
        else:
            results = to_results(
                best, request.question, request.criteria, record, self._quotes(request)
            )
            results = tuple(with_reason(r, lost) for r in results)
            looked = self._looked(request)
            on_plan = {
                c.id
                for c in request.criteria
                if is_criteria(request.question) and "plan.png" in c.text
            }
            results = tuple(with_detail(r, looked) if r.id in on_plan else r for r in results)
            warnings += [
                f"{self.name}, {request.question}: {text}"
                for text in (*best.ignored, *citations(results))
            ]
        if self._dropped:
            warnings.append(
                f"{self.name}: does not take {', '.join(sorted(self._dropped))}; its defaults were"
                " used"
            )
        # A reply cut by its length limit may be whole next time; evidence left out will be left out
        # again.
        cut = best is None and lost[0] == "truncated"
        transient = {
            r.id for r in results if r.status == "unscored" and (r.reason == "unparsable" or cut)
        }
        return Reply(
            results=results,
            usage=usage,
            warnings=tuple(warnings),
            raw=raw,
            transient=frozenset(transient),
        )

    async def _call(
        self, messages: list[dict[str, Any]], request: Request
    ) -> tuple[Completion, Usage]:
        """One completion, with the request's form weakened step by step when the provider does not
        take it."""
        if self._breaker.open:
            raise Stopped(
                "judge_error",
                "the provider failed repeatedly and is left alone for a while; run again later",
            )
        while True:
            options = self._options(request)
            used = (self._form, frozenset(self._dropped))
            try:
                answer, calls = await complete(
                    self._target, messages, options, self._retry, self._key(), self.name
                )
            except CallFailed as failed:
                if failed.kind == "parameter" and self._weaken(failed.message, used):
                    continue
                if failed.kind == "parameter":
                    raise JudgeError(
                        f"{self.name}: the provider rejected the request: {failed.message}",
                        "check the model's name and parameters",
                    ) from None
                if failed.kind == "unreachable" and not self._reached:
                    raise JudgeError(
                        f"{self.name}: {failed.message}", "check --api-base and the network"
                    ) from None
                if failed.kind in ("provider", "unreachable"):
                    self._breaker.record(ok=False)
                raise Stopped(reason_of(failed), failed.message, failed.calls) from None
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
            schema = {
                "name": "verdicts",
                "strict": True,
                "schema": reply_schema(request.question, request.criteria),
            }
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif self._form == "json":
            options["response_format"] = {"type": "json_object"}
        return {k: v for k, v in options.items() if k not in self._dropped}

    def _weaken(self, message: str, used: tuple[Form | None, frozenset[str]]) -> bool:
        """Ask for less next time; False when there is nothing left to drop. Remembered for all
        later calls.

        `used` is what the rejected call asked for: a call beside it may have weakened the request
        already.
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
        """The key to send (`key_for`); None: whatever litellm finds in the environment for the
        provider.

        An address that the environment names and the key beside it are meant for each other; it may
        want none.
        """
        key = self._api_key or key_for(self._target, self._named_base)
        if (
            key is None
            and self._named_base is None
            and self._api_base is not None
            and self._target.startswith("openai/")
        ):
            return os.environ.get("OPENAI_API_KEY") or "none"
        return key


def _first_form(target: str) -> Form:
    """By JSON Schema where the model is known to take it or is unknown (local servers mostly do),
    else JSON mode."""
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
