"""A provider that speaks OpenAI's protocol in letter and in no way else, and keeps its own books.

`OddProvider(behaviour)` serves one of BEHAVIOURS on the loopback. Whatever it answers, its `billed`
has what a provider would charge for it; a cost that a judge reports must not be below that. Run by
hand, it is a server to score against: python tests/helpers/odd_provider.py xai 8123
"""

from __future__ import annotations

import email.utils
import gzip
import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from loopback_server import PromptCache, good_reply, whole_prompt
from serving import serving

SCORED, FAILED, UNPARSABLE = "scored", "judge_error", "unparsable"
REFUSED, TRUNCATED, STOPPED = "refused", "truncated", "JudgeError"


@dataclass
class Billed:
    """What the provider charges for one request."""

    input: int
    output: int
    cached: int = 0


@dataclass
class Asked:
    """One request, with a good answer to it."""

    number: int
    """From 1."""
    body: dict
    text: str
    """A whole and valid reply."""
    prompt_tokens: int
    cached_tokens: int = 0

    @property
    def reply_tokens(self) -> int:
        return len(self.text) // 4

    def usage(self, **more: Any) -> dict:
        counts = {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.reply_tokens,
            "total_tokens": self.prompt_tokens + self.reply_tokens,
        }
        if self.cached_tokens:
            counts["prompt_tokens_details"] = {"cached_tokens": self.cached_tokens}
        return {**counts, **more}

    def completion(self, content: Any = ..., **more: Any) -> dict:
        """An answer with this content, by default the good one; `more` replaces parts of it."""
        message = {"role": "assistant", "content": self.text if content is ... else content}
        message |= more.pop("message", {})
        choice = {"index": 0, "message": message, "finish_reason": more.pop("finish", "stop")}
        body = {
            "id": f"c{self.number}",
            "object": "chat.completion",
            "created": 1,
            "model": self.body["model"],
            "choices": [choice],
            "usage": self.usage(),
            **more,
        }
        return {name: value for name, value in body.items() if value is not ...}


@dataclass
class Answer:
    """What is sent, and what is charged."""

    body: Any = None
    status: int = 200
    output: int | None = None
    """Output tokens that are charged; None: those of the good reply."""
    is_billed: bool = True
    raw: bytes | None = None
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    before_s: float = 0.0
    end: str = "whole"
    """`reset` before a byte is sent, `broken` in the middle of the body."""


@dataclass
class Behaviour:
    """How the provider answers, and what must come of it."""

    answer: Callable[[Asked], Answer]
    outcome: str = SCORED
    is_counted: bool = True
    """Whether all that it charges stands in its answers."""
    keeps_limit: bool = True
    """Whether it charges no more output than the request allows."""


def _completion(**parts: Any) -> Callable[[Asked], Answer]:
    return lambda asked: Answer(asked.completion(**parts))


def _error(status: int, code: Any, message: str, until: int = 10**9, **more: Any) -> Callable:
    """An error for the first requests `until` this number, then a good answer."""

    def answer(asked: Asked) -> Answer:
        if asked.number > until:
            return Answer(asked.completion())
        body = {"error": {"message": message, "code": code, **more}}
        return Answer(body, status, is_billed=False)

    return answer


def _thinking(asked: Asked, *, is_beside: bool, tokens: int = 1_500) -> Answer:
    """Thoughts that are charged as output, beside the reply's tokens or inside them."""
    reply = asked.reply_tokens if is_beside else asked.reply_tokens + tokens
    usage = asked.usage(
        completion_tokens=reply,
        total_tokens=asked.prompt_tokens + asked.reply_tokens + tokens,
        completion_tokens_details={"reasoning_tokens": tokens},
    )
    return Answer(asked.completion(usage=usage), output=asked.reply_tokens + tokens)


def _no_endpoint(asked: Asked) -> Answer:
    if "response_format" in asked.body:
        message = "No endpoints found that can handle the requested parameters."
        return Answer({"error": {"message": message, "code": 404}}, 404, is_billed=False)
    return Answer(asked.completion())


def _needs_newer_limit(asked: Asked) -> Answer:
    if "max_tokens" in asked.body:
        message = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use"
            " 'max_completion_tokens' instead."
        )
        body = {"error": {"message": message, "code": "unsupported_parameter"}}
        return Answer(body, 400, is_billed=False)
    return Answer(asked.completion())


def _limit_of(asked: Asked) -> int:
    return asked.body.get("max_tokens") or asked.body.get("max_completion_tokens") or 0


def _cut_below(tokens: int) -> Callable[[Asked], Answer]:
    """Replies with a limit below this one are cut."""

    def answer(asked: Asked) -> Answer:
        limit = _limit_of(asked)
        if limit >= tokens:
            return Answer(asked.completion())
        cut = asked.completion(
            asked.text[: len(asked.text) // 2],
            finish="length",
            usage=asked.usage(completion_tokens=limit, total_tokens=asked.prompt_tokens + limit),
        )
        return Answer(cut, output=limit)

    return answer


def _always_cut(asked: Asked) -> Answer:
    limit = _limit_of(asked)
    usage = asked.usage(
        completion_tokens=limit,
        total_tokens=asked.prompt_tokens + limit,
        completion_tokens_details={"reasoning_tokens": limit},
    )
    return Answer(asked.completion("", finish="length", usage=usage), output=limit)


def _streamed(asked: Asked) -> Answer:
    third = len(asked.text) // 3
    parts = [asked.text[:third], asked.text[third : 2 * third], asked.text[2 * third :]]
    chunks: list[dict] = [{"choices": [{"delta": {"content": part}}]} for part in parts]
    chunks.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    chunks.append({"choices": [], "usage": asked.usage()})
    about = {"object": "chat.completion.chunk", "model": asked.body["model"]}
    lines = [f"data: {json.dumps({**about, **chunk})}\n\n" for chunk in chunks]
    text = ": processing\n\n" + "".join(lines) + "data: [DONE]\n\n"
    return Answer(raw=text.encode(), content_type="text/event-stream")


def _raw(make: Callable[[Asked], bytes], content_type: str = "application/json") -> Callable:
    return lambda asked: Answer(raw=make(asked), content_type=content_type)


def _packed(asked: Asked) -> Answer:
    packed = gzip.compress(json.dumps(asked.completion()).encode())
    return Answer(raw=packed, headers={"Content-Encoding": "gzip"})


def _twice(asked: Asked) -> bytes:
    """A body with two lists of choices, of which readers of JSON take the last."""
    text = json.dumps(asked.completion())
    return text.replace("{", '{"choices": [], ', 1).encode()


def _busy_until_date(asked: Asked) -> Answer:
    if asked.number > 1:
        return Answer(asked.completion())
    date = email.utils.formatdate(time.time() + 1, usegmt=True)
    body = {"error": {"message": "slow down", "code": 429}}
    return Answer(body, 429, headers={"Retry-After": date}, is_billed=False)


def _once(first: Callable[[Asked], Answer]) -> Callable[[Asked], Answer]:
    """The first request is answered so, all others well."""
    return lambda asked: first(asked) if asked.number == 1 else Answer(asked.completion())


def _responses(asked: Asked) -> Answer:
    content = [{"type": "output_text", "text": asked.text}]
    output = [{"type": "reasoning", "summary": []}, {"type": "message", "content": content}]
    return Answer({"object": "response", "output": output, "usage": _short_names(asked)})


def _short_names(asked: Asked, **more: int) -> dict:
    return {"input_tokens": asked.prompt_tokens, "output_tokens": asked.reply_tokens, **more}


def _anthropic(asked: Asked) -> Answer:
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": asked.text}]
    about = {"type": "message", "stop_reason": "end_turn", "usage": _short_names(asked)}
    return Answer({**about, "content": content})


def _gemini(asked: Asked) -> Answer:
    parts = [{"text": "hm", "thought": True}, {"text": asked.text}]
    counts = {
        "promptTokenCount": asked.prompt_tokens,
        "candidatesTokenCount": asked.reply_tokens,
        "totalTokenCount": asked.prompt_tokens + asked.reply_tokens,
    }
    candidate = {"content": {"parts": parts}, "finishReason": "STOP"}
    return Answer({"candidates": [candidate], "usageMetadata": counts})


def _ollama(asked: Asked) -> dict:
    counts = {"prompt_eval_count": asked.prompt_tokens, "eval_count": asked.reply_tokens}
    return {"message": {"content": asked.text}, "done": True, "done_reason": "stop", **counts}


def _ollama_lines(asked: Asked) -> bytes:
    first = {"message": {"content": asked.text[:30]}, "done": False}
    last = {**_ollama(asked), "message": {"content": asked.text[30:]}}
    return f"{json.dumps(first)}\n{json.dumps(last)}\n".encode()


def _odd_separators(asked: Asked) -> bytes:
    """A stream whose text holds characters at which Python's `splitlines` splits too."""
    text = asked.text.replace("words", "a\u2028b\u0085c")
    chunks = [{"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]}]
    chunks.append({"choices": [], "usage": asked.usage()})
    return "".join(f"data: {json.dumps(c, ensure_ascii=False)}\r\n\r\n" for c in chunks).encode()


def _function_call(asked: Asked) -> Answer:
    call = {"type": "function", "function": {"name": "verdicts", "arguments": asked.text}}
    return Answer(asked.completion(None, finish="tool_calls", message={"tool_calls": [call]}))


def _first_is_empty(asked: Asked) -> Answer:
    body = asked.completion()
    body["choices"].insert(0, {"message": {"content": ""}, "finish_reason": "stop"})
    return Answer(body)


def _without(option: str, message: str, status: int) -> Callable[[Asked], Answer]:
    """An error while the request has this option."""
    refuse = _error(status, None, message)
    return lambda asked: refuse(asked) if option in asked.body else Answer(asked.completion())


def _said(before: str, after: str = "") -> Behaviour:
    """The good text between marks of a model."""
    return Behaviour(lambda asked: Answer(asked.completion(f"{before}{asked.text}{after}")))


THOUGHT = 'The rubric wants {"S3": 1}. Let me see {braces}.'
BEHAVIOURS: dict[str, Behaviour] = {
    # Good answers in other clothes.
    "good": Behaviour(_completion()),
    "parts": Behaviour(
        lambda asked: Answer(
            asked.completion(
                [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                    {"type": "text", "text": asked.text},
                ]
            )
        )
    ),
    "parts of a text": Behaviour(
        lambda asked: Answer(
            asked.completion(
                [
                    {"type": "text", "text": asked.text[:20]},
                    {"type": "text", "text": asked.text[20:]},
                ]
            )
        )
    ),
    "one part": Behaviour(
        lambda asked: Answer(asked.completion({"type": "text", "text": asked.text}))
    ),
    "thought": Behaviour(
        lambda asked: Answer(asked.completion(f"<think>\n{THOUGHT}\n</think>\n\n{asked.text}"))
    ),
    "end of a thought": Behaviour(
        lambda asked: Answer(asked.completion(f"{THOUGHT}\n</think>\n\n{asked.text}"))
    ),
    "thought that quotes its end": Behaviour(
        lambda asked: Answer(
            asked.completion(f'{THOUGHT} A </think> {{"S3": 0}} b</think>{asked.text}')
        )
    ),
    "fenced thought": Behaviour(
        lambda asked: Answer(asked.completion(f"<think>a</think>\n```json\n{asked.text}\n```"))
    ),
    "tight fence": Behaviour(lambda asked: Answer(asked.completion(f"```json\n{asked.text}```"))),
    "refusal is empty": Behaviour(_completion(message={"refusal": ""})),
    "text choice": Behaviour(
        lambda asked: Answer(
            asked.completion(choices=[{"text": asked.text, "finish_reason": "stop"}])
        )
    ),
    "stream": Behaviour(_streamed),
    "gzip": Behaviour(_packed),
    "wrong content type": Behaviour(
        _raw(lambda asked: json.dumps(asked.completion()).encode(), "text/html; charset=iso-8859-1")
    ),
    "byte order mark": Behaviour(
        _raw(lambda asked: b"\xef\xbb\xbf" + json.dumps(asked.completion()).encode())
    ),
    "blank lines first": Behaviour(
        _raw(lambda asked: b"\n\n  \n" + json.dumps(asked.completion()).encode())
    ),
    "keys twice": Behaviour(_raw(_twice)),
    "null error": Behaviour(_completion(error=None)),
    "no finish reason": Behaviour(_completion(finish=None)),
    "other model": Behaviour(_completion(model="cheap-fallback-1b", system_fingerprint="fp_1")),
    "model is a list": Behaviour(_completion(model=["a"], system_fingerprint=7)),
    "slow": Behaviour(lambda asked: Answer(asked.completion(), before_s=0.2)),
    # Answers of other APIs, in envelopes, or in other places of an answer.
    "Responses": Behaviour(_responses),
    "Anthropic": Behaviour(_anthropic),
    "Gemini": Behaviour(_gemini),
    "Ollama": Behaviour(lambda asked: Answer(_ollama(asked))),
    "lines of Ollama": Behaviour(_raw(_ollama_lines, "application/x-ndjson")),
    "envelope": Behaviour(
        lambda asked: Answer({"success": True, "errors": [], "result": asked.completion()})
    ),
    "JSON in JSON": Behaviour(
        _raw(lambda asked: json.dumps(json.dumps(asked.completion())).encode())
    ),
    "odd separators in a stream": Behaviour(_raw(_odd_separators, "text/event-stream")),
    "function call": Behaviour(_function_call),
    "object for text": Behaviour(lambda asked: Answer(asked.completion(json.loads(asked.text)))),
    "value of a text": Behaviour(
        lambda asked: Answer(asked.completion([{"type": "text", "text": {"value": asked.text}}]))
    ),
    "one choice without a list": Behaviour(
        lambda asked: Answer(asked.completion(choices={"message": {"content": asked.text}}))
    ),
    "message is a text": Behaviour(
        lambda asked: Answer(asked.completion(choices=[{"message": asked.text}]))
    ),
    "delta": Behaviour(
        lambda asked: Answer(asked.completion(choices=[{"delta": {"content": asked.text}}]))
    ),
    "first choice is empty": Behaviour(_first_is_empty),
    "harmony": _said(
        f"<|channel|>analysis<|message|>{THOUGHT}<|end|>"
        "<|start|>assistant<|channel|>final<|message|>",
        "<|return|>",
    ),
    "other marks of thoughts": _said(f"◁think▷{THOUGHT}◁/think▷"),
    "box": _said(f"<thinking>{THOUGHT}</thinking>\n<|begin_of_box|>", "<|end_of_box|>\n</s>"),
    "error that says nothing": Behaviour(_completion(error={"code": 0, "message": ""})),
    # Options that are not taken.
    "grammar": Behaviour(_without("response_format", "Invalid grammar for guided decoding", 400)),
    "not implemented": Behaviour(
        _without("response_format", "Structured output is not implemented", 501)
    ),
    "no endpoint": Behaviour(_no_endpoint),
    "newer name of the limit": Behaviour(_needs_newer_limit),
    # Tokens.
    "reasoning beside": Behaviour(
        lambda asked: _thinking(asked, is_beside=True), keeps_limit=False
    ),
    "reasoning inside": Behaviour(
        lambda asked: _thinking(asked, is_beside=False), keeps_limit=False
    ),
    "tokens as text": Behaviour(
        lambda asked: Answer(
            asked.completion(usage={name: str(count) for name, count in asked.usage().items()})
        )
    ),
    "no usage": Behaviour(_completion(usage=...), is_counted=False),
    "counts of Groq": Behaviour(
        lambda asked: Answer(asked.completion(usage=..., x_groq={"usage": asked.usage()}))
    ),
    "no count of the reply": Behaviour(
        lambda asked: Answer(asked.completion(usage=asked.usage(completion_tokens=None)))
    ),
    "usage null": Behaviour(_completion(usage=None), is_counted=False),
    "usage zero": Behaviour(
        _completion(usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
        is_counted=False,
    ),
    "negative usage": Behaviour(
        lambda asked: Answer(asked.completion(usage=asked.usage(prompt_tokens=-5))),
        is_counted=False,
    ),
    "usage is a list": Behaviour(_completion(usage=[1]), is_counted=False),
    "wild usage": Behaviour(_completion(usage={"prompt_tokens": 10**30}), is_counted=False),
    # Answers that are billed and cannot be used.
    "no choices": Behaviour(_completion(choices=[]), UNPARSABLE),
    "choices null": Behaviour(_completion(choices=None, usage=None), UNPARSABLE, is_counted=False),
    "no text": Behaviour(_completion(content=None), UNPARSABLE),
    "only thoughts": Behaviour(
        lambda asked: Answer(asked.completion(None, message={"reasoning_content": asked.text})),
        UNPARSABLE,
    ),
    "half a reply": Behaviour(
        lambda asked: Answer(asked.completion(asked.text[: len(asked.text) // 2])), UNPARSABLE
    ),
    "refusal": Behaviour(
        _completion(content=None, message={"refusal": "I cannot assist with that."}), REFUSED
    ),
    "content filter": Behaviour(_completion(finish="content_filter"), REFUSED),
    "cut, then whole": Behaviour(_cut_below(4_000)),
    "cut below 10,000": Behaviour(_cut_below(10_000), TRUNCATED),
    "recitation": Behaviour(_completion(content=None, finish="RECITATION"), REFUSED),
    "always cut": Behaviour(_always_cut, TRUNCATED),
    "other word for cut": Behaviour(_completion(finish="max_output_tokens"), TRUNCATED),
    "ended by an error": Behaviour(_completion(finish="error"), FAILED),
    "web page": Behaviour(
        lambda asked: Answer(raw=b"<html>maintenance</html>", content_type="text/html", output=0),
        FAILED,
        is_counted=False,
    ),
    "web page once": Behaviour(
        _once(lambda asked: Answer(raw=b"<html>maintenance</html>", output=0)), is_counted=False
    ),
    "a list": Behaviour(lambda asked: Answer([1, 2]), FAILED, is_counted=False),
    "other JSON": Behaviour(
        lambda asked: Answer({"result": "fine", "usage": asked.usage()}), FAILED
    ),
    "huge": Behaviour(lambda asked: Answer(raw=b" " * (17 << 20)), FAILED, is_counted=False),
    "broken body": Behaviour(
        _once(lambda asked: Answer(asked.completion(), end="broken")), is_counted=False
    ),
    "reset": Behaviour(_once(lambda asked: Answer(end="reset")), is_counted=False),
    "too slow once": Behaviour(
        _once(lambda asked: Answer(asked.completion(), before_s=1.8)), is_counted=False
    ),
    # Errors.
    "busy": Behaviour(_error(503, "overloaded", "try later", until=1)),
    "busy until a date": Behaviour(_busy_until_date),
    "rate limit in a 200": Behaviour(_error(200, 429, "Rate limit exceeded", until=2)),
    "rate limit by name in a 200": Behaviour(
        _error(200, "rate_limit_exceeded", "Rate limit exceeded", until=1)
    ),
    "error of the server in a 200": Behaviour(_error(200, "server_error", "Oh no", until=1)),
    "error of the server for good": Behaviour(_error(200, 500, "Oh no"), FAILED),
    "error in the choice": Behaviour(
        _once(
            lambda asked: Answer(
                {
                    "choices": [{"error": {"code": 502, "message": "upstream"}, "message": None}],
                    "usage": asked.usage(),
                }
            )
        )
    ),
    "text as error": Behaviour(
        _once(lambda asked: Answer({"error": "model overloaded"}, is_billed=False))
    ),
    "credits in a 200": Behaviour(_error(200, 402, "Insufficient credits."), STOPPED),
    "credits as text in a 200": Behaviour(_error(200, "402", "Insufficient credits."), STOPPED),
    "key in a 200": Behaviour(_error(200, "invalid_api_key", "Wrong key."), STOPPED),
    "bad request in a 200": Behaviour(_error(200, 400, "No such role."), STOPPED),
    "detail in a 200": Behaviour(
        lambda asked: Answer({"detail": "Model is loading"}, is_billed=False), FAILED
    ),
    "errors in a 200": Behaviour(
        lambda asked: Answer({"errors": [{"code": 7003, "message": "No route"}]}, is_billed=False),
        FAILED,
    ),
    "conflict": Behaviour(_error(409, "conflict", "Not now."), FAILED),
    "error with usage": Behaviour(
        _once(
            lambda asked: Answer({"error": {"message": "late"}, "usage": asked.usage()}, status=500)
        )
    ),
}


class OddProvider:
    """A provider of one behaviour; `url` is its API base."""

    def __init__(self, behaviour: str, cache: PromptCache | None = None) -> None:
        self.behaviour = BEHAVIOURS[behaviour]
        self.cache = cache
        self.requests: list[dict] = []
        self.billed: list[Billed] = []
        self.url = ""
        self._lock = threading.Lock()

    def cost(self, price: Any) -> float:
        """What it charges in USD."""
        return sum(price.cost(each.input, each.output, each.cached) for each in self.billed)

    def answer(self, handler: BaseHTTPRequestHandler, data: bytes) -> None:
        body = json.loads(data)
        with self._lock:
            self.requests.append(body)
            number = len(self.requests)
        prompt = whole_prompt(body)
        asked = Asked(number, body, json.dumps(good_reply(body)), len(prompt) // 4)
        if self.cache is not None:
            asked.cached_tokens = self.cache.count(prompt)[0]
            self.cache.answered(prompt)
        answer = self.behaviour.answer(asked)
        if answer.is_billed:
            output = asked.reply_tokens if answer.output is None else answer.output
            with self._lock:
                self.billed.append(Billed(asked.prompt_tokens, output, asked.cached_tokens))
        time.sleep(answer.before_s)
        _send(handler, answer)


def _send(handler: BaseHTTPRequestHandler, answer: Answer) -> None:
    if answer.end == "reset":
        # Linger 0 makes the close a reset, as a crashed provider's would be.
        linger = struct.pack("ii", 1, 0)
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        handler.rfile.close()
        handler.wfile.close()
        handler.connection.close()
        return
    data = json.dumps(answer.body).encode() if answer.raw is None else answer.raw
    handler.send_response(answer.status)
    headers = {"Content-Type": answer.content_type, "Content-Length": str(len(data))}
    for name, value in {**headers, **answer.headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(data[: len(data) // 2] if answer.end == "broken" else data)


@contextmanager
def odd_provider(behaviour: str, cache: PromptCache | None = None) -> Iterator[OddProvider]:
    """A running provider."""
    provider = OddProvider(behaviour, cache)
    with serving(provider.answer) as url:
        provider.url = f"{url}/v1"
        yield provider


if __name__ == "__main__":
    with odd_provider(sys.argv[1]) as running:
        print(running.url, flush=True)
        threading.Event().wait()
