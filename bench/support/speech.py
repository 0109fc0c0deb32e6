"""Runs Whisper with random weights on PyTorch (transformers), onnxruntime and CTranslate2, faster-whisper's engine.

`make FOLDER SIZES` writes a model, and if ctranslate2 is installed its conversion in FOLDER/ctranslate2. `run FOLDER
ENGINE TOKENS` answers each line with the wall and CPU milliseconds of the encoder and of as many greedy tokens, for one
window of noise.
"""

import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

THREADS = int(os.environ["OMP_NUM_THREADS"])
START, END, NO_TIMESTAMPS = 50258, 50257, 50363
SPECIAL = {START: "<|startoftranscript|>", END: "<|endoftext|>", NO_TIMESTAMPS: "<|notimestamps|>"}


def features() -> np.ndarray:
    return ((np.arange(80 * 3000, dtype=np.int64) * 7919 % 1000) / 1000 - 0.5).astype(np.float32).reshape(1, 80, 3000)


def make(folder: Path, sizes: dict[str, Any]) -> None:
    torch.manual_seed(5)
    model = WhisperForConditionalGeneration(WhisperConfig(**sizes))
    model.save_pretrained(folder)
    try:
        from ctranslate2.converters.transformers import WhisperLoader
    except ImportError:
        return

    loader = WhisperLoader()
    spec = loader.get_model_spec(model)
    spec.register_vocabulary([SPECIAL.get(token, f"t{token}") for token in range(sizes["vocab_size"])])
    config = spec.config
    for name, value in {"suppress_ids": [], "suppress_ids_begin": [], "lang_ids": [], "alignment_heads": []}.items():
        setattr(config, name, value) if hasattr(config, name) else config.add_attribute(name, value)
    spec.validate()
    (folder / "ctranslate2").mkdir()
    spec.save(str(folder / "ctranslate2"))


def on_pytorch(folder: Path, count: int) -> Any:
    model = WhisperForConditionalGeneration.from_pretrained(folder).eval()
    inputs = torch.from_numpy(features())

    @torch.inference_mode()
    def run() -> None:
        encoded = model.model.encoder(inputs).last_hidden_state
        token, cache = torch.tensor([[START, NO_TIMESTAMPS]]), None
        for _ in range(count):
            out = model(
                encoder_outputs=(encoded,), decoder_input_ids=token, past_key_values=cache, use_cache=True
            )
            token, cache = out.logits[:, -1:].argmax(-1), out.past_key_values

    return run


def on_onnxruntime(folder: Path, _: int) -> Any:
    """The encoder alone: `torch.onnx` exports a decoder without its cache."""
    import onnxruntime

    model = WhisperForConditionalGeneration.from_pretrained(folder).eval()

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = model.model.encoder

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.encoder(x).last_hidden_state

    names = {"input_names": ["features"], "output_names": ["states"]}
    torch.onnx.export(Encoder(), (torch.zeros(1, 80, 3000),), folder / "encoder.onnx", **names, dynamo=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(folder / "encoder.onnx", options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"features": features()})


def on_ctranslate2(folder: Path, count: int) -> Any:
    import ctranslate2

    model = ctranslate2.models.Whisper(
        str(folder / "ctranslate2"), device="cpu", compute_type="float32", intra_threads=THREADS, inter_threads=1
    )
    inputs = ctranslate2.StorageView.from_array(features())

    def run() -> None:
        options = {"beam_size": 1, "max_length": 2 * count, "suppress_tokens": [END], "suppress_blank": False}
        found = model.generate(model.encode(inputs), [[START, NO_TIMESTAMPS]], **options)[0].sequences_ids[0]
        if abs(len(found) - count) > 1:
            raise SystemExit(f"expected {count} tokens, got {len(found)}")

    return run


def main() -> None:
    torch.set_num_threads(THREADS)
    folder = Path(sys.argv[2])
    if sys.argv[1] == "make":
        make(folder, json.loads(sys.argv[3]))
        return
    engines = {"pytorch": on_pytorch, "ctranslate2": on_ctranslate2, "onnxruntime": on_onnxruntime}
    with contextlib.redirect_stdout(sys.stderr):  # the exporter prints its progress
        run = engines[sys.argv[3]](folder, int(sys.argv[4]))
    print("ready", flush=True)
    for _ in sys.stdin:
        begun, used = time.perf_counter(), time.process_time()
        run()
        wall, processor = time.perf_counter() - begun, time.process_time() - used
        print(json.dumps({"wall": wall * 1e3, "processor": processor * 1e3}), flush=True)


main()
