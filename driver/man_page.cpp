// Man pages from the option table: roff is written here, so that building needs no other tool.
#include "driver/option_table.h"
#include "driver/version.h"
#include "support/text.h"

namespace gshard {

namespace {

// Text that roff takes as it is: a backslash and a minus have meanings, as have dots and quotes that begin a line.
std::string roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) {
      result += std::string("\\&") + c;
    } else {
      result += c;
    }
  }
  return result;
}

// "--mesh TEXT", "-v, --verbose"
std::string optionName(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  if (names.empty()) names.push_back(option.get_name(true));
  std::string text = "\\fB" + roff(join(names, ", ")) + "\\fR";
  const bool takesValue = option.get_expected_max() > 0 && !option.get_positional() && option.get_type_size_max() > 0;
  return takesValue ? text + " \\fI" + roff(option.get_type_name()) + "\\fR" : text;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

std::string manPage(const std::string& word) {
  Options options;
  CLI::App app;
  fillApp(app, word, options);
  const CommandRow& row = commandOf(word);
  const std::string command = row.word.empty() ? "gshardc" : "gshardc " + word;
  const std::string page = row.word.empty() ? "gshardc" : "gshardc-" + word;
  std::string text = ".TH " + upper(page) + " 1 \"\" \"gshardc " + versionNumber() + "\"\n";
  text += ".SH NAME\n" + roff(page + " - " + std::string(row.does)) + "\n";
  text += ".SH SYNOPSIS\n.B " + roff(command) + "\n[OPTIONS] FILE\n";
  if (row.command == Command::Run) text += "[\\-\\- ARGUMENTS]\n";
  if (row.word.empty()) {
    text += ".SH COMMANDS\n";
    for (const CommandRow& other : commandRows()) {
      if (other.word.empty()) continue;
      const std::string name(other.word);
      text += ".TP\n\\fBgshardc " + roff(name) + "\\fR\n" + roff(std::string(other.does)) + "; see \\fBgshardc\\-" +
              roff(name) + "\\fR(1)\n";
    }
  }
  // In the order of --help: groups as they first occur.
  std::vector<std::string> groups;
  for (const CLI::Option* option : app.get_options()) {
    if (std::find(groups.begin(), groups.end(), option->get_group()) == groups.end())
      groups.push_back(option->get_group());
  }
  for (const std::string& group : groups) {
    text += ".SH " + upper(group) + "\n";
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_group() == group)
        text += ".TP\n" + optionName(*option) + "\n" + roff(option->get_description()) + "\n";
    }
  }
  text += ".SH NOTES\n.nf\n" + roff(app.get_footer()) + "\n.fi\n";
  text +=
      ".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\nerrors in the program; with \\fBrun\\fR the program's own\n.TP\n2\n"
      "usage\n.TP\n3\na file that cannot be read or written\n.TP\n70\na bug in gshardc; a file that reproduces it is "
      "named\n";
  text +=
      ".SH ENVIRONMENT\n.TP\nGSHARD_PATH\nfurther folders that imports are searched in, parted by colons\n.TP\n"
      "GSHARD_CACHE_DIR\nwhere \\fBrun\\fR keeps what it compiled\n.TP\nGSHARD_CXX\nthe compiler driver that links "
      "(c++)\n.TP\nGSHARD_RUNTIME\nfolder of the runtime archive, for another one than the "
      "installed\n.TP\nGSHARD_SANITIZER\n\\fBthread\\fR: kernels tell ThreadSanitizer what they read and write; "
      "GSHARD_RUNTIME and GSHARD_CXX must then name a runtime and a linker with it\n.TP\nNO_COLOR\nno "
      "colour\n";
  return text;
}

}  // namespace gshard
