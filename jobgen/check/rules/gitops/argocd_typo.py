"""Misspelled values in Argo CD annotations."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.argocd_annotations import DELETE_POLICY, DOMAIN, HOOK, SYNC_OPTIONS, split_annotation
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.finding import FixStep
from jobgen.model.suggest import find_closest, is_same_name

_KNOWN = {
    HOOK: ["PreSync", "Sync", "Skip", "PostSync", "SyncFail", "PreDelete", "PostDelete"],
    DELETE_POLICY: ["HookSucceeded", "HookFailed", "BeforeHookCreation"],
    SYNC_OPTIONS: [
        *("Prune=false", "Prune=confirm", "Delete=false", "Delete=confirm", "Replace=true", "Force=true"),
        *("Validate=false", "SkipDryRunOnMissingResource=true", "PruneLast=true", "ServerSideApply=true"),
        *("ServerSideApply=false", "ApplyOutOfSyncOnly=true", "ClientSideApplyMigration=false"),
    ],
}
# Values that state the default.
_DEFAULTS = frozenset(
    """Prune=true Delete=true Replace=false Force=false Validate=true PruneLast=false ApplyOutOfSyncOnly=false
    SkipDryRunOnMissingResource=false ClientSideApplyMigration=true""".split()
)


@rule("manifest", WARNING)
def argocd_typo(manifest: Manifest) -> Iterator[Violation]:
    """A misspelled hook, delete policy or sync option of Argo CD.

    Argo CD ignores values that it does not know: a job that was meant to be kept is pruned, or a hook becomes an
    ordinary object.

    Correct the value. Case matters: `Prune=false`.
    """
    annotations = manifest.annotations
    for key in annotations:
        if not key.startswith(DOMAIN) or key not in _KNOWN:
            continue
        for word in split_annotation(manifest, key):
            meant = find_closest(word, _KNOWN[key]) if word not in _KNOWN[key] and word not in _DEFAULTS else ""
            if meant:
                node = annotations[key]
                message = f"Argo CD ignores the unknown value `{word}`; did you mean `{meant}`?"
                fix_steps = (FixStep("set", node, as_text(node).replace(word, meant, 1)),)
                yield Violation(node, message, fix_steps=fix_steps, safe=is_same_name(word, meant))
