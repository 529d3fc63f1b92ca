"""Compose overlays to environments: the cluster, the defaults below jobs and the patches above them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from jobgen.model.data import Node, ValidFields, count_nodes, location_of, untraced, value_of, with_layer
from jobgen.model.digest import blake2b
from jobgen.model.finding import Problem, Severity
from jobgen.model.limits import MAX_DEPTH
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step, format_dotted, parse_dotted
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import find_key, suggest_name, suggest_value
from jobgen.spec.filled_names import find_placeholder_errors
from jobgen.spec.kinds import Kind
from jobgen.spec.merge import merge
from jobgen.spec.normalize import Layer, normalize
from jobgen.spec.sweeps import find_stray_variables
from jobgen.spec.teams import Teams


class FieldLock(NamedTuple):
    """A field that only an overlay and its ancestors may set."""

    path: tuple[Step, ...]
    node: Node
    overlay: str
    allowed: tuple[str, ...] = ()
    """The overlays that may set it."""
    reason: str = ""
    owner: str = ""

    def describe(self) -> str:
        """Return who locked which field, and why."""
        owner = f" (owner: {self.owner})" if self.owner else ""
        reason = f": {self.reason}" if self.reason else ""
        return f"`{format_dotted(self.path)}` is locked by overlay `{self.overlay}`{owner}{reason}"


def parse_locks(entries: Iterable[Any], overlay: str, allowed: Iterable[str]) -> Iterator[FieldLock]:
    """Return the locks of an overlay. An entry is a path, or a mapping with a path, a reason and an owner."""
    for entry in entries:
        field, texts = name_field(entry), entry if isinstance(entry, dict) else {}
        # In one line, without the period at its end, because a message goes on after it.
        reason, owner = (
            " ".join(str(value_of(texts.get(key, ""))).split()).removesuffix(".") for key in ("reason", "owner")
        )
        yield FieldLock(parse_dotted(value_of(field)), field, overlay, tuple(allowed), reason, owner)


def name_field(entry: Any) -> Any:
    """Return the node with the path of an entry of `locked`."""
    return entry["field"] if isinstance(entry, dict) else entry


DEFAULT_GPU = "nvidia.com/gpu"
DEFAULT_PLATFORM = "kubeflow"


class Cluster(NamedTuple):
    """The cluster of an environment."""

    platform: str = DEFAULT_PLATFORM
    """The preferred platform."""
    operators: Mapping[str, str] = MappingProxyType({})
    kubernetes: str = ""
    """The release of Kubernetes; empty means the newest that jobgen knows."""
    feature_gates: tuple[str, ...] | None = None
    """The feature gates of operators that are on, though they are off by default; None if they are unknown."""
    grants_permissions: bool = True
    """True if who applies the manifests may do everything that policies ask `authorizer` about."""
    gitops: str = ""
    gpu_resource: str = DEFAULT_GPU
    queues: Mapping[str, Any] = MappingProxyType({})
    kueue: Mapping[str, Any] = MappingProxyType({})
    """The parts of Kueue's configuration that decide about admission."""
    budgets: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    state: str = ""
    """The folder of the exported state of the cluster, from the root of the repository; empty if there is none."""
    complete: tuple[str, ...] = ()
    """The kinds of which the repository and the exported state hold every object."""
    platforms: tuple[str, ...] = ()
    """All platforms of the cluster, the preferred first; empty if only `platform` is known."""

    def list_platforms(self) -> tuple[str, ...]:
        """Return the platforms of the cluster, the preferred first."""
        return self.platforms or (self.platform,)

    def has_other_operator(self, kind: Kind) -> bool:
        """Return True if the cluster has, instead of the operator of a kind, one whose CRD has the same name."""
        other, platforms = kind.requirements.conflicts_with, self.list_platforms()
        if not other:
            return False
        is_mine = kind.operator in self.operators or kind.operator in platforms
        is_declared = other in self.operators or other in platforms
        return (other in platforms and kind.platform not in platforms) or (is_declared and not is_mine)

    @property
    def workers(self) -> Mapping[str, Mapping[str, str]]:
        """The worker clusters of MultiKueue: the `environment` or the folder `state` of each."""
        found: Mapping[str, Mapping[str, str]] = self.kueue.get("multiKueue", {}).get("clusters", {})
        return found

    def find_version(self, operator: str) -> str:
        """Return the declared version of an operator, or of Kubernetes itself; empty if none is declared."""
        return self.kubernetes if operator == "kubernetes" else str(self.operators.get(operator, ""))

    def with_versions(self, versions: Mapping[str, str]) -> Cluster:
        """Return the cluster with other versions of operators, and of Kubernetes itself."""
        others = {name: version for name, version in versions.items() if name != "kubernetes"}
        release = versions.get("kubernetes", self.kubernetes)
        return self._replace(kubernetes=release, operators={**self.operators, **others})


class JobAttributes(NamedTuple):
    """The attributes of a job that a selector can match."""

    name: str
    labels: Mapping[str, str]
    framework: str
    kind: str
    namespace: str
    path: str
    is_spec: bool = True
    platform: str = ""
    """The platform of its kind; empty if the kind has no description."""
    team: str = ""
    """The team that owns its folder; empty if none does."""


class JobSelector(NamedTuple):
    """Selects jobs by patterns and labels; an empty selector matches all."""

    patterns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    exclude: JobSelector | None = None

    def matches(self, job: JobAttributes) -> bool:
        """Return True if the selector matches the job."""
        return self.includes(job) and not (self.exclude is not None and self.exclude.matches(job))

    def includes(self, job: JobAttributes) -> bool:
        """Return True if the selector matches the job, apart from what it excludes."""
        for attribute, patterns in self.patterns:
            if not _matches_any(getattr(job, attribute), patterns):
                return False
        return not self.labels or all(job.labels.get(key) == value for key, value in self.labels)


# A repository has as many patches as teams, or more, and each of them looks at every job.
@lru_cache(maxsize=65_536)
def _matches_any(value: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(value, pattern) for pattern in patterns)


PatchName = tuple[str, str]
"""What a patch matches: its overlay, and a digest of its selector. Patches with one name match the same jobs."""


class Patch(NamedTuple):
    """A patch for the jobs that match: merged before rendering, after it, or both."""

    match: JobSelector
    merge: Layer | None
    manifest: Any
    json_patch: list[Any] | None
    node: Node
    overlay: str
    place: int
    """Its index among the patches of its overlay."""
    name: PatchName
    weight: int
    """The number of its values."""
    optional: bool = False
    """True if it may match no job."""

    def matches(self, job: JobAttributes) -> bool:
        """Return True if it applies to this job; `merge` applies to job specs only."""
        applies = job.is_spec or self.manifest is not None or self.json_patch is not None
        return applies and self.match.matches(job)


class Defaults(NamedTuple):
    """Defaults for the jobs that match; None for all jobs."""

    layer: Layer
    match: JobSelector | None = None
    block: Any = None
    """What the layer was made of."""
    overlay: str = ""
    """The overlay that has them; empty if a team does."""
    team: str = ""

    def matches(self, job: JobAttributes) -> bool:
        """Return True if a job gets them."""
        # There are as many of these as teams, so the names are compared, not the patterns.
        if self.team:
            return self.team == job.team
        return self.match is None or self.match.matches(job)


class ImageChange(NamedTuple):
    """An entry of `images`: new names, tags, digests or registries of images."""

    fields: Any
    overlay: str
    place: int


class Environment(NamedTuple):
    """The overlays of one environment composed, ancestors first."""

    name: str
    cluster: Cluster = Cluster()
    namespace: Any = None
    jobs: tuple[JobSelector, ...] = ()
    defaults: tuple[Defaults, ...] = ()
    patches: tuple[Patch, ...] = ()
    locks: tuple[FieldLock, ...] = ()
    images: tuple[ImageChange, ...] = ()
    as_written: bool = False
    """True if manifests are for its cluster already, so that only job specs are selected and changed."""
    platforms: Any = None
    """The node that sets the platforms of its cluster; None if nothing does."""
    runtimes: Mapping[str, Any] = MappingProxyType({})
    """The runtimes of TrainJobs that the repository has, by name."""
    teams: Teams = Teams()

    @property
    def is_dated(self) -> bool:
        """Return True if its layers set an expiry date, so that the result depends on the date."""
        layers = (*(each.layer for each in self.defaults), *(patch.merge for patch in self.patches if patch.merge))
        return any("expires" in (layer.job.get("run") or ()) for layer in layers if "run" in layer.job)

    def matches(self, job: JobAttributes) -> bool:
        """Return True if the job belongs to this environment."""
        return self.as_written or all(match.matches(job) for match in self.jobs)

    def images_for(self, *, is_spec: bool) -> tuple[ImageChange, ...]:
        """The changes of images that apply to a job spec, or to a raw manifest."""
        return () if self.as_written and not is_spec else self.images

    @property
    def common_defaults(self) -> tuple[Layer, ...]:
        """The defaults of all jobs."""
        return tuple(each.layer for each in self.defaults if each.match is None)

    def defaults_for(self, job: JobAttributes) -> tuple[Layer, ...]:
        """The defaults of a job, in order."""
        return tuple(each.layer for each in self.defaults if each.matches(job))

    def patches_for(self, job: JobAttributes) -> list[Patch]:
        """The patches that match this job, in order."""
        if self.as_written and not job.is_spec:
            return []
        return [patch for patch in self.patches if patch.matches(job)]

    def judged_by(self, base: Environment) -> Environment:
        """Return the environment with the locks of a revision, and with all of its cluster that only checks read.

        What the revision does not declare has the default there, also if the environment declares it: it can make a
        check milder. What only adds checks counts: operators, queues, budgets, and a first state.
        """
        locked = {lock.path for lock in self.locks}
        own, old = self.cluster, base.cluster
        # Kueue is judged if anything of it is declared.
        has_kueue = bool(old.kueue or old.queues or old.state or old.find_version("kueue"))
        complete = old.complete if old.state else (*own.complete, *old.complete)
        cluster = own._replace(
            operators={**own.operators, **old.operators},
            kubernetes=old.kubernetes,
            feature_gates=old.feature_gates,
            grants_permissions=old.grants_permissions,
            queues=old.queues or own.queues,
            kueue=old.kueue if has_kueue else own.kueue,
            budgets={
                group: {**own.budgets.get(group, {}), **old.budgets.get(group, {})}
                for group in dict.fromkeys((*own.budgets, *old.budgets))
            },
            state=old.state if old.complete else old.state or own.state,
            complete=tuple(dict.fromkeys(complete)),
        )
        locks = (*self.locks, *(lock for lock in base.locks if lock.path not in locked))
        return self._replace(locks=locks, cluster=cluster)


class Overlay(NamedTuple):
    """The documents of one folder under overlays/, in file order."""

    name: str
    specs: tuple[Any, ...]


def find_leaves(overlays: Mapping[str, Overlay]) -> list[str]:
    """Return the names of the overlays that no other extends."""
    extended = {
        value_of(parent)
        for name, overlay in overlays.items()
        for spec in overlay.specs
        for parent in spec.get("extends", ())
        if value_of(parent) != name
    }
    return [name for name in sorted(overlays) if name not in extended]


def compose_environment(
    name: str, overlays: Mapping[str, Overlay], problems: list[Problem], cluster: Any = MappingProxyType({})
) -> Environment:
    """Compose the environment of an overlay and all its ancestors.

    `cluster` has properties of the cluster that overlays override. The environment without a name has no overlays.
    """
    if not name:
        return Environment("", parse_cluster(cluster), platforms=cluster.get("platforms", cluster.get("platform")))
    chain = _find_ancestors(name, overlays, problems)
    properties: Any = dict(cluster)
    for spec in (spec for overlay in chain for spec in overlays[overlay].specs):
        properties = merge(properties, spec.get("cluster", {}), [])
    problems += _find_worker_problems(name, properties, overlays)
    cluster = parse_cluster(properties)
    namespace: Any = None
    jobs: list[JobSelector] = []
    defaults: list[Defaults] = []
    patches: list[Patch] = []
    locks: list[FieldLock] = []
    images: list[ImageChange] = []
    for overlay in chain:
        place = 0
        problems += _find_overridden_namespaces(overlays[overlay].specs)
        for spec in overlays[overlay].specs:
            namespace = with_layer(spec["namespace"], f"namespace of {overlay}") if "namespace" in spec else namespace
            if "jobs" in spec:
                # The nearest overlay that selects jobs overrides all others.
                jobs = [parse_selector(spec["jobs"])]
            defaults += _parse_defaults(spec.get("defaults", {}), overlay, cluster, problems)
            for patch in spec.get("patches", ()):
                patches.append(_parse_patch(patch, overlay, place, cluster, problems))
                place += 1
            if "locked" in spec:
                locks += parse_locks(spec["locked"], overlay, _find_ancestors(overlay, overlays, []))
            entries = (with_layer(entry, f"images of {overlay}") for entry in spec.get("images", ()))
            images += (ImageChange(entry, overlay, number) for number, entry in enumerate(entries))
    made = Environment(
        name, cluster, namespace, tuple(jobs), tuple(defaults), tuple(patches), tuple(locks), tuple(images)
    )
    return made._replace(platforms=properties.get("platforms", properties.get("platform")))


def _find_overridden_namespaces(specs: Sequence[ValidFields]) -> Iterator[Problem]:
    """Find namespaces that a later document of the same folder overrides."""
    *others, last = [spec["namespace"] for spec in specs if "namespace" in spec] or [None]
    for other in others:
        one, applied = value_of(other), value_of(last)
        if None not in (one, applied) and one != applied:
            message = Sentence(
                "`namespace: {}` has no effect, because a later document sets `{}`; remove one of them", one, applied
            )
            related = ((last, "this one applies"),) if location_of(last) else ()
            yield Problem("overridden-value", message, other, related, severity=Severity.WARNING)


def _find_worker_problems(name: str, cluster: Any, overlays: Mapping[str, Overlay]) -> Iterator[Problem]:
    """Find worker clusters of MultiKueue that are no other environment."""
    for worker in cluster.get("kueue", {}).get("multiKueue", {}).get("clusters", {}).values():
        other = worker.get("environment")
        if other is not None and value_of(other) not in overlays:
            hint = suggest_name(str(value_of(other)), [each for each in overlays if each != name])
            yield Problem("unknown-overlay", Sentence("there is no overlay `{}`{}", value_of(other), hint), other)
        elif other is not None and value_of(other) == name:
            message = Sentence("`{}` is its own worker cluster; a manager cluster cannot send jobs to itself", name)
            yield Problem("unknown-overlay", Sentence("{}; name another environment", message), other)


def list_ancestors(name: str, overlays: Mapping[str, Overlay]) -> list[str]:
    """The overlays of an environment, weakest first; none for the unnamed environment."""
    return _find_ancestors(name, overlays, []) if name in overlays else []


def _report_cycle(cycle: list[str], overlays: Mapping[str, Overlay]) -> Problem:
    """Report a cycle at the overlay that most others extend: it is a base, and should not extend them."""
    extended = [
        [value_of(parent) for spec in each.specs for parent in spec.get("extends", ())] for each in overlays.values()
    ]
    base = max(sorted(cycle), key=lambda name: sum(name in names for names in extended))
    at = cycle.index(base) + 1
    listed = [*cycle[at:], *cycle[:at]]
    listed.append(listed[0])
    parents = (parent for spec in overlays[base].specs for parent in spec.get("extends", ()))
    node = next(parent for parent in parents if value_of(parent) == listed[0])
    return Problem("overlay-cycle", Sentence("`extends` has a cycle: {}", " → ".join(listed)), node)


def _find_ancestors(name: str, overlays: Mapping[str, Overlay], problems: list[Problem]) -> list[str]:
    """The overlay and its ancestors, weakest first, each once; what is wrong becomes a problem."""
    # The path from the overlay to the one at hand, each with the parents that are still to visit.
    path = {name: iter(_list_parents(overlays[name]))}
    order: dict[str, None] = {}
    while path:
        current = next(reversed(path))
        for parent in path[current]:
            named = value_of(parent)
            if named in path:
                names = [*path]
                problems.append(_report_cycle(names[names.index(named) :], overlays))
            elif named not in overlays:
                problems.append(report_unknown_parent(parent, [each for each in overlays if each not in path]))
            elif named in order:
                continue
            elif len(path) == MAX_DEPTH:
                message = Sentence("`extends` leads to more than {} overlays below each other; extend fewer", MAX_DEPTH)
                problems.append(Problem("nesting-too-deep", message, parent, category="yaml"))
            else:
                path[named] = iter(_list_parents(overlays[named]))
                break
        else:
            order[current] = None
            del path[current]
    return list(order)


def report_unknown_parent(parent: Node, others: list[str]) -> Problem:
    """Report an entry of `extends` that none of the overlays has as its name."""
    named = str(value_of(parent))
    # A path instead of a name, such as `../base/overlay.yaml`.
    parts = [part for part in named.split("/") if part in others] if "/" in named else []
    near = parts if len(parts) == 1 else others
    hint = f"; did you mean `{parts[0]}`?" if near is parts else suggest_name(named, others)
    message = Sentence("there is no overlay `{}`{}", named, hint)
    fix_steps, safe = suggest_value(parent, near)
    return Problem("unknown-overlay", message, parent, fix_steps=fix_steps, safe=safe)


def _list_parents(overlay: Overlay) -> list[Node]:
    return [parent for spec in overlay.specs for parent in spec.get("extends", ())]


def parse_cluster(block: Any) -> Cluster:
    """Return the properties of a cluster that an overlay or the settings declare."""
    known: Any = untraced(dict(block))
    platforms = tuple(known.get("platforms", ()))
    if "platform" in known and platforms:
        platforms = tuple(dict.fromkeys((known["platform"], *platforms)))
    operators, kueue, gitops = known.get("operators", {}), known.get("kueue", {}), known.get("gitops", "")
    if isinstance(gitops, dict):
        # The version of the engine may stand with its name.
        named = {"argocd": "argo-cd"}.get(gitops["engine"], gitops["engine"])
        operators = {**operators, **({named: gitops["version"]} if "version" in gitops else {})}
        gitops = gitops["engine"]
    if kueue.get("version") is not None:
        # The version of Kueue may stand with its configuration.
        operators = {**operators, "kueue": str(kueue["version"])}
    return Cluster(
        platform=known.get("platform", platforms[0] if platforms else DEFAULT_PLATFORM),
        platforms=platforms,
        operators=operators,
        kubernetes=known.get("kubernetes", ""),
        feature_gates=tuple(known["featureGates"]) if "featureGates" in known else None,
        grants_permissions=known.get("authorizer") != "deny",
        gitops=gitops,
        gpu_resource=known.get("gpuResource", DEFAULT_GPU),
        queues=known.get("queues", {}),
        kueue=kueue,
        budgets=known.get("budgets", {}),
        state=str(known.get("state", "")).strip("/"),
        complete=tuple("PersistentVolumeClaim" if kind == "PVC" else kind for kind in known.get("complete", ())),
    )


EMPTY_PATCH = "empty-patch"
"""The rule about a patch without content. The other parts of its overlay are valid."""


SELECTOR_ATTRIBUTES = {
    "names": "name",
    "frameworks": "framework",
    "kinds": "kind",
    "namespaces": "namespace",
    "paths": "path",
    "platforms": "platform",
    "teams": "team",
}
"""The lists of patterns of a selector, and the attribute of a job that each is compared with."""


def parse_selector(block: Any) -> JobSelector:
    """Return the selector of a `match`, `jobs` or `exclude` block."""
    known: Any = untraced(block)
    patterns = tuple((attribute, tuple(known[key])) for key, attribute in SELECTOR_ATTRIBUTES.items() if key in known)
    exclude = parse_selector(known["exclude"]) if "exclude" in known else None
    return JobSelector(patterns, tuple(known.get("labels", {}).items()), exclude)


def add_teams(environment: Environment, teams: Teams, problems: list[Problem]) -> Environment:
    """Add the teams of a repository to an environment. Their defaults are above those of its overlays."""
    if not teams.all:
        return environment
    # Imported late: most repositories have no teams.
    from glob import escape

    defaults = list(environment.defaults)
    for team in teams.all:
        if "defaults" in team.spec:
            block = with_layer(team.spec["defaults"], f"defaults of team {team.name}")
            layer = normalize(block, environment.cluster.gpu_resource, problems)
            selector = JobSelector((("team", (escape(team.name),)),))
            defaults.append(Defaults(layer, selector, team.spec["defaults"], team=team.name))
    return environment._replace(defaults=tuple(defaults), teams=teams)


def _parse_defaults(block: Any, overlay: str, cluster: Cluster, problems: list[Problem]) -> Iterator[Defaults]:
    """The defaults of an overlay: a block for all jobs, or a list of blocks, of which some are for jobs that match."""
    for entry in block if isinstance(block, list) else [{"merge": block}] if block else ():
        block = entry.get("merge", {})
        layered = with_layer(block, f"defaults of {overlay}")
        match = parse_selector(entry["match"]) if "match" in entry else None
        yield Defaults(normalize(layered, cluster.gpu_resource, problems), match, block, overlay)


def _parse_patch(block: Any, overlay: str, place: int, cluster: Cluster, problems: list[Problem]) -> Patch:
    layered = with_layer(block, f"patch of {overlay}")
    layer = normalize(layered["merge"], cluster.gpu_resource, problems) if "merge" in layered else None
    given = [key for key in block if key in ("merge", "manifest", "jsonPatch")]
    if not any(block[key] for key in given):
        fill = f"fill in `{given[0]}`, or remove the patch" if given else "give it `merge`, `manifest` or `jsonPatch`"
        message = Sentence("the patch changes nothing; {}", fill)
        problems.append(Problem(EMPTY_PATCH, message, given[0] if given else block))
    return Patch(
        match=parse_selector(block.get("match", {})),
        merge=layer,
        manifest=layered.get("manifest"),
        json_patch=layered.get("jsonPatch"),
        node=block,
        overlay=overlay,
        place=place,
        name=name_patch(block, overlay),
        weight=count_nodes(block),
        optional=bool(value_of(block.get("optional", False))),
    )


def name_patch(block: Any, overlay: str) -> PatchName:
    """Return the name of a patch, which stays if other patches are added, or if it changes something else."""
    applies_to_all = any(value_of(block.get(key)) is not None for key in ("manifest", "jsonPatch"))
    selector = repr((parse_selector(block.get("match", {})), applies_to_all))
    return overlay, blake2b(selector.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def find_overlay_errors(document: Any) -> Iterator[Problem]:
    """Report the errors of an overlay that its schema cannot express."""
    spec = document["spec"]
    defaults = spec.get("defaults")
    entries = defaults if isinstance(defaults, list) else [{"merge": defaults}]
    for block in (entry.get("merge") for entry in (*entries, *spec.get("patches", ()))):
        if isinstance(block, dict) and "matrix" in block:
            message = "`matrix` belongs in a job, because it makes many jobs of one; an overlay can match its members"
            yield Problem("misplaced-matrix", message, find_key(block, "matrix"))
        if isinstance(block, dict):
            yield from find_placeholder_errors("queue", block.get("queue"))
    yield from find_placeholder_errors("namespace", spec.get("namespace"))
    for entry in entries:
        if "match" in entry:
            yield from find_choices(entry["merge"])
    for entry in spec.get("images", ()):
        yield from _find_image_errors(entry)
    reason = "variables are substituted only in the job that has the `matrix`; write the value here, or set it there"
    yield from find_stray_variables(spec, reason)


def find_choices(block: Any) -> Iterator[Problem]:
    """Report `framework` and `platform` in defaults for some jobs: which jobs these are may depend on both."""
    for key in ("framework", "platform"):
        if key in block:
            message = Sentence(
                "`{}` cannot be a default of some jobs only; set it in the jobs, or in defaults of all jobs", key
            )
            yield Problem("invalid-value", message, find_key(block, key))


def _find_image_errors(entry: Any) -> Iterator[Problem]:
    """Report an entry of `images` that says too little, or two things at once."""
    by_name = [key for key in entry if key in ("name", "newName", "newTag", "digest")]
    by_registry = [key for key in entry if key in ("registry", "newRegistry")]
    if by_name and by_registry:
        message = Sentence("`{}` and `{}` cannot be in one entry; write two entries", by_registry[0], by_name[0])
        yield Problem("invalid-value", message, by_registry[0])
    elif by_registry:
        for key in {"registry", "newRegistry"} - entry.keys():
            yield Problem("missing-field", Sentence("the entry has no `{}`; add it", key), by_registry[0])
    elif "name" not in entry:
        message = Sentence("the entry names no image; give it `name` and `newTag`, or `registry` and `newRegistry`")
        yield Problem("missing-field", message, by_name[0] if by_name else entry)
    elif len(by_name) == 1:
        message = Sentence("the entry changes nothing; add `newName`, `newTag` or `digest`")
        yield Problem("missing-field", message, by_name[0])
    elif "newTag" in entry and "digest" in entry:
        message = Sentence("`newTag` and `digest` cannot be combined; remove one of them")
        yield Problem("invalid-value", message, entry["digest"])
    for key in ("name", "newName"):
        text = str(value_of(entry.get(key, "")))
        if "@" in text or ":" in text.rpartition("/")[2]:
            advice = "remove them" if key == "name" else "write them in `newTag` or `digest`"
            message = Sentence("`{}` is `{}`, and must have no tag and no digest; {}", key, text, advice)
            yield Problem("invalid-value", message, entry[key])
