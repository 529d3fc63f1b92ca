/* The fleet: a matrix of jobs and environments, with filters that live in the address. */

/* What a cell can be: the word that is shown, a shape, a tone, and what the help says about it. */
const STATES = {
  active: { label: "active", icon: "check", tone: "good", help: "rendered, and it may run" },
  suspended: { label: "suspended", icon: "pause", tone: "note", help: "suspended in Git, and no queue starts it" },
  inactive: { label: "inactive", icon: "clock", tone: "note", help: "paused, done or expired; not rendered" },
  broken: { label: "broken", icon: "ban", tone: "bad", help: "not rendered because of errors; see its findings" },
};

/* What an active job is if it cannot run as it is: no list, table or icon calls it good. */
const STUCK = { label: "never admitted", icon: "ban", tone: "bad", help: "rendered, but Kueue never admits it" };
const FAULTY = { label: "has errors", icon: "cross", tone: "bad", help: "rendered, but it has errors" };

const WAITING = { label: "waiting", icon: "clock", tone: "warn", help: "rendered, but it lacks quota now, or a job is before it" };
const WARNED = { label: "has warnings", icon: "alert", tone: "warn", help: "rendered, with warnings" };

const SEVERITIES = ["error", "warning", "info"];

/* `run-9` comes before `run-10`. */
const NAME_ORDER = new Intl.Collator("en", { numeric: true });

/* Return the place of each name of a job or a sweep in their order: numbers are compared faster than names. */
function rankNames(model) {
  if (!model.ranks) {
    const names = new Set(model.jobs.flatMap((job) => [job.sweep, job.name]));
    model.ranks = new Map([...names].sort(NAME_ORDER.compare).map((name, rank) => [name, rank]));
  }
  return model.ranks;
}

/* Return the rows of the matrix: jobs, and sweeps folded into one row unless they are open. */
function listRows(model, query) {
  const rows = [];
  const sweeps = new Map();
  for (const job of model.jobs) {
    const cells = keepCells(model, job, query);
    if (!cells) continue;
    const row = { job, cells, members: null, inSweep: Boolean(job.sweep) };
    if (!job.sweep) rows.push(row);
    else if (sweeps.has(job.sweep)) sweeps.get(job.sweep).members.push(row);
    else {
      const sweep = { sweep: job.sweep, job, cells: null, members: [row], inSweep: false };
      sweeps.set(job.sweep, sweep);
      rows.push(sweep);
    }
  }
  for (const row of rows) measureRow(row);
  const compare = compareRows(rankNames(model), query.order);
  rows.sort(compare);
  for (const sweep of sweeps.values()) sweep.members.sort(compare);
  return rows;
}

function measureRow(row) {
  for (const member of row.members || []) measureRow(member);
  const cells = row.members ? row.members.flatMap((member) => member.cells) : row.cells;
  row.gpus = 0;
  row.pods = 0;
  row.errors = 0;
  row.findings = 0;
  row.urgency = 0;
  for (const cell of cells) {
    if (!cell) continue;
    row.gpus += cell.gpus;
    row.pods += cell.pods;
    row.findings += cell.findings.length;
    for (const finding of cell.findings) if (finding.severity === "error") row.errors++;
    row.urgency = Math.max(row.urgency, measureUrgency(cell));
  }
}

function compareRows(ranks, order) {
  const rank = (row) => ranks.get(row.sweep || row.job.name);
  const byName = (one, other) => rank(one) - rank(other) || one.job.index - other.job.index;
  if (order === "gpus" || order === "pods") return (one, other) => other[order] - one[order] || byName(one, other);
  if (order === "attention") return (one, other) => other.urgency - one.urgency || byName(one, other);
  if (order === "findings") {
    return (one, other) => other.errors - one.errors || other.findings - one.findings || byName(one, other);
  }
  return byName;
}

/* Return the rows as they are shown: a sweep that is open is followed by its jobs. */
function unfoldRows(rows, open) {
  return rows.flatMap((row) => (row.members && open.has(row.sweep) ? [row, ...row.members] : [row]));
}

/* Draw the view. It returns what the keyboard may do. */
function showFleet(model, place, route) {
  const query = { ...route.query };
  const open = new Set((query.open || "").split(",").filter(Boolean).map(decodePart));
  let rows = [];
  let wasTyping = Boolean(query.q);
  const summary = make("div", { class: "totals" });
  const matrix = new Matrix(model, query, (row) => {
    if (!row.members) return goTo(["job", jobKey(row.job)]);
    if (open.has(row.sweep)) open.delete(row.sweep);
    else open.add(row.sweep);
    query.open = [...open].map(encodeURIComponent).join(",");
    replaceRoute(["fleet"], query);
    matrix.show(unfoldRows(rows, open));
  });
  const filters = new FilterBar(model, query, (isTyping) => {
    // A word that is typed is one step back, not one for each letter.
    if (isTyping && wasTyping) replaceRoute(["fleet"], query);
    else pushRoute(["fleet"], query);
    wasTyping = isTyping;
    announce(update());
  });
  const update = () => {
    rows = listRows(model, query);
    const shown = showTotals(model, summary, rows, query);
    matrix.show(unfoldRows(rows, open));
    return filters.showCount(shown, model.jobs.filter((job) => job.isJob || query.objects).length);
  };
  matrix.onClear = () => filters.clear();
  const title = make("h1", { class: "hidden-text" }, "Fleet");
  const attention = makeAttention(model, query);
  const parts = [title, makeIncomplete(model), attention, summary, filters.element, matrix.element];
  show(place, make("section", { class: "fleet", "aria-label": "Fleet" }, parts));
  update();
  matrix.restore();
  return {
    search: filters.search,
    reset: () => filters.reset(),
    move: (step) => matrix.move(step),
    open: () => matrix.open(),
    print: (isPrinting) => matrix.print(isPrinting),
  };
}

/* The line of totals of what is shown: jobs, pods, GPUs of each environment, findings. It returns the number of jobs. */
function showTotals(model, place, rows, query) {
  const findings = new Set();
  const gpus = model.environments.map(() => 0);
  const severities = { error: 0, warning: 0, info: 0 };
  let jobs = 0;
  let pods = 0;
  for (const row of rows.flatMap((each) => each.members || [each])) {
    jobs++;
    for (const cell of row.cells) {
      if (!cell) continue;
      gpus[cell.env] += cell.gpus;
      pods += cell.pods;
      cell.findings.forEach(findings.add, findings);
    }
  }
  // Some findings belong to no job; they count as long as nothing is filtered.
  const shown = listActive(query).length ? [...findings] : model.findings;
  for (const severity of SEVERITIES) severities[severity] = countEntries(shown.filter((each) => each.severity === severity));
  const makeFindings = (severity, tone) =>
    makeTotal(...splitCount(severities[severity], severity), null, severities[severity] && tone);
  show(
    place,
    makeTotal(...splitCount(jobs, "job")),
    makeTotal(...splitCount(pods, "pod")),
    makeFindings("error", "bad"),
    makeFindings("warning", "warn"),
    makeTotal(...splitCount(sum(gpus), "GPU"), makeShares(model, gpus)),
  );
  return jobs;
}

/* The number and the noun of a total. */
function splitCount(number, noun) {
  return [formatNumber(number), number === 1 ? noun : `${noun}s`];
}

function sum(numbers) {
  return numbers.reduce((total, each) => total + each, 0);
}

function makeTotal(value, label, more, tone) {
  const text = [
    make("span", { class: `total-value ${tone ? `tone-text-${tone}` : ""}` }, value),
    " ",
    make("span", { class: "total-label" }, label),
  ];
  return make("div", { class: "total" }, make("div", { class: "total-text" }, text), more);
}

/* GPUs of each environment beside their sum. */
function makeShares(model, gpus) {
  const shares = model.environments.map((name, index) =>
    gpus[index]
      ? make(
          "span",
          { class: "share" },
          make("span", { class: `swatch series-${index % 8}` }),
          `${name} `,
          make("b", {}, formatNumber(gpus[index])),
        )
      : null,
  );
  return make("div", { class: "shares" }, shares);
}
