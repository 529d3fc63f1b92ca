"""Build what a run needs of the shipped files, ready to use: jobgen/data/ready/.

    python tools/build_ready.py

Run it after a change of a shipped kind or policy, of the arguments of a rule, or of the code that compiles CEL;
`tests/test_ready.py` says when.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jobgen.check import rules
from jobgen.check.cel import check_expression, describe_expression
from jobgen.check.cel.link import link
from jobgen.check.cel.protobuf import fields, written
from jobgen.check.cel.shared import NAMES
from jobgen.check.cel.together import describe_program, list_groups
from jobgen.check.policy import ClusterFacts, PolicyEvaluator
from jobgen.pipeline.load_policies import load_policies
from jobgen.render import config
from jobgen.repo import layout, ready
from jobgen.repo.files import File, FileEntry, read_file
from jobgen.repo.shipped import PACKS_FOLDER
from jobgen.spec.frameworks import collect_frameworks

HOME = Path(__file__).parent.parent
# Where a checked expression has mappings: references and types by node; positions and macros in the source.
_MAPS: dict[int, Any] = {2: {0: (2, 3), 5: {0: (4, 5)}}}


def build() -> dict[str, str]:
    """The text of each file, by its name."""
    policies = _read_policies()
    packs = [file for file in policies if file.path.startswith(PACKS_FOLDER)]
    others = [*layout.read_own_kinds(HOME), *(file for file in policies if file not in packs)]
    return {
        ready.DOCUMENTS: _format(dict(map(_read_documents, others))),
        ready.PACKS: _format(dict(map(_read_documents, packs))),
        ready.EXPRESSIONS: _format(dict(_list_expressions())),
        ready.FRAMEWORKS: _format(_collect_frameworks()),
        ready.RULES: _format(_list_rules()),
    }


def _format(entries: dict[str, Any]) -> str:
    """One line for each entry, in the order of the keys, so that the same entries are the same bytes."""
    lines = (f"{json.dumps(key)}: {json.dumps(entries[key], ensure_ascii=False)}" for key in sorted(entries))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _read_documents(file: File) -> tuple[str, list[Any]]:
    """The documents of a file of kinds or policies, with the digest of its content."""
    findings: list[Any] = []
    if file.path.startswith("schemas/"):
        documents = config.read_valid_documents(file, "kind", findings)
    else:
        documents = [document.data for document in config.read_documents(file, findings).documents]
    if findings:
        raise SystemExit(f"{file.path}: {findings[0].message}")
    return ready.make_digest([file.content]), documents


def _collect_frameworks() -> dict[str, Any]:
    """The frameworks of a repository without kinds of its own."""
    with TemporaryDirectory() as elsewhere:
        contents = [file.content for file in layout.read_kinds(Path(elsewhere))]
        return {ready.make_digest(contents): collect_frameworks(config.load(Path(elsewhere)).kinds)}


def _list_rules() -> dict[str, Any]:
    """The attributes of each rule, by its module."""
    return {
        rule.check.__module__: [rule.severity.value, rule.scope, rule.fields, rule.kinds]
        for rule in rules.import_rules()
    }


def _read_policies() -> list[File]:
    """The shipped policies and those of all packs."""
    paths = sorted(path.relative_to(HOME) for path in (HOME / "policies").rglob("*.yaml"))
    return [read_file(FileEntry(str(path), str(HOME / path))) for path in paths if path.parts[1] != "tests"]


def _list_expressions() -> Iterator[tuple[str, str]]:
    """The compiled expressions of the policies that are always on, by the digest of what they are made from."""
    with TemporaryDirectory() as elsewhere:
        project, policies = config.load(Path(elsewhere)), load_policies(Path(elsewhere)).policies
    kinds = [(str(kind.api_version), kind) for kind in project.kinds]
    plurals = {(api_version.partition("/")[0], kind.name): kind.plural for api_version, kind in kinds}
    evaluator = PolicyEvaluator(policies, ClusterFacts(plurals=plurals))
    objects = [{"apiVersion": api_version, "kind": kind.name, "metadata": {"name": "a"}} for api_version, kind in kinds]
    together = {each for obj in objects for each in evaluator.list_expressions(obj)}
    expressions = [expression for policy, _ in policies.policies for expression in policy.expressions]
    alone = {found for each in expressions if (found := each.share(is_ordered=each.returns != "bool"))}
    groups = {(group, True) for each in together for group in list_groups(each)} | {((each,), False) for each in alone}
    for group, is_verdict in groups:
        linked = link(group, is_verdict=is_verdict)
        yield ready.make_digest(describe_program(group, is_verdict=is_verdict)), b64encode(linked).decode()
    texts = {(each.inlined, each.returns) for each in expressions}
    variables = [value for policy, _ in policies.policies for value in policy.variables.values()]
    shared = [value.share(is_ordered=is_ordered) for value in variables for is_ordered in (False, True)]
    texts |= {(each.text, each.returns) for each in shared if each}
    for text, returns in sorted(texts):
        checked = check_expression(text, NAMES, returns)
        # One that the engine cannot run is rare, and none is shipped.
        if isinstance(checked, bytes) and b":interpreted:" not in checked[:40]:
            size, _, tree = checked.partition(b":")
            ordered = b"%b:%b" % (size, _order_entries(tree, _MAPS))
            yield ready.make_digest(describe_expression(text, NAMES, returns)), b64encode(ordered).decode()


def _order_entries(message: bytes, inside: dict[int, Any]) -> bytes:
    """A message with its fields in order: the engine writes the entries of a mapping in any order."""
    found = []
    for number, value in fields(message):
        assert isinstance(value, bytes), "the outer messages have no numbers"
        found.append((number, _order_entries(value, inside[number]) if number in inside else value))
    # Other fields than the entries of mappings keep their order, because the sort is stable.
    found.sort(key=lambda field: (field[0], field[1] if field[0] in inside.get(0, ()) else b""))
    return b"".join(written(number, value) for number, value in found)


def main() -> None:
    """Write the files."""
    ready.FOLDER.mkdir(exist_ok=True)
    for name, text in build().items():
        (ready.FOLDER / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
