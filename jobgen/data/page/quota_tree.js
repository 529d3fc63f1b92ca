/* Quota as a tree: cohorts in cohorts, their queues, and the resources of each in each flavor. */

const OPEN_QUEUES = 30;
const SHOWN_QUOTAS = 6;
const ROOM_AFTER_QUOTA = 1.04;

/* The largest amount of Kueue, which numbers of JavaScript cannot hold exactly, means that there is no limit. */
const UNLIMITED = 9.2e18;

/* Return nodes by kind and name, each with its rows and the nodes below it; the roots come first. */
function buildQuotaTree(rows) {
  const nodes = new Map();
  const find = (kind, name) => {
    const key = `${kind}/${name}`;
    if (!nodes.has(key)) nodes.set(key, { kind, name, rows: [], cohorts: [], queues: [], parent: "" });
    return nodes.get(key);
  };
  for (const row of rows) {
    const node = find(row.kind, row.name);
    node.rows.push(row);
    node.parent = row.cohort;
  }
  const all = [...nodes.values()];
  for (const node of all) {
    if (!node.parent || node.parent === node.name) continue;
    const parent = find("Cohort", node.parent);
    parent[node.kind === "Cohort" ? "cohorts" : "queues"].push(node);
  }
  return [...nodes.values()];
}

function makeQuotaTree(rows, words) {
  const nodes = buildQuotaTree(rows);
  const scale = measureQuotas(rows);
  const roots = nodes.filter((node) => node.kind === "Cohort" && (!node.parent || isInCycle(node, nodes)));
  const alone = nodes.filter((node) => node.kind !== "Cohort" && !node.parent);
  const kept = (node) => keepQuotas(node, words);
  const parts = roots.map(kept).filter(Boolean);
  if (alone.length) {
    const free = kept({ kind: "", name: "", rows: [], cohorts: [], queues: alone });
    if (free) parts.push(free);
  }
  if (!parts.length) return makeEmpty("No queue matches", "Clear the search to see all queues.");
  const isOpen = parts.reduce((sum, part) => sum + countQueues(part), 0) <= OPEN_QUEUES;
  return make(
    "div",
    { class: "cohorts" },
    makeQuotaLegend(),
    parts.map((part) => makeCohort(part, scale, isOpen)),
  );
}

/* Cohorts whose parents form a cycle have no root; the first of them by name is shown as one. */
function isInCycle(node, nodes) {
  const parents = new Map(nodes.filter((each) => each.kind === "Cohort").map((each) => [each.name, each.parent]));
  const seen = [];
  for (let name = node.name; name && !seen.includes(name); name = parents.get(name)) seen.push(name);
  return parents.get(seen.at(-1)) === node.name && node.name === [...seen].sort()[0];
}

/* Return the part of a tree that has the words in the names of cohorts, queues, flavors and resources. */
function keepQuotas(node, words, above = "", seen = new Set()) {
  if (seen.has(node)) return null;
  seen.add(node);
  const path = `${above}\n${node.name}`;
  const rows = node.rows.filter((row) => matchesWords(words, path, row.flavor, row.resource));
  const cohorts = node.cohorts.map((each) => keepQuotas(each, words, path, seen)).filter(Boolean);
  const queues = node.queues.map((each) => keepQuotas(each, words, path, seen)).filter(Boolean);
  if (!rows.length && !cohorts.length && !queues.length) return null;
  return { ...node, rows, cohorts, queues };
}

function countQueues(node) {
  return node.queues.length + node.cohorts.reduce((sum, each) => sum + countQueues(each), 0);
}

/* The largest amount of each resource among queues, and among cohorts: bars of the same sort can be compared. */
function measureQuotas(rows) {
  const scale = new Map();
  for (const row of rows) {
    const key = `${row.kind}/${row.resource}`;
    const nominal = row.nominal >= UNLIMITED ? 0 : row.nominal;
    scale.set(key, Math.max(scale.get(key) || 0, nominal, row.used + row.waiting));
  }
  return scale;
}

function makeQuotaLegend() {
  const entry = (name, text) => make("li", {}, make("span", { class: `meter-key meter-${name}` }), text);
  return make(
    "ul",
    { class: "meter-legend", "aria-label": "Colors of the bars" },
    entry("own", "used"),
    entry("borrowed", "borrowed"),
    entry("waiting", "waiting"),
    entry("nominal", "nominal quota"),
  );
}

function makeCohort(node, scale, isOpen) {
  const waiting = [...node.rows, ...node.queues.flatMap((queue) => queue.rows)].filter((row) => row.waiting > 0);
  const summary = [
    make("h2", {}, node.name ? ["Cohort ", node.name] : "Queues without a cohort"),
    make("span", { class: "hint" }, [count(countQueues(node), "queue"), ...summarizeGpus(node.rows)].join(" · ")),
    waiting.length ? make("span", { class: "badge tone-warn" }, makeIcon("clock"), "jobs wait") : null,
  ];
  return makeFold({ class: "panel cohort" }, summary, () => makeCohortContent(node, scale, isOpen), isOpen);
}

/* "24 of 32 nvidia.com/gpu", for each flavor with accelerators. */
function summarizeGpus(rows) {
  return rows
    .filter((row) => isAccelerator(row.resource) && row.kind === "Cohort")
    .slice(0, 3)
    .map((row) => `${formatUse(row)} ${row.resource} in ${row.flavor}`);
}

function makeCohortContent(node, scale, isOpen) {
  const queues = make("div", { class: "queues" });
  return [
    node.rows.length
      ? make(
          "div",
          { class: "queue queue-sum" },
          make("h3", {}, "Sum of all queues and its own quota"),
          make("div", { class: "queues" }, makeQuotas(node.rows, scale)),
        )
      : null,
    node.cohorts.map((cohort) => makeCohort(cohort, scale, isOpen)),
    makeLongList(queues, node.queues, (queue) => makeQueue(queue, scale)),
  ];
}

function makeQueue(node, scale) {
  return make("div", { class: "queue" }, make("h3", {}, node.name), makeQuotas(node.rows, scale));
}

function isAccelerator(resource) {
  return resource.includes("/");
}

/* Accelerators and what waits first; the rest is folded if there is much of it. */
function makeQuotas(rows, scale) {
  const order = (row) => (row.waiting > 0 ? 0 : 2) + (isAccelerator(row.resource) ? 0 : 1);
  const sorted = [...rows].sort((one, other) => order(one) - order(other));
  const makeRow = (row) => makeQuota(row, scale);
  const rest = sorted.slice(SHOWN_QUOTAS);
  return [
    sorted.slice(0, SHOWN_QUOTAS).map(makeRow),
    rest.length
      ? makeFold(
          { class: "alike" },
          [`${rest.length} more`],
          () => make("div", { class: "queue" }, rest.map(makeRow)),
          false,
        )
      : null,
  ];
}

/* One quota: a bar of what is used, borrowed and waiting, with a line at the nominal quota. */
function makeQuota(row, scale) {
  const loans = describeLoans(row);
  return make(
    "div",
    { class: "quota" },
    makeQuotaHead(
      row.resource,
      row.flavor,
      formatAmount(row.resource, row.used),
      formatAmount(row.resource, row.nominal),
    ),
    makeMeter(row, (scale.get(`${row.kind}/${row.resource}`) || 1) * ROOM_AFTER_QUOTA),
    loans ? make("p", { class: "hint" }, loans) : null,
  );
}

function makeQuotaHead(name, hint, used, limit) {
  return make(
    "div",
    { class: "quota-head" },
    make("span", { class: "quota-name" }, name, hint ? make("span", { class: "hint" }, hint) : null),
    make("span", { class: "quota-text" }, make("b", {}, used), ` of ${limit}`),
  );
}

function makeMeter(row, largest) {
  const share = (amount) => `${(Math.min(amount, largest) / largest) * 100}%`;
  const bar = make("div", { class: "meter", role: "img", "aria-label": describeQuota(row) });
  const parts = [
    ["own", Math.max(0, row.used - row.borrowed)],
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
  return bar;
}

/* What is borrowed, lent and waiting; a limit where the queue is borrowing, or where jobs wait. */
function describeLoans(row) {
  const amount = (number) => formatAmount(row.resource, number);
  const parts = [];
  const matters = row.borrowed > 0 || row.waiting > 0;
  if (row.borrowed > 0) parts.push(`${amount(row.borrowed)} borrowed`);
  if (matters && row.borrowingLimit >= 0) parts.push(`borrows at most ${amount(row.borrowingLimit)}`);
  if (row.lent > 0) parts.push(`${amount(row.lent)} lent`);
  if (row.lendingLimit >= 0) parts.push(`lends at most ${amount(row.lendingLimit)}`);
  if (row.waiting > 0) parts.push(`${amount(row.waiting)} waiting`);
  return parts.join(", ");
}

function describeQuota(row) {
  return [`${row.resource} ${row.flavor}: ${formatUse(row)} used`, describeLoans(row)].filter(Boolean).join(", ");
}

function formatUse(row) {
  return `${formatAmount(row.resource, row.used)} of ${formatAmount(row.resource, row.nominal)}`;
}

const AMOUNT_FORMAT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 3 });

/* CPUs are thousandths, memory is bytes. */
function formatAmount(resource, amount) {
  if (amount >= UNLIMITED) return "unlimited";
  if (resource === "cpu") return AMOUNT_FORMAT.format(amount / 1000);
  if (!/memory|storage|hugepages/.test(resource)) return AMOUNT_FORMAT.format(amount);
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (Math.abs(amount) >= 1024 && unit < units.length - 1) {
    amount /= 1024;
    unit++;
  }
  return `${AMOUNT_FORMAT.format(amount)} ${units[unit]}`;
}
