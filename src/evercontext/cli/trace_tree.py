"""A trace as a readable tree: task → plan → step → result → diff → final."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Sequence

from evercontext.cli.event_text import (
    describe_call,
    describe_check,
    describe_diff,
    describe_final,
    describe_repair,
    output_lines,
    plan_part,
    repair_style,
    seconds,
    verdict,
)
from evercontext.cli.render import painted_diff
from evercontext.cli.terminal import Screen, clip, counted, local_time, one_line, visible
from evercontext.domain.event import (
    Approval,
    Audit,
    Body,
    ContextAssembled,
    Diff,
    Event,
    Evidence,
    Final,
    HookRan,
    Limit,
    ModelReply,
    Notice,
    Plan,
    Recalled,
    RepairAttempt,
    Retry,
    RolledBack,
    Spent,
    Step,
    StepResult,
    Task,
    TaskBegan,
    TaskEnded,
    Unknown,
    Verification,
)
from evercontext.domain.tool import Door

_LONGEST_TEXT = 12
"""Lines of a reply or a failed result; ``--json`` has all of them."""


_TOLD_BY_THE_STEP = (Door.RUN, Door.CHAT)
"""Whose audit lines repeat the call that they stand below."""


def tree_lines(events: Sequence[Event], screen: Screen) -> Iterator[str]:
    """Yield the lines of one trace."""
    known = {event.id for event in events}
    children: dict[str | None, list[Event]] = defaultdict(list)
    for event in events:
        if isinstance(event.body, Audit) and event.body.door in _TOLD_BY_THE_STEP:
            continue
        children[event.parent if event.parent in known else None].append(event)
    for root in children[None]:
        yield event_line(root, screen)
        for text in _details(root, screen):
            yield f"  {text}"
        yield from _branches(root, children, screen, "")


def _branches(
    parent: Event, children: dict[str | None, list[Event]], screen: Screen, indent: str
) -> Iterator[str]:
    below = children[parent.id]
    for number, event in enumerate(below, start=1):
        last = number == len(below)
        yield screen.paint(indent + ("└─ " if last else "├─ "), "dim") + event_line(event, screen)
        deeper = indent + ("   " if last else "│  ")
        has_more = "│  " if children[event.id] else "   "
        for text in _details(event, screen):
            yield screen.paint(deeper + has_more, "dim") + text
        yield from _branches(event, children, screen, deeper)


def event_line(event: Event, screen: Screen, *, paint: bool = True) -> str:
    """One event on one line."""
    word, text, styles = _summary(event)
    room = screen.width - 12
    shown = clip(one_line(text), room)
    if not paint:
        return f"{word} {shown}"
    return f"{screen.paint(word, 'bold')} {screen.paint(shown, *styles)}".rstrip()


def _summary(event: Event) -> tuple[str, str, tuple[str, ...]]:
    match event.body:
        case Task() as task:
            return "task", task.text, ()
        case Plan(source=source, tasks=tasks):
            return "plan", f"{source}, {len(tasks)} task{'' if len(tasks) == 1 else 's'}", ()
        case ModelReply() as reply:
            return "reply", _reply(reply), ("dim",)
        case Step() as step:
            return "step", describe_call(step), ()
        case StepResult() as result:
            return "result", *_result(result)
        case Diff() as diff:
            return "diff", describe_diff(diff), ()
        case Final() as final:
            return "final", f"{final.status}, exit {final.exit_code}: {describe_final(final)}", ()
        case _:
            return _rarer(event)


def _rarer(event: Event) -> tuple[str, str, tuple[str, ...]]:
    match event.body:
        case Spent(purpose=purpose, model=model, input_tokens=sent, output_tokens=got):
            return "spent", f"{purpose}, {model}, {sent + got:,} tokens", ("dim",)
        case Approval(tool=tool, allowed=allowed, by=by, feedback=feedback):
            reason = f": {feedback}" if feedback else ""
            return "approval", f"{tool} {'allowed' if allowed else 'denied'} by {by}{reason}", ()
        case Verification() as check:
            return "check", describe_check(check), ()
        case RepairAttempt() as attempt:
            return "repair", describe_repair(attempt), repair_style(attempt)
        case Notice(level=level, text=text):
            return level, text, ("yellow",)
        case Retry(what=what, reason=reason):
            return "retry", f"{what}: {reason}", ("yellow",)
        case Limit(kind=kind, allowed=allowed, used=used):
            return "limit", f"{kind}: {used:g} of {allowed:g}", ("yellow",)
        case Evidence(query=query, paths=paths):
            return "evidence", f"{query} → {', '.join(paths)}", ()
        case Audit(method=method, path=path, status=status, size=size):
            return "audit", f"{method} {path} {status}, {size} bytes", ("dim",)
        case TaskBegan(title=title):
            return "part", f"began: {title}", ()
        case TaskEnded(title=title, status=status):
            return "part", f"{status}: {title}", ()
        case RolledBack(restored=restored, removed=removed):
            return "rollback", ", ".join((*restored, *removed)) or "nothing", ("yellow",)
        case Recalled(memories=memories):
            return (
                "recalled",
                f"{counted(len(memories), 'memory', 'memories')}: {', '.join(memories)}",
                (),
            )
        case HookRan(event=about, command=command, decision=decision, exit_code=code, text=text):
            ended = "no exit code" if code is None else f"exit {code}"
            return "hook", f"{about} {command} → {ended}, {decision} {text}".rstrip(), ()
        case ContextAssembled() as made:
            return "context", _context(made), ("dim",)
        case Unknown(name=name):
            return name, "written by a newer version", ("dim",)
        case other:
            return other.type, _facts(other), ("dim",)


def _facts(body: Body) -> str:
    facts = ((row.name, getattr(body, row.name)) for row in dataclasses.fields(body))
    return ", ".join(f"{name} {value}" for name, value in facts if value not in (None, "", (), {}))


def _context(assembled: ContextAssembled) -> str:
    most = f" of {assembled.token_limit:,}" if assembled.token_limit else ""
    size = f"{assembled.context_token_count:,}{most} tokens"
    layers = [f"{name} {count:,}" for name, count in assembled.memory_layer_usage.items() if count]
    shorter = ["compressed"] if assembled.compression_applied else []
    without = [f"without {name} ({why})" for name, why in assembled.degraded.items()]
    took = seconds(round(assembled.context_assembly_latency_ms))
    return ", ".join([size, *layers, *shorter, *without, took])


def _reply(reply: ModelReply) -> str:
    tokens = reply.input_tokens + reply.output_tokens
    counted = f"{tokens:,} tokens, " if tokens else ""
    return f"{reply.turn}, {reply.model}, {counted}{seconds(reply.duration_ms)}"


def _result(result: StepResult) -> tuple[str, tuple[str, ...]]:
    word, colour = verdict(result)
    tail = seconds(result.duration_ms) if result.ok else result.text
    return f"{word}  {tail}", (colour,)


def _details(event: Event, screen: Screen) -> list[str]:
    match event.body:
        case Task() as task:
            facts = f"{task.model}, {task.mode}, {task.root}, {local_time(event.at)}"
            return [screen.paint(one_line(facts), "dim")]
        case Plan(tasks=tasks) if len(tasks) > 1:
            return [one_line(plan_part(task)) for task in tasks]
        case ModelReply(text=text) if text.strip():
            return _cut(visible(text.strip()).split("\n"))
        case StepResult() as result:
            return [screen.paint(line, "dim") for line in output_lines(result, screen.width - 12)]
        case Diff(diff=diff):
            return painted_diff(screen, diff)[2:]
        case Final(text=text, error=error):
            lines = visible(text.strip()).split("\n") if text.strip() else []
            return lines + ([screen.paint(f"error: {one_line(error)}", "red")] if error else [])
        case _:
            return []


def _cut(lines: list[str]) -> list[str]:
    more = len(lines) - _LONGEST_TEXT
    return lines[:_LONGEST_TEXT] + ([f"… {more} more lines"] if more > 0 else [])
