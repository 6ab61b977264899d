// A hash table of word lists; see key_numbers.h.
#include "ir/key_numbers.h"

#include <algorithm>
#include <cstring>

#include "support/check.h"

namespace gshard {

namespace {
// The bytes of a text shorter than a word, the first lowest. By two loads that may overlap, since a loop over bytes is
// most of the work of a key.
std::uint64_t shortWord(std::string_view text) {
  const std::size_t size = text.size();
  if (size >= 4) {
    std::uint32_t first = 0, last = 0;
    std::memcpy(&first, text.data(), sizeof first);
    std::memcpy(&last, text.data() + size - sizeof last, sizeof last);
    return first | std::uint64_t{last} >> 8 * (8 - size) << 32;
  }
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < size; ++i) word |= std::uint64_t{static_cast<unsigned char>(text[i])} << 8 * i;
  return word;
}
}  // namespace

void Key::addText(std::string_view text, std::uint8_t with) {
  // One word for a short text: its length and what is with it lie in the byte that is left.
  GSHARD_CHECK(with < 16, "what stands with a text takes four bits");
  const std::uint64_t top = std::uint64_t{with} << 60;
  if (text.size() < sizeof(std::uint64_t)) {
    words_.push_back(shortWord(text) | std::uint64_t{text.size()} << 56 | top);
    return;
  }
  constexpr std::uint64_t kLong = std::uint64_t{8} << 56;
  words_.push_back(text.size() | kLong | top);
  for (std::size_t i = 0; i < text.size(); i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, std::min(sizeof word, text.size() - i));
    words_.push_back(word);
  }
}

static std::uint64_t hashOf(std::span<const std::uint64_t> words) {
  std::uint64_t hash = words.size();
  for (const std::uint64_t word : words) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return hash;
}

std::size_t KeyNumbers::of(const Key& key) {
  if (2 * keys_.size() >= slots_.size()) grow();
  const std::span<const std::uint64_t> words = key.words();
  const std::uint64_t hash = hashOf(words);
  std::size_t slot = hash & (slots_.size() - 1);
  for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
    const Known& known = keys_[slots_[slot] - 1];
    if (known.hash == hash && std::ranges::equal(words, std::span(words_).subspan(known.begin, known.size)))
      return slots_[slot] - 1;
  }
  keys_.push_back({hash, words_.size(), words.size()});
  words_.insert(words_.end(), words.begin(), words.end());
  GSHARD_CHECK(keys_.size() < UINT32_MAX, "too many keys");
  slots_[slot] = static_cast<std::uint32_t>(keys_.size());
  return keys_.size() - 1;
}

void KeyNumbers::grow() {
  slots_.assign(std::max<std::size_t>(2 * slots_.size(), 256), 0);
  for (std::size_t number = 0; number < keys_.size(); ++number) {
    std::size_t slot = keys_[number].hash & (slots_.size() - 1);
    while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = static_cast<std::uint32_t>(number + 1);
  }
}

}  // namespace gshard
