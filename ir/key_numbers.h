// Numbers of keys: equal keys have equal numbers, counted from 0 in order of first sight. What is asked once per key
// keeps its answers in a vector by number. A key is a list of words; who writes one puts lengths before lists, so that
// no two differing things have one key. Apart from what keys are made of: passes ask this many thousand times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gshard {

class Key {
 public:
  void clear() { words_.clear(); }
  void add(std::int64_t number) { words_.push_back(static_cast<std::uint64_t>(number)); }
  void addSize(std::size_t size) { words_.push_back(size); }
  // `with`: a number below 16 that needs no word of its own.
  void addText(std::string_view text, std::uint8_t with = 0);
  std::span<const std::uint64_t> words() const { return words_; }

 private:
  std::vector<std::uint64_t> words_;
};

class KeyNumbers {
 public:
  std::size_t of(const Key& key);
  std::size_t count() const { return keys_.size(); }

 private:
  struct Known {
    std::uint64_t hash = 0;
    std::size_t begin = 0, size = 0;  // in words_
  };
  void grow();

  std::vector<std::uint64_t> words_;  // of all keys, one after another
  std::vector<Known> keys_;           // by number
  std::vector<std::uint32_t> slots_;  // number + 1 by hash, linear probing; 0: free. A power of two
};

}  // namespace gshard
