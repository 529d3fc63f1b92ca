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
  const makeState = ({ label, icon, tone, help }) => [
    make("dt", { class: `state tone-text-${tone}` }, makeIcon(icon), label),
    make("dd", {}, help),
  ];
  const states = [...Object.values(STATES), FAULTY].map(makeState);
  const decisions = DECISIONS.map(([, decision]) => makeState(decision));
  const absent = [
    make("dt", { class: "state tone-text-note" }, makeIcon("dash"), "absent"),
    make("dd", {}, "not in this environment, or filtered out"),
  ];
  const severities = SEVERITIES.map((severity) => [
    make("dt", {}, makeSeverity(severity)),
    make("dd", {}, SEVERITY_HELP[severity]),
  ]);
  const close = make("button", { type: "submit", class: "quiet" }, makeIcon("cross", "Close"));
  const form = make("form", { method: "dialog" }, close);
  show(
    dialog,
    make("div", { class: "dialog-head" }, make("h2", { tabindex: "-1", autofocus: true }, "Help"), form),
    make("h3", {}, "Keyboard"),
    make("dl", {}, keys),
    make("h3", {}, "A job in an environment"),
    make("dl", {}, states, absent, makeState(WARNED)),
    make("h3", {}, "What Kueue decides"),
    make("dl", {}, decisions),
    make("h3", {}, "Findings"),
    make("dl", {}, severities),
  );
  dialog.showModal();
  dialog.scrollTop = 0;
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
