"""Load kinds, overlays and settings of a repository, each checked against its schema."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from jobgen import __version__
from jobgen.model.builtin_rules import ENTRY_RULES, LIMIT_RULES, UNCHECKED_RULES, UNREADABLE_RULES
from jobgen.model.data import API_VERSION, Node, TracedKey, ValidFields, value_of
from jobgen.model.finding import Finding, FixStep, Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_FINDINGS, TOO_MANY_FINDINGS
from jobgen.model.rule_names import canonical_rule_name, find_similar_rule
from jobgen.model.suggest import did_you_mean
from jobgen.rendering.locate import locate
from jobgen.repo import layout
from jobgen.repo.commit import CommitPath, Folder, read_date
from jobgen.repo.files import File
from jobgen.repo.root import SETTINGS
from jobgen.repo.shipped import BUILT_IN, find_shipped, read_ready
from jobgen.reports.severities import Severities, list_expiring, parse_severities
from jobgen.schema import ambiguous
from jobgen.schema.own_formats import Check, compile_schema
from jobgen.spec.frameworks import (
    Frameworks,
    add_frameworks,
    collect_frameworks,
    declared_frameworks,
)
from jobgen.spec.kinds import Kind, find_kind_errors, parse_kinds
from jobgen.spec.overlay import Environment, Overlay, add_teams, compose_environment, find_choices, find_overlay_errors
from jobgen.spec.teams import Teams, find_team_errors, parse_team
from jobgen.yamlio.read import Source, YamlDocument, read, read_shared

if TYPE_CHECKING:
    pass


class ProjectConfig(NamedTuple):
    """Kinds, overlays and settings of a repository, with or without locations."""

    root: Folder
    kinds: tuple[Kind, ...]
    overlays: dict[str, Overlay]
    settings: ValidFields
    findings: tuple[Finding, ...]
    runtimes: Mapping[str, ValidFields] = MappingProxyType({})
    """The runtimes of TrainJobs, by name."""
    today: str = ""
    """The date given by the user; empty for the date of the commit."""
    as_written: bool = False
    """Whether manifests are checked as they are, because they are not in jobs/."""
    frameworks: Frameworks = ()
    """The frameworks that jobs can name."""
    teams: Teams = Teams()
    layers: str = ""
    """The digest of the files that it was loaded from, if it is known."""
    date: str = ""
    """The date by which entries of the settings expire; empty if none does, or if there is no commit."""

    def day(self) -> str:
        """The date that decides whether jobs have expired, never that of the clock; empty without a commit."""
        return self.today or read_date(self.root)

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

    def environments(self) -> list[str]:
        """The environments used if the user names none."""
        if "environments" in self.settings:
            return [str(value_of(name)) for name in self.settings["environments"]]
        return self.leaf_environments() or sorted(self.overlays) or [""]

    def leaf_environments(self) -> list[str]:
        """The environments that no other extends."""
        extended = {
            value_of(parent)
            for name, overlay in self.overlays.items()
            for spec in overlay.specs
            for parent in spec.get("extends", ())
            if value_of(parent) != name
        }
        return [name for name in sorted(self.overlays) if name not in extended]

    def environment(self, name: str, problems: list[Problem]) -> Environment:
        """Compose an environment. The one without a name has no overlays."""
        environment = compose_environment(name, self.overlays, problems, self.settings.get("cluster", {}))
        if self.as_written:
            return environment._replace(as_written=True)
        return add_teams(environment, self.teams, problems)._replace(runtimes=self.runtimes)


_FOLDER_KINDS = {"overlay": ("an overlay", "Overlay"), "team": ("a team", "Team")}
_FORMATS = (
    "kind_v1.json",
    "overlay_v1.json",
    "jobtests_v1.json",
    "settings_v1.json",
    "team_v1.json",
    "trainingjob_v1.json",
)


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


def load(root: Folder, *, traced: bool = False, today: str = "") -> ProjectConfig:
    """Load the configuration of a repository. Errors become findings, and what has one is left out."""
    findings: list[Finding] = []
    kinds, frameworks = _load_kinds(root, findings, traced=traced)
    overlays = _load_overlays(root, frameworks, findings, traced=traced)
    settings = _load_settings(root, overlays, frameworks, findings, traced=traced)
    runtimes = _load_runtimes(root, findings, traced=traced)
    teams = _load_teams(root, settings, overlays, frameworks, findings, traced=traced)
    # Reading the date starts Git.
    date = (today or read_date(root)) if next(list_expiring(settings), None) else ""
    return ProjectConfig(
        root,
        kinds,
        overlays,
        settings,
        tuple(findings),
        runtimes,
        today,
        frameworks=frameworks,
        teams=teams,
        date=date,
    )


def load_frameworks(root: Folder) -> Frameworks:
    """Load the frameworks that the kinds of a repository declare."""
    return _load_kinds(root, [], traced=False)[1]


def read_valid_documents(
    file: File,
    format_name: str,
    findings: list[Finding],
    *,
    traced: bool = False,
    frameworks: Frameworks = (),
) -> list[ValidFields]:
    """Read the documents of a file that match their format; errors of the others become findings."""
    source = read_documents(file, findings, traced=traced)
    good: list[ValidFields] = []
    for index, document in enumerate(source.documents):
        if find_errors(document.data, format_name, frameworks):
            findings += locate_errors(file, index, format_name, frameworks)
        elif not traced and (found := find_ambiguous(file, index, format_name, frameworks)):
            # With locations, the errors above include these.
            findings += found
        else:
            good.append(document.data)
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
    findings += source.findings
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
    if kind != wanted and isinstance(kind, str):
        message = f"`{kind}` is not {what}; write `kind: {wanted}` of `{API_VERSION}`, or move the file"
        return [Problem("misplaced-document", message, data["kind"])]
    problems: list[Problem] = []
    # A kind description declares its own frameworks.
    frameworks = declared_frameworks(data) if format_name == "kind" else frameworks
    compile_format(format_name, frameworks)(data, format_name, data, problems)
    if type(next(iter(data), None)) is TracedKey:
        problems += ambiguous.find_ambiguous_keys(data)
    if len(problems) >= MAX_FINDINGS:
        problems.append(problems[-1]._replace(rule="too-many-errors", message=TOO_MANY_FINDINGS))
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


def _load_kinds(root: Folder, findings: list[Finding], *, traced: bool) -> tuple[tuple[Kind, ...], Frameworks]:
    """The kinds of a repository, and their frameworks.

    A later file replaces an earlier one with the same apiVersion and kind.
    """
    kinds, frameworks, found = _parse_kinds(tuple(layout.read_kinds(root)), traced=traced)
    findings += found
    return kinds, frameworks


@lru_cache(maxsize=16)
def _parse_kinds(files: tuple[File, ...], *, traced: bool) -> tuple[tuple[Kind, ...], Frameworks, tuple[Finding, ...]]:
    findings: list[Finding] = []
    # A description that replaces a shipped one may leave out the types of its fields.
    described = parse_kinds(_read_kinds(files, findings, traced=traced))
    known = {(str(value_of(kind.api_version)), kind.name): kind for kind in described}
    # The repository's own kinds were read last and take precedence.
    kinds = tuple(reversed(known.values()))
    return kinds, collect_frameworks(kinds), tuple(findings)


def _read_kinds(files: tuple[File, ...], findings: list[Finding], *, traced: bool) -> list[ValidFields]:
    """Read the kind descriptions; those of jobgen itself are valid."""
    described: list[ValidFields] = []
    for file in files:
        ready = None if traced else read_ready(file)
        if ready is not None:
            described += ready
        elif file.path.startswith(BUILT_IN):
            described += (document.data for document in read_documents(file, findings, traced=traced).documents)
        else:
            described += read_valid_documents(file, "kind", findings, traced=traced)
    return described


def _load_overlays(
    root: Folder, frameworks: Frameworks, findings: list[Finding], *, traced: bool
) -> dict[str, Overlay]:
    found: dict[str, list[ValidFields]] = {}
    for name, file in layout.read_overlays(root):
        if not name:
            message = "an overlay needs its own folder; move the file to overlays/<environment>/"
            findings.append(file.finding or locate(Problem("misplaced-overlay", message), file.path))
            continue
        documents = read_valid_documents(file, "overlay", findings, traced=traced, frameworks=frameworks)
        found.setdefault(name, []).extend(document["spec"] for document in documents)
        for document in documents:
            findings += _check_name(document, name, file.path)
    return {name: Overlay(name, tuple(specs)) for name, specs in found.items()}


def _load_runtimes(root: Folder, findings: list[Finding], *, traced: bool) -> dict[str, ValidFields]:
    """The runtimes of a repository, by name; one that has an error is left out."""
    found: dict[str, ValidFields] = {}
    for file in layout.read_runtimes(root):
        # Imported late, as all that most repositories do not have.
        from jobgen.rendering.runtimes import find_runtime_error

        for index, document in enumerate(read_documents(file, findings, traced=traced).documents):
            data = document.data
            problem = find_runtime_error(data, list(found))
            if problem:
                place = document if traced else read_traced(file)[index]
                located = find_runtime_error(place.data, list(found)) or problem
                findings.append(locate(located, file.path, place.location))
            else:
                found[str(value_of(data["metadata"]["name"]))] = data
    return found


def _load_teams(
    root: Folder,
    settings: ValidFields,
    overlays: Mapping[str, Overlay],
    frameworks: Frameworks,
    findings: list[Finding],
    *,
    traced: bool,
) -> Teams:
    """The teams of a repository, in teams/ and in the settings."""
    found = [parse_team(str(name), spec, SETTINGS) for name, spec in settings.get("teams", {}).items()]
    is_complete = True
    for file in layout.read_teams(root):
        name = file.path.rpartition("/")[2].rpartition(".")[0]
        before = len(findings)
        documents = read_valid_documents(file, "team", findings, traced=traced, frameworks=frameworks)
        is_complete = is_complete and not any(_hides_team(each, settings) for each in findings[before:])
        for document in documents:
            findings += _check_name(document, name, file.path)
            found.append(parse_team(name, document["spec"], file.path))
    findings += (locate(problem, team.file) for team, problem in find_team_errors(found, overlays))
    return Teams(tuple({team.name: team for team in reversed(found)}.values())[::-1], is_complete=is_complete)


def _hides_team(finding: Finding, settings: ValidFields) -> bool:
    """Return True if a file of a team cannot be read, and that is reported as an error.

    Other errors can be suppressed by a comment, and then what follows from them must be reported.
    """
    kept = parse_severities(settings).apply(finding) if finding.rule in UNREADABLE_RULES else None
    return kept is not None and kept.severity is Severity.ERROR


def _check_name(document: ValidFields, folder: str, path: str) -> Iterable[Finding]:
    named = document.get("metadata", {}).get("name")
    if named is not None and value_of(named) != folder:
        is_team = path.startswith("teams/")
        what, where = ("team", "file") if is_team else ("overlay", "folder")
        rule = "team-name-mismatch" if is_team else "overlay-name-mismatch"
        message = f"the {what} is named `{value_of(named)}`, but its {where} is `{folder}`; use the {where}'s name"
        fix_steps = (FixStep("set", named, folder),)
        yield locate(Problem(rule, message, named, fix_steps=fix_steps), path)


def _load_settings(
    root: Folder, overlays: Mapping[str, Overlay], frameworks: Frameworks, findings: list[Finding], *, traced: bool
) -> ValidFields:
    """The settings; none if they have errors. All errors are shown at once, also those in other parts of the file."""
    file = layout.read_settings(root)
    documents = read_valid_documents(file, "settings", findings, traced=traced, frameworks=frameworks) if file else []
    if file and not file.finding:
        written = read(file.content, file.path, traced=traced).documents[:1]
        for data in (document.data for document in written if isinstance(document.data, dict)):
            # A commit is compared with; a change that raises the version must be possible.
            version = () if isinstance(root, CommitPath) else find_version_problem(data)
            problems = (*version, *_find_unknown_names(data, root, overlays))
            findings += (locate(problem, SETTINGS) for problem in problems)
    if len(documents) > 1:
        message = "the settings are a single document; remove this one"
        problem = Problem("ignored-document", message, documents[1])
        findings.append(locate(problem, SETTINGS))
    return dict(documents[0]) if documents else {}


def _find_unknown_names(settings: ValidFields, root: Folder, overlays: Mapping[str, Overlay]) -> Iterator[Problem]:
    """Report environments and rules in the settings that do not exist, and rules that are set by two names.

    The settings may have errors, so entries of other types are left to the schema.
    """
    listed = {key: settings.get(key) for key in ("environments", "mandatory", "rules")}
    excepted = [
        entry["rule"]
        for entry in _as_list(settings.get("exceptions"))
        if isinstance(entry, dict) and isinstance(value_of(entry.get("rule")), str)
    ]
    environments, mandatory, rules = (
        [node for node in value if isinstance(value_of(node), str)] if isinstance(value, (list, dict)) else []
        for value in listed.values()
    )
    for node in environments:
        if value_of(node) not in overlays:
            hint = did_you_mean(str(value_of(node)), list(overlays))
            yield Problem("unknown-overlay", f"there is no overlay `{value_of(node)}`{hint}", node)
    yield from _find_unknown_rules(root, (*rules, *mandatory, *excepted))
    yield from filter(None, map(_find_exception_error, excepted))
    names = {canonical_rule_name(str(value_of(node))) for node in rules if _is_current(node)}
    for node in rules:
        current = canonical_rule_name(str(value_of(node)))
        if not _is_current(node) and current in names:
            message = f"`{value_of(node)}` is a former name of `{current}`, which is set too; remove one of them"
            yield Problem("duplicate-rule", message, node)
        names.add(current)


def _find_exception_error(node: Node) -> Problem | None:
    """Report an exception for a rule that cannot have one."""
    rule = canonical_rule_name(str(value_of(node)))
    if rule in UNCHECKED_RULES:
        message = f"`{rule}` means that something was not checked, so it cannot have an exception; fix what it finds"
        return Problem("invalid-value", message, node)
    if rule in ENTRY_RULES:
        message = f"`{rule}` is about exceptions and suppressions, so it cannot have an exception; fix what it finds"
        return Problem("invalid-value", message, node)
    return None


def _as_list(node: Any) -> list[Any]:
    return node if isinstance(node, list) else []


def _is_current(node: Any) -> bool:
    return canonical_rule_name(str(value_of(node))) == str(value_of(node))


def _find_unknown_rules(root: Folder, named: tuple[Any, ...]) -> Iterator[Problem]:
    """Report names of rules in the settings that do not exist."""
    if not named:
        return
    # Imported late: most repositories name no rule.
    from jobgen.repo.known_rules import list_known_rules

    known = list_known_rules(root)
    for node in named:
        name = str(value_of(node))
        if canonical_rule_name(name) not in known:
            pack = layout.find_pack_of(name)
            similar = "" if pack else find_similar_rule(name, known)
            message = f"there is no rule or policy `{name}`" + (f"; did you mean `{similar}`?" if similar else "")
            if pack:
                message = f"the policy `{name}` is in the pack `{pack}`, which is off; add the pack to `policies`"
            yield Problem("unknown-rule", message, node)


FIELD = "required-version"
_CONDITION = lazy_pattern(r"\s*(==|!=|>=|<=|~=|>|<)\s*(\d{1,6}(?:\.\d{1,6}){0,3})(\.\*)?\s*", re.ASCII)
Version = tuple[int, ...]


def find_version_problem(settings: Mapping[Any, Node]) -> Iterator[Problem]:
    """Report a `required-version` that this version does not meet, or that cannot be read."""
    required = value_of(settings.get(FIELD))
    if not isinstance(required, str):
        return  # Absent, or an error of the schema.
    met = is_met(required, __version__)
    if met is None:
        message = f"`{FIELD}` is `{required}`, which is not a list of conditions; write one such as `>=0.2,<0.3`"
        yield Problem("invalid-value", message, settings[FIELD])
    elif not met:
        message = (
            f"this is jobgen `{__version__}`, and the repository requires `{required}`; install such a version, "
            f"for example with `pip install 'jobgen{required}'`"
        )
        yield Problem("wrong-jobgen-version", message, settings[FIELD], category="meta")


def is_met(conditions: str, version: str) -> bool | None:
    """Return True if a version meets all conditions of a list; None if one of them is not a condition."""
    met = [_meets(part, version) for part in conditions.split(",")]
    return None if None in met else all(met)


def _meets(condition: str, version: str) -> bool | None:
    """Return True if a version meets a condition; None if it is not a condition."""
    found = _CONDITION.fullmatch(condition)
    if not found:
        return None
    operator, number, any_patch = found.groups()
    length = number.count(".") + 1
    ours, theirs = _align(_parse(version), _parse(number))
    if operator == "~=":
        # `~=0.2.1` is `>=0.2.1,==0.2.*`; with a single number nothing would be fixed.
        fixed = length - 1
        return None if not fixed or any_patch else ours >= theirs and ours[:fixed] == theirs[:fixed]
    if any_patch:
        is_equal = ours[:length] == theirs[:length]
        return {"==": is_equal, "!=": not is_equal}.get(operator)
    return _COMPARE[operator](ours, theirs)


_COMPARE: dict[str, Callable[[Version, Version], bool]] = {
    "==": lambda ours, theirs: ours == theirs,
    "!=": lambda ours, theirs: ours != theirs,
    ">=": lambda ours, theirs: ours >= theirs,
    "<=": lambda ours, theirs: ours <= theirs,
    ">": lambda ours, theirs: ours > theirs,
    "<": lambda ours, theirs: ours < theirs,
}


def _align(ours: Version, theirs: Version) -> tuple[Version, Version]:
    """Fill the shorter version with zeros, because `0.2` is `0.2.0`."""
    pairs = list(zip_longest(ours, theirs, fillvalue=0))
    return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)


def _parse(version: str) -> Version:
    """Return the numbers of a release; what follows them, as in `0.2.0.dev1`, does not count."""
    leading = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, leading[0].split("."))) if leading else ()
