// Small parts that every page uses.
import { fill, h, icon } from "./dom.js";
import { t } from "./words.js";

const TONES = { done: "ok", running: "run", allowed: "ok", verified: "ok", limit: "wait", cancelled: "wait", "cut off": "wait", withdrawn: "wait", denied: "bad" };

export const toneOf = (status) => TONES[status] ?? "bad";

export function chip(text, tone = "", title = null) {
  return h("span", { class: `chip ${tone}`, title }, text);
}

export function statusChip(status) {
  const tone = toneOf(status);
  return h("span", { class: `chip ${tone}` }, h("i", { class: `dot ${tone}`, "aria-hidden": "true" }), t(status));
}

export function button(text, on, kind = "", glyph = null) {
  return h("button", { class: `btn ${kind}`, type: "button", on: { click: on } }, glyph ? icon(glyph) : null, text);
}

export function copyable(command) {
  const label = h("button", { class: "btn quiet", type: "button", "aria-label": t("Copy {what}", { what: command }) }, t("Copy"));
  label.addEventListener("click", async () => {
    await navigator.clipboard.writeText(command);
    fill(label, t("Copied"));
    setTimeout(() => fill(label, t("Copy")), 1500);
  });
  return h("span", { class: "copy" }, h("code", { tabindex: "0" }, command), label);
}

/** What a page shows before there is anything: what it is for, and the command that fills it. */
export function empty(glyph, title, text, command = null) {
  return h("div", { class: "empty" }, icon(glyph), h("h2", {}, title), h("p", {}, text), command ? copyable(command) : null);
}

export function head(title, text, ...tools) {
  return h("header", { class: "head" }, h("div", {}, h("h1", {}, title), text ? h("p", {}, text) : null), h("div", { class: "tools-row" }, tools));
}

export function finder(placeholder, on, value = "") {
  let timer = 0;
  const input = h("input", { class: "field", type: "search", placeholder, "aria-label": placeholder, value, "data-find": "", autocomplete: "off", spellcheck: "false" });
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => on(input.value.trim()), 300);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      clearTimeout(timer);
      on(input.value.trim());
    } else if (event.key === "Escape") input.blur();
  });
  return h("div", { class: "find" }, icon("search"), input, h("kbd", { "aria-hidden": "true", class: "hide-small" }, "/"));
}

export function segments(label, options, chosen, on) {
  const group = h("div", { class: "seg", role: "group", "aria-label": label });
  for (const [value, text] of options) {
    const one = h("button", { type: "button", "aria-pressed": String(value === chosen), "data-value": value }, text);
    one.addEventListener("click", () => {
      for (const other of group.children) other.setAttribute("aria-pressed", String(other === one));
      on(value);
    });
    group.append(one);
  }
  return group;
}

export function toggle(label, checked, on, { hidden = false } = {}) {
  const input = h("input", { type: "checkbox", role: "switch", checked, "aria-label": hidden ? label : null });
  input.addEventListener("change", async () => {
    input.disabled = true;
    try {
      await on(input.checked);
    } catch (problem) {
      input.checked = !input.checked;
      toast(problem.message, true);
    } finally {
      input.disabled = false;
    }
  });
  return h("label", { class: "switch" }, input, hidden ? null : label);
}

export function tabs(label, options, chosen, on) {
  const bar = h("div", { class: "tabs", role: "tablist", "aria-label": label });
  const panel = h("div", { role: "tabpanel", id: "tab-panel", tabindex: "-1" });
  const show = (value) => {
    for (const tab of bar.children) {
      const mine = tab.dataset.value === value;
      tab.setAttribute("aria-selected", String(mine));
      tab.tabIndex = mine ? 0 : -1;
      if (!mine) continue;
      panel.setAttribute("aria-label", tab.textContent);
      // A phone shows three of five: the chosen one has to be among them, once the bar is there.
      requestAnimationFrame(() => tab.scrollIntoView({ block: "nearest", inline: "nearest" }));
    }
    on(value, panel);
  };
  for (const [value, text] of options) {
    bar.append(h("button", { role: "tab", type: "button", "data-value": value, "aria-controls": "tab-panel", on: { click: () => show(value) } }, text));
  }
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const all = [...bar.children];
    const next = all[(all.indexOf(document.activeElement) + step + all.length) % all.length];
    next.focus();
    show(next.dataset.value);
  });
  show(chosen);
  return [bar, panel];
}

export function toast(text, bad = false) {
  const place = document.getElementById("toasts");
  const one = h("div", { class: `toast ${bad ? "bad" : ""}` }, text);
  place.append(one);
  setTimeout(() => one.remove(), bad ? 8000 : 4000);
}

export function dialog(title, body, ...actions) {
  const shut = button("", () => box.close(), "quiet", "cross");
  shut.setAttribute("aria-label", t("Close"));
  const box = h("dialog", { "aria-label": title }, h("header", {}, h("h2", {}, title), shut), h("div", { class: "body" }, body), actions.length ? h("footer", {}, actions) : null);
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  return box;
}

/** `cards`: on a phone each row stands as a card, where columns would break every word. */
export function table(label, columns, rows, { cards = false } = {}) {
  if (cards) for (const row of rows) [...row.children].forEach((cell, at) => { cell.dataset.label = columns[at].replace(/^>/, ""); });
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", { class: cards ? "table cards" : "table" },
      h("thead", {}, h("tr", {}, columns.map((name) => h("th", { scope: "col", class: name.startsWith(">") ? "right" : null }, name.replace(/^>/, ""))))),
      h("tbody", {}, rows)),
  );
}

export function problemPage(problem) {
  return h("div", { class: "panel" }, empty("info", t("This did not work"), problem.message));
}
