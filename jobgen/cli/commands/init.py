"""`jobgen init`: a jobs repository that works at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from jobgen import __version__
from jobgen.cli.commands.schema import editor_files
from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.repo.atomic import replace_file
from jobgen.repo.layout import find_shipped, list_starter_frameworks
from jobgen.report.escape import visible
from jobgen.report.summary import pluralize

# By where they go: the file of the starter that each is a copy of.
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
    """Write the files of a new repository; if any of them exists and is different, nothing is written."""
    chosen = list(dict.fromkeys(frameworks or ["pytorch"]))
    if {"jax", "mxnet"} <= set(chosen):
        return error_result(ExitCode.USAGE, "no training-operator has both `jax` and `mxnet`; choose one of them")
    wanted = _files(folder, chosen, ci)
    try:
        in_the_way = list(_in_the_way(folder, wanted, force=force))
        if in_the_way:
            advice = "move them" if force else "move them, or overwrite them with --force"
            return error_result(ExitCode.ERRORS, f"nothing was written; {advice}", "".join(in_the_way))
        written = [path for path, content in wanted.items() if _put(folder, path, content)]
    except OSError as error:
        return error_result(ExitCode.ERRORS, f"{error.filename}: {error.strerror}")
    said = "".join(f"{path} written\n" for path in written)
    return Result(
        ExitCode.OK, err=f"{said}{pluralize(len(written), 'file')}; next: `jobgen lint`, `pre-commit install`\n"
    )


def _files(folder: Path, frameworks: Sequence[str], ci: str) -> dict[str, bytes]:
    copies = {**_ALWAYS, **{f"jobs/{name}.yaml": f"jobs/{name}.yaml" for name in frameworks}, **_CI[ci]}
    operator = _LAST_WITH_MXNET if "mxnet" in frameworks else _NEWEST
    home = find_shipped("starter")
    texts = {path: (home / copy).read_text("utf-8") for path, copy in sorted(copies.items())}
    filled = {path: body.replace("OPERATOR", operator).replace("VERSION", __version__) for path, body in texts.items()}
    return {**{path: body.encode() for path, body in filled.items()}, **editor_files(folder)}


def _in_the_way(folder: Path, wanted: dict[str, bytes], *, force: bool) -> Iterator[str]:
    """What stands where we want to write; a file may be overwritten if that is said, and nothing else ever is."""
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


def _put(folder: Path, path: str, content: bytes) -> bool:
    """Write a file, unless it is there already; whether it was written."""
    full = folder / path
    if os.path.exists(full) and full.read_bytes() == content:
        return False
    full.parent.mkdir(parents=True, exist_ok=True)
    replace_file(full, content, folder)
    return True
