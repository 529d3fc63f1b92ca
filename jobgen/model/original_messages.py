"""Messages of the first release that are part of fingerprints as a whole, because they quote no value.

Fingerprints and baselines of that release must still match, so these texts never change, whatever the messages of the
rules are now. A new rule quotes a value in its message and needs no entry here.
"""

from __future__ import annotations

from collections.abc import Mapping

_MESSAGES: Mapping[str, str] = {
    "elastic-bounds-fewer": "torchrun waits for {} pods, and the job has {}",
    "elastic-bounds-more": "torchrun takes {} pods, and the job has {}",
    "elastic-job-unsupported": "Kueue does not resize a {}, and refuses it",
    "forced-sync-argocd": "each sync of the app deletes the running job and starts it again; take both options away",
    "forced-sync-flux": "Flux deletes the running job if a change is refused; take it away",
    "min-available-too-high": "the job has {} pods, so {} never run at once and it never starts",
    "hook-without-health": "Argo CD has no health check for a {}: it counts as done, and is deleted, at once",
    "ignored-document": "the settings are one document, and this is another",
    "idle-gpus-v1": "the launcher holds {}, so the operator adds its slots to the hostfile; leave them to the workers",
    "idle-gpus-v2": "the launcher holds {}, which the operator hides from it; leave them to the workers",
    "install-at-start": "a script from the network runs whenever the pod starts, and may bring other versions;"
    " build it into the image",
    "kind-not-served-since": "{} came with {} {}, and this cluster has {}",
    "kind-not-served-other": "this cluster's MPIJob is that of {}; this one is of {}",
    "long-job-name": "the name has {} characters; it is also a label, so there is room for {}",
    "misplaced-job": "a job of jobgen stands in a document of its own, not in a List",
    "misplaced-overlay": "an overlay stands under overlays/, not under jobs/",
    "missing-namespace-argocd": "no namespace is written, and Argo CD takes the app's; name it",
    "missing-namespace-flux": "no namespace is written, and Flux takes the Kustomization's, if it names one; name it",
    "nnodes-mismatch": "torchrun waits for {} nodes, and the job has {}; leave it out",
    "object-too-large-to-store": "the object has {} KiB, and etcd takes 1536 KiB at most",
    "object-too-large-to-apply": "the object has {} KiB, and client-side apply takes 256 KiB at most",
    "owner-references-in-git": "the object is deleted at once where its owner does not live; take the owners out",
    "min-available-too-low": "{} of {} pods may start and wait for the rest; leave it out, or say {}",
    "queue-support-ending": "Kueue means to drop {} with 0.20; a TrainJob will still be queued{}",
    "ineffective-queue-label": "training-operator {} cannot hold a job back, as Kueue needs; use {} or later",
    "queued-tolerations": "Kueue adds to this list and Argo CD undoes it; move the tolerations to the ResourceFlavor",
    "runtime-patch-time": "Trainer writes the time of a patch itself; leave it out",
    "service-port-clash": "a Service has a number once, whatever the protocol; take one of the two out",
    "ttl-in-runtime": "what a TrainJob has made is deleted, and may be made and run again; leave it out",
    "ttl-reruns-job": "the finished job is deleted, and {} makes it again and trains anew",
    "unsupported-by-kind": "{} has no place for {}; it comes from the runtime",
}


_POLICY_TEXTS: Mapping[str, Mapping[str, str]] = {
    "mxjob-deprecated": {
        "1.9 and later do not serve it; use another framework": "1.9 has it no more; move to another framework",
        " does not serve MXJob, which 1.9 removed; use another framework": " has no MXJob: it went with 1.9",
    },
    "queue-required": {"; set it, or `queue` of a job spec, to a LocalQueue": "; set it to a LocalQueue"},
    "restart-policy-risk": {"; set it only there": "; say it there alone"},
    "restart-policy-sanity": {
        "rejects the pods; use `Never` or `OnFailure`": (
            "rejects the pods; use `Never`, `OnFailure`, `Always` or `ExitCode`"
        ),
        "; use `Never`, `OnFailure` or `ExitCode`": "; use `Never`, `OnFailure`, `Always` or `ExitCode`",
        "this is not a restart policy of the operator; use `Never` or `OnFailure`": (
            "a restart policy must be `Never`, `OnFailure`, `Always` or `ExitCode`"
        ),
    },
}
"""The texts of shipped policies that changed, and those of the first release."""


def original_policy_message(policy: str, message: str) -> str:
    """Return the message of the first release of a shipped policy."""
    for text, original in _POLICY_TEXTS.get(policy, {}).items():
        message = message.replace(text, original)
    return message


def original_message(key: str, *values: object) -> tuple[str, ...]:
    """Return the message of the first release as the evidence of a finding."""
    return (_MESSAGES[key].format(*values),)
