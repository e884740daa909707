"""The one SQLite file that keeps the hub's subscriptions and requests.

This module must not know why a row is written or what follows from it (`hub.py` decides that), the content of
a topic, or HTTP. The published topics arrive as digests: `{path: hex SHA-256 of the current content}`.

All moments (`now`, `..._at`) are seconds since the epoch, all durations seconds.

Sections, in order: Statements - Store - For the operator
"""

from __future__ import annotations

import fcntl
import heapq
import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, astuple
from pathlib import Path
from typing import NamedTuple, TypeAlias

from reviewslib.websub.values import (
    PendingRequest,
    Row,
    Subscriber,
    Subscription,
    SubscriptionState,
    Usage,
    denial,
    domain_of,
)

STORE_FILE_NAME = "websub.sqlite3"
STORE_BUSY_SECONDS = 0.25  # how long a transaction waits for a lock before it gives up
OPERATOR_SECONDS = 10.0  # the same, of a command

log = logging.getLogger(__name__)


class HubUnavailable(Exception):
    """The store at `path` cannot be opened."""

    def __init__(self, path: Path, reason: str):
        super().__init__(f"{path}: {reason}")
        self.path = path


class StoreFault(Exception):
    """The store cannot be read or written at the moment: full, locked, read-only, closed, gone."""


# ---- Statements --------------------------------------------------------------------------------------------

SCHEMA_VERSION = 2
TABLES: dict[type[Row], str] = {Subscription: "subscription", PendingRequest: "pending"}
MAX_NOTICES = 1000  # that wait; when more subscriptions are removed at once, the others are not told

# AUTOINCREMENT: the late result of a deleted row must not apply to a newer row with the same id.
SCHEMA = f"""
CREATE TABLE subscription (
  id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, callback_key TEXT NOT NULL,
  callback TEXT NOT NULL, host TEXT NOT NULL, domain TEXT NOT NULL, network TEXT NOT NULL,
  topic_url TEXT NOT NULL, secret BLOB, created_at REAL NOT NULL, expires_at REAL NOT NULL,
  delivered_digest TEXT NOT NULL, failures INTEGER NOT NULL, next_attempt_at REAL NOT NULL,
  last_attempt_at REAL, last_outcome TEXT NOT NULL, UNIQUE (path, callback_key)
);
CREATE INDEX subscription_by_content ON subscription (path, delivered_digest, next_attempt_at, id, network);
CREATE INDEX subscription_by_host ON subscription (host, expires_at);
CREATE INDEX subscription_by_domain ON subscription (domain, expires_at);
CREATE INDEX subscription_by_network ON subscription (network, expires_at);
CREATE INDEX subscription_by_end ON subscription (expires_at, failures);
CREATE TABLE pending (
  id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, callback_key TEXT NOT NULL,
  callback TEXT NOT NULL, host TEXT NOT NULL, domain TEXT NOT NULL, network TEXT,
  topic_url TEXT NOT NULL, mode TEXT NOT NULL, secret BLOB, lease_seconds INTEGER NOT NULL,
  base_digest TEXT NOT NULL, requested_at REAL NOT NULL, reason TEXT NOT NULL,
  UNIQUE (path, callback_key, mode)
);
PRAGMA user_version = {SCHEMA_VERSION};
"""

# Version 1 kept no networks: until its next renewal a subscription stands under its domain instead.
FROM_VERSION_1 = f"""
DROP INDEX subscription_by_host;
DROP INDEX subscription_by_end;
ALTER TABLE subscription RENAME TO old_subscription;
ALTER TABLE pending RENAME TO old_pending;
{SCHEMA}
INSERT INTO subscription
  SELECT id, path, callback_key, callback, host, domain_of(host), domain_of(host), topic_url, secret,
         created_at, expires_at, delivered_digest, failures, next_attempt_at, last_attempt_at, last_outcome
  FROM old_subscription;
INSERT INTO pending
  SELECT id, path, callback_key, callback, host, domain_of(host),
         (SELECT domain_of(host) WHERE mode = 'denied' OR EXISTS (
            SELECT 1 FROM old_subscription AS own
            WHERE own.path = old_pending.path AND own.callback_key = old_pending.callback_key)),
         topic_url, mode, secret, lease_seconds, base_digest, requested_at,
         iif(mode = 'denied', 'deliveries in a row failed; subscribe again to resume', '')
  FROM old_pending;
DROP TABLE old_subscription;
DROP TABLE old_pending;
"""  # noqa: S608 - our names


class Excluded(NamedTuple):
    """What a query of due rows leaves out: limit keys (a network, or else a domain), keys of subscribers."""

    limit_keys: Collection[str]
    subscribers: Collection[str]


NOT_EXCLUDED = """coalesce(network, domain) NOT IN (SELECT value FROM json_each(?))
  AND path || callback_key NOT IN (SELECT value FROM json_each(?))"""

# The kinds of requests; slow subscribers are those whose next exchange belongs to the lane of retries.
SLOW = """EXISTS (SELECT 1 FROM subscription AS own WHERE own.path = pending.path
                    AND own.callback_key = pending.callback_key AND own.next_attempt_at > 0)"""
REQUESTS = {
    "of strangers": "mode <> 'denied' AND network IS NULL",
    "of subscribers": f"mode <> 'denied' AND network IS NOT NULL AND NOT {SLOW}",
    "of slow subscribers": f"mode <> 'denied' AND network IS NOT NULL AND {SLOW}",
    "notices": "mode = 'denied'",
}


class Transaction:
    """The statements. Only valid inside the transaction."""

    def __init__(self, connection: sqlite3.Connection):
        self._connection, self._execute = connection, connection.execute

    def check_writable(self) -> None:
        """Write without a change, since a full disk shows only then.

        Raises StoreFault unless the schema is the one of this program.
        """
        if (version := version_of(self._connection)) != SCHEMA_VERSION:
            raise StoreFault(f"made by another version of this program (schema {version})")
        self._execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def subscriptions(self, where: str = "", *values: object) -> Iterator[Subscription]:
        """The rows for which an SQL clause holds, read one by one."""
        for row in self._execute(f"SELECT * FROM subscription {where}", values):  # noqa: S608 - ours
            yield Subscription(row[0], Subscriber(*row[1:8]), *row[8:])

    def pending(self, where: str = "", *values: object) -> Iterator[PendingRequest]:
        """The rows for which an SQL clause holds, oldest first, read one by one."""
        for row in self._execute(f"SELECT * FROM pending {where} ORDER BY id", values):  # noqa: S608 - ours
            yield PendingRequest(row[0], Subscriber(*row[1:8]), *row[8:])

    def state(self, subscriber: Subscriber, now: float) -> SubscriptionState:
        """The rows of a subscriber; an expired subscription is left out."""
        where = "WHERE path = ? AND callback_key = ?"
        key = subscriber.path, subscriber.callback_key
        active = next(self.subscriptions(f"{where} AND expires_at > ?", *key, now), None)
        return SubscriptionState(active, tuple(self.pending(where, *key)))

    def save(self, before: SubscriptionState, then: SubscriptionState) -> None:
        """Write what has changed; of new notices, as many as MAX_NOTICES allows."""
        left = {(type(row), row.id) for row in then.rows}
        for row in before.rows:
            if (type(row), row.id) not in left:
                self._execute(f"DELETE FROM {TABLES[type(row)]} WHERE id = ?", (row.id,))  # noqa: S608 - ours
        for row in then.rows:
            is_notice = isinstance(row, PendingRequest) and row.mode == "denied"
            if row in before.rows or (is_notice and self.notices() >= MAX_NOTICES):
                continue
            row_id, subscriber, *others = astuple(row)
            values = (row_id, *subscriber, *others)
            places = ", ".join("?" * len(values))
            # REPLACE also deletes an earlier request of this mode, or an expired subscription.
            self._execute(f"INSERT OR REPLACE INTO {TABLES[type(row)]} VALUES ({places})", values)  # noqa: S608

    def usage(self, subscriber: Subscriber, now: float) -> Usage:
        """What the limits for a request of this subscriber depend on."""
        row = self._execute(
            """
            WITH stranger AS (SELECT domain FROM pending WHERE network IS NULL AND NOT (
                                path = :path AND callback_key = :callback_key))
            SELECT (SELECT count(*) FROM stranger), (SELECT count(*) FROM stranger WHERE domain = :domain),
                   (SELECT count(*) FROM subscription WHERE expires_at > :now),
                   (SELECT count(*) FROM subscription WHERE host = :host AND expires_at > :now),
                   (SELECT count(*) FROM subscription WHERE domain = :domain AND expires_at > :now),
                   (SELECT count(*) FROM subscription WHERE network = :network AND expires_at > :now)
            """,
            asdict(subscriber) | {"now": now},
        ).fetchone()
        return Usage(*row)

    def evict(self, domain: str, unanswered: Iterable[int | None]) -> bool:
        """Delete a stranger's request to make room for one of this domain. Returns whether there was one.

        It is the newest of the domain with the most requests, if these are more than the ones of this domain
        will be; otherwise one of the `unanswered`, which have been tried.
        """
        deleted = self._execute(
            """
            DELETE FROM pending WHERE id = (
              SELECT id FROM (
                SELECT id, count(*) OVER (PARTITION BY domain)
                           - count(*) FILTER (WHERE domain = :domain) OVER () - 1 AS more
                FROM pending WHERE network IS NULL)
              WHERE more > 0 OR id IN (SELECT value FROM json_each(:unanswered))
              ORDER BY more DESC, id DESC LIMIT 1)
            """,
            {"domain": domain, "unanswered": json.dumps(list(unanswered))},
        )
        return deleted.rowcount > 0

    def notices(self) -> int:
        """How many notices wait."""
        return int(self._execute("SELECT count(*) FROM pending WHERE mode = 'denied'").fetchone()[0])

    def requests(self, excluded: Excluded, kind: str) -> Iterator[PendingRequest]:
        """The requests of a kind, oldest first."""
        return self.pending(f"WHERE {REQUESTS[kind]} AND {NOT_EXCLUDED}", *map(json_list, excluded))

    def _stale(self, digests: Mapping[str, str]) -> list[tuple[str, str]]:
        """The paths of published topics, each with a digest that is not current and that subscriptions have.

        Subscriptions with such a pair are behind. There are few pairs, and an index finds each at once.
        """
        rows = self._execute(
            """
            WITH RECURSIVE topic (path, digest) AS (SELECT key, value FROM json_each(?)),
            held (path, digest) AS (
              SELECT path, (SELECT min(delivered_digest) FROM subscription WHERE path = topic.path) FROM topic
              UNION ALL
              SELECT path, (SELECT min(delivered_digest) FROM subscription
                            WHERE path = held.path AND delivered_digest > held.digest)
              FROM held WHERE held.digest IS NOT NULL)
            SELECT held.path, held.digest FROM held JOIN topic USING (path) WHERE held.digest <> topic.digest
            """,
            (json.dumps(digests),),
        )
        return list(rows)

    def behind(
        self, excluded: Excluded, digests: Mapping[str, str], now: float, after: float, until: float
    ) -> Iterator[Subscription]:
        """The active subscriptions whose topic has other content, the longest waiting first.

        Their `next_attempt_at` is greater than `after` and at most `until`.
        """
        where = (
            "WHERE path = ? AND delivered_digest = ? AND next_attempt_at > ? AND next_attempt_at <= ?"
            f" AND expires_at > ? AND {NOT_EXCLUDED} ORDER BY next_attempt_at, id"
        )
        values = after, until, now, *map(json_list, excluded)
        found = [self.subscriptions(where, *pair, *values) for pair in self._stale(digests)]
        yield from heapq.merge(*found, key=lambda row: (row.next_attempt_at, row.id or 0))

    def counts(self, digests: Mapping[str, str], now: float) -> dict[str, int]:
        """How many subscriptions are active, failing and behind, and how many requests are pending."""
        row = self._execute(
            """
            SELECT count(*), (SELECT count(*) FROM pending WHERE mode <> 'denied'),
                   count(nullif(failures, 0)), count(nullif(topic.value, delivered_digest))
            FROM subscription LEFT JOIN json_each(?) AS topic ON topic.key = subscription.path
            WHERE expires_at > ?
            """,
            (json.dumps(digests), now),
        ).fetchone()
        return dict(zip(("active", "pending", "failing", "behind"), row, strict=True))

    def expired(self, now: float) -> list[int]:
        """The ids of the expired subscriptions, longest ago first."""
        where = "WHERE expires_at <= ? ORDER BY expires_at, id"
        return [row_id for (row_id,) in self._execute(f"SELECT id FROM subscription {where}", (now,))]  # noqa: S608

    def rows(self) -> int:
        """How many subscriptions there are, expired ones included."""
        return int(self._execute("SELECT count(*) FROM subscription").fetchone()[0])


def json_list(texts: Iterable[str]) -> str:
    return json.dumps(list(texts))


# ---- Store -------------------------------------------------------------------------------------------------


class Store:
    """Transactions on the file, in any thread, each over a connection of its own.

    The file may come late (locked, full, held by another hub), and may fail or go away while in use. Held all
    the time are the lock of its directory and one idle connection, without which SQLite would write a
    checkpoint whenever a connection is closed. Reading never waits for a write to reach the disk (WAL).
    """

    def __init__(self, state_dir: Path):
        """Touches no disk; `keep_open` opens it."""
        self.trouble: str | None = "not open"  # why nothing can be stored, as far as it is known
        self._logged_trouble: str | None = None  # the trouble that was logged last
        self._path = state_dir / STORE_FILE_NAME
        self._held = ExitStack()
        self._identity: Identity | None = None  # of what is held
        self._write_lock = threading.Lock()  # one writer at a time

    def keep_open(self) -> None:
        """Open the store, or open it anew if it fails or went away, and log when trouble changes or ends.

        One thread at a time. A directory that went away is not made anew: it may come back.
        """
        if self.trouble or not self._is_in_place():
            try:
                self.open()
            except HubUnavailable as unavailable:
                self.trouble = str(unavailable)
        if self.trouble and self.trouble != self._logged_trouble:
            log.error("the hub can store no requests: %s", self.trouble)
        elif self._logged_trouble and not self.trouble:
            log.warning("the hub can store requests again")
        self._logged_trouble = self.trouble

    def open(self) -> None:
        """Lock the directory and connect, unless both are held, and check that the store can be written.

        Raises HubUnavailable if it is unusable, or used by another hub.
        """
        try:
            if not self._is_in_place():
                self.close()
                with ExitStack() as held:
                    directory = os.open(self._path.parent, os.O_RDONLY)
                    held.callback(os.close, directory)
                    # Two hubs on one store would deliver everything twice. The lock ends with the process.
                    fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    # Mode 0600 because of the secrets; SQLite gives its other files the same mode.
                    self._path.touch(0o600)
                    connection = held.enter_context(closing(connect(self._path)))
                    prepare(connection)
                    self._identity, self._held = identity(self._path), held.pop_all()
            with self.writing() as rows:
                rows.check_writable()
        except BlockingIOError as error:
            raise HubUnavailable(self._path, f"another hub uses this directory ({error.strerror})") from error
        except (OSError, sqlite3.Error, StoreFault) as error:
            raise HubUnavailable(self._path, str(error)) from error
        self.trouble = None

    @contextmanager
    def writing(self, *, durable: bool = False) -> Iterator[Transaction]:
        """A block `with store.writing() as rows`; see `transaction`. Raises StoreFault."""
        if not self._write_lock.acquire(timeout=STORE_BUSY_SECONDS):
            raise StoreFault("busy")
        try:
            with self._transaction("BEGIN IMMEDIATE", durable) as rows:
                yield rows
        finally:
            self._write_lock.release()

    def reading(self) -> AbstractContextManager[Transaction]:
        """A block `with store.reading() as rows`. Raises StoreFault."""
        return self._transaction("BEGIN", durable=False)

    @contextmanager
    def _transaction(self, begin: str, durable: bool) -> Iterator[Transaction]:
        if not self._is_in_place():  # what is written to a removed file is lost
            raise StoreFault("there is no store")
        try:
            with transaction(self._path, begin, durable=durable) as rows:
                yield rows
        except sqlite3.Error as error:
            self.trouble = str(error)
            raise StoreFault(self.trouble) from error

    def _is_in_place(self) -> bool:
        """Whether directory and file are those that are held."""
        with suppress(OSError):
            return identity(self._path) == self._identity
        return False

    def close(self) -> None:
        """Later transactions raise StoreFault."""
        self._identity, self.trouble = None, "not open"
        self._held.close()


Identity: TypeAlias = tuple[tuple[int, int], ...]


def identity(path: Path) -> Identity:
    """Device and inode of a file, and of its directory. Raises OSError."""
    return tuple((status.st_dev, status.st_ino) for status in (path.stat(), path.parent.stat()))


def connect(path: Path, busy_seconds: float = STORE_BUSY_SECONDS) -> sqlite3.Connection:
    """A connection to a file that exists. Raises sqlite3.Error."""
    file = f"{path.absolute().as_uri()}?mode=rw"
    return sqlite3.connect(file, busy_seconds, isolation_level=None, check_same_thread=False, uri=True)


@contextmanager
def transaction(
    path: Path, begin: str, *, durable: bool, busy_seconds: float = STORE_BUSY_SECONDS
) -> Iterator[Transaction]:
    """Committed when the block ends, rolled back when it raises. Raises sqlite3.Error.

    A commit survives the end of the process. A `durable` one waits for the disk and survives a power cut.
    """
    with closing(connect(path, busy_seconds)) as connection:
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        connection.execute(begin)
        with connection:  # commits, or rolls back
            yield Transaction(connection)


def prepare(connection: sqlite3.Connection) -> None:
    """Create the tables, or convert those of version 1, in one transaction. Raises sqlite3.Error."""
    connection.execute("PRAGMA journal_mode = WAL")
    if script := {0: SCHEMA, 1: FROM_VERSION_1}.get(version_of(connection)):
        connection.create_function("domain_of", 1, domain_of)
        connection.executescript(f"BEGIN IMMEDIATE; {script} COMMIT;")


def version_of(connection: sqlite3.Connection) -> int:
    """The version of the schema; 0 before there is one. Raises sqlite3.Error."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


# ---- For the operator --------------------------------------------------------------------------------------


class Listing(NamedTuple):
    """A subscription or pending request, for the operator. A callback's URL may be a secret: host only."""

    state: str  # "active", "failing", "ended"; or pending: "subscribe", "unsubscribe", "denied"
    host: str
    network: str | None
    path: str
    since: float
    expires_at: float | None
    failures: int
    last_attempt_at: float | None
    last_outcome: str


def list_subscriptions(state_dir: Path, *, clock: Callable[[], float] = time.time) -> list[Listing]:
    """All subscriptions, then all pending requests, by topic and host. The daemon may be running.

    Changes nothing on disk. Raises HubUnavailable if there is a store that cannot be read.
    """
    path = state_dir / STORE_FILE_NAME
    try:
        if not path.exists():
            return []
        # Without a write-ahead log the store is not in use, and opening it with mode=ro would create one.
        in_use = path.with_name(f"{path.name}-wal").exists()
        database = f"{path.absolute().as_uri()}?{'mode=ro' if in_use else 'immutable=1'}"
        with closing(sqlite3.connect(database, timeout=STORE_BUSY_SECONDS, uri=True)) as connection:
            network = "network" if version_of(connection) > 1 else "NULL"
            rows = connection.execute(
                f"""
                SELECT CASE WHEN expires_at <= ? THEN 'ended' WHEN failures THEN 'failing' ELSE 'active' END,
                       host, {network}, path, created_at, expires_at, failures, last_attempt_at, last_outcome
                FROM subscription
                UNION ALL SELECT mode, host, {network}, path, requested_at, NULL, 0, NULL, '' FROM pending
                """,  # noqa: S608 - our names
                (clock(),),
            )
            listed = [Listing(*columns) for columns in rows]
    except (OSError, sqlite3.Error) as error:
        raise HubUnavailable(path, str(error)) from error
    return sorted(listed, key=lambda line: (line.expires_at is None, line.path, line.host, line.since))


def remove_subscriptions(
    state_dir: Path, is_meant: Callable[[Subscriber], bool], *, clock: Callable[[], float] = time.time
) -> list[Subscriber]:
    """Remove the matching subscriptions and requests, and leave a notice for each subscription.

    Returns their subscribers. The daemon may be running; it delivers the notices. Raises HubUnavailable.
    """
    path, now = state_dir / STORE_FILE_NAME, clock()
    try:
        path.stat()  # SQLite would not say that it is missing
        with transaction(path, "BEGIN IMMEDIATE", durable=True, busy_seconds=OPERATOR_SECONDS) as rows:
            rows.check_writable()
            removed = [row for row in rows.subscriptions() if is_meant(row.subscriber)]
            asking = [row for row in rows.pending("WHERE mode <> 'denied'") if is_meant(row.subscriber)]
            for row in removed:
                notice = denial(row.subscriber, "removed by the operator of the hub", now)
                told = (notice,) if row.expires_at > now else ()
                rows.save(SubscriptionState(row), SubscriptionState(None, told))
            rows.save(SubscriptionState(None, tuple(asking)), SubscriptionState())
    except (OSError, sqlite3.Error, StoreFault) as error:
        raise HubUnavailable(path, str(error)) from error
    whose = [row.subscriber for row in removed] + [row.subscriber for row in asking]
    return list({subscriber.key: subscriber for subscriber in whose}.values())
