"""PyTorch's side of bench/train.ts: reads a line of JSON, answers with one."""

import json
import math
import sys
import time
from pathlib import Path

import torch
from torch import Tensor

sys.path.append(str(Path(__file__).parents[2] / "scripts" / "fixtures"))
from gpt import GPT, Recipe, Sizes, optimizer_of  # noqa: E402


def load(model: GPT, path: Path) -> None:
    """A safetensors file of float32: the length of a header, the header in JSON, the bytes."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    state = {
        name: torch.frombuffer(bytearray(data[start + first : start + end]), dtype=torch.float32).view(each["shape"])
        for name, each in header.items()
        for first, end in [each["data_offsets"]]
    }
    model.load_state_dict(state)


def rate_at(step: int, recipe: Recipe) -> float:
    """Up in the warm-up, then half a cosine down. Steps are counted from 0."""
    if step < recipe.warmup:
        return recipe.learningRate * (step + 1) / (recipe.warmup + 1)
    done = (step - recipe.warmup) / (recipe.steps - recipe.warmup)
    falling = recipe.learningRate - recipe.finalLearningRate
    return recipe.finalLearningRate + 0.5 * (1 + math.cos(math.pi * done)) * falling


class Training:
    def __init__(self, sizes: Sizes, recipe: Recipe, weights: Path) -> None:
        self.recipe, self.taken = recipe, 0
        self.model = GPT(sizes)
        load(self.model, weights)
        self.optimizer = optimizer_of(self.model, recipe)

    def step(self, tokens: Tensor) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = rate_at(self.taken, self.recipe)
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        self.optimizer.step()
        self.taken += 1
        return loss.item()

    def steps(self, batches: list[Tensor]) -> dict[str, object]:
        started = time.perf_counter()
        losses = [self.step(tokens) for tokens in batches]
        return {"losses": losses, "seconds": time.perf_counter() - started}

    @torch.no_grad()
    def evaluate(self, batches: list[Tensor]) -> dict[str, object]:
        losses = [self.model(tokens[:, :-1], tokens[:, 1:]).item() for tokens in batches]
        return {"loss": sum(losses) / len(losses)}


def main() -> None:
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads", flush=True)
    first = json.loads(sys.stdin.readline())
    training = Training(Sizes(**first["sizes"]), Recipe(**first["recipe"]), Path(first["weights"]))
    print("{}", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        batches = [torch.tensor(tokens) for tokens in asked["batches"]]
        answer = training.evaluate(batches) if asked["what"] == "evaluate" else training.steps(batches)
        print(json.dumps(answer), flush=True)


main()
