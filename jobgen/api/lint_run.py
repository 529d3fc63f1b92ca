"""One lint of a repository or of some paths, with severities and suppressions applied."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobgen.api.lint_files import STDIN, LintContents, LintFiles, LintRequest, LintRun, resolve_files, select_findings
from jobgen.api.project import list_captures, select_environments
from jobgen.api.recognized_files import (
    count_charts,
    count_unjudged,
    name_taken,
    recognize_files,
    report_unjudged,
    settle_findings,
)
from jobgen.check.rules import all_rules, rule_categories, rule_names
from jobgen.engine.inputs import FOLDER
from jobgen.engine.store import Store
from jobgen.k8s.devices import is_device_kind
from jobgen.model.builtin_rules import CHANGE_RULES, UNJUDGED_CHART_RULES, canonical_rule_name
from jobgen.model.data import Location, untraced, value_of
from jobgen.model.features import find_part
from jobgen.model.finding import Finding, Problem, Severity, pluralize, sort_findings
from jobgen.pipeline.finish import OF_LINT, Finishing, finish
from jobgen.pipeline.lint_checks import LintChecks
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.locate import locate
from jobgen.rendering.mended_overlays import keep_independent
from jobgen.rendering.read_jobs import collect_suppressions
from jobgen.rendering.run import Run
from jobgen.rendering.run_state import discard_object, keep_object, load_project
from jobgen.repo import git, layout
from jobgen.repo.commit import CommitPath, Folder, describe_path
from jobgen.repo.files import File
from jobgen.repo.known_rules import list_defect_names
from jobgen.repo.lock import TREE
from jobgen.repo.named_paths import read_first
from jobgen.repo.root import LAYER_FOLDERS, SETTINGS, find_files_of_other_repositories
from jobgen.repo.walk import find_unmatched_patterns
from jobgen.reports import REPLACES
from jobgen.reports.suppress import (
    Coverage,
    Suppression,
    join_coverage,
)

if TYPE_CHECKING:
    from jobgen.recognize.survey import Survey
    from jobgen.reports import Opinion

# Rules beside those of scope `fleet` that compare objects of several files.
_CROSS_FILE_RULES = frozenset(
    """conflicting-copies crd-copies-differ deletes-nothing duplicate-identity kind-without-crd patch-matches-nothing
    selector-matches-nothing""".split()
)
_KUBECONFORM_RULES = frozenset(("kubeconform-disagrees", "kubeconform-failed"))
_SECOND_OPINION_RULES = frozenset("jsonschema-disagrees jsonschema-failed kustomize-disagrees kustomize-failed".split())
# Rules that only `jobgen render` applies.
_RENDER_RULES = frozenset(("file-name-too-long", "shared-file-name"))


def find_findings(
    request: LintRequest,
    store: Store | None = None,
    files: LintFiles | None = None,
    cancel: Callable[[int, int], None] | None = None,
) -> LintRun:
    """Check a whole repository, or the manifests at some paths, or raise a UsageError or a ToolError.

    `files` if they have been resolved already. `cancel` is called with the number of processed and of all objects, and
    may end the lint with an exception.
    """
    files = files or resolve_files(request)
    survey = recognize_files(request, files) if files.standalone is not None else None
    runs = _start_runs(request, files, survey, store, cancel)
    objects, opinions = _check_objects(runs, request.other_tools)
    if request.second_opinion and survey is not None:
        opinions += _check_builds(runs[-1], survey, is_compared=request.is_compared)
    if runs[0].entries is None:
        _check_behind_errors(runs[0], request, store, cancel)
    if survey is not None:
        last = runs[-1]
        is_strict, in_repository = request.strict_files, files.root is not None
        last.findings[:] = settle_findings(
            last.findings, survey, last.project, is_strict=is_strict, is_jobs_repository=in_repository
        )
    by_run = [_collect_comments(run) for run in runs]
    comments = [comment for several in by_run for comment in several]
    project, today = runs[0].project, request.today or (git.read_day(request.directory) if comments else "")
    coverages = [_find_coverage(run, request) for run in runs]
    defects = frozenset(list_defect_names(project.root))
    rules = rule_names().union(defects, *(run.policies for run in runs))
    # Where each chart must be judged, no comment says that one need not be.
    mandatory = project.mandatory | UNJUDGED_CHART_RULES if request.strict_files else project.mandatory
    context = Finishing(
        mandatory,
        project.severities,
        lambda finding: project.teams.find_name(finding.location.file),
        comments=comments,
        today=today,
        read_text=partial(_read_text, files, request),
    )
    context.hidden = list(dict.fromkeys(each for run in runs for each in run.hidden))
    context.coverages, context.rules = list(zip(by_run, coverages, strict=True)), sorted(rules)
    if any(each.location.file == SETTINGS for each in project.findings):
        wrong = runs[0].tracer.traced_project().findings
        context.setting_errors = [each for each in wrong if each.location.file == SETTINGS]
    find_files = runs[0].find_files
    context.is_selected = lambda found: [
        each for each in select_findings(found, request, find_files) if not files.is_excluded(each.location.file)
    ]
    found = [finding for run in runs for finding in run.findings]
    findings = finish(found, context, OF_LINT)
    taken = name_taken(survey, runs[-1].left_out) if survey else {}
    return LintRun(
        _add_others(findings, files, request, project, taken, store),
        context.hidden,
        sum(run.files for run in runs) - sum(files.is_excluded(entry.path) for entry in files.jobs),
        objects,
        list(dict.fromkeys(name for run in runs for name in run.environments if name)),
        rules
        - (defects - frozenset(name for run in runs if run.checks for name in run.checks.list_defects()))
        - project.severities.off
        - (frozenset() if request.second_opinion else _SECOND_OPINION_RULES),
        files.root if isinstance(files.root, Path) else request.directory,
        comments,
        project.mandatory,
        today,
        join_coverage(coverages),
        skipped=count_unjudged(taken) + Counter(files.skipped) - count_charts(files, survey),
        taken=taken,
        rendered=all(run.rendered for run in runs),
        contents=_list_contents(runs),
        runs=runs,
        opinions=opinions,
        weaker=list_customized(project),
        captures=list_captures(project),
        trees=_describe_trees(files, request),
        narrowing=project.narrowing,
        lines={file: lines for run in runs for file, lines in run.lines.items() if file != STDIN},
        beside=_digest_beside(runs[0], found, comments, coverages[0]) if request.same.files else {},
    )


def _digest_beside(
    run: Run, findings: Sequence[Finding], comments: Sequence[Suppression], coverage: Coverage
) -> dict[str, str] | None:
    # Imported late: most lints are not compared.
    from jobgen.api.same_files import digest_beside

    return digest_beside(run, findings, comments, coverage.cross_file)


_STRENGTH = ("off", *(severity.value for severity in reversed(Severity)))


def list_customized(project: ProjectConfig) -> list[str]:
    """Return what the settings of a repository check or show less than jobgen does without them."""
    found: list[str] = []
    for field, shipped in (("rules", _read_severities), ("categories", dict)):
        written: Any = untraced(project.settings.get(field, {}))
        known = shipped() if written else {}
        for name, value in written.items():
            entries = value if isinstance(value, list) else [value]
            levels = [str(each["severity"] if isinstance(each, dict) else each) for each in entries]
            # YAML reads `off` as false.
            levels = ["off" if level == "False" else level for level in levels]
            lowest = min(levels, key=_STRENGTH.index, default="error")
            if _STRENGTH.index(lowest) < _STRENGTH.index(known.get(canonical_rule_name(name), "error")):
                found.append(f"`{name}` is {lowest}{'' if len(entries) == 1 and value == entries[0] else ' in places'}")
    found += [f"`{field}` names {', '.join(names)}" for field, names in _list_narrowing(project)]
    for field, what in (("exceptions", "exception"), ("exclude", "excluded pattern")):
        count = len(project.settings.get(field, ()))
        found += [pluralize(count, what)] if count else []
    replaced = [file.path for file in layout.read_own_policies(project.root) if layout.replaces_shipped(file.path)]
    return [*found, *(f"{path}{REPLACES}" for path in replaced if not layout.is_home(project.root))]


def _list_narrowing(project: ProjectConfig) -> list[tuple[str, list[str]]]:
    selected, ignored, _ = project.narrowing
    return [
        (field, [f"`{name}`" for name in names])
        for field, names in (("select", selected), ("ignore", ignored))
        if names
    ]


def _read_severities() -> dict[str, str]:
    # Imported late: most repositories change no severity.
    from jobgen.check.rule_docs import all_docs

    return {name: doc.severity.value for name, doc in all_docs(None).items()}


def _check_behind_errors(
    run: Run, request: LintRequest, store: Store | None, cancel: Callable[[int, int], None] | None
) -> None:
    """Add what is wrong with environments besides the errors of their overlays, and remove what follows from these."""
    has_settings_errors = any(each.location.file == SETTINGS for each in run.project.findings)
    if len(run.runners) == len(run.selected) and not has_settings_errors:
        return
    findings: list[Sequence[Finding]] = []
    for how in (config.LEFT_OUT, config.FILLED):
        project = load_project(store, run.project.root, request.today, how)
        mended = Run(
            project,
            run.selected,
            finish=discard_object,
            progress=cancel or (lambda _, __: None),
            checks=LintChecks(),
            jobs=run.jobs,
            store=store,
            is_cancellable=cancel is not None,
        )
        for _ in mended:
            pass
        findings.append(mended.findings)
        run.owners |= mended.owners
        run.seen |= mended.seen
    layers, has_gaps = run.prepared_findings, project.has_gaps
    run.findings[:] = keep_independent(run.findings, findings[0], findings[1], layers, has_gaps=has_gaps)


def _check_objects(runs: Sequence[Run], tools: Sequence[str]) -> tuple[int, list[Opinion]]:
    """Check all objects, also with other tools, and return their number and how much these tools checked."""
    if not tools:
        return sum(1 for run in runs for _ in run), []
    counts, opinions = zip(*(find_part("lint.other_tools")(run, tools) for run in runs), strict=True)
    return sum(counts), [reduce(add, several) for several in zip(*opinions, strict=True)]


def _check_builds(run: Run, survey: Survey, *, is_compared: bool) -> list[Opinion]:
    """Add where another program builds other objects of kustomizations, and return how much it built."""
    opinions: list[Opinion]
    findings, opinions = find_part("lint.other_builds")(survey.entries, is_compared=is_compared)
    run.findings += filter(None, map(run.project.apply_severity, findings))
    return opinions


def _read_text(files: LintFiles, request: LintRequest, file: str) -> str:
    """Return the text of a file that has a finding; empty if it cannot be read."""
    if file == STDIN:
        return (request.stdin or b"").decode("utf-8", "replace")
    found = read_first(filter(None, (files.root, request.folder)), file)
    return found.content.decode("utf-8", "replace") if found else ""


def _add_others(
    findings: Sequence[Finding],
    files: LintFiles,
    request: LintRequest,
    project: ProjectConfig,
    taken: Mapping[str, tuple[str, str]],
    store: Store | None,
) -> list[Finding]:
    """Return findings with those about rendered trees, unjudged files, and patterns that exclude nothing."""
    declared = _list_declared(files)
    others = [*_check_rendered_tree(files, request, project, declared)]
    others += _check_declared_trees(files, request, project, declared, store)
    others = [finding for finding in others if not files.is_excluded(finding.location.file)]
    others += _find_unused_patterns(files, request, project)
    if request.strict_files:
        others += filter(None, map(project.apply_severity, report_unjudged(taken)))
    return sort_findings((*findings, *others))


def _list_contents(runs: Sequence[Run]) -> LintContents | None:
    """Return what a lint of jobs has read, if these can be rendered, and no runtime is shared by several of them."""
    run = runs[0]
    if len(runs) > 1 or run.entries is not None or not run.rendered or run.project.runtimes or run.inputs is None:
        return None
    # Facts that are compared at a date have none of their own: no object depends on it.
    dated = frozenset(path for path, answer in run.answers.items() if any(any(part.used.days) for part in answer.parts))
    devices = frozenset(
        path
        for path, answer in run.answers.items()
        if any(is_device_kind(each.identity) for part in answer.parts for each in part.made)
    )
    return LintContents(run.inputs.find_contents(), dated, devices)


def finish_file(
    project: ProjectConfig, findings: Iterable[Finding], comments: Sequence[Suppression], file: File
) -> tuple[Finding, ...]:
    """Return one finding for each fault that a file has by itself, without those that its comments suppress."""
    team = project.teams.find_name(file.path)
    context = Finishing(
        project.mandatory,
        project.severities,
        lambda _: team,
        comments=comments,
        today=project.day() if comments else "",
        read_text=lambda _: file.content.decode("utf-8", "replace"),
    )
    return tuple(finish([*findings], context))


def _start_runs(
    request: LintRequest,
    files: LintFiles,
    survey: Survey | None,
    store: Store | None,
    cancel: Callable[[int, int], None] | None,
) -> list[Run]:
    keeps_objects = bool(request.other_tools)
    project = load_project(store, files.root or request.folder, request.today)
    start = partial(
        Run,
        finish=keep_object if keeps_objects else discard_object,
        progress=cancel or (lambda _, __: None),
        store=store,
        is_cancellable=cancel is not None,
    )
    runs: list[Run] = []
    if files.whole and files.root is not None:
        checks = LintChecks(keeps_objects=keeps_objects)
        selected = select_environments(project, request.envs, is_lint=True)
        runs.append(start(project, selected, jobs=files.jobs, checks=checks))
        runs[-1].leaves_objects = request.leaves_objects and request.committed is None
        runs[-1].same = request.same
    if survey is not None:
        # Files by themselves are checked as they are written.
        project = project._replace(as_written=True)
        selected = select_environments(project, request.envs, is_lint=True) if request.envs else [""]
        checks = LintChecks(keeps_objects=keeps_objects)
        runs.append(start(project, selected, entries=survey.entries, checks=checks))
        runs[-1].store = store if request.keeps_results else None
    return runs


def _find_unused_patterns(files: LintFiles, request: LintRequest, project: ProjectConfig) -> Iterator[Finding]:
    """Report patterns of `exclude` that match no file of the repository, if all of it is linted."""
    if files.root is None or request.paths or request.committed or not files.patterns:
        return
    unused = {pattern.text for pattern in find_unmatched_patterns(files.root, files.patterns)}
    written = config.load(files.root, traced=True).settings.get("exclude", ()) if unused else ()
    for node in written:
        if value_of(node) in unused:
            message = f"`{value_of(node)}` matches no file; change the pattern or remove it"
            problem = Problem("exclude-matches-nothing", message, node, severity=Severity.WARNING)
            if finding := project.apply_severity(locate(problem, SETTINGS)):
                yield finding


def _list_declared(files: LintFiles) -> list[str]:
    """Return the folders of the trees that the settings declare."""
    if files.root is None or not layout.may_declare_tree(files.root):
        return []
    from jobgen.api.declared_tree import list_declared

    return list_declared(files.root)


def _list_named(root: Folder, request: LintRequest) -> list[str]:
    """Return the paths that were named, from the root of the repository."""
    top = root if isinstance(root, CommitPath) else root.resolve()
    full = ((request.directory / path).resolve() for path in request.paths if path != "-")
    return [Path(os.path.relpath(str(path), str(top))).as_posix() for path in full]


def _names_jobs(named: Sequence[str]) -> bool:
    """Return True if paths name all jobs, or a layer, on which any file of a tree can depend."""
    return any(path in (".", "jobs", SETTINGS) or path.partition("/")[0] in LAYER_FOLDERS for path in named)


def _describe_trees(files: LintFiles, request: LintRequest) -> list[str]:
    """Say how much of the declared trees was compared with the sources."""
    declared = _list_declared(files)
    if not declared or files.root is None or not request.compares_trees:
        return []
    named = _list_named(files.root, request)
    folders = ", ".join(f"{folder}/" for folder in declared)
    if not (named or request.stdin is None):
        return [f"{folders} not compared with the sources"]
    covered = f" in {', '.join(request.envs)}" if request.envs else ""
    if named and not _names_jobs(named):
        return [f"{folders} compared with the sources for the named files only{covered}"]
    return [f"{folders} compared with the sources{covered}"]


def _check_declared_trees(
    files: LintFiles, request: LintRequest, project: ProjectConfig, declared: Sequence[str], store: Store | None
) -> Iterator[Finding]:
    """Report what of the declared trees is not what the sources render."""
    root = files.root
    is_only_stdin = request.stdin is not None and not request.paths
    if root is None or not declared or is_only_stdin or not request.compares_trees:
        return
    from jobgen.api.declared_tree import find_tree_findings

    named = _list_named(root, request)
    covers_all = not named or _names_jobs(named)
    for finding, tree_path, job in find_tree_findings(root, declared, store, request.envs, request.today):
        places = [path for path in (tree_path, job) if path]
        is_named = any(f"{place}/".startswith(f"{path}/") for path in named for place in places)
        severe = project.apply_severity(finding) if covers_all or is_named else None
        if severe:
            yield severe


def _check_rendered_tree(
    files: LintFiles, request: LintRequest, project: ProjectConfig, declared: Sequence[str]
) -> Iterator[Finding]:
    """Report files of a tree that is not declared and not as jobgen wrote it: those below the given paths, or all."""
    root = files.root
    if root is None or (request.stdin is not None and not request.paths):
        return
    if TREE in declared and request.compares_trees:
        return
    if not describe_path(root / TREE).startswith(("link", FOLDER)):
        return
    from jobgen.repo.rendered_tree import find_environments
    from jobgen.repo.tree_faults import find_tree_faults

    named = _list_named(root, request)
    # An environment whose overlay cannot be read is one, too.
    known = frozenset(project.overlays) or frozenset(("",))
    if not known.issuperset(find_environments(root / TREE)):
        written = frozenset(filter(None, (env for env, _ in layout.read_overlays(root))))
        known = written | project.overlays.keys() or known
    for fault in find_tree_faults(root / TREE, known):
        path = f"{TREE}/{fault.path}".rstrip("/")
        rule = "edited-rendered-file" if fault.is_listed else "unlisted-rendered-file"
        finding = project.apply_severity(Finding(rule, "gitops", Severity.ERROR, fault.message, Location(path)))
        is_named = any(folder in ("", ".") or f"{path}/".startswith(f"{folder}/") for folder in named)
        if finding and (is_named or not named):
            yield finding


def _collect_comments(run: Run) -> list[Suppression]:
    """Return the comments of the files of a run that suppress findings, with those of the layers that it renders."""
    comments = list(run.comments)
    if run.entries is None:
        for file in layout.read_layers(run.project.root):
            collect_suppressions(file, comments, run.findings)
    return comments


def _find_coverage(run: Run, request: LintRequest) -> Coverage:
    """What a run checked, and what it left out: rules that are off, and rules that only other commands apply."""
    project = run.project
    cross_file = (
        frozenset(rule.name for rule in all_rules() if rule.scope in ("fleet", "cluster", "queue")) | _CROSS_FILE_RULES
    )
    off = project.severities.ever_off(rule_categories(run.policies, list_defect_names(project.root)))
    left_out = CHANGE_RULES | _RENDER_RULES | project.mandatory | off | run.unchecked_rules
    left_out |= frozenset() if request.second_opinion else _KUBECONFORM_RULES | _SECOND_OPINION_RULES
    without_schema: tuple[frozenset[str], ...] = ()
    if run.without_schema:
        # Imported late: most files have a schema.
        from jobgen.reports.baseline import name_object

        objects = (name_object(obj) for _, obj in run.without_schema if obj)
        names = frozenset((*(file for file, _ in run.without_schema), *objects))
        schema_rules = frozenset(name for name, category in rule_categories(()) if category == "schema")
        without_schema = names, schema_rules
    unchecked = frozenset(run.unchecked)
    if run.entries is None:
        everything = set(run.environments) >= {*project.environments(), *project.leaf_environments()}
        return Coverage(run.complete and everything, unchecked, left_out, cross_file, *without_schema)
    others = find_files_of_other_repositories((each.full for each in run.entries if each.full), project.root)
    elsewhere = {entry.path for entry in run.entries if entry.full in others}
    files = unchecked | elsewhere
    return Coverage(run.complete and not request.envs, files, left_out | cross_file, cross_file, *without_schema)
