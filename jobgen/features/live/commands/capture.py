"""`jobgen capture`: write the state of a cluster into the repository."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from jobgen.api.project import load, select_environments
from jobgen.cli.options import env_option
from jobgen.cli.result import ExitCode, Result
from jobgen.features.live.capture import (
    DEFINITIONS,
    DEPLOYMENTS,
    RESOURCES,
    RUNNING,
    Kubectl,
    capture,
    describe_role,
    find_folder,
    propose_cluster,
)
from jobgen.features.live.drift import list_reasons
from jobgen.features.live.write_capture import check_folder, write_capture
from jobgen.model.finding import pluralize
from jobgen.reports.escape import visible


@click.command("capture")
@env_option
@click.option("--context", default="", metavar="NAME", help="The context of kubectl; default: its current one.")
@click.option("--dry-run", is_flag=True, help="Print the commands and the least ClusterRole that they need, and stop.")
@click.pass_obj
def command(directory: Path, envs: tuple[str, ...], *, context: str, dry_run: bool) -> Result:
    """Write the state of a cluster into the repository.

    The folder is the one that `cluster.state` names; commit and review it.

    It runs `kubectl get` and nothing else: versions, namespaces, quotas, queues with their usage, nodes, classes,
    policies and running jobs, without secrets and without what changes by itself. It proposes `cluster` for the
    overlay.
    """
    if dry_run:
        paths = [each.path for each in (DEFINITIONS, *RESOURCES, *RUNNING, DEPLOYMENTS)]
        commands = "".join(f"kubectl get --raw '{path}?limit=500'\n" for path in paths)
        return Result(ExitCode.OK, f"{commands}kubectl get --raw /version\n---\n{describe_role()}")
    project = load(directory)
    out, err, is_complete = "", "", True
    folders = {env: find_folder(project.config, env) for env in select_environments(project.config, envs)}
    for folder in folders.values():
        check_folder(project.root, folder)
    for env, folder in folders.items():
        captured = capture(Kubectl(context), datetime.now(UTC).date().isoformat())
        err += "".join(visible(f"not read: {each}") + "\n" for each in list_reasons(captured.unread))
        if captured.unread and not captured.files:
            err += visible(f"nothing was read, so `{folder}` stays as it is") + "\n"
            is_complete = False
            continue
        kept = write_capture(project.root, folder, captured)
        what = f"{pluralize(captured.objects, 'object')} in {pluralize(len(captured.files) + 1, 'file')}"
        stay = f"; of what was not read, {pluralize(len(kept), 'file')} of the last capture stay" if kept else ""
        err += visible(f"{what} written to {folder}{stay}") + "\n"
        is_complete = is_complete and not captured.unread
        proposed = propose_cluster(captured)
        out += f"# overlays/{env}/overlay.yaml\n{proposed}" if proposed else ""
    return Result(ExitCode.OK if is_complete else ExitCode.ERRORS, out, err)
