// Starting programs, reading what they wrote; see program.h.
#include "tests/program/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/array.h"
#include "runtime/failure.h"

extern char** environ;

namespace gshard::testing {

namespace fs = std::filesystem;

namespace {

std::atomic<int> scratchCount{0};

std::string uniqueName() {
  return std::to_string(getpid()) + "-" + std::to_string(scratchCount.fetch_add(1));
}

}  // namespace

Scratch::Scratch() : path_(fs::temp_directory_path() / ("gshard-test-" + uniqueName())) {
  fs::create_directories(path_);
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string Scratch::write(const std::string& name, const std::string& text) const {
  fs::create_directories((path_ / name).parent_path());
  std::ofstream(path_ / name, std::ios::binary) << text;
  return file(name);
}

std::string readFile(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

bool isSanitized() {
  return std::getenv("GSHARD_SANITIZER") != nullptr;
}

Outcome runCommand(const Words& words, const std::string& folder) {
  const fs::path base = fs::temp_directory_path() / ("gshard-output-" + uniqueName());
  const std::string out = base.string() + ".out", err = base.string() + ".err";
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    const auto redirect = [](const std::string& path, int to) {
      dup2(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), to);
    };
    redirect(out, STDOUT_FILENO);
    redirect(err, STDERR_FILENO);
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    if (!folder.empty() && chdir(folder.c_str()) != 0) _exit(126);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = readFile(out);
  outcome.err = readFile(err);
  fs::remove(out);
  fs::remove(err);
  return outcome;
}

void setMpiEnvironment() {
  std::istringstream words(GSHARD_MPI_ENV);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    setenv(word.substr(0, equals).c_str(), word.substr(equals + 1).c_str(), 0);
  }
}

Outcome gshardc(const Words& words, const std::string& folder) {
  Words all = {GSHARD_COMPILER};
  all.insert(all.end(), words.begin(), words.end());
  return runCommand(all, folder);
}

Outcome Binary::operator()(const Words& words) const {
  Words all;
  if (transport == Transport::Mpi) {
    setMpiEnvironment();
    all = {GSHARD_MPIRUN, "-n", std::to_string(devices)};
  }
  all.push_back(path);
  all.insert(all.end(), words.begin(), words.end());
  return runCommand(all);
}

Binary compile(const Scratch& scratch, const std::string& source, const std::string& name, std::int64_t devices,
               const Words& options, Transport transport) {
  Binary binary{scratch.file(name), devices, transport};
  Words words = {source, "-o", binary.path};
  words.insert(words.end(), options.begin(), options.end());
  const Outcome outcome = gshardc(words);
  EXPECT_EQ(outcome.code, 0) << outcome.all();
  return binary;
}

std::vector<double> lossesOf(const std::string& metrics) {
  std::vector<double> losses;
  std::ifstream file(metrics);
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("step") && json.contains("loss"))
      losses.push_back(json["loss"].get<double>());
  }
  return losses;
}

Peak peakOf(const std::string& metrics) {
  Peak peak;
  std::ifstream file(metrics);
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("peak")) continue;
    peak.planned = json["peak"]["planned_peak_bytes"].get<std::int64_t>();
    peak.measured = json["peak"]["measured_peak_bytes"].get<std::int64_t>();
  }
  return peak;
}

std::map<std::string, Numbers> numbersOf(const std::string& path) {
  std::map<std::string, Numbers> result;
  try {
    for (const auto& [name, array] : runtime::readArrays(path)) {
      Numbers numbers{array.shape, {}};
      for (std::int64_t i = 0; i < array.count(); ++i) numbers.values.push_back(runtime::asDouble(array, i));
      result.emplace(name, std::move(numbers));
    }
  } catch (const runtime::Failure& failed) {
    ADD_FAILURE() << failed.message;
  }
  return result;
}

std::string copyRenamed(const std::string& from, const std::string& to,
                        const std::map<std::string, std::string>& names) {
  try {
    runtime::NamedArrays renamed;
    for (auto& [name, array] : runtime::readArrays(from)) {
      const auto known = names.find(name);
      if (known != names.end()) renamed.emplace_back(known->second, std::move(array));
    }
    EXPECT_EQ(renamed.size(), names.size()) << from;
    runtime::writeArrays(to, renamed);
  } catch (const runtime::Failure& failed) {
    ADD_FAILURE() << failed.message;
  }
  return to;
}

std::string writeNumbers(const std::string& path, const Numbers& numbers) {
  std::string shape;
  for (const std::int64_t size : numbers.shape) shape += std::to_string(size) + ",";
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (" + shape + "), }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  const auto length = static_cast<std::uint16_t>(header.size());
  file.write("\x93NUMPY\x01\x00", 8);
  file.write(reinterpret_cast<const char*>(&length), 2);
  file << header;
  file.write(reinterpret_cast<const char*>(numbers.values.data()),
             static_cast<std::streamsize>(numbers.values.size() * sizeof(double)));
  return path;
}

double relativeDifference(const Numbers& expected, const Numbers& found) {
  if (expected.shape != found.shape) return std::numeric_limits<double>::infinity();
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double d = std::fabs(expected.values[i] - found.values[i]);
    if (std::isnan(d)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::fabs(expected.values[i]));
    difference = std::max(difference, d);
  }
  return difference == 0 ? 0 : difference / largest;
}

}  // namespace gshard::testing
