import { get } from "../api.js";
import { fill, h, icon } from "../dom.js";
import { ago, duration, model, money, short } from "../format.js";
import { VirtualList } from "../list.js";
import { empty, finder, head, segments, toneOf } from "../parts.js";
import { t } from "../words.js";

const state = { project: "here", status: "", q: "" };

export async function open(context) {
  if (context.rest.length) {
    const page = await import("./run.js");
    return page.open(context);
  }
  return list(context);
}

async function list({ main, go, bus, onDispose, alive }) {
  const place = h("div", { class: "panel" });
  const rows = new VirtualList({
    label: t("Runs"), rowHeight: innerWidth > 760 ? 66 : 84, rowClass: "run-row", draw,
    load: async (start, limit) => {
      const { runs, total } = await get("runs", { ...state, start, limit });
      return { rows: runs, total };
    },
    choose: (run, _, chosen) => chosen && go(`runs/${run.trace_id}`),
  });
  const load = async () => {
    rows.pages.clear();
    rows.node.scrollTop = 0;
    await rows.open();
    rows.repaint();
    if (!alive()) return;
    const none = state.q || state.status ? empty("search", t("No run fits"), t("Try fewer words, or another filter.")) : empty("runs", t("No runs yet"), t("Give the agent a task, and watch it here as it works."), 'evercontext run --task "Add a --version flag"');
    fill(place, rows.total ? rows.node : none);
  };
  const filter = (name) => (value) => {
    state[name] = value;
    load();
  };
  fill(main,
    head(t("Runs"), t("What the agent did, newest first, and what it is doing now."),
      finder(t("Find a run"), filter("q"), state.q),
      segments(t("Status"), [["", t("All")], ["running", t("running")], ["done", t("done")], ["failed", t("failed")]], state.status, filter("status")),
      segments(t("Project"), [["here", t("This project")], ["all", t("All projects")]], state.project, filter("project"))),
    place);
  await load();
  let timer = 0;
  const changed = () => {
    timer ||= setTimeout(async () => {
      timer = 0;
      if (!alive()) return;
      if (rows.total) await rows.refresh();
      else await load();
    }, 250);
  };
  bus.addEventListener("run", changed);
  bus.addEventListener("reset", changed);
  onDispose(() => {
    clearTimeout(timer);
    bus.removeEventListener("run", changed);
    bus.removeEventListener("reset", changed);
  });
}

function draw(run) {
  const facts = [
    run.steps ? t("{n} steps", { n: run.steps }) : null,
    run.changed.length ? t("{n} files", { n: run.changed.length }) : null,
    run.input_tokens + run.output_tokens ? t("{n} tokens", { n: short(run.input_tokens + run.output_tokens) }) : null,
    run.cost_usd ? money(run.cost_usd) : null,
  ].filter(Boolean);
  return [
    h("i", { class: `dot ${toneOf(run.status)}`, "aria-hidden": "true" }),
    h("div", { class: "clip" }, h("div", { class: "title clip" }, run.text || run.trace_id),
      h("div", { class: "meta clip" }, [t(run.status), model(run.model), run.door, ...facts].filter(Boolean).join(" · "))),
    h("div", { class: "side-meta num" }, run.duration_ms !== null ? h("span", {}, duration(run.duration_ms)) : h("span", {}, icon("dots")), h("span", {}, ago(run.started))),
  ];
}
