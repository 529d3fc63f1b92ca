/* What Kueue decides about each workload: what needs attention first, with the reason and the smallest change. */

const DECISIONS = [
  ["never", { label: "never admitted", icon: "ban", tone: "bad", help: "it cannot be admitted, however empty the cluster is" }],
  ["unmanaged", { label: "unmanaged", icon: "alert", tone: "warn", help: "it names a queue, but Kueue does not manage it, so it starts at once, without quota" }],
  ["waits", { label: "waiting", icon: "clock", tone: "warn", help: "it lacks quota now, or a job is before it" }],
  ["preempts", { label: "preempting", icon: "bolt", tone: "warn", help: "it evicts other jobs" }],
  ["borrows", { label: "borrowing", icon: "check", tone: "note", help: "it uses quota of other queues in the cohort" }],
  ["admitted", { label: "admitted", icon: "check", tone: "good", help: "its queue has quota for it" }],
  ["running", { label: "running", icon: "play", tone: "good", help: "it is assumed to run from the start" }],
  ["unqueued", { label: "without a queue", icon: "dash", tone: "note", help: "it names no queue, so it starts at once" }],
];
const OPEN_WORKLOADS = 40;

function describeDecision(name) {
  const found = DECISIONS.find(([decision]) => name === decision);
  return found ? found[1] : { label: name, icon: "info", tone: "note" };
}

function decisionOrder(name) {
  const found = DECISIONS.findIndex(([decision]) => name === decision);
  return found < 0 ? DECISIONS.length : found;
}

function groupByDecision(workloads) {
  const groups = new Map();
  for (const row of workloads) {
    if (!groups.has(row.decision)) groups.set(row.decision, []);
    groups.get(row.decision).push(row);
  }
  return [...groups].sort(([one], [other]) => decisionOrder(one) - decisionOrder(other));
}

function summarizeWorkloads(workloads) {
  if (!workloads.length) return "";
  const counts = groupByDecision(workloads).map(
    ([decision, rows]) => `${formatNumber(rows.length)} ${describeDecision(decision).label}`,
  );
  return `${count(workloads.length, "workload")}: ${counts.join(", ")}`;
}

function makeWorkloads(model, workloads, words) {
  const kept = words.length ? workloads.filter((row) => matchesWords(words, ...listWorkloadTexts(row))) : workloads;
  if (!kept.length) return null;
  return make(
    "section",
    { class: "panel decisions" },
    make("h2", {}, "Decisions"),
    groupByDecision(kept).map(([decision, rows]) => makeDecision(model, decision, rows)),
  );
}

function listWorkloadTexts(row) {
  return [row.kind, row.namespace, row.name, row.queue, row.clusterQueue, row.decision];
}

function makeDecision(model, decision, rows) {
  const { label, icon, tone } = describeDecision(decision);
  // Kueue also admits jobs with errors and warnings; they are not good.
  const isFaulty = (tone === "good" || icon === "check") && rows.some((row) => model.cells[row.cell] && !isClean(model.cells[row.cell]));
  const summary = [
    make("span", { class: `badge tone-${isFaulty ? "note" : tone}` }, makeIcon(isFaulty ? "dash" : icon), label),
    make("span", { class: "hint" }, count(rows.length, "workload")),
  ];
  const fillContent = () =>
    makeLongList(make("ul", { class: "workloads" }), rows, (row) => makeWorkload(model, row));
  return makeFold({ class: "decision" }, summary, fillContent, tone !== "good" && rows.length <= OPEN_WORKLOADS);
}

function makeWorkload(model, row) {
  const places = [row.kind, row.namespace, row.clusterQueue || row.queue].filter(Boolean).join(" · ");
  return make(
    "li",
    { class: "workload" },
    make(
      "span",
      { class: "workload-name" },
      makeWorkloadName(model, row),
      hasErrors(model.cells[row.cell]) ? make("span", { class: "tone-text-bad" }, FAULTY.label) : null,
      make("span", { class: "hint" }, places),
    ),
    make(
      "span",
      { class: "workload-reason" },
      make("span", {}, row.evictedBy ? [make("code", {}, row.evictedBy), " evicts it; "] : null, makeMessage(row.reason)),
      row.behind ? make("span", { class: "hint workload-behind" }, `In use by, or waiting behind: ${row.behind}`) : null,
      row.change
        ? make("span", { class: "workload-change" }, makeIcon("right"), make("span", {}, makeMessage(row.change)))
        : null,
    ),
  );
}

/* The name of a workload leads to its job, if a job of the page makes it. */
function makeWorkloadName(model, row) {
  const cell = model.cells[row.cell];
  return cell ? makeJobLink(cell.job, row.name) : make("b", {}, row.name);
}

function makeJobLink(job, name) {
  return make("a", { class: "job-name", href: formatRoute(["job", jobKey(job)]) }, name);
}
