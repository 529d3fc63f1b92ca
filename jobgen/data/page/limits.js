/* Limits beside queues: ResourceQuotas of namespaces, and budgets of namespaces and teams. */

const WHOLE_SHARE = 1000;

function makeLimits(model, env, words) {
  const rows = ofEnvironment(model.capacity.limits, env).filter((row) =>
    matchesWords(words, row.kind, row.owner, row.name, row.resource),
  );
  if (!rows.length) return null;
  const list = make("div", { class: "queues" });
  return make(
    "section",
    { class: "panel limits" },
    make("h2", {}, "Quotas and budgets of namespaces and teams"),
    make("p", { class: "hint" }, "The sum of all jobs of the environment, as if all ran at once."),
    makeLongList(
      list,
      [...rows].sort((one, other) => other.share - one.share),
      makeLimit,
    ),
  );
}

function makeLimit(row) {
  const isExceeded = row.share > WHOLE_SHARE;
  const bar = make("div", { class: "meter", role: "img", "aria-label": `${row.used} of ${row.limit} used` });
  const part = make("span", { class: isExceeded ? "meter-exceeded" : "meter-own" });
  part.style.width = `${Math.min(row.share, WHOLE_SHARE) / 10}%`;
  bar.append(part);
  return make(
    "div",
    { class: "quota" },
    makeQuotaHead(row.owner, row.resource, row.used, row.limit),
    bar,
    make(
      "p",
      { class: "hint" },
      [row.kind, row.name].filter(Boolean).join(" "),
      isExceeded ? make("b", { class: "exceeded" }, " exceeded") : null,
    ),
  );
}
