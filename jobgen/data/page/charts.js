/* Charts, drawn as SVG at the width that they have, so text keeps its size. */

const SERIES = 8;

/* What GPUs can be counted by. */
const DIMENSIONS = [
  { name: "team", label: "Team", of: (cell) => cell.job.team },
  { name: "queue", label: "Queue", of: (cell) => cell.queue },
  { name: "namespace", label: "Namespace", of: (cell) => cell.namespace },
  { name: "env", label: "Environment", of: (cell, model) => model.environments[cell.env] },
];

/* The view of GPUs: bars by one dimension split by another, and a treemap of the jobs. */
function showUsage(model, place, route) {
  const dimensions = chooseDimensions(model, route.query);
  const by = dimensions.find((each) => each.name === route.query.by) || dimensions[0];
  const others = dimensions.filter((each) => each !== by);
  const split =
    others.find((each) => each.name === route.query.split) || others.find((each) => each.name === "env") || others[0] || by;
  const env = model.environments.indexOf(route.query.env);
  const cells = model.jobs.flatMap((job) =>
    job.cells.filter((cell) => cell && cell.gpus && (env < 0 || cell.env === env)),
  );
  const choose = (change) => goTo(["gpus"], { by: by.name, split: split.name, env: route.query.env, ...change });
  const controls = make(
    "div",
    { class: "controls" },
    makeControl(
      "GPUs by",
      makeChoice(
        "GPUs by",
        dimensions.map((each) => [each.name, each.label]),
        by.name,
        (name) => choose({ by: name }),
      ),
    ),
    others.length
      ? makeControl(
          "split by",
          makeChoice(
            "split by",
            others.map((each) => [each.name, each.label]),
            split.name,
            (name) => choose({ split: name }),
          ),
        )
      : null,
    makeControl(
      "in",
      makeChoice(
        "in environment",
        [["", "all"], ...model.environments.map((name) => [name, name])],
        env < 0 ? "" : route.query.env,
        (name) => choose({ env: name }),
      ),
    ),
  );
  if (!cells.length) return void show(place, makePage("GPUs", null, controls, makeEmpty("No job requests GPUs here")));
  const total = cells.reduce((sum, cell) => sum + cell.gpus, 0);
  const addressOf = (name) => formatRoute(["fleet"], { env: route.query.env, [by.name]: name, order: "gpus" });
  const bars = makeStackedBars(countStacks(model, cells, by, split), addressOf);
  const map = makeTreemap(groupJobs(model, cells, by), by.label, addressOf);
  show(
    place,
    makePage(
      "GPUs",
      `${count(total, "GPU")} requested by ${count(new Set(cells.map((cell) => cell.job)).size, "job")}, if all of them run at once`,
      controls,
      make(
        "section",
        { class: "panel" },
        make("h2", {}, `By ${by.label.toLowerCase()}${split === by ? "" : `, split by ${split.label.toLowerCase()}`}`),
        bars,
      ),
      make(
        "section",
        { class: "panel" },
        make("h2", {}, `Jobs by ${by.label.toLowerCase()}`),
        make("p", { class: "hint" }, "Each rectangle is a job or a sweep; its area is its GPUs. The arrow keys move between them."),
        map,
      ),
    ),
  );
}

/* The dimensions that say something about the jobs with GPUs, those with two values first; and what the address names. */
function chooseDimensions(model, query) {
  const cells = model.cells.filter((cell) => cell.gpus);
  const valuesOf = ({ of }) => new Set(cells.map((cell) => of(cell, model) || UNSET));
  const counted = DIMENSIONS.map((each) => ({ each, values: valuesOf(each) }));
  const says = ({ each, values }) =>
    values.size > 1 || (values.size === 1 && !values.has(UNSET)) || each.name === query.by || each.name === query.split;
  const kept = counted.filter(says).sort((one, other) => (other.values.size > 1) - (one.values.size > 1));
  return kept.length ? kept.map(({ each }) => each) : DIMENSIONS;
}

function makePage(title, lead, ...children) {
  return make(
    "div",
    { class: "page" },
    make("header", { class: "page-head" }, make("h1", {}, title), lead && make("p", { class: "lead" }, lead)),
    children,
  );
}

function makeControl(label, choice) {
  return make(
    "div",
    { class: "control" },
    make("span", { class: "control-label", "aria-hidden": "true" }, label),
    choice,
  );
}

/* Return the bars, longest first: `{name, total, parts}`, and the series in the order of their sums. */
function countStacks(model, cells, by, split) {
  const bars = new Map();
  const series = new Map();
  for (const cell of cells) {
    const name = by.of(cell, model) || UNSET;
    const part = split.of(cell, model) || UNSET;
    if (!bars.has(name)) bars.set(name, { name, total: 0, parts: new Map() });
    const bar = bars.get(name);
    bar.total += cell.gpus;
    bar.parts.set(part, (bar.parts.get(part) || 0) + cell.gpus);
    series.set(part, (series.get(part) || 0) + cell.gpus);
  }
  const names =
    split.name === "env"
      ? model.environments.filter((name) => series.has(name))
      : [...series].sort((one, other) => other[1] - one[1]).map(([name]) => name);
  const sorted = [...bars.values()].sort((one, other) => other.total - one.total);
  return { bars: sorted, series: split.name === "env" ? colorEnvironments(model, names) : foldSeries(names) };
}

/* An environment has the same color in all views. */
function colorEnvironments(model, names) {
  if (model.environments.length > SERIES) return foldSeries(names);
  return names.map((name) => ({ name, color: model.environments.indexOf(name) }));
}

/* Colors are few: the smallest series share the last one. */
function foldSeries(names) {
  return names.map((name, index) => ({ name, color: names.length <= SERIES ? index : Math.min(index, SERIES - 1) }));
}

/* Draw a chart again when its width changes. */
function onWidth(element, redraw) {
  let last = 0;
  new ResizeObserver(([entry]) => {
    const width = Math.floor(entry.contentRect.width);
    if (width && width !== last) redraw((last = width));
  }).observe(element);
}

const BAR_HEIGHT = 20;
const BAR_STEP = 34;

/* Make the bars; `addressOf(name)` is where a bar leads to. */
function makeStackedBars({ bars, series }, addressOf) {
  const MAX_BARS = 24;
  const shown = bars.slice(0, MAX_BARS);
  const frame = make("div", { class: "chart bars" });
  frame.style.setProperty("--height", `${shown.length * BAR_STEP}px`);
  onWidth(frame, (width) => show(frame, drawBars(shown, series, width, addressOf)));
  const legend = make(
    "ul",
    { class: "legend" },
    series
      .slice(0, SERIES)
      .map((each, index) =>
        make(
          "li",
          {},
          make("span", { class: `swatch series-${each.color}` }),
          index === SERIES - 1 && series.length > SERIES ? `${series.length - SERIES + 1} others` : each.name,
        ),
      ),
  );
  const more =
    bars.length > MAX_BARS
      ? make(
          "p",
          { class: "hint" },
          `and ${bars.length - MAX_BARS} more with ${count(
            bars.slice(MAX_BARS).reduce((sum, bar) => sum + bar.total, 0),
            "GPU",
          )}`,
        )
      : null;
  return [legend, frame, more, makeBarTable(bars, series)];
}

function drawBars(bars, series, width, addressOf) {
  const label = Math.min(200, Math.max(88, Math.floor(width * 0.22)));
  const room = width - label - 72;
  const longest = Math.max(...bars.map((bar) => bar.total));
  const height = bars.length * BAR_STEP;
  const chart = draw("svg", {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: "group",
    "aria-label": "Stacked bars of GPUs",
  });
  bars.forEach((bar, index) => {
    const top = index * BAR_STEP + (BAR_STEP - BAR_HEIGHT) / 2;
    const line = draw("a", {
      href: addressOf(bar.name),
      class: "bar",
      "aria-label": describeBar(bar, series),
    });
    line.append(draw("rect", { class: "bar-row", x: 0, y: index * BAR_STEP, width, height: BAR_STEP }));
    line.append(drawText(bar.name, 0, top + 14, label - 12, "bar-label"));
    let left = label;
    for (const each of series) {
      const gpus = bar.parts.get(each.name);
      if (!gpus) continue;
      const size = (gpus / longest) * room;
      const part = draw("rect", {
        class: `fill-${each.color}`,
        x: left,
        y: top,
        width: Math.max(1, size - 1),
        height: BAR_HEIGHT,
        rx: 2,
      });
      part.append(draw("title", {}, `${bar.name}, ${each.name}: ${count(gpus, "GPU")}`));
      line.append(part);
      left += size;
    }
    line.append(draw("text", { x: left + 8, y: top + 14, class: "bar-value" }, formatNumber(bar.total)));
    chart.append(line);
  });
  return chart;
}

/* A bar in words: its sum, and its largest parts. */
function describeBar(bar, series) {
  const parts = series.filter((each) => bar.parts.has(each.name)).slice(0, SERIES);
  const words = parts.map((each) => `${each.name} ${formatNumber(bar.parts.get(each.name))}`);
  return `${bar.name}: ${count(bar.total, "GPU")} (${words.join(", ")})`;
}

/* Text cut to a width; the whole text stays as its title. */
function drawText(text, x, y, width, className) {
  const letters = Math.max(1, Math.floor(width / 7.6));
  const cut = text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
  return draw("text", { x, y, class: className }, cut, cut === text ? null : draw("title", {}, text));
}

const MAX_TABLE_COLUMNS = 24;

/* The same numbers as a table, for a screen reader and for copying. */
function makeBarTable(bars, series) {
  const named = series.slice(0, MAX_TABLE_COLUMNS);
  const sumOthers = (bar) => bar.total - sum(named.map((each) => bar.parts.get(each.name) || 0));
  const hasOthers = series.length > named.length;
  const head = ["Name", ...named.map((each) => each.name), hasOthers ? "Others" : null, "Total"];
  const listRow = (bar) => [
    bar.name,
    ...named.map((each) => bar.parts.get(each.name) || 0),
    hasOthers ? sumOthers(bar) : null,
    bar.total,
  ];
  return makeAsTable("GPUs as a table", head, () => bars.map(listRow));
}

const MAX_TABLE_ROWS = 1000;

/* A table that is made when it is opened; the first cell of a row is its head, and a cell that is null is left out. */
function makeAsTable(label, head, listTable) {
  const place = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label });
  const fill = () => {
    if (!place.childElementCount) show(place, makeTable(head, listTable()));
  };
  return make("details", { class: "as-table", onToggle: fill }, make("summary", {}, "As a table"), place);
}

function makeTable(head, rows) {
  const isSet = (cell) => cell !== null;
  const toClass = (cell) => (typeof cell === "string" ? "is-text" : null);
  const toText = (cell) => (typeof cell === "string" ? cell : cell ? formatNumber(cell) : "–");
  const first = rows.length ? rows[0].filter(isSet) : [];
  const names = head.filter(isSet).map((name, at) => make("th", { scope: "col", class: toClass(first[at]) }, name));
  const lines = rows.slice(0, MAX_TABLE_ROWS).map((row) => {
    const [name, ...cells] = row.filter(isSet);
    const data = cells.map((cell) => make("td", { class: toClass(cell) }, toText(cell)));
    return make("tr", {}, make("th", { scope: "row" }, name), data);
  });
  const left = rows.length - lines.length;
  return [
    make("table", { class: "numbers" }, make("thead", {}, make("tr", {}, names)), make("tbody", {}, lines)),
    left > 0 ? make("p", { class: "hint" }, `and ${formatNumber(left)} more with fewer GPUs`) : null,
  ];
}
