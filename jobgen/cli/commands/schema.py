"""`jobgen schema`: build, import, update, list and print the schemas of kinds."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from jobgen.api.errors import UsageError
from jobgen.api.project import find_repository
from jobgen.check.cel.values import OFFLINE
from jobgen.check.checker import Checker
from jobgen.check.schema.build import UnknownTypeError, build_schemas, convert_crd
from jobgen.check.schema.cel_rules import find_rule_errors
from jobgen.check.schema.crd_history import Release, build_files, format_file, parse_release_name
from jobgen.check.schema.shipped import bundle_schema, find_shipped_schema
from jobgen.check.validation.crds import find_schema_errors
from jobgen.cli.complete import complete_environments, complete_files, complete_folders
from jobgen.cli.result import ExitCode, Result, error_result, write_files
from jobgen.model.data import Node, untraced, value_of
from jobgen.model.finding import Finding, Problem, pluralize
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import suggest_name, suggest_or
from jobgen.rendering import config
from jobgen.rendering.build import split_list
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.locate import locate
from jobgen.repo import layout
from jobgen.repo.commit import Folder
from jobgen.repo.files import File, FileEntry, read_file
from jobgen.repo.root import SETTINGS, explain_absence
from jobgen.repo.shipped import read_types
from jobgen.repo.walk import walk_folder
from jobgen.reports.entries import format_findings
from jobgen.schema.shipped_kinds import list_foreign_kinds, list_shipped_kinds
from jobgen.schema.types_of_release import RecurringSchemaError
from jobgen.spec.kinds import parse_version
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.read import read

_SCHEMA_PATH = lazy_pattern(r"schemas/(?:crds/|foreign/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[a-z0-9]+_[a-z0-9]+\.json")
_CRD = "CustomResourceDefinition"
_NAME = lazy_pattern(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[a-z0-9]+_[a-z0-9]+\.json")


@click.group("schema")
def command() -> None:
    """Build, import and print schemas.

    Objects are checked against these schemas.
    """


@command.command("build")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a schema is not up to date.")
@click.pass_obj
def _build_command(directory: Path, check: bool) -> Result:
    """Write the schema of every kind that this repository describes."""
    return build(find_repository(directory), check=check)


@command.command("import")
@click.argument("crds", nargs=-1, required=True, metavar="CRD...", shell_complete=complete_files)
@click.pass_obj
def _import_command(directory: Path, crds: tuple[str, ...]) -> Result:
    """Add the schemas of CustomResourceDefinitions to this repository."""
    return import_crds(find_repository(directory), crds, directory)


@command.command("editor")
@click.pass_obj
def _editor_command(directory: Path) -> Result:
    """Write the schemas of jobs and overlays, and settings for completion in editors."""
    return write_editor_files(find_repository(directory))


@command.command("list")
@click.pass_obj
def _list_command(directory: Path) -> Result:
    """List the known kinds."""
    return list_kinds(config.load_own(directory.resolve()))


_environment = click.option(
    "-e",
    "--env",
    default="",
    shell_complete=complete_environments,
    help="Environment whose cluster declares the releases; default: the newest releases.",
)


def _complete_kinds(context: click.Context, _: click.Parameter, __: str) -> list[str]:
    directory = context.find_root().params.get("directory") or "."
    return sorted({kind.name for kind in config.load_own(Path(directory).resolve()).kinds})


@command.command("export")
@_environment
@click.argument("folder", shell_complete=complete_folders)
@click.pass_obj
def _export_command(directory: Path, env: str, folder: str) -> Result:
    """Write the JSON Schemas of all kinds to a folder, as kubeconform reads them."""
    if not folder:
        return error_result(ExitCode.USAGE, "the name of the folder is empty; write `.` for the current folder")
    if (directory / folder).exists() and not (directory / folder).is_dir():
        return error_result(ExitCode.USAGE, f"`{folder}` is a file; name a folder")
    project = config.load_own(directory.resolve())
    return export_schemas(project, directory / folder, _find_cluster(project, env) or Cluster())


@command.command("print")
@_environment
@click.argument("kind", shell_complete=_complete_kinds)
@click.pass_obj
def _print_command(directory: Path, env: str, kind: str) -> Result:
    """Print the JSON Schema of a kind."""
    project = config.load_own(directory.resolve())
    return print_schema(project, kind, _find_cluster(project, env))


@command.command("update")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a schema is not up to date.")
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...", shell_complete=complete_folders)
@click.pass_obj
def _update_command(directory: Path, check: bool, folders: tuple[str, ...]) -> Result:
    """Rebuild the imported schemas from folders of CustomResourceDefinitions."""
    absent = [folder for folder in folders if not (directory / folder).is_dir()]
    if absent:
        return error_result(ExitCode.USAGE, explain_absence(directory / absent[0], absent[0]))
    root = find_repository(directory)
    wanted = _build_updated(root, folders, directory)
    if isinstance(wanted, Result):
        return wanted
    files, missing = wanted
    stale = {name: text for name, text in sorted(files.items()) if not _is_current(root / name, text)}
    notes = "".join(f"{name}: the folders have no CRD of this kind\n" for name in sorted(missing))
    if check and stale:
        listed = "".join(f"{name}: out of date\n" for name in stale)
        return error_result(ExitCode.ERRORS, "run `jobgen schema update` with these folders", listed + notes)
    if check:
        return Result(ExitCode.OK, err=notes)
    error = write_files({root / name: text for name, text in stale.items()}, root)
    if error:
        return error
    listed = "".join(f"{name}: updated\n" for name in stale)
    counted = f"{pluralize(len(files), 'file')}: {len(stale)} written, {len(files) - len(stale)} unchanged\n"
    return Result(ExitCode.OK, err=listed + notes + counted)


def _build_updated(
    root: Path, folders: Sequence[str], directory: Path
) -> tuple[dict[str, str], Collection[str]] | Result:
    """Return the files with the schemas of the CRDs of the folders, and the schemas that these do not describe.

    A jobs repository gets no new kinds.
    """
    findings: list[Finding] = []
    found: list[Release] = []
    for folder in folders:
        full = os.path.realpath(directory / folder)
        crds: list[Any] = []
        for entry in walk_folder(full, folder, (".yaml", ".yml", ".json"), os.path.join(full, "")):
            documents = config.read_documents(read_file(entry), findings).documents
            objects = [data for document in documents for data in split_list(document.data) if isinstance(data, dict)]
            crds += [data for data in objects if data.get("kind") == _CRD or "openAPIV3Schema" in data]
        found.append(Release(*parse_release_name(Path(full).name), crds))
    # The schemas of a checkout of jobgen itself have all releases in one file.
    is_clone = (root / "schemas" / "operators.json").is_file()
    unnamed = [name for name, release in zip(folders, found, strict=True) if is_clone and not release.operator]
    if unnamed:
        return error_result(ExitCode.USAGE, f"`{unnamed[0]}` names no release; name it `<operator>-<release>`")
    if findings:
        return error_result(ExitCode.ERRORS, "nothing was written", format_findings(findings))
    if not any(release.documents for release in found):
        return error_result(
            ExitCode.NOTHING_TO_DO,
            "the folders have no CustomResourceDefinition; name folders with the CRDs of releases",
        )
    try:
        wanted = _build_shipped(root, found) if is_clone else _build_imported(found)
    except (KeyError, TypeError, AttributeError, ValueError):
        return error_result(ExitCode.ERRORS, "a file is not a CustomResourceDefinition of apiextensions.k8s.io/v1")
    except RecurringSchemaError as error:
        return error_result(ExitCode.ERRORS, f"a release removes a field that a later one has: {error}; omit a release")
    invalid = [name for name in wanted if not _SCHEMA_PATH.fullmatch(name)]
    if invalid:
        return error_result(ExitCode.ERRORS, f"`{invalid[0]}` is not a valid schema name; nothing was written")
    if is_clone:
        return wanted, ()
    # Those of kind descriptions are written by `jobgen schema build`.
    described = {file.path.rpartition(".")[0] for file in layout.read_own_kinds(layout.own_layers(root))}
    paths = (file.path for _, file in layout.read_own_schemas(layout.own_layers(root)))
    own = {path for path in paths if path.rpartition(".")[0] not in described}
    return {name: text for name, text in wanted.items() if name in own}, own - wanted.keys()


def _build_shipped(root: Path, releases: Sequence[Release]) -> dict[str, str]:
    """The files with all releases of the kinds of the folders that name an operator and a release."""
    running = json.loads((root / "schemas" / "operators.json").read_bytes())
    built = build_files((release for release in releases if release.operator), running)
    return {f"schemas/{name}": format_file(content) for name, content in built}


def _build_imported(releases: Sequence[Release]) -> dict[str, str]:
    """The files of `jobgen schema import`; of several releases of an operator, the newest counts."""
    ordered = sorted(releases, key=lambda release: parse_version(release.name))
    schemas = (pair for release in ordered for crd in release.documents for pair in convert_crd(crd))
    return {f"schemas/{name}": _format_schema(schema) for name, schema in schemas}


def _find_cluster(project: ProjectConfig, env: str) -> Cluster | None:
    """Return the cluster of an environment, None without one, or raise a UsageError."""
    if env and env not in project.overlays:
        raise UsageError(f"there is no environment `{env}`{suggest_name(env, list(project.overlays))}")
    return project.environment(env, []).cluster if env else None


def build(root: Path, *, check: bool) -> Result:
    """Write the schema of every kind that the repository describes, or list those that are out of date."""
    findings: list[Finding] = []
    shared = read(read_types(), "types.yaml").documents[0].data
    wanted: dict[str, str] = {}
    for file in layout.read_own_kinds(layout.own_layers(root)):
        for document in config.read_valid_documents(file, "kind", findings):
            try:
                schemas = dict(build_schemas(untraced(document), shared)) if "spec" in document else {}
            except UnknownTypeError as error:
                # It is reported where the description names the unknown type.
                traced = (each.data for each in read(file.content, file.path, traced=True).documents)
                scalars = (node for data in traced for node in _list_scalars(data) if value_of(node) == error.name)
                problem = Problem("invalid-value", str(error), next(scalars, None), category="schema")
                findings.append(locate(problem, file.path))
                continue
            wanted |= {name: _format_schema(schema) for name, schema in schemas.items()}
    if findings:
        # A kind with errors would silently have no schema.
        return error_result(ExitCode.ERRORS, "nothing was built", format_findings(findings))
    folder = root / "schemas"
    stale = [name for name, text in sorted(wanted.items()) if not _is_current(folder / name, text)]
    if check:
        listed = "".join(f"schemas/{name}: out of date\n" for name in stale)
        return error_result(ExitCode.ERRORS, "run `jobgen schema build`", listed) if stale else Result(ExitCode.OK)
    summary = f"{len(wanted)} files: {len(stale)} written, {len(wanted) - len(stale)} unchanged\n"
    return write_files({folder / name: wanted[name] for name in stale}, root) or Result(ExitCode.OK, err=summary)


def _format_schema(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


def _list_scalars(tree: Node) -> Iterator[Node]:
    if isinstance(tree, (dict, list)):
        for child in tree.values() if isinstance(tree, dict) else tree:
            yield from _list_scalars(child)
    else:
        yield tree


def import_crds(root: Path, paths: Sequence[str | Path], directory: Path = Path()) -> Result:
    """Write the schemas of CustomResourceDefinitions into the repository; the paths are relative to a directory."""
    findings: list[Finding] = []
    wanted: dict[str, str] = {}
    notes = ""
    for path in paths:
        file = read_file(FileEntry(str(path), str(directory / path)))
        documents = config.read_documents(file, findings).documents
        objects = [(data, document.location) for document in documents for data in split_list(document.data)]
        crds = [pair for pair in objects if isinstance(pair[0], dict) and pair[0].get("kind") == _CRD]
        for data, location in crds:
            try:
                schemas = dict(convert_crd(data))
            except (KeyError, TypeError, AttributeError):
                return error_result(
                    ExitCode.ERRORS, f"{location}: not a CustomResourceDefinition of apiextensions.k8s.io/v1"
                )
            for version, message in find_schema_errors(data):
                notes += f"{location}: warning: the API server refuses the schema of `{version}`: {message}\n"
            wanted |= {name: _format_schema(schema) for name, schema in schemas.items()}
        skipped = pluralize(len(objects) - len(crds), "object")
        notes += f"{path}: {skipped} skipped: not a CustomResourceDefinition\n" if len(objects) > len(crds) else ""
    if findings or not wanted:
        code = ExitCode.ERRORS if findings else ExitCode.NOTHING_TO_DO
        return error_result(
            code,
            "there is no schema to import; name a file or folder with CustomResourceDefinitions",
            format_findings(findings) + notes,
        )
    invalid = [name for name in wanted if not _NAME.fullmatch(name)]
    if invalid:
        return error_result(ExitCode.ERRORS, f"`{invalid[0]}` is not a valid schema name; nothing was written")
    error = write_files({root / "schemas" / name: body for name, body in wanted.items()}, root)
    if error:
        return error._replace(err=notes + error.err)
    for name, body in wanted.items():
        notes += f"schemas/{name} written\n"
        # CEL rules that are not evaluated offline, or that no API server accepts.
        for rule, field, reason in find_rule_errors(json.loads(body)):
            shown = " ".join(rule["rule"].split())
            what = "the rule" if field == "rule" else f"`{field}` of the rule"
            refused = f"the API server refuses {what} `{shown}`"
            problem = f"{what} `{shown}` is not evaluated" if OFFLINE in reason else refused
            notes += f"schemas/{name}: warning: {problem}: {reason}\n"
    return Result(ExitCode.OK, err=notes)


_FORMATS = {
    "trainingjob": "jobs/**/*.yaml",
    "overlay": "overlays/**/*.yaml",
    "team": "teams/**/*.yaml",
    "settings": SETTINGS,
}
_SETTINGS = ".vscode/settings.json"


def editor_files(root: Path) -> dict[str, bytes]:
    """Return the schemas of jobs, overlays and settings, and the editor settings that select them."""
    names = [f"jobgen.dev/{name}_v1.json" for name in _FORMATS]
    completed = config.complete_schemas(config.load_frameworks(layout.own_layers(root)))
    schemas = {
        f"schemas/{name}": (json.dumps(completed[Path(name).name], indent=2, ensure_ascii=False) + "\n").encode()
        for name in names
    }
    wanted = {f"./schemas/{name}": files for name, files in zip(names, _FORMATS.values(), strict=True)}
    return {**schemas, _SETTINGS: (json.dumps({"yaml.schemas": wanted}, indent=2) + "\n").encode()}


def write_editor_files(root: Path) -> Result:
    """Write the schemas of jobs, overlays and settings, and the editor settings that select them."""
    files = editor_files(root)
    shown = files[_SETTINGS]
    has_settings = (root / _SETTINGS).exists()
    if has_settings:
        del files[_SETTINGS]
    stale = {name: body.decode() for name, body in files.items() if not _is_current(root / name, body.decode())}
    error = write_files({root / name: body for name, body in stale.items()}, root)
    if error:
        return error
    written = "".join(f"{name} written\n" for name in stale if name != _SETTINGS)
    if has_settings:
        note = f"{written}{Path(_SETTINGS).name} exists; add the printed settings to it\n"
        return Result(ExitCode.OK, shown.decode(), note)
    modeline = "# yaml-language-server: $schema=../schemas/jobgen.dev/trainingjob_v1.json"
    return Result(ExitCode.OK, err=f"{written}{_SETTINGS} written; for other editors, start a job with\n{modeline}\n")


def _list_own_schemas(root: Folder) -> Iterator[tuple[str, str, File]]:
    """Yield the apiVersion, kind and file of the schemas of the repository, imported or built of kind descriptions."""
    for api_version, file in layout.read_own_schemas(layout.own_layers(root)):
        try:
            schema = json.loads(file.content)
        except (ValueError, RecursionError):
            schema = None
        title = schema.get("title") if isinstance(schema, dict) else None
        yield api_version, title if title and isinstance(title, str) else Path(file.path).name.partition("_")[0], file


def list_kinds(project: ProjectConfig) -> Result:
    """List the known kinds: those that the repository describes or imported, and those whose schemas are shipped."""
    shipped = (*list_foreign_kinds(), *list_shipped_kinds())
    rows = {(kind.api_version, kind.name): kind.source for kind in shipped}
    rows |= {(api, kind): "repository" for api, kind, _ in _list_own_schemas(project.root)}
    rows |= {(str(value_of(kind.api_version)), kind.name): kind.platform for kind in project.kinds}
    width = [max(len(row[column]) for row in rows) for column in range(2)]
    lines = (f"{api:<{width[0]}}  {kind:<{width[1]}}  {rows[api, kind]}\n" for api, kind in sorted(rows))
    return Result(ExitCode.OK, "".join(lines))


def print_schema(project: ProjectConfig, name: str, cluster: Cluster | None = None) -> Result:
    """Print the JSON Schema of a kind, of its most stable version unless the name has one: `apps/v1/Deployment`."""
    wanted_version, _, wanted = name.rpartition("/")
    known = [(str(value_of(kind.api_version)), kind.name) for kind in project.kinds]
    known += [(api, kind) for api, kind, _ in _list_own_schemas(project.root)]
    known += [(kind.api_version, kind.name) for kind in (*list_shipped_kinds(), *list_foreign_kinds())]
    found = [(api, kind) for api, kind in known if kind.lower() == wanted.lower() and wanted_version in ("", api)]
    if not found:
        hint = suggest_or(wanted, [kind for _, kind in known], "`jobgen schema list` lists the kinds")
        return error_result(ExitCode.NOTHING_TO_DO, f"there is no kind `{name}`{hint}")
    api_version, kind = found[0]
    checker = Checker(project.layers, project.kinds, cluster or Cluster())
    manifest = checker.manifest({"apiVersion": api_version, "kind": kind})
    own = layout.read_schema(project.layers, checker.name_schema_file(manifest))
    if own is not None and own.finding:
        return error_result(ExitCode.INTERNAL_ERROR, f"the schema `{own.path}` cannot be used: {own.finding.message}")
    if own is not None:
        return Result(ExitCode.OK, own.content.decode("utf-8", "surrogateescape"))
    # A shipped schema of a kind that the cluster does not have is printed only if no cluster is given.
    shipped = find_shipped_schema(api_version, kind, cluster or Cluster(), any_release=cluster is None)
    if shipped is None:
        message = f"`{kind}` has no schema; describe its `spec` and run `jobgen schema build`"
        return error_result(ExitCode.NOTHING_TO_DO, message)
    if shipped.missing:
        return error_result(ExitCode.NOTHING_TO_DO, str(shipped.missing.message))
    return Result(ExitCode.OK, _format_schema(bundle_schema(shipped.schema)))


def export_schemas(project: ProjectConfig, folder: Path, cluster: Cluster) -> Result:
    """Write the JSON Schemas of all kinds as a cluster has them, in the layout that kubeconform reads."""
    # Of a kind that jobs are rendered as, lint checks the last release that has it.
    described = {(str(value_of(kind.api_version)), kind.name) for kind in project.kinds}
    found = (
        (kind, find_shipped_schema(*kind[:2], cluster, any_release=kind[:2] in described))
        for kind in (*list_shipped_kinds(), *list_foreign_kinds())
    )
    served = [(kind, shipped.schema) for kind, shipped in found if shipped and shipped.missing is None]
    files = {
        folder / _name_file(kind.api_version, kind.name): _format_schema(bundle_schema(schema))
        for kind, schema in served
    }
    for api_version, name, file in _list_own_schemas(project.root):
        if file.finding:
            reason = file.finding.message
            return error_result(ExitCode.INTERNAL_ERROR, f"the schema `{file.path}` cannot be used: {reason}")
        files[folder / _name_file(api_version, name)] = file.content.decode("utf-8", "surrogateescape")
    return write_files(files, folder) or Result(ExitCode.OK, err=f"{len(files)} schemas written\n")


def _name_file(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    return f"{group or 'core'}/{kind.lower()}_{version}.json"


def _is_current(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()
