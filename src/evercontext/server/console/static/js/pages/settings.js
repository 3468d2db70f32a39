import { get } from "../api.js";
import { fill, h, icon } from "../dom.js";
import { chip, copyable, empty, finder, head, table } from "../parts.js";
import { SETTINGS } from "../settings.ja.js";
import { language, t } from "../words.js";

const SAID = ["(unset)", "(set)", "(none)"];
const FROM = "environment ";
const valueOf = (one) => (SAID.includes(one.value) ? t(one.value) : one.value);
const originOf = (one) => (one.origin.startsWith(FROM) ? t("environment {name}", { name: one.origin.slice(FROM.length) }) : t(one.origin));
const helpOf = (one) => (language() === "ja" ? SETTINGS[one.name] ?? one.help : one.help);

export async function open({ main, alive }) {
  const { settings, notices } = await get("settings");
  if (!alive()) return;
  const place = h("div", { class: "panel" });
  const draw = (words) => {
    const wanted = words.toLowerCase();
    const found = settings.filter((one) => `${one.name} ${one.environment} ${one.help} ${helpOf(one)} ${one.origin}`.toLowerCase().includes(wanted));
    const rows = found.map((one) => h("tr", {}, h("td", {}, h("code", {}, one.name), h("div", { class: "meta" }, helpOf(one))), h("td", { class: "mono" }, valueOf(one), " ", one.secret ? chip(t("secret"), "wait") : null), h("td", {}, chip(originOf(one), one.origin === "default" ? "" : "accent")), h("td", { class: "mono hide-small nowrap" }, one.environment ?? "–")));
    fill(place, rows.length ? table(t("Settings"), [t("Setting"), t("Value"), t("Origin"), t("Variable")], rows, { cards: true }) : empty("search", t("Nothing found"), t("Try fewer words, or another filter.")));
  };
  fill(main, head(t("Settings"), t("Every value and where it comes from. Secrets are only said to be set."), finder(t("Find a setting"), draw)),
    h("div", { class: "stack" }, notices.map((text) => h("p", { class: "notice" }, icon("info"), text)), h("div", { class: "chips" }, h("span", { class: "meta" }, t("Change one at the terminal:")), copyable("evercontext config set NAME VALUE")), place));
  draw("");
}
