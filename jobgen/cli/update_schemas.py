"""Rebuild the schemas of a repository from folders of CustomResourceDefinitions."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from jobgen.check.schema.build import convert_crd
from jobgen.check.schema.crd_history import Release, build_files, format_file, parse_release_name
from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.cli.write_files import write_files
from jobgen.model.finding import Finding, pluralize
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.render import config
from jobgen.render.build import split_list
from jobgen.repo import layout
from jobgen.repo.files import read_file
from jobgen.repo.walk import walk_folder
from jobgen.report.summary import format_findings
from jobgen.schema.history import RecurringSchemaError
from jobgen.spec.kinds import parse_version

_NAME = lazy_pattern(r"schemas/(?:crds/|foreign/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[a-z0-9]+_[a-z0-9]+\.json")
_ENDINGS = (".yaml", ".yml", ".json")


class _Folder(NamedTuple):
    """The CRDs of a folder, and the operator and release that its name states."""

    operator: str
    release: str
    crds: Sequence[Any]


def update_schemas(root: Path, folders: Sequence[str], directory: Path, *, check: bool) -> Result:
    """Write the schemas that differ from the CRDs of the folders, or list them; a jobs repository gets no new kinds."""
    findings: list[Finding] = []
    found = [_read_folder(directory, folder, findings) for folder in folders]
    is_clone = _is_clone(root)
    unnamed = [name for name, folder in zip(folders, found, strict=True) if is_clone and not folder.operator]
    if unnamed:
        return error_result(ExitCode.USAGE, f"`{unnamed[0]}` names no release; name it `<operator>-<release>`")
    if findings:
        return error_result(ExitCode.ERRORS, "nothing was written", format_findings(findings))
    if not any(folder.crds for folder in found):
        return error_result(ExitCode.NOTHING_TO_DO, "the folders have no CustomResourceDefinition")
    try:
        wanted = dict(_build_shipped(root, found) if is_clone else _build_imported(found))
    except (KeyError, TypeError, AttributeError, ValueError):
        return error_result(ExitCode.ERRORS, "a file is not a CustomResourceDefinition of apiextensions.k8s.io/v1")
    except RecurringSchemaError as error:
        return error_result(ExitCode.ERRORS, f"a release removes a field that a later one has: {error}; omit a release")
    invalid = [name for name in wanted if not _NAME.fullmatch(name)]
    if invalid:
        return error_result(ExitCode.ERRORS, f"`{invalid[0]}` is not a valid schema name; nothing was written")
    own = wanted.keys() if is_clone else set(_list_imported(root))
    return _write(root, {name: text for name, text in wanted.items() if name in own}, own - wanted.keys(), check=check)


def _is_clone(root: Path) -> bool:
    """Return True for a checkout of jobgen itself, whose schemas have all releases in one file."""
    return (root / "schemas" / "operators.json").is_file()


def _read_folder(directory: Path, folder: str, findings: list[Finding]) -> _Folder:
    full = os.path.realpath(directory / folder)
    operator, release = parse_release_name(Path(full).name)
    crds: list[Any] = []
    for entry in walk_folder(full, folder, _ENDINGS, os.path.join(full, "")):
        documents = config.read_documents(read_file(entry), findings).documents
        crds += [data for document in documents for data in split_list(document.data) if _is_crd(data)]
    return _Folder(operator, release, crds)


def _is_crd(data: Any) -> bool:
    return isinstance(data, dict) and (data.get("kind") == "CustomResourceDefinition" or "openAPIV3Schema" in data)


def _build_shipped(root: Path, folders: Sequence[_Folder]) -> Iterator[tuple[str, str]]:
    """The files with all releases of the kinds of the folders that name an operator and a release."""
    running = json.loads((root / "schemas" / "operators.json").read_bytes())
    releases = (Release(*folder) for folder in folders if folder.operator)
    for name, content in build_files(releases, running):
        yield f"schemas/{name}", format_file(content)


def _build_imported(folders: Sequence[_Folder]) -> Iterator[tuple[str, str]]:
    """The files of `jobgen schema import`; of several releases of an operator, the newest counts."""
    for folder in sorted(folders, key=lambda folder: parse_version(folder.release)):
        for crd in folder.crds:
            for name, schema in convert_crd(crd):
                yield f"schemas/{name}", json.dumps(schema, indent=1, sort_keys=True) + "\n"


def _list_imported(root: Path) -> Iterator[str]:
    """The schemas of a jobs repository, without those of its kind descriptions, which `jobgen schema build` writes."""
    described = {file.path.rpartition(".")[0] for file in layout.read_own_kinds(root)}
    for _, file in layout.read_own_schemas(root):
        if file.path.rpartition(".")[0] not in described:
            yield file.path


def _write(root: Path, wanted: dict[str, str], missing: Collection[str], *, check: bool) -> Result:
    """Write the files that differ, and list them and those that no CRD of the folders describes."""
    stale = {name: text for name, text in sorted(wanted.items()) if not _is_current(root / name, text)}
    notes = "".join(f"{name}: the folders have no CRD of this kind\n" for name in sorted(missing))
    if check:
        listed = "".join(f"{name}: out of date\n" for name in stale)
        if stale:
            return error_result(ExitCode.ERRORS, "run `jobgen schema update` with these folders", listed + notes)
        return Result(ExitCode.OK, err=notes)
    error = write_files({root / name: text for name, text in stale.items()}, root)
    if error:
        return error
    listed = "".join(f"{name}: updated\n" for name in stale)
    counted = f"{pluralize(len(wanted), 'file')}: {len(stale)} written, {len(wanted) - len(stale)} unchanged\n"
    return Result(ExitCode.OK, err=listed + notes + counted)


def _is_current(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()
