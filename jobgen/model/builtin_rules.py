"""The rules that the pipeline applies while it reads, merges, renders and checks: name, category, description."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jobgen.model.finding import Severity
from jobgen.model.limits import MAX_BYTES, MAX_DEPTH, MAX_FINDINGS, MAX_NODES
from jobgen.model.suggest import find_closest

_ERRORS = {
    "yaml": {
        "ambiguous-scalar": "A key, or a value of a job, overlay, kind or setting, that YAML reads as another text.",
        "duplicate-key": "A key that appears twice in a mapping; Kubernetes silently uses the last one.",
        "excessive-aliases": "Aliases that expand to more than Kubernetes allows, or that contain themselves.",
        "file-too-large": f"A file larger than {MAX_BYTES >> 20} MiB, which no manifest needs.",
        "invalid-encoding": "Bytes that are not UTF-8, or characters that YAML does not allow.",
        "invalid-key": "A key that Kubernetes cannot use: a list, a mapping, or a number that has no JSON form.",
        "invalid-merge-key": "A merge key `<<` whose value is not a mapping or a list of mappings.",
        "invalid-separator": "Text after a `---` separator, which Kubernetes rejects or reads as another document.",
        "link-out-of-repository": "A symbolic link that points outside the repository; it is not followed.",
        "linked-folder": "A symbolic link to a folder; it is not followed.",
        "nesting-too-deep": f"A document, or a chain of `extends`, of more than {MAX_DEPTH} levels.",
        "non-finite-number": "Infinity, or a number too large for JSON, which Kubernetes cannot represent.",
        "not-a-mapping": "A document, or an item of a List, that is not a mapping.",
        "template-text": "Text of a Helm or Jinja template, which must be rendered before it is valid YAML.",
        "too-many-errors": f"More than {MAX_FINDINGS} errors in one file; the rest of the file was not checked.",
        "too-many-nodes": f"A document of more than {MAX_NODES:,} nodes, which no object needs.",
        "unknown-anchor": "An alias without an anchor.",
        "unreadable-file": "A file or folder that cannot be read.",
        "unreadable-tag": "A value that does not match its tag.",
        "yaml-syntax": "Text that is not valid YAML for Kubernetes.",
    },
    "schema": {
        "crd-rule-violated": "An object that a CEL rule of its CRD rejects.",
        "duplicate-item": "Two items of a list with the same key, which Kubernetes cannot distinguish.",
        "invalid-form": "A value that matches none, or more than one, of the alternatives that its schema allows.",
        "invalid-name": "A name that no object, or no namespace, can have.",
        "invalid-value": "A value that its field does not accept.",
        "missing-field": "A required field that is missing.",
        "old-api-version": "An object of an apiVersion that the cluster or its operator does not serve.",
        "unknown-field": "A field that the kind or the format does not have.",
        "unknown-kind": "A kind that the group and version of its `apiVersion` do not have.",
        "wrong-type": "A value of the wrong type.",
    },
    "spec": {
        "attempt-without-hash": "An `attempt` on a job whose name does not change, so no new run starts.",
        "conflicting-env": "Layers that set the same variable from two sources.",
        "conflicting-port": "Layers that give two ports the same name.",
        "conflicting-volume": "Layers that give a volume two sources, or mount two volumes at the same path.",
        "deletes-nothing": "A `null` or `$patch: delete` that deletes nothing in any job.",
        "duplicate-env": "A variable that is set twice in one `env`.",
        "duplicate-member": "Two members of a sweep whose values produce the same name.",
        "empty-environment": "An overlay whose `jobs` selects no job, so its environment is empty.",
        "duplicate-rule": "A rule that the settings name twice, by its current and by a former name.",
        "empty-patch": "A patch that selects jobs but changes nothing.",
        "file-name-too-long": "An object whose name is too long for a file name in the rendered tree.",
        "invalid-patch": "A patch directive that cannot be applied.",
        "job-without-environment": "A job that no environment selects, so it is never rendered.",
        "invalid-defect": "A known defect in `defects/` that is not looked for, because its entry is wrong.",
        "json-patch-failed": "A JSON patch operation that fails: its path does not exist, or its test fails.",
        "locked-field": "A field that an overlay locks, set by a job.",
        "misplaced-document": (
            "A document in the folder of other kinds: `overlays/`, `runtimes/` or `teams/`,"
            " or a team or tests in `jobs/`."
        ),
        "misplaced-job": "A job spec inside a List; it must be a document of its own.",
        "misplaced-overlay": "An overlay that is not in `overlays/<environment>/`.",
        "misplaced-matrix": "A `matrix` in an overlay, which can change jobs but not create them.",
        "name-too-long-for-hash": "A job name that is too long next to the hash of its run.",
        "unlisted-overlay": "An overlay that `environments` in the settings leaves out, so it is never checked.",
        "unsupported-by-kind": "A field that the kind, or the declared version of its operator, does not support.",
        "overlay-cycle": "Overlays that extend each other in a cycle.",
        "overlay-name-mismatch": "An overlay whose name differs from the name of its folder.",
        "patch-matches-nothing": (
            "A patch that matches no job, or no object of a kustomization, or an `images` entry that matches no image."
        ),
        "too-many-members": "A matrix that produces more jobs than its `limit` allows.",
        "unknown-current-date": "An expiry date that cannot be checked without a commit or `--today`.",
        "unknown-overlay": "A reference to an overlay that does not exist.",
        "unknown-role": "A role that the kind does not have.",
        "unknown-rule": "A rule or policy in the settings that does not exist.",
        "unknown-variable": "A variable `${{ matrix.… }}` that the matrix does not define.",
    },
    "team": {
        "duplicate-team": "Two teams with the same name, or with the same folder.",
        "job-without-team": "A job in a folder that no team owns, in a repository with teams.",
        "team-name-mismatch": "A team whose name differs from the name of its file.",
    },
    "fleet": {
        "duplicate-identity": "Two jobs that produce the same object in one environment.",
        "shared-file-name": "Two objects whose file names in the rendered tree differ only in case.",
    },
    "gitops": {
        "forbidden-change": "A change to a job with `onChange: forbid` that would affect the running job.",
        "immutable-field-changed": "A change to an immutable field, which the API server or a webhook rejects.",
        "invalid-kustomization": "A kustomization with a field or a value that kustomize does not accept.",
        "gitops-path-missing": "A path in an object of Argo CD or Flux that does not exist in this repository.",
        "chart-metadata-invalid": "Metadata of a Helm chart that helm refuses.",
        "chart-values-invalid": "Values that the schema of a Helm chart refuses.",
        "gitops-project-forbids": "An Application whose source or destination its AppProject does not allow.",
        "chart-object-conflict": "Two objects with the same kind, namespace and name in one Helm chart.",
        "unknown-hook": "A hook of a Helm chart with a name that helm does not know.",
        "chart-render-fails": "A template of a Helm chart that helm cannot render.",
        "flux-substitution-fails": "A `${...}` that Flux cannot read, where `postBuild` fills in variables.",
        "kustomization-cycle": "Kustomizations that list each other in a cycle.",
        "kustomization-file-missing": "A file or folder that a kustomization lists and that does not exist.",
        "kustomization-id-conflict": "Two objects with the same kind, namespace and name in one kustomization.",
        "patch-replaces-list": "A patch that replaces a list of a custom resource, and so loses fields of its items.",
        "kustomize-build-fails": "A kustomization that kustomize cannot build.",
        "queue-changed": "A new queue for a job that is not suspended, which Kueue rejects.",
        "edited-rendered-file": "A file in the rendered tree that is stale, changed or deleted.",
        "rendered-tree-not-compared": (
            "A rendered tree that was not compared with its sources, because these cannot be rendered."
        ),
        "stale-rendered-tree": "A rendered tree that does not have what its sources render, or that is missing.",
        "unlisted-rendered-file": "A file in the rendered tree that its lock does not list; a cluster can get it.",
    },
    "meta": {
        "broken-schema": "An object that was not checked, because its schema in the repository is invalid.",
        "expired-exception": "An exception, or a setting of a rule, whose end date has passed.",
        "internal-error": "A check that failed with an exception: the object was not checked in full.",
        "mandatory-suppressed": "A comment that suppresses a mandatory rule, or one about a file that was not read.",
        "unjudged-file": "A file, such as a template, whose objects are not checked, found by `--strict-files`.",
        "too-many-files": "A folder with far too many files for manifests; nothing in it was checked.",
        "wrong-jobgen-version": "A version of jobgen that `required-version` in the settings does not allow.",
        "unread-file": "A file that you named, or an object in one of jobgen's folders, that is not read.",
    },
    "policy": {
        "binding-without-policy": "A binding of a policy that does not exist.",
        "invalid-policy": "A policy or binding that the API server rejects.",
        "too-many-steps": "What was not checked, because a file, or all files together, take too many steps or bytes.",
        "not-a-policy": "A document in `policies/` that is not evaluated, because it is of another kind.",
    },
}
_WARNINGS = {
    "yaml": {
        "empty-file": "A file without objects: it is empty, or holds only comments.",
        "folded-item": "Lines that YAML joins: an item that is indented too far, or commands of a script without `|`.",
        "ignored-document": "A document that is not read, after the end of another or in `jobgen.yaml`.",
        "unknown-tag": "A tag that Kubernetes does not know; it is dropped, or the file cannot be read.",
    },
    "schema": {
        "crd-copies-differ": "An object that one CRD of its kind among the files accepts, and another one refuses.",
        "kind-without-crd": "An object of a kind that no CRD among the files defines, although they define its group.",
    },
    "fleet": {
        "conflicting-copies": "An object that several files of a folder define differently; the last one applies.",
        "service-selects-nothing": "A Service or disruption budget that selects none of the pods of its file.",
    },
    "gitops": {
        "gitops-name-missing": "A project or source that an object of Argo CD or Flux names and nothing defines.",
        "unread-value": "A value of a Helm chart that none of its templates reads.",
        "ignored-rendered-tree": "A rendered tree that `.gitignore` hides, so that its files are not committed.",
        "edit-without-effect": "A change that never reaches a running job; its operator does not change running pods.",
        "unrenamed-reference": "A field with the name that an object had before kustomize renamed it.",
        "kustomization-load-restricted": "A file outside the folder of the kustomization that lists it.",
        "kind-changed": "A job that becomes an object of another kind, so training starts from the beginning.",
        "running-job-deleted": "A job that is no longer rendered; applying the tree deletes it, even while it runs.",
    },
    "meta": {
        "backdated-commit": "A commit whose date is before that of its parent.",
        "change-not-analyzed": "A change that cannot be assessed, because the old jobs could not be rendered.",
        "expired-suppression": "A suppression comment whose end date has passed.",
        "ignored-schema-keyword": "An object whose schema in the repository has a keyword that is not evaluated.",
        "jsonschema-disagrees": "An object that jobgen accepts and jsonschema rejects, or the other way round.",
        "jsonschema-failed": "An object that jsonschema could not check.",
        "kubeconform-disagrees": "An object that jobgen accepts and kubeconform rejects, or the other way round.",
        "kubeconform-failed": "An object that kubeconform could not check.",
        "kustomize-disagrees": "A kustomization from which kustomize or kubectl builds other objects than jobgen.",
        "kustomize-failed": "A kustomization that kustomize or kubectl could not build in time.",
        "malformed-suppression": "A malformed suppression comment, which has no effect.",
        "unbuilt-kustomization": "Parts of a kustomization that jobgen could not build, so it did not check them.",
        "missing-schema": "An object that was not checked, because its kind has no schema.",
        "stale-baseline": "A finding in the baseline that is fixed.",
        "weaker-governance": "A change that allows more or checks less than before it.",
        "unused-exception": "An exception in the settings that no finding needs.",
        "unknown-suppression": "A comment that suppresses a rule that does not exist.",
        "unused-suppression": "A comment that suppresses a rule that finds nothing there.",
    },
    "spec": {
        "exclude-matches-nothing": "A pattern in `exclude` of the settings that matches no file.",
        "identical-members": "Members of a sweep that differ only in their names, so the same job runs twice.",
        "overridden-value": "A value of a spec or overlay that something else always replaces, so it has no effect.",
        "selector-matches-nothing": (
            "An entry in a list of `jobs` or `match` of an overlay that matches no job, or an `exclude` without effect."
        ),
        "unknown-release": "A declared version of an operator that is older or newer than all that jobgen knows.",
        "unused-runtime": "A runtime in `runtimes/` that no job refers to, so it is not rendered.",
        "unused-variable": "A matrix variable that nothing uses, so it only creates equal jobs.",
    },
    "policy": {
        "policy-matches-nothing": "A policy or binding that matches no kind that the repository can have.",
        "policy-not-evaluated": "A policy that was not evaluated, because jobgen's engine cannot run it.",
        "policy-without-binding": "A policy without a binding, which has no effect.",
    },
}

_INFOS = {
    "meta": {
        "governance-change": "A change of settings, teams, policies or schemas that checks as much as before.",
        "chart-value-missing": "A Helm chart that cannot be rendered because a value that it needs is not set.",
        "unjudged-chart": "A Helm chart whose objects were not checked, because it could not be rendered here.",
        "tool-built-kustomization": "A kustomization that kustomize or kubectl built, because jobgen cannot build it.",
        "unjudged-variable": "Values that a program fills in before the file is applied, such as `${IMAGE}`.",
    }
}

CHANGE_RULES = frozenset(
    """forbidden-change immutable-field-changed queue-changed running-job-deleted kind-changed
    edit-without-effect change-not-analyzed governance-change weaker-governance backdated-commit""".split()
)
"""Rules about a change; a comment that suppresses one is reported as unused only with `--since`."""
UNJUDGED_CHART_RULES = frozenset(
    "chart-metadata-invalid chart-render-fails chart-value-missing chart-values-invalid unjudged-chart".split()
)
"""Rules that say that the objects of a chart were not checked; errors where a chart must be judged."""
COUNTED_RULES = frozenset(
    "ignored-schema-keyword kind-without-crd missing-schema old-api-version unbuilt-kustomization".split()
)
"""Rules about what concerns a kind or an operator, and not the object: reports count the objects of a finding."""
TREE_RULES = frozenset(
    """edited-rendered-file ignored-rendered-tree rendered-tree-not-compared stale-rendered-tree
    unlisted-rendered-file""".split()
)
"""Rules about rendered trees, which no comment can suppress."""
UNREAD_RULES = frozenset(("too-many-files", "unread-file", "unreadable-file"))
"""Rules about files and folders that were not read at all."""
UNREADABLE_RULES = UNREAD_RULES | frozenset(
    """excessive-aliases file-too-large invalid-encoding link-out-of-repository linked-folder nesting-too-deep
    not-a-mapping template-text too-many-errors too-many-nodes unknown-anchor yaml-syntax""".split()
)
"""Rules about text of which nothing, or not all, could be read; no comment suppresses them."""
UNCHECKED_RULES = UNREADABLE_RULES | frozenset(("broken-schema", "internal-error", "invalid-policy", "too-many-steps"))
"""Rules that say that something was not checked, so that an exception would accept what is not known."""
ENTRY_RULES = frozenset(("expired-exception", "mandatory-suppressed", "unknown-current-date", "unused-exception"))
"""Rules about exceptions and other entries of the settings themselves."""
LIMIT_RULES = frozenset(
    """duplicate-team foreign-namespace foreign-priority-class foreign-queue foreign-service-account
    foreign-team-label foreign-traffic foreign-volume job-without-team kind-not-allowed locked-field
    platform-not-allowed team-budget-exceeded team-cloud-identity team-name-mismatch team-node-name
    team-untracked-object uncounted-accelerators unqueued-accelerators unrequested-devices""".split()
)
"""Rules that limit what the author of a file may write, so that a comment in the file cannot suppress them."""
BUILTIN_RULES: tuple[tuple[str, str, Severity, str], ...] = tuple(
    (name, category, severity, summary)
    for severity, categories in ((Severity.ERROR, _ERRORS), (Severity.WARNING, _WARNINGS), (Severity.INFO, _INFOS))
    for category, rules in categories.items()
    for name, summary in rules.items()
)


POD_RULES = {
    "conflicting-mount": "mutually exclusive options of a mount or device, or a volume that cannot be mounted that way",
    "conflicting-security-context": "security settings and host namespaces that are mutually exclusive",
    "conflicting-volume-source": "a volume with more than one source",
    "duplicate-container-name": "two containers with the same name",
    "duplicate-mount-path": "two mounts of a container at the same path",
    "duplicate-port": "two ports with the same name, or two uses of the same host port",
    "duplicate-volume": "two volumes with the same name",
    "ephemeral-container-in-template": "ephemeral containers in a pod template; they can only be added to running pods",
    "fractional-device": "a fraction of a GPU or other extended resource",
    "gpu-request-limit-mismatch": "a request for GPUs or another extended resource that differs from its limit",
    "host-port-mismatch": "a host port that differs from the container port of a pod on the host network",
    "inconsistent-pod-resources": "resources of a pod that are inconsistent with the sum of its containers",
    "invalid-annotation": "an invalid annotation key or value, or annotations that are too large",
    "invalid-config-key": "a key that no ConfigMap or Secret can have",
    "invalid-container-name": "a container name that is not a DNS label",
    "invalid-container-policy": "a resize policy or restart rules that contradict themselves or the pod",
    "invalid-dns-config": "nameservers or search domains that are malformed or too many",
    "invalid-env-name": "a variable name that contains `=` or characters other than printable ASCII",
    "invalid-env-source": "a variable with several sources, without one, or with one that cannot be read",
    "invalid-finalizer": "a finalizer that is not a domain and a name",
    "invalid-gate": "a scheduling or readiness gate that is malformed, duplicated, or combined with `nodeName`",
    "invalid-host-name": "a malformed host name or address",
    "invalid-hugepages": "huge pages that are not whole pages, are overcommitted, or lack cpu and memory",
    "invalid-label": "an invalid label key or value, in labels or selectors",
    "invalid-object-name": "a reference to an object by a name that no object can have",
    "invalid-os-option": "malformed Windows options, or options of one operating system in a pod of the other",
    "invalid-port": "a port outside 1 to 65535",
    "invalid-port-name": "a port name that is not a valid short service name",
    "invalid-probe": "a probe or lifecycle hook without a handler, with several handlers, or with one that cannot work",
    "invalid-quantity": "an amount that is not a valid quantity",
    "invalid-resource-claim": "a resource claim that is malformed, duplicated or unknown",
    "invalid-security-profile": "a malformed seccomp or AppArmor profile",
    "invalid-selector": "a selector with too many or too few values, or that does not match the pods of its own object",
    "invalid-sysctl": "a kernel parameter that is malformed, duplicated, or belongs to the host",
    "invalid-toleration": "a toleration whose key, operator, value and effect do not fit together",
    "invalid-topology-spread": "topology spread constraints that are duplicated or contradict themselves",
    "invalid-volume-name": "a volume name that is not a DNS label",
    "invalid-volume-path": "a path that leaves its volume, or is relative where it must be absolute",
    "invalid-volume-source": "a volume source with malformed or contradictory fields",
    "missing-pod-field": "a required field of a pod that is missing or empty",
    "missing-resource-limit": "a request without a limit for a resource that cannot be overcommitted",
    "negative-quantity": "a negative quantity",
    "out-of-range": "a number that is out of range",
    "image-name-whitespace": "an image name with leading or trailing whitespace",
    "probe-of-init-container": "a probe or lifecycle hook of a container that runs to completion",
    "request-exceeds-limit": "a request that exceeds its limit",
    "unknown-resource": "a resource that containers cannot request, a quota cannot limit, or a role cannot grant",
    "unknown-volume": "a mount of a volume that does not exist",
    "unsupported-field-ref": "a reference to a field or resource that is not supported",
    "unsupported-value": "a value that Kubernetes does not support in this field",
}


# Former names of rules and policies, which stay valid wherever a user can name a rule.

_RENAMED: Mapping[str, str] = {
    "change-not-judged": "change-not-analyzed",
    "doubled-role": "duplicate-role",
    "gang-beyond-job": "min-available-too-high",
    "misspelt-kind": "misspelled-kind",
    "moving-tag": "mutable-image-tag",
    "needless-pull": "unnecessary-image-pull",
    "never-admitted": "queue-quota-exceeded",
    "newer-field": "field-newer-than-operator",
    "no-room-for-name": "name-too-long-for-hash",
    "not-expressible": "unsupported-by-kind",
    "owner-in-git": "owner-references-in-git",
    "padded-image": "image-name-whitespace",
    "partial-gang": "min-available-too-low",
    "patched-env": "env-in-runtime-patch",
    "queue-without-effect": "ineffective-queue-label",
    "replica-count": "invalid-replica-count",
    "reserved-env": "overwritten-env",
    "reserved-variable": "reserved-runtime-env",
    "second-document": "ignored-document",
    "server-field": "server-managed-field",
    "tiny-memory": "memory-too-small",
    "too-many-faults": "too-many-errors",
    "two-schedulers": "kueue-and-volcano-queues",
    "uncanonical-quantity": "non-canonical-quantity",
    "uneven-gpus": "master-worker-gpu-mismatch",
    "unknown-choice": "unknown-enum-value",
    "unknown-day": "unknown-current-date",
    "unwritten-replicas": "missing-replicas",
}


def canonical_rule_name(name: str) -> str:
    """The current name of the rule that has, or once had, this name."""
    return _RENAMED.get(name, name)


def original_rule_name(name: str) -> str:
    """The first name of the rule that has, or once had, this name."""
    current = canonical_rule_name(name)
    return next((former for former, renamed in _RENAMED.items() if renamed == current), current)


def former_rule_names(name: str) -> list[str]:
    """The names that a rule had before its current one, oldest first."""
    return [former for former, current in _RENAMED.items() if current == name]


def find_similar_rule(name: str, known: Iterable[str]) -> str:
    """Return the known rule with the most similar current or former name, or an empty string."""
    names = [*known, *_RENAMED]
    return canonical_rule_name(find_same_words(name, names) or find_closest(name, names))


def find_same_words(name: str, names: Iterable[str]) -> str:
    """Return the one name that has the same words in another order; empty if none has, or several."""
    words = sorted(name.lower().replace("_", "-").split("-"))
    found = [other for other in names if sorted(other.split("-")) == words]
    return found[0] if len(found) == 1 else ""
