"""Servers that listen to 127.0.0.1, which only their own pod reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from jobgen.features.launch.values import Fault
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, find_nodes, get_path
from jobgen.k8s.objects import Container, Manifest, Pod
from jobgen.k8s.shell.commands import Argument, find_option_values, parse_command
from jobgen.k8s.workloads import list_template_paths
from jobgen.model.data import Plain
from jobgen.model.finding import Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import Place
from jobgen.spec.overlay import Cluster


class _Server(NamedTuple):
    """How a server is told where to listen: its options for the address and the port, and its port without one."""

    address: Sequence[str]
    port: int
    is_local: bool = False
    """True if it listens to 127.0.0.1 without an option, and no file can say something else."""
    variable: str = ""
    """The variable that replaces the option."""
    others: Sequence[str] = ()
    """Options with which it listens elsewhere."""
    short: str = ""
    is_joined: bool = False
    """True if the address has the port behind a colon."""


_VLLM = _Server(("host",), 8000)
_SERVERS: Mapping[str, _Server] = {
    "gunicorn": _Server(("bind",), 8000, short="-b", is_joined=True),
    "uvicorn": _Server(("host",), 8000, True, "UVICORN_HOST", ("uds", "fd")),
    "vllm": _VLLM,
    "vllm.entrypoints.openai.api_server": _VLLM,
    "sglang.launch_server": _Server(("host",), 30000),
    "tensorboard": _Server(("host",), 6006, True, "", ("bind-all",)),
    "jupyter": _Server(("ip", "ServerApp.ip", "NotebookApp.ip"), 8888),
    "jupyter-lab": _Server(("ip", "ServerApp.ip"), 8888),
    "jupyter-notebook": _Server(("ip", "NotebookApp.ip"), 8888),
}
_LOCAL = frozenset(("127.0.0.1", "localhost"))
_PYTHON = lazy_pattern(r"(?:\S*/)?python[\d.]*\Z")
_PROXIES = lazy_pattern(r"\b(?:caddy|envoy|haproxy|nginx|socat|traefik)\b")
_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
RULE = "failing-probe"


class _LocalServer(NamedTuple):
    """A server that listens to 127.0.0.1."""

    port: int
    place: Place
    title: str
    advice: str

    def explain(self, reached: str) -> str:
        """Return what is wrong if something wants to reach it."""
        return f"{self.title}, so {reached} cannot reach it; {self.advice}"


def check_local(manifest: Manifest) -> Iterator[Fault]:
    """Report servers that nothing outside of their pod reaches, though a probe or a port of the container is theirs."""
    for pod in manifest.pods:
        for container, server in _list_local(pod):
            if reached := _find_use(container, server.port):
                yield Fault(server.place, server.explain(reached), False, rule=RULE)
                break


def find_hidden_servers(objects: Sequence[Mapping[str, Plain]]) -> Iterator[tuple[int, Problem]]:
    """Report servers that listen to 127.0.0.1 and that a Service of the same objects leads to, by number.

    Those with a probe or a declared port are reported without the Service.
    """
    services = [
        (as_text(get_path(each, "metadata", "namespace")), as_mapping(get_path(each, "spec", "selector")), each)
        for each in objects
        if as_text(each.get("kind")) == "Service" and as_text(each.get("apiVersion")) == "v1"
    ]
    for number, obj in enumerate(objects):
        group, kind = as_text(obj.get("apiVersion")).rpartition("/")[0], as_text(obj.get("kind"))
        for template in (found for path in list_template_paths(group, kind) for found in find_nodes(obj, path)):
            pod = Pod(as_mapping(template), Manifest(obj, None, Cluster()))
            labels = {str(name): as_text(value) for name, value in as_mapping(pod.metadata.get("labels")).items()}
            reaching = [
                service
                for namespace, selector, service in services
                if selector
                and namespace in ("", as_text(get_path(obj, "metadata", "namespace")))
                and all(labels.get(name) == as_text(value) for name, value in selector.items())
            ]
            for container, server in _list_local(pod) if reaching else ():
                named = next((name for each in reaching if (name := _name_service(each, server.port))), "")
                if named and not _find_use(container, server.port):
                    message = server.explain(f"the Service `{named}`")
                    yield number, Problem(RULE, message, server.place, category="launch", severity=Severity.WARNING)
                    break


def _name_service(service: Mapping[str, Plain], port: int) -> str:
    """Return the name of a Service if it leads to a port of its pods."""
    ports = map(as_mapping, as_list(get_path(service, "spec", "ports")))
    is_target = any(as_integer(each.get("targetPort", each.get("port"))) == port for each in ports)
    return as_text(get_path(service, "metadata", "name")) if is_target else ""


def _list_local(pod: Pod) -> Iterator[tuple[Container, _LocalServer]]:
    """Yield the servers of a pod that only the pod reaches."""
    # Another container may pass requests on.
    if len(pod.containers) == 1 and not any("restartPolicy" in each.data for each in pod.init_containers):
        yield from ((pod.containers[0], server) for server in _list_servers(pod.containers[0]))


def _list_servers(container: Container) -> Iterator[_LocalServer]:
    if _PROXIES.search(container.search_text) or "envFrom" in container.data:
        return
    for words in _split(parse_command(container.command_line)):
        name, rest = _find_server(words)
        server = _SERVERS.get(name)
        if server is None or (name == "vllm" and (not rest or rest[0].text != "serve")):
            continue
        address = _find_address(rest, server)
        is_default = address is None and server.is_local and server.variable not in container.variables
        if is_default and any(_has(rest, each) for each in server.others):
            continue
        host, colon, port = address.text.partition(":") if address is not None else ("127.0.0.1", "", "")
        written = port if colon and server.is_joined else _find_port(rest, server)
        if (address is None and not is_default) or host not in _LOCAL or not written.isdecimal():
            continue
        place = container.word_place(words[0].at if address is None else address.at)
        meant = f"0.0.0.0:{port}" if colon else "0.0.0.0"  # noqa: S104 -- an advice
        option = "--bind_all" if name == "tensorboard" else f"--{server.address[0]}={meant}"
        advice = f"write `{option if address is None else meant}`"
        title = f"`{name}` listens to `{host}`{' without an option' if address is None else ''}"
        yield _LocalServer(int(written), place, title, advice)


def _split(words: Sequence[Argument]) -> Iterator[list[Argument]]:
    """Yield the commands of a command line."""
    command: list[Argument] = []
    for word in words:
        if word.text in (";", "&&", "||", "|", "&"):
            yield command
            command = []
        else:
            command.append(word)
    yield command


def _find_server(words: Sequence[Argument]) -> tuple[str, Sequence[Argument]]:
    """Return the name of the program that a command starts, or of its module, and its arguments."""
    at = 0
    while at < len(words) and (words[at].text in ("bash", "sh", "-c", "-lc", "exec", "env") or "=" in words[at].text):
        at += 1
    if at + 2 < len(words) and _PYTHON.match(words[at].text) and words[at + 1].text == "-m":
        at += 2
    return (words[at].text.rpartition("/")[2], words[at + 1 :]) if at < len(words) else ("", ())


def _find_address(words: Sequence[Argument], server: _Server) -> Argument | None:
    """Return the only address that is written; None if there is none."""
    found = [each for option in server.address for each in find_option_values(words, option)]
    if server.short:
        found += [after for word, after in pairwise(words) if word.text == server.short]
    return found[0] if len(found) == 1 else None if not found else found[0]._replace(text="")


def _has(words: Sequence[Argument], option: str) -> bool:
    return any(word.text.partition("=")[0].lstrip("-").replace("_", "-") == option for word in words)


def _find_port(words: Sequence[Argument], server: _Server) -> str:
    """Return the port of a server as it is written; that without an option if none is."""
    found = [*find_option_values(words, "port")]
    return found[-1].text if found else str(server.port)


def _find_use(container: Container, port: int) -> str:
    """Return what wants to reach a port of a container; empty if nothing does."""
    ports = [as_mapping(each) for each in as_list(container.data.get("ports"))]
    names = {as_text(each.get("name")) for each in ports if as_integer(each.get("containerPort")) == port}
    for field in _PROBES:
        probe = as_mapping(container.data.get(field))
        for kind in ("httpGet", "tcpSocket", "grpc"):
            asked = get_path(probe, kind, "port")
            is_own = as_integer(asked) == port or (as_text(asked) and as_text(asked) in names)
            if asked is not None and is_own and get_path(probe, kind, "host") is None:
                return f"the {field}"
    return "other pods" if names else ""
