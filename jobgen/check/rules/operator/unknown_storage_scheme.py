"""Storage schemes of the initializers."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import is_operator_since
from jobgen.model.suggest import list_alternatives

_SCHEMES = {"dataset": ("hf", "s3", "cache"), "model": ("hf", "s3")}


@rule("job", WARNING, kinds=("TrainJob",))
def unknown_storage_scheme(manifest: Manifest) -> Iterator[Violation]:
    """A `storageUri` of a TrainJob that Trainer's initializers cannot read.

    The initializers shipped with Trainer read `hf://` and `s3://`, and for datasets also `cache://`; they fail
    otherwise.

    Use one of these schemes, or an initializer image of your own.
    """
    if "initializer" not in manifest.spec:
        return
    for what, schemes in _SCHEMES.items():
        node = get_path(manifest.spec, "initializer", what, "storageUri")
        scheme = as_text(node).partition("://")[0]
        # From 2.3 on the CRD itself asks for a scheme.
        if scheme not in schemes and ("://" in as_text(node) or (scheme and not is_operator_since(manifest, "2.3.0"))):
            known = list_alternatives(f"`{scheme}://`" for scheme in schemes)
            yield Violation(node, f"Trainer's initializers read only {known}, not `{as_text(node)}`")
