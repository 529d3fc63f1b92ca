"""Completion knows jobgen's own formats completely, and what it writes keeps a file as it was."""

import json
from pathlib import Path

import pytest
from completioncases import ask, ask_at, load_known
from sampling import sample

from jobgen.model.data import TracedKey, TracedScalar, value_of
from jobgen.rendering.config import complete_schemas, find_errors
from jobgen.yamlio.read import read

ROOT = Path(__file__).parent.parent
FILES = {"trainingjob": "jobs/a.yaml", "overlay": "overlays/a/overlay.yaml", "settings": "jobgen.yaml"}
FILES |= {"kind": "schemas/example.com/a.yaml", "team": "teams/a.yaml", "jobtests": "tests/a.yaml"}
HEADS = {"trainingjob": {"apiVersion": "jobgen.dev/v1", "kind": "TrainingJob"}}
for name, kind in (("overlay", "Overlay"), ("team", "Team"), ("jobtests", "JobTests")):
    HEADS[name] = {"apiVersion": "jobgen.dev/v1", "kind": kind}


@pytest.fixture(scope="module")
def known():
    return load_known(ROOT)


class Walker:
    """Lists the fields and values of a schema, without the code of completion."""

    def __init__(self, schemas):
        self.schemas = schemas
        self.seen = set()

    def options(self, node, file):
        if "$ref" in node:
            where, _, pointer = node["$ref"].partition("#")
            target = self.schemas[where or file]
            for step in pointer.split("/")[1:]:
                target = target[step]
            yield from self.options(target, where or file)
        elif "anyOf" in node:
            for option in node["anyOf"]:
                yield from self.options(option, file)
        else:
            yield node, file

    def walk(self, forms, path=()):
        """Yield each path with the names of its fields and its values; what several fields share, once."""
        fields = {name for node, _ in forms for name in node.get("properties", ())}
        values = {value for node, _ in forms for value in node.get("enum", ()) if isinstance(value, str)}
        yield path, fields, values
        ids = tuple(id(node) for node, _ in forms)
        if ids in self.seen:
            return
        self.seen.add(ids)
        for node, file in forms:
            for name, child in node.get("properties", {}).items():
                yield from self.walk(list(self.options(child, file)), (*path, name))
            if isinstance(node.get("additionalProperties"), dict):
                below = list(self.options(node["additionalProperties"], file))
                yield from self.walk(below, (*path, "some-name"))
            if isinstance(node.get("items"), dict):
                yield from self.walk(list(self.options(node["items"], file)), (*path, 0))


def write_marked(name, path, end):
    """A document in block style that ends in a path."""
    head = {key: value for key, value in HEADS.get(name, {}).items() if path[:1] != (key,)}
    lines, indent = [f"{key}: {value}" for key, value in head.items()], 0
    dash = ""
    for step in path:
        if step == 0:
            dash += "- "
        else:
            lines.append(f"{' ' * indent}{dash}{json.dumps(step) if step[:1] == '$' else step}:")
            indent += len(dash) + 2
            dash = ""
    if end == "value":
        return "\n".join([*lines[:-1], f"{lines[-1]} █"] if not dash else [*lines, f"{' ' * indent}{dash}█"])
    return "\n".join([*lines, f"{' ' * indent}{dash}█", ""])


@pytest.mark.parametrize("name", FILES)
def test_every_field_and_value_of_the_format_is_offered(known, name):
    walker = Walker(complete_schemas(known.frameworks))
    file = f"{name}_v1.json"
    fields_asked = values_asked = 0
    for path, fields, values in walker.walk([(walker.schemas[file], file)]):
        if fields:
            fields_asked += len(fields)
            taken = set(HEADS.get(name, ())) if not path else set()
            labels = ask(known, write_marked(name, path, "key"), FILES[name]).labels
            assert fields - taken <= set(labels), path
            assert len(labels) == len(set(labels)), path
        if values:
            values_asked += len(values)
            labels = ask(known, write_marked(name, path, "value"), FILES[name]).labels
            assert values <= set(labels), path
    assert fields_asked >= 15
    assert values_asked >= 5


def list_good_files():
    starter = ROOT / "jobgen/data/starter"
    yield from (("trainingjob", path) for path in sorted((starter / "jobs").glob("*.yaml")))
    yield from (("overlay", path) for path in sorted((starter / "overlays").glob("*.yaml")))
    yield from (("trainingjob", path) for path in sorted((ROOT / "jobs").rglob("*.yaml")))
    yield from (("overlay", path) for path in sorted((ROOT / "overlays").rglob("*.yaml")))
    yield "settings", ROOT / "jobgen.yaml"
    yield "kind", ROOT / "schemas/kubeflow.org/xgboostjob_v1.yaml"
    yield "kind", ROOT / "schemas/batch.tensorstack.dev/genericjob_v1beta1.yaml"


GOOD = [(name, str(path.relative_to(ROOT))) for name, path in list_good_files()]


def list_nodes(tree, path=()):
    """Yield the keys and scalars of a document with their paths, and a function that sets each of them."""
    if isinstance(tree, dict):
        for key, child in list(tree.items()):
            yield (*path, key), key
            yield from list_nodes(child, (*path, key))
    elif isinstance(tree, list):
        for index, child in enumerate(tree):
            yield from list_nodes(child, (*path, index))
    elif isinstance(tree, TracedScalar):
        yield path, tree


def offsets(text):
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts


def span(text, location):
    starts = offsets(text)
    begin = starts[location.line - 1] + location.column - 1
    return begin, starts[location.end_line - 1] + location.end_column - 1


def is_checked(text, name, known, starts):
    """Return True if the format itself reports the wrong word in a text, with a message that has one of some parts."""
    source = read(text.encode(), "a.yaml", traced=True)
    messages = [
        str(problem.sentence) for each in source.documents for problem in find_errors(each.data, name, known.frameworks)
    ]
    return any("`zzz`" in message and part in message for message in messages for part in starts)


@pytest.mark.parametrize(("name", "path"), sample(GOOD, 3))
def test_a_key_or_value_that_is_typed_again_gives_the_same_file(known, name, path):
    text = (ROOT / path).read_text("utf-8")
    documents = read(text.encode(), path, traced=True).documents
    own = [each for each in documents if name != "trainingjob" or value_of(each.data.get("kind")) == "TrainingJob"]
    asked = 0
    for document in own:
        for steps, node in list_nodes(document.data):
            begin, end = span(text, node.location)
            written = text[begin:end]
            if not written or "\n" in written or written[0] in "|>&*!":
                continue
            is_key = isinstance(node, TracedKey)
            wrong = text[:begin] + "zzz" + text[end:]
            # A key that is not known, a value that is not in a list, or a text in the place of true and false.
            parts = ("`zzz` is not a field",) if is_key else ("must be `", "must be true or false")
            if not is_checked(wrong, name, known, parts):
                continue
            label = str(node) if is_key else written.strip("\"'")
            for typed in {written[:1] if written[0] not in "\"'" else written, *(() if is_key else ("",))}:
                half = text[:begin] + typed + text[end:]
                answer = ask_at(known, half, begin + len(typed), FILES[name])
                assert label in answer.labels, (steps, typed)
                accepted = answer.accept(label)
                assert read(accepted.encode(), path).documents == read(text.encode(), path).documents, (steps, typed)
                asked += 1
            if is_key:
                _check_removed_entry(known, text, begin, str(node), FILES[name])
    assert asked >= len(own)


def _check_removed_entry(known, text, begin, label, file):
    """On the empty line that a removed entry leaves, its key is offered."""
    start = text.rfind("\n", 0, begin) + 1
    indent = text[start:begin]
    if indent.strip():
        return
    lines = text[begin:].split("\n")
    below = next(
        (index for index, line in enumerate(lines[1:], 1) if line.strip() and not line.startswith(f"{indent} ")),
        len(lines),
    )
    left = text[:begin] + "\n" + "\n".join(lines[below:])
    if any(line.startswith(f"{indent}-") for line in lines[below : below + 1]):
        return
    assert label in ask_at(known, left, begin, file).labels


def test_fields_of_manifests_that_are_typed_again_give_the_same_file(known):
    asked, missing = 0, []
    for path in sorted((ROOT / "tests/seeds").glob("*.yaml")):
        text = path.read_text("utf-8")
        for document in read(text.encode(), path.name, traced=True).documents:
            for steps, key in list_nodes(document.data):
                if isinstance(key, TracedKey):
                    begin, end = span(text, key.location)
                    answer = ask_at(known, text[:begin] + text[begin] + text[end:], begin + 1, f"jobs/{path.name}")
                    asked += 1
                    if str(key) not in answer.labels:
                        missing.append(steps[-2:])
                    else:
                        assert answer.accept(str(key)) == text, (path.name, steps)
    assert asked > 200
    # The names of resources of a device plugin are not fields.
    assert {steps[0] for steps in missing} <= {"limits", "requests"}
    assert len(missing) <= 2
