"""Kinds of operators that run no jobs: an object is an error if every release refuses it."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linting import lint_paths
from sampling import laws

from jobgen.check.cel import available
from jobgen.check.cel.text_format import fault
from jobgen.check.schema.crd_schema import compile_structural
from jobgen.check.schema.shipped import find_shipped_schema, select_any, select_possible_releases, unite
from jobgen.schema.shipped_kinds import list_foreign_kinds
from jobgen.schema.types_of_release import as_crd, merge_history
from jobgen.spec.overlay import Cluster

ROOT = Path(__file__).parent.parent
FILES = {path: json.loads(path.read_bytes()) for path in sorted((ROOT / "schemas/foreign").glob("*/*.json"))}
OPERATORS = {file["operator"]: file["releases"] for file in FILES.values()}
MAX_BYTES = 4_000_000

SCALARS = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "maxLength": 1},
        {"type": "string", "enum": ["a"]},
        {"type": "string", "enum": ["bb", "a"], "nullable": True},
        {"type": "integer", "minimum": 2},
        {"type": "integer", "minimum": 2, "exclusiveMinimum": True},
        {"type": ["integer", "string"], "x-kubernetes-int-or-string": True},
        {"x-kubernetes-preserve-unknown-fields": True},
    ]
)


def build_open(fields, required, is_open):
    mapping = {"type": "object", "properties": fields}
    mapping |= {"required": sorted(required & fields.keys())} if required & fields.keys() else {}
    return mapping | ({"x-kubernetes-preserve-unknown-fields": True} if is_open else {})


SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(
            build_open, st.dictionaries(st.sampled_from("abc"), inner), st.sets(st.sampled_from("abc")), st.booleans()
        ),
        st.builds(lambda item: {"type": "array", "items": item}, inner),
        st.builds(
            lambda item: {
                "type": "array",
                "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": item}, "required": ["a"]},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["a"],
            },
            inner,
        ),
        st.builds(lambda item: {"type": "object", "additionalProperties": item}, inner),
    ),
    max_leaves=6,
)
VALUES = st.recursive(
    st.sampled_from(["a", "bb", "c", 1, 2, 3, None, True]),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("abcd"), inner)),
    max_leaves=6,
)


def accepts(schema, value):
    return not compile_structural({"type": "object", "properties": {"a": as_crd(schema)}})({"a": value})


@laws(133)
@given(st.lists(SCHEMAS, min_size=1, max_size=2), st.lists(VALUES, min_size=1, max_size=5))
def test_what_one_release_accepts_is_accepted(schemas, values):
    releases = ["1.0", "2.0"][: len(schemas)]
    history = merge_history(list(zip(releases, schemas, strict=True)))

    for united in (unite(schemas), select_any(history, releases)):
        for value in values:
            assert accepts(united, value) or not any(accepts(schema, value) for schema in schemas)


@settings(derandomize=True)
@given(SCHEMAS)
def test_releases_without_a_difference_stay_as_they_are(schema):
    assert unite([schema, schema]) == schema
    assert select_any(merge_history([("1.0", schema), ("2.0", schema)]), ["1.0", "2.0"]) == schema


@pytest.mark.parametrize(
    ("declared", "possible"),
    [
        ("", ["1.2.0", "1.4.0"]),
        ("1.2", ["1.2.0"]),
        ("v1.2.9", ["1.2.0"]),
        ("1.3.1", ["1.2.0", "1.4.0"]),
        ("1.0.0", ["1.0.0"]),
        ("0.9.0", ["1.0.0"]),
        ("2.0.0", ["1.4.0"]),
    ],
)
def test_possible_releases(declared, possible):
    custom = {"releases": ["1.0.0", "1.2.0", "1.4.0"], "schema": {"since": "1.2.0"}}

    assert select_possible_releases(custom, declared) == possible


def lint(tmp_path, text, cluster="", *, infos=False):
    (tmp_path / "a.yaml").write_text(text)
    if cluster:
        (tmp_path / "jobgen.yaml").write_text(f"cluster: {{operators: {cluster}}}\n")
    found = json.loads(lint_paths(tmp_path, ["a.yaml"], (), format_="json").out)["findings"]
    return [(each["severity"], each["rule"], each["message"]) for each in found if infos or each["severity"] != "info"]


POOL = "apiVersion: karpenter.sh/%s\nkind: NodePool\nmetadata: {name: a}\nspec: {template: {spec: {%s}}}\n"
IN_OLD = "requirements: [], nodeClassRef: {name: a}, kubelet: {maxPods: 9}"
IN_NEW = "requirements: [], nodeClassRef: {name: a, kind: EC2NodeClass, group: karpenter.k8s.aws}"


def test_field_of_some_release_is_accepted_unless_the_release_is_declared(tmp_path):
    text = POOL % ("v1", f"{IN_NEW}, terminationGracePeriod: 1h")
    assert lint(tmp_path, text) == []
    assert lint(tmp_path, text, "{karpenter: 1.8.0}") == []


def test_unknown_field_is_an_error(tmp_path):
    [(severity, rule, message)] = lint(tmp_path, POOL % ("v1", f"{IN_NEW}, terminationGracePeriods: 1h"))

    assert (severity, rule) == ("error", "unknown-field")
    assert "did you mean `terminationGracePeriod`?" in message


def test_unknown_field_that_a_newer_release_may_have_is_an_info(tmp_path):
    text = POOL % ("v1", f"{IN_NEW}, quantumMode: on")
    [(severity, rule, message)] = lint(tmp_path, text, infos=True)

    assert (severity, rule) == ("info", "unknown-field")
    assert f"in karpenter {OPERATORS['karpenter'][-1]}, the newest release that jobgen knows" in message
    # No release adds a field beside `spec`.
    assert [severity for severity, _, _ in lint(tmp_path, f"{POOL % ('v1', IN_NEW)}quantumMode: on\n")] == ["error"]
    assert [severity for severity, _, _ in lint(tmp_path, text, "{karpenter: 1.8.0}")] == ["error"]


def test_value_that_another_operator_adds(tmp_path):
    text = (
        "apiVersion: notification.toolkit.fluxcd.io/v1beta3\nkind: Alert\nmetadata: {name: a, namespace: b}\n"
        "spec: {providerRef: {name: a}, eventSources: [{kind: %s, name: '*'}]}\n"
    )
    assert [severity for severity, _, _ in lint(tmp_path, text % "FluxInstance", infos=True)] == ["info"]
    assert [severity for severity, _, _ in lint(tmp_path, text % "FluxThing")] == ["error"]


def test_version_that_the_newest_release_lacks_is_a_warning(tmp_path):
    expected = "has no `NodePool` of `karpenter.sh/v1beta1`; use `karpenter.sh/v1`"

    [(severity, rule, message)] = lint(tmp_path, POOL % ("v1beta1", IN_OLD))
    assert (severity, rule) == ("warning", "old-api-version")
    assert message == f"karpenter {OPERATORS['karpenter'][-1]} {expected}"
    assert lint(tmp_path, POOL % ("v1beta1", IN_OLD), "{karpenter: 0.37.0}") == []
    assert lint(tmp_path, POOL % ("v1beta1", IN_OLD), "{karpenter: 1.8.0}") == [
        ("error", "old-api-version", f"karpenter 1.8.0 {expected}")
    ]


def test_problem_of_a_release_that_is_newer_than_all_is_a_warning(tmp_path):
    text = POOL % ("v1", f"{IN_NEW}, terminationGracePeriods: 1h")

    assert [severity for severity, _, _ in lint(tmp_path, text, '{karpenter: "99.0"}')] == ["warning"]


def test_older_version_than_all_is_an_error_and_a_newer_one_has_no_schema(tmp_path):
    service = "apiVersion: serving.kserve.io/%s\nkind: InferenceService\nmetadata: {name: a, namespace: b}\n"

    [(severity, rule, message)] = lint(tmp_path, service % "v1alpha2")
    assert (severity, rule) == ("error", "old-api-version")
    assert message == (
        f"no release of kserve since {OPERATORS['kserve'][0]} has `InferenceService` of `serving.kserve.io/v1alpha2`;"
        " use `serving.kserve.io/v1beta1`"
    )
    for version in ("v1", "v2alpha1", "preview"):
        assert [rule for _, rule, _ in lint(tmp_path, service % version)] == ["missing-schema"]


def test_misspelled_kind_is_an_error(tmp_path):
    [(severity, _, message)] = lint(
        tmp_path, "apiVersion: eventing.knative.dev/v1\nkind: broker\nmetadata: {name: a}\n"
    )

    assert (severity, message) == ("error", "`kind` is `broker`, and must be `Broker`")


@pytest.mark.parametrize(
    ("written", "kind", "meant"),
    [
        ("cert-manager.oi/v1", "Certificate", "cert-manager.io/v1"),
        ("monitoring.coreos.co/v1", "ServiceMonitor", "monitoring.coreos.com/v1"),
        ("serving.kserve.com/v1beta1", "InferenceService", "serving.kserve.io/v1beta1"),
        ("kueue.x-k8s/v1beta2", "ClusterQueue", "kueue.x-k8s.io/v1beta2"),
        ("trainer.kubeflow.com/v1alpha1", "TrainJob", "trainer.kubeflow.org/v1alpha1"),
        ("rbac.authorization.k8s/v1", "Role", "rbac.authorization.k8s.io/v1"),
        ("example.com/v1", "Certificate", ""),
        ("cert-manager.oi/v1", "Widget", ""),
        ("ray.com/v1", "RayJob", ""),
        ("training.kubedl.io/v1alpha1", "PyTorchJob", ""),
    ],
)
def test_a_group_with_a_slip_is_an_error(tmp_path, written, kind, meant):
    text = f"apiVersion: {written}\nkind: {kind}\nmetadata: {{name: a}}\n"
    [(severity, rule, message)] = lint(tmp_path, text, infos=True)

    if meant:
        assert (severity, rule) == ("error", "old-api-version")
        assert message == f"no API server has the group of `{written}`; did you mean `{meant}`?"
    else:
        assert rule == "missing-schema"


def test_kind_whose_crd_may_have_no_fields_has_warnings(tmp_path):
    text = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: a}\nspec: {entrypiont: a}\n"

    assert [severity for severity, _, _ in lint(tmp_path, text)] == ["warning"]


@pytest.mark.stress
def test_every_kind_can_be_checked_in_every_release(stress):
    """Without `--stress`, in the oldest and in the newest release."""
    for kind in list_foreign_kinds():
        obj = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "a"}, "surplus": 1}
        releases = list(OPERATORS[kind.source])
        declared = [
            {},
            *({kind.source: release} for release in (releases if stress > 1 else {releases[0], releases[-1]})),
        ]
        found = [find_shipped_schema(kind.api_version, kind.name, Cluster(operators=each)) for each in declared]

        assert not found[0].missing
        assert all(shipped.missing or isinstance(shipped.check(obj), list) for shipped in found)


@pytest.mark.skipif(bool(available()), reason="needs cel-expr-python")
def test_patterns_are_those_of_the_api_server():
    patterns = {pattern for file in FILES.values() for pattern in list_patterns(file)}

    assert len(patterns) > 100
    assert [pattern for pattern in sorted(patterns) if fault(pattern)] == []


def list_patterns(node):
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    own = [node["pattern"]] if isinstance(node, dict) and isinstance(node.get("pattern"), str) else []
    return [*own, *(pattern for child in children for pattern in list_patterns(child))]


def test_files_have_facts_only_and_are_small():
    text = "".join(path.read_text("utf-8") for path in FILES)

    assert "x-kubernetes-validations" not in text
    assert '"description":"' not in text
    shipped = sum(path.stat().st_size for path in (ROOT / "schemas").glob("[cf]*/*/*.json"))
    assert shipped < MAX_BYTES


def test_every_operator_can_be_declared_and_has_a_documented_origin():
    overlay = json.loads((ROOT / "schemas/jobgen.dev/overlay_v1.json").read_bytes())
    declared = overlay["properties"]["spec"]["properties"]["cluster"]["properties"]["operators"]["properties"]
    page = (ROOT / "docs/other_operators.md").read_text("utf-8")
    documented = dict(re.findall(r"^\| `([a-z-]+)` \| [^|]+ \| ([^|]+) \| [\w.-]+/[\w.-]+ \|", page, re.MULTILINE))

    assert declared.keys() >= OPERATORS.keys()
    assert documented == {
        name: f"{releases[0]} to {releases[-1]}, {len(releases)} releases" for name, releases in OPERATORS.items()
    }


@pytest.mark.parametrize(
    ("api_version", "kind", "rule", "meant"),
    [
        ("kueue.x-k8s.io/v1beta2", "ClusterQueues", "unknown-kind", "ClusterQueue"),
        ("ray.io/v1", "RayClusters", "unknown-kind", "RayCluster"),
        ("NETWORKING.K8S.IO/V1", "Ingress", "old-api-version", "networking.k8s.io/v1"),
        ("“flow.volcano.sh/v1alpha1”", "JobFlow", "old-api-version", "flow.volcano.sh/v1alpha1"),
        ("kueue.x-k8.io/v1beta2", "ClusterQueue", "old-api-version", "kueue.x-k8s.io/v1beta2"),
    ],
)
def test_misspelled_kinds_and_groups_are_errors(api_version, kind, rule, meant, tmp_path):
    text = f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n"
    [(severity, found, message)] = lint(tmp_path, text)

    assert (severity, found) == ("error", rule)
    assert message.endswith(f"did you mean `{meant}`?")


@pytest.mark.parametrize(
    ("api_version", "kind", "expected"),
    [
        ("scheduling.x-k8s.io/v1alpha1", "PodGroup", "info"),
        ("kueue.x-k8s.io/v1beta2", "Widget", "warning"),
        ("networking.k8s.aws/v1", "Ingress", "info"),
    ],
)
def test_other_kinds_and_groups_may_exist(api_version, kind, expected, tmp_path):
    text = f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n"
    found = [(severity, rule) for severity, rule, _ in lint(tmp_path, text, infos=True)]
    assert found == [(expected, "missing-schema")]


GATEWAY = """\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: a, namespace: b}
spec:
  gatewayClassName: x
  addresses: [{value: 1.1.1.1}]
  listeners: [%s]
"""
ROUTE = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: a, namespace: b}
spec:
  rules: [{%s}]
"""
BACKEND = "backendRefs: [{name: a, port: 80}]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GATEWAY % "{name: a, port: 80, protocol: HTTP}", ""),
        (GATEWAY % "{name: a, port: 80, protocol: HTTP, tls: {}}", "cannot have `tls`"),
        (GATEWAY % "{name: a, port: 80, protocol: HTTPS, tls: {certificateRefs: [{name: c}]}}", ""),
        (GATEWAY % "{name: a, port: 80, protocol: HTTPS, tls: {mode: Terminate}}", "needs `certificateRefs`"),
        (GATEWAY % "{name: a, port: 80, protocol: HTTPS, tls: {mode: Passthrough}}", "cannot have `mode: Passthrough`"),
        (GATEWAY % "{name: a, port: 80, protocol: TCP, hostname: a.example}", "cannot have a `hostname`"),
        (GATEWAY % "{name: a, port: 80, protocol: HTTP}, {name: b, port: 80, protocol: HTTP}", "two listeners"),
        (GATEWAY % "{name: a, port: 80, protocol: HTTP}, {name: b, port: 80, protocol: HTTP, hostname: a.example}", ""),
        (ROUTE % BACKEND, ""),
        (ROUTE % "backendRefs: [{name: a}]", "needs a `port`"),
        (ROUTE % "backendRefs: [{name: a, group: example.org, kind: Pool}]", ""),
        (ROUTE % "filters: [{type: RequestRedirect, requestRedirect: {port: 443}}]", ""),
        (
            ROUTE % (BACKEND + ", filters: [{type: RequestRedirect, requestRedirect: {port: 443}}]"),
            "cannot have `backendRefs`",
        ),
        (ROUTE % (BACKEND + ", filters: [{type: URLRewrite}]"), "needs `urlRewrite`"),
        (
            ROUTE % (BACKEND + ", filters: [{type: URLRewrite, requestRedirect: {port: 443}}]"),
            "cannot have `requestRedirect`",
        ),
        (ROUTE % (BACKEND + ", matches: [{path: {value: a}}]"), "must begin with `/`"),
        (ROUTE % (BACKEND + ", matches: [{path: {value: /a//b}}]"), "cannot have `//`"),
        (ROUTE % (BACKEND + ", matches: [{path: {type: RegularExpression, value: a//b}}]"), ""),
    ],
)
def test_rules_of_the_gateway_api(text, expected, tmp_path):
    found = lint(tmp_path, text)

    assert [(severity, rule) for severity, rule, _ in found] == [("error", "rejected-by-operator")] * bool(expected)
    assert all(expected in message for _, _, message in found)


def test_a_class_of_gateways_has_no_namespace(tmp_path):
    text = "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: a, namespace: -a}\n"
    assert lint(tmp_path, f"{text}spec: {{controllerName: a.b/c}}\n") == []
