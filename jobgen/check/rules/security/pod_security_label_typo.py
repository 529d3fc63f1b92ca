"""Labels of a namespace that look like those of Pod Security."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.objects import Manifest
from jobgen.model.suggest import did_you_mean

_PREFIX = "pod-security.kubernetes.io/"


@rule("manifest", WARNING, kinds=("Namespace",))
def pod_security_label_typo(manifest: Manifest) -> Iterator[Violation]:
    """A Namespace label that starts like a Pod Security label but is not one.

    The API server ignores such a label, so the namespace is not protected.

    The labels are `enforce`, `warn` and `audit`, each with `-version` or without, after `pod-security.kubernetes.io/`.
    """
    keys = [key for key in manifest.labels if key.startswith(_PREFIX)]
    if not keys:
        return
    from jobgen.check.pod_security.checks import LABELS

    for key in keys:
        if key not in LABELS:
            hint = did_you_mean(key, list(LABELS)) or "; the modes are `enforce`, `warn` and `audit`"
            yield Violation(key, f"`{key}` is not a Pod Security label{hint}")
