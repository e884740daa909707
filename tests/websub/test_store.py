"""The store of the hub: its rows, the order in which they are due, and its errors when the disk fails.

Rows - What is due - Trouble - Opening - Coming and going - For the operator
"""

from __future__ import annotations

import os
import re
import resource
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviewslib.websub.store import Store, StoreFault, list_subscriptions, remove_subscriptions
from reviewslib.websub.values import Row, Rows, domain_of, selector

NOW, FILE_NAME = 1_800_000_000.0, "websub.sqlite3"
FEED, JSON_FEED = "/feed.xml", "/api/feed.json"


def subscriber(
    name: str = "a", host: str = "s.example", path: str = FEED, network: str | None = "192.0.2.1"
) -> Row:
    """A request of a subscriber."""
    url = f"https://{host}/{name}"
    asked = f"https://reviews.example{path}", "subscribe", b"\x00secret", 3600
    return Row(path, url, url, host, domain_of(host), *asked, NOW, NOW + 60, NOW, "old", network)


def requested(of: Row, mode: str = "subscribe", **more: Any) -> Row:
    return of._replace(mode=mode, **more)


def subscribed(of: Row, **more: Any) -> Row:
    row = of._replace(mode="active", secret=None, took=0.1, tried_at=NOW, outcome="HTTP 200")
    return row._replace(**more)


def put(store: Store, *rows: Row) -> None:
    with store.transaction() as transaction:
        for row in rows:
            transaction.save({}, {row.mode: row})


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
    ann = subscriber("ann")
    put(store, requested(ann), requested(ann, "unsubscribe"), requested(ann))
    with store.transaction() as transaction:
        transaction.save(transaction.rows_of(ann, NOW), {})
    put(store, subscribed(ann))
    assert get(store, ann) == {"active": subscribed(ann, id=4)}


def test_a_subscription_is_read_until_its_lease_ends_and_then_deleted(store: Store) -> None:
    ann = subscriber("ann")
    put(store, subscribed(ann), requested(ann, expires_at=NOW + 59))
    assert "active" in get(store, ann, NOW + 59)
    assert "active" not in get(store, ann, NOW + 60)
    with store.transaction() as transaction:
        assert [row.mode for row in transaction.expire(NOW + 59)] == ["subscribe"]
        assert [row.mode for row in transaction.expire(NOW + 60)] == ["active"]
    assert get(store, ann) == {}


def test_a_failed_transaction_writes_nothing(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.transaction() as transaction:
        transaction.save({}, {"active": subscribed(subscriber())})
        raise ZeroDivisionError
    assert get(store, subscriber()) == {}


def test_a_claim_concerns_all_rows_of_one_callback_and_topic(store: Store) -> None:
    ann, bob = subscriber("ann"), subscriber("bob")
    put(store, subscribed(ann), requested(ann), subscribed(bob), requested(bob))
    with store.transaction() as transaction:
        transaction.forget_content(subscribed(ann))
    assert [row.digest for of in (ann, bob) for row in get(store, of).values()] == ["", "", "old", "old"]


def test_counts_concern_subscriptions_to_published_topics(store: Store) -> None:
    put(
        store,
        subscribed(subscriber("a"), digest="new"),
        subscribed(subscriber("b"), failures=2),
        subscribed(subscriber("c"), expires_at=NOW),
        subscribed(subscriber("d", "t.example", JSON_FEED, "192.0.2.2")),
        requested(subscriber("e")),
        requested(subscriber("f"), "denied"),
    )
    with store.transaction() as transaction:
        assert transaction.usage("s.example", "192.0.2.1", NOW) == (3, 2, 2)
        assert transaction.usage("t.example", None, NOW) == (3, 1, 0)
        transaction.expire(NOW)
        assert transaction.counts({FEED: "new"}) == {"active": 3, "pending": 1, "failing": 1, "behind": 1}


# ---- What is due -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("row", "lane"), [
    (subscribed(subscriber()), "delivery"),
    (subscribed(subscriber(), took=2.0), "delivery"),
    (subscribed(subscriber(), took=2.1), "retry"),
    (subscribed(subscriber(), failures=1), "retry"),
    (subscribed(subscriber(), digest=""), "delivery"),
    (subscribed(subscriber(), digest="new"), None),
    (subscribed(subscriber(path="/gone.xml")), None),
    (subscribed(subscriber(), expires_at=NOW), None),
    (subscribed(subscriber(), due_at=NOW + 1), None),
    (subscribed(subscriber(), due_at=NOW + 101), "delivery"),  # before the clock was set back
    (requested(subscriber()), "renewal"),
    (requested(subscriber(), "unsubscribe"), "renewal"),
    (requested(subscriber(network=None)), "newcomer"),
    (requested(subscriber(network=None), due_at=NOW + 1), None),
    (requested(subscriber(network=None), expires_at=NOW), None),
    (requested(subscriber(), "denied"), "notice"),
])  # fmt: skip
def test_a_due_row_has_a_lane(store: Store, row: Row, lane: str | None) -> None:
    put(store, row)
    with store.transaction() as transaction:
        due_rows = transaction.due({FEED: "new"}, NOW, NOW + 100)
        assert [due.lane for due in due_rows] == ([lane] if lane else [])
        assert [transaction.row(due) for due in due_rows] == ([row._replace(id=1)] if lane else [])


ORDERS = {"took": st.sampled_from([0.0, 0.9, 1.9, 5.0]), "failures": st.integers(0, 2)}
ORDERS |= {"turn": st.integers(0, 2), "due_at": st.floats(NOW - 2, NOW)}


@given(st.lists(st.fixed_dictionaries(ORDERS), max_size=8))
def test_due_rows_are_in_the_order_of_seconds_failures_turn_and_time(orders: list[dict[str, Any]]) -> None:
    rows = [subscribed(subscriber(str(number)), **order) for number, order in enumerate(orders)]
    with TemporaryDirectory() as directory, closing(opened(Path(directory))) as store:
        put(store, *rows)
        with store.transaction() as transaction:
            keys = [due.key for due in transaction.due({FEED: "new"}, NOW, NOW)]
    in_order = sorted(rows, key=lambda row: (int(row.took), row.failures > 0, row.turn, row.due_at))
    assert keys == [row.key for row in in_order]


# ---- Trouble -----------------------------------------------------------------------------------------------


def test_a_transaction_gives_up_soon_on_a_busy_store_without_trouble(store: Store) -> None:
    def wait() -> None:
        with pytest.raises(StoreFault, match=r"^busy$"):
            put(store, requested(subscriber()))
        ended.append(True)

    store.keep_open()
    ended: list[bool] = []
    with store.transaction():
        other = threading.Thread(target=wait)
        other.start()
        other.join()
    assert (ended, store.trouble) == ([True], None)


def test_a_store_that_is_not_open_raises_a_fault(store: Store, tmp_path: Path) -> None:
    store.close()
    assert store.trouble == Store(tmp_path).trouble == "not open"
    with pytest.raises(StoreFault), store.transaction():
        pass


def test_damage_is_logged_at_upkeep(store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store.keep_open()
    put(store, *(subscribed(subscriber(str(number))) for number in range(500)))
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with store.transaction() as transaction:
        assert transaction.expire(NOW) == []
    with (tmp_path / FILE_NAME).open("r+b") as file:  # all pages but the first, on a failing disk
        file.seek(4096)
        file.write(b"\xff" * (os.fstat(file.fileno()).st_size - 4096))
    for _ in range(3):
        with pytest.raises(StoreFault), store.transaction() as transaction:
            transaction.expire(NOW)
        assert caplog.messages[0] == "the hub cannot store requests: database disk image is malformed"
        store.keep_open()
    assert store.trouble and store.trouble.startswith("damaged: ")
    assert caplog.messages[1:] == [f"the hub cannot store requests: {store.trouble}"]


# ---- Opening -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", ["not a database", "a directory", "no directory"])
def test_a_fault_names_an_unusable_state_directory(tmp_path: Path, trouble: str) -> None:
    path = tmp_path / FILE_NAME
    match trouble:
        case "not a database":
            path.write_bytes(b"something else" * 100)
            with pytest.raises(StoreFault, match="not a database"):
                list_subscriptions(tmp_path)
        case "a directory":
            path.mkdir()
        case "no directory":
            (tmp_path / "file").touch()
            path = tmp_path / "file" / FILE_NAME
    with pytest.raises(StoreFault, match=f"^{re.escape(str(path))}: "):
        opened(path.parent)


def test_a_store_of_another_version_is_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as other:
        other.execute("PRAGMA user_version = 99")
    another = "made by another version of this program (schema 99)"
    with pytest.raises(StoreFault, match=f": {re.escape(another)}$"):
        remove_subscriptions(tmp_path, selector("s.example"))
    with closing(Store(tmp_path)) as store:
        store.keep_open()
        assert store.trouble == another


def test_a_directory_belongs_to_one_store_at_a_time(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreFault, match=r": another hub uses this directory \(.+ unavailable\)$"):
        opened(tmp_path)
    store.close()
    opened(tmp_path).close()


def test_a_store_is_for_its_owner_only(store: Store, tmp_path: Path) -> None:
    files = list(tmp_path.iterdir())
    assert len(files) == 3
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


# ---- Coming and going --------------------------------------------------------------------------------------


Trouble = Callable[[Path], AbstractContextManager[object]]


def held(directory: Path) -> AbstractContextManager[object]:
    """Another hub locks the directory."""
    return closing(opened(directory))


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Another program writes to the store."""
    with closing(sqlite3.connect(directory / FILE_NAME)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


@contextmanager
def away(directory: Path) -> Iterator[None]:
    """The directory is missing for a while."""
    directory.rename(f"{directory}.away")
    yield
    Path(f"{directory}.away").rename(directory)


@contextmanager
def full(_: Path) -> Iterator[None]:
    """Files of this process cannot grow."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.slow
@pytest.mark.parametrize(("was_open", "trouble", "reason"), [
    (False, held, "another hub uses this directory"),
    (False, locked, "locked"),
    (True, locked, "locked"),
    (True, full, ""),
    (True, away, ""),
])  # fmt: skip
def test_a_store_in_trouble_says_so_once_until_it_works(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, was_open: bool, trouble: Trouble, reason: str
) -> None:
    with closing(opened(tmp_path)) as before:
        put(before, subscribed(subscriber()))
    with closing(Store(tmp_path)) as store:
        if was_open:
            store.keep_open()
        with trouble(tmp_path):
            for _ in range(3):
                with pytest.raises(StoreFault):
                    put(store, requested(subscriber("b")))
                store.keep_open()
                assert store.trouble and reason in store.trouble
        store.keep_open()
        assert store.trouble is None
        put(store, requested(subscriber("b")))
        assert get(store, subscriber())["active"] == subscribed(subscriber(), id=1)
    begin, end = caplog.messages
    assert begin.startswith("the hub cannot store requests: ") and reason in begin
    assert end == "the hub can store requests again"


def test_a_replaced_store_takes_nothing_until_it_is_locked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state_dir, other_dir = tmp_path / "state", tmp_path / "other"
    state_dir.mkdir()
    with closing(Store(state_dir)) as store:
        store.keep_open()
        put(store, requested(subscriber()))
        state_dir.rename(other_dir)
        store.keep_open()
        assert not state_dir.exists()  # it may come back
        state_dir.mkdir()
        with closing(opened(state_dir)) as another:
            put(another, subscribed(subscriber("b")))
        with pytest.raises(StoreFault):
            put(store, requested(subscriber("c")))
        store.keep_open()
        assert get(store, subscriber()) == {}
        # Its digests may be older than the last delivery.
        assert "the hub's store was replaced: all its subscribers get the content anew" in caplog.messages
        assert get(store, subscriber("b"))["active"] == subscribed(subscriber("b"), id=1, digest="")
        with pytest.raises(StoreFault, match="another hub"):
            opened(state_dir)
        opened(other_dir).close()  # nobody holds it any more


def test_a_store_without_its_file_takes_nothing_until_a_new_one_is_made(store: Store, tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).unlink()
    with pytest.raises(StoreFault):
        put(store, requested(subscriber()))
    store.keep_open()
    put(store, requested(subscriber()))


# ---- For the operator --------------------------------------------------------------------------------------


def test_listing_is_by_topic_and_host_and_changes_nothing(store: Store, tmp_path: Path) -> None:
    assert list_subscriptions(tmp_path / "elsewhere") == []
    assert not (tmp_path / "elsewhere").exists()
    put(
        store,
        requested(subscriber(host="c.example", network=None)),
        requested(subscriber(host="a.example"), "denied"),
        subscribed(subscriber(host="b.example"), failures=1),
        subscribed(subscriber(host="a.example")),
        subscribed(subscriber(host="a.example", path=JSON_FEED)),
    )
    rows = list_subscriptions(tmp_path)
    listed = [(row.mode, row.path, row.host[0]) for row in rows]
    active = [("active", JSON_FEED, "a"), ("active", FEED, "a"), ("active", FEED, "b")]
    assert listed == [*active, ("denied", FEED, "a"), ("subscribe", FEED, "c")]
    store.close()
    before = sorted(tmp_path.iterdir())
    assert (list_subscriptions(tmp_path), sorted(tmp_path.iterdir())) == (rows, before)


def test_the_operator_removes_selected_rows_beside_an_open_store(store: Store, tmp_path: Path) -> None:
    stays, ended = subscriber("c", "t.example"), subscriber("d")
    put(
        store,
        subscribed(subscriber("a")),
        subscribed(stays),
        subscribed(ended, expires_at=NOW),
        requested(subscriber("b", network=None)),
        requested(stays, "unsubscribe"),
    )
    removed = remove_subscriptions(tmp_path, selector("s.example"), clock=lambda: NOW)
    assert [row.callback[-1] for row in removed] == ["a", "d", "b"]
    with store.transaction() as transaction:
        rows = list(transaction.rows("ORDER BY id"))
    left = [(row.callback[-1], row.mode, row.outcome) for row in rows]
    notice = ("a", "denied", "removed by the operator of the hub")
    assert left == [("c", "active", "HTTP 200"), ("c", "unsubscribe", ""), notice]
    assert remove_subscriptions(tmp_path, selector("s.example"), clock=lambda: NOW) == []


def test_a_removal_needs_a_store(tmp_path: Path) -> None:
    with pytest.raises(StoreFault, match="No such file"):
        remove_subscriptions(tmp_path, selector("s.example"))
    assert list(tmp_path.iterdir()) == []
