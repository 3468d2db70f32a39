// Where work is given: a task or a message, with its model, mode and project.
import { get, post } from "./api.js";
import { fill, h } from "./dom.js";
import { model as shortName } from "./format.js";
import { button, segments, toast, toggle } from "./parts.js";
import { t } from "./words.js";

const MODES = { agent: ["Agent", "It changes files."], plan: ["Plan", "It reads and plans; nothing can be changed."], "dry-run": ["Dry run", "It shows what it would change and writes nothing."] };
const NAMES = { Agent: () => t("Agent mode"), Plan: () => t("Plan mode"), "Dry run": () => t("Dry run") };

function stored(key, otherwise) {
  try {
    return localStorage.getItem(key) ?? otherwise;
  } catch {
    return otherwise;
  }
}

function store(key, value) {
  try {
    if (value) localStorage.setItem(key, value);
    else localStorage.removeItem(key);
  } catch {
    // Without storage the page just does not remember it.
  }
}

function pick(label, options, value, on) {
  const node = h("select", { class: "field", "aria-label": label, title: label }, options.map(([key, text]) => h("option", { value: key }, text)));
  if (options.some(([key]) => key === value)) node.value = value;
  node.addEventListener("change", () => on(node.value));
  return node;
}

/** `session`: go on with it; `sent` is told what was started; `live` tells what to stop, if anything. */
export function composer({ session = null, project = "", choices, sent, live = () => null }) {
  const draft = `ec-draft:${session ?? "new"}`;
  const state = {
    kind: session ? "chat" : stored("ec-kind", "task"), model: "", mode: "agent", ask: stored("ec-ask", "1") === "1",
    project: session ? project : choices.projects.some((one) => one.path === stored("ec-project", "")) ? stored("ec-project", "") : choices.projects[0].path,
  };
  const text = h("textarea", { class: "field", rows: session ? "2" : "4", "aria-label": t("What should be done?"), placeholder: session ? t("Reply…") : t("What should be done?"), value: stored(draft, ""), "data-compose": "" });
  const send = button(session ? t("Send") : t("Start"), () => go(), "primary", "play");
  const go = async (fork = false) => {
    const words = text.value.trim();
    if (!words) return text.focus();
    send.disabled = true;
    try {
      const run = await post("work", { kind: state.kind, text: words, project: state.project, model: state.model, mode: state.mode, ask: state.ask, session, fork });
      text.value = "";
      store(draft, "");
      grow();
      await sent(run, { text: words, fork, project: state.project });
    } catch (problem) {
      toast(problem.message, true);
    } finally {
      send.disabled = false;
    }
    return null;
  };
  const grow = () => {
    text.style.height = "auto";
    text.style.height = `${Math.min(text.scrollHeight + 2, innerHeight * 0.5)}px`;
  };
  text.addEventListener("input", () => { store(draft, text.value); grow(); });
  text.addEventListener("keydown", (event) => {
    // Enter ends the choice of a Japanese word, too: then it does not send.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    if (!send.disabled && !live()) go();
  });
  const names = h("datalist", { id: "models" });
  const models = h("input", { class: "field", list: "models", "aria-label": t("Model"), placeholder: t("Usual model"), autocomplete: "off", spellcheck: "false" });
  models.addEventListener("input", () => { state.model = models.value.trim(); });
  get("models").then(({ chosen, models: known }) => {
    models.placeholder = chosen ? shortName(chosen) : t("No model is set up");
    fill(names, known.map((name) => h("option", { value: name })));
  }, () => {});
  const modes = choices.modes.filter((mode) => !(session && mode === "dry-run"));
  const note = h("span", { class: "meta" });
  const explain = () => fill(note, t(MODES[state.mode][1]));
  const mode = pick(t("Mode"), modes.map((name) => [name, NAMES[MODES[name][0]]()]), "agent", (value) => { state.mode = value; explain(); });
  explain();
  const ask = toggle(t("Ask before changes"), state.ask, async (on) => { state.ask = on; store("ec-ask", on ? "1" : "0"); });
  const where = choices.projects.length > 1 && !session ? pick(t("Project"), choices.projects.map((one) => [one.path, one.name]), state.project, (value) => { state.project = value; store("ec-project", value); }) : null;
  const kind = session ? null : segments(t("Kind of work"), [["task", t("Task")], ["chat", t("Conversation")]], state.kind, (value) => { state.kind = value; store("ec-kind", value); });
  const copy = session ? button(t("Go on in a copy"), () => go(true), "quiet", "fork") : null;
  const node = h("form", { class: "composer panel", "aria-label": t("New work") },
    h("div", { class: "composer-in" }, text),
    h("div", { class: "composer-row" }, kind, where, models, names, mode, ask, h("span", { class: "grow" }, note), copy, send));
  node.addEventListener("submit", (event) => event.preventDefault());
  requestAnimationFrame(grow);
  return Object.assign(node, { focusText: () => text.focus() });
}

/** Stop what this console started. */
export function stopButton(trace) {
  const act = button(t("Stop"), async () => {
    act.disabled = true;
    try {
      await post(`work/${encodeURIComponent(trace)}/stop`, {});
    } catch (problem) {
      toast(problem.message, true);
      act.disabled = false;
    }
  }, "danger", "stop");
  return act;
}

