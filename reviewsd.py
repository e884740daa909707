"""The daemon: settings, the files, the WSGI application, the server, the command line.

Everything that touches the world is here: files, clock, sockets, signals, logs. What the data means is
decided in `reviews`, which knows nothing of this module. One request reads `Service.snapshot` once and
answers from that immutable object; nothing else is shared between threads.

Sections: Settings - Files - Representations - Snapshot - Requests and answers - Conditional requests -
Routes - Application - Reload - Commands
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import hashlib
import logging
import os
import re
import secrets
import signal
import sys
import sysconfig
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn
from urllib.parse import unquote_plus, urlsplit

from werkzeug.http import http_date, parse_accept_header, parse_date, parse_etags

import mcp_rpc
import page
import reviews
import words
from contract import BadData, Contract, Fault, read_contract
from hub import Hub, HubAnswer, HubSettings, Topic
from hub_store import HubUnavailable, Listing, list_subscriptions
from links import (
    ATOM_FEED_PATH,
    CONTRACT_PATH,
    HEALTH_PATH,
    HOME_PATH,
    HUB_PATH,
    ICON_PATH,
    INSIGHTS_PATH,
    JSON_FEED_PATH,
    LLMS_PATH,
    MCP_PATH,
    REVIEWS_PATH,
    ROBOTS_PATH,
    SEARCH_PATH,
    SINCE_PATH,
    TOPIC_PATHS,
    links_below,
    topic_link_header,
)
from mcp_rpc import SESSION_KEY_BYTES, McpEndpoint, McpSettings, new_session_key
from reviews import BadQuery, Dataset, Issue
from serving import (
    LARGEST_BODY,
    CannotListen,
    Environ,
    header_key,
    leave,
    listen,
    notify,
    serve,
)

VERSION = "1.0.0"
EXIT_STOPPED, EXIT_CANNOT_LISTEN, EXIT_USAGE, EXIT_BAD_DATA = 0, 1, 2, 78

log = logging.getLogger("reviewsd")


# ---- Settings: declared once, here; flags, environment names, help and --check all come from this ----


class BadSetting(ValueError):
    """A setting cannot be used; the text names it, the value and what would be right."""


def _read_port(text: str) -> int:
    if not (re.fullmatch("[0-9]{1,5}", text) and int(text) <= 65535):
        raise BadSetting(f"{text!r} is not a port: expected 0 to 65535")
    return int(text)


def _read_base_url(text: str) -> str:
    """An absolute http(s) URL without query or fragment; a slash at its end is dropped."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
        parts.port  # noqa: B018 - the property raises ValueError for a port that is none
    except ValueError:
        usable = False
    if not usable or re.search(r"[^!-~]|[<>\"\\]", text):
        raise BadSetting(f"{text!r} is not a base URL: expected for example https://reviews.example.com")
    return text.rstrip("/")


def _read_seconds(text: str) -> float:
    if not (re.fullmatch(r"[0-9]{1,7}(\.[0-9]{1,3})?", text) and float(text) > 0):
        raise BadSetting(f"{text!r} is not a number of seconds: expected for example 2 or 0.5")
    return float(text)


def _read_count(text: str) -> int:
    if not (re.fullmatch("[0-9]{1,9}", text) and int(text) > 0):
        raise BadSetting(f"{text!r} is not a number: expected 1 or more")
    return int(text)


def _read_delays(text: str) -> tuple[float, ...]:
    return tuple(_read_seconds(part.strip()) for part in text.split(","))


def _read_switch(text: str) -> bool:
    if text.lower() not in SWITCHES:
        raise BadSetting(f"{text!r} is neither on nor off: expected one of {', '.join(SWITCHES)}")
    return SWITCHES[text.lower()]


def _read_origins(text: str) -> frozenset[str]:
    """Origins as browsers send them (RFC 6454 section 6.2), with commas between; `*` for every one."""
    origins = [part.strip() for part in text.split(",") if part.strip()]
    for origin in origins:
        if not ORIGIN.fullmatch(origin):
            raise BadSetting(
                f"{origin!r} is not an origin: expected for example https://app.example.com, or *"
            )
    return frozenset(origins)


def _read_log_level(text: str) -> str:
    if text.lower() not in LOG_LEVELS:
        raise BadSetting(f"{text!r} is not a log level: expected one of {', '.join(LOG_LEVELS)}")
    return text.lower()


Flag = Literal["value", "list", "switch"]
LOG_LEVELS = ("debug", "info", "warning", "error")
SWITCHES = {
    "on": True,
    "yes": True,
    "true": True,
    "1": True,
    "off": False,
    "no": False,
    "false": False,
    "0": False,
}
ORIGIN = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[^/?#,\s]+")


def _setting(
    default: Any, description: str, read: Callable[[str], Any] = str, flag: Flag = "value", also: str = ""
) -> Any:
    """A field of `Settings`; `read` turns what an operator wrote into the value or raises BadSetting.

    A "list" flag may be given more than once, a "switch" takes no value. `also` is a second variable, one
    that systemd sets.
    """
    return field(
        default=default, metadata={"description": description, "read": read, "flag": flag, "also": also}
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything an operator can choose. A field `base_url` is the flag --base-url and REVIEWSD_BASE_URL."""

    host: str = _setting("127.0.0.1", "IP address to listen on")
    port: int = _setting(8080, "port to listen on; 0 picks a free one and prints it", _read_port)
    uds: Path | None = _setting(None, "path of a Unix socket to listen on instead", Path)
    base_url: str = _setting("", "public URL of the service; by default http://HOST:PORT", _read_base_url)
    data: Path = _setting(Path("data"), "directory of reviews.json and insights.json", Path)
    state_dir: Path = _setting(
        Path("state"), "directory for what the service keeps; systemd names it", Path, also="STATE_DIRECTORY"
    )
    reload_interval: float = _setting(2.0, "seconds between two looks at the data files", _read_seconds)
    log_level: str = _setting("info", f"how much to log: {', '.join(LOG_LEVELS)}", _read_log_level)
    allowed_origin: frozenset[str] = _setting(
        frozenset(),
        "origin whose web pages may call /mcp; may be given more than once; * for all",
        _read_origins,
        "list",
    )
    mcp_require_session: bool = _setting(
        False, "refuse MCP requests without the session id that initialize gave", _read_switch, "switch"
    )
    session_key_file: Path | None = _setting(
        None, "file of 32 random bytes that sign MCP sessions; by default made in the state directory", Path
    )
    no_hub: bool = _setting(
        False, "run no hub here: another instance at the same public address does", _read_switch, "switch"
    )
    hub_lease_seconds: int = _setting(864_000, "lease of who asks for none", _read_count)
    hub_lease_min: int = _setting(3600, "shortest lease, in seconds", _read_count)
    hub_lease_max: int = _setting(2_592_000, "longest lease, in seconds", _read_count)
    hub_retry_delays: tuple[float, ...] = _setting(
        (60.0, 3600.0), "seconds before the second and the third try of a delivery", _read_delays
    )
    hub_timeout: float = _setting(10.0, "seconds that a delivery may take", _read_seconds)
    hub_workers: int = _setting(16, "deliveries at the same time", _read_count)
    hub_max_subscriptions: int = _setting(10_000, "subscriptions that are kept", _read_count)
    hub_ca_file: Path | None = _setting(None, "certificates to trust for callbacks, too; for labs", Path)
    hub_allow_private: bool = _setting(
        False, "call back at any address and port; for labs only", _read_switch, "switch"
    )


def flag_name(name: str) -> str:
    """The command line flag of a setting."""
    return "--" + name.replace("_", "-")


def variable_name(name: str) -> str:
    """The environment variable of a setting."""
    return "REVIEWSD_" + name.upper()


def read_settings(
    flags: Mapping[str, str | list[str] | None], environ: Mapping[str, str]
) -> tuple[Settings, dict[str, str]]:
    """The settings, and for each where it came from: a flag, else a variable, else the default.

    An empty variable is the same as an absent one. A flag given more than once reads as a variable does, with
    commas between. Raises BadSetting.
    """
    values: dict[str, Any] = {}
    sources = {}
    for declared in fields(Settings):
        name = declared.name
        given = flags.get(name)
        candidates = [(flag_name(name), ",".join(given) if isinstance(given, list) else given)]
        for variable in (variable_name(name), declared.metadata["also"]):
            candidates.append((variable, environ.get(variable) or None))
        source, text = next((each for each in candidates if each[1] is not None), ("default", None))
        sources[name] = source
        if text is not None:
            try:
                values[name] = declared.metadata["read"](text)
            except BadSetting as bad:
                raise BadSetting(f"{source}: {bad}") from None
    settings = Settings(**values)
    hub_settings(settings)
    return settings, sources


def written(value: Any) -> str:
    """A setting's value as an operator would write it."""
    match value:
        case bool():
            return "on" if value else "off"
        case tuple():
            return ",".join(map(written, value))
        case frozenset():
            return ",".join(sorted(value))
        case float():
            return f"{value:g}"
    return "" if value is None else str(value)


def hub_settings(settings: Settings) -> HubSettings:
    """What the hub is to know. Raises BadSetting when settings contradict each other."""
    try:
        return HubSettings(
            base_url=settings.base_url,
            state_dir=settings.state_dir,
            lease_seconds=settings.hub_lease_seconds,
            lease_min=settings.hub_lease_min,
            lease_max=settings.hub_lease_max,
            retry_delays=settings.hub_retry_delays,
            timeout=settings.hub_timeout,
            workers=settings.hub_workers,
            max_subscriptions=settings.hub_max_subscriptions,
            ca_file=settings.hub_ca_file,
            allow_private=settings.hub_allow_private,
            user_agent=f"reviewsd/{VERSION} (+{settings.base_url})",
        )
    except ValueError as error:
        raise BadSetting(f"the settings of the hub contradict each other: {error}") from None


# ---- Files: bytes from the disk, with the time since when they hold ----

READ_ATTEMPTS = 5
SETTLE_SECONDS = 0.05  # between two attempts at a file that somebody is writing


@dataclass(frozen=True, slots=True)
class Files:
    """The contents of the two data files; `insights` is None when there is no such file."""

    reviews: bytes
    insights: bytes | None
    modified: float  # seconds since the epoch: the later modification of the two


def read_files(directory: Path) -> Files:
    """Both data files, each as it was at one moment. Raises BadData."""
    faults = []
    contents: dict[str, tuple[bytes, float] | None] = {}
    for name in (reviews.REVIEWS_FILE, reviews.INSIGHTS_FILE):
        try:
            contents[name] = read_unchanging(directory / name)
        except FileNotFoundError:
            contents[name] = None
            if name == reviews.REVIEWS_FILE:
                faults.append(
                    Fault(name, (), f"there is no such file in {directory}; {flag_name('data')} names it")
                )
        except OSError as error:
            faults.append(Fault(name, (), f"cannot be read: {error.strerror or error}"))
    if faults:
        raise BadData(faults)
    present = [content for content in contents.values() if content is not None]
    review_content, insight_content = contents[reviews.REVIEWS_FILE], contents[reviews.INSIGHTS_FILE]
    return Files(
        reviews=review_content[0] if review_content else b"",
        insights=insight_content[0] if insight_content else None,
        modified=max(modified for _, modified in present),
    )


def read_unchanging(path: Path) -> tuple[bytes, float]:
    """The bytes of `path` and its modification time, read again while somebody writes. Raises OSError."""
    for _ in range(READ_ATTEMPTS):
        with path.open("rb") as file:
            before = os.fstat(file.fileno())
            content = file.read()
            after = os.fstat(file.fileno())
        if stamp(before) == stamp(after) == stamp(path.stat()):
            return content, before.st_mtime
        time.sleep(SETTLE_SECONDS)
    raise OSError(None, "it changes while it is read")


Stamp = tuple[int, int, int]


def stamp(status: os.stat_result) -> Stamp:
    """What differs when a file was written or replaced."""
    return status.st_mtime_ns, status.st_size, status.st_ino


def file_stamps(directory: Path) -> tuple[Stamp | None, ...]:
    """The stamps of both data files; None for one that is not there."""
    stamps: list[Stamp | None] = []
    for name in (reviews.REVIEWS_FILE, reviews.INSIGHTS_FILE):
        try:
            stamps.append(stamp((directory / name).stat()))
        except OSError:
            stamps.append(None)
    return tuple(stamps)


def contract_path() -> Path:
    """openapi.json: beside this module in a checkout, under share/reviewsd where pip installed it."""
    beside = Path(__file__).parent / "data" / "openapi.json"
    return (
        beside
        if beside.exists()
        else Path(sysconfig.get_path("data")) / "share" / "reviewsd" / "openapi.json"
    )


def load_contract() -> tuple[Contract, float]:
    """The contract of this program, and when its file was modified."""
    content, modified = read_unchanging(contract_path())
    return read_contract(reviews.parse("openapi.json", content)), modified


SESSION_KEY_NAME = "mcp-session-key"


def read_session_key(settings: Settings) -> bytes:
    """The key that signs MCP sessions, made on the first start. Raises BadSetting.

    A state directory that cannot be written is no reason not to serve: then sessions end with the process.
    """
    if settings.session_key_file:
        return _read_key(settings.session_key_file)
    path = settings.state_dir / SESSION_KEY_NAME
    try:
        make_file_once(path, new_session_key())
    except OSError as error:
        if not path.exists():
            log.warning("%s: %s; MCP sessions will end with this process", path, error.strerror or error)
            return new_session_key()
    return _read_key(path)


def _read_key(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            key = file.read(SESSION_KEY_BYTES + 1)
    except OSError as error:
        raise BadSetting(f"{flag_name('session_key_file')} {path}: {error.strerror or error}") from None
    if len(key) != SESSION_KEY_BYTES:
        raise BadSetting(
            f"{flag_name('session_key_file')} {path}: expected {SESSION_KEY_BYTES} bytes; make one with"
            f" head -c {SESSION_KEY_BYTES} /dev/urandom > {path}"
        )
    return key


def make_file_once(path: Path, content: bytes) -> None:
    """Make `path`, whole and for our eyes only, unless it exists; one of two makers wins. Raises OSError."""
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


# ---- Representations: a body with its headers, made once ----

JSON_TYPE = "application/json"
HTML_TYPE = "text/html; charset=utf-8"
TEXT_TYPE = "text/plain; charset=utf-8"
ATOM_TYPE = "application/atom+xml"
COMPRESSED_FROM = 1024  # bytes; below, a coding saves nothing that a packet would notice
GZIP_PART_BYTES = 64 * 1024
GZIP_LEVEL = 6  # of what is made once
QUICK_GZIP_LEVEL = 4  # of what somebody waits for: 100 reviews in 0.6 of the time, 1 to 4% larger
CORS = (("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", "ETag, Last-Modified, Link"))

Headers = tuple[tuple[str, str], ...]


class Coding(NamedTuple):
    """One content coding of a representation, ready to be sent."""

    body: bytes
    etag: str  # as the header has it, with quotes
    ok_headers: Headers
    not_modified_headers: Headers


class Representation(NamedTuple):
    """What one URL answers at one time. `gzip` is None where it is not worth it."""

    content_type: str
    digest: str  # hex SHA-256 of the identity body
    last_modified: int  # seconds since the epoch
    identity: Coding
    gzip: Coding | None


# All computed answers of a snapshot carry one date, and writing it takes longer than most searches.
written_date = lru_cache(maxsize=64)(http_date)


def represent(
    body: bytes,
    content_type: str,
    last_modified: int,
    link: str = "",
    gzip_level: int | None = GZIP_LEVEL,
    vary: str = "Accept-Encoding",
    policy: Headers = (),
) -> Representation:
    """The representation of `body`, plain only if `gzip_level` is None.

    Its entity tags depend on nothing but the bytes. The gzip tag is derived from the identity's digest, so
    that a new zlib does not change it.
    """
    digest = hashlib.sha256(body).hexdigest()
    shared: Headers = (
        ("Last-Modified", written_date(last_modified)),
        ("Cache-Control", "public, max-age=60"),
        ("Vary", vary),
        *((("Link", link),) if link else ()),
        *CORS,
    )

    def coding(coded: bytes, etag: str, *extra: tuple[str, str]) -> Coding:
        own = (("Content-Type", content_type), ("Content-Length", str(len(coded))), *policy, *extra)
        return Coding(coded, etag, (*own, ("ETag", etag), *shared), (("ETag", etag), *shared))

    identity = coding(body, f'"{digest}"')
    if gzip_level is None or len(body) < COMPRESSED_FROM:
        return Representation(content_type, digest, last_modified, identity, None)
    coded = coding(gzipped(body, gzip_level), f'"{digest}-gzip"', ("Content-Encoding", "gzip"))
    return Representation(content_type, digest, last_modified, identity, coded)


def gzipped(body: bytes, level: int) -> bytes:
    """`body` in gzip (RFC 1952), without a time.

    Made in parts: a call for the whole of a large body would leave as much room behind as its result takes.
    """
    packer = zlib.compressobj(level, wbits=16 + zlib.MAX_WBITS)  # 16: with the head and the end of gzip
    parts = (body[start : start + GZIP_PART_BYTES] for start in range(0, len(body), GZIP_PART_BYTES))
    return b"".join([*map(packer.compress, parts), packer.flush()])


# ---- Snapshot: everything that is served between two reloads ----

HOME_LINKS = "/ as JSON"  # beside the page; no request can name it

REMEMBERED_BYTES = 16 * 1024 * 1024
# A larger computed answer is neither kept nor compressed: it would stall the rest.
LARGEST_REMEMBERED = 256 * 1024


class Remembered:
    """Computed representations of one snapshot, the oldest forgotten first. Any thread may call it."""

    def __init__(self, most_bytes: int = REMEMBERED_BYTES):
        self._most_bytes = most_bytes
        self._bytes = 0
        # The oldest of a plain dict is found behind the gaps of all that were forgotten before it.
        self._kept: OrderedDict[tuple[str, str, bool], Representation] = OrderedDict()
        self._lock = threading.Lock()  # protects _bytes and the order of _kept; reading needs neither

    def get(self, key: tuple[str, str, bool]) -> Representation | None:
        """What was kept under `key`."""
        return self._kept.get(key)

    def keep(self, key: tuple[str, str, bool], representation: Representation) -> None:
        """Keep `representation` if it is small enough."""
        if len(representation.identity.body) > LARGEST_REMEMBERED:
            return
        with self._lock:
            if key not in self._kept:
                self._kept[key] = representation
                self._bytes += self._cost(key, representation)
            while self._bytes > self._most_bytes:
                self._bytes -= self._cost(*self._kept.popitem(last=False))

    @staticmethod
    def _cost(key: tuple[str, str, bool], representation: Representation) -> int:
        bodies = len(representation.identity.body) + len(
            representation.gzip.body if representation.gzip else b""
        )
        return bodies + len(key[0]) + len(key[1]) + 2048  # the headers and objects around a body, about


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All answers of one state of the data. Immutable but for what it remembers."""

    dataset: Dataset
    fixed: Mapping[str, Representation]  # by path
    last_modified: int  # of everything computed from the dataset
    remembered: Remembered


def build_snapshot(
    contract: Contract,
    contract_modified: float,
    files: Files,
    base_url: str,
    previous: Snapshot | None,
    now: float,
) -> Snapshot:
    """The snapshot of `files`; content that `previous` served keeps its Last-Modified. Raises BadData."""
    dataset = reviews.load(contract, files.reviews, files.insights)
    at = links_below(base_url)
    changed = dataset_last_modified(dataset, files.modified, previous, now)
    bodies = {
        REVIEWS_PATH: (dataset.reviews_json, JSON_TYPE, files.modified),
        INSIGHTS_PATH: (dataset.insights_json, JSON_TYPE, files.modified),
        JSON_FEED_PATH: (reviews.json_feed(dataset, at), JSON_TYPE, files.modified),
        ATOM_FEED_PATH: (
            reviews.atom_feed(dataset, at, datetime.fromtimestamp(changed, UTC)),
            ATOM_TYPE,
            files.modified,
        ),
        CONTRACT_PATH: (
            reviews.encode(served_contract(contract, dataset, base_url)),
            JSON_TYPE,
            contract_modified,
        ),
        HOME_PATH: (page.html_page(dataset, at), HTML_TYPE, changed),
        HOME_LINKS: (reviews.encode(at.directory()), JSON_TYPE, contract_modified),
        LLMS_PATH: (words.llms_text(dataset, at), TEXT_TYPE, changed),
        ROBOTS_PATH: (words.robots_text(at), TEXT_TYPE, contract_modified),
        ICON_PATH: (*page.favicon(), contract_modified),
    }
    fixed = {}
    for path, (body, content_type, modified) in bodies.items():
        before = previous.fixed[path] if previous else None
        same = before is not None and before.identity.body == body
        current_since = last_modified(modified, before.last_modified if before else None, same, now)
        link = topic_link_header(base_url, path) if path in TOPIC_PATHS else ""
        vary = "Accept, Accept-Encoding" if path in (HOME_PATH, HOME_LINKS) else "Accept-Encoding"
        policy = page.PAGE_HEADERS if path == HOME_PATH else ()
        fixed[path] = represent(body, content_type, current_since, link, vary=vary, policy=policy)
    return Snapshot(dataset, fixed, changed, Remembered())


def served_contract(contract: Contract, dataset: Dataset, base_url: str) -> dict[str, Any]:
    """The contract with this service's address and the business to write to."""
    business = dataset.business
    contact = {key: business[key] for key in ("name", "url", "email") if business.get(key)}
    return contract.document | {
        "info": contract.document["info"] | {"contact": contact},
        "servers": [{"url": base_url, "description": "This service"}],
    }


def dataset_last_modified(dataset: Dataset, modified: float, previous: Snapshot | None, now: float) -> int:
    """Last-Modified of what is computed from the dataset as a whole."""
    if previous is None:
        return last_modified(modified, None, False, now)
    before = previous.dataset
    same = before.reviews_json == dataset.reviews_json and before.insights_json == dataset.insights_json
    return last_modified(modified, previous.last_modified, same, now)


def last_modified(modified: float, previous: int | None, same: bool, now: float) -> int:
    """Since when content has been current, in whole seconds since the epoch.

    Not in the future (RFC 9110 section 8.8.2.1), and later than the content before it even if that was put
    back from a copy with an old time: else a client that holds the content between would be told 304.
    """
    if previous is None:
        return int(min(modified, now))
    return previous if same else max(int(min(modified, now)), previous + 1)


# ---- Requests and answers: WSGI on one side, values on the other ----


class Request(NamedTuple):
    """One request: a decoded path (U+FFFD for what is not UTF-8), a query string of one character a byte."""

    method: str
    path: str
    query_string: str
    environ: Environ

    def header(self, name: str) -> str | None:
        """The value of a header by its lower-case name, None when it is absent."""
        value: str | None = self.environ.get(header_key(name))
        return value

    def body(self) -> bytes:
        """The body. Raises HttpError 413 where a server passes on more than ours would."""
        length = int(self.environ.get("CONTENT_LENGTH") or LARGEST_BODY + 1)
        content: bytes = self.environ["wsgi.input"].read(min(length, LARGEST_BODY + 1))
        if len(content) > LARGEST_BODY:
            raise HttpError(413, f"The body is larger than {LARGEST_BODY} bytes.")
        return content


def read_request(environ: Environ) -> Request:
    """The request of a WSGI environment, whose texts are bytes read as latin-1 (PEP 3333)."""
    path = environ.get("PATH_INFO", "")
    if not path.isascii():
        path = path.encode("latin-1").decode("utf-8", "replace")
    return Request(environ["REQUEST_METHOD"], path, environ.get("QUERY_STRING", ""), environ)


class Answer(NamedTuple):
    """What goes back: the bridge and every WSGI server get no more than this."""

    status: int
    headers: Headers
    body: bytes


class HttpError(Exception):
    """A request that cannot be answered as asked; becomes the error object of RFC 9457 member names."""

    def __init__(
        self,
        status: int,
        detail: str,
        headers: Headers = (),
        issues: Sequence[Issue] = (),
        request_id: str = "",
    ):
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers
        self.issues = issues
        self.request_id = request_id


def error_answer(service: Service, request: Request, error: HttpError) -> Answer:
    """The answer to everything that went wrong, but for paths whose protocol has words of its own."""
    document: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(error.status).phrase,
        "status": error.status,
        "detail": error.detail,
    }
    if error.issues:
        document["issues"] = [
            {"parameter": issue.parameter, "value": issue.value, "message": issue.message}
            for issue in error.issues
        ]
    if error.request_id:
        document["request_id"] = error.request_id
    return json_answer(error.status, document, error.headers)


def json_answer(status: int, document: Mapping[str, Any], headers: Headers = ()) -> Answer:
    """An answer that nobody may keep."""
    body = reviews.encode(document)
    own = (("Content-Type", JSON_TYPE), ("Content-Length", str(len(body))), ("Cache-Control", "no-store"))
    return Answer(status, (*own, *CORS, *headers), body)


def text_answer(status: int, text: str, headers: Headers = ()) -> Answer:
    """One line that nobody may keep."""
    body = f"{text}\n".encode()
    own = (("Content-Type", TEXT_TYPE), ("Content-Length", str(len(body))), ("Cache-Control", "no-store"))
    return Answer(status, (*own, *CORS, *headers), body)


def query_pairs(query_string: str) -> list[tuple[str, str]]:
    """The `name=value` pairs of a raw query string; bytes that are not UTF-8 become lone surrogates."""
    pairs = []
    for part in query_string.encode("latin-1").decode("utf-8", "surrogateescape").split("&"):
        if part:
            name, _, value = part.partition("=")
            pairs.append((_unquoted(name), _unquoted(value)))
    return pairs


def _unquoted(text: str) -> str:
    # Most names and values are plain, and looking is cheaper than the library's ways to find out.
    return unquote_plus(text, errors="surrogateescape") if "%" in text or "+" in text else text


# ---- Conditional requests: RFC 9110 sections 12.5.3 and 13 ----


def conditional_answer(representation: Representation, request: Request) -> Answer:
    """200, or 304 when the client holds this content in either coding."""
    coding = representation.identity
    if representation.gzip and accepts_gzip(request.header("accept-encoding") or ""):
        coding = representation.gzip
    if known := known_coding(representation, coding, request):
        return Answer(304, known.not_modified_headers, b"")
    return Answer(200, coding.ok_headers, coding.body)


def known_coding(representation: Representation, chosen: Coding, request: Request) -> Coding | None:
    """The coding that the client holds; If-None-Match wins over If-Modified-Since (section 13.2.2)."""
    if tags := request.header("if-none-match"):
        if tags == chosen.etag:  # what nearly every client sends
            return chosen
        listed = parse_etags(tags)
        candidates = (chosen, representation.identity, representation.gzip)
        held = (coding for coding in candidates if coding and listed.contains_weak(coding.etag.strip('"')))
        return next(held, None)
    if since := request.header("if-modified-since"):
        moment = parse_date(since)
        if moment is not None and representation.last_modified <= moment.timestamp():
            return chosen
    return None


@lru_cache(maxsize=256)
def accepts_gzip(accept_encoding: str) -> bool:
    """Whether gzip is accepted, and liked no less than the plain bytes."""
    accepted = parse_accept_header(accept_encoding)
    gzip_quality = accepted.quality("gzip")
    plain_quality = max((quality for name, quality in accepted if name == "identity"), default=0)
    return gzip_quality > 0 and gzip_quality >= plain_quality


# ---- Routes: one table ----

READ_METHODS = ("GET", "HEAD", "OPTIONS")
EVERY_METHOD = ()  # the handler judges the method itself


@dataclass(frozen=True, slots=True)
class Route:
    """How a path is answered. The handler gets the service, its current snapshot and the request.

    `refuse` words what ends a request elsewhere.
    """

    methods: tuple[str, ...]
    handler: Callable[[Service, Snapshot, Request], Answer]
    refuse: Callable[[Service, Request, HttpError], Answer] = error_answer


def fixed_answer(service: Service, snapshot: Snapshot, request: Request) -> Answer:
    """One of the representations made at load."""
    return conditional_answer(snapshot.fixed[request.path], request)


def home_answer(service: Service, snapshot: Snapshot, request: Request) -> Answer:
    """The page, or the links for a client that prefers JSON."""
    chosen = HOME_LINKS if prefers_json(request.header("accept") or "") else HOME_PATH
    return conditional_answer(snapshot.fixed[chosen], request)


def prefers_json(accept: str) -> bool:
    """Whether a client of `/` wants the links: it names JSON, and nothing that it likes better."""
    quality = {name.partition(";")[0]: q for name, q in reversed(parse_accept_header(accept))}
    json, html = quality.get("application/json", 0), quality.get("text/html", 0)
    return json > html and json >= quality.get("*/*", 0)


def search_answer(service: Service, snapshot: Snapshot, request: Request) -> Answer:
    """The reviews that a query string asks for."""

    def search() -> bytes:
        pairs = query_pairs(request.query_string)
        query = reviews.query_from_pairs(service.contract.search_parameters, pairs)
        return reviews.search(snapshot.dataset, query)

    return computed_answer(snapshot, request, request.query_string, search)


def since_answer(service: Service, snapshot: Snapshot, request: Request) -> Answer:
    """The reviews of a day and later."""
    day = request.path.removeprefix(SINCE_PATH)
    return computed_answer(snapshot, request, "", lambda: reviews.since(snapshot.dataset, day))


def computed_answer(snapshot: Snapshot, request: Request, query: str, compute: Callable[[], bytes]) -> Answer:
    """The remembered representation of path and query, or a new one."""
    compress = accepts_gzip(request.header("accept-encoding") or "")
    key = (request.path, query, compress)
    representation = snapshot.remembered.get(key)
    if representation is None:
        try:
            body = compute()
        except BadQuery as bad:
            count = len(bad.issues)
            detail = "One parameter is wrong." if count == 1 else f"{count} parameters are wrong."
            raise HttpError(400, detail + " See issues.", issues=bad.issues) from None
        gzip_level = QUICK_GZIP_LEVEL if compress and len(body) <= LARGEST_REMEMBERED else None
        representation = represent(body, JSON_TYPE, snapshot.last_modified, gzip_level=gzip_level)
        snapshot.remembered.keep(key, representation)
    return conditional_answer(representation, request)


def health_answer(service: Service, snapshot: Snapshot, request: Request) -> Answer:
    """How the service is, for monitoring; not part of the contract."""
    dataset = snapshot.dataset
    days = dataset.index.days
    fault = service.reload_fault
    health = {
        "status": "stale" if fault else "ok",
        "version": VERSION,
        "uptime_seconds": round(time.monotonic() - service.started_at),
        "reviews": {
            "count": dataset.count,
            "unverified_left_out": dataset.unverified_count,
            "earliest": days[0] if days else None,
            "latest": days[-1] if days else None,
        },
        "insights": {key: dataset.insights[key] for key in ("review_count", "generated_at")},
        "hub": "here" if service.hub else service.hub_absence.text,
        "subscriptions": service.hub.counts() if service.hub else None,
        "last_modified": _utc(snapshot.last_modified),
        "digests": {path: snapshot.fixed[path].digest for path in DATA_PATHS},
        "last_reload_error": {"at": _utc(fault.at), "faults": list(fault.lines)} if fault else None,
    }
    return json_answer(200, health)


def _utc(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def mcp_answer(service: Service, snapshot: Snapshot, request: Request) -> Answer:
    """The MCP endpoint's reply; it judges method, origin and everything else itself."""
    body = request.body() if request.method == "POST" else b""
    return mcp_reply_answer(
        service.mcp.handle(request.method, request.header, body, service.contract, snapshot.dataset)
    )


def mcp_refusal(service: Service, request: Request, error: HttpError) -> Answer:
    """The words of JSON-RPC for what ends a request elsewhere."""
    return mcp_reply_answer(service.mcp.refusal(HTTPStatus(error.status), error.detail, request.header))


def mcp_reply_answer(reply: mcp_rpc.Reply) -> Answer:
    """A reply of the MCP endpoint with what HTTP adds to it."""
    length = () if reply.status == HTTPStatus.NO_CONTENT else (("Content-Length", str(len(reply.body))),)
    return Answer(reply.status, (*reply.headers, *length), reply.body)


def hub_answer(service: Service, snapshot: Snapshot, request: Request) -> Answer:
    """What the hub says to a subscriber."""
    if service.hub:
        said = service.hub.answer(request.header("content-type"), request.body())
    else:
        said = service.hub_absence
    return text_answer(said.status, said.text, said.headers)


def hub_refusal(service: Service, request: Request, error: HttpError) -> Answer:
    """One line of plain text, as the hub itself would say it (WebSub section 5.1.2)."""
    return text_answer(error.status, error.detail, error.headers)


def unknown_path_answer(service: Service, snapshot: Snapshot, request: Request) -> Answer:
    """Raises HttpError 404."""
    raise HttpError(
        404, f"There is nothing at {reviews.echo(request.path)}. {CONTRACT_PATH} lists what there is."
    )


DATA_PATHS = (REVIEWS_PATH, INSIGHTS_PATH, JSON_FEED_PATH, ATOM_FEED_PATH, CONTRACT_PATH)
FIXED_PATHS = (*DATA_PATHS, LLMS_PATH, ROBOTS_PATH, ICON_PATH)
ROUTES: dict[str, Route] = {path: Route(READ_METHODS, fixed_answer) for path in FIXED_PATHS} | {
    HOME_PATH: Route(READ_METHODS, home_answer),
    SEARCH_PATH: Route(READ_METHODS, search_answer),
    SINCE_PATH: Route(READ_METHODS, since_answer),  # and everything below it
    HEALTH_PATH: Route(READ_METHODS, health_answer),
    MCP_PATH: Route(EVERY_METHOD, mcp_answer, mcp_refusal),
    HUB_PATH: Route(("POST", "OPTIONS"), hub_answer, hub_refusal),
    MCP_PATH + "/": Route(EVERY_METHOD, mcp_answer, mcp_refusal),  # as some clients are told it
}
NOWHERE = Route(EVERY_METHOD, unknown_path_answer)


def route_of(path: str) -> Route:
    """The route of a path."""
    return ROUTES.get(path) or (ROUTES[SINCE_PATH] if path.startswith(SINCE_PATH) else NOWHERE)


# ---- Application: WSGI (PEP 3333); any thread ----

StartResponse = Callable[[str, list[tuple[str, str]]], Any]

STATUS_LINES = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


HUB_ELSEWHERE = HubAnswer(404, "the hub does not run on this instance")
HUB_UNAVAILABLE = HubAnswer(503, "requests cannot be stored at present", (("Retry-After", "3600"),))


class Service:
    """The WSGI application. `snapshot` may be replaced at any time by one assignment."""

    def __init__(self, settings: Settings, session_key: bytes):
        """Load everything. Raises BadData."""
        self.settings = settings
        self.mcp = McpEndpoint(
            McpSettings(
                base_url=settings.base_url,
                allowed_origins=settings.allowed_origin,
                require_session=settings.mcp_require_session,
                session_key=session_key,
                version=VERSION,
            )
        )
        self.hub: Hub | None = None
        self.hub_absence = HUB_ELSEWHERE  # what subscribers are told without one
        self.contract, self.contract_modified = load_contract()
        self.snapshot = self.load(None)
        self.reload_fault: ReloadFault | None = None
        self.started_at = time.monotonic()

    def open_hub(self) -> None:
        """Start the hub. When its store cannot be used, reads go on and subscribers are told to come back.

        Raises BadSetting when the certificates cannot be used.
        """
        try:
            self.hub = Hub(hub_settings(self.settings))
        except HubUnavailable as fault:
            if fault.path == self.settings.hub_ca_file:
                raise BadSetting(f"{flag_name('hub_ca_file')} {fault}") from None
            log.error("there is no hub: %s", fault)
            self.hub_absence = HUB_UNAVAILABLE
            return
        self.publish()
        self.hub.start()

    def publish(self) -> None:
        """Tell the hub what the topics say now."""
        if self.hub:
            self.hub.publish({path: self._topic(path) for path in TOPIC_PATHS})

    def _topic(self, path: str) -> Topic:
        topic = self.snapshot.fixed[path]
        return Topic(path, topic.content_type, topic.identity.body, topic.digest)

    def load(self, previous: Snapshot | None) -> Snapshot:
        """A snapshot of the files as they are now. Raises BadData."""
        self.loaded_stamps = file_stamps(self.settings.data)  # before reading: a later change is seen again
        files = read_files(self.settings.data)
        # What files hold never refers back to itself. The collector would walk its millions of values again
        # and again in vain, and every other thread would have to wait for it.
        gc.disable()
        try:
            snapshot = build_snapshot(
                self.contract, self.contract_modified, files, self.settings.base_url, previous, time.time()
            )
        finally:
            gc.enable()
        # It stays until the next reload, and the program as long as the process: the collector need not look
        # at them again, which would stop everything for some 50 ms each time.
        gc.collect()
        gc.freeze()
        return snapshot

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """WSGI, for every server but ours."""
        answer = self.reply(environ)
        start_response(STATUS_LINES[answer.status], list(answer.headers))
        return [answer.body]

    def reply(self, environ: Environ) -> Answer:
        """The answer to the request of a WSGI environment."""
        answer = self.answer(read_request(environ))
        return answer._replace(body=b"") if environ["REQUEST_METHOD"] == "HEAD" else answer

    def answer(self, request: Request) -> Answer:
        """The answer to a request, whatever happens."""
        route = route_of(request.path)
        try:
            check_host(request)
            check_method(route, request)
            if request.method == "OPTIONS" and route.methods:
                return options_answer(route)
            return route.handler(self, self.snapshot, request)
        except HttpError as error:
            return route.refuse(self, request, error)
        except Exception:
            request_id = secrets.token_hex(8)
            log.exception("request %s: %s %r failed", request_id, request.method, request.path)
            detail = f"This is our fault. It was logged as request {request_id}."
            return route.refuse(self, request, HttpError(500, detail, request_id=request_id))

    def refuse(self, environ: Environ, status: int, detail: str) -> Answer:
        """What the server answers where it cannot hand over a request."""
        request = read_request(environ)
        return route_of(request.path).refuse(self, request, HttpError(status, detail))


def check_host(request: Request) -> None:
    """Refuse what RFC 9112 section 3.2 refuses: HTTP/1.1 without a Host, or with two (joined by a comma)."""
    host = request.header("host")
    if host is None and request.environ.get("SERVER_PROTOCOL") == "HTTP/1.1":
        raise HttpError(400, "The request has no Host header.")
    if host is not None and ("," in host or " " in host):
        raise HttpError(400, "The request has more than one Host header, or one that is no host.")


def check_method(route: Route, request: Request) -> None:
    """Raises HttpError 405 for a method that the route does not know."""
    if route.methods and request.method not in route.methods:
        allow = ", ".join(route.methods)
        raise HttpError(405, f"{reviews.echo(request.method)} is not among {allow}.", (("Allow", allow),))


def options_answer(route: Route) -> Answer:
    """What may be sent, for programs (Allow) and for browsers (the Fetch standard's preflight)."""
    methods = ", ".join(route.methods)
    preflight = (
        ("Allow", methods),
        ("Access-Control-Allow-Methods", methods),
        ("Access-Control-Allow-Headers", "If-None-Match, If-Modified-Since, Authorization, Content-Type"),
        ("Access-Control-Max-Age", "86400"),
    )
    return Answer(204, (*CORS, *preflight), b"")


def create_app(settings: Settings | None = None) -> Service:
    """The application for any WSGI server, by default with the settings of the environment.

    Raises BadData and BadSetting.
    """
    if settings is None:
        settings, _ = read_settings({}, os.environ)
    return Service(with_base_url(settings), read_session_key(settings))


def passing_app(settings: Settings) -> Service:
    """The application for a process that answers no stranger: it leaves no trace. Raises BadData."""
    return Service(with_base_url(settings), new_session_key())


def with_base_url(settings: Settings) -> Settings:
    """`settings` with a base URL, by default where the service listens."""
    return settings if settings.base_url else replace(settings, base_url=default_base_url(settings))


def default_base_url(settings: Settings) -> str:
    """Where the service is when nobody said where it is."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}"


# ---- Reload: one thread looks at the files, builds, and swaps by one assignment ----

PATIENCE = 3  # looks at a file that vanished before we believe it: many programs replace by removing first


# How long a reload keeps the interpreter while a request waits for it. Python's 5 ms, which a request may
# meet several times, made all requests four times as slow during a reload as this does.
SWITCH_SECONDS = 0.001

# When the garbage collector looks: after so many new containers, and at older ones after so many looks. The
# answers that are remembered are old and no garbage; by Python's own figures it walked them again and again,
# for 8 ms each time, in which nobody was answered.
COLLECTOR_THRESHOLDS = (10_000, 20, 50)


def return_free_memory() -> None:
    """Give back to the system what a load took only meanwhile, of which the C library keeps some for later.

    Does nothing where the C library is not glibc, which alone can be told so (malloc_trim(3)).
    """
    with suppress(ImportError, OSError, AttributeError, MemoryError):
        import ctypes  # here, since it takes some milliseconds that the first answer need not wait for

        ctypes.CDLL(None).malloc_trim(0)


@dataclass(frozen=True, slots=True)
class ReloadFault:
    """Why the files as they are now are not served; what was served before still is."""

    at: float  # seconds since the epoch
    lines: tuple[str, ...]


class Reloader:
    """Keeps a service at the newest files that can be served. Its methods but `wake` run on one thread."""

    def __init__(self, service: Service):
        self.service = service
        self.asked = threading.Event()
        self._looks_left = PATIENCE

    def wake(self) -> None:
        """Load now, changed or not. Any thread."""
        self.asked.set()

    def run(self) -> None:
        """Look, and look again, until the process ends."""
        return_free_memory()  # that the first load left behind
        pause = self.service.settings.reload_interval
        while True:
            forced = self.asked.wait(pause)
            self.asked.clear()
            try:
                settled = self.look(forced)
            except Exception:
                log.exception("the data files could not be looked at")
                settled = True
            pause = self.service.settings.reload_interval if settled else SETTLE_SECONDS

    def look(self, forced: bool) -> bool:
        """Load when the files changed and rest, or when told to; False while somebody is still writing."""
        loaded, stamps = self.service.loaded_stamps, file_stamps(self.service.settings.data)
        if stamps == loaded and not forced:
            self._looks_left = PATIENCE
            return True
        vanished = any(was and not now for was, now in zip(loaded, stamps, strict=True))
        if vanished and self._looks_left and not forced:
            self._looks_left -= 1
            return True
        time.sleep(SETTLE_SECONDS)
        if stamps != file_stamps(self.service.settings.data):
            return False
        self._looks_left = PATIENCE
        self.reload()
        return_free_memory()
        return True

    def reload(self) -> None:
        """Serve the files as they are, or keep what is served and say why."""
        service = self.service
        notify("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
        try:
            snapshot = service.load(service.snapshot)
        except BadData as bad:
            service.reload_fault = ReloadFault(time.time(), tuple(bad.lines()))
            for line in bad.lines():
                log.error("not reloaded: %s", line)
            notify("READY=1", f"STATUS=Stale: {bad.lines()[0]}")
            return
        changed = [
            path for path, now in snapshot.fixed.items() if now.digest != service.snapshot.fixed[path].digest
        ]
        service.snapshot = snapshot
        service.reload_fault = None
        service.publish()
        for warning in snapshot.dataset.warnings:
            log.warning("%s", warning)
        log.info("reloaded %s; changed: %s", loaded_line(snapshot.dataset), ", ".join(changed) or "nothing")
        notify("READY=1", f"STATUS=Serving {loaded_line(snapshot.dataset)}")


# ---- Commands ----


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    options = vars(command_line().parse_args(arguments))
    try:
        settings, sources = read_settings(options, os.environ)
        start_log(settings.log_level)
        if options["check"]:
            return check(settings, sources)
        if options["get"] is not None:
            return get(settings, options["get"])
        if options["subscriptions"]:
            return subscriptions(settings)
        run(settings)
    except BadData as bad:
        print(*bad.lines(), sep="\n", file=sys.stderr)
        return EXIT_BAD_DATA
    except BadSetting as bad:
        print(bad, file=sys.stderr)
        return EXIT_BAD_DATA
    except (CannotListen, HubUnavailable) as error:
        print(error, file=sys.stderr)
        return EXIT_CANNOT_LISTEN


FLAG_ACTIONS: dict[Flag, dict[str, Any]] = {
    "value": {"metavar": "X"},
    "list": {"metavar": "X", "action": "append"},
    "switch": {"action": "store_const", "const": "on"},
}


def command_line() -> argparse.ArgumentParser:
    """The parser; every setting of `Settings` is a flag, its default and its variable are in the help."""
    parser = argparse.ArgumentParser(
        prog="reviewsd",
        description="Publish a business's verified reviews: datasets, search, feeds.",
        epilog="A flag wins over its environment variable, a variable over the default.",
    )
    for declared in fields(Settings):
        names = " or ".join(filter(None, (variable_name(declared.name), declared.metadata["also"])))
        default = f"default {written(declared.default)}, " if declared.default else ""
        parser.add_argument(
            flag_name(declared.name),
            dest=declared.name,
            help=f"{declared.metadata['description']} ({default}{names})",
            **FLAG_ACTIONS[declared.metadata["flag"]],
        )
    parser.add_argument(
        "--check", action="store_true", help="validate data and settings, print a summary and exit"
    )
    parser.add_argument(
        "--get", metavar="PATH", help="print the answer to one request, without a server, and exit"
    )
    parser.add_argument(
        "--subscriptions", action="store_true", help="list the hub's subscriptions and requests, and exit"
    )
    parser.add_argument("--version", action="version", version=f"reviewsd {VERSION}")
    return parser


def start_log(level: str) -> None:
    """Log to standard error; the journal has timestamps of its own."""
    under_journal = "JOURNAL_STREAM" in os.environ
    layout = "%(levelname)s %(message)s" if under_journal else "%(asctime)s %(levelname)s %(message)s"
    logging.basicConfig(level=level.upper(), format=layout, stream=sys.stderr, force=True)


def run(settings: Settings) -> NoReturn:
    """Load, listen, serve until told to stop, and leave. Raises BadData and CannotListen before that."""
    # Until `serve` hears it; else it would end a daemon that loads.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    listener = listen(settings.host, settings.port, settings.uds)
    if not settings.uds:
        settings = replace(settings, port=listener.getsockname()[1])
    app = create_app(settings)
    for warning in app.snapshot.dataset.warnings:
        log.warning("%s", warning)
    log.info("%s", loaded_line(app.snapshot.dataset))
    place = settings.uds or default_base_url(settings)
    if not settings.no_hub:
        app.open_hub()
    reloader = Reloader(app)
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    threading.Thread(target=reloader.run, name="reload", daemon=True).start()

    def ready() -> None:
        log.info("reviewsd %s listens on %s as %s", VERSION, place, app.settings.base_url)
        notify("READY=1", f"STATUS=Serving {loaded_line(app.snapshot.dataset)}")

    seconds_left = asyncio.run(
        serve(app.reply, listener, app.refuse, frozenset({HUB_PATH}), ready, reloader.wake)
    )
    if app.hub:
        app.hub.stop(seconds_left)
    log.info("stopped")
    leave(EXIT_STOPPED)


def loaded_line(dataset: Dataset) -> str:
    """What was loaded, in one line for the log."""
    left_out = f", {dataset.unverified_count} unverified left out" if dataset.unverified_count else ""
    return f"{dataset.count} reviews of {dataset.business['name']}{left_out}"


def check(settings: Settings, sources: Mapping[str, str]) -> int:
    """Print what would be served and with which settings. Raises BadData."""
    print(*summary(passing_app(settings).snapshot.dataset), sep="\n")
    print("\nSettings:")
    for name, source in sources.items():
        print(f"  {flag_name(name)} {written(getattr(settings, name))} ({source})")
    return EXIT_STOPPED


def summary(dataset: Dataset) -> Iterator[str]:
    """What is served, in a few lines for the operator."""
    yield loaded_line(dataset)
    days, rating, insights = dataset.index.days, dataset.aggregate_rating, dataset.insights
    if days:
        yield f"  from {days[0]} to {days[-1]}"
    stars = ", ".join(
        f"{count} x {star}" for star, count in sorted(rating["distribution"].items(), reverse=True)
    )
    yield f"  {rating['rating_value']} stars of 5 over {rating['review_count']} reviews: {stars}"
    covered = ", ".join(f"{len(insights[key])} {key}" for key in ("aspects", "topics", "faq"))
    named = ", ".join(
        f"{len(entries)} {kind.replace('_', ' ')}" for kind, entries in insights["entities"].items()
    )
    yield f"Insights of {insights['generated_at'] or 'no date'} from {insights['review_count']} reviews"
    yield f"  {covered}, {named}"
    for warning in dataset.warnings:
        yield f"warning: {warning}"


def subscriptions(settings: Settings) -> int:
    """Print what the hub keeps, one line each; callbacks by their host, since their paths may be secrets.

    Raises HubUnavailable.
    """
    lines = [subscription_line(listing) for listing in list_subscriptions(settings.state_dir)]
    print(*lines or ["no subscriptions"], sep="\n")
    return EXIT_STOPPED


def subscription_line(listing: Listing) -> str:
    """State, callback's host, topic, times and the last outcome of one subscription or request."""
    parts = [f"{listing.state:11} {listing.host} {listing.path} since {_utc(listing.since)}"]
    if listing.expires_at is not None:
        parts.append(f"until {_utc(listing.expires_at)}")
    if listing.failures:
        parts.append(f"{listing.failures} failed")
    if listing.last_attempt_at is not None:
        parts.append(f"last {listing.last_outcome} at {_utc(listing.last_attempt_at)}")
    return ", ".join(parts)


def get(settings: Settings, path: str) -> int:
    """Print the body of one answer; 1 when it is an error. Raises BadData."""
    from werkzeug.test import Client

    response = Client(passing_app(settings)).get(path)
    sys.stdout.buffer.write(response.get_data())
    sys.stdout.buffer.flush()
    return EXIT_STOPPED if response.status_code < 400 else 1


if __name__ == "__main__":
    sys.exit(main())
