"""A message is written for readers: no stage reads back what another one has put into words."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from moduletrees import parse_module

ROOT = Path(__file__).parent.parent / "jobgen"
MODULES = {path.relative_to(ROOT).with_suffix("").as_posix(): path for path in ROOT.rglob("*.py")}
OF_SHELL = ("features/launch/script_slips",)
READING = frozenset("findall finditer fullmatch len match replace_words search values_at_fault values_of".split())
"""Functions that take a text apart, or look for something in it."""
ASKING = frozenset("has_word is_due_to mentions".split())
"""Methods that look for something in a message."""
PARTS = frozenset("message_numbers reword wrong_values".split())
"""Properties and methods that take a message apart, or replace words of it."""
TEXTS = ("message", "sentence", "without_advice")
"""What a reader reads: to become a part of another sentence is all that may happen to it."""
OF_SENTENCES = ("advice_of", "fault_of", "values_at_fault", "values_of")
WORDS = (*TEXTS, *ASKING, *PARTS)
EXCEPTIONS = {
    "model/finding": "defines what tells two findings apart, and how a sentence marks its values and its advice",
    # Texts of other programs and of users.
    "check/cel/__init__": "the CEL library names the reason of a failure in words only",
    "check/cel/engine": "the same",
    "check/cel/values": "the same",
    "check/policy/evaluator": "the same",
    "check/schema/cel_rules": "the same",
    "check/validation/devices": "the same",
    "check/policy/eval_context": "the message of a policy is a field that its author writes",
    "check/policy/expectations": "a test of a policy states the message that it expects",
    "cli/wrong_arguments": "Click names the unknown command in words only",
    "features/kueue/answers": "Kueue's conditions have these messages, and are compared with those of the cluster",
    "features/kueue/assignment": "the same",
    "features/kueue/cycle": "the same",
    "features/kueue/obstacles": "the same",
    # What tells two of them apart.
    "features/launch/values": "two faults of a launch, as `Finding.key` does two findings",
    # Messages are changed as texts.
    "rendering/file_secrets": "a secret is hidden in whatever words it is",
    "rendering/redact": "the same",
    "reports/members": "the value of a variable is replaced in whatever words it is",
    # Printing.
    "features/page/report": "prints a table of findings",
    "features/testing/job_tests": "prints failures that are the same in several environments once",
    "reports/formats/github": "prints",
    "reports/formats/sarif": "prints",
    # The words of the author of a policy: what it demands is in no other place.
    "rendering/mended_jobs": "a fault of a field that a policy names is no second one",
    "reports/consequences": "the same",
    # Words of a message are replaced: those for a spec, for kustomize.
    "features/launch/report": "the words for a job that is rendered from a spec",
    "features/launch/scripts": "the same",
    "model/placed": "the text of the file in place of what YAML reads",
    "rendering/read_jobs": "kustomize refuses what Kubernetes does not",
    "reports/duplicates": "the objects that a finding stands for are counted",
    # Values of a message that its finding has in no field yet.
    "api/since": "values and numbers tell if a fault became worse",
    "features/editor/list_offers": "an offer is not what is refused",
    "reports/placeholders": "the placeholder that is not filled in",
}
"""The modules that read a message, each with the reason."""


def list_reads(tree: ast.Module) -> Iterator[int]:
    """Yield the lines that take a message as data: one is compared, is part of a key, or one of its methods is called.

    What is printed, or becomes a part of another message, is in a formatted text, in a list, or an argument.
    """
    nodes = list(ast.walk(tree))
    yielded = {id(node.value) for node in nodes if isinstance(node, ast.Yield)}
    for node in nodes:
        if id(node) not in yielded:
            yield from (part.lineno for part in list_operands(node) if is_message(part))
        if isinstance(node, ast.Attribute) and node.attr in ASKING | PARTS:
            yield node.lineno


def list_operands(node: ast.AST) -> list[ast.expr | None]:
    """Return the parts of an expression that it takes as data."""
    match node:
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
        case ast.Call(func=ast.Attribute(value=value)) if is_message(value):
            return [value]
        case ast.Call(func=(ast.Name(id=name) | ast.Attribute(attr=name)), args=arguments) if name in READING:
            return [*arguments]
        case ast.comprehension(ifs=parts):
            return [*parts]
        case ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.BoolOp(values=parts) | ast.Dict(keys=parts):
            return [*parts]
    return [getattr(node, field, None) for field in FIELDS.get(type(node), ())]


FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.DictComp: ("key",),
    ast.If: ("test",),
    ast.IfExp: ("test",),
    ast.Lambda: ("body",),
    ast.Subscript: ("value", "slice"),
    ast.UnaryOp: ("operand",),
    ast.While: ("test",),
}


def is_message(node: ast.expr | None) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in OF_SENTENCES:
        return True
    return isinstance(node, ast.Attribute) and node.attr in TEXTS


def list_lines(path: Path) -> list[int]:
    # Most modules have none of the words, and need no tree.
    words = path.read_text("utf-8")
    return sorted(set(list_reads(parse_module(path)))) if any(f".{each}" in words for each in WORDS) else []


def test_no_message_is_read():
    found = {module: lines for module, path in MODULES.items() if (lines := list_lines(path))}
    # A part of a shell command is quoted, too.
    found = {module: lines for module, lines in found.items() if "/shell/" not in module and module not in OF_SHELL}

    assert {module: lines for module, lines in found.items() if module not in EXCEPTIONS} == {}
    assert EXCEPTIONS.keys() - found.keys() == set()


def test_reads_are_found():
    """Each form of a read is noticed, and what prints a message is none."""
    reads = "a.message == b", "len(a.message)", "a.message.split()", "{a.message: 1}", "a.has_word(b)", "a.message[0]"
    reads = (*reads, "b in a.wrong_values", "fault_of(a.b) == c", "a.reword(b, c)")
    others = "f'{a.message}'", "print(a.message)", "[a.message]"

    assert [text for text in reads if not [*list_reads(ast.parse(text))]] == []
    assert [text for text in others if [*list_reads(ast.parse(text))]] == []
