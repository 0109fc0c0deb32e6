"""
The steps of bench/distributed.ts --train in PyTorch: torchrun --nproc-per-node 4 distributed_torch.py [model [batch]].
gpt-11m runs on processors over gloo, gpt-124m on GPUs over NCCL.
"""

import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

MODELS = {"gpt-11m": (128, 512, 384, 6, 6), "gpt-124m": (1024, 50304, 768, 12, 12)}
NAME = sys.argv[1] if len(sys.argv) > 1 else "gpt-11m"
CONTEXT, VOCABULARY, WIDTH, HEADS, LAYERS = MODELS[NAME]
BATCH, STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 8, 12
torch.set_num_threads(int(os.environ.get("ORCHARD_CPU_THREADS", "1")))
ON_GPU = NAME == "gpt-124m"
DEVICE = f"cuda:{os.environ['LOCAL_RANK']}" if ON_GPU else "cpu"
if ON_GPU:
    torch.cuda.set_device(DEVICE)
dist.init_process_group("nccl" if ON_GPU else "gloo")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (each.view(b, t, HEADS, c // HEADS).transpose(1, 2) for each in self.qkv(self.ln1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        h = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
        return self.norm(self.blocks(h)) @ self.tokens.weight.T


torch.manual_seed(1)
whole = GPT().to(DEVICE, torch.bfloat16 if ON_GPU else torch.float32)
model = nn.parallel.DistributedDataParallel(whole)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
times = []
for step in range(STEPS):
    dist.barrier()
    start = time.perf_counter()
    x = torch.randint(0, VOCABULARY, (BATCH, CONTEXT), device=DEVICE)
    optimizer.zero_grad()
    F.cross_entropy(model(x).flatten(0, 1), x.flatten()).backward()
    optimizer.step()
    if ON_GPU:
        torch.cuda.synchronize()
    dist.barrier()
    if step > 1:
        times.append(time.perf_counter() - start)
if dist.get_rank() == 0:
    best = min(times)
    tokens = dist.get_world_size() * BATCH * CONTEXT / best
    print(f"{dist.get_backend()}, {dist.get_world_size()} ranks: {best * 1e3:.1f} ms a step, {tokens:.0f} tokens/s")
dist.destroy_process_group()
