"""A judge by any model that litellm can call: one structured call per question, and one repair.

    judge = ApiJudge("openai/gpt-5.4-mini")
    reply = await judge.judge(request)

Completions become verdicts in `questions.replies`. What goes wrong leaves criteria `unscored` with
a reason: a reply cut at its token limit `truncated`, a refusal `refused`, no usable JSON
`unparsable`, a provider that is down `judge_error`. JudgeError is raised only if no call can
succeed (credentials, unknown model, rejected request, no server at the address).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....addresses import Address
from ....errors import ConfigError, JudgeError
from ....rubrics.model import Criterion
from ....trajectories.record import DEFAULT_BUDGET, MIN_BUDGET, PACKING, Record, estimate_tokens
from ...base import EXTRA_QUESTIONS, Estimate, QuestionName, Reply, Request, Usage, is_criteria
from ...card.stage_results import CriterionResult, unscored
from ...questions import prompts
from ...questions.replies import ParsedReply, describe_omissions, parse_reply, to_results
from ..limits import CostLimitReached
from .accounts import Account, FirstCall, Provider, TokenCounts, billed_usage
from .answers import Completion, Counts
from .circuit_breaker import CircuitBreaker
from .messages import Messages
from .model_names import is_same_model
from .prices import Price, effective_api_base, key_for, price_of
from .reply_limits import DEFAULT_MAX_TOKENS, ReplyLimits
from .reply_outcomes import (
    Failure,
    NoCompletion,
    add_detail,
    add_repair_failure,
    failure_of_call,
    failure_of_completion,
    merge_repair,
    quote_warnings,
)
from .request_options import RequestOptions
from .transport import (
    CallFailed,
    Retry,
    complete,
    is_known_to_reason,
    request_body,
    takes_cache_control,
    takes_images,
)

_PICTURE_TOKENS = 1_600
"""The most that providers count for one picture of our size."""
_RECORD_CHARACTERS, _PROSE_CHARACTERS = 2.9, 4.1
"""Characters a token in records of runs, which are code and logs, and in our questions: medians of
the recorded runs by the vocabulary o200k."""
_REPAIR_PROMPT_TOKENS = 600
"""The most that the prompt for a repair takes, with all the problems that it lists."""
_OPENAI_PREFIXES = ("gpt-", "o1", "o3", "o4", "chatgpt")
"""How the names of OpenAI's own models begin, where no provider is named."""


class ApiJudge(Messages):
    """A `Judge` (see base.py) over litellm.

    model: as litellm names it. With `api_base` and no provider in the name, the server is taken as
    OpenAI-compatible.
    temperature: 0-2.
    max_tokens: most output tokens of a reply, by default 8,192; a question whose items need less
        gets less, and a second, longer try if its reply is cut.
    evidence_budget: most characters of a run's record.
    timeout: seconds for each attempt.
    seed: sent if given, plus the sample's number.
    api_key: only if it is not in the environment (`key_for`); never shown.
    images: send plan.png along if the model takes images.
    outputs: also send a picture of one output of each kind.
    price: what this model costs at this address; it replaces the price of the built-in table.
    batch_rate: the share of it that calls through the provider's batches cost, 0-1; by default that
        of the price, mostly a half.

    Raises ConfigError for a value out of range.
    """

    def __init__(
        self,
        model: str,
        api_base: str | None = None,
        *,
        temperature: float = 0.0,
        max_tokens: int | None = None,
        evidence_budget: int = DEFAULT_BUDGET,
        timeout: float = 120.0,
        seed: int | None = None,
        api_key: str | None = None,
        retry: Retry | None = None,
        breaker: CircuitBreaker | None = None,
        price: Price | None = None,
        batch_rate: float | None = None,
        images: bool = True,
        outputs: bool = False,
    ) -> None:
        _check_model(model, api_base)
        _check_numbers(temperature, evidence_budget, max_tokens, timeout)
        self._model = model
        self._target = f"openai/{model}" if api_base is not None and "/" not in model else model
        """The model's name as litellm is given it."""
        self._given_base = api_base
        self._api_base = effective_api_base(model, api_base)
        """The address that is called: the given one, or the environment's."""
        self._temperature = temperature
        self._seed = seed
        self._api_key = api_key
        self._retry = retry or Retry()
        self._breaker = breaker or CircuitBreaker()
        self._price = price or price_of(model, api_base)
        if self._price is not None and batch_rate is not None:
            self._price = replace(self._price, batch=batch_rate)
        self._options = RequestOptions(
            self._target,
            self._api_base,
            temperature=temperature,
            timeout=timeout,
            seed=seed,
        )
        self._provider = Provider(
            self._price,
            ReplyLimits(max_tokens, thinks=is_known_to_reason(self._target)),
            TokenCounts((self._target, self._api_base)),
            FirstCall(),
        )
        self._was_reached = False
        """Whether any call was answered; an address that never answers is probably wrong."""
        sends_images = images and takes_images(self._target)
        super().__init__(
            evidence_budget,
            images=sends_images,
            outputs=outputs and sends_images,
            cache_breakpoint=takes_cache_control(self._target),
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
    def prompt_bytes(self) -> bytes:
        return prompts.prompt_bytes()

    @property
    def price(self) -> Price | None:
        """List price of the model where it is served from; None if unknown."""
        return self._price

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool | None]:
        parameters: dict[str, str | int | float | bool | None] = {
            "temperature": self._temperature,
            # The limit of a reply decides no verdict: a reply that reaches it is none. The number
            # is part of the keys of stored verdicts.
            "max_tokens": DEFAULT_MAX_TOKENS,
            "seed": self._seed,
            # One answer to each question; several are the work of `panel.Samples`, and the number
            # of each is a part of its key.
            "samples": 1,
            "api_base": without_credentials(self._api_base),
            "evidence_budget": self._budget,
            "packing": PACKING,
        }
        if self._images:
            parameters["images"] = True
        if self._outputs:
            parameters["outputs"] = True
        return parameters

    @property
    def questions(self) -> frozenset[QuestionName]:
        return EXTRA_QUESTIONS

    # Estimates.

    def estimate(self, request: Request) -> Estimate:
        """The least and the most that a request would use; no call is made.

        Low: one reply of a few words per item, with the record read from the provider's cache if
        another question about it is asked before. High: the longest reply to the question, and
        another one after a repair that sends the first one back, with nothing cached. Tries that
        fail, and longer ones after a reply that was cut, come on top. Each call is reserved before
        it is made, so nothing is reserved for the request.
        """
        prefix, question = self._prompt_texts(request)
        limit = self._provider.limits.first(request).limit
        # English text has at most five characters a token.
        low_prefix = len(prefix) // 5
        low_input = low_prefix + len(question) // 5
        low_output = min(limit, 30 * len(request.criteria))
        cold = self._usage(
            calls=1,
            input_tokens=low_input,
            output_tokens=low_output,
            cached_tokens=0,
            cache_write_tokens=low_prefix if self._cache_breakpoint else 0,
        )
        warm = cold
        if self._price is not None and self._price.cached is not None:
            warm = self._usage(
                calls=1,
                input_tokens=low_input,
                output_tokens=low_output,
                cached_tokens=low_prefix,
                cache_write_tokens=0,
            )
        high_input = 2 * self._estimated_input(request) + limit + _REPAIR_PROMPT_TOKENS
        high = self._usage(
            calls=2,
            input_tokens=high_input,
            output_tokens=2 * limit,
            cached_tokens=0,
            cache_write_tokens=high_input if self._cache_breakpoint else 0,
        )
        return Estimate(warm if request.warm else cold, high, reserved=Usage())

    def usage_without_retries(self, request: Request) -> Usage:
        """The most that one answer to `batch_body` can use; no retries, no repairs."""
        input_tokens = self._provider.counts.most(request, self._estimated_input(request))
        output_tokens = self._provider.limits.only(request)
        price = self._batch_price
        cost = None if price is None else price.cost(input_tokens, output_tokens)
        return Usage(1, input_tokens, output_tokens, cost)

    @property
    def _batch_price(self) -> Price | None:
        return None if self._price is None else self._price.in_batches()

    def _prompt_texts(self, request: Request) -> tuple[str, str]:
        """The text that all questions about the run begin with, and the text of this question."""
        system = prompts.fill("system", {"nonce": ""})
        return f"{system}{self.prefix(request)}", self.question_text(request)

    def _estimated_input(self, request: Request) -> int:
        """The tokens of a request's prompt, by an estimate that errs upwards."""
        prefix, question = self._prompt_texts(request)
        pictures = _PICTURE_TOKENS * len(self._sent_pictures(request))
        return estimate_tokens(prefix) + estimate_tokens(question) + pictures

    def _usage(
        self,
        *,
        calls: int,
        input_tokens: int | None,
        output_tokens: int | None,
        cached_tokens: int | None,
        cache_write_tokens: int | None,
    ) -> Usage:
        """Use of `calls` calls, priced if the model's price is known."""
        cost = None
        if self._price is not None:
            cost = self._price.cost(input_tokens, output_tokens, cached_tokens, cache_write_tokens)
        return Usage(calls, input_tokens, output_tokens, cost, cached_tokens, cache_write_tokens)

    @property
    def thinks(self) -> bool:
        return self._provider.limits.thinks

    @property
    def caches_by_mark(self) -> bool:
        return self._cache_breakpoint

    def shared_tokens(self, request: Request) -> int:
        """Tokens of the system prompt, the record and the pictures, by an estimate."""
        system = prompts.fill("system", {"nonce": ""})
        characters = len(system) + len(self.prefix(request))
        pictures = len(self._sent_pictures(request))
        return round(characters / _RECORD_CHARACTERS) + pictures * _PICTURE_TOKENS

    def question_tokens(
        self, question: QuestionName, items: Sequence[Criterion], turns: int
    ) -> int:
        """Tokens of a question's own text, by an estimate."""
        return round(len(self._question_text(question, items, turns)) / _PROSE_CHARACTERS)

    def _prompt_tokens(self, request: Request) -> int:
        """Tokens of a request's prompt, as forecasts estimate them."""
        turns = len(request.run.turns)
        return self.shared_tokens(request) + self.question_tokens(
            request.question, request.criteria, turns
        )

    # Live calls.

    async def judge(self, request: Request) -> Reply:
        """Verdicts on `request.criteria`; JudgeError if this judge cannot work at all."""
        if not request.criteria:
            return Reply(results=())
        messages = self.messages(request)
        input_estimate = self._estimated_input(request)
        account = Account(self._provider, request)
        raw: list[str] = []
        parsed: ParsedReply | None = None
        failure = Failure("unparsable")
        # The second round repairs entries that cannot be used; others stay unparsable.
        for _ in range(2):
            try:
                completion = await self._whole_reply(
                    messages, request, account, input_estimate, raw
                )
            except NoCompletion as error:
                failure = error.failure
                break
            completion_failure = failure_of_completion(completion, account.limit)
            if completion_failure is not None:
                failure = completion_failure
                break
            latest = self._parse(request, completion)
            parsed = latest if parsed is None else merge_repair(parsed, latest)
            if not parsed.problems:
                break
            failure = Failure("unparsable", parsed.problem)
            reply_text = completion.text or "(empty)"
            repair = prompts.fill("repair", {"problem": parsed.problem})
            messages = [
                *messages,
                {"role": "assistant", "content": reply_text},
                {"role": "user", "content": repair},
            ]
            input_estimate += estimate_tokens(reply_text) + estimate_tokens(repair)
        return self._reply(request, parsed, failure, account, tuple(raw))

    async def _whole_reply(
        self,
        messages: list[dict[str, Any]],
        request: Request,
        account: Account,
        input_estimate: int,
        raw: list[str],
    ) -> Completion:
        """A completion, with one longer try if the first was cut; their texts are added to `raw`.

        NoCompletion if no call brought one; JudgeError if no other call can succeed either.
        """
        limits = self._provider.limits
        account.plan(input_estimate)
        completion = await self._call(messages, request, account)
        raw.append(_raw_text(completion))
        if completion.is_cut and account.limit < limits.longest:
            account.plan(input_estimate, longer=True)
            try:
                longer = await self._call(messages, request, account)
            except NoCompletion:
                return completion
            raw.append(_raw_text(longer))
            return longer
        return completion

    async def _call(
        self, messages: list[dict[str, Any]], request: Request, account: Account
    ) -> Completion:
        """One completion; options that the provider rejects are dropped for good.

        NoCompletion if this call failed; JudgeError if no other call can succeed either.
        """
        if self._breaker.open:
            raise NoCompletion(
                Failure(
                    "judge_error",
                    "the provider failed repeatedly, so no calls are made for a while; run again"
                    " later",
                )
            )
        while True:
            options = self._options.for_request(request, account.planned_limit)
            # Noted before the call: simultaneous calls may weaken the options meanwhile.
            requested = self._options.requested
            try:
                completion = await complete(
                    self._target,
                    messages,
                    options,
                    self._retry,
                    self._key_to_send(),
                    self.name,
                    account,
                )
            except CostLimitReached as refused:
                raise NoCompletion(Failure("budget", str(refused))) from None
            except CallFailed as failed:
                if failed.kind == "parameter" and self._options.weaken(failed.message, requested):
                    if not self._options.limits_replies:
                        self._provider.limits.drop()
                    continue
                raise self._handle_failed_call(failed) from None
            self._breaker.record(success=True)
            self._was_reached = True
            return completion

    def _handle_failed_call(self, failed: CallFailed) -> JudgeError | NoCompletion:
        """Tell the circuit breaker of a failed call, and return the error to raise."""
        if failed.kind == "parameter":
            return JudgeError(
                f"{self.name}: the provider rejected the request: {failed.message}",
                "check the model's name and parameters",
            )
        if failed.kind == "unreachable" and not self._was_reached:
            return JudgeError(f"{self.name}: {failed.message}", "check --api-base and the network")
        if failed.kind in ("provider", "unreachable"):
            self._breaker.record(success=False)
        return NoCompletion(failure_of_call(failed))

    def _key_to_send(self) -> str | None:
        """The API key of a call; None leaves it to litellm to find one in the environment.

        If the environment names the address, the key beside it is meant for that address, which
        may also need none.
        """
        key = self._api_key or key_for(self._target, self._given_base)
        base_from_environment = self._given_base is None and self._api_base is not None
        if key is None and base_from_environment and self._target.startswith("openai/"):
            return os.environ.get("OPENAI_API_KEY") or "none"
        return key

    # The same calls in provider batches (`BatchJudge`).

    def endpoint(self) -> tuple[str, str | None]:
        """OpenAI-compatible address and API key (None if none is set); never show or store the key.

        Raises ConfigError for a model that is reached in another way.
        """
        provider, has_provider, _ = self._target.partition("/")
        if has_provider and provider != "openai":
            raise ConfigError(
                f"{self.name} is not reached at an OpenAI-compatible address",
                "name it openai/MODEL and give --api-base",
            )
        if not has_provider and not self._target.startswith(_OPENAI_PREFIXES):
            raise ConfigError(
                f"{self.name}: no OpenAI-compatible address is known for this model",
                "give --api-base",
            )
        base = self._api_base or "https://api.openai.com/v1"
        key = (
            self._api_key
            or key_for(self._target, self._given_base)
            or os.environ.get("OPENAI_API_KEY")
        )
        return base.rstrip("/"), key if key != "none" else None

    def batch_body(self, request: Request) -> dict[str, Any]:
        """The JSON body of a request's first call, as a live call sends it."""
        messages = self.messages(request)
        while True:
            # Without options that the model is known not to take.
            options = self._options.for_request(request, self._provider.limits.only(request))
            requested = self._options.requested
            try:
                return request_body(self._target, messages, options)
            except CallFailed as failed:
                if not self._options.weaken(failed.message, requested):
                    raise JudgeError(
                        f"{self.name}: {failed.message}", "check the model's name and parameters"
                    ) from None

    def reply_from(self, request: Request, answer: Completion | CallFailed) -> Reply:
        """The reply that a live call with this answer would give; no repairs.

        The request's criteria and evidence must be those that the body was made from.
        """
        account = Account(self._provider, request)
        most = Counts(self._estimated_input(request), self._provider.limits.only(request))
        if isinstance(answer, CallFailed):
            if answer.counts is not None:
                account.usage = billed_usage(self._batch_price, answer.counts, most)
            else:
                account.usage = Usage(answer.calls)
            return self._reply(request, None, failure_of_call(answer), account, ())
        account.usage = billed_usage(self._batch_price, answer.counts, most)
        account.note_origin(answer)
        raw = (_raw_text(answer),)
        failure = failure_of_completion(answer, self._provider.limits.only(request))
        if failure is not None:
            return self._reply(request, None, failure, account, raw)
        parsed = self._parse(request, answer)
        return self._reply(request, parsed, Failure("unparsable", parsed.problem), account, raw)

    # From completions to a reply.

    def _parse(self, request: Request, completion: Completion) -> ParsedReply:
        turns = len(request.run.turns)
        return parse_reply(completion.text, request.question, request.criteria, turns)

    def _reply(
        self,
        request: Request,
        parsed: ParsedReply | None,
        failure: Failure,
        account: Account,
        raw: tuple[str, ...],
    ) -> Reply:
        """The reply from parsed entries; items without a usable entry are unscored by `failure`.

        `parsed` is None if there is no completion to parse; `account` has what the calls used.
        """
        record = self.record(request)
        warnings = self._record_warnings(request, record)
        if parsed is None:
            results = unscored(request.criteria, failure.reason, failure.detail)
        else:
            results = self._results(request, parsed, failure, record)
            notes = (*parsed.ignored, *quote_warnings(results))
            warnings += [f"{self.name}, {request.question}: {note}" for note in notes]
        if self._options.dropped:
            names = ", ".join(self._options.dropped)
            warnings.append(
                f"{self.name}: the provider does not accept {names}; its defaults were used"
            )
        warnings += self._other_models(account)
        return Reply(
            results=results,
            usage=account.usage,
            warnings=tuple(warnings),
            raw=raw,
            prompt_tokens=self._prompt_tokens(request),
            transient=_transient(results, cut=parsed is None and failure.reason == "truncated"),
            served_models=tuple(account.served_models),
            system_fingerprints=tuple(account.system_fingerprints),
        )

    def _other_models(self, account: Account) -> list[str]:
        """A warning for each model that answered in place of the one that was asked."""
        return [
            f"{self.name}: the provider says that {model} answered"
            for model in account.served_models
            if not is_same_model(self._target, model)
        ]

    def _record_warnings(self, request: Request, record: Record) -> list[str]:
        """Warnings about what the model was not shown of the run."""
        warnings = []
        if record.truncated:
            warnings.append(f"{self.name}: {describe_omissions(record)}")
        for picture in self.pictures(request):
            if picture.png is None:
                warnings.append(f"{self.name}: {picture.title} was not shown: {picture.problem}")
        return warnings

    def _results(
        self, request: Request, parsed: ParsedReply, failure: Failure, record: Record
    ) -> tuple[CriterionResult, ...]:
        """Verdicts from parsed entries, with notes on failed repairs and on plan.png."""
        about_image = set()
        if is_criteria(request.question):
            about_image = {item.id for item in request.criteria if "plan.png" in item.text}
        note = self._plan_image_note(request)
        results = []
        for result in to_results(
            parsed, request.question, request.criteria, record, self._quotes(request)
        ):
            result = add_repair_failure(result, failure)
            if result.id in about_image:
                result = add_detail(result, note)
            results.append(result)
        return tuple(results)


def _raw_text(completion: Completion) -> str:
    """What the store keeps of a completion: its text, or the words of a refusal."""
    return completion.text or completion.refusal or ""


def _transient(results: tuple[CriterionResult, ...], *, cut: bool) -> frozenset[str]:
    """Ids of unscored criteria that another attempt may well score (`Reply.transient`).

    `cut`: the reply was cut at its length limit, and may be complete the next time. Evidence that
    was left out of the record will be left out again.
    """
    return frozenset(
        result.id
        for result in results
        if result.status == "unscored" and (result.reason == "unparsable" or cut)
    )


def _check_model(model: str, api_base: str | None) -> None:
    """ConfigError for an empty name, and for an address that is not http(s)."""
    if not model.strip():
        raise ConfigError("a judge needs a model's name", "for example --judge openai/gpt-5.4-mini")
    if api_base is None:
        return
    example = "for example --api-base http://localhost:8000/v1"
    try:
        address = Address(api_base)
    except ValueError as error:
        raise ConfigError(f"the address of the API cannot be read: {error}", example) from None
    if address.scheme not in ("http", "https") or not address.host:
        raise ConfigError(f"{str(address)!r} is not an http(s) address", example)


def _check_numbers(
    temperature: float, evidence_budget: int, max_tokens: int | None, timeout: float
) -> None:
    """ConfigError for a number out of range."""
    if not 0 <= temperature <= 2:
        raise ConfigError(
            f"temperature {temperature} is outside 0-2", "use 0 for the most repeatable verdicts"
        )
    if evidence_budget < MIN_BUDGET:
        raise ConfigError(
            f"evidence budget {evidence_budget} is below {MIN_BUDGET} characters",
            f"the default is {DEFAULT_BUDGET}",
        )
    is_no_limit = max_tokens is not None and max_tokens < 1
    if is_no_limit or not 0 < timeout < math.inf:
        raise ConfigError(
            "max_tokens and timeout must be above 0", "leave them out for the defaults"
        )


def without_credentials(url: str | None) -> str | None:
    """The address as it may be stored: without user, password, query and fragment."""
    if url is None:
        return None
    return str(Address(url))
