/* The treemap of GPUs: groups of jobs, and the jobs in each. */

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
const TILE_AREA = 640; // about 25 by 25 pixels, so that a finger can hit it
const GROUP_AREA = 1600;

/* Make the treemap, and its table; `addressOf(group)` is where the tile of the smallest jobs of a group leads to. */
function makeTreemap(groups, label, addressOf) {
  const frame = make("div", { class: "chart treemap" });
  frame.style.setProperty("--height", `${TREEMAP_HEIGHT}px`);
  onWidth(frame, (width) => show(frame, drawTreemap(groups, width, addressOf)));
  frame.addEventListener("keydown", (event) => moveBetweenTiles(frame, event));
  const listRows = () => groups.flatMap((group) => group.jobs.map((job) => [job.name, group.name, job.size]));
  const largest = () => listRows().sort((one, other) => other[2] - one[2]);
  return [frame, makeAsTable("GPUs of jobs as a table", ["Job", label, "GPUs"], largest)];
}

const TILE_STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };

/* Only one tile is a stop of the Tab key; the arrows move it. */
function moveBetweenTiles(frame, event) {
  if (!(event.key in TILE_STEPS) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const tiles = [...frame.querySelectorAll("a.tile")];
  const at = tiles.indexOf(document.activeElement) + TILE_STEPS[event.key];
  const next = tiles[Math.max(0, Math.min(tiles.length - 1, at))];
  for (const tile of tiles) tile.setAttribute("tabindex", tile === next ? "0" : "-1");
  next.focus();
}

function drawTreemap(groups, width, addressOf) {
  const size = { width, height: TREEMAP_HEIGHT, viewBox: `0 0 ${width} ${TREEMAP_HEIGHT}` };
  const chart = draw("svg", { ...size, role: "group", "aria-label": "Treemap of GPUs" });
  const folded = foldGroups(groups, width * TREEMAP_HEIGHT);
  const areas = placeTiles(folded, { x: 0, y: 0, width, height: TREEMAP_HEIGHT });
  areas.forEach((area, index) => drawGroup(chart, area, Math.min(index, SERIES - 1), addressOf));
  chart.querySelector("a.tile")?.setAttribute("tabindex", "0");
  return chart;
}

/* Groups that would be too small to read become one. */
function foldGroups(groups, area) {
  const total = sum(groups.map((group) => group.size));
  const isLarge = (group) => (group.size / total) * area >= GROUP_AREA;
  const small = groups.filter((group) => !isLarge(group));
  if (small.length < 2) return groups;
  const size = sum(small.map((group) => group.size));
  const jobs = [{ job: null, name: `${small.length} others`, size }];
  const others = { name: `${small.length} others`, isOthers: true, size, jobs };
  return [...groups.filter(isLarge), others].sort((one, other) => other.size - one.size);
}

function drawGroup(chart, { item: group, x, y, width, height }, color, addressOf) {
  const hasTitle = height > 40 && width > 48;
  const top = hasTitle ? 22 : 2;
  const inner = { x: x + 2, y: y + top, width: Math.max(0, width - 4), height: Math.max(0, height - top - 2) };
  const box = { x: x + 1, y: y + 1, width: Math.max(0, width - 2), height: Math.max(0, height - 2) };
  chart.append(draw("rect", { class: `group-${color}`, ...box, rx: 4 }));
  if (hasTitle)
    chart.append(drawText(`${group.name}  ${formatNumber(group.size)}`, x + 8, y + 16, width - 16, "tile-group"));
  const rest = group.isOthers ? formatRoute(["fleet"], { order: "gpus" }) : addressOf(group.name);
  for (const tile of placeTiles(foldTiles(group.jobs, inner), inner)) chart.append(drawTile(tile, group, color, rest));
}

/* Jobs that would be too small to read become one tile. */
function foldTiles(jobs, area) {
  const room = Math.max(1, Math.min(MAX_TILES, Math.floor((area.width * area.height) / TILE_AREA)));
  const total = sum(jobs.map((job) => job.size));
  const fits = jobs.filter((job) => (job.size / total) * area.width * area.height >= TILE_AREA / 2).length;
  if (jobs.length <= room && fits === jobs.length) return jobs;
  const kept = jobs.slice(0, Math.min(room - 1, fits));
  const rest = jobs.slice(kept.length);
  if (rest.length === 1) return jobs;
  const more = { job: null, name: `${rest.length} others`, size: sum(rest.map((each) => each.size)) };
  return [...kept, more].sort((one, other) => other.size - one.size);
}

/* Where a tile leads to: its job, the jobs of its sweep, or those of its group. */
function findTileAddress({ job }, rest) {
  if (!job) return rest;
  if (!job.sweep) return formatRoute(["job", jobKey(job)]);
  return formatRoute(["fleet"], { q: job.sweep, open: encodeURIComponent(job.sweep) });
}

function drawTile({ item, x, y, width, height }, group, color, rest) {
  const text = `${item.name}: ${count(item.size, "GPU")}`;
  const label = group.isOthers ? text : `${group.name}, ${text}`;
  const tile = draw("a", { href: findTileAddress(item, rest), class: "tile", "aria-label": label, tabindex: "-1" });
  const box = { x: x + 1, y: y + 1, width: Math.max(0.5, width - 2), height: Math.max(0.5, height - 2) };
  tile.append(draw("rect", { class: `tile-${color}`, ...box, rx: 2 }, draw("title", {}, text)));
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
