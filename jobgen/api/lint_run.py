"""One lint of a repository or of some paths, with severities and suppressions applied."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import add, or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobgen.api.lint_files import (
    STDIN,
    Lint,
    LintContents,
    LintNotes,
    LintRequest,
    Sources,
    find_sources,
    select_findings,
)
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
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence
from jobgen.pipeline.finish import OF_LINT, Finishing, finish
from jobgen.pipeline.lint_checks import LintChecks, LintTask
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import DAY
from jobgen.rendering.file_result import SameFiles
from jobgen.rendering.load_layers import load_project
from jobgen.rendering.locate import locate
from jobgen.rendering.read_jobs import JobFiles, LooseFiles, collect_suppressions
from jobgen.rendering.run import run
from jobgen.rendering.run_values import RunRequest, RunResult, ignore_progress
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
    sources: Sources | None = None,
    cancel: Callable[[int, int], None] | None = None,
) -> Lint:
    """Check a whole repository, or the manifests at some paths, or raise a UsageError or a ToolError.

    The arguments are those of `lint_sources`.
    """
    linted, _ = lint_sources(request, store, sources, cancel)
    return linted


def lint_sources(
    request: LintRequest,
    store: Store | None = None,
    sources: Sources | None = None,
    cancel: Callable[[int, int], None] | None = None,
) -> tuple[Lint, Sequence[RunResult]]:
    """Return a lint, and the results of the runs over the repository and over files by themselves.

    `sources` if they have been found already. `cancel` is called with the number of processed and of all objects, and
    may end the lint with an exception.
    """
    sources = sources or find_sources(request)
    survey = recognize_files(request, sources) if sources.standalone is not None else None
    runs = [run(each) for each in _request_runs(request, sources, survey, store, cancel)]
    runs, opinions = _ask_other_tools(request, survey, runs)
    runs = [_settle(request, sources, survey, each) for each in runs]
    return _finish(request, sources, survey, runs, store)._replace(opinions=opinions), runs


def _settle(request: LintRequest, sources: Sources, survey: Survey | None, result: RunResult) -> RunResult:
    """Return a result with what is behind errors of layers, and of loose files what is certain about them."""
    if survey is None or not result.request.files.are_loose:
        return _check_behind_errors(result, request.today)
    is_strict, in_repository, project = request.strict_files, sources.root is not None, result.request.project
    settled = settle_findings(result.findings, survey, project, is_strict=is_strict, is_jobs_repository=in_repository)
    return result._replace(findings=settled)


class _Comments(NamedTuple):
    """The comments that suppress findings, of each run, and what is wrong with them."""

    by_run: list[list[Suppression]]
    wrong: list[list[Finding]]

    @property
    def all(self) -> list[Suppression]:
        """Those of all runs."""
        return [comment for own in self.by_run for comment in own]


def _finish(
    request: LintRequest, sources: Sources, survey: Survey | None, results: Sequence[RunResult], store: Store | None
) -> Lint:
    """Return what runs found, as the settings and comments want it."""
    read = [_read_comments(result) for result in results]
    comments = _Comments([list(own) for own, _ in read], [faults for _, faults in read])
    first, last = results[0], results[-1]
    project = first.request.project
    coverages = [_find_coverage(result, request) for result in results]
    defects = frozenset(list_defect_names(project.layers))
    rules = rule_names().union(defects, *(result.layers.policies for result in results))
    today = request.today or (git.read_day(request.directory) if comments.all else "")
    context = _begin_finishing(request, sources, results, comments, today)
    context.coverages, context.rules = list(zip(comments.by_run, coverages, strict=True)), sorted(rules)
    by_result = zip(results, comments.wrong, strict=True)
    found = [finding for result, faults in by_result for finding in (*result.findings, *faults)]
    findings = finish(found, context, OF_LINT)
    taken = name_taken(survey, last.skipped) if survey else {}
    unknown = defects - _list_defects(results)
    unknown |= project.severities.off | (frozenset() if request.second_opinion else _SECOND_OPINION_RULES)
    return Lint(
        _add_others(findings, sources, request, project, taken, store),
        context.hidden,
        sum(result.file_count for result in results) - sum(sources.is_excluded(entry.path) for entry in sources.jobs),
        sum(len(result.objects) for result in results),
        list(dict.fromkeys(name for result in results for name in result.layers.environments if name)),
        rules - unknown,
        sources.root if isinstance(sources.root, Path) else request.directory,
        comments.all,
        project.mandatory,
        today,
        join_coverage(coverages),
        skipped=count_unjudged(taken) + Counter(sources.skipped) - count_charts(sources, survey),
        taken=taken,
        rendered=all(result.rendered for result in results),
        contents=_list_contents(results),
        notes=LintNotes(list_customized(project), list_captures(project), _describe_trees(sources, request)),
        narrowing=project.narrowing,
        lines={file: lines for result in results for file, lines in result.lines.items() if file != STDIN},
        beside=_digest_beside(first, found, comments.all, coverages[0]) if request.same.pairs else {},
    )


def _begin_finishing(
    request: LintRequest, sources: Sources, results: Sequence[RunResult], comments: _Comments, today: str
) -> Finishing:
    """Return what the stages after the checks know besides the findings."""
    first, project = results[0], results[0].request.project
    # Where each chart must be judged, no comment says that one need not be.
    mandatory = project.mandatory | UNJUDGED_CHART_RULES if request.strict_files else project.mandatory
    context = Finishing(
        mandatory,
        project.severities,
        lambda finding: project.teams.find_name(finding.location.file),
        comments=comments.all,
        today=today,
        read_text=partial(_read_text, sources, request),
    )
    context.hidden = list(dict.fromkeys(each for result in results for each in result.hidden))
    if any(each.location.file == SETTINGS for each in project.findings):
        located = first.layers.tracer.traced_project().findings
        context.setting_errors = [each for each in located if each.location.file == SETTINGS]
    context.is_selected = lambda found: [
        each
        for each in select_findings(found, request, first.find_files)
        if not sources.is_excluded(each.location.file)
    ]
    return context


def _list_defects(results: Sequence[RunResult]) -> frozenset[str]:
    """Return the names of the known defects of the declared versions."""
    stages = (result.layers.stage for result in results)
    return frozenset(name for stage in stages if isinstance(stage, LintChecks) for name in stage.list_defects())


def _digest_beside(
    result: RunResult, findings: Sequence[Finding], comments: Sequence[Suppression], coverage: Coverage
) -> dict[str, str] | None:
    # Imported late: most lints are not compared.
    from jobgen.api.same_files import digest_beside

    return digest_beside(result, findings, comments, coverage.cross_file)


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
    replaced = [file.path for file in layout.read_own_policies(project.layers) if layout.replaces_shipped(file.path)]
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


def _check_behind_errors(result: RunResult, today: str) -> RunResult:
    """Add what is wrong with environments besides the errors of their overlays, and remove what follows from these."""
    request, layers = result.request, result.layers
    has_settings_errors = any(each.location.file == SETTINGS for each in request.project.findings)
    is_whole = len(layers.runners) == len(request.environments) and not has_settings_errors
    if request.files.are_loose or is_whole:
        return result
    # Imported late: most settings and overlays have no errors.
    from jobgen.rendering.mended_overlays import keep_independent

    how = (config.LEFT_OUT, config.FILLED)
    projects = [load_project(request.store, request.project.layers, today, each) for each in how]
    plain = request._replace(leaves_objects=False, same=SameFiles(), task=LintTask())
    mended = [run(plain._replace(project=project)) for project in projects]
    left_out, filled = (each.findings for each in mended)
    kept = keep_independent(result.findings, left_out, filled, layers.findings, has_gaps=projects[-1].has_gaps)
    return result._replace(
        findings=kept,
        owners=reduce(or_, (each.owners for each in mended), dict(result.owners)),
        seen=reduce(or_, (each.seen for each in mended), dict(result.seen)),
    )


def _ask_other_tools(
    request: LintRequest, survey: Survey | None, results: list[RunResult]
) -> tuple[list[RunResult], list[Opinion]]:
    """Add what other tools find in the objects, and return how much these tools checked."""
    opinions: list[Opinion] = []
    if tools := request.other_tools:
        found, counts = zip(*(find_part("lint.other_tools")(result, tools) for result in results), strict=True)
        pairs = zip(results, found, strict=True)
        results = [result._replace(findings=[*result.findings, *more]) for result, more in pairs]
        opinions = [reduce(add, several) for several in zip(*counts, strict=True)]
    if request.second_opinion and survey is not None:
        built, more = _check_builds(results[-1], survey, is_compared=request.is_compared)
        return [*results[:-1], built], [*opinions, *more]
    return results, opinions


def _check_builds(result: RunResult, survey: Survey, *, is_compared: bool) -> tuple[RunResult, list[Opinion]]:
    """Add where another program builds other objects of kustomizations, and return how much it built."""
    opinions: list[Opinion]
    findings, opinions = find_part("lint.other_builds")(survey.entries, is_compared=is_compared)
    severe = filter(None, map(result.request.project.apply_severity, findings))
    return result._replace(findings=[*result.findings, *severe]), opinions


def _read_text(files: Sources, request: LintRequest, file: str) -> str:
    """Return the text of a file that has a finding; empty if it cannot be read."""
    if file == STDIN:
        return (request.stdin or b"").decode("utf-8", "replace")
    found = read_first(filter(None, (files.root, request.folder)), file)
    return found.content.decode("utf-8", "replace") if found else ""


def _add_others(
    findings: Sequence[Finding],
    files: Sources,
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


def _list_contents(results: Sequence[RunResult]) -> LintContents | None:
    """Return what a lint of jobs has read, if these can be rendered, and no runtime is shared by several of them."""
    result = results[0]
    files, request = result.files, result.request
    if len(results) > 1 or request.files.are_loose or not result.rendered or request.project.runtimes:
        return None
    if files.inputs is None:
        return None
    # Facts that are compared at a date have none of their own: no object depends on it.
    by_path = list(zip((entry.path for entry in request.files.entries), files.results, strict=True))
    dated = frozenset(path for path, parts in by_path if any(DAY in part.used.reads for part in parts))
    devices = frozenset(
        path for path, parts in by_path if any(is_device_kind(each.identity) for part in parts for each in part.made)
    )
    return LintContents(files.inputs.find_contents(), dated, devices)


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


def _request_runs(
    request: LintRequest,
    files: Sources,
    survey: Survey | None,
    store: Store | None,
    cancel: Callable[[int, int], None] | None,
) -> Iterator[RunRequest]:
    """Yield what to run: the jobs of the repository, and files by themselves."""
    project = load_project(store, files.layers or request.find_layers(request.folder), request.today)
    ask = partial(
        RunRequest,
        task=LintTask(keeps_objects=bool(request.other_tools)),
        progress=cancel or ignore_progress,
        is_cancellable=cancel is not None,
    )
    if files.whole and files.root is not None:
        selected = select_environments(project, request.envs, is_lint=True)
        leaves_objects = request.leaves_objects and request.committed is None
        jobs = JobFiles(files.jobs)
        yield ask(project, selected, jobs, store=store, leaves_objects=leaves_objects, same=request.same)
    if survey is not None:
        # Files by themselves are checked as they are written.
        project = project._replace(as_written=True)
        selected = select_environments(project, request.envs, is_lint=True) if request.envs else [""]
        yield ask(project, selected, LooseFiles(survey.entries), store=store if request.keeps_results else None)


def _find_unused_patterns(files: Sources, request: LintRequest, project: ProjectConfig) -> Iterator[Finding]:
    """Report patterns of `exclude` that match no file of the repository, if all of it is linted."""
    if files.layers is None or request.paths or request.committed or not files.patterns:
        return
    unused = {pattern.text for pattern in find_unmatched_patterns(files.layers.root, files.patterns)}
    written = config.load(files.layers, traced=True).settings.get("exclude", ()) if unused else ()
    for node in written:
        if value_of(node) in unused:
            message = Sentence("`{}` matches no file; change the pattern or remove it", value_of(node))
            problem = Problem("exclude-matches-nothing", message, node, severity=Severity.WARNING)
            if finding := project.apply_severity(locate(problem, SETTINGS)):
                yield finding


def _list_declared(files: Sources) -> list[str]:
    """Return the folders of the trees that the settings declare."""
    if files.layers is None or not layout.may_declare_tree(files.layers):
        return []
    from jobgen.api.declared_tree import list_declared

    return list_declared(files.layers)


def _list_named(root: Folder, request: LintRequest) -> list[str]:
    """Return the paths that were named, from the root of the repository."""
    top = root if isinstance(root, CommitPath) else root.resolve()
    full = ((request.directory / path).resolve() for path in request.paths if path != "-")
    return [Path(os.path.relpath(str(path), str(top))).as_posix() for path in full]


def _names_jobs(named: Sequence[str]) -> bool:
    """Return True if paths name all jobs, or a layer, on which any file of a tree can depend."""
    return any(path in (".", "jobs", SETTINGS) or path.partition("/")[0] in LAYER_FOLDERS for path in named)


def _describe_trees(files: Sources, request: LintRequest) -> list[str]:
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
    files: Sources, request: LintRequest, project: ProjectConfig, declared: Sequence[str], store: Store | None
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
    files: Sources, request: LintRequest, project: ProjectConfig, declared: Sequence[str]
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
        written = frozenset(filter(None, (env for env, _ in layout.read_overlays(project.layers))))
        known = written | project.overlays.keys() or known
    for fault in find_tree_faults(root / TREE, known):
        path = f"{TREE}/{fault.path}".rstrip("/")
        rule = "edited-rendered-file" if fault.is_listed else "unlisted-rendered-file"
        finding = project.apply_severity(Finding(rule, "gitops", Severity.ERROR, fault.message, Location(path)))
        is_named = any(folder in ("", ".") or f"{path}/".startswith(f"{folder}/") for folder in named)
        if finding and (is_named or not named):
            yield finding


def _read_comments(result: RunResult) -> tuple[list[Suppression], list[Finding]]:
    """Return the comments that suppress findings, and what is wrong with those of layers."""
    comments, wrong = result.comments, list[Finding]()
    if not result.request.files.are_loose:
        for file in layout.read_layers(result.request.project.layers):
            collect_suppressions(file, comments, wrong)
    return comments, wrong


def _find_coverage(result: RunResult, request: LintRequest) -> Coverage:
    """What a run checked, and what it left out: rules that are off, and rules that only other commands apply."""
    project, layers, files = result.request.project, result.layers, result.request.files
    cross_file = (
        frozenset(rule.name for rule in all_rules() if rule.scope in ("fleet", "cluster", "queue")) | _CROSS_FILE_RULES
    )
    off = project.severities.ever_off(rule_categories(layers.policies, list_defect_names(project.layers)))
    left_out = CHANGE_RULES | _RENDER_RULES | project.mandatory | off | layers.unchecked_rules
    left_out |= frozenset() if request.second_opinion else _KUBECONFORM_RULES | _SECOND_OPINION_RULES
    without_schema: tuple[frozenset[str], ...] = ()
    if found := result.without_schema:
        # Imported late: most files have a schema.
        from jobgen.reports.baseline import name_object

        objects = (name_object(obj) for _, obj in found if obj)
        names = frozenset((*(file for file, _ in found), *objects))
        schema_rules = frozenset(name for name, category in rule_categories(()) if category == "schema")
        without_schema = names, schema_rules
    if not files.are_loose:
        everything = set(layers.environments) >= {*project.environments(), *project.leaf_environments()}
        return Coverage(layers.complete and everything, result.unchecked, left_out, cross_file, *without_schema)
    others = find_files_of_other_repositories((each.full for each in files.entries if each.full), project.root)
    elsewhere = {entry.path for entry in files.entries if entry.full in others}
    unchecked = result.unchecked | elsewhere
    return Coverage(layers.complete and not request.envs, unchecked, left_out | cross_file, cross_file, *without_schema)
