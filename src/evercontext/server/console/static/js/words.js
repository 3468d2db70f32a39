// Words in two languages. The English text is the key, so that code reads as the page does.
import { JAPANESE } from "./words.ja.js";

const LANGUAGES = ["en", "ja"];
let chosen = null;

export function language() {
  if (chosen) return chosen;
  try {
    chosen = localStorage.getItem("ec-language");
  } catch {
    chosen = null;
  }
  // The server has put the browser's own preference into the page.
  if (!LANGUAGES.includes(chosen)) chosen = document.documentElement.lang === "ja" ? "ja" : "en";
  return chosen;
}

export function setLanguage(name) {
  chosen = LANGUAGES.includes(name) ? name : "en";
  try {
    localStorage.setItem("ec-language", chosen);
  } catch {
    // It holds for this page then.
  }
}

/** The text in the page's language, its {places} filled in; one thing is not many. */
export function t(text, values = {}) {
  let found = language() === "ja" ? JAPANESE[text] ?? text : text;
  if (language() === "en" && values.n === 1) found = found.replace(/\b(steps|files|changes|chunks|messages|tasks|scores|times|tokens|memories|turns|runs)\b/, (word) => (word === "memories" ? "memory" : word.slice(0, -1)));
  return found.replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}
