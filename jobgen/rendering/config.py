"""Load kinds, overlays and settings of a repository, each checked against its schema."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from jobgen.k8s.kinds import get_group
from jobgen.k8s.nodes import as_list
from jobgen.model.builtin_rules import (
    LIMIT_RULES,
    UNREADABLE_RULES,
    canonical_rule_name,
)
from jobgen.model.data import API_VERSION, TracedKey, ValidFields, location_of, untraced, value_of
from jobgen.model.finding import Finding, FixStep, Problem, Severity
from jobgen.model.limits import MAX_FINDINGS, TOO_MANY_FINDINGS
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence
from jobgen.rendering.locate import locate
from jobgen.repo import layout
from jobgen.repo.commit import CommitPath, Folder, read_date
from jobgen.repo.files import File
from jobgen.repo.layout import Layers, own_layers
from jobgen.repo.root import SETTINGS, SOURCE_FOLDERS
from jobgen.repo.shipped import BUILT_IN, find_shipped, read_ready
from jobgen.reports.narrowing import Narrowing
from jobgen.reports.severities import Severities, list_expiring, parse_severities
from jobgen.schema import ambiguous
from jobgen.schema.own_formats import Check, compile_schema
from jobgen.spec.frameworks import Frameworks, add_frameworks, collect_frameworks, declared_frameworks
from jobgen.spec.kinds import Kind, find_kind_errors, parse_kinds
from jobgen.spec.overlay import (
    Environment,
    Overlay,
    add_teams,
    compose_environment,
    find_choices,
    find_leaves,
    find_overlay_errors,
)
from jobgen.spec.teams import DescribedKinds, Teams, find_team_errors, parse_team
from jobgen.yamlio.read import Source, YamlDocument, read, read_shared


class ProjectConfig(NamedTuple):
    """Kinds, overlays and settings of a repository, with or without locations."""

    layers: Layers
    """Where it was loaded from."""
    kinds: tuple[Kind, ...]
    overlays: dict[str, Overlay]
    settings: ValidFields
    findings: tuple[Finding, ...]
    runtimes: Mapping[str, ValidFields] = MappingProxyType({})
    today: str = ""
    """The date given by the user; empty for the date of the commit."""
    as_written: bool = False
    """True if manifests are checked as they are, because they are not in jobs/."""
    teams: Teams = Teams()
    digest: str = ""
    """The digest of the files that it was loaded from, if it is known."""
    date: str = ""
    """The date by which entries of the settings expire; empty if none does, or if there is no commit."""
    mended: str = ""
    """How overlays with errors were read, to check what is behind these: `LEFT_OUT`, `FILLED`, or empty for not."""
    has_gaps: bool = False
    """True if a mended overlay lacks something in both ways."""
    has_settings: bool = True
    """False if the settings cannot be read; of settings with errors, `settings` has the rest."""
    judging: Mapping[str, Overlay] = MappingProxyType({})
    """The overlays of the revision that judges this one, if another does."""
    versions: Mapping[str, str] = MappingProxyType({})
    """Versions of components that count in place of those that are declared."""

    @property
    def root(self) -> Folder:
        """The repository."""
        return self.layers.root

    def day(self) -> str:
        """The date that decides whether jobs have expired, never that of the clock; empty without a commit."""
        return self.today or read_date(self.root)

    @property
    def frameworks(self) -> Frameworks:
        """The frameworks that the kinds declare."""
        return collect_frameworks(self.kinds)

    @property
    def severities(self) -> Severities:
        """The severities that the settings change."""
        return parse_severities(self.settings, self.date)

    def apply_severity(self, finding: Finding) -> Finding | None:
        """Return a finding with its severity in this repository; None if it is turned off or excepted."""
        return next(self.apply_severities([finding], finding.location.file), None)

    def apply_severities(self, findings: Iterable[Finding], file: str) -> Iterator[Finding]:
        """Yield findings about the jobs of a file with their severities, also those that are located in overlays."""
        severities, team = self.severities, self.teams.find_name(file)
        return filter(None, (severities.apply(finding, team) for finding in findings))

    @property
    def mandatory(self) -> frozenset[str]:
        """Rules that no comment can suppress: those of the settings, and limits for the authors of jobs."""
        named = self.settings.get("mandatory", ())
        return LIMIT_RULES | frozenset(canonical_rule_name(str(value_of(name))) for name in named)

    @property
    def narrowing(self) -> Narrowing:
        """What reports show of the findings."""
        select, ignore = (
            [str(value_of(name)) for name in self.settings.get(field, ())] for field in ("select", "ignore")
        )
        return Narrowing(tuple(select), tuple(ignore))

    def environments(self) -> list[str]:
        """The environments used if the user names none; a name without an overlay is a finding of its own."""
        if "environments" in self.settings:
            return [str(name) for name in map(value_of, self.settings["environments"]) if name in self.overlays]
        # An overlay that a change adds takes no environment out of the checks by extending it.
        judged = [name for name in find_leaves(self.judging) if name in self.overlays]
        return sorted({*self.leaf_environments(), *judged}) or sorted(self.overlays) or [""]

    def leaf_environments(self) -> list[str]:
        """The environments that no other extends."""
        return find_leaves(self.overlays)

    def environment(self, name: str, problems: list[Problem]) -> Environment:
        """Compose an environment. The one without a name has no overlays."""
        cluster = self.settings.get("cluster", {})
        environment = compose_environment(name, self.overlays, problems, cluster)
        if name in self.judging:
            environment = environment.judged_by(compose_environment(name, self.judging, [], cluster))
        if self.versions:
            environment = environment._replace(cluster=environment.cluster.with_versions(self.versions))
        if self.as_written:
            return environment._replace(as_written=True)
        return add_teams(environment, self.teams, problems)._replace(runtimes=self.runtimes)


_FOLDER_KINDS = {
    "defects": ("a list of defects", "Defects"),
    "overlay": ("an overlay", "Overlay"),
    "team": ("a team", "Team"),
}
_FORMATS = [f"{name}_v1.json" for name in "defects kind overlay jobtests settings team trainingjob".split()]


@lru_cache(maxsize=64)
def compile_format(name: str, frameworks: Frameworks = ()) -> Check:
    """Compile the schema of one of jobgen's formats: `trainingjob`, `overlay`, `kind`, `settings` or `team`."""
    return compile_schema(f"{name}_v1.json", complete_schemas(frameworks))


@lru_cache(maxsize=64)
def complete_schemas(frameworks: Frameworks) -> dict[str, Any]:
    """The JSON Schemas of jobgen's formats, by file, with the frameworks of a catalog."""
    return add_frameworks(_read_schemas(), frameworks)


@functools.cache
def _read_schemas() -> dict[str, Any]:
    home = find_shipped("schemas") / "jobgen.dev"
    return {name: json.loads((home / name).read_text("utf-8")) for name in _FORMATS}


LEFT_OUT, FILLED = "left out", "filled"
"""How overlays with errors are mended: without their faulty values, or with placeholders for them."""


def load_own(root: Folder) -> ProjectConfig:
    """Load the configuration of a repository that no other revision judges."""
    return load(own_layers(root))


def load(layers: Layers, *, traced: bool = False, today: str = "", mended: str = "") -> ProjectConfig:
    """Load the configuration of a repository. Errors become findings, and what has one is left out.

    With `mended`, overlays are read without their faulty values, or with placeholders: they are checked, and never
    rendered. Errors in these values are no findings then.
    """
    loader, judging = _Loader(layers, traced=traced, mended=mended), layers.judging
    overlays = loader.load_overlays()
    judges = _Loader(judging, traced=traced).load_overlays() if judging is not None else {}
    read_settings = loader.load_settings(overlays)
    settings = read_settings or {}
    runtimes = loader.load_runtimes()
    teams = loader.load_teams(settings, overlays)
    # Reading the date starts Git.
    date = (today or read_date(layers.root)) if next(list_expiring(settings), None) else ""
    project = ProjectConfig(layers, loader.kinds, overlays, settings, tuple(loader.findings), runtimes, today)
    return project._replace(teams=teams, date=date)._replace(
        mended=mended, has_gaps=loader.has_gaps, has_settings=read_settings is not None, judging=judges
    )


def load_frameworks(layers: Layers) -> Frameworks:
    """Load the frameworks that the kinds of a repository declare."""
    return _Loader(layers, traced=False).frameworks


def read_valid_documents(
    file: File,
    format_name: str,
    findings: list[Finding],
    *,
    traced: bool = False,
    frameworks: Frameworks = (),
    wrong: list[int] | None = None,
) -> list[ValidFields]:
    """Read the documents of a file that match their format; errors of the others become findings.

    The positions of the others are added to `wrong`.
    """
    good: list[ValidFields] = []
    for index, document in enumerate(read_documents(file, findings, traced=traced).documents):
        if find_errors(document.data, format_name, frameworks):
            findings += locate_errors(file, index, format_name, frameworks)
        elif not traced and (found := find_ambiguous(file, index, format_name, frameworks)):
            # With locations, the errors above include these.
            findings += found
        else:
            good.append(document.data)
            continue
        if wrong is not None:
            wrong.append(index)
    return good


def read_documents(file: File, findings: list[Finding], *, traced: bool = False, shared: bool = False) -> Source:
    """Read the file's documents; what is wrong with its text goes to `findings`.

    With `shared`, equal parts of a document may be one and the same object.
    """
    if file.finding:
        findings.append(file.finding)
        return Source(file.path, ())
    is_plain = shared and not traced
    source = read_shared(file.content, file.path) if is_plain else read(file.content, file.path, traced=traced)
    if source.findings:
        # Imported late: most files have none. Some commands print findings as they are.
        from jobgen.rendering.file_secrets import mask_findings

        findings += mask_findings(file.content, source)
    if traced or shared:
        return source
    # Equal parts may be one object; in overlays, a deletion marker is identified by the `id` of its mapping.
    return source._replace(
        documents=tuple(each._replace(data=_copy_containers(each.data)) for each in source.documents)
    )


def _copy_containers(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _copy_containers(child) for key, child in tree.items()}
    return [_copy_containers(child) for child in tree] if isinstance(tree, list) else tree


def find_errors(data: ValidFields, format_name: str, frameworks: Frameworks = ()) -> list[Problem]:
    """Report the errors of a document in one of jobgen's formats."""
    kind = value_of(data.get("kind"))
    what, wanted = _FOLDER_KINDS.get(format_name, ("", kind))
    if kind != wanted and isinstance(kind, str) and not _is_misspelled(kind, wanted, data):
        message = Sentence(
            "`{}` is not {}; write `kind: {}` of `{}`, or move the file", kind, what, wanted, API_VERSION
        )
        return [Problem("misplaced-document", message, data["kind"])]
    problems: list[Problem] = []
    # A kind description declares its own frameworks.
    frameworks = declared_frameworks(data) if format_name == "kind" else frameworks
    compile_format(format_name, frameworks)(data, format_name, None, problems)
    if problems:
        # Imported late: most documents are valid.
        from jobgen.model.placed import with_nodes

        problems = list(map(with_nodes, problems))
    if type(next(iter(data), None)) is TracedKey:
        problems += ambiguous.find_ambiguous_keys(data)
    if len(problems) >= MAX_FINDINGS:
        problems.append(problems[-1]._replace(rule="too-many-errors", sentence=TOO_MANY_FINDINGS))
    # Errors that a schema cannot express.
    if not problems and format_name == "kind":
        problems += find_kind_errors(data)
    if not problems and format_name == "overlay":
        from jobgen.schema.field_places import find_lock_errors

        problems += find_lock_errors(data, complete_schemas(frameworks))
        problems += find_overlay_errors(data)
    if not problems and format_name == "team":
        problems += find_choices(data["spec"].get("defaults", {}))
    return problems


def _is_misspelled(kind: str, wanted: Any, data: ValidFields) -> bool:
    """Return True if a kind is surely meant to be another one, which the schema of that one reports."""
    # Imported late: most kinds are right.
    from jobgen.model.suggest import find_closest

    return value_of(data.get("apiVersion")) == API_VERSION and bool(find_closest(kind, [wanted]))


def locate_errors(file: File, index: int, format_name: str, frameworks: Frameworks) -> list[Finding]:
    """The errors of one document, with locations."""
    document = read_traced(file)[index]
    problems = find_errors(document.data, format_name, frameworks)
    return [locate(problem, file.path, document.location) for problem in problems]


def find_ambiguous(file: File, index: int, format_name: str, frameworks: Frameworks) -> list[Finding]:
    """The keys and values of an otherwise valid document that YAML reads as something else than their text."""
    if not ambiguous.may_be_ambiguous(file.content):
        return []
    return [found for found in locate_errors(file, index, format_name, frameworks) if found.rule == ambiguous.RULE]


def read_traced(file: File) -> tuple[YamlDocument, ...]:
    """Read the documents of a file again, with locations."""
    return read_traced_source(file).documents


@lru_cache(maxsize=16)
def read_traced_source(file: File) -> Source:
    """Read a file again, with locations.

    The last files are kept: the documents of one are asked for one after the other, and reading it for each is
    quadratic. A comparison asks for the same few files in one environment after the other.
    """
    return read(file.content, file.path, traced=True)


@lru_cache(maxsize=16)
def _parse_kinds(
    files: tuple[File, ...], added: frozenset[str], *, traced: bool
) -> tuple[tuple[Kind, ...], tuple[Finding, ...]]:
    findings: list[Finding] = []
    described: list[ValidFields] = []
    # Those that are added come first.
    count = 0
    for file in files:
        ready = None if traced else read_ready(file)
        if ready is not None:
            described += ready
        elif file.path.startswith(BUILT_IN):
            # The descriptions of jobgen itself are valid.
            described += (document.data for document in read_documents(file, findings, traced=traced).documents)
        else:
            described += read_valid_documents(file, "kind", findings, traced=traced)
        count = len(described) if file.path in added else count
    # A description that replaces a shipped one may leave out the types of its fields.
    known = {
        (str(value_of(kind.api_version)), kind.name): kind.with_parts(is_added=True) if number < count else kind
        for number, kind in enumerate(parse_kinds(described))
    }
    # The repository's own kinds were read last and take precedence.
    return tuple(reversed(known.values())), tuple(findings)


def _list_described(kinds: Iterable[Kind]) -> DescribedKinds:
    """Return what kind descriptions say about kinds; those that a change adds say nothing before it is merged."""
    judged = [kind for kind in kinds if not kind.is_added]
    names = {kind: (get_group(str(value_of(kind.api_version))), kind.name) for kind in judged}
    rendered = frozenset(names[kind] for kind in judged if kind.is_job_kind)
    # What another kind completes, such as a runtime, says nothing about the number of pods.
    counted = (names[kind] for kind in judged if kind.pods and not kind.completed_by)
    return DescribedKinds(rendered, rendered | frozenset(counted))


class _Loader:
    """Loads the parts of a repository, and collects what is wrong with them."""

    def __init__(self, layers: Layers, *, traced: bool, mended: str = "") -> None:
        self.layers = layers
        self.traced = traced
        self.mended = mended
        self.has_gaps = False
        self.kinds, found = _parse_kinds(
            tuple(layout.read_kinds(layers)), layout.list_added_kinds(layers), traced=traced
        )
        self.findings = list(found)

    @property
    def frameworks(self) -> Frameworks:
        return collect_frameworks(self.kinds)

    def _read(self, file: File, format_name: str, wrong: list[int] | None = None) -> list[ValidFields]:
        return read_valid_documents(
            file, format_name, self.findings, traced=self.traced, frameworks=self.frameworks, wrong=wrong
        )

    def _read_overlays(self, file: File) -> list[ValidFields]:
        """Read the overlays of a file. Of one with errors, only what it extends is known, unless it is mended."""
        known = len(self.findings)
        wrong: list[int] = []
        documents = self._read(file, "overlay", wrong)
        if len(self.findings) == known or file.finding:
            return documents
        # Imported late: most overlays are valid.
        from jobgen.spec.mended_overlay import mend_overlay, outline_overlay

        source = read_traced_source(file)
        broken = [source.documents[index].data for index in wrong]
        is_repaired = len(source.repaired) == 1 and not source.documents
        broken += (document.data for document in source.repaired if is_repaired)
        has_all = is_repaired or not source.findings
        found: list[ValidFields] = []
        for data in broken:
            is_wanted = bool(self.mended) and has_all
            mended = mend_overlay(data, self._find_errors, fill=self.mended == FILLED) if is_wanted else None
            found.append(mended.data if mended else outline_overlay(data))
            has_all = has_all and mended is not None
            self.has_gaps = self.has_gaps or (mended is not None and mended.has_gaps)
        if self.mended and has_all:
            # Those that are not mended have an error, so that their environments are not checked.
            del self.findings[known:]
        return [*documents, *(each if self.traced else untraced(each) for each in found)]

    def _find_errors(self, data: ValidFields) -> list[Problem]:
        return find_errors(data, "overlay", self.frameworks)

    def load_overlays(self) -> dict[str, Overlay]:
        found: dict[str, list[ValidFields]] = {}
        for name, file in layout.read_overlays(self.layers):
            if not name:
                message = "an overlay needs its own folder; move the file to overlays/<environment>/"
                self.findings.append(file.finding or locate(Problem("misplaced-overlay", message), file.path))
                continue
            before = len(self.findings)
            documents = self._read_overlays(file)
            if not documents and len(self.findings) == before and not file.finding and not self.mended:
                message = "the file holds no overlay; write one, or remove the file"
                problem = Problem("empty-file", message, category="yaml", severity=Severity.WARNING)
                self.findings.append(locate(problem, file.path))
            found.setdefault(name, []).extend(document["spec"] for document in documents)
            self._check_names(documents, name, file.path)
        return {name: Overlay(name, tuple(specs)) for name, specs in found.items()}

    def load_runtimes(self) -> dict[str, ValidFields]:
        """The runtimes by name; one that has an error is left out."""
        found: dict[str, ValidFields] = {}
        for file in layout.read_runtimes(self.layers):
            # Imported late, as all that most repositories do not have.
            from jobgen.rendering.runtimes import find_runtime_error

            documents = read_documents(file, self.findings, traced=self.traced).documents
            for index, document in enumerate(documents):
                data = document.data
                problem = find_runtime_error(data, list(found))
                if problem:
                    place = document if self.traced else read_traced(file)[index]
                    located = find_runtime_error(place.data, list(found)) or problem
                    self.findings.append(locate(located, file.path, place.location))
                else:
                    found[str(value_of(data["metadata"]["name"]))] = data
        return found

    def load_teams(self, settings: ValidFields, overlays: Mapping[str, Overlay]) -> Teams:
        """The teams, in teams/ and in the settings."""
        found = [parse_team(str(name), spec, SETTINGS) for name, spec in settings.get("teams", {}).items()]
        unreadable: list[Finding] = []
        for file in layout.read_teams(self.layers):
            name = file.path.rpartition("/")[2].rpartition(".")[0]
            before = len(self.findings)
            documents = self._read(file, "team")
            unreadable += (each for each in self.findings[before:] if each.rule in UNREADABLE_RULES)
            found += (parse_team(name, document["spec"], file.path) for document in documents)
            self._check_names(documents, name, file.path)
        self.findings += (locate(problem, team.file) for team, problem in find_team_errors(found, overlays))
        # Other errors can be suppressed by a comment, and then what follows from them must be reported.
        kept = [parse_severities(settings).apply(each) for each in unreadable]
        is_complete = not any(each is not None and each.severity is Severity.ERROR for each in kept)
        teams = tuple({team.name: team for team in reversed(found)}.values())[::-1]
        return Teams(
            teams, is_complete=is_complete, described=_list_described(self.kinds) if teams else DescribedKinds()
        )

    def _check_names(self, documents: Iterable[ValidFields], name: str, path: str) -> None:
        rule, what, where = "overlay-name-mismatch", "overlay", "folder"
        if path.startswith("teams/"):
            rule, what, where = "team-name-mismatch", "team", "file"
        for node in (document.get("metadata", {}).get("name") for document in documents):
            if node is not None and value_of(node) != name:
                message = Sentence(
                    "the {} is named `{}`, but its {} is `{}`; use the {}'s name",
                    what,
                    value_of(node),
                    where,
                    name,
                    where,
                )
                problem = Problem(rule, message, node, fix_steps=(FixStep("set", node, name),))
                self.findings.append(locate(problem, path))

    def load_settings(self, overlays: Mapping[str, Overlay]) -> ValidFields | None:
        """The settings, without what has an error; None if they cannot be read. All errors are shown at once."""
        file = layout.read_settings(self.layers)
        if file is None:
            return {}
        known = len(self.findings)
        documents = self._read(file, "settings")
        source = Source(file.path, ()) if file.finding else read(file.content, file.path, traced=self.traced)
        for data in (document.data for document in source.documents[:1] if isinstance(document.data, dict)):
            self.findings += (locate(each, SETTINGS) for each in self._find_settings_errors(data, overlays))
        if len(documents) > 1:
            message = "the settings are a single document; remove this one"
            self.findings.append(locate(Problem("ignored-document", message, documents[1]), SETTINGS))
        settings: ValidFields | None = dict(documents[0]) if documents else {}
        if len(self.findings) > known:
            settings = None if file.finding else self._mend_settings(read_traced_source(file), overlays)
        if settings and "environments" in settings and self.layers.judge is not None:
            # Environments that a change adds are checked too.
            own = layout.read_own_setting(self.layers.root, "environments")
            listed = (*settings["environments"], *(each for each in as_list(own) if isinstance(each, str)))
            names = [name for name in dict.fromkeys(map(value_of, listed)) if name in overlays]
            settings = {**settings, "environments": names}
        return settings

    def _find_settings_errors(self, data: ValidFields, overlays: Mapping[str, Overlay]) -> Iterator[Problem]:
        yield from self._find_version_errors(data)
        tree = str(value_of(data.get("rendered", "")))
        if tree.partition("/")[0] in SOURCE_FOLDERS:
            message = Sentence("`{}` holds sources; declare the folder that `jobgen render -o` writes", tree)
            yield Problem("invalid-value", message, data["rendered"])
        # A change may remove an environment that the settings of its base name.
        is_old = self.layers.judge is not None
        # Imported late: folders without settings have no such errors.
        from jobgen.rendering.settings_errors import find_unknown_names

        for problem in find_unknown_names(data, self.layers, overlays):
            if not (is_old and problem.rule == "unknown-overlay"):
                yield problem

    def _find_version_errors(self, data: ValidFields) -> Iterator[Problem]:
        """Report a version of jobgen that the repository does not allow.

        A commit is compared with, or judges; a change that raises the version must be possible.
        """
        from jobgen.rendering.settings_errors import FIELD, find_version_problem

        if self.layers.judge is not None:
            own = layout.read_own_setting(self.layers.root, FIELD)
            data = {} if own is None else {FIELD: own}
        yield from () if isinstance(self.layers.root, CommitPath) else find_version_problem(data)

    def _mend_settings(self, source: Source, overlays: Mapping[str, Overlay]) -> ValidFields | None:
        """Return settings without their faulty values, or without fields that hold one; None if they tell nothing."""
        # Imported late: most settings are valid.
        from jobgen.model.mend import mend

        written = (*source.documents, *source.repaired)
        if not written or any(self._find_version_errors(written[0].data)):
            return None

        def find(data: ValidFields) -> list[Problem]:
            return [*find_errors(data, "settings", self.frameworks), *self._find_settings_errors(data, overlays)]

        settings = _drop_faulty_items(written[0].data, find)
        copies = mend(settings, find(settings)) or (settings, settings)
        settings = copies[self.mended == FILLED]
        kept = {key: value for key, value in settings.items() if not find({key: value}) and (value or value != [])}
        self.has_gaps = self.has_gaps or len(kept) < len(settings)
        return kept if self.traced else untraced(kept)


def _drop_faulty_items(settings: ValidFields, find: Callable[[ValidFields], list[Problem]]) -> ValidFields:
    """Return settings without faulty mappings in lists: an exception without one of its limits allows more."""
    from jobgen.model.mend import list_leaves

    kept = dict(settings)
    for key, value in settings.items():
        if isinstance(value, list) and any(isinstance(item, dict) for item in value):
            wrong = {location_of(problem.node) for problem in find({key: value})}
            places = ({location_of(item), *map(location_of, list_leaves(item))} for item in value)
            kept[key] = [item for item, own in zip(value, places, strict=True) if wrong.isdisjoint(own)]
    return kept
