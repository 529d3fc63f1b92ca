"""The tools: each is a command that only reads, with the same JSON as on the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Arguments = Mapping[str, Any]


class InvalidArgumentError(ValueError):
    """An argument of a tool is wrong."""


class Tool(NamedTuple):
    """A tool: what it does, its arguments as JSON Schema, and the command line that it stands for."""

    name: str
    description: str
    properties: Mapping[str, Any]
    build: Callable[[Arguments], Sequence[str]]
    required: tuple[str, ...] = ()

    def describe_input(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.required),
            "additionalProperties": False,
        }


_MAX_ITEMS = 100
_MAX_LENGTH = 1000


def _list(description: str) -> dict[str, Any]:
    item = {"type": "string", "maxLength": _MAX_LENGTH}
    return {"type": "array", "items": item, "maxItems": _MAX_ITEMS, "description": description}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "maxLength": _MAX_LENGTH, "description": description}


_ENVIRONMENTS = _list("Names of environments; by default all.")


def _read_texts(arguments: Arguments, name: str) -> list[str]:
    """Return a list of names. What looks like an option is none of them."""
    return [_check(text, name) for text in arguments.get(name, ())]


def _read_text(arguments: Arguments, name: str) -> str:
    return _check(arguments.get(name, ""), name)


def _check(text: Any, name: str) -> str:
    if not isinstance(text, str):
        raise InvalidArgumentError(f"`{name}` must be text; it is `{str(text)[:_MAX_LENGTH]}`")
    if len(text) > _MAX_LENGTH or not text.isprintable():
        raise InvalidArgumentError(f"`{name}` must be printable text of at most {_MAX_LENGTH} characters")
    if text.startswith("-"):
        raise InvalidArgumentError(f"`{text}` is not a value of `{name}`; remove the dash at its start")
    return text


def _read_paths(arguments: Arguments, name: str) -> list[str]:
    """Return paths inside of the repository."""
    paths = _read_texts(arguments, name)
    for path in paths:
        if path.startswith(("/", "~")) or ":" in path[:2] or ".." in path.replace("\\", "/").split("/"):
            raise InvalidArgumentError(f"`{path}` is outside of the repository; write a path from its root")
    return paths


def _select(arguments: Arguments) -> list[str]:
    return [part for name in _read_texts(arguments, "environments") for part in ("-e", name)]


def _build_lint(arguments: Arguments) -> list[str]:
    since = _read_text(arguments, "since")
    return ["lint", *_select(arguments), *(("--since", since) if since else ()), *_read_paths(arguments, "paths")]


def _build_explain(arguments: Arguments) -> list[str]:
    path = _read_text(arguments, "path")
    return ["explain", *_select(arguments), _read_text(arguments, "job"), *((path,) if path else ())]


def _build_render(arguments: Arguments) -> list[str]:
    return ["render", *_select(arguments), *_read_texts(arguments, "jobs")]


def _build_diff(arguments: Arguments) -> list[str]:
    revision = _read_text(arguments, "revision")
    return ["diff", *_select(arguments), *((revision,) if revision else ())]


def _build_rule(arguments: Arguments) -> list[str]:
    return ["explain", _read_text(arguments, "rule")]


def _build_queue(arguments: Arguments) -> list[str]:
    return ["queue", *_select(arguments), *_read_texts(arguments, "jobs")]


def _build_teams(arguments: Arguments) -> list[str]:
    return ["teams", *_select(arguments), *_read_texts(arguments, "teams")]


TOOLS = (
    Tool(
        "lint",
        "Check jobs, overlays and manifests for what the cluster would reject. Each finding has its file and line.",
        {
            "paths": _list("Files or folders of the repository; by default all of it."),
            "environments": _ENVIRONMENTS,
            "since": _text("A Git revision: report only findings that are new since then."),
        },
        _build_lint,
    ),
    Tool(
        "explain",
        "Say which layers set a value of a job in each environment, with file and line.",
        {
            "job": _text("The name of the job."),
            "path": _text("The path of a field in the object or in the job; by default all fields."),
            "environments": _ENVIRONMENTS,
        },
        _build_explain,
        ("job",),
    ),
    Tool(
        "render",
        "Return the manifests of jobs in each environment.",
        {"jobs": _list("Names of jobs; by default all."), "environments": _ENVIRONMENTS},
        _build_render,
    ),
    Tool(
        "diff",
        "Say what the changes since a revision do to running jobs, when they are merged.",
        {"revision": _text("A Git revision; by default the base of the branch."), "environments": _ENVIRONMENTS},
        _build_diff,
    ),
    Tool("rule", "Return the page of a rule or policy.", {"rule": _text("Its name.")}, _build_rule, ("rule",)),
    Tool(
        "queue",
        "Say which jobs Kueue admits, which wait and for what, and which can never be admitted.",
        {"jobs": _list("Names of jobs; by default all."), "environments": _ENVIRONMENTS},
        _build_queue,
    ),
    Tool(
        "teams",
        "Say who owns what, and what is used of each budget.",
        {"teams": _list("Names of teams; by default all."), "environments": _ENVIRONMENTS},
        _build_teams,
    ),
)


def build_command(tool: Tool, arguments: Arguments) -> list[str]:
    """Return the command line of a call.

    Raises:
        InvalidArgumentError: An argument is missing, unknown or wrong.

    """
    for name in tool.required:
        if not arguments.get(name):
            raise InvalidArgumentError(f"`{tool.name}` requires `{name}`; add it")
    unknown = [name for name in arguments if name not in tool.properties]
    if unknown:
        raise InvalidArgumentError(f"`{tool.name}` has no argument `{unknown[0]}`; remove it")
    for name, schema in tool.properties.items():
        found = arguments.get(name, []) if schema["type"] == "array" else []
        if not isinstance(found, list):
            raise InvalidArgumentError(f"`{name}` must be a list; it is `{str(found)[:_MAX_LENGTH]}`")
        if len(found) > _MAX_ITEMS:
            raise InvalidArgumentError(f"`{name}` has {len(found):,} items; name at most {_MAX_ITEMS}")
    first, *rest = tool.build(arguments)
    return [first, "--format", "json", *rest]
