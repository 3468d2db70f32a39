// One question of a run: what it wants to do, why it is asked, and the answers.
import { part, post } from "./api.js";
import { diffPanel } from "./diff.js";
import { h, icon } from "./dom.js";
import { ago } from "./format.js";
import { button, chip, toast } from "./parts.js";
import { t } from "./words.js";

const KEYS = { n: 0, y: 1, a: 2 };

/** `inRun`: it stands in its own run, which need not be named or linked to. */
export function questionCard(one, reload, { inRun = false } = {}) {
  const { question } = one;
  const why = h("textarea", { class: "field", rows: "2", placeholder: t("What should it do instead? (with “No”)"), "aria-label": t("Feedback to the agent") });
  const answer = async (allowed, forRun = false) => {
    for (const act of acts) act.disabled = true;
    try {
      await post(`approvals/${part(one.id)}`, { nonce: one.nonce, digest: question.digest, allowed, for_run: forRun, feedback: allowed ? "" : why.value.trim() });
      toast(allowed ? t("Allowed: {tool}", { tool: one.tool }) : t("Not allowed: {tool}", { tool: one.tool }));
    } catch (problem) {
      toast(problem.status === 409 ? t("That was answered elsewhere, or the run is over.") : problem.message, true);
    }
    await reload();
  };
  const acts = [button(t("No"), () => answer(false), "danger", "cross"), button(t("Yes, once"), () => answer(true), "primary", "check")];
  if (!question.reason) acts.push(button(t("Yes to every {tool} in this run", { tool: one.tool }), () => answer(true, true)));
  acts.forEach((act, at) => {
    act.append(h("kbd", { "aria-hidden": "true" }, "nya"[at]));
    act.setAttribute("aria-keyshortcuts", "nya"[at]);
  });
  const rows = Object.entries(question.arguments);
  const foreign = question.origin !== "evercontext";
  const node = h("article", { class: "panel asks", "data-row": "", "aria-label": t("{tool} needs your approval", { tool: one.tool }) },
    h("header", {}, h("h2", {}, t("{tool} needs your approval", { tool: one.tool })), question.effects.map((effect) => chip(t(effect), effect === "read" ? "" : "wait")), foreign ? chip(question.origin, "bad") : null, h("span", { class: "meta" }, ago(one.asked_at))),
    h("div", { class: "body stack" },
      one.task && !inRun ? h("p", { class: "clip" }, h("span", { class: "meta" }, t("For the task"), " "), h("b", {}, one.task)) : null,
      h("p", { class: question.reason ? "notice bad" : "meta" }, question.reason ? icon("info") : null, question.reason ? t("Asked every time, because {reason}", { reason: question.reason }) : t("Asked because it changes something and no rule allows it yet.")),
      foreign ? h("pre", { class: "block", tabindex: "0" }, question.description) : null,
      rows.length ? h("dl", { class: "detail-list" }, rows.map(argument)) : null,
      question.changes.map((change) => diffPanel(change, chip(t(change.kind)), Infinity)),
      why,
      h("div", { class: "tools-row" }, acts, inRun ? null : h("a", { href: `/console/runs/${part(one.trace_id)}` }, t("See the run")))));
  node.press = (key) => {
    const act = acts[KEYS[key]];
    if (!act || act.disabled) return false;
    act.click();
    return true;
  };
  return node;
}

function argument([name, value]) {
  const text = String(value);
  const short = text.length <= 90 && !text.includes("\n");
  return h("div", { class: short ? "short" : "" }, h("dt", {}, name), h("dd", {}, short ? h("code", {}, text) : h("pre", { class: "block", tabindex: "0" }, text)));
}

/** Let a key answer the first question that `current` returns. */
export function answerByKey(current, onDispose) {
  const press = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
    if (event.target.closest?.("input, textarea, select") || document.querySelector("dialog[open]")) return;
    if (current()?.press(event.key.toLowerCase())) event.preventDefault();
  };
  document.addEventListener("keydown", press);
  onDispose(() => document.removeEventListener("keydown", press));
}
