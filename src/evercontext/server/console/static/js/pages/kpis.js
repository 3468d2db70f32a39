import { get } from "../api.js";
import { barChart, lineChart, sparkline } from "../chart.js";
import { fill, h } from "../dom.js";
import { day, duration, money, number, percent, short } from "../format.js";
import { empty, head, segments } from "../parts.js";
import { t } from "../words.js";

export async function open({ main, alive }) {
  const place = h("div", { class: "stack", "aria-live": "polite" });
  const load = async (days) => {
    const told = await get("kpis", { days });
    if (alive()) draw(told, place);
  };
  fill(main, head(t("KPIs"), t("How well it has been going, computed from the event log."), segments(t("Time"), [["7", t("7 days")], ["30", t("30 days")], ["90", t("90 days")]], "30", load)), place);
  await load(30);
}

function draw({ total, by_day: days }, place) {
  if (!days.length) {
    fill(place, h("div", { class: "panel" }, empty("kpis", t("No figures yet"), t("They are counted from what the agent does."), 'evercontext run --task "…"')));
    return;
  }
  const rate = (name) => days.map((one) => one[name].rate);
  const share = (name) => (total[name].of ? t("{hits} of {of}", total[name]) : t("nothing counted"));
  const tiles = [
    [t("Tasks"), number(total.tasks), t("ended"), days.map((one) => one.tasks)],
    [t("Task success"), percent(total.task_success.rate), share("task_success"), rate("task_success"), 1],
    [t("Latency p95"), duration(total.latency_p95_ms), t("per task"), days.map((one) => one.latency_p95_ms)],
    [t("Policy refusals"), number(total.policy_refusals), t("calls refused"), days.map((one) => one.policy_refusals)],
    [t("Evidence match@5"), percent(total.evidence_match.rate), share("evidence_match"), rate("evidence_match"), 1],
    [t("Plan reproduction"), percent(total.plan_reproduction.rate), t("{n} from cache", { n: total.plan_cache_hits }), rate("plan_reproduction"), 1],
    [t("Partial failures"), percent(total.partial_failure.rate), share("partial_failure"), rate("partial_failure"), 1],
    [t("Auto recovery"), percent(total.auto_recovery.rate), total.mean_recovery_steps === null ? share("auto_recovery") : t("{n} steps on average", { n: total.mean_recovery_steps.toFixed(1) }), rate("auto_recovery"), 1],
    [t("Rename accuracy"), percent(total.rename_accuracy.rate), share("rename_accuracy"), rate("rename_accuracy"), 1],
  ];
  const points = (value) => days.map((one) => ({ label: day(one.day), value: value(one) }));
  const wanted = 460; // two stand beside each other
  const charts = [
    [t("Tasks per day"), barChart(t("Tasks per day"), points((d) => d.tasks), { wanted, format: short, whole: true })],
    [t("Success rate"), lineChart(t("Success rate"), points((d) => d.task_success.rate), { wanted, max: 1, format: percent })],
    [t("Latency p95"), lineChart(t("Latency p95"), points((d) => d.latency_p95_ms), { wanted, format: (v) => duration(v) })],
    [t("Tokens per day"), barChart(t("Tokens per day"), points((d) => d.input_tokens + d.output_tokens), { wanted, format: short })],
    [t("Cost per day"), barChart(t("Cost per day"), points((d) => d.cost_usd), { wanted, format: money })],
    [t("Requests refused (401, 403)"), barChart(t("Requests refused (401, 403)"), points((d) => d.refused), { wanted, format: short, tone: "bad", whole: true })],
  ];
  fill(place,
    h("div", { class: "grid" }, tiles.map(([name, value, small, values, max]) => h("section", { class: "panel tile" }, h("h2", {}, name), h("span", { class: "big" }, value), h("span", { class: "small" }, small), values.filter((v) => v !== null && v !== undefined).length > 1 ? sparkline(t("{name} over time", { name }), values, max ?? null) : null))),
    h("div", { class: "half" }, charts.map(([name, chart]) => h("section", { class: "panel" }, h("header", {}, h("h2", {}, name)), h("div", { class: "body" }, chart)))));
}
