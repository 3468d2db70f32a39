import { get, part } from "../api.js";
import { fill, h } from "../dom.js";
import { marked } from "../code.js";
import { ago, model, when } from "../format.js";
import { composer, stopButton } from "../composer.js";
import { follow } from "../live.js";
import { markdown } from "../markdown.js";
import { button, chip, copyable, empty, finder, head } from "../parts.js";
import { answerByKey } from "../question.js";
import { atBottom, toBottom } from "../scroll.js";
import { callDetails, Story, toolCall } from "../story.js";
import { t } from "../words.js";

export async function open(context) {
  const { main, rest, query, go, alive } = context;
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
  if (rest[0]) await read(rest[0], page, context);
}

async function read(id, page, { alive, go, bus, onDispose }) {
  const told = await get(`sessions/${part(id)}`);
  const choices = await get("work");
  if (!alive()) return;
  const { session, messages, next } = told;
  const talk = h("div", { class: "story body" });
  const foot = h("div", { class: "composer-foot" });
  const more = button(t("Show more"), async () => {
    const later = await get(`sessions/${part(id)}`, { after: more.dataset.after });
    more.before(...transcript(later.messages, session.project_path));
    if (later.next) more.dataset.after = later.next;
    else more.remove();
  });
  if (next) more.dataset.after = next;
  fill(talk, transcript(messages, session.project_path), next ? more : null);
  fill(page,
    h("header", {}, h("h2", {}, session.title ?? session.id), session.ended_at ? null : chip(t("open"), "run"), session.forked_from ? h("a", { class: "meta", href: `/console/sessions/${part(session.forked_from)}` }, t("copy of another")) : null, h("span", { class: "meta" }, when(session.started_at))),
    h("div", { class: "body stack" }, h("details", {}, h("summary", {}, t("Take it up in the terminal")), copyable(session.resume)), session.summary ? h("details", {}, h("summary", {}, t("Summary")), markdown(session.summary)) : null),
    talk, foot);
  const stories = new Map();
  const follows = (trace) => {
    if (stories.has(trace)) return;
    const asked = async () => {
      const { pending } = await get("approvals");
      if (alive()) story.ask(pending);
    };
    const story = new Story(trace, { project: session.project_path, reload: asked });
    stories.set(trace, story);
    talk.append(story.node);
    const bar = h("div", { class: "tools-row live-bar" }, h("a", { href: `/console/runs/${part(trace)}` }, t("See the run")));
    talk.append(bar);
    // What another tab started is run by this console as well, and stopped from any of them.
    get(`runs/${part(trace)}`).then((run) => { if (run.here && !story.ended) bar.prepend(stopButton(trace)); }, () => {});
    const grow = (change) => { const low = atBottom(); change(); if (low) toBottom(); };
    const stream = follow({
      event: (event) => grow(() => {
        story.take(event.position, event);
        if (event.type !== "final") return;
        // A browser has six connections to a host for all its tabs: none is held for what is over.
        stream.stop();
        fill(bar, h("a", { href: `/console/runs/${part(trace)}` }, t("See the run")));
      }),
      text: (piece) => grow(() => story.say(piece)),
    }, trace);
    bus.addEventListener("approvals", asked);
    onDispose(() => { story.stop(); stream.stop(); bus.removeEventListener("approvals", asked); });
    asked();
    toBottom();
  };
  if (told.live) follows(told.live.trace_id);
  // A turn that another tab or a terminal begins in this session is told here as well.
  const begun = ({ detail: run }) => {
    if (run.session === id && run.status === "running" && alive()) follows(run.trace_id);
  };
  bus.addEventListener("run", begun);
  onDispose(() => bus.removeEventListener("run", begun));
  answerByKey(() => [...stories.values()].map((story) => story.question).find(Boolean) ?? null, onDispose);
  fill(foot, composer({
    session: id, project: session.project_path, choices,
    live: () => [...stories.values()].some((story) => !story.ended),
    sent: (run, { fork }) => (fork ? go(`sessions/${part(run.session)}`) : follows(run.trace_id)),
  }));
  if (messages.length > 4) toBottom();
}

/** Messages as they are read: words as Markdown, calls folded with their results. */
function transcript(messages, project) {
  const results = new Map(messages.filter((one) => one.role === "tool").map((one) => [one.tool_call_id, one]));
  const known = new Set(messages.flatMap((one) => (one.tool_calls ?? []).map((call) => call.id)));
  return messages.flatMap((message) => {
    if (message.role === "tool") return known.has(message.tool_call_id) ? [] : [call(message.tool_name ?? t("Tool"), {}, message.content)];
    const words = message.content ? [h("div", { class: `turn ${message.role === "user" ? "user" : "agent"}` }, message.role === "user" ? h("p", { class: "wrap" }, message.content) : markdown(message.content, project))] : [];
    return [...words, ...(message.tool_calls ?? []).map((one) => call(one.name, one.arguments, results.get(one.id)?.content))];
  });
}

function call(name, args, result) {
  const shown = toolCall(name, args);
  shown.dot.className = "dot";
  shown.node.addEventListener("toggle", () => fill(shown.body, callDetails(args, result)), { once: true });
  return shown.node;
}
