"""A real HTTP server on the loopback with the batch endpoints of OpenAI's API, to test provider
batches against.

    server = BatchServer(loopback).start()      # `loopback` is the module loopback_server: it words
    the answers
    server.lines = ["good", "missing"]          # one behaviour a line of the input, over all
    batches; the last is repeated
    server.stages = ["validating", "in_progress", "finalizing"]     # seen by as many polls before
    the end
    server.end = "completed"                    # or failed, expired, cancelled

A line's behaviour is one of loopback_server's (good, malformed, length, refusal, ...) or

    missing        no line at all                   in_error_file   an error in the error file
    status:500     a response with that status      content_filter_error   400 with that code
    expired        an error `batch_expired`         cut     the line ends in the middle
    garbage        a line that is no JSON           twice   the same line two times
    twice_differs  two lines, other values          both_files  good in the output, an error in the
    error file
    no_body        status 200 with body null        text_status status "200" as a string
    no_id          a line without a custom_id       stranger    answers an id that nobody asked
    array          a JSON list instead of an object huge    one million characters and more

`server.at["POST /batches"] = ["drop"]` plays one event a request: `drop` carries out and hangs up
without an answer, `lose` hangs up without carrying out, a number answers that status without
carrying out, "" is plain. `server.after[...]` is a function called once the request is carried out,
before it is answered.
"""

from __future__ import annotations

import email.parser
import email.policy
import json
import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that are killed or hang up are part of the play."""


class BatchServer:
    """`url` is the API base; `count` requests by kind, `headers` those of all requests, `bodies`
    what was to be judged."""

    def __init__(self, loopback) -> None:
        self.loopback = loopback
        self.lines: list[str] = ["good"]
        self.stages: list[str] = []
        self.end = "completed"
        self.reverse = False
        self.keeps_metadata = True
        self.has_list = True
        self.list_lag = 0
        self.at: dict[str, list[str]] = {}
        self.after: dict[str, Callable[[], None]] = {}
        self.files: dict[str, bytes] = {}
        self.uploads: dict[str, bytes] = {}
        """What was ever uploaded, deleted since or not."""
        self.batches: dict[str, dict] = {}
        self.count: Counter[str] = Counter()
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    def start(self) -> BatchServer:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    @property
    def bodies(self) -> list[dict]:
        """What batches were created for, in order: everything that would be paid."""
        return [body for batch in self.batches.values() for _, body in self._input(batch)]

    def _input(self, batch: dict) -> list[tuple[str, dict]]:
        rows = [json.loads(line) for line in self.uploads[batch["input_file_id"]].splitlines()]
        assert all(row["method"] == "POST" and row["url"] == "/v1/chat/completions" for row in rows)
        return [(row["custom_id"], row["body"]) for row in rows]

    def upload(self, content: bytes) -> dict:
        name = f"file-{len(self.uploads)}"
        self.files[name] = self.uploads[name] = content
        return {
            "id": name,
            "object": "file",
            "bytes": len(content),
            "purpose": "batch",
            "status": "processed",
        }

    def create(self, body: dict) -> dict:
        name = f"batch_{len(self.batches)}"
        self.batches[name] = {
            "id": name,
            "object": "batch",
            "endpoint": body["endpoint"],
            "input_file_id": body["input_file_id"],
            "completion_window": body["completion_window"],
            "status": (self.stages or [self.end])[0],
            "polls": 0,
            "metadata": body.get("metadata") if self.keeps_metadata else None,
        }
        return self.show(name)

    def show(self, name: str) -> dict:
        batch = self.batches[name]
        return {k: v for k, v in batch.items() if k != "polls"}

    def poll(self, name: str) -> dict:
        batch = self.batches[name]
        stages = [*self.stages, self.end]
        if (
            batch["status"] not in ("cancelled", "completed", "failed", "expired")
            or "output_file_id" not in batch
        ):
            batch["status"] = stages[min(batch["polls"], len(stages) - 1)]
            batch["polls"] += 1
            if batch["status"] == self.end:
                self._finish(batch, self.end)
        return self.show(name)

    def _finish(self, batch: dict, end: str) -> None:
        batch["status"], batch["output_file_id"], batch["error_file_id"] = end, None, None
        if end == "failed":
            error = {
                "code": "invalid_model",
                "message": "no such model; key sk-secret-0123456789",
                "line": 1,
            }
            batch["errors"] = {"object": "list", "data": [error]}
            return
        output, errors = [], []
        for custom_id, body in self._input(batch):
            behaviour = self.lines.pop(0) if len(self.lines) > 1 else self.lines[0]
            good, bad = self._play(behaviour, custom_id, body)
            output += good
            errors += bad
        if self.reverse:
            output.reverse()
        for kind, rows in (("output_file_id", output), ("error_file_id", errors)):
            if rows:
                batch[kind] = f"{kind}-{batch['id']}"
                self.files[batch[kind]] = b"".join(rows)
        batch["request_counts"] = {
            "total": len(output) + len(errors),
            "completed": len(output),
            "failed": len(errors),
        }

    def _play(self, behaviour: str, custom_id: str, body: dict) -> tuple[list[bytes], list[bytes]]:
        name, _, argument = behaviour.partition(":")
        answer = self._line(custom_id, 200, self._completion("good", body))
        match name:
            case "missing":
                return [], []
            case "in_error_file":
                return [], [
                    self._line(
                        custom_id,
                        500,
                        {"error": {"message": "sk-secret-0123456789 failed", "code": "x"}},
                    )
                ]
            case "expired":
                return [], [
                    _row(
                        {
                            "custom_id": custom_id,
                            "response": None,
                            "error": {"code": "batch_expired", "message": "too late"},
                        }
                    )
                ]
            case "status":
                return [self._line(custom_id, int(argument), self._completion("good", body))], []
            case "content_filter_error":
                return [
                    self._line(
                        custom_id, 400, {"error": {"code": "content_filter", "message": "no"}}
                    )
                ], []
            case "cut":
                return [answer[: len(answer) // 2] + b"\n"], []
            case "garbage":
                return [b"<html>gateway</html>\n", b"\xff\xfe\n", b"\n", b"[" * 100_000 + b"\n"], []
            case "twice":
                return [answer, answer], []
            case "twice_differs":
                return [answer, self._line(custom_id, 200, self._completion("lowest", body))], []
            case "both_files":
                return [answer], [self._line(custom_id, 500, {"error": {"message": "failed"}})]
            case "no_body":
                return [self._line(custom_id, 200, None)], []
            case "text_status":
                return [self._line(custom_id, "200", self._completion("good", body))], []
            case "no_id":
                return [
                    _row({"response": {"status_code": 200, "body": self._completion("good", body)}})
                ], []
            case "stranger":
                return [self._line("somebody-else", 200, self._completion("good", body))], []
            case "array":
                return [_row([custom_id, self._completion("good", body)])], []
            case "huge":
                return [
                    self._line(custom_id, 200, self._completion("good", body), "x" * 1_100_000)
                ], []
        return [self._line(custom_id, 200, self._completion(behaviour, body))], []

    def _line(self, custom_id: str, status: object, body: object, padding: str = "") -> bytes:
        response = {"status_code": status, "request_id": "r" + padding, "body": body}
        return _row({"id": "line", "custom_id": custom_id, "response": response, "error": None})

    def _completion(self, behaviour: str, body: dict) -> dict:
        return self.loopback.completion_of(behaviour, body)


def _row(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _handler(server: BatchServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            path, _, query = self.path.removeprefix("/v1").partition("?")
            parts = path.strip("/").split("/")
            if parts == ["batches"]:
                self._do("GET /batches", lambda: self._list(query))
            elif parts[0] == "batches":
                self._do(
                    "GET /batches/ID",
                    lambda: server.poll(parts[1]) if parts[1] in server.batches else None,
                )
            elif parts[0] == "files" and parts[2:] == ["content"]:
                self._do("GET /files/ID/content", lambda: server.files.get(parts[1]))
            else:
                self._send(404, {"error": {"message": "no such address"}})

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if not content and self.headers.get("Transfer-Encoding") == "chunked":
                content = self._chunks()
            parts = self.path.removeprefix("/v1").strip("/").split("/")
            if parts == ["files"]:
                self._do("POST /files", lambda: server.upload(self._file(content)))
            elif parts == ["batches"]:
                self._do("POST /batches", lambda: server.create(json.loads(content)))
            elif parts == ["chat", "completions"]:
                self._do(
                    "POST /chat/completions",
                    lambda: server._completion("good", json.loads(content)),
                )
            else:
                self._send(404, {"error": {"message": "no such address"}})

        def do_DELETE(self) -> None:
            name = self.path.rsplit("/", 1)[-1]
            self._do(
                "DELETE /files/ID",
                lambda: {"id": name, "deleted": server.files.pop(name, None) is not None},
            )

        def _list(self, query: str) -> dict | None:
            if not server.has_list:
                return None
            if server.list_lag > 0:
                server.list_lag -= 1
                return {"object": "list", "data": [], "has_more": False}
            names = list(server.batches)[::-1]
            after = re.search(r"after=([^&]*)", query)
            if after:
                names = names[names.index(after.group(1)) + 1 :]
            return {
                "object": "list",
                "data": [server.show(n) for n in names[:2]],
                "has_more": len(names) > 2,
            }

        def _do(self, kind: str, carry_out: Callable[[], object]) -> None:
            with server._lock:
                server.count[kind] += 1
                server.headers.append(dict(self.headers))
                event = server.at[kind].pop(0) if server.at.get(kind) else ""
                done = carry_out() if event in ("", "drop") else {}
            if kind in server.after:
                server.after[kind]()
            if event in ("drop", "lose"):
                self.connection.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
                self.connection.close()
                self.close_connection = True
            elif event:
                self._send(
                    int(event),
                    {
                        "error": {
                            "message": "scripted, with key sk-secret-0123456789",
                            "code": event,
                        }
                    },
                )
            elif done is None:
                self._send(404, {"error": {"message": "not found"}})
            else:
                self._send(200, done)

        def _file(self, content: bytes) -> bytes:
            head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
            parts = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + content)
            fields = {
                p.get_param("name", header="content-disposition"): p for p in parts.iter_parts()
            }
            assert fields["purpose"].get_payload(decode=True).strip() == b"batch"
            return fields["file"].get_payload(decode=True)

        def _chunks(self) -> bytes:
            found = b""
            while size := int(self.rfile.readline().strip(), 16):
                found += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return found

        def _send(self, status: int, body: object) -> None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler
