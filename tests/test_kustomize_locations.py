"""Every value of a built object knows the file and the line where it is written; hostile trees end in time."""

import inspect
import json
import sys
from collections import Counter

import pytest
from kustomize_samples import write_files

from jobgen.kustomize import build, plan
from jobgen.kustomize.resource import Resource
from jobgen.kustomize.select import PatternError, matches
from jobgen.kustomize.tree import FolderTree, Use
from jobgen.model.data import Location

FILES = {
    "top/kustomization.yaml": """resources:
- ../base
namespace: prod
namePrefix: a-
commonLabels:
  app: web
images:
- name: nginx
  newTag: "2"
replicas:
- name: web
  count: 3
patches:
- path: patch.yaml
- target: {kind: Deployment}
  patch: |-
    - op: add
      path: /spec/paused
      value: true
- patch: |-
    apiVersion: apps/v1
    kind: Deployment
    metadata:
      name: web
    spec:
      minReadySeconds: 5
configMapGenerator:
- name: settings
  literals:
  - a=1
  envs: [settings.env]
  files: [text.txt]
replacements:
- source: {kind: Service, name: web, fieldPath: spec.type}
  targets:
  - select: {kind: Deployment}
    fieldPaths:
    - spec.template.spec.containers.0.workingDir
""",
    "top/patch.yaml": """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers:
      - name: main
        command: [run]
      - name: new
        image: other:1
""",
    "top/settings.env": "# settings\nb=2\n",
    "top/text.txt": "hello",
    "base/kustomization.yaml": "resources: [web.yaml]\n",
    "base/web.yaml": """apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    spec:
      serviceAccountName: runner
      containers:
      - name: main
        image: nginx:1
        workingDir: /
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: ClusterIP}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: runner}
""",
}
TOP = "top/kustomization.yaml"

# The value at a path of the Deployment: its file, line and layer.
LOCATIONS = {
    "apiVersion": ("base/web.yaml", 1, "manifest"),
    "metadata.namespace": (TOP, 3, f"`namespace` of {TOP}"),
    "metadata.name": (TOP, 4, f"`namePrefix` of {TOP}"),
    "metadata.labels.app": (TOP, 6, f"`commonLabels` of {TOP}"),
    "spec.replicas": (TOP, 12, f"`replicas` of {TOP}"),
    "spec.paused": (TOP, 19, f"patch in {TOP}"),
    "spec.minReadySeconds": (TOP, 26, f"patch in {TOP}"),
    "spec.template.spec.serviceAccountName": ("base/web.yaml", 8, "manifest"),
    "spec.template.spec.containers.0.name": ("top/patch.yaml", 8, "patch top/patch.yaml"),
    "spec.template.spec.containers.0.command.0": ("top/patch.yaml", 9, "patch top/patch.yaml"),
    "spec.template.spec.containers.0.image": (TOP, 9, f"`images` of {TOP}"),
    "spec.template.spec.containers.0.workingDir": (TOP, 38, f"`replacements` of {TOP}"),
    "spec.template.spec.containers.1.image": ("top/patch.yaml", 11, "patch top/patch.yaml"),
}


def at(node, path):
    for step in path.split("."):
        node = node[int(step) if step.isdecimal() else step]
    return node


@pytest.fixture
def built(tmp_path):
    write_files(tmp_path, FILES)
    found = build(FolderTree(tmp_path), TOP)
    assert (found.findings, found.unbuilt) == ((), ())
    return {each.data["kind"]: each for each in found.objects}


@pytest.mark.parametrize("path", LOCATIONS)
def test_values_are_located_where_they_are_written(path, built):
    node = at(built["Deployment"].traced, path)

    assert (node.location.file, node.location.line, node.layer) == LOCATIONS[path]


def test_overridden_values_are_kept(built):
    image = at(built["Deployment"].traced, "spec.template.spec.containers.0.image")

    assert (image.value, image.overridden.value, image.overridden.location.line) == ("nginx:2", "nginx:1", 11)


def test_generated_values_are_located_in_their_files(built):
    data = built["ConfigMap"].traced["data"]

    assert {str(key): (value.location.file, value.location.line) for key, value in data.items()} == {
        "a": (TOP, 30),
        "b": ("top/settings.env", 2),
        "text.txt": ("top/text.txt", 1),
    }


def test_objects_name_their_documents(built):
    service = built["Service"]

    assert (service.file, service.position, service.location) == ("base/web.yaml", 1, Location("base/web.yaml", 14, 1))


PLANNED = {
    "base/kustomization.yaml": "resources: [web.yaml]\n# - ../extra.yaml\n#- path: off.yaml\n# see ../other.yaml\n",
    "base/web.yaml": "",
    "base/off.yaml": "",
    "extra.yaml": "",
    "other.yaml": "",
    "a/kustomization.yaml": "resources:\n- ../base\ncomponents: [../part]\npatches:\n- path: p.yaml\n"
    "configMapGenerator: [{name: a, files: [key=data.txt], envs: [e.env]}]\nconfigurations: [c.yaml]\n"
    "helmCharts: [{name: x, valuesFile: values.yaml}]\nreplacements: [{path: r.yaml}]\nopenapi: {path: o.json}\n",
    **dict.fromkeys(("a/p.yaml", "a/data.txt", "a/e.env", "a/c.yaml", "a/values.yaml", "a/r.yaml", "a/o.json"), ""),
    "b/kustomization.yml": "resources: [../base, x.yaml]\n",
    "b/x.yaml": "",
    "part/kustomization.yaml": "kind: Component\nresources: [y.yaml]\n",
    "part/y.yaml": "",
    "lonely/kustomization.yaml": "kind: Component\nnamespace: a\n",
    "one/kustomization.yaml": "resources: [../two]\n",
    "two/kustomization.yaml": "resources: [../one]\n",
}


def test_a_plan_names_roots_uses_and_members(tmp_path):
    write_files(tmp_path, PLANNED)

    found = plan(FolderTree(tmp_path), [path for path in PLANNED if "kustomization" in path])

    assert found.roots == ("a/kustomization.yaml", "b/kustomization.yml", "one/kustomization.yaml")
    assert found.members == {
        "base/web.yaml": ("a/kustomization.yaml", "b/kustomization.yml"),
        "b/x.yaml": ("b/kustomization.yml",),
        "part/y.yaml": ("a/kustomization.yaml",),
    }
    roles = {path: [(use.role, use.line) for use in uses] for path, uses in found.uses.items()}
    assert roles == {
        "base/web.yaml": [("resource", 1)],
        "extra.yaml": [("commented out", 2)],
        "base/off.yaml": [("commented out", 3)],
        "base/kustomization.yaml": [("resource", 2), ("resource", 1)],
        "part/kustomization.yaml": [("component", 3)],
        "a/p.yaml": [("patch", 5)],
        "a/data.txt": [("generator input", 6)],
        "a/e.env": [("generator input", 6)],
        "a/c.yaml": [("configuration", 7)],
        "a/values.yaml": [("helm values", 8)],
        "a/r.yaml": [("replacement", 9)],
        "a/o.json": [("openapi", 10)],
        "b/x.yaml": [("resource", 1)],
        "part/y.yaml": [("resource", 2)],
        "two/kustomization.yaml": [("resource", 1)],
        "one/kustomization.yaml": [("resource", 1)],
    }
    assert found.uses["a/p.yaml"] == (Use("patch", "a/kustomization.yaml", 5),)


OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
COMPONENT = "kind: Component\npatches: [{target: {kind: ConfigMap}, path: p.yaml}]\n"


def double(number):
    """A definition that refers to the next one twice."""
    below = {"$ref": f"#/definitions/d{number + 1}"}
    return {"x-kubernetes-group-version-kind": [{"kind": "A"}], "properties": {"a": below, "b": below}}


HOSTILE = {
    "a chain of folders": {
        "kustomization.yaml": "resources: [f0]\n",
        **{
            f"{'/'.join(f'f{n}' for n in range(i + 1))}/kustomization.yaml": f"resources: [f{i + 1}]\n"
            for i in range(80)
        },
    },
    "folders that double": {
        "kustomization.yaml": "resources: [f0]\n",
        **{f"f{i}/kustomization.yaml": f"resources: [p{i}, q{i}]\n" for i in range(25)},
        **{
            f"f{i}/{name}{i}/kustomization.yaml": f"resources: [../../f{i + 1}]\nnamePrefix: {name}\n"
            for i in range(25)
            for name in "pq"
        },
        "f25/kustomization.yaml": "resources: [a.yaml]\n",
        "f25/a.yaml": OBJECT,
    },
    "a component used often": {
        "kustomization.yaml": "resources: [a.yaml]\ncomponents:\n" + "- part\n" * 100_000,
        "a.yaml": OBJECT,
        "part/kustomization.yaml": COMPONENT,
        "part/p.yaml": OBJECT,
    },
    "an alias bomb": {
        "kustomization.yaml": "a0: &a0 [x, x]\n" + "".join(f"a{i + 1}: &a{i + 1} [*a{i}, *a{i}]\n" for i in range(40)),
    },
    "deep nesting": {"kustomization.yaml": "resources: " + "[" * 5000 + "\n"},
    "a slow pattern": {
        "kustomization.yaml": "resources: [a.yaml]\npatches: [{target: {name: '((a*)*)*((a*)*)*b'}, path: a.yaml}]\n",
        "a.yaml": OBJECT.replace("name: a", f"name: {'a' * 250}"),
    },
    "definitions that double": {
        "kustomization.yaml": "resources: [a.yaml]\nopenapi: {path: o.json}\n",
        "a.yaml": OBJECT,
        "o.json": json.dumps({"definitions": {f"d{number}": double(number) for number in range(60)}}),
    },
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_trees_end_and_are_not_green(name, tmp_path):
    write_files(tmp_path, HOSTILE[name])

    found = build(FolderTree(tmp_path), "kustomization.yaml")

    assert found.findings or found.unbuilt


def test_many_resources_are_built(tmp_path):
    names = range(5_000)
    text = "---\n".join(OBJECT.replace("name: a", f"name: a{number}") for number in names)
    write_files(tmp_path, {"kustomization.yaml": "resources: [a.yaml]\nnamespace: x\n", "a.yaml": text})

    assert len(build(FolderTree(tmp_path), "kustomization.yaml").objects) == 5_000


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("web", "web", True),
        ("web", "webs", False),
        ("w.*", "web", True),
        ("a|b|", "", True),
        ("(web|api)-[a-c0-9]+", "api-b2", True),
        ("[^a-c]+", "abc", False),
        (r"\d{2,3}", "1234", False),
        (r"\w+\.x", "a_b.x", True),
        ("^web$", "web", True),
        ("(?:a|b){2}c?", "ab", True),
        (r"\p{L}+", "é", True),
        ("(?i)web", "WEB", True),
        ("((((a*)*)*)*)*", "aab", False),
        ("(a+)+b|a", "a", True),
        (r"web\z|\Aapi", "api", True),
    ],
)
def test_patterns_match_whole_names(pattern, text, expected):
    assert matches(text, pattern) is expected


@pytest.mark.parametrize("pattern", ["(", ")", "[", "*a", "a{2000}", "(?=a)", r"\1"])
def test_patterns_that_cannot_be_used_are_refused(pattern):
    with pytest.raises(PatternError):
        matches("a", pattern)


def test_a_base_of_many_kustomizations_is_read_once(tmp_path):
    names = [f"c{number}.yaml" for number in range(200)]
    files = {f"base/{name}": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name[:-5]}}}\n" for name in names}
    overlays = [f"o{number}/kustomization.yaml" for number in range(3)]
    files |= {path: f"resources: [../base]\nnamespace: {path[:2]}\n" for path in overlays}
    write_files(tmp_path, files | {"base/kustomization.yaml": f"resources: [{', '.join(names)}]\n"})
    tree = FolderTree(tmp_path)
    calls = Counter()

    def count(frame, event, _):
        calls[event, frame.f_code.co_name, frame.f_code.co_filename] += event == "call"

    sys.setprofile(count)
    try:
        found = [build(tree, path).objects for path in overlays]
    finally:
        sys.setprofile(None)

    assert [len(objects) for objects in found] == [200] * 3
    assert calls["call", "_read_documents", inspect.getsourcefile(Resource)] == 200
    assert calls["call", "_read", inspect.getsourcefile(FolderTree)] == 200 + 4
