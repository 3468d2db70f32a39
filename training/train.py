"""On the machine with the GPU: train the vectors, a few minutes for one seed.

    python -m training.train DATA TOOLS OUT '{"name": "a", "seed": 1, ...}' ...

Each JSON argument is one run; what it does not say is in ``Recipe``.
"""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from training.export import write_model
from training.measure import measure_tools, reciprocal_rank


@dataclass(frozen=True)
class Recipe:
    """Everything that one run depends on."""

    name: str = "run"
    seed: int = 1
    steps: int = 2000
    dimensions: int = 256
    rate: float = 4e-3
    code_batch: int = 6144
    text_batch: int = 3072
    japanese_batch: int = 4096
    group: int = 32
    text_worth: float = 0.5
    japanese_worth: float = 1.0
    distil: float = 3.0
    code_distil: float = 0.0
    relation: float = 0.0
    dropout: float = 0.15
    same: float = 0.9
    sif: float = 1e-4


class Model(torch.nn.Module):
    """One vector per piece, one weight per piece and side; row 0 is nothing."""

    def __init__(self, table: Tensor, weights: Tensor) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.cat([torch.zeros_like(table[:1]), table]))
        weights = torch.cat([weights[:1], weights]).log()
        self.question = torch.nn.Parameter(weights.clone())
        self.document = torch.nn.Parameter(weights.clone())
        self.heat = torch.nn.Parameter(torch.tensor(math.log(20.0)))

    def forward(self, side: str, ids: Tensor, weights: Tensor, dropout: float = 0.0) -> Tensor:
        # Scaling the small table is far cheaper than learning a weight per occurrence.
        scale = (self.question if side == "question" else self.document).exp()
        worth = weights.float()
        if dropout:
            worth = worth * (torch.rand_like(worth) > dropout)
        total = functional.embedding_bag(
            ids, self.table * scale[:, None], per_sample_weights=worth, mode="sum", padding_idx=0
        )
        return functional.normalize(total, dim=-1)


class Data:
    """The tensors on the GPU, and batches from them."""

    def __init__(self, path: Path, seed: int) -> None:
        loaded = torch.load(path, weights_only=True)
        self.all = {
            k: tuple(t.cuda() for t in v) if isinstance(v, (tuple, list)) else v.cuda()
            for k, v in loaded.items()
        }
        self.dice = torch.Generator(device="cuda").manual_seed(seed)
        group = self.all["code-train-group"]
        self.order = torch.argsort(group, stable=True)
        self.sizes = torch.bincount(group)
        self.starts = torch.cumsum(self.sizes, 0) - self.sizes
        self.large = torch.nonzero(self.sizes >= 12)[:, 0]

    def draw(self, size: int, below: int) -> Tensor:
        return torch.randint(below, (size,), generator=self.dice, device="cuda")

    def code(self, size: int, group: int) -> Tensor:
        """Return places: half at random, half from a few packages, so that neighbours compete."""
        total = len(self.order)
        if not group:
            return self.draw(size, total)
        packages = self.large[self.draw(size // 2 // group, len(self.large))].repeat_interleave(
            group
        )
        inside = torch.rand(len(packages), generator=self.dice, device="cuda")
        near = self.order[self.starts[packages] + (inside * self.sizes[packages]).long()]
        return torch.cat([self.draw(size - len(near), total), near])

    def part(self, name: str, places: Tensor) -> tuple[Tensor, Tensor]:
        ids, weights = self.all[name]
        return ids[places].long(), weights[places]


def contrast(left: Tensor, right: Tensor, heat: Tensor, hide: Tensor) -> Tensor:
    """Return InfoNCE in both directions; hidden places are no negatives."""
    scores = left @ right.T * heat.exp().clamp(max=60.0)
    scores = scores.masked_fill(hide, -1e4)
    target = torch.arange(len(left), device=left.device)
    return (
        functional.cross_entropy(scores, target) * 0.7
        + functional.cross_entropy(scores.T, target) * 0.3
    )


def alike(teacher: Tensor, limit: float) -> Tensor:
    """True where two different items say the same to the teacher."""
    same = (teacher @ teacher.T) > limit
    return same & ~torch.eye(len(teacher), dtype=torch.bool, device=teacher.device)


def follow(vectors: Tensor, teacher: Tensor, projection: Tensor) -> Tensor:
    """Return one minus the cosine to the teacher's projected vector."""
    return 1 - (vectors * functional.normalize(teacher.float() @ projection, dim=-1)).sum(-1).mean()


def relate(left: Tensor, right: Tensor, teacher_left: Tensor, teacher_right: Tensor) -> Tensor:
    """Return how far the batch's neighbourhoods differ from the teacher's."""
    wanted = functional.softmax(teacher_left.float() @ teacher_right.float().T * 20, dim=-1)
    return functional.cross_entropy(left @ right.T * 20, wanted) - functional.cross_entropy(
        teacher_left.float() @ teacher_right.float().T * 20, wanted
    )


def start(data: Data, recipe: Recipe, frequency: Tensor) -> tuple[Model, Tensor]:
    """Return the untrained model and the projection from the teacher's space."""
    sample = data.all["code-train-question-teacher"][:: max(1, len(data.order) // 100_000)].float()
    sample = torch.cat([sample, data.all["text-document-teacher"][::4].float()])
    _, _, axes = torch.linalg.svd(sample.T @ sample)
    projection = axes[: recipe.dimensions].T.contiguous()
    tokens = data.all["tokens"].float()
    table = (tokens - tokens.mean(0)) @ projection
    ids, weights = data.all["japanese-question"]
    meaning = data.all["japanese-document-teacher"].float() @ projection
    meaning = meaning - meaning.mean(0)
    share = (weights.float() / weights.float().sum(1, keepdim=True).clamp(min=1e-6)).cuda()
    total = torch.zeros(len(table) + 1, recipe.dimensions, device="cuda")
    mass = torch.zeros(len(table) + 1, device="cuda")
    for i in range(0, len(ids), 20_000):
        part, worth = ids[i : i + 20_000].long(), share[i : i + 20_000]
        total.index_add_(
            0, part.flatten(), (worth[..., None] * meaning[i : i + 20_000, None]).flatten(0, 1)
        )
        mass.index_add_(0, part.flatten(), worth.flatten())
    japanese = data.all["is-japanese"]
    learned = total[1:] / (mass[1:, None] + 0.5)
    table = torch.where(japanese[:, None], learned * 1.5, table)
    chance = frequency / frequency.sum()
    return Model(
        functional.normalize(table, dim=-1), recipe.sif / (recipe.sif + chance)
    ).cuda(), projection


def losses(model: Model, data: Data, recipe: Recipe, projection: Tensor) -> Tensor:
    """Return the sum of everything one step learns from."""
    loss = torch.zeros((), device="cuda")
    for name, batch, worth in (
        ("code-train", recipe.code_batch, 1.0),
        ("text", recipe.text_batch, recipe.text_worth),
        ("japanese", recipe.japanese_batch, recipe.japanese_worth),
    ):
        if name == "code-train":
            places = data.code(batch, recipe.group)
        else:
            places = data.draw(batch, len(data.all[f"{name}-question"][0]))
        left = model("question", *data.part(f"{name}-question", places), recipe.dropout)
        right = model("document", *data.part(f"{name}-document", places), recipe.dropout)
        right_teacher = data.all[f"{name}-document-teacher"][places]
        left_teacher = (
            right_teacher if name == "japanese" else data.all[f"{name}-question-teacher"][places]
        )
        loss = loss + worth * contrast(left, right, model.heat, alike(left_teacher, recipe.same))
        loss = loss + recipe.distil * follow(left, left_teacher, projection) * (
            0.5 if name != "japanese" else 1.0
        )
        own = recipe.code_distil if name == "code-train" else recipe.distil * 0.5
        if own:
            loss = loss + own * follow(right, right_teacher, projection)
        if recipe.relation and name != "japanese":
            loss = loss + recipe.relation * relate(left, right, left_teacher, right_teacher)
        if name == "japanese":
            half = places[: batch // 2]
            turned = model("document", *data.part("japanese-question", half), recipe.dropout)
            asked = model("question", *data.part("japanese-document", half), recipe.dropout)
            loss = loss + 0.5 * worth * contrast(
                asked, turned, model.heat, alike(left_teacher[: batch // 2], recipe.same)
            )
            loss = loss + 0.5 * recipe.distil * follow(
                turned, left_teacher[: batch // 2], projection
            )
    return loss


def train(data: Data, recipe: Recipe, frequency: Tensor) -> Model:
    """Run the recipe."""
    torch.manual_seed(recipe.seed)
    data.dice.manual_seed(recipe.seed)
    model, projection = start(data, recipe, frequency)
    optimizer = torch.optim.Adam(model.parameters(), lr=recipe.rate, betas=(0.9, 0.98))
    plan = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / 50) * max(0.02, 1 - step / recipe.steps)
    )
    for step in range(recipe.steps):
        loss = losses(model, data, recipe, projection)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        plan.step()
        if step % 250 == 0:
            print(recipe.name, step, round(loss.item(), 3), flush=True)
    return model


def score(model: Model, data: Data, part: str) -> float:
    """Return MRR@10 of docstring to function among the sampled ones of a part."""
    places = data.all[f"{part}-places"]
    with torch.inference_mode():
        left = model("question", *data.part(f"code-{part}-question", places))
        right = model("document", *data.part(f"code-{part}-document", places))
    return reciprocal_rank(left @ right.T)


def main() -> None:
    source, tools, out = map(Path, sys.argv[1:4])
    about = json.loads((source / "vocabulary.json").read_text())
    data = Data(source / "data.pt", 0)
    japanese = [any("\u3005" <= c <= "\u9fff" for c in word) for word in about["words"]]
    data.all["is-japanese"] = torch.tensor(japanese).cuda()
    frequency = torch.tensor(about["frequency"], dtype=torch.float).cuda()
    for part in ("dev", "test"):
        places = data.all[f"{part}-places"]
        sides = [
            data.all[f"code-{part}-{side}-teacher"][places].float()
            for side in ("question", "document")
        ]
        print("teacher", part, round(reciprocal_rank(sides[0] @ sides[1].T), 4), flush=True)
    models = []
    for text in sys.argv[4:]:
        recipe = Recipe(**json.loads(text))
        begin = time.time()
        models.append(train(data, recipe, frequency))
        report(
            models[-1], data, about, out / f"{recipe.name}.bin", tools, text, time.time() - begin
        )
    if len(models) > 1:
        report(
            average(models), data, about, out / "average.bin", tools, "average of the above", 0.0
        )


def report(
    model: Model,
    data: Data,
    about: dict[str, list[str]],
    path: Path,
    tools: Path,
    text: str,
    seconds: float,
) -> None:
    """Write a model and print what it reaches."""
    write_model(
        path,
        "evercontext-256-1",
        about["words"],
        about["scores"],
        model.table[1:],
        model.question[1:].exp(),
        model.document[1:].exp(),
    )
    found = {part: round(score(model, data, part), 4) for part in ("dev", "test")}
    print(
        json.dumps(
            {"recipe": text, **found, **measure_tools(path, tools), "seconds": round(seconds)}
        ),
        flush=True,
    )


def average(models: list[Model]) -> Model:
    """Return the mean of runs from one start: they end near each other, their mean nearer."""
    mean = models[0]
    with torch.no_grad():
        for name, parameter in mean.named_parameters():
            parameter.copy_(torch.stack([dict(m.named_parameters())[name] for m in models]).mean(0))
    return mean


if __name__ == "__main__":
    main()
