// Diagnostics as one SARIF 2.1.0 log, for code scanning services and editors that read it.
#pragma once

#include <string>
#include <vector>

#include "support/diagnostics.h"
#include "support/source.h"

namespace gshard {

struct SarifFinding {
  Diagnostic diagnostic;
  std::string declaration;  // that encloses it, as "Mlp.call"; its fingerprint, so that moved lines stay one finding
};

/// What a code means, for the log's list of rules.
struct SarifRule {
  std::string code, shortText, fullText;
  Severity severity = Severity::Error;
};

/// `root` is the folder that file names are given relative to; it is not named in the log. Rules that no finding has
/// are left out.
std::string renderSarif(const std::vector<SarifFinding>& findings, const std::vector<SarifRule>& rules,
                        const std::string& version, const std::string& root, const SourceManager& sources);

}  // namespace gshard
