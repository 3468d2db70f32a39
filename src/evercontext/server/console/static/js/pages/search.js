import { get } from "../api.js";
import { codeLines } from "../code.js";
import { fill, h, icon } from "../dom.js";
import { chip, empty, finder, head } from "../parts.js";
import { t } from "../words.js";

export async function open({ main, query, alive }) {
  let q = query.get("q") ?? "";
  let prefix = query.get("prefix") ?? "";
  let asked = 0;
  const place = h("div", { class: "stack", "aria-live": "polite" });
  const where = h("input", { class: "field", placeholder: t("Only below this path"), "aria-label": t("Only below this path"), value: prefix, spellcheck: "false" });
  where.addEventListener("change", () => { prefix = where.value.trim(); load(); });
  const start = () => fill(place, h("div", { class: "panel" }, empty("search", t("Search by meaning or by name"), t("Say what the code does, in English or Japanese, or type a name. The agent searches with the same function."), 'evercontext search "where are passwords hashed"')));
  const load = async () => {
    const mine = ++asked;
    history.replaceState(null, "", `/console/search${q ? `?${new URLSearchParams(prefix ? { q, prefix } : { q })}` : ""}`);
    if (!q) return start();
    const { chunks, stale } = await get("search", { q, prefix });
    if (mine !== asked || !alive()) return;
    fill(place, stale ? h("p", { class: "notice" }, icon("info"), t("The index does not know the newest changes yet. Bring it up to date: evercontext index")) : null,
      chunks.length ? h("p", { class: "meta", role: "status" }, t("{n} chunks", { n: chunks.length })) : h("div", { class: "panel" }, empty("search", t("Nothing found"), t("Try other words, or a shorter path."))),
      chunks.map((chunk, at) => hit(chunk, at, q)));
  };
  fill(main, head(t("Search"), t("Ranked chunks of this project's code, each with the reasons for its place.")), h("div", { class: "head" }, finder(t("What does the code do, or what is it called?"), (words) => { q = words; load(); }, q), h("div", {}, where)), place);
  main.querySelector("[data-find]").focus();
  await load();
}

function hit(chunk, at, q) {
  const bar = h("i", {});
  bar.style.width = `${Math.round(chunk.score * 100)}%`;
  return h("article", { class: "panel", "data-row": "" },
    h("header", {}, h("span", { class: "meta num" }, `${at + 1}.`), h("h2", { class: "mono", tabindex: "-1" }, `${chunk.path}:${chunk.start_line}-${chunk.end_line}`), chunk.symbol ? chip(chunk.symbol, "accent") : null,
      chunk.reasons.map((reason) => chip(t(reason))), h("span", { class: "num", title: t("score") }, weight(chunk.score))),
    h("div", { class: "bar", "aria-hidden": "true" }, bar), codeLines(chunk.text, chunk.start_line, q, chunk.path));
}

/** A weak score is no score of nothing. */
function weight(score) {
  return score > 0 && score < 0.01 ? "<0.01" : score.toFixed(2);
}
