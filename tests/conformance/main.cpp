// The conformance suite: op x example x property x mesh, all from the op table. A new op adds no code here.
// One case alone: gshard_conformance --gtest_filter='*reduce.0.split*'
#include <gtest/gtest.h>

#include "properties.h"

namespace gshard::conformance {

namespace {
class ConformanceTest : public testing::Test {
 public:
  ConformanceTest(const Property& property, const Example& example, std::string mesh)
      : property_(property), example_(example), mesh_(std::move(mesh)) {}

  void TestBody() override {
    for (const std::string& fault : property_.check(example_, mesh_)) ADD_FAILURE() << example_.ir << "\n" << fault;
  }

 private:
  const Property& property_;
  const Example& example_;
  std::string mesh_;
};

void registerAll() {
  for (const OpKind kind : allOps()) {
    const OpDef& def = opDef(kind);
    for (std::size_t i = 0; i < (*def.examples).size(); ++i) {
      const Example& example = (*def.examples)[i];
      for (const Property& property : allProperties()) {
        if (!property.applies(def, example)) continue;
        for (const std::string& mesh : property.meshes) {
          const std::string name =
              std::string(*def.name) + "." + std::to_string(i) + "." + std::string(property.name) + "." + mesh;
          testing::RegisterTest(
              "Conformance", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
              [&property, &example, mesh]() -> testing::Test* { return new ConformanceTest(property, example, mesh); });
        }
      }
    }
  }
}
}  // namespace

}  // namespace gshard::conformance

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  gshard::conformance::registerAll();
  return RUN_ALL_TESTS();
}
