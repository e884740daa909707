"""Deliveries: how long until the last subscriber has a change, and how long GETs take meanwhile.

Subscribers are many callbacks of one process, under as many addresses of this machine as a real crowd would
have hosts, since the hub gives a single host few of its workers.

Sections: Subscribers - Deliveries
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import urlencode

from environment import BENCH
from load import SAMPLE_SECONDS, BenchError, Client, Request, sample
from peers import SMALL_SEARCH, Server, end, free_port, our_service
from plan import Plan, data_directory
from reloads import OTHERWISE_NEVER, ChangingData
from subscribers import VERIFIED

# ---- Subscribers ----

HUB_PATH, TOPIC = "/api/websub/hub", "/feed.xml"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
HOSTS = tuple(f"127.0.0.{number}" for number in range(1, 51))
CROWD = 400  # subscriptions that wait for their verification at most: the hub bounds them, also by host
OPENSSL_CONFIGURATION = """\
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[subscriber]
basicConstraints = CA:FALSE
subjectAltName = {names}
authorityKeyIdentifier = keyid
"""


@dataclass(frozen=True, slots=True)
class Certificates:
    """The files of a throw-away authority and of what it certifies: all HOSTS."""

    authority: Path
    certificate: Path
    key: Path


def make_certificates(openssl: str, directory: Path) -> Certificates:
    """Make both with the openssl program. Raises BenchError."""
    directory.mkdir()
    configuration = directory / "openssl.cnf"
    configuration.write_text(OPENSSL_CONFIGURATION.format(names=", ".join(f"IP:{host}" for host in HOSTS)))
    new = [openssl, "req", "-x509", "-config", str(configuration), "-days", "2", "-nodes"]
    new += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    signed = ["-CA", "authority.pem", "-CAkey", "authority.key"]
    for name, options in (("authority", []), ("subscriber", signed)):
        command = [*new, "-subj", f"/CN=bench {name}", "-extensions", name, *options]
        command += ["-keyout", f"{name}.key", "-out", f"{name}.pem"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=directory)
        if done.returncode != 0:
            raise BenchError(f"{' '.join(command)}: {done.stderr.strip()[-1000:]}")
    return Certificates(*(directory / name for name in ("authority.pem", "subscriber.pem", "subscriber.key")))


class Crowd:
    """The process of the subscribers."""

    def __init__(self, commands: IO[str], news: IO[str], port: int):
        self._commands = commands
        self._news = news
        self._port = port

    def callback(self, number: int) -> str:
        """The address of a subscriber."""
        return f"https://{HOSTS[number % len(HOSTS)]}:{self._port}/{number}"

    def expect(self, name: str, count: int) -> None:
        """Ask to be told when `count` of them have seen what the name stands for."""
        print(name, count, file=self._commands, flush=True)

    def has_told(self, seconds: float = 0) -> bool:
        """Whether there is an answer."""
        return bool(select.select([self._news], [], [], seconds)[0])

    def moment(self) -> float:
        """The answer. Raises BenchError when there is none in time."""
        if not (self.has_told(SAMPLE_SECONDS) and (line := self._news.readline())):
            raise BenchError("the subscribers did not all get what they were to get")
        return float(line)


@contextmanager
def crowd(certificates: Certificates) -> Iterator[Crowd]:
    """The subscribers, listening."""
    port = free_port()
    program = [sys.executable, str(BENCH / "subscribers.py")]
    files = [str(certificates.certificate), str(certificates.key)]
    process = subprocess.Popen(
        [*program, *files, str(port), *HOSTS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        if process.stdin is None or process.stdout is None or process.stdout.readline() != "ready\n":
            raise BenchError("the subscribers do not start")
        yield Crowd(process.stdin, process.stdout, port)
    finally:
        end(process)


# ---- Deliveries ----

REVIEWS = 500
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Delivery:
    """Changes brought to all subscribers: one figure of each list a change."""

    subscribers: int
    seconds: list[float] = field(default_factory=list)  # from SIGHUP to the last subscriber having the change
    latencies: list[list[float]] = field(default_factory=list)  # seconds of each GET meanwhile


def measure_deliveries(plan: Plan) -> Iterator[Delivery]:
    """Change one review with more and more subscribers to the feed."""
    certificates = make_certificates(plan.environment.openssl, plan.scratch / "certificates")
    data = ChangingData(data_directory(plan, REVIEWS), plan.scratch / "published")
    flags = ["--hub-allow-private", "--hub-ca-file", str(certificates.authority), *OTHERWISE_NEVER]
    with (
        crowd(certificates) as callbacks,
        our_service(plan.environment, data.directory, plan.scratch, *flags) as server,
    ):
        subscribed = 0
        for count in plan.subscribers:
            plan.say(f"{count} subscribers, deliveries")
            _subscribe(server, callbacks, subscribed, count)
            subscribed = count
            result = Delivery(count)
            for _ in range(min(plan.rounds, ROUNDS)):
                _deliver_once(data, server, callbacks, result)
            yield result


def _subscribe(server: Server, callbacks: Crowd, first: int, end: int) -> None:
    """Subscribe numbers from `first` to below `end`, not too many at once."""
    with Client(server.port) as client:
        for number in range(first, end):
            fields = {
                "mode": "subscribe",
                "callback": callbacks.callback(number),
                "topic": server.url + TOPIC,
            }
            form = urlencode({f"hub.{name}": value for name, value in fields.items()})
            reply = client.send(Request(HUB_PATH, FORM, form))
            if reply.status != 202:
                raise BenchError(f"the hub answers {reply.status}: {reply.body.decode(errors='replace')}")
            if (number - first + 1) % CROWD == 0 or number == end - 1:
                callbacks.expect(VERIFIED, number + 1)
                callbacks.moment()


def _deliver_once(data: ChangingData, server: Server, callbacks: Crowd, result: Delivery) -> None:
    draft = data.prepare()
    with Client(server.port) as client:
        before = client.send(SMALL_SEARCH).body
        started = data.change(draft, server)
        latencies = sample(client, SMALL_SEARCH, lambda reply: reply.body != before)
        callbacks.expect(json.loads(client.get("/healthz").body)["digests"][TOPIC], result.subscribers)
        latencies += sample(client, SMALL_SEARCH, lambda _: callbacks.has_told())
    result.seconds.append(callbacks.moment() - started)
    result.latencies.append(latencies)
