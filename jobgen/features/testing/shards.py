"""Run a share of the tests on each of several machines, and merge their outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from jobgen.features.testing.cases import JobTest
from jobgen.features.testing.evaluate import Outcome
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.shard import Shard
from jobgen.pipeline.encoded_results import decode_finding, encode_finding
from jobgen.report.shard_part import BrokenPartError, ShardPart, pack

TEST = "test"


class CaseResult(NamedTuple):
    """What a test found."""

    number: int
    """The place of the test among all tests."""
    outcomes: list[Outcome]
    findings: list[Finding]


def select_tests(tests: Sequence[JobTest], shard: Shard) -> list[int]:
    """Return the places of the tests of a shard: each test costs what it expects.

    Tests that expect findings stay together, because the first of them lints the whole repository.
    """
    linting = [number for number, test in enumerate(tests) if "findings" in test.expect and test.given is None]
    units = [[number] for number in range(len(tests)) if number not in set(linting)]
    units += [linting] if linting else []
    costs = [(f"{unit[0]:09}", sum(len(str(tests[number].expect)) for number in unit)) for unit in units]
    own = shard.select(costs)
    return sorted(number for unit in units if f"{unit[0]:09}" in own for number in unit)


def join_results(findings: Sequence[Finding], results: Sequence[CaseResult]) -> tuple[list[Outcome], list[Finding]]:
    """Return the outcomes and the findings of all tests, with those that concern all of them first."""
    outcomes = [outcome for result in results for outcome in result.outcomes]
    return outcomes, [*findings, *(finding for result in results for finding in result.findings)]


def pack_tests(
    shard: Shard, tests: Sequence[JobTest], findings: Sequence[Finding], results: Sequence[CaseResult]
) -> ShardPart:
    """Return the share of a run of tests."""
    names = "\0".join(f"{test.file}\0{test.name}" for test in tests)
    data = {
        "command": TEST,
        "tests": [len(tests), blake2b(names.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()],
        "errors": _encode_errors(findings),
        "results": [
            [each.number, list(map(_encode_outcome, each.outcomes)), _encode_errors(each.findings)] for each in results
        ],
    }
    return ShardPart(shard, "error", pack(data))


def merge_tests(parts: Sequence[Mapping[str, Any]]) -> tuple[list[Outcome], list[Finding]]:
    """Return the outcomes and errors of all shards, in the order of the tests.

    Raises:
        BrokenPartError: The shards ran different tests, or did not run each of them.

    """
    if any(data["tests"] != parts[0]["tests"] for data in parts):
        raise BrokenPartError("the reports are of different tests; run every shard with the same options and files")
    found = {
        number: CaseResult(number, [_decode_outcome(*each) for each in outcomes], list(map(decode_finding, errors)))
        for data in parts
        for number, outcomes, errors in data["results"]
    }
    if len(found) != sum(len(data["results"]) for data in parts):
        # One of them would hide that the other failed.
        raise BrokenPartError("two reports have results of one test; run the shards again")
    # The number comes from a report, so that a list of it may be too long.
    if len(found) != parts[0]["tests"][0] or sorted(found) != list(range(len(found))):
        raise BrokenPartError("a test is in no report; run every shard with the same options and files")
    shared = [decode_finding(each) for data in parts for each in data["errors"]]
    return join_results(shared, [found[number] for number in sorted(found)])


def _encode_errors(findings: Sequence[Finding]) -> list[list[Any]]:
    # Reports do not show fixes, of which some are more than plain data.
    return [encode_finding(each._replace(fix=None)) for each in findings if each.severity is Severity.ERROR]


def _encode_outcome(each: Outcome) -> list[Any]:
    return [each.test.name, each.test.file, each.test.location, *each[1:]]


def _decode_outcome(name: str, file: str, place: Sequence[Any], *rest: Any) -> Outcome:
    test = JobTest(name, file, Location(*place), (), (), None, "", None, {})
    environment, job, expectation, message, location, sources = rest
    return Outcome(test, environment, job, expectation, message, Location(*location), tuple(sources))
