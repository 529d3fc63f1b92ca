/* A pull request: what starts, stops, restarts, is rejected or changes nothing, and why. */

/* Effects, the most severe first; `text` is what the effect means. Red is for what stops or loses work. */
const EFFECTS = [
  ["rejected", { label: "rejected", icon: "ban", tone: "warn", text: "The cluster rejects it; nothing is applied" }],
  ["stops-running", { label: "stops", icon: "stop", tone: "bad", text: "A job that may be running is stopped" }],
  ["restart", { label: "restarts", icon: "restart", tone: "bad", text: "A running job is stopped and started again" }],
  ["new-run", { label: "starts", icon: "play", tone: "good", text: "Training starts from the beginning" }],
  ["no-effect", { label: "next run", alone: "next run only", icon: "clock", tone: "note", text: "Running pods keep the old value; the next run uses the new one" }],
  ["in-place", { label: "applied in place", icon: "edit", tone: "note", text: "Applied; no job stops or starts" }],
  ["ignored", { label: "ignored", icon: "dash", tone: "note", text: "Nothing in the cluster changes" }],
];

function describeEffect(name) {
  const found = EFFECTS.find(([effect]) => effect === name);
  return found ? found[1] : { label: name, icon: "info", tone: "note", text: "" };
}

function effectOrder(name) {
  const found = EFFECTS.findIndex(([effect]) => effect === name);
  return found < 0 ? EFFECTS.length : found;
}

/* The sign of an effect; of `several`, the next run is not the only one that uses a change. */
function makeEffect(name, several = false) {
  const { label, alone = label, icon, tone, text } = describeEffect(name);
  const shown = several ? label : alone;
  return make("span", { class: `badge tone-${tone}`, title: text }, makeIcon(icon), shown);
}

function showChanges(model, place, route) {
  const { changes } = model;
  const names = make("span", { class: "revisions" }, make("code", {}, `${model.head.base} → ${model.head.head}`));
  if (model.head.failed) return void show(place, makePage("Pull request", names, makeFailures(changes, true)));
  const list = new ChangeList(model, route);
  show(
    place,
    makePage(
      "Pull request",
      [names, makeSummary(model)],
      makeFailures(changes, false),
      makeChangeNotes(changes.notes.filter((note) => note.isLimit)),
      makeDangers(changes),
      make("div", { class: "columns" }, makeTotals(changes.totals), makeCauses(changes.causes)),
      list.element,
      makeFindingChanges(changes),
      makeQueueChanges(changes),
    ),
  );
  list.reveal();
  return {
    search: list.search,
    move: (step) => list.move(step),
    open: () => list.open(),
    reset: () => list.reset(),
    print: (isPrinting) => list.print(isPrinting),
  };
}

/* How many objects change, in the words of the other formats. */
function makeSummary({ head, changes }) {
  const objects = ["added", "removed", "changed", "unchanged"].map((name) => `${formatNumber(head[name])} ${name}`);
  const findings = [count(countEntries(changes.added), "new finding"), `${formatNumber(countEntries(changes.fixed))} fixed`];
  const isLinted = !changes.notes.some((note) => note.isLimit && !note.env);
  const gpus = head.stoppedGpus ? `, which ${head.stoppedJobs === 1 ? "holds" : "hold"} ${count(head.stoppedGpus, "GPU")}` : "";
  return [
    make("span", { class: "summary-line" }, [...objects, ...(isLinted ? findings : [])].join(", ")),
    head.stoppedJobs
      ? make("span", { class: "summary-line tone-text-bad" }, `This stops ${count(head.stoppedJobs, "job")}${gpus}.`)
      : null,
  ];
}

/* The errors of each side because of which nothing, or not everything, was compared. */
function makeFailures({ errors, sides }, isAll) {
  const title = isAll ? "cannot be rendered" : "has errors";
  const hint = isAll ? "Nothing was compared. Fix these errors first." : "What cannot be rendered was not compared.";
  return ["old", "new"]
    .filter((side) => errors[side].length)
    .map((side) =>
      make(
        "section",
        { class: "panel failure" },
        make("h2", { class: "tone-text-bad" }, makeIcon("alert"), ` ${sides[side].name} ${title}`),
        make("p", { class: "hint" }, hint),
        makeErrorList(errors[side], 100, sides[side]),
      ),
    );
}

function makeErrorList(errors, limit, side) {
  return makeShortList({ class: "findings" }, mergeEnvironments(errors), limit, (each) =>
    makeFinding(side, each, each.envs),
  );
}

function makeChangeNotes(notes) {
  if (!notes.length) return null;
  const items = notes.map((note) => make("li", {}, note.env ? `${note.env}: ` : "", makeMessage(note.text)));
  return make("ul", { class: "change-notes tone-warn", "aria-label": "Not compared" }, items);
}

/* A list of which the first items are shown, and a button that shows the others. Nothing is left out silently. */
function makeShortList(attributes, items, limit, makeItem) {
  const list = make("ul", attributes, items.slice(0, limit).map(makeItem));
  const rest = items.slice(limit);
  if (!rest.length) return list;
  const showRest = () => {
    more.remove();
    append(list, rest.map(makeItem));
  };
  const button = make("button", { type: "button", class: "quiet show-more", onClick: showRest }, `Show ${formatNumber(rest.length)} more`);
  const more = make("li", {}, button);
  list.append(more);
  return list;
}

/* Details whose content is drawn when they are opened. */
function makeLazyDetails(attributes, summary, makeContent) {
  const details = make("details", attributes, make("summary", {}, summary));
  details.draw = () => {
    if (details.childElementCount === 1) append(details, [makeContent()]);
  };
  details.addEventListener("toggle", () => details.open && details.draw());
  if (details.open) details.draw();
  return details;
}

/* A link to a change on this page. */
function makeChangeLink(change) {
  return make("a", { class: "change-link", href: formatRoute(["changes", change.key]) }, change.name);
}
