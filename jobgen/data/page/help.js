/* The help: the keys, and what the signs of the fleet mean. */

const SHORTCUTS = [
  ["/", "search"],
  ["j  k", "next and previous row, line or change"],
  ["Enter", "open it"],
  ["Esc", "close, clear the filters, or go back"],
  ["1 … 4", "go to a view of the fleet"],
  ["d", "only differences between environments (job)"],
  ["c", "copy the link to what is shown"],
  ["t", "light, dark, or as the system"],
  ["?", "this help"],
];

function showHelp(dialog) {
  const keys = SHORTCUTS.map(([names, text]) => [
    make(
      "dt",
      {},
      names.split("  ").map((key) => make("kbd", {}, key)),
    ),
    make("dd", {}, text),
  ]);
  const states = [...Object.values(STATES), FAULTY].map(({ label, icon, tone, help }) => [
    make("dt", { class: `state tone-text-${tone}` }, makeIcon(icon), label),
    make("dd", {}, help),
  ]);
  const decisions = DECISIONS.map(([, { label, icon, tone, help }]) => [
    make("dt", { class: `state tone-text-${tone}` }, makeIcon(icon), label),
    make("dd", {}, help),
  ]);
  const absent = [
    make("dt", { class: "state tone-text-note" }, makeIcon("dash"), "absent"),
    make("dd", {}, "not in this environment, or filtered out"),
  ];
  const severities = SEVERITIES.map((severity) => [
    make("dt", {}, makeSeverity(severity)),
    make("dd", {}, SEVERITY_HELP[severity]),
  ]);
  show(
    dialog,
    make("h2", {}, "Help"),
    make("h3", {}, "Keyboard"),
    make("dl", {}, keys),
    make("h3", {}, "A job in an environment"),
    make("dl", {}, states, absent),
    make("h3", {}, "What Kueue decides"),
    make("dl", {}, decisions),
    make("h3", {}, "Findings"),
    make("dl", {}, severities),
    make("form", { method: "dialog" }, make("button", { type: "submit" }, "Close")),
  );
  dialog.showModal();
}

const SEVERITY_HELP = {
  error: "it fails, or loses work, in the declared cluster",
  warning: "a risk",
  info: "advice",
};

/* Copy the address of what is shown. */
function copyLink() {
  const button = document.getElementById("link");
  const say = (text) => {
    announce(text);
    button.classList.add("is-done");
    setTimeout(() => button.classList.remove("is-done"), 1500);
  };
  copyText(location.href).then(
    () => say("Link copied"),
    () => announce("The browser forbids copying; copy its address"),
  );
}

/* Copy a text. The clipboard is missing on pages without TLS, and a browser may forbid it. */
function copyText(text) {
  const copied = navigator.clipboard ? navigator.clipboard.writeText(text) : Promise.reject();
  return copied.catch(() => copySelected(text));
}

/* Copy a text as older browsers do: from a field that is selected. */
function copySelected(text) {
  const field = make("textarea", { class: "hidden-text", "aria-hidden": "true", readonly: true });
  const focused = document.activeElement;
  field.value = text;
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  focused.focus();
  if (!isCopied) throw new Error("not copied");
}
