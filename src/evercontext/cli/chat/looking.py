"""Commands that only show something, and the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evercontext.access.rules import parse
from evercontext.cli.chat.view import show_diff
from evercontext.cli.options import gateway_of
from evercontext.cli.render import describe_diff
from evercontext.cli.terminal import one_line
from evercontext.domain.event import Diff
from evercontext.domain.memory import RetrievalOptions
from evercontext.errors import UsageError

if TYPE_CHECKING:
    from evercontext.cli.chat.dialogue import Dialogue


async def show_models(dialogue: Dialogue) -> None:
    """The models that could be used from here."""
    from evercontext.app import available_models

    now = dialogue.talk.model.info.name
    for model in await available_models(dialogue.app.settings):
        mark = "*" if model.name == now else " "
        lacks = "" if model.ready else f"  ({one_line(model.note)})"
        dialogue.screen.line(f"  {mark} {one_line(model.name)}{lacks}")
    dialogue.say(f"now: {now}. Another one: /model NAME", "dim")


async def show_skills(dialogue: Dialogue, given: str) -> None:
    """The skills of this project and of the user."""
    from evercontext.cli.skills import skill_lines

    found = dialogue.app.skills.all()
    for one in found:
        for line in skill_lines(one, dialogue.screen):
            dialogue.screen.line(f"  {line}")
    untrusted = any(one.state == "untrusted" for one in found)
    more = "read and trust one: evercontext skills trust NAME" if untrusted else ""
    dialogue.say(more if found else "no skills", "dim")


async def show_hooks(dialogue: Dialogue, given: str) -> None:
    """The hooks that are in force here."""
    from evercontext.cli.hooks import hook_lines, states

    found = states(dialogue.app.settings)
    for hook, state in found:
        for line in hook_lines(hook, state, dialogue.screen):
            dialogue.screen.line(f"  {line}")
    dialogue.say("all of them: evercontext hooks list" if found else "no hooks", "dim")


async def show_context(dialogue: Dialogue, given: str) -> None:
    """What fills the window."""
    found = dialogue.talk.context()
    window = found["window"]
    for role, tokens in sorted(found["used"].items(), key=lambda item: -item[1]):
        bar = "#" * round(40 * tokens / max(1, window))
        dialogue.screen.line(f"  {role.ljust(10)} {tokens:>9,} tokens  {bar}")
    dialogue.screen.line(
        f"  {'window'.ljust(10)} {window:>9,} tokens, {found['reserve']:,} kept for the answer"
    )


async def show_servers(dialogue: Dialogue, given: str) -> None:
    """The outside tool servers, and whether their tools are on, off or held."""
    table = dialogue.app.catalog.servers.table
    servers = await table.all()
    for server in servers:
        held = [name for name, (_, new) in (await table.pins(server.id)).items() if new]
        state = "on " if server.enabled else "off"
        reached = " ".join(server.argv) or server.url
        waits = f"  held until approved: {', '.join(held)}" if held else ""
        dialogue.screen.line(
            f"  {state}  {one_line(server.id)}  {one_line(reached)}{one_line(waits)}"
        )
    if not servers:
        dialogue.say("no server yet; add one: evercontext servers add", "dim")


async def show_memories(dialogue: Dialogue, given: str) -> None:
    """What is remembered of this project, or what bears on some words."""
    memory = dialogue.app.memory
    if given:
        wanted = RetrievalOptions(10, dialogue.talk.principal.user, memory.project)
        found = [
            (m.content, f"{m.similarity:.2f}")
            for m in await memory.retrieval.retrieve(given, wanted)
        ]
    else:
        whose = dialogue.talk.principal.user
        kept = await memory.memories.list(user_id=whose, project=memory.project, limit=10)
        found = [(m.content, m.id[:8]) for m in kept]
    for content, mark in found:
        dialogue.screen.line(f"  {mark}  {one_line(content)[:200]}")
    if not found:
        dialogue.say("nothing is remembered here yet", "dim")


async def search_code(dialogue: Dialogue, given: str) -> None:
    """Find code, as the agent finds it."""
    from evercontext.agent.task import new_trace_id

    if not given:
        raise UsageError("say what you are looking for", fix="/search WORDS")
    caller = dialogue.talk.caller(new_trace_id())
    result = await dialogue.talk.toolbox.call("search_code", {"query": given}, caller)
    if result.error:
        raise result.error
    for chunk in result.data["chunks"]:
        place = f"{chunk['path']}:{str(chunk['span']).replace('L', '')}"
        name = one_line(chunk.get("symbol") or "")
        dialogue.screen.line(f"  {one_line(place)}  {name}".rstrip())
    if covered := result.data.get("coverage"):
        dialogue.say(
            f"the index holds {covered['indexed']:,} of {covered['files']:,} files so far", "dim"
        )


async def show_usage(dialogue: Dialogue, given: str) -> None:
    """Tokens and money since this session was opened."""
    spent = dialogue.talk.spent_usd
    money = f"${spent:.4f}" if spent else "no price known, or nothing spent"
    dialogue.say(f"{dialogue.talk.spent_tokens:,} tokens, {money}, since this session was opened")


async def show_status(dialogue: Dialogue, given: str) -> None:
    """Where the conversation stands."""
    talk = dialogue.talk
    rules = len(dialogue.permissions.stored) + len(dialogue.permissions.session)
    gateway = gateway_of(dialogue.app.settings)
    facts = {
        "session": talk.session.id,
        "root": talk.root,
        **({"files": f"behind {gateway}"} if gateway else {}),
        "model": talk.model.info.name,
        "mode": str(talk.mode),
        "messages": str(len(talk.history)),
        "rules": f"{rules}{', --yes' if dialogue.permissions.yes else ''}",
        "sandbox": dialogue.app.settings.sandbox,
        "home": str(dialogue.app.settings.home),
    }
    for name, value in facts.items():
        dialogue.screen.line(f"  {name.ljust(9)} {one_line(value)}")


async def show_diffs(dialogue: Dialogue, given: str) -> None:
    """Every change of this session, oldest first."""
    from evercontext.agent.rewinding import turns
    from evercontext.events.log_reader import read_trace

    count = 0
    for turn in reversed(await turns(dialogue.talk)):
        for event in read_trace(dialogue.app.settings.traces, turn.trace_id):
            if isinstance(event.body, Diff) and event.body.applied:
                dialogue.screen.line(f"  {describe_diff(event.body)}", "bold")
                show_diff(dialogue.screen, event.body)
                count += 1
    if not count:
        dialogue.say("this session changed nothing", "dim")


async def permissions(dialogue: Dialogue, given: str) -> None:
    """See the rules, add one for this project, remove one."""
    verb, _, text = given.partition(" ")
    if verb == "remove":
        known = dialogue.permissions
        kept = [rule for rule in known.session if rule.text != text.strip()]
        gone = len(kept) < len(known.session) or await dialogue.stored.remove(text.strip())
        known.session[:] = kept
        if not gone:
            raise UsageError(f"there is no rule {text[:80]!r}", fix="See /permissions")
    elif verb:
        await dialogue.stored.add(parse(verb, text))
    dialogue.permissions.stored = await dialogue.stored.all()
    _list_rules(dialogue)


def _list_rules(dialogue: Dialogue) -> None:
    known = dialogue.permissions
    for where, rules in (("this project", known.stored), ("this session", known.session)):
        for rule in rules:
            dialogue.screen.line(f"  {rule.verdict.ljust(5)} {one_line(rule.text)}   ({where})")
    base = (
        "everything is allowed (--yes)" if known.yes else "reading is free, changes are asked for"
    )
    dialogue.say(f"otherwise {base}; destructive commands are always asked for", "dim")
