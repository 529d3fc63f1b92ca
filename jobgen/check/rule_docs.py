"""Documentation of every rule and policy: its name, severity, text, and a bad and a good example."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from jobgen.check.defects import CATEGORY, list_defects
from jobgen.check.rules import all_rules
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.redaction import hide_credentials
from jobgen.model.builtin_rules import BUILTIN_RULES, POD_RULES
from jobgen.model.data import Node
from jobgen.model.finding import Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo import layout
from jobgen.repo.commit import Folder
from jobgen.repo.files import read_file
from jobgen.repo.known_rules import MUTATING, VALIDATING, name_policy, read_policy_file, read_policy_files
from jobgen.repo.shipped import find_shipped, read_data

EXPECTATION = lazy_pattern(r" *# expect: .*$", re.MULTILINE)
"""The comment on a line of a case that names the findings expected there."""

_DESCRIPTION = "jobgen.dev/description"
_MUTATION_FAILED = "It reports objects that it cannot change; the API server refuses them. Correct its expression."
_SEVERITIES = {"Deny": Severity.ERROR, "Warn": Severity.WARNING, "Audit": Severity.INFO}
_KIND = lazy_pattern(r"^kind: *(\S+)", re.MULTILINE)
_SEPARATOR = lazy_pattern(r"^---.*\n", re.MULTILINE)
_LEADING_COMMENTS = lazy_pattern(r"\A(?:#.*\n)+")


_REASONS = {
    ("fleet", Severity.ERROR): "One of the two objects or files replaces the other. Rename one of them.",
    ("gitops", Severity.ERROR): (
        "The cluster rejects the change, or the change stops a running job. Create a new job, or keep the old value."
    ),
    ("gitops", Severity.WARNING): (
        "The change does not reach running jobs, or stops them. See what it does with `jobgen diff` before you merge."
    ),
    ("meta", Severity.ERROR): ("Something was not checked, so errors can remain unseen. Fix what the message names."),
    ("meta", Severity.WARNING): (
        "Something was not checked, or is suppressed for no reason, so errors can remain unseen."
        " Fix what the message names, or remove it."
    ),
    ("pod", Severity.ERROR): (
        "The API server accepts the job but rejects its pods. The operator tries to create them again and again, and"
        " the job never starts. Apply the fix in the message."
    ),
    ("policy", Severity.ERROR): (
        "The API server rejects the policy or its binding, so it protects nothing. Apply the fix in the message."
    ),
    ("policy", Severity.WARNING): (
        "The policy is not evaluated, so jobgen does not find what it forbids. Apply the fix in the message."
    ),
    ("schema", Severity.ERROR): (
        "The API server rejects the object, or drops the field without an error. Apply the fix in the message."
    ),
    ("spec", Severity.ERROR): (
        "jobgen cannot render the job, or would render something else than you mean, so it renders nothing."
        " Apply the fix in the message."
    ),
    ("spec", Severity.WARNING): "jobgen renders the job, but probably not what you mean. Apply the fix in the message.",
    ("team", Severity.ERROR): (
        "jobgen cannot tell which team owns the job, so no limit or budget applies. Apply the fix in the message."
    ),
    ("yaml", Severity.WARNING): (
        "Kubernetes reads something else than you probably mean. Apply the fix in the message."
    ),
    ("yaml", Severity.ERROR): (
        "Kubernetes cannot read the file, or reads something else than you mean. Apply the fix in the message."
    ),
}
"""Why rules without a page of their own report something, and what to do: the same for all of a category."""


_DISAGREEMENT = (
    "Both use the same schema, so one of them reads it wrongly, or it uses something that jobgen does not evaluate."
    " If the schema is in `schemas/` of your repository, compare it with the cluster's CustomResourceDefinition:"
    " correct it if it differs, or import it again with `jobgen schema import`. If the schema is right, or part of"
    " jobgen, report a bug in jobgen, with the object and the message."
)
_BUILT_DIFFERENTLY = (
    "jobgen builds kustomizations as kustomize does, so this is a fault of jobgen, or the program has another version"
    " than the one that jobgen follows. kustomize also adds empty lines to a folded text (`>`) with indented lines;"
    " jobgen does not. Otherwise, report a bug in jobgen, with the kustomization and the version of the program."
)
_NOT_BUILT = (
    "kustomize cannot build the kustomization, and neither can kubectl, Argo CD or Flux, so nothing in it is applied."
    " Apply the fix in the message."
)
_RESTRICTED = (
    "By default, kubectl and kustomize read only files below the kustomization's folder, so they refuse to build it."
    " Flux reads the file, and Argo CD can be configured to. Move the file, or list the folder that holds it."
)
_OWN_REASONS = {
    "backdated-commit": (
        "Exceptions, suppressions and `expires` are decided by the later date of a commit and its parents, so an older"
        " date gains nothing. Set the clock of the machine, or commit again."
    ),
    "governance-change": (
        "The files that decide what is checked belong to their owners, so a review must see each change. Nothing has to"
        " be fixed."
    ),
    "weaker-governance": (
        "After the merge, less is checked or more is allowed. Until then, the files of the base decide. Let the owners"
        " of these files review the change, or undo it."
    ),
    "conflicting-copies": (
        "`kubectl apply` of the folder keeps the last copy, so the other files lose what only their copy has: a role"
        " loses rights, a ConfigMap loses files. Files with the same workloads count as alternatives, and folders with"
        " a kustomization are left out. Keep one copy with everything, or give the copies different names."
    ),
    "crd-copies-differ": (
        "Which of the CRDs a cluster has depends on how it was installed, so the object works in some clusters only."
        " Update the older copy of the CRD, or delete it. CRDs without fields, such as minimal ones for tests, do not"
        " count if there is another one."
    ),
    "flux-substitution-fails": (
        "Flux fills in the variables of every object of the folder, also in scripts, and knows only the forms that its"
        " documentation lists. Another form fails, and nothing of the folder is applied. Write `$${...}` in a script,"
        " or add the annotation `kustomize.toolkit.fluxcd.io/substitute: disabled` to the object."
    ),
    "jsonschema-disagrees": _DISAGREEMENT,
    "kind-without-crd": (
        "The files install an API, and this kind is not part of it: it is misspelled, it was removed, or another"
        " program of the same group defines it. Its fields were not checked. Correct the kind, add its CRD, or delete"
        " the file."
    ),
    "kubeconform-disagrees": _DISAGREEMENT,
    "kustomize-disagrees": _BUILT_DIFFERENTLY,
    "service-selects-nothing": (
        "The Service has no endpoints: connections to it fail, and its metrics are never read. Use the labels of the"
        " pod template in `selector`. Objects of other files, and pods that custom resources create, are not known, so"
        " only Services that share labels with a workload of their file, or are alone with one, are reported."
    ),
    "kustomization-load-restricted": _RESTRICTED,
    "patch-replaces-list": (
        "kustomize merges a list by the names of its items only where it knows the kind, such as a Deployment. In a"
        " custom resource, such as a PyTorchJob, the list of the patch takes the place of the one before: a container"
        " that the patch gives only `resources` has no image and no command any more. It is an error if no pod can"
        " start, and a warning else. Use a JSON patch, such as `{op: replace, path: /spec/…/containers/0/image, value:"
        " …}`, repeat the whole item, or name a schema in `openapi` that has the keys of the list."
    ),
    "gitops-path-missing": (
        "Argo CD and Flux cannot render what they do not find, so they apply nothing of the object, and what runs stays"
        " as it is. A path is checked only if a Git remote, or the source that `flux bootstrap` wrote, has the same"
        " address, and if its branch is the default one. Without such an address, one is probably that of the"
        " repository if most paths of Applications there are folders here; the others are then warnings. Correct the"
        " path, which begins at the top of the repository; that of a values file of Argo CD begins at the folder of its"
        " chart."
    ),
    "gitops-name-missing": (
        "An Application in a project that does not exist is not synchronized, and Flux waits for a source that does not"
        " exist. It is a warning, because they can come from another place: a name is checked only if the repository"
        " defines other objects of the kind. Correct the name, or add the object."
    ),
    "chart-metadata-invalid": (
        "helm reads `Chart.yaml` before anything else, and refuses a chart without a name and a version of SemVer, with"
        " a type that it does not know, and with two dependencies of one name. This is also found without helm."
        " Correct the field."
    ),
    "chart-render-fails": (
        "`helm template` fails in the same way as `helm install`, Argo CD and Flux do, so nothing of the chart is"
        " applied. It is an error if the template cannot be read at all, or if a release of the repository uses the"
        " chart with these values, and a warning with the default values, which a release can replace."
        " Correct the line of the template, or the value that it reads."
    ),
    "chart-value-missing": (
        "Many charts have values that everyone must set, and helm renders nothing without them. jobgen names the first"
        " one. Give it a default, or name a values file that sets it in the README of the chart, in a script or in CI;"
        " then jobgen checks the chart with that file. It is an error in a release that lacks the value."
    ),
    "chart-values-invalid": (
        "helm compares values with `values.schema.json` before it renders anything, so the release fails. It is an"
        " error in a release of the repository, and a warning in the default values. Correct the value."
    ),
    "unread-value": (
        "helm ignores a value that no template reads, so it does nothing: most often its name is misspelled. A chart"
        " that passes all of its values on, or has charts in it, is not checked. Correct the name, or remove the value."
    ),
    "unjudged-chart": (
        "Without `helm` on PATH, jobgen renders no chart. It downloads nothing, so a chart that needs a chart of"
        " another repository is checked only if that is in `charts/`. A file that leads out of the repository, and a"
        " chart that takes too long or writes too much, are refused. `jobgen doctor` says how to get helm."
    ),
    "tool-built-kustomization": (
        "jobgen builds kustomizations itself. It starts `kustomize`, or else `kubectl`, if one of them is on PATH, only"
        " for a plugin that is part of kustomize, or a pattern that jobgen cannot evaluate. What the program built was"
        " checked, so nothing has to be fixed."
    ),
    "too-many-steps": (
        "The work on one file, and on all files of a run together, is limited, so that no file can stall a run or fill"
        " the memory. The message says what took the most. Split the file, or simplify what the message names."
    ),
    "unbuilt-kustomization": (
        "jobgen is offline and runs neither charts nor plugins, so it does not know the objects of these parts. It"
        " built and checked the rest of the kustomization. To check a remote resource, copy it into the repository. For"
        " a plugin that is part of kustomize, install `kustomize` or `kubectl`."
    ),
    "unjudged-file": (
        "In a repository that holds only finished objects, a file that jobgen does not check is a mistake, or it"
        " belongs elsewhere. Say what the file is under `files` in the settings, exclude it, or move it."
    ),
    "unjudged-variable": (
        "jobgen cannot know these values before the program runs, so it checks only the rest of the file. It does fill"
        " in values that are in the repository, in a Flux Kustomization or an `.env` file."
    ),
    **dict.fromkeys(
        "edited-rendered-file stale-rendered-tree unlisted-rendered-file".split(),
        "A GitOps engine applies the tree as it is, so the cluster gets something else than the jobs and overlays say,"
        " and than a review of them shows. Run the command in the message, and commit what it writes.",
    ),
    "ignored-rendered-tree": (
        "A GitOps engine reads what is committed. Remove the pattern of `.gitignore`, and commit the files."
    ),
    "rendered-tree-not-compared": (
        "The tree can hold anything. Fix what `jobgen render` reports; then the tree is compared again."
    ),
    **dict.fromkeys(
        """invalid-kustomization kustomization-cycle kustomization-file-missing kustomization-id-conflict
        kustomize-build-fails""".split(),
        _NOT_BUILT,
    ),
}
"""The same for single rules, where the text of their category does not help."""


class RuleDoc(NamedTuple):
    """The documentation of a rule or a policy."""

    name: str
    category: str
    severity: Severity
    summary: str
    text: str = ""


def all_docs(root: Folder | None) -> dict[str, RuleDoc]:
    """Every policy, known defect and rule, by name."""
    return {**policy_docs(root), **defect_docs(root), **all_rule_docs()}


def defect_docs(root: Folder | None) -> dict[str, RuleDoc]:
    """The known defects that come with jobgen, and those of a repository if there is one, by name."""
    return {
        defect.name: RuleDoc(defect.name, CATEGORY, defect.severity, f"{defect.title}: {defect.describe()}.", text)
        for defect in sorted(list_defects(root))
        for text in (defect.explain(),)
    }


def defect_example(root: Folder | None, name: str) -> tuple[str, str] | None:
    """The bad and the good example of a defect."""
    return next(((defect.red, defect.green) for defect in list_defects(root) if defect.name == name), None)


@cache
def all_rule_docs() -> dict[str, RuleDoc]:
    """Every rule by name, ordered by category and name."""
    # Imported late: a lint needs names only.
    from textwrap import dedent, fill

    docs = [RuleDoc(*rule) for rule in BUILTIN_RULES]
    docs += [RuleDoc(name, "pod", Severity.ERROR, _to_sentence(summary)) for name, summary in POD_RULES.items()]
    reasons = [_OWN_REASONS.get(doc.name) or _REASONS.get((doc.category, doc.severity), "") for doc in docs]
    docs = [doc._replace(text=doc.text or fill(why, 110)) for doc, why in zip(docs, reasons, strict=True)]
    for rule in all_rules():
        summary, _, text = (rule.check.__doc__ or "").strip().partition("\n")
        docs.append(RuleDoc(rule.name, rule.category, rule.severity, summary, dedent(text).strip()))
    # A rule in rules/ may share its name with a built-in one; its documentation says more.
    by_name = {doc.name: doc for doc in docs}
    return {doc.name: doc for doc in sorted(by_name.values(), key=lambda doc: (doc.category, doc.name))}


def policy_docs(root: Folder | None) -> dict[str, RuleDoc]:
    """The policies that come with jobgen, and those of a repository if there is one, by name."""
    documents = list(read_policy_files(root))
    bindings = [as_mapping(each.get("spec")) for each in documents if each.get("kind") == f"{VALIDATING}Binding"]
    # Of a mutating and a validating policy with one name, the validating one counts.
    kinds = (MUTATING, VALIDATING)
    found = [_document_policy(each, bindings) for kind in kinds for each in documents if each.get("kind") == kind]
    return {doc.name: doc for doc in sorted(found, key=lambda doc: doc.name)}


class Incident(NamedTuple):
    """A public incident that a rule finds in the manifest."""

    source: str
    """The issue or pull request."""
    versions: str
    """The component and its version, if the incident depends on it."""
    consequence: str


@cache
def all_incidents() -> dict[str, tuple[Incident, ...]]:
    """The public incidents behind rules, by rule."""
    incidents = read_data("incidents.yaml")
    return {rule: tuple(Incident(**each) for each in listed) for rule, listed in incidents.items()}


def rule_example(name: str) -> tuple[str, str] | None:
    """The first bad case of a rule and its first good one, without comments; None if it has no cases."""
    path = find_shipped("examples") / f"{name}.yaml"
    if not path.is_file():
        return None
    cases = [case.partition("\n")[2] for case in re.split(r"^# case: ", path.read_text("utf-8"), flags=re.MULTILINE)]
    good = next((case for case in cases[2:] if not EXPECTATION.search(case)), "")
    return EXPECTATION.sub("", cases[1]), good


def policy_example(root: Folder | None, name: str) -> tuple[str, str] | None:
    """The shortest case that a policy refuses, and the shortest that it accepts, of the same kind if possible."""
    # A policy of the repository may have the name of one that comes with jobgen, whose cases are not about it.
    own = (data for file in layout.read_own_policies(root) for data in read_policy_file(file)) if root else ()
    is_own = any(name_policy(data) == name for data in own if data.get("kind") in (VALIDATING, MUTATING))
    shipped = find_shipped("policies").parent
    homes = [root] if root and is_own else [home for home in (root, shipped) if home]
    documents = sorted((text for home in homes for text in _read_cases(home, name)), key=len)
    expected = [(text, EXPECTATION.findall(text)) for text in documents]
    refused = [text for text, found in expected if any(name in re.split(r"[:,] *", each.strip()) for each in found)]
    # Params, and namespaces with labels, are no examples themselves.
    accepted = [text for text, found in expected if not found and _kind(text) not in ("ConfigMap", "Namespace")]
    if not refused:
        return None
    pairs = [(bad, good) for bad in refused for good in accepted if _kind(bad) == _kind(good)]
    # A job is what users write.
    pairs.sort(key=lambda pair: _kind(pair[0]) != "TrainingJob")
    bad, good = pairs[0] if pairs else (refused[0], accepted[0] if accepted else "")
    return hide_credentials(EXPECTATION.sub("", bad)), hide_credentials(good)


def _document_policy(document: Mapping[str, Node], bindings: Iterable[Mapping[str, Node]]) -> RuleDoc:
    name, described = name_policy(document), as_text(get_path(document, "metadata", "annotations", _DESCRIPTION))
    if document.get("kind") == MUTATING:
        described = described or "Changes objects when they are created"
        severity, default_text = Severity.ERROR, _MUTATION_FAILED
    else:
        validations = map(as_mapping, as_list(get_path(document, "spec", "validations")))
        texts = (str(each.get("message") or each.get("expression") or "").rstrip(".") for each in validations)
        described = described or "\n".join(dict.fromkeys(map(_to_sentence, texts)))
        own = (spec for spec in bindings if spec.get("policyName") == name)
        actions = {as_text(action) for spec in own for action in as_list(spec.get("validationActions"))}
        # The highest severity that a binding gives the policy; without a binding, it has no effect.
        severities = (severity for action, severity in _SEVERITIES.items() if action in actions)
        severity, default_text = next(severities, Severity.INFO), ""
    summary, _, text = hide_credentials(described.strip()).partition("\n")
    return RuleDoc(name, "policy", severity, f"{summary.rstrip('.')}.", text.strip() or default_text)


def _to_sentence(phrase: str) -> str:
    return f"{phrase[:1].upper()}{phrase[1:]}."


def _read_cases(root: Folder, name: str) -> Iterator[str]:
    for entry in layout.find_policy_tests(root):
        if f"/{name}/" in entry.path:
            text = read_file(entry).content.decode("utf-8", "replace")
            yield from (_LEADING_COMMENTS.sub("", part) for part in _SEPARATOR.split(text) if part.strip())


def _kind(text: str) -> str:
    found = _KIND.search(text)
    return found[1] if found else ""
