// The option table as CLI11 has it: what the command line is read with, and what --help and the man pages are made
// from. Private to options.cpp and man_page.cpp, which know CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <string_view>

#include "driver/options.h"

namespace gshard {

struct CommandRow {
  std::string_view word;  // empty: compiling, which needs none
  Command command;
  std::string_view does;
};

std::span<const CommandRow> commandRows();
const CommandRow& commandOf(const std::string& word);

// The options of one command, bound to `options`.
void fillApp(CLI::App& app, const std::string& word, Options& options);

// gshardc(1), or gshardc-WORD(1), in roff.
std::string manPage(const std::string& word);

}  // namespace gshard
