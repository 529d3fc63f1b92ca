"""What the repository has: settings, environments, jobs, policies, teams, operators, and files that jobgen wrote."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from jobgen import __version__
from jobgen.api.lint_run import list_customized
from jobgen.cli.commands.schema import editor_files
from jobgen.cli.doctor import NOTE, PROBLEM, Check
from jobgen.engine.inputs import read_start
from jobgen.k8s.kinds import format_release, list_releases, parse_release
from jobgen.k8s.team_kinds import DEFAULT, KINDS, format_kind, is_always_refused, is_counted, list_missing
from jobgen.k8s.team_uses import find_uses
from jobgen.model.data import value_of
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.pipeline.policies import load_policies
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.redact_results import redact_shared
from jobgen.rendering.render_task import render_jobs
from jobgen.rendering.settings_errors import FIELD
from jobgen.repo import layout
from jobgen.repo.files import MANIFEST_SUFFIXES, read_file, read_path
from jobgen.repo.lock import TREE
from jobgen.repo.root import SETTINGS
from jobgen.repo.tree_faults import find_tree_faults
from jobgen.repo.walk import list_paths, walk_files
from jobgen.reports.entries import pluralize
from jobgen.spec.overlay import Cluster
from jobgen.spec.teams import KindName, Team
from jobgen.yamlio.read import read

_MAX_NAMES = 8
_WRONG_VERSION = "wrong-jobgen-version"
_ADD_EXAMPLE = 'example=$(mktemp -d) && jobgen init "$example" && cp -R "$example/jobs" .'
_JOB = lazy_pattern(r"""(?m)^\s*["']?kind["']?: *["']?\w*Job\b""")
_OWN_FOLDERS = frozenset("defects jobs overlays policies rendered runtimes schemas teams tests".split())


def check_settings(root: Path, project: ProjectConfig) -> Check:
    """The settings, and their errors."""
    if layout.read_settings(layout.own_layers(root)) is None:
        found = f"no {SETTINGS}; jobgen works only in this folder"
        return Check("settings", found, NOTE, f"touch {SETTINGS}", {"errors": 0})
    errors = [each for each in _list_errors(project) if each.location.file == SETTINGS and each.rule != _WRONG_VERSION]
    return _judge("settings", errors, f"{SETTINGS} is valid", {}, f"jobgen lint {SETTINGS}")


def check_version(root: Path, project: ProjectConfig) -> Check:
    """The version that the settings require, also if they have errors."""
    file = layout.read_settings(layout.own_layers(root))
    documents = read(file.content, file.path).documents if file and not file.finding else ()
    written: Mapping[str, Any] = next((each.data for each in documents if isinstance(each.data, dict)), {})
    required = value_of(written.get(FIELD))
    required = required if isinstance(required, str) else ""
    facts = {"required": required, "met": True}
    if any(each.rule == _WRONG_VERSION for each in project.findings):
        found = f"{required}, and this is {__version__}"
        command = f"pip install 'jobgen{required}'"
        return Check(name=FIELD, found=found, status=PROBLEM, next=command, facts={**facts, "met": False})
    return Check(name=FIELD, found=f"{required}, met by {__version__}" if required else "none", facts=facts)


def check_customized(project: ProjectConfig) -> Check:
    """What the settings check or show less than jobgen does without them."""
    found = list_customized(project)
    return Check("customized", "; ".join(found) or "nothing", facts={"customized": found})


def check_environments(project: ProjectConfig) -> Check:
    """The environments, and errors of their overlays."""
    default = [name for name in project.environments() if name]
    others = [name for name in sorted(project.overlays) if name not in default]
    found = _join(default) + (f"; also {_join(others)}" if others else "")
    errors = [each for each in _list_errors(project) if each.location.file.startswith("overlays/")]
    facts = {"overlays": sorted(project.overlays), "default": default}
    return _judge("environments", errors, found or "none, so jobs are rendered without overlays", facts)


def check_jobs(root: Path, project: ProjectConfig) -> Check:
    """The number of jobs, and errors that prevent reading one."""
    findings: list[Finding] = []
    entries = list(layout.find_jobs(root))
    jobs = list(read_jobs(entries, project.kinds, findings))
    errors = redact_shared(project, (each for each in findings if each.severity is Severity.ERROR))
    facts = {"files": len(entries), "jobs": len(jobs)}
    if not jobs and not errors:
        # A folder with the manifest of a job, among the first files, can be imported.
        command = _ADD_EXAMPLE
        for name in list_paths(str(root), ""):
            if name.endswith("/") and name[:-1] not in _OWN_FOLDERS:
                files = islice(walk_files(root, name[:-1], MANIFEST_SUFFIXES), 200)
                starts = (read_start(str(root / file.path), 10_000) for file in files)
                if any(_JOB.search(start.decode("utf-8", "replace")) for start in starts):
                    command = f"jobgen import {shlex.quote(name)} -o jobs"
                    break
        return Check("jobs", "there is no job in jobs/", NOTE, command, {**facts, "errors": 0})
    found = f"{pluralize(len(jobs), 'job')} in {pluralize(len(entries), 'file')}"
    return _judge("jobs", errors, found, facts)


def check_policies(root: Path) -> Check:
    """The policies of the repository, and those of jobgen that are on."""
    book = load_policies(layout.own_layers(root))
    count, own = len(book.policies.policies), sum(1 for _ in layout.read_own_policies(layout.own_layers(root)))
    packs = list(layout.find_packs(layout.own_layers(root)))
    facts = {"policies": count, "ownFiles": own, "packs": packs}
    found = f"{count} in force, {pluralize(own, 'own file')}; packs: {_join(packs) or 'none'}"
    errors = [each for each in book.findings if each.severity is Severity.ERROR]
    return _judge("policies", errors, found, facts, "jobgen policy check")


def check_teams(project: ProjectConfig) -> Check:
    """The teams, errors of their files, and the kinds in their folders that these do not allow yet."""
    names = [team.name for team in project.teams.all]
    errors = [each for each in _list_errors(project) if each.location.file.startswith("teams/")]
    lines = [] if errors or not names else list(_list_missing_kinds(project))
    facts = {
        "teams": names,
        "missingLines": [{"team": team.name, "file": team.file, "line": line} for team, line in lines],
    }
    found = _join(names) or "none"
    if lines:
        # All of them, because they are to be copied.
        needed = "; ".join(f"team `{team.name}` in {team.file} needs `{line}`" for team, line in lines)
        found = f"{found}; for the kinds that are there today, {needed}"
        return Check("teams", found, PROBLEM, "jobgen explain kind-not-allowed", {**facts, "errors": 0})
    return _judge("teams", errors, found, facts)


def _list_missing_kinds(project: ProjectConfig) -> Iterator[tuple[Team, str]]:
    """Yield a team, and a line for the kinds of its objects that it lacks, as text."""
    kinds: dict[str, set[KindName]] = {}
    uncounted: dict[str, set[KindName]] = {}
    for made in render_jobs(project, project.environments()).objects:
        team = project.teams.find(made.location.file)
        if team is None:
            continue
        scope = project.teams.find_scope(team, made.env)
        found = [(use.qualifier, use.value) for use in find_uses(made.object) if use.what == KINDS]
        if KINDS not in scope.allowed:
            kinds.setdefault(team.name, set()).update(list_missing(scope, found))
        wanted = (each for each in found if scope.has_budget and not is_counted(scope, *each))
        uncounted.setdefault(team.name, set()).update(each for each in wanted if not is_always_refused(each[1]))
    for team in project.teams.all:
        if kinds.get(team.name):
            listed = ", ".join((DEFAULT, *(format_kind(*each) for each in sorted(kinds[team.name]))))
            yield team, f"{KINDS}: [{listed}]"
        if uncounted.get(team.name):
            entries = ", ".join(f"{format_kind(*each)}: [...]" for each in sorted(uncounted[team.name]))
            yield team, f"pods: {{{entries}}}"


def check_clusters(project: ProjectConfig) -> Iterator[Check]:
    """The platforms, operators and releases of Kubernetes that environments declare, and those that jobgen knows."""
    clusters = {env: project.environment(env, []).cluster for env in project.environments()}
    facts = {
        env: {
            "platforms": list(cluster.list_platforms()),
            "operators": {name: str(value_of(number)) for name, number in cluster.operators.items()},
            "kubernetes": cluster.kubernetes,
        }
        for env, cluster in clusters.items()
    }

    def describe_operators(cluster: Cluster) -> str:
        versions = ", ".join(f"{name} {value_of(number)}" for name, number in sorted(cluster.operators.items()))
        return f"{', '.join(cluster.list_platforms())}, {versions or 'no versions, so the newest'}"

    yield Check("operators", "; ".join(_group(clusters, describe_operators)), facts={"environments": facts})
    known = list_releases()
    declared = {env: str(value_of(cluster.kubernetes)) for env, cluster in clusters.items()}
    others = [env for env, release in declared.items() if format_release(parse_release(release)) not in known]
    releases = "; ".join(_group(clusters, lambda cluster: cluster.kubernetes or f"not declared, so {known[0]}"))
    found = f"Kubernetes {known[-1]} to {known[0]} are built in; declared: {releases}"
    if others:
        found += f"; {_join(others)} is checked as the nearest of these"
    yield Check("schemas", found, facts={"oldest": known[-1], "newest": known[0], "declared": declared})


def check_tree(root: Path, project: ProjectConfig) -> Check:
    """Return True if the rendered tree is as jobgen wrote it, with its lock files and `.gitattributes`."""
    tree = root / TREE
    facts: dict[str, Any] = {"exists": tree.is_dir(), "faults": 0}
    if not facts["exists"]:
        return Check("rendered tree", f"there is no {TREE}/", facts=facts)
    faults = list(islice(find_tree_faults(tree, project.overlays or None), 1000))
    if not faults:
        return Check("rendered tree", f"{TREE}/ is as jobgen wrote it", facts=facts)
    command = f"jobgen render -o {TREE}" if all(each.is_listed for each in faults) else "jobgen lint"
    first = f"{TREE}/{faults[0].path}: {faults[0].message}"
    found = f"{pluralize(len(faults), 'file')} not as jobgen wrote them, such as {first}"
    return Check("rendered tree", found, PROBLEM, command, {**facts, "faults": len(faults)})


def check_editor(root: Path) -> Check:
    """Return True if the schemas that editors read are those of this version."""
    if layout.is_home(root):
        return Check("editor files", "this is the repository of jobgen", facts={"files": 0, "stale": []})
    wanted = {path: text for path, text in editor_files(root).items() if path.startswith("schemas/")}
    found = {path: read_path(root / path, path, root).content for path in wanted if (root / path).is_file()}
    stale = [path for path, text in wanted.items() if path in found and found[path] != text]
    facts = {"files": len(found), "stale": stale}
    if not found:
        return Check(
            "editor files", "none; editors do not know the fields of jobs", NOTE, "jobgen schema editor", facts
        )
    missing = [path for path in wanted if path not in found]
    if stale or missing:
        groups = {"of another version": stale, "missing": missing}
        texts = (
            f"{pluralize(len(paths), 'file')} {state}, such as {paths[0]}" for state, paths in groups.items() if paths
        )
        return Check("editor files", "; ".join(texts), NOTE, "jobgen schema editor", facts)
    return Check("editor files", "those of this version", facts=facts)


def _list_errors(project: ProjectConfig) -> list[Finding]:
    if not project.findings:
        return []
    traced = config.load(project.layers, traced=True).findings
    return redact_shared(project, (finding for finding in traced if finding.severity is Severity.ERROR))


def _judge(
    name: str, errors: Sequence[Finding], found: str, facts: Mapping[str, Any], command: str = "jobgen lint"
) -> Check:
    """Return what was found, or a problem if there are errors."""
    counted = {**facts, "errors": len(errors)}
    if not errors:
        return Check(name, found, facts=counted)
    text = f"{pluralize(len(errors), 'error')}, the first: {errors[0].location}: {errors[0].message}"
    return Check(name, text, PROBLEM, command, counted)


def _group(clusters: Mapping[str, Cluster], describe: Any) -> Iterator[str]:
    """What environments have in common, once."""
    groups: dict[str, list[str]] = {}
    for env, cluster in clusters.items():
        groups.setdefault(describe(cluster), []).append(env)
    for text, names in groups.items():
        yield f"{_join(names)}: {text}" if any(names) else text


def _join(names: Iterable[str]) -> str:
    """Names, at most some of them."""
    listed = list(names)
    rest = len(listed) - _MAX_NAMES
    return ", ".join(listed[:_MAX_NAMES]) + (f" and {rest} more" if rest > 0 else "")


_RENDERED_PATH = lazy_pattern(rf"""(?m)^[^#\n]*?\bpath: *["']?(?:\./)?{TREE}/([\w.-]+)""")


def check_gitops(root: Path, project: ProjectConfig) -> Iterator[Check]:
    """Compare the paths in gitops/ with the environments; nothing if no file there has a path of the rendered tree."""
    for entry in islice(walk_files(root, "gitops", MANIFEST_SUFFIXES), 50):
        named = list(dict.fromkeys(_RENDERED_PATH.findall(read_file(entry).content.decode("utf-8", "replace"))))
        if not named:
            continue
        path = entry.path
        unknown = [name for name in named if name not in project.overlays]
        missing = [name for name in project.environments() if name and name not in named]
        facts = {"file": path, "applied": named, "unknown": unknown, "missing": missing}
        command = f"jobgen gitops {'flux' if 'flux' in path else 'argocd'} > {shlex.quote(path)}"
        if unknown:
            found = f"{path} applies {', '.join(unknown)}, but there is no such environment"
            yield Check("gitops", found, PROBLEM, command, facts)
        elif missing:
            yield Check("gitops", f"{path} does not apply {', '.join(missing)}", NOTE, command, facts)
        else:
            yield Check("gitops", f"{path} applies {', '.join(named)}", facts=facts)
