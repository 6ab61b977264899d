// docs/ops.md says what the op table says. GSHARD_UPDATE_GOLDENS=1 rewrites it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "ir/op_reference.h"

namespace gshard {
namespace {

TEST(OpReference, IsWhatTheDocsHold) {
  const std::string path = std::string(GSHARD_SOURCE_DIR) + "/docs/ops.md";
  if (std::getenv("GSHARD_UPDATE_GOLDENS") != nullptr) std::ofstream(path) << opReference();
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), opReference()) << "run the test with GSHARD_UPDATE_GOLDENS=1 and review the difference";
}

}  // namespace
}  // namespace gshard
