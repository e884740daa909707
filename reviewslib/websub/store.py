"""The one SQLite file that keeps the hub's subscriptions and requests.

This module must not know why a row is written or what follows from it (`hub.py` decides that), the content of
a topic, or HTTP. The published topics arrive as digests: `{path: hex SHA-256 of the current content}`.

All moments (`now`, `..._at`, `since`) are seconds since the epoch, all durations seconds.

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
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

from reviewslib.websub.values import (
    PendingRequest,
    Row,
    Subscriber,
    Subscription,
    SubscriptionState,
    denial,
)

STORE_FILE_NAME = "websub.sqlite3"
LOCK_SECONDS = 0.25  # waited for the other threads, and as long again for other processes
OPERATOR_SECONDS = 10.0  # the latter, of a command

log = logging.getLogger(__name__)


class HubUnavailable(Exception):
    """The store at `path` cannot be opened."""

    def __init__(self, path: Path, reason: str):
        super().__init__(f"{path}: {reason}")
        self.path = path


class StoreFault(Exception):
    """The store cannot be read or written at the moment: full, locked, read-only, damaged, closed, gone."""


# ---- Statements --------------------------------------------------------------------------------------------

SCHEMA_VERSION = 3
MAX_PENDING = 1000  # requests of strangers
MAX_PENDING_OF_DOMAIN = 50
MAX_NOTICES = 1000  # that wait; when more subscriptions are removed at once, the others are not told

# Both tables begin with the same columns. AUTOINCREMENT: the late result of a deleted row must not apply to a
# newer row with the same id. There are no other indexes: to read 10,000 rows takes a few milliseconds.
COLUMNS = ("id", *Subscriber._fields, *Subscription._fields[2:9])
TABLES: dict[type[Row], tuple[str, tuple[str, ...]]] = {
    Subscription: ("subscription", (*COLUMNS, *Subscription._fields[9:])),
    PendingRequest: ("request", (*COLUMNS, *PendingRequest._fields[9:])),
}
COMMON = """
  id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, callback_key TEXT NOT NULL,
  callback TEXT NOT NULL, host TEXT NOT NULL, domain TEXT NOT NULL, network TEXT, topic_url TEXT NOT NULL,
  secret BLOB, digest TEXT NOT NULL, turn INTEGER NOT NULL, since REAL NOT NULL, expires_at REAL NOT NULL,
  due_at REAL NOT NULL, failures INTEGER NOT NULL"""
SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE subscription ({COMMON}, took REAL NOT NULL, tried_at REAL, outcome TEXT NOT NULL,
  UNIQUE (path, callback_key));
CREATE TABLE request ({COMMON}, mode TEXT NOT NULL, lease_seconds INTEGER NOT NULL, reason TEXT NOT NULL,
  UNIQUE (path, callback_key, mode));
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""

# What is due, in the order of its turns: by the whole seconds that the subscriber took last, so that slow
# ones never stand before quick ones, then those that were not yet tried in vain. A row that is due later than
# anything could be is due, too: it was written before the clock was set back.
DUE = """
WITH topic (path, digest) AS MATERIALIZED (SELECT key, value FROM json_each(:digests))
SELECT CASE WHEN failures > 0 OR took > :slow_seconds THEN 'retry' ELSE 'delivery' END AS lane, id,
       subscription.path || callback_key AS key, domain, network,
       CAST(took AS INTEGER) AS seconds, failures > 0 AS is_tried, turn, due_at
FROM subscription JOIN topic ON topic.path = subscription.path AND topic.digest <> subscription.digest
WHERE expires_at > :now AND (due_at <= :now OR due_at > :latest)
UNION ALL
SELECT CASE WHEN mode = 'denied' THEN 'notice' WHEN network IS NULL THEN 'newcomer' ELSE 'renewal' END, id,
       path || callback_key, domain, network,
       coalesce((SELECT CAST(took AS INTEGER) FROM subscription AS own
                 WHERE own.path = request.path AND own.callback_key = request.callback_key), 0),
       failures > 0, turn, due_at
FROM request WHERE expires_at > :now AND (due_at <= :now OR due_at > :latest)
ORDER BY seconds, is_tried, turn, due_at, id
"""


class DueRow(NamedTuple):
    """A row that is due, as far as it matters for its turn."""

    lane: str  # "delivery" and "retry" of subscriptions; "renewal", "newcomer" and "notice" of requests
    row_id: int
    key: str  # of the subscriber
    domain: str
    network: str | None  # None of a stranger


class Usage(NamedTuple):
    """How many active subscriptions there are: in all, of a domain, and of a network."""

    subscriptions: int
    of_domain: int
    of_network: int


class Transaction:
    """The statements. Only valid inside the transaction."""

    def __init__(self, connection: sqlite3.Connection):
        self._execute = connection.execute

    def check(self) -> None:
        """Read everything, and write without a change: damage, or a full disk, shows only then.

        Raises StoreFault unless the schema is the one of this program and no page is damaged.
        """
        (version,) = self._execute("PRAGMA user_version").fetchone()
        if version != SCHEMA_VERSION:
            raise StoreFault(f"made by another version of this program (schema {version})")
        (fault,) = self._execute("PRAGMA integrity_check(1)").fetchone()
        if fault != "ok":
            raise StoreFault(f"damaged: {' '.join(fault.split())}")
        self._execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def subscriptions(self, where: str = "", *values: object) -> Iterator[Subscription]:
        """The rows for which an SQL clause holds, read one by one."""
        for row in self._execute(f"SELECT * FROM subscription {where}", values):  # noqa: S608 - ours
            yield Subscription(row[0], Subscriber._make(row[1:8]), *row[8:])

    def requests(self, where: str = "", *values: object) -> Iterator[PendingRequest]:
        """The rows for which an SQL clause holds, read one by one."""
        for row in self._execute(f"SELECT * FROM request {where}", values):  # noqa: S608 - ours
            yield PendingRequest(row[0], Subscriber._make(row[1:8]), *row[8:])

    def state(self, subscriber: Subscriber, now: float) -> SubscriptionState:
        """The rows of a subscriber; an expired subscription is left out."""
        where, key = "WHERE path = ? AND callback_key = ?", (subscriber.path, subscriber.callback_key)
        active = next(self.subscriptions(f"{where} AND expires_at > ?", *key, now), None)
        return SubscriptionState(active, tuple(self.requests(f"{where} ORDER BY id", *key)))

    def save(self, before: SubscriptionState, then: SubscriptionState) -> None:
        """Write what has changed; of new notices, as many as MAX_NOTICES allows."""
        old_rows = {(type(row), row.id): row for row in before.rows}
        left = {(type(row), row.id) for row in then.rows}
        for key, row in old_rows.items():
            if key not in left:
                self.delete(row)
        for row in then.rows:
            old = old_rows.get((type(row), row.id))
            if old is None:
                self._insert(row)
            elif old != row:
                self._update(old, row)

    def delete(self, row: Row) -> None:
        self._execute(f"DELETE FROM {TABLES[type(row)][0]} WHERE id = ?", (row.id,))  # noqa: S608 - ours

    def _insert(self, row: Row) -> None:
        """It also replaces an earlier request of this mode, or an expired subscription."""
        if isinstance(row, PendingRequest) and row.mode == "denied":
            (notices,) = self._execute("SELECT count(*) FROM request WHERE mode = 'denied'").fetchone()
            if notices >= MAX_NOTICES:
                return
        values = values_of(row)
        places = ", ".join("?" * len(values))
        self._execute(f"INSERT OR REPLACE INTO {TABLES[type(row)][0]} VALUES ({places})", values)  # noqa: S608

    def _update(self, old: Row, row: Row) -> None:
        table, columns = TABLES[type(row)]
        changes = zip(columns, values_of(old), values_of(row), strict=True)
        changed = {column: now for column, before, now in changes if before != now}
        names = ", ".join(f"{column} = ?" for column in changed)
        self._execute(f"UPDATE {table} SET {names} WHERE id = ?", (*changed.values(), row.id))  # noqa: S608

    def claim(self, subscription: Subscription) -> None:
        """Note that it is unknown what the callback has, before content is sent to it."""
        key = subscription.subscriber.path, subscription.subscriber.callback_key
        if subscription.digest:
            self._execute("UPDATE subscription SET digest = '' WHERE id = ?", (subscription.id,))
        self._execute("UPDATE request SET digest = '' WHERE path = ? AND callback_key = ?", key)

    def due(self, digests: Mapping[str, str], now: float, latest: float, slow_seconds: float) -> list[DueRow]:
        """The rows that are due, in the order of their turns; none is due later than at `latest`."""
        values = {"digests": json.dumps(digests), "now": now, "latest": latest, "slow_seconds": slow_seconds}
        return [DueRow(*row[:5]) for row in self._execute(DUE, values)]

    def usage(self, subscriber: Subscriber, now: float) -> Usage:
        """The subscriptions in all, and those that share a quota with this subscriber."""
        counted = "count(*), count(*) FILTER (WHERE domain = ?), count(*) FILTER (WHERE network = ?)"
        values = subscriber.domain, subscriber.network, now
        statement = f"SELECT {counted} FROM subscription WHERE expires_at > ?"  # noqa: S608 - ours
        return Usage(*self._execute(statement, values).fetchone())

    def make_room(self, request: PendingRequest) -> bool:
        """Have another request of a stranger give way if there is no room; False if none has to.

        That is the oldest of a domain with its share, or else the one with the highest turn, or one that was
        asked in vain.
        """
        who = request.subscriber
        others = "network IS NULL AND NOT (path = ? AND callback_key = ? AND mode = ?)"
        key = who.path, who.callback_key, request.mode
        waiting, of_domain = self._execute(
            f"SELECT count(*), count(*) FILTER (WHERE domain = ?) FROM request WHERE {others}",  # noqa: S608
            (who.domain, *key),
        ).fetchone()
        if of_domain >= MAX_PENDING_OF_DOMAIN:
            condition, order = "domain = ?", "id"
            value: object = who.domain
        elif waiting >= MAX_PENDING:
            condition, order = "(turn > ? OR failures > 0)", "turn DESC, failures DESC, id"
            value = request.turn
        else:
            return True
        chosen = f"SELECT id FROM request WHERE {others} AND {condition} ORDER BY {order} LIMIT 1"  # noqa: S608
        deleted = self._execute(f"DELETE FROM request WHERE id = ({chosen})", (*key, value))  # noqa: S608
        return deleted.rowcount > 0

    def move_back(self, request: PendingRequest) -> None:
        """Have the requests of its domain, of strangers or of subscribers like this one, wait a turn more."""
        self._execute(
            "UPDATE request SET turn = turn + 1"
            " WHERE domain = ? AND (network IS NULL) = ? AND mode <> 'denied'",
            (request.subscriber.domain, request.is_of_stranger),
        )

    def counts(self, digests: Mapping[str, str], now: float) -> dict[str, int]:
        """How many subscriptions are active, failing and behind, and how many requests are pending."""
        row = self._execute(
            """
            SELECT count(*), (SELECT count(*) FROM request WHERE mode <> 'denied'),
                   count(nullif(failures, 0)), count(nullif(topic.value, digest))
            FROM subscription LEFT JOIN json_each(?) AS topic ON topic.key = subscription.path
            WHERE expires_at > ?
            """,
            (json.dumps(digests), now),
        ).fetchone()
        return dict(zip(("active", "pending", "failing", "behind"), row, strict=True))

    def expired(self, now: float) -> list[Row]:
        """What has ended, and requests that have waited for too long."""
        where = "WHERE expires_at <= ?"
        return [*self.subscriptions(where, now), *self.requests(where, now)]

    def forget_contents(self) -> None:
        """Note that it is unknown what any callback has."""
        self._execute("UPDATE subscription SET digest = ''")
        self._execute("UPDATE request SET digest = ''")


def values_of(row: Row) -> tuple[object, ...]:
    """The values in the order of the table's columns."""
    return (row.id, *row.subscriber, *row[2:])


# ---- Store -------------------------------------------------------------------------------------------------


class Store:
    """Transactions on the file over one connection, one at a time, in any thread.

    The file may come late (locked, full, held by another hub), and may fail or go away while in use. The lock
    of its directory and the connection are held all the time.
    """

    def __init__(self, state_dir: Path):
        """Touches no disk; `keep_open` opens it."""
        self.trouble: str | None = "not open"  # why nothing can be stored, as far as it is known
        self._logged_trouble: str | None = None  # the trouble that was logged last
        self._path = state_dir / STORE_FILE_NAME
        self._held = ExitStack()
        self._connection: sqlite3.Connection | None = None
        self._identity: Identity | None = None  # of what is held, or was held last
        self._lock = threading.Lock()  # one transaction at a time

    def keep_open(self) -> None:
        """Open the store if it is not in place, and log when trouble begins, changes or ends.

        A directory that went away is not made anew: it may come back.
        """
        try:
            if not self._is_in_place():
                self.open()
            if self.trouble:
                with self.transaction() as rows:
                    rows.check()
                self.trouble = None
            # What is read next is read from the file, so that damage shows.
            with self._using() as connection:
                connection.execute("PRAGMA shrink_memory")
        except (HubUnavailable, StoreFault) as fault:
            self.trouble = str(fault)
        if self.trouble and self.trouble != self._logged_trouble:
            log.error("the hub can store no requests: %s", self.trouble)
        elif self._logged_trouble and not self.trouble:
            log.warning("the hub can store requests again")
        self._logged_trouble = self.trouble

    def open(self) -> None:
        """Lock the directory and connect. Raises HubUnavailable if it is unusable, or used by another hub."""
        try:
            with self._lock, ExitStack() as held:
                self._release()
                directory = os.open(self._path.parent, os.O_RDONLY)
                held.callback(os.close, directory)
                # Two hubs on one store would deliver everything twice. The lock ends with the process.
                fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Mode 0600 because of the secrets; SQLite gives its other files the same mode.
                self._path.touch(0o600)
                connection = held.enter_context(closing(connect(self._path)))
                prepare(connection)
                found = identity(self._path)
                if self._identity not in (None, found):
                    # It may be older than what has been sent since.
                    log.warning("the hub's store was replaced: all its subscribers get the content anew")
                    with transaction(connection, durable=True) as rows:
                        rows.forget_contents()
                self._connection, self._identity, self._held = connection, found, held.pop_all()
        except BlockingIOError as error:
            raise HubUnavailable(self._path, f"another hub uses this directory ({error.strerror})") from error
        except (OSError, sqlite3.Error) as error:
            raise HubUnavailable(self._path, str(error)) from error

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[Transaction]:
        """A block `with store.transaction() as rows`; see the function of this name. Raises StoreFault."""
        with self._using() as connection, transaction(connection, durable=durable) as rows:
            yield rows

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone. Raises StoreFault, also in place of sqlite3.Error."""
        if not self._lock.acquire(timeout=LOCK_SECONDS):
            raise StoreFault("busy")
        try:
            if self._connection is None or not self._is_in_place():  # what a removed file takes is lost
                raise StoreFault("there is no store")
            yield self._connection
        except sqlite3.Error as error:
            self.trouble = str(error)
            raise StoreFault(self.trouble) from error
        finally:
            self._lock.release()

    def _is_in_place(self) -> bool:
        """Whether directory and file are those that are held."""
        with suppress(OSError):
            return self._connection is not None and identity(self._path) == self._identity
        return False

    def close(self) -> None:
        """Later transactions raise StoreFault."""
        with self._lock:
            self._release()
        self.trouble = "not open"

    def _release(self) -> None:
        self._connection = None
        self._held.close()


Identity: TypeAlias = tuple[tuple[int, int], ...]


def identity(path: Path) -> Identity:
    """Device and inode of a file, and of its directory. Raises OSError."""
    return tuple((status.st_dev, status.st_ino) for status in (path.stat(), path.parent.stat()))


def connect(path: Path, busy_seconds: float = LOCK_SECONDS) -> sqlite3.Connection:
    """A connection to a file that exists. Raises sqlite3.Error."""
    file = f"{path.absolute().as_uri()}?mode=rw"
    return sqlite3.connect(file, busy_seconds, isolation_level=None, check_same_thread=False, uri=True)


def prepare(connection: sqlite3.Connection) -> None:
    """Create the tables in a new file. Raises sqlite3.Error."""
    connection.execute("PRAGMA journal_mode = WAL")
    if connection.execute("PRAGMA user_version").fetchone() == (0,):
        connection.executescript(SCHEMA)


@contextmanager
def transaction(connection: sqlite3.Connection, *, durable: bool) -> Iterator[Transaction]:
    """Committed when the block ends, rolled back when it raises. Raises sqlite3.Error.

    A commit survives the end of the process. A `durable` one waits for the disk and survives a power cut.
    """
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield Transaction(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some faults of SQLite end it
            connection.execute("ROLLBACK")
        raise


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
    tried_at: float | None
    outcome: str


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
        with closing(sqlite3.connect(database, timeout=LOCK_SECONDS, uri=True)) as connection:
            rows = connection.execute(
                """
                SELECT CASE WHEN expires_at <= ? THEN 'ended' WHEN failures THEN 'failing' ELSE 'active' END,
                       host, network, path, since, expires_at, failures, tried_at, outcome FROM subscription
                UNION ALL SELECT mode, host, network, path, since, NULL, 0, NULL, '' FROM request
                """,
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
        with (
            closing(connect(path, OPERATOR_SECONDS)) as connection,
            transaction(connection, durable=True) as rows,
        ):
            rows.check()
            removed = [row for row in rows.subscriptions() if is_meant(row.subscriber)]
            asking = [row for row in rows.requests("WHERE mode <> 'denied'") if is_meant(row.subscriber)]
            for request in asking:
                rows.delete(request)
            for row in removed:
                rows.delete(row)
                if row.expires_at > now:
                    notice = denial(row.subscriber, "removed by the operator of the hub", now)
                    rows.save(SubscriptionState(), SubscriptionState(None, (notice,)))
    except (OSError, sqlite3.Error, StoreFault) as error:
        raise HubUnavailable(path, str(error)) from error
    whose = [row.subscriber for row in removed] + [row.subscriber for row in asking]
    return list({subscriber.key: subscriber for subscriber in whose}.values())
