"""The store keeps what it was told, finds what is due, and says in one line what ails it.

Sections: rows - what is due - trouble - coming and going - for the operator.
"""

from __future__ import annotations

import hashlib
import os
import re
import resource
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from lab.hub_values import FEED, JSON_FEED
from lab.tools import limited

from reviewslib.websub.callback_urls import selector
from reviewslib.websub.rows import Row, Rows
from reviewslib.websub.store import (
    SCHEMA,
    SCHEMA_VERSION,
    STORE_FILE_NAME,
    Store,
    StoreFault,
    list_rows,
    remove_subscriptions,
)

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
    usual = Row(
        path=path,
        callback_key=url,
        callback=url,
        host=host,
        topic_url=f"https://reviews.example{path}",
        mode=mode,
        secret=b"\x00secret",
        lease_seconds=3600,
        since=NOW,
        expires_at=NOW + 60,
        due_at=NOW,
        digest="old",
    )
    return usual._replace(**more)


def put(store: Store, *rows: Row) -> None:
    with store.transaction() as transaction:
        transaction.save((), rows)


def get(store: Store, of: Row) -> Rows:
    with store.transaction() as transaction:
        return transaction.rows_of(of)


def opened(directory: Path) -> Store:
    """A store that is open. Raises StoreFault."""
    made = Store(directory)
    made.open()
    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(opened(tmp_path)) as made:
        yield made


# ---- Rows ----------------------------------------------------------------------------


def test_the_id_of_a_deleted_row_is_never_used_again(store: Store) -> None:
    # given two rows of a pair, which are deleted
    put(store, row("subscribe"), row("unsubscribe"))
    with store.transaction() as transaction:
        transaction.save(transaction.rows_of(row()), ())

    # when another one is stored
    put(store, row())

    # then it has an id of its own
    assert get(store, row()) == (row(id=3),)


def test_a_state_of_a_pair_is_saved_as_the_difference(store: Store) -> None:
    # given three rows
    put(store, row(), row("subscribe"), row("unsubscribe"))
    before = get(store, row())

    # when one is changed, one is gone, and one is new
    changed = before[0]._replace(failures=2, secret=None)
    with store.transaction() as transaction:
        transaction.save(before, (changed, before[1], row("denied")))

    # then the store has just that
    assert get(store, row()) == (changed, before[1], row("denied", id=4))


def test_only_what_has_ended_expires(store: Store) -> None:
    # given rows that end at different moments
    put(store, row(expires_at=NOW + 60), row("subscribe", expires_at=NOW + 59))

    # when it is the end of the first one
    with store.transaction() as transaction:
        expired = transaction.expire(NOW + 59)

    # then this one is gone
    assert [each.mode for each in expired] == ["subscribe"]
    assert get(store, row()) == (row(id=1),)


def test_the_content_of_one_callback_and_topic_is_forgotten(store: Store) -> None:
    # given rows of three pairs
    put(store, row(), row("subscribe"), row(name="b"), row(path=JSON_FEED))

    # when it is unknown what the callback of one has
    with store.transaction() as transaction:
        transaction.forget_content(row())
        digests = [each.digest for each in transaction.rows("ORDER BY id")]

    # then all rows of this pair say so
    assert digests == ["", "", "old", "old"]


def test_counts_concern_subscriptions_to_published_topics(store: Store) -> None:
    # given subscriptions to a published topic and to another, and other rows
    put(
        store,
        row(name="a", digest="new"),
        row(name="b", failures=2),
        row(name="d", path=JSON_FEED),
        row("subscribe", "e"),
        row("unsubscribe", "f"),
        row("denied", "g", failures=1),
    )

    # when they are counted
    with store.transaction() as transaction:
        counts = transaction.counts({FEED: "new"})

    # then notices count for nothing, and the other topic is not behind
    assert counts == {"active": 3, "pending": 2, "failing": 1, "behind": 1}


def test_beyond_the_most_that_may_wait_the_failed_and_then_the_oldest_go(
    store: Store,
) -> None:
    # given a subscription, and more that waits than may
    put(
        store,
        row(name="a", failures=9),
        row("subscribe", "b"),
        row("subscribe", "c", failures=1),
        row("denied", "d", failures=2),
        row("subscribe", "e"),
    )

    # when two may wait
    with store.transaction() as transaction:
        excess = transaction.remove_excess(2)

    # then those go that failed most often, then the oldest, and no subscription
    assert {each.callback[-1] for each in excess} == {"c", "d"}
    assert [each.callback[-1] for each in store_rows(store)] == ["a", "b", "e"]


def store_rows(store: Store) -> list[Row]:
    with store.transaction() as transaction:
        return list(transaction.rows("ORDER BY id"))


PLACES = [
    row(name="0"),
    row(name="1", failures=1),
    row(name="2", expires_at=NOW),
    row(name="3", failures=1),
    row(name="4", failures=2),
    row(name="5", failures=2),
    row(name="6"),
]


@pytest.mark.parametrize(
    ("older", "name"),
    [
        pytest.param(0, "5", id="the most failures, then the youngest"),
        pytest.param(5, None, id="nobody fails among the younger"),
        pytest.param(9, None, id="there are no younger ones"),
    ],
)
def test_the_one_to_give_up_its_place_is_failing_and_young(
    store: Store, older: int, name: str | None
) -> None:
    # given living subscriptions, some of which fail
    put(store, *PLACES)

    # when one has to go, but none of the older ones
    with store.transaction() as transaction:
        chosen = transaction.failing_subscription(older, NOW)

    # then it is this one
    assert (chosen.callback[-1] if chosen else None) == name


@pytest.mark.parametrize(
    ("name", "older"),
    [
        pytest.param("0", 0, id="the oldest"),
        pytest.param("3", 2, id="one that has ended does not count"),
        pytest.param("new", 6, id="a newcomer is the youngest"),
    ],
)
def test_the_older_subscriptions_are_counted(
    store: Store, name: str, older: int
) -> None:
    # given living subscriptions
    put(store, *PLACES)

    # when a request for one of the callbacks is asked
    with store.transaction() as transaction:
        count = transaction.older_subscriptions(row("subscribe", name), NOW)

    # then this many living ones are older
    assert count == older


# ---- What is due ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "is_due"),
    [
        pytest.param(row(), True, id="other content"),
        pytest.param(row(digest=""), True, id="unknown content"),
        pytest.param(row(digest="new"), False, id="the same content"),
        pytest.param(row(path="/gone.xml"), False, id="no such topic now"),
        pytest.param(row(expires_at=NOW), False, id="the lease has ended"),
        pytest.param(row(due_at=NOW + 1), False, id="later"),
        pytest.param(row(due_at=NOW + 101), True, id="the clock was set back"),
        pytest.param(row("subscribe"), True, id="a request"),
        pytest.param(row("unsubscribe"), True, id="a request to unsubscribe"),
        pytest.param(row("subscribe", due_at=NOW + 1), False, id="a request, later"),
        pytest.param(row("subscribe", expires_at=NOW), False, id="a request of old"),
        pytest.param(row("denied"), True, id="a notice"),
    ],
)
def test_what_differs_is_due(store: Store, stored: Row, is_due: bool) -> None:
    # given a row
    put(store, stored)

    # when the topic has new content, and no delay is longer than 100 seconds
    with store.transaction() as transaction:
        due = transaction.due({FEED: "new"}, NOW, NOW + 100)

    # then it is due if there is something to send
    assert [each.id for each in due] == ([1] if is_due else [])


def test_a_due_row_says_what_its_order_depends_on(store: Store) -> None:
    # given a subscription with a request, and a request and a notice of others
    put(
        store,
        row(took=3.5),
        row("subscribe", took=0.5),
        row("subscribe", name="b"),
        row("denied", name="c", due_at=NOW - 1),
        row(name="d", expires_at=NOW, digest="new"),
        row("unsubscribe", name="d"),
    )

    # when what is due is read
    with store.transaction() as transaction:
        due = transaction.due({FEED: "new"}, NOW, NOW)

    # then a request is one of a subscriber only while that is living
    assert sorted(map(tuple, due)) == [
        (1, NOW, 3.5, True, False),
        (2, NOW, 0.5, False, True),
        (3, NOW, 0.0, False, False),
        (4, NOW - 1, 0.0, False, False),
        (6, NOW, 0.0, False, False),
    ]


# ---- Trouble -------------------------------------------------------------------------


def test_a_thread_does_not_wait_for_ever_for_another(store: Store) -> None:
    # given a store
    store.keep_open()

    # when a transaction is wanted while another one goes on
    with (
        store.transaction(),
        pytest.raises(StoreFault, match=r"^busy$"),
        store.transaction(),
    ):
        pass

    # then that is no trouble of the store
    assert store.trouble is None


def test_a_closed_store_is_not_open(store: Store, tmp_path: Path) -> None:
    # given a store that is open
    store.keep_open()

    # when it is closed
    store.close()

    # then it says so, as one does that was never opened
    assert store.trouble == "not open"
    assert Store(tmp_path).trouble == "not open"
    with pytest.raises(StoreFault), store.transaction():
        pass


def spoil_pages(path: Path) -> None:
    """A failing disk: all pages but the first are lost."""
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (os.fstat(file.fileno()).st_size - 4096))


def test_damage_is_logged_once_for_each_reason(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # given a store with many rows in its file
    store.keep_open()
    put(store, *(row(name=str(number)) for number in range(500)))
    with closing(sqlite3.connect(tmp_path / STORE_FILE_NAME)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with store.transaction() as transaction:
        transaction.expire(NOW)

    # when the file is damaged, and looked at three times
    spoil_pages(tmp_path / STORE_FILE_NAME)
    for _ in range(3):
        with pytest.raises(StoreFault), store.transaction() as transaction:
            transaction.expire(NOW)
        store.keep_open()

    # then the log says what was noticed first, and what a check has found
    assert (store.trouble or "").startswith("damaged: ")
    troubles = ["database disk image is malformed", store.trouble]
    assert caplog.messages == [
        f"the hub cannot store requests: {trouble}" for trouble in troubles
    ]


def is_no_database(path: Path) -> None:
    path.write_bytes(b"something else" * 100)


def is_a_directory(path: Path) -> None:
    path.mkdir()


def is_in_a_file(path: Path) -> None:
    path.parent.rmdir()
    path.parent.touch()


@pytest.mark.parametrize("spoil", [is_no_database, is_a_directory, is_in_a_file])
def test_a_fault_names_an_unusable_file(
    tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    # given a state directory that cannot be used
    path = tmp_path / "state" / STORE_FILE_NAME
    path.parent.mkdir()
    spoil(path)

    # when the store is opened, then the fault names the file
    with pytest.raises(StoreFault, match=f"^{re.escape(str(path))}: "):
        opened(path.parent)


ANOTHER = "made by another version of this program (schema 99)"


@pytest.fixture
def of_another_version(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / STORE_FILE_NAME)) as other:
        other.execute("PRAGMA user_version = 99")
    return tmp_path


def test_a_store_of_another_version_is_not_used(of_another_version: Path) -> None:
    with closing(Store(of_another_version)) as store:
        # when the hub starts
        store.keep_open()

        # then it says why it cannot store anything, and stores nothing
        assert store.trouble == f"{of_another_version / STORE_FILE_NAME}: {ANOTHER}"
        with pytest.raises(StoreFault), store.transaction():
            pass


def test_a_hub_goes_on_once_a_store_of_another_version_is_removed(
    of_another_version: Path,
) -> None:
    with closing(Store(of_another_version)) as store:
        # given
        store.keep_open()
        (of_another_version / STORE_FILE_NAME).unlink()

        # when
        store.keep_open()

        # then
        assert store.trouble is None


def test_a_changed_schema_has_a_new_number() -> None:
    """Where the digest does not fit, SCHEMA_VERSION grows by one, and so does this."""
    digest = hashlib.sha256(SCHEMA.encode()).hexdigest()

    assert digest.startswith("79008541")
    assert SCHEMA_VERSION == 2


def test_the_operator_lists_no_store_of_another_version(
    of_another_version: Path,
) -> None:
    with pytest.raises(StoreFault, match=f": {re.escape(ANOTHER)}$"):
        list_rows(of_another_version)


def test_the_operator_changes_no_store_of_another_version(
    of_another_version: Path,
) -> None:
    with pytest.raises(StoreFault, match=f": {re.escape(ANOTHER)}$"):
        remove_subscriptions(of_another_version, selector("s.example"))


def test_a_store_is_for_its_owner_only(store: Store, tmp_path: Path) -> None:
    modes = [stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()]
    assert modes == [0o600] * 3


# ---- Coming and going ----------------------------------------------------------------

Trouble = Callable[[Path], AbstractContextManager[object]]


def used_by_another_hub(directory: Path) -> AbstractContextManager[object]:
    return closing(opened(directory))


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Another program writes to the store."""
    with closing(sqlite3.connect(directory / STORE_FILE_NAME)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


def full(_: Path) -> AbstractContextManager[object]:
    """Files of this process cannot grow."""
    return limited(resource.RLIMIT_FSIZE)


@contextmanager
def away(directory: Path) -> Iterator[None]:
    """The directory is missing for a while."""
    directory.rename(f"{directory}.away")
    yield
    Path(f"{directory}.away").rename(directory)


TROUBLES = [
    pytest.param(
        False,
        used_by_another_hub,
        "another hub uses this directory",
        id="used by another hub at the start",
    ),
    pytest.param(False, locked, "locked", id="locked at the start"),
    pytest.param(True, locked, "locked", id="locked later"),
    pytest.param(True, full, "", id="full"),
    pytest.param(True, away, "", id="away"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("was_open", "trouble", "reason"), TROUBLES)
def test_a_store_in_trouble_says_so_once_until_it_works(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    was_open: bool,
    trouble: Trouble,
    reason: str,
) -> None:
    # given a store with a row
    with closing(opened(tmp_path)) as before:
        put(before, row())
    with closing(Store(tmp_path)) as store:
        if was_open:
            store.keep_open()

        # when it is in trouble for a while
        with trouble(tmp_path):
            for _ in range(3):
                with pytest.raises(StoreFault):
                    put(store, row("subscribe"))
                store.keep_open()
            said = store.trouble
        store.keep_open()

        # then it says why, and works again by itself
        assert reason in (said or "nothing")
        assert store.trouble is None
        put(store, row("subscribe"))
        assert get(store, row()) == (row(id=1), row("subscribe", id=2))

    # and the log has a line for the begin, and one for the end
    begin, end = caplog.messages
    assert re.match(f"the hub cannot store requests: .*{reason}", begin)
    assert end == "the hub can store requests again"


def test_a_store_that_went_away_is_not_made_anew(tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    with closing(Store(state_dir)) as store:
        # given a store that was open
        store.keep_open()

        # when its directory is gone
        state_dir.rename(tmp_path / "away")
        store.keep_open()

        # then it may come back
        assert not state_dir.exists()


@pytest.fixture
def replaced(tmp_path: Path) -> Iterator[Store]:
    """A store that is open, in whose place is another one, with a row; it has not noticed yet."""
    with closing(Store(tmp_path / "state")) as store:
        store.keep_open()
        (tmp_path / "state").rename(tmp_path / "other")
        with closing(opened(tmp_path / "state")) as another:
            put(another, row())
        yield store


def test_a_replaced_store_takes_nothing_until_it_is_locked(replaced: Store) -> None:
    with pytest.raises(StoreFault):
        put(replaced, row("subscribe"))


def test_a_replaced_store_may_be_older_than_what_was_delivered(
    replaced: Store, caplog: pytest.LogCaptureFixture
) -> None:
    # when the hub notices that its store was replaced
    replaced.keep_open()

    # then it does not know what the callbacks have
    assert get(replaced, row()) == (row(id=1, digest=""),)
    assert (
        "the hub's store was replaced: all its subscribers get the content anew"
        in caplog.messages
    )


def test_a_replaced_store_is_locked_and_the_other_one_is_not(
    replaced: Store, tmp_path: Path
) -> None:
    # when the hub notices that its store was replaced
    replaced.keep_open()

    # then another hub may have the other one, but not this one
    with pytest.raises(StoreFault, match="another hub"):
        opened(tmp_path / "state")
    opened(tmp_path / "other").close()


def test_a_store_that_was_taken_away_is_made_anew(tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    with closing(opened(state_dir)) as store:
        # given a hub whose file somebody has moved elsewhere, but not its directory
        for path in state_dir.glob(f"{STORE_FILE_NAME}*"):
            path.rename(tmp_path / path.name)

        # when it looks again
        store.keep_open()

        # then it begins with nothing
        put(store, row())
        assert get(store, row()) == (row(id=1),)


def test_a_store_that_was_moved_is_locked_where_it_is(tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    with closing(opened(state_dir)) as store:
        # given a hub whose file is now in another directory of the same name
        old = state_dir.rename(tmp_path / "old")
        state_dir.mkdir()
        for path in old.iterdir():
            path.rename(state_dir / path.name)
        with pytest.raises(StoreFault):
            put(store, row())

        # when it looks again
        store.keep_open()

        # then no other hub may have it
        with pytest.raises(StoreFault, match="another hub"):
            opened(state_dir)


# ---- For the operator ----------------------------------------------------------------


def test_without_a_store_there_are_no_subscriptions(tmp_path: Path) -> None:
    assert list_rows(tmp_path / "elsewhere") == []


@pytest.mark.parametrize("is_open", [True, False])
def test_listing_is_by_topic_and_host_and_changes_nothing(
    store: Store, tmp_path: Path, is_open: bool
) -> None:
    # given subscriptions and other rows
    active = [
        row(host="a.example", path=JSON_FEED),
        row(host="a.example"),
        row(host="b.example", failures=1),
    ]
    others = [row("denied", host="a.example"), row("subscribe", host="c.example")]
    put(store, *reversed([*active, *others]))
    if not is_open:
        store.close()
    files = sorted(tmp_path.iterdir())

    # when they are listed, while the service runs or not
    listed = [each._replace(id=0) for each in list_rows(tmp_path)]

    # then subscriptions come first
    assert listed == [*active, *others]
    assert sorted(tmp_path.iterdir()) == files


def test_the_operator_removes_selected_rows_beside_an_open_store(
    store: Store, tmp_path: Path
) -> None:
    # given rows of two hosts
    put(
        store,
        row(),
        row(name="c", host="t.example"),
        row("unsubscribe", "c", "t.example"),
        row(name="d", expires_at=NOW),
        row("subscribe", "b"),
    )

    # when those of one are removed
    removed = remove_subscriptions(tmp_path, selector("s.example"), clock=now)

    # then only who was subscribed gets a notice
    assert sorted(each.callback[-1] for each in removed) == ["a", "b", "d"]
    left = [(each.callback[-1], each.mode) for each in list_rows(tmp_path)]
    assert left == [("c", "active"), ("a", "denied"), ("c", "unsubscribe")]


def test_a_removed_host_cannot_be_removed_again(store: Store, tmp_path: Path) -> None:
    # given a host that was removed, and has a notice
    put(store, row())
    remove_subscriptions(tmp_path, selector("s.example"), clock=now)

    # when it is removed again
    removed = remove_subscriptions(tmp_path, selector("s.example"), clock=now)

    # then there is nothing to remove, and the notice stays
    assert removed == []
    (notice,) = list_rows(tmp_path)
    assert notice.outcome == "removed by the operator of the hub"


def test_a_removal_survives_a_power_cut(
    store: Store, tmp_path: Path, commits: list[str]
) -> None:
    # given a subscription, when the operator removes it
    put(store, row())
    remove_subscriptions(tmp_path, selector("s.example"), clock=now)

    # then the command has waited for the disk
    assert commits == ["for the disk"]


def now() -> float:
    return NOW
