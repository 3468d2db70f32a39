// Code with a little colour: enough to read by, made of text nodes like everything else.
import { h } from "./dom.js";

const WORDS = "and|as|async|await|break|case|catch|class|const|continue|def|default|del|do|elif|else|enum|except|export|extends|final|finally|fn|for|from|func|function|global|go|if|impl|import|in|interface|is|lambda|let|match|mod|mut|namespace|new|nil|none|nonlocal|not|null|or|package|pass|private|protected|pub|public|raise|return|self|static|struct|super|switch|this|throw|trait|true|false|try|type|use|using|var|void|while|with|yield|None|True|False";
const HASH = "#[^\\n]*", SLASHES = "//[^\\n]*", DASHES = "--[^\\n]*";
const NOTHING = "$^";
// What begins a comment in one language divides numbers in another.
const COMMENTS = {
  [HASH]: "py pyi sh bash zsh rb toml yaml yml pl r tf cfg ini ex exs nix",
  [SLASHES]: "js mjs cjs jsx ts tsx go rs java kt kts c h cc cpp hpp cs swift scala dart proto php zig json jsonc",
  [DASHES]: "sql lua hs elm ada vhdl",
  [NOTHING]: "css html xml vue svg",
};
const PROSE = "md markdown rst txt adoc".split(" ");
const STARTS = new Map(Object.entries(COMMENTS).flatMap(([start, kinds]) => kinds.split(" ").map((kind) => [kind, start])));

/** What is coloured in a file of this name; in prose nothing, where "with" and "for" are words. */
function tokensOf(path) {
  const kind = path.split(".").pop().toLowerCase();
  if (PROSE.includes(kind)) return /$^/g;
  const comment = STARTS.get(kind) ?? `${HASH}|${SLASHES}|--\\s[^\\n]*`;
  return new RegExp(`(?<c>${comment})|(?<s>"(?:[^"\\\\\\n]|\\\\.)*"|'(?:[^'\\\\\\n]|\\\\.)*'|\`(?:[^\`\\\\]|\\\\.)*\`)|(?<n>\\b\\d[\\d_.xa-fA-F]*\\b)|(?<k>\\b(?:${WORDS})\\b)`, "g");
}

/** Lines of the file `path` with numbers from `start` on; words of `query` are marked. */
export function codeLines(text, start, query = "", path = "") {
  // Endings are left off, so that "hashed" marks "hash" too; little words mark nothing.
  const bare = (word) => (/^[\x20-\x7e]+$/.test(word) ? word.replace(/(?:ing|ed|es|s)$/i, "") : word);
  const wanted = query.split(/[\s()"'.,:;、。?？のをはがにで]+/).map(bare).filter((word) => word.length > (/^[\x20-\x7e]+$/.test(word) ? 3 : 1)).slice(0, 12);
  const marks = wanted.length ? new RegExp(`(${wanted.map((w) => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "gi") : null;
  const kinds = tokensOf(path);
  const lines = text.split("\n").map((line, at) => h("div", {}, h("span", {}, String(start + at)), h("span", {}, tokens(line, marks, kinds))));
  return h("div", { class: "code", tabindex: "0", role: "group", "aria-label": "code" }, lines);
}

function tokens(line, marks, kinds) {
  if (!line) return " ";
  const made = [];
  let at = 0;
  for (const found of line.matchAll(kinds)) {
    made.push(marked(line.slice(at, found.index), marks));
    const kind = Object.keys(found.groups).find((name) => found.groups[name] !== undefined);
    made.push(h("span", { class: `tok-${kind}` }, marked(found[0], marks)));
    at = found.index + found[0].length;
  }
  made.push(marked(line.slice(at), marks));
  return made;
}

export function marked(text, marks) {
  if (!marks || !text) return text;
  return text.split(marks).map((part, at) => (at % 2 ? h("mark", {}, part) : part));
}
