"""Threads that work on jobs in an order, and are never all held by slow ones."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from lab.callback_lab import PATIENCE_SECONDS
from lab.watching import wait_for

from reviewslib.websub.pools import Pool


class Task(NamedTuple):
    id: int
    is_slow: bool = False


class Work:
    """Jobs that go on until they are released; knows which ones have begun, in their order."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.going_on: set[int] = set()
        self._changed = threading.Condition()
        self._released: set[int] = set()
        self._all_released = False
        self.threads: list[weakref.ref[threading.Thread]] = []

    def perform(self, task: Task) -> None:
        with self._changed:
            self.threads.append(weakref.ref(threading.current_thread()))
            self.begun.append(task.id)
            self.going_on.add(task.id)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._may_end(task.id), PATIENCE_SECONDS)
            self.going_on.discard(task.id)
            self._released.discard(task.id)
            self._changed.notify_all()

    def _may_end(self, id: int) -> bool:
        return self._all_released or id in self._released

    def release(self, *ids: int) -> None:
        """Let jobs end, and wait until they have."""
        with self._changed:
            self._released.update(ids)
            self._changed.notify_all()
        self.wait(lambda: self.going_on.isdisjoint(ids))

    def release_all(self) -> None:
        with self._changed:
            self._all_released = True
            self._changed.notify_all()

    def wait(self, happened: Callable[[], object]) -> None:
        with self._changed:
            assert self._changed.wait_for(happened, PATIENCE_SECONDS), self.begun


@pytest.fixture
def work() -> Iterator[Work]:
    made = Work()
    yield made
    made.release_all()


def pool_of(size: int, work: Work) -> Pool[Task]:
    return Pool("test-pool", size, work.perform)


def test_jobs_begin_in_their_order_on_as_many_threads_as_there_are(work: Work) -> None:
    # given a pool of two threads
    pool = pool_of(2, work)

    # when it is offered five jobs, and the first two end
    pool.offer(map(Task, [5, 4, 3, 2, 1]))
    work.wait(lambda: len(work.begun) == 2)
    first = list(work.begun)
    work.release(5, 4)
    work.wait(lambda: len(work.begun) == 4)

    # then each thread has gone on with the next one
    assert sorted(first) == [4, 5]
    assert sorted(work.begun[2:]) == [2, 3]


def test_slow_jobs_hold_half_of_the_threads(work: Work) -> None:
    # given a pool of four threads
    pool = pool_of(4, work)

    # when it is offered slow jobs, and then a quick one as well
    slow = [Task(number, is_slow=True) for number in range(10)]
    pool.offer(slow)
    work.wait(lambda: len(work.begun) == 2)
    pool.offer([Task(99), *slow])
    work.wait(lambda: 99 in work.begun)

    # then two slow ones run, and the quick one
    assert work.going_on == {0, 1, 99}


def test_slow_jobs_wait_while_quick_ones_hold_half_of_the_threads(work: Work) -> None:
    # given a pool of four threads, two of which work on quick jobs
    pool = pool_of(4, work)
    pool.offer(map(Task, [1, 2]))
    work.wait(lambda: work.going_on == {1, 2})

    # when it is offered a slow one
    pool.offer([Task(3, is_slow=True)])
    begun_at_once = list(work.begun)
    work.release(1)

    # then that begins when a quick one has ended
    work.wait(lambda: 3 in work.going_on)
    assert 3 not in begun_at_once


def test_a_job_that_runs_is_not_begun_again(work: Work) -> None:
    # given a pool that works on a job
    pool = pool_of(4, work)
    pool.offer([Task(1)])
    work.wait(lambda: work.going_on == {1})

    # when it is offered the same one again, with another
    pool.offer(map(Task, [1, 2]))
    work.wait(lambda: 2 in work.going_on)

    # then only the other one is begun
    assert work.begun == [1, 2]
    assert pool.is_running(1)


def test_what_is_offered_replaces_what_waits(work: Work) -> None:
    # given a pool whose only thread is busy, and a job that waits
    pool = pool_of(1, work)
    pool.offer(map(Task, [1, 2]))
    work.wait(lambda: work.going_on == {1})

    # when it is offered another job
    pool.offer([Task(3)])
    work.release(1)
    work.wait(lambda: 3 in work.begun)
    work.release(3)

    # then the earlier one is forgotten
    assert work.begun == [1, 3]


def names_of_threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


def test_threads_end_when_there_is_nothing_to_do(work: Work) -> None:
    # given a pool that has worked
    pool = pool_of(3, work)
    work.release_all()
    pool.offer(map(Task, range(9)))

    # when all is done
    pool.join(time.monotonic() + PATIENCE_SECONDS)

    # then no thread is left, nor any of another test, once it has come to its end
    assert len(work.begun) == 9
    wait_for("end of the threads", lambda: "test-pool" not in names_of_threads())


def test_nothing_is_kept_of_a_thread_that_has_ended(work: Work) -> None:
    # given a pool that has worked
    pool = pool_of(3, work)
    work.release_all()
    pool.offer(map(Task, range(3)))
    pool.join(time.monotonic() + PATIENCE_SECONDS)

    # then its threads are forgotten, as often as there is something to do
    wait_for("end of the threads", lambda: not any(one() for one in work.threads))


def test_a_stopped_pool_begins_nothing_and_is_waited_for(work: Work) -> None:
    # given a pool whose only thread is busy, and a job that waits
    pool = pool_of(1, work)
    pool.offer(map(Task, [1, 2]))
    work.wait(lambda: work.going_on == {1})

    # when it is stopped
    pool.stop()
    pool.join(time.monotonic())
    still_going_on = set(work.going_on)
    work.release(1)
    pool.join(time.monotonic() + PATIENCE_SECONDS)
    pool.offer([Task(3)])

    # then the running job ends, and nothing else begins
    assert still_going_on == {1}
    assert work.begun == [1]


def test_a_bug_in_a_job_is_logged_and_ends_no_thread(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # given a pool whose jobs fail
    done = threading.Event()

    def fail(task: Task) -> None:
        if task.id == 2:
            done.set()
        raise RuntimeError("a bug")

    pool = Pool("test-pool", 1, fail)

    # when it is offered two
    pool.offer(map(Task, [1, 2]))
    pool.join(time.monotonic() + PATIENCE_SECONDS)

    # then both are tried
    assert done.is_set()
    assert caplog.messages == ["test-pool: unexpected error"] * 2


def test_a_job_for_which_there_is_no_thread_waits(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a machine that has no more threads
    pool = pool_of(1, work)

    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_thread)

        # when the pool is offered a job, and again when there are threads
        with pytest.raises(RuntimeError, match="can't start"):
            pool.offer([Task(1)])
    pool.offer([Task(1)])

    # then it begins at last
    work.wait(lambda: work.begun == [1])
