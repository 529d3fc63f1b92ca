"""The CRDs among linted files judge the objects beside them, as an API server with these CRDs does."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linting import lint_paths

import jobgen
from jobgen import cache
from jobgen.check.checker import Checker
from jobgen.check.schema.build import convert_crd
from jobgen.check.schema.tree_definitions import TreeKind
from jobgen.k8s.kinds import NEWEST_RELEASE, read_definition
from jobgen.model.data import Location
from jobgen.repo.layout import own_layers
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.read import read

CASES = Path(__file__).parent / "crd"
DANCE = (CASES / "dance.yaml").read_text()
OBJECTS = read((CASES / "objects.yaml").read_bytes(), "objects.yaml").documents[0].data
SPECS = [*OBJECTS["accepted"], *(spec for specs in OBJECTS["refused"].values() for spec in specs)]
WALTZ = "apiVersion: example.com/v1\nkind: Dance\nmetadata: {name: a}\nspec: {style: waltz%s}\n"
OPEN = "{type: object, x-kubernetes-preserve-unknown-fields: true}"
# What jobgen reports when it cannot judge an object, or when CRDs do.
RULES = frozenset(
    """broken-schema crd-copies-differ kind-without-crd missing-schema old-api-version unknown-field unknown-kind
    wrong-type missing-field invalid-value crd-rule-violated internal-error""".split()
)


def crd(fields: str, *, group: str = "example.com", kind: str = "Dance", versions: str = "v1") -> str:
    """Return a CRD whose versions all have these fields in `spec`; `-v1` is a version that is not served."""
    schema = fields if fields.startswith("{type") else f"{{type: object, properties: {{{fields}}}}}"
    listed = "".join(
        f"\n  - name: {name.removeprefix('-')}\n    served: {str(not name.startswith('-')).lower()}\n"
        f"    storage: {str(number == 0).lower()}\n"
        f"    schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {schema}}}}}}}"
        for number, name in enumerate(versions.split())
    )
    plural = f"{kind.lower()}s"
    return (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
        f"metadata: {{name: {plural}.{group}}}\nspec:\n  group: {group}\n  scope: Namespaced\n"
        f"  names: {{kind: {kind}, plural: {plural}}}\n  versions:{listed}\n"
    )


STYLE, PAIRS = "style: {type: string}", "style: {type: string}, pairs: {type: integer}"


def write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def lint(folder: Path, files: dict[str, str], *paths: str) -> list[tuple[str, int, str, str, str]]:
    """Return the file, line, severity, rule and message of each finding about schemas."""
    write(folder, files)
    findings = json.loads(lint_paths(folder, paths or (".",), (), format_="json").out)["findings"]
    return [
        (found["file"], found["line"], found["severity"], found["rule"], found["message"])
        for found in findings
        if found["rule"] in RULES
    ]


def rules_of(findings: list[tuple[str, int, str, str, str]]) -> list[tuple[str, str, str]]:
    return [(file, severity, rule) for file, _, severity, rule, _ in findings]


@pytest.mark.parametrize("place", ["crd.yaml", "config/crd/bases/dances.yaml"])
def test_object_is_judged_by_the_crd_beside_it(tmp_path, place):
    files = {place: DANCE, "samples/a.yaml": WALTZ % ", pairs: x, beat: 1", "samples/b.yaml": WALTZ % ""}

    assert [(file, line, rule) for file, line, _, rule, _ in lint(tmp_path, files)] == [
        ("samples/a.yaml", 4, "wrong-type"),
        ("samples/a.yaml", 4, "unknown-field"),
    ]


def test_object_without_its_crd_in_the_run_is_not_judged(tmp_path):
    files = {"crd.yaml": DANCE, "a.yaml": WALTZ % ", beat: 1"}

    assert rules_of(lint(tmp_path, files)) == [("a.yaml", "error", "unknown-field")]
    assert rules_of(lint(tmp_path, files, "a.yaml")) == [("a.yaml", "info", "missing-schema")]


def test_crds_of_lists_and_of_json_count(tmp_path):
    data = read(DANCE.encode(), "dance.yaml").documents[0].data
    files = {
        "list.json": json.dumps({"apiVersion": "v1", "kind": "List", "items": [data]}),
        "a.yaml": WALTZ % ", beat: 1",
    }

    assert rules_of(lint(tmp_path, files)) == [("a.yaml", "error", "unknown-field")]


@pytest.mark.parametrize("spec", SPECS, ids=json.dumps)
def test_crd_in_the_tree_and_imported_schema_report_the_same(tmp_path, spec):
    data = read(DANCE.encode(), "dance.yaml").documents[0].data
    for name, schema in convert_crd(data):
        write(tmp_path, {f"schemas/{name}": json.dumps(schema)})
    definition = read_definition(data, Location("crd.yaml"))
    assert definition is not None
    obj = {"apiVersion": "example.com/v1", "kind": "Dance", "metadata": {"name": "a"}, "spec": spec}
    in_tree = Checker(own_layers(Path("/nowhere")), (), Cluster(), find_definitions=lambda _: [definition])

    assert in_tree(obj) == Checker(own_layers(tmp_path), (), Cluster())(obj)


def test_v1beta1_crd_keeps_unknown_fields_unless_it_prunes_them(tmp_path):
    old = (
        "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\n"
        "metadata: {name: dances.example.com}\n"
        "spec:\n  group: example.com\n  version: v1\n  names: {kind: Dance, plural: dances}\n"
        "  validation:\n    openAPIV3Schema:\n"
        "      {type: object, properties: {spec: {type: object, properties: {n: {type: integer}}}}}\n"
    )
    obj = {"a.yaml": "apiVersion: example.com/v1\nkind: Dance\nmetadata: {name: a}\nspec: {n: x, other: 1}\n"}

    kept = [each for each in lint(tmp_path / "kept", {"crd.yaml": old, **obj}) if each[0] == "a.yaml"]
    pruned = lint(tmp_path / "pruned", {"crd.yaml": f"{old}  preserveUnknownFields: false\n", **obj})
    assert rules_of(kept) == [("a.yaml", "error", "wrong-type")]
    assert sorted(rule for file, *_, rule, _ in pruned if file == "a.yaml") == ["unknown-field", "wrong-type"]


@pytest.mark.parametrize("versions", ["v1beta1", "-v1 v1beta1"])
def test_version_that_the_crd_does_not_serve_is_an_error(tmp_path, versions):
    (found,) = lint(tmp_path, {"crds/dance.yaml": crd(STYLE, versions=versions), "a.yaml": WALTZ % ""})

    assert found == (
        "a.yaml",
        1,
        "error",
        "old-api-version",
        "the CRD of `Dance` in `crds/dance.yaml` does not serve `example.com/v1`; use `example.com/v1beta1`",
    )


def test_text_of_several_lines_in_place_of_a_mapping_is_not_repeated(tmp_path):
    text = "apiVersion: example.com/v1\nkind: Dance\nmetadata: {name: a}\nspec:\n  style: |\n    a: 1\n    b: 2\n"
    (found,) = lint(
        tmp_path, {"crd.yaml": crd("style: {type: object, properties: {a: {type: integer}}}"), "a.yaml": text}
    )

    assert found[4] == "`style` is a text of 2 lines, and must be a mapping; write it as YAML, without `|`"


def test_version_that_a_shipped_schema_has_is_no_error(tmp_path):
    old = crd("image: {type: string}", group="ray.io", kind="RayCluster", versions="v1alpha1")
    group = "{groupName: a, replicas: 1, template: {spec: {containers: [{name: a, image: a}]}}}"
    head = "{template: {spec: {containers: [{name: a, image: a}]}}, rayStartParams: {}}"
    obj = "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: a}\n"
    found = lint(
        tmp_path, {"crd.yaml": old, "a.yaml": f"{obj}spec: {{headGroupSpec: {head}, workerGroupSpecs: [{group}]}}\n"}
    )

    assert rules_of(found) == [("a.yaml", "warning", "crd-copies-differ")]
    assert found[0][4].startswith("the CRD of `RayCluster` in `crd.yaml` does not serve `ray.io/v1`; the schema")


def test_crd_in_the_tree_decides_before_a_shipped_schema_unless_it_is_open(tmp_path):
    job = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a}\nspec: {tango: 1}\n"
    closed = crd("tango: {type: integer}", group="kubeflow.org", kind="PyTorchJob")
    minimal = crd(OPEN, group="kubeflow.org", kind="PyTorchJob")

    assert "unknown-field" not in [each[3] for each in lint(tmp_path / "own", {"a.yaml": job, "crd.yaml": closed})]
    assert "unknown-field" in [each[3] for each in lint(tmp_path / "open", {"a.yaml": job, "crd.yaml": minimal})]


def test_declared_release_of_an_operator_decides_before_the_tree():
    definition = read_definition(
        read(crd("tango: {type: integer}", group="ray.io", kind="RayCluster").encode(), "crd.yaml").documents[0].data,
        Location("crd.yaml"),
    )
    assert definition is not None
    obj = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "a"}, "spec": {"tango": 1}}

    def find(cluster: Cluster) -> list[str]:
        checker = Checker(own_layers(Path("/nowhere")), (), cluster, find_definitions=lambda _: [definition])
        return [problem.rule for problem in checker.find_schema_problems(obj)]

    assert find(Cluster()) == []
    assert "unknown-field" in find(Cluster(operators={"kuberay": "1.3.0"}))


def test_copies_that_differ_are_a_warning_if_one_accepts_the_object(tmp_path):
    files = {"old/crd.yaml": crd(STYLE), "new/crd.yaml": crd(PAIRS), "new/a.yaml": WALTZ % ", pairs: 2"}
    (found,) = lint(tmp_path, files)

    assert found[:4] == ("new/a.yaml", 1, "warning", "crd-copies-differ")
    assert found[4] == (
        "the CRD in `old/crd.yaml` refuses this object: `pairs` is not a field of `spec`;"
        " the CRD in `new/crd.yaml` accepts it; update the older CRD"
    )


def test_of_copies_that_all_refuse_the_object_the_nearest_is_named(tmp_path):
    files = {
        "a/crd.yaml": crd("style: {type: string, enum: [tango]}"),
        "b/crd.yaml": crd("style: {type: integer}"),
        "a/samples/x.yaml": WALTZ % "",
        "b/samples/x.yaml": WALTZ % "",
    }

    assert rules_of(lint(tmp_path, files)) == [
        ("a/samples/x.yaml", "error", "invalid-value"),
        ("b/samples/x.yaml", "error", "wrong-type"),
    ]


def test_equal_and_minimal_copies_are_silent(tmp_path):
    files = {"a.yaml": crd(PAIRS), "b.yaml": crd(PAIRS), "minimal.yaml": crd(OPEN), "x.yaml": WALTZ % ", pairs: 1"}

    assert lint(tmp_path, files) == []
    assert rules_of(lint(tmp_path, {"x.yaml": WALTZ % ", beat: 1"})) == [("x.yaml", "error", "unknown-field")]


def test_patch_of_a_crd_defines_nothing(tmp_path):
    patch = (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: dances.example.com}\n"
        "spec: {conversion: {strategy: Webhook}}\n"
    )

    found = lint(tmp_path, {"crd.yaml": crd(STYLE), "patch.yaml": patch, "a.yaml": WALTZ % ""})
    assert [each for each in found if each[0] == "a.yaml"] == []


def test_kind_of_a_group_of_the_tree_without_a_crd(tmp_path):
    files = {"crd.yaml": crd(STYLE), "a.yaml": "apiVersion: example.com/v1\nkind: Danse\nmetadata: {name: a}\n"}
    files["b.yaml"] = files["a.yaml"].replace("Danse", "Orchestra")
    files["c.yaml"] = files["a.yaml"].replace("Danse", "dance")
    files["d.yaml"] = files["a.yaml"].replace("example.com", "example.org")
    found = {file: (line, severity, rule, message) for file, line, severity, rule, message in lint(tmp_path, files)}

    assert [(file, *entry[:3]) for file, entry in found.items()] == [
        ("a.yaml", 2, "warning", "kind-without-crd"),
        ("b.yaml", 2, "warning", "kind-without-crd"),
        ("c.yaml", 2, "warning", "unknown-kind"),
        ("d.yaml", 2, "info", "missing-schema"),
    ]
    assert found["a.yaml"][3].endswith(
        "`Danse` of `example.com`, so its fields were not checked; did you mean `Dance`?"
    )
    assert found["b.yaml"][3].endswith("; add its CRD, or check that the kind still exists")
    assert found["c.yaml"][3] == "`dance` is not a kind: kinds start with a capital letter; write `Dance`"


BROKEN = {
    "pattern": "style: {type: string, pattern: '(('}",
    "type": "style: {type: [1]}",
    "required": "{type: object, required: 3, properties: {style: {type: string}}}",
}


@pytest.mark.parametrize("fields", BROKEN.values(), ids=BROKEN)
def test_crd_that_cannot_be_used_is_reported_once_at_the_crd(tmp_path, fields):
    files = {"crd.yaml": f"---\n{crd(fields)}", "a.yaml": WALTZ % "", "b.yaml": WALTZ % ", pairs: 1"}
    found = [each for each in lint(tmp_path, files) if each[3] in ("broken-schema", "internal-error")]

    assert [(file, rule) for file, _, _, rule, _ in found] == [("crd.yaml", "broken-schema")]
    assert found[0][4].startswith("the schema of `Dance` in this CRD cannot be used: ")


@pytest.mark.parametrize("depth", [30, 150, 3000])
def test_deep_crd_ends_in_a_finding_or_a_check(tmp_path, depth):
    fields = "a: {type: object, properties: {" * depth + "}}" * depth
    found = lint(tmp_path, {"crd.yaml": crd(fields), "a.yaml": WALTZ % ""})

    assert "internal-error" not in {each[3] for each in found}


def test_check_of_a_hostile_crd_has_a_limit_of_steps(tmp_path):
    forms = ", ".join(["{not: {required: [a]}}"] * 500)
    item = f"{{type: object, x-kubernetes-preserve-unknown-fields: true, anyOf: [{forms}, {{required: [b]}}]}}"
    fields = f"style: {{type: string}}, list: {{type: array, items: {item}}}"
    items = ", ".join(["{a: 1, b: 1}"] * 5000)
    found = lint(tmp_path, {"crd.yaml": crd(fields), "a.yaml": WALTZ % f", list: [{items}]"})

    assert ("crd.yaml", "broken-schema") in [(file, rule) for file, _, _, rule, _ in found]


@given(st.lists(st.sampled_from([STYLE, PAIRS, "style: {type: integer}", OPEN]), min_size=1, max_size=5), st.booleans())
def test_an_object_is_refused_only_if_every_closed_copy_refuses_it(copies, has_pairs):
    """The law of copies: an error means that each of them refuses the object, whatever their order and place."""
    documents = [read(crd(fields).encode(), "crd.yaml").documents[0].data for fields in copies]
    definitions = [read_definition(data, Location(f"{number}/crd.yaml")) for number, data in enumerate(documents)]
    kind = TreeKind("example.com/v1", [each for each in definitions if each], NEWEST_RELEASE)
    spec = {"style": "waltz", **({"pairs": 1} if has_pairs else {})}
    obj = {"apiVersion": "example.com/v1", "kind": "Dance", "metadata": {"name": "a"}, "spec": spec}
    closed = [fields for fields in copies if fields != OPEN]
    accepts = [fields == PAIRS or (fields == STYLE and not has_pairs) for fields in closed]

    rules = {problem.rule for problem in kind.check("0/samples", obj)}
    assert rules.isdisjoint(("unknown-field", "wrong-type")) == (not closed or any(accepts))
    assert ("crd-copies-differ" in rules) == (any(accepts) and not all(accepts))


def test_edit_of_a_crd_changes_the_cached_results_of_other_files(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "is_enabled", lambda: True)
    folder = tmp_path / "tree"
    objects = {f"{number}.yaml": (WALTZ % ", pairs: 1").replace("name: a", f"name: a{number}") for number in range(3)}
    expected = [(name, "error", "unknown-field") for name in objects]

    assert lint(folder, {"crd.yaml": crd(PAIRS), **objects}) == []
    for path in (folder, *folder.iterdir()):
        os.utime(path, (1, 1))
    assert lint(folder, {}) == []
    assert rules_of(lint(folder, {"crd.yaml": crd(STYLE)})) == expected
    (folder / "crd.yaml").unlink()
    assert rules_of(lint(folder, {})) == [("0.yaml", "info", "missing-schema")]
    assert lint(folder, {"crd.yaml": crd(PAIRS)}) == []


def test_since_reports_what_the_change_of_a_crd_breaks(tmp_path):
    write(tmp_path, {"crd.yaml": crd(PAIRS), "a.yaml": WALTZ % ", pairs: 1"})
    for words in ("init -q", "add -A", "-c user.name=a -c user.email=a@example.com commit -qm x"):
        subprocess.run(["git", *words.split()], cwd=tmp_path, check=True, capture_output=True)
    write(tmp_path, {"crd.yaml": crd(STYLE)})
    result = jobgen.lint(tmp_path, ["."], since="HEAD")

    assert [(each.rule, each.location.file) for each in result.findings] == [("unknown-field", "a.yaml")]


def test_jobs_repository_keeps_its_schemas(tmp_path):
    write(tmp_path, {"jobs/crd.yaml": crd(STYLE), "jobs/a.yaml": WALTZ % ", pairs: 1"})
    findings = json.loads(lint_paths(tmp_path, (), (), format_="json").out)["findings"]

    (message,) = [each["message"] for each in findings if each["rule"] == "missing-schema"]
    assert message.endswith("so its fields were not checked; run `jobgen schema import jobs/crd.yaml`")
