import { get, part, post } from "../api.js";
import { diffPanel } from "../diff.js";
import { fill, h, icon } from "../dom.js";
import { ago } from "../format.js";
import { button, chip, empty, head, statusChip, toast } from "../parts.js";
import { t } from "../words.js";

export async function open({ main, bus, onDispose, alive }) {
  const place = h("div", { class: "stack", "aria-live": "polite" });
  const past = h("div", { class: "past" });
  fill(main, head(t("Approvals"), t("What a run wants to do and may not do without you.")), place, past);
  const cards = new Map();
  const load = async () => {
    const { pending, settled } = await get("approvals");
    if (!alive()) return;
    // A card that is being read or written into must not be made anew.
    for (const [id, node] of cards) if (!pending.some((one) => one.id === id)) { node.remove(); cards.delete(id); }
    for (const one of pending) {
      if (!cards.has(one.id)) cards.set(one.id, card(one, load));
      place.append(cards.get(one.id));
    }
    const none = place.querySelector(".none");
    if (!pending.length && !none) place.append(h("div", { class: "panel none" }, empty("approvals", t("Nothing waits for you"), t("Runs that ask before they change something show their questions here."), 'evercontext run --ask --task "…"')));
    else if (pending.length) none?.remove();
    fill(past, settled.length ? answered(settled) : null);
  };
  await load();
  bus.addEventListener("approvals", load);
  onDispose(() => bus.removeEventListener("approvals", load));
}

function card(one, reload) {
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
  const given = Object.entries(question.arguments);
  return h("article", { class: "panel asks", "data-row": "", "aria-label": t("{tool} needs your approval", { tool: one.tool }) },
    h("header", {}, h("h2", {}, t("{tool} needs your approval", { tool: one.tool })), question.effects.map((effect) => chip(t(effect), effect === "read" ? "" : "wait")), question.origin !== "evercontext" ? chip(question.origin, "bad") : null, h("span", { class: "meta" }, ago(one.asked_at))),
    h("div", { class: "body stack" },
      question.reason ? h("p", { class: "notice bad" }, icon("info"), t("Asked every time, because {reason}", { reason: question.reason })) : null,
      question.origin !== "evercontext" ? h("pre", { class: "block", tabindex: "0" }, question.description) : null,
      given.length ? h("dl", { class: "detail-list" }, given.map(argument)) : null,
      question.changes.map((change) => diffPanel(change, chip(t(change.kind)), Infinity)),
      why,
      h("div", { class: "tools-row" }, acts, h("a", { href: `/console/runs/${part(one.trace_id)}` }, t("See the run")))));
}

function argument([name, value]) {
  const text = String(value);
  const short = text.length <= 90 && !text.includes("\n");
  return h("div", { class: short ? "short" : "" }, h("dt", {}, name), h("dd", {}, short ? h("code", {}, text) : h("pre", { class: "block", tabindex: "0" }, text)));
}

function answered(settled) {
  return h("section", { class: "panel" }, h("header", {}, h("h2", {}, t("Answered"))),
    h("ul", { class: "pick" }, settled.map((one) => h("li", {}, h("a", { href: `/console/runs/${part(one.trace_id)}`, "data-row": "" },
      h("span", { class: "chips" }, statusChip(one.state), h("b", {}, one.tool), h("span", { class: "mono clip" }, one.question.changes.map((change) => change.path).join(", ") || Object.values(one.question.arguments).join(" "))),
      h("span", { class: "meta" }, [one.answered_by, one.feedback, ago(one.asked_at)].filter(Boolean).join(" · ")))))));
}
