"""`jobgen render --since`: the rendered objects that differ from those of a revision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jobgen.api.errors import UsageError
from jobgen.api.project import Project
from jobgen.api.render import RenderResult, TextFormat, matcher
from jobgen.model.finding import Identity, Severity
from jobgen.rendering import config
from jobgen.rendering.run import Run
from jobgen.repo import git
from jobgen.repo.commit import open_commit
from jobgen.yamlio.write import to_json, to_yaml


class ChangedObjects(NamedTuple):
    """What differs between two renders."""

    rendered: RenderResult
    """The objects that are new or have other texts, and their environments."""
    gone: tuple[tuple[Identity, tuple[str, ...]], ...]
    """The objects that only the revision has, each with its environments."""
    errors: int
    """The number of errors at the revision. What it cannot render counts as new."""


def keep_changed(
    project: Project,
    rendered: RenderResult,
    revision: str,
    jobs: Sequence[str] = (),
    environments: Sequence[str] = (),
    format: TextFormat = "yaml",  # noqa: A002 -- the name of the option
) -> ChangedObjects:
    """Compare rendered objects with those of a revision, which is rendered as of its own date.

    Raises:
        UsageError: There is no such revision.

    """
    try:
        with open_commit(project.root, git.resolve_commit(project.root, revision)) as folder:
            old = config.load(folder, today=project.today or folder.commit.date)
            chosen = [env for env in environments if env in old.overlays] if environments else old.environments()
            write = to_json if format == "json" else to_yaml
            run = Run(old, chosen, matcher(jobs), write, deployable=True)
            before = {(made.env, made.identity): made.object for made in run} if chosen else {}
    except git.GitError as error:
        raise UsageError(str(error)) from error
    changed = tuple(one for one in rendered.objects if before.get((one.environment, one.identity)) != one.text)
    now = {(one.environment, one.identity) for one in rendered.objects}
    gone: dict[Identity, list[str]] = {}
    for env, identity in before:
        if (env, identity) not in now:
            gone.setdefault(identity, []).append(env)
    kept = tuple(env for env in rendered.environments if any(one.environment == env for one in changed))
    return ChangedObjects(
        rendered._replace(objects=changed, environments=kept),
        tuple((identity, tuple(envs)) for identity, envs in gone.items()),
        sum(finding.severity is Severity.ERROR for finding in run.findings),
    )
