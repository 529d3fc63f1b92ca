"""Jobgen's own formats: checks agree with a JSON Schema validator, and have clear messages."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from placedproblems import resolve
from referencing import Registry, Resource
from sampling import laws
from transcripts import find_transcripts, read_transcript

from jobgen.model.suggest import did_you_mean
from jobgen.rendering.config import compile_format, complete_schemas, load_frameworks
from jobgen.rendering.locate import locate
from jobgen.repo.layout import own_layers
from jobgen.schema.own_formats import compile_schema
from jobgen.yamlio.read import read
from jobgen.yamlio.write import to_yaml

ROOT = Path(__file__).parent.parent
FRAMEWORKS = load_frameworks(own_layers(ROOT))
SCHEMAS = complete_schemas(FRAMEWORKS)
REGISTRY = Registry().with_resources((name, Resource.from_contents(schema)) for name, schema in SCHEMAS.items())
FORMATS = ["jobtests", "kind", "overlay", "settings", "team", "trainingjob"]
VALIDATORS = {name: Draft202012Validator(SCHEMAS[f"{name}_v1.json"], registry=REGISTRY) for name in FORMATS}
FILES = {
    "kind": sorted((ROOT / "schemas").glob("*/*.yaml")),
    "overlay": sorted((ROOT / "overlays").rglob("*.yaml")),
    "settings": [ROOT / "jobgen.yaml"],
    "trainingjob": sorted((ROOT / "jobs").rglob("*.yaml")),
}
PAGES = {"jobtests": ROOT / "docs/tests.md", "team": ROOT / "docs/teams.md"}
"""Formats of which this repository has no files: the first example of their page is one."""
GOOD = [
    (name, document.data)
    for name, contents in {
        **{name: [path.read_bytes() for path in paths] for name, paths in FILES.items()},
        **{name: [page.read_bytes().split(b"```")[1].removeprefix(b"yaml")] for name, page in PAGES.items()},
    }.items()
    for content in contents
    for document in read(content, name).documents
    if name != "trainingjob" or document.data["kind"] == "TrainingJob"
]
# What the compiler reads, and what it may pass over because it judges nothing.
KEYWORDS = set(
    """$ref anyOf enum type properties additionalProperties required minProperties items minItems maxItems pattern
    minLength maxLength minimum maximum x-must title $schema $id $defs description examples default""".split()
)


def faults(document, name):
    """The problems that the compiled schema alone finds."""
    problems = []
    compile_format(name, FRAMEWORKS)(document, name, None, problems)
    return list(map(resolve, problems))


@pytest.mark.parametrize("name", FORMATS)
def test_format_schemas_are_json_schemas(name):
    Draft202012Validator.check_schema(SCHEMAS[f"{name}_v1.json"])

    assert SCHEMAS[f"{name}_v1.json"]["$id"] == f"{name}_v1.json"


@pytest.mark.parametrize("name", FORMATS)
def test_schema_compiler_knows_every_keyword_in_use(name):
    for node in nodes(SCHEMAS[f"{name}_v1.json"]):
        assert set(node) <= KEYWORDS
        # The compiler ignores other keywords beside these.
        if node.keys() & {"$ref", "anyOf", "enum"}:
            assert len(node.keys() - {"description", "examples", "default", "title"}) == 1


def properties(schema, file, pointer=""):
    """Every property within a schema, and its pointer; it also has what its reference leads to."""
    for key in ("properties", "$defs"):
        for name, node in schema.get(key, {}).items():
            here = f"{pointer}/{key}/{name}"
            if key == "properties":
                yield here, follow(file, here)
            yield from properties(node, file, here)
    for number, node in enumerate(schema.get("anyOf", [])):
        yield from properties(node, file, f"{pointer}/anyOf/{number}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from properties(schema[key], file, f"{pointer}/{key}")


def follow(file, pointer):
    node = SCHEMAS[file]
    for step in pointer.split("/")[1:]:
        node = node[int(step) if isinstance(node, list) else step]
    where, _, below = node.get("$ref", "").partition("#")
    return {**follow(where or file, below), **node} if "$ref" in node else node


@pytest.mark.parametrize("name", FORMATS)
def test_every_property_has_a_description_and_examples_for_editors(name):
    file = f"{name}_v1.json"
    found = list(properties(SCHEMAS[file], file))

    assert [path for path, node in found if not node.get("description", "").endswith(".")] == []
    assert [path for path, node in found if not node.get("examples")] == []


@pytest.mark.parametrize("name", FORMATS)
def test_examples_and_defaults_are_valid(name):
    file = f"{name}_v1.json"
    for pointer, node in properties(SCHEMAS[file], file):
        validator = Draft202012Validator({"$ref": f"{file}#{pointer}"}, registry=REGISTRY)
        for value in [*node.get("examples", ()), *([node["default"]] if "default" in node else ())]:
            assert [error.message for error in validator.iter_errors(value)] == [], pointer


def test_roles_and_resources_complete():
    fields = SCHEMAS["trainingjob_v1.json"]["$defs"]["fields"]["properties"]

    assert {"cpu", "memory", "gpu", "ephemeral-storage"} <= set(fields["resources"]["properties"])
    assert {"master", "worker", "launcher", "ps", "chief"} <= set(fields["roles"]["properties"])


def nodes(schema):
    """Every schema within a schema."""
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", [])]
    inner += [schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)]
    for node in inner:
        yield from nodes(node)


def test_files_of_this_repository_are_valid():
    assert {name for name, _ in GOOD} == set(FORMATS)
    for name, document in GOOD:
        VALIDATORS[name].validate(document)
        assert faults(document, name) == []


WORDS = [
    "",
    "x",
    "Not A Name",
    "a" * 300,
    "1.8",
    "pytorch",
    "4Gi",
    "kubeflow",
    "Always",
    "done",
    "hash",
    "prod",
    "argocd",
]
LEAVES = st.sampled_from([None, True, False, 0, 1, -1, 7, 10**6, 1.5, *WORDS])
VALUES = (
    LEAVES
    | st.lists(LEAVES, max_size=2)
    | st.dictionaries(st.sampled_from(["x", "name", "image", "gpu"]), LEAVES, max_size=2)
)
FIELDS = sorted({key for schema in SCHEMAS.values() for node in nodes(schema) for key in node.get("properties", ())})


@st.composite
def mutations(draw):
    """A good document with a few fields replaced, added, taken out or renamed."""
    name, document = draw(st.sampled_from(GOOD))
    document = deepcopy(document)
    for _ in range(draw(st.integers(1, 2))):
        mutate(draw, draw(st.sampled_from(list(containers(document)))))
    return name, document


def containers(node):
    if isinstance(node, (dict, list)):
        yield node
        for child in node.values() if isinstance(node, dict) else node:
            yield from containers(child)


def mutate(draw, node):
    fresh = draw(VALUES)
    if isinstance(node, list):
        node.insert(draw(st.integers(0, len(node))), fresh)
        return
    key = draw(st.sampled_from(sorted(node))) if node else "x"
    match draw(st.sampled_from(["replace", "replace", "add", "add known", "remove", "rename"])):
        case "replace":
            node[key] = fresh
        case "add":
            node["unknownField"] = fresh
        case "add known":
            node[draw(st.sampled_from(FIELDS))] = fresh
        case "remove":
            node.pop(key, None)
        case _:
            node[key[:-1]] = node.pop(key, None)


@laws(40)
@given(mutations())
def test_checks_agree_with_a_json_schema_validator(mutation):
    name, document = mutation

    assert bool(faults(document, name)) == (not VALIDATORS[name].is_valid(document)), faults(document, name)


@pytest.mark.parametrize("name", FORMATS)
def test_field_limits_match_the_schema(name):
    for node in nodes(SCHEMAS[f"{name}_v1.json"]):
        if node.keys() & {"minimum", "maximum", "minLength", "maxLength", "pattern", "enum"}:
            check, validator = compile_schema("node", {"node": node}), Draft202012Validator(node)
            for value in edges(node):
                problems = []
                check(value, "field", None, problems)

                assert bool(problems) == (not validator.is_valid(value)), (node, value)


def edges(node):
    """Values on both sides of each limit that a schema sets for a scalar."""
    bounds = [node[key] for key in ("minimum", "maximum") if key in node]
    lengths = [node[key] for key in ("minLength", "maxLength") if key in node]
    words = [word for word in node.get("enum", []) if isinstance(word, str)]
    versions = ["1.8", "v1.8.1-rc.1", "1.", "a/v1", "a-b", "a-", "-a", "a.b", "A", "b_c"]
    yield from (bound + step for bound in bounds for step in (-1, -0.5, 0, 0.5, 1))
    yield from ("a" * (length + step) for length in lengths for step in (-1, 0, 1))
    yield from [*words, *(word + "x" for word in words), *versions, *WORDS, None, True, 0, 1.5, [], {}]


@laws(26)
@given(mutations())
def test_traced_documents_have_the_same_errors_with_locations(mutation):
    name, document = mutation
    content = to_yaml(document).encode()
    bare, traced = (read(content, "case.yaml", traced=traced).documents for traced in (False, True))
    ours, theirs = (faults(documents[0].data, name) if documents else [] for documents in (bare, traced))

    assert [problem[:2] for problem in theirs] == [problem[:2] for problem in ours]
    assert all(locate(problem, "case.yaml").location.end_line for problem in theirs if problem.node)


@pytest.mark.parametrize("document", [None, 1, "text", [], {}], ids=repr)
@pytest.mark.parametrize("name", FORMATS)
def test_documents_of_other_types_are_errors(name, document):
    assert bool(faults(document, name)) == (not VALIDATORS[name].is_valid(document))


@pytest.mark.parametrize("path", find_transcripts("schema"), ids=lambda path: path.stem)
def test_schema_transcript(path, accept):
    transcript = read_transcript(path)
    [(name, content)] = transcript.given.items()
    [document] = read(content, name, traced=True).documents
    findings = [locate(problem, name, document.location) for problem in faults(document.data, path.stem)]
    found = "".join(
        f"{found.location.line}:{found.location.column} {found.rule}: {found.message}\n" for found in findings
    )
    output = {"findings": found.encode()} if found else {}
    if accept:
        transcript = transcript.accept([output])

    assert output == transcript.expected


def test_every_format_has_a_transcript():
    assert {path.stem for path in find_transcripts("schema")} == set(FORMATS)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("replcias", "replicas"),
        ("comand", "command"),
        ("nodeselector", "nodeSelector"),
        ("imagePulPolicy", "imagePullPolicy"),
        ("workingdir", "workingDir"),
        ("zzz", None),
    ],
)
def test_unknown_field_suggests_the_nearest(word, meant):
    job = {
        "apiVersion": "jobgen.dev/v1",
        "kind": "TrainingJob",
        "metadata": {"name": "a"},
        "spec": {"framework": "jax"},
    }
    [problem] = faults(job | {"spec": {"framework": "jax", word: None}}, "trainingjob")

    assert problem.rule == "unknown-field"
    assert str(problem.sentence).endswith(f"; did you mean `{meant}`?") == (meant is not None)
    assert (word in str(problem.sentence), "did you mean" in str(problem.sentence)) == (True, meant is not None)


@laws(26)
@given(st.sampled_from([field for field in FIELDS if len(field) > 3]), st.data())
def test_field_with_a_missing_letter_is_recognized(field, data):
    at = data.draw(st.integers(1, len(field) - 1))
    typo = field[:at] + field[at + 1 :]
    if typo not in FIELDS:
        assert did_you_mean(typo, [field, "somethingElse"]) == f"; did you mean `{field}`?"
