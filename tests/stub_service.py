"""A program that serves an application for tests.

It logs its address, and whether /go-on was requested before `before_stop` ended.
"""

import asyncio
import logging
import signal
import sys
import threading
from typing import Any

from reviewslib.process import listening, serving
from reviewslib.process.service_manager import ServiceManager
from reviewslib.web.representations import Request, Response

AT_ONCE = ("/", "/state", "/go-on", "/signal")


def response(text: str) -> Response:
    return Response(200, (("Content-Length", str(len(text))),), text.encode())


class Stub(logging.Handler):
    """Makes responses on worker threads, except those for AT_ONCE; a response for /hold waits for /go-on.

    A response for AT_ONCE lists the paths for which worker threads made responses, and counts the peers that
    left before there was a response. After /signal, a thread other than the main one takes SIGTERM.
    """

    def __init__(self) -> None:
        super().__init__()
        self.made: list[str] = []
        self.go_on, self.left_count = threading.Event(), 0
        logging.getLogger("reviewsd.access").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.left_count += "/abandoned 499 " in record.getMessage()

    def respond(self, request: Request) -> Any:
        path = request.path
        if path == "/go-on":
            self.go_on.set()
        if path == "/signal":
            threading.Timer(0.3, self.take_the_signal).start()  # by then the event loop is idle
        return response(f"{self.made} {self.left_count}") if path in AT_ONCE else lambda: self.make(path)

    def make(self, path: str) -> Response:
        self.made.append(path)
        if path == "/hold":
            self.go_on.wait(30)
        return response(path)

    def refuse(self, request: Request, status: int, detail: str, headers: Any = ()) -> Response:
        return Response(status, headers, detail.encode())

    def take_the_signal(self) -> None:
        self.go_on.set()
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    def before_stop(self, seconds: float) -> None:
        """Wait for /go-on."""
        print("stopping", self.go_on.wait(seconds), file=sys.stderr, flush=True)


def main() -> None:
    stub: Any = Stub()
    listener = listening.claim_port("127.0.0.1", 0)
    port = listener.getsockname()[1]
    service = serving.Service(
        application=stub,
        store_paths=frozenset({"/store"}),
        listener=listener,
        max_connections=500,
        access_log=True,
        manager=ServiceManager(),
        ready=lambda: print(f"listens on http://127.0.0.1:{port}", file=sys.stderr, flush=True),
        hangup=lambda: None,
        before_stop=stub.before_stop,
    )
    asyncio.run(serving.serve(service))
    serving.exit_at_once(0)


if __name__ == "__main__":
    main()
