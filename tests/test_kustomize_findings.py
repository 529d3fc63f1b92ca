"""Findings about kustomizations: each on its line, once, and only if kustomize fails, too."""

import os
import subprocess
from pathlib import Path

import pytest
from kustomize_samples import KUBECTL, PLUGIN, install_stand_ins, read_calls, write_files

from jobgen.kustomize import build
from jobgen.kustomize.tree import FolderTree, Tool

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n"
PATCH = "apiVersion: v1\nkind: Service\nmetadata: {name: webb}\nspec: {type: LoadBalancer}\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: web, image: web}]}\n"

# The files, and the findings: file, line, rule, and a part of the message.
CASES = {
    "a patch that is a resource, too": (
        {
            "kustomization.yaml": "resources:\n- base\n- change.yaml\npatches:\n- path: change.yaml\n",
            "change.yaml": PATCH.replace("webb", "web"),
            "base/kustomization.yaml": "resources: [web.yaml]\n",
            "base/web.yaml": SERVICE,
        },
        [("kustomization.yaml", 3, "kustomization-id-conflict", "`change.yaml` is a patch, and as a resource it adds")],
    ),
    "a patch that is only a resource": (
        {
            "kustomization.yaml": "resources:\n- change.yaml\n- base\n",
            "change.yaml": PATCH.replace("webb", "web"),
            "base/kustomization.yaml": "resources: [web.yaml]\n",
            "base/web.yaml": SERVICE,
        },
        [("kustomization.yaml", 2, "kustomization-id-conflict", "list the file in `patches`: `- path: change.yaml`")],
    ),
    "a missing file": (
        {"kustomization.yaml": "resources:\n- web.yaml\n- job.yaml\n", "web.yaml": SERVICE},
        [("kustomization.yaml", 3, "kustomization-file-missing", "`job.yaml` does not exist; correct the path")],
    ),
    "a missing file with another extension": (
        {"kustomization.yaml": "resources: [web.yml]\n", "web.yaml": SERVICE},
        [("kustomization.yaml", 1, "kustomization-file-missing", "did you mean `web.yaml`?")],
    ),
    "a folder without a kustomization": (
        {"kustomization.yaml": "resources: [base]\n", "base/web.yaml": SERVICE},
        [("kustomization.yaml", 1, "kustomization-file-missing", "`base` has no `kustomization.yaml`; add one")],
    ),
    "a missing patch": (
        {"kustomization.yaml": "resources: [web.yaml]\npatches:\n- path: p.yaml\n", "web.yaml": SERVICE},
        [("kustomization.yaml", 3, "kustomization-file-missing", "`p.yaml`")],
    ),
    "a missing input of a generator": (
        {"kustomization.yaml": "configMapGenerator:\n- name: a\n  files: [x=a.txt]\n"},
        [("kustomization.yaml", 3, "kustomization-file-missing", "`a.txt`")],
    ),
    "patches that are strings": (
        {"kustomization.yaml": "resources: [web.yaml]\npatches:\n- p.yaml\n", "web.yaml": SERVICE, "p.yaml": PATCH},
        [("kustomization.yaml", 3, "invalid-kustomization", "`patches` must be a mapping; write `- path: p.yaml`")],
    ),
    "an unknown field": (
        {"kustomization.yaml": "resources: [web.yaml]\nnamespcae: a\n", "web.yaml": SERVICE},
        [("kustomization.yaml", 2, "invalid-kustomization", "did you mean `namespace`?")],
    ),
    "a label that is a number": (
        {"kustomization.yaml": "resources: [web.yaml]\ncommonLabels:\n  version: 1\n", "web.yaml": SERVICE},
        [("kustomization.yaml", 3, "invalid-kustomization", '`commonLabels.version` must be text; write `"1"`')],
    ),
    "a kustomization that is no YAML": (
        {"kustomization.yaml": "resources: [web.yaml\n"},
        [("kustomization.yaml", 1, "invalid-kustomization", "")],
    ),
    "an empty kustomization": (
        {"kustomization.yaml": "kind: Kustomization\n"},
        [("kustomization.yaml", 1, "invalid-kustomization", "empty")],
    ),
    "a wrong apiVersion": (
        {"kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1\nresources: [web.yaml]\n", "web.yaml": SERVICE},
        [("kustomization.yaml", 1, "invalid-kustomization", "write `apiVersion: kustomize.config.k8s.io/v1beta1`")],
    ),
    "a kustomization file as a resource": (
        {
            "kustomization.yaml": "resources: [base/kustomization.yaml]\n",
            "base/kustomization.yaml": "resources: [web.yaml]\n",
            "base/web.yaml": SERVICE,
        },
        [("kustomization.yaml", 1, "invalid-kustomization", "list its folder: `base`")],
    ),
    "a component as a resource": (
        {
            "kustomization.yaml": "resources: [part]\n",
            "part/kustomization.yaml": "kind: Component\nnamespace: a\n",
        },
        [("kustomization.yaml", 1, "invalid-kustomization", "is a component; list it in `components`")],
    ),
    "a resource as a component": (
        {
            "kustomization.yaml": "components:\n- part\n",
            "part/kustomization.yaml": "namespace: a\n",
        },
        [("kustomization.yaml", 2, "invalid-kustomization", "is not a component; list it in `resources`")],
    ),
    "a patch for an object that is not there": (
        {
            "kustomization.yaml": "resources: [web.yaml]\npatches:\n- path: p.yaml\n",
            "web.yaml": SERVICE,
            "p.yaml": PATCH,
        },
        [("p.yaml", 3, "patch-matches-nothing", "Service `webb` is not in this build, so kustomize refuses the patch")],
    ),
    "an old patch in another namespace": (
        {
            "kustomization.yaml": "resources: [web.yaml]\npatchesStrategicMerge: [p.yaml]\n",
            "web.yaml": SERVICE,
            "p.yaml": PATCH.replace("name: webb", "name: web, namespace: a"),
        },
        [("p.yaml", 3, "patch-matches-nothing", "write `namespace: default`")],
    ),
    "a cycle": (
        {
            "kustomization.yaml": "resources: [a]\n",
            "a/kustomization.yaml": "resources:\n- ../b\n",
            "b/kustomization.yaml": "resources:\n- ../a\n",
        },
        [("b/kustomization.yaml", 2, "kustomization-cycle", "`../a` leads back to itself: `a` → `b` → `a`")],
    ),
    "an object that is there twice": (
        {"kustomization.yaml": "resources: [web.yaml, other.yaml]\n", "web.yaml": SERVICE, "other.yaml": SERVICE},
        [("other.yaml", 1, "kustomization-id-conflict", "Service web is in this build twice")],
    ),
    "two objects that a namespace makes equal": (
        {
            "kustomization.yaml": "resources: [web.yaml, other.yaml]\nnamespace: b\n",
            "web.yaml": SERVICE,
            "other.yaml": SERVICE.replace("name: web", "name: web, namespace: a"),
        },
        [("other.yaml", 1, "kustomization-id-conflict", "Service b/web is in this build twice")],
    ),
    "a generated object that is there": (
        {
            "kustomization.yaml": "configMapGenerator:\n- name: a\n  literals: [x=1]\n- name: a\n  literals: [x=1]\n",
        },
        [("kustomization.yaml", 4, "kustomization-id-conflict", "write `behavior: merge`")],
    ),
    "a merge into nothing": (
        {"kustomization.yaml": "configMapGenerator:\n- name: a\n  behavior: merge\n  literals: [x=1]\n"},
        [("kustomization.yaml", 3, "kustomize-build-fails", "write `behavior: create`")],
    ),
    "a literal without a value": (
        {"kustomization.yaml": "configMapGenerator:\n- name: a\n  literals:\n  - x\n"},
        [("kustomization.yaml", 4, "invalid-kustomization", "`x` is not a literal; write `key=value`")],
    ),
    "a document that is no object": (
        {"kustomization.yaml": "resources: [web.yaml]\n", "web.yaml": "kind: Service\nspec: {}\n"},
        [("web.yaml", 1, "kustomize-build-fails", "needs `metadata.name`")],
    ),
    "replicas of nothing": (
        {"kustomization.yaml": "resources: [web.yaml]\nreplicas:\n- {name: job, count: 2}\n", "web.yaml": SERVICE},
        [("kustomization.yaml", 3, "kustomize-build-fails", "`job` is not the name of a workload in this build")],
    ),
    "replicas of a kind without them": (
        {"kustomization.yaml": "resources: [web.yaml]\nreplicas:\n- {name: web, count: 2}\n", "web.yaml": SERVICE},
        [("kustomization.yaml", 3, "kustomize-build-fails", "StatefulSets, and `web` is a Service; patch the field")],
    ),
    "replicas of a custom resource": (
        {
            "kustomization.yaml": "resources: [job.yaml]\nreplicas:\n- {name: vit, count: 2}\n",
            "job.yaml": "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: vit}\n"
            "spec: {pytorchReplicaSpecs: {Master: {replicas: 1}, Worker: {replicas: 1}}}\n",
        },
        [("kustomization.yaml", 3, "kustomize-build-fails", "patch `/spec/pytorchReplicaSpecs/Worker/replicas`")],
    ),
    "a JSON patch of a missing field": (
        {
            "kustomization.yaml": "resources: [web.yaml]\npatches:\n- target: {kind: Service}\n  patch: |-\n"
            "    - op: remove\n      path: /spec/type\n",
            "web.yaml": SERVICE,
        },
        [("kustomization.yaml", 6, "kustomize-build-fails", "`/spec/type` does not exist")],
    ),
    "a replacement without a source": (
        {
            "kustomization.yaml": "resources: [web.yaml]\nreplacements:\n- source: {kind: Secret, name: a}\n"
            "  targets: [{select: {kind: Service}, fieldPaths: [spec.type]}]\n",
            "web.yaml": SERVICE,
        },
        [("kustomization.yaml", 3, "kustomize-build-fails", "the source `a` of a replacement matches no object")],
    ),
    "a replacement of a missing field": (
        {
            "kustomization.yaml": "resources: [web.yaml]\nreplacements:\n- source: {kind: Service, name: web}\n"
            "  targets:\n  - select: {kind: Service}\n    fieldPaths:\n    - spec.type\n",
            "web.yaml": SERVICE,
        },
        [("kustomization.yaml", 7, "kustomize-build-fails", "`spec.type` is not a field of Service web")],
    ),
}


def findings_of(folder, tool=None):
    found = build(FolderTree(folder), "kustomization.yaml", tool)
    return [
        (each.location.file, each.location.line, each.rule, each.message)
        for each in found.findings
        if each.severity == "error"
    ]


@pytest.mark.parametrize("name", CASES)
def test_faults_are_found_on_their_lines(name, tmp_path):
    files, expected = CASES[name]
    write_files(tmp_path, files)

    found = findings_of(tmp_path)

    assert [each[:3] for each in found] == [each[:3] for each in expected]
    assert [part for *_, part in expected if not any(part in message for *_, message in found)] == []


@pytest.mark.parametrize("name", CASES)
@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
def test_kubectl_refuses_every_fault(name, tmp_path):
    write_files(tmp_path, CASES[name][0])

    assert subprocess.run([KUBECTL, "kustomize", tmp_path], capture_output=True, check=False).returncode


# The files, and True if a tool is started to build them.
LEFT = {
    "nothing that is left to a tool": ("namePrefix: a-\n", False),
    "a plugin of kustomize": (PLUGIN, True),
    "a plugin of kustomize in a file": ("transformers: [plugin.yaml]\n", True),
    "a pattern that jobgen cannot evaluate": (
        "patches: [{path: p.yaml, target: {name: '" + "a" * 1001 + "'}}]\n",
        True,
    ),
    "an image with such a pattern": (
        "resources: [pod.yaml]\nimages: [{name: '(" + "a" * 1001 + ")', newTag: a}]\n",
        True,
    ),
    "a plugin of others": (PLUGIN.replace("builtin", "example.com/v1"), False),
    "a plugin that runs helm": (PLUGIN.replace("AnnotationsTransformer", "HelmChartInflationGenerator"), False),
    "a plugin that fetches a file": (PLUGIN + "  path: http://127.0.0.1:9/patch.yaml\n", False),
    "a remote resource": (PLUGIN + "components: ['https://example.com/a?ref=v1']\n", False),
    "a chart": (PLUGIN + "helmCharts: [{name: a}]\n", False),
    "a file outside of the repository": (PLUGIN + "configurations: [../../a.yaml]\n", False),
    "a file outside of the folder": (PLUGIN + "configurations: [../config.yaml]\n", False),
    "a mistake of the user": (PLUGIN + "configurations: [missing.yaml]\n", False),
}
needs_shell = pytest.mark.skipif(os.name == "nt", reason="the tool of this test is a shell script")


@pytest.mark.parametrize("name", LEFT)
@needs_shell
def test_a_tool_is_started_only_for_what_jobgen_cannot_build(name, tmp_path):
    fields, is_started = LEFT[name]
    plugin = "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: x}\nprefix: a-\n"
    listed = "" if fields.startswith("resources:") else "resources: [web.yaml]\n"
    files = {"a/kustomization.yaml": f"{listed}{fields}", "a/web.yaml": SERVICE, "a/pod.yaml": POD}
    write_files(tmp_path, files | {"a/plugin.yaml": plugin, "a/p.yaml": PATCH, "config.yaml": "images: []\n"})
    bin_ = install_stand_ins(tmp_path / "bin", "kustomize", built=SERVICE)

    found = build(FolderTree(tmp_path), "a/kustomization.yaml", Tool("kustomize", str(bin_ / "kustomize")))

    assert read_calls(bin_) == ([f"kustomize build {tmp_path / 'a'}"] if is_started else [])
    assert found.by == ("kustomize" if is_started else "jobgen")
    notes = [each for each in found.findings if each.rule == "tool-built-kustomization"]
    assert [each.severity for each in notes] == (["info"] if is_started else [])
    assert all(each.message.endswith(", so kustomize built this kustomization") for each in notes)


@needs_shell
def test_a_tool_that_fails_is_a_finding(tmp_path):
    write_files(
        tmp_path / "repository", {"kustomization.yaml": f"resources: [web.yaml]\n{PLUGIN}", "web.yaml": SERVICE}
    )
    bin_ = install_stand_ins(tmp_path / "bin", "kustomize")
    (bin_ / "fails").write_text("# Warning: x\nerror: accumulating resources: web.yaml: no\n")

    found = findings_of(tmp_path / "repository", Tool("kustomize", str(bin_ / "kustomize")))

    message = "kustomize cannot build this kustomization: web.yaml: no; correct it"
    assert found == [("web.yaml", 1, "kustomize-build-fails", message)]


@needs_shell
def test_a_tool_that_dies_says_nothing_about_a_kustomization(tmp_path):
    write_files(
        tmp_path / "repository", {"kustomization.yaml": f"resources: [web.yaml]\n{PLUGIN}", "web.yaml": SERVICE}
    )
    bin_ = install_stand_ins(tmp_path / "bin", "kustomize")
    (bin_ / "dies").touch()
    tree = FolderTree(tmp_path / "repository")

    found = build(tree, "kustomization.yaml", Tool("kustomize", str(bin_ / "kustomize")))

    assert found == build(tree, "kustomization.yaml")
    assert found.unbuilt


def test_a_target_that_selects_nothing_is_a_warning(tmp_path):
    text = "resources: [web.yaml]\npatches:\n- path: p.yaml\n  target: {kind: Service, name: wep}\n"
    write_files(tmp_path, {"kustomization.yaml": text, "web.yaml": SERVICE, "p.yaml": PATCH})

    (finding,) = build(FolderTree(tmp_path), "kustomization.yaml").findings

    assert (finding.rule, finding.severity, finding.location.line) == ("patch-matches-nothing", "warning", 4)
    assert "did you mean `web`?" in finding.message


def test_a_file_outside_of_the_folder_is_a_warning_because_flux_reads_it(tmp_path):
    write_files(tmp_path, {"a/kustomization.yaml": "resources: [../web.yaml]\n", "web.yaml": SERVICE})

    found = build(FolderTree(tmp_path), "a/kustomization.yaml")

    assert [(each.rule, each.severity) for each in found.findings] == [("kustomization-load-restricted", "warning")]
    assert len(found.objects) == 1


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        ("resources: [https://example.com/web.yaml]", "`https://example.com/web.yaml` is remote"),
        ('resources: ["github.com/a/b/config?ref=v1"]', "`github.com/a/b/config?ref=v1` is remote"),
        ("resources: [../../web.yaml]", "`../../web.yaml` of `kustomization.yaml` is outside the linted folder"),
        ("helmCharts: [{name: a}]", "`helmCharts` of `kustomization.yaml` needs helm"),
        ("transformers: [t.yaml]", "`t.yaml` in `transformers` of `kustomization.yaml` is a plugin"),
    ],
)
def test_what_is_not_built_is_named_and_no_patch_is_blamed(field, sentence, tmp_path):
    more = "patches:\n- path: p.yaml\n- path: p.yaml\n  target: {kind: Job}\nreplicas: [{name: a, count: 1}]\n"
    text = f"{field}\n{more}"
    transformer = "apiVersion: example.com/v1\nkind: X\nmetadata: {name: x}\n"
    write_files(tmp_path, {"kustomization.yaml": text, "p.yaml": PATCH, "t.yaml": transformer})

    found = build(FolderTree(tmp_path), "kustomization.yaml")

    assert found.unbuilt == (sentence,)
    assert found.findings == ()


def test_a_fault_in_one_file_does_not_stop_the_rest(tmp_path):
    text = "resources: [broken.yaml, missing.yaml, web.yaml]\nnamePrefix: a-\n"
    write_files(tmp_path, {"kustomization.yaml": text, "broken.yaml": "a: [\n", "web.yaml": SERVICE})

    found = build(FolderTree(tmp_path), "kustomization.yaml")

    assert [each.data["metadata"]["name"] for each in found.objects] == ["a-web"]
    assert found.unbuilt == ("`broken.yaml` cannot be read",)


@pytest.mark.parametrize("name", ["web", "other"])
def test_patches_are_not_blamed_for_objects_in_documents_with_errors(name, tmp_path):
    text = "resources: [services.yaml]\npatches:\n- path: p.yaml\n- path: q.yaml\n  target: {kind: Service}\n"
    other = SERVICE.replace("name: web", "name: other")
    third = SERVICE.replace("name: web", "name: third")
    # No `---` between the first two.
    files = {"services.yaml": f"{SERVICE}{other}---\n{third}", "p.yaml": PATCH.replace("webb", name)}
    write_files(tmp_path, {"kustomization.yaml": text, **files, "q.yaml": PATCH})

    found = build(FolderTree(tmp_path), "kustomization.yaml")

    assert [each.data["metadata"]["name"] for each in found.objects] == ["third"]
    assert found.findings == ()


def test_links_out_of_the_folder_are_not_followed(tmp_path):
    write_files(tmp_path, {"secret.yaml": SERVICE, "inside/kustomization.yaml": "resources: [web.yaml]\n"})
    (tmp_path / "inside" / "web.yaml").symlink_to(tmp_path / "secret.yaml")

    found = build(FolderTree(tmp_path / "inside"), "kustomization.yaml")

    assert found.objects == ()
    assert found.unbuilt == ("`web.yaml` of `kustomization.yaml` is outside the linted folder",)


def test_an_object_of_flux_is_no_kustomization(tmp_path):
    text = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}\nspec: {path: ./x}\n"
    write_files(tmp_path, {"kustomization.yaml": text})

    from jobgen.kustomize import plan

    assert plan(FolderTree(Path(tmp_path)), ["kustomization.yaml"]).roots == ()


CONTAINERS = "[{name: pytorch, image: a/b:1, command: [torchrun, train.py], resources: {limits: {cpu: 8}}}]"
TRAINING = (
    "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: bert}\n"
    "spec: {pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: {}}}}}}\n"
)
WEB = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: bert}\nspec: {template: {spec: {containers: {}}}}\n"
PATCHED = "resources: [a.yaml]\npatches:\n- path: p.yaml\n"


def training(containers):
    return TRAINING.replace("containers: {}", f"containers: {containers}")


def build_files(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return build(FolderTree(folder), "kustomization.yaml", None)


@pytest.mark.parametrize(
    ("patch", "lost", "severity"),
    [
        (
            "[{name: pytorch, resources: {limits: {memory: 1Gi}}}]",
            "`image`, `command`, `resources.limits.cpu`",
            "error",
        ),
        ("[{name: pytorch, image: a/b:2}]", "`command`, `resources`", "warning"),
    ],
)
def test_a_patch_that_replaces_the_list_of_a_custom_resource(patch, lost, severity, tmp_path):
    """What the container loses is said once, at the list; without its image, the object is checked as it was meant."""
    found = build_files(tmp_path, kustomization=PATCHED, a=training(CONTAINERS), p=training(patch))
    [finding] = found.findings
    assert (finding.rule, finding.severity, finding.location[:2]) == ("patch-replaces-list", severity, ("p.yaml", 4))
    assert f"so {lost} of `pytorch` are lost in PyTorchJob `bert`" in finding.message
    [container] = found.objects[0].data["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert ("command" in container) == (severity == "error")


def test_lists_that_merge_or_that_lose_nothing_are_not_reported(tmp_path):
    patch = "[{name: pytorch, resources: {limits: {memory: 1Gi}}}]"
    found = build_files(
        tmp_path,
        kustomization=PATCHED,
        a=WEB.replace("containers: {}", f"containers: {CONTAINERS}"),
        p=WEB.replace("containers: {}", f"containers: {patch}"),
    )
    assert not found.findings
    whole = CONTAINERS.replace("cpu: 8", "cpu: 9")
    assert not build_files(tmp_path, kustomization=PATCHED, a=training(CONTAINERS), p=training(whole)).findings


def test_a_file_that_is_missing_is_looked_for_in_the_folders_below(tmp_path):
    """A file of the same name is meant before one with another extension; of two, none is."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src/train.py").write_text("")
    generator = "configMapGenerator:\n- name: a\n  files: [train.py]\n"
    files = {"kustomization": f"resources: [train.yaml]\n{generator}", "train": SERVICE}
    [finding] = build_files(tmp_path, **files).findings
    assert finding.message.endswith("did you mean `src/train.py`?")
    (tmp_path / "test").mkdir()
    (tmp_path / "test/train.py").write_text("")
    [finding] = build_files(tmp_path, **files).findings
    assert "`src/train.py`" not in finding.message


REFERRING = {
    "a volume": ("configMapGenerator", "spec: {volumes: [{name: c, configMap: {name: a}}]}", "configMap.name"),
    "a variable": ("secretGenerator", "spec: {env: [{valueFrom: {secretKeyRef: {name: a}}}]}", "secretKeyRef.name"),
    "all variables": ("configMapGenerator", "spec: {envFrom: [{configMapRef: {name: a}}]}", "configMapRef.name"),
    "a pull secret": ("secretGenerator", "spec: {imagePullSecrets: [{name: a}]}", "imagePullSecrets.name"),
    "an optional one": ("configMapGenerator", "spec: {envFrom: [{configMapRef: {name: a, optional: true}}]}", ""),
    "another one": ("configMapGenerator", "spec: {envFrom: [{configMapRef: {name: b}}]}", ""),
    "another kind": ("configMapGenerator", "spec: {envFrom: [{secretRef: {name: a}}]}", ""),
    "another namespace": ("configMapGenerator", "spec: {envFrom: [{configMapRef: {name: a}}]}, namespace: b", ""),
}


@pytest.mark.parametrize("name", REFERRING)
def test_a_custom_resource_with_the_name_of_a_generated_object(name, tmp_path):
    generator, spec, field = REFERRING[name]
    spec, _, namespace = spec.partition(", namespace: ")
    metadata = f"{{name: a, namespace: {namespace or 'default'}}}"
    job = f"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {metadata}\n{spec}\n"
    listed = f"resources: [job.yaml]\n{generator}:\n- {{name: a, literals: [b=c]}}\n"
    found = build_files(tmp_path, kustomization=listed, job=job).findings
    wanted = [("unrenamed-reference", "job.yaml", 4)] if field else []
    assert [(each.rule, each.location.file, each.location.line) for each in found] == wanted
    assert all(f"`{field}` of a PyTorchJob" in each.message for each in found)
    # Without the hash, with a reference that a configuration declares, and with definitions, the name is right.
    for line in ("generatorOptions: {disableNameSuffixHash: true}", "configurations: [names.yaml]"):
        kind = "ConfigMap" if generator.startswith("config") else "Secret"
        path = (
            field.replace(".", "/")
            .replace("configMap/", "volumes/configMap/")
            .replace("secretKeyRef", "env/valueFrom/secretKeyRef")
        )
        path = path.replace("configMapRef", "envFrom/configMapRef")
        names = f"nameReference:\n- kind: {kind}\n  fieldSpecs: [{{kind: PyTorchJob, path: spec/{path}}}]\n"
        assert not build_files(tmp_path, kustomization=f"{listed}{line}\n", job=job, names=names).findings


def test_a_prefix_of_a_service_does_not_reach_the_pods(tmp_path):
    """The finding is about the base, whatever the prefix of an overlay is."""
    job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: web}\nspec: {template: {spec: {subdomain: web}}}\n"
    for prefix in ("dev-", "prod-"):
        listed = f"resources: [web.yaml, job.yaml]\nnamePrefix: {prefix}\n"
        [found] = build_files(tmp_path, kustomization=listed, web=SERVICE, job=job).findings
        assert (found.rule, found.location[:2]) == ("unrenamed-reference", ("job.yaml", 4))
        assert "kustomize renames the Service `web`, but does not change `subdomain`" in found.message
        assert found.related[0].message == f"it is called `{prefix}web`"
