// Random values as pure functions of (seed, site, step, global element index): design.md section 7. Free of includes
// and of state, so that any tile of any layout yields the same bits. The evaluator of ir/ re-implements exactly what
// the comments here state; a test compares both with Random123's published answers.
#pragma once

namespace gshard::runtime::random_values {

using Word = unsigned int;        // 32 bits
using Wide = unsigned long long;  // 64 bits

struct Block {
  Word word[4];
};

// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
constexpr Block philox(Block counter, Word key0, Word key1) {
  for (int round = 0; round < 10; ++round) {
    const Wide product0 = Wide{0xD2511F53u} * counter.word[0];
    const Wide product1 = Wide{0xCD9E8D57u} * counter.word[2];
    counter = Block{{static_cast<Word>(product1 >> 32) ^ counter.word[1] ^ key0, static_cast<Word>(product1),
                     static_cast<Word>(product0 >> 32) ^ counter.word[3] ^ key1, static_cast<Word>(product0)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// A stream is one random op (site) in one step of a run with one seed.
struct Stream {
  Wide seed;
  Word site;
  Word step;
};

// key = (seed low, seed high); counter = (block low, block high, step, site).
constexpr Block blockOf(const Stream& stream, Wide block) {
  return philox(Block{{static_cast<Word>(block), static_cast<Word>(block >> 32), stream.step, stream.site}},
                static_cast<Word>(stream.seed), static_cast<Word>(stream.seed >> 32));
}

// 32 bits of element i: word i & 3 of block i >> 2.
constexpr Word bits32(const Stream& stream, Wide index) {
  return blockOf(stream, index >> 2).word[index & 3];
}

// 64 bits of element i: words 2*(i & 1) (first) and 2*(i & 1) + 1 (second) of block i >> 1.
struct Pair {
  Word first;
  Word second;
};
constexpr Pair bits64(const Stream& stream, Wide index) {
  const Block block = blockOf(stream, index >> 1);
  return (index & 1) != 0 ? Pair{block.word[2], block.word[3]} : Pair{block.word[0], block.word[1]};
}

// f32 in [0, 1): the top 24 of 32 bits, times 2^-24; exact. Also used for f16 and bf16, then rounded; there, too, what
// rounds up to `high` is replaced by `low`.
constexpr float uniformF32(const Stream& stream, Wide index) {
  return static_cast<float>(bits32(stream, index) >> 8) * 0x1p-24f;
}

// f64 in [0, 1): the top 53 of the 64 bits (second word is the high half), times 2^-53; exact.
constexpr double uniformF64(const Stream& stream, Wide index) {
  const Pair pair = bits64(stream, index);
  return static_cast<double>(((Wide{pair.second} << 32) | pair.first) >> 11) * 0x1p-53;
}

// Uniform in [low, high): low + (high - low) * u, each operation rounded once in the value's own type (no fused
// multiply-add); a result that rounds up to `high` is replaced by `low`, so that the interval stays half open.
constexpr float uniformF32(const Stream& stream, Wide index, float low, float high) {
  const float span = high - low;
  const float scaled = span * uniformF32(stream, index);
  const float value = low + scaled;
  return value < high ? value : low;
}
constexpr double uniformF64(const Stream& stream, Wide index, double low, double high) {
  const double span = high - low;
  const double scaled = span * uniformF64(stream, index);
  const double value = low + scaled;
  return value < high ? value : low;
}

// The two uniforms behind a normal value, from the element's own 64 bits, so that a tile never needs its neighbours:
// radius in (0, 1] = (first + 1) * 2^-32, angle in [0, 1) = second * 2^-32, both exact in f64. The normal value is
// sqrt(-2 log(radius)) * cos(2 pi angle) in f64 (Box and Muller 1958), rounded once to the value's type.
struct NormalInputs {
  double radius;
  double angle;
};
constexpr NormalInputs normalInputs(const Stream& stream, Wide index) {
  const Pair pair = bits64(stream, index);
  return {(static_cast<double>(pair.first) + 1.0) * 0x1p-32, static_cast<double>(pair.second) * 0x1p-32};
}

// Integers 0 or 1: the lowest bit of the 32 bits.
constexpr int coin(const Stream& stream, Wide index) {
  return static_cast<int>(bits32(stream, index) & 1u);
}

}  // namespace gshard::runtime::random_values
