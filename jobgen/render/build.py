"""A job to its object in one environment: rendered from a spec or taken raw, with the patches laid over it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.model.data import API_VERSION, Data, TracedKey, TracedScalar, untraced, value_of, with_layer
from jobgen.model.finding import Identity, Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import suggest_type
from jobgen.render.expand import Expander, JobDocument
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import Deletion, merge
from jobgen.spec.overlay import JobAttributes, Patch

# Kinds that have no namespace; all others belong to one.
_CLUSTER_SCOPED = frozenset(
    """APIService CSIDriver CSINode ClusterQueue ClusterRole ClusterRoleBinding ClusterTrainingRuntime
    CustomResourceDefinition IngressClass MutatingWebhookConfiguration Namespace Node PersistentVolume PriorityClass
    ResourceFlavor RuntimeClass StorageClass Topology ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
    ValidatingWebhookConfiguration VolumeAttachment WorkloadPriorityClass""".split()
)
_LONGEST = 253
# One segment of a path, whatever the platform.
_GROUP = API_VERSION.rpartition("/")[0] + "/"
_SEGMENT = lazy_pattern(r"[^./\\\0][^/\\\0]{0,252}\Z")


def build_object(
    job: JobDocument, expander: Expander, patches: list[Patch], problems: list[Problem], deletions: list[Deletion]
) -> Data:
    """The object of a job; None, or one with problems, if it cannot be made; None without problems if it is at rest."""
    spec = expander.expand(job, patches, problems, deletions) if is_spec(job.data) else None
    if spec is not None:
        # Whoever has raw manifests alone renders nothing.
        from jobgen.render.by_kind import render_spec
        from jobgen.render.runs import is_inactive, name_run, needs_name

        if "run" in spec.fields and is_inactive(spec, expander.day, problems):
            return None
        made = render_spec(spec, problems, deletions)
    elif is_spec(job.data):
        return None
    else:
        made = _raw(job, expander)
    for patch in patches:
        if patch.manifest is not None:
            made = merge(made, patch.manifest, deletions)
        if patch.json_patch is not None:
            from jobgen.render import json_patch

            made = json_patch.apply_json_patch(made, patch.json_patch, problems)
    if spec is not None and needs_name(spec):
        made = name_run(made, spec, _source(job), problems)
    if not problems:
        problems.extend(_unsafe_names(made))
    return made


def _source(job: JobDocument) -> Data:
    """The path of a job's file; None if it is no file of the repository, but an item of somebody's list."""
    if not job.file.startswith("jobs/"):
        return None
    # A name may be any bytes, and an object is text.
    path = job.file.encode("utf-8", "replace").decode()
    first = next(iter(job.data))
    # No scalar of the file wrote this, so the place is a point: where the job begins.
    return (
        TracedScalar(path, first.location._replace(end_line=0, end_column=0), "path of the file")
        if type(first) is TracedKey
        else path
    )


def is_spec(data: Data) -> bool:
    """Whether a document is in a format of ours, rather than a raw manifest."""
    # Any version of our group: one that we do not know is a fault, and no manifest of somebody else's.
    return str(value_of(data.get("apiVersion"))).startswith(_GROUP)


def job_attributes(job: JobDocument, expander: Expander) -> JobAttributes:
    """What matches may ask about a job, a spec or a raw manifest."""
    if is_spec(job.data):
        return expander.attributes(job)
    metadata = untraced(job.data["metadata"])
    kind = _described(job.data, expander.kinds)
    framework = next(iter(kind.frameworks)) if kind and len(kind.frameworks) == 1 else ""
    labels = metadata.get("labels")
    return JobAttributes(
        name=job.name,
        labels=labels if isinstance(labels, dict) else {},
        framework=framework,
        kind=str(value_of(job.data["kind"])),
        namespace=metadata.get("namespace") or value_of(expander.environment.namespace) or "",
        path=job.file,
        is_spec=False,
    )


def _described(data: Data, kinds: Sequence[Kind]) -> Kind | None:
    api_version, kind = str(value_of(data["apiVersion"])), str(value_of(data["kind"]))
    return next((known for known in kinds if known.describes(api_version, kind)), None)


def _raw(job: JobDocument, expander: Expander) -> Data:
    """A raw manifest as it is, in the environment's namespace if it names none."""
    data = with_layer(job.data, "manifest")
    namespace = expander.environment.namespace
    if value_of(namespace) is None or "namespace" in data["metadata"] or value_of(data["kind"]) in _CLUSTER_SCOPED:
        return data
    return {**data, "metadata": {**data["metadata"], "namespace": namespace}}


def identity_of(made: Data) -> Identity:
    """What the API server will know the object by."""
    metadata = made.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = metadata.get("name", metadata.get("generateName", ""))
    return Identity(
        api_version=str(value_of(made.get("apiVersion", ""))),
        kind=str(value_of(made.get("kind", ""))),
        namespace=str(value_of(metadata.get("namespace")) or ""),
        name=str(value_of(name)),
    )


def _unsafe_names(made: Data) -> Iterator[Problem]:
    """Names become paths of files, so a name that is no path segment stops here."""
    identity = identity_of(made)
    for field, name in (("kind", identity.kind), ("namespace", identity.namespace), ("name", identity.name)):
        if not (_SEGMENT.match(name) and name.isprintable()) and (name or field != "namespace"):
            holder = made if field == "kind" else made.get("metadata")
            # A name that a patch took away has no place of its own; the job's will do.
            node = holder.get(field) if isinstance(holder, dict) else None
            yield Problem("invalid-name", _unsafe(field, name), node, category="schema")


def _unsafe(field: str, name: str) -> str:
    if not name:
        return f"a patch leaves the object without a `{field}`"
    if len(name) > _LONGEST:
        return f"`{name[:40]}…` is {len(name)} characters long, and a {field} takes {_LONGEST}"
    return f"`{name}` cannot be the {field} of an object"


def split_list(data: Data) -> list[Data]:
    """The objects of a document: those of a `kind: List`, or the one it is."""
    if str(value_of(data.get("kind"))).endswith("List") and isinstance(data.get("items"), list):
        return list(data["items"])
    return [data]


def manifest_errors(manifest: Data) -> list[Problem]:
    """What keeps a raw manifest from being an object at all."""
    if not isinstance(manifest, dict):
        return [Problem("not-a-mapping", "an item of a List must be a mapping", manifest, category="yaml")]
    if is_spec(manifest):
        return [Problem("misplaced-job", "a job of jobgen stands in a document of its own, not in a List", manifest)]
    faults = [_text_fault(manifest, key, key) for key in ("apiVersion", "kind")]
    metadata = manifest.get("metadata")
    if isinstance(metadata, dict):
        key = "generateName" if "generateName" in metadata and "name" not in metadata else "name"
        faults.append(_text_fault(metadata, key, f"metadata.{key}"))
    elif value_of(metadata) is None:
        faults.append(Problem("missing-field", "the object has no `metadata`", manifest, category="schema"))
    else:
        faults.append(Problem("wrong-type", "`metadata` must be a mapping", metadata, category="schema"))
    return [fault for fault in faults if fault]


def _text_fault(holder: dict[str, Data], key: str, path: str) -> Problem | None:
    value = holder.get(key)
    if value_of(value) is None:
        return Problem("missing-field", f"the object has no `{path}`", holder, category="schema")
    if not isinstance(value_of(value), str):
        fix_steps, safe = suggest_type(value, "a string")
        return Problem(
            "wrong-type", f"`{path}` must be a string", value, category="schema", fix_steps=fix_steps, safe=safe
        )
    return None
