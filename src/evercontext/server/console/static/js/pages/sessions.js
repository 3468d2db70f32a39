import { get, part } from "../api.js";
import { fill, h } from "../dom.js";
import { marked } from "../code.js";
import { ago, model, when } from "../format.js";
import { button, chip, copyable, empty, finder, head } from "../parts.js";
import { t } from "../words.js";

export async function open({ main, rest, query, go, alive }) {
  const list = h("div", { class: "panel pick" });
  const page = h("div", { class: "panel" });
  let q = query.get("q") ?? "";
  const load = async () => {
    const found = await get("sessions", { q });
    if (!alive()) return;
    const marks = q ? new RegExp(`(${q.split(/\s+/).map((w) => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "gi") : null;
    if (q && !found.hits.length) fill(list, empty("search", t("Nothing found"), t("No message holds all of these words.")));
    else if (!q && !found.sessions.length) fill(list, empty("sessions", t("No sessions yet"), t("Conversations of this directory are kept here, to search, to read and to take up again."), "evercontext chat"));
    else if (q) fill(list, found.hits.map((hit) => link(hit.session_id, hit.title ?? hit.session_id, [hit.role, ago(hit.timestamp)].join(" · "), marked(hit.excerpt, marks))));
    if (!q && found.sessions.length) fill(list, found.sessions.map((one) => link(one.id, one.title ?? one.id, [t("{n} messages", { n: one.messages }), model(one.model_used), ago(one.last_at ?? one.started_at)].join(" · "))));
    return q ? null : found.sessions[0]?.id;
  };
  const link = (id, title, meta, more = null) => h("a", { href: `/console/sessions/${part(id)}${q ? `?q=${part(q)}` : ""}`, "data-row": "", "aria-current": String(id === rest[0]) }, h("b", { class: "clip" }, title), more ? h("span", {}, more) : null, h("span", { class: "meta" }, meta));
  fill(main, head(t("Sessions"), t("Past conversations in this directory."), finder(t("Search every message"), (words) => { q = words; load(); }, q)), h("div", { class: "two" }, list, page));
  fill(page, rest[0] ? h("p", { class: "body meta" }, t("Loading")) : empty("sessions", t("Choose a session"), t("Read it here, or take it up again in your terminal.")));
  const newest = await load();
  // On a wide screen the newest one is there to be read at once.
  if (!rest[0] && newest && innerWidth > 980) return go(`sessions/${part(newest)}`, true);
  if (rest[0]) await read(rest[0], page, alive);
}

async function read(id, page, alive) {
  const { session, messages, next } = await get(`sessions/${part(id)}`);
  if (!alive()) return;
  const more = button(t("Show more"), async () => {
    const later = await get(`sessions/${part(id)}`, { after: more.dataset.after });
    for (const message of later.messages) more.before(said(message));
    if (later.next) more.dataset.after = later.next;
    else more.remove();
  });
  if (next) more.dataset.after = next;
  fill(page,
    h("header", {}, h("h2", {}, session.title ?? session.id), session.ended_at ? null : chip(t("open"), "run"), h("span", { class: "meta" }, when(session.started_at))),
    h("div", { class: "body stack" }, copyable(session.resume), session.summary ? h("details", {}, h("summary", {}, t("Summary")), h("p", { class: "wrap" }, session.summary)) : null),
    messages.map(said), next ? more : null);
}

function said(message) {
  const names = { user: t("You"), assistant: t("Agent"), tool: t("Tool") };
  return h("div", { class: `msg ${message.role}` }, h("span", { class: "who" }, names[message.role] ?? message.role, message.tool_name ? ` · ${message.tool_name}` : ""),
    message.content ? message.role === "tool" ? h("pre", { tabindex: "0" }, message.content) : h("p", { class: "wrap" }, message.content) : null,
    (message.tool_calls ?? []).map((call) => h("code", { class: "wrap" }, `${call.name} ${JSON.stringify(call.arguments)}`.slice(0, 600))));
}
