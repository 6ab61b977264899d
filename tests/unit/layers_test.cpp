// The house's rules that a machine can check: layers point down only, files stay short, CMake stays with targets.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = GSHARD_SOURCE_DIR;

// folder -> folders it may include (style.md section 8). support/ is open to every folder but runtime/.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"support", {}},
    {"frontend", {"support", "grammar"}},
    {"ir", {"support"}},
    {"sema", {"support", "frontend", "ir"}},
    {"partition", {"support", "ir"}},
    {"codegen", {"support", "ir"}},
    {"runtime", {}},
    {"driver", {"support", "frontend", "ir", "sema", "partition", "codegen"}},
};

// What a folder may take of runtime/: the contract with generated code.
const std::map<std::string, std::set<std::string>> kOfRuntime = {
    {"codegen", {"runtime/abi.h", "runtime/gemm_abi.h"}},
    {"driver", {"runtime/abi.h", "runtime/diagnostics.def"}},
};

std::vector<fs::path> sourcesOf(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (entry.is_regular_file() && (extension == ".cpp" || extension == ".h")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> linesOf(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(House, LayersPointDownOnly) {
  for (const auto& [folder, allowed] : kMayInclude) {
    for (const fs::path& path : sourcesOf(kRoot / folder)) {
      for (const std::string& line : linesOf(path)) {
        if (!line.starts_with("#include \"")) continue;
        const std::string target = line.substr(10, line.find('"', 10) - 10);
        const std::string from = target.substr(0, target.find('/'));
        if (from == folder || allowed.contains(from)) continue;
        if (!fs::is_directory(kRoot / from)) continue;  // an outside library: the next test
        const auto ofRuntime = kOfRuntime.find(folder);
        if (from == "runtime" && ofRuntime != kOfRuntime.end() && ofRuntime->second.contains(target)) continue;
        ADD_FAILURE() << path.lexically_relative(kRoot) << " includes " << target;
      }
    }
  }
}

// Outside libraries stay in their folders; ANTLR's and LLVM's headers most of all.
TEST(House, OutsideLibrariesStayInTheirFolders) {
  const std::map<std::string, std::set<std::string>> owners = {{"<llvm/", {"codegen"}},
                                                               {"\"llvm/", {"codegen"}},
                                                               {"<antlr4-runtime", {"frontend"}},
                                                               {"\"antlr4-runtime", {"frontend"}},
                                                               {"<Eigen/", {"ir"}},
                                                               {"<CLI/", {"driver"}},
                                                               {"<mpi.h>", {"runtime"}},
                                                               {"<zlib.h>", {"runtime"}}};
  for (const auto& [folder, unused] : kMayInclude) {
    for (const fs::path& path : sourcesOf(kRoot / folder)) {
      for (const std::string& line : linesOf(path)) {
        if (!line.starts_with("#include ")) continue;
        for (const auto& [prefix, folders] : owners) {
          if (line.find(prefix) == std::string::npos) continue;
          EXPECT_TRUE(folders.contains(folder)) << path.lexically_relative(kRoot) << ": " << line;
        }
        if (line.find("nlohmann") != std::string::npos) {
          EXPECT_EQ(path.extension(), ".cpp") << path.lexically_relative(kRoot) << ": slow to compile, .cpp only";
        }
      }
    }
  }
}

TEST(House, NoFileIsOver700LinesAndEachSaysWhatItIs) {
  for (const char* folder :
       {"support", "frontend", "ir", "sema", "partition", "codegen", "runtime", "driver", "tests", "bench"}) {
    for (const fs::path& path : sourcesOf(kRoot / folder)) {
      const std::vector<std::string> lines = linesOf(path);
      EXPECT_LE(lines.size(), 700u) << path.lexically_relative(kRoot);
      ASSERT_FALSE(lines.empty()) << path;
      EXPECT_TRUE(lines[0].starts_with("//") || lines[0].starts_with("/*"))
          << path.lexically_relative(kRoot) << " opens without saying what it is";
    }
  }
}

// clang-tidy's misc-unused-using-decls sees only the file it was started with, and ./dev lint gives it many at once.
TEST(House, WhatAUsingDeclarationNamesIsUsed) {
  const std::regex declaration("^\\s*using ([A-Za-z_]+::)+([A-Za-z_]+);");
  std::size_t found = 0;
  for (const char* folder :
       {"bench", "codegen", "driver", "frontend", "ir", "partition", "runtime", "sema", "support", "tests"}) {
    for (const fs::path& path : sourcesOf(kRoot / folder)) {
      if (path.extension() != ".cpp") continue;
      const std::vector<std::string> lines = linesOf(path);
      for (const std::string& line : lines) {
        std::smatch match;
        if (!std::regex_search(line, match, declaration)) continue;
        ++found;
        const std::regex word("\\b" + match[2].str() + "\\b");
        const auto uses = [&](const std::string& other) { return &other != &line && std::regex_search(other, word); };
        EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), uses)) << path << ": " << line;
      }
    }
  }
  EXPECT_GT(found, 0u);
}

// Library code neither prints nor exits (style.md section 5): only driver/ and the binary's own output do.
TEST(House, LibrariesNeitherPrintNorExit) {
  for (const char* folder : {"support", "frontend", "ir", "sema", "partition", "codegen"}) {
    for (const fs::path& path : sourcesOf(kRoot / folder)) {
      for (const std::string& line : linesOf(path)) {
        const std::string code = line.substr(0, line.find("//"));
        for (const char* word : {"std::cout", "std::cerr", "printf(", "std::exit", "std::abort", " abort("}) {
          if (code.find("snprintf(") != std::string::npos) continue;
          EXPECT_EQ(code.find(word), std::string::npos) << path.lexically_relative(kRoot) << ": " << line;
        }
      }
    }
  }
}

// Tests link the compiler and the runtime into one program, and both have an Options and a Session. In one namespace
// the linker would keep the functions of one of them for both.
TEST(House, TheRuntimeHasANamespaceOfItsOwn) {
  const std::regex opened("^(inline )?namespace ([a-z_:]+) \\{");
  std::size_t found = 0;
  for (const auto& [folder, unused] : kMayInclude) {
    for (const fs::path& path : sourcesOf(kRoot / folder)) {
      for (const std::string& line : linesOf(path)) {
        std::smatch match;
        if (!std::regex_search(line, match, opened) || !match[2].str().starts_with("gshard")) continue;
        ++found;
        EXPECT_EQ(match[2].str().starts_with("gshard::runtime"), folder == "runtime") << path << ": " << line;
      }
    }
  }
  EXPECT_GT(found, 0u);
}

TEST(House, CMakeStaysWithTargets) {
  const char* banned[] = {"include_directories(", "link_libraries(", "add_definitions(",
                          "add_compile_options(", "file(GLOB",       "FetchContent"};
  for (const auto& entry : fs::recursive_directory_iterator(kRoot)) {
    const fs::path relative = entry.path().lexically_relative(kRoot);
    const std::string first = relative.begin()->string();
    if (first.starts_with("build") || first.starts_with(".")) continue;
    if (entry.path().filename() != "CMakeLists.txt" && entry.path().extension() != ".cmake") continue;
    for (const std::string& line : linesOf(entry.path())) {
      for (const char* word : banned) {
        const std::size_t at = line.find(word);
        const bool ofTarget = at != std::string::npos && at >= 7 && line.compare(at - 7, 7, "target_") == 0;
        EXPECT_TRUE(at == std::string::npos || ofTarget) << relative << ": " << line;
      }
    }
  }
}

TEST(House, EveryFolderHasAShortReadme) {
  for (const auto& [folder, unused] : kMayInclude) {
    const std::vector<std::string> lines = linesOf(kRoot / folder / "README.md");
    EXPECT_FALSE(lines.empty()) << folder << "/README.md";
    EXPECT_LE(lines.size(), 40u) << folder << "/README.md";
  }
}

}  // namespace
