// gshardc check --fix: applies machine-applicable fixes and looks again, until none is left. A fix of one stage may
// uncover mistakes of the next, so it goes in rounds; the check that follows shows what remains.
#include <algorithm>
#include <cstdio>
#include <map>

#include "driver/commands.h"
#include "driver/stages.h"

namespace gshard {

namespace {

constexpr int kMaxRounds = 100;  // each removes a mistake; more rounds than a file has mistakes are never needed

using EditsOfFiles = std::map<FileId, std::vector<Edit>>;

bool overlaps(const Edit& a, const Edit& b) {
  if (a.range.begin == b.range.begin) return true;  // two insertions at one place are no order
  return a.range.begin < b.range.end && b.range.begin < a.range.end;
}

// Whole or not at all: part of a fix could break what is right. Of fixes that meet, the first counts in this round.
bool take(const FixIt& fix, const SourceManager& sources, const std::string& stdlib, EditsOfFiles& taken) {
  if (!fix.machineApplicable || fix.edits.empty()) return false;
  for (const Edit& edit : fix.edits) {
    if (!edit.range.known() || sources.name(edit.range.file).starts_with(stdlib + "/")) return false;
    for (const Edit& other : taken[edit.range.file]) {
      if (overlaps(edit, other)) return false;
    }
  }
  for (const Edit& edit : fix.edits) taken[edit.range.file].push_back(edit);
  return true;
}

std::string edited(std::string text, std::vector<Edit> edits) {
  std::sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) { return a.range.begin > b.range.begin; });
  for (const Edit& edit : edits) text.replace(edit.range.begin, edit.range.end - edit.range.begin, edit.text);
  return text;
}

}  // namespace

void applyFixes(const Options& options) {
  const std::string stdlib = findInstallation().stdlib;
  for (int round = 0; round < kMaxRounds; ++round) {
    Session session(options, true);
    try {
      partitionedModule(session);
    } catch (const Stopped&) {
      // What was found is what is looked at.
    }
    EditsOfFiles taken;
    bool any = false;
    for (const Diagnostic& diagnostic : session.sink().diagnostics()) {
      for (const FixIt& fix : diagnostic.help) {
        if (!take(fix, session.sources(), stdlib, taken)) continue;
        std::fprintf(stderr, "fixed: %s: %s [%s]\n", session.sources().describe(diagnostic.range).c_str(),
                     fix.message.c_str(), diagnostic.code.c_str());
        any = true;
        break;  // the others are alternatives
      }
    }
    if (!any) return;
    for (auto& [file, edits] : taken) {
      if (edits.empty()) continue;
      const std::string text = edited(std::string(session.sources().text(file)), edits);
      if (writeFile(session.sources().name(file), text, session.sink())) continue;
      Session told(options);
      told.sink().report(session.sink().diagnostics().back());
      told.flush();
      throw Stopped{kInputOutput};
    }
  }
}

}  // namespace gshard
