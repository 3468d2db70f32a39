import { get, part } from "../api.js";
import { fill, h } from "../dom.js";
import { ago } from "../format.js";
import { empty, head, statusChip } from "../parts.js";
import { answerByKey, questionCard } from "../question.js";
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
      if (!cards.has(one.id)) cards.set(one.id, questionCard(one, load));
      place.append(cards.get(one.id));
    }
    const none = place.querySelector(".none");
    if (!pending.length && !none) place.append(h("div", { class: "panel none" }, empty("approvals", t("Nothing waits for you"), t("Runs that ask before they change something show their questions here."), 'evercontext run --ask --task "…"')));
    else if (pending.length) none?.remove();
    fill(past, settled.length ? answered(settled) : null);
  };
  await load();
  answerByKey(() => [...cards.values()].find((node) => node.contains(document.activeElement)) ?? (cards.size === 1 ? cards.values().next().value : null), onDispose);
  bus.addEventListener("approvals", load);
  onDispose(() => bus.removeEventListener("approvals", load));
}

function answered(settled) {
  return h("section", { class: "panel" }, h("header", {}, h("h2", {}, t("Answered"))),
    h("ul", { class: "pick" }, settled.map((one) => h("li", {}, h("a", { href: `/console/runs/${part(one.trace_id)}`, "data-row": "" },
      h("span", { class: "chips" }, statusChip(one.state), h("b", {}, one.tool), h("span", { class: "mono clip" }, one.question.changes.map((change) => change.path).join(", ") || Object.values(one.question.arguments).join(" "))),
      h("span", { class: "meta" }, [one.answered_by, one.feedback, ago(one.asked_at)].filter(Boolean).join(" · ")))))));
}
