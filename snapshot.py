"""A snapshot: everything that is served between two reloads, made at once of the data files.

Fixed representations are rendered, hashed, packed and dated here; the rest is kept ready to be asked. This
module reads files; it knows no request and no socket, and the time arrives as an argument.

Sections: Files - Program - Snapshot
"""

from __future__ import annotations

import os
import sysconfig
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment

import links
import page
from contract import BadData, Contract, Fault, read_contract
from feeds import atom_feed, json_feed
from links import Links, topic_link_header
from mcp_tools import Toolbox, toolbox_of
from representations import ATOM_TYPE, HTML_TYPE, ICON_TYPE, JSON_TYPE, TEXT_TYPE, Representation, represent
from reviews import INSIGHTS_FILE, REVIEWS_FILE, Dataset, load
from strict_json import decode, encode

# ---- Files: bytes from the disk, each with the time since when it holds ----

DATA_FILES = (REVIEWS_FILE, INSIGHTS_FILE)
READ_ATTEMPTS = 5
SETTLE_SECONDS = 0.05  # between two attempts at a file that somebody is writing

Files = Mapping[str, tuple[bytes, float]]  # by name: content, modification in seconds since the epoch


def read_files(directory: Path) -> Files:
    """The data files that are there, each as it was at one moment. Raises BadData."""
    faults, files = [], {}
    for name in DATA_FILES:
        try:
            files[name] = read_unchanging(directory / name)
        except FileNotFoundError:
            if name == REVIEWS_FILE:
                faults.append(Fault(name, (), f"there is no such file in {directory}; --data names it"))
        except OSError as error:
            faults.append(Fault(name, (), f"cannot be read: {error.strerror or error}"))
    if faults:
        raise BadData(faults)
    return files


def read_unchanging(path: Path) -> tuple[bytes, float]:
    """The bytes of `path` and its modification time, read again while somebody writes. Raises OSError."""
    for _ in range(READ_ATTEMPTS):
        with path.open("rb") as file:
            opened = os.fstat(file.fileno())
            content = file.read()
            read = os.fstat(file.fileno())
        if stamp(opened) == stamp(read) == stamp(path.stat()):
            return content, opened.st_mtime
        time.sleep(SETTLE_SECONDS)
    raise OSError(None, "it changes while it is read")


def stamp(status: os.stat_result) -> tuple[int, int, int]:
    """What differs when a file was written or replaced."""
    return status.st_mtime_ns, status.st_size, status.st_ino


def file_stamps(directory: Path) -> dict[str, tuple[int, int, int]]:
    """The stamps of the data files that are there, by name."""
    stamps = {}
    for name in DATA_FILES:
        with suppress(OSError):
            stamps[name] = stamp((directory / name).stat())
    return stamps


# ---- Program: what comes with it and shapes its answers ----


def shipped(name: str) -> Path:
    """A file of the program: beside this module in a checkout, in share/reviewsd where pip put it."""
    beside = Path(__file__).parent / name
    return beside if beside.exists() else Path(sysconfig.get_path("data")) / "share" / "reviewsd" / name


class Program(NamedTuple):
    """What comes with the program; both times are modifications, in seconds since the epoch."""

    contract: Contract
    contract_modified: float
    templates: Environment
    templates_modified: float


def load_program() -> Program:
    """The contract and the templates of this program."""
    content, modified = read_unchanging(shipped("data/openapi.json"))
    directory = shipped("templates")
    templates_modified = max(path.stat().st_mtime for path in directory.iterdir())
    contract, templates = read_contract(decode(content)), page.load_templates(directory)
    return Program(contract, modified, templates, templates_modified)


# ---- Snapshot: representations made at load, and those that requests have made since ----

DIRECTORY = ""  # stands for a path: what `/` answers programs
ComputedKey = tuple[str, str, bool]  # path, query string, with gzip or without
Bodies = dict[str, tuple[bytes, str, float]]  # by path: content, media type, modification of its sources


class Computed:
    """Representations that requests have made; all are forgotten when they take too much room. Any thread."""

    def __init__(self, most_bytes: int = 8 * 1024 * 1024):
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: dict[ComputedKey, Representation] = {}
        self._lock = threading.Lock()  # for writers

    def get(self, key: ComputedKey) -> Representation | None:
        """The representation kept under `key`."""
        return self._kept.get(key)

    def keep(self, key: ComputedKey, representation: Representation) -> None:
        """Keep `representation`, unless it alone is too large."""
        gzip_bytes = len(representation.gzip.body) if representation.gzip else 0
        cost_bytes = len(representation.identity.body) + gzip_bytes + len(key[1]) + 2048  # headers, objects
        with self._lock:
            if self._bytes + cost_bytes > self._most_bytes:
                self._kept, self._bytes = {}, 0
            if cost_bytes <= self._most_bytes:
                self._kept[key] = representation
                self._bytes += cost_bytes


class Snapshot(NamedTuple):
    """All answers of one state of the data. Immutable but for `computed`."""

    dataset: Dataset
    toolbox: Toolbox
    fixed: Mapping[str, Representation]  # by path
    directory: Representation  # what `/` answers programs
    last_modified: int  # of what is computed from the dataset as a whole
    computed: Computed


def build_snapshot(
    program: Program, files: Files, urls: Links, previous: Snapshot | None, now: float
) -> Snapshot:
    """The snapshot of `files`; content that `previous` served keeps its Last-Modified. Raises BadData."""
    insights, _ = files.get(INSIGHTS_FILE, (None, None))
    dataset = load(program.contract, files[REVIEWS_FILE][0], insights)
    data_modified = max(modified for _, modified in files.values())
    content = (dataset.reviews_json, dataset.insights_json)
    same = previous is not None and content == (previous.dataset.reviews_json, previous.dataset.insights_json)
    changed = last_modified(data_modified, now, same, previous)
    bodies = fixed_bodies(program, dataset, urls, data_modified, changed)
    earlier = {**previous.fixed, DIRECTORY: previous.directory} if previous else {}
    fixed = {}
    for path, (body, content_type, modified) in bodies.items():
        before = earlier.get(path)
        same = before is not None and body == before.identity.body
        date = last_modified(modified, now, same, before)
        link = topic_link_header(urls.base_url, path, bool(urls.hub)) if path in links.TOPIC_PATHS else ""
        vary = "Accept, Accept-Encoding" if path in (links.HOME_PATH, DIRECTORY) else "Accept-Encoding"
        policy = page.page_headers(program.templates) if path == links.HOME_PATH else ()
        fixed[path] = represent(body, content_type, date, link=link, vary=vary, policy=policy)
    directory, toolbox = fixed.pop(DIRECTORY), toolbox_of(program.contract, dataset)
    return Snapshot(dataset, toolbox, fixed, directory, changed, Computed())


def fixed_bodies(program: Program, dataset: Dataset, urls: Links, modified: float, changed: int) -> Bodies:
    """What each fixed path answers. `modified` is the time of the data files, `changed` the dataset's own."""
    templates = program.templates
    atom = atom_feed(dataset, urls, datetime.fromtimestamp(changed, UTC))
    contract = encode(served_contract(program.contract, dataset, urls))
    shown = max(changed, program.templates_modified)
    return {
        links.REVIEWS_PATH: (dataset.reviews_json, JSON_TYPE, modified),
        links.INSIGHTS_PATH: (dataset.insights_json, JSON_TYPE, modified),
        links.JSON_FEED_PATH: (json_feed(dataset, urls), JSON_TYPE, modified),
        links.ATOM_FEED_PATH: (atom, ATOM_TYPE, modified),
        links.CONTRACT_PATH: (contract, JSON_TYPE, program.contract_modified),
        links.HOME_PATH: (page.html_page(templates, dataset, urls), HTML_TYPE, shown),
        DIRECTORY: (encode(urls.directory()), JSON_TYPE, program.contract_modified),
        links.LLMS_PATH: (page.llms_text(templates, dataset, urls), TEXT_TYPE, shown),
        links.ROBOTS_PATH: (page.robots_text(urls), TEXT_TYPE, program.contract_modified),
        links.ICON_PATH: (page.favicon(templates), ICON_TYPE, program.templates_modified),
    }


def served_contract(contract: Contract, dataset: Dataset, urls: Links) -> dict[str, Any]:
    """The contract with this service's address and the business to write to."""
    business = dataset.business
    contact = {key: business[key] for key in ("name", "url", "email") if business.get(key)}
    return contract.document | {
        "info": contract.document["info"] | {"contact": contact},
        "servers": [{"url": urls.base_url, "description": "This service"}],
    }


def last_modified(modified: float, now: float, same: bool, before: Snapshot | Representation | None) -> int:
    """Since when content has been current, in whole seconds since the epoch; `same` as `before` or not.

    Not in the future (RFC 9110 section 8.8.2.1), and later than the content before it even if that was put
    back from a copy with an old time: else a client that holds the content between would be told 304.
    """
    date = int(min(modified, now))
    if before is None:
        return date
    return before.last_modified if same else max(date, before.last_modified + 1)
