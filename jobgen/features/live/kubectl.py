"""Read the API server with `kubectl get --raw`, page by page. Nothing else is run, and nothing is written.

jobgen has no credentials: kubectl uses those of the user. Every request has a limit of time, and after two requests
without an answer no more are made, so that a server that does not answer is reported soon.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from shutil import which
from typing import Any
from urllib.parse import quote

from jobgen.api.errors import ToolError
from jobgen.k8s.nodes import as_mapping
from jobgen.model.limits import MAX_DEPTH

SECONDS = 20
"""How long a request may take."""
PAGE = 500
"""How many objects a request returns."""
_MOST_PAGES = 10_000
_MOST_FAILURES = 2
_MAX_REASON = 200
_TOO_DEEP = "the answer is nested too deeply"


class UnansweredError(Exception):
    """A request that failed, with the reason."""


class MissingError(UnansweredError):
    """A request for something that the server does not have."""


class Kubectl:
    """The kubectl on PATH, with a context."""

    def __init__(self, context: str = "", seconds: float = SECONDS) -> None:
        """Find kubectl, or raise a ToolError."""
        program = which("kubectl")
        if program is None:
            raise ToolError("kubectl is not on PATH; install it from https://kubernetes.io/docs/tasks/tools/")
        # kubectl waits longer than its own limit while it connects, so it is stopped a little later.
        limit = f"--request-timeout={seconds * 0.8:g}s"
        self._command = [program, *(["--context", context] if context else []), limit]
        self._seconds = seconds
        self._failures: list[str] = []

    def get(self, path: str) -> Any:
        """Return the answer to a request, or raise an UnansweredError."""
        if len(self._failures) >= _MOST_FAILURES:
            raise UnansweredError(f"it was not asked, because {_MOST_FAILURES} requests failed: {self._failures[-1]}")
        try:
            done = subprocess.run(  # noqa: S603 -- kubectl, and paths of our own
                [*self._command, "get", "--raw", path],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=self._seconds,
            )
        except subprocess.TimeoutExpired as error:
            self._failures.append(f"no answer in {error.timeout:g} seconds")
            raise UnansweredError(self._failures[-1]) from error
        if done.returncode:
            text = done.stderr.decode("utf-8", "replace").strip()
            reason = (text.split("\n")[-1] or f"exit {done.returncode}")[:_MAX_REASON]
            is_answered = "Error from server" in reason and "(ServiceUnavailable)" not in reason
            self._failures = [] if is_answered else [*self._failures, reason]
            raise (MissingError if "(NotFound)" in reason else UnansweredError)(reason)
        self._failures = []
        try:
            return json.loads(done.stdout)
        except ValueError as error:
            raise UnansweredError("the answer is not JSON") from error
        except RecursionError as error:
            raise UnansweredError(_TOO_DEEP) from error

    def list(self, path: str, page: int = PAGE) -> Iterator[Mapping[str, Any]]:
        """Yield the objects of a list, page by page; raise an UnansweredError if one is missing."""
        token = ""
        for _ in range(_MOST_PAGES):
            answer = self.get(f"{path}?limit={page}" + (f"&continue={quote(token, safe='')}" if token else ""))
            if not isinstance(answer, dict) or not isinstance(answer.get("items"), list | None):
                raise UnansweredError("the answer is not a list")
            kind, version = str(answer.get("kind", "")).removesuffix("List"), str(answer.get("apiVersion", ""))
            for item in answer.get("items") or ():
                if isinstance(item, dict):
                    _check_shape(item)
                    yield {"apiVersion": version, "kind": kind, **item}
            token = str(as_mapping(answer.get("metadata")).get("continue") or "")
            if not token:
                return


def _check_shape(item: Mapping[str, Any]) -> None:
    """Raise an UnansweredError for what no API server sends: a map that is none, or values nested too deeply."""
    metadata = item.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise UnansweredError("the `metadata` of an object is not a map")
    for field in ("labels", "annotations"):
        if not isinstance(metadata.get(field), dict | None):
            raise UnansweredError(f"the `{field}` of an object is not a map")
    level: list[Any] = [item]
    for _ in range(MAX_DEPTH):
        maps = (each.values() if isinstance(each, dict) else each for each in level)
        level = [child for children in maps for child in children if isinstance(child, (dict, list))]
        if not level:
            return
    raise UnansweredError(_TOO_DEEP)
