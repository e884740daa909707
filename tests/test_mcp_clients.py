"""The official Python SDK's clients of both generations work with the endpoint at the first try.

A client is the script `lab/mcp_client.py`, run by the Python of an environment that has
the SDK.

Sections: environments - clients - claims.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from lab.data_sets import URLS
from lab.environments import environments, python_with
from lab.mcp_sample import BUSINESS, CALLS, TOOLBOX, Object
from lab.services import Service, daemon

from mcp_rpc import success, text_of
from reviewslib.dataset.strict_json import encode

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


CLIENTS = {  # generation of the SDK, mode, and the version that the client must negotiate
    "v1": ("v1", "", "2025-11-25"),
    "v2": ("v2", "auto", "2026-07-28"),
    "v2-handshake": ("v2", "legacy", "2025-11-25"),
}
every_client = pytest.mark.parametrize(
    ("generation", "mode", "version"), CLIENTS.values(), ids=CLIENTS
)
Call = Callable[[str, Object], Object]


@contextmanager
def client(python: Path, mode: str, service: Service) -> Iterator[tuple[Object, Call]]:
    """What a client script reports, and a function that calls a tool. The script must end with status 0."""
    script = str(Path(__file__).parent / "lab" / "mcp_client.py")
    command = [str(python), script, f"{service.base_url}/mcp", *mode.split()]
    pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, **pipes) as process:

        def call(tool: str, arguments: Object) -> Object:
            process.stdin.write(
                json.dumps({"tool": tool, "arguments": arguments}) + "\n"
            )
            process.stdin.flush()
            return read()

        def read() -> Object:
            if not (line := process.stdout.readline()):
                pytest.fail(f"the client ended: {process.communicate(timeout=30)[1]}")
            said: Object = json.loads(line)
            return said

        yield read(), call
        _, complaints = process.communicate(timeout=30)
        assert process.returncode == 0, complaints


# ---- Claims ----


@every_client
def test_a_client_calls_every_tool_and_corrects_itself(
    python_of: PythonOf, generation: str, mode: str, version: str
) -> None:
    with (
        daemon() as service,
        client(python_of(generation), mode, service) as (greeting, call),
    ):
        assert (greeting["version"], greeting["server"]) == (version, "reviewsd")
        assert BUSINESS in greeting["instructions"]
        assert sorted(greeting["tools"]) == sorted(CALLS)
        for tool, arguments in CALLS.items():
            called = call(tool, arguments)
            answer = success(1, TOOLBOX.call(tool, arguments)).decode()
            expected = json.loads(answer.replace(URLS.base_url, service.base_url))[
                "result"
            ]
            assert (called["isError"], called["structured"]) == (
                False,
                expected["structuredContent"],
            )
            # What is empty, and addresses that no model opens, stand in no text.
            text = json.loads(text_of(encode(called["structured"])))
            assert [json.loads(each) for each in called["texts"]] == [text]
        wrong = call("search_reviews", {"rating": 7, "querry": "back"})
        assert wrong["isError"] is True
        assert "rating: 7 is above the maximum of 5" in wrong["texts"][0]
        assert call("no_such_tool", {})["code"] == -32602
        assert (
            call("search_reviews", {"rating": "5", "query": None})["isError"] is False
        )


def test_clients_work_side_by_side_and_survive_a_restart(
    python_of: PythonOf, tmp_path: Path
) -> None:
    with ExitStack() as running, ExitStack() as clients:
        service = running.enter_context(daemon(state=tmp_path))
        calls = [
            clients.enter_context(client(python_of(generation), mode, service))[1]
            for generation, mode, _ in CLIENTS.values()
        ]
        before = [call("get_recent_reviews", {}) for call in calls]
        assert before == [before[0]] * len(CLIENTS)
        running.close()
        running.enter_context(daemon(port=service.port, state=tmp_path))
        assert [call("get_recent_reviews", {}) for call in calls] == before
