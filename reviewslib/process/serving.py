"""The HTTP server: Granian's embedded server, from the first response to the stop.

This module must not know reviews. It uses only documented names of Granian, so that
every new release can be installed at once.

Sections: what is served - serving - signals - Granian - the end.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from reviewslib.messages import Request
from reviewslib.process.access_log import AccessLog
from reviewslib.process.asgi import AsgiApp
from reviewslib.process.bridge import Bridge, ServedApplication
from reviewslib.process.listening import (
    CannotListen,
    Listener,
    tune_listener,
    wait_until_ready,
)
from reviewslib.process.service_manager import ServiceManager

# Granian's allocator reads this when it is loaded; without it, freed memory is not
# given back (jemalloc(3)).
os.environ.setdefault(
    "_RJEM_MALLOC_CONF", "background_thread:true,dirty_decay_ms:500,muzzy_decay_ms:0"
)

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.embed import Server

# Of a request. Browsers send 2 KB; a search for a long text is the largest.
MAX_HEAD_BYTES = 16 * 1024
# Connections that the kernel has accepted and Granian has not: as many as Linux allows
# by default (net.core.somaxconn, listen(2)).
BACKLOG = 4096
# For `before_stop`, while the port is still open; and for running requests after that.
# A service that stops is gone within five seconds, whatever hangs.
BEFORE_STOP_SECONDS = 2
STOP_SECONDS = 2.5

log = logging.getLogger("reviewsd.serving")

# ---- What is served ----

Action = Callable[[], None]
PROBE = Request("HEAD", "/", "", {"host": "localhost"}.get)


class Deadlines(NamedTuple):
    """How many seconds a peer has."""

    # For a request head, and for an idle connection to begin one. Heads and bodies are
    # some kilobytes: the proxies in `deploy/` give them as long.
    head: float = 10
    body: float = 10
    # For a response that is sent in parts: some megabytes.
    response: float = 60
    # Until the kernel ends a connection whose peer acknowledges nothing: a phone that
    # changes networks is back sooner, or asks anew.
    silence: float = 30


class Service(NamedTuple):
    """The application, the listener, and the callbacks of the server.

    `ready` is called after the first response, `hangup` at every SIGHUP. `before_stop`
    is called on another thread while the port is still open; its argument is how many
    seconds the server waits for its return.
    """

    application: ServedApplication
    listener: Listener
    max_connections: int
    access_log: bool
    manager: ServiceManager
    ready: Action
    hangup: Action
    before_stop: Callable[[float], None]
    deadlines: Deadlines = Deadlines()


# ---- Serving ----


async def serve(service: Service) -> None:
    """Serve until SIGTERM or SIGINT; then finish requests. Only for the main thread.

    Raises CannotListen when the server ends by itself.
    """
    loop = asyncio.get_running_loop()
    stop_asked = asyncio.Event()
    handle_signals(loop, stop_asked.set, service.hangup)
    server, address = embedded_server(service)
    running = await _started(server, address)
    tune_listener(address, service.deadlines.silence)
    service.ready()
    # In process, so that a service whose connections are all taken is full, not dead.
    ask_in_process = partial(service.application.prepared, PROBE)
    watchdog = loop.create_task(service.manager.feed_watchdog(ask_in_process))
    stopping = loop.create_task(stop_asked.wait())
    await asyncio.wait((stopping, running), return_when=asyncio.FIRST_COMPLETED)
    watchdog.cancel()
    if running.done():
        raise CannotListen("the server ended unexpectedly")
    service.manager.notify("STOPPING=1")
    await _stop(service, server, running)


async def _started(server: Server, address: Any) -> asyncio.Task[None]:
    """The task of the server, which has answered a request. Raises CannotListen."""
    # Gives a Unix socket the mode 0660.
    umask = os.umask(0o117)
    running = asyncio.get_running_loop().create_task(server.serve())
    try:
        await wait_until_ready(address, running)
    finally:
        os.umask(umask)
    return running


async def _stop(service: Service, server: Server, running: asyncio.Task[None]) -> None:
    """First what `before_stop` ends, while the port is open; then the server."""
    loop = asyncio.get_running_loop()
    ending = loop.run_in_executor(None, service.before_stop, BEFORE_STOP_SECONDS)
    await asyncio.wait((ending,), timeout=BEFORE_STOP_SECONDS)
    server.stop()  # type: ignore[no-untyped-call]
    await asyncio.wait((running,), timeout=STOP_SECONDS)
    if not running.done():
        message = "connections that are still open after %g seconds are closed"
        log.warning(message, STOP_SECONDS)


# ---- Signals ----


def handle_signals(
    loop: asyncio.AbstractEventLoop, stop: Action, hangup: Action
) -> None:
    """Have `loop` call `hangup` at SIGHUP, and `stop` at SIGTERM or SIGINT.

    A second SIGTERM or SIGINT ends the process. A signal wakes the loop through a pipe;
    without the pipe, its handler could wait for the next event. The socket that
    `add_signal_handler` uses instead of a pipe loses signals when other wake-ups have
    filled it.
    """
    stop_signals = (signal.SIGTERM, signal.SIGINT)

    def stop_once(*_: Any) -> None:
        for number in stop_signals:
            signal.signal(number, signal.SIG_DFL)
        loop.call_soon_threadsafe(stop)

    woken, waking = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    loop.add_reader(woken, os.read, woken, 4096)
    for number in stop_signals:
        signal.signal(number, stop_once)
    signal.signal(signal.SIGHUP, lambda *_: loop.call_soon_threadsafe(hangup))


# ---- Granian ----

# Granian's records reach our handlers; without "incremental", dictConfig would close
# these.
LOG_CONFIGURATION: dict[str, Any] = {
    "incremental": True,
    "formatters": {},
    "handlers": {},
    "loggers": {},
}


def embedded_server(service: Service) -> tuple[Server, Any]:
    """Granian's server, and the address at which it will listen."""
    deadlines = service.deadlines
    application: AsgiApp = Bridge(
        service.application, deadlines.body, deadlines.response
    )
    if service.access_log:
        application = AccessLog(application)
    where, address = _place(service.listener)
    server = Server(
        application,
        **where,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,
        websockets=False,
        backlog=BACKLOG,
        backpressure=service.max_connections,
        http1_settings=HTTP1Settings(
            header_read_timeout=round(deadlines.head * 1000),
            max_buffer_size=MAX_HEAD_BYTES,
        ),
        log_level=LogLevels.error,
        log_dictconfig=LOG_CONFIGURATION,
    )
    return server, address


def _place(listener: Listener) -> tuple[dict[str, Any], Any]:
    """Where Granian listens: arguments, and the address. Gives up a claimed port."""
    if isinstance(listener, Path):
        return {"uds": listener}, str(listener)
    address = listener.getsockname()
    listener.close()
    return {"address": address[0], "port": address[1]}, address


# ---- The end ----


def exit_at_once(status: int) -> NoReturn:
    """End the process after `serve`, at once.

    Granian's threads outlive `serve`; one that runs while the interpreter shuts down
    would abort the process.
    """
    for handler in logging.getLogger().handlers:
        handler.flush()
    os._exit(status)
