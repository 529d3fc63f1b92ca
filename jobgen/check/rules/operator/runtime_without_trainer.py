"""Runtimes whose nodes TrainJobs do not reach."""

from collections.abc import Iterator

from jobgen.check.admission.fields import iter_mappings
from jobgen.check.operators.trainer import STEP, list_steps
from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import value_of
from jobgen.model.suggest import find_key


@rule("manifest", WARNING, kinds=("ClusterTrainingRuntime", "TrainingRuntime"))
def runtime_without_trainer(manifest: Manifest) -> Iterator[Violation]:
    """A training runtime whose nodes do not get what a TrainJob sets, or do not find each other.

    Trainer applies `trainer` of a TrainJob, such as its image, command and number of nodes, to the replicated Job with
    the label `trainer.kubeflow.org/trainjob-ancestor-step: trainer`. Without one it applies them to nothing, and the
    policies `torch`, `jax` and `xgboost` set no variables; without these policies, it is reported in the TrainJob. The
    policies `torch`, `jax` and `xgboost` give the nodes the address `JOB-node-0-0.JOB`, so the Job must be named `node`
    and have host names. The policy `mpi` needs a replicated Job `launcher`, which gets the list of hosts.

    Label the replicated Job that trains, in `template.metadata.labels`, and name it `node`.
    """
    jobset = as_mapping(get_path(manifest.spec, "template", "spec"))
    steps = list(list_steps(manifest.object))
    trained = [job for job, step in steps if step == "trainer"]
    policy = as_mapping(manifest.spec.get("mlPolicy"))
    used = next((name for name in ("torch", "jax", "xgboost") if name in policy), "")
    if not steps:
        return
    if not trained:
        # A runtime without these policies may need nothing of its jobs. Before 2.0, names and not labels decided.
        pods = (get_path(job, "template", "spec", "template", "spec", "containers") for job, _ in steps)
        is_new = any(as_text(each.get("name")) == "node" for several in pods for each in iter_mappings(several))
        if not used or not (is_new or manifest.cluster.operators.get("trainer")):
            return
        message = f"no replicated Job has the label `{STEP}: trainer`, so `trainer` of a TrainJob is applied to nothing"
        yield Violation(find_key(jobset, "replicatedJobs"), f"{message}; set it in `template.metadata.labels`")
        return
    names = {as_text(job.get("name")): job for job, _ in steps}
    if "mpi" in policy and "launcher" not in names:
        message = "the policy `mpi` needs a replicated Job `launcher`, which gets the list of hosts"
        yield Violation(find_key(policy, "mpi"), f"{message}; name the one that starts `mpirun` so")
    if not used:
        return
    address = f"the policy `{used}` gives the nodes the address `JOB-node-0-0.JOB`, which does not resolve"
    network = as_mapping(jobset.get("network"))
    if "node" not in names:
        name = trained[0].get("name")
        yield Violation(name, f"{address}, because the replicated Job is named `{as_text(name)}`; name it `node`")
    if as_text(network.get("subdomain")):
        yield Violation(network["subdomain"], f"{address} with another `subdomain`; remove it")
    elif value_of(network.get("enableDNSHostnames")) is False:
        yield Violation(network["enableDNSHostnames"], f"{address} without host names; remove the field")
