// Reading the `//!` lines of a case.
#include "tests/run/run_case.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "support/text.h"

namespace gshard::testing {

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what);
}

double parseNumber(const std::string& text) {
  if (text == "true") return 1;
  if (text == "false") return 0;
  if (text == "nan") return std::nan("");
  std::size_t used = 0;
  const double value = std::stod(text, &used);
  if (used != text.size()) fail("`" + text + "` is no number");
  return value;
}

std::vector<std::int64_t> parseInts(const std::string& list) {
  std::vector<std::int64_t> result;
  for (const std::string& item : splitText(list, ',')) result.push_back(std::stoll(item));
  return result;
}

// A nested list; every level must have one length.
void parseList(const std::string& text, std::size_t& at, std::size_t depth, Numbers& numbers) {
  const auto skip = [&] {
    while (at < text.size() && (text[at] == ' ' || text[at] == ',')) ++at;
  };
  skip();
  if (at >= text.size()) fail("the list ends early: " + text);
  if (text[at] != '[') {
    const std::size_t start = at;
    while (at < text.size() && text[at] != ',' && text[at] != ']' && text[at] != ' ') ++at;
    numbers.values.push_back(parseNumber(text.substr(start, at - start)));
    return;
  }
  ++at;
  std::int64_t count = 0;
  for (skip(); at < text.size() && text[at] != ']'; skip(), ++count) parseList(text, at, depth + 1, numbers);
  if (at >= text.size()) fail("a list is not closed: " + text);
  ++at;
  if (numbers.shape.size() <= depth) numbers.shape.resize(depth + 1, -1);
  if (numbers.shape[depth] != -1 && numbers.shape[depth] != count) fail("rows of different length: " + text);
  numbers.shape[depth] = count;
}

ExpectedPlan parsePlan(const std::string& text) {
  ExpectedPlan plan;
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) fail("`plan MESH: …`: no colon");
  plan.mesh = std::string(trim(text.substr(0, colon)));
  const std::string rest(trim(text.substr(colon + 1)));
  if (rest == "none") return plan;
  if (rest.starts_with("at most ")) {
    plan.atMost = std::stoll(rest.substr(8));
    return plan;
  }
  for (const std::string& item : splitText(rest, ',')) {
    const std::vector<std::string> words = splitText(trim(item), ' ');
    if (words.size() != 2) fail("`" + item + "` is not KIND BYTES");
    plan.collectives.emplace_back(words[0], std::stoll(words[1]));
  }
  return plan;
}

ExpectedOutput parseOutput(const std::string& left, const std::string& right) {
  ExpectedOutput output;
  const std::size_t bracket = left.find('[');
  output.name = left.substr(0, bracket);
  if (bracket != std::string::npos) output.at = parseInts(left.substr(bracket + 1, left.find(']') - bracket - 1));
  output.numbers = parseNumbers(right);
  return output;
}

void parseLine(const std::string& line, RunCase& result) {
  const std::size_t space = line.find(' ');
  const std::string word = line.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : std::string(trim(line.substr(space)));
  const std::size_t equals = rest.find(" = ");
  if (word == "mesh:")
    result.meshes.push_back(rest);
  else if (word == "exact")
    result.exact = true;
  else if (word == "tolerance")
    result.tolerance = std::stod(rest);
  else if (word == "fault")
    result.fault = rest;
  else if (word == "like" && rest == "one device")
    result.likeOneDevice = true;
  else if (word == "train")
    result.trainSteps = std::stoll(rest);
  else if (word == "define:")
    result.defines.push_back(rest);
  else if (word == "plan")
    result.plans.push_back(parsePlan(rest));
  else if (word == "in" && equals != std::string::npos)
    result.inputs.emplace_back(rest.substr(0, equals), parseNumbers(rest.substr(equals + 3)));
  else if (word == "out" && equals != std::string::npos)
    result.outputs.push_back(parseOutput(rest.substr(0, equals), rest.substr(equals + 3)));
  else
    fail("what is `//! " + line + "`?");
}

}  // namespace

Numbers parseNumbers(const std::string& given) {
  const std::string text(trim(given));
  Numbers numbers;
  const std::size_t bracket = text.find('[');
  const std::string kind = bracket == std::string::npos ? "" : text.substr(0, bracket);
  if (kind.empty()) {
    std::size_t at = 0;
    parseList(text, at, 0, numbers);
    if (at != text.size()) fail("text after the list: " + text);
    return numbers;
  }
  const std::size_t close = text.find(']');
  numbers.shape = parseInts(text.substr(bracket + 1, close - bracket - 1));
  std::int64_t count = 1;
  for (const std::int64_t size : numbers.shape) count *= size;
  const double fill = kind == "full" ? parseNumber(std::string(trim(text.substr(close + 1)))) : 1;
  for (std::int64_t i = 0; i < count; ++i) {
    if (kind == "iota")
      numbers.values.push_back(static_cast<double>(i));
    else if (kind == "ones" || kind == "full")
      numbers.values.push_back(fill);
    else if (kind == "mod5")
      numbers.values.push_back(static_cast<double>(i % 5));
    else if (kind == "mod7")
      numbers.values.push_back(static_cast<double>(i % 7));
    else
      fail("no generator `" + kind + "`");
  }
  return numbers;
}

RunCase parseRunCase(const std::string& path) {
  RunCase result;
  result.path = path;
  result.name = std::filesystem::path(path).stem().string();
  std::ifstream file(path);
  std::int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!line.starts_with("//!")) continue;
    try {
      parseLine(std::string(trim(line.substr(3))), result);
    } catch (const std::exception& error) {
      fail(path + ":" + std::to_string(number) + ": " + error.what());
    }
  }
  const bool saysWhat = !result.outputs.empty() || !result.fault.empty() || result.likeOneDevice;
  if (result.meshes.empty() || !saysWhat) fail(path + ": a case needs meshes and outputs");
  return result;
}

}  // namespace gshard::testing
