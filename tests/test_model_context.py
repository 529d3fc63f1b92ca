"""`jobgen mcp` with a real client: the same JSON as the command line, and nothing but reading."""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.util import find_spec

import pytest
from command import run_jobgen_text

from jobgen.features.model_context.server import TOOLS, InvalidArgumentError, build_command

# Its import takes a second, and is for the tests that run.
pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="the extra mcp is not installed")

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/bert:latest
"""
BY_NAME = {tool.name: tool for tool in TOOLS}


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "jobgen.yaml").write_text("{}\n")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/bert.yaml").write_text(JOB)
    return tmp_path


def ask(root, *calls):
    """Start the server, list its tools, and call some of them."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def talk():
        server = StdioServerParameters(command=sys.executable, args=["-P", "-m", "jobgen", "-C", str(root), "mcp"])
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            listed = await session.list_tools()
            return listed.tools, [await session.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(asyncio.wait_for(talk(), 120))


def test_answers_are_those_of_the_command_line(repository):
    path = "spec.pytorchReplicaSpecs.Master.replicas"
    tools, answers = ask(
        repository,
        ("lint", {"paths": ["jobs"]}),
        ("explain", {"job": "bert", "path": path}),
        ("render", {"jobs": ["bert"]}),
        ("rule", {"rule": "mutable-image-tag"}),
        ("explain", {"job": "nothing"}),
        ("lint", {"paths": ["../other"]}),
        ("remove", {}),
    )
    commands = (
        ("lint", "--format", "json", "jobs"),
        ("explain", "--format", "json", "bert", path),
        ("render", "--format", "json", "bert"),
        ("explain", "--format", "json", "mutable-image-tag"),
    )

    assert sorted(tool.name for tool in tools) == sorted(BY_NAME)
    assert all(tool.annotations.read_only_hint for tool in tools)
    for answer, command in zip(answers, commands, strict=False):
        assert answer.content[0].text == run_jobgen_text(repository, *command).stdout
        assert not answer.is_error
    assert json.loads(answers[0].content[0].text)["findings"]
    assert [answer.is_error for answer in answers[4:]] == [True, True, True]
    assert "outside of the repository" in answers[5].content[0].text


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("lint", {"paths": ["--fix"]}, "remove the dash"),
        ("lint", {"paths": ["/etc"]}, "outside of the repository"),
        ("lint", {"paths": ["jobs/../../x"]}, "outside of the repository"),
        ("lint", {"paths": ["C:\\x"]}, "outside of the repository"),
        ("lint", {"paths": "jobs"}, "must be a list"),
        ("lint", {"since": "--output=x"}, "remove the dash"),
        ("lint", {"fix": True}, "has no argument `fix`"),
        ("render", {"output": "x"}, "has no argument `output`"),
        ("render", {"jobs": ["-ox"]}, "remove the dash"),
        ("explain", {}, "requires `job`"),
        ("explain", {"job": 5}, "must be text"),
        ("diff", {"revision": "--output"}, "remove the dash"),
        ("lint", {"paths": ["a"] * 101}, "has 101 items"),
        ("lint", {"paths": ["a" * 1001]}, "at most 1000 characters"),
        ("render", {"jobs": ["a\0b"]}, "must be printable"),
        ("render", {"jobs": ["\ud800"]}, "must be printable"),
    ],
)
def test_arguments_cannot_write_or_leave_the_repository(name, arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        build_command(BY_NAME[name], arguments)


def test_commands_read_only():
    calls = {"explain": {"job": "x"}, "rule": {"rule": "x"}}
    commands = {name: build_command(tool, calls.get(name, {})) for name, tool in BY_NAME.items()}

    assert {command[0] for command in commands.values()} == {"lint", "explain", "render", "diff", "queue", "teams"}
    assert all(command[1:3] == ["--format", "json"] for command in commands.values())


def test_outside_of_a_repository_it_says_so(tmp_path):
    done = run_jobgen_text(tmp_path, "mcp")

    assert (done.returncode, done.stdout) == (2, "")
    assert "no jobs repository" in done.stderr


def test_a_long_answer_is_not_held_in_memory(repository, monkeypatch):
    from jobgen.features.model_context import server

    monkeypatch.setattr(server, "_MAX_BYTES", 10_000)
    for number in range(60):
        (repository / f"jobs/{number}.yaml").write_text(JOB.replace("name: bert", f"name: bert-{number}"))

    answer = asyncio.run(server._run(["render", "--format", "json"], repository))

    assert answer.is_error
    assert answer.content[0].text == "the answer has more than 10,000 bytes; name fewer jobs or environments"
