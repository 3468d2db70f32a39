// The shell around the pages: where we are, what is live, keys, looks and language.
import { get, whoAmI } from "./api.js";
import { fill, h, icon } from "./dom.js";
import { follow } from "./live.js";
import { button, dialog, problemPage, segments } from "./parts.js";
import { language, setLanguage, t } from "./words.js";

const PAGES = [
  ["work", "New work", "g w"],
  ["runs", "Runs", "g r"],
  ["approvals", "Approvals", "g a"],
  ["sessions", "Sessions", "g s"],
  ["search", "Search", "g f"],
  ["memory", "Memory", "g m"],
  ["tools", "Tools", "g t"],
  ["evaluations", "Evaluations", "g e"],
  ["kpis", "KPIs", "g k"],
  ["settings", "Settings", "g ,"],
];
const BASE = "/console/";
const bus = new EventTarget();
let shown = { dispose: () => {} };
let turn = 0;
let waiting = 0;

function read(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function keep(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // A browser that keeps nothing still shows everything.
  }
}

function wear(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  keep("ec-theme", theme);
}

export function go(path, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", BASE + path);
  return show();
}

function place() {
  const [page = "work", ...rest] = location.pathname.slice(BASE.length).split("/").filter(Boolean).map(decodeURIComponent);
  return { page: PAGES.some(([name]) => name === page) ? page : "work", rest, query: new URLSearchParams(location.search) };
}

async function show() {
  const mine = ++turn;
  const { page, rest, query } = place();
  shown.dispose();
  shown = { dispose: () => {} };
  for (const link of document.querySelectorAll(".nav a")) {
    if (link.dataset.page === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.querySelector(".side").classList.remove("open");
  const main = document.getElementById("main");
  titled(t(PAGES.find(([name]) => name === page)[1]));
  const cleaners = [];
  const context = {
    main, rest, query, go, t, bus,
    me: await whoAmI(),
    onDispose: (clean) => (mine === turn ? cleaners.push(clean) : clean()),
    title: titled,
    alive: () => mine === turn,
  };
  shown = { dispose: () => cleaners.splice(0).forEach((clean) => clean()) };
  try {
    const module = await import(`./pages/${page}.js`);
    if (mine === turn) await module.open(context);
  } catch (problem) {
    if (mine === turn) fill(main, problemPage(problem));
  }
  if (mine === turn) document.documentElement.dataset.ready = page;
}

function titled(text) {
  document.title = `${waiting ? `(${waiting}) ` : ""}${text} · EverContext`;
}

function side(me) {
  const links = PAGES.map(([name, title]) =>
    h("li", {}, h("a", { href: `${BASE}${name}`, "data-page": name }, icon(name), t(title), name === "approvals" ? h("span", { class: "count", id: "waiting", hidden: true }) : null)));
  const groups = [
    h("h2", { id: "nav-work" }, t("Work")), h("ul", { "aria-labelledby": "nav-work" }, links.slice(0, 4)),
    h("h2", { id: "nav-know" }, t("Knowledge")), h("ul", { "aria-labelledby": "nav-know" }, links.slice(4, 7)),
    h("h2", { id: "nav-look" }, t("Quality")), h("ul", { "aria-labelledby": "nav-look" }, links.slice(7)),
  ];
  const menu = button("", () => box.classList.toggle("open"), "quiet menu-btn", "menu");
  menu.setAttribute("aria-label", t("Menu"));
  const box = h("header", { class: "side" },
    h("div", { class: "brand" }, h("img", { src: `${BASE}static/mark.svg`, alt: "" }), h("div", {}, h("b", {}, "EverContext"), h("span", { title: me.root }, me.project))),
    menu,
    h("nav", { class: "nav", "aria-label": t("Pages") }, groups),
    h("div", { class: "foot" },
      h("div", { class: "live" }, h("i", { class: "dot", id: "live-dot", "aria-hidden": "true" }), h("span", { id: "live-text", role: "status" }, t("Connecting"))),
      segments(t("Colours"), [["system", t("Auto")], ["light", t("Light")], ["dark", t("Dark")]], read("ec-theme") ?? "system", wear),
      segments(t("Language"), [["en", "English"], ["ja", "日本語"]], language(), async (chosen) => {
        setLanguage(chosen);
        await build();
      }),
      h("div", { class: "live" }, button(t("Keys"), help, "quiet"), h("kbd", { "aria-hidden": "true" }, "?"), h("span", {}, `v${me.version}`))));
  return box;
}

function help() {
  if (document.querySelector("dialog[open]")) return;
  const rows = [["j / k", t("Next or previous row")], ["Enter", t("Open the row")], ["/", t("Search on this page")], ["c", t("Write a task or a message")], ["y / n / a", t("Answer a question: yes, no, yes for this run")], ["Esc", t("Leave a field, close a window")], ...PAGES.map(([, title, keys]) => [keys, t(title)]), ["?", t("This list")]];
  dialog(t("Keys"), h("div", { class: "keys" }, rows.flatMap(([keys, text]) => [h("span", {}, h("kbd", {}, keys)), h("span", {}, text)])));
}

function heard({ ids }) {
  waiting = ids.length;
  const badge = document.getElementById("waiting");
  badge.hidden = waiting === 0;
  fill(badge, String(waiting), h("span", { class: "sr" }, t("waiting for your answer")));
  document.title = document.title.replace(/^(\(\d+\) )?/, waiting ? `(${waiting}) ` : "");
}

function connected(on) {
  document.getElementById("live-dot").className = `dot ${on ? "on" : "wait"}`;
  fill(document.getElementById("live-text"), on ? t("Live") : t("Reconnecting"));
}

let pressed = "";
function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const field = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (field || document.querySelector("dialog[open]")) return;
  const key = event.key;
  if (pressed === "g") {
    pressed = "";
    const found = PAGES.find(([, , combination]) => combination === `g ${key}`);
    if (found) {
      event.preventDefault();
      go(found[0]);
    }
  } else if (key === "g") pressed = "g";
  else if (key === "?") help();
  else if (key === "/") {
    const find = document.querySelector("[data-find]");
    if (find) {
      event.preventDefault();
      find.focus();
      find.select();
    }
  } else if (key === "c") {
    event.preventDefault();
    const box = document.querySelector("[data-compose]");
    if (box) box.focus();
    else go("work");
  } else if (key === "j" || key === "k") move(key === "j" ? 1 : -1);
}

function move(step) {
  const list = document.querySelector("[data-keys]");
  if (list?.moveBy) {
    list.focus({ preventScroll: true });
    list.moveBy(step);
    return;
  }
  const rows = [...document.querySelectorAll("[data-row]")].filter((row) => row.offsetParent);
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[Math.max(0, Math.min(rows.length - 1, at + step))];
  (next?.matches("a, button") ? next : next?.querySelector("a, button, input"))?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function clicked(event) {
  const link = event.target.closest?.("a[href^='/console/']");
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(link.getAttribute("href").slice(BASE.length));
}

let stream = null;
async function build() {
  const me = await whoAmI();
  document.documentElement.lang = language();
  document.getElementById("skip").textContent = t("Skip to content");
  const toasts = h("div", { class: "toasts", id: "toasts", role: "status", "aria-live": "polite" });
  fill(document.getElementById("app"), h("div", { class: "shell" }, side(me), h("main", { class: "main", id: "main", tabindex: "-1" })), toasts);
  stream?.stop();
  stream = follow({
    state: connected,
    run: (run) => bus.dispatchEvent(new CustomEvent("run", { detail: run })),
    reset: () => bus.dispatchEvent(new CustomEvent("reset")),
    approvals: (found) => {
      heard(found);
      bus.dispatchEvent(new CustomEvent("approvals", { detail: found }));
    },
  });
  heard({ ids: (await get("approvals")).pending });
  await show();
}

wear(read("ec-theme") ?? "system");
document.addEventListener("keydown", keys);
document.addEventListener("click", clicked);
addEventListener("popstate", show);
addEventListener("pagehide", () => stream?.stop());
build();
