"""The formats of `jobgen test`: text for people, JSON for programs, and JUnit for CI systems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from jobgen.features.testing.evaluate import Outcome, summarize
from jobgen.model.finding import Finding
from jobgen.reports.escape import dump_json, relative_path, visible
from jobgen.reports.formats.junit import write_shard
from jobgen.reports.shard_part import ShardPart

_TABLE = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\t": "&#9;"})


def render_junit(outcomes: Sequence[Outcome], errors: Sequence[Finding], shard: ShardPart | None = None) -> str:
    """Return XML with a failure for each expectation that is not met, and what kept tests from running as errors."""
    suites: list[tuple[str, list[list[Outcome]]]] = []
    for file, group in groupby(outcomes, key=lambda each: each.test.file):
        cases: dict[tuple[str, str, str], list[Outcome]] = {}
        for each in group:
            cases.setdefault((each.test.name, each.environment, each.job), []).append(each)
        suites.append((file, list(cases.values())))
    count = sum(len(several) for _, several in suites)
    failed = sum(_has_failed(case) for _, several in suites for case in several)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    broken = f' errors="{len(errors)}"' if errors else ""
    lines.append(f'<testsuites name="jobgen test" tests="{count + len(errors)}" failures="{failed}"{broken}>')
    if shard:
        lines += ('  <testsuite name="jobgen test" tests="0" failures="0">', *write_shard(shard), "  </testsuite>")
    lines += (line for file, several in suites for line in _list_suite(file, several))
    lines += (line for error in errors for line in _list_error(error))
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def _has_failed(case: Sequence[Outcome]) -> bool:
    return any(each.message for each in case)


def _list_suite(file: str, cases: Sequence[Sequence[Outcome]]) -> Iterator[str]:
    name, failed = _xml(relative_path(file)), sum(map(_has_failed, cases))
    yield f'  <testsuite name="{name}" tests="{len(cases)}" failures="{failed}">'
    for case in cases:
        first = case[0]
        title = ", ".join(filter(None, (first.test.name, first.job, first.environment)))
        yield f'    <testcase classname="{name}" name="{_xml(title)}" file="{name}" line="{first.test.location.line}">'
        for each in case:
            if each.message:
                text = "\n".join((str(each.location), *each.sources))
                yield f'      <failure message="{_xml(each.message)}">{_xml(text)}</failure>'
        yield "    </testcase>"
    yield "  </testsuite>"


def _list_error(error: Finding) -> Iterator[str]:
    name = _xml(relative_path(error.location.file))
    yield f'  <testsuite name="{name}" tests="1" failures="0" errors="1">'
    yield f'    <testcase classname="{name}" name="{_xml(error.rule)}" file="{name}" line="{error.location.line}">'
    yield f'      <error message="{_xml(error.message)}">{_xml(str(error.location))}</error>'
    yield "    </testcase>"
    yield "  </testsuite>"


def _xml(text: str) -> str:
    # Invisible characters are escaped: XML forbids most of them, even as references.
    return "\n".join(map(visible, text.split("\n"))).translate(_TABLE)


def render_text(outcomes: Sequence[Outcome], errors: Sequence[Finding], shard: ShardPart | None = None) -> str:
    """Write the failures, and how many expectations there were."""
    summary = f"{summarize(outcomes, errors, shard)}\n"
    groups: dict[tuple[object, ...], list[Outcome]] = {}
    for each in (each for each in outcomes if each.message):
        groups.setdefault((each.location, each.job, each.message, each.sources), []).append(each)
    lines: list[str] = []
    for outcome, *others in groups.values():
        # A failure may be equal in several environments.
        environments = ", ".join(filter(None, (each.environment for each in (outcome, *others))))
        where = f" (in {environments})" if environments else ""
        job = f"{outcome.job}: " if outcome.job else ""
        lines.append(f"{outcome.location}: failed: {outcome.test.name}: {job}{outcome.message}{where}")
        lines += (f"    {source}" for source in outcome.sources)
    return "".join(f"{visible(line)}\n" for line in lines) + summary


def render_json(outcomes: Sequence[Outcome], errors: Sequence[Finding], shard: ShardPart | None = None) -> str:
    """Write all outcomes, and the errors that kept tests from running."""
    document: dict[str, object] = {
        "version": 1,
        **({"shard": shard.to_plain()} if shard else {}),
        "failed": sum(bool(each.message) for each in outcomes),
        "outcomes": [
            {
                "test": each.test.name,
                "file": each.location.file,
                "line": each.location.line,
                "environment": each.environment,
                "job": each.job,
                "expectation": each.expectation,
                "passed": not each.message,
                "message": each.message,
                "sources": list(each.sources),
            }
            for each in outcomes
        ],
        "errors": [
            {"rule": each.rule, "file": each.location.file, "line": each.location.line, "message": each.message}
            for each in errors
        ],
    }
    return dump_json(document) + "\n"


FORMATS: dict[str, Callable[[Sequence[Outcome], Sequence[Finding], ShardPart | None], str]] = {
    "json": render_json,
    "junit": render_junit,
    "text": render_text,
}
