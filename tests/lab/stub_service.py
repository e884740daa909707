"""A program that serves an application for tests.

It logs its address, and how its `before_stop` ended.
"""

import asyncio
import logging
import signal
import sys
import threading
from functools import partial
from typing import Any

from reviewslib.messages import Request, Response
from reviewslib.process import listening, serving
from reviewslib.process.service_manager import ServiceManager

EMPTY = Response(200, (("Content-Length", "0"),), b"")


class Stub:
    """Answers every path.

    The response for /hold waits on a thread for a request of /go-on. After /signal, a
    thread other than the main one takes SIGTERM.
    """

    def __init__(self) -> None:
        self.go_on = threading.Event()

    def prepared(self, request: Request) -> Response | None:
        if request.path == "/hold":
            return None
        if request.path == "/go-on":
            self.go_on.set()
        if request.path == "/signal":
            # By then the event loop is idle.
            threading.Timer(0.3, self.take_the_signal).start()
        return EMPTY

    def respond(self, request: Request) -> Response:
        self.go_on.wait(30)
        return EMPTY

    def waits_for_disk(self, request: Request) -> bool:
        return False

    def take_the_signal(self) -> None:
        self.go_on.set()
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    def before_stop(self, seconds: float) -> None:
        """Wait for /go-on."""
        say(f"stopping {self.go_on.wait(seconds)}")


def say(line: str) -> None:
    """One write: `print` makes two, and the line of another thread may come between."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    stub: Any = Stub()
    listener = listening.claim_port("127.0.0.1", 0)
    port = listener.getsockname()[1]
    service = serving.Service(
        application=stub,
        listener=listener,
        max_connections=500,
        access_log=True,
        manager=ServiceManager(),
        ready=partial(say, f"listens on http://127.0.0.1:{port}"),
        hangup=lambda: None,
        before_stop=stub.before_stop,
    )
    asyncio.run(serving.serve(service))
    serving.exit_at_once(0)


if __name__ == "__main__":
    main()
