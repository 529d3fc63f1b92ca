"""A lint of files that have not changed since the last one: what was said then is said again.

Nothing that judges is imported for that. What cannot be told apart with certainty is linted.
"""

from __future__ import annotations

import marshal
import time
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from jobgen import cache
from jobgen.cli.commands.scope import LintRequest, LintResult, Scope, resolve_files
from jobgen.pipeline.result_cache import decode_finding, digest_files, encode_finding, is_racy, stat_file
from jobgen.repo import layout


class State(NamedTuple):
    """All that a lint depends on, at a moment: by which name it is known, and a digest of the files."""

    key: str
    digest: bytes
    moment: int
    settled: bool
    """Whether no file was so young that it may change without leaving a trace."""
    scope: Scope
    layers: bytes


def state_of(asked: LintRequest) -> State | None:
    """What a lint depends on just now; None if that is more than files, or nothing is to be remembered."""
    if not cache.is_enabled() or asked.stdin is not None or asked.second_opinion:
        return None
    moment = time.time_ns()
    scope = resolve_files(asked)
    entries = [*scope.jobs, *(scope.loose or ())]
    stamps = [stat_file(entry.full) if entry.finding is None else None for entry in entries]
    known = [stamp for stamp in stamps if stamp is not None]
    if len(known) < len(entries):
        return None
    layers = digest_files(layout.read_inputs(scope.root or asked.directory))
    digest = blake2b(layers)
    # Two ways of writing the same in memory must not be two digests: without references, there is one.
    digest.update(marshal.dumps([entry[:2] for entry in entries], 2))
    digest.update(marshal.dumps(known, 2))
    where = (str(asked.directory.resolve()), str(scope.root or ""), str(asked.directory))
    key = cache.make_key("lint", *where, str(len(asked.paths)), *asked.paths, *asked.envs, asked.today)
    return State(key, digest.digest(), moment, not any(is_racy(stamp, moment) for stamp in known), scope, layers)


def recalled(state: State | None) -> LintResult | None:
    """What was said of the same files before."""
    kept = cache.get(state.key) if state and state.settled else None
    if state is None or kept is None:
        return None
    digest, findings, counts, environments, rules, root, mandatory = marshal.loads(kept)  # noqa: S302 -- our own words
    if digest != state.digest:
        return None
    return LintResult(
        findings=[decode_finding(each) for each in findings],
        silenced=[],
        files=counts[0],
        objects=counts[1],
        environments=list(environments),
        rules=frozenset(rules),
        root=Path(root),
        comments=[],
        mandatory=frozenset(mandatory),
        today="",
        lasting=True,
    )


def keep(state: State | None, linted: LintResult) -> None:
    """Keep what was said of files as they were before anybody looked at them."""
    if state is None or not state.settled or not linted.lasting:
        return
    findings = [encode_finding(found) for found in linted.findings]
    said = (linted.files, linted.objects), linted.environments, sorted(linted.rules)
    try:
        content = marshal.dumps((state.digest, findings, *said, str(linted.root), sorted(linted.mandatory)))
    except ValueError:
        # A finding whose fix is more than plain data.
        return
    cache.put(state.key, content)
