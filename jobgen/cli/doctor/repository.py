"""What the repository has: settings, environments, jobs, policies, teams, operators, and files that jobgen wrote."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from jobgen import __version__
from jobgen.cli.commands.schema import editor_files
from jobgen.cli.doctor import NOTE, PROBLEM, Check
from jobgen.engine.inputs import read_start
from jobgen.k8s.releases import format_release, list_releases, parse_release
from jobgen.model.data import value_of
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.pipeline.policies import load_policies
from jobgen.rendering import config
from jobgen.rendering.config import FIELD, ProjectConfig
from jobgen.rendering.read_jobs import read_jobs
from jobgen.repo import layout
from jobgen.repo.files import MANIFEST_SUFFIXES, read_file, read_path
from jobgen.repo.lock import TREE
from jobgen.repo.rendered_tree import find_tree_faults
from jobgen.repo.root import SETTINGS
from jobgen.repo.walk import list_paths, walk_files
from jobgen.reports.summary import pluralize
from jobgen.spec.overlay import Cluster

_MAX_NAMES = 8
_MAX_FAULTS = 1000
_WRONG_VERSION = "wrong-jobgen-version"
_ADD_EXAMPLE = 'example=$(mktemp -d) && jobgen init "$example" && cp -R "$example/jobs" .'
_JOB = lazy_pattern(r"""(?m)^\s*["']?kind["']?: *["']?\w*Job\b""")
_OWN_FOLDERS = frozenset(("jobs", "overlays", "policies", "rendered", "runtimes", "schemas", "teams", "tests"))
_MAX_SEARCHED = 200
_SEARCHED_BYTES = 10_000


def check_settings(root: Path, project: ProjectConfig) -> Check:
    """The settings, and their errors."""
    if layout.read_settings(root) is None:
        return Check(
            "settings", f"no {SETTINGS}; jobgen works only in this folder", NOTE, f"touch {SETTINGS}", {"errors": 0}
        )
    errors = [each for each in _list_errors(project) if each.location.file == SETTINGS and each.rule != _WRONG_VERSION]
    if errors:
        return Check("settings", _describe(errors), PROBLEM, f"jobgen lint {SETTINGS}", {"errors": len(errors)})
    return Check("settings", f"{SETTINGS} is valid", facts={"errors": 0})


def check_version(project: ProjectConfig, written: Mapping[str, Any]) -> Check:
    """The version that the settings require."""
    required = value_of(written.get(FIELD))
    required = required if isinstance(required, str) else ""
    facts = {"required": required, "met": True}
    if any(each.rule == _WRONG_VERSION for each in project.findings):
        found = f"{required}, and this is {__version__}"
        command = f"pip install 'jobgen{required}'"
        return Check(name=FIELD, found=found, status=PROBLEM, next=command, facts={**facts, "met": False})
    return Check(name=FIELD, found=f"{required}, met by {__version__}" if required else "none", facts=facts)


def check_environments(project: ProjectConfig) -> Check:
    """The environments, and errors of their overlays."""
    errors = [each for each in _list_errors(project) if each.location.file.startswith("overlays/")]
    default = [name for name in project.environments() if name]
    facts = {"overlays": sorted(project.overlays), "default": default, "errors": len(errors)}
    if errors:
        return Check("environments", _describe(errors), PROBLEM, "jobgen lint", facts)
    others = [name for name in sorted(project.overlays) if name not in default]
    found = _join(default) + (f"; also {_join(others)}" if others else "")
    return Check("environments", found or "none, so jobs are rendered without overlays", facts=facts)


def check_jobs(root: Path, project: ProjectConfig) -> Check:
    """The number of jobs, and errors that prevent reading one."""
    findings: list[Finding] = []
    entries = list(layout.find_jobs(root))
    jobs = list(read_jobs(entries, project.frameworks, findings))
    errors = [each for each in findings if each.severity is Severity.ERROR]
    facts = {"files": len(entries), "jobs": len(jobs), "errors": len(errors)}
    if errors:
        return Check("jobs", _describe(errors), PROBLEM, "jobgen lint", facts)
    if not jobs:
        folder = _find_manifests(root)
        command = f"jobgen import {shlex.quote(folder)} -o jobs" if folder else _ADD_EXAMPLE
        return Check("jobs", "there is no job in jobs/", NOTE, command, facts)
    return Check("jobs", f"{pluralize(len(jobs), 'job')} in {pluralize(len(entries), 'file')}", facts=facts)


def _find_manifests(root: Path) -> str:
    """A folder of the repository with the manifest of a job, among the first files; empty if none is found."""
    for name in list_paths(str(root), ""):
        if not name.endswith("/") or name[:-1] in _OWN_FOLDERS:
            continue
        files = islice(walk_files(root, name[:-1], MANIFEST_SUFFIXES), _MAX_SEARCHED)
        if any(
            _JOB.search(read_start(str(root / file.path), _SEARCHED_BYTES).decode("utf-8", "replace")) for file in files
        ):
            return name
    return ""


def check_policies(root: Path) -> Check:
    """The policies of the repository, and those of jobgen that are on."""
    book = load_policies(root)
    own = sum(1 for _ in layout.read_own_policies(root))
    packs = list(layout.find_packs(root))
    errors = [each for each in book.findings if each.severity is Severity.ERROR]
    facts = {"policies": len(book.policies.policies), "ownFiles": own, "packs": packs, "errors": len(errors)}
    if errors:
        return Check("policies", _describe(errors), PROBLEM, "jobgen policy check", facts)
    found = f"{len(book.policies.policies)} in force, {pluralize(own, 'own file')}; packs: {_join(packs) or 'none'}"
    return Check("policies", found, facts=facts)


def check_teams(project: ProjectConfig) -> Check:
    """The teams, and errors of their files."""
    names = [team.name for team in project.teams.all]
    errors = [each for each in _list_errors(project) if each.location.file.startswith("teams/")]
    facts = {"teams": names, "errors": len(errors)}
    if errors:
        return Check("teams", _describe(errors), PROBLEM, "jobgen lint", facts)
    return Check("teams", _join(names) or "none", facts=facts)


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
    yield Check("operators", "; ".join(_group(clusters, _describe_operators)), facts={"environments": facts})
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
    faults = list(islice(find_tree_faults(tree, project.overlays or None), _MAX_FAULTS))
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
    traced = config.load(project.root, traced=True).findings
    return [finding for finding in traced if finding.severity is Severity.ERROR]


def _describe(errors: Sequence[Finding]) -> str:
    return f"{pluralize(len(errors), 'error')}, the first: {errors[0].location}: {errors[0].message}"


def _describe_operators(cluster: Cluster) -> str:
    versions = ", ".join(f"{name} {value_of(number)}" for name, number in sorted(cluster.operators.items()))
    return f"{', '.join(cluster.list_platforms())}, {versions or 'no versions, so the newest'}"


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


_GITOPS_FOLDER = "gitops"
_MAX_GITOPS_FILES = 50
_RENDERED_PATH = lazy_pattern(rf"""(?m)^[^#\n]*?\bpath: *["']?(?:\./)?{TREE}/([\w.-]+)""")


def check_gitops(root: Path, project: ProjectConfig) -> Iterator[Check]:
    """Compare the paths in gitops/ with the environments; nothing if no file there has a path of the rendered tree."""
    for entry in islice(walk_files(root, _GITOPS_FOLDER, MANIFEST_SUFFIXES), _MAX_GITOPS_FILES):
        named = dict.fromkeys(_RENDERED_PATH.findall(read_file(entry).content.decode("utf-8", "replace")))
        if named:
            yield _compare_environments(entry.path, list(named), project)


def _compare_environments(path: str, named: list[str], project: ProjectConfig) -> Check:
    unknown = [name for name in named if name not in project.overlays]
    missing = [name for name in project.environments() if name and name not in named]
    facts = {"file": path, "applied": named, "unknown": unknown, "missing": missing}
    command = f"jobgen gitops {'flux' if 'flux' in path else 'argocd'} > {shlex.quote(path)}"
    if unknown:
        found = f"{path} applies {', '.join(unknown)}, which is no environment"
        return Check("gitops", found, PROBLEM, command, facts)
    if missing:
        return Check("gitops", f"{path} does not apply {', '.join(missing)}", NOTE, command, facts)
    return Check("gitops", f"{path} applies {', '.join(named)}", facts=facts)
