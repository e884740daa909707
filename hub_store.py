"""The one SQLite file that keeps the hub's subscriptions and requests.

This module must not know why a row is written or what follows from it (`hub.py` decides that), the content of
a topic, or HTTP. The published topics arrive as digests: `{path: hex SHA-256 of the current content}`.

All moments (`now`, `..._at`) are seconds since the epoch, all durations seconds.

Sections, in order: Statements - Store - For the operator
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, astuple
from pathlib import Path
from typing import NamedTuple, TypeAlias

from hub_values import (
    Occupancy,
    PendingRequest,
    Row,
    Subscriber,
    Subscription,
    SubscriptionState,
    denial,
    domain_of,
)

STORE_FILE_NAME = "websub.sqlite3"
STORE_BUSY_SECONDS = 0.25  # how long a transaction waits for its turn before it gives up
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
MAX_NOTICES = 1000  # that wait; when more subscriptions are removed at once, the others are not told
PAGE_ROWS = 16

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


# What a page leaves out: two JSON lists, of full places and of the keys of subscribers that have to wait.
NOT_SKIPPED = """coalesce(network, domain) NOT IN (SELECT value FROM json_each(?))
  AND path || callback_key NOT IN (SELECT value FROM json_each(?))"""
Skipped: TypeAlias = tuple[Collection[str], Collection[str]]


class Transaction:
    """The statements. Only valid inside the transaction."""

    def __init__(self, connection: sqlite3.Connection):
        self._execute = connection.execute

    def subscriptions(self, where: str, *values: object) -> list[Subscription]:
        """The rows for which an SQL clause holds."""
        rows = self._execute(f"SELECT subscription.* FROM subscription {where}", values)  # noqa: S608 - ours
        return [Subscription(row[0], Subscriber(*row[1:8]), *row[8:]) for row in rows]

    def pending(self, where: str = "", *values: object, limit: int = -1) -> list[PendingRequest]:
        """The rows for which an SQL clause holds, oldest first; not more than a limit, if it is positive."""
        statement = f"SELECT * FROM pending {where} ORDER BY id LIMIT {limit}"  # noqa: S608 - ours
        return [
            PendingRequest(row[0], Subscriber(*row[1:8]), *row[8:])
            for row in self._execute(statement, values)
        ]

    def state(self, subscriber: Subscriber, now: float) -> SubscriptionState:
        """What is known of a subscriber, except for a subscription whose lease has ended."""
        where = "WHERE path = ? AND callback_key = ?"
        key = subscriber.path, subscriber.callback_key
        active = self.subscriptions(f"{where} AND expires_at > ?", *key, now)
        return SubscriptionState(active[0] if active else None, tuple(self.pending(where, *key)))

    def save(self, before: SubscriptionState, then: SubscriptionState) -> None:
        """Write what has changed; of new notices, as many as MAX_NOTICES allows."""
        subscriptions = [[state.subscription] if state.subscription else [] for state in (before, then)]
        changes: dict[str, Sequence[Sequence[Row]]] = {
            "subscription": subscriptions,
            "pending": (before.requests, then.requests),
        }
        for table, (old, new) in changes.items():
            left = {row.id for row in new}
            for row in old:
                if row.id not in left:
                    self._execute(f"DELETE FROM {table} WHERE id = ?", (row.id,))  # noqa: S608 - our name
            for row in new:
                is_notice = isinstance(row, PendingRequest) and row.mode == "denied"
                if row in old or (is_notice and self.notices() >= MAX_NOTICES):
                    continue
                row_id, subscriber, *others = astuple(row)
                values = (row_id, *subscriber, *others)
                places = ", ".join("?" * len(values))
                # REPLACE also deletes an earlier request of this mode, or an expired subscription.
                self._execute(f"INSERT OR REPLACE INTO {table} VALUES ({places})", values)  # noqa: S608

    def occupancy(self, subscriber: Subscriber, now: float) -> Occupancy:
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
        return Occupancy(*row)

    def notices(self) -> int:
        """How many notices wait."""
        return int(self._execute("SELECT count(*) FROM pending WHERE mode = 'denied'").fetchone()[0])

    def requests(self, where: str, after_id: int, skipped: Skipped) -> list[PendingRequest]:
        """A page of the requests for which an SQL condition holds, oldest first."""
        where = f"WHERE {where} AND id > ? AND {NOT_SKIPPED}"
        return self.pending(where, after_id, *map(json_list, skipped), limit=PAGE_ROWS)

    def stale(self, digests: Mapping[str, str]) -> list[tuple[str, str]]:
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
        self,
        pairs: Iterable[tuple[str, str]],
        now: float,
        after: tuple[float, int],
        until: float,
        skipped: Skipped,
    ) -> list[Subscription]:
        """A page of the active subscriptions that have one of these contents, longest waiting first.

        Their `(next_attempt_at, id)` is greater than `after`, their `next_attempt_at` at most `until`.
        """
        found: list[Subscription] = []
        where = (
            "WHERE path = ? AND delivered_digest = ? AND (next_attempt_at, id) > (?, ?)"
            f" AND next_attempt_at <= ? AND expires_at > ? AND {NOT_SKIPPED}"
            f" ORDER BY next_attempt_at, id LIMIT {PAGE_ROWS}"
        )
        for pair in pairs:
            found += self.subscriptions(where, *pair, *after, until, now, *map(json_list, skipped))
        return sorted(found, key=lambda row: (row.next_attempt_at, row.id))[:PAGE_ROWS]

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

    def ended(self, now: float) -> list[int]:
        """The ids of the subscriptions whose lease has ended, longest ago first."""
        where = "WHERE expires_at <= ? ORDER BY expires_at, id"
        return [row_id for (row_id,) in self._execute(f"SELECT id FROM subscription {where}", (now,))]  # noqa: S608

    def rows(self) -> int:
        """How many rows of subscriptions there are, whether or not their lease has ended."""
        return int(self._execute("SELECT count(*) FROM subscription").fetchone()[0])


def json_list(texts: Iterable[str]) -> str:
    return json.dumps(list(texts))


# ---- Store -------------------------------------------------------------------------------------------------


class Connection:
    """An SQLite connection for all threads, one short transaction at a time."""

    def __init__(self, path: Path, begin: str, busy_seconds: float = STORE_BUSY_SECONDS):
        """Raises sqlite3.Error."""
        self._lock = threading.Lock()
        self._begin = begin
        self.trouble: str | None = None  # why the last transaction failed
        self.sqlite = sqlite3.connect(
            path, timeout=busy_seconds, isolation_level=None, check_same_thread=False
        )

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[Transaction]:
        """Committed when the block ends, rolled back when it raises. Raises StoreFault.

        A commit survives the end of the process. A `durable` one waits for the disk and survives a power cut.
        """
        if not self._lock.acquire(timeout=STORE_BUSY_SECONDS):
            raise StoreFault("busy")
        try:
            self.sqlite.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self.sqlite.execute(self._begin)
            with self.sqlite:  # commits, or rolls back
                yield Transaction(self.sqlite)
        except sqlite3.Error as error:
            self.trouble = str(error)
            raise StoreFault(self.trouble) from error
        else:
            self.trouble = None
        finally:
            self._lock.release()

    def close(self) -> None:
        """Later transactions raise StoreFault."""
        with self._lock:
            self.sqlite.close()


class OpenStore:
    """Transactions on the file, in any thread. Reading never waits for a write to reach the disk (WAL)."""

    def __init__(self, state_dir: Path):
        """Open or create it, in a directory that exists. Raises HubUnavailable if it is unusable, or used
        by another hub."""
        self._path = path = state_dir / STORE_FILE_NAME
        try:
            with ExitStack() as opened:
                claim = os.open(state_dir, os.O_RDONLY)
                opened.callback(os.close, claim)
                # Two hubs on one store would deliver everything twice. The lock ends with the process.
                fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Mode 0600 because of the secrets; SQLite gives its other files the same mode.
                os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
                self._identity = identity(path)
                writer = opened.enter_context(closing(Connection(path, "BEGIN IMMEDIATE")))
                prepare(writer)
                reader = opened.enter_context(closing(Connection(path, "BEGIN")))
                reader.sqlite.execute("PRAGMA query_only = ON")
                self.close = opened.pop_all().close  # later transactions raise StoreFault
        except BlockingIOError as error:
            raise HubUnavailable(path, f"another hub uses this directory ({error.strerror})") from error
        except (OSError, sqlite3.Error, StoreFault) as error:
            raise HubUnavailable(path, str(error)) from error
        #: Blocks `with store.writing() as rows` and `with store.reading() as rows`; both raise StoreFault.
        self.writing, self.reading = writer.transaction, reader.transaction
        self._writer, self._reader = writer, reader

    @property
    def trouble(self) -> str | None:
        """Why its last transactions failed, None if they did not."""
        return self._writer.trouble or self._reader.trouble

    def is_in_place(self) -> bool:
        """Whether the file is where it was opened: what is written to a removed one is lost."""
        with suppress(OSError):
            return identity(self._path) == self._identity
        return False


def identity(path: Path) -> tuple[int, int]:
    """Device and inode of a file. Raises OSError."""
    status = path.stat()
    return status.st_dev, status.st_ino


class Store:
    """A store that may come late (locked, full, held by another hub) and may fail or go away while in use."""

    def __init__(self, state_dir: Path):
        """Touches no disk; `keep_open` opens it."""
        self._state_dir = state_dir
        self._open: OpenStore | None = None
        self._fault: str | None = None  # as last logged

    @property
    def trouble(self) -> str | None:
        """Why nothing can be stored at present, None when it can. Does not wait for the disk."""
        return store.trouble if (store := self._open) else self._fault or "not open"

    def keep_open(self) -> None:
        """Open the store, or open it anew if it fails or went away, and log when trouble changes or ends.

        One thread at a time. A directory that went away is not made anew: it may come back.
        """
        fault = None
        if (store := self._open) and (fault := store.trouble if store.is_in_place() else "its file is gone"):
            self.close()
        if not self._open:
            try:
                self._open = OpenStore(self._state_dir)
            except HubUnavailable as unavailable:
                fault = str(unavailable)
        if fault != self._fault:
            self._fault = fault
            told = f"store no requests: {fault}" if fault else "store requests again"
            log.log(logging.ERROR if fault else logging.WARNING, "the hub can %s", told)

    def writing(self, *, durable: bool = False) -> AbstractContextManager[Transaction]:
        """A block `with store.writing() as rows`; see `Connection.transaction`. Raises StoreFault."""
        return self._in_place().writing(durable=durable)

    def reading(self) -> AbstractContextManager[Transaction]:
        """A block `with store.reading() as rows`. Raises StoreFault."""
        return self._in_place().reading()

    def _in_place(self) -> OpenStore:
        if (store := self._open) is None or not store.is_in_place():
            raise StoreFault("there is no store")
        return store

    def close(self) -> None:
        """Later transactions raise StoreFault."""
        store, self._open = self._open, None
        if store:
            store.close()


def prepare(writer: Connection) -> None:
    """Create the tables, or convert those of version 1, in one transaction.

    Raises sqlite3.Error, or StoreFault for another schema.
    """
    writer.sqlite.execute("PRAGMA journal_mode = WAL")
    if script := {0: SCHEMA, 1: FROM_VERSION_1}.get(version_of(writer.sqlite)):
        writer.sqlite.create_function("domain_of", 1, domain_of)
        writer.sqlite.executescript(f"BEGIN IMMEDIATE; {script} COMMIT;")
    refuse_other_version(writer.sqlite)
    # Written, so that a full or locked store fails here and not at a request.
    writer.sqlite.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def version_of(connection: sqlite3.Connection) -> int:
    """The version of the schema; 0 before there is one. Raises sqlite3.Error."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def refuse_other_version(connection: sqlite3.Connection) -> None:
    """Raises StoreFault, or sqlite3.Error, unless the schema is the one of this program."""
    if (version := version_of(connection)) != SCHEMA_VERSION:
        raise StoreFault(f"made by another version of this program (schema {version})")


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
    """Remove the subscriptions and requests of whoever is meant, and leave a notice for each subscription.

    Returns whose they were. The daemon may be running; it delivers the notices. Raises HubUnavailable.
    """
    path, now = state_dir / STORE_FILE_NAME, clock()
    try:
        path.stat()  # connecting would make a file
        with closing(Connection(path, "BEGIN IMMEDIATE", OPERATOR_SECONDS)) as connection:
            refuse_other_version(connection.sqlite)
            with connection.transaction(durable=True) as rows:
                removed = [row for row in rows.subscriptions("") if is_meant(row.subscriber)]
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
