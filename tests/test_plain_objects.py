"""A file that is plainly an object is one: no guess about its name or its text says anything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import laws

from jobgen.kustomize.tree import FolderTree
from jobgen.recognize import kustomize_files, not_applied
from jobgen.recognize.plain_objects import is_plain_name, is_plain_text
from jobgen.recognize.tree import FileTree

HEADS = ["apiVersion: v1", "kind: Pod", "kind: Service", "apiVersion: apps/v1", "# comment", "---", "", "- a: 1"]
LINES = [
    *HEADS,
    "metadata: {name: a}",
    "metadata:",
    "  name: a",
    "apiVersion: 2024/x",
    '"apiVersion": kpt/1',
    "apiVersion: program",
    "kind: a/b",
    "kind: Template",
    "kind: 'Template'",
    "objects: []",
    "$patch: delete",
    "  - $retainKeys: [a]",
    "a: {{ b }}",
    "{% if a %}",
    "$BLOCK",
    "  ${BLOCK}",
    "<% a %>",
    "%a",
    "a: 25%",
    "a: $(B) $b",
    "a: $glob:b",
    "a: $ignore",
    "a: FILLED by the operator",
    "# filled in by an operator",
    "name: spark-kubernetes-driver",
    "{a: 1}",
    "\ufeffa: 1",
]
WORDS = """job web patch patches assert errors error golden expected snap snapshot 01 chainsaw template tmpl tpl j2
gotmpl {{x}} clusterserviceversion kustomization""".split()
NAMES = st.builds(
    lambda parts, ends: "".join(f"{part}{end}" for part, end in zip(parts, ends, strict=False)) + "yaml",
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
    st.lists(st.sampled_from("-_."), min_size=3, max_size=3).map(lambda ends: [*ends, "."]),
)
TEXTS = st.builds(
    lambda before, after: "\n".join((*before, "apiVersion: v1", "metadata: {name: b}", *after, "")),
    st.lists(st.sampled_from(HEADS), max_size=2),
    st.lists(st.sampled_from(LINES), max_size=5),
)


def list_guesses(path: str, content: bytes) -> list[object]:
    """Everything that is guessed about a file beside a kustomization."""
    tree = FileTree(FolderTree(Path(__file__).parent / "no such folder"), [path])
    guesses = [
        not_applied.recognize_by_path(path),
        not_applied.recognize_list(path, content, is_found=True),
        kustomize_files.recognize_fragment(path, content, frozenset(("",)), tree),
        not_applied.recognize_template(path, content),
        not_applied.recognize_by_content(content),
        not_applied.recognize_bundle(path, tree),
        not_applied.recognize_asset(path, content, tree),
        not_applied.recognize_config(path, content),
    ]
    return [guess for guess in guesses if guess]


@given(TEXTS)
@laws(300)
def test_nothing_is_guessed_about_a_plain_text(text: str) -> None:
    content = text.encode()

    assert not (is_plain_text(content) and list_guesses("object.yaml", content))


@given(NAMES)
@laws(300)
def test_nothing_is_guessed_about_a_plain_name(name: str) -> None:
    assert not (is_plain_name(name) and list_guesses(name, b""))


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n",
        "# a comment\n\n---\nkind: Job\napiVersion: batch/v1\nmetadata:\n  name: a\n",
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a}\nspec: {a: $(RANK) of $SIZE, b: 25%}\n",
        "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: b}\n",
    ],
)
def test_most_objects_are_plain(text: str) -> None:
    assert is_plain_text(text.encode())
    assert is_plain_name("deploy-web.yaml")


@pytest.mark.parametrize(
    "text", ["", "a: 1\n", "- apiVersion: v1\n  metadata: {}\n", '{"apiVersion": "v1", "metadata": {}}']
)
def test_other_texts_are_looked_at(text: str) -> None:
    assert not is_plain_text(text.encode())
