/* Changes of a pull request that are alike: their fields before and after, and the objects that they concern. */

/* j and k go from change to change. */
function makeGroupMover(cards) {
  let active = -1;
  return (step) => {
    if (!cards.length) return;
    cards[active]?.classList.remove("is-active");
    active = Math.max(0, Math.min(cards.length - 1, active + step));
    cards[active].classList.add("is-active");
    cards[active].querySelector("summary").focus();
  };
}

/* Changes that are alike: closed unless they need a look. */
function makeGroup(model, group, mayOpen) {
  const first = group.changes[0];
  const names =
    group.changes.length === 1
      ? `${first.kind} ${first.namespace}/${first.name}`
      : count(group.changes.length, "object");
  const environments = [...new Set(group.changes.map((change) => change.env))].join(", ");
  const difference = group.gpusAfter - group.gpusBefore;
  return make(
    "details",
    { class: "group", open: mayOpen && effectOrder(group.effect) <= 2 && group.fields.length <= 12 },
    make(
      "summary",
      {},
      makeEffect(group.effect),
      make(
        "span",
        { class: "group-name" },
        make("b", {}, names),
        make("span", { class: "hint" }, ` ${group.action} in ${environments}`),
      ),
      difference ? make("span", { class: "group-gpus" }, `${formatChange(difference)} GPUs`) : null,
    ),
    make(
      "div",
      { class: "group-body" },
      group.why ? make("p", {}, makeMessage(group.why)) : null,
      makeResources(group),
      group.fields.length
        ? makeFields(
            model,
            group.fields,
            group.effect,
            (group.hidden || 0) + Math.max(0, group.fields.length - MAX_SHOWN),
          )
        : null,
      makeMembers(model, group),
    ),
  );
}

/* GPUs, CPUs and memory that change. */
function makeResources(row) {
  const parts = [
    ["GPUs", "gpu", row.gpusBefore, row.gpusAfter],
    ["CPUs", "cpu", row.cpuBefore, row.cpuAfter],
    ["memory", "memory", row.memoryBefore, row.memoryAfter],
  ]
    .filter(([, , before, after]) => before !== undefined && before !== after)
    .map(
      ([label, resource, before, after]) =>
        `${label} ${formatAmount(resource, before)} → ${formatAmount(resource, after)}`,
    );
  return parts.length ? make("p", { class: "resources" }, parts.join(", ")) : null;
}

function makeFields(model, fields, effect, hidden) {
  return make(
    "ul",
    { class: "fields" },
    fields
      .slice(0, MAX_SHOWN)
      .map((field) =>
        make(
          "li",
          { class: "field" },
          make("code", { class: "field-name" }, field.field),
          make(
            "div",
            { class: "field-values" },
            make(
              "code",
              { class: "old" },
              make("span", { class: "hidden-text" }, "before "),
              field.old === "" ? "not set" : field.old,
            ),
            makeIcon("right"),
            make(
              "code",
              { class: "new" },
              make("span", { class: "hidden-text" }, "after "),
              field.new === "" ? "not set" : field.new,
            ),
          ),
          make(
            "p",
            { class: "finding-more" },
            field.effect === effect ? null : makeEffect(field.effect),
            makePlace(model, field.file, field.line),
            make("span", {}, field.layer),
          ),
        ),
      ),
    hidden ? make("li", { class: "hint" }, `and ${count(hidden, "more field")}`) : null,
  );
}

function makeMembers(model, group) {
  if (group.changes.length === 1) return make("p", {}, makePlace(model, group.changes[0].file, group.changes[0].line));
  const rows = group.changes
    .slice(0, 100)
    .map((change) =>
      make(
        "li",
        {},
        make(
          "span",
          {},
          make("b", {}, change.name),
          make("span", { class: "hint" }, ` ${change.kind} in ${change.namespace}, ${change.env}`),
        ),
        make(
          "span",
          {},
          change.gpusBefore !== change.gpusAfter
            ? `${formatNumber(change.gpusBefore)} → ${formatNumber(change.gpusAfter)} GPUs`
            : "",
        ),
        makePlace(model, change.file, change.line),
      ),
    );
  const list = make(
    "ul",
    { class: "members" },
    rows,
    group.changes.length > 100 ? make("li", { class: "hint" }, `and ${group.changes.length - 100} more`) : null,
  );
  return group.changes.length > 3
    ? make(
        "details",
        { class: "alike" },
        make("summary", {}, `All ${formatNumber(group.changes.length)} objects`),
        list,
      )
    : list;
}
