"""KRM functions: the ResourceList that comes in, what its functionConfig asks for, and the one that goes out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from jobgen.model.data import API_VERSION, Data
from jobgen.model.finding import Finding
from jobgen.model.path import Step, format_dotted, parse_pointer
from jobgen.model.suggest import did_you_mean
from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_yaml

MODES = {"generate": "JobGenerator", "transform": "JobTransformer", "validate": "JobValidator"}
"""What a function can be, and the kind of functionConfig that says so."""
_VERSIONS = ("config.kubernetes.io/v1", "config.kubernetes.io/v1beta1", "config.kubernetes.io/v1alpha1")
_FIELDS = {"generate": ("env", "jobs"), "transform": ("env",), "validate": ("env",)}
_LOCAL = "config.kubernetes.io/local-config"
# Annotations of those who run functions: they say where an item comes from, and are no part of it.
_ORCHESTRATION = (
    "internal.config.kubernetes.io/",
    "kustomize.config.k8s.io/",
    "config.k8s.io/",
    "config.kubernetes.io/path",
    "config.kubernetes.io/index",
)


class FunctionError(ValueError):
    """Input that is not what a function gets; the text is for people."""


class FunctionTask(NamedTuple):
    """What is asked of us."""

    mode: str
    env: str = ""
    jobs: tuple[str, ...] = ()


class ResourceList(NamedTuple):
    """Objects on their way through functions."""

    api_version: str
    items: list[Data]
    config: Data

    def text(self, items: Sequence[Data], results: Sequence[Data]) -> str:
        """The list as it goes out; other than items and results it is as it came."""
        told = {"results": list(results)} if results else {}
        config = {} if self.config is None else {"functionConfig": self.config}
        return to_yaml({"apiVersion": self.api_version, "kind": "ResourceList", "items": list(items), **config, **told})


def parse_resource_list(content: bytes) -> ResourceList:
    """The ResourceList on standard input, in YAML or JSON."""
    source = read(content, "<stdin>")
    if source.findings:
        found = source.findings[0]
        raise FunctionError(f"{found.location}: {found.message}")
    if len(source.documents) != 1 or source.documents[0].data.get("kind") != "ResourceList":
        raise FunctionError("standard input is not a ResourceList; kustomize and kpt make one")
    data = source.documents[0].data
    if data.get("apiVersion") not in _VERSIONS:
        raise FunctionError(
            f"a ResourceList of `{data.get('apiVersion')}` is not known (known: {', '.join(_VERSIONS)})"
        )
    items = data.get("items")
    if items is None:
        items = []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise FunctionError("`items` of the ResourceList is not a list of objects")
    config = data.get("functionConfig")
    if config is not None and not isinstance(config, dict):
        raise FunctionError("`functionConfig` of the ResourceList is not an object")
    return ResourceList(data["apiVersion"], items, config)


def parse_task(config: Data, mode: str) -> FunctionTask:
    """What a functionConfig asks for: one of our kinds, or a ConfigMap; `mode` is the word on the command line."""
    kind = (config or {}).get("kind")
    ours = {name: word for word, name in MODES.items()}
    said = _settings(config)
    if kind in ours:
        if mode and mode != ours[kind]:
            raise FunctionError(f"`{kind}` does not go with `jobgen fn {mode}`")
        chosen = ours[kind]
    elif kind in (None, "ConfigMap"):
        chosen = mode or str(said.pop("mode", ""))
        said.pop("mode", None)
    else:
        raise FunctionError(f"`{kind}` is not a functionConfig of jobgen (known: {', '.join(ours)}, ConfigMap)")
    if chosen not in MODES:
        raise FunctionError(f"nothing says what to do: give a {', '.join(ours)}, or `jobgen fn {'|'.join(MODES)}`")
    return _task(chosen, said)


def _settings(config: Data) -> dict[str, Data]:
    if config is None:
        return {}
    field = "data" if config.get("kind") == "ConfigMap" else "spec"
    if field == "spec" and config.get("kind") in MODES.values() and config.get("apiVersion") != API_VERSION:
        raise FunctionError(f"`{config['kind']}` is of `{API_VERSION}`, not of `{config.get('apiVersion')}`")
    said = config.get(field)
    if said is not None and not isinstance(said, dict):
        raise FunctionError(f"`{field}` of the functionConfig is not a mapping")
    return dict(said or {})


def _task(mode: str, said: dict[str, Data]) -> FunctionTask:
    known = _FIELDS[mode]
    for name in said:
        if name not in known:
            raise FunctionError(f"`{name}` is not a field of a {MODES[mode]}{did_you_mean(name, list(known))}")
    env, jobs = said.get("env", ""), said.get("jobs", [])
    # A ConfigMap holds texts only.
    patterns = jobs.split() if isinstance(jobs, str) else jobs
    if not isinstance(env, str):
        raise FunctionError("`env` has to be the name of an environment")
    if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
        raise FunctionError("`jobs` has to be a list of names or patterns")
    return FunctionTask(mode, env, tuple(patterns))


def is_local(item: Data) -> bool:
    """Whether an item is there for functions only, and never reaches a cluster."""
    if item.get("apiVersion") == API_VERSION and item.get("kind") in MODES.values():
        return True
    return str(annotations_of(item).get(_LOCAL, "")).lower() == "true"


def annotations_of(item: Data) -> dict[str, Data]:
    """The annotations of an item."""
    metadata = item.get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}


def source_file(item: Data) -> tuple[str, int]:
    """The file that an item was read from and its number there, if whoever runs us says so."""
    known = annotations_of(item)
    for prefix in ("internal.config.kubernetes.io/", "config.kubernetes.io/"):
        path, index = known.get(f"{prefix}path"), str(known.get(f"{prefix}index", "0"))
        if isinstance(path, str) and path and index.isdigit():
            return path, int(index)
    return "", 0


def without_orchestration(item: Data) -> Data:
    """The item as it was written, without what functions note on it."""
    kept = {key: value for key, value in annotations_of(item).items() if not key.startswith(_ORCHESTRATION)}
    metadata = item.get("metadata")
    if not isinstance(metadata, dict) or "annotations" not in metadata or kept == metadata["annotations"]:
        return item
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**item, "metadata": {**rest, **({"annotations": kept} if kept else {})}}


def to_results(findings: Iterable[Finding], files: Mapping[str, int]) -> list[Data]:
    """Findings as functions tell them; those who know no lines find them in the tags."""
    return [_result(finding, files) for finding in findings]


def _result(finding: Finding, files: Mapping[str, int]) -> Data:
    identity, location = finding.object, finding.location
    tags = {
        "rule": finding.rule,
        "category": finding.category,
        "line": str(location.line),
        "column": str(location.column),
    }
    result: dict[str, Data] = {"message": finding.message, "severity": finding.severity.value}
    if identity:
        where = {"namespace": identity.namespace} if identity.namespace else {}
        result["resourceRef"] = {
            "apiVersion": identity.api_version,
            "kind": identity.kind,
            "name": identity.name,
            **where,
        }
    if finding.pointer:
        steps: list[Step] = [
            int(step) if isinstance(step, str) and step.isdigit() else step for step in parse_pointer(finding.pointer)
        ]
        result["field"] = {"path": format_dotted(steps)}
    if location.file in files:
        result["file"] = {"path": location.file, "index": files[location.file]}
    return {**result, "tags": {**tags, **({"env": finding.env} if finding.env else {})}}
