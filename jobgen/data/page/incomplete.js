/* What the page lacks: jobs that cannot be read or rendered, queues that are not known, and checks that did not run. */

const SHOWN_ERRORS = 20;

/* Return a note with the errors; null if the page is complete. */
function makeIncomplete(model) {
  const queues = model.capacity.notes.filter((note) => note.level === "error");
  const parts = [
    model.errors.length && `${count(countEntries(model.errors), "error")} in files, so jobs are missing, broken or not checked`,
    queues.length && `the queues of ${listEnvironments(model, queues).join(", ")} are unknown`,
    model.head.unchecked && "a broken schema or policy prevented checks, see the findings",
  ].filter(Boolean);
  if (!parts.length) return null;
  const text = make("span", {}, make("b", {}, "This page is not complete: "), parts.join("; "));
  const summary = [makeIcon("alert"), text];
  const note = { class: "incomplete tone-bad", "aria-label": "Not complete" };
  const why = () => make("a", { href: formatRoute(["capacity"]) }, "Why the queues are unknown");
  const links = queues.length ? make("p", {}, why()) : null;
  if (!model.errors.length && !links) return make("p", note, summary);
  return makeLazyDetails(note, summary, () => [
    makeErrorList(model.errors, SHOWN_ERRORS, model),
    links,
  ]);
}

function listEnvironments(model, rows) {
  return [...new Set(rows.map((row) => model.environments[row.environment]))];
}
