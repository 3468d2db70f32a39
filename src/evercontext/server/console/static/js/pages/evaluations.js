import { get, part } from "../api.js";
import { lineChart, sparkline } from "../chart.js";
import { fill, h } from "../dom.js";
import { moment, when } from "../format.js";
import { chip, empty, head, table } from "../parts.js";
import { t } from "../words.js";

export async function open({ main, query, alive }) {
  const { documents } = await get("evaluations");
  if (!alive()) return;
  const title = head(t("Evaluations"), t("How documents were judged, over time and version by version."));
  if (!documents.length) {
    fill(main, title, h("div", { class: "panel" }, empty("evaluations", t("Nothing was judged yet"), t("Have a document judged by a rubric, or rewritten until it passes."), "evercontext evaluate README.md")));
    return;
  }
  const page = h("div", { class: "stack" });
  const list = h("div", { class: "panel pick" });
  const choose = (one) => {
    for (const button of list.children) button.setAttribute("aria-current", String(button.dataset.key === one.key));
    document_(one, page);
  };
  fill(list, documents.map((one) => {
    const last = one.scores.at(-1);
    return h("button", { type: "button", "data-row": "", "data-key": one.key, on: { click: () => choose(one) } }, h("b", { class: "clip" }, one.name), h("span", { class: "chips" }, chip(last.score.toFixed(1), last.pass ? "ok" : "wait"), sparkline(t("Scores of {name}", { name: one.name }), one.scores.map((score) => score.score), 10)), h("span", { class: "meta" }, `${t("{n} scores", { n: one.scores.length })} · ${when(last.at)}`));
  }));
  fill(main, title, h("div", { class: "two" }, list, page));
  choose(documents.find((one) => one.key === query.get("document")) ?? documents[0]);
}

function label(score) {
  return score.round === null ? moment(score.at) : t("round {n}", { n: score.round });
}

function document_(one, page) {
  const points = one.scores.map((score) => ({ label: label(score), value: score.score }));
  const last = one.scores.at(-1);
  const compare = h("div", { class: "stack" });
  const pick = (name, chosen) => h("select", { class: "field", "aria-label": name }, one.scores.map((score, at) => h("option", { value: String(at), selected: at === chosen }, `${at + 1}. ${label(score)} · ${score.score.toFixed(1)}`)));
  const left = pick(t("Left version"), Math.max(0, one.scores.length - 2));
  const right = pick(t("Right version"), one.scores.length - 1);
  const draw = () => sideBySide(one.scores[left.value], one.scores[right.value], compare);
  for (const select of [left, right]) select.addEventListener("change", draw);
  fill(page,
    h("section", { class: "panel" }, h("header", {}, h("h2", {}, one.name), chip(last.pass ? t("passes") : t("needs improvement"), last.pass ? "ok" : "wait"), chip(last.judge, "accent")), h("div", { class: "body" }, lineChart(t("Score over time"), points, { max: 10, goal: last.target, format: (v) => v.toFixed(1) }))),
    h("section", { class: "panel" }, h("header", {}, h("h2", {}, t("Versions side by side"))), h("div", { class: "body stack" }, h("div", { class: "half" }, left, right), compare)));
  draw();
}

async function sideBySide(a, b, place) {
  const names = [...new Set([...Object.keys(a.rubric_scores), ...Object.keys(b.rubric_scores)])];
  const open = (score, name) => score.rubric_scores[name] === undefined || score.not_judged.includes(name);
  const cell = (score, name) => (open(score, name) ? t("not judged") : Number(score.rubric_scores[name]).toFixed(1));
  const moved = (name) => {
    if (open(a, name) || open(b, name)) return "–";
    const by = b.rubric_scores[name] - a.rubric_scores[name];
    return chip(`${by > 0 ? "+" : ""}${by.toFixed(1)}`, by > 0 ? "ok" : by < 0 ? "bad" : "");
  };
  const rows = names.map((name) => h("tr", {}, h("td", {}, t(name)), h("td", { class: "num" }, cell(a, name)), h("td", { class: "num" }, cell(b, name)), h("td", {}, moved(name))));
  const advice = (side, score) => h("div", { class: "stack" }, h("h3", {}, `${side} · ${t("Suggestions")}`), score.suggestions.length ? h("ul", { class: "stack" }, score.suggestions.map((one) => h("li", { class: "wrap" }, `· ${one}`))) : h("p", { class: "meta" }, t("none")));
  const texts = h("div", { class: "half" });
  fill(place, table(t("Rubric"), [t("Part"), t("Left"), t("Right"), t("Change")], rows), h("div", { class: "half" }, advice(t("Left"), a), advice(t("Right"), b)), texts);
  const whole = await Promise.all([a, b].map((score) => get(`evaluations/${part(score.id)}`)));
  if (whole.some((one) => one.text !== null)) fill(texts, whole.map((one) => h("pre", { class: "block", tabindex: "0" }, one.text ?? t("The text of this version was not kept."))));
}
