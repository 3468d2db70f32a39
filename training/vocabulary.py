"""Choose the pieces of the vocabulary and their scores."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from multiprocessing import Pool

from evercontext.retrieval.static_vectors import Pieces, root_counts, words_of

_JAPANESE = re.compile(r"[\u3005-\u30ff\u3400-\u9fff\uff66-\uff9f]")


def count_words(texts: list[str]) -> Counter[str]:
    """Return in how many texts each word stands."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update({word[:40] for run in root_counts(text) for word in words_of(run)})
    return counts


def count_all(texts: list[str], workers: int = 16) -> Counter[str]:
    """Count in parallel."""
    total: Counter[str] = Counter()
    parts = [texts[i : i + 5000] for i in range(0, len(texts), 5000)]
    with Pool(workers) as pool:
        for counts in pool.imap_unordered(count_words, parts):
            total.update(counts)
    return total


def _unigram(words: Iterable[tuple[str, int]], size: int, longest: int) -> list[tuple[str, float]]:
    from tokenizers import Tokenizer, models, trainers

    tokenizer = Tokenizer(models.Unigram())
    trainer = trainers.UnigramTrainer(
        vocab_size=size, max_piece_length=longest, show_progress=False, shrinking_factor=0.85
    )
    lines = (word for word, count in words for _ in range(min(math.ceil(count**0.75), 2000)))
    tokenizer.train_from_iterator(lines, trainer)
    vocabulary = tokenizer.get_vocab()
    return sorted(((piece, float(i)) for piece, i in vocabulary.items()), key=lambda item: item[1])


def choose(
    counts: Counter[str], japanese_counts: Counter[str], latin: int, pieces: int, japanese: int
) -> list[str]:
    """Return the vocabulary: frequent Latin words, pieces of the rest, Japanese pieces."""
    words = [(w, n) for w, n in counts.most_common() if not _JAPANESE.search(w) and _fit(w)]
    chosen = dict.fromkeys(w for w, _ in words[:latin])
    chosen |= dict.fromkeys("abcdefghijklmnopqrstuvwxyz")
    rest = [(w, n) for w, n in words[latin:] if w.isascii() and w.isalpha() and n > 2]
    chosen |= dict.fromkeys(p for p, _ in _unigram(rest, pieces, 8) if p.isascii() and p.isalnum())
    own = [(w, n) for w, n in japanese_counts.items() if _JAPANESE.search(w)]
    frequent = [w for w, n in sorted(own, key=lambda item: (-item[1], item[0])) if n >= 4]
    chosen |= dict.fromkeys(frequent[: japanese * 2 // 3])
    room = japanese - min(len(frequent), japanese * 2 // 3)
    chosen |= dict.fromkeys(
        p for p, _ in _unigram(own, japanese, 6)[: room + 400] if _JAPANESE.search(p)
    )
    return list(chosen)


def _fit(word: str) -> bool:
    return len(word) >= 2 and not word.isdigit() and (word.isascii() or word.isalpha())


def score(vocabulary: list[str], counts: Counter[str]) -> list[float]:
    """Return log-probabilities of the pieces over how words are cut, refined once."""
    flat = [math.log((counts.get(piece, 0) + 0.5) / 1e7) - 2.0 for piece in vocabulary]
    cutter = Pieces(vocabulary, flat)
    used: Counter[int] = Counter()
    for word, count in counts.items():
        ids = cutter.cut(word)
        for i in ids:
            used[i] += count
    total = sum(used.values())
    return [math.log((used[i] + 0.3) / total) for i in range(len(vocabulary))]
