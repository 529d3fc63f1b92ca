/* A pull request: what starts, stops, restarts, is rejected or changes nothing, and why. */

/* Effects, the most severe first. */
const EFFECTS = [
  ["rejected", { label: "rejected", icon: "ban", tone: "bad" }],
  ["stops-running", { label: "stops", icon: "stop", tone: "bad" }],
  ["restart", { label: "restarts", icon: "restart", tone: "warn" }],
  ["new-run", { label: "starts", icon: "play", tone: "good" }],
  ["no-effect", { label: "no effect", icon: "dash", tone: "note" }],
  ["in-place", { label: "in place", icon: "edit", tone: "note" }],
];

const DANGERS = {
  "deletes-running-job": "Deletes a running job",
  "restarts-job": "Restarts jobs",
  rejected: "Rejected by the cluster",
  "exceeds-quota": "Exceeds quota",
  "touches-production": "Touches production",
};

function describeEffect(name) {
  const found = EFFECTS.find(([effect]) => effect === name);
  return found ? found[1] : { label: name, icon: "info", tone: "note" };
}

function effectOrder(name) {
  const found = EFFECTS.findIndex(([effect]) => effect === name);
  return found < 0 ? EFFECTS.length : found;
}

function makeEffect(name) {
  const { label, icon, tone } = describeEffect(name);
  return make("span", { class: `badge tone-${tone}` }, makeIcon(icon), label);
}

const MAX_CAUSES = 8;
const MAX_SHOWN = 100;
const MAX_OPEN = 6;

function showChanges(model, place, route) {
  const { changes } = model;
  if (!changes)
    return void show(
      place,
      makePage(
        "Pull request",
        null,
        makeEmpty("This page has no changes", "Write one with jobgen diff --format html."),
      ),
    );
  const groups = changes.groups
    .filter((group) => !route.query.effect || group.effect === route.query.effect)
    .sort((one, other) => effectOrder(one.effect) - effectOrder(other.effect));
  const cards = groups.map((group, index) => makeGroup(model, group, index < MAX_OPEN));
  const title = model.head.head && model.head.base ? `${model.head.base} → ${model.head.head}` : "Pull request";
  show(
    place,
    makePage(
      "Pull request",
      make("span", { class: "revisions" }, make("code", {}, title)),
      makeDangers(changes.dangers),
      makeEffects(changes.changes, route),
      make("div", { class: "columns" }, makeTotals(changes.totals), makeCauses(model, changes.causes)),
      make(
        "section",
        { class: "groups", "aria-label": "Changes" },
        cards.length
          ? cards
          : makeEmpty("No object changes", count(Number(model.head.unchanged) || 0, "object") + " unchanged"),
      ),
      makeQueueChanges(changes),
      makeFindingChanges(model, changes),
    ),
  );
  return {
    move: makeGroupMover(cards),
    open: () =>
      cards
        .find((card) => card.classList.contains("is-active"))
        ?.querySelector("summary")
        ?.click(),
    reset: route.query.effect ? () => goTo(["changes"]) : null,
  };
}

/* What a reviewer must not overlook, one line for each kind of danger. */
function makeDangers(dangers) {
  if (!dangers.length) return make("p", { class: "all-good tone-text-good" }, makeIcon("check"), "No danger flags");
  const kinds = new Map();
  for (const danger of dangers) {
    if (!kinds.has(danger.code)) kinds.set(danger.code, []);
    kinds.get(danger.code).push(danger);
  }
  const items = [...kinds].map(([code, found]) =>
    make(
      "li",
      { class: "danger" },
      makeIcon("alert"),
      make(
        "div",
        {},
        make("b", {}, DANGERS[code] || code),
        make(
          "ul",
          {},
          [...new Set(found.map((danger) => danger.message))]
            .slice(0, 4)
            .map((message) => make("li", {}, makeMessage(message))),
          found.length > 4 ? make("li", { class: "hint" }, `and ${found.length - 4} more`) : null,
        ),
      ),
    ),
  );
  return make("ul", { class: "dangers", "aria-label": "Danger" }, items);
}

/* How many objects have each effect; a click keeps only these. */
function makeEffects(changes, route) {
  const counts = EFFECTS.map(([effect, shown]) => [
    effect,
    shown,
    changes.filter((change) => change.effect === effect).length,
  ]);
  const tiles = counts.map(([effect, { label, icon, tone }, number]) => {
    const isChosen = route.query.effect === effect;
    return make(
      "button",
      {
        type: "button",
        class: `tile-button ${number ? "" : "is-zero"}`,
        "aria-pressed": String(isChosen),
        disabled: number ? null : true,
        onClick: () => goTo(["changes"], { effect: isChosen ? "" : effect }),
      },
      make("span", { class: `total-value ${number ? `tone-text-${tone}` : ""}` }, formatNumber(number)),
      make("span", { class: "tile-text" }, makeIcon(icon), label),
    );
  });
  return make("div", { class: "effects", role: "group", "aria-label": "Effects" }, tiles);
}

/* GPUs before and after, by environment, team, namespace and queue. */
function makeTotals(totals) {
  const changed = totals.filter((row) => row.by === "environment" || row.gpusBefore !== row.gpusAfter);
  if (!changed.length) return null;
  const largest = Math.max(1, ...changed.map((row) => Math.max(row.gpusBefore, row.gpusAfter)));
  const rows = changed.slice(0, 24).map((row) => {
    const difference = row.gpusAfter - row.gpusBefore;
    const tone = difference > 0 ? "warn" : difference < 0 ? "good" : "note";
    return make(
      "tr",
      {},
      make(
        "th",
        { scope: "row" },
        row.name || UNSET,
        make("span", { class: "hint" }, ` ${row.by}${row.env && row.by !== "environment" ? `, ${row.env}` : ""}`),
      ),
      make("td", { class: "before-after" }, makeBeforeAfter(row.gpusBefore, row.gpusAfter, largest)),
      make("td", {}, `${formatNumber(row.gpusBefore)} → ${formatNumber(row.gpusAfter)}`),
      make("td", { class: `tone-text-${tone}` }, make("b", {}, formatChange(difference))),
    );
  });
  return make(
    "section",
    { class: "panel" },
    make("h2", {}, "GPUs before and after"),
    make(
      "table",
      { class: "numbers wide" },
      make(
        "thead",
        { class: "hidden-text" },
        make(
          "tr",
          {},
          ["Group", "Bars", "GPUs", "Change"].map((text) => make("th", { scope: "col" }, text)),
        ),
      ),
      make("tbody", {}, rows),
    ),
  );
}

function makeBeforeAfter(before, after, largest) {
  const chart = draw("svg", {
    class: "twin",
    viewBox: "0 0 100 14",
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  });
  chart.append(
    draw("rect", { class: "twin-before", x: 0, y: 0, width: (before / largest) * 100, height: 5 }),
    draw("rect", { class: "twin-after", x: 0, y: 7, width: (after / largest) * 100, height: 7 }),
  );
  return chart;
}

/* Which lines cause which changes; a line of an overlay may change many jobs. */
function makeCauses(model, causes) {
  if (!causes.length) return null;
  const sorted = [...causes].sort((one, other) => other.changes - one.changes);
  const first = sorted.slice(0, MAX_CAUSES);
  const rest = sorted.slice(MAX_CAUSES, MAX_SHOWN);
  const list = (items) =>
    make(
      "ul",
      { class: "causes" },
      items.map((cause) => makeCause(model, cause)),
    );
  return make(
    "section",
    { class: "panel" },
    make("h2", {}, "Why"),
    list(first),
    rest.length
      ? make(
          "details",
          { class: "alike" },
          make("summary", {}, `${formatNumber(sorted.length - first.length)} more lines`),
          list(rest),
        )
      : null,
  );
}

/* A line, and the objects that it changes. */
function makeCause(model, cause) {
  const where = [makePlace(model, cause.file, cause.line), make("span", { class: "hint" }, ` ${cause.layer}`)];
  const names = cause.caused
    .slice(0, MAX_SHOWN)
    .map((change) => make("li", {}, change.name, make("span", { class: "hint" }, ` ${change.env}`)));
  const objects = count(cause.changes, "object");
  if (cause.caused.length < 2)
    return make(
      "li",
      { class: "cause" },
      make("b", {}, objects),
      make("span", {}, where, cause.caused[0] ? make("span", { class: "hint" }, `, ${cause.caused[0].name}`) : null),
    );
  return make(
    "li",
    { class: "cause" },
    make("b", {}, objects),
    make(
      "div",
      {},
      where,
      make("details", { class: "alike" }, make("summary", {}, "Which"), make("ul", { class: "caused" }, names)),
    ),
  );
}

/* What the merge does to the queues: what is used, and which workloads wait or start. */
function makeQueueChanges({ moves, quotas, notes }) {
  const changed = quotas.filter((row) =>
    ["nominal", "used", "waiting"].some((name) => row[`${name}Before`] !== row[`${name}After`]),
  );
  if (!moves.length && !changed.length) return null;
  const pair = (row, name) => {
    const [before, after] = [row[`${name}Before`], row[`${name}After`]];
    return before === after ? before : [before, " → ", make("b", {}, after)];
  };
  const rows = changed.map((row) =>
    make(
      "tr",
      {},
      make(
        "th",
        { scope: "row" },
        row.name,
        make("span", { class: "hint" }, ` ${[row.flavor, row.env].filter(Boolean).join(", ")}`),
      ),
      make("td", {}, row.resource),
      ["nominal", "used", "waiting"].map((name) => make("td", {}, pair(row, name))),
    ),
  );
  const head = make(
    "tr",
    {},
    ["Queue", "Resource", "Quota", "Used", "Waiting"].map((text) => make("th", { scope: "col" }, text)),
  );
  const table = rows.length
    ? make(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": "Queues" },
        make("table", { class: "numbers wide" }, make("thead", {}, head), make("tbody", {}, rows)),
      )
    : null;
  return make(
    "section",
    { class: "panel" },
    make("h2", {}, "Queues"),
    table,
    makeMoves(moves),
    notes.length
      ? make(
          "ul",
          { class: "hint queue-notes" },
          notes.map((note) => make("li", {}, note.text)),
        )
      : null,
  );
}

function makeMoves(moves) {
  const rows = moves
    .slice(0, 100)
    .map((move) =>
      make(
        "li",
        { class: "workload" },
        make(
          "span",
          { class: "workload-name" },
          make("b", {}, move.name),
          make("span", { class: "hint" }, [move.kind, move.clusterQueue, move.env].filter(Boolean).join(" · ")),
        ),
        make(
          "span",
          { class: "workload-reason" },
          `${move.before || "not there"} → ${move.after || "not there"}`,
          move.reason ? make("span", { class: "hint" }, " ", makeMessage(move.reason)) : null,
        ),
      ),
    );
  return make("ul", { class: "workloads" }, rows);
}

function makeFindingChanges(model, { added, fixed }) {
  if (!added.length && !fixed.length) return null;
  const list = (title, findings, tone) =>
    findings.length
      ? make(
          "section",
          { class: "panel" },
          make("h2", { class: `tone-text-${tone}` }, count(findings.length, `${title} finding`)),
          make(
            "ul",
            { class: "findings" },
            findings.slice(0, 100).map((finding) => makeFinding(model, finding, finding.envs)),
          ),
        )
      : null;
  return make("div", { class: "columns" }, list("new", added, "bad"), list("fixed", fixed, "good"));
}
