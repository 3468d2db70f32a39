// Figures of runs: where the time went, how full the window was, what was changed, day by day.
import { h, s } from "./dom.js";
import { day, duration, money, short } from "./format.js";
import { table } from "./parts.js";
import { t } from "./words.js";

const DAY = 86_400_000;

function bar(className, left, width) {
  const node = h("i", { class: className });
  node.style.left = `${left}%`;
  node.style.width = `${width}%`;
  return node;
}

/** Model and tool time, one row after the other, on one scale. */
export function waterfall(bars, total) {
  const end = Math.max(total ?? 0, ...bars.map((one) => one.start + one.ms), 1);
  const share = (ms) => (100 * ms) / end;
  const rows = bars.map((one) => h("li", { title: `${one.name} · ${duration(one.ms)}` },
    h("span", { class: "clip" }, one.kind === "model" ? t("Model") : one.name),
    h("span", { class: "track" }, bar(`${one.kind} ${one.ok ? "" : "bad"}`, Math.min(99.4, share(one.start)), Math.max(0.6, Math.min(100 - share(one.start), share(one.ms))))),
    h("span", { class: "num meta" }, duration(one.ms))));
  return h("ol", { class: "waterfall", "aria-label": t("Model and tool time") }, rows);
}

/** Sums of a waterfall: how much was thinking, how much doing. */
export function timeShares(bars, total) {
  const of = (kind) => bars.filter((one) => one.kind === kind).reduce((sum, one) => sum + one.ms, 0);
  const [model, tools] = [of("model"), of("tool")];
  const rest = Math.max(0, (total ?? 0) - model - tools);
  return [[t("Model"), model, "model"], [t("Tools"), tools, "tool"], [t("Other"), rest, "rest"]].filter(([, ms]) => ms > 0);
}

/** How full the window was at each turn. */
export function gauge(turns) {
  const rows = turns.map(({ tokens, window }, at) => {
    const share = Math.min(1, tokens / window);
    return h("li", { title: `${short(tokens)} / ${short(window)}` }, h("span", { class: "num meta" }, String(at + 1)), h("span", { class: "track" }, bar(share > 0.8 ? "bad" : "model", 0, Math.max(0.6, 100 * share))), h("span", { class: "num meta" }, `${short(tokens)} · ${Math.round(share * 100)}%`));
  });
  return h("ol", { class: "waterfall gauge", "aria-label": t("Context window by turn") }, rows);
}

/** Lines that came and went, file by file. */
export function diffSizes(files) {
  const most = Math.max(...files.map((one) => one.added + one.removed), 1);
  return h("ol", { class: "waterfall files", "aria-label": t("Changes by file") }, [...files].sort((a, b) => b.added + b.removed - a.added - a.removed).map((one) => h("li", {},
    h("span", { class: "clip mono", title: one.path }, one.path),
    h("span", { class: "track" }, bar("add", 0, (100 * one.added) / most), bar("del", (100 * one.added) / most, (100 * one.removed) / most)),
    h("span", { class: "num meta" }, h("span", { class: "plus" }, `+${one.added}`), " ", h("span", { class: "minus" }, `−${one.removed}`)))));
}

/** A square for every day: how many runs, and whether some failed. */
export function heatStrip(days, begin) {
  const known = new Map();
  for (const one of days) {
    const key = one.at.slice(0, 10);
    const sum = known.get(key) ?? { runs: 0, failed: 0 };
    known.set(key, { runs: sum.runs + one.runs, failed: sum.failed + one.failed });
  }
  const most = Math.max(...[...known.values()].map((one) => one.runs), 1);
  const first = Date.parse(`${begin}T00:00:00Z`);
  const count = Math.floor((Date.now() - first) / DAY) + 1;
  const [size, gap] = [15, 3];
  const width = count * (size + gap);
  const squares = Array.from({ length: count }, (_, at) => {
    const key = new Date(first + at * DAY).toISOString().slice(0, 10);
    const one = known.get(key) ?? { runs: 0, failed: 0 };
    const level = one.runs ? 1 + Math.min(3, Math.floor((3 * one.runs) / most)) : 0;
    return s("rect", { class: `heat-${level}${one.failed && one.failed === one.runs ? " bad" : ""}`, x: at * (size + gap), y: 0, width: size, height: size, rx: 3 }, s("title", {}, `${day(key)}: ${t("{n} runs", { n: one.runs })}${one.failed ? ` · ${t("{n} failed", { n: one.failed })}` : ""}`));
  });
  const svg = s("svg", { class: "heat", viewBox: `0 0 ${width} ${size}`, width, height: size, role: "img", "aria-label": t("Runs by day") }, squares);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("Runs by day") }, svg);
}

/** What each model was given, said and cost. */
export function byModel(models, shown) {
  const cost = models.some((one) => one.cost_usd > 0);
  const most = Math.max(...models.map((one) => one.input_tokens + one.output_tokens), 1);
  const rows = models.map((one) => h("tr", {}, h("td", { class: "mono" }, shown(one.model)), h("td", { class: "num right" }, short(one.runs)), h("td", { class: "num right" }, short(one.input_tokens)), h("td", { class: "num right" }, short(one.output_tokens)), cost ? h("td", { class: "num right" }, one.cost_usd ? money(one.cost_usd) : "") : null,
    h("td", { class: "track-cell" }, h("span", { class: "track" }, bar("model", 0, (100 * (one.input_tokens + one.output_tokens)) / most)))));
  return table(t("Tokens and cost by model"), [t("Model"), `>${t("Runs")}`, `>${t("Tokens in")}`, `>${t("Tokens out")}`, ...(cost ? [`>${t("Cost")}`] : []), t("Share")], rows, { cards: true });
}
