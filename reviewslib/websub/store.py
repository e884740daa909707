"""The one SQLite file that keeps the hub's subscriptions and requests.

This module must not know why a row is written or what follows from it (`hub.py` decides that), the content of
a topic, or HTTP. The published topics arrive as digests: `{path: hex SHA-256 of the current content}`.
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
from typing import NamedTuple

from reviewslib.websub.values import Row, Rows, denial

STORE_FILE_NAME = "websub.sqlite3"
NOT_OPEN = "not open"
LOCK_SECONDS = 0.25  # the longest wait for other threads, and then for other processes

log = logging.getLogger(__name__)


class StoreFault(Exception):
    """The store cannot be read or written: full, locked, read-only, damaged, closed, gone, not ours."""


# ---- Statements --------------------------------------------------------------------------------------------

SCHEMA_VERSION = 1
MAX_PENDING = 1000  # requests of strangers
MAX_PENDING_OF_DOMAIN = 50

# The columns are the fields of `Row`. AUTOINCREMENT never reuses an id, so that the late result of a deleted
# row does not apply to a newer row. Because of the index, a request does not scan 10,000 subscriptions.
SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE hub_row (
  {", ".join(Row._fields[:-1])}, id INTEGER PRIMARY KEY AUTOINCREMENT, UNIQUE (path, callback_key, mode));
CREATE INDEX request_domain ON hub_row (domain) WHERE mode <> 'active';
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""

# The due rows in the order of their turns. The first key is the last exchange's duration in whole seconds, so
# that slow callbacks never delay quick ones; the second, whether attempts failed. A subscription whose last
# exchange took more than two seconds is in the lane "retry". A row with `due_at` beyond `latest` was written
# before the clock was set back, and is due, too.
DUE = """
WITH topic (topic_path, current) AS MATERIALIZED (SELECT key, value FROM json_each(:digests))
SELECT CASE WHEN mode = 'denied' THEN 'notice'
            WHEN network IS NULL THEN 'newcomer'
            WHEN mode <> 'active' THEN 'renewal'
            WHEN failures > 0 OR took > 2 THEN 'retry'
            ELSE 'delivery' END, id, path || callback_key, domain, network
FROM hub_row LEFT JOIN topic ON topic_path = path
WHERE expires_at > :now AND (due_at <= :now OR due_at > :latest) AND (mode <> 'active' OR current <> digest)
ORDER BY CAST(took AS INTEGER), failures > 0, turn, due_at, id
"""


class DueRow(NamedTuple):
    """What the schedule needs to know of a due row."""

    lane: str  # "delivery" or "retry" of a subscription; "renewal" or "newcomer" of a request; "notice"
    row_id: int
    key: str  # of the subscriber
    domain: str
    network: str | None  # None for a stranger

    @property
    def limit_keys(self) -> set[str]:
        """The keys under which workers are limited."""
        return {self.domain, self.network or self.domain}


class Transaction:
    """The statements of a transaction, valid until it ends."""

    def __init__(self, connection: sqlite3.Connection):
        self._execute = connection.execute

    def check(self) -> None:
        """Read the whole file and rewrite its version: damage and a full disk show only then.

        Raises StoreFault unless the schema is the one of this program and no page is damaged.
        """
        (version,) = self._execute("PRAGMA user_version").fetchone()
        if version != SCHEMA_VERSION:
            raise StoreFault(
                f"made by another version of this program (schema {version})"
            )
        (fault,) = self._execute("PRAGMA integrity_check(1)").fetchone()
        if fault != "ok":
            raise StoreFault(f"damaged: {' '.join(fault.split())}")
        self._execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def rows(self, where: str = "", *values: object) -> Iterator[Row]:
        """The rows for which an SQL clause holds, read one by one."""
        return map(Row._make, self._execute(f"SELECT * FROM hub_row {where}", values))  # noqa: S608 - ours

    def row(self, due: DueRow) -> Row | None:
        """The present state of a row that was due; None if it is gone."""
        return next(self.rows("WHERE id = ?", due.row_id), None)

    def rows_of(self, subscriber: Row, now: float) -> Rows:
        """All rows of the subscriber of a row, without an expired subscription."""
        where = "WHERE path = ? AND callback_key = ? AND (mode <> 'active' OR expires_at > ?)"
        return {
            row.mode: row
            for row in self.rows(where, subscriber.path, subscriber.callback_key, now)
        }

    def save(self, before: Rows, after: Rows) -> None:
        """Write the difference between two states of a subscriber."""
        for mode, row in before.items():
            if mode not in after:
                self._execute("DELETE FROM hub_row WHERE id = ?", (row.id,))
        for mode, row in after.items():
            if row != before.get(mode):
                statement = f"INSERT OR REPLACE INTO hub_row VALUES ({', '.join('?' * len(row))})"  # noqa: S608
                self._execute(
                    statement, (*row[:-1], row.id or None)
                )  # SQLite assigns an id

    def expire(self, now: float) -> list[Row]:
        """Delete expired rows, and return them."""
        self._execute(
            "PRAGMA shrink_memory"
        )  # so that everything is read from the file, and damage shows
        expired = self._execute(
            "DELETE FROM hub_row WHERE expires_at <= ? RETURNING *", (now,)
        )
        return list(map(Row._make, expired))

    def forget_content(self, subscriber: Row) -> None:
        """Mark the content that a subscriber has as unknown."""
        statement = "UPDATE hub_row SET digest = '' WHERE path = ? AND callback_key = ?"
        self._execute(statement, (subscriber.path, subscriber.callback_key))

    def postpone(self, due: DueRow, due_at: float, digest: str) -> None:
        """Let a row be due later, with the digest of the content that the callback has."""
        self._execute(
            "UPDATE hub_row SET due_at = ?, digest = ? WHERE id = ?",
            (due_at, digest, due.row_id),
        )

    def due(
        self, digests: Mapping[str, str], now: float, latest: float
    ) -> list[DueRow]:
        """The due rows in the order of their turns. By the present clock, no `due_at` is beyond `latest`."""
        values = {"digests": json.dumps(digests), "now": now, "latest": latest}
        return [DueRow(*row[:5]) for row in self._execute(DUE, values)]

    def usage(
        self, domain: str, network: str | None, now: float
    ) -> tuple[int, int, int]:
        """The numbers of active subscriptions: in all, of a domain, and of a network."""
        statement = """
            SELECT count(*), count(*) FILTER (WHERE domain = ?), count(*) FILTER (WHERE network = ?)
            FROM hub_row WHERE mode = 'active' AND expires_at > ?"""
        total, of_domain, of_network = self._execute(
            statement, (domain, network, now)
        ).fetchone()
        return total, of_domain, of_network

    def make_room(self, request: Row) -> bool:
        """Evict another request of a stranger if there is no room; False if none can be evicted.

        A full domain loses its oldest request; a full table the one with the highest turn, or a failed one.
        """
        values = {"domain": request.domain, "turn": request.turn, "key": request.key}
        others = "FROM hub_row WHERE mode <> 'active' AND network IS NULL AND path || callback_key <> :key"
        counts = f"SELECT count(*), count(*) FILTER (WHERE domain = :domain) {others}"
        waiting, of_domain = self._execute(counts, values).fetchone()
        if of_domain >= MAX_PENDING_OF_DOMAIN:
            evicted = "AND domain = :domain ORDER BY id"
        elif waiting >= MAX_PENDING:
            evicted = "AND (turn > :turn OR failures > 0) ORDER BY turn DESC, failures DESC, id"
        else:
            return True
        delete = (
            f"DELETE FROM hub_row WHERE id IN (SELECT id {others} {evicted} LIMIT 1)"  # noqa: S608 - ours
        )
        return self._execute(delete, values).rowcount > 0

    def move_back(self, request: Row) -> None:
        """Move the domain's other requests of the same kind, strangers' or subscribers', back by a turn."""
        same_kind = "mode <> 'active' AND mode <> 'denied' AND domain = ? AND (network IS NULL) = ?"
        values = request.domain, request.is_of_stranger
        self._execute(f"UPDATE hub_row SET turn = turn + 1 WHERE {same_kind}", values)  # noqa: S608

    def counts(self, digests: Mapping[str, str]) -> dict[str, int]:
        """How many subscriptions are active, failing and behind, and how many requests are pending."""
        statement = """
            SELECT count(*) FILTER (WHERE mode = 'active'),
                   count(*) FILTER (WHERE mode IN ('subscribe', 'unsubscribe')),
                   count(*) FILTER (WHERE mode = 'active' AND failures > 0),
                   count(*) FILTER (WHERE mode = 'active' AND topic.value <> digest)
            FROM hub_row LEFT JOIN json_each(?) AS topic ON topic.key = hub_row.path"""
        row = self._execute(statement, (json.dumps(digests),)).fetchone()
        return dict(zip(("active", "pending", "failing", "behind"), row, strict=True))


# ---- Store -------------------------------------------------------------------------------------------------


class Store:
    """Transactions on the file over one connection, one at a time, in any thread.

    The file may be unusable at first (locked, full, held by another hub), and may fail or disappear later.
    The lock of its directory and the connection are held while the file is open.
    """

    def __init__(self, state_dir: Path):
        """Touches no disk; `keep_open` opens the file."""
        self.trouble: str | None = NOT_OPEN  # why nothing can be stored
        self._path = state_dir / STORE_FILE_NAME
        self._held = ExitStack()
        self._connection: sqlite3.Connection | None = None
        self._inodes: tuple[tuple[int, int], ...] | None = (
            None  # of the file opened last, and its directory
        )
        self._lock = threading.Lock()  # one transaction at a time

    def keep_open(self) -> None:
        """Open the store unless the right file is open, and log when trouble begins, changes or ends."""
        try:
            if not self._is_in_place():
                self.open()
            if self.trouble:
                with self.transaction() as checked:
                    checked.check()
            self._report(None)
        except StoreFault as fault:
            self._report(str(fault))

    def _report(self, trouble: str | None) -> None:
        before = self.trouble
        self.trouble = trouble
        if trouble and trouble != before:
            log.error("the hub cannot store requests: %s", trouble)
        elif before not in (None, NOT_OPEN) and not trouble:
            log.warning("the hub can store requests again")

    def open(self) -> None:
        """Lock the directory and connect. Raises StoreFault if it is unusable, or used by another hub.

        A missing directory is created, but not one that disappeared after it was used: it may come back.
        """
        with self._lock, naming(self._path), ExitStack() as held:
            self._connection = None
            self._held.close()
            if self._inodes is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
            directory = os.open(self._path.parent, os.O_RDONLY)
            held.callback(os.close, directory)
            # Two hubs on one store would deliver everything twice. The lock ends with the process.
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Mode 0600 because of the secrets; SQLite gives its other files the same mode.
            self._path.touch(0o600)
            connection = held.enter_context(connected(self._path, LOCK_SECONDS))
            connection.execute("PRAGMA journal_mode = WAL")
            if connection.execute("PRAGMA user_version").fetchone() == (0,):
                connection.executescript(SCHEMA)
            current = inodes(self._path)
            if self._inodes not in (
                None,
                current,
            ):  # its digests may be those of older content
                log.warning(
                    "the hub's store was replaced: all its subscribers get the content anew"
                )
                connection.execute("UPDATE hub_row SET digest = ''")
            self._connection = connection
            self._inodes = current
            self._held = held.pop_all()

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[Transaction]:
        """The context of a transaction; see the function of this name. Raises StoreFault."""
        if not self._lock.acquire(timeout=LOCK_SECONDS):
            raise StoreFault(self.trouble or "busy")
        try:
            if (
                self._connection is None or not self._is_in_place()
            ):  # a write to a removed file would be lost
                raise StoreFault("there is no store")
            with transaction(self._connection, durable=durable) as begun:
                yield begun
        except sqlite3.Error as error:
            if self.trouble is None:
                self._report(str(error))
            raise StoreFault(str(error)) from error
        finally:
            self._lock.release()

    def _is_in_place(self) -> bool:
        """Whether the directory and the file are still those that were opened."""
        with suppress(OSError):
            return self._connection is not None and inodes(self._path) == self._inodes
        return False

    def close(self) -> None:
        """Later transactions raise StoreFault."""
        with self._lock:
            self._connection = None
            self.trouble = NOT_OPEN
            self._held.close()


def inodes(path: Path) -> tuple[tuple[int, int], ...]:
    """The device and the inode of a file, and those of its directory. Raises OSError."""
    return tuple(
        (status.st_dev, status.st_ino) for status in (path.stat(), path.parent.stat())
    )


def connected(path: Path, seconds: float) -> closing[sqlite3.Connection]:
    """The context of a connection to a file that exists. Waits so long for locks. Raises sqlite3.Error."""
    file = f"{path.absolute().as_uri()}?mode=rw"
    return closing(
        sqlite3.connect(
            file, seconds, isolation_level=None, check_same_thread=False, uri=True
        )
    )


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn every error of the file into a StoreFault that names the file."""
    try:
        yield
    except BlockingIOError as error:
        raise StoreFault(
            f"{path}: another hub uses this directory ({error.strerror})"
        ) from error
    except (OSError, sqlite3.Error, StoreFault) as error:
        raise StoreFault(f"{path}: {error}") from error


@contextmanager
def transaction(
    connection: sqlite3.Connection, *, durable: bool
) -> Iterator[Transaction]:
    """A transaction: committed when the block ends, rolled back when it raises. Raises sqlite3.Error.

    A commit survives the end of the process. A `durable` one waits for the disk and survives a power cut.
    """
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
    with connection:  # commits, or rolls back
        connection.execute("BEGIN IMMEDIATE")
        yield Transaction(connection)


# ---- For the operator, also while the daemon runs ----------------------------------------------------------

OPERATOR_SECONDS = 10.0  # the longest wait of a command for the daemon


def list_subscriptions(state_dir: Path) -> list[Row]:
    """All subscriptions, then all other rows, by topic and host; none without a store. Raises StoreFault."""
    path = state_dir / STORE_FILE_NAME
    with naming(path):
        if not path.exists():
            return []
        with connected(path, OPERATOR_SECONDS) as connection:
            return list(
                Transaction(connection).rows(
                    "ORDER BY mode <> 'active', path, host, id"
                )
            )


def remove_subscriptions(
    state_dir: Path,
    is_selected: Callable[[str], bool],
    *,
    clock: Callable[[], float] = time.time,
) -> list[Row]:
    """Remove the subscriptions and requests of the selected hosts, and leave a notice for each subscription.

    Returns a row of each subscriber. Raises StoreFault.
    """
    path = state_dir / STORE_FILE_NAME
    now = clock()
    with naming(path):
        path.stat()  # the error of SQLite would not say that the file is missing
        with (
            connected(path, OPERATOR_SECONDS) as connection,
            transaction(connection, durable=True) as writer,
        ):
            writer.check()
            removed = [
                row
                for row in writer.rows("WHERE mode <> 'denied'")
                if is_selected(row.host)
            ]
            for row in removed:
                is_active = row.mode == "active" and row.expires_at > now
                notice = denial(row, "removed by the operator of the hub", now)
                writer.save({row.mode: row}, {"denied": notice} if is_active else {})
    return list({row.key: row for row in removed}.values())
