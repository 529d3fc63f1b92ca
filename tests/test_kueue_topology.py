"""Placement in a topology: each mode with a small cluster, and properties that hold for every cluster."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sampling import laws

from jobgen.features.kueue.assignment import PlacedPods, Topologies
from jobgen.features.kueue.objects import Flavor, parse_topologies
from jobgen.features.kueue.topology.snapshot import (
    FailedNode,
    TopologySnapshot,
    build_snapshots,
    find_all_assignments,
    find_assignments,
)
from jobgen.features.kueue.topology.tree import (
    HOSTNAME,
    Failure,
    Node,
    Placement,
    PodSetRequest,
    TopologyGates,
    TopologyTree,
    parse_nodes,
    read_gates,
    select_nodes,
    sum_other_pods,
)
from jobgen.features.kueue.workloads import TopologyRequest, parse_domains

ROW, RACK = "example.com/row", "example.com/rack"
LEVELS = (ROW, RACK, HOSTNAME)

# Two rows of two racks of two hosts. A host is named by its row, rack and number, with the GPUs that are free.
CLUSTER = {"a1x": 4, "a1y": 2, "a2x": 3, "a2y": 3, "b1x": 8, "b1y": 1, "b2x": 2, "b2y": 2}


def make_node(name, gpus, *, taints=(), **labels):
    places = {ROW: name[0], RACK: name[1], HOSTNAME: name}
    return Node(name, {**places, **labels}, tuple(taints), {"gpu": gpus, "cpu": 64000, "pods": 20})


def make_snapshot(gpus=None, *, levels=LEVELS, nodes=None, **options):
    made = nodes or [make_node(name, number) for name, number in (gpus or CLUSTER).items()]
    return TopologySnapshot("lab", TopologyTree(levels, made), **options)


def ask(count, *, required="", preferred="", unconstrained=False, slices=(), **fields):
    topology = TopologyRequest(required, preferred, unconstrained, tuple(slices))
    return PodSetRequest(
        fields.pop("name", "main"),
        count,
        fields.pop("requests", {"gpu": 1}),
        topology if topology.is_explicit else None,
        is_implied=not topology.is_explicit,
        **fields,
    )


def place(snapshot, *requests, **options):
    return {name: show(found) for name, found in find_assignments(snapshot, requests, **options).items()}


def show(found):
    """A placement as the number of pods by host, a failure as its text."""
    if isinstance(found, Failure):
        return found.message
    return {values[-1]: count for values, count in found.domains}


def on_hosts(**counts):
    return Placement((HOSTNAME,), tuple(((name,), count) for name, count in counts.items()))


MODES = {
    "required uses the host that fits best": (ask(3, required=HOSTNAME), {"a2x": 3}),
    "required stays in one rack": (ask(5, required=RACK), {"a1x": 4, "a1y": 1}),
    "required stays in one row": (ask(13, required=ROW), {"b1x": 8, "b1y": 1, "b2x": 2, "b2y": 2}),
    "required does not cross its level": (
        ask(10, required=RACK),
        'topology "lab" allows to fit only 9 out of 10 pod(s)',
    ),
    "preferred stays in the level if it can": (ask(6, preferred=RACK), {"a1x": 4, "a1y": 2}),
    "preferred uses the level above": (ask(10, preferred=RACK), {"a1x": 4, "a2x": 3, "a2y": 3}),
    "preferred uses several domains at the top": (
        ask(24, preferred=ROW),
        {"a1x": 4, "a1y": 2, "a2x": 3, "a2y": 3, "b1x": 8, "b2x": 2, "b2y": 2},
    ),
    "preferred fails if all is not enough": (
        ask(26, preferred=HOSTNAME),
        'topology "lab" allows to fit only 25 out of 26 pod(s)',
    ),
    "unconstrained uses the least free host that is enough": (ask(2, unconstrained=True), {"a1y": 2}),
    "unconstrained uses the least free hosts first": (
        ask(9, unconstrained=True),
        {"a1y": 2, "a2x": 2, "b1y": 1, "b2x": 2, "b2y": 2},
    ),
    "without a request it is as unconstrained": (ask(2), {"a1y": 2}),
    "slices stay in a rack": (
        ask(8, required=ROW, slices=[(RACK, 4)]),
        {"a1x": 2, "a1y": 2, "a2x": 3, "a2y": 1},
    ),
    "slices alone start at the top": (ask(6, slices=[(RACK, 3)]), {"a1x": 4, "a1y": 2}),
    "slices do not fit": (
        ask(15, required=ROW, slices=[(RACK, 5)]),
        'topology "lab" allows to fit only 2 out of 3 slice(s)',
    ),
    "inner slices stay on a host": (
        ask(8, required=ROW, slices=[(RACK, 4), (HOSTNAME, 2)]),
        {"a1x": 2, "a1y": 2, "a2x": 2, "a2y": 2},
    ),
    "inner slices do not fit": (
        ask(12, required=ROW, slices=[(RACK, 6), (HOSTNAME, 3)]),
        f'topology "lab" doesn\'t allow to fit; 1/2 slice(s) fit on level {RACK}; 3/4 slice(s) fit on level {HOSTNAME}',
    ),
    "an unknown level": (ask(1, required="zone"), "no requested topology level: zone"),
    "an unknown level of slices": (
        ask(2, required=ROW, slices=[("zone", 2)]),
        "no requested topology level for slices: zone",
    ),
    "an unknown level of inner slices": (
        ask(4, required=ROW, slices=[(RACK, 2), ("zone", 1)]),
        "no requested topology level for additional slice layer: zone",
    ),
    "inner slices that are not below": (
        ask(4, required=ROW, slices=[(RACK, 2), (RACK, 1)]),
        f"additional slice layer topology {RACK} must be at a lower level than {RACK}",
    ),
    "inner slices that do not divide": (
        ask(4, required=ROW, slices=[(RACK, 4), (HOSTNAME, 3)]),
        "additional slice layer size 3 must evenly divide parent layer size 4",
    ),
    "slices above the level": (
        ask(4, required=HOSTNAME, slices=[(RACK, 2)]),
        f"podset slice topology {RACK} is above the podset topology {HOSTNAME}",
    ),
    "slices without a size": (
        ask(4, required=ROW, slices=[(RACK, 0)]),
        "slice topology requested, but slice size not provided",
    ),
}


@pytest.mark.parametrize("case", MODES)
def test_modes(case):
    request, expected = MODES[case]

    assert place(make_snapshot(), request) == {"main": expected}


def test_best_fit_without_mixed_profile():
    snapshot = make_snapshot(gates=read_gates({"TASProfileMixed": False}))

    assert place(snapshot, ask(4, unconstrained=True)) == {"main": {"a1x": 4}}
    assert place(snapshot, ask(9, unconstrained=True)) == {"main": {"b1x": 8, "b1y": 1}}


def test_balanced_placement():
    snapshot = make_snapshot({"a1x": 6, "a1y": 6, "a2x": 6, "a2y": 6})

    assert place(snapshot, ask(8, preferred=HOSTNAME)) == {"main": {"a1x": 6, "a1y": 2}}
    snapshot.gates = TopologyGates(balanced_placement=True)
    assert place(snapshot, ask(8, preferred=HOSTNAME)) == {"main": {"a1x": 4, "a1y": 4}}


def test_leader_and_workers_share_a_domain():
    leader = ask(1, name="leader", required=RACK, group="g", requests={"cpu": 60000})
    workers = ask(4, name="workers", required=RACK, group="g", requests={"gpu": 1, "cpu": 8000})

    found = place(make_snapshot(), leader, workers)

    assert found == {"leader": {"a1y": 1}, "workers": {"a1x": 4}}


def test_leader_that_fits_nowhere():
    leader = ask(1, name="leader", required=RACK, group="g", requests={"cpu": 65000})
    workers = ask(4, name="workers", required=RACK, group="g")

    text = 'topology "lab" allows to fit only 6 out of 4 pod(s)'
    assert place(make_snapshot(), leader, workers) == {"leader": text, "workers": text}


def test_pod_sets_are_placed_one_after_the_other():
    found = place(make_snapshot(), ask(8, name="one", required=HOSTNAME), ask(8, name="two", required=HOSTNAME))

    assert found["one"] == {"b1x": 8}
    assert found["two"].startswith('topology "lab" allows to fit only 4 out of 8 pod(s). Total nodes: 8; excluded: ')


def test_nodes_that_take_no_pods_are_counted():
    nodes = [
        make_node("a1x", 4, taints=[{"key": "gpu", "value": "big", "effect": "NoSchedule"}]),
        make_node("a1y", 4, taints=[{"key": "slow", "effect": "PreferNoSchedule"}], pool="old"),
        make_node("a2x", 0, pool="new", zone="z"),
        make_node("a2y", 4, pool="new"),
    ]
    zone = {"key": "zone", "operator": "Exists"}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}}
    spec = {"nodeSelector": {"pool": "new"}, "affinity": {"nodeAffinity": affinity}}

    assert place(make_snapshot(nodes=nodes), ask(1, required=HOSTNAME, spec=spec)) == {
        "main": 'topology "lab" doesn\'t allow to fit any of 1 pod(s). Total nodes: 4; excluded: '
        'affinity: 1, nodeSelector: 1, resource "gpu": 1, taint "gpu=big:NoSchedule": 1'
    }


@pytest.mark.parametrize(
    ("toleration", "is_placed"),
    [
        ({"key": "speed", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "speed", "value": "7"}, True),
        ({"key": "speed", "value": "8"}, False),
        ({"key": "speed", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "speed", "operator": "Gt", "value": "5"}, True),
        ({"key": "speed", "operator": "Lt", "value": "5"}, False),
        ({"key": "speed", "operator": "Lt", "value": "--5"}, False),
        ({"key": "speed", "operator": "Near", "value": "7"}, False),
        (3, False),
    ],
)
def test_tolerations(toleration, is_placed):
    taint = {"key": "speed", "value": "7", "effect": "NoSchedule"}
    request = ask(1, required=HOSTNAME, spec={"tolerations": [toleration]})

    found = find_assignments(make_snapshot(nodes=[make_node("a1x", 1, taints=[taint])]), [request])

    assert isinstance(found["main"], Placement) == is_placed


def test_tolerations_of_the_flavor_and_names_of_nodes():
    taint = {"key": "gpu", "value": "big", "effect": "NoSchedule"}
    nodes = [make_node(name, 4, taints=[taint]) for name in ("a1x", "a1y")]
    toleration = {"key": "gpu", "operator": "Exists"}
    fields = [{"key": "metadata.name", "operator": "In", "values": ["a1y"]}]
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": fields}]}}

    found = place(
        make_snapshot(nodes=nodes, tolerations=[toleration]),
        ask(1, required=HOSTNAME, spec={"affinity": {"nodeAffinity": affinity}}),
    )

    assert found == {"main": {"a1y": 1}}


def test_preferred_affinity_comes_before_the_best_fit():
    nodes = [make_node("a1x", 1), make_node("b1x", 4, pool="new")]
    term = {"weight": 5, "preference": {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["new"]}]}}
    spec = {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}
    request = ask(1, required=HOSTNAME, spec=spec)
    gates = TopologyGates(respect_preferred_affinity=True)

    assert place(make_snapshot(nodes=nodes), request) == {"main": {"a1x": 1}}
    assert place(make_snapshot(nodes=nodes, gates=gates), request) == {"main": {"b1x": 1}}


def test_levels_above_hosts_sum_nodes_and_ignore_selectors():
    snapshot = make_snapshot(levels=(ROW, RACK))

    found = find_assignments(snapshot, [ask(6, required=RACK, spec={"nodeSelector": {"pool": "new"}})])

    assert found == {"main": Placement((ROW, RACK), ((("a", "1"), 6),))}


def test_usage_and_other_pods_take_room():
    pods = [
        {"spec": {"nodeName": "b1x", "containers": [{"resources": {"requests": {"gpu": "5"}}}]}},
        {"spec": {"nodeName": "b1x", "containers": []}, "status": {"phase": "Succeeded"}},
    ]
    snapshot = make_snapshot(other_pods=sum_other_pods(pods))
    request = ask(4, required=HOSTNAME)

    snapshot.add_usage(("a1x",), {"gpu": 1}, 1)
    assert place(snapshot, request)["main"].startswith('topology "lab" allows to fit only 3 out of 4')
    assert place(snapshot, request, ignore_usage=True) == {"main": {"a1x": 4}}
    assert not snapshot.fits(on_hosts(a1x=4), {"gpu": 1})
    snapshot.add_usage(("a1x",), {"gpu": 1}, -1)
    assert place(snapshot, request) == {"main": {"a1x": 4}}
    assert snapshot.fits(on_hosts(a1x=4), {"gpu": 1})
    snapshot.add_usage(("gone",), {"gpu": 1}, 1)
    assert not snapshot.fits(on_hosts(gone=1), {"gpu": 1})


def test_failed_node_is_replaced_in_its_domain():
    without = {name: number for name, number in CLUSTER.items() if name != "a2x"}
    failed = FailedNode("a2x", {"main": on_hosts(a2x=2, a2y=1)})

    found = place(make_snapshot(without), ask(3, required=RACK), failed=failed)
    assert found == {"main": {"a2y": 3}}

    failed = FailedNode("a2x", {"main": on_hosts(a2x=4, a2y=1)})
    assert place(make_snapshot(without), ask(5, required=RACK), failed=failed) == {
        "main": 'topology "lab" allows to fit only 3 out of 4 pod(s). Total nodes: 7; excluded: topologyDomain: 6'
    }


def test_failed_node_leaves_slices_whole():
    without = {name: number for name, number in CLUSTER.items() if name != "a2x"}
    failed = FailedNode("a2x", {"main": on_hosts(a1x=3, a2x=1, a2y=2)})
    request = ask(6, required=ROW, slices=[(RACK, 3)])

    assert place(make_snapshot(without), request, failed=failed) == {"main": {"a1x": 3, "a2y": 3}}


def test_failed_node_with_stale_places_and_single_pods():
    snapshot = make_snapshot()
    stale = FailedNode("a1x", {"main": on_hosts(a1x=1, gone=1)})

    assert place(snapshot, ask(2, required=ROW), failed=stale) == {
        "main": "Cannot replace the node, because the existing topologyAssignment is invalid, "
        "as it contains the stale domain gone"
    }
    alone = FailedNode("gone", {"main": on_hosts(gone=1)}, is_single_pod=True)
    assert place(snapshot, ask(1, required=ROW), failed=alone) == {"main": {"gone": 1}}
    assert place(snapshot, ask(1, name="other"), failed=alone) == {}


@pytest.mark.parametrize(
    ("count", "previous", "expected"),
    [
        (3, {"a1x": 2, "a2x": 1}, {"a1x": 2, "a2x": 1}),
        (2, {"a1x": 1, "a2x": 2}, {"a1x": 1, "a2x": 1}),
        (4, {"a1y": 2}, {"a1y": 2, "b2x": 2}),
        (2, {"gone": 1}, {"a1y": 2}),
    ],
    ids=["same", "fewer", "more", "lost"],
)
def test_elastic_jobs_keep_their_pods(count, previous, expected):
    snapshot = make_snapshot(gates=TopologyGates(elastic=True))

    assert place(snapshot, ask(count, unconstrained=True, previous=on_hosts(**previous))) == {"main": expected}


def test_flavors_with_the_same_hosts_share_usage():
    flavors = [Flavor(name, {}, (), (), "lab") for name in ("one", "two")]
    nodes = [make_node("a1x", 4)]
    levels = parse_topologies([{"metadata": {"name": "lab"}, "spec": {"levels": [{"nodeLabel": HOSTNAME}]}}])
    usage = {"one": (PlacedPods(on_hosts(a1x=3), {"gpu": 1}),)}

    for shares in (True, False):
        gates = TopologyGates(handle_overlapping_flavors=shares)
        snapshots = build_snapshots(flavors, levels, nodes, gates=gates)
        topologies = Topologies(snapshots)
        topologies.add(usage)
        topologies.share(usage)
        found = find_all_assignments(snapshots, {"two": [ask(4, required=HOSTNAME)]})
        assert isinstance(found["main"], Failure) == shares

    snapshots = build_snapshots(flavors, levels, nodes)
    requests = {"one": [ask(3, name="x", required=HOSTNAME)], "two": [ask(3, name="y", required=HOSTNAME)]}
    found = find_all_assignments(snapshots, requests)
    assert show(found["x"]) == {"a1x": 3}
    assert isinstance(found["y"], Failure)


def test_nodes_that_are_not_ready_or_have_other_labels_do_not_count():
    def node(name, ready="True", **fields):
        status = {"conditions": [{"type": "Ready", "status": ready}], "allocatable": {"cpu": "1500m", "pods": 3}}
        return {"metadata": {"name": name, "labels": {HOSTNAME: name, "pool": name[0]}}, "status": status, **fields}

    raw = [node("a1"), node("a2", "False"), node("a3", spec={"unschedulable": True}), node("b1"), {}, {"metadata": 3}]
    nodes = select_nodes(parse_nodes(raw), {"pool": "a"}, (HOSTNAME,))

    assert [(each.name, each.allocatable) for each in nodes] == [("a1", {"cpu": 1500, "pods": 3})]


def test_compact_assignments():
    compact = {
        "levels": [RACK, HOSTNAME],
        "slices": [
            {
                "domainCount": 2,
                "valuesPerLevel": [
                    {"universal": "r1"},
                    {"individual": {"prefix": "node-", "roots": ["1", "22"], "suffix": ".lan"}},
                ],
                "podCounts": {"individual": [3, 1]},
            },
            {
                "domainCount": 1,
                "valuesPerLevel": [{"universal": "r2"}, {"universal": "z"}],
                "podCounts": {"universal": 2},
            },
            {"domainCount": 9, "valuesPerLevel": [{"individual": {"roots": ["y"]}}], "podCounts": {"universal": 1}},
            {"domainCount": "x", "valuesPerLevel": 3},
            7,
        ],
    }

    assert parse_domains(compact) == (
        (("r1", "node-1.lan"), 3),
        (("r1", "node-22.lan"), 1),
        (("r2", "z"), 2),
        (("y",), 1),
    )
    assert parse_domains({"domains": [{"values": ["r1", "a"], "count": 2}, 5]}) == ((("r1", "a"), 2),)


# Properties

_HOSTS = [f"{row}{rack}{host}" for row in "ab" for rack in "12" for host in "xyz"]


@st.composite
def clusters(draw):
    names = draw(st.lists(st.sampled_from(_HOSTS), min_size=1, unique=True))
    return {name: draw(st.integers(0, 6)) for name in sorted(names)}


MODE_NAMES = ("required", "preferred", "unconstrained", "slices")


@st.composite
def placements(draw, modes=MODE_NAMES):
    """Requests of any mode, with a leader or without."""
    size = draw(st.sampled_from([1, 1, 2, 3]))
    slices = [(draw(st.sampled_from(LEVELS)), size)] if size > 1 else []
    mode = draw(st.sampled_from(modes))
    level = draw(st.sampled_from(LEVELS))
    named = {mode: level} if mode in ("required", "preferred") else {"unconstrained": mode == "unconstrained"}
    count = size * draw(st.integers(1, 8))
    if draw(st.booleans()):
        gpus = draw(st.integers(0, 3))
        leader = ask(1, name="leader", group="g", requests={"gpu": gpus}, **named)
        return [leader, ask(count, group="g", slices=slices, **named)] if count > 1 else [ask(count, **named)]
    return [ask(count, slices=slices, **named)]


gates = st.builds(TopologyGates, profile_mixed=st.booleans(), balanced_placement=st.booleans())


@laws(20)
@given(clusters(), placements(), gates)
def test_all_pods_have_a_place_and_no_node_gets_too_many(gpus, requests, options):
    found = find_assignments(make_snapshot(gpus, gates=options), requests)
    assume(not any(isinstance(each, Failure) for each in found.values()))

    used = dict.fromkeys(gpus, 0)
    for request in requests:
        assert found[request.name].count == request.count
        for values, count in found[request.name].domains:
            used[values[0]] += count * request.requests["gpu"]
            assert count > 0
    assert all(used[name] <= gpus[name] for name in gpus)


@laws(20)
@given(clusters(), placements(), gates)
def test_required_levels_and_slices_are_not_crossed(gpus, requests, options):
    found = find_assignments(make_snapshot(gpus, gates=options), requests)
    assume(not any(isinstance(each, Failure) for each in found.values()))
    topology = requests[-1].topology or TopologyRequest()
    workers = {values[0]: count for values, count in found["main"].domains}

    for level, size in topology.slices:
        by_domain = {}
        for name, count in workers.items():
            key = name[: LEVELS.index(level) + 1]
            by_domain[key] = by_domain.get(key, 0) + count
        assert all(count % size == 0 for count in by_domain.values())
    if topology.required:
        hosts = [values[0] for each in found.values() for values, _ in each.domains]
        assert len({name[: LEVELS.index(topology.required) + 1] for name in hosts}) == 1


@laws(13)
@given(clusters(), placements(modes=["required"]), st.integers(0, 11))
def test_a_new_node_keeps_required_placements_possible(gpus, requests, number):
    assume(len(gpus) > 1)
    name = sorted(gpus)[number % len(gpus)]
    fewer = {host: count for host, count in gpus.items() if host != name}
    before = find_assignments(make_snapshot(fewer), requests)
    assume(not any(isinstance(each, Failure) for each in before.values()))

    after = find_assignments(make_snapshot(gpus), requests)

    assert not any(isinstance(each, Failure) for each in after.values())


@laws(13)
@given(clusters(), st.lists(placements(), min_size=2, max_size=4))
def test_counts_that_are_kept_are_those_of_a_new_snapshot(gpus, workloads):
    kept, usage = make_snapshot(gpus), []
    for requests in workloads:
        new = make_snapshot(gpus)
        for values, amounts, count in usage:
            new.add_usage(values, amounts, count)
        found = find_assignments(kept, requests)
        assert found == find_assignments(new, requests)
        for request in requests:
            for values, count in getattr(found.get(request.name), "domains", ()):
                usage.append((values, request.requests, count))
                kept.add_usage(values, request.requests, count)


@laws(20)
@given(clusters(), placements(), st.lists(st.sampled_from(_HOSTS), max_size=12), gates)
def test_the_same_request_after_each_change_of_usage(gpus, requests, hosts, options):
    kept = make_snapshot(gpus, gates=options)
    usage = dict(gpus)
    for name, number in gpus.items():
        kept.add_usage((name,), {"gpu": 1}, number)
    for host in hosts:
        number = usage.pop(host, 0)
        kept.add_usage((host,), {"gpu": 1}, -number)
        new = make_snapshot(gpus, gates=options)
        for name, left in usage.items():
            new.add_usage((name,), {"gpu": 1}, left)

        assert find_assignments(kept, requests) == find_assignments(new, requests)
