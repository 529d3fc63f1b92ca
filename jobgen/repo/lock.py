"""The lock file of a rendered environment: the files that jobgen wrote, their inputs, and the version of jobgen."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType

from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

LOCK = "jobgen.lock.json"
"""Lists the files of an environment that jobgen wrote; it never touches any other file in the folder."""
TREE = "rendered"
"""The folder of the tree that `jobgen gitops` configures, and that `jobgen lint` checks."""
KUSTOMIZATION = "kustomization.yaml"
ATTRIBUTES = ".gitattributes"

# jobgen writes files in folders of namespaces, and two files by name. Other paths in a lock file are ignored.
_OWN_PATH = lazy_pattern(
    rf"[^./\\\0][^/\\\0]*/[^./\\\0][^/\\\0]*\.(?:yaml|json)\Z|{KUSTOMIZATION}\Z|{re.escape(ATTRIBUTES)}\Z"
)
_ENTRY = lazy_pattern(r'^ *("[^"\n]*"): "([0-9a-f]{64})",?$', re.MULTILINE)
_EMPTY: Mapping[str, str] = MappingProxyType({})


class Origin(NamedTuple):
    """The inputs of an environment: digests of its layers and, by file, of its jobs; and the version of jobgen."""

    tool: str = ""
    layers: str = ""
    jobs: Mapping[str, str] = _EMPTY
    source: str = ""
    """The commit whose jobs they are, if the tree is in another work tree."""


class LockFile(NamedTuple):
    """The files of an environment with their digests, and their inputs."""

    files: Mapping[str, str] = _EMPTY
    origin: Origin = Origin()

    def text(self) -> str | None:
        """The content of the lock file; None if the environment has no files."""
        if not self.files:
            return None
        tool, layers, jobs, source = self.origin
        lines = ['"version": 1']
        texts = ("tool", tool), ("source", source), ("layers", layers)
        lines += [f'"{name}": {json.dumps(text)}' for name, text in texts if text]
        for name, listed in (("jobs", jobs), ("files", self.files)):
            if listed:
                # What `json.dumps` with `indent` returns, in less time.
                body = json.dumps(dict(sorted(listed.items())), separators=(",\n    ", ": "))
                lines.append(f'"{name}": {{\n    {body[1:-1]}\n  }}')
        return "{\n  " + ",\n  ".join(lines) + "\n}\n"


def parse_lock(text: str) -> LockFile | None:
    """Parse a lock file, even one with merge conflicts; None if it does not list the files of jobgen."""
    try:
        if "\n<<<<<<< " in f"\n{text}":
            # Both sides of a conflict list files of jobgen.
            return LockFile(_own_files({str(json.loads(path)): digest for path, digest in _ENTRY.findall(text)}))
        read = json.loads(text)
        files, jobs = read["files"], read.get("jobs", {})
        known = read["version"] == 1 and all(isinstance(value, str) for value in (*files.values(), *jobs.values()))
        tool, layers, source = (str(read.get(name, "")) for name in ("tool", "layers", "source"))
        origin = Origin(tool, layers, _own_files(jobs), source)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return LockFile(_own_files(files), origin) if known else None


def _own_files(files: Mapping[str, str]) -> dict[str, str]:
    return {path: digest for path, digest in files.items() if _OWN_PATH.match(path)}


def is_object_path(path: str) -> bool:
    """Return True if a file of the tree has an object, rather than metadata of the tree."""
    return "/" in path


def compute_digest(text: str) -> str:
    """Compute the digest of a text."""
    # Imported late: it loads OpenSSL.
    from hashlib import sha256

    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def digest_data(data: object) -> str:
    """Compute the digest of data: comments and the order of keys do not matter."""
    return compute_digest(json.dumps(data, sort_keys=True, ensure_ascii=False, default=str))
