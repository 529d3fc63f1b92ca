"""`jobgen schema`: build, import, list and print the schemas of kinds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import click

from jobgen.api.project import find_repository
from jobgen.check.schema.build import UnknownTypeError, build_schemas, convert_crd
from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.cli.write_files import write_files
from jobgen.model.data import Node, untraced, value_of
from jobgen.model.finding import Finding, Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import did_you_mean
from jobgen.pipeline import config
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.locate import locate
from jobgen.repo import layout
from jobgen.report.summary import format_findings
from jobgen.yamlio.read import read

LOCK = "schemas.lock.json"
_NAME = lazy_pattern(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[a-z0-9]+_[a-z0-9]+\.json")
_PACKAGE, _RELEASE = "kubernetes-validate", "v1.36.0"
_DEFINITIONS = f"kubernetes-json-schema/{_RELEASE}-local-strict/_definitions.json"


@click.group("schema")
def command() -> None:
    """Build, import and print the schemas that objects are checked against."""


@command.command("build")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a schema is not up to date.")
@click.pass_obj
def _build_command(directory: Path, check: bool) -> Result:
    """Write the schema of every kind that this repository describes."""
    return build(find_repository(directory), check=check)


@command.command("import")
@click.argument("crds", nargs=-1, required=True, metavar="CRD...")
@click.pass_obj
def _import_command(directory: Path, crds: tuple[str, ...]) -> Result:
    """Add the schemas of CustomResourceDefinitions to this repository."""
    return import_crds(find_repository(directory), [directory / crd for crd in crds])


@command.command("editor")
@click.pass_obj
def _editor_command(directory: Path) -> Result:
    """Write the schemas of jobs and overlays, and settings for completion in editors."""
    return write_editor_files(find_repository(directory))


@command.command("list")
@click.pass_obj
def _list_command(directory: Path) -> Result:
    """List the known kinds."""
    return list_kinds(config.load(directory.resolve()))


@command.command("print")
@click.argument("kind")
@click.pass_obj
def _print_command(directory: Path, kind: str) -> Result:
    """Print the JSON Schema of a kind."""
    return print_schema(config.load(directory.resolve()), kind)


def build(root: Path, *, check: bool) -> Result:
    """Write the schema of every kind that the repository describes, or list those that are out of date."""
    try:
        source = resources.files("kubernetes_validate").joinpath(_DEFINITIONS).read_bytes()
    except ModuleNotFoundError:
        return error_result(
            ExitCode.USAGE, f"the types of Kubernetes come from the package {_PACKAGE}: `pip install {_PACKAGE}`"
        )
    findings: list[Finding] = []
    wanted = _build_schemas(root, json.loads(source)["$defs"], findings)
    if findings:
        # A kind with errors would silently have no schema.
        return error_result(ExitCode.ERRORS, "nothing was built", format_findings(findings))
    wanted[LOCK] = _format_lock(source, wanted)
    folder = root / "schemas"
    stale = [name for name, text in sorted(wanted.items()) if not _is_current(folder / name, text)]
    if check:
        listed = "".join(f"schemas/{name}: out of date\n" for name in stale)
        return error_result(ExitCode.ERRORS, "run `jobgen schema build`", listed) if stale else Result(ExitCode.OK)
    error = write_files({folder / name: wanted[name] for name in stale}, root)
    if error:
        return error
    return Result(ExitCode.OK, err=f"{len(wanted)} files: {len(stale)} written, {len(wanted) - len(stale)} unchanged\n")


def _build_schemas(root: Path, kubernetes: dict[str, Any], findings: list[Finding]) -> dict[str, str]:
    shared = read(layout.read_types(), "types.yaml").documents[0].data
    built: dict[str, str] = {}
    for file in layout.read_own_kinds(root):
        for document in config.read_valid_documents(file, "kind", findings):
            try:
                schemas = dict(build_schemas(untraced(document), shared, kubernetes)) if "spec" in document else {}
            except UnknownTypeError as error:
                findings.append(_locate_type(error, file))
                continue
            built |= {name: json.dumps(schema, indent=1, sort_keys=True) + "\n" for name, schema in schemas.items()}
    return built


def _locate_type(error: UnknownTypeError, file: layout.File) -> Finding:
    """Return a finding where a kind description names the unknown type."""
    documents = [document.data for document in read(file.content, file.path, traced=True).documents]
    scalars = (node for data in documents for node in _list_scalars(data) if value_of(node) == error.name)
    return locate(Problem("invalid-value", str(error), next(scalars, None), category="schema"), file.path)


def _list_scalars(tree: Node) -> Iterator[Node]:
    if isinstance(tree, (dict, list)):
        for child in tree.values() if isinstance(tree, dict) else tree:
            yield from _list_scalars(child)
    else:
        yield tree


def _format_lock(source: bytes, built: dict[str, str]) -> str:
    """Return the lock file: the source of the types, and the digests of the schemas."""
    from hashlib import sha256

    origin = {"package": _PACKAGE, "version": metadata.version(_PACKAGE), "sha256": sha256(source).hexdigest()}
    digests = {name: sha256(text.encode()).hexdigest() for name, text in sorted(built.items())}
    return (
        json.dumps({"version": 1, "kubernetes": {"release": _RELEASE, **origin}, "schemas": digests}, indent=2) + "\n"
    )


def _is_current(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def import_crds(root: Path, paths: Sequence[Path]) -> Result:
    """Write the schemas of CustomResourceDefinitions into the repository."""
    findings: list[Finding] = []
    wanted: dict[str, str] = {}
    notes = ""
    for path in paths:
        for document in config.read_documents(
            layout.read_file(layout.FileEntry(path.name, str(path))), findings
        ).documents:
            if document.data.get("kind") != "CustomResourceDefinition":
                kind = document.data.get("kind")
                notes += f"{document.location}: `{kind}` is not a CustomResourceDefinition; skipped\n"
                continue
            try:
                schemas = dict(convert_crd(document.data))
            except (KeyError, TypeError, AttributeError):
                return error_result(
                    ExitCode.ERRORS, f"{document.location}: not a CustomResourceDefinition of apiextensions.k8s.io/v1"
                )
            wanted |= {name: json.dumps(schema, indent=1, sort_keys=True) + "\n" for name, schema in schemas.items()}
    if findings or not wanted:
        code = ExitCode.ERRORS if findings else ExitCode.NOTHING_TO_DO
        return error_result(code, "there is no schema to import", format_findings(findings) + notes)
    invalid = [name for name in wanted if not _NAME.fullmatch(name)]
    if invalid:
        return error_result(ExitCode.ERRORS, f"`{invalid[0]}` is not a valid schema name; nothing was written")
    error = write_files({root / "schemas" / name: body for name, body in wanted.items()}, root)
    if error:
        return error._replace(err=notes + error.err)
    for name, body in wanted.items():
        notes += f"schemas/{name} written\n" + "".join(_find_unevaluated(name, json.loads(body)))
    return Result(ExitCode.OK, err=notes)


def _find_unevaluated(name: str, schema: dict[str, Any]) -> Iterator[str]:
    """Yield a line for every CEL rule of a schema that is not evaluated offline."""
    from jobgen.check.schema.cel_rules import find_rule_error, find_rules

    for rule in find_rules(schema):
        reason = find_rule_error(rule)
        if reason:
            shown = " ".join(rule["rule"].split())
            yield f"schemas/{name}: warning: the rule `{shown}` is not evaluated: {reason}\n"


_FORMATS = {"trainingjob": "jobs/**/*.yaml", "overlay": "overlays/**/*.yaml", "settings": layout.SETTINGS}


_SETTINGS = ".vscode/settings.json"


def editor_files(root: Path) -> dict[str, bytes]:
    """Return the schemas of jobs, overlays and settings, and the editor settings that select them."""
    names = [f"jobgen.dev/{name}_v1.json" for name in _FORMATS]
    completed = config.complete_schemas(config.load_frameworks(root))
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


def list_kinds(project: ProjectConfig) -> Result:
    """List the known kinds with their platforms."""
    rows = sorted((str(value_of(kind.api_version)), kind.name, kind.platform) for kind in project.kinds)
    width = [max(len(row[column]) for row in rows) for column in range(2)]
    return Result(
        ExitCode.OK, "".join(f"{api:<{width[0]}}  {kind:<{width[1]}}  {where}\n" for api, kind, where in rows)
    )


def print_schema(project: ProjectConfig, name: str) -> Result:
    """Print the schema of a kind as the API server uses it."""
    known = {kind.name: kind for kind in project.kinds}
    kind = next((kind for word, kind in known.items() if word.lower() == name.lower()), None)
    if kind is None:
        return error_result(ExitCode.NOTHING_TO_DO, f"there is no kind `{name}`{did_you_mean(name, list(known))}")
    group, version = str(value_of(kind.api_version)).split("/")
    schema = layout.read_schema(project.root, f"{group}/{kind.name.lower()}_{version}.json")
    if schema is None:
        return error_result(
            ExitCode.NOTHING_TO_DO, f"`{kind.name}` has no schema; describe its `spec` and run `jobgen schema build`"
        )
    if schema.file.finding:
        return error_result(
            ExitCode.INTERNAL_ERROR, f"the schema `{schema.file.path}` cannot be used: {schema.file.finding.message}"
        )
    return Result(ExitCode.OK, schema.file.content.decode("utf-8", "surrogateescape"))
