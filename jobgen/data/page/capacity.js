/* Capacity of an environment: its queues and cohorts, what Kueue decides, when jobs run, and what changes do. */

/* The tabs; the page of a timeline has no queues. */
const TABS = [
  { name: "", label: "Queues", list: listResults, has: (model) => model.hasFleet, search: "Search queues, flavors, jobs" },
  { name: "timeline", label: "Timeline", list: listTimeline, has: () => true, search: "Search jobs, queues" },
  {
    name: "what-if",
    label: "What if",
    list: listWhatIf,
    has: (model) => model.hasFleet || model.timelines.whatIf.changes.length > 0,
  },
];

function showCapacity(model, place, route) {
  const tabs = TABS.filter((tab) => tab.has(model));
  const tab = tabs.find((each) => each.name === (route.query.tab || "")) || tabs[0];
  const query = { env: route.query.env || "", tab: route.query.tab || "", q: route.query.q || "" };
  const env = chooseEnvironment(model, query.env);
  const results = make("div", { class: "results" });
  const search = make("input", {
    type: "search",
    class: "search",
    placeholder: tab.search || "Search",
    "aria-label": tab.search || "Search",
    value: query.q,
    onInput: () => update(search.value.trim()),
  });

  function update(text) {
    query.q = text;
    replaceRoute(["capacity"], query);
    show(results, tab.list(model, env, toWords(text)));
  }

  const [head] = ofEnvironment(model.timelines.heads, env);
  const summary = tab.name === "timeline" && head ? head.summary : summarizeWorkloads(ofEnvironment(model.capacity.workloads, env));
  const lead = [model.environments[env], summary];
  show(
    place,
    makePage(
      "Capacity",
      lead.filter(Boolean).join(" · "),
      tabs.length > 1 ? makeTabs(tabs, tab, query) : null,
      makeLeftOut(model),
      makeCapacityControls(model, env, query, tab.search ? search : null),
      results,
    ),
  );
  show(results, tab.list(model, env, toWords(query.q)));
  return {
    search: tab.search ? search : null,
    reset: () => {
      search.value = "";
      update("");
    },
    print: (isPrinting) => isPrinting && openFolds(results),
  };
}

/* Return the number of the environment to show: the one of the address, else the first one with queues, or with errors. */
function chooseEnvironment(model, name) {
  const named = model.environments.indexOf(name);
  if (named >= 0) return named;
  const rows = [...model.capacity.quotas, ...model.capacity.notes, ...model.timelines.heads];
  const known = new Set(rows.map((row) => row.environment));
  return known.size ? Math.min(...known) : 0;
}

function ofEnvironment(rows, env) {
  return rows.filter((row) => row.environment === env);
}

function toWords(text) {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

/* Whether all words are in the texts together. */
function matchesWords(words, ...texts) {
  const whole = texts.join("\n").toLowerCase();
  return words.every((word) => whole.includes(word));
}

function makeTabs(tabs, current, query) {
  const links = tabs.map((tab) => {
    const href = formatRoute(["capacity"], { ...query, tab: tab.name, q: "" });
    return make("a", { href, "aria-current": tab === current ? "page" : null }, tab.label);
  });
  return make("nav", { class: "tabs", "aria-label": "Capacity" }, links);
}

/* What the page of a timeline leaves out. */
function makeLeftOut({ timelines }) {
  if (!timelines.leftOut.length) return null;
  const items = timelines.leftOut.map((text) => make("li", {}, "Left out, because of errors: ", makeMessage(text)));
  return make("ul", { class: "change-notes tone-warn" }, items);
}

function makeCapacityControls(model, env, query, search) {
  const names = model.environments.map((name) => [name, name || UNSET]);
  if (names.length < 2 && !search) return null;
  return make(
    "div",
    { class: "controls" },
    names.length > 1
      ? makeChoice("Environment", names, model.environments[env], (name) => goTo(["capacity"], { ...query, env: name }))
      : null,
    search,
  );
}

function listResults(model, env, words) {
  const { capacity } = model;
  const quotas = ofEnvironment(capacity.quotas, env);
  const workloads = ofEnvironment(capacity.workloads, env);
  const notes = ofEnvironment(capacity.notes, env);
  const errors = notes.filter((note) => note.level === "error");
  const parts = [
    errors.length ? makeQueueErrors(errors) : null,
    quotas.length ? makeQuotaTree(quotas, words) : null,
    makeWorkloads(model, workloads, words),
    makeLimits(model, env, words),
    makeCosts(model, env, words),
    makeNotes(model, env, notes, quotas.length > 0),
  ].filter(Boolean);
  if (!quotas.length && !errors.length) parts.unshift(makeNoQueues(model.environments[env]));
  return parts;
}

function makeNoQueues(env) {
  const title = env ? `No quota data for ${env}` : "No quota data";
  const hint = [
    "Export ClusterQueues, LocalQueues, ResourceFlavors and Cohorts to a folder, and write its path as ",
    make("code", {}, "cluster.state"),
    " in the overlay; docs/kueue.md of jobgen shows how.",
  ];
  return makeEmpty(title, hint);
}

function makeQueueErrors(errors) {
  return make(
    "section",
    { class: "panel queue-errors" },
    make("h2", {}, makeSeverity("error", "The queues cannot be read")),
    make("p", { class: "hint" }, "Fix these errors to see what Kueue decides in this environment:"),
    make(
      "ul",
      {},
      errors.map((error) => make("li", {}, makeMessage(error.text))),
    ),
  );
}

/* What the decision assumes and leaves out: never hidden, because the numbers depend on it. */
function makeNotes(model, env, notes, hasQueues) {
  const broken = model.cells.filter((cell) => cell.env === env && cell.state === "broken").length;
  const texts = notes.filter((note) => note.level !== "error").map((note) => note.text);
  if (broken && hasQueues) texts.unshift(`${count(broken, "job")} cannot be rendered and ${broken === 1 ? "is" : "are"} not counted`);
  if (!texts.length) return null;
  return make(
    "section",
    { class: "panel notes" },
    make("h2", {}, "Assumptions"),
    make(
      "ul",
      {},
      texts.map((text) => make("li", {}, makeMessage(text))),
    ),
  );
}

const FOLDS = new WeakMap();

/* Details whose content is made when they are opened: there may be thousands of them. */
function makeFold(attributes, summary, fillContent, isOpen) {
  const content = make("div", { class: "fold-content" });
  const fillOnce = () => {
    if (!content.firstChild) append(content, [fillContent()]);
  };
  // A click fills it before it opens; the browser reports `toggle` later, so that it would be empty for a moment.
  const head = make("summary", { onClick: fillOnce }, summary);
  const fold = make("details", { ...attributes, open: isOpen }, head, content);
  FOLDS.set(fold, fillOnce);
  fold.addEventListener("toggle", () => fold.open && fillOnce());
  if (isOpen) fillOnce();
  return fold;
}

/* Open everything, also what becomes visible by that, for paper. */
function openFolds(place) {
  for (let closed = place.querySelectorAll("details:not([open])"); closed.length; ) {
    for (const fold of closed) {
      FOLDS.get(fold)?.();
      fold.open = true;
    }
    closed = place.querySelectorAll("details:not([open])");
  }
}

const PAGE_SIZE = 100;

/* A long list in steps: the first rows, and a button for the next ones. */
function makeLongList(list, rows, makeRow) {
  let shown = 0;
  const more = make("button", { type: "button", class: "more", onClick: () => showMore(true) });
  function showMore(isClick) {
    const first = shown;
    const next = rows.slice(shown, shown + PAGE_SIZE);
    shown += next.length;
    append(list, next.map(makeRow));
    more.hidden = shown >= rows.length;
    show(more, `Show ${formatNumber(Math.min(PAGE_SIZE, rows.length - shown))} more of ${formatNumber(rows.length)}`);
    if (isClick) list.children[first]?.querySelector("a, button, summary")?.focus();
  }
  showMore(false);
  return [list, more];
}
