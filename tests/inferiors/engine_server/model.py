"""Writes a tiny Llama, without weights, and a tokenizer of bytes: `model.py FOLDER`, with the Python of the engine."""

import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, PreTrainedTokenizerFast


def write(folder: str) -> None:
    words = ["<s>", "</s>", "<unk>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({word: at for at, word in enumerate(words)}, [], unk_token="<unk>"))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(), decoders.ByteLevel()
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    config = LlamaConfig(vocab_size=len(words), hidden_size=256, intermediate_size=512, num_hidden_layers=2,
                         num_attention_heads=8, num_key_value_heads=4, head_dim=32,
                         max_position_embeddings=4096, dtype="bfloat16")  # fmt: skip
    config.architectures = ["LlamaForCausalLM"]
    config.save_pretrained(folder)


if __name__ == "__main__":
    write(sys.argv[1])
