"""The programs of vendors, Codex CLI and Gemini CLI, used as models that only write text."""
