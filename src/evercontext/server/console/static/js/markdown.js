// Markdown as elements: headings, lists, tables, code, quotes, links and pictures of the project.
// Nothing here makes markup of text: whatever is not understood is shown as it was written.
import { codeLines } from "./code.js";
import { h } from "./dom.js";
import { t } from "./words.js";

const DEEPEST = 6;
const FENCE = /^ {0,3}(```+|~~~+)\s*([\w+#.-]*)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const ROW_RULE = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;
const PICTURE = /\.(?:png|jpe?g|gif|webp)$/i;
const INLINE = /(?<code>`+)(?<coded>[^`]|[^`][\s\S]*?[^`])\k<code>(?!`)|!\[(?<alt>[^\]\n]*)\]\((?<src>[^()\s]+)\)|\[(?<text>[^\]\n]+)\]\((?<to>[^()\s]+)\)|(?<url>https?:\/\/[^\s<>()"'`、。]+)|\*\*(?<bold>[^\s*](?:[^*\n]*[^\s*])?)\*\*|~~(?<gone>[^~\n]+)~~|(?<![\w*])\*(?<slant>[^\s*](?:[^*\n]*[^\s*])?)\*(?!\w)|(?<![\w_])_(?<low>[^\s_](?:[^_\n]*[^\s_])?)_(?!\w)/g;

/** The nodes of a text. `project` is where its pictures are looked for. */
export function markdown(text, project = "") {
  return h("div", { class: "md" }, blocks(String(text ?? "").replaceAll("\r\n", "\n").split("\n"), project, 0));
}

function blocks(lines, project, depth) {
  const nodes = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    if (!line.trim()) at += 1;
    else if (fence) {
      const end = lines.findIndex((other, i) => i > at && other.trim().startsWith(fence[1]) && !other.trim().slice(fence[1].length).trim());
      const to = end < 0 ? lines.length : end;
      nodes.push(code(lines.slice(at + 1, to).join("\n"), fence[2]));
      at = to + 1;
    } else if (heading) {
      nodes.push(h("p", { class: `md-h md-h${heading[1].length}` }, inline(heading[2], project)));
      at += 1;
    } else if (RULE.test(line)) {
      nodes.push(h("hr", {}));
      at += 1;
    } else if (/^ {0,3}>/.test(line) && depth < DEEPEST) {
      const to = run(lines, at, (other) => /^ {0,3}>/.test(other));
      nodes.push(h("blockquote", {}, blocks(lines.slice(at, to).map((other) => other.replace(/^ {0,3}> ?/, "")), project, depth + 1)));
      at = to;
    } else if (ITEM.test(line) && depth < DEEPEST) {
      const to = endOfList(lines, at);
      nodes.push(list(lines.slice(at, to), project, depth));
      at = to;
    } else if (line.includes("|") && ROW_RULE.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("-")) {
      const to = run(lines, at + 2, (other) => other.includes("|") && other.trim());
      nodes.push(grid(line, lines[at + 1], lines.slice(at + 2, to), project));
      at = to;
    } else {
      const to = Math.max(at + 1, run(lines, at, (other, i) => other.trim() && !(i > at && starts(other))));
      nodes.push(h("p", {}, inline(lines.slice(at, to).join("\n"), project)));
      at = to;
    }
  }
  return nodes;
}

const starts = (line) => FENCE.test(line) || HEADING.test(line) || RULE.test(line) || /^ {0,3}>/.test(line) || ITEM.test(line);

function run(lines, from, holds) {
  let at = from;
  while (at < lines.length && holds(lines[at], at)) at += 1;
  return at;
}

const indent = (line) => line.length - line.trimStart().length;

function endOfList(lines, from) {
  const base = indent(lines[from]);
  let at = from + 1;
  while (at < lines.length) {
    const line = lines[at];
    const next = lines[at + 1] ?? "";
    const inside = line.trim() ? indent(line) > base || (ITEM.test(line) && indent(line) >= base) : next.trim() && (indent(next) > base || ITEM.test(next));
    if (!inside) break;
    at += 1;
  }
  return at;
}

function list(lines, project, depth) {
  const base = indent(lines[0]);
  const numbered = /^\s*\d/.test(lines[0]);
  const items = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item && indent(line) <= base + 1) items.push([item[3]]);
    else items.at(-1).push(line.slice(Math.min(indent(line), base + 2 + (numbered ? 1 : 0))));
  }
  const start = numbered ? /\d+/.exec(lines[0])[0] : null;
  return h(numbered ? "ol" : "ul", { start: start === "1" ? null : start }, items.map((parts) => h("li", {}, item(parts, project, depth))));
}

function item(parts, project, depth) {
  const task = /^\[([ xX])\]\s+(.*)$/.exec(parts[0]);
  if (task) return [h("input", { type: "checkbox", disabled: true, checked: task[1] !== " ", "aria-label": task[2] }), " ", inline(task[2], project), blocks(parts.slice(1), project, depth + 1)];
  const nested = blocks(parts, project, depth + 1);
  // A short item is a line, not a paragraph with room around it.
  const first = nested[0];
  return first?.tagName === "P" && !first.className ? [[...first.childNodes], nested.slice(1)] : nested;
}

function cells(line) {
  return line.trim().replace(/^\|/, "").replace(/\|$/, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function grid(head, rule, rows, project) {
  const sides = cells(rule).map((cell) => (/^:-+:$/.test(cell) ? "center" : /-:$/.test(cell) ? "right" : null));
  const row = (tag, line) => h("tr", {}, cells(line).map((cell, at) => h(tag, { class: sides[at], scope: tag === "th" ? "col" : null }, inline(cell, project))));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("Table") }, h("table", { class: "table" }, h("thead", {}, row("th", head)), h("tbody", {}, rows.map((line) => row("td", line)))));
}

function code(text, name) {
  const copy = h("button", { class: "btn quiet", type: "button" }, t("Copy"));
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    copy.textContent = t("Copied");
    setTimeout(() => { copy.textContent = t("Copy"); }, 1500);
  });
  const kinds = { python: "py", javascript: "js", typescript: "ts", shell: "sh", bash: "sh", markdown: "md", text: "txt", rust: "rs", "": "txt" };
  const kind = kinds[name.toLowerCase()] ?? name.toLowerCase();
  return h("div", { class: "md-code" }, h("div", { class: "md-code-head" }, h("span", { class: "meta" }, name || t("code")), copy), codeLines(text, 1, "", `x.${kind}`));
}

function inline(text, project) {
  const nodes = [];
  let at = 0;
  for (const hit of text.matchAll(INLINE)) {
    nodes.push(text.slice(at, hit.index), mark(hit.groups, project));
    at = hit.index + hit[0].length;
  }
  nodes.push(text.slice(at));
  return nodes;
}

function mark(hit, project) {
  if (hit.coded !== undefined) return h("code", {}, hit.coded);
  if (hit.src !== undefined) return picture(hit.src, hit.alt, project);
  // An address is shown, never followed: the text of a model must not lead anybody away.
  if (hit.to !== undefined) return h("span", { class: "md-link" }, hit.text, hit.text === hit.to ? null : [" ", h("code", {}, hit.to)]);
  if (hit.url !== undefined) return h("code", {}, hit.url);
  if (hit.bold !== undefined) return h("strong", {}, inline(hit.bold, project));
  if (hit.gone !== undefined) return h("del", {}, hit.gone);
  return h("em", {}, hit.slant ?? hit.low);
}

/** A picture of the project; what lies elsewhere is not fetched, only named. */
export function picture(source, alt, project) {
  const path = source.replace(/^\.\//, "");
  if (/^[a-z][a-z0-9+.-]*:|^\/|^\\|\.\./i.test(path) || !PICTURE.test(path)) return h("code", {}, source);
  const node = h("img", { class: "md-img", alt: alt || path, loading: "lazy", src: `/console/api/picture?${new URLSearchParams(project ? { path, project } : { path })}` });
  node.addEventListener("error", () => node.replaceWith(h("code", {}, source)));
  return node;
}
