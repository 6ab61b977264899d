// How libFuzzer changes texts: bytes alone rarely leave a program that parses, so two of three changes move whole
// words, and names are replaced by names of the same text.
#include <algorithm>
#include <cctype>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/bytes/finding.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t maxSize);

namespace {

enum class Kind { Name, Number, Space, Sign };

Kind kindOf(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (std::isalpha(byte) != 0 || c == '_' || byte >= 0x80) return Kind::Name;
  if (std::isdigit(byte) != 0) return Kind::Number;
  return std::isspace(byte) != 0 ? Kind::Space : Kind::Sign;
}

// Signs stand alone; digits go on a name.
std::vector<std::string_view> wordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const Kind kind = kindOf(text.front());
    std::size_t end = 1;
    while (kind != Kind::Sign && end < text.size() &&
           (kindOf(text[end]) == kind || (kind == Kind::Name && kindOf(text[end]) == Kind::Number)))
      ++end;
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

constexpr std::string_view kNumbers[] = {"0",
                                         "1",
                                         "-1",
                                         "2",
                                         "3",
                                         "7",
                                         "64",
                                         "65536",
                                         "2147483647",
                                         "4294967296",
                                         "9223372036854775807",
                                         "9223372036854775808",
                                         "0.0",
                                         "1e400",
                                         "1e-400"};

void change(std::vector<std::string_view>& words, std::minstd_rand& random) {
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  const auto at = [&](std::size_t index) { return words.begin() + static_cast<std::ptrdiff_t>(index); };
  const std::size_t first = below(words.size());
  switch (below(5)) {
    case 0: {
      const std::size_t count = std::min(words.size() - first, 1 + below(below(4) == 0 ? 30 : 3));
      words.erase(at(first), at(first + count));
      break;
    }
    case 1: {  // a run of words once more, elsewhere
      const std::size_t count = std::min(words.size() - first, 1 + below(below(2) == 0 ? 40 : 4));
      const std::vector<std::string_view> run(at(first), at(first + count));
      words.insert(at(below(words.size() + 1)), run.begin(), run.end());
      break;
    }
    case 2:
      std::swap(words[first], words[below(words.size())]);
      break;
    case 3:  // another word of its kind
      for (int tries = 0; tries < 20; ++tries) {
        const std::string_view other = words[below(words.size())];
        if (kindOf(other.front()) != kindOf(words[first].front()) || other == words[first]) continue;
        words[first] = other;
        break;
      }
      break;
    case 4:
      for (std::size_t i = first; i < words.size(); ++i) {
        if (kindOf(words[i].front()) != Kind::Number) continue;
        words[i] = kNumbers[below(std::size(kNumbers))];
        break;
      }
      break;
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t maxSize,
                                               unsigned seed) {
  std::minstd_rand random(seed + 1);
  if (size == 0 || random() % 3 == 0) return LLVMFuzzerMutate(data, size, maxSize);
  const std::string text = gshard::fuzz::textOf(data, size);
  std::vector<std::string_view> words = wordsOf(text);
  for (std::size_t changes = 1 + random() % 3; changes > 0 && !words.empty(); --changes) change(words, random);
  std::string result;
  for (const std::string_view word : words) result += word;
  if (result.size() > maxSize) result.resize(maxSize);
  std::copy(result.begin(), result.end(), data);
  return result.size();
}
