"""Properties of the lock file and of plugin parameters: any input is parsed or refused."""

from __future__ import annotations

import json
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from jobgen.features.gitops.cmp import ParametersError, PluginParameters, parse_parameters
from jobgen.repo.lock import ATTRIBUTES, KUSTOMIZATION, LockFile, Origin, compute_digest, parse_lock

names = st.from_regex(r"[a-z0-9][a-z0-9.-]{0,20}", fullmatch=True)
paths = st.one_of(st.builds("{}/{}.yaml".format, names, names), st.sampled_from([KUSTOMIZATION, ATTRIBUTES]))
digests = st.text().map(compute_digest)
tables = st.dictionaries(paths, digests)
locks = st.builds(LockFile, tables.filter(bool), st.builds(Origin, names, digests, tables, st.just("") | digests))
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["name", "string", "array", "map", "x"]), inner),
)


@given(locks)
def test_lock_round_trip(lock: LockFile) -> None:
    assert parse_lock(lock.text()) == lock


@given(locks)
def test_lock_is_indented_json(lock: LockFile) -> None:
    """The text is the same as ever, so that no release rewrites the lock files of another."""
    tool, layers, jobs, source = lock.origin
    fields = ("tool", tool), ("source", source), ("layers", layers), ("jobs", jobs)
    known = {name: value for name, value in fields if value}
    data = {"version": 1, **known, "files": lock.files}
    for name in data.keys() & {"jobs", "files"}:
        data[name] = dict(sorted(data[name].items()))
    assert lock.text() == (json.dumps(data, indent=2) + "\n" if lock.files else None)


@given(tables.filter(bool), tables.filter(bool))
def test_conflicted_lock_is_the_union_of_both_sides(ours: dict[str, str], theirs: dict[str, str]) -> None:
    text = f"<<<<<<< ours\n{LockFile(ours).text()}=======\n{LockFile(theirs).text()}>>>>>>> theirs\n"

    assert parse_lock(text).files.keys() == {*ours, *theirs}


@given(st.dictionaries(st.text(), st.text()))
def test_lock_entries_outside_its_folder_are_ignored(files: dict[str, str]) -> None:
    lock = parse_lock(json.dumps({"version": 1, "files": files}))

    assert all(".." not in path.split("/") and not path.startswith("/") for path in lock.files)
    assert all(path.count("/") == 1 or path in (KUSTOMIZATION, ATTRIBUTES) for path in lock.files)


@given(st.one_of(documents.map(json.dumps), st.text()))
def test_any_plugin_parameters_are_parsed_or_refused(text: str) -> None:
    with suppress(ParametersError):
        assert isinstance(parse_parameters({"ARGOCD_APP_PARAMETERS": text}), PluginParameters)
