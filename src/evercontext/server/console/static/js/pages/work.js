import { get, part } from "../api.js";
import { composer } from "../composer.js";
import { fill, h } from "../dom.js";
import { ago, model } from "../format.js";
import { head, statusChip } from "../parts.js";
import { clockOf } from "../story.js";
import { t } from "../words.js";

const RECENT = 8;

export async function open({ main, go, bus, onDispose, alive }) {
  const choices = await get("work");
  if (!alive()) return;
  const recent = h("div", {});
  const box = composer({
    choices,
    sent: (run) => go(run.session ? `sessions/${part(run.session)}` : `runs/${part(run.trace_id)}`),
  });
  fill(main, head(t("New work"), t("Give a task, or talk about the project. It runs on this machine, and you see every step.")), h("div", { class: "stack" }, box, recent));
  box.focusText();
  const load = async () => {
    const { runs } = await get("runs", { limit: RECENT, project: "all" });
    if (!alive()) return;
    fill(recent, runs.length ? h("section", { class: "panel" }, h("header", {}, h("h2", {}, t("Now and lately"))), h("ul", { class: "pick" }, runs.map(row))) : null);
  };
  await load();
  let timer = 0;
  const changed = () => { timer ||= setTimeout(() => { timer = 0; if (alive()) load(); }, 150); };
  for (const kind of ["run", "reset", "approvals"]) bus.addEventListener(kind, changed);
  onDispose(() => {
    clearTimeout(timer);
    for (const kind of ["run", "reset", "approvals"]) bus.removeEventListener(kind, changed);
  });
}

function row(run) {
  return h("li", {}, h("a", { href: run.session ? `/console/sessions/${part(run.session)}` : `/console/runs/${part(run.trace_id)}`, "data-row": "" },
    h("span", { class: "one-line" }, statusChip(run.status), h("b", { class: "clip" }, run.text || run.trace_id)),
    h("span", { class: "meta" }, [model(run.model), run.root.split("/").pop(), ago(run.started)].join(" · "), run.status === "running" ? [" · ", clockOf(run)] : null)));
}
