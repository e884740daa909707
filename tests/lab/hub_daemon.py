"""The daemon with a hub that may call real callbacks, and an operator.

Sections: the daemon - subscriptions - the operator.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from lab.callback_lab import Lab
from lab.hub_values import FEED, FORM
from lab.services import Response, Service, daemon_command, fetch, started
from reviewslib import links
from reviewslib.websub.store import list_rows

# ---- The daemon ----


def flags_of(lab: Lab, data: Path, state: Path, port: int) -> list[str]:
    """Those of a daemon that may call the lab alone, and polls its files often."""
    trust = ["--hub-allow-private", f"--hub-ca-file={lab.ca_file}"]
    files = ["--reload-interval=0.05", f"--data={data}", f"--state-dir={state}"]
    return [*trust, *files, f"--port={port}"]


@contextmanager
def running(lab: Lab, data: Path, state: Path, port: int = 0) -> Iterator[Service]:
    command = daemon_command(*flags_of(lab, data, state, port))
    with started(command, port) as service:
        yield service


def killed(lab: Lab, data: Path, state: Path, port: int = 0) -> Service:
    """A daemon that leaving its context ends with SIGKILL."""
    return Service(daemon_command(*flags_of(lab, data, state, port)), port)


def health(service: Service) -> dict[str, Any]:
    return dict(json.loads(fetch(service, links.HEALTH_PATH).body))


# ---- Subscriptions ----


def ask(service: Service, callback: str, path: str = FEED, **more: str) -> Response:
    """Send a request to the hub; `secret` and other fields get the prefix `hub.`."""
    fields = {
        "mode": "subscribe",
        "callback": callback,
        "topic": service.base_url + path,
    }
    prefixed = {f"hub.{name}": value for name, value in (fields | more).items()}
    body = urlencode(prefixed).encode()
    return fetch(service, links.HUB_PATH, "POST", body, content_type=FORM)


def subscribe(
    lab: Lab, service: Service, state: Path, path: str = FEED, **more: str
) -> None:
    """Subscribe the callback /cb, and wait until it is stored."""
    before = active(state)
    assert ask(service, lab.url("/cb", "localhost"), path, **more).status == 202
    lab.wait(lambda: active(state) == before + 1)


def active(state: Path) -> int:
    """The subscriptions in the store, which the daemon counts once a second."""
    return [row.mode for row in list_rows(state)].count("active")


# ---- The operator ----


def add_review(data: Path, id: str, text: str = "") -> None:
    """Replace reviews.json: write a new file, rename it over the old one."""
    document = json.loads((data / "reviews.json").read_text(encoding="utf-8"))
    added = {"id": id, "author": "Ann", "rating": 5, "date": "2026-11-20"}
    if text:
        added["text"] = text
    others = [review for review in document["reviews"] if review["id"] != id]
    document["reviews"] = [*others, added]
    draft = data / "new"
    draft.write_text(json.dumps(document), encoding="utf-8")
    draft.rename(data / "reviews.json")
