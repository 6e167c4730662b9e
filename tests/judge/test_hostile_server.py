"""A server that drips, never ends, breaks off, or answers with nonsense costs bounded time and memory, and no batch."""

from __future__ import annotations

import asyncio
import json
import resource
import time

import pytest
from ambjudge.judge.api.transport import CallFailed, Retry, complete
from serving import head, serving

BODY = {"id": "x", "object": "chat.completion", "created": 0, "model": "m"}


def asked(url: str, timeout: float = 30.0):
    options = {"api_base": f"{url}/v1", "timeout": timeout}
    retry = Retry(attempts=2, total_s=timeout, first_s=0.01)
    messages = [{"role": "user", "content": "?"}]
    return asyncio.run(complete("openai/m", messages, options, retry, api_key="none"))[0]


def endless(status: int):
    def answer(handler, _) -> None:
        head(handler, status)
        for _ in range(1024):
            handler.wfile.write(b" " * 1_048_576)

    return answer


def dripping(handler, _) -> None:
    head(handler)
    for _ in range(600):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.1)


def broken(handler, _) -> None:
    head(handler, Content_Length="1000")
    handler.wfile.write(b'{"id":')


def packed(handler, _) -> None:
    import gzip

    head(handler, Content_Encoding="gzip")
    handler.wfile.write(gzip.compress(b" " * (1 << 20)) * 1024)


@pytest.mark.parametrize(
    ("answer", "timeout"), [(endless(200), 30), (endless(500), 30), (dripping, 1), (broken, 30), (packed, 30)],
    ids=["endless", "endless error", "dripping", "broken off", "packed"],
)  # fmt: skip
def test_what_does_not_end_is_cut_off(answer, timeout) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with serving(answer) as url, pytest.raises(CallFailed):
        asked(url, timeout)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000, "kilobytes, litellm among them"


USAGES = [
    ({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": "x", "cost": {}}, 10),
    ({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": "7"}}, 10),
    ({"prompt_tokens": 10**12, "completion_tokens": 5}, None), (None, None),
    ("usage", "refused"), ([1], "refused"), ({"prompt_tokens": "many", "completion_tokens": [1]}, "refused"),
    ({"prompt_tokens": -5, "completion_tokens": 1e300}, "refused"),
]  # fmt: skip


@pytest.mark.parametrize(("usage", "counted"), USAGES, ids=str)
def test_usage_that_is_nonsense_is_no_usage_or_no_answer(usage, counted) -> None:
    message = {"role": "assistant", "content": "a \ud800 b", "refusal": None}
    body = {**BODY, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}

    def answer(handler, _) -> None:
        head(handler)
        handler.wfile.write(json.dumps(body).encode())

    with serving(answer) as url:
        if counted == "refused":
            with pytest.raises(CallFailed, match="provider failed"):
                asked(url)
            return
        said = asked(url)
    assert (said.text, said.finish, said.input_tokens) == ("a \ufffd b", "stop", counted)
