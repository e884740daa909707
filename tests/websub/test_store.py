"""The store of the hub: what it keeps, what it counts, and what it says when the disk will not have it.

Rows - Counting - Trouble - Opening - Coming and going - Listing
"""

from __future__ import annotations

import math
import re
import resource
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reviewslib.websub.store import (
    REQUESTS,
    STORE_FILE_NAME,
    Excluded,
    HubUnavailable,
    Listing,
    Store,
    StoreFault,
    list_subscriptions,
    remove_subscriptions,
)
from reviewslib.websub.values import (
    PendingRequest,
    Subscriber,
    Subscription,
    SubscriptionState,
    Usage,
    domain_of,
    selector,
)

NOW = 1_800_000_000.0
FEED, JSON_FEED = "/feed.xml", "/api/feed.json"
NOTHING = Excluded((), ())


def subscriber(
    name: str = "a", host: str = "s.example", path: str = FEED, network: str | None = "192.0.2.1"
) -> Subscriber:
    url = f"https://{host}/{name}"
    return Subscriber(path, url, url, host, domain_of(host), network, f"https://reviews.example{path}")


def requested(who: Subscriber, mode: Any = "subscribe") -> SubscriptionState:
    return SubscriptionState(None, (PendingRequest(None, who, mode, b"\x00secret", 3600, "old", NOW),))


def subscribed(
    who: Subscriber, expires_at: float = NOW + 60, digest: str = "old", failures: int = 0
) -> SubscriptionState:
    row = Subscription(None, who, None, NOW, expires_at, digest, failures, NOW, NOW, "HTTP 200")
    return SubscriptionState(row)


def put(store: Store, *states: SubscriptionState) -> None:
    with store.writing() as rows:
        for state in states:
            rows.save(SubscriptionState(), state)


def get(store: Store, who: Subscriber, now: float = NOW) -> SubscriptionState:
    with store.reading() as rows:
        return rows.state(who, now)


def opened(directory: Path) -> Store:
    """A store that is open. Raises HubUnavailable."""
    made = Store(directory)
    made.open()
    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(opened(tmp_path)) as made:
        yield made


# ---- Rows --------------------------------------------------------------------------------------------------


def test_what_is_saved_is_there_with_a_number(store: Store) -> None:
    who = subscriber()
    put(store, replace(subscribed(who), requests=requested(who).requests))
    found = get(store, who)
    assert found.subscription
    assert (found.subscription.id, [request.id for request in found.requests]) == (1, [1])
    assert replace(found.subscription, id=None) == subscribed(who).subscription
    assert replace(found.requests[0], id=None) == requested(who).requests[0]
    assert get(store, subscriber("b")) == SubscriptionState()


def test_the_number_of_a_replaced_or_deleted_row_is_never_used_again(store: Store) -> None:
    who = subscriber()
    put(store, requested(who), requested(who, "unsubscribe"), requested(who), subscribed(who))
    with store.writing() as rows:
        rows.save(replace(rows.state(who, NOW), requests=()), SubscriptionState())
        rows.save(SubscriptionState(), subscribed(who))
        assert [(row.mode, row.id) for row in rows.pending()] == [("unsubscribe", 2), ("subscribe", 3)]
        assert [row.id for row in rows.subscriptions()] == [2]


def test_a_subscription_is_found_until_its_lease_ends_and_if_the_clock_is_set_back(store: Store) -> None:
    who = subscriber()
    put(store, subscribed(who, NOW + 60))
    with store.writing() as rows:  # a new request leaves the row of the ended subscription alone
        rows.save(rows.state(who, NOW + 60), requested(who))
    assert get(store, who, NOW + 60).subscription is None
    assert get(store, who, NOW + 59).subscription is not None


def test_ended_rows_are_listed_longest_ago_first_and_stay(store: Store) -> None:
    ends = {"a": NOW, "b": NOW + 1, "c": NOW - 1}
    put(store, *(subscribed(subscriber(name), end) for name, end in ends.items()))
    with store.reading() as rows:
        assert (rows.expired(NOW), rows.rows()) == ([3, 1], 3)


def test_nothing_of_a_failed_transaction_is_done(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.writing() as rows:
        rows.save(SubscriptionState(), subscribed(subscriber()))
        raise ZeroDivisionError
    assert get(store, subscriber()) == SubscriptionState()


# ---- Counting ----------------------------------------------------------------------------------------------


def test_behind_is_who_has_other_content_than_a_published_topic(store: Store) -> None:
    put(
        store,
        subscribed(subscriber("has it"), digest="new"),
        subscribed(subscriber("later")),
        subscribed(subscriber("ended"), NOW),
        subscribed(subscriber("not published", path="/gone"), digest="x"),
        subscribed(subscriber("other topic", path=JSON_FEED), digest="json", failures=2),
        requested(subscriber("asks")),
        requested(subscriber("told", path="/gone"), "denied"),
    )
    digests = {FEED: "new", JSON_FEED: "x"}
    with store.writing() as rows:
        before = rows.state(subscriber("later"), NOW)
        assert before.subscription
        rows.save(before, SubscriptionState(replace(before.subscription, next_attempt_at=NOW + 5)))
        for until, names in ((NOW, ["other topic"]), (NOW + 5, ["other topic", "later"])):
            found = rows.behind(NOTHING, digests, NOW, -1.0, until)
            assert [row.subscriber.callback.rpartition("/")[2] for row in found] == names
        assert rows.counts(digests, NOW) == {"active": 4, "pending": 1, "failing": 1, "behind": 2}
        assert rows.counts({}, NOW + 60) == {"active": 0, "pending": 1, "failing": 0, "behind": 0}
        assert rows.notices() == 1


def test_each_request_is_of_one_kind(store: Store) -> None:
    quick, slow, ended, new = (subscriber(name) for name in ("quick", "slow", "ended", "new"))
    put(store, subscribed(slow), subscribed(ended, NOW))
    put(store, requested(quick), requested(slow), requested(slow, "denied"))
    put(store, *(requested(replace(one, network=None)) for one in (ended, new)))
    with store.reading() as rows:
        found = {kind: [row.id for row in rows.requests(NOTHING, kind)] for kind in REQUESTS}
    assert found == {
        "of strangers": [4, 5],
        "of subscribers": [1],
        "of slow subscribers": [2],
        "notices": [3],
    }


def test_what_is_due_is_read_in_order_without_excluded_keys_and_subscribers(store: Store) -> None:
    everybody = [
        subscriber(str(number), path=path, network=f"192.0.2.{number % 3}")
        for number in range(30)
        for path in (FEED, JSON_FEED)
    ]
    put(store, *map(subscribed, everybody))
    put(store, *map(requested, everybody))
    excluded = Excluded(["192.0.2.1"], [everybody[0].key])
    wanted = [one for one in everybody[1:] if one.network != "192.0.2.1"]
    with store.reading() as rows:
        digests = {FEED: "new", JSON_FEED: "new"}
        found = [list(rows.behind(excluded, digests, NOW, -1.0, math.inf))]
        found += [list(rows.requests(excluded, "of slow subscribers"))]
    for each in found:
        assert [row.subscriber for row in each] == wanted


def test_usage_is_every_strangers_request_but_the_own_and_every_active_subscription(store: Store) -> None:
    me = subscriber("me", "a.t.example", network="192.0.2.9")
    places = [("me", "a.t.example"), ("b", "a.t.example"), ("me", "b.t.example"), ("me", "s.example")]
    strangers = [subscriber(*place, network=None) for place in places]
    strangers += [subscriber("me", "a.t.example", JSON_FEED, None)]
    put(store, *map(requested, strangers))
    put(store, requested(subscriber("c", "a.t.example")), requested(subscriber("d", "a.t.example"), "denied"))
    subscriptions = [("a.t.example", 1, 1), ("b.t.example", 9, 1), ("s.example", 9, 1), ("a.t.example", 9, 0)]
    for number, (host, network, seconds) in enumerate(subscriptions):
        put(store, subscribed(subscriber(str(number), host, network=f"192.0.2.{network}"), NOW + seconds))
    with store.reading() as rows:
        counted = Usage(4, 3, subscriptions=3, of_host=1, of_domain=2, of_network=2)
        assert rows.usage(me, NOW) == counted
        assert rows.usage(replace(me, network=None), NOW) == counted._replace(of_network=0)


# ---- Trouble -----------------------------------------------------------------------------------------------


def test_a_store_that_is_locked_can_be_read(store: Store, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / STORE_FILE_NAME)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreFault, match="locked"):
            put(store, requested(subscriber()))
        assert get(store, subscriber()) == SubscriptionState()
    put(store, requested(subscriber()))


def test_a_transaction_does_not_wait_long_for_another(store: Store) -> None:
    with store.writing(), pytest.raises(StoreFault, match=r"^busy$"):
        put(store, requested(subscriber()))


def test_before_opening_and_after_close_everybody_gets_an_answer(store: Store, tmp_path: Path) -> None:
    store.close()
    assert store.trouble == Store(tmp_path).trouble == "not open"
    for transaction in (store.reading, store.writing):
        with pytest.raises(StoreFault, match=r"^there is no store$"), transaction():
            pass


# ---- Opening -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", ["not a database", "a directory", "no directory", "another version"])
def test_an_unusable_state_directory_is_named(tmp_path: Path, trouble: str) -> None:
    path = tmp_path / STORE_FILE_NAME
    match trouble:
        case "not a database":
            path.write_bytes(b"something else" * 100)
            with pytest.raises(HubUnavailable, match="not a database"):
                list_subscriptions(tmp_path)
        case "a directory":
            path.mkdir()
        case "no directory":
            (tmp_path / "file").touch()
            path = tmp_path / "file" / STORE_FILE_NAME
        case "another version":
            with closing(sqlite3.connect(path)) as other:
                other.execute("PRAGMA user_version = 99")
    with pytest.raises(HubUnavailable, match=f"^{re.escape(str(path))}: ") as fault:
        opened(path.parent)
    assert fault.value.path == path


def test_a_directory_belongs_to_one_store_at_a_time(store: Store, tmp_path: Path) -> None:
    with pytest.raises(HubUnavailable, match=r": another hub uses this directory \(.+ unavailable\)$"):
        opened(tmp_path)
    store.close()
    opened(tmp_path).close()


def test_a_store_that_one_thread_has_opened_is_closed_by_another(tmp_path: Path) -> None:
    store = Store(tmp_path)
    opening = threading.Thread(target=store.keep_open)
    opening.start()
    opening.join()
    store.close()
    opened(tmp_path).close()


def test_a_store_is_for_its_owner_only(tmp_path: Path) -> None:
    with closing(opened(tmp_path)):
        files = list(tmp_path.iterdir())
        assert len(files) == 3
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


# What the first version made: its tables, an active subscription with a renewal, an ended one, a newcomer.
OF_VERSION_1 = """
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
PRAGMA user_version = 1;
INSERT INTO subscription VALUES
  (7, '/feed.xml', 'https://a.s.example/cb', 'https://A.s.example/cb', 'a.s.example', 'https://r.example/feed.xml',
   x'00ff', 1799999000.5, 1800864000.0, 'old', 2, 1800003600.25, 1800000000.0, 'HTTP 500'),
  (9, '/feed.xml', 'https://8.8.8.8/', 'https://8.8.8.8/', '8.8.8.8', 'https://r.example/feed.xml',
   NULL, 1700000000.0, 1700864000.0, 'old', 0, 0.0, NULL, '');
INSERT INTO pending VALUES
  (4, '/feed.xml', 'https://a.s.example/cb', 'https://A.s.example/cb', 'a.s.example', 'https://r.example/feed.xml',
   'subscribe', x'01', 864000, 'old', 1800000000.0),
  (5, '/feed.xml', 'https://new.co.uk/', 'https://new.co.uk/', 'new.co.uk', 'https://r.example/feed.xml',
   'subscribe', NULL, 864000, 'base', 1800000001.0);
"""


def make_version_1(directory: Path, more: str = "") -> None:
    with closing(sqlite3.connect(directory / STORE_FILE_NAME)) as old:
        old.executescript(f"PRAGMA journal_mode = WAL; {OF_VERSION_1}{more}")


def test_a_store_of_the_first_version_is_converted_and_loses_nothing(tmp_path: Path) -> None:
    make_version_1(tmp_path)
    before = [line._replace(network=None) for line in list_subscriptions(tmp_path, clock=lambda: NOW)]
    url = "https://A.s.example/cb"
    ann = Subscriber(
        FEED, url.lower(), url, "a.s.example", "s.example", "s.example", "https://r.example/feed.xml"
    )
    for _ in range(2):  # the second finds it converted
        with closing(opened(tmp_path)) as store, store.reading() as rows:
            assert rows.state(ann, NOW) == SubscriptionState(
                Subscription(
                    7, ann, b"\0\xff", NOW - 999.5, NOW + 864000, "old", 2, NOW + 3600.25, NOW, "HTTP 500"
                ),
                (PendingRequest(4, ann, "subscribe", b"\1", 864000, "old", NOW),),
            )
            assert rows.expired(NOW) == [9]
            (newcomer,) = rows.pending("WHERE network IS NULL")
            assert (newcomer.id, newcomer.subscriber.domain) == (5, "new.co.uk")
    after = list_subscriptions(tmp_path, clock=lambda: NOW)
    assert [line._replace(network=None) for line in after] == before
    with closing(opened(tmp_path)) as store:
        put(store, subscribed(subscriber()))
        found = get(store, subscriber()).subscription
        assert found is not None
        assert found.id == 10  # no number is used again


def test_a_conversion_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    make_version_1(tmp_path, "CREATE TABLE old_pending (in_the_way);")
    with pytest.raises(HubUnavailable, match="old_pending"):
        opened(tmp_path)
    for version in (1, 2):  # the second is what it becomes
        with closing(sqlite3.connect(tmp_path / STORE_FILE_NAME)) as found:
            found.execute("DROP TABLE IF EXISTS old_pending")
            assert found.execute("PRAGMA user_version").fetchone() == (version,)
            assert found.execute("SELECT count(*) FROM subscription").fetchone() == (2,)
        opened(tmp_path).close()


# ---- Coming and going --------------------------------------------------------------------------------------


def held(directory: Path) -> AbstractContextManager[object]:
    """Another hub has the directory."""
    return closing(opened(directory))


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Another program writes to the store."""
    with closing(sqlite3.connect(directory / STORE_FILE_NAME)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


@contextmanager
def away(directory: Path) -> Iterator[None]:
    """The directory is elsewhere for a while."""
    directory.rename(f"{directory}.away")
    yield
    Path(f"{directory}.away").rename(directory)


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [(held, "another hub uses this directory"), (locked, "locked"), (away, "No such file or directory")],
)
def test_a_store_that_comes_late_is_opened_then(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    trouble: Callable[[Path], AbstractContextManager[object]],
    reason: str,
) -> None:
    opened(tmp_path).close()
    with closing(Store(tmp_path)) as store:
        with trouble(tmp_path):
            for _ in range(3):
                store.keep_open()
                assert reason in (store.trouble or "")
                with pytest.raises(StoreFault), store.writing():
                    pass
            (line,) = caplog.messages
            assert line.startswith("the hub can store no requests: ") and reason in line
        store.keep_open()
        assert store.trouble is None
        assert caplog.messages[1:] == ["the hub can store requests again"]
        with store.writing() as rows:
            rows.save(SubscriptionState(), requested(subscriber()))


@contextmanager
def full(_: Path) -> Iterator[None]:
    """No file of this process can grow."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("trouble", [locked, full])
def test_a_store_that_fails_while_in_use_says_so_until_it_works(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    trouble: Callable[[Path], AbstractContextManager[object]],
) -> None:
    opened(tmp_path).close()
    with closing(Store(tmp_path)) as store:
        store.keep_open()
        put(store, requested(subscriber()))
        with trouble(tmp_path):
            with pytest.raises(StoreFault):
                put(store, requested(subscriber("b")))
            assert store.trouble
            for _ in range(3):
                store.keep_open()
                assert store.trouble
        store.keep_open()
        assert store.trouble is None
        put(store, requested(subscriber("b")))
        assert get(store, subscriber()).requests
    assert [line.split(":")[0] for line in caplog.messages] == [
        "the hub can store no requests",
        "the hub can store requests again",
    ]


def test_a_store_that_was_replaced_takes_nothing_until_it_is_held_with_its_directory(tmp_path: Path) -> None:
    state_dir, other_dir = tmp_path / "state", tmp_path / "other"
    state_dir.mkdir()
    with closing(Store(state_dir)) as store:
        store.keep_open()
        put(store, requested(subscriber()))
        state_dir.rename(other_dir)
        store.keep_open()
        assert not state_dir.exists()  # it may come back
        state_dir.mkdir()
        opened(state_dir).close()
        with pytest.raises(StoreFault, match=r"^there is no store$"):
            put(store, requested(subscriber("b")))
        store.keep_open()
        assert get(store, subscriber()) == get(store, subscriber("b")) == SubscriptionState()
        put(store, requested(subscriber("b")))
        with pytest.raises(HubUnavailable, match="another hub"):
            opened(state_dir)
        opened(other_dir).close()  # nobody holds it any more


def test_a_store_whose_file_went_away_takes_nothing_until_there_is_a_new_one(
    store: Store, tmp_path: Path
) -> None:
    (tmp_path / STORE_FILE_NAME).unlink()
    with pytest.raises(StoreFault, match=r"^there is no store$"):
        put(store, requested(subscriber()))
    store.keep_open()
    put(store, requested(subscriber()))


def test_no_checkpoint_is_written_while_a_store_is_open(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as store:
        for name in "abc":
            before = (tmp_path / STORE_FILE_NAME).read_bytes()
            put(store, requested(subscriber(name)))
            assert (tmp_path / STORE_FILE_NAME).read_bytes() == before
    assert (tmp_path / STORE_FILE_NAME).read_bytes() != before


# ---- Listing -----------------------------------------------------------------------------------------------


def test_listing_shows_hosts_and_changes_nothing(store: Store, tmp_path: Path) -> None:
    assert list_subscriptions(tmp_path / "elsewhere") == []
    assert not (tmp_path / "elsewhere").exists()
    put(
        store,
        requested(subscriber("secret-path", "c.example", network=None)),
        requested(subscriber("secret-path", "a.example"), "denied"),
        subscribed(subscriber("secret-path", "b.example"), failures=1),
        subscribed(subscriber("secret-path", "a.example")),
        subscribed(subscriber("secret-path", "d.example"), NOW),
    )
    expected = [
        Listing("active", "a.example", "192.0.2.1", FEED, NOW, NOW + 60, 0, NOW, "HTTP 200"),
        Listing("failing", "b.example", "192.0.2.1", FEED, NOW, NOW + 60, 1, NOW, "HTTP 200"),
        Listing("ended", "d.example", "192.0.2.1", FEED, NOW, NOW, 0, NOW, "HTTP 200"),
        Listing("denied", "a.example", "192.0.2.1", FEED, NOW, None, 0, None, ""),
        Listing("subscribe", "c.example", None, FEED, NOW, None, 0, None, ""),
    ]
    assert list_subscriptions(tmp_path, clock=lambda: NOW) == expected
    store.close()
    before = sorted(tmp_path.iterdir())
    assert list_subscriptions(tmp_path, clock=lambda: NOW) == expected
    assert sorted(tmp_path.iterdir()) == before


def test_the_operator_removes_who_is_meant_and_nobody_else_beside_an_open_store(
    store: Store, tmp_path: Path
) -> None:
    stays, ended = subscriber("c", "t.example"), subscriber("d")
    put(
        store,
        subscribed(subscriber("a")),
        subscribed(stays),
        subscribed(ended, NOW),
        requested(subscriber("b", network=None)),
        requested(stays, "unsubscribe"),
    )
    removed = remove_subscriptions(tmp_path, selector("s.example"), clock=lambda: NOW)
    assert [one.callback[-1] for one in removed] == ["a", "d", "b"]
    with store.reading() as rows:
        assert [row.subscriber for row in rows.subscriptions()] == [stays]
        told = [(row.subscriber.callback[-1], row.mode, row.reason) for row in rows.pending()]
    assert told == [("c", "unsubscribe", ""), ("a", "denied", "removed by the operator of the hub")]
    assert remove_subscriptions(tmp_path, selector("s.example"), clock=lambda: NOW) == []


def test_nothing_is_removed_without_a_store_or_from_one_of_another_version(tmp_path: Path) -> None:
    with pytest.raises(HubUnavailable, match="No such file"):
        remove_subscriptions(tmp_path, selector("s.example"))
    assert list(tmp_path.iterdir()) == []
    with closing(sqlite3.connect(tmp_path / STORE_FILE_NAME)) as other:
        other.execute("PRAGMA user_version = 99")
    with pytest.raises(HubUnavailable, match=r": made by another version of this program \(schema 99\)$"):
        remove_subscriptions(tmp_path, selector("s.example"))
