/* GPU hours and costs. Only a deadline bounds a run: jobs without one are listed as unknown and are in no sum. */

function makeCosts(model, env, words) {
  const totals = ofEnvironment(model.capacity.costs, env);
  if (!totals.length) return null;
  // A team or queue that no job has says nothing if it is the only one.
  const says = (row) => row.name || totals.filter((each) => each.by === row.by).length > 1;
  const kept = totals.filter((row) => row.by === "environment" || (says(row) && matchesWords(words, row.name, row.by)));
  const runs = model.capacity.runs.filter(
    ({ cell }) => cell.env === env && matchesWords(words, cell.name, cell.team, cell.queue, cell.namespace),
  );
  const { currency } = model.head;
  const isKnown = ({ cell }) => (currency ? cell.cost >= 0 : cell.deadline > 0);
  return make(
    "section",
    { class: "panel costs" },
    make("h2", {}, currency ? "Maximum GPU hours and costs" : "Maximum GPU hours"),
    make("p", { class: "hint" }, makeMessage(explainCosts(totals[0], currency))),
    makeCostTable(kept, currency),
    makeLongestRuns(runs.filter(isKnown), currency),
    makeUnknownRuns(
      runs.filter((run) => !isKnown(run)),
      currency,
    ),
  );
}

function explainCosts(whole, currency) {
  const endless = whole.jobs - whole.bounded;
  const unpriced = currency ? whole.bounded - whole.priced : 0;
  const texts = [
    "Upper bounds for one run of each job: all its pods run until its deadline.",
    endless ? `${formatNumber(endless)} of ${count(whole.jobs, "job")} ${endless === 1 ? "has" : "have"} no deadline and ${endless === 1 ? "is" : "are"} excluded.` : "",
    unpriced ? `${count(unpriced, "job")} ${unpriced === 1 ? "has" : "have"} no price and ${unpriced === 1 ? "is" : "are"} excluded from costs.` : "",
    whole.scheduled ? `${count(whole.scheduled, "scheduled job")} ${whole.scheduled === 1 ? "counts" : "count"} as one run each.` : "",
    "If Kueue evicts a job, its time starts again.",
    currency ? "" : "To see costs, write `--prices FILE`.",
  ];
  return texts.filter(Boolean).join(" ");
}

function makeCostTable(totals, currency) {
  const head = ["", "Jobs", "Excluded", "GPU hours", ...(currency ? [currency] : [])];
  const rows = totals.map((row) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, row.name || UNSET, make("span", { class: "hint" }, ` ${row.by}`)),
      listCostValues(row, currency).map((text) => make("td", {}, text)),
    ),
  );
  return make(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Costs" },
    make(
      "table",
      { class: "numbers wide" },
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          head.map((text) => (text ? make("th", { scope: "col" }, text) : make("td"))),
        ),
      ),
      make("tbody", {}, rows),
    ),
  );
}

const NOT_KNOWN = "unknown";

function listCostValues(row, currency) {
  const known = currency ? row.priced : row.bounded;
  const values = [formatNumber(row.jobs), formatNumber(row.jobs - known)];
  values.push(row.bounded ? formatHours(row.gpuSeconds) : NOT_KNOWN);
  if (currency) values.push(row.priced ? formatMoney(row.cost) : NOT_KNOWN);
  return values;
}

const MONEY_FORMAT = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/* Upper bounds are rounded up. */
function formatMoney(thousandths) {
  return MONEY_FORMAT.format(Math.ceil(thousandths / 10) / 100);
}

function formatHours(seconds) {
  return AMOUNT_FORMAT.format(Math.ceil((seconds * 100) / 3600) / 100);
}

/* "1 d 12 h", "30 min", "45 s". */
function formatDuration(seconds) {
  const units = [
    ["d", 86400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ];
  const parts = [];
  for (const [name, size] of units) {
    const number = Math.floor(seconds / size);
    if (number) parts.push(`${formatNumber(number)} ${name}`);
    seconds -= number * size;
  }
  return parts.slice(0, 2).join(" ");
}

/* The longest time and the most GPU hours of one run. */
function describeBound(cell, isScheduled) {
  if (!cell.deadline) return ["no deadline"];
  const time = `at most ${formatDuration(cell.deadline)}${isScheduled ? ", each time" : ""}`;
  return cell.gpuSeconds > 0 ? [time, `${formatHours(cell.gpuSeconds)} GPU hours`] : [time];
}

function makeLongestRuns(runs, currency) {
  if (!runs.length) return null;
  const amount = ({ cell }) => (currency ? cell.cost : cell.gpuSeconds);
  const sorted = [...runs].sort((one, other) => amount(other) - amount(one));
  const makeRun = ({ cell, scheduled }) =>
    make(
      "li",
      {},
      makeJobLink(cell.job, cell.name),
      make(
        "span",
        { class: "hint" },
        [count(cell.gpus, "GPU"), ...describeBound(cell, scheduled)].join(" · "),
      ),
      currency ? make("b", { class: "run-cost" }, `${formatMoney(cell.cost)} ${currency}`) : null,
    );
  const fillContent = () => makeLongList(make("ul", { class: "cost-runs" }), sorted, makeRun);
  return makeFold({ class: "decision" }, [`${count(runs.length, "job")} with a deadline`], fillContent, false);
}

function makeUnknownRuns(runs, currency) {
  if (!runs.length) return null;
  const explain = (cell) => (cell.deadline ? "no price for its resources" : "no deadline");
  const makeRun = ({ cell }) =>
    make(
      "li",
      {},
      makeJobLink(cell.job, cell.name),
      make("span", { class: "hint" }, [count(cell.gpus, "GPU"), explain(cell)].join(" · ")),
    );
  const title = `${count(runs.length, "job")} with unknown ${currency ? "cost" : "duration"}`;
  const fillContent = () => makeLongList(make("ul", { class: "cost-runs" }), runs, makeRun);
  return makeFold({ class: "decision" }, [title], fillContent, runs.length <= 10);
}
