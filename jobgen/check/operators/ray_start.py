"""The options of `ray start`, which KubeRay writes from `rayStartParams`.

Source: python/ray/scripts/scripts.py of Ray 1.0 to 2.52.
"""

from collections.abc import Iterator, Mapping

from jobgen.check.rules import ERROR, WARNING, Violation
from jobgen.model.data import Plain
from jobgen.model.meant import find_meant, is_same_name
from jobgen.model.place import At
from jobgen.model.sentence import Sentence

_OPTIONS = frozenset(
    """
    address autoscaling-config block cgroup-path dashboard-agent-grpc-port dashboard-agent-listen-port
    dashboard-grpc-port dashboard-host dashboard-port disable-usage-stats enable-object-reconstruction
    enable-resource-isolation gcs-server-port head help huge-pages include-dashboard include-java include-log-monitor
    include-webui internal-config java-worker-options labels labels-file load-code-from-local log-color log-style
    lru-evict max-worker-port memory metrics-export-port min-worker-port no-monitor no-redirect-output
    no-redirect-worker-output node-ip-address node-manager-port node-name num-cpus num-gpus num-redis-shards
    object-manager-port object-spilling-directory object-store-memory plasma-directory plasma-store-socket-name port
    ray-client-server-port ray-debugger-external raylet-socket-name redis-address redis-max-clients redis-max-memory
    redis-password redis-port redis-shard-ports redis-username resources runtime-env-agent-port storage system-config
    system-reserved-cpu system-reserved-memory temp-dir tracing-startup-hook verbose webui-host worker-port-list
    """.split()
)


def check_start_options(params: Mapping[str, Plain]) -> Iterator[Violation]:
    """Yield the parameters that a slip has made of an option. Other names can be options of a newer Ray."""
    for key in params if not params.keys() <= _OPTIONS else ():
        name = str(key)
        meant = "" if name in _OPTIONS else find_meant(name, _OPTIONS)
        if meant:
            message = Sentence(
                "`{}` is not an option of `ray start` (`No such option: --{}`); write `{}`", name, name, meant
            )
            # An option of a newer Ray can have a similar name, but not with other separators.
            yield Violation(
                At(params, key, is_key=True), message, severity=ERROR if is_same_name(name, meant) else WARNING
            )
