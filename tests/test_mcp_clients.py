"""The official Python SDK's clients of both generations work at the first try.

A client is the script `lab/mcp_client.py`, run by the Python of an environment that has
the SDK.

Sections: environments - clients - claims.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lab.data_sets import URLS
from lab.environments import environments, python_with
from lab.mcp_sample import BUSINESS, CALLS, TOOLBOX, Object
from lab.services import ROOT, Service, daemon

from mcp_rpc import success
from reviewslib.dataset.strict_json import encode
from reviewslib.mcp_tools import brief_text

pytestmark = pytest.mark.slow

# ---- Environments ----

REQUIREMENTS = {"v1": "mcp>=1.30,<2", "v2": "mcp>=2.3,<3"}
PythonOf = Callable[[str], Path]


@pytest.fixture(scope="session")
def python_of(request: pytest.FixtureRequest) -> PythonOf:
    """The Python that has the SDK of a generation, `v1` or `v2`."""
    base = environments(request)

    def python(generation: str) -> Path:
        return python_with(base / generation, REQUIREMENTS[generation])

    return python


# ---- Clients ----


@dataclass(frozen=True)
class Client:
    """A client program: the SDK's generation, its mode, the version it negotiates."""

    generation: str
    mode: str
    version: str


CLIENTS = {
    "v1": Client("v1", "", "2025-11-25"),
    "v2": Client("v2", "auto", "2026-07-28"),
    "v2-handshake": Client("v2", "legacy", "2025-11-25"),
}
MCP_CLIENT = str(ROOT / "tests" / "lab" / "mcp_client.py")


class Conversation:
    """A running client; `greeting` is what it reports of the server."""

    def __init__(self, process: subprocess.Popen[str]):
        self._process = process
        self.greeting = self._read()

    def call(self, tool: str, arguments: Object) -> Object:
        assert self._process.stdin
        line = json.dumps({"tool": tool, "arguments": arguments})
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Object:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            _, complaints = self._process.communicate(timeout=30)
            pytest.fail(f"the client ended: {complaints}")
        said: Object = json.loads(line)
        return said


@contextmanager
def conversation(
    python_of: PythonOf, client: Client, service: Service
) -> Iterator[Conversation]:
    """A client that talks to a service, and must end with status 0."""
    python = str(python_of(client.generation))
    command = [python, MCP_CLIENT, f"{service.base_url}/mcp", *client.mode.split()]
    pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, **pipes) as process:
        yield Conversation(process)
        _, complaints = process.communicate(timeout=30)
        assert process.returncode == 0, complaints


# ---- Claims ----


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> Client:
    return CLIENTS[request.param]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with daemon() as running:
        yield running


@pytest.fixture
def talk(
    python_of: PythonOf, client: Client, service: Service
) -> Iterator[Conversation]:
    with conversation(python_of, client, service) as begun:
        yield begun


def test_a_client_agrees_to_a_version_and_knows_the_tools(
    talk: Conversation, client: Client
) -> None:
    assert talk.greeting["version"] == client.version
    assert talk.greeting["server"] == "reviewsd"
    assert BUSINESS in talk.greeting["instructions"]
    assert sorted(talk.greeting["tools"]) == sorted(CALLS)


def test_a_client_calls_every_tool(talk: Conversation, service: Service) -> None:
    for tool, arguments in CALLS.items():
        called = talk.call(tool, arguments)

        made = success(1, TOOLBOX.call(tool, arguments)).decode()
        here = json.loads(made.replace(URLS.base_url, service.base_url))
        assert called["isError"] is False
        assert called["structured"] == here["result"]["structuredContent"]
        # What is empty, and addresses that no model opens, stand in no text.
        text = json.loads(brief_text(encode(called["structured"])))
        assert [json.loads(each) for each in called["texts"]] == [text]


def test_a_client_is_told_what_is_wrong_with_an_argument(talk: Conversation) -> None:
    wrong = talk.call("search_reviews", {"rating": 7, "querry": "back"})

    assert wrong["isError"] is True
    assert "rating: 7 is above the maximum of 5" in wrong["texts"][0]


def test_a_client_is_told_that_there_is_no_such_tool(talk: Conversation) -> None:
    assert talk.call("no_such_tool", {})["code"] == -32602


def test_a_client_may_send_a_number_as_text_and_null(talk: Conversation) -> None:
    called = talk.call("search_reviews", {"rating": "5", "query": None})

    assert called["isError"] is False


def test_clients_work_side_by_side_and_survive_a_restart(
    python_of: PythonOf, tmp_path: Path
) -> None:
    with ExitStack() as running, ExitStack() as talks:
        # given a client of each kind at one service
        service = running.enter_context(daemon(state=tmp_path))
        talking = [
            talks.enter_context(conversation(python_of, client, service))
            for client in CLIENTS.values()
        ]
        first, *others = [each.call("get_recent_reviews", {}) for each in talking]
        assert others == [first] * len(others)

        # when it starts again at the same address
        running.close()
        running.enter_context(daemon(port=service.port, state=tmp_path))

        # then all of them go on
        after = [each.call("get_recent_reviews", {}) for each in talking]
        assert after == [first] * len(talking)
