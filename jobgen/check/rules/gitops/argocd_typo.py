"""A word that Argo CD passes over."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.argocd_annotations import DELETE_POLICY, DOMAIN, HOOK, SYNC_OPTIONS, split_annotation
from jobgen.k8s.objects import Manifest, as_text
from jobgen.model.finding import FixStep
from jobgen.model.suggest import closest, is_same_word

_KNOWN = {
    HOOK: ["PreSync", "Sync", "Skip", "PostSync", "SyncFail", "PreDelete", "PostDelete"],
    DELETE_POLICY: ["HookSucceeded", "HookFailed", "BeforeHookCreation"],
    SYNC_OPTIONS: [
        *("Prune=false", "Prune=confirm", "Delete=false", "Delete=confirm", "Replace=true", "Force=true"),
        *("Validate=false", "SkipDryRunOnMissingResource=true", "PruneLast=true", "ServerSideApply=true"),
        *("ServerSideApply=false", "ApplyOutOfSyncOnly=true", "ClientSideApplyMigration=false"),
    ],
}
# What says what holds anyway.
_IDLE = frozenset(
    """Prune=true Delete=true Replace=false Force=false Validate=true PruneLast=false ApplyOutOfSyncOnly=false
    SkipDryRunOnMissingResource=false ClientSideApplyMigration=true""".split()
)


@rule("manifest", WARNING)
def argocd_typo(manifest: Manifest) -> Iterator[Violation]:
    """A hook, delete policy or sync option that Argo CD does not know, though it looks like one that it does.

    Argo CD passes over words that it does not know: a job that was to be kept is pruned, a hook is an ordinary object.
    They are told apart by case: `Prune=false`.
    """
    annotations = manifest.annotations
    for key in annotations:
        if not key.startswith(DOMAIN) or key not in _KNOWN:
            continue
        for word in split_annotation(manifest, key):
            meant = closest(word, _KNOWN[key]) if word not in _KNOWN[key] and word not in _IDLE else ""
            if meant:
                node = annotations[key]
                message = f"Argo CD does not know `{word}`, and passes over it; did you mean `{meant}`?"
                fix_steps = (FixStep("set", node, as_text(node).replace(word, meant, 1)),)
                yield Violation(node, message, fix_steps=fix_steps, safe=is_same_word(word, meant))
