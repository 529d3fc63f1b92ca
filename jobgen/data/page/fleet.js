/* The fleet: a matrix of jobs and environments, with filters that live in the address. */

/* What a cell can be: the word that is shown, a shape and a tone. */
const STATES = {
  active: { label: "active", icon: "check", tone: "good" },
  suspended: { label: "suspended", icon: "pause", tone: "note" },
  inactive: { label: "inactive", icon: "clock", tone: "note" },
  broken: { label: "broken", icon: "ban", tone: "bad" },
};

const SEVERITIES = ["error", "warning", "info"];
const UNSET = "(none)"; // no label and no name can be this

/* The filters, by the name that they have in the address; `value` reads the property of a job or of a cell. */
const FILTERS = [
  { name: "team", label: "Team", ofCell: (cell) => cell.team },
  { name: "queue", label: "Queue", ofCell: (cell) => cell.queue },
  { name: "framework", label: "Framework", ofJob: (job) => job.framework },
  { name: "owner", label: "Owner", ofCell: (cell) => cell.owner },
  { name: "decision", label: "Kueue", ofCell: (cell) => cell.decision },
  { name: "env", label: "Environment", ofCell: (cell, model) => model.environments[cell.env] },
];

const ORDERS = [
  ["name", "Name"],
  ["gpus", "Most GPUs"],
  ["findings", "Most findings"],
];

/* `run-9` comes before `run-10`. */
const NAME_ORDER = new Intl.Collator("en", { numeric: true });

/* Return the text that the text filter searches. */
function searchText(job) {
  const cells = job.cells.filter(Boolean);
  const parts = [job.name, job.file, job.team, job.owner, job.framework, job.sweep];
  for (const cell of cells) parts.push(cell.name, cell.namespace, cell.queue, cell.kind);
  return parts.filter(Boolean).join("\n").toLowerCase();
}

/* Return the cells of a job that the filters keep, by environment; null if none is left. */
function keepCells(model, job, query) {
  if (!job.isJob && !query.objects) return null;
  for (const filter of FILTERS) {
    if (filter.ofJob && query[filter.name] && (filter.ofJob(job) || UNSET) !== query[filter.name]) return null;
  }
  if (query.q) {
    job.text = job.text || searchText(job);
    if (
      !query.q
        .toLowerCase()
        .split(/\s+/)
        .every((word) => job.text.includes(word))
    )
      return null;
  }
  const cells = job.cells.map((cell) => (cell && keepsCell(model, cell, query) ? cell : null));
  return cells.some(Boolean) ? cells : null;
}

function keepsCell(model, cell, query) {
  for (const filter of FILTERS) {
    if (filter.ofCell && query[filter.name] && (filter.ofCell(cell, model) || UNSET) !== query[filter.name])
      return false;
  }
  if (query.rule && !cell.findings.some((finding) => finding.rule === query.rule)) return false;
  return !query.severity || cell.findings.some((finding) => finding.severity === query.severity);
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
  rows.sort(compareRows(query.order));
  for (const sweep of sweeps.values()) sweep.members.sort(compareRows(query.order));
  return rows;
}

function measureRow(row) {
  for (const member of row.members || []) measureRow(member);
  const cells = row.members ? row.members.flatMap((member) => member.cells) : row.cells;
  row.gpus = 0;
  row.errors = 0;
  row.findings = 0;
  for (const cell of cells) {
    if (!cell) continue;
    row.gpus += cell.gpus;
    row.findings += cell.findings.length;
    for (const finding of cell.findings) if (finding.severity === "error") row.errors++;
  }
}

function compareRows(order) {
  const name = (row) => row.sweep || row.job.name;
  const byName = (one, other) => NAME_ORDER.compare(name(one), name(other)) || one.job.index - other.job.index;
  if (order === "gpus") return (one, other) => other.gpus - one.gpus || byName(one, other);
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
  const matrix = new Matrix(model, query, (row) => {
    if (!row.members) return goTo(["job", jobKey(row.job)]);
    if (open.has(row.sweep)) open.delete(row.sweep);
    else open.add(row.sweep);
    query.open = [...open].map(encodeURIComponent).join(",");
    replaceRoute(["fleet"], query);
    matrix.show(unfoldRows(rows, open));
  });
  let rows = [];
  const summary = make("div", { class: "totals" });
  const update = () => {
    replaceRoute(["fleet"], query);
    rows = listRows(model, query);
    showTotals(model, summary, rows, hasFilters(query));
    matrix.show(unfoldRows(rows, open));
    announce(`${count(rows.length, "row")} of the fleet`);
  };
  const filters = makeFilters(model, query, update);
  show(
    place,
    make(
      "section",
      { class: "fleet", "aria-label": "Fleet" },
      make("h1", { class: "hidden-text" }, "Fleet"),
      summary,
      filters.element,
      matrix.element,
    ),
  );
  rows = listRows(model, query);
  showTotals(model, summary, rows, hasFilters(query));
  matrix.show(unfoldRows(rows, open));
  matrix.restore();
  return {
    search: filters.search,
    reset: filters.reset,
    move: (step) => matrix.move(step),
    open: () => matrix.open(),
    print: (isPrinting) => matrix.print(isPrinting),
  };
}

/* Whether the filters leave something out; the order and open sweeps do not. */
function hasFilters(query) {
  return Object.keys(query).some((name) => query[name] && !["order", "open", "objects"].includes(name));
}

/* The line of totals: jobs, objects, GPUs of each environment, findings. */
function showTotals(model, place, rows, isFiltered) {
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
  for (const finding of isFiltered ? findings : model.findings) severities[finding.severity]++;
  show(
    place,
    makeTotal(formatNumber(jobs), jobs === 1 ? "job" : "jobs"),
    makeTotal(formatNumber(pods), "pods"),
    makeTotal(formatNumber(gpus.reduce((sum, each) => sum + each, 0)), "GPUs", makeShares(model, gpus)),
    makeTotal(
      formatNumber(severities.error),
      severities.error === 1 ? "error" : "errors",
      null,
      severities.error && "bad",
    ),
    makeTotal(
      formatNumber(severities.warning),
      severities.warning === 1 ? "warning" : "warnings",
      null,
      severities.warning && "warn",
    ),
  );
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

/* The bar of filters. */
function makeFilters(model, query, update) {
  const search = make("input", {
    type: "search",
    class: "search",
    placeholder: "Search jobs, files, queues",
    "aria-label": "Search jobs, files, queues",
    autocomplete: "off",
    spellcheck: "false",
    onInput: () => change("q", search.value.trim()),
  });
  search.value = query.q || "";
  const clear = make("button", { type: "button", class: "quiet clear", onClick: () => reset() }, "Clear");
  const change = (name, value) => {
    if (value) query[name] = value;
    else delete query[name];
    mark();
    update();
  };
  const selects = FILTERS.map((filter) => [filter, countValues(model, filter)])
    .filter(([filter, values]) => values.some(([value]) => value !== UNSET) || query[filter.name])
    .map(([filter, values]) => makeSelect(filter.label, filter.name, values, query, change));
  selects.push(makeSelect("Severity", "severity", countSeverities(model), query, change));
  const rule = make("button", {
    type: "button",
    class: "chip",
    title: "Remove this filter",
    onClick: () => change("rule", ""),
  });
  const mark = () => {
    const active = ["q", "rule", "severity", "objects", ...FILTERS.map((filter) => filter.name)].filter(
      (name) => query[name],
    ).length;
    clear.hidden = active === 0;
    rule.hidden = !query.rule;
    show(rule, "Rule ", make("b", {}, query.rule || ""), makeIcon("cross"));
    show(toggle, "Filters", active ? ` (${active})` : "");
    for (const each of selects) each.classList.toggle("is-set", Boolean(query[each.firstElementChild.dataset.name]));
  };
  const reset = () => {
    for (const name of Object.keys(query)) if (name !== "order" && name !== "open") delete query[name];
    search.value = "";
    for (const each of selects) each.firstElementChild.value = "";
    mark();
    update();
  };
  if (model.jobs.some((job) => !job.isJob))
    selects.push(makeSelect("Jobs only", "objects", [["all", "Jobs and other objects"]], query, change));
  const order = makeOrder(query, change);
  const more = make("div", { class: "filter-more", id: "filter-more" }, selects, rule, clear, order);
  const toggle = make("button", {
    type: "button",
    class: "filter-toggle",
    "aria-expanded": "false",
    "aria-controls": "filter-more",
  });
  toggle.addEventListener("click", () =>
    toggle.setAttribute("aria-expanded", String(more.classList.toggle("is-open"))),
  );
  mark();
  return { element: make("div", { class: "filters", role: "search" }, search, toggle, more), search, reset };
}

function makeSelect(label, name, values, query, change) {
  const options = [
    make("option", { value: "" }, label),
    ...values.map(([value, number]) =>
      make("option", { value }, typeof number === "string" ? number : `${value} (${formatNumber(number)})`),
    ),
  ];
  if (query[name] && !values.some(([value]) => value === query[name]))
    options.push(make("option", { value: query[name] }, query[name]));
  const select = make(
    "select",
    { "aria-label": label, "data-name": name, onChange: () => change(name, select.value) },
    options,
  );
  select.value = query[name] || "";
  return make("span", { class: "select" }, select, makeIcon("down"));
}

function makeOrder(query, change) {
  const options = ORDERS.map(([value, label]) => make("option", { value }, label));
  const select = make(
    "select",
    { "aria-label": "Order", onChange: () => change("order", select.value === "name" ? "" : select.value) },
    options,
  );
  select.value = query.order || "name";
  return make(
    "span",
    { class: "select order" },
    make("span", { class: "select-label", "aria-hidden": "true" }, "Sort"),
    select,
    makeIcon("down"),
  );
}

/* Return the values of a filter with the number of their jobs, most frequent first. */
function countValues(model, filter) {
  const counts = new Map();
  for (const job of model.jobs.filter((each) => each.isJob)) {
    const values = filter.ofJob
      ? [filter.ofJob(job)]
      : job.cells.filter(Boolean).map((cell) => filter.ofCell(cell, model));
    for (const value of new Set(values)) counts.set(value || UNSET, (counts.get(value || UNSET) || 0) + 1);
  }
  return [...counts].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1));
}

function countSeverities(model) {
  const counts = new Map();
  for (const job of model.jobs) {
    const found = new Set(
      job.cells.filter(Boolean).flatMap((cell) => cell.findings.map((finding) => finding.severity)),
    );
    for (const severity of found) counts.set(severity, (counts.get(severity) || 0) + 1);
  }
  return SEVERITIES.filter((severity) => counts.has(severity)).map((severity) => [severity, counts.get(severity)]);
}
