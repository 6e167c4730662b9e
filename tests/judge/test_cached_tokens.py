"""Prompt caches: breakpoints and pictures reach the provider, and what it says it cached is
counted, over real HTTP."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterator

import pytest
from ambjudge.judge.base import Usage
from ambjudge.judge.card.view import usage_parts
from ambjudge.judge.judges.api.answers import Completion, completion_of
from ambjudge.judge.judges.api.transport import (
    Retry,
    complete,
    request_body,
    takes_cache_control,
    takes_images,
)
from serving import head, serving

MARK = {"cache_control": {"type": "ephemeral"}}
PIXEL = "data:image/png;base64,iVBORw0KGgo="
MESSAGES = [
    {"role": "system", "content": "Judge."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "the record"},
            {"type": "image_url", "image_url": {"url": PIXEL}},
            {"type": "text", "text": "its end", **MARK},
            {"type": "text", "text": "the question"},
        ],
    },
]


class Provider:
    """Answers in OpenAI's and in Anthropic's shape with the usage it is told to give; `bodies` are
    the requests."""

    def __init__(self) -> None:
        self.usage: dict = {}
        self.bodies: list[dict] = []

    def answer(self, handler, body: bytes) -> None:
        self.bodies.append(json.loads(body))
        shape = _anthropic if "/v1/messages" in handler.path else _openai
        head(handler)
        handler.wfile.write(json.dumps(shape(self.usage)).encode())

    def ask(self, model: str, usage: dict, messages: list[dict] | None = None) -> Completion:
        self.usage = usage
        options = {"api_base": self.url, "timeout": 30}
        call = complete(model, messages or MESSAGES, options, Retry(attempts=1), api_key="sk-none")
        return asyncio.run(call)


def _openai(usage: dict) -> dict:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "{}"},
        "finish_reason": "stop",
    }
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }


def _anthropic(usage: dict) -> dict:
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "{}"}],
        "stop_reason": "end_turn",
        "usage": usage,
    }


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    made = Provider()
    with serving(made.answer) as made.url:
        yield made


def tokens(answer: Completion) -> tuple[int | None, ...]:
    counts = answer.counts
    return (
        counts.input_tokens,
        counts.cached_tokens,
        counts.cache_write_tokens,
        counts.output_tokens,
    )


IN = {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102}


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        pytest.param(
            {"prompt_tokens_details": {"cached_tokens": 80}}, (100, 80, 0, 2), id="openai"
        ),
        pytest.param(
            {"prompt_tokens_details": {"cached_tokens": 80, "cache_write_tokens": 15}},
            (100, 80, 15, 2),
            id="openrouter",
        ),
        pytest.param(
            {"prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40},
            (100, 60, 0, 2),
            id="deepseek",
        ),
        pytest.param(
            {"cache_read_input_tokens": 70, "cache_creation_input_tokens": 9},
            (100, 70, 9, 2),
            id="anthropic-gateway",
        ),
        pytest.param(
            {"prompt_tokens_details": {"cached_tokens": 100}}, (100, 100, 0, 2), id="all-of-it"
        ),
        pytest.param({}, (100, 0, 0, 2), id="says-nothing"),
        pytest.param({"prompt_tokens_details": None}, (100, 0, 0, 2), id="null"),
        pytest.param({"prompt_tokens_details": {}}, (100, 0, 0, 2), id="empty"),
        pytest.param(
            {"prompt_tokens_details": {"cached_tokens": -4}}, (100, None, 0, 2), id="negative"
        ),
        pytest.param(
            {"prompt_tokens_details": {"cached_tokens": 10**40}},
            (100, None, 0, 2),
            id="beyond-any",
        ),
        pytest.param(
            {"prompt_tokens_details": {"cached_tokens": 101}},
            (201, 101, 0, 2),
            id="more-than-the-input-so-beside-it",
        ),
        pytest.param(
            {"prompt_tokens_details": {"cached_tokens": 80, "cache_write_tokens": 21}},
            (121, 80, 21, 2),
            id="together-more-than-the-input-so-one-beside-it",
        ),
        pytest.param({"cache_read_input_tokens": "many"}, (100, None, 0, 2), id="a-word"),
        pytest.param(
            {"prompt_tokens": 0, "prompt_tokens_details": {"cached_tokens": 5}},
            (5, 5, 0, 2),
            id="no-input-but-what-is-cached",
        ),
    ],
)
def test_what_an_openai_style_server_says_it_cached(
    provider: Provider, usage: dict, counted: tuple
) -> None:
    assert tokens(provider.ask("openai/m", {**IN, **usage})) == counted


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        pytest.param(
            {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 80},
            (90, 0, 80, 2),
            id="first-call",
        ),
        pytest.param(
            {"cache_read_input_tokens": 80, "cache_creation_input_tokens": 5},
            (95, 80, 5, 2),
            id="later-call",
        ),
        pytest.param({}, (10, 0, 0, 2), id="says-nothing"),
        pytest.param({"cache_read_input_tokens": None}, (10, 0, 0, 2), id="null"),
        pytest.param({"cache_read_input_tokens": -50}, (10, None, 0, 2), id="negative"),
    ],
)
def test_anthropic_counts_cached_input_apart_and_it_is_added(
    provider: Provider, usage: dict, counted: tuple
) -> None:
    assert (
        tokens(provider.ask("anthropic/m", {"input_tokens": 10, "output_tokens": 2, **usage}))
        == counted
    )


def test_the_breakpoint_and_the_picture_arrive_at_anthropic(provider: Provider) -> None:
    given = copy.deepcopy(MESSAGES)
    assert takes_cache_control("anthropic/claude-haiku-4-5")
    provider.ask("anthropic/claude-haiku-4-5", {"input_tokens": 10, "output_tokens": 2}, given)
    (message,) = provider.bodies[-1]["messages"]
    assert message["role"] == "user"
    assert message["content"] == [
        {"type": "text", "text": "the record"},
        {
            "type": "image",
            "source": {
                "type": "base64",
                "media_type": "image/png",
                "data": PIXEL.partition(",")[2],
            },
        },
        {"type": "text", "text": "its end", **MARK},
        {"type": "text", "text": "the question"},
    ]
    assert given == MESSAGES  # they are asked with again


def test_blocks_go_as_they_are_to_an_openai_style_server_and_into_a_batch(
    provider: Provider,
) -> None:
    user = {
        "role": "user",
        "content": [block for block in MESSAGES[1]["content"] if "cache_control" not in block],
    }
    messages = [MESSAGES[0], user]
    provider.ask("openai/m", IN, messages)
    assert provider.bodies[-1]["messages"] == messages
    assert request_body("openai/m", messages, {})["messages"] == messages


def test_what_was_cached_is_read_from_a_batch_answer_too() -> None:
    body = _openai({**IN, "prompt_tokens_details": {"cached_tokens": 64}})
    assert tokens(completion_of(body)) == (100, 64, 0, 2)
    odd = {"prompt_tokens_details": [1]}
    assert tokens(completion_of(_openai({**IN, **odd}))) == (100, 0, 0, 2)


@pytest.mark.parametrize(
    ("model", "breakpoint_", "images"),
    [
        ("claude-haiku-4-5", True, True),
        ("anthropic/claude-haiku-4-5", True, True),
        ("anthropic/claude-of-tomorrow", True, False),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", True, True),
        ("bedrock/amazon.nova-pro-v1:0", False, True),
        ("vertex_ai/claude-sonnet-4-5@20250929", True, True),
        ("vertex_ai/gemini-2.5-pro", False, True),
        ("gemini/gemini-2.5-flash", False, True),
        ("gpt-4o", False, True),
        ("openai/gpt-4o", False, True),
        ("openai/claude-behind-my-own-server", False, False),
        ("deepseek/deepseek-chat", False, False),
        ("my-model", False, False),
        ("", False, False),
        ("/", False, False),
        ("a/" * 50_000, False, False),
        ("\ud800\0/\u202e", False, False),
    ],
)
def test_who_takes_breakpoints_and_pictures(model: str, breakpoint_: bool, images: bool) -> None:
    assert (takes_cache_control(model), takes_images(model)) == (breakpoint_, images)


@pytest.mark.parametrize(
    "model", ["ollama/llava", "huggingface/a/b", "github_copilot/gpt-4o", "chatgpt/gpt-5", "vllm/x"]
)
def test_nobody_is_called_to_find_out(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    def called(*_: object, **__: object) -> None:
        pytest.fail("a connection was tried")

    takes_images("gpt-4o")  # litellm is there
    monkeypatch.setattr(socket.socket, "connect", called)
    monkeypatch.setattr(socket, "getaddrinfo", called)
    assert takes_cache_control(model) is False
    assert takes_images(model) in (True, False)


def test_the_line_on_cost_tells_of_the_cache_where_there_was_one() -> None:
    assert usage_parts(Usage(3, 1_200, 50, 0.5)) == ["3 calls", "$0.50"]
    used = Usage(12, 1_200_000, 50, 0.5, cached_tokens=900_000, cache_write_tokens=99_960)
    assert usage_parts(used) == [
        "12 calls",
        "1.2M tokens in (900.0k from cache, 100.0k into cache)",
        "$0.50",
    ]
    unknown = Usage(12, 1_200_000, 50, None, cached_tokens=None, cache_write_tokens=None)
    assert usage_parts(unknown) == ["12 calls", "cost unknown"]
    assert usage_parts(Usage(3, 10, 50, 0.5, estimated_calls=2))[-1] == "$0.50 (2 calls estimated)"
    assert usage_parts(Usage(3, 10, 50, 0.5, estimated_calls=1))[-1] == "$0.50 (1 call estimated)"
