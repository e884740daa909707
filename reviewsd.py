"""The command line: run the service, check data, write files, list subscriptions.

This module connects settings, application, hub and server; each of them has a module of
its own.

Sections: parts - the service - check, get and export - subscriptions - the command
line.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote_to_bytes, urlsplit

from hub import Hub
from mcp_rpc import McpServer
from reviewslib.dataset.insights import unread
from reviewslib.dataset.moments import text_of_seconds
from reviewslib.dataset.reviews import Dataset
from reviewslib.dataset.strict_json import Object
from reviewslib.dataset.vocabulary import ENTITY_KINDS
from reviewslib.export.crawl import CannotExport, collected, site_files
from reviewslib.export.folder import write_site
from reviewslib.faults import BadData
from reviewslib.links import TOPIC_PATHS, ServiceUrls, file_urls, service_urls
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
    stray_variables,
)
from reviewslib.release import VERSION
from reviewslib.terminal import (
    EXIT_BAD_DATA,
    EXIT_FAILURE,
    EXIT_SUCCESS,
    write_output,
)
from reviewslib.web.app import Application
from reviewslib.web.figures import count_text
from reviewslib.web.newest_export import newest_export
from reviewslib.web.program_files import load_program_files
from reviewslib.web.reload import Reloader, loaded_text, settle_memory
from reviewslib.web.snapshot import Snapshot
from reviewslib.websub import store
from reviewslib.websub.callback_urls import selector
from reviewslib.websub.callbacks import CallbackClient
from reviewslib.websub.rows import HubSettings, Row, Topic

# How long a thread holds the interpreter while another waits; 0.005 by default. The
# event loop waits so long for the computing thread.
SWITCH_SECONDS = 0.0004

log = logging.getLogger("reviewsd")


# ---- Parts: made from settings ----


def create_app(settings: Settings) -> Application:
    """The application, for tests and for embedding in a WSGI server.

    It runs no hub and polls no files. Feeds name a hub only with `no_hub`: then another
    instance runs it. Raises BadData and BadSetting.
    """
    return application_of(settings, with_hub=settings.no_hub)


def application_of(settings: Settings, with_hub: bool = True) -> Application:
    """The application; with a hub, feeds name its URL.

    Raises BadData and BadSetting.
    """
    return application_at(settings, service_urls(public_url(settings), with_hub))


def application_at(settings: Settings, urls: ServiceUrls) -> Application:
    """The application at these URLs. Raises BadData."""
    mcp = McpServer(urls.base_url, settings.allowed_origin, VERSION)
    return Application(Reloader(load_program_files(), settings.data, urls), urls, mcp)


def public_url(settings: Settings) -> str:
    """The base URL, by default the listening URL.

    Raises BadSetting if the default is not usable.
    """
    if settings.base_url:
        return settings.base_url
    if settings.uds:
        raise _without_url(f"--uds {settings.uds}")
    if listening.is_wildcard(settings.host):
        raise _without_url(f"--host {settings.host}")
    return listening_url(settings)


def _without_url(flag: str) -> BadSetting:
    reason = "feeds, topics and links would have no usable URL"
    remedy = "add for example --base-url https://reviews.example.com"
    return BadSetting(f"{flag}: {reason}; {remedy}")


def listening_url(settings: Settings) -> str:
    """The URL of the address on which the service listens."""
    host = settings.host
    if ":" in host:
        # RFC 3986 section 3.2.2
        host = f"[{host}]"
    return f"http://{host}:{settings.port}"


def hub_settings(settings: Settings, base_url: str) -> HubSettings:
    """The settings of the hub."""
    return HubSettings(
        base_url=base_url,
        state_dir=settings.state_dir,
        user_agent=f"reviewsd/{VERSION} (+{base_url})",
        lease_seconds=settings.hub_lease_seconds,
        lease_min=settings.hub_lease_min,
        lease_max=settings.hub_lease_max,
        retry_delays=settings.hub_retry_delays,
        timeout=settings.hub_timeout,
        workers=settings.hub_workers,
        max_subscriptions=settings.hub_max_subscriptions,
        ca_file=settings.hub_ca_file,
        allow_private=settings.hub_allow_private,
    )


def callback_client(settings: HubSettings) -> CallbackClient:
    """The HTTPS client of the hub. Raises BadSetting for a bad certificate file."""
    ca_file = settings.ca_file
    try:
        # Reading a FIFO could block forever.
        if ca_file and not ca_file.is_file():
            raise OSError("there is no such regular file")
        return CallbackClient(
            settings.user_agent,
            ca_file,
            allow_private=settings.allow_private,
            own_host=urlsplit(settings.base_url).hostname or "",
        )
    except OSError as error:
        flag = f"{flag_name('hub_ca_file')} {ca_file}"
        raise BadSetting(f"{flag}: {error.strerror or error}") from None


def publish(hub: Hub, snapshot: Snapshot) -> None:
    """Tell the hub the current contents of the topics."""
    topics = {}
    for path in TOPIC_PATHS:
        content = snapshot.fixed[path]
        topics[path] = Topic(
            path=path,
            content_type=content.content_type,
            body=joined(content.identity.body),
            digest=content.digest,
        )
    hub.publish(topics)


# ---- The service ----


def check_hub(settings: Settings) -> None:
    """Raise BadSetting for a file or directory that the hub cannot use.

    Creates nothing.
    """
    if settings.no_hub:
        return
    path = settings.state_dir
    rights = os.R_OK | os.W_OK | os.X_OK
    # The service creates the directory when it starts, if it may.
    while not os.path.lexists(path):
        path = path.absolute().parent
        rights = os.W_OK | os.X_OK
    if not path.is_dir() or not os.access(path, rights):
        flag = f"{flag_name('state_dir')} {settings.state_dir}"
        raise BadSetting(f"{flag}: {path} is not a directory that this user can write")
    if settings.hub_ca_file:
        callback_client(hub_settings(settings, public_url(settings)))


def run(settings: Settings, deadlines: serving.Deadlines | None = None) -> NoReturn:
    """Load the data, serve until a signal, and end the process.

    Raises BadData, BadSetting and CannotListen before it serves.
    """
    # By default the signal ends the process; `serve` handles it later.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    check_before_start(settings)
    # The address is claimed before the data are loaded, which may take seconds.
    settings, listener = claimed_address(settings)
    application = application_of(settings)
    log_loaded(application.snapshot.dataset)
    service = service_of(settings, application, listener)
    if deadlines:
        service = service._replace(deadlines=deadlines)
    settle_memory()
    sys.setswitchinterval(SWITCH_SECONDS)
    asyncio.run(serve_and_exit(service))


def check_before_start(settings: Settings) -> None:
    """Check settings before anything is opened. Raises BadSetting and CannotListen."""
    listening.allow_connections(settings.max_connections)
    public_url(settings)
    check_hub(settings)


def claimed_address(settings: Settings) -> tuple[Settings, listening.Listener]:
    """The settings with the port that is claimed, and the listener.

    Raises CannotListen.
    """
    if settings.uds:
        return settings, listening.claim_path(settings.uds)
    listener = listening.claim_port(settings.host, settings.port)
    port = listener.getsockname()[1]
    return replace(settings, port=port), listener


def log_loaded(dataset: Dataset) -> None:
    """Log what was loaded."""
    for note in dataset.notes:
        log.info("%s", note)
    for warning in dataset.warnings:
        log.warning("%s", warning)
    log.info("%s", loaded_text(dataset))


def service_of(
    settings: Settings, application: Application, listener: listening.Listener
) -> serving.Service:
    """The service, whose hub runs and whose service manager hears of reloads."""
    manager = ServiceManager()
    application.reloader.notify = manager.notify
    before_stop = stop_of_hub(settings, application)
    return serving.Service(
        application=application,
        listener=listener,
        max_connections=settings.max_connections,
        access_log=settings.access_log,
        manager=manager,
        ready=partial(begin, settings, application, manager),
        hangup=application.reloader.wake,
        before_stop=before_stop,
    )


def stop_of_hub(
    settings: Settings, application: Application
) -> Callable[[float], None]:
    """Start the hub, unless another instance runs it. Returns what stops it."""
    if settings.no_hub:
        return no_hub_stops
    return started_hub(settings, application).stop


def no_hub_stops(timeout_seconds: float) -> None:
    """What ends before the server where no hub runs: nothing."""


def begin(
    settings: Settings, application: Application, manager: ServiceManager
) -> None:
    """Say that the service is ready, and watch the data files from now on."""
    address = str(settings.uds or listening_url(settings))
    base_url = application.urls.base_url
    where = address
    if base_url != address:
        where += f" as {base_url}"
    log.info("reviewsd %s listens on %s", VERSION, where)
    loaded = loaded_text(application.snapshot.dataset)
    manager.notify("READY=1", f"STATUS=Serving {loaded}")
    poll = partial(application.reloader.run, settings.reload_interval)
    threading.Thread(target=poll, name="reload", daemon=True).start()


def started_hub(settings: Settings, application: Application) -> Hub:
    """The running hub, which is told every new snapshot."""
    for name in ("hub_allow_private", "hub_ca_file"):
        if getattr(settings, name):
            log.warning("%s is for tests only", flag_name(name))
    options = hub_settings(settings, application.urls.base_url)
    hub = Hub(options, callback_client(options).send)
    application.hub = hub
    application.reloader.publish = partial(publish, hub)
    publish(hub, application.snapshot)
    hub.start()
    return hub


async def serve_and_exit(service: serving.Service) -> NoReturn:
    """Serve, and end the process.

    It ends here, since `asyncio.run` would first cancel and log requests that hang.
    """
    try:
        await serving.serve(service)
    except listening.CannotListen as error:
        print(error, file=sys.stderr)
        serving.exit_at_once(EXIT_FAILURE)
    log.info("stopped")
    serving.exit_at_once(EXIT_SUCCESS)


# ---- Check, get and export ----


def check(settings: Settings, sources: Mapping[str, str]) -> int:
    """Print a summary of the data and all settings. Raises BadData and BadSetting."""
    check_hub(settings)
    application = application_of(settings)
    dataset = application.snapshot.dataset
    lines = [*summary(dataset)]
    lack = application.program.languages.lack(dataset.business.get("language"))
    if lack:
        lines.append(f"warning: {lack}")
    exported = newest_export(settings.data)
    if exported:
        lines.append(f"Newest export: {exported}")
    lines += listing(settings, sources, os.environ)
    return write_output("\n".join(lines))


def summary(dataset: Dataset) -> Iterator[str]:
    """Lines that summarize the dataset for the operator."""
    yield loaded_text(dataset)
    if dataset.reviews:
        # Newest first.
        yield f"  from {dataset.reviews[-1].day} to {dataset.reviews[0].day}"
    if dataset.aggregate_rating["rating_value"] is not None:
        yield f"  {rating_text(dataset.aggregate_rating)}"
    insights = dataset.insights
    basis = count_text(insights["review_count"], "review")
    yield f"Insights of {insights['generated_at'] or 'no date'} from {basis}"
    yield f"  {', '.join(insight_counts(insights))}"
    part = unread(insights)
    if part:
        read = f"{part['read_count']:,} of {part['worded_count']:,}"
        yield f"  {read} reviews with words were read"
    yield from dataset.notes
    for warning in dataset.warnings:
        yield f"warning: {warning}"


def rating_text(rating: Object) -> str:
    """The average and the number of reviews for each star."""
    basis = count_text(rating["review_count"], "review")
    distribution = rating["distribution"]
    counts = ", ".join(f"{distribution[star]} x {star}" for star in "54321")
    return f"{rating['rating_value']:g} stars of 5 over {basis}: {counts}"


INSIGHT_NOUNS = {"aspects": "aspect", "topics": "topic", "faq": "question"}


def insight_counts(insights: Object) -> Iterator[str]:
    """How many entries of each kind the insights have."""
    for key, noun in INSIGHT_NOUNS.items():
        yield count_text(len(insights[key]), noun)
    for kind in ENTITY_KINDS:
        noun = kind.removesuffix("s").replace("_", " ")
        yield count_text(len(insights["entities"][kind]), noun)


def get(settings: Settings, target: str) -> int:
    """Print the body of a response; EXIT_FAILURE for an error status.

    Raises BadData and BadSetting.
    """
    path, _, query_string = os.fsencode(target).partition(b"?")
    request = Request(
        method="GET",
        path=unquote_to_bytes(path).decode("utf-8", "surrogateescape"),
        query_string=query_string.decode("latin-1"),
        header={"host": "localhost"}.get,
    )
    response = application_of(settings).respond(request)
    write_output(joined(response.body))
    if response.status >= 400:
        return EXIT_FAILURE
    return EXIT_SUCCESS


def export(settings: Settings, directory: Path) -> int:
    """Write the site as files. Raises BadData, BadSetting and CannotExport."""
    if not settings.base_url:
        reason = "feeds and links would have no usable URL"
        example = "https://shop.example/reviews"
        raise BadSetting(f"--export: {reason}; add for example --base-url {example}")
    urls = file_urls(settings.base_url)
    application = application_at(settings, urls)
    site = collected(site_files(application.respond, urls))
    try:
        report = write_site(directory, site)
    except OSError as error:
        raise CannotExport(f"{error.filename}: {error.strerror or error}") from None
    size = f"{report.size_bytes / 10**6:,.1f} MB"
    changes = f"{report.written:,} written, {report.removed:,} removed"
    return write_output(f"{directory}: {report.files:,} files, {size}; {changes}")


# ---- Subscriptions ----


def subscriptions(settings: Settings) -> int:
    """List the subscriptions; only the hosts of callbacks, since paths may be secret.

    Raises StoreFault.
    """
    rows = store.list_rows(settings.state_dir)
    path = settings.state_dir / store.STORE_FILE_NAME
    if not rows and not path.exists():
        remedy = f"see {flag_name('state_dir')}"
        raise store.StoreFault(f"{path}: there is no store of subscriptions; {remedy}")
    lines = [listing_text(row, time.time()) for row in rows]
    return write_output("\n".join(lines) or "no subscriptions")


def unsubscribe(settings: Settings, host: str) -> int:
    """Remove a host's subscriptions; EXIT_FAILURE if it has none.

    Raises BadSetting and StoreFault.
    """
    try:
        is_selected = selector(host)
    except ValueError as error:
        raise BadSetting(f"--unsubscribe {error}") from None
    removed = store.remove_subscriptions(settings.state_dir, is_selected)
    lines = [f"removed {row.host} {row.path}" for row in removed]
    write_output("\n".join(lines) or f"no subscription of {host}")
    return EXIT_SUCCESS if removed else EXIT_FAILURE


def row_state(row: Row, now: float) -> str:
    """What a row is, in a word."""
    if not row.is_subscription:
        return row.mode
    if row.expires_at <= now:
        return "ended"
    return "failing" if row.failures else "active"


def listing_text(row: Row, now: float) -> str:
    """State, callback host, topic, times, last outcome of a subscription or request."""
    start = f"{row_state(row, now):11} {row.host} {row.path}"
    parts = [f"{start} since {text_of_seconds(row.since)}"]
    if row.is_subscription:
        parts.append(f"until {text_of_seconds(row.expires_at)}")
    if row.failures:
        parts.append(f"{row.failures} failed")
    if row.tried_at is not None:
        parts.append(f"last {row.outcome} at {text_of_seconds(row.tried_at)}")
    return ", ".join(parts)


# ---- The command line ----


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit status."""
    messages = start_log()
    try:
        return perform(vars(command_line().parse_args(arguments)))
    except BadData as bad:
        print(*bad.lines(), sep="\n", file=sys.stderr)
        return EXIT_BAD_DATA
    except BadSetting as bad:
        print(bad, file=sys.stderr)
        return EXIT_BAD_DATA
    except (CannotExport, listening.CannotListen, store.StoreFault) as error:
        print(error, file=sys.stderr)
        return EXIT_FAILURE
    finally:
        messages.flush()


def perform(options: Mapping[str, Any]) -> int:
    """Perform what the options ask for; by default, serve.

    Raises BadData, BadSetting, CannotExport, CannotListen and StoreFault.
    """
    settings, sources = read_settings(options, os.environ)
    logging.getLogger().setLevel(settings.log_level.upper())
    if options["check"]:
        return check(settings, sources)
    if options["get"] is not None:
        return get(settings, options["get"])
    if options["export"] is not None:
        return export(settings, options["export"])
    if options["subscriptions"]:
        return subscriptions(settings)
    if options["unsubscribe"] is not None:
        return unsubscribe(settings, options["unsubscribe"])
    # A misspelt base URL would otherwise be noticed by readers first.
    for stray in stray_variables(os.environ):
        log.warning("%s", stray)
    run(settings)


def sample_directory() -> Path:
    """The sample data: part of an installation; in a clone, `data` beside this file."""
    installed = Path(str(resources.files("reviewslib") / "sample"))
    # Path.is_dir would raise where this user may not look.
    if os.path.isdir(installed):
        return installed
    return Path(__file__).resolve().with_name("data")


# What is done instead of serving.
COMMANDS: dict[str, dict[str, Any]] = {
    "--check": {
        "action": "store_true",
        "help": "validate data and settings, print a summary and exit",
    },
    "--get": {
        "metavar": "PATH",
        "help": "print the response to a request, without a server, and exit",
    },
    "--export": {
        "metavar": "DIR",
        "type": Path,
        "help": "write the site as files, for a host without programs, and exit",
    },
    "--subscriptions": {
        "action": "store_true",
        "help": "list the hub's subscriptions and requests, and exit",
    },
    "--unsubscribe": {
        "metavar": "HOST",
        "help": "remove the subscriptions of a host or .domain, and exit",
    },
}


def command_line() -> argparse.ArgumentParser:
    """The parser of the command line; every setting is a flag."""
    parser = argparse.ArgumentParser(
        "reviewsd",
        description="Publish the customer reviews of one business: as pages, JSON and "
        "feeds, and for AI assistants.",
        epilog="A flag overrides its environment variable, and a variable overrides the "
        "default.",
    )
    add_flags(parser)
    parser.add_argument(
        "--sample",
        action="store_const",
        const=str(sample_directory()),
        dest="data",
        help="instead of --data: the sample, reviews of a fictional practice",
    )
    for flag, arguments in COMMANDS.items():
        parser.add_argument(flag, **arguments)
    parser.add_argument("--version", action="version", version=f"reviewsd {VERSION}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
