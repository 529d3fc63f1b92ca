/* The filters of the fleet: what they keep, the bar that sets them, and the chips that remove them. */

const UNSET = "(none)"; // no label and no name can be this

/* The filters, by the name that they have in the address: each reads a property of a job or of a cell. */
const FILTERS = [
  { name: "team", label: "Team", ofCell: (cell) => cell.team },
  { name: "queue", label: "Queue", ofCell: (cell) => cell.queue },
  { name: "namespace", label: "Namespace", ofCell: (cell) => cell.namespace },
  { name: "framework", label: "Framework", ofJob: (job) => job.framework },
  { name: "owner", label: "Owner", ofCell: (cell) => cell.owner },
  { name: "state", label: "State", ofCell: (cell) => cell.state },
  { name: "decision", label: "Kueue", ofCell: (cell) => cell.decision },
  { name: "env", label: "Environment", ofCell: (cell, model) => model.environments[cell.env] },
];

const SEVERITY_LABEL = "Severity";

/* What a chip calls each filter. */
const FILTER_LABELS = new Map([
  ["q", "Search"],
  ...FILTERS.map((filter) => [filter.name, filter.label]),
  ["severity", SEVERITY_LABEL],
  ["rule", "Rule"],
]);

const ORDERS = [
  ["name", "Name"],
  ["attention", "Needs attention"],
  ["gpus", "Most GPUs"],
  ["pods", "Most pods"],
  ["findings", "Most findings"],
];

/* Return the text that the text filter searches. */
function searchText(job) {
  const cells = job.cells.filter(Boolean);
  const parts = [job.name, job.file, job.team, job.owner, job.framework, job.sweep, job.source];
  for (const cell of cells) parts.push(cell.name, cell.namespace, cell.queue, cell.kind);
  return parts.filter(Boolean).join("\n").toLowerCase();
}

function hasWords(job, text) {
  job.text = job.text || searchText(job);
  const words = text.toLowerCase().split(/\s+/);
  return words.every((word) => job.text.includes(word));
}

/* Return the cells of a job that the filters keep, by environment; null if none is left. */
function keepCells(model, job, query) {
  if (!job.isJob && !query.objects) return null;
  for (const filter of FILTERS) {
    if (filter.ofJob && query[filter.name] && (filter.ofJob(job) || UNSET) !== query[filter.name]) return null;
  }
  if (query.q && !hasWords(job, query.q)) return null;
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

/* Return the names of the filters that leave something out. */
function listActive(query) {
  return [...FILTER_LABELS.keys()].filter((name) => query[name]);
}

/* The bar of filters. `update(isTyping)` is called after each change of the query. */
class FilterBar {
  constructor(model, query, update) {
    Object.assign(this, { model, query, update });
    this.search = make("input", {
      type: "search",
      class: "search",
      placeholder: "Search jobs, files, queues",
      "aria-label": "Search jobs, files, queues",
      autocomplete: "off",
      spellcheck: "false",
      onInput: () => this.change("q", this.search.value.trim(), true),
    });
    this.search.value = query.q || "";
    this.selects = this.makeSelects();
    this.count = make("span", { class: "result-count" });
    this.chips = make("ul", { class: "chips", "aria-label": "Active filters" });
    const more = make("div", { class: "filter-more", id: "filter-more" }, this.selects);
    this.toggle = makeFilterToggle(more);
    const order = makeOrder(query, (value) => this.change("order", value));
    this.element = make(
      "div",
      { class: "filters", role: "search" },
      make("div", { class: "filter-fields" }, this.search, this.toggle, more),
      make("div", { class: "result" }, this.count, this.chips, order),
    );
    this.mark();
  }

  makeSelects() {
    const { model, query } = this;
    const change = (name, value) => this.change(name, value);
    const selects = FILTERS.map((filter) => [filter, countValues(model, filter)])
      .filter(([filter, values]) => values.some(([value]) => value !== UNSET) || query[filter.name])
      .map(([filter, values]) => makeSelect(filter.label, filter.name, values, query, change));
    selects.push(makeSelect(SEVERITY_LABEL, "severity", countSeverities(model), query, change));
    if (model.jobs.some((job) => !job.isJob))
      selects.push(makeSelect("Jobs only", "objects", [["all", "Jobs and other objects"]], query, change));
    return selects;
  }

  change(name, value, isTyping = false) {
    if (value) this.query[name] = value;
    else delete this.query[name];
    this.mark();
    this.update(isTyping);
  }

  /* Remove one filter, and go on from the search field, as the chip is gone. */
  remove(name) {
    if (name === "q") this.search.value = "";
    for (const each of this.selects) if (each.firstElementChild.dataset.name === name) each.firstElementChild.value = "";
    this.change(name, "");
    (this.chips.querySelector("button") || this.search).focus();
  }

  /* Remove all filters. */
  reset() {
    for (const name of listActive(this.query)) delete this.query[name];
    this.search.value = "";
    for (const each of this.selects)
      if (each.firstElementChild.dataset.name !== "objects") each.firstElementChild.value = "";
    this.mark();
    this.update(false);
  }

  mark() {
    const active = listActive(this.query);
    show(this.toggle, "Filters", active.length ? ` (${active.length})` : "");
    for (const each of this.selects)
      each.classList.toggle("is-set", Boolean(this.query[each.firstElementChild.dataset.name]));
    const chips = active.map((name) => make("li", {}, makeChip(name, this.query[name], () => this.remove(name))));
    const clear = make("button", { type: "button", class: "quiet clear", onClick: () => this.clear() }, "Clear filters");
    show(this.chips, chips, active.length ? make("li", {}, clear) : null);
  }

  clear() {
    this.reset();
    this.search.focus();
  }

  /* Say how many of all jobs are shown. */
  showCount(shown, total) {
    const noun = this.query.objects ? ["job or object", "jobs and objects"] : ["job", "jobs"];
    const text = shown === total ? count(total, ...noun) : `${formatNumber(shown)} of ${count(total, ...noun)}`;
    show(this.count, text);
    return text;
  }
}

/* A filter that is on; a click removes it. */
function makeChip(name, value, remove) {
  const label = FILTER_LABELS.get(name);
  return make(
    "button",
    { type: "button", class: "chip", "aria-label": `Remove the filter ${label}: ${value}`, onClick: remove },
    make("span", { class: "chip-text" }, `${label}: `, make("b", {}, value)),
    makeIcon("cross"),
  );
}

/* On a phone the filters are folded. */
function makeFilterToggle(more) {
  const toggle = make("button", {
    type: "button",
    class: "filter-toggle",
    "aria-expanded": "false",
    "aria-controls": more.id,
  });
  toggle.addEventListener("click", () =>
    toggle.setAttribute("aria-expanded", String(more.classList.toggle("is-open"))),
  );
  return toggle;
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
    { "aria-label": "Order", onChange: () => change(select.value === "name" ? "" : select.value) },
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
