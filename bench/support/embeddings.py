"""Computes embeddings with transformers on PyTorch.

With `make FOLDER SIZES` it writes a BERT with random weights, or the image encoder of a CLIP if the sizes have a
`patch_size`. With `run FOLDER` it answers each line, a list of texts as tokens or a number of images, with the wall and
CPU milliseconds and the first element of each vector. Texts are sorted by length and run in batches of 32, as
sentence-transformers does.
"""

import json
import os
import sys
import time

import torch
from transformers import AutoConfig, BertConfig, BertModel, CLIPVisionConfig, CLIPVisionModelWithProjection

BATCH = 32


@torch.inference_mode()
def embedded(model: torch.nn.Module, texts: list[list[int]]) -> torch.Tensor:
    order = sorted(range(len(texts)), key=lambda at: -len(texts[at]))
    vectors = torch.empty(len(texts), model.config.hidden_size)
    for start in range(0, len(order), BATCH):
        rows = order[start : start + BATCH]
        longest = len(texts[rows[0]])
        tokens = torch.tensor([texts[row] + [0] * (longest - len(texts[row])) for row in rows])
        mask = torch.tensor([[1] * len(texts[row]) + [0] * (longest - len(texts[row])) for row in rows])
        states = model(tokens, attention_mask=mask).last_hidden_state
        weights = mask.unsqueeze(2).to(states.dtype)
        pooled = (states * weights).sum(1) / weights.sum(1)
        vectors[rows] = torch.nn.functional.normalize(pooled, dim=1)
    return vectors


def image(index: int, side: int) -> torch.Tensor:
    return ((index * 31 + torch.arange(3 * side * side) * 7919) % 256).to(torch.uint8).view(3, side, side)


@torch.inference_mode()
def embedded_images(model: torch.nn.Module, images: list[torch.Tensor]) -> torch.Tensor:
    vectors = []
    for start in range(0, len(images), BATCH):
        pixels = (torch.stack(images[start : start + BATCH]).float() / 255 - 0.5) / 0.5
        vectors.append(torch.nn.functional.normalize(model(pixels).image_embeds, dim=1))
    return torch.cat(vectors)


def answer(model: torch.nn.Module, asked: list[list[int]] | int) -> dict[str, object]:
    if isinstance(asked, int):
        asked = [image(index, model.config.image_size) for index in range(asked)]
    begun, used = time.perf_counter(), time.process_time()
    vectors = embedded_images(model, asked) if hasattr(model.config, "patch_size") else embedded(model, asked)
    wall, processor = time.perf_counter() - begun, time.process_time() - used
    return {"wall": wall * 1e3, "processor": processor * 1e3, "first": vectors[:, 0].tolist()}


def main() -> None:
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    if sys.argv[1] == "make":
        torch.manual_seed(5)
        sizes = json.loads(sys.argv[3])
        of_images = "patch_size" in sizes
        made = CLIPVisionModelWithProjection(CLIPVisionConfig(**sizes)) if of_images else BertModel(BertConfig(**sizes))
        made.save_pretrained(sys.argv[2])
        return
    of_images = AutoConfig.from_pretrained(sys.argv[2]).model_type == "clip_vision_model"
    model = (CLIPVisionModelWithProjection if of_images else BertModel).from_pretrained(sys.argv[2]).eval()
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(model, json.loads(line))), flush=True)


main()
