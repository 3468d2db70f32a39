import { get } from "../api.js";
import { barChart, lineChart, sparkline } from "../chart.js";
import { fill, h } from "../dom.js";
import { byModel, heatStrip } from "../figures.js";
import { day, duration, hour, model, money, number, percent, short } from "../format.js";
import { empty, head, segments } from "../parts.js";
import { t } from "../words.js";

const state = { days: 30, project: "here" };

export async function open({ main, alive }) {
  const place = h("div", { class: "stack", "aria-live": "polite" });
  const load = async () => {
    const [figures, usage] = await Promise.all([get("kpis", state), get("usage", state)]);
    if (alive()) draw(figures, usage, place);
  };
  const choose = (name) => (value) => {
    state[name] = value;
    return load();
  };
  fill(main, head(t("KPIs"), t("How well it has been going, computed from the event log."),
    segments(t("Project"), [["here", t("This project")], ["all", t("All projects")]], state.project, choose("project")),
    segments(t("Time"), [["7", t("7 days")], ["30", t("30 days")], ["90", t("90 days")]], String(state.days), choose("days"))), place);
  await load();
}

/** A figure of which nothing is known is not shown: a dash tells nobody anything. */
function draw({ total, by_day: days }, usage, place) {
  if (!days.length) {
    fill(place, h("div", { class: "panel" }, empty("kpis", t("No figures yet"), t("They are counted from what the agent does."), 'evercontext run --task "…"')));
    return;
  }
  const rate = (name) => days.map((one) => one[name].rate);
  const share = (name) => t("{hits} of {of}", total[name]);
  const rated = (name, title, small = share(name)) => (total[name].of ? [title, percent(total[name].rate), small, rate(name), 1] : null);
  const tiles = [
    [t("Tasks"), number(total.tasks), t("ended"), days.map((one) => one.tasks)],
    rated("task_success", t("Task success")),
    total.latency_p95_ms ? [t("Latency p95"), duration(total.latency_p95_ms), t("per task"), days.map((one) => one.latency_p95_ms)] : null,
    total.policy_refusals ? [t("Policy refusals"), number(total.policy_refusals), t("calls refused"), days.map((one) => one.policy_refusals)] : null,
    rated("evidence_match", t("Evidence match@5")),
    rated("plan_reproduction", t("Plan reproduction"), t("{n} from cache", { n: total.plan_cache_hits })),
    total.partial_failure.of && total.partial_failure.hits ? rated("partial_failure", t("Partial failures")) : null,
    rated("auto_recovery", t("Auto recovery"), total.mean_recovery_steps === null ? share("auto_recovery") : t("{n} steps on average", { n: total.mean_recovery_steps.toFixed(1) })),
    rated("rename_accuracy", t("Rename accuracy")),
  ].filter(Boolean);
  const single = usage.days.length && usage.days[0].at.length > 10;
  const label = (one) => (single ? hour(one.at) : day(one.at));
  const points = (value) => usage.days.map((one) => ({ label: label(one), value: value(one) }));
  const daily = (value) => days.map((one) => ({ label: day(one.day), value: value(one) }));
  const some = (list) => list.some((one) => one.value);
  const wanted = 460; // two stand beside each other
  // One column, or one dot, is no figure: the tiles have that number.
  const charts = [
    [single ? t("Tasks per hour") : t("Tasks per day"), points((d) => d.runs), (name, list) => barChart(name, list, { wanted, format: short, whole: true })],
    [single ? t("Tokens per hour") : t("Tokens per day"), points((d) => d.input_tokens + d.output_tokens), (name, list) => barChart(name, list, { wanted, format: short })],
    [single ? t("Cost per hour") : t("Cost per day"), points((d) => d.cost_usd), (name, list) => barChart(name, list, { wanted, format: money })],
    [t("Success rate"), daily((d) => d.task_success.rate), (name, list) => lineChart(name, list, { wanted, max: 1, format: percent })],
    [t("Latency p95"), daily((d) => d.latency_p95_ms), (name, list) => lineChart(name, list, { wanted, format: (v) => duration(v) })],
    [t("Requests refused (401, 403)"), daily((d) => d.refused), (name, list) => barChart(name, list, { wanted, format: short, tone: "bad", whole: true })],
  ].filter(([, list]) => list.length > 1 && some(list));
  const models = usage.models.filter((one) => one.input_tokens + one.output_tokens > 0);
  fill(place,
    h("div", { class: "grid" }, tiles.map(([name, value, small, values, max]) => h("section", { class: "panel tile" }, h("h2", {}, name), h("span", { class: "big" }, value), h("span", { class: "small" }, small), values.filter((v) => v !== null && v !== undefined).length > 1 ? sparkline(t("{name} over time", { name }), values, max ?? null) : null))),
    h("section", { class: "panel" }, h("header", {}, h("h2", {}, t("Runs by day"))), h("div", { class: "body" }, heatStrip(usage.days, usage.begin))),
    models.length ? h("section", { class: "panel" }, h("header", {}, h("h2", {}, t("Tokens and cost by model"))), byModel(models, model)) : null,
    h("div", { class: "half" }, charts.map(([name, list, chart]) => h("section", { class: "panel" }, h("header", {}, h("h2", {}, name)), h("div", { class: "body" }, chart(name, list))))));
}
