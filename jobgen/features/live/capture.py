"""Read a cluster with `kubectl get --raw`, page by page, and write its state as files of the repository.

Nothing else is run. jobgen has no credentials: kubectl uses those of the user. Every request has a limit of time, and
after two requests without an answer no more are made, so that a server that does not answer is reported soon. No
secrets are kept, and nothing that changes by itself.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from jobgen.api.errors import ToolError, UsageError
from jobgen.engine.programs import find_here
from jobgen.k8s.nodes import as_list, as_mapping, get_path
from jobgen.k8s.redaction import redact_tree
from jobgen.k8s.secrets import find_secrets
from jobgen.model.finding import Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_DEPTH
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.config import ProjectConfig
from jobgen.repo.shipped import read_data
from jobgen.yamlio.write import to_yaml

SECONDS = 20
"""How long a request may take."""
PAGE = 500
"""How many objects a request returns."""
_MOST_PAGES = 2_000
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
        program = find_here("kubectl")
        if not program:
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
        tokens = set()
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
            if token in tokens:
                break
            tokens.add(token)
        raise UnansweredError("the pages of the list do not end")


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


class Resource(NamedTuple):
    """Objects of one kind that a capture reads."""

    group: str
    """The group and version, such as `apps/v1`; `v1` for the core group."""
    plural: str
    kept: Sequence[str] = ("spec",)
    """The fields beside `metadata` that are kept; `status.used` is one field of the status."""
    page: int = 500
    keeps_times: bool = False
    """True if the times of its conditions are kept: they say when something started and ended."""

    @property
    def path(self) -> str:
        """The path of the list of all objects."""
        return f"/{'api' if '/' not in self.group else 'apis'}/{self.group}/{self.plural}"


RESOURCES, RUNNING = (
    [Resource(**each) for each in read_data("capture.yaml")[name]] for name in ("resources", "running")
)
DEPLOYMENTS = Resource("apps/v1", "deployments")
DEFINITIONS = Resource("apiextensions.k8s.io/v1", "customresourcedefinitions", page=20)
_TAG = lazy_pattern(r"v?(\d+\.\d+(?:\.\d+)?)")
_NOISE = frozenset(
    """creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers generation managedFields
    resourceVersion selfLink uid""".split()
)
_NOISY_ANNOTATIONS = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "control-plane.alpha.kubernetes.io/leader",
    "csi.volume.kubernetes.io/nodeid",
    "node.alpha.kubernetes.io/ttl",
    "volumes.kubernetes.io/controller-managed-attach-detach",
)
_VOLATILE = frozenset(
    ("lastTransitionTime", "lastProbeTime", "lastUpdateTime", "lastHeartbeatTime", "observedGeneration")
)


def pluralize_kind(kind: str) -> str:
    """Return the name of a kind in paths, as Kubernetes forms it by default."""
    name = kind.lower()
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return f"{name}{'es' if name.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


def strip(obj: Mapping[str, Any], kept: Sequence[str], *, keeps_times: bool = False) -> dict[str, Any]:
    """Return what is kept of an object: its names, labels and annotations, and some of its fields, without secrets."""
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _NOISE}
    annotations = metadata.pop("annotations", None) or {}
    own = {key: value for key, value in annotations.items() if key not in _NOISY_ANNOTATIONS}
    found: dict[str, Any] = {key: obj.get(key) for key in ("apiVersion", "kind")}
    found["metadata"] = {**metadata, "annotations": own} if own else metadata
    for field in kept:
        first, _, below = field.partition(".")
        block = obj.get(first)
        value = block.get(below) if below and isinstance(block, dict) else block if not below else None
        if value is not None:
            place = found.setdefault(first, {}) if below else found
            place[below or first] = _without_times(
                value, _VOLATILE - {"lastTransitionTime"} if keeps_times else _VOLATILE
            )
    masked: Any = redact_tree(found, find_secrets(found))
    return dict(masked)


def _without_times(node: Any, volatile: frozenset[str]) -> Any:
    """Return a value without what changes by itself."""
    if isinstance(node, dict):
        return {key: _without_times(value, volatile) for key, value in node.items() if key not in volatile}
    return [_without_times(item, volatile) for item in node] if isinstance(node, list) else node


def find_operators(deployment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the operators that a Deployment runs, with the versions of their images."""
    containers, images = (
        get_path(deployment, "spec", "template", "spec", "containers"),
        read_data("capture.yaml")["images"],
    )
    for container in map(as_mapping, as_list(containers)):
        name, _, tag = str(container.get("image", "")).partition("@")[0].rpartition(":")
        words = name.split("/")
        operator = images.get("/".join(words[-2:])) or images.get(words[-1])
        version = _TAG.match(tag)
        if operator and version:
            yield operator, str(version[1])


_MOST_BYTES = 4_000_000
"""The size of a file: half of what a lint reads."""
RUNNING_FOLDER = ".running"
"""The folder of jobs that run. A lint skips it, because its name starts with a dot."""


class Captured(NamedTuple):
    """What was read of a cluster."""

    day: str
    files: Mapping[str, str]
    """The texts of files, by their names in the folder."""
    objects: int
    kubernetes: str
    operators: Mapping[str, str]
    unread: Mapping[str, str]
    """Resources that could not be read, with the reason."""
    missing: tuple[str, ...] = ()
    """Resources that the cluster does not have."""


def find_folder(config: ProjectConfig, env: str) -> str:
    """Return the folder of an environment's state, or raise a UsageError."""
    folder = config.environment(env, []).cluster.state
    if not folder:
        # It may be named in a line with an error.
        error = next((each for each in config.findings if each.severity is Severity.ERROR), None)
        if error is not None:
            file, line = error.location[:2]
            raise UsageError(f"the folder for the state of the cluster is not known; {file}:{line}: {error.message}")
        advice = f"set `cluster: {{state: cluster/{env or 'state'}}}` in overlays/{env or '<env>'}/overlay.yaml"
        where = f"environment `{env}`" if env else "the repository"
        raise UsageError(f"{where} names no folder for the state of its cluster; {advice}")
    return folder


def capture(kubectl: Kubectl, day: str) -> Captured:
    """Read a cluster. What cannot be read is named, and the rest is read."""
    unread: dict[str, str] = {}
    missing: list[str] = []
    files: dict[str, str] = {}
    count = 0
    served = list_served(kubectl, unread)
    for resource in (*RESOURCES, *RUNNING):
        name = f"{resource.plural}.{resource.group.rpartition('/')[0]}".rstrip(".")
        found = select_version(resource, served)
        if found is None:
            missing.append(name)
            continue
        texts: list[tuple[str, str, str]] = []
        try:
            for each in kubectl.list(found.path, found.page):
                obj = strip(each, found.kept, keeps_times=found.keeps_times)
                metadata = obj["metadata"]
                texts.append((str(metadata.get("namespace", "")), str(metadata.get("name", "")), to_yaml(obj)))
        except MissingError:
            missing.append(name)
        except UnansweredError as error:
            # The objects of a few pages would look like all of them.
            unread[name] = str(error)
            continue
        count += len(texts)
        folder = f"{RUNNING_FOLDER}/" if resource in RUNNING else ""
        files |= _split(f"{folder}{name}", (text for *_, text in sorted(texts)))
    operators = _find_versions(kubectl, unread)
    kubernetes = _read_release(kubectl, unread)
    return Captured(day, files, count, kubernetes, operators, unread, tuple(missing))


def list_served(kubectl: Kubectl, unread: dict[str, str]) -> dict[tuple[str, str], list[str]] | None:
    """Return the versions in which the cluster serves custom resources, the stored one first; None if not known."""
    served: dict[tuple[str, str], list[str]] = {}
    try:
        for each in kubectl.list(DEFINITIONS.path, DEFINITIONS.page):
            spec = as_mapping(each.get("spec"))
            versions = [each for each in map(as_mapping, as_list(spec.get("versions"))) if each.get("served")]
            versions.sort(key=lambda each: not each.get("storage"))
            key = (str(spec.get("group", "")), str(as_mapping(spec.get("names")).get("plural", "")))
            served[key] = [str(each.get("name")) for each in versions]
    except UnansweredError as error:
        unread["customresourcedefinitions"] = str(error)
        return None
    return served


def select_version(resource: Resource, served: Mapping[tuple[str, str], list[str]] | None) -> Resource | None:
    """Return a resource in a version that the cluster serves; None if it has no such resource."""
    group, _, version = resource.group.rpartition("/")
    if not group or group in ("apps", "batch") or (group.endswith(".k8s.io") and "x-k8s" not in group):
        return resource
    if served is None:
        # The request says what is there.
        return resource
    versions = served.get((group, resource.plural))
    if not versions:
        return None
    return resource if version in versions else resource._replace(group=f"{group}/{versions[0]}")


def _split(name: str, texts: Iterator[str]) -> dict[str, str]:
    """Return the files of some objects: one, or several that a lint can read."""
    parts: list[list[str]] = [[]]
    size = 0
    for text in texts:
        if size + len(text) > _MOST_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(text)
        size += len(text)
    names = (f"{name}.yaml" if len(parts) == 1 else f"{name}-{number:03}.yaml" for number in range(1, len(parts) + 1))
    return {name: "---\n".join(part) for name, part in zip(names, parts, strict=True) if part}


def _find_versions(kubectl: Kubectl, unread: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    try:
        for deployment in kubectl.list(DEPLOYMENTS.path):
            found |= dict(find_operators(deployment))
    except UnansweredError as error:
        unread["deployments.apps"] = str(error)
    return dict(sorted(found.items()))


def _read_release(kubectl: Kubectl, unread: dict[str, str]) -> str:
    try:
        version = as_mapping(kubectl.get("/version"))
    except UnansweredError as error:
        unread["version"] = str(error)
        return ""
    return ".".join(str(version.get(part, "")).rstrip("+") for part in ("major", "minor"))


def propose_cluster(captured: Captured) -> str:
    """Return the block of an overlay that declares the versions of the cluster."""
    cluster: dict[str, Any] = {"kubernetes": captured.kubernetes} if captured.kubernetes else {}
    cluster |= {"operators": dict(captured.operators)} if captured.operators else {}
    return to_yaml({"cluster": cluster}) if cluster else ""


def describe_role() -> str:
    """Return the least ClusterRole that a capture needs."""
    groups: dict[str, list[str]] = {}
    for each in (*RESOURCES, *RUNNING, DEPLOYMENTS, DEFINITIONS):
        groups.setdefault(each.group.rpartition("/")[0], []).append(each.plural)
    rules: list[dict[str, Any]] = [
        {"apiGroups": [group], "resources": sorted(set(plurals)), "verbs": ["list"]}
        for group, plurals in sorted(groups.items())
    ]
    rules.append({"nonResourceURLs": ["/version"], "verbs": ["get"]})
    role: dict[str, Any] = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "jobgen-capture"},
    }
    return to_yaml({**role, "rules": rules})
