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
  const by = DIMENSIONS.find((each) => each.name === route.query.by) || DIMENSIONS[0];
  const others = DIMENSIONS.filter((each) => each !== by);
  const split =
    others.find((each) => each.name === route.query.split) || others.find((each) => each.name === "env") || others[0];
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
        DIMENSIONS.map((each) => [each.name, each.label]),
        by.name,
        (name) => choose({ by: name }),
      ),
    ),
    makeControl(
      "split by",
      makeChoice(
        "split by",
        others.map((each) => [each.name, each.label]),
        split.name,
        (name) => choose({ split: name }),
      ),
    ),
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
  const bars = makeStackedBars(countStacks(model, cells, by, split), (name) =>
    formatRoute(["fleet"], by.name === "namespace" ? { q: name } : { [by.name]: name }),
  );
  const map = makeTreemap(groupJobs(model, cells, by));
  show(
    place,
    makePage(
      "GPUs",
      `${count(total, "GPU")} requested by ${count(new Set(cells.map((cell) => cell.job)).size, "job")}, if all of them run at once`,
      controls,
      make(
        "section",
        { class: "panel" },
        make("h2", {}, `By ${by.label.toLowerCase()}, split by ${split.label.toLowerCase()}`),
        bars,
      ),
      make(
        "section",
        { class: "panel" },
        make("h2", {}, `Jobs by ${by.label.toLowerCase()}`),
        make("p", { class: "hint" }, "Each rectangle is a job; its area is its GPUs. Click to open the job."),
        map,
      ),
    ),
  );
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
  return { bars: [...bars.values()].sort((one, other) => other.total - one.total), series: foldSeries(names) };
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
  const chart = draw("svg", {
    width,
    height: bars.length * BAR_STEP,
    role: "group",
    "aria-label": "Stacked bars of GPUs",
  });
  bars.forEach((bar, index) => {
    const top = index * BAR_STEP + (BAR_STEP - BAR_HEIGHT) / 2;
    const line = draw("a", {
      href: addressOf(bar.name),
      class: "bar",
      "aria-label": `${bar.name}: ${count(bar.total, "GPU")}`,
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

/* Text cut to a width; the whole text stays as its title. */
function drawText(text, x, y, width, className) {
  const letters = Math.max(1, Math.floor(width / 7));
  const cut = text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
  return draw("text", { x, y, class: className }, cut, cut === text ? null : draw("title", {}, text));
}

/* The same numbers as a table, for a screen reader and for copying. */
function makeBarTable(bars, series) {
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, "Name"),
    series.map((each) => make("th", { scope: "col" }, each.name)),
    make("th", { scope: "col" }, "Total"),
  );
  const rows = bars.map((bar) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, bar.name),
      series.map((each) => make("td", {}, bar.parts.has(each.name) ? formatNumber(bar.parts.get(each.name)) : "–")),
      make("td", {}, formatNumber(bar.total)),
    ),
  );
  return make(
    "details",
    { class: "as-table" },
    make("summary", {}, "As a table"),
    make(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "GPUs as a table" },
      make("table", { class: "numbers" }, make("thead", {}, head), make("tbody", {}, rows)),
    ),
  );
}

/* Return the jobs by group, both with most GPUs first. */
function groupJobs(model, cells, by) {
  const groups = new Map();
  for (const cell of cells) {
    const name = by.of(cell, model) || UNSET;
    if (!groups.has(name)) groups.set(name, { name, size: 0, jobs: new Map() });
    const group = groups.get(name);
    group.size += cell.gpus;
    const key = cell.job.sweep ? `sweep ${cell.job.sweep}` : `job ${cell.job.index}`;
    const item = group.jobs.get(key) || { job: cell.job, name: cell.job.sweep || cell.job.name, size: 0 };
    item.size += cell.gpus;
    group.jobs.set(key, item);
  }
  const largest = (one, other) => other.size - one.size || (one.name < other.name ? -1 : 1);
  return [...groups.values()]
    .sort(largest)
    .map((group) => ({ ...group, jobs: [...group.jobs.values()].sort(largest) }));
}

const TREEMAP_HEIGHT = 420;
const MAX_TILES = 300;
const TILE_AREA = 320;

function makeTreemap(groups) {
  const frame = make("div", { class: "chart treemap" });
  frame.style.setProperty("--height", `${TREEMAP_HEIGHT}px`);
  onWidth(frame, (width) => show(frame, drawTreemap(groups, width)));
  return frame;
}

function drawTreemap(groups, width) {
  const chart = draw("svg", { width, height: TREEMAP_HEIGHT, role: "group", "aria-label": "Treemap of GPUs" });
  const areas = placeTiles(groups, { x: 0, y: 0, width, height: TREEMAP_HEIGHT });
  areas.forEach(({ item: group, x, y, width: wide, height: high }, index) => {
    const color = Math.min(index, SERIES - 1);
    const hasTitle = high > 40 && wide > 48;
    const top = hasTitle ? 22 : 2;
    const inner = { x: x + 2, y: y + top, width: Math.max(0, wide - 4), height: Math.max(0, high - top - 2) };
    chart.append(
      draw("rect", {
        class: `group-${color}`,
        x: x + 1,
        y: y + 1,
        width: Math.max(0, wide - 2),
        height: Math.max(0, high - 2),
        rx: 4,
      }),
    );
    if (hasTitle)
      chart.append(drawText(`${group.name}  ${formatNumber(group.size)}`, x + 8, y + 16, wide - 16, "tile-group"));
    for (const tile of placeTiles(foldTiles(group.jobs, inner), inner)) chart.append(drawTile(tile, color));
  });
  return chart;
}

/* Jobs that would be too small to read become one tile. */
function foldTiles(jobs, area) {
  const room = Math.max(1, Math.min(MAX_TILES, Math.floor((area.width * area.height) / TILE_AREA)));
  if (jobs.length <= room) return jobs;
  const rest = jobs.slice(room - 1);
  const more = { job: null, name: `${rest.length} more`, size: rest.reduce((sum, each) => sum + each.size, 0) };
  return [...jobs.slice(0, room - 1), more].sort((one, other) => other.size - one.size);
}

function drawTile({ item, x, y, width, height }, color) {
  const text = `${item.name}: ${count(item.size, "GPU")}`;
  const tile = item.job
    ? draw("a", {
        href: formatRoute(
          item.job.sweep ? ["fleet"] : ["job", jobKey(item.job)],
          item.job.sweep ? { q: item.job.sweep } : {},
        ),
        class: "tile",
        "aria-label": text,
        tabindex: "-1",
      })
    : draw("g", { class: "tile" });
  tile.append(
    draw(
      "rect",
      {
        class: `tile-${color}`,
        x: x + 1,
        y: y + 1,
        width: Math.max(0.5, width - 2),
        height: Math.max(0.5, height - 2),
        rx: 2,
      },
      draw("title", {}, text),
    ),
  );
  if (width > 44 && height > 20) tile.append(drawText(item.name, x + 7, y + 16, width - 12, "tile-label"));
  if (width > 44 && height > 38)
    tile.append(draw("text", { x: x + 7, y: y + 32, class: "tile-value" }, formatNumber(item.size)));
  return tile;
}

/* The squarified treemap of Bruls, Huizing and van Wijk: rows along the shorter side, while they get squarer. */
function placeTiles(items, area) {
  const total = items.reduce((sum, item) => sum + item.size, 0);
  if (!total || area.width <= 0 || area.height <= 0) return [];
  const scale = (area.width * area.height) / total;
  const tiles = [];
  let { x, y, width, height } = area;
  let start = 0;
  while (start < items.length) {
    const side = Math.min(width, height);
    let end = start + 1;
    let sum = items[start].size * scale;
    let worst = worstRatio(sum, sum, sum, side);
    while (end < items.length) {
      const size = items[end].size * scale;
      const next = worstRatio(sum + size, items[start].size * scale, size, side);
      if (next > worst) break;
      worst = next;
      sum += size;
      end++;
    }
    const depth = sum / side;
    let along = 0;
    for (const item of items.slice(start, end)) {
      const length = (item.size * scale) / depth;
      tiles.push(
        width >= height
          ? { item, x, y: y + along, width: depth, height: length }
          : { item, x: x + along, y, width: length, height: depth },
      );
      along += length;
    }
    if (width >= height) [x, width] = [x + depth, Math.max(0, width - depth)];
    else [y, height] = [y + depth, Math.max(0, height - depth)];
    start = end;
    if (width <= 0 || height <= 0) break;
  }
  return tiles;
}

function worstRatio(sum, largest, smallest, side) {
  const squared = side * side;
  return Math.max((squared * largest) / (sum * sum), (sum * sum) / (squared * smallest));
}
