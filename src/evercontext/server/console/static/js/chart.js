// Small charts in SVG. Each carries its numbers as a table for those who do not see it.
import { h, s } from "./dom.js";
import { t } from "./words.js";

// A picture is scaled to its place, and its letters with it: on a phone they would be too small.
const wide = (most) => (matchMedia("(max-width: 700px)").matches ? 340 : most);

function frame(label, { width, height }, children, points, format) {
  const picture = s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, children);
  const rows = points.map((p) => h("tr", {}, h("th", { scope: "row" }, p.label), h("td", {}, p.value === null ? "–" : format(p.value))));
  const numbers = h("table", { class: "sr" }, h("caption", {}, label), h("tbody", {}, rows));
  return h("figure", {}, picture, numbers);
}

function scale(points, height, { top = 14, bottom = 22, left = 44, max = null, whole = false, wanted = 640 } = {}) {
  const width = wide(wanted);
  const highest = max ?? Math.max(...points.map((p) => p.value ?? 0), 0);
  // There is no half of a task: what is counted in whole numbers has a whole middle.
  const most = whole ? Math.max(2, highest + (highest % 2)) : highest || 1;
  const x = (i) => left + (points.length < 2 ? (width - left - 12) / 2 : (i * (width - left - 12)) / (points.length - 1));
  const y = (v) => top + (height - top - bottom) * (1 - v / most);
  return { x, y, most, left, width, height, floor: height - bottom };
}

/** About how wide a label is; a Japanese letter takes the room of two. */
function room(label) {
  return 16 + [...label].reduce((sum, c) => sum + (c > "\u2fff" ? 11 : 6), 0);
}

function axes({ y, most, left, width, floor }, points, x, format) {
  const rules = [0, most / 2, most].map((v) => [
    s("line", { class: v ? "rule" : "axis", x1: left, x2: width - 6, y1: y(v), y2: y(v) }),
    s("text", { x: left - 8, y: y(v) + 4, "text-anchor": "end" }, format(v)),
  ]);
  const fit = Math.max(1, Math.min(7, Math.floor((width - left - 12) / Math.max(...points.map((p) => room(p.label)), 1))));
  const step = Math.max(1, Math.ceil(points.length / fit));
  const labels = points.map((p, i) => (i % step === 0 ? s("text", { x: x(i), y: floor + 16, "text-anchor": i === 0 && points.length > 1 ? "start" : i === points.length - 1 && points.length > 1 ? "end" : "middle" }, p.label) : null));
  return [rules, labels];
}

/** `points`: [{label, value|null}]. */
export function lineChart(label, points, { height = 190, format = String, max = null, goal = null, wanted = 640 } = {}) {
  const made = scale(points, height, { max, wanted });
  const { x, y } = made;
  const known = points.map((p, i) => [p, i]).filter(([p]) => p.value !== null && p.value !== undefined);
  const path = known.map(([p, i], at) => `${at ? "L" : "M"}${x(i).toFixed(1)} ${y(p.value).toFixed(1)}`).join("");
  const area = known.length > 1 ? `${path}L${x(known.at(-1)[1]).toFixed(1)} ${made.floor}L${x(known[0][1]).toFixed(1)} ${made.floor}Z` : "";
  const dots = known.length <= 40 ? known.map(([p, i]) => s("circle", { class: "point", cx: x(i), cy: y(p.value), r: 3.5 }, s("title", {}, `${p.label}: ${format(p.value)}`))) : null;
  const line = goal === null ? null : s("line", { class: "goal", x1: made.left, x2: made.width - 6, y1: y(goal), y2: y(goal) }, s("title", {}, t("goal {value}", { value: format(goal) })));
  return frame(label, made, [axes(made, points, x, format), line, area ? s("path", { class: "area", d: area }) : null, s("path", { class: "line", d: path }), dots], points, format);
}

export function barChart(label, points, { height = 190, format = String, tone = "", whole = false, wanted = 640 } = {}) {
  const made = scale(points, height, { whole, wanted });
  const share = (made.width - made.left - 12) / Math.max(1, points.length);
  const width = Math.max(2, Math.min(28, share * 0.62));
  const x = (i) => made.left + share * (i + 0.5);
  const columns = points.map((p, i) => s("rect", { class: `col ${tone}`, x: x(i) - width / 2, y: made.y(p.value ?? 0), width, height: Math.max(0, made.floor - made.y(p.value ?? 0)), rx: Math.min(3, width / 3) }, s("title", {}, `${p.label}: ${format(p.value ?? 0)}`)));
  return frame(label, made, [axes(made, points, x, format), columns], points, format);
}

export function sparkline(label, values, max = null) {
  const known = values.filter((v) => v !== null && v !== undefined);
  const most = max ?? (Math.max(...known, 0) || 1);
  const at = (v, i) => `${(4 + (known.length < 2 ? 56 : (i * 112) / (known.length - 1))).toFixed(1)} ${(26 - (22 * v) / most).toFixed(1)}`;
  const path = known.map((v, i) => `${i ? "L" : "M"}${at(v, i)}`).join("");
  const end = known.length ? at(known.at(-1), known.length - 1).split(" ") : null;
  const svg = s("svg", { class: "chart", viewBox: "0 0 120 30", role: "img", "aria-label": label }, s("path", { class: "line", d: path }), end ? s("circle", { class: "point", cx: end[0], cy: end[1], r: 2.6 }) : null);
  svg.style.maxWidth = "150px";
  return svg;
}
