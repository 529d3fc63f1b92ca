/* When jobs start and end: a row for each workload, what waits hatched, and how much of each flavor is used. */

const DAY_SECONDS = 86400;
const MAX_TICKS = 6;

const TIMELINE_STATES = {
  starts: { label: "starts", icon: "play", tone: "note" },
  running: { label: "running", icon: "play", tone: "note" },
  waits: { label: "waiting", icon: "clock", tone: "warn" },
  never: { label: "never admitted", icon: "ban", tone: "bad" },
  unmanaged: { label: "unmanaged", icon: "alert", tone: "warn" },
  finished: { label: "finished", icon: "check", tone: "note" },
};

const SORTS = ["spans", "longest", "before"];

/* The tables of timelines, joined. */
function joinTimelines(model, data) {
  const times = data.table("times").map((row) => ({ ...row, spans: [], longest: [], before: [], cell: model.cells[row.cell] }));
  for (const span of data.table("spans")) times[span.time][SORTS[span.sort]].push(span);
  const uses = data.table("uses").map((row) => ({ ...row, days: [] }));
  for (const day of data.table("useDays")) uses[day.use].days.push(day);
  return {
    heads: data.table("timelines"),
    times,
    uses,
    notes: data.table("timelineNotes"),
    missing: data.table("noTimelines"),
    whatIf: {
      changes: data.table("whatIfChanges"),
      heads: data.table("whatIfs"),
      balance: data.table("whatIfBalance"),
      rows: data.table("whatIfRows"),
    },
    leftOut: data.table("leftOut").map((row) => row.text),
  };
}

/* Everything of the tab for an environment. */
function listTimeline(model, env, words) {
  const { timelines } = model;
  const [head] = ofEnvironment(timelines.heads, env);
  if (!head) {
    const [missing] = ofEnvironment(timelines.missing, env);
    const reason = missing ? missing.reason : "there are no queues";
    return [makeEmpty(`No timeline for ${model.environments[env]}`, makeMessage(capitalize(`${reason}.`)))];
  }
  const rows = ofEnvironment(timelines.times, env).filter((row) => matchesWords(words, row.name, row.queue, row.state));
  const notes = ofEnvironment(timelines.notes, env);
  return [
    makeDeadlines(notes.filter((note) => note.kind !== "note")),
    makeTimelineLegend(head, rows),
    makeTimelineQueues(model, head, rows),
    makeUses(ofEnvironment(timelines.uses, env)),
    makeTimelineNotes(notes.filter((note) => note.kind === "note")),
  ].filter(Boolean);
}

function capitalize(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function makeDeadlines(notes) {
  if (!notes.length) return null;
  const makeItem = (note) => {
    const isMissed = note.kind === "deadline";
    const sign = { class: `badge tone-${isMissed ? "bad" : "warn"}` };
    return make("li", { class: "finding" }, make("span", sign, makeIcon(isMissed ? "cross" : "alert"), isMissed ? "missed" : "unknown"), make("p", {}, makeMessage(note.text)));
  };
  return make("section", { class: "panel" }, make("h2", {}, "Deadlines"), makeShortList({ class: "findings" }, notes, 20, makeItem));
}

function makeTimelineLegend(head, rows) {
  const entry = (name, text) => make("li", {}, make("span", { class: `meter-key span-${name}` }), text);
  const has = (test) => rows.some(test);
  return make(
    "ul",
    { class: "meter-legend", "aria-label": "Colors of the bars" },
    entry("run", "runs"),
    head.hasRanges ? entry("later", "can still run") : null,
    has((row) => row.spans.some((span) => span.evictedBy)) ? entry("lost", "is evicted, and its work is lost") : null,
    entry("wait", "waits"),
    has((row) => row.before.length) ? entry("before", "before the changes") : null,
  );
}

/* A panel for each queue, with a row for each of its workloads: those that start first come first. */
function makeTimelineQueues(model, head, rows) {
  if (!rows.length) return makeEmpty("No job matches", "Clear the search to see all jobs.");
  const queues = new Map();
  for (const row of rows) {
    if (!queues.has(row.queue)) queues.set(row.queue, []);
    queues.get(row.queue).push(row);
  }
  const first = (row) => (row.spans[0] ? row.spans[0].start : Infinity);
  return [...queues].sort().map(([queue, found]) => {
    const sorted = found.sort((one, other) => first(one) - first(other));
    const list = make("ol", { class: "schedule-rows" });
    return make(
      "section",
      { class: "panel schedule", "aria-label": `Runs in queue ${queue}` },
      make("h2", {}, queue ? ["Queue ", queue] : "Without a queue"),
      makeAxis(head),
      makeLongList(list, sorted, (row) => makeSchedule(model, head, row)),
    );
  });
}

/* The days, or the hours of a short time, above the bars. */
function makeAxis(head) {
  const marks = listTicks(head).map((time) => {
    const mark = make("span", { class: "tick" }, formatTick(time, head));
    mark.style.left = toShare(head, time);
    return mark;
  });
  return make("div", { class: "schedule-axis", "aria-hidden": "true" }, make("div", { class: "track-axis" }, marks));
}

const TICK_STEPS = [1, 2, 3, 6, 12, 24, 48, 72, 168, 336, 720, 2160, 8760];

function listTicks({ begin, until }) {
  const hours = (until - begin) / 3600;
  const step = (TICK_STEPS.find((each) => hours / each <= MAX_TICKS) || hours / MAX_TICKS) * 3600;
  const ticks = [];
  for (let time = Math.ceil(begin / step) * step; time < until; time += step) ticks.push(time);
  return ticks.filter((time) => (time - begin) / (until - begin) < 0.88);
}

const DAY_FORMAT = new Intl.DateTimeFormat("en-US", { month: "short", day: "numeric", timeZone: "UTC" });
const HOUR_FORMAT = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: "UTC" });

function formatTick(time) {
  const date = new Date(time * 1000);
  return time % DAY_SECONDS === 0 ? DAY_FORMAT.format(date) : HOUR_FORMAT.format(date);
}

function toShare({ begin, until }, time) {
  const length = Math.max(until - begin, 1);
  return `${(Math.min(Math.max(time - begin, 0), length) / length) * 100}%`;
}

/* A workload: its name and times, and its bars. */
function makeSchedule(model, head, row) {
  const state = TIMELINE_STATES[row.state] || { label: row.state, icon: "info", tone: "note" };
  const times = [row.starts, row.ends].filter(Boolean).join(" to ");
  return make(
    "li",
    { class: "schedule-row" },
    make(
      "div",
      { class: "schedule-name" },
      make("span", { class: "schedule-title" }, row.cell ? makeJobLink(row.cell.job, row.name) : make("b", {}, row.name)),
      makeScheduleState(head, row),
    ),
    makeTrack(head, row, [row.name, state.label, times].filter(Boolean).join(", ")),
    make("p", { class: "hint schedule-text" }, [times, row.length && `runs ${row.length}`].filter(Boolean).join(" · "), row.reason ? [times ? "; " : "", makeMessage(row.reason)] : null),
  );
}

/* What needs attention: a missed deadline, a wait, or that it never starts; nothing if it starts at once. */
function makeScheduleState(head, row) {
  const { label, icon, tone } = TIMELINE_STATES[row.state] || { label: row.state, icon: "info", tone: "note" };
  const makeBadge = (color, sign, text) => make("span", { class: `badge tone-${color}` }, makeIcon(sign), text);
  if (row.miss) return makeBadge("bad", "cross", "misses its deadline");
  if (row.state !== "starts") return makeBadge(tone, icon, label);
  const waited = sum(listWaits(head, row).map((wait) => wait.end - wait.start));
  return waited ? makeBadge("warn", "clock", `waits ${formatDuration(waited)}`) : null;
}

function makeTrack(head, row, label) {
  const track = make("div", { class: "track", role: "img", "aria-label": label });
  const add = (kind, start, end, isOpen) => {
    const bar = make("span", { class: `span-${kind}`, title: label });
    bar.style.left = toShare(head, start);
    bar.style.right = `calc(100% - ${toShare(head, isOpen ? head.until : end)})`;
    track.append(bar);
  };
  for (const wait of listWaits(head, row)) add("wait", wait.start, wait.end, false);
  // The longer runs are behind the shorter ones.
  for (const span of row.longest) add(span.evictedBy ? "lost" : "later", span.start, span.end, span.isOpen);
  for (const span of row.spans) add(span.evictedBy ? "lost" : "run", span.start, span.end, span.isOpen);
  for (const span of row.before) add("before", span.start, span.end, span.isOpen);
  for (const time of listTicks(head)) {
    const line = make("span", { class: "track-line" });
    line.style.left = toShare(head, time);
    track.prepend(line);
  }
  return track;
}

/* The times in which a workload neither runs nor has ended. */
function listWaits({ begin, until }, row) {
  if (row.state === "finished" || row.state === "unmanaged") return [];
  const waits = [];
  let from = begin;
  for (const span of row.spans) {
    if (span.start > from) waits.push({ start: from, end: span.start });
    from = span.isOpen ? until : span.end;
    if (!span.evictedBy) return waits;
  }
  if (from < until) waits.push({ start: from, end: until });
  return waits;
}

/* How much of the quota of each flavor is used on each day. */
function makeUses(uses) {
  if (!uses.length) return null;
  const makeUse = (use) => {
    const columns = use.days.map(({ day, percent }) => {
      const bar = make("span", { class: percent > 100 ? "use-exceeded" : "use-bar" });
      bar.style.height = `${Math.min(percent, 100)}%`;
      return make("li", { title: `${day}: ${percent}%` }, make("span", { class: "use-column" }, bar), make("span", { class: "hidden-text" }, `${day}: ${percent}%`));
    });
    const [first, last] = [use.days[0], use.days.at(-1)].map((found) => found && DAY_FORMAT.format(new Date(found.day)));
    return make(
      "div",
      { class: "quota" },
      makeQuotaHead(use.resource, use.flavor, `${use.total}%`, formatAmount(use.resource, use.nominal)),
      make("ol", { class: "use-days" }, columns),
      make("p", { class: "hint use-range" }, make("span", {}, first), first === last ? null : make("span", {}, last)),
    );
  };
  return make(
    "section",
    { class: "panel" },
    make("h2", {}, "Use of the quota by day"),
    makeLongList(make("div", { class: "queues" }), uses, makeUse),
  );
}

function makeTimelineNotes(notes) {
  if (!notes.length) return null;
  const items = notes.map((note) => make("li", {}, makeMessage(note.text)));
  return make("section", { class: "panel notes" }, make("h2", {}, "Assumptions"), make("ul", {}, items));
}
