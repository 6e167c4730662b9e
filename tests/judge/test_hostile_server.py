"""A server that drips, never ends, breaks off, or answers with nonsense costs bounded time and
memory, and no batch."""

from __future__ import annotations

import asyncio
import json
import resource
import time

import pytest
from ambjudge.cli import run
from ambjudge.commands import doctor
from ambjudge.errors import JudgeError
from ambjudge.judge.judges.api.transport import CallFailed, Retry, complete, litellm
from ambjudge.judge.provider_batch import endpoint
from serving import head, serving

BODY = {"id": "x", "object": "chat.completion", "created": 0, "model": "m"}


def asked(url: str, timeout: float = 30.0, model: str = "openai/m"):
    options = {"api_base": f"{url}/v1", "timeout": timeout, "max_tokens": 100}
    retry = Retry(attempts=2, total_s=timeout, first_s=0.01)
    messages = [{"role": "user", "content": "?"}]
    return asyncio.run(complete(model, messages, options, retry, api_key="none"))


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


def sending(text: bytes):
    def answer(handler, _) -> None:
        head(handler)
        handler.wfile.write(text)

    return answer


def again(handler, _) -> None:
    head(handler, 307, Location=handler.path, Content_Length="0")


ENDLESS = {
    "endless": (endless(200), 30),
    "endless error": (endless(500), 30),
    "dripping": (dripping, 0.5),
    "broken off": (broken, 30),
    "packed": (packed, 30),
    "deep": (sending(b"[" * 1_000_000), 30),
    "values": (sending(b'{"content": [' + b"{}," * 5_000_000 + b"{}]}"), 30),
    "sent elsewhere": (again, 30),
}


@pytest.mark.parametrize("model", ["openai/m", "anthropic/m", "gemini/m"])
@pytest.mark.parametrize("kind", ENDLESS)
def test_what_does_not_end_is_cut_off(kind, model) -> None:
    """At an address that is spoken to directly, and at those that litellm speaks to."""
    answer, timeout = ENDLESS[kind]
    litellm()
    before = resource.getrusage(resource.RUSAGE_SELF)
    with serving(answer) as url, pytest.raises(CallFailed):
        asked(url, timeout, model)
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_maxrss - before.ru_maxrss < 250_000, "kilobytes"
    assert after.ru_utime - before.ru_utime < 5


@pytest.mark.parametrize("kind", ENDLESS)
def test_the_doctor_and_provider_batches_end_too(kind, capsys, monkeypatch) -> None:
    monkeypatch.setattr(endpoint, "_MAX_REQUEST_S", 0.5)
    monkeypatch.setattr(doctor, "_SERVER_TIMEOUT_S", 0.5)

    async def asked_for_batch(url: str) -> None:
        async with endpoint.open_endpoint(
            f"{url}/v1", None, "m", Retry(attempts=2, first_s=0.01)
        ) as provider:
            await provider.get("b")

    with serving(ENDLESS[kind][0]) as url:
        monkeypatch.setenv("AMBJUDGE_API_BASE", f"{url}/v1")
        assert run(["doctor"]) == 1
        with pytest.raises((JudgeError, endpoint.NotThere)):
            asyncio.run(asked_for_batch(url))
    seen = capsys.readouterr()
    assert (seen.err, "problem  server" in seen.out) == ("", True)


def test_a_long_error_is_still_the_error_that_it_is() -> None:
    def answer(handler, _) -> None:
        head(handler, 401)
        handler.wfile.write(b"<p>" * 1_000_000)

    for model in ("openai/m", "anthropic/m"):
        with serving(answer) as url, pytest.raises(JudgeError, match="refused the credentials"):
            asked(url, 30, model)


USAGES = [
    ({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": "x", "cost": {}}, 10),
    (
        {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": "7"},
        },
        10,
    ),
    ({"prompt_tokens": 10**12, "completion_tokens": 5}, None),
    (None, None),
    ("usage", None),
    ([1], None),
    ({"prompt_tokens": "many", "completion_tokens": [1]}, None),
    ({"prompt_tokens": -5, "completion_tokens": 1e300}, None),
    ({"prompt_tokens": "10", "completion_tokens": "5"}, 10),
]


@pytest.mark.parametrize("model", ["openai/m", "hosted_vllm/m"])
@pytest.mark.parametrize(("usage", "counted"), USAGES, ids=str)
def test_usage_that_is_nonsense_is_no_usage_and_loses_no_answer(usage, counted, model) -> None:
    message = {"role": "assistant", "content": "a \ud800 b", "refusal": None}
    body = {
        **BODY,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": usage,
    }

    def answer(handler, _) -> None:
        head(handler)
        handler.wfile.write(json.dumps(body).encode())

    with serving(answer) as url:
        answered = asked(url, model=model)
    assert (answered.text, answered.finish) == ("a \ufffd b", "stop")
    assert answered.counts.input_tokens == counted
