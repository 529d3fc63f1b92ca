/* What stands around the changes: danger flags, GPUs before and after, causes, findings and queues. */

/* Red is for what stops or loses work; a change in production alone is a fact. */
const DANGERS = {
  "deletes-running-job": { label: "Deletes running jobs", icon: "stop", tone: "bad" },
  "suspends-running-job": { label: "Suspends running jobs", icon: "pause", tone: "bad" },
  "restarts-long-run": { label: "Restarts long runs", icon: "restart", tone: "bad" },
  rejected: { label: "Rejected by the cluster", icon: "ban", tone: "warn" },
  "exceeds-quota": { label: "Exceeds quota", icon: "alert", tone: "warn" },
  "touches-production": { label: "Touches production", icon: "info", tone: "note" },
};
const MAX_DANGERS = 3;
const MAX_CAUSES = 8;
const MAX_TOTALS = 16;
const MAX_ROWS = 50;

/* What a reviewer must not overlook, one flag for each kind of danger. */
function makeDangers({ dangers }) {
  const codes = Object.keys(DANGERS);
  const kinds = new Map(codes.map((code) => [code, []]));
  for (const danger of dangers) kinds.get(danger.code)?.push(danger);
  const found = [...kinds].filter(([, several]) => several.length);
  const isCalm = found.every(([code]) => DANGERS[code].tone === "note");
  const calm = make("p", { class: "all-good tone-text-good" }, makeIcon("check"), "No danger flags");
  if (!found.length) return calm;
  const items = found.map(([code, several]) => {
    const { label, icon, tone } = DANGERS[code];
    const name = make("b", { class: `tone-text-${tone}` }, label);
    return make(
      "li",
      { class: `danger is-${tone}`, "data-code": code },
      make("span", { class: `danger-icon tone-${tone}` }, makeIcon(icon)),
      make("div", {}, make("p", { class: "danger-head" }, name, makeDangerSum(several)), makeDangerList(several)),
    );
  });
  return [isCalm ? calm : null, make("ul", { class: "dangers panel", "aria-label": "Danger" }, items)];
}

/* "14 jobs, which hold 224 GPUs", for flags about single changes. */
function makeDangerSum(found) {
  const changes = found.map((danger) => danger.change).filter(Boolean);
  if (!changes.length || changes.length < found.length) return null;
  const gpus = changes.reduce((sum, change) => sum + change.gpusBefore, 0);
  const held = gpus ? `, which ${changes.length === 1 ? "holds" : "hold"} ${count(gpus, "GPU")}` : "";
  return make("span", { class: "danger-sum" }, ` ${count(changes.length, "object")}${held}`);
}

/* What is said about each object; one in several environments is named once. */
function makeDangerList(found) {
  const merged = new Map();
  const ordered = [...found].sort((one, other) => (one.change?.environment ?? 0) - (other.change?.environment ?? 0));
  for (const { change, message } of ordered) {
    const key = change ? [change.kind, change.name, message].join("\n") : `${merged.size}`;
    if (!merged.has(key)) merged.set(key, { change, message, envs: [] });
    if (change?.env) merged.get(key).envs.push(change.env);
  }
  const makeItem = ({ change, message, envs }) => {
    if (!change) return make("li", {}, makeMessage(message));
    const where = envs.length ? ` in ${joinNames(envs, 4)} ` : " ";
    return make("li", {}, change.kind, " ", makeChangeLink(change), where, makeMessage(message));
  };
  return makeShortList({}, [...merged.values()], MAX_DANGERS, makeItem);
}

/* GPUs before and after, by environment, team, namespace and queue; CPUs and memory where they change. */
function makeTotals(totals) {
  const isChanged = (row) => ["gpus", "cpu", "memory"].some((name) => row[`${name}Before`] !== row[`${name}After`]);
  const wholes = new Map(totals.filter((row) => row.by === "environment").map((row) => [row.env, row]));
  // A namespace that has everything of its environment says nothing more.
  const isWhole = (row) => row.by === "namespace" && AMOUNTS.every((name) => row[name] === wholes.get(row.env)?.[name]);
  const shown = totals.filter((row) => row.by === "environment" || (isChanged(row) && !isWhole(row)));
  if (!shown.length) return null;
  const largest = Math.max(1, ...shown.map((row) => Math.max(row.gpusBefore, row.gpusAfter)));
  const body = make("tbody", {}, shown.slice(0, MAX_TOTALS).map((row) => makeTotalRow(row, largest)));
  const rest = shown.slice(MAX_TOTALS);
  const showRest = () => {
    more.remove();
    append(body, rest.map((row) => makeTotalRow(row, largest)));
  };
  const more = make("button", { type: "button", class: "quiet show-more", onClick: showRest }, `Show ${formatNumber(rest.length)} more`);
  const titles = ["Group", "Bars", "GPUs", "Change"].map((text) => make("th", { scope: "col" }, text));
  return make(
    "section",
    { class: "panel" },
    make("h2", {}, "GPUs before and after"),
    make("table", { class: "numbers wide totals-table" }, make("thead", { class: "hidden-text" }, make("tr", {}, titles)), body),
    rest.length ? more : null,
  );
}

function makeTotalRow(row, largest) {
  const difference = row.gpusAfter - row.gpusBefore;
  const tone = difference > 0 ? "warn" : difference < 0 ? "good" : "note";
  const isEnvironment = row.by === "environment";
  const more = makeAmounts(row, ["cpu", "memory"]);
  return make(
    "tr",
    {},
    make(
      "th",
      { scope: "row" },
      row.name || (isEnvironment ? "all objects" : UNSET),
      make("span", { class: "hint" }, ` ${row.by}${row.env && !isEnvironment ? `, ${row.env}` : ""}`),
      more.length ? make("span", { class: "hint total-more" }, more) : null,
    ),
    make("td", { class: "before-after" }, makeBeforeAfter(row.gpusBefore, row.gpusAfter, largest)),
    make("td", { class: "amounts" }, `${formatNumber(row.gpusBefore)} → ${formatNumber(row.gpusAfter)}`),
    make("td", { class: `amounts tone-text-${tone}` }, make("b", {}, formatChange(difference))),
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
function makeCauses(causes) {
  if (!causes.length) return null;
  const sorted = [...causes].sort((one, other) => other.caused.size - one.caused.size);
  return make(
    "section",
    { class: "panel" },
    make("h2", {}, "Caused by"),
    makeShortList({ class: "causes" }, sorted, MAX_CAUSES, makeCause),
  );
}

/* A line, and the objects that it changes. */
function makeCause(cause) {
  const changes = [...cause.caused];
  const makeName = (change) => make("li", {}, makeChangeLink(change), make("span", { class: "hint" }, ` ${change.env}`));
  const named = [...new Map(changes.map((change) => [change.name, change])).values()];
  const links = named.slice(0, MAX_NAMES).flatMap((change, index) => [index ? ", " : "", makeChangeLink(change)]);
  const hidden = named.length - MAX_NAMES;
  const names = [
    make("p", { class: "cause-names" }, links, hidden > 0 ? ` and ${formatNumber(hidden)} more` : null),
    changes.length > MAX_NAMES
      ? makeLazyDetails({ class: "alike" }, "All of them", () =>
          makeShortList({ class: "caused" }, changes, MAX_MEMBERS, makeName),
        )
      : null,
  ];
  return make(
    "li",
    { class: "cause" },
    make("b", {}, count(changes.length, "object")),
    make(
      "div",
      {},
      cause.old ? make("span", { class: "hint" }, "removed from ") : null,
      makePlace(cause.side, cause.file, cause.line),
      make("span", { class: "hint" }, ` ${cause.layer}`),
      names,
    ),
  );
}

/* Findings that are new, with lines of the new side, and those that are fixed, with lines of the old side. */
function makeFindingChanges({ added, fixed, sides }) {
  const list = (findings, title, side) =>
    findings.length
      ? make(
          "section",
          { class: "panel" },
          make("h2", {}, count(countEntries(findings), `${title} finding`), makeSeverityCounts(findings)),
          makeShortList({ class: "findings" }, sortFindings(mergeEnvironments(findings)), MAX_ROWS, (each) => makeFinding(side, each, each.envs)),
        )
      : null;
  if (!added.length && !fixed.length) return null;
  return make(
    "div",
    { class: "columns" },
    list(added, "new", sides.new),
    list(fixed, "fixed", sides.old),
  );
}

/* How many of the findings have each severity. */
function makeSeverityCounts(findings) {
  const entries = mergeEnvironments(findings);
  const number = (severity) => entries.filter((each) => each.severity === severity).length;
  const shown = SEVERITIES.filter(number).map((severity) => makeSeverity(severity, count(number(severity), severity)));
  return make("span", { class: "severity-counts" }, shown);
}

function sortFindings(findings) {
  return [...findings].sort((one, other) => SEVERITIES.indexOf(one.severity) - SEVERITIES.indexOf(other.severity));
}

/* What the merge does to the queues: what is used, and which workloads wait or start. */
function makeQueueChanges({ moves, quotas, objects, notes }) {
  const changed = quotas.filter((row) => QUOTA_AMOUNTS.some(([name]) => row[`${name}Before`] !== row[`${name}After`]));
  if (!moves.length && !changed.length && !objects.length) return null;
  return make(
    "section",
    { class: "panel" },
    make("h2", {}, "Queues"),
    changed.length ? makeQuotaTable(changed) : null,
    makeShortList({ class: "workloads" }, moves, MAX_ROWS, makeMove),
    objects.length ? makeShortList({ class: "queue-objects hint" }, objects, MAX_ROWS, makeQueueObject) : null,
    makeShortList({ class: "hint queue-notes" }, notes.filter((note) => !note.isLimit), MAX_ROWS, (note) =>
      make("li", {}, note.env ? `${note.env}: ` : "", makeMessage(note.text)),
    ),
  );
}

const QUOTA_AMOUNTS = [
  ["nominal", "Quota"],
  ["used", "Used"],
  ["borrowed", "Borrowed"],
  ["waiting", "Waiting"],
];

function makeQuotaTable(rows) {
  const pair = (row, name) => {
    const [before, after] = [row[`${name}Before`], row[`${name}After`]];
    return before === after ? before : [before, " → ", make("b", {}, after)];
  };
  const makeRow = (row) =>
    make(
      "tr",
      {},
      make(
        "th",
        { scope: "row" },
        row.name,
        make("span", { class: "hint" }, ` ${[row.kind, row.flavor, row.env].filter(Boolean).join(", ")}`),
      ),
      make("td", {}, row.resource),
      QUOTA_AMOUNTS.map(([name]) => make("td", {}, pair(row, name))),
    );
  const titles = ["Queue", "Resource", ...QUOTA_AMOUNTS.map(([, title]) => title)];
  const head = make("tr", {}, titles.map((text) => make("th", { scope: "col" }, text)));
  return make(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Queues" },
    make("table", { class: "numbers wide" }, make("thead", {}, head), make("tbody", {}, rows.map(makeRow))),
  );
}

function makeMove(move) {
  return make(
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
      makeMessage(move.transition),
      move.reason ? make("span", { class: "hint" }, " ", makeMessage(move.reason)) : null,
    ),
  );
}

function makeQueueObject(object) {
  return make("li", {}, `${object.action} ${nameChange(object)}${object.env ? ` in ${object.env}` : ""}`);
}
