"""The page of a job: who set each value, manifests side by side, and links to Git."""

import pytest
from pagedata import PageData
from report_jobs import write_jobs

from jobgen.api.explain import explain
from jobgen.api.project import load
from jobgen.api.report import report
from jobgen.yamlio.write import to_inline_yaml

BLAMED = (
    *(("bert", env) for env in ("dev", "prod", "volcano", "trainer", "ray", "region-3")),
    *(
        ("mpi", "dev"),
        ("mpi", "volcano"),
        ("sweep-0p1", "prod"),
        ("sweep-0p01", "ray"),
        ("raw", "prod"),
        ("odd", "dev"),
    ),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_jobs(tmp_path_factory.mktemp("varied"))


@pytest.fixture(scope="module")
def data(folder):
    return PageData(report(folder).data)


def find_lines(data, job, env):
    """The lines of a manifest, one list for each object."""
    names = [row["name"] for row in data.table("jobs")]
    cell = next(cell for cell in data.table("cells") if (names[cell["job"]], cell["environment"]) == (job, env))
    objects = [[]]
    for text, sources in data.lines("manifests", cell["manifest"]):
        if text == "---":
            objects.append([])
        else:
            objects[-1].append((text, sources))
    return objects


@pytest.mark.parametrize(("job", "env"), BLAMED)
def test_lines_say_who_set_them_as_explain_does(folder, data, job, env):
    fields = explain(load(folder), job, environments=[env]).fields
    lines = iter(find_lines(data, job, env)[0])
    for field in fields:
        expected = [
            (source.layer, *(source.location[:2] if source.location else ("", 0)), to_inline_yaml(source.value))
            for source in field.sources
        ]
        shown = next(
            (sources for _, sources in lines if len(sources) == len(expected) and same(sources, expected)), None
        )
        assert shown is not None, field.field
    assert fields


def same(sources, expected):
    """The value that wins is in the line, and only the others have theirs."""
    return sources[0][:3] == expected[0][:3] and sources[1:] == expected[1:]
