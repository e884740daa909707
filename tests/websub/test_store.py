"""The store of the hub: its rows, the order in which they are due, and its errors when the disk fails.

Rows - What is due - Trouble - Coming and going - For the operator
"""

from __future__ import annotations

import os
import re
import resource
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab.hub_lab import FEED, IN_MEMORY, JSON_FEED, limited

from reviewslib.websub.store import (
    STORE_FILE_NAME,
    Store,
    StoreFault,
    list_subscriptions,
    remove_subscriptions,
)
from reviewslib.websub.values import Row, Rows, domain_of, selector

NOW = 1_800_000_000.0


def row(
    mode: str = "active",
    name: str = "a",
    host: str = "s.example",
    path: str = FEED,
    **more: Any,
) -> Row:
    """A row of the callback of this name at a host."""
    url = f"https://{host}/{name}"
    asked = f"https://reviews.example{path}", mode, b"\x00secret", 3600
    usual = {"digest": "old", "network": "192.0.2.1"}
    return Row(
        path, url, url, host, domain_of(host), *asked, NOW, NOW + 60, NOW
    )._replace(**usual | more)


def put(store: Store, *rows: Row) -> None:
    with store.transaction() as transaction:
        for each in rows:
            transaction.save({}, {each.mode: each})


def get(store: Store, of: Row, now: float = NOW) -> Rows:
    with store.transaction() as transaction:
        return transaction.rows_of(of, now)


def opened(directory: Path) -> Store:
    """A store that is open. Raises StoreFault."""
    made = Store(directory)
    made.open()
    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(opened(tmp_path)) as made:
        yield made


# ---- Rows --------------------------------------------------------------------------------------------------


def test_the_id_of_a_replaced_or_deleted_row_is_never_used_again(store: Store) -> None:
    put(store, row("subscribe"), row("unsubscribe"), row("subscribe"))
    with store.transaction() as transaction:
        transaction.save(transaction.rows_of(row(), NOW), {})
    put(store, row())
    assert get(store, row()) == {"active": row(id=4)}


@pytest.mark.parametrize(
    ("now", "modes", "expired"),
    [
        (NOW + 59, {"active", "subscribe"}, ["subscribe"]),
        (NOW + 60, {"subscribe"}, ["active", "subscribe"]),
    ],
)
def test_a_subscription_is_read_until_its_lease_ends(
    store: Store, now: float, modes: set[str], expired: list[str]
) -> None:
    put(store, row(), row("subscribe", expires_at=NOW + 59))
    assert get(store, row(), now).keys() == modes
    with store.transaction() as transaction:
        assert [each.mode for each in transaction.expire(now)] == expired


def test_the_content_of_one_callback_and_topic_is_forgotten(store: Store) -> None:
    put(store, row(), row("subscribe"), row(name="b"), row(path=JSON_FEED))
    with store.transaction() as transaction:
        transaction.forget_content(row())
        assert [each.digest for each in transaction.rows("ORDER BY id")] == [
            "",
            "",
            "old",
            "old",
        ]


def test_counts_concern_subscriptions_to_published_topics(store: Store) -> None:
    active = (
        row(name="a", digest="new"),
        row(name="b", failures=2),
        row(name="c", expires_at=NOW),
    )
    of_another = row(name="d", host="t.example", path=JSON_FEED, network="192.0.2.2")
    put(store, *active, of_another, row("subscribe", "e"), row("denied", "f"))
    with store.transaction() as transaction:
        assert transaction.usage("s.example", "192.0.2.1", NOW) == (3, 2, 2)
        assert transaction.usage("t.example", None, NOW) == (3, 1, 0)
        transaction.expire(NOW)
        assert transaction.counts({FEED: "new"}) == {
            "active": 3,
            "pending": 1,
            "failing": 1,
            "behind": 1,
        }


def waiting(**of_row: int) -> list[Row]:
    """The requests of 20 domains, which fill the table; the row of the first domain is as told."""
    rows = [
        row("subscribe", str(n), f"h.d{n % 20}.example", network=None, turn=n // 20)
        for n in range(1000)
    ]
    return [rows[0]._replace(**of_row), *rows[1:]]


@pytest.mark.parametrize(
    ("of_row", "turn", "evicted"),
    [
        ({}, 48, "980"),  # the oldest of those with the highest turn
        ({}, 49, None),
        ({"failures": 1}, 49, "0"),
        ({"turn": 50, "failures": 1}, 0, "0"),
    ],
)
def test_a_full_table_evicts_the_highest_turn_or_a_failed_request(
    store: Store, of_row: dict[str, int], turn: int, evicted: str | None
) -> None:
    put(store, *waiting(**of_row))
    with store.transaction() as transaction:
        newcomer = row("subscribe", "new", network=None, turn=turn)
        assert transaction.make_room(newcomer) == (evicted is not None)
        left = {each.callback.rpartition("/")[2] for each in transaction.rows()}
    assert {str(number) for number in range(1000)} - left == (
        {evicted} if evicted else set()
    )


# ---- What is due -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("due", "lane"),
    [
        (row(), "delivery"),
        (row(took=2.0), "delivery"),
        (row(took=2.1), "retry"),
        (row(failures=1), "retry"),
        (row(digest=""), "delivery"),
        (row(digest="new"), None),
        (row(path="/gone.xml"), None),
        (row(expires_at=NOW), None),
        (row(due_at=NOW + 1), None),
        (row(due_at=NOW + 101), "delivery"),  # before the clock was set back
        (row("subscribe"), "renewal"),
        (row("unsubscribe"), "renewal"),
        (row("subscribe", network=None), "newcomer"),
        (row("subscribe", due_at=NOW + 1), None),
        (row("subscribe", expires_at=NOW), None),
        (row("denied"), "notice"),
    ],
)
def test_a_due_row_has_a_lane(store: Store, due: Row, lane: str | None) -> None:
    put(store, due)
    with store.transaction() as transaction:
        due_rows = transaction.due({FEED: "new"}, NOW, NOW + 100)
        assert [each.lane for each in due_rows] == ([lane] if lane else [])
        assert [transaction.row(each) for each in due_rows] == (
            [due._replace(id=1)] if lane else []
        )


ORDERS = {"took": st.sampled_from([0.0, 0.9, 1.9, 5.0]), "failures": st.integers(0, 2)}
ORDERS |= {"turn": st.integers(0, 2), "due_at": st.floats(NOW - 2, NOW)}


@given(st.lists(st.fixed_dictionaries(ORDERS), max_size=8))
def test_due_rows_are_in_the_order_of_seconds_failures_turn_and_time(
    orders: list[dict[str, Any]],
) -> None:
    rows = [row(name=str(number), **order) for number, order in enumerate(orders)]
    with (
        TemporaryDirectory(dir=IN_MEMORY) as directory,
        closing(opened(Path(directory))) as store,
    ):
        put(store, *rows)
        with store.transaction() as transaction:
            keys = [due.key for due in transaction.due({FEED: "new"}, NOW, NOW)]
    in_order = sorted(
        rows,
        key=lambda each: (int(each.took), each.failures > 0, each.turn, each.due_at),
    )
    assert keys == [each.key for each in in_order]


# ---- Trouble -----------------------------------------------------------------------------------------------


def test_a_store_that_is_busy_or_not_open_raises_a_fault(
    store: Store, tmp_path: Path
) -> None:
    store.keep_open()
    with (
        store.transaction(),
        pytest.raises(StoreFault, match=r"^busy$"),
        store.transaction(),
    ):
        pass
    assert store.trouble is None
    store.close()
    assert store.trouble == Store(tmp_path).trouble == "not open"
    with pytest.raises(StoreFault), store.transaction():
        pass


def test_damage_is_logged_at_upkeep(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store.keep_open()
    put(store, *(row(name=str(number)) for number in range(500)))
    with closing(sqlite3.connect(tmp_path / STORE_FILE_NAME)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with store.transaction() as transaction:
        assert transaction.expire(NOW) == []
    with (tmp_path / STORE_FILE_NAME).open(
        "r+b"
    ) as file:  # all pages but the first, on a failing disk
        file.seek(4096)
        file.write(b"\xff" * (os.fstat(file.fileno()).st_size - 4096))
    for _ in range(3):
        with pytest.raises(StoreFault), store.transaction() as transaction:
            transaction.expire(NOW)
        store.keep_open()
    assert store.trouble and store.trouble.startswith("damaged: ")
    troubles = "database disk image is malformed", store.trouble
    assert caplog.messages == [
        f"the hub cannot store requests: {trouble}" for trouble in troubles
    ]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b"something else" * 100),
        lambda path: path.mkdir(),
        lambda path: path.parent.rmdir() or path.parent.touch(),
    ],
)
def test_a_fault_names_an_unusable_state_directory(
    tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    path = tmp_path / "state" / STORE_FILE_NAME
    path.parent.mkdir()
    spoil(path)
    with pytest.raises(StoreFault, match=f"^{re.escape(str(path))}: "):
        opened(path.parent)


def test_a_store_of_another_version_is_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / STORE_FILE_NAME)) as other:
        other.execute("PRAGMA user_version = 99")
    another = "made by another version of this program (schema 99)"
    with pytest.raises(StoreFault, match=f": {re.escape(another)}$"):
        remove_subscriptions(tmp_path, selector("s.example"))
    with closing(Store(tmp_path)) as store:
        store.keep_open()
        assert store.trouble == another


def test_a_store_is_for_its_owner_only(store: Store, tmp_path: Path) -> None:
    modes = [stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()]
    assert modes == [0o600] * 3


# ---- Coming and going --------------------------------------------------------------------------------------

Trouble = Callable[[Path], AbstractContextManager[object]]


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Another program writes to the store."""
    with closing(sqlite3.connect(directory / STORE_FILE_NAME)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


@contextmanager
def away(directory: Path) -> Iterator[None]:
    """The directory is missing for a while."""
    directory.rename(f"{directory}.away")
    yield
    Path(f"{directory}.away").rename(directory)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("was_open", "trouble", "reason"),
    [
        (
            False,
            lambda directory: closing(opened(directory)),
            "another hub uses this directory",
        ),
        (False, locked, "locked"),
        (True, locked, "locked"),
        (
            True,
            lambda _: limited(resource.RLIMIT_FSIZE),
            "",
        ),  # files of this process cannot grow
        (True, away, ""),
    ],
)
def test_a_store_in_trouble_says_so_once_until_it_works(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    was_open: bool,
    trouble: Trouble,
    reason: str,
) -> None:
    with closing(opened(tmp_path)) as before:
        put(before, row())
    with closing(Store(tmp_path)) as store:
        if was_open:
            store.keep_open()
        with trouble(tmp_path):
            for _ in range(3):
                with pytest.raises(StoreFault):
                    put(store, row("subscribe"))
                store.keep_open()
                assert store.trouble and reason in store.trouble
        store.keep_open()
        assert store.trouble is None
        put(store, row("subscribe"))
        assert get(store, row()) == {
            "active": row(id=1),
            "subscribe": row("subscribe", id=2),
        }
    begin, end = caplog.messages
    assert begin.startswith("the hub cannot store requests: ") and reason in begin
    assert end == "the hub can store requests again"


def test_a_replaced_store_takes_nothing_until_it_is_locked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state_dir = tmp_path / "state"
    other_dir = tmp_path / "other"
    with closing(Store(state_dir)) as store:
        store.keep_open()
        state_dir.rename(other_dir)
        store.keep_open()
        assert not state_dir.exists()  # it may come back
        state_dir.mkdir()
        with closing(opened(state_dir)) as another:
            put(another, row())
        with pytest.raises(StoreFault):
            put(store, row("subscribe"))
        store.keep_open()
        assert (
            "the hub's store was replaced: all its subscribers get the content anew"
            in caplog.messages
        )
        assert get(store, row()) == {"active": row(id=1, digest="")}, (
            "it may be older than the last delivery"
        )
        with pytest.raises(StoreFault, match="another hub"):
            opened(state_dir)
        opened(other_dir).close()  # nobody holds it any more


# ---- For the operator --------------------------------------------------------------------------------------


def test_listing_is_by_topic_and_host_and_changes_nothing(
    store: Store, tmp_path: Path
) -> None:
    assert list_subscriptions(tmp_path / "elsewhere") == []
    active = [
        row(host="a.example", path=JSON_FEED),
        row(host="a.example"),
        row(host="b.example", failures=1),
    ]
    others = [
        row("denied", host="a.example"),
        row("subscribe", host="c.example", network=None),
    ]
    put(store, *reversed([*active, *others]))
    for close in (lambda: None, store.close):
        close()
        before = sorted(tmp_path.iterdir())
        listed = [each._replace(id=0) for each in list_subscriptions(tmp_path)]
        assert (listed, sorted(tmp_path.iterdir())) == ([*active, *others], before)


def test_the_operator_removes_selected_rows_beside_an_open_store(
    store: Store, tmp_path: Path
) -> None:
    stay = [row(name="c", host="t.example"), row("unsubscribe", "c", "t.example")]
    put(
        store,
        row(),
        *stay,
        row(name="d", expires_at=NOW),
        row("subscribe", "b", network=None),
    )
    removed = remove_subscriptions(tmp_path, selector("s.example"), clock=lambda: NOW)
    assert [each.callback[-1] for each in removed] == ["a", "d", "b"]
    left = [
        (each.callback[-1], each.mode, each.outcome)
        for each in list_subscriptions(tmp_path)
    ]
    notice = ("a", "denied", "removed by the operator of the hub")
    assert left == [("c", "active", ""), notice, ("c", "unsubscribe", "")]
    assert (
        remove_subscriptions(tmp_path, selector("s.example"), clock=lambda: NOW) == []
    )
