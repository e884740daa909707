"""The command line: run the service, check the data, print a response, list or remove subscriptions.

This module connects settings, application, hub and server; each of them has a module of its own.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    sys.exit(
        "reviewsd runs on Linux, and for local use on macOS; on Windows it needs WSL"
    )

import argparse
import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import NoReturn
from urllib.parse import unquote_to_bytes, urlsplit

from hub import Hub
from mcp_rpc import McpEndpoint
from reviewslib.dataset.contract import BadData
from reviewslib.dataset.reviews import Dataset
from reviewslib.dataset.vocabulary import ENTITY_KINDS
from reviewslib.links import TOPIC_PATHS, service_urls
from reviewslib.messages import Request, joined
from reviewslib.process import listening, serving
from reviewslib.process.logs import start_log
from reviewslib.process.service_manager import ServiceManager
from reviewslib.process.settings import (
    BadSetting,
    Settings,
    add_flags,
    flag_name,
    listing,
    read_settings,
)
from reviewslib.release import VERSION
from reviewslib.terminal import EXIT_BAD_DATA, EXIT_FAILURE, EXIT_SUCCESS
from reviewslib.web.app import Application
from reviewslib.web.figures import count_text
from reviewslib.web.reload import Reloader, loaded_text, settle_memory, utc_text
from reviewslib.web.snapshot import Snapshot, load_program_files
from reviewslib.websub import store
from reviewslib.websub.callback_urls import selector
from reviewslib.websub.callbacks import CallbackClient
from reviewslib.websub.rows import HubSettings, Row, Topic

SWITCH_SECONDS = 0.0004  # how long a thread holds the interpreter while another waits; 0.005 by default

log = logging.getLogger("reviewsd")


# ---- Parts of the service, made from settings ----


def create_app(settings: Settings) -> Application:
    """The application, for tests and for embedding in a WSGI server. Raises BadData and BadSetting.

    It runs no hub and polls no files. Feeds name a hub only with `no_hub`: then another instance runs it.
    """
    return application_of(settings, with_hub=settings.no_hub)


def application_of(settings: Settings, with_hub: bool = True) -> Application:
    """The application; with a hub, feeds name its URL. Raises BadData and BadSetting."""
    base_url = public_url(settings)
    mcp = McpEndpoint(base_url, settings.allowed_origin, VERSION)
    urls = service_urls(base_url, with_hub)
    return Application(Reloader(load_program_files(), settings.data, urls), urls, mcp)


def public_url(settings: Settings) -> str:
    """The base URL, by default the listening URL. Raises BadSetting if the default is not usable."""
    if not settings.base_url and (settings.uds or listening.is_wildcard(settings.host)):
        flag = f"--uds {settings.uds}" if settings.uds else f"--host {settings.host}"
        reason = "feeds, topics and links would have no usable URL"
        raise BadSetting(
            f"{flag}: {reason}; add for example --base-url https://reviews.example.com"
        )
    return settings.base_url or listening_url(settings)


def listening_url(settings: Settings) -> str:
    """The URL of the address on which the service listens."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}"


def hub_settings(settings: Settings, base_url: str) -> HubSettings:
    """The settings of the hub: those with the prefix `hub_`, base URL, state directory and user agent."""
    names = [name for name in Settings.__slots__ if name.startswith("hub_")]
    values = {name.removeprefix("hub_"): getattr(settings, name) for name in names}
    user_agent = f"reviewsd/{VERSION} (+{base_url})"
    return HubSettings(
        base_url=base_url, state_dir=settings.state_dir, user_agent=user_agent, **values
    )


def callback_client(settings: HubSettings) -> CallbackClient:
    """The HTTPS client for these settings. Raises BadSetting for an unusable file of certificates."""
    ca_file = settings.ca_file
    own_host = urlsplit(settings.base_url).hostname or ""
    try:
        if ca_file and not ca_file.is_file():  # reading a FIFO could block forever
            raise OSError("there is no such regular file")
        return CallbackClient(
            settings.user_agent,
            ca_file,
            allow_private=settings.allow_private,
            own_host=own_host,
        )
    except OSError as error:
        raise BadSetting(
            f"{flag_name('hub_ca_file')} {ca_file}: {error.strerror or error}"
        ) from None


def publish(hub: Hub, snapshot: Snapshot) -> None:
    """Tell the hub the current contents of the topics."""
    topics = {}
    for path in TOPIC_PATHS:
        content = snapshot.fixed[path]
        topics[path] = Topic(
            path, content.content_type, joined(content.identity.body), content.digest
        )
    hub.publish(topics)


# ---- Commands ----


def check_hub(settings: Settings) -> None:
    """Raise BadSetting for a file or directory that the hub cannot use. Creates nothing."""
    if settings.no_hub:
        return
    path = settings.state_dir
    mode = os.R_OK | os.W_OK | os.X_OK
    while not os.path.lexists(path):  # the service creates it when it starts
        path = path.absolute().parent
        mode = os.W_OK | os.X_OK
    if not (os.path.isdir(path) and os.access(path, mode)):
        flag = f"{flag_name('state_dir')} {settings.state_dir}"
        raise BadSetting(f"{flag}: {path} is not a directory that this user can write")
    if settings.hub_ca_file:
        callback_client(hub_settings(settings, public_url(settings)))


def run(settings: Settings, deadlines: serving.Deadlines | None = None) -> NoReturn:
    """Load the data, serve until a signal, and end the process.

    Raises BadData, BadSetting and listening.CannotListen before it serves.
    """
    signal.signal(
        signal.SIGHUP, signal.SIG_IGN
    )  # until `serve` handles it; the default ends the process
    listening.allow_connections(settings.max_connections)  # before anything is opened
    public_url(settings)  # raises BadSetting before anything is opened
    check_hub(settings)
    listener: listening.Listener
    if settings.uds:
        listener = listening.claim_path(settings.uds)
    else:
        listener = listening.claim_port(settings.host, settings.port)
        settings = replace(settings, port=listener.getsockname()[1])
    application = application_of(settings)
    manager = ServiceManager()
    reloader = application.reloader
    loaded = loaded_text(application.snapshot.dataset)
    for note in application.snapshot.dataset.notes:
        log.info("%s", note)
    for warning in application.snapshot.dataset.warnings:
        log.warning("%s", warning)
    log.info("%s", loaded)
    reloader.notify = manager.notify
    hub = None if settings.no_hub else started_hub(settings, application)

    def ready() -> None:
        address = settings.uds or listening_url(settings)
        log.info(
            "reviewsd %s listens on %s as %s",
            VERSION,
            address,
            application.urls.base_url,
        )
        manager.notify("READY=1", f"STATUS=Serving {loaded}")
        poll = partial(reloader.run, settings.reload_interval)
        threading.Thread(target=poll, name="reload", daemon=True).start()

    settle_memory()
    sys.setswitchinterval(SWITCH_SECONDS)
    service = serving.Service(
        application=application,
        listener=listener,
        max_connections=settings.max_connections,
        access_log=settings.access_log,
        manager=manager,
        ready=ready,
        hangup=reloader.wake,
        before_stop=hub.stop if hub else lambda timeout_seconds: None,
        deadlines=deadlines or serving.Deadlines(),
    )
    asyncio.run(serve_and_exit(service))


def started_hub(settings: Settings, application: Application) -> Hub:
    """The running hub, which is told every new snapshot. Logs a warning for every setting for tests."""
    for name in ("hub_allow_private", "hub_ca_file"):
        if getattr(settings, name):
            log.warning("%s is for tests only", flag_name(name))
    options = hub_settings(settings, application.urls.base_url)
    reloader = application.reloader
    application.hub = hub = Hub(options, callback_client(options).send)
    reloader.publish = partial(publish, hub)
    publish(hub, reloader.snapshot)
    hub.start()
    return hub


async def serve_and_exit(service: serving.Service) -> NoReturn:
    """Serve, and end the process before the event loop cancels and logs hanging requests."""
    try:
        await serving.serve(service)
    except listening.CannotListen as error:
        print(error, file=sys.stderr)
        serving.exit_at_once(EXIT_FAILURE)
    log.info("stopped")
    serving.exit_at_once(EXIT_SUCCESS)


def check(settings: Settings, sources: Mapping[str, str]) -> int:
    """Print a summary of the data and all settings. Raises BadData and BadSetting."""
    check_hub(settings)
    lines = summary(application_of(settings).snapshot.dataset)
    return write_output("\n".join((*lines, *listing(settings, sources, os.environ))))


def summary(dataset: Dataset) -> Iterator[str]:
    """Lines that summarize the dataset for the operator."""
    rating = dataset.aggregate_rating
    insights = dataset.insights
    yield loaded_text(dataset)
    if dataset.reviews:
        yield f"  from {dataset.reviews[-1].day} to {dataset.reviews[0].day}"
    if rating["rating_value"] is not None:
        basis = count_text(rating["review_count"], "review")
        stars = ", ".join(
            f"{rating['distribution'][star]} x {star}" for star in "54321"
        )
        yield f"  {rating['rating_value']:g} stars of 5 over {basis}: {stars}"
    basis = count_text(insights["review_count"], "review")
    yield f"Insights of {insights['generated_at'] or 'no date'} from {basis}"
    parts = [f"{len(insights[key])} {key}" for key in ("aspects", "topics", "faq")]
    parts += [
        f"{len(insights['entities'][kind])} {kind.replace('_', ' ')}"
        for kind in ENTITY_KINDS
    ]
    yield f"  {', '.join(parts)}"
    yield from dataset.notes
    for warning in dataset.warnings:
        yield f"warning: {warning}"


def get(settings: Settings, target: str) -> int:
    """Print the body of a response; EXIT_FAILURE for an error status. Raises BadData and BadSetting."""
    path, _, query_string = os.fsencode(target).partition(b"?")
    decoded = unquote_to_bytes(path).decode("utf-8", "surrogateescape")
    request = Request(
        "GET", decoded, query_string.decode("latin-1"), {"host": "localhost"}.get
    )
    response = application_of(settings).respond(request)
    write_output(joined(response.body))
    return EXIT_SUCCESS if response.status < 400 else EXIT_FAILURE


def subscriptions(settings: Settings) -> int:
    """List the subscriptions. Shows only the hosts of callbacks: paths may be secret. Raises StoreFault."""
    rows = store.list_rows(settings.state_dir)
    path = settings.state_dir / store.STORE_FILE_NAME
    if not rows and not path.exists():
        raise store.StoreFault(
            f"{path}: there is no store of subscriptions; see {flag_name('state_dir')}"
        )
    lines = [listing_text(row, time.time()) for row in rows]
    return write_output("\n".join(lines) or "no subscriptions")


def unsubscribe(settings: Settings, host: str) -> int:
    """Remove a host's subscriptions; EXIT_FAILURE if it has none. Raises BadSetting and StoreFault."""
    try:
        is_selected = selector(host)
    except ValueError as error:
        raise BadSetting(f"--unsubscribe {error}") from None
    removed = store.remove_subscriptions(settings.state_dir, is_selected)
    lines = [f"removed {row.host} {row.path}" for row in removed]
    write_output("\n".join(lines) or f"no subscription of {host}")
    return EXIT_SUCCESS if removed else EXIT_FAILURE


def row_state(row: Row, now: float) -> str:
    if not row.is_subscription:
        return row.mode
    if row.expires_at <= now:
        return "ended"
    return "failing" if row.failures else "active"


def listing_text(row: Row, now: float) -> str:
    """State, callback host, topic, times and last outcome of a subscription or request."""
    start = f"{row_state(row, now):11} {row.host} {row.path}"
    parts = [f"{start} since {utc_text(row.since)}"]
    if row.is_subscription:
        parts.append(f"until {utc_text(row.expires_at)}")
    if row.failures:
        parts.append(f"{row.failures} failed")
    if row.tried_at is not None:
        parts.append(f"last {row.outcome} at {utc_text(row.tried_at)}")
    return ", ".join(parts)


def write_output(content: str | bytes) -> int:
    """Write a body or lines to standard output and return EXIT_SUCCESS, or exit with EXIT_FAILURE."""
    if isinstance(content, str):
        encoding = (
            sys.stdout.encoding if sys.stdout else "ascii"
        )  # sys.stdout is None if closed
        content = f"{content}\n".encode(encoding, "backslashreplace")
    try:
        with open(
            1, "wb", closefd=False
        ) as output:  # sys.stdout would fail a second time, at exit
            output.write(content)
        return EXIT_SUCCESS
    except OSError as error:
        sys.exit(f"cannot write to standard output: {error.strerror}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit status."""
    messages = start_log()
    try:
        options = vars(command_line().parse_args(arguments))
        settings, sources = read_settings(options, os.environ)
        logging.getLogger().setLevel(settings.log_level.upper())
        if options["check"]:
            return check(settings, sources)
        if options["get"] is not None:
            return get(settings, options["get"])
        if options["subscriptions"]:
            return subscriptions(settings)
        if options["unsubscribe"] is not None:
            return unsubscribe(settings, options["unsubscribe"])
        run(settings)
    except BadData as bad:
        print(*bad.lines(), sep="\n", file=sys.stderr)
        return EXIT_BAD_DATA
    except (BadSetting, listening.CannotListen, store.StoreFault) as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_DATA if isinstance(error, BadSetting) else EXIT_FAILURE
    finally:
        messages.flush()


def sample_directory() -> Path:
    """The sample data: part of an installation; in a clone, `data` beside this module."""
    installed = Path(str(resources.files("reviewslib") / "sample"))
    if installed.is_dir():
        return installed
    return Path(__file__).resolve().with_name("data")


def command_line() -> argparse.ArgumentParser:
    """The parser of the command line; every setting is a flag."""
    about = (
        "Publish what customers wrote about a business: datasets, search, feeds, pages."
    )
    precedence = "A flag overrides its environment variable, and a variable overrides the default."
    parser = argparse.ArgumentParser("reviewsd", description=about, epilog=precedence)
    add_flags(parser)
    add = parser.add_argument
    add(
        "--sample",
        action="store_const",
        const=str(sample_directory()),
        dest="data",
        help="instead of --data: the sample, reviews of a fictional practice",
    )
    add(
        "--check",
        action="store_true",
        help="validate data and settings, print a summary and exit",
    )
    add(
        "--get",
        metavar="PATH",
        help="print the response to a request, without a server, and exit",
    )
    add(
        "--subscriptions",
        action="store_true",
        help="list the hub's subscriptions and requests, and exit",
    )
    add(
        "--unsubscribe",
        metavar="HOST",
        help="remove the subscriptions of a host or .domain, and exit",
    )
    add("--version", action="version", version=f"reviewsd {VERSION}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
