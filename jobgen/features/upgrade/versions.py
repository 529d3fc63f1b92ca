"""The versions after an upgrade, from options and a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from jobgen.api.errors import UsageError
from jobgen.features.upgrade.facts import ORDER
from jobgen.k8s.kinds import NEWEST_RELEASE, OLDEST_RELEASE, format_release
from jobgen.model.data import value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_BYTES
from jobgen.model.suggest import did_you_mean
from jobgen.schema.shipped_kinds import find_unknown_releases
from jobgen.spec.kinds import parse_version
from jobgen.yamlio.read import read

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
        raise UsageError(f"there is no component `{name}`{did_you_mean(name, list(ORDER))} (known: {', '.join(ORDER)})")
    match = _VERSION.fullmatch(version)
    if match is None:
        raise UsageError(f"`{version}` is not a version of {name}; write one such as `1.36` or `0.19.0`")
    if name == "kubernetes" and not OLDEST_RELEASE <= parse_version(match[1])[:2] <= NEWEST_RELEASE:
        oldest, newest = map(format_release, (OLDEST_RELEASE, NEWEST_RELEASE))
        raise UsageError(f"jobgen knows Kubernetes {oldest} to {newest}, and not `{version}`; correct the version")
    for problem in find_unknown_releases({"operators": {name: match[1]}}):
        raise UsageError(problem.message)
    return str(match[1])


def _read_file(path: Path) -> dict[str, str]:
    """Read versions as an overlay declares them."""
    try:
        content = path.read_bytes()[:MAX_BYTES]
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror}") from error
    source = read(content, str(path))
    if source.findings or len(source.documents) != 1 or not isinstance(source.documents[0].data, dict):
        raise UsageError(f"`{path}` is not a YAML file with `kubernetes` and `operators`")
    data = source.documents[0].data
    cluster = data.get("cluster", data)
    operators = cluster.get("operators", {}) if isinstance(cluster, dict) else None
    if not isinstance(operators, dict):
        raise UsageError(f"`{path}` is not a YAML file with `kubernetes` and `operators`")
    versions = {str(name): value_of(version) for name, version in operators.items()}
    versions |= {"kubernetes": value_of(cluster["kubernetes"])} if "kubernetes" in cluster else {}
    for name, version in versions.items():
        if not isinstance(version, str):
            # YAML reads 1.30 as 1.3.
            raise UsageError(f'`{name}` in `{path}` is no text; write its version in quotes, such as `"1.36"`')
    return versions
