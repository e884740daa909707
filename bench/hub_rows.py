"""Rows about the hub: how soon subscribers hear of a change, and who is asked how soon.

Sections: deliveries - strangers.
"""

import http.client
import json
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from contenders import SAMPLE_SIZE, Lab
from lab.services import Service, fetch
from lab.subscribers import HOSTS, Subscribers
from lab.watching import processor_seconds, wait_for
from measures import Figure, change, p99, probe

TOPIC = "/feed.xml"

# ---- Deliveries ----


def hub(lab: Lab) -> Iterator[Figure]:
    """A change to 500, and to 5,000 subscribers at 50 addresses, over TLS."""
    data = lab.data(500)
    seconds = {}
    for count, budget_s in ((500, 15), (5000, math.inf)):
        subscribers = Subscribers(lab.scratch)
        steady = [("steady", number, TOPIC) for number in range(count)]
        with lab.daemon(data, *subscribers.flags) as ours:
            subscribers.subscribe(ours, steady)
            with probe(ours) as latencies:
                before = processor_seconds(ours.pid)
                seconds[count] = delivery_seconds(ours, data, subscribers, count)
                used_seconds = processor_seconds(ours.pid) - before
        what = f"change to {count:,} subscribers"
        yield Figure(what, seconds[count], "s", budget_s)
        yield Figure(f"GET p99 during a {what}", p99(latencies), "ms", 50)
        each_ms = used_seconds / count * 1000
        yield Figure(f"processor time of a delivery with TLS, {what}", each_ms, "ms")
    ratio = seconds[5000] / seconds[500]
    yield Figure("change to 5,000 subscribers, to one to 500", ratio, "×", 14)


def delivery_seconds(
    server: Service, data: Path, subscribers: Subscribers, count: int
) -> float:
    """The seconds from a change until this many steady callbacks have it."""
    began = time.monotonic()
    change(server, data)
    content = fetch(server, TOPIC).body
    for number in range(count):
        path = f"/steady/{number}"
        wait_for("delivery", lambda path=path: subscribers.newest[path] == content)
    return time.monotonic() - began


def hub_hanging(lab: Lab) -> Iterator[Figure]:
    """A change to 450 of 500 subscribers, while the other 50 begin to hang."""
    data = lab.data(500)
    subscribers = Subscribers(lab.scratch)
    everybody = [("steady", number, TOPIC) for number in range(450)]
    # They are as old as the others, and come between them.
    for number in range(50):
        everybody.insert(number * 10, ("turning", number, TOPIC))
    with lab.daemon(data, *subscribers.flags) as ours:
        subscribers.subscribe(ours, everybody)
        alone = delivery_seconds(ours, data, subscribers, 450)
        wait_for("rest", lambda: _subscriptions(ours)["behind"] == 0)
        beside = delivery_seconds(ours, data, subscribers, 450)
    what = "change to 450 subscribers beside 50"
    yield Figure(f"{what} that take it", alone, "s")
    yield Figure(f"{what} that begin to hang", beside, "s")
    yield Figure(f"{what} that begin to hang, to without", beside / alone, "×", 2)


def _subscriptions(server: Service) -> dict[str, int]:
    return dict(json.loads(fetch(server, "/healthz").body)["subscriptions"])


# ---- Strangers ----

# How soon who asks beside strangers must be asked.
SOON_SECONDS = 10.0
FORMS_A_SECOND = 10
# Before anybody else asks: the stranger has then repeated each request 20 times, and
# more callbacks hang than there are workers.
WARM_UP_SECONDS = 10.0
# Subscribers, who renew, and callbacks that the hub has never seen.
RENEWALS = range(5)
NEWCOMERS = range(100, 115)
ASKING_PAUSE_SECONDS = 0.5
# Told apart from the leases of before.
NEW_LEASE = "7200"


def hub_strangers(lab: Lab) -> Iterator[Figure]:
    """Who is asked soon while a stranger sends ten forms a second to the daemon."""
    data = lab.data(SAMPLE_SIZE)
    for name, stranger in STRANGERS.items():
        yield from _beside_stranger(lab, data, name, stranger)


def _beside_stranger(
    lab: Lab, data: Path, name: str, stranger: Callable[..., dict[str, Any]]
) -> Iterator[Figure]:
    subscribers = Subscribers(lab.scratch)
    steady = [("steady", number, TOPIC) for number in RENEWALS]
    asked_at = {}
    longest_form = 0.0
    with black_hole() as port, lab.daemon(data, *subscribers.flags) as ours:
        subscribers.subscribe(ours, steady)
        with _forms(ours, partial(stranger, subscribers, ours, port)):
            time.sleep(WARM_UP_SECONDS)
            for number in (*RENEWALS, *NEWCOMERS):
                asked_at[number] = time.monotonic()
                seconds = _ask_with_new_lease(subscribers, ours, number)
                longest_form = max(longest_form, seconds)
                time.sleep(ASKING_PAUSE_SECONDS)
            ends_at = time.monotonic() + SOON_SECONDS
            while time.monotonic() < ends_at and not _all_asked(subscribers):
                time.sleep(ASKING_PAUSE_SECONDS)
    what = f"longest answer to a form beside {name}"
    yield Figure(what, longest_form, "s", 1)
    for kind, numbers in (("renewals", RENEWALS), ("newcomers", NEWCOMERS)):
        waits = [_wait(subscribers, one, asked_at[one]) for one in numbers]
        soon = [wait for wait in waits if wait < SOON_SECONDS]
        those = f"{kind} asked within {SOON_SECONDS:.0f} s beside {name}"
        what = f"of {len(numbers)} {those}"
        yield Figure(what, len(soon), "", at_least=len(numbers))
        yield Figure(f"slowest {those}", max(soon, default=math.inf), "s")


def _all_asked(subscribers: Subscribers) -> bool:
    keys = [(f"/steady/{number}", NEW_LEASE) for number in (*RENEWALS, *NEWCOMERS)]
    return all(key in subscribers.verified_at for key in keys)


def _wait(subscribers: Subscribers, number: int, asked_at: float) -> float:
    """The seconds until the hub asked a callback back; infinite if it did not."""
    key = (f"/steady/{number}", NEW_LEASE)
    return subscribers.verified_at.get(key, math.inf) - asked_at


def _ask_with_new_lease(
    subscribers: Subscribers, server: Service, number: int
) -> float:
    """Send the form of a steady callback. Returns the seconds until it is answered."""
    request = subscribers.request(
        "subscribe", server.port, "steady", number, TOPIC, lease_seconds=NEW_LEASE
    )
    return fetch(server, **request).seconds


@contextmanager
def _forms(server: Service, form: Callable[[int], dict[str, Any]]) -> Iterator[None]:
    """A stranger sends forms while the block runs."""
    ended = threading.Event()

    def send() -> None:
        number = 0
        while not ended.wait(1 / FORMS_A_SECOND):
            with suppress(OSError, http.client.HTTPException):
                fetch(server, **form(number))
            number += 1

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _form_that_hangs(
    hosts: Callable[[int], str],
    subscribers: Subscribers,
    server: Service,
    port: int,
    number: int,
) -> dict[str, Any]:
    """A form whose callback hangs."""
    callback = f"https://{hosts(number)}:{port}/{number}"
    return subscribers.request_of(callback, "subscribe", server.port, TOPIC)


def _new_address(number: int) -> str:
    """Each has a name and an address of its own: 127.100.0.1 and following ones."""
    return f"127.100.{number // 250}.{number % 250 + 1}"


def _address_of_another(number: int) -> str:
    return f"127.0.0.{number % HOSTS + 1}"


def _repeated_form(
    subscribers: Subscribers, server: Service, port: int, number: int
) -> dict[str, Any]:
    """A form with the callback of a subscriber, and a secret of the stranger's."""
    return subscribers.request(
        "subscribe",
        server.port,
        "steady",
        number % len(RENEWALS),
        TOPIC,
        secret=f"a stranger's {number}",
    )


STRANGERS: dict[str, Callable[..., dict[str, Any]]] = {
    "ever new callbacks that hang": partial(_form_that_hangs, _new_address),
    "callbacks that hang at the addresses of the others": partial(
        _form_that_hangs, _address_of_another
    ),
    "repetitions of the requests of subscribers": _repeated_form,
}


@contextmanager
def black_hole() -> Iterator[int]:
    """A port at every address of this machine that accepts connections, no more."""
    with socket.create_server(("", 0), backlog=1024) as server:
        yield server.getsockname()[1]
