"""Rules that the road itself applies while it reads, merges, renders and checks: name, category, what it means."""

from __future__ import annotations

from jobgen.model.finding import Severity

_ERRORS = {
    "yaml": {
        "duplicate-key": "A key that stands twice in a mapping: Kubernetes takes the last and says nothing.",
        "excessive-aliases": "Aliases that expand to more than Kubernetes allows, or that contain themselves.",
        "file-too-large": "A file of more than 8 MiB, which no manifest needs.",
        "invalid-encoding": "Bytes that are not UTF-8, or characters that YAML does not have.",
        "invalid-key": "A key that Kubernetes cannot use: a list, a mapping, or a number that JSON has no name for.",
        "invalid-merge-key": "A merge key `<<` with something else than mappings.",
        "invalid-separator": "Text behind a separator `---`, which Kubernetes refuses or reads as another document.",
        "link-out-of-repository": "A symbolic link that leads out of the repository; it is not followed.",
        "linked-folder": "A symbolic link to a folder; it is not followed.",
        "nesting-too-deep": "A document nested more than 200 levels deep.",
        "non-finite-number": "Infinity, or a number too large for JSON: Kubernetes cannot carry it.",
        "not-a-mapping": "A document, or an item of a List, that is not a mapping.",
        "second-document": "A document behind the one that is read: nobody looks at it.",
        "template-text": "Text of a Helm or Jinja template, which is YAML only when it has been rendered.",
        "too-many-faults": "More than a hundred faults in one file; the rest of it was not looked at.",
        "too-many-nodes": "A document of more than a million nodes, which no object needs.",
        "unknown-anchor": "An alias without its anchor.",
        "unknown-tag": "A tag that Kubernetes does not know: it is dropped, or the file cannot be read.",
        "unreadable-file": "A file or folder that cannot be read.",
        "unreadable-tag": "A value that is not what its tag says.",
        "yaml-syntax": "Text that is not YAML, as Kubernetes reads it.",
    },
    "schema": {
        "crd-rule-violated": "An object that a CEL rule of its CRD refuses.",
        "duplicate-item": "Two items of a list that Kubernetes cannot tell apart.",
        "invalid-form": "A value that has none, or too many, of the forms that its schema allows.",
        "invalid-name": "A name that no object, or no namespace, can have.",
        "invalid-value": "A value that its field does not take.",
        "missing-field": "A field that must be there and is not.",
        "old-api-version": "An object of an apiVersion that its operator no longer serves.",
        "unknown-field": "A field that the kind, or the format, does not have.",
        "wrong-type": "A value of another type than its field takes.",
    },
    "spec": {
        "attempt-without-hash": "Another `attempt` of a job whose name stays the same: no run starts.",
        "conflicting-env": "Layers that give one variable two sources.",
        "conflicting-port": "Layers that give one name to two ports.",
        "conflicting-volume": "Layers that give one volume two sources, or two volumes one place.",
        "deletes-nothing": "A `null` or a `$patch: delete` that finds nothing to delete in any job.",
        "duplicate-env": "A variable that is set twice in one `env`.",
        "duplicate-member": "Two members of a sweep whose values make the same name.",
        "empty-patch": "A patch that says which jobs it means, and not what is to change.",
        "file-name-too-long": "An object whose name is too long for the name of a file in the rendered tree.",
        "invalid-patch": "A patch directive that cannot be carried out.",
        "json-patch-failed": "An operation of a JSON patch that fails: its path leads nowhere, or its test fails.",
        "locked-field": "A field that an overlay keeps jobs from setting.",
        "misplaced-document": "A document under overlays/ that is not an overlay.",
        "misplaced-job": "A job spec inside a List; it stands in a document of its own.",
        "misplaced-overlay": "An overlay that does not stand in `overlays/<environment>/`.",
        "misplaced-matrix": "A `matrix` in an overlay, which can change jobs but not make them.",
        "no-room-for-name": "A name of which too little is left beside the hash of its run.",
        "not-expressible": "Something that the kind, or its operator's version, has no place for.",
        "overlay-cycle": "Overlays that extend each other in a circle.",
        "overlay-name-mismatch": "An overlay that calls itself other than its folder.",
        "patch-matches-nothing": "A patch that matches no job in any environment.",
        "too-many-members": "A matrix that makes more jobs than its `limit` allows.",
        "unknown-day": "A job or a suppression that expires, where neither a commit nor `--today` says the day.",
        "unknown-overlay": "An overlay that is named and does not exist.",
        "unknown-role": "A role that the kind does not have.",
        "unknown-rule": "A rule or policy that is named in the settings and does not exist.",
        "unknown-variable": "A variable `${{ matrix.… }}` that its matrix does not have.",
    },
    "fleet": {
        "duplicate-identity": "Two jobs that make the same object of one environment.",
        "shared-file-name": "Two objects whose files in the rendered tree would differ in case only.",
    },
    "gitops": {
        "forbidden-change": "A change to a job that says `onChange: forbid`: it would not run on as it is.",
        "immutable-field-changed": "A field that the API server or a webhook refuses to change: nothing is applied.",
        "queue-changed": "A job that is moved to another queue while it is not suspended, which is refused.",
    },
    "meta": {
        "broken-schema": "An object whose schema in the repository cannot be used: it was not checked.",
        "mandatory-suppressed": "A comment that silences a rule which the settings call mandatory.",
    },
    "policy": {
        "binding-without-policy": "A binding of a policy that does not exist.",
        "invalid-policy": "A policy or a binding that the API server refuses.",
    },
}
_WARNINGS = {
    "gitops": {
        "edit-without-effect": "An edit that a job which runs never gets: its operator does not change running pods.",
        "kind-changed": "A job that becomes an object of another kind: training starts from the beginning.",
        "running-job-deleted": "A job that is no longer made: what applies the repository deletes it while it may run.",
    },
    "meta": {
        "change-not-judged": "A change to jobs that could not be rendered before, so nobody can say what it does.",
        "expired-suppression": "A comment that silences a rule until a day that is over.",
        "kubeconform-disagrees": "An object that jobgen takes and kubeconform refuses, or the other way round.",
        "kubeconform-failed": "An object that kubeconform could not check.",
        "malformed-suppression": "A comment that would silence a rule, but for its form: it does nothing.",
        "missing-schema": "An object of a kind without a schema: it was not checked.",
        "stale-baseline": "A finding in the baseline that has been mended.",
        "unknown-suppression": "A comment that silences a rule which does not exist.",
        "unused-suppression": "A comment that silences a rule which finds nothing there.",
    },
    "policy": {
        "policy-not-evaluated": "A policy that asks what only the cluster knows; it is not evaluated here.",
        "policy-without-binding": "A policy that no binding uses, so that it does nothing.",
    },
}

TWO_SIDED = frozenset(
    (
        "forbidden-change",
        "immutable-field-changed",
        "queue-changed",
        "running-job-deleted",
        "kind-changed",
        "edit-without-effect",
        "change-not-judged",
    )
)
"""Rules about a change: without `--since`, nobody can say that a comment which silences one is of no use."""

ROAD_RULES: tuple[tuple[str, str, Severity, str], ...] = tuple(
    (name, category, severity, said)
    for severity, categories in ((Severity.ERROR, _ERRORS), (Severity.WARNING, _WARNINGS))
    for category, rules in categories.items()
    for name, said in rules.items()
)
