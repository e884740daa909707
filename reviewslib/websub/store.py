"""The one SQLite file that keeps subscriptions, requests and notices; all SQL is here.

This module must not know why a row is written or what follows from it (`transitions`
decides that), the content of a topic, or HTTP. The published topics arrive as digests:
`{path: hex SHA-256 of the content}`.

Sections: statements - store - for the operator.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from reviewslib.websub.order import DueRow
from reviewslib.websub.rows import SUBSCRIPTION, Row, Rows, denial

STORE_FILE_NAME = "websub.sqlite3"
NOT_OPEN = "not open"
# The longest wait for other threads of this process. A quarter of a second refused 2 of
# 500 forms that came at once.
THREADS_LOCK_SECONDS = 2.0
# The longest wait for another process: a backup, or the operator's command.
LOCK_SECONDS = 0.25

log = logging.getLogger(__name__)


class StoreFault(Exception):
    """The store cannot be read or written.

    It is full, locked, read-only, damaged, closed, gone, or not ours.
    """


# ---- Statements ----

# A changed schema has a new number: `test_store` pins both.
SCHEMA_VERSION = 2

# The columns are the fields of `Row`. AUTOINCREMENT never reuses an id, so that the
# late result of a deleted row does not apply to a newer row. The first index finds the
# rows of a pair, the second counts subscriptions without reading them.
SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE hub_row (
  {", ".join(Row._fields[:-1])}, id INTEGER PRIMARY KEY AUTOINCREMENT);
CREATE INDEX pair ON hub_row (path, callback_key);
CREATE INDEX subscription ON hub_row (id, expires_at) WHERE mode = 'active';
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""

# What is put into SQL here are names of columns, never values.
PLACES = ", ".join("?" * len(Row._fields))
INSERT = f"INSERT INTO hub_row VALUES ({PLACES})"  # noqa: S608
CHANGED = " = ?, ".join(Row._fields[:-1])
UPDATE = f"UPDATE hub_row SET {CHANGED} = ? WHERE id = ?"  # noqa: S608

# A row whose `due_at` is beyond `latest` was written before the clock was set back, and
# is due, too. The subscription of a topic that is not published waits for it.
DUE = """
WITH topic (topic_path, current) AS MATERIALIZED (
       SELECT key, value FROM json_each(:digests))
SELECT id, due_at, took, mode = 'active',
       EXISTS (SELECT 1 FROM hub_row AS other
               WHERE hub_row.mode IN ('subscribe', 'unsubscribe')
                 AND other.path = hub_row.path
                 AND other.callback_key = hub_row.callback_key
                 AND other.mode = 'active' AND other.expires_at > :now)
FROM hub_row LEFT JOIN topic ON topic_path = path
WHERE expires_at > :now AND (due_at <= :now OR due_at > :latest)
  AND (mode <> 'active' OR current <> digest)
"""

# Beyond the most that may wait, those go that failed most often, then the oldest.
EXCESS = """
DELETE FROM hub_row WHERE id IN (
  SELECT id FROM hub_row WHERE mode <> 'active'
  ORDER BY failures DESC, id
  LIMIT max(0, (SELECT count(*) FROM hub_row WHERE mode <> 'active') - ?))
RETURNING *
"""


class Transaction:
    """The statements of a transaction, valid until it ends."""

    def __init__(self, connection: sqlite3.Connection):
        self._execute = connection.execute

    def check(self) -> None:
        """Read the whole file and rewrite its version: damage or a full disk shows.

        Raises StoreFault if a page is damaged, or the schema is another program's.
        """
        self.check_version()
        (fault,) = self._execute("PRAGMA integrity_check(1)").fetchone()
        if fault != "ok":
            raise StoreFault(f"damaged: {' '.join(fault.split())}")
        self._execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def check_version(self) -> None:
        """Raises StoreFault unless the schema is the one of this program."""
        (version,) = self._execute("PRAGMA user_version").fetchone()
        if version != SCHEMA_VERSION:
            raise StoreFault(
                f"made by another version of this program (schema {version})"
            )

    # ---- Rows ----

    def rows(self, where: str = "", *values: object) -> Iterator[Row]:
        """The rows for which an SQL clause of ours holds, read one by one."""
        found = self._execute(f"SELECT * FROM hub_row {where}", values)  # noqa: S608
        return map(Row._make, found)

    def row(self, id: int) -> Row | None:
        """The present state of a row; None if it is gone."""
        return next(self.rows("WHERE id = ?", id), None)

    def rows_of(self, pair: Row) -> Rows:
        """All rows of the pair of a row, expired ones included."""
        where = "WHERE path = ? AND callback_key = ?"
        return tuple(self.rows(where, pair.path, pair.callback_key))

    def save(self, before: Rows, after: Rows) -> None:
        """Write the difference between two states of the same rows."""
        stored = {row.id: row for row in before}
        kept = {row.id for row in after}
        for id in stored.keys() - kept:
            self._execute("DELETE FROM hub_row WHERE id = ?", (id,))
        for row in after:
            if row.id not in stored:
                # SQLite assigns an id in place of NULL.
                self._execute(INSERT, (*row[:-1], None))
            elif row != stored[row.id]:
                self._execute(UPDATE, row)

    def forget_content(self, pair: Row) -> None:
        """Mark what the callback of a pair has as unknown, in all its rows."""
        statement = "UPDATE hub_row SET digest = '' WHERE path = ? AND callback_key = ?"
        self._execute(statement, (pair.path, pair.callback_key))

    # ---- What is due, and what is not ----

    def due(
        self, digests: Mapping[str, str], now: float, latest: float
    ) -> list[DueRow]:
        """The due rows. By the present clock, no `due_at` is beyond `latest`."""
        values = {"digests": json.dumps(digests), "now": now, "latest": latest}
        return list(map(DueRow._make, self._execute(DUE, values)))

    def expire(self, now: float) -> list[Row]:
        """Delete expired rows, and return them."""
        # So that everything is read from the file, and damage shows.
        self._execute("PRAGMA shrink_memory")
        expired = self._execute(
            "DELETE FROM hub_row WHERE expires_at <= ? RETURNING *", (now,)
        )
        return list(map(Row._make, expired))

    def remove_excess(self, most_waiting: int) -> list[Row]:
        """Delete the requests and notices beyond a number, and return them."""
        return list(map(Row._make, self._execute(EXCESS, (most_waiting,))))

    # ---- Places ----

    def count_subscriptions(self, now: float) -> int:
        statement = (
            "SELECT count(*) FROM hub_row WHERE mode = 'active' AND expires_at > ?"
        )
        (count,) = self._execute(statement, (now,)).fetchone()
        return int(count)

    def older_subscriptions(self, request: Row, now: float) -> int:
        """The number of subscriptions that are older than that of the request's pair.

        If the pair has none, all are older.
        """
        statement = """
            SELECT count(*) FROM hub_row WHERE mode = 'active' AND expires_at > :now
              AND id < ifnull((SELECT min(id) FROM hub_row
                               WHERE path = :path AND callback_key = :callback_key
                                 AND mode = 'active' AND expires_at > :now),
                              :every_id)"""
        values = {
            "now": now,
            "path": request.path,
            "callback_key": request.callback_key,
            "every_id": sys.maxsize,
        }
        (count,) = self._execute(statement, values).fetchone()
        return int(count)

    def failing_subscription(self, older: int, now: float) -> Row | None:
        """Of the failing subscriptions after so many older ones, the one to give up.

        The one that failed most often, then the youngest.
        """
        where = """
            WHERE mode = 'active' AND expires_at > ? AND failures > 0
              AND id >= (SELECT id FROM hub_row WHERE mode = 'active' AND expires_at > ?
                         ORDER BY id LIMIT 1 OFFSET ?)
            ORDER BY failures DESC, id DESC LIMIT 1"""
        return next(self.rows(where, now, now, older), None)

    # ---- Counts ----

    def counts(self, digests: Mapping[str, str]) -> dict[str, int]:
        """Subscriptions that are active, failing and behind, and pending requests."""
        statement = """
            SELECT count(*) FILTER (WHERE mode = 'active'),
                   count(*) FILTER (WHERE mode IN ('subscribe', 'unsubscribe')),
                   count(*) FILTER (WHERE mode = 'active' AND failures > 0),
                   count(*) FILTER (WHERE mode = 'active' AND topic.value <> digest)
            FROM hub_row LEFT JOIN json_each(?) AS topic ON topic.key = hub_row.path"""
        row = self._execute(statement, (json.dumps(digests),)).fetchone()
        return dict(zip(("active", "pending", "failing", "behind"), row, strict=True))


# ---- Store ----


class Store:
    """Transactions on the file over one connection, one at a time, in any thread.

    The file may be unusable at first (locked, full, held by another hub), and may fail
    or disappear later. The lock of its directory and the connection are held while the
    file is open.
    """

    def __init__(self, state_dir: Path):
        """Touches no disk; `keep_open` opens the file."""
        # Why nothing can be stored.
        self.trouble: str | None = NOT_OPEN
        self._path = state_dir / STORE_FILE_NAME
        self._held = ExitStack()
        self._connection: sqlite3.Connection | None = None
        # Of the file opened last, and its directory.
        self._inodes: tuple[tuple[int, int], ...] | None = None
        # One transaction at a time.
        self._lock = threading.Lock()

    def keep_open(self) -> None:
        """Open the store unless the right file is open.

        Logs when trouble begins, changes or ends.
        """
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
        """Lock the directory and connect.

        A missing directory is created, but not one that disappeared after it was used:
        it may come back. Raises StoreFault if it is unusable, or used by another hub.
        """
        with self._lock, naming(self._path), ExitStack() as held:
            self._let_go()
            self._take_file(held)
            connection = held.enter_context(connected(self._path, LOCK_SECONDS))
            prepare(connection)
            self._note_replacement(connection)
            self._connection = connection
            self._held = held.pop_all()

    def _take_file(self, held: ExitStack) -> None:
        """Lock the directory until `held` is closed, and make a missing file."""
        if self._inodes is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        lock_directory(self._path.parent, held)
        # Only we may read the secrets; SQLite gives its other files the same mode.
        self._path.touch(0o600)

    def _let_go(self) -> None:
        """Close the file, and unlock its directory."""
        self._connection = None
        self._held.close()

    def _note_replacement(self, connection: sqlite3.Connection) -> None:
        """Remember which file is open.

        Another one may have the digests of older content.
        """
        before = self._inodes
        current = inodes(self._path)
        if before not in (None, current):
            log.warning(
                "the hub's store was replaced: all its subscribers get the content anew"
            )
            connection.execute("UPDATE hub_row SET digest = ''")
        self._inodes = current

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[Transaction]:
        """A transaction, as of `transaction_on`. Raises StoreFault."""
        if not self._lock.acquire(timeout=THREADS_LOCK_SECONDS):
            raise StoreFault(self.trouble or "busy")
        try:
            # A write to a removed file would be lost.
            if self._connection is None or not self._is_in_place():
                raise StoreFault("there is no store")
            with transaction_on(self._connection, durable=durable) as begun:
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
            self._let_go()
            self.trouble = NOT_OPEN


def lock_directory(directory: Path, held: ExitStack) -> None:
    """Lock a directory until `held` is closed. Raises OSError.

    Two hubs on one store would deliver everything twice. The lock ends with the
    process.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    held.callback(os.close, descriptor)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def inodes(path: Path) -> tuple[tuple[int, int], ...]:
    """Device and inode of a file, and those of its directory. Raises OSError."""
    return tuple(
        (status.st_dev, status.st_ino) for status in (path.stat(), path.parent.stat())
    )


def connected(path: Path, seconds: float) -> closing[sqlite3.Connection]:
    """The context of a connection to a file that exists, which waits so long for locks.

    Raises sqlite3.Error.
    """
    file = f"{path.absolute().as_uri()}?mode=rw"
    return closing(
        sqlite3.connect(
            file,
            timeout=seconds,
            isolation_level=None,
            check_same_thread=False,
            uri=True,
        )
    )


def prepare(connection: sqlite3.Connection) -> None:
    """Give a new file its tables. Raises StoreFault for a file of another version."""
    connection.execute("PRAGMA journal_mode = WAL")
    if connection.execute("PRAGMA user_version").fetchone() == (0,):
        connection.executescript(SCHEMA)
    # Before any row is read: those of another version have other columns.
    Transaction(connection).check_version()


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn every error of the file into a StoreFault that names the file."""
    try:
        yield
    except BlockingIOError as error:
        raise StoreFault(
            f"{path}: another hub uses this directory ({error.strerror})"
        ) from error
    except OSError as error:
        raise StoreFault(f"{path}: {error.strerror or error}") from error
    except (sqlite3.Error, StoreFault) as error:
        raise StoreFault(f"{path}: {error}") from error


@contextmanager
def transaction_on(
    connection: sqlite3.Connection, *, durable: bool
) -> Iterator[Transaction]:
    """A transaction: committed when the block ends, rolled back when it raises.

    A commit survives the end of the process. A `durable` one waits for the disk and
    survives a power cut. Raises sqlite3.Error.
    """
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
    # Commits, or rolls back.
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        yield Transaction(connection)


# ---- For the operator: also while the daemon runs ----

# The longest wait of a command for the daemon.
OPERATOR_SECONDS = 10.0


def list_rows(state_dir: Path) -> list[Row]:
    """All subscriptions, then all other rows, by topic and host; none without a store.

    Raises StoreFault.
    """
    path = state_dir / STORE_FILE_NAME
    order = "ORDER BY mode <> 'active', path, host, id"
    with naming(path):
        if not path.exists():
            return []
        with connected(path, OPERATOR_SECONDS) as connection:
            reader = Transaction(connection)
            reader.check_version()
            return list(reader.rows(order))


def remove_subscriptions(
    state_dir: Path,
    is_selected: Callable[[str], bool],
    *,
    clock: Callable[[], float] = time.time,
) -> list[Row]:
    """Remove the subscriptions and requests of the selected hosts.

    Leaves a notice for each subscription. Returns a row of each pair. Raises
    StoreFault.
    """
    path = state_dir / STORE_FILE_NAME
    now = clock()
    with naming(path):
        # SQLite would make a store, or not say that there is none.
        if not path.exists():
            raise StoreFault("there is no store of subscriptions; see --state-dir")
        with (
            connected(path, OPERATOR_SECONDS) as connection,
            transaction_on(connection, durable=True) as writer,
        ):
            writer.check()
            rows = writer.rows("WHERE mode <> 'denied'")
            removed = tuple(row for row in rows if is_selected(row.host))
            writer.save(removed, notices_of_removal(removed, now))
    by_pair = {(row.path, row.callback_key): row for row in removed}
    return list(by_pair.values())


def notices_of_removal(removed: Rows, now: float) -> Rows:
    """The notices to those whom the operator has removed."""
    reason = "removed by the operator of the hub"
    return tuple(
        denial(row, reason, now)
        for row in removed
        if row.mode == SUBSCRIPTION and row.expires_at > now
    )
