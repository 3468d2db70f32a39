import { get, part, post } from "../api.js";
import { fill, h, icon } from "../dom.js";
import { ago, number, when } from "../format.js";
import { button, chip, copyable, dialog, empty, head, table, tabs, toast, toggle } from "../parts.js";
import { t } from "../words.js";

const STATES = { running: "ok", failed: "bad", stopped: "", off: "wait" };

export async function open({ main, query, alive }) {
  const told = await get("tools");
  if (!alive()) return;
  const reload = async () => Object.assign(told, await get("tools"));
  const pages = { servers, projects, own, tokens, calls };
  const names = [["servers", `${t("Servers")} (${told.servers.length})`], ["projects", `${t("Projects")} (${told.projects.length})`], ["own", `${t("Our tools")} (${told.own.length})`], ["tokens", `${t("Tokens")} (${told.tokens.length})`], ["calls", t("Calls")]];
  const first = pages[query.get("tab")] ? query.get("tab") : "servers";
  const [bar, panel] = tabs(t("Tools"), names, first, (value, place) => {
    history.replaceState(null, "", `/console/tools?tab=${value}`);
    pages[value](told, place, reload);
  });
  fill(main, head(t("Tools"), t("Everything the agent and other programs may call, and who may.")), bar, panel);
}

function servers(told, place, reload) {
  const add = h("div", { class: "chips" }, h("span", { class: "meta" }, t("Servers are added at the terminal, where you see the whole command:")), copyable("evercontext servers add NAME -- COMMAND"));
  if (!told.servers.length) return fill(place, h("div", { class: "panel" }, empty("tools", t("No servers yet"), t("Put any number of MCP servers behind two tools. They are added at the terminal, where you see the whole command."), "evercontext servers add NAME -- COMMAND")));
  return fill(place, h("div", { class: "stack" }, told.servers.map((one) => server(one, reload)), add));
}

/** Start it and see how it stands. */
function check(one, reload) {
  const act = button(t("Check"), async () => {
    act.disabled = true;
    try {
      const now = await post(`servers/${part(one.id)}/check`, {});
      act.closest("section").replaceWith(server(now, reload));
    } catch (problem) {
      toast(problem.message, true);
      act.disabled = false;
    }
  }, "quiet", "play");
  act.setAttribute("aria-label", t("Check {name}", { name: one.id }));
  return act;
}

function server(one, reload) {
  const on = toggle(t("on"), one.enabled, async (enabled) => {
    await post(`servers/${part(one.id)}`, { enabled });
    toast(enabled ? t("{name} is on", { name: one.id }) : t("{name} is off", { name: one.id }));
    await reload();
  });
  const rows = one.tools.map((tool) => h("tr", {}, h("td", { class: "mono" }, tool.name, " ", tool.held ? chip(t("held"), "bad", t("Its definition changed; approve it at the terminal.")) : null, tool.description ? h("div", { class: "meta sans" }, tool.description) : null), h("td", { class: "num right" }, number(tool.calls)),
    h("td", { class: "right" }, toggle(t("Allow {tool}", { tool: tool.name }), tool.on, (allowed) => post(`servers/${part(one.id)}/tools/${part(tool.name)}`, { on: allowed }), { hidden: true }))));
  return h("section", { class: "panel", "data-row": "" },
    h("header", {}, h("h2", {}, one.id), one.enabled ? check(one, reload) : null, chip(t(one.state), STATES[one.state]), chip(one.transport), one.project ? chip(one.project, "accent") : null, on),
    h("div", { class: "body stack" }, h("code", { class: "wrap" }, one.reached_by),
      one.problem ? h("p", { class: "notice bad" }, icon("info"), one.problem.replace(/[.。]?$/, ". "), one.retry_in > 0 ? t("Next try in {n} s.", { n: Math.ceil(one.retry_in) }) : t("Tried again at the next call.")) : null,
      one.warnings.map((warning) => h("p", { class: "meta wrap" }, warning)),
      one.env.length ? h("p", { class: "meta" }, t("Given to it: {names}", { names: one.env.join(", ") })) : null),
    rows.length ? table(t("Tools of {name}", { name: one.id }), [t("Tool"), `>${t("Calls")}`, `>${t("Allowed")}`], rows) : h("p", { class: "body meta" }, t("Its tools are known once it was used.")));
}

function projects(told, place, reload) {
  if (!told.projects.length) return fill(place, h("div", { class: "panel" }, empty("tools", t("No projects yet"), t("A project says which servers belong together, and how their tools are found."), "evercontext projects add NAME")));
  return fill(place, h("div", { class: "grid" }, told.projects.map((one) => {
    const gear = button("", () => optimise(one, told, () => reload().then(() => projects(told, place, reload))), "quiet", "gear");
    gear.setAttribute("aria-label", t("Settings of {name}", { name: one.id }));
    const how = one.optimization ? chip(t("Context Optimization: {how}", { how: one.optimization }), "ok") : chip(t("Context Optimization: off"), "wait");
    return h("section", { class: "panel", "data-row": "" }, h("header", {}, h("h2", {}, one.id), gear), h("div", { class: "body stack" }, how, one.path ? h("code", { class: "wrap" }, one.path) : h("span", { class: "meta" }, t("bound to no directory"))));
  })));
}

function optimise(project, told, done) {
  const strategy = h("select", { class: "field", id: "strategy" }, told.strategies.map((name) => h("option", { value: name, disabled: name === "cloud" && !told.cloud }, name === "cloud" && !told.cloud ? t("cloud (EC_CATALOG_URL is not set)") : name)));
  strategy.value = project.optimization ?? "hybrid";
  strategy.disabled = project.optimization === null;
  const save = async (optimization) => {
    await post(`projects/${part(project.id)}`, { optimization });
    project.optimization = optimization;
    strategy.disabled = optimization === null;
    toast(optimization ? t("Clients see two tools: tool_discovery and tool_execute.") : t("Clients see every tool in the list."));
  };
  const on = toggle(t("Context Optimization"), project.optimization !== null, (checked) => save(checked ? strategy.value : null));
  strategy.addEventListener("change", () => save(strategy.value).catch((problem) => toast(problem.message, true)));
  const box = dialog(t("Settings of {name}", { name: project.id }), [on,
    h("p", { class: "meta" }, t("On: clients are shown two tools and find the others by what they do, which keeps their context small. Off: every tool stands in the list.")),
    h("label", { for: "strategy" }, t("Strategy")), strategy], button(t("Done"), () => box.close(), "primary"));
  box.addEventListener("close", done);
}

function own(told, place) {
  const rows = told.own.map((tool) => h("tr", {}, h("td", { class: "mono" }, tool.name), h("td", {}, tool.description), h("td", {}, h("span", { class: "chips" }, tool.effects.map((effect) => chip(t(effect), effect === "read" ? "" : "wait")))), h("td", { class: "num right" }, number(tool.calls))));
  fill(place, h("div", { class: "panel" }, table(t("Our tools"), [t("Tool"), t("What it does"), t("Effects"), `>${t("Calls")}`], rows, { cards: true })));
}

function tokens(told, place, reload) {
  if (!told.tokens.length) return fill(place, h("div", { class: "panel" }, empty("approvals", t("No tokens yet"), t("A token lets another program use the tool router."), "evercontext tokens create NAME")));
  const list = (names) => (names === null ? t("any") : names.join(", ") || "–");
  const rows = told.tokens.map((token) => h("tr", {}, h("td", {}, token.name), h("td", {}, list(token.projects)), h("td", {}, list(token.servers)), h("td", {}, when(token.created_at)),
    h("td", { class: "right" }, token.revoked_at ? chip(t("revoked"), "bad") : button(t("Revoke"), async () => { await post(`tokens/${part(token.name)}/revoke`, {}); await reload(); tokens(told, place, reload); }, "quiet danger"))));
  return fill(place, h("div", { class: "panel" }, table(t("Tokens"), [t("Name"), t("Projects"), t("Servers"), t("Created"), ""], rows)));
}

async function calls(told, place) {
  let refused = false;
  const rows = h("div", { class: "panel" });
  const load = async () => {
    const found = await get("calls", { refused: refused ? 1 : "" });
    const lines = found.calls.map((call) => h("tr", {}, h("td", { title: when(call.at) }, ago(call.at)), h("td", {}, chip(String(call.status), call.status < 400 ? "ok" : "bad")), h("td", { class: "mono" }, call.method), h("td", { class: "mono" }, call.path), h("td", {}, call.principal ?? "–"), h("td", {}, call.server ?? call.door), h("td", { class: "num right" }, call.duration_ms === null || call.duration_ms === undefined ? "–" : `${call.duration_ms} ms`)));
    fill(rows, lines.length ? table(t("Calls"), [t("When"), t("Status"), t("Call"), t("About"), t("Token"), t("Server"), `>${t("Time")}`], lines, { cards: true }) : empty("list", refused ? t("Nothing was refused") : t("No calls yet"), t("Requests of other programs at the doors stand here, those refused with 401 and 403 too.")));
  };
  fill(place, h("div", { class: "head" }, toggle(t("Only refusals (401, 403)"), false, async (on) => { refused = on; await load(); })), rows);
  await load();
}
