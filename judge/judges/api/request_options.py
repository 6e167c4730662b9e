"""The options of a call, weakened step by step if a provider does not take them."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from ...base import Request
from ...questions.replies import reply_schema
from .transport import litellm

ReplyFormat = Literal["schema", "json", "prompt"]
"""How the format of a reply is requested: by JSON Schema, by JSON mode, or in the prompt alone."""
NEWER_LIMIT_NAME = "max_completion_tokens"
"""What OpenAI's reasoning models call the limit of a reply, and ask for in their errors."""
_WEAKER: dict[ReplyFormat, ReplyFormat] = {"schema": "json", "json": "prompt"}


class Requested(NamedTuple):
    """What a call asked the provider for; one that was rejected names it to `weaken`."""

    reply_format: ReplyFormat | None
    dropped: frozenset[str]
    limit_name: str


class RequestOptions:
    """The options of one model's calls, as litellm takes them.

    What the provider does not take is dropped for all later calls.
    """

    def __init__(
        self,
        target: str,
        api_base: str | None,
        *,
        temperature: float,
        timeout: float,
        seed: int | None,
    ) -> None:
        self._target, self._api_base = target, api_base
        self._temperature, self._timeout, self._seed = temperature, timeout, seed
        self._reply_format: ReplyFormat | None = None
        self._dropped: set[str] = set()
        self._limit_name = "max_tokens"
        """What the provider calls the limit of a reply."""

    @property
    def dropped(self) -> list[str]:
        """Names of the options that the provider does not take."""
        return sorted(self._dropped)

    @property
    def requested(self) -> Requested:
        """What calls ask the provider for now."""
        return Requested(self._reply_format, frozenset(self._dropped), self._limit_name)

    @property
    def limits_replies(self) -> bool:
        """Whether the provider takes a limit of a reply."""
        return self._limit_name not in self._dropped

    def for_request(self, request: Request, max_tokens: int) -> dict[str, Any]:
        """The options of a call for this request; each sample has a seed of its own.

        `max_tokens`: the most output tokens of the reply.
        """
        if self._reply_format is None:
            self._reply_format = _first_reply_format(self._target)
        options: dict[str, Any] = {
            "timeout": self._timeout,
            "temperature": self._temperature,
            self._limit_name: max_tokens,
        }
        if self._api_base is not None:
            options["api_base"] = self._api_base
        if self._seed is not None or request.sample:
            options["seed"] = (self._seed or 0) + request.sample
        if self._reply_format == "schema":
            schema = {
                "name": "verdicts",
                "strict": True,
                "schema": reply_schema(request.question, request.criteria),
            }
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif self._reply_format == "json":
            options["response_format"] = {"type": "json_object"}
        return {name: value for name, value in options.items() if name not in self._dropped}

    def weaken(self, message: str, rejected: Requested) -> bool:
        """Ask for less from now on; False if there is nothing left to drop.

        `message` is the provider's and may name the option that it does not take. `rejected` is
        what the failed call asked for: a simultaneous call may have weakened the options already.
        """
        if rejected != self.requested:
            return True
        lower = message.lower()
        if NEWER_LIMIT_NAME in lower and self._limit_name != NEWER_LIMIT_NAME:
            self._limit_name = NEWER_LIMIT_NAME
            return True
        for name in ("temperature", "seed", self._limit_name):
            if name in lower and name not in self._dropped:
                self._dropped.add(name)
                return True
        if self._reply_format in _WEAKER:
            self._reply_format = _WEAKER[self._reply_format]
            return True
        return False


def _first_reply_format(target: str) -> ReplyFormat:
    """JSON Schema if the model is known to take it or is unknown, else JSON mode or the prompt.

    Unknown models are mostly served locally, and most local servers take a schema.
    """
    module = litellm()
    try:
        if module.supports_response_schema(model=target):
            return "schema"
        if "response_format" not in (module.get_supported_openai_params(model=target) or ()):
            return "prompt"
        return "json" if target.removeprefix("openai/") in module.model_cost else "schema"
    except Exception:  # litellm raises many types for names that it does not know
        return "schema"
