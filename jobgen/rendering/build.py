"""Build the object of a job in one environment: render a spec or take a raw manifest, then apply the patches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.k8s.kinds import CLUSTER_SCOPED, needs_name
from jobgen.k8s.nodes import as_mapping
from jobgen.k8s.secrets import is_encrypted
from jobgen.model.data import (
    API_VERSION,
    Node,
    TracedKey,
    TracedScalar,
    ValidFields,
    locatable,
    untraced,
    value_of,
    with_layer,
)
from jobgen.model.finding import Identity, Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import find_closest, suggest_type
from jobgen.rendering.expand import Expander, JobDocument, JobSpec
from jobgen.rendering.patch_objects import apply_images, apply_patches
from jobgen.rendering.runtimes import complete_reference, render_runtimes
from jobgen.schema.shipped_kinds import is_shipped_kind
from jobgen.spec.merge import Deletion
from jobgen.spec.overlay import JobAttributes, Patch

_MAX_NAME_LENGTH = 253
# One segment of a path, whatever the platform.
_GROUP = API_VERSION.rpartition("/")[0] + "/"
_LAYERED = frozenset(("metadata", "spec"))
_SPEC_KINDS = frozenset(("TrainingJob", "Overlay"))
_PATH_SEGMENT = lazy_pattern(r"[^./\\\0][^/\\\0]{0,252}\Z")


def build_object(
    job: JobDocument, expander: Expander, patches: list[Patch], problems: list[Problem], deletions: list[Deletion]
) -> Mapping[str, Node] | None:
    """Build the object of a job, without its companions."""
    return next(iter(build_objects(job, expander, patches, problems, deletions)), None)


def build_objects(
    job: JobDocument, expander: Expander, patches: list[Patch], problems: list[Problem], deletions: list[Deletion]
) -> tuple[Mapping[str, Node], ...]:
    """Build the object of a job and its companions, such as the Service that its pods need.

    Problems say why that fails; no object without problems means that the job is inactive.
    """
    is_job = is_spec(job.data)
    if not is_job and is_encrypted(job.data):
        # Another namespace or label would break the signature of SOPS.
        return (with_layer(job.data, "manifest"),)
    spec = expander.expand(job, patches, problems, deletions) if is_job else None
    has_locks = bool(expander.environment.locks)
    if has_locks:
        # Imported late: most repositories have no locks.
        from jobgen.rendering.locks import find_locked_in_job, find_locked_in_manifest, find_locked_operations

        manifest = () if is_job else find_locked_in_manifest(job, expander, patches)
        problems += find_locked_in_job(job, expander, patches, spec) if is_job else manifest
    if spec is not None:
        # Imported late: a repository with raw manifests alone needs neither.
        from jobgen.rendering.by_kind import render_spec
        from jobgen.rendering.runs import is_inactive, name_run

        if "run" in spec.fields and is_inactive(spec, expander.day, problems):
            return ()
        made: Mapping[str, Any] = render_spec(spec, problems, deletions)
    elif is_job:
        return ()
    else:
        made = _complete_metadata(job, expander, problems)
    if has_locks and any(patch.json_patch is not None for patch in patches):
        problems += find_locked_operations(made, expander, patches)
    made = apply_patches(made, patches, problems, deletions)
    made = complete_reference(made, expander.environment.runtimes)
    made = apply_images(made, expander.environment, expander.kinds, deletions, is_spec=spec is not None)
    # A plain render of a plain job needs neither the name nor the annotations of a run.
    if spec is not None and (spec.cluster.gitops or "run" in spec.fields):
        made = name_run(made, spec, _source_path(job), problems)
    companions: tuple[Mapping[str, Any], ...] = ()
    if spec is not None and spec.kind.network is not None:
        from jobgen.rendering.network import connect_pods

        made, companions = connect_pods(made, spec, problems)
    companions += render_runtimes(made, expander.environment, expander.kinds, problems, deletions)
    if not problems:
        problems.extend(_find_unsafe_names(made, is_written=spec is None and expander.environment.as_written))
    return (made, *companions, *(_build_own_companions(made, spec) if spec is not None and not problems else ()))


def _build_own_companions(made: Mapping[str, Any], spec: JobSpec) -> tuple[Mapping[str, Any], ...]:
    """The ConfigMaps and ServiceAccounts whose content is in the job."""
    companions: tuple[Mapping[str, Any], ...] = ()
    if any("configs" in role.pod for role in spec.roles.values()):
        from jobgen.rendering.sources import build_config_maps

        companions += build_config_maps(made, spec)
    if any(isinstance(role.pod.get("serviceAccount"), dict) for role in spec.roles.values()):
        from jobgen.rendering.network import build_service_accounts

        companions += build_service_accounts(made, spec)
    return companions


def _source_path(job: JobDocument) -> Node:
    """The path of a job's file; None for an item of a KRM resource list, which has no file."""
    if not job.file.startswith("jobs/"):
        return None
    # A file name may hold any bytes; an object holds text.
    path = job.file.encode("utf-8", "replace").decode()
    first = next(iter(job.data))
    if type(first) is not TracedKey:
        return path
    # No scalar of the file holds this value, so its location is the point where the job starts.
    return TracedScalar(path, first.location._replace(end_line=0, end_column=0), "path of the file")


def name_layer(job: JobDocument) -> JobDocument:
    """A traced document whose nodes name its layer, so that they need not be copied for each environment."""
    if not is_spec(job.data):
        return job._replace(data=with_layer(job.data, "manifest"))
    parts = {key: with_layer(value, "job") if key in _LAYERED else value for key, value in job.data.items()}
    return job._replace(data=parts)


def is_spec(data: Mapping[str, Node]) -> bool:
    """Return True if a document is a job spec rather than a raw manifest."""
    # Any version of the group, and a misspelled group: these are errors in a spec, not a raw manifest.
    written, kind = data.get("apiVersion"), data.get("kind")
    api_version = written if type(written) is str else str(value_of(written))
    if api_version.startswith(_GROUP):
        return True
    kind = kind if type(kind) is str else value_of(kind)
    if type(kind) is not str or kind not in _SPEC_KINDS or api_version in ("", "None"):
        return False
    spec = data.get("spec")
    # Other groups may have a kind of the same name. Those have a domain, and their specs have no `framework`.
    group = api_version.rpartition("/")[0]
    has_framework = isinstance(spec, dict) and "framework" in spec
    return "." not in group or bool(find_closest(group, [_GROUP[:-1]])) or has_framework


def job_attributes(job: JobDocument, expander: Expander) -> JobAttributes:
    """The attributes of a spec or raw manifest that overlay selectors match on."""
    if is_spec(job.data):
        return expander.attributes(job)
    metadata = untraced(job.metadata)
    api_version, name = (str(value_of(job.data[key])) for key in ("apiVersion", "kind"))
    kind = next((known for known in expander.kinds if known.describes(api_version, name)), None)
    labels: Any = metadata.get("labels") if isinstance(metadata.get("labels"), dict) else {}
    framework = next(iter(kind.frameworks)) if kind and len(kind.frameworks) == 1 else ""
    namespace = str(metadata.get("namespace") or value_of(expander.find_namespace(job, [])) or "")
    platform, team = kind.platform if kind else "", expander.find_team(job.file)
    return JobAttributes(job.name, labels, framework, name, namespace, job.file, False, platform, team)


def _complete_metadata(job: JobDocument, expander: Expander, problems: list[Problem]) -> ValidFields:
    """A raw manifest with the labels of its team, in the environment's namespace if it has none of its own."""
    data = with_layer(job.data, "manifest")
    if expander.environment.as_written:
        return data
    if expander.environment.teams.find(job.file):
        data = {**data, "metadata": expander.add_team_labels(data.get("metadata") or {}, job.file)}
    namespace, metadata = expander.environment.namespace, as_mapping(data.get("metadata"))
    if value_of(namespace) is None or "namespace" in metadata or value_of(data["kind"]) in CLUSTER_SCOPED:
        return data
    return {**data, "metadata": {**metadata, "namespace": expander.find_namespace(job, problems)}}


def identity_of(made: Mapping[str, Node]) -> Identity:
    """The identity of an object in the API server."""
    metadata = made.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = value_of(metadata.get("name")) or value_of(metadata.get("generateName")) or ""
    return Identity(
        api_version=str(value_of(made.get("apiVersion", ""))),
        kind=str(value_of(made.get("kind", ""))),
        namespace=str(value_of(metadata.get("namespace")) or ""),
        name=str(name),
    )


def _find_unsafe_names(made: Mapping[str, Node], *, is_written: bool = False) -> Iterator[Problem]:
    """Report names that are not one path segment: they become file names in the rendered tree.

    Of an object that `is_written`, no file is made.
    """
    identity = identity_of(made)
    names = ("kind", identity.kind), ("namespace", identity.namespace), ("name", identity.name)
    for field, name in names[: 1 if is_written else None]:
        if not (_PATH_SEGMENT.match(name) and name.isprintable()) and (name or field != "namespace"):
            message = Sentence("`{}` is not a valid {} of an object", name, field)
            if not name:
                message = Sentence("a patch removes `{}`; an object needs one", field)
            elif len(name) > _MAX_NAME_LENGTH:
                message = Sentence(
                    "`{}…` has {} characters; a {} has at most {}", name[:40], len(name), field, _MAX_NAME_LENGTH
                )
            holder = made if field == "kind" else made.get("metadata")
            # A name that a patch removed has no location; the job's is used instead.
            node = holder.get(field) if isinstance(holder, dict) else None
            yield Problem("invalid-name", message, node, category="schema")


_ROOT_FIELDS = frozenset(("apiVersion", "kind", "metadata", "spec", "status", "name", "generateName", "namespace"))


_LIST_FIELDS = frozenset(("apiVersion", "kind", "metadata", "items"))
# A list of any objects, and what KRM functions read and write.
_MIXED_LISTS = frozenset(
    ("v1/List", "config.kubernetes.io/v1/ResourceList", "config.kubernetes.io/v1beta1/ResourceList")
)


def split_list(data: ValidFields) -> list[ValidFields]:
    """The objects of a document: the items of a list of objects, or the document itself."""
    return list(data["items"]) if is_split(data) else [data]


def is_split(data: ValidFields) -> bool:
    """Return True if a document is a list of objects."""
    items = data.get("items")
    if not isinstance(items, list):
        return False
    # The API server writes items without their kind.
    return _is_list_kind(data) or bool(_name_listed(data) and any(map(_looks_like_object, items)))


def _looks_like_object(item: Node) -> bool:
    return isinstance(item, dict) and ("metadata" in item or {"apiVersion", "kind"} <= item.keys())


def list_errors(data: Mapping[str, Node]) -> list[Problem]:
    """Report the fields of a list that it does not have; clients drop them with the list."""
    kind = value_of(data.get("kind"))
    if not isinstance(data.get("items"), list) or kind == "ResourceList" or not _is_list_kind(data):
        return []
    message = "`{}` is not a field of `{}`, and is dropped; remove it, or move it into an item"
    return [
        Problem("unknown-field", message.format(key, kind), key, category="schema", severity=Severity.WARNING)
        for key in data
        if key not in _LIST_FIELDS
    ]


def _is_list_kind(data: Mapping[str, Node]) -> bool:
    """Return True if a document is a list, whatever its items are: a `List`, or a list of a known kind."""
    api_version, listed = str(value_of(data.get("apiVersion"))), _name_listed(data)
    if f"{api_version}/{value_of(data.get('kind'))}" in _MIXED_LISTS:
        return True
    return bool(listed) and is_shipped_kind(api_version, listed)


def _name_listed(data: Mapping[str, Node]) -> str:
    """The kind of the items if the document is a list of one kind: `Pod` of a `PodList`."""
    kind = str(value_of(data.get("kind")))
    return kind.removesuffix("List") if kind.endswith("List") else ""


def manifest_errors(manifest: Node) -> list[Problem]:
    """Report what keeps a raw manifest from being an object."""
    if not isinstance(manifest, dict):
        return [Problem("not-a-mapping", "an item of a List must be a mapping", manifest, category="yaml")]
    if is_spec(manifest):
        message = "a job spec cannot be an item of a List; write it as a document of its own"
        return [Problem("misplaced-job", message, manifest)]
    if _is_list_kind(manifest):
        # Its items were not split: they are missing, no list, or the List is an item itself.
        items = manifest.get("items")
        if value_of(items) is None:
            return [Problem("missing-field", "the List has no `items`", manifest, category="schema")]
        if not isinstance(items, list):
            message = "`items` of a List must be a list"
            return [Problem("wrong-type", message, items, category="schema", cause="no list")]
        message = "a List is an item of another List, so its items were not checked; write them in the outer List"
        return [Problem("invalid-value", message, items, category="schema")]
    if not {"apiVersion", "kind", "metadata"} & manifest.keys():
        message = "the document is not a Kubernetes object: it has no `apiVersion`, `kind` and `metadata`"
        return [Problem("missing-field", message, manifest, category="schema")]
    faults = [_check_text(manifest, key, key) for key in ("apiVersion", "kind")]
    return [fault for fault in (*faults, _check_name(manifest)) if fault]


def _check_name(manifest: Mapping[str, Node]) -> Problem | None:
    metadata = manifest.get("metadata")
    needs = needs_name(*(str(value_of(manifest.get(key))) for key in ("apiVersion", "kind")))
    if isinstance(metadata, dict):
        is_generated = not value_of(metadata.get("name")) and value_of(metadata.get("generateName"))
        key = "generateName" if is_generated else "name"
        is_checked = needs or value_of(metadata.get(key)) not in (None, "")
        return _check_text(metadata, key, f"metadata.{key}") if is_checked else None
    if value_of(metadata) is not None:
        return Problem("wrong-type", "`metadata` must be a mapping", metadata, category="schema")
    node = _locate_missing(manifest, "metadata")
    message = Sentence("the object has no `metadata`{}", _ask_for_similar(manifest, "metadata"))
    return Problem("missing-field", message, node, category="schema") if needs else None


def _find_similar(holder: Mapping[str, Node], key: str) -> str:
    return find_closest(key, [name for name in holder if name not in _ROOT_FIELDS])


def _ask_for_similar(holder: Mapping[str, Node], key: str) -> str:
    similar = _find_similar(holder, key) if key not in holder else ""
    return f"; write `{key}` in place of `{similar}`" if similar else ""


def _locate_missing(holder: Mapping[str, Node], key: str) -> Node:
    """The node for a field that is missing: its null, a key that is probably meant, or the first key."""
    similar = _find_similar(holder, key)
    return locatable(holder.get(key), next((name for name in holder if name == similar), None), holder)


def _check_text(holder: Mapping[str, Node], key: str, path: str) -> Problem | None:
    value = holder.get(key)
    if value_of(value) in (None, ""):
        message = Sentence("the object has no `{}`{}", path, _ask_for_similar(holder, key))
        return Problem("missing-field", message, _locate_missing(holder, key), category="schema")
    if not isinstance(value_of(value), str):
        fix_steps, safe = suggest_type(value, "a string")
        message = Sentence("`{}` must be a string", path)
        return Problem("wrong-type", message, value, category="schema", fix_steps=fix_steps, safe=safe)
    return None
