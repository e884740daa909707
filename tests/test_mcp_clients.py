"""The official Python SDK's clients of both generations work with the endpoint at the first try.

Each client is a script of its own in `mcp_clients/`, run by the Python of an environment made once under
`$REVIEWSD_TEST_ENVS` (else in pytest's cache). Without a package index the tests are skipped; in CI they
fail.

Environments - Clients - Claims
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp_sample import BUSINESS, CALLS, TOOLBOX
from services import daemon

Object = dict[str, Any]
CLIENTS = Path(__file__).parent / "mcp_clients"

# ---- Environments ----

REQUIREMENTS = {"v1": "mcp>=1.30,<2", "v2": "mcp>=2.3,<3"}


@pytest.fixture(scope="session")
def python_of(request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """The Python that has the SDK of a generation, `v1` or `v2`."""
    if root := os.environ.get("REVIEWSD_TEST_ENVS"):
        base = Path(root)
    else:
        cache = request.config.cache
        assert cache is not None
        base = cache.mkdir("mcp-clients")

    def python(generation: str) -> Path:
        home, requirement = base / generation, REQUIREMENTS[generation]
        stamp = home / "installed"
        if not (stamp.is_file() and stamp.read_text() == requirement):
            install(home, requirement)
            stamp.write_text(requirement)
        return home / "bin" / "python"

    return python


def install(home: Path, requirement: str) -> None:
    """Make a fresh environment in `home` with `requirement`, or skip the test for want of an index."""
    subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--retries", "1"]
    done = subprocess.run([*pip, requirement], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        reason = f"cannot install {requirement}: {(done.stderr.splitlines() or ['pip said nothing'])[-1]}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


# ---- Clients ----


@dataclass(frozen=True)
class Kind:
    """A client as a user meets it: the SDK's generation, its mode, and the version that it must arrive at."""

    name: str
    generation: str
    arguments: tuple[str, ...]
    version: str


KINDS = [
    Kind("v1", "v1", (), "2025-11-25"),
    Kind("v2", "v2", ("auto",), "2026-07-28"),
    Kind("v2-handshake", "v2", ("legacy",), "2025-11-25"),
]


class Client:
    """A running client script."""

    def __init__(self, python: Path, kind: Kind, url: str):
        self._process = subprocess.Popen(
            [python, CLIENTS / f"client_{kind.generation}.py", url, *kind.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.greeting = self._read()

    def call(self, tool: str, arguments: Object) -> Object:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"tool": tool, "arguments": arguments}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        """End the client and make sure that it had nothing to complain of."""
        _, complaints = self._process.communicate(timeout=30)
        assert self._process.returncode == 0, complaints

    def _read(self) -> Object:
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            pytest.fail(f"the client ended: {self._process.communicate(timeout=30)[1]}")
        said: Object = json.loads(line)
        return said


class Restartable:
    """A daemon that can be started anew at the same address with the same state."""

    def __init__(self, state: Path):
        self._state = state
        self._running = ExitStack()
        self._port = 0
        self.start()
        self.url = f"http://127.0.0.1:{self._port}/mcp"

    def start(self) -> None:
        self._port = self._running.enter_context(daemon(port=self._port, state=self._state)).port

    def stop(self) -> None:
        self._running.close()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Restartable]:
    running = Restartable(tmp_path)
    yield running
    running.stop()


@pytest.fixture
def connect(python_of: Callable[[str], Path], service: Restartable) -> Iterator[Callable[[Kind], Client]]:
    with ExitStack() as clients:

        def connected(kind: Kind) -> Client:
            client = Client(python_of(kind.generation), kind, service.url)
            clients.callback(client.close)
            return client

        yield connected


# ---- Claims ----


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_client_connects_lists_the_tools_calls_each_and_can_correct_itself(
    kind: Kind, connect: Callable[[Kind], Client]
) -> None:
    client = connect(kind)
    assert client.greeting["version"] == kind.version
    assert client.greeting["server"] == "reviewsd"
    assert BUSINESS in client.greeting["instructions"]
    assert sorted(client.greeting["tools"]) == sorted(CALLS)
    for tool, arguments in CALLS.items():
        called = client.call(tool, arguments)
        assert called["isError"] is False, called
        assert called["structured"] == json.loads(TOOLBOX.call(tool, arguments)["structuredContent"])
        assert [json.loads(text) for text in called["texts"]] == [called["structured"]]
    wrong = client.call("search_reviews", {"rating": 7, "querry": "back"})
    assert wrong["isError"] is True
    assert "rating: 7 is above the maximum of 5" in wrong["texts"][0]
    assert "did you mean query?" in wrong["texts"][0]
    assert client.call("no_such_tool", {})["code"] == -32602
    assert client.call("search_reviews", {"rating": "5", "query": None})["isError"] is False


def test_clients_work_side_by_side_and_go_on_after_the_daemon_was_restarted(
    connect: Callable[[Kind], Client], service: Restartable
) -> None:
    clients = [connect(kind) for kind in KINDS]
    before = [client.call("get_recent_reviews", {}) for client in clients]
    assert before == [before[0]] * len(KINDS)
    service.stop()
    service.start()
    assert [client.call("get_recent_reviews", {}) for client in clients] == before
