"""An HTTP server of this machine that answers every request as a test says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler, bytes], None]) -> Iterator[str]:
    """The address of a server that answers each request by `answer(handler, body)`."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None: ...

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            with suppress(OSError):
                answer(self, body)

        do_GET = do_POST

    server = _Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def head(handler: BaseHTTPRequestHandler, status: int = 200, **headers: str) -> None:
    """Status and headers, JSON where nothing else is said; `_` in a name stands for `-`."""
    handler.send_response(status)
    for name, value in {"Content-Type": "application/json", **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
