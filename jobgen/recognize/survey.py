"""Decide what each file of a folder is: which are judged by themselves, which in builds, and which not at all."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from jobgen.k8s.placeholders import find_placeholders
from jobgen.kustomize import plan
from jobgen.kustomize.tree import Plan, SourceTree, find_tool
from jobgen.model.finding import Finding, Related, Severity, sort_findings
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.recognize import INPUT, JUDGED, NOT_JUDGED, OBJECT, SETTINGS, Taken, kustomize_files, not_applied
from jobgen.recognize.filled_files import fill_files
from jobgen.recognize.kustomize_files import KustomizeBuild
from jobgen.recognize.objects import may_hold_objects
from jobgen.recognize.plain_objects import is_plain_name, is_plain_text
from jobgen.recognize.tree import ChartOptions, FileTree, Surroundings, list_folders
from jobgen.repo.files import CHART_METADATA, KUSTOMIZATION_NAMES, Build, FileEntry, is_kustomization, note_findings
from jobgen.repo.walk import ExcludePattern, is_excluded
from jobgen.reports.placeholders import VALUE_RULES, find_capitals, find_placeholder, find_snake

if TYPE_CHECKING:
    from jobgen.recognize.charts import ChartSurvey

_NO_CHARTS = ChartOptions()
STATED = "`files."
"""The start of the reason if the settings say what a file is."""


class Correction(NamedTuple):
    """An entry of `files` in the settings: what the files are that a pattern matches."""

    setting: str
    pattern: ExcludePattern


_CHART_NAME = "chart.y"
"""What the names of the metadata of charts have, also if helm does not read them."""


class _Corrections(NamedTuple):
    """The entries of `files`, whose patterns begin at the root of the repository."""

    listed: Sequence[Correction]
    prefix: str
    """The path of the linted folder from there."""

    def find(self, path: str) -> Taken | None:
        """Return what the settings say that a file is; None if they say nothing."""
        for setting, pattern in self.listed:
            if is_excluded(posixpath.normpath(posixpath.join(self.prefix, path)), (pattern,)):
                return Taken(SETTINGS[setting], f"{STATED}{setting}` in the settings has `{pattern.text}`")
        return None


class Survey(NamedTuple):
    """What the files of a folder are."""

    entries: list[FileEntry]
    """What is judged: files by themselves, the text of the files of builds, and the builds."""
    taken: dict[str, Taken]
    """What each file was taken for, except for those that are judged by themselves."""
    tree: FileTree
    charts: Sequence[str] = ()
    """The folders of Helm charts."""


def survey_files(
    source: SourceTree,
    entries: Sequence[FileEntry],
    others: Iterable[str],
    corrections: Sequence[Correction] = (),
    prefix: str = "",
    above: str = "",
    *,
    has_tool: bool = False,
    chart_options: ChartOptions = _NO_CHARTS,
) -> Survey:
    """Decide what files are.

    `others` are the paths of files around them: scripts, for example, and kustomizations that may use them. `prefix` is
    the path of the folder from the root of the repository, where the patterns of corrections begin, and `above` that
    from the top of the Git repository. With `has_tool`, another program may build what jobgen cannot build; and
    `chart_options` say how charts are rendered.
    """
    own = frozenset(entry.path for entry in entries)
    paths = list(dict.fromkeys((*(entry.path for entry in entries), *others)))
    tree = FileTree(source, paths, entries)
    named = list(filter(is_kustomization, paths))
    planned = plan(source, named)
    folders = frozenset(map(posixpath.dirname, named))
    stated = _Corrections(corrections, prefix)
    recognizer = _Recognizer(tree, planned, folders, stated)
    judged: list[FileEntry] = []
    taken: dict[str, Taken] = {}
    for entry in entries:
        found = recognizer.recognize(entry)
        if found is None or found.sort is OBJECT:
            judged.append(entry)
            continue
        taken[entry.path] = found
        if found.sort.treatment not in (JUDGED, NOT_JUDGED) and found.sort is not INPUT:
            judged.append(entry._replace(is_source=True))
    closures = kustomize_files.find_closures(planned)
    tool = find_tool(chart_options.home) if has_tool and planned.roots else None
    alone = [entry.path for entry in judged if not entry.is_source and entry.finding is None]
    objects = frozenset(path for path in alone if not stated.find(path)) if corrections else frozenset(alone)
    around = Surroundings(tree, paths, planned, closures, objects, above, tool)
    builds, filled, built_roots = fill_files(around, taken, own)
    judged = [entry._replace(is_source=True) if entry.path in filled else entry for entry in judged]
    judged += builds
    taken |= filled
    made: dict[str, Build] = {}
    for root in planned.roots:
        is_corrected = root in built_roots or stated.find(root) is not None
        if not is_corrected and not own.isdisjoint(closures[root]):
            build = KustomizeBuild(source, root, closures[root], tool)
            made[root] = build if root in own else build.limit_to(own)
            folder = posixpath.dirname(root) or "."
            judged.append(FileEntry(folder, content=build.read(), optional=True, build=build))
    survey = Survey(judged, taken, tree)
    # One look at all names instead of one at each.
    has_charts = _CHART_NAME in "\n".join(paths).lower() or bool(chart_options.archives)
    if has_charts or tree.gitops_files or any(b"helmCharts" in tree.read(path).content for path in named):
        filling: dict[str, list[Build]] = {}
        for filler in filter(None, (entry.build for entry in builds)):
            for path in filler.fills:
                filling.setdefault(path, []).append(filler)
        survey = _add_gitops(survey, around, (made, filling), own, chart_options)
    return survey


def _add_gitops(
    survey: Survey,
    around: Surroundings,
    builds: tuple[Mapping[str, Build], Mapping[str, Sequence[Build]]],
    own: frozenset[str],
    options: ChartOptions,
) -> Survey:
    """Add charts, and what objects of Argo CD and Flux name that is not there."""
    # Imported late: many folders have none.
    from jobgen.recognize.charts import survey_charts
    from jobgen.recognize.gitops_objects import GitOpsTree
    from jobgen.recognize.missing_paths import find_missing

    tree = GitOpsTree(around, survey.taken, *builds)
    charts = survey_charts(tree, survey.taken, own, options)
    missing = [each for each in find_missing(tree) if each.location.file in own]
    unjudged = frozenset(path for path, reason in charts.taken.items() if reason.sort.treatment is NOT_JUDGED)
    judged = [
        entry._replace(is_source=True) if entry.path in charts.taken else entry
        for entry in survey.entries
        if entry.path not in unjudged
    ]
    if charts.kustomizations or charts.inflated:
        judged = [_set_charts(entry, charts) for entry in judged]
    judged += charts.entries
    judged += [note_findings(f"{missing[0].location.file}/paths", missing)] if missing else []
    return Survey(judged, {**survey.taken, **charts.taken}, survey.tree, charts.folders)


def _set_charts(entry: FileEntry, charts: ChartSurvey) -> FileEntry:
    """Return an entry that builds charts of kustomizations, and does not report those that are judged by themselves."""
    build = entry.build
    if not isinstance(build, KustomizeBuild):
        return entry
    # What other kustomizations change in these objects is seen in their builds.
    build.judged_charts = charts.kustomizations.intersection((build.file,))
    build.charts = {
        path: several
        for path, several in charts.inflated.items()
        if path in build.closure and path not in build.judged_charts
    }
    return entry._replace(content=build.read())


class _Recognizer:
    """Recognizes files one by one, in the same folder."""

    def __init__(self, tree: FileTree, plan: Plan, folders: frozenset[str], corrections: _Corrections) -> None:
        """Start with the files, and how kustomizations in some folders use them."""
        self._tree = tree
        self._plan = plan
        self._folders = folders
        self._corrections = corrections
        self._plugin_inputs = kustomize_files.find_plugin_inputs(plan, tree.source)
        self._patch_folders = kustomize_files.find_patch_folders(plan)
        self._plain_folders: dict[str, bool] = {}

    def recognize(self, entry: FileEntry) -> Taken | None:
        """Return what a file is; None if nothing speaks against an object."""
        if entry.finding is not None or self._is_plainly_object(entry.path):
            return None
        return next(filter(None, self._list_guesses(entry)), None)

    def _is_plainly_object(self, path: str) -> bool:
        """Return True if nothing has to be guessed about a file."""
        folder, _, name = path.rpartition("/")
        if self._corrections.listed or self._plugin_inputs or path in self._plan.uses or name in KUSTOMIZATION_NAMES:
            return False
        if folder not in self._plain_folders:
            # What is guessed about an empty file is guessed because of its folder.
            empty = f"{folder}/object.yaml" if folder else "object.yaml"
            guesses = (not_applied.recognize_by_path(empty), *self._list_late_guesses(empty, b""))
            self._plain_folders[folder] = not any(guesses)
        return self._plain_folders[folder] and is_plain_name(name) and is_plain_text(self._tree.read(path).content)

    def _list_guesses(self, entry: FileEntry) -> Iterator[Taken | None]:
        """Yield what a file may be, the more certain first."""
        path = entry.path
        yield self._corrections.find(path)
        yield kustomize_files.recognize_file(path, self._plan, self._tree)
        yield kustomize_files.recognize_plugin_input(path, self._plugin_inputs)
        yield not_applied.recognize_by_path(path)
        content = self._tree.read(path).content
        yield not_applied.recognize_list(path, content, is_found=entry.optional)
        # What is no object instead is said when it has been read.
        if not entry.optional or may_hold_objects(content):
            yield from self._list_late_guesses(path, content)

    def _list_late_guesses(self, path: str, content: bytes) -> Iterator[Taken | None]:
        """Yield what a file may be that may hold objects."""
        yield kustomize_files.recognize_fragment(path, content, self._folders, self._tree)
        yield kustomize_files.recognize_among_patches(path, self._patch_folders)
        yield not_applied.recognize_template(path, content)
        yield not_applied.recognize_by_content(content)
        yield not_applied.recognize_bundle(path, self._tree)
        yield not_applied.recognize_asset(path, content, self._tree)
        yield not_applied.recognize_config(path, content)


# Variables that a program fills in before a file is applied: what is wrong with their values is not known yet.

RULE = "unjudged-variable"

_TEMPLATE_NAME = lazy_pattern(r"(?:\A|[-_.])(?:template|tmpl|tpl)s?(?:[-_.]|\Z)")
_TOOL = lazy_pattern(
    rb"^[ \t]{0,80}#[^\n]{0,200}?\b(?:envsubst|sed -|yq |gomplate|ytt|jinja|templat)", re.IGNORECASE | re.MULTILINE
)
# Programs that fill in values, as scripts call them.
_FILLING = (b"envsubst", b"sed ", b"yq ", b".replace(", b"perl -", b"ReplaceAll", b"gomplate", b"templatefile(")
_STYLES = ("dollar", "handlebars")
"""How placeholders are written that programs fill in; the others wait for a person, unless a script replaces them."""
_BLOCK = lazy_pattern(r"[^\n]*[|>][-+]?[ \t]*\n")


def report_variables(findings: Sequence[Finding], tree: FileTree) -> list[Finding]:
    """Return the findings, with one info for each file instead of those about values that a program fills in."""
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        by_file.setdefault(finding.location.file, []).append(finding)
    kept = [each for file, several in by_file.items() for each in _settle(file, several, tree)]
    return sort_findings(kept)


def _settle(file: str, findings: list[Finding], tree: FileTree) -> Iterator[Finding]:
    """Return the findings of a file, with an info about its variables if a program fills them in."""
    named = [(finding, find_variable(finding) or _find_hidden(finding, tree)) for finding in findings]
    unset = {id(finding): token for finding in findings if (token := _find_unset(finding, tree))}
    # Most names have none of the words, and need no pattern.
    is_named = ("templ" in file or "tmpl" in file or "tpl" in file) and _is_named(file)
    if is_named:
        unset |= {id(each): token for each in findings if (token := find_snake(each) or _find_argument(each, tree))}
    if not unset and not any(
        variable or find_placeholder(finding) or find_capitals(finding) for finding, variable in named
    ):
        yield from findings
        return
    # A variable where the cluster expects a name or a number shows that the file is filled in; then all of them are.
    is_template = any(
        variable and (finding.rule in VALUE_RULES or finding.rule == _FORM) for finding, variable in named
    )
    # So do its name, a comment in it, and a script beside it.
    name = posixpath.basename(file)
    is_template = is_template or is_named or bool(_TOOL.search(tree.read(file).content))
    is_template = is_template or bool(tree.find_mention(file, b"envsubst", name.encode("utf-8", "surrogateescape")))
    filled: list[tuple[Finding, str]] = []
    others: list[Finding] = []
    for finding, variable in named:
        token = (is_template and variable) or (is_named and find_placeholder(finding)) or unset.get(id(finding), "")
        token = token or _find_replaced(finding, tree)
        if token:
            filled.append((finding, token))
        else:
            others.append(finding)
    # A value that is not known yet counts as missing where its type is wrong.
    holders = {(finding.object, finding.pointer.rpartition("/")[0]) for finding, _ in filled if finding.pointer}
    yield from (each for each in others if each.rule != "missing-field" or (each.object, each.pointer) not in holders)
    if filled:
        yield _report(filled)


def _is_named(file: str) -> bool:
    return _TEMPLATE_NAME.search(posixpath.basename(file)) is not None


def find_variable(finding: Finding) -> str:
    """Return the variable of a program in the values that a finding is about; empty if there is none."""
    for value in finding.values if finding.cause != "no placeholder" else ():
        for placeholder in find_placeholders(value):
            if placeholder.style in _STYLES:
                return placeholder.token
    return ""


_EXPANDED = lazy_pattern(r"\$\(([\w.-]+)\)")


def _find_unset(finding: Finding, tree: FileTree) -> str:
    """Return the variable that `vars` of a kustomization sets, and that could not be set; empty without one.

    A build that sets it leaves nothing of it, so a part of that build is missing, which is reported.
    """
    if finding.rule not in VALUE_RULES:
        return ""
    for name in (name for value in finding.values for name in _EXPANDED.findall(value)):
        for folder in list_folders(finding.location.file):
            for path in (posixpath.join(folder, each) for each in KUSTOMIZATION_NAMES):
                content = tree.read(path).content if tree.exists(path) else b""
                if b"vars:" in content and f"name: {name}\n".encode() in content:
                    return f"$({name})"
    return ""


def _find_argument(finding: Finding, tree: FileTree) -> str:
    """Return the variable that an argument of a launcher is, which a template fills in; empty without one."""
    if finding.rule != "launch-refused":
        return ""
    lines = tree.read(finding.location.file).content.decode("utf-8", "replace").split("\n")
    text = "\n".join(lines[finding.location.line - 1 : finding.location.line + _LINES_OF_SCRIPT])
    options = (re.escape(each) for each in finding.values if each.startswith("--"))
    found = (re.search(rf"(?<![\w-]){each}[ \t=]\"?(\$\{{?[A-Za-z_]\w*\}}?)", text) for each in options)
    return next((match[1] for match in found if match), "")


_LINES_OF_SCRIPT = 60


def _find_hidden(finding: Finding, tree: FileTree) -> str:
    """Return the variable on the line of a value that is not shown, because it may be a secret; empty without one."""
    if finding.rule == _FORM:
        return _find_below(finding, tree)
    if finding.rule not in VALUE_RULES or finding.cause == "no placeholder":
        return ""
    if not any("…" in value for value in finding.values):
        return ""
    folder, _, below = finding.location.file.rpartition("templates/")
    if below and tree.exists(posixpath.join(folder, CHART_METADATA)):
        # helm has filled it in.
        return ""
    lines = tree.read(finding.location.file).content.decode("utf-8", "replace").split("\n")
    # A block of text begins below its key.
    start = finding.location.line - 1
    text = "\n".join(lines[start : start + 4])
    text = text if _BLOCK.match(text) else text.partition("\n")[0]
    return next((each.token for each in find_placeholders(text) if each.style in _STYLES), "")


_FORM = "invalid-form"


def _find_below(finding: Finding, tree: FileTree) -> str:
    """Return the variable in the mapping, or in the value, that a finding is about; empty if there is none."""
    lines = tree.read(finding.location.file).content.decode("utf-8", "replace").split("\n")
    start = finding.location.line - 1
    width = max(0, finding.location.column - 1)
    below = takewhile(lambda line: not line.strip() or line[:width].isspace() or not width, lines[start + 1 :])
    text = "\n".join([*lines[start : start + 1], *islice(below, _LINES_OF_SCRIPT)])
    return next((each.token for each in find_placeholders(text) if each.style in _STYLES), "")


def _find_replaced(finding: Finding, tree: FileTree) -> str:
    """Return the placeholder that a script near the file replaces; empty if a person must."""
    for token in (find_placeholder(finding), *find_capitals(finding)):
        bare = token.strip("<>{}$ ")
        wanted = bare.encode("utf-8", "surrogateescape")
        if len(bare) >= 5 and any(tree.find_script(finding.location.file, wanted, each) for each in _FILLING):
            return token
    return ""


def _report(filled: Sequence[tuple[Finding, str]]) -> Finding:
    ordered = sorted(filled, key=lambda pair: pair[0].location)
    names = list(dict.fromkeys(token for _, token in ordered))
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    verb = "is" if len(names) == 1 else "are"
    message = f"`{names[0]}`{more} {verb} filled in before the file is applied, so these values were not checked"
    first = ordered[0][0]
    others: Iterable[tuple[Finding, str]] = (each for each in ordered if each[0].location != first.location)
    related = dict.fromkeys(Related(finding.location, f"`{token}`") for finding, token in others)
    found = Finding(RULE, "meta", Severity.INFO, message, first.location, object=first.object, env=first.env)
    return found._replace(related=tuple(related)[:5])
