"""What is wrong is never green: everything that a user named or wrote is checked, or reported as not checked."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from gitrepository import Repository
from hypothesis import given
from hypothesis import strategies as st
from linting import lint_paths
from transcripts import write_files

from jobgen import cache, render
from jobgen.cli.commands.policy import list_policies
from jobgen.model.data import TracedKey, TracedScalar
from jobgen.repo.root import find_root
from jobgen.repo.walk import is_excluded, parse_patterns
from jobgen.schema.ambiguous import may_be_ambiguous
from jobgen.yamlio.read import read

TODAY = "2025-01-31"


def lint_files(folder: Path, **files: str) -> list[tuple[str, str]]:
    """Write files, whose names have `__` for a slash, and return the rule and pointer of each finding."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    done = lint_paths(folder, (), (), format_="json", today=TODAY)
    return [(found["rule"], found["pointer"]) for found in json.loads(done.out)["findings"]]


# Files: what is named or found, and not read.

MANIFEST = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: bert, namespace: ml}
spec: {replicas: 1}
"""


def write_all(folder: Path, files: dict[str, str | bytes]) -> None:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content if isinstance(content, bytes) else content.encode())


def lint_report(
    folder: Path, *paths: str, envs: tuple[str, ...] = (), **options: Any
) -> tuple[int, dict[str, Any], str]:
    """Lint; return the exit code, the report and what goes to stderr."""
    done = lint_paths(folder, paths, envs, format_="json", **options)
    return done.code, json.loads(done.out or "{}"), done.err


def found_in(report: dict[str, Any]) -> list[tuple[str, str]]:
    """The file and the rule of every error and warning."""
    return [(each["file"], each["rule"]) for each in report["findings"] if each["severity"] != "info"]


@pytest.fixture
def jobs_repository(tmp_path: Path) -> Path:
    write_all(
        tmp_path,
        {
            "jobgen.yaml": "",
            "jobs/good.yaml": """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: good, namespace: ml}
spec:
  framework: pytorch
  image: registry.example.com/train:1.0.0
  resources: {cpu: 1, memory: 1Gi}
""",
        },
    )
    return tmp_path


@pytest.mark.parametrize(
    "path",
    [
        "jobs/god.yaml",
        "jobs/typo.yaml",
        "jobs/team",
        "overlays/dev",
        "policies/typo.yaml",
        "typo.yaml",
        "m/typo",
        "jobs/*.yml",
    ],
)
def test_a_path_that_does_not_exist_is_an_error(jobs_repository: Path, path: str) -> None:
    code, report, _ = lint_report(jobs_repository, "jobs/good.yaml", path)

    assert code == 1
    assert found_in(report) == [(path, "unreadable-file")]
    hint = "did you mean `jobs/good.yaml`?" if path == "jobs/god.yaml" else "check the path"
    assert report["findings"][0]["message"] == f"there is no such file or folder; {hint}"


@pytest.mark.parametrize("path", ["jobs/.hidden.yaml", "jobs/notes.md", "jobs/.team", "jobs/empty", "overlays/.x.yaml"])
def test_a_path_in_the_repository_that_is_not_read_is_an_error(jobs_repository: Path, path: str) -> None:
    (jobs_repository / "jobs/empty").mkdir()
    write_all(
        jobs_repository, {path if "." in path[6:] else "jobs/.team/a.yaml": "text: 1\n", "jobs/.team/a.yaml": "a: 1\n"}
    )
    code, report, _ = lint_report(jobs_repository, path)

    assert code == 1
    assert found_in(report) == [(path, "unread-file")]


@pytest.mark.parametrize("path", ["bad.txt", "bad.YAML", "m/.hidden.yaml", "jobs/BAD.YAML", "m/noextension"])
def test_a_file_that_is_named_is_read(jobs_repository: Path, path: str) -> None:
    write_all(jobs_repository, {path: MANIFEST})
    code, report, _ = lint_report(jobs_repository, path)

    assert code == 1
    assert (path, "unknown-field") in found_in(report)


@pytest.mark.parametrize("name", ["jobgen.lock.json", "kustomization.yaml", ".hidden.yaml", "bad.YML", "bad.Json"])
def test_objects_in_a_folder_are_checked_whatever_the_name_of_their_file(jobs_repository: Path, name: str) -> None:
    write_all(jobs_repository, {f"m/{name}": MANIFEST, "m/jobgen.lock.json": MANIFEST})

    assert (f"m/{name}", "unknown-field") in found_in(lint_report(jobs_repository, "m")[1])


def test_summary_counts_the_files_that_are_skipped_in_a_folder(jobs_repository: Path) -> None:
    write_all(
        jobs_repository,
        {
            "m/good.yaml": MANIFEST.replace("spec: {replicas: 1}", "spec: {pytorchReplicaSpecs: {}}"),
            "m/README.md": "text",
            "m/.git/config.yaml": MANIFEST,
            "m/node_modules/a/package.json": "{}",
            "m/env/pyvenv.cfg": "",
            "m/other/.git": "gitdir: elsewhere",
            "m/other/bad.yaml": MANIFEST,
            "m/chart/Chart.yaml": "apiVersion: v2\nname: chart\n",
            "m/chart/templates/job.yaml": "apiVersion: v1\nkind: {{ .Values.kind }}\n",
            "m/jobgen.lock.json": '{"version": 1, "files": {}}',
            "m/package.json": '{"name": "a", "version": "1"}',
        },
    )
    _, report, err = lint_report(jobs_repository, "m")

    assert report["summary"]["files"] == 1
    assert report["summary"]["skipped"] == {
        "Helm chart": 1,
        "dependencies": 2,
        "hidden": 1,
        "lock file": 1,
        "config of another program": 1,
        "other Git repository": 1,
        "other extension": 1,
    }
    assert "1 object checked" in err
    assert "8 skipped (1 Helm chart, 1 config of another program, 2 dependencies, 1 hidden, 1 lock file," in err


def test_summary_counts_the_files_that_are_skipped_in_a_repository(jobs_repository: Path) -> None:
    write_all(
        jobs_repository, {"jobs/.old.yaml": "a: 1", "jobs/train.py": "print()", "policies/README.md": "# Policies\n"}
    )
    code, report, err = lint_report(jobs_repository)

    assert code == 0
    assert report["summary"]["skipped"] == {"hidden": 1, "other extension": 2}
    assert err.endswith("3 skipped (1 hidden, 2 other extension)\n")


def test_counts_are_the_same_from_the_cache(jobs_repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    write_all(jobs_repository, {"m/a.yaml": MANIFEST, "m/package.json": "{}", "m/.x/a.yaml": "", "jobs/.old.yaml": ""})
    cache.enable(tmp_path_factory.mktemp("cache"), "")
    try:
        reports = [
            lint_report(jobs_repository, *paths)[1] for paths in (("m", "jobs"), ("m", "jobs"), ("m/package.json", "m"))
        ]
    finally:
        cache.disable()
    assert reports[0] == reports[1]
    assert reports[0]["summary"]["skipped"] == {"hidden": 2, "config of another program": 1}
    assert reports[2]["summary"]["skipped"] == {"hidden": 1, "config of another program": 1}
    assert ("m/package.json", "missing-field") in found_in(reports[2])


@pytest.mark.parametrize(
    "path", ["jobs/x.txt", "overlays/dev/x.yaml.tmpl", "policies/deny", "schemas/a.io/kind.cue", "schemas/a.yml"]
)
def test_an_object_in_a_folder_of_jobgen_is_read_or_reported(jobs_repository: Path, path: str) -> None:
    write_all(jobs_repository, {path: f"# A comment.\n---\n{MANIFEST}"})
    code, report, _ = lint_report(jobs_repository)

    assert code == 1
    assert found_in(report) == [(path, "unread-file")]


def test_files_of_other_tools_are_skipped(tmp_path: Path) -> None:
    write_all(
        tmp_path,
        {
            "package.json": '{"name": "a", "kind": "b"}',
            "values.yaml": "image: {jobs_repository: a}\nspec: {a: 1}\n",
            "kind.yaml": "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes: [{role: worker}]\n",
            "kustomization.yaml": (
                "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [good.yaml]\n"
            ),
            "base/kustomization.yaml": "configMapGenerator: [{name: a, literals: [b=c]}]\n",
            "ci.yml": "name: ci\non: push\njobs: {a: {runs-on: x, steps: [{run: '${{ a }}'}]}}\n",
            "compose.yaml": "services: {a: {image: b}}\n",
            ".pre-commit-config.yaml": "repos: []\n",
            "mkdocs.yml": "a: !!python/name:x.y ''\n",
            "tsconfig.json": '{\n  // a comment\n  "compilerOptions": {},\n}\n',
            "playbook.yaml": "- hosts: all\n  tasks: []\n",
            "good.yaml": MANIFEST.replace("spec: {replicas: 1}", "spec: {pytorchReplicaSpecs: {}}"),
        },
    )
    _, report, _ = lint_report(tmp_path)

    assert {file for file, _ in found_in(report)} <= {"good.yaml"}
    assert report["summary"]["skipped"] == {"config of another program": 9}
    assert report["files"][0] == {
        "file": ".pre-commit-config.yaml",
        "takenFor": "config of another program",
        "why": "its name is one that a linter or a release tool reads",
    }
    assert [each["file"] for each in report["files"] if each["takenFor"] == "kustomization"] == [
        "base/kustomization.yaml",
        "kustomization.yaml",
    ]


@pytest.mark.parametrize(
    "text",
    [
        MANIFEST.replace("apiVersion", "apiversion"),
        MANIFEST.replace("apiVersion", "api_version"),
        MANIFEST.replace("apiVersion", "apiVerison"),
        MANIFEST.replace("kind:", "Kind:"),
        MANIFEST.replace("kind:", "knd:"),
        MANIFEST.replace("kind: PyTorchJob\n", ""),
        MANIFEST.replace("apiVersion: kubeflow.org/v1\n", ""),
        MANIFEST.replace("metadata:", "metdata:"),
        MANIFEST + "  bad: [\n",
        "\n".join(f"  {line}" for line in MANIFEST.replace("kind", "kin").splitlines()),
        "- apiVersion: v1\n  kind: Pod\n",
        MANIFEST.encode("utf-16"),
        MANIFEST.replace("bert", "b\x00ert"),
        b"\xef\xbb\xbf" + MANIFEST.replace("\n", "\r\n").encode(),
        "package: 1\n---\n" + MANIFEST,
    ],
)
def test_an_object_with_a_typo_or_in_another_encoding_is_not_skipped(tmp_path: Path, text: str | bytes) -> None:
    write_all(tmp_path, {"bad.yaml": text})
    code, report, _ = lint_report(tmp_path)

    assert code == 1
    assert report["summary"]["skipped"] == {}


def test_a_named_file_of_another_tool_is_one_error(tmp_path: Path) -> None:
    write_all(tmp_path, {"package.json": '{"name": "a"}'})
    code, report, _ = lint_report(tmp_path, "package.json")

    assert code == 1
    assert [each["message"] for each in report["findings"]] == [
        "the document is not a Kubernetes object: it has no `apiVersion`, `kind` and `metadata`"
    ]


def test_a_folder_without_manifests_is_an_error(tmp_path: Path) -> None:
    write_all(tmp_path, {"m/a.yaml": MANIFEST, "empty/.x": ""})

    assert lint_report(tmp_path, "empty")[0] == 3
    assert ("empty", "unread-file") in found_in(lint_report(tmp_path, "m", "empty")[1])


def test_a_folder_with_too_many_files_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobgen.repo.named_paths.MAX_WALKED_FILES", 3)
    write_all(tmp_path, {f"{number}.yaml": MANIFEST for number in range(4)})
    (tmp_path / "loop").symlink_to(".")
    code, report, _ = lint_report(tmp_path)

    assert code == 1
    assert found_in(report) == [(".", "too-many-files")]
    assert report["findings"][0]["message"].endswith("name the folders that hold manifests")
    assert report["summary"]["files"] == 0


def test_a_path_that_is_not_read_is_never_an_old_finding(
    jobs_repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    write_all(jobs_repository, {"jobs/.hidden.yaml": MANIFEST, "m/.old.yaml": MANIFEST, "jobs/x.txt": MANIFEST})
    assert Repository(jobs_repository, tmp_path_factory.mktemp("home")).commit().returncode == 0

    for path in ("jobs/.hidden.yaml", "jobs/typo.yaml", "typo.yaml"):
        assert found_in(lint_report(jobs_repository, path, since="HEAD")[1])[0][0] == path
    assert found_in(lint_report(jobs_repository, "m", since="HEAD")[1]) == []
    assert found_in(lint_report(jobs_repository, since="HEAD")[1]) == []


SPEC = "framework: pytorch\n  resources: {cpu: 1, memory: 1Gi}\n  image: registry.example.com/train:latest"


@pytest.mark.parametrize(
    ("comment", "rules"),
    [
        ("# jobgen: ignore[mutable-image-tag] -- why", []),
        ("# jobgen:ignore[mutable-image-tag] -- why", []),
        ("#jobgen: ignore[mutable-image-tag] -- why", []),
        ("# jobgen : ignore [mutable-image-tag] -- why", []),
        ("# Jobgen: Ignore[mutable-image-tag] -- why", []),
        ("# jobgen: ignroe[mutable-image-tag] -- why", ["malformed-suppression", "mutable-image-tag"]),
        ("# jobgen: ignore-line[mutable-image-tag] -- why", ["malformed-suppression", "mutable-image-tag"]),
        ("# jobgen:disable=mutable-image-tag", ["malformed-suppression", "mutable-image-tag"]),
        ("# jobgen: ignore", ["malformed-suppression", "mutable-image-tag"]),
        ("#jobgen:ignore", ["malformed-suppression", "mutable-image-tag"]),
        ("# jobgen:", ["malformed-suppression", "mutable-image-tag"]),
        ("# jobgen ignore[mutable-image-tag] -- why", ["malformed-suppression", "mutable-image-tag"]),
        ("# jobgen-ignore[mutable-image-tag] -- why", ["malformed-suppression", "mutable-image-tag"]),
        ("# jobgen ignores the tag", ["mutable-image-tag"]),
        ("# rendered by jobgen: see docs", ["mutable-image-tag"]),
        ("# jobgen.dev/v1", ["mutable-image-tag"]),
    ],
)
def test_a_comment_suppresses_or_is_reported(jobs_repository: Path, comment: str, rules: list[str]) -> None:
    head = "apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {name: a, namespace: ml}"
    write_all(jobs_repository, {"jobs/good.yaml": f"{head}\nspec:\n  {SPEC} {comment}\n"})

    assert sorted(rule for _, rule in found_in(lint_report(jobs_repository)[1])) == rules


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("yaml-syntax", b"a: [\n"),
        ("invalid-encoding", b"a: \xff\n"),
        ("not-a-mapping", b"- a\n"),
        ("unknown-anchor", b"a: *b\n"),
        ("unfilled-placeholder", b"kind: Pod\nmetadata:\n  name: a\n  ...\n"),
    ],
)
@pytest.mark.parametrize("path", ["jobs/bad.yaml", "m/bad.yaml"])
def test_a_file_that_is_not_read_cannot_be_suppressed(jobs_repository: Path, rule: str, text: bytes, path: str) -> None:
    write_all(jobs_repository, {path: f"# jobgen: ignore-file[{rule}] -- why\n".encode() + text})
    code, report, _ = lint_report(jobs_repository, path)

    assert code == 1
    assert found_in(report) == [(path, "mandatory-suppressed"), (path, rule)]


POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-latest}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [kubeflow.org], apiVersions: [v1], operations: [CREATE], resources: [pytorchjobs]}
  validations: [{expression: "object.metadata.name != 'good'", message: the name is taken}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-latest}
spec: {policyName: no-latest, validationActions: [Deny]}
"""


def as_list(documents: str) -> str:
    """The documents as items of a List."""
    items = "".join(f"  - {textwrap.indent(each, '    ').strip()}\n" for each in documents.split("---\n"))
    return f"apiVersion: v1\nkind: List\nitems:\n{items}"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("policies/team/deep/a.yaml", POLICY),
        ("policies/A.YML", POLICY),
        ("policies/a.yaml", as_list(POLICY)),
        ("policies/a.yaml", POLICY.replace("apiGroups: [kubeflow.org]", 'apiGroups: ["*"]')),
    ],
)
def test_policies_are_evaluated_wherever_they_are(jobs_repository: Path, path: str, text: str) -> None:
    write_all(jobs_repository, {path: text})
    code, report, _ = lint_report(jobs_repository)

    assert code == 1
    assert found_in(report) == [("jobs/good.yaml", "no-latest")]


ADMISSION, KIND = "apiVersion: admissionregistration.k8s.io/v1", "kind: ValidatingAdmissionPolicy\n"
MATCH = "  matchConstraints:\n"
SELECTOR = "    objectSelector: {matchExpressions: [{key: team, operator: %s}, {key: team, operator: %s}]}\n"
CONDITION = "  matchConditions: [{name: one, expression: %s}]\n"
ALWAYS, RESOURCE, OTHER_KIND = '"false"', "\"request.resource.resource == 'tfjobs'\"", "\"object.kind == 'Pod'\""
TFJOBS = "resourceRules: [{apiGroups: [kubeflow.org], apiVersions: [v1], operations: [CREATE], resources: [tfjobs]}]"


@pytest.mark.parametrize(
    ("old", "new", "rule", "hint"),
    [
        (ADMISSION, "apiVersion: admission.k8s.io/v1", "not-a-policy", f"write `{ADMISSION}`"),
        (KIND, "kind: ValidatingAdmisionPolicy\n", "not-a-policy", "did you mean `ValidatingAdmissionPolicy`"),
        (f"{ADMISSION}\n{KIND}", "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\n", "not-a-policy", "rewrite it"),
        (KIND, "kind: MutatingWebhookConfiguration\n", "not-a-policy", "rewrite it as a ValidatingAdmissionPolicy"),
        ("[kubeflow.org]", "[kubeflow.com]", "policy-matches-nothing", "did you mean `kubeflow.org`"),
        ("[pytorchjobs]", "[pytorchjob]", "policy-matches-nothing", "did you mean `pytorchjobs`"),
        ("apiVersions: [v1]", "apiVersions: [v9]", "policy-matches-nothing", "matches no"),
        ("{policyName", f"{{matchResources: {{{TFJOBS}}}, policyName", "policy-matches-nothing", "binding `no-latest`"),
        # Selectors and conditions that exclude each other, whatever a cluster has.
        (
            MATCH,
            f"{MATCH}{SELECTOR % ('In, values: [a]', 'NotIn, values: [a]')}",
            "policy-matches-nothing",
            "label `team`",
        ),
        (MATCH, f"{MATCH}{SELECTOR % ('In, values: [a]', 'DoesNotExist')}", "policy-matches-nothing", "label `team`"),
        (MATCH, f"{MATCH}{SELECTOR % ('In, values: [a]', 'In, values: [a, b]')}", "", ""),
        (MATCH, f"{MATCH}{SELECTOR % ('NotIn, values: [a]', 'DoesNotExist')}", "", ""),
        ("  validations", f"{CONDITION % ALWAYS}  validations", "policy-matches-nothing", "is always false"),
        ("  validations", f"{CONDITION % RESOURCE}  validations", "policy-matches-nothing", "is false for all"),
        ("  validations", f"{CONDITION % RESOURCE.replace('tfjobs', 'pytorchjobs')}  validations", "", ""),
        ("  validations", f"{CONDITION % OTHER_KIND}  validations", "policy-matches-nothing", "is false for all"),
        ("  validations", f"{CONDITION % OTHER_KIND.replace('Pod', 'PyTorchJob')}  validations", "", ""),
    ],
)
def test_policies_that_are_not_evaluated_are_reported(
    jobs_repository: Path, old: str, new: str, rule: str, hint: str
) -> None:
    write_all(jobs_repository, {"policies/a.yaml": POLICY.replace(old, new, 1)})
    findings = [each for each in lint_report(jobs_repository)[1]["findings"] if each["file"] == "policies/a.yaml"]

    assert [each["rule"] for each in findings if each["rule"] in ("not-a-policy", "policy-matches-nothing")] == (
        [rule] if rule else []
    )
    assert any(hint in each["message"] for each in findings) or not rule


@pytest.mark.parametrize(("value", "rules"), [("b", ["policy-matches-nothing"]), ("a", [])])
def test_a_binding_that_excludes_what_its_policy_selects_matches_nothing(
    jobs_repository: Path, value: str, rules: list[str]
) -> None:
    selected = f"{MATCH}    namespaceSelector: {{matchLabels: {{team: a}}}}\n"
    bound = f"{{matchResources: {{namespaceSelector: {{matchLabels: {{team: {value}}}}}}}, policyName"
    text = POLICY.replace(MATCH, selected, 1).replace("{policyName", bound, 1)
    write_all(jobs_repository, {"policies/a.yaml": text})
    found = [each for each in lint_report(jobs_repository)[1]["findings"] if each["file"] == "policies/a.yaml"]
    assert [each["rule"] for each in found if each["rule"] == "policy-matches-nothing"] == rules
    assert all("binding `no-latest`" in each["message"] for each in found if each["rule"] in rules)


def test_a_policy_for_a_kind_without_description_matches_its_objects(jobs_repository: Path) -> None:
    ray = "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: a, namespace: ml}\nspec: {}\n"
    policy = POLICY.replace("[kubeflow.org]", "[ray.io]").replace("pytorchjobs", "rayjobs")
    write_all(jobs_repository, {"policies/a.yaml": policy, "jobs/ray.yaml": ray})

    assert "policy-matches-nothing" not in [rule for _, rule in found_in(lint_report(jobs_repository)[1])]


LATEST = f"apiVersion: jobgen.dev/v1\nkind: TrainingJob\nmetadata: {{name: a, namespace: ml}}\nspec:\n  {SPEC}\n"


@pytest.mark.parametrize(("fail_on", "code"), [("error", 0), ("warning", 1), ("info", 1)])
def test_fail_on_decides_which_findings_fail(jobs_repository: Path, fail_on: str, code: int) -> None:
    write_all(jobs_repository, {"jobs/good.yaml": LATEST})

    assert lint_report(jobs_repository, fail_on=fail_on)[0] == code


@pytest.mark.parametrize(
    ("settings", "severity"),
    [
        ("categories: {image: error}", "error"),
        ("categories: {image: [{severity: error, paths: [other/*]}]}", "warning"),
        ("categories: {image: off}", None),
        ("categories: {image: error}\nrules: {mutable-image-tag: info}", "info"),
        ("categories: {image: info}\nrules: {mutable-image-tag: {severity: error, paths: [other/*]}}", "info"),
        ("categories: {security: error}", "warning"),
    ],
)
def test_a_category_has_a_severity(jobs_repository: Path, settings: str, severity: str | None) -> None:
    write_all(jobs_repository, {"jobs/good.yaml": LATEST, "jobgen.yaml": settings})
    findings = lint_report(jobs_repository)[1]["findings"]

    found = [each["severity"] for each in findings if each["rule"] == "mutable-image-tag"]
    assert found == ([severity] if severity else [])


@pytest.mark.parametrize(
    "settings", ["categories: {images: error}", "categories: {yaml: off}", "categories: {meta: off}"]
)
def test_an_unknown_category_is_an_error(jobs_repository: Path, settings: str) -> None:
    write_all(jobs_repository, {"jobgen.yaml": settings})
    code, report, _ = lint_report(jobs_repository)

    assert code == 1
    assert ("jobgen.yaml", "unknown-field") in found_in(report)


def test_all_errors_in_the_settings_are_shown_at_once(jobs_repository: Path) -> None:
    settings = "environments: [prd]\nrules: {mutable-tag: off, moving-tag: off, mutable-image-tag: error}\ntypo: 1\n"
    write_all(jobs_repository, {"jobgen.yaml": settings})
    code, report, _ = lint_report(jobs_repository)

    assert code == 1
    rules = [rule for file, rule in found_in(report) if file == "jobgen.yaml"]
    assert rules == ["unknown-overlay", "unknown-rule", "duplicate-rule", "unknown-field"]


@pytest.mark.parametrize("settings", ["rules: {unknown-field: off}\ntypo: 1", "typo: 1 # jobgen: ignore[all] -- why"])
def test_errors_in_the_settings_cannot_be_hidden(jobs_repository: Path, settings: str) -> None:
    write_all(jobs_repository, {"jobgen.yaml": settings})
    code, report, _ = lint_report(jobs_repository)

    assert code == 1
    assert ("jobgen.yaml", "unknown-field") in found_in(report)


OLD_CLUSTER = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  namespace: prod
  cluster: {operators: {training-operator: 1.5.0}}
  patches: [{match: {names: [good]}, jsonPatch: [{op: remove, path: /spec/missing}]}]
"""
JAX = """\
apiVersion: kubeflow.org/v1
kind: JAXJob
metadata: {name: good}
spec:
  jaxReplicaSpecs:
    Worker:
      template: {spec: {containers: [{name: jax, image: "a:1"}]}}
"""


def test_manifests_are_checked_for_the_named_environment(jobs_repository: Path) -> None:
    """As they are: without the patches and the namespace of the overlay, which are applied to jobs."""
    write_all(jobs_repository, {"overlays/prod/o.yaml": OLD_CLUSTER, "m/a.yaml": JAX, "jobgen.yaml": "{}\n"})
    _, plain, _ = lint_report(jobs_repository, "m")
    code, report, err = lint_report(jobs_repository, "m", envs=("prod",))

    assert "kind-not-served" not in [rule for _, rule in found_in(plain)]
    assert code == 1
    assert ("m/a.yaml", "kind-not-served") in found_in(report)
    assert {each["env"] for each in report["findings"]} == {"prod"}
    assert not any(each["rule"] == "json-patch-failed" for each in report["findings"])
    assert {each["object"]["namespace"] for each in report["findings"] if each["object"]} == {""}
    assert "in 1 environment" in err


def test_a_spec_outside_of_jobs_is_rendered_for_the_named_environment(jobs_repository: Path) -> None:
    write_all(jobs_repository, {"overlays/prod/o.yaml": OLD_CLUSTER, "m/a.yaml": LATEST})
    _, report, _ = lint_report(jobs_repository, "m", envs=("prod",))

    assert [each["env"] for each in report["findings"] if each["rule"] == "mutable-image-tag"] == ["prod"]


def test_an_environment_that_does_not_exist_is_an_error_for_manifests_too(jobs_repository: Path) -> None:
    write_all(jobs_repository, {"m/a.yaml": JAX})
    code, _, err = lint_report(jobs_repository, "m", envs=("prod",))

    assert code == 2
    assert "there is no environment `prod`" in err


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("legacy", "jobs/legacy/a.yaml", True),
        ("legacy/", "jobs/legacy/a.yaml", True),
        ("legacy/", "jobs/legacy", False),
        ("/legacy", "jobs/legacy/a.yaml", False),
        ("*.yml", "m/a/b.yml", True),
        ("m/*.yml", "m/a/b.yml", False),
        ("m/**/*.yml", "m/a/b.yml", True),
        ("m/**/*.yml", "m/b.yml", True),
        ("m/**", "m/a/b.yml", True),
        ("**/a/*", "m/x/a/b.yml", True),
        ("m/a", "m/ab/c.yml", False),
        ("m/[ab]?", "m/b1/c.yml", True),
        ("./m/a", "m/a/c.yml", True),
        ("*a" * 40 + "b", "a" * 200, False),
        ("**/" * 60 + "b", "a/" * 100 + "a", False),
    ],
)
def test_exclude_patterns_are_those_of_gitignore(pattern: str, path: str, matches: bool) -> None:
    assert is_excluded(path, parse_patterns([pattern])) is matches


def test_excluded_files_are_left_out_and_counted(jobs_repository: Path) -> None:
    write_all(
        jobs_repository,
        {
            "jobgen.yaml": "exclude: [jobs/legacy/, m/old, '*.tmp.yaml']\n",
            "jobs/legacy/a.yaml": LATEST,
            "jobs/broken.tmp.yaml": "a: [",
            "m/old/a.yaml": MANIFEST,
            "m/new.yaml": JAX,
        },
    )
    _, report, err = lint_report(jobs_repository, "m", "jobs")

    assert {file for file, _ in found_in(report)} <= {"m/new.yaml"}
    assert report["summary"]["skipped"] == {"excluded": 3}
    assert report["summary"]["files"] == 2
    assert "3 skipped (3 excluded)" in err


@pytest.mark.parametrize("path", ["m/old/a.yaml", "jobs/legacy/a.yaml"])
def test_a_hook_may_name_excluded_files(jobs_repository: Path, path: str) -> None:
    write_all(jobs_repository, {"jobgen.yaml": "exclude: [old, legacy]\n", path: MANIFEST})
    code, report, _ = lint_report(jobs_repository, path)

    assert (code, found_in(report), report["summary"]["skipped"]) == (0, [], {"excluded": 1})


def test_layers_are_never_excluded(jobs_repository: Path) -> None:
    write_all(jobs_repository, {"jobgen.yaml": "exclude: [overlays, jobgen.yaml]\n", "overlays/dev/o.yaml": "a: 1\n"})

    assert lint_report(jobs_repository)[0] == 1


def test_a_pattern_that_matches_nothing_is_reported(jobs_repository: Path) -> None:
    write_all(jobs_repository, {"jobgen.yaml": "exclude: ['m/typo/**', good.yaml, '.git/*']\n"})

    assert found_in(lint_report(jobs_repository)[1]) == [("jobgen.yaml", "exclude-matches-nothing")] * 2
    assert found_in(lint_report(jobs_repository, "jobs")[1]) == []


@pytest.mark.parametrize("text", ["", "# text\n", "---\n---\n", "apiVersion: v1\nkind: List\nitems: []\n", "null\n"])
def test_a_file_without_objects_is_reported(jobs_repository: Path, text: str) -> None:
    write_all(jobs_repository, {"m/a.yaml": text, "jobs/a.yaml": text})

    assert found_in(lint_report(jobs_repository)[1]) == [("jobs/a.yaml", "empty-file")]
    code, report, _ = lint_report(jobs_repository, "m/a.yaml", "jobs/good.yaml")
    assert (code, found_in(report)) == (1, [("m/a.yaml", "empty-file")])


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (f"---\n---\n{MANIFEST}---\n", ["missing-field", "unknown-field"]),
        (f"{MANIFEST}---\n- a\n---\ntext\n", ["missing-field", "unknown-field", "not-a-mapping", "not-a-mapping"]),
        ("apiVersion: v1\nkind: List\nmetadata: {name: a}\n", ["missing-field"]),
        ("apiVersion: v1\nkind: List\nmetadata: {name: a}\nitems: {a: 1}\n", ["wrong-type"]),
        (as_list(MANIFEST), ["missing-field", "unknown-field"]),
        (as_list(as_list(MANIFEST)), ["invalid-value"]),
        (as_list(MANIFEST) + "  - 5\n", ["missing-field", "unknown-field", "not-a-mapping"]),
        (MANIFEST.replace("\n", "\r\n").encode("utf-8-sig"), ["missing-field", "unknown-field"]),
        (MANIFEST.encode("utf-16"), ["invalid-encoding", "missing-field", "unknown-field"]),
        (MANIFEST.encode("utf-32"), ["invalid-encoding"]),
        (MANIFEST.encode("utf-16-le"), ["yaml-syntax"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["m", "m/a.yaml"])
def test_every_document_is_checked_or_reported(tmp_path: Path, text: str | bytes, rules: list[str], path: str) -> None:
    write_all(tmp_path, {"m/a.yaml": text})
    code, report, _ = lint_report(tmp_path, path)

    assert code == 1
    assert [rule for _, rule in found_in(report)] == rules


def test_errors_of_a_spec_are_shown_at_once(jobs_repository: Path) -> None:
    job = LATEST.replace("spec:\n", 'spec:\n  args: ["${{ matrix.lr }}"]\n  typo: 1\n')
    write_all(jobs_repository, {"jobs/good.yaml": job})

    assert sorted(rule for _, rule in found_in(lint_report(jobs_repository)[1])) == [
        "mutable-image-tag",
        "unknown-field",
        "unknown-variable",
    ]


@pytest.mark.parametrize("below", ["", "team"])
def test_a_workflow_of_the_same_name_is_not_the_settings(jobs_repository: Path, below: str) -> None:
    workflows = jobs_repository / ".github/workflows"
    write_all(jobs_repository, {".github/workflows/jobgen.yaml": "on: push\njobs: {}\n", "jobs/good.yaml": LATEST})
    (workflows / below).mkdir(exist_ok=True)

    assert find_root(workflows / below) == jobs_repository
    assert found_in(lint_report(workflows / below)[1]) == found_in(lint_report(jobs_repository)[1]) != []
    code, _, errors = lint_report(jobs_repository, ".github/workflows")
    assert (code, errors.partition(" (")[0].partition(";")[0]) == (3, "jobgen: there is nothing to lint here")


@pytest.mark.parametrize(
    ("api_version", "kind", "has_crd"),
    [
        ("v1", "Secret", False),
        ("networking.k8s.io/v1", "NetworkPolicy", False),
        ("example.com/v1", "Thing", True),
        ("gateway.networking.example.com/v1", "Gateway", True),
    ],
)
def test_only_kinds_with_a_crd_are_imported(tmp_path: Path, api_version: str, kind: str, has_crd: bool) -> None:
    write_all(tmp_path, {"m.yaml": f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n"})
    found = [each["message"] for each in lint_report(tmp_path)[1]["findings"] if each["rule"] == "missing-schema"]

    assert ["jobgen schema import" in message for message in found] == [True] * has_crd
    assert all("its fields were not checked" in message for message in found)


PAIRED = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [kubeflow.org], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}]
  validations: [{expression: "true", message: never}]
"""
PAIRING = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p}
spec: {policyName: p, validationActions: [Deny]}
"""


@pytest.mark.parametrize(
    ("policy", "binding", "rules"),
    [
        (PAIRED, f"{PAIRING}  :\n", ["yaml-syntax"]),
        (f"{PAIRED}  :\n", PAIRING, ["yaml-syntax"]),
        (PAIRED, PAIRING.replace("Deny", "Refuse"), ["invalid-policy"]),
        (PAIRED, "", ["policy-without-binding"]),
        ("", PAIRING, ["binding-without-policy"]),
    ],
)
def test_broken_policy_files_hide_no_binding(
    jobs_repository: Path, policy: str, binding: str, rules: list[str]
) -> None:
    files = {"policies/p.yaml": policy, "policies/b.yaml": binding}
    write_all(jobs_repository, {path: text for path, text in files.items() if text})

    assert [rule for _, rule in found_in(lint_report(jobs_repository)[1]) if rule != "empty-file"] == rules
    assert list_policies(jobs_repository).code == (0 if rules == ["policy-without-binding"] else 4)


def test_errors_of_settings_are_sorted(jobs_repository: Path) -> None:
    write_all(jobs_repository, {"jobgen.yaml": "rules:\n  no-such: off\nexclude: 5\nother: 1\n"})
    shown = lint_paths(jobs_repository, (), (), format_="text").out

    assert re.findall(r"jobgen.yaml:(\d+)", shown) == ["2", "3", "4"]


def test_an_empty_template_is_reported_at_its_role(tmp_path: Path) -> None:
    roles = "    Worker: {replicas: 1, template: {}}\n    Master:\n      replicas: 1\n      template: {}\n"
    job = MANIFEST.replace("spec: {replicas: 1}\n", f"spec:\n  pytorchReplicaSpecs:\n{roles}")
    write_all(tmp_path, {"m.yaml": job})
    found = [each for each in lint_report(tmp_path)[1]["findings"] if each["rule"] == "missing-pod-field"]

    assert [(each["line"], each["message"]) for each in found] == [
        (6, "role `Worker`: a pod requires `containers`; set it"),
        (9, "role `Master`: a pod requires `containers`; set it"),
    ]


def test_a_policy_that_fails_is_related_to_its_line(jobs_repository: Path) -> None:
    policy = PAIRED.replace('"true"', "\"'team' in object.metadata.lables\"")
    more = policy.replace("{name: p}", "{name: q}").replace("[{expression", "[{expression: 'true'}, {expression")
    files = {"p.yaml": f"{policy}---\n{PAIRING}", "q.yaml": f"{more}---\n{PAIRING.replace('p}', 'q}')}"}
    write_all(
        jobs_repository, {f"policies/{name}": text.replace(": p,", f": {name[0]},") for name, text in files.items()}
    )
    found = {each["rule"]: each["related"] for each in lint_report(jobs_repository)[1]["findings"]}

    assert [(each["file"], each["line"]) for each in found["p"]] == [("policies/p.yaml", 7)]
    assert [(each["file"], each["line"]) for each in found["q"]] == [("policies/q.yaml", 3)]
    assert "policies/p.yaml:7" in lint_paths(jobs_repository, (), (), format_="text").out


# Pods: everything that holds a pod template gets the rules and the validation of pods.

POD_FAULTS = """
containers:
  - name: node
    image: registry.example.com/train:1.4.2
    securityContext: {privileged: true}
    resources: {requests: {nvidia.com/gpu: 2}, limits: {nvidia.com/gpu: 4}}
    volumeMounts: [{name: data, mountPath: /data}]
initContainers:
  - {name: fetch, image: "registry.example.com/fetch:latest"}
volumes: [{name: scratch, hostPath: {path: /mnt/scratch}}]
"""
POD_RULES = {
    "gpu-request-limit-mismatch": "containers/0/resources/requests/nvidia.com~1gpu",
    "host-path": "volumes/0/hostPath/path",
    "mutable-image-tag": "initContainers/0/image",
    "privileged-container": "containers/0/securityContext/privileged",
    "unknown-volume": "containers/0/volumeMounts/0/name",
}


def indent(text: str, width: int) -> str:
    return textwrap.indent(text, " " * width)


def runtime(kind: str, pod: str, more: str = "") -> str:
    namespace = ", namespace: ml" if kind == "TrainingRuntime" else ""
    return f"""\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: {kind}
metadata: {{name: torch-large{namespace}}}
spec:
  mlPolicy: {{numNodes: 2, torch: {{}}}}
  template:
    spec:
{indent(more, 6)}
      replicatedJobs:
        - name: node
          template:
            metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}}}
            spec:
              template:
                spec:
{indent(pod, 18)}
"""


@pytest.mark.parametrize("kind", ["TrainingRuntime", "ClusterTrainingRuntime"])
def test_pods_of_runtimes_are_checked(kind, tmp_path):
    start = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec"
    found = lint_files(tmp_path, jobs__runtime=runtime(kind, POD_FAULTS))
    assert {(rule, f"{start}/{rest}") for rule, rest in POD_RULES.items()} <= set(found)


def test_a_runtime_may_leave_the_rest_to_train_jobs(tmp_path):
    """A TrainJob sets the image, and JobSet adds the volumes of claims."""
    pod = "containers: [{name: node, volumeMounts: [{name: claim, mountPath: /data}]}]"
    claims = """
volumeClaimPolicies:
  - templates: [{metadata: {name: claim}, spec: {accessModes: [ReadWriteMany]}}]
"""
    assert lint_files(tmp_path, jobs__runtime=runtime("TrainingRuntime", pod, claims)) == []


PATCHES = {
    "2.0.0": ("podSpecOverrides", "{targetJobs: [{name: node}], volumes: [&volume]}", "volumes/0"),
    "2.1.0": ("podTemplateOverrides", "{targetJobs: [{name: node}], spec: {volumes: [&volume]}}", "spec/volumes/0"),
    "2.3.0": (
        "runtimePatches",
        "{manager: example.com/team, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [&job]}}}}",
        "trainingRuntimeSpec/template/spec/replicatedJobs/0/template/spec/template/spec/volumes/0",
    ),
}


@pytest.mark.parametrize("version", PATCHES)
def test_patches_of_train_jobs_are_checked(version, tmp_path):
    field, patch, pointer = PATCHES[version]
    patch = patch.replace("&job", "{name: other, template: {spec: {template: {spec: {volumes: [&volume]}}}}}")
    patch = patch.replace("&volume", "{name: scratch, hostPath: {path: /mnt/scratch}}")
    job = f"""\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: bert, namespace: ml}}
spec:
  runtimeRef: {{name: torch-distributed}}
  {field}: [{patch}]
"""
    overlay = f"""\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  cluster: {{platform: trainer, operators: {{trainer: {version}}}}}
"""
    found = lint_files(tmp_path, jobs__bert=job, overlays__prod__overlay=overlay)
    assert found == [("host-path", f"/spec/{field}/0/{pointer}/hostPath/path")]


OWN_KIND = """\
apiVersion: example.com/v1
kind: {kind}
plural: {kind}s
platform: kubeflow
operator: {{name: own-operator}}
pods: {pods}
spec: {{head: any, groups: any}}
"""
OWN_OBJECT = """\
apiVersion: example.com/v1
kind: {kind}
metadata: {{name: own, namespace: ml}}
spec:
  head:
    template:
      spec:
{head}
  groups:
    {key} first:
        template:
          spec:
{group}
"""


@pytest.mark.parametrize("key", ["-", ""], ids=["list", "mapping"])
def test_pods_of_own_kinds_are_checked(key, tmp_path):
    """Paths of a user's own kind: several, through a list or a mapping."""
    pods, step = "[spec.head.template, spec.groups.*.template]", "0/first" if key else "first"
    if key:
        pods = pods.replace("groups.*", "groups.*.first")
    files = {
        "schemas__example.com__own_v1": OWN_KIND.format(kind="Own", pods=pods),
        "jobs__own": OWN_OBJECT.format(kind="Own", key=key, head=indent(POD_FAULTS, 8), group=indent(POD_FAULTS, 12)),
    }
    found = set(lint_files(tmp_path, **files))
    for start in ("/spec/head/template/spec", f"/spec/groups/{step}/template/spec"):
        assert {(rule, f"{start}/{rest}") for rule, rest in POD_RULES.items()} <= found


def test_pods_outside_of_roles_are_checked(tmp_path):
    """A kind with roles that holds another pod template besides, without a JSON schema."""
    kind = """\
apiVersion: example.com/v1
kind: Own
plural: owns
platform: kubeflow
operator: {name: own-operator}
frameworks: {own: {}}
replicas: {at: spec.groups, shape: map}
roles: {worker: {spelling: Worker, replicas: 1}}
single: worker
container: node
nameSuffix: "-{role}-{index}"
pods: spec.monitor.template
"""
    pod = indent(POD_FAULTS, 8)
    job = f"""\
apiVersion: example.com/v1
kind: Own
metadata: {{name: own, namespace: ml}}
spec:
  monitor:
    template:
      spec:
{pod}
  groups:
    Worker:
      template:
        spec:
{indent(POD_FAULTS, 10)}
"""
    found = set(lint_files(tmp_path, **{"schemas__example.com__own_v1": kind, "jobs__own": job}))
    for start in ("/spec/monitor/template/spec", "/spec/groups/Worker/template/spec"):
        assert {(rule, f"{start}/{rest}") for rule, rest in POD_RULES.items()} <= found


# ---------------------------------------------------------------------------------------------------------------------
# Specs: jobs, overlays, sweeps and kinds
# ---------------------------------------------------------------------------------------------------------------------

JOB = """\
apiVersion: jobgen.dev/v1
kind: TrainingJob
metadata: {name: bert}
spec:
  framework: pytorch
  image: registry.example.com/bert:1.4.2
  resources: {cpu: 4, memory: 16Gi}
"""
OVERLAY = """\
apiVersion: jobgen.dev/v1
kind: Overlay
spec:
  namespace: ml
"""


def repository(folder: Path, **files: str) -> Path:
    """A repository with one environment; files are named `jobs/a.yaml`."""
    given = {"jobgen.yaml": "{}\n", "overlays/prod/overlay.yaml": OVERLAY} | files
    write_files(folder, {path: text.encode() for path, text in given.items()})
    return folder


def lint(folder: Path, *paths: str) -> list[dict[str, Any]]:
    """The errors and warnings of a lint."""
    report = json.loads(lint_paths(folder, paths, (), format_="json").out)
    return [finding for finding in report["findings"] if finding["severity"] != "info"]


def render_all(folder: Path) -> list[Any]:
    """The objects of all environments."""
    return [json.loads(made.text) for made in render(folder, format="json").objects]


def rules(folder: Path) -> list[tuple[str, str, int]]:
    return [(finding["rule"], finding["file"], finding["line"]) for finding in lint(folder)]


CHANGED_BY_YAML = ["0755", "yes", "No", "on", "OFF", "y", "N", "True", "FALSE", "1_000", "1e3", "0x1F", "1.0", "1.10"]
CHANGED_BY_YAML += [".5", "+1", "-0", "0b11", "0o17", "12345678901234567890", "1.", "2e-5"]


@pytest.mark.parametrize("text", CHANGED_BY_YAML)
@pytest.mark.parametrize(
    "form", ["  env: {KEY: %s}\n", "  env:\n    - name: KEY\n      value: %s\n", "  env: {X: &x %s}\n"]
)
def test_env_value_that_yaml_changes_is_an_error(tmp_path, form, text):
    repository(tmp_path, **{"jobs/a.yaml": JOB + form % text})

    [finding] = lint(tmp_path)

    # Fractions have been errors before.
    assert finding["rule"] in ("ambiguous-scalar", "wrong-type")
    assert text in finding["message"] or finding["rule"] == "wrong-type"


@pytest.mark.parametrize("text", ["100", "-1", "0", "true", "false", "2024-01-01", "1:30", "v1.10", "0.1.2", '"yes"'])
def test_env_value_that_yaml_leaves_alone_is_rendered_as_written(tmp_path, text):
    repository(tmp_path, **{"jobs/a.yaml": JOB + f"  env: {{KEY: {text}}}\n"})

    [made] = render_all(tmp_path)
    container = made["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]
    assert container["env"] == [{"name": "KEY", "value": text.strip('"')}]


@pytest.mark.parametrize("key", ["y", "N", "on", "off", "1.10", "0x10", "True"])
@pytest.mark.parametrize("field", ["env", "labels", "annotations", "nodeSelector", "podTemplate"])
def test_key_that_yaml_changes_is_an_error_that_fix_quotes(tmp_path, field, key):
    repository(tmp_path, **{"jobs/a.yaml": JOB + f"  {field}:\n    {key}: text\n"})

    assert ("ambiguous-scalar", "jobs/a.yaml", 9) in rules(tmp_path)

    lint_paths(tmp_path, (), (), format_="json", fix="safe")
    assert (tmp_path / "jobs/a.yaml").read_text().endswith(f'    "{key}": text\n')


@pytest.mark.parametrize(
    "field",
    [
        "  env: {A: 0755, B: yes, C: 1.10}\n",
        "  command: [0755, yes, 1.10]\n",
        "  labels: {A: 0755, B: yes, C: 1.10}\n",
        "  nodeSelector: {A: 0755, B: yes, C: 1.10}\n",
        "  matrix: {A: [0755], B: [yes], C: [1.10]}\n  args: ['${{ matrix.A }} ${{ matrix.B }} ${{ matrix.C }}']\n",
    ],
)
def test_fix_quotes_values_as_they_are_written(tmp_path, field):
    repository(tmp_path, **{"jobs/a.yaml": JOB + field})
    assert len(lint(tmp_path)) == 3

    lint_paths(tmp_path, (), (), format_="json", fix="safe")

    quoted = field.replace("0755", '"0755"').replace("yes", '"yes"').replace("1.10", '"1.10"')
    assert (tmp_path / "jobs/a.yaml").read_text() == JOB + quoted
    assert not lint(tmp_path)


def test_overlays_and_settings_are_checked_for_ambiguous_scalars(tmp_path):
    overlay = OVERLAY + "  defaults:\n    env: {USE_AMP: on}\n  patches:\n    - merge: {env: {no: x}}\n"
    repository(tmp_path, **{"jobs/a.yaml": JOB, "overlays/prod/overlay.yaml": overlay})

    assert rules(tmp_path) == [
        ("ambiguous-scalar", "overlays/prod/overlay.yaml", 6),
        ("ambiguous-scalar", "overlays/prod/overlay.yaml", 8),
    ]


def has_changed_text(tree: object) -> bool:
    """Return True if a tree with locations has a key or scalar that is shown as another text."""
    if isinstance(tree, dict):
        return any(has_changed_text(part) for pair in tree.items() for part in pair)
    if isinstance(tree, list):
        return any(map(has_changed_text, tree))
    return isinstance(tree, (TracedKey, TracedScalar)) and bool(tree.written)


@given(
    st.text("0123456789.eExXoObB_+-yYnNaAtTfFrRuUlLsSoO~", max_size=8) | st.sampled_from(CHANGED_BY_YAML),
    st.sampled_from(
        ["k: %s\n", "k: %s", "- %s\n", "k: [%s, 1]\n", "k: {%s: 1}\n", "%s: 1\n", "k:\n  - %s # x\n", "k: &a %s\n"]
    ),
)
def test_every_file_with_an_ambiguous_scalar_is_read_again(text, form):
    content = (form % text).encode()
    documents = read(b"d:\n  " + content.replace(b"\n", b"\n  "), "a.yaml", traced=True).documents

    assert may_be_ambiguous(content) or not any(has_changed_text(document.data) for document in documents)


def overlay(spec: str) -> str:
    return OVERLAY + textwrap.indent(textwrap.dedent(spec), "  ")


@pytest.mark.parametrize(
    ("selector", "hint"),
    [
        ("paths: [typo/*]", "no job has the path `typo/*`"),
        ("paths: [vision/*]", "did you mean `jobs/vision/*`?"),
        ("names: [brt]", "did you mean `bert`?"),
        ("labels: {team: npl}", "no job has the label `team: npl`; did you mean `nlp`?"),
        ("labels: {taem: nlp}", "no job has the label `taem`; did you mean `team`?"),
        ("kinds: [PytorchJob]", "did you mean `PyTorchJob`?"),
    ],
)
def test_selector_of_an_environment_that_selects_nothing_is_an_error(tmp_path, selector, hint):
    job = JOB.replace("{name: bert}", "{name: bert, labels: {team: nlp}}")
    files = {"jobs/vision/a.yaml": job, "overlays/dev/overlay.yaml": OVERLAY}
    repository(tmp_path, **files, **{"overlays/prod/overlay.yaml": overlay(f"jobs: {{{selector}}}\n")})

    [finding] = lint(tmp_path)

    assert (finding["rule"], finding["line"]) == ("empty-environment", 5)
    assert hint in finding["message"]


@pytest.mark.parametrize("text", [JOB, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\ndata: {a: [1]}\n"])
def test_job_of_no_environment_is_reported_and_checked_by_its_schema(tmp_path, text):
    others = JOB.replace("bert", "gpt")
    prod = overlay("jobs: {names: [gpt]}\n")
    repository(tmp_path, **{"jobs/a.yaml": text, "jobs/b.yaml": others, "overlays/prod/overlay.yaml": prod})

    found = rules(tmp_path)

    assert ("job-without-environment", "jobs/a.yaml", 1) in found
    assert text == JOB or any(rule in ("wrong-type", "missing-schema") for rule, _, _ in found)


def test_job_of_an_environment_that_was_not_run_is_not_reported(tmp_path):
    repository(
        tmp_path,
        **{"jobs/a.yaml": JOB, "jobs/b.yaml": JOB.replace("bert", "gpt")},
        **{"overlays/prod/overlay.yaml": overlay("jobs: {names: [gpt]}\n")},
        **{"overlays/dev/overlay.yaml": overlay("jobs: {names: [bert]}\n")},
    )

    assert not lint(tmp_path)
    assert not json.loads(lint_paths(tmp_path, (), ("prod",), format_="json").out)["findings"]


def test_overlay_that_the_settings_do_not_list_is_a_warning(tmp_path):
    files = {"jobgen.yaml": "environments: [prod]\n", "overlays/dev/overlay.yaml": OVERLAY, "jobs/a.yaml": JOB}
    files["overlays/prod/overlay.yaml"] = overlay("extends: [base]\n")
    repository(tmp_path, **files, **{"overlays/base/overlay.yaml": OVERLAY})

    assert rules(tmp_path) == [("unlisted-overlay", "jobgen.yaml", 1)]


def test_default_of_a_role_that_no_job_can_have_is_an_error_with_a_fix(tmp_path):
    wrong = overlay("defaults: {roles: {wroker: {restartPolicy: Never}, master: {}}}\n")
    repository(tmp_path, **{"jobs/a.yaml": JOB, "overlays/prod/overlay.yaml": wrong})

    [finding] = lint(tmp_path)
    assert finding["rule"] == "unknown-role"
    assert "did you mean `worker`?" in finding["message"]

    lint_paths(tmp_path, (), (), format_="json", fix="unsafe")
    assert (tmp_path / "overlays/prod/overlay.yaml").read_text() == wrong.replace("wroker", "worker")


def test_default_of_a_role_that_another_environment_has_is_accepted(tmp_path):
    base = overlay("defaults: {roles: {launcher: {restartPolicy: Never}}}\n")
    tensorstack = overlay("extends: [base]\ncluster: {platform: tensorstack}\n")
    files = {"overlays/prod/overlay.yaml": overlay("extends: [base]\n"), "overlays/base/overlay.yaml": base}
    repository(tmp_path, **files, **{"overlays/t9k/overlay.yaml": tensorstack, "jobs/a.yaml": JOB})

    assert "unknown-role" not in [rule for rule, _, _ in rules(tmp_path)]


PATCH = "patches:\n- match: {labels: {team: vision}}\n  merge: {image: registry.example.com/v:1}\n"


def test_patch_that_matches_nothing_stops_a_lint_but_no_render(tmp_path):
    repository(tmp_path, **{"jobs/a.yaml": JOB, "overlays/prod/overlay.yaml": overlay(PATCH)})

    [finding] = lint(tmp_path)
    assert (finding["rule"], finding["severity"]) == ("patch-matches-nothing", "error")
    assert "no job has the label `team`" in finding["message"]
    result = render(tmp_path)
    assert len(result.objects) == 1
    assert [(found.rule, found.severity.value) for found in result.findings] == [("patch-matches-nothing", "warning")]


def test_optional_patch_may_match_nothing(tmp_path):
    repository(tmp_path, **{"jobs/a.yaml": JOB, "overlays/prod/overlay.yaml": overlay(PATCH + "  optional: true\n")})

    assert not lint(tmp_path)
    assert not render(tmp_path).findings


def test_broken_kind_overlay_or_policy_hides_nothing_of_other_environments(tmp_path):
    repository(
        tmp_path,
        **{"jobs/a.yaml": JOB + "  nodeSelector: {a b: c}\n", "overlays/dev/overlay.yaml": OVERLAY + "  namspace: x\n"},
        **{"schemas/example.com/thing_v1.yaml": "apiVersion: example.com/v1\nkind: Thing\n"},
        **{"overlays/stray.yaml": OVERLAY, "policies/broken.yaml": "kind: ValidatingAdmissionPolicy\n"},
    )

    files = {file for _, file, _ in rules(tmp_path)}

    assert files >= {
        "jobs/a.yaml",
        "overlays/dev/overlay.yaml",
        "overlays/stray.yaml",
        "schemas/example.com/thing_v1.yaml",
    }


SWEEP = JOB + "  matrix: {lr: [0.1, 0.01]}\n"


@pytest.mark.parametrize(
    "form",
    [
        "${{ lr }}",
        "{{ matrix.lr }}",
        "{{matrix.lr}}",
        "${{matrix.lr}",
        "${matrix.lr}",
        "$(matrix.lr)",
        "{{ lr }}",
        "$matrix.lr",
    ],
)
def test_misspelled_variable_is_an_error_that_fix_corrects(tmp_path, form):
    repository(tmp_path, **{"jobs/a.yaml": SWEEP + f"  args: ['--lr={form}', '--out=/${{{{ matrix.lr }}}}']\n"})

    [finding] = lint(tmp_path)
    assert finding["rule"] == "unknown-variable"
    assert "write `${{ matrix.lr }}`" in finding["message"]

    lint_paths(tmp_path, (), (), format_="json", fix="safe")
    assert (
        tmp_path / "jobs/a.yaml"
    ).read_text() == SWEEP + "  args: ['--lr=${{ matrix.lr }}', '--out=/${{ matrix.lr }}']\n"


@pytest.mark.parametrize("text", ["${{ github.sha }}", "{{ item }}", "$(LR)", "${LR}", "matrix.lr", "a matrix (small)"])
def test_text_that_is_no_variable_is_left_alone(tmp_path, text):
    repository(tmp_path, **{"jobs/a.yaml": SWEEP + f"  args: ['{text}', '--out=/${{{{ matrix.lr }}}}']\n"})

    assert "unknown-variable" not in [rule for rule, _, _ in rules(tmp_path)]


def test_unused_variables_and_identical_members_are_warnings(tmp_path):
    repository(tmp_path, **{"jobs/a.yaml": SWEEP, "jobs/b.yaml": SWEEP.replace("bert", "gpt") + "  args: [a]\n"})

    assert rules(tmp_path) == [("unused-variable", "jobs/a.yaml", 8), ("unused-variable", "jobs/b.yaml", 8)]
    assert len(render_all(tmp_path)) == 4


def test_misspelled_variable_gets_the_closest_name(tmp_path):
    text = (
        JOB + "  matrix: {learning_rate: [1, 2]}\n  args: ['${{ matrix.learning_rat }}', '{{ matrix.learnin_rate }}']\n"
    )
    repository(tmp_path, **{"jobs/a.yaml": text})

    assert all("learning_rate" in finding["message"] for finding in lint(tmp_path))


@pytest.mark.parametrize(
    ("fields", "rule", "fix"),
    [
        ('command: ["torchrun train.py"]', "command-in-one-string", "write `[torchrun, train.py]`"),
        ('command: ["python train.py --a=1 && ls"]', "command-in-one-string", "start a shell: `[sh, -c, "),
        ("command: [cd, /app, '&&', python, train.py]", "shell-syntax-without-shell", "use `workingDir`"),
        ("command: [python, a.py, '>', /data/log]", "shell-syntax-without-shell", "after `sh -c`"),
        ("command: [export, A=1]", "shell-syntax-without-shell", "set variables in `env`"),
        ("command: [bash, -lc, python, a.py, '|', tee, log]", "shell-syntax-without-shell", "as one item"),
        ("resources: {cpu: 500, memory: 4Gi}", "cpu-too-large", "write `500m`"),
        ('resources: {cpu: "2000", memory: 4Gi}', "cpu-too-large", "write `2000m`"),
        ("volumes: {data: {pvc: datasets}}", "unmounted-volume", "add `mountPath`"),
        ("command: [python, train.py, --out, $OUT_DIR]", "unexpanded-variable", "write `$(OUT_DIR)`"),
    ],
)
def test_command_line_or_amount_that_cannot_work_is_reported(tmp_path, fields, rule, fix):
    repository(tmp_path, **{"jobs/a.yaml": JOB.replace("  resources: {cpu: 4, memory: 16Gi}\n", "") + f"  {fields}\n"})

    [finding] = [finding for finding in lint(tmp_path) if finding["rule"] == rule]

    assert finding["severity"] == ("error" if rule == "command-in-one-string" else "warning")
    assert fix in finding["message"]


@pytest.mark.parametrize("platform", ["kubeflow", "mpi-operator"])
@pytest.mark.parametrize("command", ["[mpirun, python, train.py]", "[sh, -c, mpirun -np 2 a]", "[python, -m, launch]"])
def test_command_of_an_mpi_job_for_all_roles_is_a_warning(tmp_path, platform, command):
    job = JOB.replace("pytorch", "mpi")
    prod = overlay(f"cluster: {{platform: {platform}}}\n")
    shared = job + f"  command: {command}\n  roles: {{worker: {{replicas: 2}}}}\n"
    repository(tmp_path, **{"jobs/a.yaml": shared, "overlays/prod/overlay.yaml": prod})
    assert ("launcher-command-on-workers", "jobs/a.yaml", 8) in rules(tmp_path)

    own = job + f"  roles: {{launcher: {{command: {command}}}, worker: {{replicas: 2}}}}\n"
    repository(tmp_path, **{"jobs/a.yaml": own, "overlays/prod/overlay.yaml": prod})
    assert "launcher-command-on-workers" not in [rule for rule, _, _ in rules(tmp_path)]


def test_own_description_of_a_shipped_kind_keeps_the_types_of_its_fields(tmp_path):
    shipped = (Path(__file__).parent.parent / "schemas/kubeflow.org/mxjob_v1.yaml").read_text()
    own = re.sub(r"(?<=mxnet\.jobMode:)(\n    .*)+", " spec.jobMode", shipped)
    job = JOB.replace("pytorch", "mxnet") + "  mxnet: {jobMode: [1]}\n"
    assert own != shipped
    repository(tmp_path, **{"schemas/kubeflow.org/mxjob_v1.yaml": own, "jobs/a.yaml": job})

    assert ("wrong-type", "jobs/a.yaml", 8) in rules(tmp_path)
    assert not render_all(tmp_path)


@pytest.mark.parametrize(
    "version", ["jobgen.dve/v1", "jobgen/v1", "jobgen.dev", "jobgendev/v1", "v1", "JobGen.dev/v1", "example.com/v1"]
)
def test_misspelled_group_of_a_job_is_an_error_and_nothing_is_rendered(tmp_path, version):
    repository(tmp_path, **{"jobs/a.yaml": JOB.replace("jobgen.dev/v1", version)})

    [finding] = lint(tmp_path)

    assert (finding["rule"], finding["severity"], finding["line"]) == ("invalid-value", "error", 1)
    assert "must be `jobgen.dev/v1`" in finding["message"]
    assert not render_all(tmp_path)


def test_misspelled_group_of_an_overlay_is_an_error(tmp_path):
    wrong = OVERLAY.replace("jobgen.dev", "jobgen.dve")
    repository(tmp_path, **{"jobs/a.yaml": JOB, "overlays/prod/overlay.yaml": wrong, "jobs/b.yaml": wrong})

    assert rules(tmp_path) == [
        ("misplaced-overlay", "jobs/b.yaml", 1),
        ("invalid-value", "overlays/prod/overlay.yaml", 1),
    ]


@pytest.mark.parametrize(
    ("folder", "meant"),
    [
        ("job", "jobs"),
        ("Jobs", "jobs"),
        ("jbos", "jobs"),
        ("overlay", "overlays"),
        ("overlays_", "overlays"),
        ("team", "teams"),
    ],
)
def test_misspelled_folder_with_objects_of_jobgen_is_an_error(tmp_path, folder, meant):
    text = JOB.replace("name: a", "name: b") if meant == "jobs" else OVERLAY
    repository(tmp_path, **{"jobs/a.yaml": JOB, f"{folder}/prod/b.yaml": text})

    [finding] = lint(tmp_path)
    assert (finding["rule"], finding["severity"], finding["file"]) == ("unread-file", "error", f"{folder}/prod/b.yaml")
    assert f"jobgen reads `{meant}/`, not `{folder}/`" in finding["message"]
    (tmp_path / "jobgen.yaml").write_text(f"exclude: [{folder}/]\n")
    assert lint(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (JOB.replace("name: a", "name: b"), "jobs"),
        (OVERLAY, "overlays"),
        ("apiVersion: jobgen.dev/v1\nkind: Team\nmetadata: {name: nlp}\nspec: {folders: [jobs]}\n", "teams"),
        ("apiVersion: jobgen.dev/v1\nkind: JobTests\nspec: []\n", "tests"),
    ],
)
def test_object_of_jobgen_at_the_root_is_an_error(tmp_path, text, meant):
    repository(tmp_path, **{"jobs/a.yaml": JOB, "b.yaml": text})

    [finding] = lint(tmp_path)
    assert (finding["rule"], finding["severity"], finding["file"]) == ("unread-file", "error", "b.yaml")
    assert finding["message"] == f"the file is not read; move it to `{meant}/`, or list it in `exclude`"


def test_other_files_at_the_root_are_no_error(tmp_path):
    outside = tmp_path / "outside.yaml"
    outside.write_text(JOB)
    settings = {"jobgen.yaml": "exclude: [scratch.yaml]\n", "scratch.yaml": JOB, "values.yaml": "kind: TrainingJob\n"}
    repository(tmp_path / "own", **{"jobs/a.yaml": JOB, **settings})
    (tmp_path / "own/link.yaml").symlink_to(outside)

    assert lint(tmp_path / "own") == []


def test_folders_with_other_names_or_objects_are_no_misspelling(tmp_path):
    other = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\n"
    repository(tmp_path, **{"jobs/a.yaml": JOB, "examples/b.yaml": JOB, "job/c.yaml": other, "job/README.md": "x"})

    assert lint(tmp_path) == []


def test_policies_in_a_misspelled_folder_are_an_error(tmp_path):
    policy = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: a}\n"
    repository(tmp_path, **{"jobs/a.yaml": JOB, "policy/a.yaml": policy})

    assert [each[:2] for each in rules(tmp_path)] == [("unread-file", "policy/a.yaml")]


def test_training_job_of_another_group_is_a_manifest(tmp_path):
    other = (
        "apiVersion: sagemaker.services.k8s.aws/v1alpha1\nkind: TrainingJob\nmetadata: {name: a}\nspec: {roleARN: x}\n"
    )
    repository(tmp_path, **{"jobs/a.yaml": other})

    assert [rule for rule, _, _ in rules(tmp_path)] == ["missing-schema"]
    assert len(render_all(tmp_path)) == 1


FOR_GPT = """
patches:
- match: {names: ['gpt*']}
  merge: {env: {A: null}}
- match: {frameworks: [tensorflow]}
  manifest: {metadata: {labels: {a: b}}}
"""


@pytest.mark.parametrize(
    "text",
    [
        JOB.replace("image:", "imgae:"),
        JOB.replace("framework: pytorch", "framework: tensorfolw"),
        JOB.replace("TrainingJob", "TrainingJbo"),
        JOB.replace("jobgen.dev", "jobgen.dve"),
        JOB + "  env: [\n",
        JOB + "  env: {A: yes}\n",
        JOB + "  matrix: {lr: [1, 1]}\n",
        JOB + "  matrix: {lr: [1, 2]}\n  args: ['${{ matrix.l }}']\n",
        JOB + "  roles: {wroker: {replicas: 2}}\n",
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {}\n",
        "\0",
    ],
)
@pytest.mark.parametrize("prod", [FOR_GPT, FOR_GPT + "jobs: {names: [bert, 'gpt*']}\n", "jobs: {names: ['gpt*']}\n"])
def test_nothing_is_said_to_match_nothing_while_a_job_cannot_be_read(tmp_path, text, prod):
    files = {"jobs/b.yaml": JOB + "  env: {B: b}\n", "overlays/dev/overlay.yaml": OVERLAY}
    repository(
        tmp_path, **files, **{"jobs/a.yaml": text.replace("bert", "gpt"), "overlays/prod/overlay.yaml": overlay(prod)}
    )

    assert {file for _, file, _ in rules(tmp_path)} == {"jobs/a.yaml"}


@pytest.mark.parametrize(
    "spec",
    [
        "defaults: {env: {LR: '${{ matrix.lr }}'}}",
        "defaults: {args: ['--lr={{ matrix.lr }}']}",
        "patches: [{merge: {command: ['${{ matrix.lr }}']}}]",
        "patches: [{match: {names: ['bert-*']}, manifest: {metadata: {annotations: {lr: '${{matrix.lr}}'}}}}]",
        "patches: [{jsonPatch: [{op: add, path: /metadata/annotations, value: {a: '${{ matrix.lr }}'}}]}]",
    ],
)
def test_variable_in_an_overlay_is_an_error(tmp_path, spec):
    job = SWEEP + "  args: ['${{ matrix.lr }}']\n"
    repository(tmp_path, **{"jobs/a.yaml": job, "overlays/prod/overlay.yaml": overlay(spec + "\n")})

    [finding] = lint(tmp_path)

    assert (finding["rule"], finding["severity"]) == ("unknown-variable", "error")
    assert (finding["file"], finding["line"]) == ("overlays/prod/overlay.yaml", 5)
    assert "write the value here, or set it there" in finding["message"]
    assert not render_all(tmp_path)


def test_variable_in_a_manifest_is_an_error(tmp_path):
    manifest = MANIFEST.replace("namespace: ml", "namespace: ml, labels: {lr: '${{ matrix.lr }}'}")
    repository(tmp_path, **{"jobs/a.yaml": manifest})

    [finding] = lint(tmp_path)

    assert (finding["rule"], finding["line"]) == ("unknown-variable", 3)
    assert "a manifest has no `matrix`" in finding["message"]
    assert not render_all(tmp_path)


def test_workflow_in_a_config_map_is_text(tmp_path):
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {ci.yaml: 'os: ${{ matrix.os }}'}\n"
    repository(tmp_path, **{"jobs/a.yaml": text})

    assert "unknown-variable" not in [rule for rule, _, _ in rules(tmp_path)]
    assert len(render_all(tmp_path)) == 1


@pytest.mark.parametrize("name", ["bert-${{ matrix.lr }}", "${{ matrix.lr }}-bert", "bert.${{matrix.lr}}"])
def test_variable_in_the_name_of_a_sweep_is_an_error_that_fix_removes(tmp_path, name):
    job = SWEEP.replace("{name: bert}", f'{{name: "{name}"}}') + "  args: ['${{ matrix.lr }}']\n"
    repository(tmp_path, **{"jobs/a.yaml": job})

    [finding] = lint(tmp_path)
    assert (finding["rule"], finding["line"]) == ("unknown-variable", 3)
    assert "members are named `<name>-<values>`; remove it" in finding["message"]

    lint_paths(tmp_path, (), (), format_="json", fix="unsafe")
    assert [made["metadata"]["name"] for made in render_all(tmp_path)] == ["bert-0p01", "bert-0p1"]


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("resources.gpus", "did you mean `gpu`?"),
        ("resources.limits.memroy", "did you mean `memory`?"),
        ("runPolicy.backofLimit", "did you mean `backoffLimit`?"),
        ("roles.wroker.replicas", "did you mean `worker`?"),
        ("roles.worker.replcias", "did you mean `replicas`?"),
        ("roles.worker.resources.gpus", "did you mean `gpu`?"),
        ("image.tag", "lock `image`"),
        ("command[0]", "lock the whole list: `command`"),
        ("pytorch.nprocPerNodes", "did you mean `nprocPerNode`?"),
        ("volumes.data.mountpath", "did you mean `mountPath`?"),
        ("imgae", "did you mean `image`?"),
    ],
)
def test_locked_path_that_locks_nothing_is_an_error(tmp_path, path, hint):
    repository(tmp_path, **{"jobs/a.yaml": JOB, "overlays/prod/overlay.yaml": overlay(f"locked: [queue, '{path}']\n")})

    [finding] = lint(tmp_path)

    assert (finding["file"], finding["line"], finding["severity"]) == ("overlays/prod/overlay.yaml", 5, "error")
    assert hint in finding["message"]


def test_locked_paths_that_a_job_can_have_are_accepted(tmp_path):
    locked = """[namespace, resources.gpu, resources.limits, resources.requests.cpu, 'resources["nvidia.com/gpu"]',
        env.HOME, roles.worker, roles.worker.image, roles.worker.resources.memory, podTemplate.spec.hostNetwork,
        volumes.data.pvc, labels.team, securityContext.runAsUser, manifest.spec, run.state, resources.hugepages-2Mi]"""
    job = JOB.replace("{cpu: 4, memory: 16Gi}", "{requests: {memory: 16Gi}}")
    repository(tmp_path, **{"jobs/a.yaml": job, "overlays/prod/overlay.yaml": overlay(f"locked: {locked}\n")})

    assert [rule for rule, _, _ in rules(tmp_path)] == []


@pytest.mark.parametrize(
    ("role", "hint"), [("wroker", "did you mean `worker`?"), ("qqq", "there are `master`, `worker`")]
)
def test_unknown_role_of_defaults_is_compared_with_the_roles_of_the_jobs(tmp_path, role, hint):
    wrong = overlay(f"defaults: {{roles: {{{role}: {{restartPolicy: Never}}, worker: {{}}}}}}\n")
    repository(tmp_path, **{"jobs/a.yaml": JOB, "overlays/prod/overlay.yaml": wrong})

    [finding] = lint(tmp_path)

    assert finding["rule"] == "unknown-role"
    assert finding["message"].endswith(hint)


@pytest.mark.parametrize(
    "content", ["merge: {}", "manifest: {}", "jsonPatch: []", "merge: {}, manifest: {}", "match: {}"]
)
def test_empty_patch_is_an_error_that_hides_no_other(tmp_path, content):
    prod = overlay(f"patches:\n- {{{content}}}\n- match: {{names: [brt]}}\n  merge: {{queue: a}}\n")
    job = JOB.replace("cpu: 4", "cpu: 4x")
    repository(tmp_path, **{"jobs/a.yaml": job, "overlays/prod/overlay.yaml": prod})

    found = rules(tmp_path)

    assert ("empty-patch", "overlays/prod/overlay.yaml", 6) in found
    assert [file for _, file, _ in found].count("jobs/a.yaml") == 1
    assert not render_all(tmp_path)
    repository(tmp_path, **{"jobs/a.yaml": JOB, "overlays/prod/overlay.yaml": prod})
    assert [rule for rule, _, _ in rules(tmp_path)] == ["empty-patch", "patch-matches-nothing"]


@pytest.mark.parametrize(
    ("selector", "hint"),
    [
        ("names: ['bert*', gtp]", "no job has the name `gtp`; did you mean `gpt`?"),
        ("names: [gpt, bret]", "no job has the name `bret`; did you mean `bert`?"),
        ("names: [gpt, sweep]", "`sweep` is a sweep; write `sweep-*`"),
        ("paths: [jobs/*, nlp/*]", "no job has the path `nlp/*`; did you mean `jobs/nlp/*`?"),
        ("namespaces: [ml, mll]", "no job has the namespace `mll`; did you mean `ml`?"),
        ("kinds: [PyTorchJob, PytorchJob]", "no job has the kind `PytorchJob`; did you mean `PyTorchJob`?"),
    ],
)
@pytest.mark.parametrize("place", ["jobs: {%s}\n", "patches:\n- {match: {%s}, merge: {queue: a}}\n"])
def test_entry_of_a_selector_that_matches_nothing_is_a_warning(tmp_path, selector, hint, place):
    sweep = SWEEP.replace("bert", "sweep") + "  args: ['${{ matrix.lr }}']\n"
    files = {"jobs/nlp/a.yaml": JOB, "jobs/nlp/b.yaml": JOB.replace("bert", "gpt"), "jobs/nlp/c.yaml": sweep}
    files |= {"overlays/prod/overlay.yaml": overlay(place % selector)}
    repository(tmp_path, **files, **{"overlays/dev/overlay.yaml": OVERLAY})

    [finding] = [finding for finding in lint(tmp_path) if finding["rule"] != "unknown-queue"]

    assert (finding["rule"], finding["severity"]) == ("selector-matches-nothing", "warning")
    assert (finding["file"], finding["line"]) == ("overlays/prod/overlay.yaml", 6 if "match" in place else 5)
    assert hint in finding["message"]


def test_entry_that_matches_elsewhere_or_is_optional_is_accepted(tmp_path):
    base = overlay(
        """\
        patches:
        - {match: {names: [bert, gpt], namespaces: [ml, dev], kinds: [PyTorchJob, TFJob]}, merge: {priority: a}}
        - {match: {names: [bert, other]}, optional: true, merge: {priority: b}}
        """
    )
    files = {"overlays/base/overlay.yaml": base, "jobs/a.yaml": JOB, "jobs/b.yaml": JOB.replace("bert", "gpt")}
    files |= {"overlays/prod/overlay.yaml": overlay("extends: [base]\njobs: {names: [bert]}\n")}
    repository(
        tmp_path,
        **files,
        **{"overlays/dev/overlay.yaml": overlay("extends: [base]\n").replace("namespace: ml", "namespace: dev")},
    )

    assert "selector-matches-nothing" not in [rule for rule, _, _ in rules(tmp_path)]


def test_name_of_a_sweep_in_a_patch_gets_the_pattern_of_its_members(tmp_path):
    job = SWEEP + "  args: ['${{ matrix.lr }}']\n"
    prod = overlay("patches: [{match: {names: [bert]}, merge: {priority: a}}]\n")
    repository(tmp_path, **{"jobs/a.yaml": job, "overlays/prod/overlay.yaml": prod})

    [finding] = lint(tmp_path)

    assert finding["rule"] == "patch-matches-nothing"
    assert finding["message"].endswith("`bert` is a sweep; write `bert-*`")


SWEEP_OBJECT = "apiVersion: example.com/v1\nkind: Sweep\nmetadata: {name: %s}\nspec: {trials: 3}\n"


def lint_with_schema(folder: Path, spec: dict[str, Any], **defs: Any) -> list[str]:
    """The messages about two objects of a kind whose `spec` has this schema."""
    schema = {"type": "object", "properties": {"spec": spec}, "$defs": defs}
    write_all(folder, {f"jobs/{name}.yaml": SWEEP_OBJECT % name for name in "ab"})
    write_all(folder, {"jobgen.yaml": "", "schemas/example.com/sweep_v1.json": json.dumps(schema)})
    return [f"{each['rule']}: {each['message']}" for each in lint_report(folder)[1]["findings"]]


@pytest.mark.parametrize(
    ("word", "spec"),
    [
        ("if", {"if": {"required": ["trials"]}}),
        ("const", {"properties": {"trials": {"const": 5}}}),
        ("uniqueItems", {"properties": {"seeds": {"items": {"type": "array", "uniqueItems": True}}}}),
        ("propertyNames", {"additionalProperties": {"propertyNames": {"maxLength": 3}}}),
        ("dependentRequired", {"allOf": [{"dependentRequired": {"trials": ["seed"]}}]}),
        ("patternProperties", {"$ref": "#/$defs/any"}),
        ("required beside $ref", {"$ref": "#/$defs/any", "required": ["seed"]}),
    ],
)
def test_a_keyword_that_is_not_evaluated_is_reported_once(tmp_path: Path, word: str, spec: dict[str, Any]) -> None:
    (message,) = lint_with_schema(tmp_path, spec, **({"any": {word: {"^x": {}}}} if "$ref" in spec else {}))

    assert message.startswith(f"ignored-schema-keyword: the schema `schemas/example.com/sweep_v1.json` has `{word}`")


def test_names_of_properties_and_keywords_without_demand_are_no_ignored_keywords(tmp_path: Path) -> None:
    spec = {"properties": {"if": {"type": "string"}, "const": {"type": "array", "uniqueItems": False}}}

    assert lint_with_schema(tmp_path, spec) == []


def test_all_alternatives_beside_null_are_evaluated(tmp_path: Path) -> None:
    options = [{"type": "string"}, {"type": "integer"}, {"type": "null"}]

    assert lint_with_schema(tmp_path, {"properties": {"trials": {"anyOf": options}}}) == []
    found = lint_with_schema(tmp_path, {"properties": {"trials": {"anyOf": [options[0], options[2]]}}})
    assert [each.partition(":")[0] for each in found] == ["wrong-type"] * 2
    found = lint_with_schema(tmp_path, {"properties": {"trials": {"anyOf": [options[1], options[2]], "minimum": 4}}})
    assert [each.partition(":")[0] for each in found] == ["out-of-range"] * 2
