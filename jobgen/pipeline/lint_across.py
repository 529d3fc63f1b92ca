"""Report what only all jobs together show a lint: conflicts, refusals of a cluster, and entries without effect."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from jobgen.check.rules import Fact, FactViolation, Rule, all_rules
from jobgen.k8s.images import find_image_error
from jobgen.k8s.kinds import BUILTIN_GROUPS
from jobgen.k8s.nodes import as_mapping
from jobgen.k8s.workloads import list_template_paths
from jobgen.model.budget import RUN, TOO_MANY_STEPS, OverBudgetError
from jobgen.model.data import Node, location_of, value_of
from jobgen.model.features import find_parts
from jobgen.model.finding import Finding, Problem, Related, Severity, pluralize
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.origins import Origins
from jobgen.model.path import format_pointer
from jobgen.model.place import At
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import did_you_mean, find_key
from jobgen.pipeline.cluster_rules import find_cluster_problems
from jobgen.pipeline.environment_checker import EnvironmentChecker
from jobgen.rendering.build import build_object, identity_of, is_spec
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner, Marker, OverlayUse, Rendered
from jobgen.rendering.expand import Expander
from jobgen.rendering.locate import locate
from jobgen.rendering.patch_objects import IMAGES, list_images, rewrite_images, split_image
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.run_values import FileResults
from jobgen.rendering.trace import Job, JobRef, Tracer, format_place
from jobgen.repo import layout
from jobgen.repo.files import FileEntry
from jobgen.repo.root import SETTINGS
from jobgen.schema.shipped_kinds import find_unknown_releases
from jobgen.spec.merge import Deletion
from jobgen.spec.overlay import SELECTOR_ATTRIBUTES, JobAttributes, list_ancestors, parse_selector

if TYPE_CHECKING:
    from jobgen.pipeline.policies import PolicyFiles


def find_across(
    results: FileResults,
    checkers: Mapping[str, EnvironmentChecker],
    policies: PolicyFiles | None,
    *,
    is_complete: bool,
) -> Iterator[Finding]:
    """Report what all jobs of a lint show together; with `is_complete`, all of them could be read and rendered."""
    made, tracer = results.list_objects(), results.layers.tracer
    files = results.request.files
    if files.are_loose:
        yield from find_cluster_problems(checkers.values(), results, is_whole=False)
        if len({each.identity for each in made}) < len(made):
            yield from _find_conflicting_copies(made, files.entries, tracer)
        return
    # Imported late: files that are named need nothing of it.
    from jobgen.rendering.selectors import find_unlisted_overlays, find_unused_runtimes

    project, runners = results.request.project, results.layers.runners
    if is_complete:
        yield from _find_idle_entries(results, made)
        if any(runner.expander.environment.images for runner in runners):
            yield from _find_idle_images(project, runners, results.uses, tracer)
        if any(use.defaults for use in results.uses):
            # Imported late: many repositories have no defaults.
            from jobgen.pipeline.idle_defaults import find_idle_defaults

            uses = [each for use in results.uses for each in use.defaults]
            yield from find_idle_defaults(project, [runner.name for runner in runners], uses, tracer)
        if project.runtimes:
            yield from find_unused_runtimes(project, made, tracer)
        yield from policies.find_unmatched(each.identity for each in made) if policies else ()
    yield from _find_conflicts(results, checkers)
    yield from find_unlisted_overlays(project, tracer)
    overlays = {each for runner in runners for each in list_ancestors(runner.name, project.overlays)}
    if any(_find_unknown_releases(project, overlays)):
        found = _find_unknown_releases(tracer.traced_project(), overlays)
        yield from (locate(problem, SETTINGS) for problem in found)
    yield from find_cluster_problems(checkers.values(), results, is_whole=is_complete)


def _find_unknown_releases(project: ProjectConfig, overlays: Iterable[str]) -> Iterator[Problem]:
    """Report versions that the settings and overlays declare, and that jobgen does not know."""
    for spec in (project.settings, *(spec for name in sorted(overlays) for spec in project.overlays[name].specs)):
        yield from find_unknown_releases(as_mapping(spec.get("cluster")))


def _find_conflicts(results: FileResults, checkers: Mapping[str, EnvironmentChecker]) -> Iterator[Finding]:
    """Run the rules over the facts of all objects of each environment."""
    entries, tracer = {entry.path: entry for entry in results.request.files.entries}, results.layers.tracer

    @cache
    def read(path: str) -> dict[tuple[int, int], Job]:
        return {(job.position, job.item): job for job in read_jobs([entries[path]], tracer.project.kinds, [])}

    @cache
    def trace(where: JobRef) -> tuple[Job, Mapping[str, Node] | None]:
        job = read(where.path)[where.position, where.item]
        made = tracer.trace(job, where.env).select(where.companion)
        return job, None if made is None else checkers[where.env].mutate(made).object

    kept: dict[tuple[str, str], list[Fact]] = {}
    same = results.request.same
    for name, row in (row for part in results.parts for row in part.rows):
        if same.pairs and (row.job.env, name) not in same.rules:
            # It finds the same in the lint that this one is compared with.
            continue
        kept.setdefault((row.job.env, name), []).append(row)
    rules = {rule.name: rule for rule in all_rules()}
    for (env, name), found in kept.items():
        project = (results.request.project, env) if rules[name].needs_project else ()
        for fault in rules[name].check(found, checkers[env].runner.expander.environment.cluster, *project):
            yield _locate(rules[name], fault, trace, checkers[env])


def _locate(
    rule: Rule,
    fault: FactViolation,
    trace: Callable[[JobRef], tuple[Job, Mapping[str, Node] | None]],
    checker: EnvironmentChecker,
) -> Finding:
    # Imported late: most runs have no such finding.
    from jobgen.check.raised_amounts import find_raised, list_gpu_factors, relate_factors

    job, traced = trace(fault.node.job)
    factors: list[tuple[Any, str]] = []
    if fault.is_amount and traced:
        origins = Origins([traced])
        known = list_gpu_factors(checker.checker.manifest(origins.objects[0]))
        factors = [(origins.follow(place), text) for place, text in known]
    raised = find_raised(node for node, _ in factors)
    related: list[Related] = []
    for row, text in fault.related:
        other, obj = trace(row.job)
        location = location_of(_node_at(obj, row.path)) or other.location
        related.append(Related(other.find_written(location, row.path), text))
    shown = {each.location for each in related}
    for node, text in relate_factors(raised, factors):
        if (place := location_of(node)) and place not in shown:
            related.append(Related(place, text))
    if raised is not None:
        related = [each for each in related if each.location != location_of(raised)]
    problem = Problem(
        rule.name,
        str(fault.sentence),
        _node_at(traced, fault.node.path),
        at=raised,
        category=rule.category,
        severity=fault.severity or rule.severity,
        evidence=fault.evidence,
    )
    found = locate(problem, job.file.path, job.location)
    return found._replace(
        location=job.find_written(found.location, fault.node.path),
        object=identity_of(traced) if traced else None,
        env=fault.node.job.env,
        pointer=format_pointer(fault.node.path),
        place=format_place(job, fault.node.path, traced),
        related=tuple(related),
    )


def _node_at(tree: Node, path: tuple[str | int, ...]) -> Node:
    """The leaf at a path; the key of a mapping or list; the last existing node if the path does not exist."""
    key: Node = None
    for step in path:
        if isinstance(tree, dict):
            found = next((name for name in tree if name == step), None)
            if found is None:
                break
            key, tree = found, tree[found]
        elif isinstance(tree, list) and isinstance(step, int) and step < len(tree):
            tree = tree[step]
            key = tree
        else:
            break
    return key if isinstance(tree, (dict, list)) and key is not None else tree


def _find_idle_images(
    project: ProjectConfig, runners: Sequence[EnvironmentRunner], used: Sequence[OverlayUse], tracer: Tracer
) -> Iterator[Finding]:
    """Report entries of `images` that match no image. Jobs are rendered again only if there may be such entries."""
    hits = {marker for use in used for marker in use.hits}
    idle = {name for runner in runners for name, marker in _list_entries(runner) if marker not in hits}
    if not idle:
        return
    images: set[str] = set()
    for runner in _list_runners(project, runners):
        if any(name in idle for name, _ in _list_entries(runner)):
            matching = _match_images(project, runner, images)
            if matching is None:
                return
            idle -= matching
    for overlay, place in sorted(idle):
        entries = tracer.traced_project().environment(overlay, []).images
        fields = next(each.fields for each in entries if (each.overlay, each.place) == (overlay, place))
        if "registry" in fields:
            node = fields["registry"]
            message = Sentence("no image is from `{}`; change or remove the entry", value_of(node))
        else:
            node = fields["name"]
            names = sorted({split_image(image)[0] for image in images})
            hint = did_you_mean(str(value_of(node)), names) or "; change or remove the entry"
            message = Sentence("no container has the image `{}`{}", value_of(node), hint)
        yield locate(Problem("patch-matches-nothing", message, node), f"overlays/{overlay}")


def _list_runners(project: ProjectConfig, runners: Sequence[EnvironmentRunner]) -> list[EnvironmentRunner]:
    """All environments, also those that are not run."""
    ran = {runner.name for runner in runners}
    return [*runners, *(EnvironmentRunner(project, name) for name in project.overlays if name not in ran)]


def _list_entries(runner: EnvironmentRunner) -> Iterator[tuple[tuple[str, int], Marker]]:
    for change in runner.expander.environment.images:
        yield (change.overlay, change.place), runner.marker(change.fields, IMAGES)


def _match_images(project: ProjectConfig, runner: EnvironmentRunner, images: set[str]) -> set[tuple[str, int]] | None:
    """The entries of an environment that match an image; None if not all images are known.

    A job that is wrong or inactive may have any. `images` gets the names as the jobs have them.
    """
    environment, kinds = runner.expander.environment, runner.expander.kinds
    expander = Expander(environment._replace(images=()), kinds, runner.expander.day)
    used: list[Deletion] = []
    for job in read_jobs(layout.find_jobs(project.root), project.kinds, []):
        patches, problems = runner.patches_for(job), list[Problem]()
        if patches is None:
            continue
        made = build_object(job.document, expander, patches, problems, [])
        if made is None or problems:
            return None
        own = list_images(made, kinds)
        if any(map(find_image_error, own)):
            # It is not known which image is meant.
            return None
        images.update(own)
        rewrite_images(made, environment.images_for(is_spec=is_spec(job.document.data)), kinds, used)
    matching = {id(each.asked_by) for each in used}
    return {(change.overlay, change.place) for change in environment.images if id(change.fields) in matching}


_RULE = "selector-matches-nothing"


class _Entry(NamedTuple):
    overlay: str
    attribute: str
    node: Node
    siblings: tuple[str, ...]

    @property
    def pattern(self) -> str:
        return str(value_of(self.node))


def _find_idle_entries(results: FileResults, made: Iterable[Rendered]) -> Iterator[Finding]:
    """Report entries of `jobs` and `match` that no job has, if others of the same list match.

    A list of which no entry matches is reported as a whole. Jobs are listed only for entries that match none of
    the rendered objects.
    """
    project, layers = results.request.project, results.layers
    traced_project = layers.tracer.traced_project
    overlays = {name for runner in layers.runners for name in list_ancestors(runner.name, project.overlays)}

    @cache
    def list_attributes() -> list[tuple[EnvironmentRunner, list[JobAttributes]]]:
        every = list(results.list_jobs())
        runners = _list_runners(project, layers.runners)
        return [(runner, [runner.attributes(job) for job in every]) for runner in runners]

    if any("exclude" in block for _, block, _ in _list_selectors(project, overlays)):
        yield from _find_idle_excludes(traced_project(), overlays, list_attributes())
    entries = list(_list_selector_entries(project, overlays))
    if not entries:
        return
    rendered = {
        value
        for each in made
        for value in (
            ("name", each.identity.name),
            ("kind", each.identity.kind),
            ("namespace", each.identity.namespace),
            ("path", each.location.file),
        )
    }
    kinds = {pair for kind in project.kinds for pair in (("kind", kind.name), ("platform", kind.platform))}
    if all(_matches(entry, rendered | kinds) for entry in entries):
        return
    from jobgen.rendering.selectors import suggest_pattern

    every = [job for _, several in list_attributes() for job in several]
    known = {(attribute, str(getattr(job, attribute))) for job in every for attribute in SELECTOR_ATTRIBUTES.values()}
    for entry in _list_selector_entries(traced_project(), overlays):
        others = (entry._replace(node=pattern) for pattern in entry.siblings)
        # The name of a kind that a cluster has is not misspelled; the schema checks frameworks in the same way.
        if _matches(entry, known | kinds) or not any(_matches(other, known) for other in others):
            continue
        hint = suggest_pattern(entry.attribute, entry.pattern, every) or "; change or remove it"
        message = Sentence("no job has the {} `{}`{}", entry.attribute, entry.pattern, hint)
        yield locate(Problem(_RULE, message, entry.node, severity=Severity.WARNING), f"overlays/{entry.overlay}")


def _list_selector_entries(project: ProjectConfig, overlays: Iterable[str]) -> Iterator[_Entry]:
    """The entries of lists with several, except for those of optional patches, and of frameworks."""
    for name, whole, _ in _list_selectors(project, overlays):
        for block in (whole, whole.get("exclude", {})):
            for key, attribute in SELECTOR_ATTRIBUTES.items():
                patterns = block.get(key) or ()
                if len(patterns) > 1 and attribute != "framework":
                    siblings = tuple(str(value_of(pattern)) for pattern in patterns)
                    yield from (_Entry(name, attribute, pattern, siblings) for pattern in patterns)


def _list_selectors(project: ProjectConfig, overlays: Iterable[str]) -> Iterator[tuple[str, Any, bool]]:
    """The blocks that select jobs: overlay, block, whether it is of a patch. Those of optional patches are left out."""
    for name in sorted(overlays):
        for spec in project.overlays[name].specs if name in project.overlays else ():
            yield name, spec.get("jobs", {}), False
            for patch in spec.get("patches", ()):
                if not value_of(patch.get("optional", False)):
                    yield name, patch.get("match", {}), True


def _find_idle_excludes(
    project: ProjectConfig, overlays: Iterable[str], listed: Sequence[tuple[EnvironmentRunner, Sequence[JobAttributes]]]
) -> Iterator[Finding]:
    """Report each `exclude` that excludes no job in any environment that has it; `project` has locations."""
    for overlay, block, is_patch in _list_selectors(project, overlays):
        if "exclude" not in block:
            continue
        selector = parse_selector(block)
        included = [
            job
            for runner, jobs in listed
            if overlay in list_ancestors(runner.name, project.overlays)
            for job in jobs
            if selector.includes(job) and (not is_patch or runner.expander.environment.matches(job))
        ]
        # A selector that matches nothing is reported itself.
        if included and all(map(selector.matches, included)):
            from jobgen.rendering.selectors import explain_no_match

            reason = explain_no_match(parse_selector(block["exclude"]), included)
            advice = "" if reason.endswith("?") or "; write `" in reason else "; change or remove it"
            message = Sentence("`exclude` excludes none of the jobs that match{}{}", reason, advice)
            problem = Problem(_RULE, message, find_key(block, "exclude"), severity=Severity.WARNING)
            yield locate(problem, f"overlays/{overlay}")


def _matches(entry: _Entry, values: set[tuple[str, str]]) -> bool:
    if (entry.attribute, entry.pattern) in values:
        return True
    return any(attribute == entry.attribute and fnmatchcase(value, entry.pattern) for attribute, value in values)


_ObjectKey: TypeAlias = tuple[str, str, str, str]
"""What the API server identifies an object by: group, kind, namespace and name."""

_FindLinks: TypeAlias = Callable[[Sequence[Mapping[str, Any]]], Iterator[tuple[int, Problem]]]
# Fields that say nothing about what an object does.
_IGNORED_FIELDS = frozenset(("apiVersion", "kind", "metadata", "status"))
_MAX_SHOWN = 3


def find_file_problems(
    jobs: Sequence[tuple[Job, Rendered]], tracer: Tracer, env: str, *, is_alone: bool
) -> Iterator[tuple[int, Finding]]:
    """Report what is wrong with the objects of one file together; each finding with the number of its object.

    A file that `is_alone` is no part of a repository, whose other files may have what it names.
    """
    from jobgen.pipeline.placed_findings import locate_problems

    objects = [made.object for _, made in jobs]
    first = jobs[0][0]
    RUN.open(first.file.path, env)
    for find in _list_finders({made.identity.kind for _, made in jobs}, is_alone=is_alone):
        found: dict[int, list[Problem]] = {}
        try:
            for number, problem in find(objects):
                found.setdefault(number, []).append(problem)
        except OverBudgetError as error:
            yield 0, locate(Problem(TOO_MANY_STEPS, str(error), category="meta"), first.file.path, first.start())
        for number, problems in found.items():
            job, made = jobs[number]
            for finding in locate_problems(problems, made.object, tracer, job, env, made.companion):
                yield number, finding


def _list_finders(kinds: set[str], *, is_alone: bool) -> Iterator[_FindLinks]:
    """The checks of objects of one file together, if it has these kinds."""
    # Imported late: few files have such objects.
    from jobgen.check.bound_roles import find_misnamed_roles
    from jobgen.check.kafka_clusters import find_lost_members

    yield from (find_misnamed_roles, find_lost_members) if is_alone else (find_lost_members,)
    if not kinds.isdisjoint(("HorizontalPodAutoscaler", "ScaledObject")):
        from jobgen.check.scaled_targets import find_lost_targets

        yield find_lost_targets
    if not kinds.isdisjoint(("PodDisruptionBudget", "Service")):
        from jobgen.check.idle_services import find_idle_services, report_idle_service
        from jobgen.check.service_ports import find_lost_ports

        def find_idle(objects: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Problem]]:
            for number, meant in find_idle_services(objects):
                yield number, report_idle_service(objects[number], meant)

        yield find_idle
        yield find_lost_ports
        yield from find_parts("file.links")
    if is_alone and not kinds.isdisjoint(("ConfigMap", "PersistentVolumeClaim", "Secret")):
        from jobgen.check.unused_configs import find_unused_configs

        yield find_unused_configs
    if is_alone and not kinds.isdisjoint(("LocalQueue", "Queue", "TrainJob")):
        from jobgen.check.misspelled_names import find_misspelled_names

        yield find_misspelled_names


def report_broken_definitions(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings; a definition that cannot be used is reported once, whatever objects it was to check."""
    found: dict[Any, Finding] = {}
    for number, finding in enumerate(findings):
        is_broken = finding.rule == "broken-schema"
        key = finding.key if is_broken else number
        found.setdefault(key, finding._replace(object=None, pointer="", place="") if is_broken else finding)
    return list(found.values())


def _find_conflicting_copies(
    made: Sequence[Rendered], entries: Sequence[FileEntry], tracer: Tracer
) -> Iterator[Finding]:
    """Report objects that files of one folder define with different content, so that the last one applied counts."""
    # Files that are applied as they are, and not as a part of a build.
    alone = {entry.path for entry in entries if entry.build is None and not entry.is_source}
    groups: dict[tuple[str, _ObjectKey], list[Rendered]] = {}
    for each in made:
        file = each.location.file
        if each.env == made[0].env and each.identity.name and file in alone:
            groups.setdefault((file.rpartition("/")[0], _name_object(each)), []).append(each)
    copies = [several for several in groups.values() if len(several) > 1]
    workloads: dict[str, set[tuple[str, str]]] = {}
    for each in made if copies else ():
        group, kind, _, name = _name_object(each)
        # Objects that run pods, or may do so because they are custom resources.
        if group not in BUILTIN_GROUPS or list_template_paths(group, kind):
            workloads.setdefault(each.location.file, set()).add((kind, name))

    def are_together(one: str, other: str) -> bool:
        """Return True if a user applies both files: they are one, or each has workloads of its own.

        Files with the same workloads are alternatives, of which a user applies one.
        """
        first, second = workloads.get(one, set()), workloads.get(other, set())
        return one == other or (bool(first and second) and first.isdisjoint(second))

    files = {each.location.file for several in copies for each in several}
    read = read_jobs([entry for entry in entries if entry.path in files], tracer.project.kinds, [])
    jobs = {(job.file.path, job.position, job.item): job for job in read if not is_spec(job.document.data)}
    for several in copies:
        places = [(each.location.file, each.position, each.item) for each in several]
        known = [(each, jobs[place]) for each, place in zip(several, places, strict=True) if place in jobs]
        for each, job in known:
            others = {
                other.location.file: (other_job, lost)
                for other, other_job in known
                if other is not each and are_together(each.location.file, other.location.file)
                if (lost := list(_list_lost(job.document.data, other_job.document.data)))
            }
            if others:
                yield from _report_copies(each, job, others, tracer)


def _name_object(made: Rendered) -> _ObjectKey:
    api_version, kind, namespace, name = made.identity
    return api_version.rpartition("/")[0], kind, namespace, name


def _list_lost(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """The fields in which the second of two objects lacks something of the first."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in one if path else one.keys() - _IGNORED_FIELDS:
            yield from _list_lost(one[name], other.get(name), f"{path}.{name}" if path else str(name))
    elif isinstance(one, list) and isinstance(other, list):
        kept = {json.dumps(item, sort_keys=True, default=str) for item in other}
        if any(json.dumps(item, sort_keys=True, default=str) not in kept for item in one):
            yield path
    elif one != other:
        yield path


def _report_copies(
    made: Rendered, job: Job, others: Mapping[str, tuple[Job, list[str]]], tracer: Tracer
) -> Iterator[Finding]:
    # Imported late: few objects have copies.
    from jobgen.pipeline.placed_findings import locate_problems

    first, *rest = sorted(others)
    fields = sorted({field for _, lost in others.values() for field in lost})
    shown = ", ".join(f"`{field}`" for field in fields[:_MAX_SHOWN])
    shown += f" and {pluralize(len(fields) - _MAX_SHOWN, 'other field')}" if len(fields) > _MAX_SHOWN else ""
    where = "twice in this file" if first == made.location.file else f"also in `{first}`"
    where += f" and {pluralize(len(rest), 'other file')}" if rest else ""
    message = Sentence(
        "`{}` is {}, with different {}, and the copy that is applied last replaces the others; keep one "
        "copy, or give them different names",
        made.identity,
        where,
        shown,
    )

    name = At(as_mapping(job.document.data.get("metadata")), "name")
    problem = Problem("conflicting-copies", message, name, category="fleet", severity=Severity.WARNING)
    related = tuple(Related(others[path][0].name(), "another copy") for path in sorted(others))
    obj = job.document.data
    found = locate_problems([problem], obj, tracer, job, made.env, made.companion)
    yield from (each._replace(related=related) for each in found)
