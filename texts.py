"""Which of many texts hold a needle: exactly the texts of a plain scan, found with few looks at texts.

The texts are folded already and have positions from 0. This module knows nothing of reviews; it reads no
clock and no file, and what it builds does not change.

A set of texts is a Python integer whose bit number `position` is 1 for a member, so joining filters is `&`
and counting is `bit_count`.

A needle without white space inside it is looked for in the words of all texts, which are few, and no text
needs a look. Of a longer needle all words must be there, and the seams between them, too, whose pieces have
sets. Only the texts that are left after that are looked at: of 100,000 some thousands.

Sections: Sets of positions - Block - Vocabulary - Seams - Texts
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from heapq import nlargest
from itertools import chain, pairwise
from zlib import crc32

# ---- Sets of positions ----

ONE = re.compile("1")
DIGIT_OF_BIT = [bytes(b"01"[octet >> bit & 1] for octet in range(256)) for bit in range(8)]


def members(positions: Iterable[int], count: int) -> int:
    """The set of `positions`, each below `count`."""
    octets = bytearray(count // 8 + 1)
    for position in positions:
        octets[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(octets, "little")


def first(count: int) -> int:
    """The set of the first `count` positions."""
    return (1 << count) - 1


def union(sets: Iterable[int]) -> int:
    """What any of `sets` holds."""
    found = 0
    for one in sets:
        found |= one
    return found


def positions(members: int, offset: int = 0) -> Iterator[int]:
    """The members of a set, ascending, without the first `offset`."""
    digits = bin(members)[:1:-1]  # "0b1101" to "1011": one digit a position
    return (one.start() for one in ONE.finditer(digits, _skip(digits, offset)))


def transposed(rows: Iterable[int], columns: int) -> list[int]:
    """For each of so many columns, which are the bits of a row, the set of the rows that have it."""
    width = columns // 8 + 1
    octets = b"".join(row.to_bytes(width, "little") for row in rows)
    every_digit = (octets[at >> 3 :: width].translate(DIGIT_OF_BIT[at & 7]) for at in range(columns))
    return [int(digits[::-1] or b"0", 2) for digits in every_digit]


def _skip(digits: str, ones: int) -> int:
    """The position behind the first `ones` ones, found by halving: a deep offset costs no more."""
    low, high = 0, len(digits)
    while ones and low < high:
        middle = (low + high + 1) // 2
        passed = digits.count("1", low, middle)
        if passed <= ones:
            low, ones = middle, ones - passed
        else:
            high = middle - 1
    return low


# ---- Block: the texts themselves ----


@dataclass(slots=True)
class Block:
    """All texts, one after the other, as UTF-8: a string with an emoji would take four times the room.

    It grows by `append` and stays as it is when `build_texts` has it.
    """

    octets: bytearray = field(default_factory=bytearray)
    starts: array[int] = field(default_factory=lambda: array("Q", [0]))  # by position; one more at the end

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, position: int) -> str:
        return self.octets[self.starts[position] : self.starts[position + 1]].decode()

    def append(self, text: str) -> None:
        self.octets += text.encode()
        self.starts.append(len(self.octets))

    def __iter__(self) -> Iterator[str]:
        return map(self.__getitem__, range(len(self)))

    def holding(self, needle: str, among: int) -> int:
        """Those of `among` that hold `needle`, by a look at each."""
        find, sought, starts = self.octets.find, needle.encode(), self.starts
        hits = [at for at in positions(among) if find(sought, starts[at], starts[at + 1]) >= 0]
        return members(hits, len(self))


# ---- Vocabulary: the words of all texts, which are few, stand for the texts, which are many ----

WHITE = re.compile(r"(\s)")  # one character of white space, as `str.isspace` knows it
GRAM = 3  # characters that lead to the words that hold them
FREQUENT_SHARE = 1 / 64  # of all texts: a word that more of them hold has a ready set
# A gram has a ready set when making it costs more than adding so many texts: a share of all, or what takes
# less than a millisecond anyhow.
COSTLY_SHARE, LEAST_COSTLY = 1 / 4, 5000
# Long words alone, as addresses of pages are, must not fill the memory.
LONGEST_COSTLY, MOST_COSTLY = 5, 1000
WORD_COST = 10  # to turn to one more word costs as much as adding so many of its texts
LOOKS_PER_WORD = 2  # looks at a text that take as long as adding the texts of one word without a set


def words_in(text: str) -> Iterator[str]:
    """The words of `text`, each with the one character of white space before it and the one behind it.

    Neighbours share that character, and a word between two of them may be empty: "a  b" gives "a ", "  "
    and " b".
    """
    parts = ["", *WHITE.split(text), ""]
    return map("".join, zip(parts[0:-2:2], parts[1::2], parts[2::2], strict=True))


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The distinct words of all texts, as `words_in` makes them, the frequent ones first.

    A text holds a needle without white space inside it exactly when one of these words does, since white
    space at an end of the needle is in the word. Such a needle is looked for in those words alone that share
    its rarest gram of three characters. A few frequent words cover most texts and have sets; the positions
    of the many others need a fraction of the room as lists.
    """

    block: Block
    words: Sequence[str]
    by_gram: Mapping[str, Sequence[int]]  # numbers of the words, ascending, by the 1 to 3 characters in them
    by_costly_gram: Mapping[str, int]  # sets; those of 1 and 2 characters are not in `by_gram`
    frequent: Sequence[int]  # the sets of the first words
    rare: Sequence[int]  # the positions of all other words, one word after the other
    rare_starts: Sequence[int]  # by number of the word less len(frequent); one more at the end

    def holding(self, needle: str) -> int:
        """The texts that hold `needle`, which has no white space inside it."""
        if (ready := self.by_costly_gram.get(needle)) is not None:
            return ready
        numbers, count = self._numbers(needle), len(self.block)
        first_rare = bisect_left(numbers, len(self.frequent))
        found = union(self.frequent[number] for number in numbers[:first_rare])
        rest = first(count) ^ found
        if rest.bit_count() < LOOKS_PER_WORD * (len(numbers) - first_rare):
            return found | self.block.holding(needle, rest)
        return found | members(chain.from_iterable(map(self.rare_positions, numbers[first_rare:])), count)

    def cost_in_looks(self, needle: str) -> int:
        """What `holding` costs at most, in looks at texts."""
        return 0 if needle in self.by_costly_gram else LOOKS_PER_WORD * len(self._candidates(needle))

    def _numbers(self, needle: str) -> Sequence[int]:
        """The words that hold `needle`, ascending."""
        candidates = self._candidates(needle)
        if len(needle) <= GRAM:
            return candidates
        words = self.words
        return [number for number in candidates if needle in words[number]]

    def _candidates(self, needle: str) -> Sequence[int]:
        """The words that hold the rarest gram of `needle`, ascending."""
        grams = [needle[start : start + GRAM] for start in range(max(1, len(needle) - GRAM + 1))]
        return min([self.by_gram.get(gram, ()) for gram in grams], key=len)

    def rare_positions(self, number: int) -> Sequence[int]:
        """The texts that hold a word without a set."""
        place = number - len(self.frequent)
        return self.rare[self.rare_starts[place] : self.rare_starts[place + 1]]


def build_vocabulary(block: Block) -> Vocabulary:
    """The vocabulary of all texts."""
    count = len(block)
    postings: defaultdict[str, array[int]] = defaultdict(partial(array, "I"))
    for position, text in enumerate(block):
        for word in set(words_in(text)):
            postings[word].append(position)
    frequent_words = [word for word, positions in postings.items() if len(positions) > count * FREQUENT_SHARE]
    frequent = [members(postings.pop(word), count) for word in frequent_words]
    words = [*frequent_words, *postings]
    rare, rare_starts = array("I"), array("I", [0])
    by_gram: defaultdict[str, array[int]] = defaultdict(partial(array, "I"))
    for number, word in enumerate(words):
        for gram in {word[start : start + size] for size in range(1, GRAM + 1) for start in range(len(word))}:
            by_gram[gram].append(number)
        if number >= len(frequent):
            rare += postings.pop(word)
            rare_starts.append(len(rare))
    return _with_costly_grams(Vocabulary(block, words, dict(by_gram), {}, frequent, rare, rare_starts))


def _with_costly_grams(vocabulary: Vocabulary) -> Vocabulary:
    costly = _costly_grams(vocabulary)
    by_gram = vocabulary.by_gram.items()
    return replace(
        vocabulary,
        by_gram={gram: numbers for gram, numbers in by_gram if len(gram) == GRAM or gram not in costly},
        by_costly_gram=dict(zip(costly, _united(vocabulary, list(costly.values())), strict=True)),
    )


def _costly_grams(vocabulary: Vocabulary) -> dict[str, Sequence[int]]:
    """The grams whose texts take long to unite, with their words."""
    least = max(len(vocabulary.block) * COSTLY_SHARE, LEAST_COSTLY)
    costs = [0] * len(vocabulary.frequent)
    costs += [behind - start + WORD_COST for start, behind in pairwise(vocabulary.rare_starts)]
    found: dict[str, Sequence[int]] = {}
    by_gram, length = vocabulary.by_gram, GRAM
    while by_gram:
        priced = ((sum(map(costs.__getitem__, numbers)), gram) for gram, numbers in by_gram.items())
        costly = nlargest(MOST_COSTLY - len(found), (one for one in priced if one[0] > least))
        found |= {gram: by_gram[gram] for _, gram in costly}
        by_gram = _longer(vocabulary.words, length, found) if costly and length < LONGEST_COSTLY else {}
        length += 1
    return found


def _longer(words: Sequence[str], length: int, costly: Container[str]) -> Mapping[str, Sequence[int]]:
    """The grams that are a character longer than `length` and begin with a costly one, with their words."""
    longer: defaultdict[str, array[int]] = defaultdict(partial(array, "I"))
    for number, word in enumerate(words):
        starts = (start for start in range(len(word) - length) if word[start : start + length] in costly)
        for gram in {word[start : start + length + 1] for start in starts}:
            longer[gram].append(number)
    return longer


def _united(vocabulary: Vocabulary, groups: Sequence[Sequence[int]]) -> Iterator[int]:
    """For each group of words, by ascending number, the texts that hold one of them."""
    first_rare = len(vocabulary.frequent)
    bits = [0] * len(vocabulary.words)
    for column, numbers in enumerate(groups):
        for number in numbers:
            bits[number] |= 1 << column
    rows = [0] * len(vocabulary.block)
    for number in range(first_rare, len(bits)):
        for position in vocabulary.rare_positions(number):
            rows[position] |= bits[number]
    for numbers, rare in zip(groups, transposed(rows, len(groups)), strict=True):
        frequent = numbers[: bisect_left(numbers, first_rare)]
        yield rare | union(vocabulary.frequent[number] for number in frequent)


# ---- Seams: where two words meet ----

MANY_TEXTS = 2000  # fewer are looked at within a millisecond: seams would only make the start later
CHARACTERS = 4  # of a piece beside its white space, at most
NOTHING = "\0"  # stands before the first character; in a text that holds it, pieces begin behind it
SAMPLE = 2000  # texts that tell which pieces are frequent
FREQUENT_PIECE_SHARE = 1 / 32  # of all texts: a piece that more of them hold has a set of its own
SHORTEST_PIECE_SHARE = 1 / 256  # the same for a character on each side: such a piece has no smaller ones
# Pieces of so many characters have a set if they are frequent, but are no part of the others' search.
LONGER_CHARACTERS, MOST_LONGER = 6, 200
# For each white space in an average text, so that the room for sets follows the room for texts: sets of one
# piece, at most, and sets of many pieces, each of which then holds one in six texts or so.
OWN_SETS, SHARED_SETS = 40, 20
REMEMBERED_PARTS = 1 << 17  # of seams, while building, so that hostile texts do not fill the memory


@dataclass(frozen=True, slots=True)
class Seams:
    """Which texts hold a piece of a seam; see `pieces`. Most hold two frequent words, few their seam."""

    frequent: Mapping[str, int]  # exactly the texts that hold the piece
    shared: Sequence[int]  # those that hold one of many pieces, by `_share`

    def holding(self, phrase: str, among: int) -> int:
        """Those of `among` that hold all pieces of `phrase`, and some with others in the same shared sets."""
        for piece in pieces_in(phrase):
            among &= self.frequent.get(piece) or self.shared[_share(piece, len(self.shared))]
        return among


def seams_in(text: str, characters: int = CHARACTERS) -> Iterator[str]:
    """Each white space of `text` with all that can be in a piece of so many characters beside it.

    That is one character less before it, where need be NOTHING, and at most as many behind it.
    """
    before = characters - 1
    padded = NOTHING * before + text
    return (padded[white.start() : white.start() + 2 * before + 1] for white in WHITE.finditer(text))


def pieces(seam: str, before: int, characters: int = CHARACTERS) -> set[str]:
    """The parts of `seam` that keep its white space, which has so many characters before it.

    At least one character stands on each side, and at most so many `characters` stand on both.
    """
    begin = seam.rfind(NOTHING, 0, before) + 1
    return {
        seam[start:stop]
        for start in range(begin, before)
        for stop in range(before + 2, min(len(seam), start + characters + 1) + 1)
    }


def pieces_in(text: str, characters: int = CHARACTERS) -> set[str]:
    """The pieces of all seams in `text`."""
    seams = seams_in(text, characters)
    return {piece for seam in seams for piece in pieces(seam, characters - 1, characters)}


def build_seams(block: Block) -> Seams:
    """The sets of all pieces of all seams in the texts."""
    if len(block) < MANY_TEXTS:
        return Seams({}, [first(len(block))])
    sample = [block[position] for position in range(0, len(block), len(block) // SAMPLE + 1)]
    seams_per_text = sum(len(WHITE.findall(text)) for text in sample) / len(sample)
    frequent = _frequent_pieces(sample)[: int(seams_per_text * OWN_SETS)]
    seams = _seams(block, frequent, int(seams_per_text * SHARED_SETS) + 1)
    longer = _longer_pieces(sample[::4])  # of a whole sample they would take a second
    everything = first(len(block))
    own = {piece: block.holding(piece, seams.holding(piece, everything)) for piece in longer}
    return replace(seams, frequent={**seams.frequent, **own})


def _seams(block: Block, frequent: Sequence[str], shared: int) -> Seams:
    """The sets of all pieces: for the frequent ones their own, for all others so many shared ones."""
    column = {piece: number for number, piece in enumerate(frequent)}

    def bits(before: int, part: str) -> int:
        return union(
            1 << column.get(piece, len(frequent) + _share(piece, shared)) for piece in pieces(part, before)
        )

    # Of each part of a seam that is as long as a piece: there are fewer of them than of seams.
    remember = lru_cache(REMEMBERED_PARTS)
    bits_by_start = [remember(partial(bits, before)) for before in range(CHARACTERS - 1, 0, -1)]
    sets = transposed((_row(text, bits_by_start) for text in block), len(frequent) + shared)
    return Seams(dict(zip(frequent, sets, strict=False)), sets[len(frequent) :])


def _row(text: str, bits_by_start: Sequence[Callable[[str], int]]) -> int:
    row = 0
    for seam in seams_in(text):
        for start, bits in enumerate(bits_by_start):
            row |= bits(seam[start : start + CHARACTERS + 1])
    return row


def _share(piece: str, shared: int) -> int:
    return crc32(piece.encode()) % shared


def _frequent_pieces(sample: Sequence[str]) -> list[str]:
    """The pieces that many of the texts hold, the most frequent first."""
    counts = Counter(chain.from_iterable(map(pieces_in, sample)))
    shortest, others = (len(sample) * share for share in (SHORTEST_PIECE_SHARE, FREQUENT_PIECE_SHARE))
    frequent = [
        piece for piece, texts in counts.items() if texts > (others if len(piece) > len("a b") else shortest)
    ]
    return sorted(frequent, key=counts.__getitem__, reverse=True)


def _longer_pieces(sample: Sequence[str]) -> list[str]:
    """The pieces of more characters that many of the texts hold, the most frequent first."""
    found = chain.from_iterable(pieces_in(text, LONGER_CHARACTERS) for text in sample)
    counts = Counter(piece for piece in found if len(piece) > CHARACTERS + 1).most_common(MOST_LONGER)
    return [piece for piece, texts in counts if texts > len(sample) * FREQUENT_PIECE_SHARE]


# ---- Texts: which of them hold a needle ----

# Who turns pages or adds a filter asks for the same word again.
REMEMBERED_SETS_BYTES = 2 * 1024 * 1024
MOST_REMEMBERED_SETS = 4096


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts by position, and what tells quickly which of them hold a needle."""

    vocabulary: Vocabulary
    seams: Seams
    in_a_word: Callable[[str], int] = field(compare=False)  # `vocabulary.holding`, the latest remembered


def build_texts(block: Block) -> Texts:
    """What is looked up to find a needle in folded texts."""
    seams = build_seams(block)  # first: what it takes meanwhile is room for the vocabulary
    vocabulary = build_vocabulary(block)
    most_sets = REMEMBERED_SETS_BYTES // (len(block) // 8 + 256)  # with the needle and the room around both
    remember = lru_cache(maxsize=min(most_sets, MOST_REMEMBERED_SETS))
    return Texts(vocabulary, seams, in_a_word=remember(vocabulary.holding))


def holding(texts: Texts, needle: str, among: int) -> int:
    """Those of `among` that hold `needle`, which is folded and not empty."""
    if not WHITE.search(needle, 1, len(needle) - 1):
        return among & texts.in_a_word(needle)
    if needle in texts.seams.frequent:
        return among & texts.seams.frequent[needle]
    # All its seams and words must be there. Then only a look can tell more.
    among = texts.seams.holding(needle, among)
    for cost, word in sorted((texts.vocabulary.cost_in_looks(word), word) for word in set(words_in(needle))):
        if cost < among.bit_count():
            among &= texts.in_a_word(word)
    return texts.vocabulary.block.holding(needle, among)
