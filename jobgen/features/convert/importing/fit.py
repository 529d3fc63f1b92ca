"""Fit imported specs to a repository: each must render to its manifest in every environment that selects it.

The overlays of a repository add defaults, choose the platform, and say what a GPU is called. A spec that renders to its
manifest by itself may need its own platform, or nulls that remove what the overlays add.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.convert.importing.collect import ImportedSpec, rewrite_document
from jobgen.features.convert.importing.invert import sort_fields
from jobgen.features.convert.importing.pod_fields import Fields, remove_server_fields
from jobgen.features.convert.importing.verify import (
    create_patch,
    find_differences,
    format_differences,
    is_equivalent,
    leave_out_namespace,
    render_objects,
)
from jobgen.model.data import Location, Plain, location_of, untraced, value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner
from jobgen.rendering.expand import JobDocument
from jobgen.spec.frameworks import collect_frameworks
from jobgen.spec.overlay import DEFAULT_GPU, list_ancestors

_SET_BY_JOB = frozenset(("framework", "platform", "replicas", "roles", "manifest", "podTemplate"))
"""Fields of defaults that no null of the job removes: it has its own, or another step handles them."""


class Misfit(NamedTuple):
    """Environments in which a spec does not render to its manifest, and what differs there."""

    envs: tuple[str, ...]
    reasons: tuple[str, ...]


class _Seen(NamedTuple):
    """What a spec renders to in an environment that selects it; None if it cannot be rendered."""

    runner: EnvironmentRunner
    rendered: dict[str, Plain] | None
    problems: tuple[str, ...]


def fit_spec(
    spec: ImportedSpec, path: str, runners: Sequence[EnvironmentRunner]
) -> tuple[ImportedSpec, tuple[Misfit, ...]]:
    """Return the spec, changed to render to its manifest in every environment, or how it differs there."""
    document: Fields = spec.document
    rendered: dict[str, _Seen] = {}
    for step in (_keep_document, _write_resource_names, _set_platform, _remove_defaults, _patch_rest, _patch_rest):
        document = step(spec, document, path, runners)
        seen = list(_render_everywhere(document, path, runners))
        if seen and all(_is_same(each, spec) for each in seen):
            text = spec.text if document == spec.document else rewrite_document(spec.text, document)
            return spec._replace(document=document, text=text), ()
        rendered |= {each.runner.name: each for each in seen if each.rendered is not None and not _is_same(each, spec)}
    envs: dict[tuple[str, ...], list[str]] = {}
    for each in _render_everywhere(document, path, runners):
        if not _is_same(each, spec):
            # If what was added to fit cannot be rendered, its reason is not in the manifest.
            shown = rendered.get(each.runner.name, each) if each.rendered is None else each
            locks = _explain_locks(list_added(spec.document, document), each) if shown is not each else ()
            envs.setdefault((*_explain(shown, spec), *locks), []).append(each.runner.name)
    return spec, tuple(Misfit(tuple(names), reasons) for reasons, names in envs.items())


def _explain_locks(added: Sequence[str], seen: _Seen) -> Iterator[str]:
    """Say which fields an overlay both sets and locks, so that no spec can keep them out."""
    for lock in seen.runner.expander.environment.locks:
        if lock.path and lock.path[0] in added:
            yield f"{lock.describe()}, so a job cannot do without its value; write it in the manifest, or unlock it"


def name_platform(spec: ImportedSpec, path: str, runners: Sequence[EnvironmentRunner]) -> ImportedSpec:
    """Return the spec with its platform if an environment would choose another one."""
    document = _set_platform(spec, spec.document, path, runners) if spec.is_spec else spec.document
    if document is spec.document:
        return spec
    return spec._replace(document=document, text=rewrite_document(spec.text, document))


def list_added(before: Fields, after: Fields) -> list[str]:
    """Return the fields of a spec that were set to fit it to the repository."""
    old, new = before["spec"], after["spec"]
    return [key for key in new if key != "platform" and (key not in old or new[key] != old[key])]


def _keep_document(_spec: ImportedSpec, document: Fields, _path: str, _runners: Sequence[EnvironmentRunner]) -> Fields:
    return document


def _render_everywhere(document: Fields, path: str, runners: Sequence[EnvironmentRunner]) -> Iterator[_Seen]:
    """Yield what a spec renders to in each environment that selects it."""
    for runner in runners:
        environment = runner.expander.environment
        attributes = runner.expander.attributes(JobDocument(document, path))
        if environment.matches(attributes):
            patches = environment.patches_for(attributes)
            rendered, problems = render_objects(document, runner.expander, alone=False, patches=patches, file=path)
            made: Any = remove_server_fields(dict(rendered[0]))[0] if rendered and not problems else None
            yield _Seen(runner, made, tuple(problems))


def _is_same(seen: _Seen, spec: ImportedSpec) -> bool:
    return seen.rendered is not None and is_equivalent(_compared(seen.rendered, spec), spec.manifest)


def _compared(rendered: dict[str, Plain], spec: ImportedSpec) -> dict[str, Plain]:
    """Return an object without the namespace that overlays give its manifest, too."""
    return leave_out_namespace(rendered) if spec.is_placed else rendered


def _explain(seen: _Seen, spec: ImportedSpec) -> tuple[str, ...]:
    if seen.rendered is None:
        return seen.problems or ("no object is rendered",)
    return tuple(format_differences(find_differences(spec.manifest, _compared(seen.rendered, spec))))


def _write_resource_names(
    _spec: ImportedSpec, document: Fields, _path: str, runners: Sequence[EnvironmentRunner]
) -> Fields:
    """Write the names of GPUs out if an environment calls them otherwise."""
    is_usual = all(runner.expander.environment.cluster.gpu_resource == DEFAULT_GPU for runner in runners)
    return document if is_usual else _rename_gpus(document, is_resources=False)


def _rename_gpus(node: Any, *, is_resources: bool) -> Any:
    if isinstance(node, list):
        return [_rename_gpus(each, is_resources=False) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        DEFAULT_GPU if is_resources and key == "gpu" else key: _rename_gpus(
            value, is_resources=key == "resources" or (is_resources and key in ("limits", "requests"))
        )
        for key, value in node.items()
    }


def _set_platform(spec: ImportedSpec, document: Fields, path: str, runners: Sequence[EnvironmentRunner]) -> Fields:
    """Name the platform if an environment would choose another kind for the job."""
    job = JobDocument(document, path)
    expanders = [runner.expander for runner in runners]
    attributes = [(each.environment, each.attributes(job)) for each in expanders]
    found = [each for environment, each in attributes if environment.matches(each)]
    if all((each.kind, each.platform) == (spec.kind.name, spec.kind.platform) for each in found):
        return document
    own = document["spec"]
    return {**document, "spec": {"framework": own["framework"], "platform": spec.kind.platform, **own}}


def _remove_defaults(spec: ImportedSpec, document: Fields, path: str, runners: Sequence[EnvironmentRunner]) -> Fields:
    """Set what the defaults of environments add to what the job has without them: the default of its kind, or null."""
    own = copy.deepcopy(document["spec"])
    changed, frameworks = {**document, "spec": own}, collect_frameworks(tuple(runners[0].expander.kinds))
    kind_defaults: Any = untraced(dict(spec.kind.frameworks[str(own["framework"])].defaults))
    gpu_names = frozenset(runner.expander.environment.cluster.gpu_resource for runner in runners)
    for runner in runners:
        environment = runner.expander.environment
        attributes = runner.expander.attributes(JobDocument(document, path))
        for each in environment.defaults if environment.matches(attributes) else ():
            block: Any = untraced(each.block)
            if each.matches(attributes) and isinstance(block, dict):
                added = {key: value for key, value in block.items() if key not in _SET_BY_JOB}
                named = _name_gpus_as_job(own, added, gpu_names, environment.cluster.gpu_resource)
                _shield(own, named, kind_defaults, lambda: not config.find_errors(changed, "trainingjob", frameworks))
    return {**document, "spec": sort_fields(own) if "platform" not in own else _sort_with_platform(own)}


def _name_gpus_as_job(own: Any, added: Any, gpu_names: frozenset[str], gpu_resource: str) -> Any:
    """Return defaults with the name that GPUs have in their environment where the job names those of an environment.

    A null for `gpu` beside `nvidia.com/gpu` would set one amount twice where GPUs are `nvidia.com/gpu`.
    """
    if not isinstance(own, dict) or not isinstance(added, dict):
        return added
    is_named = not gpu_names.isdisjoint(own)
    named = {gpu_resource if is_named and key == "gpu" else key: value for key, value in added.items()}
    return {key: _name_gpus_as_job(own.get(key), value, gpu_names, gpu_resource) for key, value in named.items()}


def _sort_with_platform(own: Fields) -> Fields:
    rest = {key: value for key, value in own.items() if key not in ("framework", "platform")}
    return {"framework": own["framework"], "platform": own["platform"], **sort_fields(rest)}


def _shield(own: Fields, added: Mapping[str, Any], usual: Any, is_valid: Callable[[], bool]) -> None:
    """Set each field that a job lacks and a default adds, if it may be set to that."""
    for key, value in added.items():
        below = usual.get(key) if isinstance(usual, dict) else None
        if isinstance(value, dict) and (isinstance(own.get(key), dict) or (key not in own and isinstance(below, dict))):
            _shield(own.setdefault(key, {}), value, below, is_valid)
            if not own[key]:
                del own[key]
        elif key not in own:
            own[key] = below
            if not is_valid():
                del own[key]


def _patch_rest(spec: ImportedSpec, document: Fields, path: str, runners: Sequence[EnvironmentRunner]) -> Fields:
    """Patch what still differs in the rendered object."""
    patch: Any = document["spec"].get("manifest") or {}
    for seen in _render_everywhere(document, path, runners):
        if seen.rendered is not None and not _is_same(seen, spec):
            patch = _join_patches(patch, create_patch(_compared(seen.rendered, spec), spec.manifest))
    return {**document, "spec": {**document["spec"], "manifest": patch}} if patch else document


def _join_patches(one: Any, other: Any) -> Any:
    """Return a patch that has both; of two values for one field, the other."""
    if isinstance(one, dict) and isinstance(other, dict):
        joined = {key: _join_patches(one[key], value) if key in one else value for key, value in other.items()}
        return {**one, **joined}
    if isinstance(one, list) and isinstance(other, list) and one and other and _has_names(one) and _has_names(other):
        named = {each["name"]: each for each in other}
        kept = [_join_patches(each, named.pop(each["name"])) if each["name"] in named else each for each in one]
        return [*kept, *named.values()]
    return other


def _has_names(items: list[Any]) -> bool:
    return all(isinstance(each, dict) and isinstance(each.get("name"), str) for each in items)


def find_unserved(platform: str, project: ProjectConfig) -> dict[str, Location]:
    """Return the environments that list platforms without this one, and where they list them."""
    traced = config.load(project.layers, traced=True)
    found: dict[str, Location] = {}
    for env in project.environments():
        cluster = traced.environment(env, []).cluster
        if cluster.platforms and platform not in map(value_of, cluster.platforms):
            found[env] = _find_list(env, traced)
    return found


def _find_list(env: str, traced: ProjectConfig) -> Location:
    """Return where the platforms of an environment are listed: in the nearest overlay, or in the settings."""
    specs = [spec for name in list_ancestors(env, traced.overlays) for spec in traced.overlays[name].specs]
    for holder in (*reversed(specs), traced.settings):
        listed = holder.get("cluster", {}).get("platforms")
        if listed:
            return location_of(listed) or location_of(listed[0]) or Location("overlays")
    return Location("overlays")
