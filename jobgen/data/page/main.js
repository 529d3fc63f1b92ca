/* Routes, keyboard and theme. The address says everything that is shown, so every view can be sent to somebody. */

/* `#/job/name?env=prod` as parts and query. */
function parseRoute(hash) {
  const [path, search] = hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decodePart);
  return { parts, query: Object.fromEntries(new URLSearchParams(search || "")) };
}

function decodePart(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function formatRoute(parts, query) {
  const set = Object.entries(query || {}).filter(([, value]) => value);
  const search = set.length ? `?${new URLSearchParams(set)}` : "";
  return `#/${parts.map(encodeURIComponent).join("/")}${search}`;
}

function goTo(parts, query) {
  location.hash = formatRoute(parts, query);
}

/* Change the address without a new entry in the history, and without drawing the view again. */
function replaceRoute(parts, query) {
  history.replaceState(null, "", formatRoute(parts, query));
}

/* Change the address with a new entry in the history, and without drawing the view again. */
function pushRoute(parts, query) {
  const address = formatRoute(parts, query);
  if (address !== location.hash) history.pushState(null, "", address);
}

/* Say something to a screen reader. */
function announce(text) {
  document.getElementById("status").textContent = text;
}

/* The views in the order of the navigation; a view without data is not offered. */
const VIEWS = [
  { name: "changes", label: "Pull request", show: showChanges, has: (model) => Boolean(model.changes) },
  { name: "fleet", label: "Fleet", show: showFleet, has: (model) => model.hasFleet },
  { name: "gpus", label: "GPUs", show: showUsage, has: (model) => model.hasFleet },
  { name: "findings", label: "Findings", show: showFindings, has: (model) => model.hasFleet },
  { name: "capacity", label: "Capacity", show: showCapacity, has: (model) => model.hasFleet || model.isTimeline },
  { name: "job", label: "Job", show: showJob, has: () => false },
];

function startPage() {
  const model = buildModel(new PageData(JSON.parse(document.getElementById("data").textContent)));
  const views = VIEWS.filter((view) => view.has(model));
  const content = document.getElementById("content");
  const { title } = document;
  let actions = {};
  show(document.getElementById("repository"), model.head.name || "jobgen");
  show(document.getElementById("revision"), describeRevision(model));
  const links = views.map((view) => make("a", { href: formatRoute([view.name]) }, view.label));
  show(document.getElementById("views"), links);

  function showRoute() {
    const route = parseRoute(location.hash);
    const offered = model.hasFleet ? [...views, VIEWS.at(-1)] : views;
    const view = offered.find((each) => each.name === route.parts[0]) || views[0];
    const current = view.name === "job" ? "fleet" : view.name;
    links.forEach((link, index) => {
      if (views[index].name === current) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    });
    const hadFocus = content.contains(document.activeElement);
    content.scrollTop = 0;
    content.className = `view-${view.name}`;
    document.title = `${title} — ${view.name === "job" ? route.parts[1] : view.label}`;
    actions = view.show(model, content, route) || {};
    if (hadFocus && !content.contains(document.activeElement)) content.focus({ preventScroll: true });
  }
  window.addEventListener("hashchange", showRoute);
  window.addEventListener("beforeprint", () => actions.print && actions.print(true));
  window.addEventListener("afterprint", () => actions.print && actions.print(false));
  listenToKeys(views, () => actions);
  startTheme();
  showRoute();
  performance.mark("ready");
  document.documentElement.dataset.ready = "true";
}

/* The revision, and how many files differ from it. */
function describeRevision(model) {
  const changed = model.changedFiles.size;
  return [
    (model.head.revision || "").slice(0, 10),
    changed
      ? make("span", { class: "uncommitted", title: [...model.changedFiles].join("\n") }, `+ ${count(changed, "file")}`)
      : null,
  ];
}

function listenToKeys(views, getActions) {
  const dialog = document.getElementById("shortcuts");
  const keys = {
    "/": () => getActions().search?.focus(),
    j: () => getActions().move?.(1),
    k: () => getActions().move?.(-1),
    d: () => getActions().differences?.(),
    t: switchTheme,
    c: copyLink,
    "?": () => showHelp(dialog),
  };
  document.getElementById("help").addEventListener("click", () => showHelp(dialog));
  document.getElementById("link").addEventListener("click", copyLink);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    const isTyping = event.target.closest("input, select, textarea");
    if (event.key === "Escape") return leave(event.target, isTyping, getActions());
    if (isTyping) return moveFromSearch(event, getActions());
    if (event.key === "Enter" && !event.target.closest("a, button, summary")) return getActions().open?.();
    const view = views[Number(event.key) - 1];
    const action = keys[event.key] || (view && (() => goTo([view.name])));
    if (!action) return;
    event.preventDefault();
    action();
  });
}

/* From the search field, Enter and the arrow go to the rows. */
function moveFromSearch(event, actions) {
  if (event.target.type !== "search" || !["Enter", "ArrowDown"].includes(event.key)) return;
  event.preventDefault();
  actions.move?.(1);
}

function leave(target, isTyping, actions) {
  if (actions.close && actions.close()) return;
  if (isTyping && target.type !== "search") return target.blur();
  if (actions.reset) {
    actions.reset();
    target.blur();
  } else if (actions.back) actions.back();
}

const THEMES = { system: "System", light: "Light", dark: "Dark" };

function readTheme() {
  try {
    return localStorage.getItem("jobgen-theme") || "system";
  } catch {
    return "system"; // a page of a file may have no storage
  }
}

function setTheme(theme) {
  const root = document.documentElement;
  if (theme === "system") delete root.dataset.theme;
  else root.dataset.theme = theme;
  const button = document.getElementById("theme");
  show(button, makeIcon("contrast"), make("span", { class: "theme-name" }, THEMES[theme]));
  button.setAttribute("aria-label", `${THEMES[theme]} theme`);
}

function switchTheme() {
  const names = Object.keys(THEMES);
  const current = document.documentElement.dataset.theme || "system";
  const next = names[(names.indexOf(current) + 1) % names.length];
  try {
    localStorage.setItem("jobgen-theme", next);
  } catch {
    // The theme then lasts until the page is closed.
  }
  setTheme(next);
}

function startTheme() {
  const theme = readTheme();
  setTheme(Object.hasOwn(THEMES, theme) ? theme : "system");
  document.getElementById("theme").addEventListener("click", switchTheme);
}

startPage();
