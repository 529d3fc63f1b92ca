"""Jobs and overlays to manifests: transcripts in render/ show the repository, the manifests and the findings.

`jobgen render` prints no manifests where it finds errors. These transcripts show both, so they call the library.
"""

import pytest
from transcripts import find_transcripts, read_transcript

from jobgen.rendering import config
from jobgen.rendering.render_task import render_jobs
from jobgen.reports.entries import format_findings
from jobgen.yamlio.write import to_yaml

TRANSCRIPTS = find_transcripts("render")


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_render_transcript(path, tmp_path, accept):
    transcript = read_transcript(path)
    transcript.write_repository(tmp_path)
    project = config.load_own(tmp_path)
    run = render_jobs(project, project.environments())
    sections = {"manifests": format_manifests(run.objects), "findings": format_findings(run.findings)}
    output = {name: content.encode() for name, content in sections.items() if content}
    if accept:
        transcript = transcript.accept([output])

    assert output == transcript.expected


def format_manifests(objects):
    """All objects, environment by environment, under its name if there are several."""
    environments = sorted({made.env for made in objects})
    documents = []
    for env in environments:
        heading = f"# {env}\n" if len(environments) > 1 else ""
        documents += [heading + to_yaml(made.object) for made in objects if made.env == env]
    return "---\n".join(documents)
