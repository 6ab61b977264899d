// Checkpoints as files: X3 of cases.md (no trace of the mesh that saved them), what is told of damaged and foreign
// files, and that nothing half written is ever left under a checkpoint's name.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/program/program.h"

namespace gshard::testing {
namespace {

namespace fs = std::filesystem;

class Checkpoints : public ::testing::Test {
 public:
  static void SetUpTestSuite() {
    scratch_ = new Scratch;
    saved_ = binary("save", 4, kRows);
  }
  static void TearDownTestSuite() { delete scratch_; }

 protected:
  inline static const std::string kRows = "shard net.table, net.stack @split(0, d)\n";
  inline static const std::string kColumns = "shard net.table, net.stack @split(1, d)\n";

  static std::string file(const std::string& name) { return scratch_->file(name); }
  static Binary binary(const std::string& name, std::int64_t devices, const std::string& shards) {
    const std::string layout =
        scratch_->write(name + ".layout.gsd", "mesh [d: " + std::to_string(devices) + "]\n\n" + shards);
    return compile(*scratch_, GSHARD_SOURCE_DIR "/tests/cli/X3_checkpoints.gsd", name, devices,
                   {"-w", "--layout", layout});
  }
  static void save(const Binary& program, const std::string& folder) {
    const Outcome outcome = program({"train", "-q", "--steps", "2", "--checkpoint", folder});
    ASSERT_EQ(outcome.code, 0) << outcome.all();
  }
  static Numbers counted(std::vector<std::int64_t> shape, std::int64_t count) {
    Numbers numbers{std::move(shape), {}};
    for (std::int64_t i = 0; i < count; ++i) numbers.values.push_back(static_cast<double>(i));
    return numbers;
  }
  static void expectTables(const Binary& program, const std::string& folder) {
    for (const auto& [entry, expected] :
         {std::pair{"table", counted({10, 3}, 30)}, {"stack", counted({4, 2, 3}, 24)}}) {
      const Outcome outcome = program({entry, "-q", "--checkpoint", folder, "-o", file("out.npy")});
      ASSERT_EQ(outcome.code, 0) << outcome.all();
      EXPECT_EQ(numbersOf(file("out.npy")).begin()->second, expected) << entry;
    }
  }
  // The whole folder holds exactly these files.
  static std::vector<std::string> filesIn(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  inline static Scratch* scratch_ = nullptr;
  inline static Binary saved_;
};

TEST_F(Checkpoints, X3_LoadOnAnyLayout) {
  save(saved_, file("four"));
  for (const std::int64_t devices : {1, 2, 3, 5}) {
    for (const std::string& shards : {kRows, kColumns, std::string()}) {
      SCOPED_TRACE(std::to_string(devices) + " devices, " + shards);
      const Binary other = binary("load", devices, shards);
      expectTables(other, file("four"));
      // The same file, byte for byte, whoever saves it.
      fs::remove_all(file("other"));
      save(other, file("other"));
      EXPECT_TRUE(readFile(file("other/step-2.safetensors")) == readFile(file("four/step-2.safetensors")));
    }
  }
}

TEST_F(Checkpoints, X3_UnderMpi) {
  save(saved_, file("threads"));
  Binary ranks = saved_;
  ranks.transport = Transport::Mpi;
  save(ranks, file("ranks"));
  EXPECT_TRUE(readFile(file("threads/step-2.safetensors")) == readFile(file("ranks/step-2.safetensors")));
  expectTables(ranks, file("threads"));
}

TEST_F(Checkpoints, X3_AMissingNameListsWhatThereIs) {
  save(saved_, file("whole"));
  std::string bytes = readFile(file("whole/step-2.safetensors"));
  const std::size_t at = bytes.find("\"net.stack\"");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 11, "\"net.stock\"");
  scratch_->write("renamed/step-2.safetensors", bytes);
  const Outcome outcome = saved_({"table", "-q", "--checkpoint", file("renamed")});
  EXPECT_EQ(outcome.code, 4);
  for (const char* part : {"`net.stack` is missing", "`net.stock` is surplus", "it holds `net.scale`, ", "`net.table`"})
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << "\n" << outcome.all();
}

TEST_F(Checkpoints, DamagedAndForeignFilesAreTold) {
  save(saved_, file("sound"));
  const std::string sound = readFile(file("sound/step-2.safetensors"));
  const auto expectRefused = [&](const std::string& bytes, const std::string& why) {
    scratch_->write("damaged/step-2.safetensors", bytes);
    const Outcome outcome = saved_({"eval", "-q", "--checkpoint", file("damaged")});
    EXPECT_EQ(outcome.code, 3) << why << "\n" << outcome.all();
    EXPECT_NE(outcome.err.find("damaged/step-2.safetensors"), std::string::npos) << outcome.all();
    EXPECT_EQ(outcome.out, "");
  };
  const std::size_t header = static_cast<unsigned char>(sound[0]) + 256u * static_cast<unsigned char>(sound[1]) + 8;
  ASSERT_LT(header, sound.size());
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{7}, std::size_t{8}, header - 1, header, header + 5, sound.size() - 1}) {
    expectRefused(sound.substr(0, length), "cut at " + std::to_string(length));
  }
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string bytes = sound;
    const std::size_t at = bytes.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return bytes.replace(at, from.size(), to);
  };
  expectRefused(changed("\"dtype\":\"F32\"", "\"dtype\":\"F99\""), "a type that is none");
  expectRefused(changed("{", "["), "a header that is no object");
  expectRefused(changed("\"step\":\"2\"", "\"step\":\"x\""), "a step that is no number");
  expectRefused(changed("\"step\":\"2\"", "\"step\":\"\\\""), "a header that is no JSON");
  expectRefused(std::string(4096, '\0'), "zeros");
  expectRefused("PK\3\4 a zip file", "another format");
  expectRefused(std::string(8, '\xff') + sound.substr(8), "a length beyond all files");
}

TEST_F(Checkpoints, OtherFilesInTheFolderAreNotTaken) {
  save(saved_, file("mixed"));
  for (const char* name : {"step-99999999999999999999.safetensors", "step-03.safetensors", "step-+4.safetensors",
                           "step--5.safetensors", "step-6.safetensors.part", "step-.safetensors", "step-", "notes"}) {
    scratch_->write(std::string("mixed/") + name, "not a checkpoint");
  }
  for (const char* latest : {"step-2.safetensors\n", "step-2.safetensors", "step-03.safetensors\n", "garbage", ""}) {
    scratch_->write("mixed/latest", latest);
    const Outcome outcome = saved_({"eval", "-q", "--checkpoint", file("mixed")});
    EXPECT_EQ(outcome.code, 0) << latest << "\n" << outcome.all();
  }
  const Outcome outcome = saved_({"eval", "-q", "--resume", "3", "--checkpoint", file("mixed")});
  EXPECT_EQ(outcome.code, 3) << outcome.all();
  EXPECT_NE(outcome.err.find("it holds steps 2"), std::string::npos) << outcome.all();
}

TEST_F(Checkpoints, AFailedSaveLeavesWhatWasThere) {
  save(saved_, file("busy"));
  const std::string before = readFile(file("busy/step-2.safetensors"));
  fs::create_directories(file("busy/step-3.safetensors/in the way"));
  const Outcome outcome = saved_({"train", "-q", "--steps", "1", "--resume", "2", "--checkpoint", file("busy")});
  EXPECT_EQ(outcome.code, 3) << outcome.all();
  EXPECT_NE(outcome.err.find("step-3.safetensors"), std::string::npos) << outcome.all();
  EXPECT_EQ(filesIn(file("busy")), (std::vector<std::string>{"latest", "step-2.safetensors", "step-3.safetensors"}));
  EXPECT_TRUE(readFile(file("busy/step-2.safetensors")) == before);
  EXPECT_EQ(readFile(file("busy/latest")), "step-2.safetensors\n");
}

}  // namespace
}  // namespace gshard::testing
