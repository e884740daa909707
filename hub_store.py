"""The one SQLite file that keeps the hub's subscriptions and requests.

This module must not know why a row is written or what follows from it (`hub.py` decides that), the content of
a topic, or HTTP. The published topics arrive as digests: `{path: hex SHA-256 of the current content}`.

All moments (`now`, `..._at`) are seconds since the epoch, all durations seconds.

Sections, in order: Statements - Store - Listing
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, astuple
from pathlib import Path
from typing import NamedTuple

from hub_values import Occupancy, PendingRequest, Row, Subscriber, Subscription, SubscriptionState

STORE_FILE_NAME = "websub.sqlite3"
STORE_BUSY_SECONDS = 0.25  # how long a transaction waits for its turn before it gives up

log = logging.getLogger(__name__)


class HubUnavailable(Exception):
    """The store at `path` cannot be opened."""

    def __init__(self, path: Path, reason: str):
        super().__init__(f"{path}: {reason}")
        self.path = path


class StoreFault(Exception):
    """The store cannot be read or written at the moment: full, locked, read-only, closed, gone."""


# ---- Statements --------------------------------------------------------------------------------------------

SCHEMA_VERSION = 1

# AUTOINCREMENT: the late result of a deleted row must not apply to a newer row with the same id.
SCHEMA = f"""
BEGIN;
CREATE TABLE subscription (
  id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, callback_key TEXT NOT NULL,
  callback TEXT NOT NULL, host TEXT NOT NULL, topic_url TEXT NOT NULL, secret BLOB, created_at REAL NOT NULL,
  expires_at REAL NOT NULL, delivered_digest TEXT NOT NULL, failures INTEGER NOT NULL,
  next_attempt_at REAL NOT NULL, last_attempt_at REAL, last_outcome TEXT NOT NULL, UNIQUE (path, callback_key)
);
CREATE INDEX subscription_by_host ON subscription (host, expires_at);
CREATE INDEX subscription_by_end ON subscription (expires_at, failures);
CREATE TABLE pending (
  id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, callback_key TEXT NOT NULL,
  callback TEXT NOT NULL, host TEXT NOT NULL, topic_url TEXT NOT NULL, mode TEXT NOT NULL, secret BLOB,
  lease_seconds INTEGER NOT NULL, base_digest TEXT NOT NULL, requested_at REAL NOT NULL,
  UNIQUE (path, callback_key)
);
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""


class Transaction:
    """The statements. Only valid inside the transaction."""

    def __init__(self, connection: sqlite3.Connection):
        self._execute = connection.execute

    def subscriptions(self, where: str, *values: object) -> list[Subscription]:
        """The rows for which an SQL clause holds."""
        rows = self._execute(f"SELECT subscription.* FROM subscription {where}", values)  # noqa: S608 - ours
        return [Subscription(row[0], Subscriber(*row[1:6]), *row[6:]) for row in rows]

    def pending(self, where: str = "", *values: object) -> list[PendingRequest]:
        """The rows for which an SQL clause holds, oldest first."""
        rows = self._execute(f"SELECT * FROM pending {where} ORDER BY id", values)  # noqa: S608 - ours
        return [PendingRequest(row[0], Subscriber(*row[1:6]), *row[6:]) for row in rows]

    def state(self, subscriber: Subscriber, now: float) -> SubscriptionState:
        """What is known of a subscriber, except for a subscription whose lease has ended."""
        where = "WHERE path = ? AND callback_key = ?"
        active = self.subscriptions(f"{where} AND expires_at > ?", *subscriber.key, now)
        pending = self.pending(where, *subscriber.key)
        return SubscriptionState(active[0] if active else None, pending[0] if pending else None)

    def save(self, before: SubscriptionState, then: SubscriptionState) -> None:
        """Write what has changed."""
        for table in ("subscription", "pending"):
            old: Row | None = getattr(before, table)
            new: Row | None = getattr(then, table)
            if new is not None and new != old:
                row_id, subscriber, *others = astuple(new)
                values = (row_id, *subscriber, *others)
                places = ", ".join("?" * len(values))
                # REPLACE also deletes an earlier request of the subscriber, or an expired subscription.
                self._execute(f"INSERT OR REPLACE INTO {table} VALUES ({places})", values)  # noqa: S608
            elif new is None and old is not None:
                self._execute(f"DELETE FROM {table} WHERE id = ?", (old.id,))  # noqa: S608 - our name

    def renewals(self, now: float) -> set[tuple[str, str]]:
        """The keys of subscribers with an active subscription and a request that waits."""
        rows = self._execute(
            "SELECT path, callback_key FROM pending JOIN subscription USING (path, callback_key)"
            " WHERE expires_at > ?",
            (now,),
        )
        return set(rows)

    def occupancy(self, subscriber: Subscriber, hosts: Collection[str], now: float) -> Occupancy:
        """What the limits for a request of this subscriber depend on; `hosts` are all in its network."""
        row = self._execute(
            """
            WITH other AS (SELECT host, mode FROM pending
                           WHERE mode <> 'denied' AND NOT (path = :path AND callback_key = :callback_key)
                           AND NOT EXISTS (SELECT 1 FROM subscription AS own WHERE own.path = pending.path
                               AND own.callback_key = pending.callback_key AND own.expires_at > :now)),
                 taken AS (SELECT host FROM subscription WHERE expires_at > :now
                           UNION ALL SELECT host FROM other WHERE mode = 'subscribe')
            SELECT (SELECT count(*) FROM other),
                   (SELECT count(*) FROM other WHERE host IN (SELECT value FROM json_each(:hosts))),
                   (SELECT count(*) FROM taken),
                   (SELECT count(*) FROM taken WHERE host = :host)
            """,
            asdict(subscriber) | {"now": now, "hosts": json.dumps(list(hosts))},
        ).fetchone()
        return Occupancy(*row)

    def notices(self) -> int:
        """How many removed callbacks have not been told yet."""
        return int(self._execute("SELECT count(*) FROM pending WHERE mode = 'denied'").fetchone()[0])

    def behind(self, digests: Mapping[str, str], now: float) -> list[Subscription]:
        """The active subscriptions without the current content of their topic, longest waiting first.

        Subscriptions to a topic that is not published are not among them.
        """
        return self.subscriptions(
            "JOIN json_each(?) AS topic ON topic.key = subscription.path AND topic.value <> delivered_digest"
            " WHERE expires_at > ? ORDER BY next_attempt_at, subscription.id",
            json.dumps(digests),
            now,
        )

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


# ---- Store -------------------------------------------------------------------------------------------------


class Connection:
    """An SQLite connection for all threads, one short transaction at a time."""

    def __init__(self, path: Path, begin: str):
        """Raises sqlite3.Error."""
        self._lock = threading.Lock()
        self._begin = begin
        self.trouble: str | None = None  # why the last transaction failed
        self.sqlite = sqlite3.connect(
            path, timeout=STORE_BUSY_SECONDS, isolation_level=None, check_same_thread=False
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
    """Create the tables if there are none. Raises sqlite3.Error, or StoreFault for another schema."""
    writer.sqlite.execute("PRAGMA journal_mode = WAL")
    (version,) = writer.sqlite.execute("PRAGMA user_version").fetchone()
    if version == 0:
        writer.sqlite.executescript(SCHEMA)
    elif version != SCHEMA_VERSION:
        raise StoreFault(f"made by another version of this program (schema {version})")
    # Written, so that a full or locked store fails here and not at a request.
    writer.sqlite.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


# ---- Listing -----------------------------------------------------------------------------------------------


class Listing(NamedTuple):
    """A subscription or pending request, for the operator. A callback's URL may be a secret: host only."""

    state: str  # "active", "failing", "ended"; or pending: "subscribe", "unsubscribe", "denied"
    host: str
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
            rows = connection.execute(
                """
                SELECT CASE WHEN expires_at <= ? THEN 'ended' WHEN failures THEN 'failing' ELSE 'active' END,
                       host, path, created_at, expires_at, failures, last_attempt_at, last_outcome
                FROM subscription
                UNION ALL SELECT mode, host, path, requested_at, NULL, 0, NULL, '' FROM pending
                """,
                (clock(),),
            )
            listed = [Listing(*columns) for columns in rows]
    except (OSError, sqlite3.Error) as error:
        raise HubUnavailable(path, str(error)) from error
    return sorted(listed, key=lambda line: (line.expires_at is None, line.path, line.host, line.since))
