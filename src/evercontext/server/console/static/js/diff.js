// Unified diffs, line by line.
import { h } from "./dom.js";

const MOST = 3000;

export function diffLines(text, most = MOST) {
  const lines = String(text ?? "").replace(/\n$/, "").split("\n");
  const rows = [];
  let old = 0;
  let fresh = 0;
  for (const line of lines.slice(0, most)) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(line);
    if (line.startsWith("--- ") || line.startsWith("+++ ")) continue;
    if (hunk) {
      [old, fresh] = [Number(hunk[1]), Number(hunk[2])];
      rows.push(h("div", { class: "hunk" }, h("span", {}, "⋯"), h("span", {}, line)));
    } else if (line.startsWith("+")) rows.push(one("add", `+${fresh++}`, line.slice(1)));
    else if (line.startsWith("-")) rows.push(one("del", `-${old++}`, line.slice(1)));
    else if (line || rows.length) {
      rows.push(one("", String(fresh), line.slice(1)));
      old += 1;
      fresh += 1;
    }
  }
  if (lines.length > most) rows.push(h("div", {}, h("span", {}, "…"), h("span", {}, String(lines.length - most))));
  return h("div", { class: "diff", tabindex: "0", role: "group", "aria-label": "diff" }, rows);
}

function one(kind, mark, text) {
  return h("div", { class: kind }, h("span", {}, mark), h("span", {}, text || " "));
}

/** A file's change as a panel. */
export function diffPanel(change, extra = null, most = MOST) {
  return h("section", { class: "panel" },
    h("header", {}, h("h3", { class: "mono" }, change.path), extra,
      h("span", { class: "chip ok" }, `+${change.added}`), h("span", { class: "chip bad" }, `−${change.removed}`)),
    diffLines(change.diff, most));
}
