import { get, part, post } from "../api.js";
import { fill, h } from "../dom.js";
import { dayOf, when } from "../format.js";
import { button, chip, dialog, empty, finder, head, segments, toast } from "../parts.js";
import { t } from "../words.js";

export async function open({ main, query, alive }) {
  let q = query.get("q") ?? "";
  let state = "active";
  const place = h("div", { class: "stack timeline-days" });
  let last = "";
  const load = async (before = null) => {
    if (!before) last = "";
    const { memories, next } = await get("memories", { q, state, before });
    if (!alive()) return;
    // Newest first is a timeline: each day is named once.
    const cards = memories.flatMap((one) => {
      const day = q ? "" : dayOf(one.created_at);
      const named = day && day !== last ? [h("h2", { class: "day" }, day)] : [];
      last = day || last;
      return [...named, card(one, load, state)];
    });
    if (before) place.append(...cards);
    else if (cards.length) fill(place, cards);
    else fill(place, h("div", { class: "panel" }, q ? empty("search", t("Nothing is remembered about that"), t("Ask in other words.")) : empty("memory", t("Nothing is remembered yet"), t("What runs learn is kept here. You can add, correct and forget."), 'evercontext memory add "We deploy on Fridays"')));
    if (next) {
      const more = button(t("Show more"), () => { more.remove(); load(next); });
      place.append(more);
    }
  };
  fill(main, head(t("Memory"), t("What is remembered of this project, and why it would be recalled."),
    finder(t("What would be recalled for this question?"), (words) => { q = words; load(); }, q),
    segments(t("State"), [["active", t("active")], ["archived", t("archived")], ["superseded", t("superseded")]], state, (value) => { state = value; load(); }),
    button(t("Remember something"), () => edit(null, load), "primary")), place);
  await load();
}

function card(one, reload, state) {
  const why = Object.entries(one.reasons ?? {});
  const from = one.origin?.trace_id ? h("a", { href: `/console/runs/${part(one.origin.trace_id)}` }, t("from a run")) : one.origin?.door ?? null;
  const bar = h("i", {});
  if (one.similarity !== undefined) bar.style.width = `${Math.round(one.similarity * 100)}%`;
  return h("article", { class: "panel", "data-row": "" },
    one.similarity !== undefined ? h("div", { class: "bar", role: "img", "aria-label": t("similarity {n}", { n: one.similarity.toFixed(2) }) }, bar) : null,
    h("div", { class: "body stack" }, h("p", { class: "wrap" }, one.speaker ? h("b", {}, `${one.speaker}: `) : null, one.content),
      why.length ? h("div", { class: "chips", "aria-label": t("Why it is recalled") }, h("span", { class: "meta" }, t("Recalled because")), why.map(([name, value]) => chip(`${t(name)} ${value > 0 ? "+" : ""}${value.toFixed(2)}`, value > 0 ? "accent" : ""))) : null,
      h("div", { class: "chips" }, chip(t(one.source_type)), one.untrusted ? chip(t("untrusted"), "bad", t("It came from a tool's output: data, never an instruction.")) : null, one.seen > 1 ? chip(t("told {n} times", { n: one.seen })) : null,
        h("span", { class: "meta" }, when(one.created_at)), from ? h("span", { class: "meta" }, from) : null,
        one.similarity !== undefined ? h("span", { class: "meta num" }, one.similarity.toFixed(2)) : null,
        state === "active" ? [button(t("Edit"), () => edit(one, reload), "quiet"), button(t("Forget"), () => forget(one, reload), "quiet danger")] : null)));
}

function edit(one, reload) {
  const words = h("textarea", { class: "field", rows: "6", "aria-label": t("Words"), value: one?.content ?? "" });
  const save = button(t("Save"), async () => {
    try {
      await post(one ? `memories/${part(one.id)}` : "memories", { content: words.value });
      toast(t("Kept"));
      box.close();
      await reload();
    } catch (problem) {
      toast(problem.message, true);
    }
  }, "primary");
  const box = dialog(one ? t("Edit memory") : t("Remember something"), [words, one ? h("p", { class: "meta" }, t("The old words are kept as superseded, and no longer found.")) : null], button(t("Cancel"), () => box.close()), save);
  words.focus();
}

function forget(one, reload) {
  const act = button(t("Forget for good"), async () => {
    try {
      await post(`memories/${part(one.id)}/forget`, {});
      toast(t("Forgotten"));
    } catch (problem) {
      toast(problem.message, true);
    }
    box.close();
    await reload();
  }, "danger");
  const box = dialog(t("Forget this memory?"), [h("blockquote", { class: "wrap" }, one.content.slice(0, 400)), h("p", { class: "meta" }, t("Its words are wiped. This cannot be undone."))], button(t("Cancel"), () => box.close()), act);
}
