"""Computes embeddings with transformers on PyTorch.

With `make FOLDER SIZES` it writes a BERT with random weights. With `run FOLDER` it answers each line, a list of texts
as tokens, with the wall and CPU milliseconds and the first element of each vector. Texts are sorted by length and run
in batches of 32, as sentence-transformers does.
"""

import json
import os
import sys
import time

import torch
from transformers import BertConfig, BertModel

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


def answer(model: torch.nn.Module, texts: list[list[int]]) -> dict[str, object]:
    begun, used = time.perf_counter(), time.process_time()
    vectors = embedded(model, texts)
    wall, processor = time.perf_counter() - begun, time.process_time() - used
    return {"wall": wall * 1e3, "processor": processor * 1e3, "first": vectors[:, 0].tolist()}


def main() -> None:
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    if sys.argv[1] == "make":
        torch.manual_seed(5)
        BertModel(BertConfig(**json.loads(sys.argv[3]))).save_pretrained(sys.argv[2])
        return
    model = BertModel.from_pretrained(sys.argv[2]).eval()
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(model, json.loads(line))), flush=True)


main()
