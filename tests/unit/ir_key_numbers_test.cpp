// Numbers of keys: equal keys, and only these, have one number.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "ir/key_numbers.h"

namespace gshard {
namespace {

TEST(KeyNumbers, EqualKeysShareANumberInOrderOfFirstSight) {
  KeyNumbers numbers;
  std::map<std::vector<std::uint64_t>, std::size_t> expected;
  std::uint64_t state = 1;
  for (int i = 0; i < 20000; ++i) {
    Key key;
    state = state * 6364136223846793005u + 1442695040888963407u;
    const std::size_t length = state >> 60 & 3;
    for (std::size_t k = 0; k < length; ++k) key.add(static_cast<std::int64_t>(state >> (8 * k + 20) & 15));
    const std::vector<std::uint64_t> words(key.words().begin(), key.words().end());
    const std::size_t number = numbers.of(key);
    EXPECT_EQ(number, expected.try_emplace(words, expected.size()).first->second);
  }
  EXPECT_EQ(numbers.count(), expected.size());
}

TEST(KeyNumbers, TextsDifferByLengthAndBytes) {
  KeyNumbers numbers;
  std::vector<std::string> texts = {"", std::string(1, '\0'), "a", "aa", "aaa", "aaaa", "aaaaa", "shape", "fn"};
  texts.emplace_back(7, 'x');
  texts.emplace_back(8, 'x');
  texts.emplace_back(9, 'x');
  texts.emplace_back(300, 'x');  // as long as the word of a short text is large
  texts.emplace_back(1, ',');
  for (std::size_t i = 0; i < texts.size(); ++i) {
    for (std::size_t j = 0; j < texts.size(); ++j) {
      Key key;
      key.addText(texts[i]);
      key.addText(texts[j]);
      EXPECT_EQ(numbers.of(key), i * texts.size() + j);
    }
  }
}

TEST(KeyNumbers, TextsDifferByWhatStandsWithThem) {
  KeyNumbers numbers;
  std::size_t count = 0;
  for (const std::string text : {"", "fn", "abcdefg", "abcdefgh"}) {
    for (std::uint8_t with = 0; with < 16; ++with) {
      Key key;
      key.addText(text, with);
      EXPECT_EQ(numbers.of(key), count++);
    }
  }
}

}  // namespace
}  // namespace gshard
