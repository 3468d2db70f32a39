// Elements are made here and nowhere else, and every text becomes a text node: whatever a file, a
// memory or a tool is called, it is shown and never run.

const SVG = "http://www.w3.org/2000/svg";
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
const HIDDEN = /[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

/** Text in which nothing can hide: control and direction characters are written out. */
export function visible(text) {
  return String(text)
    .replaceAll("\r\n", "\n")
    .replace(CONTROL, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`)
    .replace(HIDDEN, (c) => `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`);
}

function add(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
  return parent;
}

function set(element, props) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [kind, listener] of Object.entries(value)) element.addEventListener(kind, listener);
    } else if (name === "value") element.value = value;
    else if (name === "checked") element.checked = value;
    else if (name === "href") element.setAttribute("href", inside(value));
    else element.setAttribute(name, value === true ? "" : visible(value));
  }
  return element;
}

/** Only our own pages are linked to: no scheme can be smuggled in. */
function inside(href) {
  return href.startsWith("/console/") || href.startsWith("#") ? href : "#";
}

export function h(tag, props, ...children) {
  return add(set(document.createElement(tag), props), children);
}

export function s(tag, props, ...children) {
  return add(set(document.createElementNS(SVG, tag), props), children);
}

export function fill(parent, ...children) {
  parent.replaceChildren();
  return add(parent, children);
}

const ICONS = {
  runs: "M4 5h16M4 12h10M4 19h13",
  approvals: "M9 12l2 2 4-5M12 3l8 3v6c0 4.5-3.4 7.8-8 9-4.6-1.2-8-4.5-8-9V6z",
  sessions: "M4 5h16v11H9l-5 4z",
  search: "M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14zM16.5 16.5L21 21",
  memory: "M12 4a4 4 0 0 0-4 4 4 4 0 0 0-3 6 4 4 0 0 0 7 4 4 4 0 0 0 7-4 4 4 0 0 0-3-6 4 4 0 0 0-4-4zM12 4v14",
  tools: "M14.5 6.5a4 4 0 0 0-5 5L4 17l3 3 5.5-5.5a4 4 0 0 0 5-5L15 12l-3-3z",
  evaluations: "M4 19V9M10 19V5M16 19v-7M21 19H3",
  kpis: "M3 17l5-6 4 3 8-9M15 5h5v5",
  settings: "M12 9a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM12 3v3M12 18v3M3 12h3M18 12h3M5.6 5.6l2.1 2.1M16.3 16.3l2.1 2.1M18.4 5.6l-2.1 2.1M7.7 16.3l-2.1 2.1",
  menu: "M4 7h16M4 12h16M4 17h16",
  undo: "M8 5L4 9l4 4M4 9h10a6 6 0 0 1 0 12h-3",
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M6 6l12 12M18 6L6 18",
  file: "M7 3h7l4 4v14H7zM14 3v4h4",
  play: "M8 5l11 7-11 7z",
  spark: "M12 3l2 6 6 2-6 2-2 6-2-6-6-2 6-2z",
  flag: "M5 21V4h13l-3 4 3 4H5",
  dots: "M6 12h.01M12 12h.01M18 12h.01",
  gear: "M12 9a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM12 3v3M12 18v3M3 12h3M18 12h3M5.6 5.6l2.1 2.1M16.3 16.3l2.1 2.1M18.4 5.6l-2.1 2.1M7.7 16.3l-2.1 2.1",
  work: "M12 20h9M16.5 3.5a2.1 2.1 0 0 1 3 3L7 19l-4 1 1-4z",
  stop: "M7 7h10v10H7z",
  fork: "M7 4v6a4 4 0 0 0 4 4h2a4 4 0 0 1 4 4v2M7 4v16M17 4v4",
  retry: "M20 11a8 8 0 1 0-2 6M20 5v6h-6",
  clock: "M12 7v5l3 2M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18z",
  info: "M12 11v6M12 7h.01M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18z",
  list: "M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01",
};

export function icon(name) {
  const path = s("path", { d: ICONS[name] ?? ICONS.dots, fill: "none", stroke: "currentColor", "stroke-width": "1.8", "stroke-linecap": "round", "stroke-linejoin": "round" });
  return s("svg", { viewBox: "0 0 24 24", width: "16", height: "16", "aria-hidden": "true", focusable: "false" }, path);
}
