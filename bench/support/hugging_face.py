"""Generates with a model in transformers on PyTorch.

For each line of tokens it generates `count` more, and answers with the milliseconds of the prompt and of generation,
and the CPU milliseconds.
"""

import json
import os
import sys
import time

import torch
from transformers import AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar


@torch.inference_mode()
def run(model: torch.nn.Module, tokens: list[int], count: int) -> dict[str, float]:
    begun, used = time.perf_counter(), time.process_time()
    out = model(torch.tensor([tokens]), use_cache=True, logits_to_keep=1)
    last = out.logits[:, -1].argmax(-1, keepdim=True)
    first, used_first = time.perf_counter(), time.process_time()
    for _ in range(count):
        out = model(last, past_key_values=out.past_key_values, use_cache=True)
        last = out.logits[:, -1].argmax(-1, keepdim=True)
    last.item()
    ended, used_last = time.perf_counter(), time.process_time()
    processor = {"prompt": (used_first - used) * 1e3, "rest": (used_last - used_first) * 1e3}
    return {"prompt": (first - begun) * 1e3, "rest": (ended - first) * 1e3, "processor": processor}


disable_progress_bar()
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
loaded = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.bfloat16).eval()
print("ready", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps(run(loaded, asked["tokens"], asked["count"])), flush=True)
