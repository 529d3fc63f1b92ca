"""`jobgen init`: create a jobs repository."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from jobgen import __version__
from jobgen.cli.commands.schema import editor_files
from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.cli.write_files import write_files
from jobgen.repo.layout import list_starter_frameworks
from jobgen.repo.shipped import find_shipped
from jobgen.report.escape import visible
from jobgen.report.summary import pluralize

# The files to write, and the files of the starter that they copy.
_ALWAYS = {
    "jobgen.yaml": "jobgen.yaml",
    "README.md": "README.md",
    "overlays/base/overlay.yaml": "overlays/base.yaml",
    "overlays/dev/overlay.yaml": "overlays/dev.yaml",
    "overlays/prod/overlay.yaml": "overlays/prod.yaml",
    "policies/team-label.yaml": "policies/team-label.yaml",
    "policies/tests/team-label/cases.yaml": "policies/team-label-cases.yaml",
    ".pre-commit-config.yaml": "pre-commit-config.yaml",
}
_CI = {
    "github": {".github/workflows/jobgen.yaml": "github.yaml"},
    "gitlab": {".gitlab-ci.yml": "gitlab.yaml"},
    "none": {},
}
_NEWEST, _LAST_WITH_MXNET = "1.9.0", "1.8.1"


@click.command("init")
@click.argument("folder", default=".", metavar="[DIR]")
@click.option(
    "--framework",
    "frameworks",
    multiple=True,
    type=click.Choice(list_starter_frameworks()),
    help="Add an example job for this framework.",
)
@click.option("--ci", type=click.Choice(list(_CI)), default="github", show_default=True, help="CI to set up.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.pass_obj
def command(directory: Path, folder: str, frameworks: tuple[str, ...], ci: str, force: bool) -> Result:
    """Create a jobs repository."""
    return init(directory / folder, frameworks, ci, force=force)


def init(folder: Path, frameworks: Sequence[str], ci: str, *, force: bool) -> Result:
    """Write the files of a new repository, unless an existing file differs."""
    chosen = list(dict.fromkeys(frameworks or ["pytorch"]))
    if {"jax", "mxnet"} <= set(chosen):
        return error_result(ExitCode.USAGE, "no training-operator has both `jax` and `mxnet`; choose one of them")
    wanted = _make_files(folder, chosen, ci)
    try:
        conflicts = list(_find_conflicts(folder, wanted, force=force))
        if conflicts:
            advice = "move them" if force else "move them, or overwrite them with --force"
            return error_result(ExitCode.ERRORS, f"nothing was written; {advice}", "".join(conflicts))
        stale = {path: content for path, content in wanted.items() if not _is_current(folder / path, content)}
    except OSError as error:
        return error_result(ExitCode.INTERNAL_ERROR, f"{error.filename}: {error.strerror}; nothing was written")
    failure = write_files({folder / path: content.decode() for path, content in stale.items()}, folder)
    if failure:
        return failure
    lines = "".join(f"{path} written\n" for path in stale)
    return Result(
        ExitCode.OK, err=f"{lines}{pluralize(len(stale), 'file')}; next: `jobgen lint`, `pre-commit install`\n"
    )


def _make_files(folder: Path, frameworks: Sequence[str], ci: str) -> dict[str, bytes]:
    copies = {**_ALWAYS, **{f"jobs/{name}.yaml": f"jobs/{name}.yaml" for name in frameworks}, **_CI[ci]}
    operator = _LAST_WITH_MXNET if "mxnet" in frameworks else _NEWEST
    home = find_shipped("starter")
    texts = {path: (home / copy).read_text("utf-8") for path, copy in sorted(copies.items())}
    filled = {path: body.replace("OPERATOR", operator).replace("VERSION", __version__) for path, body in texts.items()}
    return {**{path: body.encode() for path, body in filled.items()}, **editor_files(folder)}


def _find_conflicts(folder: Path, wanted: dict[str, bytes], *, force: bool) -> Iterator[str]:
    """Yield a line for each path that cannot be written; `force` allows overwriting files, and nothing else."""
    for path, content in wanted.items():
        full = folder / path
        parts = [folder / parent for parent in reversed(Path(path).parents) if parent != Path()]
        blocked = [part for part in parts if part.is_symlink() or (part.exists() and not part.is_dir())]
        if blocked:
            yield visible(f"{blocked[0]}: is not a folder") + "\n"
        elif full.is_symlink() or (full.exists() and not full.is_file()):
            yield visible(f"{full}: is not a file") + "\n"
        elif full.exists() and not force and full.read_bytes() != content:
            yield visible(f"{full}: exists") + "\n"


def _is_current(full: Path, content: bytes) -> bool:
    return full.exists() and full.read_bytes() == content
