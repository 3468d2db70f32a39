import { get, part, post } from "../api.js";
import { fill, h, icon } from "../dom.js";
import { diffLines, diffPanel } from "../diff.js";
import { diffSizes, gauge, timeShares, waterfall } from "../figures.js";
import { duration, model, money, number, since, when } from "../format.js";
import { VirtualList } from "../list.js";
import { follow } from "../live.js";
import { button, chip, copyable, dialog, empty, statusChip, tabs, toast } from "../parts.js";
import { answerByKey } from "../question.js";
import { atBottom, toBottom } from "../scroll.js";
import { stopButton } from "../composer.js";
import { about, clockOf, Story } from "../story.js";
import { t } from "../words.js";

const LOOKS = {
  task: ["flag", "accent"], plan: ["list", "accent"], task_ended: ["check", ""], model_reply: ["spark", "accent"],
  step: ["play", "run"], tool_result: ["check", "ok"], diff: ["file", ""], approval: ["approvals", "wait"], retry: ["undo", "wait"],
  limit: ["info", "wait"], evidence: ["search", ""], context: ["memory", ""], compacted: ["memory", ""], verification: ["check", "ok"],
  task_began: ["play", "accent"], recalled: ["memory", "accent"], rolled_back: ["undo", "wait"], hook: ["tools", ""], indexed: ["search", ""], renamed: ["file", ""],
  audit: ["info", ""], repair: ["tools", "wait"], notice: ["info", ""], final: ["flag", "ok"], evaluation_state: ["evaluations", ""],
};

const MOST_TOLD = 600;

export async function open({ main, rest, query, go, bus, onDispose, alive, title }) {
  const id = rest[0];
  const told = await get(`runs/${part(id)}`);
  if (!alive()) return;
  const run = told.run;
  title(run.text || id);
  const header = h("div", { class: "stack" });
  const detail = h("aside", { class: "detail", "aria-label": t("Details"), tabindex: "0" });
  const list = timeline(run, id, detail);
  const asked = async () => {
    const { pending } = await get("approvals");
    if (alive()) story.ask(pending);
  };
  const story = new Story(id, { project: run.root, started: run.started, reload: asked });
  const paint = () => fill(header, top(told, go, refresh), stages(told.run, told.frame));
  const refresh = async () => {
    Object.assign(told, await get(`runs/${part(id)}`));
    if (alive()) paint();
  };
  paint();
  const parts = {
    story: (place) => fill(place, h("div", { class: "panel body" }, story.node)),
    timeline: (place) => fill(place, h("div", { class: "panel timeline" }, list.node, detail)),
    time: (place) => figures(told.run, place),
    changes: (place) => changes(id, place),
    evidence: (place) => evidence(told, place),
  };
  const names = [["story", t("Course")], ["timeline", t("Timeline")], ["time", t("Time and context")], ["changes", t("Changes")], ["evidence", t("Evidence")]];
  const [bar, panel] = tabs(t("Parts of this run"), names, parts[query.get("tab")] ? query.get("tab") : "story", (value, place) => parts[value](place));
  fill(main, header, h("div", { class: "body-gap" }), bar, panel);
  onDispose(() => story.stop());
  const first = await tellSoFar(story, id);
  if (!alive()) return;
  live({ id, run: told, list, story, paint, refresh, onDispose, after: first });
  await list.open();
  if (alive()) hint(detail, told);
  bus.addEventListener("approvals", asked);
  onDispose(() => bus.removeEventListener("approvals", asked));
  answerByKey(() => story.question, onDispose);
  await asked();
}

/** Tell what happened so far; of a very long run the task and its end. */
async function tellSoFar(story, id) {
  let { events, total } = await get(`runs/${part(id)}/events`, { limit: 500 });
  const cut = total > MOST_TOLD + 500;
  if (cut) {
    story.take(0, events[0]);
    story.add(h("p", { class: "step-line" }, icon("dots"), t("{n} more", { n: total - MOST_TOLD }), h("span", { class: "meta" }, t("They stand in the timeline."))));
    story.next = total - MOST_TOLD;
    ({ events } = await get(`runs/${part(id)}/events`, { start: story.next, limit: 500 }));
  }
  let last = "";
  while (events.length) {
    for (const event of events) { story.take(story.next, event); last = event.id; }
    ({ events } = await get(`runs/${part(id)}/events`, { start: story.next, limit: 500 }));
  }
  return last;
}

function live({ id, run: told, list, story, paint, refresh, onDispose, after }) {
  const stream = follow({
    event: (event) => {
      list.append([[event.position, event]]);
      const low = atBottom();
      story.take(event.position, event);
      if (low) toBottom();
    },
    text: (piece) => {
      const low = atBottom();
      story.say(piece);
      if (low) toBottom();
    },
    run: (run) => {
      const ended = told.run.status === "running" && run.status !== "running";
      const first = told.run.status !== run.status || !run.duration_ms;
      told.run = run;
      if (first || ended) paint();
      if (ended) {
        stream.stop();
        refresh();
      }
    },
    reset: () => list.refresh(),
  }, id, after || told.run.last_id);
  onDispose(() => stream.stop());
}

/** The tasks of a plan with how each stands. */
function planned(frame) {
  const plan = frame.findLast((event) => event.type === "plan");
  if (!plan || plan.data.source === "implicit") return null;
  const ends = Object.fromEntries(frame.filter((event) => event.type === "task_ended").map((event) => [event.data.id, event.data.status]));
  const state = (one) => ends[one.id] ?? ((plan.data.finished ?? []).includes(one.id) ? "done" : "pending");
  return [h("h2", {}, t("Plan")), h("ol", { class: "stack" }, plan.data.tasks.map((one) => h("li", { class: "chips" }, chip(t(state(one)), state(one) === "done" ? "ok" : state(one) === "pending" ? "" : "bad"), h("span", {}, one.title ?? one.id), one.depends_on?.length ? h("span", { class: "meta" }, `← ${one.depends_on.join(", ")}`) : null)))];
}

function hint(detail, { run, frame }) {
  fill(detail, h("div", { class: "stack" }, h("h2", {}, t("Task")), h("p", { class: "wrap" }, run.text), planned(frame),
    h("p", { class: "meta" }, t("Choose a row to see all of it.")), h("dl", {}, h("dt", {}, t("Trace")), h("dd", { class: "mono" }, run.trace_id),
      h("dt", {}, t("Started")), h("dd", {}, when(run.started)), h("dt", {}, t("Root")), h("dd", { class: "mono" }, run.root)),
    copyable(`evercontext trace show ${run.trace_id.slice(0, 8)}`)));
}

function top(told, go, refresh) {
  const { run, undo } = told;
  const running = run.status === "running";
  const act = running ? (told.here ? stopButton(run.trace_id) : null) : retryButton(run, go);
  const back = undo.possible ? button(t("Undo changes"), () => askUndo(run, refresh), "danger", "undo") : undo.undone ? chip(t("undone"), "wait") : null;
  const facts = [
    [t("Model"), model(run.model)], [t("Duration"), clockOf(run)], [t("Turns"), number(run.turns)], [t("Steps"), number(run.steps)],
    run.input_tokens ? [t("Tokens in / out"), `${number(run.input_tokens)} / ${number(run.output_tokens)}`] : null, run.cost_usd ? [t("Cost"), money(run.cost_usd)] : null, run.changed.length ? [t("Files changed"), number(run.changed.length)] : null,
  ].filter(Boolean);
  return [
    h("header", { class: "head" }, h("div", {}, h("p", { class: "meta" }, h("a", { href: "/console/runs" }, t("Runs")), " / ", h("span", { class: "mono" }, run.trace_id.slice(0, 8))), h("h1", { class: "wrap" }, run.text || run.trace_id)),
      h("div", { class: "tools-row" }, statusChip(run.status), run.verified ? chip(t(run.verified), run.verified === "verified" ? "ok" : "wait") : null, run.exit_code ? chip(t("exit {code}", { code: run.exit_code }), "bad") : null, run.mode && run.mode !== "agent" ? chip(run.mode, "accent") : null, run.session ? h("a", { class: "btn", href: `/console/sessions/${part(run.session)}` }, icon("sessions"), t("Session")) : null, act, back)),
    h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { title: value instanceof Node ? null : value }, value)))),
  ];
}

/** The same task once more. */
function retryButton(run, go) {
  const act = button(t("Try again"), async () => {
    act.disabled = true;
    try {
      const next = await post(`work/${part(run.trace_id)}/retry`, { ask: true });
      await go(next.session ? `sessions/${part(next.session)}` : `runs/${part(next.trace_id)}`);
    } catch (problem) {
      toast(problem.message, true);
      act.disabled = false;
    }
  }, "", "retry");
  return act;
}

// What a check proves; events of earlier versions have only the exit code.
const verdictOf = (data) => data.verdict ?? (data.exit_code === 0 ? "verified" : data.exit_code === null ? "not verified" : "red");

function stages(run, frame) {
  const has = (kind) => frame.some((event) => event.type === kind);
  const plan = frame.find((event) => event.type === "plan");
  const made = plan && plan.data.source !== "implicit" ? t("Plan: {n} tasks", { n: plan.data.tasks.length }) : t("No plan needed");
  const checks = frame.filter((event) => event.type === "verification");
  const words = checks.map((event) => verdictOf(event.data));
  const end = run.verified ?? (words.includes("red") ? "red" : words.every((word) => word === "verified") ? "verified" : "not verified");
  const rows = [
    [t("Task"), "ok"], [made, plan ? "ok" : ""], [t("{n} steps", { n: run.steps }), run.steps ? "ok" : ""],
    [t("{n} changes", { n: run.diffs }), run.diffs ? "ok" : ""],
    checks.length ? [end === "red" ? t("Checks red") : end === "verified" ? t("Checks green") : t(end), end === "red" ? "bad" : end === "verified" ? "ok" : "wait"] : null,
    [has("final") ? t("Final: {status}", { status: t(run.status) }) : t(run.status), run.status === "running" ? "run" : run.status === "done" ? "ok" : "bad"],
  ].filter(Boolean);
  return h("ol", { class: "stages", "aria-label": t("Stages") }, rows.map(([text, tone]) => h("li", { class: "stage" }, h("i", { class: `dot ${tone}`, "aria-hidden": "true" }), text)));
}

function timeline(run, id, detail) {
  return new VirtualList({
    label: t("Timeline"), rowHeight: 38, rowClass: "event-row",
    load: async (start, limit) => {
      const { events, total } = await get(`runs/${part(id)}/events`, { start, limit });
      return { rows: events, total };
    },
    draw: (event) => row(event, run.started),
    choose: (event, index) => show(detail, id, event, index),
  });
}

function row(event, started) {
  const [name, text, extra, tone] = describe(event);
  const [glyph, usual] = LOOKS[event.type] ?? ["dots", ""];
  const bad = event.type === "tool_result" && !event.data.ok;
  return [
    h("span", { class: "at" }, started ? since(started, event.at) : ""),
    h("span", { class: `ico ${bad ? "bad" : tone ?? usual}` }, icon(bad ? "cross" : glyph)),
    h("span", { class: "clip" }, h("b", {}, name), text),
    h("span", { class: "meta num" }, extra ?? ""),
  ];
}

/** Name, what it is about, what stands at the right, and a colour if not the usual one. */
function describe({ type, data }) {
  const first = (text) => String(text ?? "").split("\n").find((line) => line.trim()) ?? "";
  switch (type) {
    case "task": return [t("Task"), first(data.text)];
    case "plan": return [t("Plan"), data.source === "implicit" ? t("No plan needed") : (data.tasks ?? []).map((one) => one.title ?? one.id).join(" → "), model(data.source)];
    case "task_began": return [t("Task began"), data.title];
    case "recalled": return [t("Recalled"), t("{n} memories", { n: (data.memories ?? []).length }), (data.similarities ?? []).slice(0, 1).map((near) => near.toFixed(2)).join("")];
    case "rolled_back": return [t("Rolled back"), [...(data.restored ?? []), ...(data.removed ?? [])].join(", ")];
    case "hook": return [t("Hook"), `${data.event}: ${Array.isArray(data.command) ? data.command.join(" ") : data.command}`, data.decision];
    case "renamed": return [t("Renamed"), `${data.old} → ${data.new}`];
    case "task_ended": return [t("Task ended"), data.title, t(data.status), data.status === "done" ? "ok" : "bad"];
    case "model_reply": return [t("Model"), first(data.text) || (data.calls ?? []).map((call) => call.name).join(", "), duration(data.duration_ms)];
    case "step": return [`${data.tool}${manner(data)}`, about(data.arguments)];
    case "tool_result": return [`${data.ok ? t("Result") : t("Refused or failed")}${manner(data)}`, first(data.text), duration(data.duration_ms)];
    case "diff": return [t(data.kind), data.path, `+${data.added} −${data.removed}`];
    case "approval": return [data.allowed ? t("Approved") : t("Not approved"), `${data.tool} · ${data.by}${data.feedback ? ` · ${data.feedback}` : ""}`, null, data.allowed ? "ok" : "bad"];
    case "retry": return [t("Retry"), `${data.what}: ${data.reason}`];
    case "limit": return [t("Limit"), `${data.kind} ${data.used} / ${data.allowed}`];
    case "evidence": return [t("Evidence"), `${data.query} → ${(data.paths ?? []).join(", ")}`];
    case "context": return [t("Context"), t("{n} tokens", { n: number(data.context_token_count) }), `${Math.round(data.context_assembly_latency_ms)} ms`];
    case "verification": return [t("Check"), `${data.kind}: ${first(data.summary)}`, t(verdictOf(data)), verdictOf(data) === "red" ? "bad" : verdictOf(data) === "verified" ? "ok" : "wait"];
    case "repair": return [t("Repair"), `${data.by}: ${data.failures_before} → ${data.failures_after}`, data.green ? t("green") : "", data.green ? "ok" : "wait"];
    case "notice": return [t("Notice"), first(data.text)];
    case "audit": return [data.method, data.path, String(data.status), data.status < 400 ? "" : "bad"];
    case "final": return [t("Final"), first(data.text), t(data.status), data.status === "done" ? "ok" : "bad"];
    default: return [type, first(JSON.stringify(data))];
  }
}

/** What sets a call apart: on the state before the change, in the background, what was opened to it. */
function manner(data) {
  const opened = { network: "with network", outside: "outside the sandbox" }[data.access];
  const parts = [data.state === "before" ? t("before the change") : null, data.arguments?.background === true ? t("in the background") : null, opened ? t(opened) : null].filter(Boolean);
  return parts.length ? ` (${parts.join(", ")})` : "";
}

async function show(detail, id, event, index) {
  fill(detail, body(event));
  const whole = await get(`runs/${part(id)}/events/${index}`);
  fill(detail, body(whole));
  detail.scrollTop = 0;
}

function body(event) {
  const [name] = describe(event);
  const rest = Object.entries(event.data ?? {}).filter(([, value]) => value !== null && value !== "" && !(Array.isArray(value) && !value.length));
  const long = ([key, value]) => typeof value === "object" || String(value).length > 60 || ["text", "diff", "summary"].includes(key);
  const shape = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
  return h("div", { class: "stack" },
    h("div", { class: "chips" }, h("h2", {}, name), chip(event.type, "accent"), h("span", { class: "meta" }, when(event.at))),
    h("dl", {}, rest.filter((pair) => !long(pair)).flatMap(([key, value]) => [h("dt", {}, key), h("dd", {}, String(value))])),
    rest.filter(long).map(([key, value]) => h("section", { class: "stack" }, h("h3", {}, key),
      key === "diff" ? diffLines(value) : key === "paths" ? h("ul", {}, value.map((path) => h("li", {}, h("a", { class: "mono", href: `/console/search?prefix=${part(path)}&q=${part(event.data.query ?? path)}` }, path)))) : h("pre", { tabindex: "0" }, shape(value)))),
    h("p", { class: "meta mono" }, event.id));
}

/** Where the time went, how full the window was, what was changed; what is empty is not drawn. */
async function figures(run, place) {
  fill(place, h("p", { class: "meta" }, t("Loading")));
  const { bars, context, files } = await get(`runs/${part(run.trace_id)}/figures`);
  const section = (name, ...body) => h("section", { class: "panel" }, h("header", {}, h("h2", {}, name)), h("div", { class: "body stack" }, body));
  const shares = timeShares(bars, run.duration_ms);
  const sum = shares.reduce((all, [, ms]) => all + ms, 0);
  const legend = h("p", { class: "chips" }, shares.map(([name, ms, kind]) => h("span", { class: "chip" }, h("i", { class: `swatch ${kind}`, "aria-hidden": "true" }), `${name} ${duration(ms)} · ${Math.round((100 * ms) / sum)}%`)));
  const parts = [
    bars.length ? section(t("Model and tool time"), legend, waterfall(bars, run.duration_ms)) : null,
    context.length ? section(t("Context window by turn"), gauge(context)) : null,
    files.length ? section(t("Changes by file"), diffSizes(files)) : null,
  ].filter(Boolean);
  fill(place, parts.length ? h("div", { class: "stack" }, parts) : h("div", { class: "panel" }, empty("clock", t("Nothing to draw yet"), t("The time of the model and of each tool stands here."))));
}

async function changes(id, place) {
  fill(place, h("p", { class: "meta" }, t("Loading")));
  const { diffs, total } = await get(`runs/${part(id)}/diffs`);
  if (!diffs.length) return fill(place, h("div", { class: "panel" }, empty("file", t("Nothing was changed"), t("Every file this run writes is shown here with its diff."))));
  return fill(place, h("div", { class: "stack" }, diffs.map((change) => diffPanel(change, chip(t(change.kind), change.applied ? "" : "wait"))), total > diffs.length ? h("p", { class: "meta" }, t("{n} more", { n: total - diffs.length })) : null));
}

function evidence({ frame, memories }, place) {
  const recalled = frame.filter((event) => event.type === "recalled");
  const found = frame.filter((event) => event.type === "evidence");
  const changed = new Set(frame.filter((event) => event.type === "final").flatMap((event) => event.data.changed ?? []));
  if (!found.length && !recalled.length) return fill(place, h("div", { class: "panel" }, empty("search", t("No evidence"), t("When the agent searches the code, what it was shown stands here."))));
  const remembered = recalled.map((event) => h("section", { class: "panel" }, h("header", {}, h("h3", {}, t("Memories shown to the model"))),
    h("ol", { class: "pick" }, event.data.memories.map((id, at) => h("li", {}, h("a", { href: `/console/memory?q=${part(memories[id] ?? event.data.query)}` }, h("span", { class: "wrap" }, memories[id] ?? t("forgotten since")), h("span", { class: "meta" }, t("similarity {n}", { n: (event.data.similarities?.[at] ?? 0).toFixed(2) }))))))));
  fill(place, h("div", { class: "stack" }, remembered, found.map((event) => h("section", { class: "panel" },
    h("header", {}, h("h3", {}, event.data.query)),
    h("ol", { class: "pick" }, event.data.paths.map((path, at) => h("li", {}, h("a", { href: `/console/search?q=${part(event.data.query)}&prefix=${part(path)}` }, h("span", { class: "chips" }, h("span", { class: "mono" }, path), event.data.scores?.[at] !== undefined ? chip(event.data.scores[at].toFixed(2)) : null, h("span", { class: "chips", "data-why": path }), changed.has(path) ? chip(t("changed by this run"), "ok") : null)))))))));
  return why(found, place);
}

/** Why each place was ranked: asked of the index as it is now. */
async function why(found, place) {
  for (const event of found.slice(0, 5)) {
    const { chunks } = await get("search", { q: event.data.query }).catch(() => ({ chunks: [] }));
    const reasons = new Map();
    for (const chunk of chunks) if (!reasons.has(chunk.path)) reasons.set(chunk.path, chunk.reasons);
    for (const spot of place.querySelectorAll("[data-why]")) {
      if (!spot.childNodes.length && reasons.has(spot.dataset.why)) fill(spot, reasons.get(spot.dataset.why).map((reason) => chip(t(reason))));
    }
  }
}

async function askUndo(run, refresh) {
  const would = await post(`runs/${part(run.trace_id)}/undo`, { dry_run: true });
  const rows = [...would.restored.map((path) => [t("restored"), path]), ...would.removed.map((path) => [t("removed"), path]), ...would.kept.map((one) => [t("kept"), `${one.path} (${one.reason})`])];
  const act = button(t("Undo"), async () => {
    act.disabled = true;
    try {
      const done = await post(`runs/${part(run.trace_id)}/undo`, { dry_run: false });
      toast(t("{n} files are as before", { n: done.restored.length + done.removed.length }));
    } catch (problem) {
      toast(problem.message, true);
    }
    box.close();
    await refresh();
  }, "primary", "undo");
  const box = dialog(t("Undo changes"), [h("p", {}, t("What you changed since is kept. Undoing the undo brings everything back.")), h("ul", {}, rows.map(([word, path]) => h("li", { class: "chips" }, chip(word), h("code", {}, path))))], button(t("Cancel"), () => box.close()), act);
}
