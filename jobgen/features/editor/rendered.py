"""The rendered document of a job: what `jobgen render` prints, and its difference to the base of the branch."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

from jobgen.api.diff import find_default_base
from jobgen.api.errors import JobgenError
from jobgen.api.render import join_objects, to_rendered_object
from jobgen.features.editor.workspace import Workspace
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner, Rendered, new_overlay_use
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.redact import redact_lines
from jobgen.repo import git
from jobgen.repo.commit import open_commit
from jobgen.repo.files import FileEntry
from jobgen.repo.named_paths import read_first
from jobgen.yamlio.write import to_yaml

SCHEME = "jobgen-rendered"


class RenderedDocument(NamedTuple):
    """What a rendered document shows."""

    uri: str
    """The document that the job is written in."""
    document: int
    """The index of the YAML document in its file."""
    environment: str = ""
    """Empty for all environments of the job."""
    is_diff: bool = False
    name: str = ""
    """The name of the job, for the title."""


def to_uri(shown: RenderedDocument) -> str:
    """Return the URI of a rendered document. Editors encode characters of URIs in several ways, so it has few."""
    content = json.dumps(shown[:-1]).encode()
    query = base64.urlsafe_b64encode(content).decode().rstrip("=")
    name = "".join(letter if letter.isalnum() or letter in "-." else "-" for letter in shown.name) or "job"
    return f"{SCHEME}:///{shown.environment or 'all'}/{name}.{'diff' if shown.is_diff else 'yaml'}?{query}"


def from_uri(uri: str) -> RenderedDocument | None:
    """Return what the URI of a rendered document says; None if it is not one."""
    start, _, query = uri.partition("?")
    if not start.startswith(f"{SCHEME}:"):
        return None
    try:
        values = json.loads(base64.urlsafe_b64decode(query + "=" * (-len(query) % 4)))
    except ValueError:
        return None
    match values:
        case [str(found), int(document), str(environment), bool(is_diff)]:
            return RenderedDocument(found, document, environment, is_diff)
    return None


def render_document(workspace: Workspace, file: str, document: int, environment: str) -> str:
    """Return the text of a job as `jobgen render` prints it; if it has errors, comments that say so."""
    with workspace.reading():
        try:
            ready = workspace.load()
        except JobgenError as error:
            return _comment(f"the settings have errors: {error}")
        runners = [runner for runner in ready.prepared.runners if environment in ("", runner.name)]
        if not runners:
            return _comment(f"`{environment}` is not an environment, or its overlays have errors")
        return render_entry(ready.run.project, runners, workspace.find_entry(file), document, bool(environment))


def render_entry(
    project: ProjectConfig, runners: Sequence[EnvironmentRunner], entry: FileEntry, document: int, is_one: bool
) -> str:
    """Render the jobs of one document of a file."""
    jobs = [job for job in read_jobs([entry], project.frameworks, []) if job.position == document]
    if not jobs:
        return _comment("there is no job here, or it has errors; see its findings")
    objects: list[Rendered] = []
    problems: list[str] = []
    for runner in runners:
        for job in jobs:
            patches = runner.patches_for(job)
            made = runner.render_job(job, patches, new_overlay_use()) if patches is not None else []
            within = f" in {runner.name}" if runner.name else ""
            if made is None or (made and runner.find_missing_images(made[0].object)):
                problems.append(f"`{job.document.name}` has errors{within}; see its findings")
            elif not made:
                reason = runner.explain_inactive(job) if patches is not None else "does not belong to the environment"
                problems.append(f"`{job.document.name}` {reason}{within}")
            objects += made or ()
    rank = {runner.name: number for number, runner in enumerate(runners)}
    objects.sort(key=lambda made: (rank[made.env], made.identity.namespace, made.identity[1:], made.identity))
    texts = [to_rendered_object(made._replace(object=to_yaml(made.object)), "yaml") for made in objects]
    return join_objects(texts, labeled=not is_one) if texts else "".join(map(_comment, dict.fromkeys(problems)))


def _comment(text: str) -> str:
    return f"# {text}\n"


class BaseText(NamedTuple):
    """The name of the base of the branch, and a job as it is there."""

    name: str
    text: str


def render_base(root: Path, file: str, document: int, environment: str) -> BaseText:
    """Render a job at the commit that `jobgen diff` compares with; the text is empty if it is not there."""
    name, commit = find_default_base(root)
    with open_commit(root, commit) as folder:
        found = read_first((folder,), file)
        if found is None or found.finding:
            return BaseText(name, "")
        try:
            project = config.load(folder, today=folder.commit.date)
        except JobgenError:
            return BaseText(name, "")
        names = [each for each in project.environments() if not environment or each == environment]
        runners = [runner for each in names if not (runner := EnvironmentRunner(project, each)).is_broken]
        entry = FileEntry(file, content=found.content)
        text = render_entry(project, runners, entry, document, bool(environment)) if runners else ""
        return BaseText(name, "" if text.startswith("# ") and "\napiVersion" not in text else text)


def write_diff(base: BaseText, now: str) -> str:
    """Return the difference between a rendered job and the base. As in `jobgen diff`, it has no secrets."""
    before, after = _split_lines(base.text), _split_lines(now)
    lines = [*before, "---", *after]
    shown, places = redact_lines(lines), {line: place for place, line in enumerate(lines)}
    diff: list[str] = []
    # The lines are compared with their secrets, so that those with a changed secret are shown.
    for line in unified_diff(before, after, base.name, "work tree", lineterm=""):
        place = places.get(line[1:])
        diff.append(f"{line}\n" if place is None else f"{line[0]}{shown[place]}\n")
    return "".join(diff) or f"# the rendered objects are the same as in {base.name}\n"


def _split_lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def explain_no_base(error: git.GitError) -> str:
    """Return a text in place of a diff."""
    return _comment(f"there is nothing to compare with: {error}")
