"""Find selectors that select nothing: patches, environments and roles without jobs, and overlays that no run uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import islice

from jobgen.model.data import Location, Node, TracedKey, TracedScalar, location_of, value_of
from jobgen.model.finding import Finding, Problem, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import (
    NO_FIX,
    ask_for,
    did_you_mean,
    find_closest,
    find_key,
    list_alternatives,
    suggest_rename,
)
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner, Rendered, name_overlay
from jobgen.rendering.locate import locate
from jobgen.rendering.runtimes import RUNTIME_KINDS, list_patches
from jobgen.rendering.trace import Job, Tracer
from jobgen.repo.root import SETTINGS
from jobgen.spec.kinds import ANY_ROLE
from jobgen.spec.overlay import (
    SELECTOR_ATTRIBUTES,
    Environment,
    JobAttributes,
    JobSelector,
    Patch,
    PatchName,
    list_ancestors,
    report_unknown_parent,
)
from jobgen.spec.sweeps import SWEEP

_OVERLAYS = "overlays"
_MOST_KINDS = 4

ListJobs = Callable[[], Iterable[Job]]
"""Lists all jobs of the repository, at least with what selectors match on. It may read all files."""


class SelectorUse(NamedTuple):
    """What a run has seen: the environments that it ran, the patches that matched, the environments with objects."""

    project: ProjectConfig
    runners: Sequence[EnvironmentRunner]
    patches: set[PatchName]
    filled: set[str]
    checked: bool
    jobs: ListJobs


def find_idle_selectors(use: SelectorUse, tracer: Tracer) -> Iterator[Finding]:
    """Report patches that match no job in any environment that has them, and environments without jobs.

    A lint reports errors. A render is not stopped by them: the last job of a team may be gone.
    """
    every_patch = [patch for runner in use.runners for patch in runner.expander.environment.patches]
    patches = {(patch.overlay, patch.place): patch for patch in every_patch if not patch.optional}
    empty = [runner for runner in use.runners if runner.name not in use.filled and runner.expander.environment.jobs]
    if not empty and all(patch.name in use.patches for patch in patches.values()):
        return
    ran = {runner.name for runner in use.runners}
    others = [EnvironmentRunner(use.project, name) for name in use.project.overlays if name not in ran]
    every = [*use.runners, *others]
    jobs = list(use.jobs())
    known = {runner.name: list(map(runner.attributes, jobs)) for runner in every}
    used = set(use.patches)
    for runner in every:
        environment = runner.expander.environment
        # Jobs that were not rendered may use a runtime, in any namespace.
        runtimes = environment.runtimes.values()
        used |= {patch.name for runtime in runtimes for patch in list_patches(runtime, "", environment)}
        idle = tuple(patch for patch in environment.patches if patch.name not in used)
        own = filter(environment.matches, known[runner.name] if idle else ())
        used |= {patch.name for job in own for patch in environment._replace(patches=idle).patches_for(job)}
    severity = Severity.ERROR if use.checked else Severity.WARNING
    having: dict[PatchName, tuple[EnvironmentRunner, list[JobAttributes]]] = {}
    for runner in use.runners:
        environment = runner.expander.environment
        members = list(filter(environment.matches, known[runner.name]))
        having = {patch.name: (runner, members) for patch in environment.patches} | having
    for key in sorted(key for key, patch in patches.items() if patch.name not in used):
        runner, members = having[patches[key].name]
        # An empty environment is reported itself.
        if members or runner not in empty:
            yield _report_patch(patches[key], members, tracer)._replace(severity=severity)
    for runner in empty:
        if known[runner.name] and not any(map(runner.expander.environment.matches, known[runner.name])):
            overlays = tracer.traced_project().overlays
            ancestors = list_ancestors(runner.name, overlays)
            specs = [spec for name in ancestors for spec in overlays[name].specs if "jobs" in spec]
            reason = explain_no_match(runner.expander.environment.jobs[-1], known[runner.name])
            message = Sentence("`jobs` selects no job, so `{}` is empty{}", runner.name, reason)
            node = find_key(specs[-1], "jobs")
            found = locate(Problem("empty-environment", message, node, evidence=(runner.name,)), _OVERLAYS)
            yield found._replace(severity=severity, env=runner.name)


def find_unused_runtimes(project: ProjectConfig, made: Iterable[Rendered], tracer: Tracer) -> Iterator[Finding]:
    """Report runtimes that no job refers to, so that they are rendered nowhere."""
    used = {each.identity.name for each in made if each.companion and each.identity.kind in RUNTIME_KINDS}
    if project.runtimes.keys() <= used:
        return
    for name, runtime in tracer.traced_project().runtimes.items():
        if name not in used:
            message = Sentence("no job refers to the runtime `{}`, so it is not rendered; remove it", name)
            problem = Problem("unused-runtime", message, runtime["metadata"]["name"], severity=Severity.WARNING)
            yield locate(problem, "runtimes")


def _report_patch(patch: Patch, jobs: Sequence[JobAttributes], tracer: Tracer) -> Finding:
    specs = tracer.traced_project().overlays[patch.overlay].specs
    node = next(islice((other for spec in specs for other in spec.get("patches", ())), patch.place, None))
    reason = explain_no_match(patch.match, jobs)
    if any(map(patch.match.matches, jobs)):
        reason = ": `merge` applies to job specs only; use `manifest` for raw manifests"
    has_advice = reason.endswith(("?", "manifests")) or "; write `" in reason
    advice = "" if has_advice else "; change its `match`, remove it, or set `optional: true`"
    message = Sentence("the patch matches no job{}{}", reason, advice)
    return locate(Problem("patch-matches-nothing", message, node, evidence=()), _OVERLAYS)


def explain_no_match(selector: JobSelector, jobs: Sequence[JobAttributes]) -> str:
    """Say which part of a selector no job has, and what is close to it; an empty string if that is not clear."""
    fields = {attribute: field for field, attribute in SELECTOR_ATTRIBUTES.items()}
    for attribute, patterns in selector.patterns:
        values = sorted({str(getattr(job, attribute)) for job in jobs})
        if not patterns:
            return f": `{fields[attribute]}` is empty"
        if not any(fnmatchcase(value, pattern) for value in values for pattern in patterns):
            listed = list_alternatives(f"`{pattern}`" for pattern in patterns)
            return f": no job has the {attribute} {listed}{suggest_pattern(attribute, patterns[0], jobs)}"
    for key, value in selector.labels:
        values = sorted({job.labels[key] for job in jobs if key in job.labels})
        if not values:
            labels = sorted({label for job in jobs for label in job.labels})
            return f": no job has the label `{key}`{did_you_mean(key, labels)}"
        if value not in values:
            return f": no job has the label `{key}: {value}`{did_you_mean(value, values)}"
    if selector.exclude is not None and any(map(selector.includes, jobs)):
        return ": `exclude` excludes all jobs that match"
    return ""


def suggest_pattern(attribute: str, pattern: str, jobs: Sequence[JobAttributes]) -> str:
    """`; did you mean …?` if a value, or a folder of paths, is close to a pattern, or how to write a sweep."""
    values = sorted({str(getattr(job, attribute)) for job in jobs})
    if attribute == "name" and any(job.labels.get(SWEEP) == pattern for job in jobs):
        return f"; `{pattern}` is a sweep; write `{pattern}-*`"
    if attribute == "path":
        if any(fnmatchcase(value, f"jobs/{pattern}") for value in values):
            return f"; did you mean `jobs/{pattern}`?"
        folders = {f"{value.rpartition('/')[0]}/*" for value in values}
        return did_you_mean(pattern, sorted({*values, *folders}) if "*" not in pattern else sorted(folders))
    if attribute == "kind" and pattern == "TrainingJob" and 0 < len(values) <= _MOST_KINDS:
        return f"; write `kinds: [{', '.join(values)}]`, the kinds of the rendered objects, or remove `kinds`"
    if pattern.startswith("^") or ".*" in pattern or pattern.endswith("$"):
        glob = pattern.removeprefix("^").removesuffix("$").replace(".*", "*").replace(".+", "*")
        return (
            f"; write `{glob}`, as `*` stands for any text" if any(fnmatchcase(each, glob) for each in values) else ""
        )
    close = find_closest(pattern.strip("*-?"), values)
    return f"; did you mean `{close}`?" if close else ""


def find_unlisted_overlays(project: ProjectConfig, tracer: Tracer) -> Iterator[Finding]:
    """Report overlays that `environments` of the settings leaves out, and that none of these environments extends."""
    if "environments" not in project.settings:
        return
    environments = project.environments()
    # Worker clusters of MultiKueue have queues, and no jobs of their own.
    workers = [each for env in environments for each in project.environment(env, []).cluster.workers.values()]
    named = (*environments, *(each.get("environment", "") for each in workers))
    used = {name for env in named for name in list_ancestors(env, project.overlays)}
    if any(name_overlay(finding) in used or finding.location.file == SETTINGS for finding in project.findings):
        # What an overlay with errors extends may not be known, and what a wrong entry means is not.
        return
    # An overlay that a misspelled name means is used.
    specs = [spec for name in used if name in project.overlays for spec in project.overlays[name].specs]
    missing = {str(value_of(each)) for spec in specs for each in spec.get("extends", ())}.difference(project.overlays)
    meant = filter(None, (find_closest(name, [*project.overlays]) for name in missing))
    used = used.union(*(list_ancestors(name, project.overlays) for name in meant))
    for name in sorted(project.overlays.keys() - used):
        traced = tracer.traced_project()
        listed = traced.settings["environments"]
        message = Sentence(
            "`environments` does not list the overlay `{}`, so its jobs are not checked; add `{}`", name, name
        )
        own = traced.overlays[name].specs if name in traced.overlays else ()
        related = ((own[0], "the overlay"),) if own and location_of(own[0]) else ()
        node = listed or find_key(traced.settings, "environments")
        # Its environment is what an exception can name.
        yield locate(Problem("unlisted-overlay", message, node, related), SETTINGS)._replace(env=name)
        parents = [parent for spec in own for parent in spec.get("extends", ())]
        for parent in parents:
            if value_of(parent) not in project.overlays:
                others = [each for each in project.overlays if each != name]
                yield locate(report_unknown_parent(parent, others), _OVERLAYS)._replace(env=name)


def find_unknown_roles(
    project: ProjectConfig, runners: Sequence[EnvironmentRunner], tracer: Tracer, jobs: ListJobs
) -> Iterator[Finding]:
    """Report roles in `defaults` and `locked` that no job can have, in any environment that has these."""
    environments = [runner.expander.environment for runner in runners]
    if all(role in _platform_roles(project, each) for each in environments for role, _ in _list_overlay_roles(each)):
        return
    traced = tracer.traced_project()
    unknown: dict[Location, tuple[TracedKey | TracedScalar, str, set[str]]] = {}
    known: set[Location] = set()
    present: list[str] = []
    for name in {*project.overlays, *(runner.name for runner in runners)}:
        environment = traced.environment(name, [])
        possible = _platform_roles(project, environment)
        for role, node in _list_overlay_roles(environment):
            if not isinstance(node, (TracedKey, TracedScalar)) or node.location is None:
                continue
            if role in possible or ANY_ROLE in possible:
                known.add(node.location)
            else:
                present = present or _list_present_roles(project, runners, jobs)
                if role in present:
                    # A job of the environment has a platform of its own.
                    known.add(node.location)
                unknown.setdefault(node.location, (node, role, set()))[2].update(possible)
    for location, (node, role, possible) in unknown.items():
        if location not in known:
            first = [name for name in present if name in possible]
            others = sorted(possible.difference(first))
            listed = ", ".join(f"`{name}`" for name in first or others)
            meant = find_closest(role, first) or find_closest(role, others)
            hint = ask_for(meant) or f"; there are {listed}"
            fix_steps, safe = suggest_rename(node, [*first, *others], {}) if type(node) is TracedKey else NO_FIX
            message = Sentence("no job of this environment has a role `{}`{}", role, hint)
            problem = Problem("unknown-role", message, node, fix_steps=fix_steps, safe=safe, meant=meant)
            yield locate(problem, _OVERLAYS)


def _list_overlay_roles(environment: Environment) -> Iterator[tuple[str, Node]]:
    """The roles that the defaults and locks of an environment name, each with the node that does."""
    for defaults in environment.defaults:
        yield from ((str(role), role) for role in defaults.layer.roles)
    for lock in environment.locks:
        if len(lock.path) > 1 and lock.path[0] == "roles":
            yield str(lock.path[1]), lock.node


def _list_present_roles(project: ProjectConfig, runners: Sequence[EnvironmentRunner], jobs: ListJobs) -> list[str]:
    """The roles that the frameworks of the jobs of some environments have."""
    attributes = [runner.attributes(job) for job in jobs() for runner in runners]
    used = {(each.platform, each.framework) for each in attributes}
    known = [(kind.platform, name, each) for kind in project.kinds for name, each in kind.frameworks.items()]
    found = [role for platform, name, each in known if (platform, name) in used for role in each.roles]
    return list(dict.fromkeys(found))


def _platform_roles(project: ProjectConfig, environment: Environment) -> set[str]:
    """The roles of all frameworks that the platforms of an environment run."""
    platforms = environment.cluster.list_platforms()
    frameworks = [each for kind in project.kinds if kind.platform in platforms for each in kind.frameworks.values()]
    return {role for framework in frameworks for role in framework.roles}
