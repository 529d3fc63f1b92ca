/* The matrix of the fleet. Only the rows in view are in the document, so ten thousand jobs scroll as ten do. */

const LONG_NAME = 36;
const ROWS_BEFORE_AND_AFTER = 8;
const MAX_PRINTED_ROWS = 1000;

/* Where the matrix was left, to come back to from a job. */
const leftAt = { address: "", active: -1, scrollTop: 0 };

/* The steps of keys that move in the matrix. */
const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, End: Infinity, Home: -Infinity };

class Matrix {
  /* `onOpen(row)` is called for a click or Enter. */
  constructor(model, query, onOpen) {
    Object.assign(this, { model, query, onOpen, rows: [], active: -1, first: -1, last: -1, isPrinting: false });
    this.drawn = new Map(); // the rows in the document by their number
    this.only = columnInView(model, query);
    this.head = make("div", { class: "matrix-head", role: "row", "aria-rowindex": "1" });
    this.body = make("div", { class: "matrix-rows", role: "rowgroup" });
    this.sizer = make("div", { class: "matrix-sizer", role: "presentation" }, this.body);
    this.empty = make("div", { class: "matrix-empty", hidden: true });
    const label = { "aria-label": "Jobs and environments", "aria-colcount": model.environments.length + 1 };
    const heads = make("div", { role: "rowgroup", class: "matrix-head-group" }, this.head);
    this.grid = make("div", { class: "matrix", role: "treegrid", tabindex: "0", ...label }, heads, this.sizer);
    this.grid.style.setProperty("--columns", String(model.environments.length));
    this.note = make("p", { class: "print-note", hidden: true });
    this.element = make("div", { class: "matrix-frame" }, this.note, this.grid, this.empty);
    showHead(model, this.head, this, () => this.draw());
    this.listen();
  }

  listen() {
    const { grid } = this;
    grid.addEventListener("scroll", () => requestAnimationFrame(() => this.drawIfMoved()), { passive: true });
    grid.addEventListener("click", (event) => {
      const line = event.target.closest("[data-row]");
      if (!line || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.active = Number(line.dataset.row);
      this.open();
    });
    grid.addEventListener("keydown", (event) => {
      if (!(event.key in STEPS)) return;
      event.preventDefault();
      this.move(STEPS[event.key]);
    });
    new ResizeObserver(() => this.drawIfMoved()).observe(grid);
  }

  /* Show other rows. */
  show(rows) {
    this.rows = rows;
    if (this.active >= rows.length) this.active = rows.length - 1;
    this.grid.setAttribute("aria-rowcount", String(rows.length + 1));
    // On a phone, a long name has two lines, and all rows have one height.
    this.grid.classList.toggle("is-long", rows.some((row) => (row.sweep || row.job.name).length > LONG_NAME));
    this.sizer.style.setProperty("--rows", String(rows.length));
    this.empty.hidden = rows.length > 0;
    if (!rows.length) showNoRows(this.model, this.empty, () => this.onClear());
    this.draw();
  }

  get rowHeight() {
    return parseFloat(getComputedStyle(this.grid).getPropertyValue("--row"));
  }

  /* The first row to draw, and the one after the last. */
  get range() {
    const { scrollTop, clientHeight } = this.grid;
    const first = Math.floor(scrollTop / this.rowHeight) - ROWS_BEFORE_AND_AFTER;
    const last = Math.ceil((scrollTop + clientHeight) / this.rowHeight) + ROWS_BEFORE_AND_AFTER;
    return [Math.max(0, first), Math.min(this.rows.length, last)];
  }

  drawIfMoved() {
    const [first, last] = this.range;
    if (!this.isPrinting && (first !== this.first || last !== this.last)) this.drawRange();
  }

  /* Draw all rows in view again. */
  draw() {
    this.drawn.clear();
    this.drawRange();
  }

  /* Draw the rows that came into view; the others stay. */
  drawRange() {
    const [first, last] = this.isPrinting ? [0, Math.min(this.rows.length, MAX_PRINTED_ROWS)] : this.range;
    Object.assign(this, { first, last });
    const numbers = Array.from({ length: Math.max(0, last - first) }, (_, at) => first + at);
    const drawn = numbers.map((number) => [number, this.drawn.get(number) || this.makeRow(number)]);
    this.drawn = new Map(drawn);
    this.body.replaceChildren(...this.drawn.values());
    this.body.style.transform = this.isPrinting ? "none" : `translateY(${first * this.rowHeight}px)`;
    if (this.active >= first && this.active < last)
      this.grid.setAttribute("aria-activedescendant", `row-${this.active}`);
    else this.grid.removeAttribute("aria-activedescendant");
  }

  makeRow(number) {
    return makeRow(this.model, this.rows[number], number, this);
  }

  /* Make another row the active one, and scroll it into view. */
  move(step) {
    if (!this.rows.length) return;
    const { grid, rowHeight } = this;
    this.active = Math.max(0, Math.min(this.rows.length - 1, this.active + step));
    const top = this.active * rowHeight;
    const room = grid.clientHeight - this.head.offsetHeight;
    if (top < grid.scrollTop) grid.scrollTop = top;
    else if (top + rowHeight > grid.scrollTop + room) grid.scrollTop = top + rowHeight - room;
    this.draw();
    if (document.activeElement !== grid) grid.focus({ preventScroll: true });
  }

  open() {
    const address = formatRoute(["fleet"], this.query);
    Object.assign(leftAt, { address, active: this.active, scrollTop: this.grid.scrollTop });
    if (this.rows[this.active]) this.onOpen(this.rows[this.active]);
  }

  /* Go to where the matrix was left, if it shows the same rows. */
  restore() {
    if (formatRoute(["fleet"], this.query) !== leftAt.address || leftAt.active >= this.rows.length) return;
    this.active = leftAt.active;
    this.grid.scrollTop = leftAt.scrollTop;
    this.draw();
    this.grid.focus({ preventScroll: true });
  }

  /* On paper all rows are drawn, or as many as a browser can print, with a note. */
  print(isPrinting) {
    this.isPrinting = isPrinting;
    const total = this.rows.length;
    this.note.hidden = !isPrinting || total <= MAX_PRINTED_ROWS;
    const shown = `The first ${formatNumber(MAX_PRINTED_ROWS)} of ${formatNumber(total)} rows.`;
    show(this.note, `${shown} Filter the fleet to print the others.`);
    this.draw();
  }
}

function showNoRows(model, place, clear) {
  const isEmpty = !model.jobs.length;
  const button = make("button", { type: "button", onClick: clear }, "Clear filters");
  const hint = "Add a job spec to jobs/, then write the page again.";
  if (isEmpty && model.errors.length) show(place, makeEmpty("No job can be read", "The errors above say why."));
  else if (isEmpty) show(place, makeEmpty("This repository has no jobs", hint));
  else show(place, makeEmpty("No job matches these filters", "Remove a filter, or clear all of them (Esc).", button));
}

/* On a narrow screen one environment is shown at a time: the filtered one, else the one with most GPUs. */
function columnInView(model, query) {
  const chosen = model.environments.indexOf(query.env);
  if (chosen >= 0) return chosen;
  const gpus = model.environments.map((name, index) =>
    model.jobs.reduce((sum, job) => sum + (job.cells[index] ? job.cells[index].gpus : 0), 0),
  );
  return Math.max(0, gpus.indexOf(Math.max(...gpus)));
}

function showHead(model, head, state, redraw) {
  const options = model.environments.map((name, index) => make("option", { value: index }, name));
  const select = make(
    "select",
    {
      "aria-label": "Environment to show",
      onChange: () => {
        state.only = Number(select.value);
        mark();
        redraw();
      },
    },
    options,
  );
  select.value = String(state.only);
  const columns = model.environments.map((name, index) =>
    make(
      "div",
      { class: "matrix-column", role: "columnheader", "aria-colindex": index + 2 },
      make("span", { class: `swatch series-${index % 8}` }),
      name,
    ),
  );
  const mark = () => columns.forEach((column, index) => column.classList.toggle("is-only", index === state.only));
  mark();
  const first = make(
    "div",
    { class: "matrix-job", role: "columnheader", "aria-colindex": 1 },
    "Job",
    make("span", { class: "select matrix-only" }, select, makeIcon("down")),
  );
  show(head, first, columns);
}

function makeRow(model, row, index, state) {
  const isActive = index === state.active;
  const cells = model.environments.map((name, env) => (row.members ? makeSweepCell(row, env) : makeCell(row, env)));
  cells.forEach((cell, env) => {
    cell.setAttribute("aria-colindex", env + 2);
    if (env === state.only) cell.classList.add("is-only");
  });
  return make(
    "div",
    {
      class: `row ${isActive ? "is-active" : ""} ${row.inSweep ? "is-member" : ""} ${row.members ? "is-sweep" : ""}`,
      role: "row",
      id: `row-${index}`,
      "data-row": index,
      "aria-rowindex": index + 2,
      "aria-level": row.inSweep ? 2 : 1,
      "aria-selected": String(isActive),
      "aria-expanded": row.members
        ? String(state.rows[index + 1]?.inSweep === true && state.rows[index + 1].job.sweep === row.sweep)
        : null,
    },
    row.members ? makeSweepName(row, state.rows[index + 1]) : makeJobName(row),
    cells,
  );
}

function makeJobName({ job }) {
  const facts = [job.team, job.framework, job.owner].filter(Boolean).join(" · ");
  return make(
    "div",
    { class: "matrix-job", role: "rowheader", "aria-colindex": 1 },
    make(
      "a",
      { class: "job-name", href: formatRoute(["job", jobKey(job)]), tabindex: "-1", title: job.file },
      job.name,
    ),
    make("span", { class: "job-facts" }, facts || job.source || job.file),
  );
}

function makeSweepName(row, next) {
  const isOpen = next && next.inSweep && next.job.sweep === row.sweep;
  const { team, framework, owner } = row.job;
  const facts = [count(row.members.length, "job"), team, framework, owner].filter(Boolean).join(" · ");
  return make(
    "div",
    { class: "matrix-job", role: "rowheader", "aria-colindex": 1 },
    make(
      "span",
      { class: "job-name" },
      makeIcon(isOpen ? "down" : "right"),
      row.sweep,
      make("span", { class: "kind-tag" }, "sweep"),
    ),
    make("span", { class: "job-facts" }, facts),
  );
}

function makeCell(row, env) {
  const cell = row.cells[env];
  if (!cell) {
    const reason = row.job.cells[env] ? "filtered out" : "not in this environment";
    return make("div", { class: "cell is-absent", role: "gridcell", title: reason }, makeIcon("dash", reason));
  }
  const state = judgeState(stateOf(cell.state), [cell]);
  return make(
    "div",
    {
      class: "cell",
      role: "gridcell",
      title: [`${cell.kind} ${cell.namespace}/${cell.name}`, cell.reason].filter(Boolean).join(": "),
    },
    make(
      "span",
      { class: "cell-main" },
      makeStateIcon(state),
      makeAmount(cell.gpus, cell.pods),
      makeFindingCounts(cell.findings),
    ),
    make(
      "span",
      { class: "cell-more" },
      SAID_ELSEWHERE.has(state) ? null : makeStateText(state, state.label),
      makeDecisionText([cell]),
      [cell.kind, cell.queue].filter(Boolean).join(" · "),
    ),
  );
}

function stateOf(name) {
  return STATES[name] || { label: name, icon: "info", tone: "note" };
}

/* The word of a state that is not the usual one: its shape alone may not be known. */
function makeStateText(state, text) {
  return state.tone === "good" ? null : [make("span", { class: `tone-text-${state.tone}` }, text), " · "];
}

/* States that the decision of Kueue or the count of findings in the cell says already. */
const SAID_ELSEWHERE = new Set([STUCK, WAITING, WARNED]);

/* The state to show. A job that has errors, or that Kueue never admits, is not good, although it is rendered. */
function judgeState(state, cells) {
  if (state.tone !== "good") return state;
  if (cells.some((cell) => describeDecision(cell.decision).tone === "bad")) return STUCK;
  if (cells.some(hasErrors)) return FAULTY;
  if (cells.some((cell) => cell.decision === "waits")) return WAITING;
  return cells.every(isClean) ? state : WARNED;
}

function hasErrors(cell) {
  return hasFinding(cell, "error");
}

/* Whether nothing is wrong with a job: only then it gets a green check. */
function isClean(cell) {
  return !hasErrors(cell) && !hasFinding(cell, "warning");
}

function hasFinding(cell, severity) {
  return Boolean(cell) && cell.findings.some((finding) => finding.severity === severity);
}

function makeStateIcon(state) {
  return make("span", { class: `state tone-text-${state.tone}` }, makeIcon(state.icon, state.label));
}

/* What Kueue decides about jobs, if somebody should look at it: the worst decision, and how many it concerns. */
function makeDecisionText(cells) {
  const [worst] = groupByDecision(cells.filter((cell) => cell.decision));
  if (!worst) return null;
  const { label, tone } = describeDecision(worst[0]);
  const number = worst[1].length;
  const text = number === cells.length ? label : `${formatNumber(number)} ${label}`;
  return ["bad", "warn"].includes(tone) ? [make("span", { class: `tone-text-${tone}` }, text), " · "] : null;
}

function makeAmount(gpus, pods) {
  const main = gpus
    ? make("span", { class: "amount" }, make("b", {}, formatNumber(gpus)), gpus === 1 ? " GPU" : " GPUs")
    : null;
  return [main, make("span", { class: gpus ? "amount-more" : "amount" }, count(pods, "pod"))];
}

function makeFindingCounts(findings) {
  const counts = SEVERITIES.map((severity) => [
    severity,
    countEntries(findings.filter((finding) => finding.severity === severity)),
  ]);
  return make(
    "span",
    { class: "counts" },
    counts
      .filter(([, number]) => number)
      .map(([severity, number]) => {
        const badge = makeSeverity(severity, number);
        badge.append(make("span", { class: "hidden-text" }, ` ${severity}${number === 1 ? "" : "s"}`));
        return badge;
      }),
  );
}

/* A cell of a folded sweep: the sum over its jobs, and the worst state that one of them has. */
function makeSweepCell(row, env) {
  const cells = row.members.map((member) => member.cells[env]).filter(Boolean);
  if (!cells.length)
    return make("div", { class: "cell is-absent", role: "gridcell" }, makeIcon("dash", "not in this environment"));
  const worst = [...Object.keys(STATES)].reverse().find((name) => cells.some((cell) => cell.state === name));
  const state = stateOf(worst || cells[0].state);
  const number = cells.filter((cell) => stateOf(cell.state) === state).length;
  const add = (name) => cells.reduce((total, cell) => total + cell[name], 0);
  const queues = [...new Set(cells.map((cell) => cell.queue).filter(Boolean))];
  const states = Object.keys(STATES).map((name) => [cells.filter((cell) => cell.state === name).length, name]);
  const title = states.filter(([found]) => found).map(([found, name]) => `${found} ${name}`).join(", ");
  return make(
    "div",
    { class: "cell", role: "gridcell", title },
    make(
      "span",
      { class: "cell-main" },
      makeStateIcon(judgeState(state, cells)),
      makeAmount(add("gpus"), add("pods")),
      makeFindingCounts(cells.flatMap((cell) => cell.findings)),
    ),
    make(
      "span",
      { class: "cell-more" },
      makeStateText(state, number === cells.length ? state.label : `${number} ${state.label}`),
      makeDecisionText(cells),
      `${cells.length} × ${cells[0].kind}`,
      queues.length ? ` · ${queues.length > 2 ? `${queues.length} queues` : queues.join(", ")}` : "",
    ),
  );
}
