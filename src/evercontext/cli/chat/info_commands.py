"""Commands that only show something, and the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evercontext.access.approval_rules import parse
from evercontext.cli.chat.view import show_diff
from evercontext.cli.event_text import describe_diff
from evercontext.cli.messages import translate
from evercontext.cli.options import gateway_of
from evercontext.cli.terminal import columns_of, counted, listed, one_line, pad
from evercontext.domain.event import Diff
from evercontext.domain.memory import RetrievalOptions
from evercontext.errors import UsageError

if TYPE_CHECKING:
    from evercontext.cli.chat.chat_session import ChatSession


async def show_models(chat: ChatSession) -> None:
    """The models that could be used from here."""
    from evercontext.app import available_models

    now = chat.talk.model.info.name
    for model in await available_models(chat.app.settings):
        mark = "*" if model.name == now else " "
        lacks = "" if model.ready else f"  ({one_line(model.note)})"
        chat.screen.line(f"  {mark} {one_line(model.name)}{lacks}")
    chat.say(translate("now: {model}. Another one: /model NAME", model=now), "dim")


async def show_skills(chat: ChatSession, argument: str) -> None:
    """The skills of this project and of the user."""
    from evercontext.cli.skills import skill_lines

    skills = chat.app.skills.all()
    for skill in skills:
        for line in skill_lines(skill, chat.screen):
            chat.screen.line(f"  {line}")
    untrusted = any(skill.state == "untrusted" for skill in skills)
    hint = "read and trust one: evercontext skills trust NAME" if untrusted else ""
    if text := hint if skills else "no skills":
        chat.say(translate(text), "dim")


async def show_hooks(chat: ChatSession, argument: str) -> None:
    """The hooks that are in force here."""
    from evercontext.cli.agent_hooks import hook_lines, states

    hooks = states(chat.app.settings)
    for hook, state in hooks:
        for line in hook_lines(hook, state, chat.screen):
            chat.screen.line(f"  {line}")
    chat.say(translate("all of them: evercontext hooks list" if hooks else "no hooks"), "dim")


async def show_context(chat: ChatSession, argument: str) -> None:
    """What fills the window."""
    usage = chat.talk.context()
    window = usage["window"]
    for role, tokens in sorted(usage["used"].items(), key=lambda item: -item[1]):
        bar = "#" * round(40 * tokens / max(1, window))
        name, amount = pad(translate(role), 10), counted(tokens, "token").rjust(16)
        chat.screen.line(f"  {name} {amount}  {bar}")
    name, amount = pad(translate("window"), 10), counted(window, "token").rjust(16)
    reserve = translate("{count} kept for the answer", count=f"{usage['reserve']:,}")
    chat.screen.line(f"  {name} {amount}, {reserve}")


async def show_servers(chat: ChatSession, argument: str) -> None:
    """The outside tool servers, and whether their tools are on, off or held."""
    table = chat.app.catalog.servers.table
    servers = await table.all()
    for server in servers:
        held = [name for name, (_, new) in (await table.pins(server.id)).items() if new]
        state = translate("on") if server.enabled else translate("off")
        reached = " ".join(server.argv) or server.url
        tools = translate("held until approved: {tools}", tools=", ".join(held))
        waits = f"  {tools}" if held else ""
        chat.screen.line(
            f"  {pad(state, 3)}  {one_line(server.id)}  {one_line(reached)}{one_line(waits)}"
        )
    if not servers:
        chat.say(translate("no server yet; add one: evercontext servers add"), "dim")


async def show_memories(chat: ChatSession, argument: str) -> None:
    """What is remembered of this project, or what bears on some words."""
    memory = chat.app.memory
    if argument:
        options = RetrievalOptions(10, chat.talk.principal.user, memory.project)
        rows = [
            (m.content, f"{m.similarity:.2f}")
            for m in await memory.retrieval.retrieve(argument, options)
        ]
    else:
        whose = chat.talk.principal.user
        memories = await memory.memories.list(user_id=whose, project=memory.project, limit=10)
        rows = [(m.content, m.id[:8]) for m in memories]
    for content, mark in rows:
        chat.screen.line(f"  {mark}  {one_line(content)[:200]}")
    if not rows:
        chat.say(translate("nothing is remembered here yet"), "dim")


async def search_code(chat: ChatSession, argument: str) -> None:
    """Find code, as the agent finds it."""
    from evercontext.agent.task import new_trace_id

    if not argument:
        raise UsageError("say what you are looking for", fix="/search WORDS")
    caller = chat.talk.caller(new_trace_id())
    result = await chat.talk.toolbox.call("search_code", {"query": argument}, caller)
    if result.error:
        raise result.error
    for chunk in result.data["chunks"]:
        place = f"{chunk['path']}:{str(chunk['span']).replace('L', '')}"
        name = one_line(chunk.get("symbol") or "")
        chat.screen.line(f"  {one_line(place)}  {name}".rstrip())
    if covered := result.data.get("coverage"):
        indexed, files = f"{covered['indexed']:,}", f"{covered['files']:,}"
        text = "the index holds {indexed} of {files} files so far"
        chat.say(translate(text, indexed=indexed, files=files), "dim")


async def show_usage(chat: ChatSession, argument: str) -> None:
    """Tokens and money since this session was opened."""
    spent = chat.talk.spent_usd
    money = f"${spent:.4f}" if spent else translate("no price known, or nothing spent")
    used = chat.talk.spent
    share = used.cached_tokens / used.input_tokens if used.input_tokens else 0.0
    cached = translate("{share} of the input from the provider's cache", share=f"{share:.0%}")
    parts = [counted(chat.talk.spent_tokens, "token") + (f" ({cached})" if share else ""), money]
    chat.say(translate("{what}, since this session was opened", what=listed(parts)))


async def show_status(chat: ChatSession, argument: str) -> None:
    """Where the conversation stands."""
    talk = chat.talk
    rules = len(chat.permissions.stored) + len(chat.permissions.session)
    gateway = gateway_of(chat.app.settings)
    facts = {
        "session": talk.session.id,
        "root": talk.root,
        **({"files": translate("behind {gateway}", gateway=gateway)} if gateway else {}),
        "model": talk.model.info.name,
        "mode": str(talk.mode),
        "messages": str(len(talk.history)),
        "rules": f"{rules}{', --yes' if chat.permissions.yes else ''}",
        "sandbox": chat.app.settings.sandbox,
        "home": str(chat.app.settings.home),
    }
    width = max(9, *(columns_of(translate(name)) for name in facts))
    for name, value in facts.items():
        chat.screen.line(f"  {pad(translate(name), width)} {one_line(value)}")


async def show_diffs(chat: ChatSession, argument: str) -> None:
    """Every change of this session, oldest first; those of the background last."""
    from evercontext.agent.rewind import turns
    from evercontext.events.log_reader import read_trace

    past = await turns(chat.talk)
    count = 0
    for turn in reversed(past):
        for event in read_trace(chat.app.settings.traces, turn.trace_id):
            if isinstance(event.body, Diff) and event.body.applied:
                chat.screen.line(f"  {describe_diff(event.body)}", "bold")
                show_diff(chat.screen, event.body)
                count += 1
    count += await _show_background_diffs(chat, [turn.trace_id for turn in past])
    if not count:
        chat.say(translate("this session changed nothing"), "dim")


async def _show_background_diffs(chat: ChatSession, traces: list[str]) -> int:
    """What changed between turns while commands ran, by them or by the user."""
    from evercontext.cli.chat.session_commands import account_background
    from evercontext.workspace.checkpoints import diff_of, doubtful_changes

    if chat.app.workspace.local is None:
        return 0
    journal = chat.app.workspace.local.journal
    await account_background(chat)
    changes = await doubtful_changes(journal, traces)
    for change in changes:
        command = one_line(change.command[:80])
        doubt = translate("while {command} ran, by it or by you", command=command)
        diff = await diff_of(journal, change)
        name = describe_diff(diff) if diff else one_line(change.path)
        chat.screen.line(f"  {name} ({doubt})", "bold")
        if diff:
            show_diff(chat.screen, diff)
    return len(changes)


async def permissions(chat: ChatSession, argument: str) -> None:
    """See the rules, add one for this project, remove one."""
    verb, _, text = argument.partition(" ")
    if verb == "remove":
        known = chat.permissions
        others = [rule for rule in known.session if rule.text != text.strip()]
        gone = len(others) < len(known.session) or await chat.stored.remove(text.strip())
        known.session[:] = others
        if not gone:
            raise UsageError(f"there is no rule {text[:80]!r}", fix="See /permissions")
    elif verb:
        await chat.stored.add(parse(verb, text))
    chat.permissions.stored = await chat.stored.all()
    _list_rules(chat)


def _list_rules(chat: ChatSession) -> None:
    known = chat.permissions
    for where, rules in (("this project", known.stored), ("this session", known.session)):
        for rule in rules:
            chat.screen.line(
                f"  {rule.verdict.ljust(5)} {one_line(rule.text)}   ({translate(where)})"
            )
    base = (
        "otherwise everything is allowed (--yes); destructive commands are always asked for"
        if known.yes
        else "otherwise reading is free, changes are asked for; destructive commands are always"
        " asked for"
    )
    chat.say(translate(base), "dim")
