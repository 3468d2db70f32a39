// One task or turn as it happens: what was said, which tools were called, what they changed.
import { get, part } from "./api.js";
import { diffLines } from "./diff.js";
import { fill, h, icon } from "./dom.js";
import { duration, money, number } from "./format.js";
import { markdown } from "./markdown.js";
import { chip, statusChip } from "./parts.js";
import { questionCard } from "./question.js";
import { t } from "./words.js";

const TICK = 200;
// What these hold, the diff shows better.
const SHOWN_BY_DIFF = ["content", "old_text", "new_text", "old_string", "new_string", "edits", "patch"];

/** What a call is about, in a few words. */
export function about(args) {
  const main = args?.path ?? args?.command ?? args?.query ?? args?.pattern ?? args?.toolKey ?? args?.url;
  if (main !== undefined) return Array.isArray(main) ? main.join(" ") : String(main);
  return Object.entries(args ?? {}).map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`).join(" ");
}

/** A folded call: its name, what it is about, how it ended. */
export function toolCall(name, args) {
  const state = h("span", { class: "meta num" });
  const dot = h("i", { class: "dot run", "aria-hidden": "true" });
  const sizes = h("span", { class: "chips" });
  const body = h("div", { class: "stack call-body" });
  const node = h("details", { class: "call" }, h("summary", {}, dot, h("b", {}, name), h("span", { class: "clip mono" }, about(args)), sizes, state), body);
  return { node, state, dot, sizes, body };
}

/** Arguments and result of a call, as far as they are worth reading. */
export function callDetails(args, result) {
  const rows = Object.entries(args ?? {});
  const short = (text) => text.length <= 90 && !text.includes("\n");
  const shape = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
  return [
    rows.length ? h("dl", { class: "detail-list" }, rows.map(([key, value]) => h("div", { class: short(shape(value)) ? "short" : "" }, h("dt", {}, key), h("dd", {}, short(shape(value)) ? h("code", {}, shape(value)) : h("pre", { class: "block", tabindex: "0" }, shape(value)))))) : null,
    result ? h("pre", { class: "block", tabindex: "0" }, result) : null,
  ];
}

export class Story {
  constructor(trace, { project = "", started = null, reload = () => {} } = {}) {
    Object.assign(this, { trace, project, started, reload });
    this.node = h("div", { class: "story" });
    this.calls = new Map();
    this.live = new Map();
    this.questions = new Map();
    this.replies = 0;
    this.next = 0;
    this.ended = false;
    this.lastText = "";
    this.clocks = new Map();
    this.timer = setInterval(() => this.tick(), TICK);
  }

  stop() {
    clearInterval(this.timer);
  }

  tick() {
    for (const [node, since] of this.clocks) fill(node, duration(Math.max(0, Date.now() - since)));
  }

  /** Take events in their order; one that was there already is passed over. */
  take(position, event) {
    if (position < this.next) return;
    this.next = position + 1;
    const handler = this[`on_${event.type}`];
    const node = handler ? handler.call(this, event.data, event, position) : null;
    if (node) this.add(node);
  }

  add(node) {
    const first = this.node.querySelector(".saying, .asks");
    if (first) first.before(node);
    else this.node.append(node);
  }

  /** Words of a reply that is not finished yet. */
  say({ turn, start, text, thinking }) {
    if (turn < this.replies || this.ended) return;
    const one = this.live.get(turn) ?? { text: "", node: h("div", { class: "turn agent saying" }) };
    one.text = one.text.slice(0, start) + text;
    one.thinking = thinking;
    if (!this.live.has(turn)) {
      this.live.set(turn, one);
      const asks = this.node.querySelector(".asks");
      if (asks) asks.before(one.node);
      else this.node.append(one.node);
    }
    one.frame ??= requestAnimationFrame(() => {
      one.frame = null;
      fill(one.node, one.text ? markdown(one.text, this.project) : null, one.text || one.thinking || !this.questions.size ? h("span", { class: "caret", "aria-hidden": "true" }) : null, one.thinking && !one.text ? h("span", { class: "meta" }, t("Thinking…")) : null);
    });
  }

  /** The questions of this run that wait for an answer. */
  ask(pending) {
    const mine = pending.filter((one) => one.trace_id === this.trace);
    for (const [id, node] of this.questions) {
      if (!mine.some((one) => one.id === id)) {
        node.remove();
        this.questions.delete(id);
      }
    }
    for (const one of mine) {
      if (this.questions.has(one.id)) continue;
      const node = questionCard(one, this.reload, { inRun: true });
      this.questions.set(one.id, node);
      for (const words of this.live.values()) if (!words.text) fill(words.node);
      this.node.append(node);
      node.scrollIntoView({ block: "nearest" });
    }
  }

  get question() {
    return this.questions.values().next().value ?? null;
  }

  on_task(data, event) {
    this.started ??= event.at;
    return h("div", { class: "turn user" }, h("p", { class: "wrap" }, data.text));
  }

  on_plan(data) {
    if (data.source === "implicit") return null;
    return h("div", { class: "turn" }, h("p", { class: "meta" }, t("Plan")), h("ol", { class: "md" }, data.tasks.map((one) => h("li", {}, one.title ?? one.id))));
  }

  on_task_began(data) {
    return h("p", { class: "step-line" }, icon("play"), h("b", {}, data.title));
  }

  on_model_reply(data) {
    const turn = this.replies++;
    this.live.get(turn)?.node.remove();
    this.live.delete(turn);
    if (!data.text?.trim()) return null;
    this.lastText = data.text.trim();
    return h("div", { class: "turn agent" }, markdown(data.text, this.project));
  }

  on_step(data, event) {
    const call = { ...toolCall(data.tool, data.arguments), args: data.arguments, diffs: [] };
    this.calls.set(event.id, call);
    this.clocks.set(call.state, Date.parse(event.at));
    call.node.addEventListener("toggle", () => call.node.open && this.unfold(call));
    return call.node;
  }

  async unfold(call) {
    if (call.drawn && call.drawn === call.position) return;
    call.drawn = call.position ?? -1;
    const [diffs, result] = await Promise.all([
      Promise.all(call.diffs.map((at) => get(`runs/${part(this.trace)}/events/${at}`))),
      call.position === undefined ? null : get(`runs/${part(this.trace)}/events/${call.position}`),
    ]);
    const args = diffs.length ? Object.fromEntries(Object.entries(call.args ?? {}).filter(([key]) => !SHOWN_BY_DIFF.includes(key))) : call.args;
    fill(call.body, diffs.map((event) => diffLines(event.data.diff)), callDetails(args, result?.data.text));
  }

  on_tool_result(data, event, position) {
    const call = this.calls.get(event.parent);
    if (!call) return null;
    call.position = position;
    this.clocks.delete(call.state);
    call.dot.className = `dot ${data.ok ? "ok" : "bad"}`;
    fill(call.state, data.ok ? null : [chip(t("Refused or failed"), "bad"), " "], duration(data.duration_ms));
    if (call.node.open) this.unfold(call);
    return null;
  }

  on_diff(data, event, position) {
    const call = this.calls.get(event.parent);
    if (!call) return null;
    call.diffs.push(position);
    fill(call.sizes, [...call.sizes.childNodes], h("span", { class: "plus" }, `+${data.added}`), h("span", { class: "minus" }, `−${data.removed}`));
    return null;
  }

  on_approval(data) {
    return h("p", { class: "step-line" }, icon(data.allowed ? "check" : "cross"), data.allowed ? t("Approved") : t("Not approved"), h("span", { class: "meta" }, [data.tool, data.by, data.feedback].filter(Boolean).join(" · ")));
  }

  on_evidence(data) {
    return h("p", { class: "step-line" }, icon("search"), t("Evidence"), h("span", { class: "meta clip" }, (data.paths ?? []).slice(0, 5).join(", ")));
  }

  on_recalled(data) {
    return h("p", { class: "step-line" }, icon("memory"), t("{n} memories", { n: (data.memories ?? []).length }));
  }

  on_verification(data) {
    const tone = data.verdict === "red" ? "bad" : data.verdict === "verified" ? "ok" : "";
    return h("p", { class: "step-line" }, icon("check"), t("Check"), chip(t(data.verdict), tone), h("span", { class: "meta clip" }, data.summary));
  }

  on_repair(data) {
    return h("p", { class: "step-line" }, icon("tools"), t("Repair"), h("span", { class: "meta" }, `${data.by}: ${data.failures_before} → ${data.failures_after}`));
  }

  on_retry(data) {
    return h("p", { class: "step-line" }, icon("retry"), t("Retry"), h("span", { class: "meta clip" }, `${data.what}: ${data.reason}`));
  }

  on_notice(data) {
    return h("p", { class: "step-line" }, icon("info"), h("span", { class: "meta wrap" }, data.text));
  }

  on_limit(data) {
    return h("p", { class: "step-line" }, icon("info"), t("Limit"), h("span", { class: "meta" }, `${data.kind} ${data.used} / ${data.allowed}`));
  }

  on_final(data) {
    this.ended = true;
    for (const one of this.live.values()) one.node.remove();
    for (const node of this.questions.values()) node.remove();
    for (const [node] of this.clocks) fill(node);
    this.clocks.clear();
    const facts = [duration(data.duration_ms), data.turns ? t("{n} turns", { n: data.turns }) : null, data.input_tokens + data.output_tokens ? t("{n} tokens", { n: number(data.input_tokens + data.output_tokens) }) : null, data.cost_usd ? money(data.cost_usd) : null];
    const tone = data.verified === "red" ? "bad" : data.verified === "verified" ? "ok" : "";
    const text = data.text?.trim();
    return h("div", { class: "turn" },
      text && text !== this.lastText ? h("div", { class: "turn agent" }, markdown(text, this.project)) : null,
      data.error ? h("p", { class: "notice bad" }, icon("info"), h("span", { class: "wrap" }, data.error)) : null,
      data.note ? h("p", { class: "meta wrap" }, data.note) : null,
      h("p", { class: "ending" }, statusChip(data.status), data.verified ? chip(t(data.verified), tone) : null, data.changed?.length ? chip(t("{n} files", { n: data.changed.length })) : null, h("span", { class: "meta num" }, facts.filter(Boolean).join(" · "))));
  }
}

/** Which model answers, and since when: for the head of a page. */
export function clockOf(run) {
  const node = h("span", { class: "num", role: "timer" }, run.duration_ms === null ? duration(Date.now() - Date.parse(run.started)) : duration(run.duration_ms));
  if (run.status === "running") {
    const timer = setInterval(() => (node.isConnected ? fill(node, duration(Date.now() - Date.parse(run.started))) : clearInterval(timer)), TICK);
  }
  return node;
}

