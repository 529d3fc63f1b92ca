/* Queues and cohorts: quota, use and what waits, as Kueue would decide; and what runs cost at most. */

/* Decisions of Kueue, those that need somebody first. */
const DECISIONS = [
  ["never", { label: "never admitted", icon: "ban", tone: "bad" }],
  ["waits", { label: "waits", icon: "clock", tone: "warn" }],
  ["preempts", { label: "preempts", icon: "bolt", tone: "warn" }],
  ["borrows", { label: "borrows", icon: "check", tone: "note" }],
  ["admitted", { label: "admitted", icon: "check", tone: "good" }],
  ["running", { label: "runs already", icon: "play", tone: "good" }],
  ["unmanaged", { label: "not managed by Kueue", icon: "dash", tone: "note" }],
];

function describeDecision(name) {
  const found = DECISIONS.find(([decision]) => name === decision);
  return found ? found[1] : { label: name, icon: "info", tone: "note" };
}

function decisionOrder(name) {
  const found = DECISIONS.findIndex(([decision]) => name === decision);
  return found < 0 ? DECISIONS.length : found;
}

function showCapacity(model, place, route) {
  if (!model.capacity) {
    const hint =
      "Export the queues of the cluster to the folder that cluster.state of an overlay names, or give --prices.";
    return void show(place, makePage("Capacity", null, makeEmpty("No queues among the files", hint)));
  }
  const used = [
    ...new Set(
      [...model.capacity.quotas, ...model.capacity.workloads, ...model.capacity.costs].map((row) => row.environment),
    ),
  ].sort((one, other) => one - other);
  const env = used.find((each) => model.environments[each] === route.query.env) ?? used[0];
  const own = (rows) => rows.filter((row) => row.environment === env || row.environment === NONE);
  const quotas = own(model.capacity.quotas);
  const workloads = own(model.capacity.workloads);
  const choice =
    used.length > 1
      ? make(
          "div",
          { class: "controls" },
          makeChoice(
            "Environment",
            used.map((each) => [model.environments[each], model.environments[each]]),
            model.environments[env],
            (name) => goTo(["capacity"], { env: name }),
          ),
        )
      : null;
  show(
    place,
    makePage(
      "Capacity",
      summarizeWorkloads(workloads) || model.environments[env],
      choice,
      listCohorts(quotas).map(([cohort, rows]) => makeCohort(cohort, rows)),
      workloads.length ? makeWorkloads(model, workloads) : null,
      makeCosts(own(model.capacity.costs), model),
      makeNotes(own(model.capacity.notes)),
    ),
  );
}

function summarizeWorkloads(workloads) {
  if (!workloads.length) return "";
  const counts = orderByCount(workloads, (row) => row.decision).sort(
    (one, other) => decisionOrder(one[0]) - decisionOrder(other[0]),
  );
  return `${count(workloads.length, "workload")}: ${counts.map(([decision, number]) => `${number} ${describeDecision(decision).label}`).join(", ")}`;
}

/* Return the rows by cohort; queues without a cohort come last. */
function listCohorts(quotas) {
  const cohorts = new Map();
  for (const row of quotas) {
    const name = row.kind === "Cohort" ? row.name : row.cohort;
    if (!cohorts.has(name)) cohorts.set(name, []);
    cohorts.get(name).push(row);
  }
  return [...cohorts].sort(([one], [other]) => (one === "") - (other === "") || (one < other ? -1 : 1));
}

function makeCohort(name, rows) {
  const own = rows.filter((row) => row.kind === "Cohort");
  const queues = new Map();
  for (const row of rows.filter((each) => each.kind !== "Cohort")) {
    if (!queues.has(row.name)) queues.set(row.name, []);
    queues.get(row.name).push(row);
  }
  const scale = new Map();
  for (const row of rows) {
    const nominal = row.nominal >= UNLIMITED ? 0 : row.nominal;
    scale.set(row.resource, Math.max(scale.get(row.resource) || 0, nominal, row.used + row.waiting));
  }
  const cards = [...queues].map(([queue, quotas]) => makeQueue(queue, quotas, scale));
  return make(
    "section",
    { class: "panel cohort" },
    make("h2", {}, name ? ["Cohort ", name] : "Queues without a cohort"),
    own.length
      ? make(
          "div",
          { class: "queue" },
          make("h3", {}, "Quota of the cohort itself"),
          own.map((row) => makeQuota(row, scale)),
        )
      : null,
    make("div", { class: "queues" }, cards),
  );
}

function makeQueue(name, rows, scale) {
  const order = (row) => (/gpu/i.test(row.resource) ? 0 : 1);
  const sorted = [...rows].sort((one, other) => order(one) - order(other));
  return make(
    "div",
    { class: "queue" },
    make("h3", {}, name),
    sorted.map((row) => makeQuota(row, scale)),
  );
}

const ROOM_AFTER_QUOTA = 1.04;

/* One quota: a bar of what is used, borrowed and waiting, with a line at the nominal quota. */
function makeQuota(row, scale) {
  const largest = (scale.get(row.resource) || 1) * ROOM_AFTER_QUOTA;
  const share = (amount) => `${(Math.min(amount, largest) / largest) * 100}%`;
  const own = Math.max(0, row.used - row.borrowed);
  const bar = make("div", { class: "meter", role: "img", "aria-label": describeQuota(row) });
  const parts = [
    ["own", own],
    ["borrowed", row.borrowed],
    ["waiting", row.waiting],
  ].filter(([, amount]) => amount > 0);
  for (const [name, amount] of parts) {
    const part = make("span", { class: `meter-${name}` });
    part.style.width = share(amount);
    bar.append(part);
  }
  if (row.nominal < UNLIMITED) {
    const limit = make("span", { class: "meter-nominal" });
    limit.style.left = share(row.nominal);
    bar.append(limit);
  }
  return make(
    "div",
    { class: "quota" },
    make(
      "div",
      { class: "quota-head" },
      make(
        "span",
        { class: "quota-name" },
        row.resource,
        row.flavor ? make("span", { class: "hint" }, row.flavor) : null,
      ),
      make(
        "span",
        { class: "quota-text" },
        make("b", {}, formatAmount(row.resource, row.used)),
        ` of ${formatAmount(row.resource, row.nominal)}`,
      ),
    ),
    bar,
    make(
      "p",
      { class: "hint" },
      [
        ["borrowed", row.borrowed],
        ["lent", row.lent],
        ["waiting", row.waiting],
      ]
        .filter(([, amount]) => amount > 0)
        .map(([label, amount]) => `${formatAmount(row.resource, amount)} ${label}`)
        .join(", ") || "nothing waits",
    ),
  );
}

function describeQuota(row) {
  const amount = (number) => formatAmount(row.resource, number);
  return `${row.resource}: ${amount(row.used)} used of ${amount(row.nominal)}, ${amount(row.borrowed)} borrowed, ${amount(row.waiting)} waiting`;
}

/* The largest amount of Kueue, which numbers of JavaScript cannot hold exactly, means that there is no limit. */
const UNLIMITED = 9.2e18;

/* CPUs are thousandths, memory is bytes. */
function formatAmount(resource, amount) {
  if (amount >= UNLIMITED) return "unlimited";
  if (resource === "cpu") return formatNumber(amount / 1000);
  if (!/memory|storage/.test(resource)) return formatNumber(amount);
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (Math.abs(amount) >= 1024 && unit < units.length - 1) {
    amount /= 1024;
    unit++;
  }
  return `${formatNumber(amount)} ${units[unit]}`;
}

const MAX_WORKLOADS = 200;

/* What waits and what is never admitted first, with the reason and the smallest change. */
function makeWorkloads(model, workloads) {
  const groups = new Map();
  for (const row of workloads) {
    if (!groups.has(row.decision)) groups.set(row.decision, []);
    groups.get(row.decision).push(row);
  }
  const sorted = [...groups].sort(([one], [other]) => decisionOrder(one) - decisionOrder(other));
  return make(
    "section",
    { class: "panel" },
    make("h2", {}, "Decisions"),
    sorted.map(([decision, rows]) => makeDecision(model, decision, rows)),
  );
}

function makeDecision(model, decision, rows) {
  const { label, icon, tone } = describeDecision(decision);
  const isOpen = tone !== "good" && rows.length <= 40;
  const items = rows
    .slice(0, MAX_WORKLOADS)
    .map((row) =>
      make(
        "li",
        { class: "workload" },
        make(
          "span",
          { class: "workload-name" },
          makeWorkloadName(model, row),
          make(
            "span",
            { class: "hint" },
            [row.kind, row.namespace, row.clusterQueue || row.queue].filter(Boolean).join(" · "),
          ),
        ),
        make(
          "span",
          { class: "workload-reason" },
          make("span", {}, makeMessage(row.reason)),
          row.change
            ? make("span", { class: "workload-change" }, makeIcon("right"), make("span", {}, makeMessage(row.change)))
            : null,
        ),
      ),
    );
  return make(
    "details",
    { class: "decision", open: isOpen },
    make(
      "summary",
      {},
      make("span", { class: `badge tone-${tone}` }, makeIcon(icon), label),
      make("span", { class: "hint" }, count(rows.length, "workload")),
    ),
    make(
      "ul",
      { class: "workloads" },
      items,
      rows.length > MAX_WORKLOADS ? make("li", { class: "hint" }, `and ${rows.length - MAX_WORKLOADS} more`) : null,
    ),
  );
}

/* The name of a workload leads to its job, if a job of the page makes it. */
function makeWorkloadName(model, row) {
  const cell = model.cells[row.cell];
  return cell
    ? make("a", { class: "job-name", href: formatRoute(["job", jobKey(cell.job)]) }, row.name)
    : make("b", {}, row.name);
}

/* GPU hours and cost of runs that have a deadline; the others have no end that Git knows. */
function makeCosts(costs, model) {
  if (!costs.length) return null;
  const currency = model.head.currency;
  const head = ["", "Jobs", "With a deadline", "GPU hours at most", ...(currency ? [`${currency} at most`] : [])];
  const values = (row) => [
    row.jobs,
    row.bounded,
    row.bounded ? row.gpuSeconds / 3600 : NONE,
    ...(currency ? [row.cost < 0 || !row.bounded ? NONE : row.cost / 1000] : []),
  ];
  const rows = costs.map((row) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, row.name || UNSET, make("span", { class: "hint" }, ` ${row.by}`)),
      values(row).map((value) => make("td", {}, value < 0 ? "not known" : formatNumber(value))),
    ),
  );
  return make(
    "section",
    { class: "panel" },
    make("h2", {}, "GPU hours and cost"),
    make("p", { class: "hint" }, "Only runs with a deadline have a bound. Git does not know how long the others run."),
    make(
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
    ),
  );
}

function makeNotes(notes) {
  if (!notes.length) return null;
  return make(
    "section",
    { class: "panel notes" },
    make("h2", {}, "What this assumes"),
    make(
      "ul",
      {},
      notes.map((note) => make("li", {}, note.text)),
    ),
  );
}
