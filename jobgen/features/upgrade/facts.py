"""What is known of upgrades: which versions fit together, and what to do before and after a step. It is data.

`jobgen/data/upgrades.yaml` has an entry for each fact, with its source.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from jobgen.api.errors import UsageError
from jobgen.k8s.kinds import NEWEST_RELEASE, OLDEST_RELEASE, format_release
from jobgen.model.data import value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_BYTES
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import suggest_or
from jobgen.repo.shipped import read_data
from jobgen.schema.shipped_kinds import find_unknown_releases
from jobgen.spec.kinds import parse_version
from jobgen.yamlio.read import read

ORDER = (
    "kubernetes",
    "jobset",
    "leaderworkerset",
    "training-operator",
    "trainer",
    "mpi-operator",
    "kuberay",
    "volcano",
    "appwrapper",
    "kueue",
)
"""Components in the order in which they are upgraded, where nothing else decides: Kueue manages what the others run."""


class Requirement(NamedTuple):
    """What versions of a component need of another one."""

    component: str
    since: str = ""
    until: str = ""
    """The first version that does not need it; empty for none."""
    needs: str = ""
    at_least: str = ""
    below: str = ""
    """The first version of the other one that does not fit; empty for none."""
    reason: str = ""
    source: str = ""

    def is_broken(self, versions: Mapping[str, str]) -> bool:
        """Return True if declared versions do not fit together; unknown ones always do."""
        own, other = versions.get(self.component), versions.get(self.needs)
        if not own or not other or not _is_within(own, self.since, self.until):
            return False
        return not _is_within(other, self.at_least, self.below)


class Action(NamedTuple):
    """What has to be done when a component passes a version."""

    component: str
    version: str
    """The version that is passed: from an older one to this or a newer one."""
    when: str
    """`before`, `with`, `after`, or `running`: what the upgrade does to jobs that run."""
    text: str
    source: str
    kinds: Sequence[str] = ()
    """The kinds that it concerns; empty for all repositories."""
    until: str = ""
    """The version from which on something else has to be done; empty for none."""
    patches: Sequence[str] = ()
    """Patch releases of older versions that have the change, too."""

    def concerns(self, old: str, new: str, kinds: Collection[str]) -> bool:
        """Return True if an upgrade passes its version, in an environment that has some kinds.

        Of a release whose patch is not declared, the first may be left, and the last may be installed.
        """
        is_passed = bool(old) and not self._is_in(old, is_newest=False) and self._is_in(new, is_newest=True)
        is_passed = is_passed and not (self.until and parse_version(new) >= parse_version(self.until))
        return is_passed and (not self.kinds or any(kind in kinds for kind in self.kinds))

    def _is_in(self, version: str, *, is_newest: bool) -> bool:
        """Return True if a version has the change."""
        at = parse_version(version)
        if at >= parse_version(self.version):
            return True
        patches = [parse_version(each) for each in self.patches if parse_version(each)[:2] == at[:2]]
        has_patch = version.count(".") > 1
        return any(at >= each if has_patch else is_newest for each in patches)


def _is_within(version: str, least: str, below: str) -> bool:
    at = parse_version(version)
    return (not least or at >= parse_version(least)) and (not below or at < parse_version(below))


@cache
def read_requirements() -> tuple[Requirement, ...]:
    """Read what versions need of each other."""
    return tuple(Requirement(**each) for each in read_data("upgrades.yaml")["requirements"])


@cache
def read_actions() -> tuple[Action, ...]:
    """Read what has to be done when a component passes a version."""
    return tuple(Action(**each) for each in read_data("upgrades.yaml")["actions"])


def find_broken(versions: Mapping[str, str]) -> list[Requirement]:
    """Return the requirements that some versions do not meet together."""
    return [each for each in read_requirements() if each.is_broken(versions)]


def order_changes(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, list[Requirement]]]:
    """Yield the components to upgrade in an order in which versions fit together after each step, if there is one.

    With each comes what does not fit after its step, and did before.
    """
    state = dict(old)
    known = {name: number for number, name in enumerate(ORDER)}
    left = sorted((name for name in new if new[name] != old.get(name)), key=lambda name: known.get(name, -1))
    while left:
        already = find_broken(state)
        results = [(name, _find_added({**state, name: new[name]}, already)) for name in left]
        name, broken = min(results, key=lambda result: len(result[1]))
        state[name] = new[name]
        left.remove(name)
        yield name, broken


def _find_added(versions: Mapping[str, str], already: Sequence[Requirement]) -> list[Requirement]:
    return [each for each in find_broken(versions) if each not in already]


COMPONENTS = tuple(name for name in ORDER if name != "kubernetes")
_VERSION = lazy_pattern(r"v?(\d{1,4}(?:\.\d{1,4}){1,2})(?:[-+].*)?")


def read_versions(named: Mapping[str, str], operators: Iterable[str], file: Path | None) -> dict[str, str]:
    """Return the version of each component; options take precedence. Raise a UsageError if one is none."""
    found = _read_file(file) if file else {}
    for text in operators:
        name, separator, version = text.partition("=")
        if not separator:
            raise UsageError(f"`--operator {text}` has no version; write it as `{name}=2.3`")
        found[name] = version
    found |= {name: version for name, version in named.items() if version}
    return {name: _check(name, version) for name, version in found.items()}


def _check(name: str, version: str) -> str:
    if name not in ORDER:
        hint = suggest_or(name, list(ORDER), f"choose one of {', '.join(ORDER)}")
        raise UsageError(f"there is no component `{name}`{hint}")
    match = _VERSION.fullmatch(version)
    if match is None:
        raise UsageError(f"`{version}` is not a version of {name}; write one such as `1.36` or `0.19.0`")
    if name == "kubernetes" and not OLDEST_RELEASE <= parse_version(match[1])[:2] <= NEWEST_RELEASE:
        oldest, newest = map(format_release, (OLDEST_RELEASE, NEWEST_RELEASE))
        raise UsageError(f"jobgen knows Kubernetes {oldest} to {newest}, and not `{version}`; correct the version")
    for problem in find_unknown_releases({"operators": {name: match[1]}}):
        raise UsageError(str(problem.sentence))
    return str(match[1])


def _read_file(path: Path) -> dict[str, str]:
    """Read versions as an overlay declares them."""
    try:
        content = path.read_bytes()[:MAX_BYTES]
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror}; check the path") from error
    source = read(content, str(path))
    if source.findings or len(source.documents) != 1 or not isinstance(source.documents[0].data, dict):
        raise UsageError(f"`{path}` has no versions; write `kubernetes` and `operators` as in `cluster` of an overlay")
    data = source.documents[0].data
    cluster = data.get("cluster", data)
    operators = cluster.get("operators", {}) if isinstance(cluster, dict) else None
    if not isinstance(operators, dict):
        raise UsageError(f"`{path}` has no versions; write `kubernetes` and `operators` as in `cluster` of an overlay")
    versions = {str(name): value_of(version) for name, version in operators.items()}
    versions |= {"kubernetes": value_of(cluster["kubernetes"])} if "kubernetes" in cluster else {}
    for name, version in versions.items():
        if not isinstance(version, str):
            # YAML reads 1.30 as 1.3.
            raise UsageError(f'`{name}` in `{path}` is not a text; write its version in quotes, such as `"1.36"`')
    return versions
