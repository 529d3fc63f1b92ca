"""Teams: the folders that they own, what their jobs may use in an environment, and their budgets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

from jobgen.model.data import untraced, value_of
from jobgen.model.finding import Problem, pluralize
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import InvalidPathError, Step, parse_dotted
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import suggest_name

NAMES = ("namespaces", "queues", "serviceAccounts", "priorityClasses", "kinds", "platforms")
"""The lists of patterns of what a team may use."""
_UNITS = {"gpus": "GPU", "jobs": "job", "replicas": "pod"}
"""What the limits of a budget count; a limit of devices is named by their resource."""


KindName = tuple[str, str]
"""The API group and the name of a kind."""


class DescribedKinds(NamedTuple):
    """What the kind descriptions of the revision that judges, and those of jobgen, say about kinds."""

    rendered: frozenset[KindName] = frozenset()
    """Those that jobs become."""
    counted: frozenset[KindName] = frozenset()
    """Those whose pods are described."""


TEMPLATE, POD_SPEC, OBJECT = "template", "podSpec", "object"
"""What is at a path of an entry of `pods`: a pod template, the spec of a pod, or an object that creates pods."""


class CountPath(NamedTuple):
    """The path of a number that a number of pods is multiplied with."""

    path: tuple[Step, ...]
    is_beside: bool
    """True if it starts at the mapping that holds the template, not at the object."""


class CountedPods(NamedTuple):
    """How to count pods of a kind, as the file of a team says: an entry of `pods`."""

    at: tuple[Step, ...]
    holds: str
    """`TEMPLATE`, `POD_SPEC` or `OBJECT`."""
    factors: tuple[int | CountPath, ...]
    """Numbers, and paths of numbers, whose product is the number of pods."""
    omitted: int
    """The number of each path that an object lacks."""
    is_optional: bool
    """True if an object may have nothing at the path."""


class DeviceLimit(NamedTuple):
    """The most devices of a type that the jobs of a team may request together."""

    resource: str
    labels: tuple[tuple[str, str], ...]
    """Labels that the pods select their nodes by."""
    max: int


class Budget(NamedTuple):
    """The most that the jobs of a team may request together; None is no limit."""

    gpus: int | None = None
    jobs: int | None = None
    replicas: int | None = None
    devices: tuple[DeviceLimit, ...] = ()


class Team(NamedTuple):
    """A team of a repository."""

    name: str
    folders: tuple[str, ...]
    spec: Any
    """The block of its file or of the settings, with or without locations."""
    file: str

    @property
    def owners(self) -> tuple[str, ...]:
        """Who reviews changes of its folders."""
        return tuple(str(value_of(each)) for each in self.spec.get("owners", ()))


class Claims:
    """What all teams have in one environment, shared by their scopes."""

    def __init__(self, teams: Iterable[Team] = (), environment: str = "") -> None:
        self.allowed = {team.name: _list_allowed(team, environment) for team in teams}
        self.labels = {team.name: untraced(team.spec.get("labels", {})) for team in teams}
        self._owners: dict[tuple[str, str], list[str]] = {}

    def list_owners(self, name: str, value: str) -> list[str]:
        """Return the teams that have a namespace, queue or other name for themselves."""
        key = (name, value)
        if key not in self._owners:
            # A pattern for everything claims nothing.
            self._owners[key] = [
                team
                for team, allowed in self.allowed.items()
                if any(fnmatchcase(value, pattern) for pattern in allowed.get(name, ()) if pattern.strip("*"))
            ]
        return self._owners[key]


class TeamScope(NamedTuple):
    """What a team may use in one environment, and what other teams have there."""

    team: str
    allowed: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """Patterns by the names of `NAMES`; a name that is missing is not limited."""
    claims: Claims = Claims()
    budget: Budget = Budget()
    described: DescribedKinds = DescribedKinds()
    pods: Mapping[KindName, tuple[CountedPods, ...]] = MappingProxyType({})
    """How to count the pods of kinds that jobgen does not count."""

    @property
    def has_budget(self) -> bool:
        """Return True if what its objects request together is limited."""
        return self.budget != Budget()

    def find_owner(self, name: str, value: str) -> str:
        """Return another team that has a namespace, queue or other name for itself; empty if none has."""
        return next((team for team in self.claims.list_owners(name, value) if team != self.team), "")

    def find_labeled(self, key: str, value: str) -> str:
        """Return another team that a label stands for: its name in `team`, or one of its labels; empty if none."""
        labels = self.claims.labels
        if labels.get(self.team, {}).get(key) == value:
            return ""
        if key == "team" and value in labels:
            return value if value != self.team else ""
        # A label that this team does not set tells nothing about teams.
        if key not in labels.get(self.team, {}):
            return ""
        return next((team for team, each in labels.items() if each.get(key) == value), "")

    def allows(self, name: str, *values: str) -> bool:
        """Return True if the team may use one of these values; without a list, everything that no other team has."""
        patterns = self.allowed.get(name)
        if patterns is None:
            return not any(self.find_owner(name, value) for value in values)
        return any(fnmatchcase(value, pattern) for value in values for pattern in patterns)


class Teams:
    """The teams of a repository."""

    def __init__(
        self,
        teams: tuple[Team, ...] = (),
        *,
        is_complete: bool = True,
        described: DescribedKinds = DescribedKinds(),  # noqa: B008 -- it is frozen
    ) -> None:
        self.all = teams
        self.described = described
        self.is_complete = is_complete
        """True if all files of teams could be read. If not, what is missing here may follow from that."""
        # Of two teams with one folder, which is an error, the first owns it.
        self._by_folder: dict[str, Team] = {folder: team for team in reversed(teams) for folder in team.folders}
        self._claims: dict[str, Claims] = {}

    def __repr__(self) -> str:
        return f"Teams({self.all!r}, is_complete={self.is_complete})"

    def find(self, path: str) -> Team | None:
        """Return the team that owns a file: that of the longest folder; None if no team does."""
        folder = path
        while self._by_folder and "/" in folder:
            folder = folder.rpartition("/")[0]
            if folder in self._by_folder:
                return self._by_folder[folder]
        return None

    def find_name(self, path: str) -> str:
        """Return the name of the team that owns a file; empty if no team does."""
        team = self.find(path)
        return team.name if team else ""

    def find_scope(self, team: Team, environment: str) -> TeamScope:
        """Return what a team may use in an environment."""
        if environment not in self._claims:
            self._claims[environment] = Claims(self.all, environment)
        # An environment that changes one limit keeps the others.
        everywhere, here = (untraced(each.get("budget", {})) for each in (team.spec, _find_block(team, environment)))
        own: Any = {**everywhere, **here}
        devices = tuple(
            DeviceLimit(each["resource"], tuple(each.get("nodeSelector", {}).items()), each["max"])
            for each in own.get("devices", ())
        )
        budget = Budget(own.get("gpus"), own.get("jobs"), own.get("replicas"), devices)
        allowed = _list_allowed(team, environment)
        return TeamScope(
            team.name, allowed, self._claims[environment], budget, self.described, _parse_counted_pods(team)
        )


def parse_team(name: str, spec: Any, file: str) -> Team:
    """Return a team from its block."""
    folders = tuple(str(value_of(folder)).rstrip("/") for folder in spec["folders"])
    return Team(name, folders, spec, file)


def split_kind(text: str) -> KindName:
    """Return the group and the name of a kind that is written as `Kind` or `Kind.group`."""
    name, _, group = text.partition(".")
    return group, name


def _parse_counted_pods(team: Team) -> dict[KindName, tuple[CountedPods, ...]]:
    own: dict[str, Any] = untraced(team.spec.get("pods", {}))
    found: dict[KindName, tuple[CountedPods, ...]] = {}
    for kind, entries in own.items():
        # A kind with a malformed path, which has an error of its own, is not counted.
        with suppress(InvalidPathError):
            found[split_kind(kind)] = tuple(map(_parse_entry, entries))
    return found


def _parse_entry(raw: Mapping[str, Any]) -> CountedPods:
    factors = (each if isinstance(each, int) else _parse_count_path(each) for each in _list_counts(raw))
    holds, omitted = raw.get("holds", TEMPLATE), raw.get("default", 1)
    return CountedPods(parse_dotted(raw["at"]), holds, tuple(factors), omitted, raw.get("optional", False))


def _list_counts(raw: Mapping[str, Any]) -> list[Any]:
    counts = raw.get("count", [])
    return counts if isinstance(counts, list) else [counts]


def _parse_count_path(text: str) -> CountPath:
    path = parse_dotted(text.removeprefix("."))
    if not path:
        raise InvalidPathError(f"`{text}` is not the path of a number; write one such as `spec.replicas`")
    return CountPath(path, text.startswith("."))


def _find_path_errors(team: Team) -> Iterator[Problem]:
    """Report malformed paths in `pods`."""
    for entry in (entry for entries in team.spec.get("pods", {}).values() for entry in entries):
        for path in (entry["at"], *_list_counts(entry)):
            try:
                _parse_count_path(value_of(path)) if isinstance(value_of(path), str) else ()
            except InvalidPathError as error:
                yield Problem("invalid-value", str(error), path)


def count_units(amount: int, limit: str) -> str:
    """Return an amount of what a limit of a budget counts: `1 GPU`, `2 pods`, `4 nvidia.com/gpu`."""
    return pluralize(amount, _UNITS[limit]) if limit in _UNITS else f"{amount} {limit}"


def find_team_errors(teams: Iterable[Team], environments: Iterable[str]) -> Iterator[tuple[Team, Problem]]:
    """Report names that two teams have, folders that two teams own, and environments that do not exist."""
    owners: dict[str, Team] = {}
    names: dict[str, Team] = {}
    known = sorted(environments)
    for team in teams:
        first = names.setdefault(team.name, team)
        if first is not team:
            message = Sentence("team `{}` is also in {}; remove one of them", team.name, first.file)
            yield team, Problem("duplicate-team", message, team.spec)
            continue
        for folder, node in zip(team.folders, team.spec["folders"], strict=True):
            other = owners.setdefault(folder, team)
            if other is not team:
                advice = "a folder has one team, so remove it from one of them"
                message = Sentence("team `{}` also owns `{}`; {}", other.name, folder, advice)
                yield team, Problem("duplicate-team", message, node)
        yield from ((team, problem) for problem in _find_path_errors(team))
        for node in team.spec.get("environments", ()):
            if value_of(node) not in known:
                hint = suggest_name(str(value_of(node)), known)
                yield (
                    team,
                    Problem("unknown-overlay", Sentence("there is no overlay `{}`{}", value_of(node), hint), node),
                )


def _find_block(team: Team, environment: str) -> Mapping[str, Any]:
    """Return the fields of a team that differ in an environment."""
    return team.spec.get("environments", {}).get(environment) or {}


def _list_allowed(team: Team, environment: str) -> dict[str, tuple[str, ...]]:
    here = _find_block(team, environment)
    found = ((name, here.get(name, team.spec.get(name))) for name in NAMES)
    return {name: tuple(map(str, untraced(patterns))) for name, patterns in found if patterns is not None}
