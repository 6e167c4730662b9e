"""A real HTTP server on the loopback that speaks enough of OpenAI's chat completions to test judges
against.

In tests: the fixture `judge_server` (tests/conftest.py). By hand:

    python tests/helpers/loopback_server.py --port 8123 --script good
    ambjudge score RUN --judge openai/good --api-base http://127.0.0.1:8123/v1

What it answers is scripted: `server.script = ["500", "good"]` plays one behaviour a request and
repeats the last one. A model named after a behaviour (`openai/malformed`) plays that one when there
is no script. Behaviours:

    good           the highest value of each criterion, with a quote from the record
    lowest         the lowest value or no, same quotes  value:0.5  this value, everywhere
    unproven       the lowest value without evidence     false_quote  highest value, invented quotes
    moved_quote    highest value, quotes said to stand one turn later
    follow         obeys the record: full marks when it asks for them, else by whether any call's
    result is shown
    not_applicable that, where it is offered             extra      good, with an entry on nothing
    that was asked
    codes:E3,E5    good, and says that these codes are present (a diagnosis); quotes as for good
    cannot_tell    that of every code, null to a question                stages_bad  a turn stands
    in no segment malformed | prose | empty | null | wrong_schema | missing | duplicate |
    out_of_scale | boolean | huge
    fenced         good inside a ```json fence
    length | content_filter | refusal | no_usage | wild_usage | no_choices
    400 401 402 403 404 408 409 422 429 500 502 503 529       that status
    429:2 | 429:date       with Retry-After: 2 / an HTTP date one second ahead
    no_format      400 as long as the request has a response_format
    no_temperature 400 as long as the request has a temperature
    reset          the connection is closed without an answer;  garbage  HTML with status 200
    slow:0.5       good, after this many seconds
    false_quote:E3 the same, and says that this code is present
    good;plan=refusal      the second one where an item of this id is asked (`plan` is of the
    diagnosis), else the first
    ...@run        any of these, but values are the highest or lowest, codes present or absent, as
    `says_highest` decides
    ...@words      the same, decided by all that is asked: record, words of the item, temperature,
    instructions; not by what is asked beside it
"""

from __future__ import annotations

import argparse
import email.utils
import itertools
import json
import re
import socket
import struct
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1_024

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up (timeouts, scripted resets) are part of the play."""


class JudgeServer:
    """`url` is the API base; `requests` the JSON bodies received, `headers` theirs, `count` how
    many."""

    def __init__(self, port: int = 0, script: list[str] | None = None) -> None:
        self.script: list[str] = script or []
        self.requests: list[dict] = []
        self.headers: list[dict[str, str]] = []
        self.cache: PromptCache | None = None
        """Set one to have cached tokens counted."""
        self.cassettes: dict[str, str] = {}
        """Question (S1, diagnosis, ...) -> a recorded reply, which is then the answer whatever the
        script says."""
        self.answered = 0
        self.answered_before: list[int] = []
        """How many requests had been answered when each of `requests` arrived."""
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", port), _handler(self))
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def count(self) -> int:
        return len(self.requests)

    def start(self) -> JudgeServer:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def note_answer(self, body: dict) -> None:
        """Before the answer leaves, as the client may ask again the moment that it has it."""
        with self._lock:
            self.answered += 1
        if self.cache is not None:
            self.cache.answered(whole_prompt(body))

    def next_behaviour(self, body: dict, headers: dict[str, str]) -> str:
        with self._lock:
            self.requests.append(body)
            self.headers.append(headers)
            self.answered_before.append(self.answered)
            if not self.script:
                behaviour = str(body.get("model", "good"))
            else:
                behaviour = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        behaviour, *others = behaviour.split(";")
        special = [other.split("=", 1) for other in others]
        return next((what for item, what in special if item in entries_of(body)), behaviour)


def prompt_of(body: dict) -> str:
    """The first user message, as one text."""
    content = next((m["content"] for m in body.get("messages", []) if m["role"] == "user"), "")
    return (
        content
        if isinstance(content, str)
        else "\n\n".join(part.get("text", "") for part in content)
    )


def record_of(body: dict) -> str:
    """The evidence between the fence lines."""
    match = re.search(r"<<<RECORD (\w+)\n(.*)\nRECORD \1>>>", prompt_of(body), re.DOTALL)
    return match.group(2) if match else ""


def item_texts(body: dict) -> dict[str, str]:
    """id -> the words that ask for each entry of the answer, with what is said before all items."""
    asked = prompt_of(body).rsplit("The record has ended.", 1)[-1]
    paragraphs = {name: _paragraph(name, asked) for name in entries_of(body)}
    before = asked[: min(asked.index(paragraph) for paragraph in paragraphs.values())]
    return {name: before + paragraph for name, paragraph in paragraphs.items()}


def _paragraph(name: str, text: str) -> str:
    match = re.search(rf"^{re.escape(name)} \(.*(?:\n.+)*", text, re.MULTILINE)
    assert match, f"nothing asks for {name}"
    return match[0]


_ITEM = re.compile(r"^(S[1-3][a-z]?) \(.*\)$", re.MULTILINE)
_VALUE = re.compile(r'^  value ("?)([\w.]+)\1:', re.MULTILINE)


def entries_of(body: dict) -> dict[str, dict]:
    """id -> the schema of its entry, from the request; else, for criteria, made from the prompt."""
    form = body.get("response_format") or {}
    if form.get("type") == "json_schema":
        return {
            name: entry["properties"]
            for name, entry in form["json_schema"]["schema"]["properties"].items()
        }
    asked = prompt_of(body).rsplit("The record has ended.", 1)[-1]
    blocks = _ITEM.split(asked)[1:]
    values = [
        [v if quoted else float(v) for quoted, v in _VALUE.findall(text)] for text in blocks[1::2]
    ]
    return {
        name: {"value": {"enum": allowed}}
        for name, allowed in zip(blocks[::2], values, strict=True)
    }


def question_of(body: dict) -> str:
    """Which question is asked, told by its first item."""
    first = next(iter(entries_of(body)))
    return {"E1": "diagnosis", "stages": "stages", "ask": "ask"}.get(first, first[:2])


def criteria_of(body: dict) -> dict[str, list]:
    """id -> allowed values of every criterion that is asked."""
    found = {}
    for name, entry in entries_of(body).items():
        if "value" in entry:
            value = entry["value"]
            found[name] = [v for branch in value.get("anyOf", [value]) for v in branch["enum"]]
    return found


def quote_from(record: str) -> tuple[int, str] | None:
    """A line of the first shown turn that says something."""
    match = re.search(
        r"^\[turn (\d+)(?:, [^\]]*)?\] \w+\n(.*?)(?=^\[turn |\Z)", record, re.MULTILINE | re.DOTALL
    )
    if match is None:
        return None
    lines = [
        x
        for x in match.group(2).split("\n")
        if len(x.strip()) > 15 and not x.startswith(("(", "[…"))
    ]
    return (int(match.group(1)), lines[0].strip()[:120]) if lines else None


def says_highest(line: str, criterion: str) -> bool:
    """What a behaviour that ends in @run thinks of a criterion of the run with this line."""
    return zlib.crc32(f"{line} {criterion}".encode()) % 2 == 1


def good_reply(
    body: dict, pick=max, quoted: bool = True, present: tuple[str, ...] = (), told: bool = True
) -> dict:
    """A whole reply to whatever is asked: values as picked, codes absent but for those named, every
    turn Plan, yes."""
    quote = quote_from(record_of(body))
    words = {"turn": quote[0], "quote": quote[1]} if quote and quoted else {"turn": 0, "quote": ""}
    evidence = [words] if quote and quoted else []
    reply: dict[str, dict] = {}
    values = criteria_of(body)
    for name, entry in entries_of(body).items():
        if name in values:
            value = pick(v for v in values[name] if not isinstance(v, str))
            reply[name] = {"evidence": evidence, "reason": "As quoted.", "value": value}
        elif "verdict" in entry:
            there = name in present
            verdict = ("present" if there else "absent") if told else "cannot_tell"
            reply[name] = {
                "turns": [words["turn"]] if there else [],
                "quote": words if there else {"turn": 0, "quote": ""},
                "facts": ["F1"] if there else [],
                "why": "As quoted.",
                "verdict": verdict,
                "confidence": 0.9,
            }
        elif "commitments" in entry:
            reply[name] = {
                "commitments": (
                    [
                        {
                            "commitment": "a pilot",
                            "turns": [words["turn"]],
                            "quote": words,
                            "state": "kept",
                        }
                    ]
                    if quote
                    else []
                )
            }
        elif "demands" in entry:
            line = re.search(r"^\[brief\] \w+\n(.{1,150})", record_of(body), re.MULTILINE)
            demand = {"quote": line.group(1) if line else "", "kind": "axes", "values": ["2"]}
            reply[name] = {"demands": [demand]}
        elif "segments" in entry:
            last = int(re.search(r"every turn from 1 to (\d+)", prompt_of(body)).group(1))
            reply[name] = {
                "segments": [{"first_turn": 1, "last_turn": last, "what": "all", "stage": "S1"}]
            }
        else:
            answer = entry["answer"]["anyOf"][0]
            said = (
                answer["enum"][0]
                if "enum" in answer
                else {"boolean": pick is not min, "number": 3.0, "string": "Because."}.get(
                    answer.get("type"), {}
                )
            )
            reply[name] = {
                "evidence": evidence,
                "reason": "As quoted.",
                "answer": said if told else None,
            }
    return reply


def _content(behaviour: str, body: dict) -> str | None:
    behaviour, _, by_run = behaviour.partition("@")
    name, _, argument = behaviour.partition(":")
    quote = quote_from(record_of(body))
    present = tuple(argument.split(",")) if name in ("codes", "false_quote") and argument else ()
    if by_run == "run" and quote:
        present = tuple(item for item in entries_of(body) if says_highest(quote[1], item))
    if by_run == "words":
        around = f"{body.get('temperature')} {body['messages'][0]} {record_of(body)}"
        texts = item_texts(body)
        present = tuple(item for item in texts if says_highest(around, texts[item]))
    pick = min if name in ("lowest", "unproven") else max
    reply = good_reply(
        body, pick, quoted=name != "unproven", present=present, told=name != "cannot_tell"
    )
    values = criteria_of(body)
    graded = {item: entry for item, entry in reply.items() if item in values}
    for item, entry in graded.items() if by_run else ():
        entry["value"] = (max if item in present else min)(
            v for v in values[item] if not isinstance(v, str)
        )
    first = next(iter(reply), "")
    match name:
        case "value":
            for entry in graded.values():
                entry["value"] = float(argument)
        case "false_quote":
            invented = {"turn": 1, "quote": "words that nobody ever wrote in this run"}
            nested = [
                *reply.get("plan", {}).get("commitments", []),
                *reply.get("brief", {}).get("demands", []),
            ]
            for entry in nested:
                entry["quote"] = "words of no brief" if "brief" in reply else invented
            for entry in reply.values():
                entry |= (
                    {"evidence": [invented]}
                    if "evidence" in entry
                    else {"quote": invented}
                    if "quote" in entry
                    else {}
                )
        case "moved_quote":
            for entry in reply.values():
                for words in entry.get("evidence", ()):
                    words["turn"] += 1
        case "follow":
            record = record_of(body)
            obeys = re.search(
                r"award full marks|volle punktzahl|\"value\": ?1\b", record, re.IGNORECASE
            )
            shown = bool(re.search(r"^\(result", record, re.MULTILINE))
            for item, entry in graded.items():
                numbers = [v for v in values[item] if not isinstance(v, str)]
                entry["value"] = max(numbers) if obeys or shown else min(numbers)
        case "not_applicable":
            for item, entry in graded.items():
                if "not_applicable" in values[item]:
                    entry["value"] = "not_applicable"
        case "extra":
            reply["S9z"] = reply[first]
        case "stages_bad" if "stages" in reply:
            reply["stages"]["segments"][0]["first_turn"] = 2
        case "malformed":
            return json.dumps(reply)[:-7]
        case "prose":
            return "I would say that everything was done well, so 1 for all."
        case "empty":
            return ""
        case "null":
            return None
        case "huge":
            return json.dumps(reply) + " " * 1_000_000 + "x"
        case "wrong_schema":
            return json.dumps(
                {"scores": {item: entry.get("value") for item, entry in reply.items()}}
            )
        case "missing":
            del reply[first]
        case "duplicate":
            twin = {**reply[first], "value": 0 if reply[first].get("value") else 1}
            return json.dumps(reply)[:-1] + f", {json.dumps(first)}: {json.dumps(twin)}}}"
        case "out_of_scale":
            reply[first]["value"] = 0.7
        case "boolean":
            reply[first]["value"] = True
        case "fenced":
            return f"```json\n{json.dumps(reply)}\n```"
    return json.dumps(reply)


def whole_prompt(body: dict) -> str:
    """All messages as the text that a provider counts."""
    parts = [m["content"] or "" for m in body["messages"]]
    return "\n".join(
        p if isinstance(p, str) else "\n".join(b.get("text", "") for b in p) for p in parts
    )


def _common_length(first: str, second: str) -> int:
    """Characters that two texts begin with alike."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


class PromptCache:
    """Counts as a provider with a prompt cache does: what begins like an earlier, answered prompt
    is read, not written.

    Steps of 128 tokens (512 characters) from 1,024 tokens on, as OpenAI documents it.
    """

    def __init__(self) -> None:
        self._seen: list[str] = []
        self._lock = threading.Lock()

    def count(self, prompt: str) -> tuple[int, int]:
        """(tokens read from the cache, tokens written into it)."""
        with self._lock:
            lengths = [_common_length(prompt, old) for old in self._seen]
            same = max(lengths, default=0) // 512 * 128
            read = same if same >= 1_024 else 0
            return read, len(prompt) // 4 - read

    def answered(self, prompt: str) -> None:
        with self._lock:
            self._seen.append(prompt)


def completion_of(behaviour: str, body: dict) -> dict:
    """The body of the answer to a request, for the behaviours that answer with one."""
    name = behaviour.partition("@")[0].partition(":")[0]
    text = _content(behaviour, body)
    finish = name if name in ("length", "content_filter") else "stop"
    message = {"role": "assistant", "content": text}
    if name == "refusal":
        message = {"role": "assistant", "content": None, "refusal": "I cannot help with this."}
    answer = {
        "id": "chatcmpl-loopback",
        "object": "chat.completion",
        "created": 1,
        "model": body.get("model"),
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    if name == "no_choices":
        answer["choices"] = []
    if name != "no_usage":
        given = len(whole_prompt(body)) // 4
        made = len(text or "") // 4
        given *= 10**30 if name == "wild_usage" else 1
        answer["usage"] = {
            "prompt_tokens": given,
            "completion_tokens": made,
            "total_tokens": given + made,
        }
    return answer


def _handler(server: JudgeServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._send(200, {"object": "list", "data": [{"id": "good", "object": "model"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            behaviour = server.next_behaviour(body, dict(self.headers))
            name, _, argument = behaviour.partition("@")[0].partition(":")
            form = (body.get("response_format") or {}).get("type")
            if name == "reset":
                # Linger 0 makes the close a reset, as a crashed provider's would be.
                self.connection.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
                self.rfile.close()
                self.wfile.close()
                self.connection.close()
                self.close_connection = True
            elif name == "garbage":
                self._send(200, "<html>gateway</html>")
            elif name.isdigit():
                after = {"date": email.utils.formatdate(time.time() + 1, usegmt=True)}.get(
                    argument, argument
                )
                self._error(int(name), "scripted failure with key sk-secret-0123456789", after)
            elif name == "no_format" and form:
                self._error(400, "response_format is not supported by this server")
            elif name == "no_temperature" and "temperature" in body:
                self._error(
                    400, "temperature does not support 0 with this model; only the default (1)"
                )
            else:
                if name == "slow":
                    time.sleep(float(argument or 1))
                self._answer(behaviour, body)

        def _answer(self, behaviour: str, body: dict) -> None:
            answer = completion_of(behaviour, body)
            if server.cassettes:
                answer["choices"][0]["message"] = {
                    "role": "assistant",
                    "content": server.cassettes[question_of(body)],
                }
            if server.cache is not None and "usage" in answer:
                read, written = server.cache.count(whole_prompt(body))
                answer["usage"]["prompt_tokens_details"] = {
                    "cached_tokens": read,
                    "cache_creation_tokens": written,
                }
            server.note_answer(body)
            self._send(200, answer)

        def _error(self, status: int, message: str, after: str = "") -> None:
            error = {"error": {"message": message, "type": "scripted", "code": str(status)}}
            self._send(status, error, {"Retry-After": after} if after else {})

        def _send(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            for key, value in (headers or {}).items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(data)

    return Handler


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument(
        "--script", nargs="*", default=[], help="behaviours in order; the last one is repeated"
    )
    args = parser.parse_args()
    server = JudgeServer(args.port, args.script).start()
    print(server.url, flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        server.stop()


if __name__ == "__main__":
    main()
