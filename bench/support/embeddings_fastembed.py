"""Computes embeddings with fastembed on onnxruntime.

With `make FOLDER` it exports the BERT in a folder, which embeddings.py wrote, to ONNX, with a tokenizer whose words are
the numbers of tokens. With `run FOLDER` it answers lines as embeddings.py does. fastembed runs texts in their order, so
they are sorted by length here, and run in batches of 32.
"""

import json
import os
import sys
import time
from pathlib import Path

BATCH = 32


def write_model(folder: Path) -> None:
    import torch
    from transformers import BertModel

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = BertModel.from_pretrained(folder).eval()

        def forward(self, input_ids, attention_mask, token_type_ids):
            return self.model(input_ids, attention_mask, token_type_ids).last_hidden_state

    tokens = torch.arange(2 * 17).view(2, 17)
    mask = torch.ones_like(tokens)
    mask[1, 9:] = 0
    names = ["input_ids", "attention_mask", "token_type_ids"]
    axes = {name: {0: "batch", 1: "tokens"} for name in [*names, "last_hidden_state"]}
    torch.onnx.export(
        Encoder(),
        (tokens, mask, torch.zeros_like(tokens)),
        str(folder / "model.onnx"),
        dynamo=False,
        opset_version=17,
        input_names=names,
        output_names=["last_hidden_state"],
        dynamic_axes=axes,
    )


def write_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit

    config = json.loads((folder / "config.json").read_text())
    tokenizer = Tokenizer(WordLevel({str(token): token for token in range(config["vocab_size"])}, unk_token="1"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"model_max_length": config["max_position_embeddings"], "pad_token": "0"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def load(folder: str):
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    TextEmbedding.add_custom_model(
        model="local/bert",
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf="local/bert"),
        dim=json.loads((Path(folder) / "config.json").read_text())["hidden_size"],
        model_file="model.onnx",
    )
    threads = int(os.environ["OMP_NUM_THREADS"])
    return TextEmbedding("local/bert", threads=threads, specific_model_path=folder)


def answer(model, texts: list[list[int]]) -> dict[str, object]:
    order = sorted(range(len(texts)), key=lambda at: -len(texts[at]))
    words = [" ".join(map(str, texts[at])) for at in order]
    begun, used = time.perf_counter(), time.process_time()
    vectors = list(model.embed(words, batch_size=BATCH))
    wall, processor = time.perf_counter() - begun, time.process_time() - used
    first = [0.0] * len(texts)
    for at, vector in zip(order, vectors):
        first[at] = float(vector[0])
    return {"wall": wall * 1e3, "processor": processor * 1e3, "first": first}


def main() -> None:
    sys.path.pop(0)  # this folder has another onnx.py
    if sys.argv[1] == "make":
        write_model(Path(sys.argv[2]))
        write_tokenizer(Path(sys.argv[2]))
        return
    model = load(sys.argv[2])
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(model, json.loads(line))), flush=True)


main()
