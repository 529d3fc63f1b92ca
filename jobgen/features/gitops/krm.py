"""The KRM function protocol: read a ResourceList and its functionConfig, and write the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jobgen.model.data import API_VERSION, Plain
from jobgen.model.finding import Finding
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import format_dotted, parse_pointer
from jobgen.model.quantity import parse_digits
from jobgen.model.suggest import did_you_mean
from jobgen.rendering.file_secrets import read_masked
from jobgen.yamlio.write import to_yaml

MODES = {"generate": "JobGenerator", "transform": "JobTransformer", "validate": "JobValidator"}
"""The modes of the function, and the kind of functionConfig for each."""
_VERSIONS = ("config.kubernetes.io/v1", "config.kubernetes.io/v1beta1", "config.kubernetes.io/v1alpha1")
_FIELDS = {"generate": ("env", "jobs"), "transform": ("env",), "validate": ("env",)}
_LOCAL_CONFIG = "config.kubernetes.io/local-config"
# Annotations of kustomize and kpt: they track where an item comes from, and are not part of it.
_TRACKING = (
    "internal.config.kubernetes.io/",
    "kustomize.config.k8s.io/",
    "config.k8s.io/",
    "config.kubernetes.io/path",
    "config.kubernetes.io/index",
)


class FunctionError(ValueError):
    """Invalid input; the message is shown to users."""


class FunctionTask(NamedTuple):
    """What the function has to do."""

    mode: str
    env: str = ""
    jobs: tuple[str, ...] = ()


class ResourceList(NamedTuple):
    """The input and output of a function: objects and a functionConfig."""

    api_version: str
    items: list[dict[str, Plain]]
    config: Mapping[str, Plain] | None

    def to_yaml(self, items: Sequence[Plain], results: Sequence[Plain]) -> str:
        """The list with new items and results, as YAML."""
        document: dict[str, Plain] = {"apiVersion": self.api_version, "kind": "ResourceList", "items": list(items)}
        if self.config is not None:
            document["functionConfig"] = self.config
        if results:
            document["results"] = list(results)
        return to_yaml(document)


def parse_resource_list(content: bytes) -> ResourceList:
    """Parse the ResourceList on standard input, in YAML or JSON."""
    source = read_masked(content, "<stdin>")
    if source.findings:
        # Imported late: most lists can be read.
        from jobgen.rendering.redact import redact_findings
        from jobgen.repo.files import File

        [found] = redact_findings(source.findings[:1], [File("<stdin>", content)])
        raise FunctionError(f"{found.location}: {found.message}")
    if len(source.documents) != 1 or source.documents[0].data.get("kind") != "ResourceList":
        raise FunctionError("standard input is not a ResourceList; run the function with kustomize or kpt")
    data = source.documents[0].data
    if data.get("apiVersion") not in _VERSIONS:
        raise FunctionError(
            f"`{data.get('apiVersion')}` is not a known apiVersion of ResourceList (known: {', '.join(_VERSIONS)})"
        )
    items = [] if data.get("items") is None else data["items"]
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise FunctionError("`items` of the ResourceList must be a list of objects")
    config = data.get("functionConfig")
    if config is not None and not isinstance(config, dict):
        raise FunctionError("`functionConfig` of the ResourceList must be an object")
    return ResourceList(data["apiVersion"], items, config)


def parse_task(config: Mapping[str, Plain] | None, mode: str) -> FunctionTask:
    """Parse a functionConfig, one of our kinds or a ConfigMap; `mode` is the argument of the command."""
    kind = (config or {}).get("kind")
    ours = {name: word for word, name in MODES.items()}
    settings = _read_settings(config)
    if isinstance(kind, str) and kind in ours:
        if mode and mode != ours[kind]:
            raise FunctionError(
                f"`{kind}` cannot be used with `jobgen fn {mode}`; remove the argument or use a {MODES[mode]}"
            )
        chosen = ours[kind]
    elif kind in (None, "ConfigMap"):
        chosen = mode or str(settings.get("mode", ""))
        settings.pop("mode", None)
    else:
        raise FunctionError(f"`{kind}` is not a functionConfig that jobgen knows (known: {', '.join(ours)}, ConfigMap)")
    if chosen not in MODES:
        raise FunctionError(f"the mode is missing: use a {', '.join(ours)}, or run `jobgen fn {'|'.join(MODES)}`")
    for name in settings:
        if name not in _FIELDS[chosen]:
            hint = did_you_mean(name, list(_FIELDS[chosen]))
            raise FunctionError(f"`{name}` is not a field of a {MODES[chosen]}{hint}")
    env, jobs = settings.get("env", ""), settings.get("jobs", [])
    # A ConfigMap holds only strings.
    patterns = jobs.split() if isinstance(jobs, str) else jobs
    if not isinstance(env, str):
        raise FunctionError("`env` must be the name of an environment")
    names = [name for name in patterns if isinstance(name, str)] if isinstance(patterns, list) else None
    if names is None or names != patterns:
        raise FunctionError("`jobs` must be a list of names or patterns")
    return FunctionTask(chosen, env, tuple(names))


def _read_settings(config: Mapping[str, Plain] | None) -> dict[str, Plain]:
    if config is None:
        return {}
    field = "data" if config.get("kind") == "ConfigMap" else "spec"
    if field == "spec" and config.get("kind") in MODES.values() and config.get("apiVersion") != API_VERSION:
        raise FunctionError(
            f"the apiVersion of `{config['kind']}` must be `{API_VERSION}`, not `{config.get('apiVersion')}`"
        )
    settings = config.get(field)
    if settings is not None and not isinstance(settings, dict):
        raise FunctionError(f"`{field}` of the functionConfig must be a mapping")
    return dict(settings or {})


def is_local(item: Mapping[str, Plain]) -> bool:
    """Return True if an item is only for functions, and is never applied to a cluster."""
    if item.get("apiVersion") == API_VERSION and item.get("kind") in MODES.values():
        return True
    return str(get_annotations(item).get(_LOCAL_CONFIG, "")).lower() == "true"


def get_annotations(item: Mapping[str, Plain]) -> dict[str, Plain]:
    """The annotations of an item."""
    metadata = item.get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}


def source_file(item: Mapping[str, Plain]) -> tuple[str, int]:
    """The file that an item was read from and its index there, if the annotations have them."""
    annotations = get_annotations(item)
    for prefix in ("internal.config.kubernetes.io/", "config.kubernetes.io/"):
        path, index = annotations.get(f"{prefix}path"), str(annotations.get(f"{prefix}index", "0"))
        if isinstance(path, str) and path and (number := parse_digits(index)) is not None:
            return path, number
    return "", 0


def without_tracking(item: dict[str, Plain]) -> dict[str, Plain]:
    """The item without the annotations of kustomize and kpt."""
    kept = {key: value for key, value in get_annotations(item).items() if not key.startswith(_TRACKING)}
    metadata = item.get("metadata")
    if not isinstance(metadata, dict) or "annotations" not in metadata or kept == metadata["annotations"]:
        return item
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**item, "metadata": {**rest, **({"annotations": kept} if kept else {})}}


def to_results(findings: Iterable[Finding], files: Mapping[str, int]) -> list[Plain]:
    """Findings as results of a KRM function; lines and columns are tags, because results have no such fields."""
    results: list[Plain] = []
    for finding in findings:
        made, location = finding.object, finding.location
        result: dict[str, Plain] = {"message": finding.message, "severity": finding.severity.value}
        if made:
            namespace = {"namespace": made.namespace} if made.namespace else {}
            result["resourceRef"] = {"apiVersion": made.api_version, "kind": made.kind, "name": made.name, **namespace}
        if finding.pointer:
            pointer = parse_pointer(finding.pointer)
            steps = [int(step) if isinstance(step, str) and step.isdigit() else step for step in pointer]
            result["field"] = {"path": format_dotted(steps)}
        if location.file in files:
            result["file"] = {"path": location.file, "index": files[location.file]}
        place = {"line": str(location.line), "column": str(location.column)}
        env = {"env": finding.env} if finding.env else {}
        result["tags"] = {"rule": finding.rule, "category": finding.category, **place, **env}
        results.append(result)
    return results
