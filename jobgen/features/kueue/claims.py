"""What pods claim of devices, as Kueue charges it: by number, by counters, or by capacity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from jobgen.features.kueue.cluster_objects import ClusterObjects
from jobgen.features.kueue.objects import as_list, as_mapping, find_namespace, name_of
from jobgen.features.kueue.quota import UNLIMITED
from jobgen.features.kueue.requests import COUNTER, Amounts, DeviceMappings, DeviceSource, sum_amounts, to_nanos
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import parse_quantity

_NANO = 10**9
_MOST_MATCHES = 100_000
"""The devices that expressions are evaluated for, in seconds; more selectors match what is not known."""
_DOMAIN = lazy_pattern(r"""\[\s*["']([^"']+)["']\s*\]""")

Device = Mapping[str, Any]


class ClaimFacts(NamedTuple):
    """The objects that claims refer to."""

    mappings: DeviceMappings = DeviceMappings()
    templates: Mapping[tuple[str, str], Mapping[str, Any]] = {}
    """The spec of the claim of each ResourceClaimTemplate, by namespace and name."""
    selectors: Mapping[str, tuple[str, ...]] = {}
    """The expressions of each DeviceClass."""
    devices: tuple[tuple[str, Device], ...] | None = None
    """The devices of complete pools, each with its driver; None if no ResourceSlice is among the files."""
    matches: dict[tuple[str, ...], list[Device] | str] | None = None
    """What selectors have matched; of a driver, or empty for all, and the expressions."""

    def match(self, driver: str, selectors: Iterable[str]) -> list[Device] | str | None:
        """Return the devices that all expressions select, or why one cannot be evaluated; None if that is not known."""
        key = (driver, *dict.fromkeys(text for text in selectors if text))
        if self.devices is None or self.matches is None or len(self.devices) * len(self.matches) > _MOST_MATCHES:
            return None
        if key not in self.matches:
            self.matches[key] = _match([each for each in self.devices if not driver or each[0] == driver], key[1:])
        return self.matches[key]


def read_claim_facts(known: ClusterObjects) -> ClaimFacts:
    """Read templates, device classes and devices."""
    slices = known.list_objects("ResourceSlice")
    return ClaimFacts(
        known.configuration.resources.devices,
        {
            (find_namespace(obj), name_of(obj)): as_mapping(as_mapping(obj.get("spec")).get("spec"))
            for obj in known.list_objects("ResourceClaimTemplate")
        },
        {name_of(obj): _list_selectors(as_mapping(obj.get("spec"))) for obj in known.list_objects("DeviceClass")},
        tuple(list_devices(slices)) if slices else None,
        {},
    )


def list_devices(slices: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Device]]:
    """Yield the devices of ResourceSlices. A pool counts if all slices of its newest generation are there."""
    pools: dict[tuple[str, str], tuple[int, list[Mapping[str, Any]]]] = {}
    for spec in (as_mapping(each.get("spec")) for each in slices):
        pool = as_mapping(spec.get("pool"))
        key, generation = (str(spec.get("driver", "")), str(pool.get("name", ""))), _as_count(pool.get("generation"), 0)
        newest, several = pools.get(key, (generation, []))
        if generation >= newest:
            pools[key] = generation, [*(several if generation == newest else ()), spec]
    for (driver, _), (_, several) in pools.items():
        if len(several) == _as_count(as_mapping(several[0].get("pool")).get("resourceSliceCount"), 1):
            yield from ((driver, as_mapping(device)) for spec in several for device in as_list(spec.get("devices")))


def charge_claims(spec: Mapping[str, Any], namespace: str, facts: ClaimFacts) -> Amounts | str:
    """Return what a pod claims by templates, as amounts of resources; or why Kueue cannot admit it."""
    amounts: Amounts = {}
    for claim in map(as_mapping, as_list(spec.get("resourceClaims"))):
        name = claim.get("resourceClaimTemplateName")
        if name is None:
            if claim.get("resourceClaimName") is not None:
                return f"Kueue does not support the ResourceClaim `{claim['resourceClaimName']}`"
            continue
        template = facts.templates.get((namespace, str(name)))
        if template is None:
            return f"ResourceClaimTemplate `{name}` does not exist"
        used: set[int] = set()
        for request in map(as_mapping, as_list(as_mapping(template.get("devices")).get("requests"))):
            charged = _charge_request(request, facts, used)
            if isinstance(charged, str):
                return f"ResourceClaimTemplate `{name}`: {charged}"
            amounts = sum_amounts(amounts, charged)
    return amounts


def _charge_request(request: Mapping[str, Any], facts: ClaimFacts, used: set[int]) -> Amounts | str:
    """Return the amounts of one request; or why Kueue cannot count its devices.

    `used` are the identities of devices that other requests of the claim select.
    """
    # Until v1beta1, the fields of `exactly` were those of the request.
    exactly = as_mapping(request.get("exactly", request))
    mode = exactly.get("allocationMode") or "ExactCount"
    unsupported = (
        (request.get("firstAvailable"), "`firstAvailable`"),
        (exactly.get("adminAccess") is True, "`adminAccess`"),
        (mode != "ExactCount", f"`allocationMode: {mode}`"),
        (exactly.get("selectors") and not facts.mappings.accepts_selectors, "`selectors` before 0.18"),
    )
    for is_used, name in unsupported:
        if is_used:
            return f"Kueue does not support {name}"
    device_class, count = str(exactly.get("deviceClassName") or ""), _as_count(exactly.get("count"), 1)
    if not device_class:
        return {}
    resource = facts.mappings.resources.get(device_class)
    if resource is None:
        return f"`deviceClassMappings` of Kueue does not have DeviceClass `{device_class}`"
    sources = facts.mappings.sources.get(device_class, ())
    amounts: Amounts = {} if sources else {resource: min(count, UNLIMITED)}
    own = _list_selectors(exactly)
    every = (*facts.selectors.get(device_class, ()), *own)
    matched = facts.match("", every) if own else None
    if isinstance(matched, list):
        free = [each for each in matched if id(each) not in used]
        used.update(map(id, free[:count]))
        if len(free) < count:
            return _say_too_few(device_class, len(free), count)
    for source in sources if not isinstance(matched, str) else ():
        matched = facts.match(source.driver, (source.selector, *every))
        if isinstance(matched, list) and len(matched) < count:
            return _say_too_few(device_class, len(matched), count)
        explicit = as_mapping(as_mapping(exactly.get("capacity")).get("requests")).get(source.name)
        charged = charge_source(source, matched, count, explicit) if isinstance(matched, list) else matched or 0
        if isinstance(charged, str):
            return charged
        amounts = sum_amounts(amounts, {source.resource: charged} if charged else {})
    return matched if isinstance(matched, str) else amounts


def _say_too_few(device_class: str, found: int, wanted: int) -> str:
    return f"{found} devices of DeviceClass `{device_class}` match it, but it requests {wanted}"


def charge_source(source: DeviceSource, devices: Sequence[Device], count: int, explicit: Any = None) -> int | str:
    """Return what devices are charged: the most that one of them has, times their number; or why nothing is known."""
    if source.kind == COUNTER:
        sets = (each for device in devices for each in map(as_mapping, as_list(device.get("consumesCounters"))))
        counters = [as_mapping(as_mapping(each.get("counters")).get(source.name)).get("value") for each in sets]
        values = [_as_whole(each) for each in counters if each is not None]
        return _multiply(max(values), count) if values else f"no matching device has the counter `{source.name}`"
    capacities = [as_mapping(as_mapping(device.get("capacity")).get(source.name)) for device in devices]
    policies = [(each.get("value"), as_mapping(each.get("requestPolicy"))) for each in capacities if each]
    if not policies:
        return f"no matching device has the capacity `{source.name}`"
    rounded = [
        round_capacity(policy.get("default", value) if explicit is None else explicit, policy)
        for value, policy in policies
    ]
    charges = [each for each in rounded if each is not None]
    return _multiply(max(charges), count) if charges else f"no matching device can give the requested `{source.name}`"


def _multiply(amount: int, count: int) -> int:
    return min(max(amount, 0) * max(count, 1), UNLIMITED)


def round_capacity(value: Any, policy: Mapping[str, Any]) -> int | None:
    """Round a request for capacity up to what a device gives; None if it gives no such amount."""
    amount = _as_whole(value)
    if valid := as_list(policy.get("validValues")):
        return next((_as_whole(each) for each in valid if to_nanos(each) >= to_nanos(value)), None)
    bounds = as_mapping(policy.get("validRange"))
    least, most, step = (
        None if bounds.get(name) is None else _as_whole(bounds[name]) for name in ("min", "max", "step")
    )
    if least is not None:
        amount = max(amount, least)
        if step is not None and step > 0:
            amount = least - (least - amount) // step * step
    return None if most is not None and amount > most else amount


def _as_whole(quantity: Any) -> int:
    """Return a quantity, rounded up to a whole number."""
    return min(-(-to_nanos(quantity) // _NANO), UNLIMITED)


def _as_count(value: Any, default: int) -> int:
    return value if type(value) is int else default


def _list_selectors(holder: Mapping[str, Any]) -> tuple[str, ...]:
    found = (
        as_mapping(each.get("cel")).get("expression") for each in map(as_mapping, as_list(holder.get("selectors")))
    )
    return tuple(str(text) for text in found if text)


def _match(devices: Sequence[tuple[str, Device]], texts: Sequence[str]) -> list[Device] | str:
    """Return the devices that all expressions select; or why one of them cannot be evaluated."""
    # Imported late: few repositories have devices.
    from jobgen.check.cel import CompileError, Failed, compile_cel

    compiled = []
    for text in texts:
        expression = compile_cel(text, ("device",))
        if isinstance(expression, CompileError):
            return f"the selector `{text[:100]}` is not valid: {expression.message}"
        compiled.append((text, expression))
    found: list[Device] = []
    for driver, device in devices:
        for text, expression in compiled:
            value = expression({"device": _bind(driver, device, text)})
            if isinstance(value, Failed):
                return f"the selector `{text[:100]}` fails for device `{device.get('name')}`: {value.message}"
            if value is not True:
                break
        else:
            found.append(device)
    return found


def _bind(driver: str, device: Device, text: str) -> dict[str, Any]:
    """Return a device as expressions see it. A domain without attributes is empty, not missing."""
    attributes: dict[str, dict[str, Any]] = {name: {} for name in _DOMAIN.findall(text)}
    capacity: dict[str, dict[str, Any]] = {name: {} for name in attributes}
    for target, field, read in ((attributes, "attributes", _read_attribute), (capacity, "capacity", _read_capacity)):
        for name, raw in as_mapping(device.get(field)).items():
            domain, slash, identifier = str(name).rpartition("/")
            target.setdefault(domain if slash else driver, {})[identifier] = read(as_mapping(raw))
    several = device.get("allowMultipleAllocations") is True
    return {"driver": driver, "attributes": attributes, "capacity": capacity, "allowMultipleAllocations": several}


def _read_attribute(raw: Mapping[str, Any]) -> Any:
    if "version" in raw:
        return _evaluate("semver", "Semver", str(raw["version"]))
    return next((raw[kind] for kind in ("int", "bool", "string") if kind in raw), None)


def _read_capacity(raw: Mapping[str, Any]) -> Any:
    value = str(raw.get("value"))
    return _evaluate("quantity", "Quantity", value if parse_quantity(value) is not None else "0")


@lru_cache(maxsize=4096)
def _evaluate(function: str, kind: str, text: str) -> Any:
    from jobgen.check.cel import CompileError, Failed, compile_cel

    compiled = compile_cel(f"{function}(text)", ("text",), returns=f"kubernetes.{kind}")
    value = None if isinstance(compiled, CompileError) else compiled({"text": text})
    return None if isinstance(value, Failed) else value


def find_renamed(classes: Iterable[Mapping[str, Any]], mappings: DeviceMappings) -> dict[str, str]:
    """Return the extended resources that device classes provide, with the resource that each is charged as.

    Of several classes with the same resource, the one that was created last counts, then the first by name.
    """
    chosen: dict[str, Mapping[str, Any]] = {}
    by_name = sorted(classes, key=name_of)
    for each in sorted(
        by_name, key=lambda obj: str(as_mapping(obj.get("metadata")).get("creationTimestamp") or ""), reverse=True
    ):
        extended = as_mapping(each.get("spec")).get("extendedResourceName")
        if isinstance(extended, str) and extended:
            chosen.setdefault(extended, each)
    named = ((extended, mappings.resources.get(name_of(each))) for extended, each in chosen.items())
    return {extended: resource for extended, resource in named if resource is not None and resource != extended}
