// Damaged files and a restart: nobody goes on with a wrong model, no round is lost that can be
// read, and every loss is told with its size. What can be read is known from the bytes that were
// written, without the code under test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "longhaul/sync/checkpoint.h"
#include "tests/hub/corruption.h"
#include "tests/hub/hub_desk.h"
#include "tests/hub/test_directory.h"

namespace longhaul {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using testing::Corruption;
using testing::dense_payload;
using testing::Files;
using ::testing::HasSubstr;
using testing::HubDesk;

constexpr std::uint64_t kClosed = 22;  // rounds of the run that is damaged
constexpr std::uint64_t kCorruptions = 200;
constexpr std::uint64_t kHubCorruptions = 70;  // of each case: disks take their time
constexpr std::size_t kHeader = 32;            // of a log

struct Case {
  std::string recipe;
  int delay_steps;
  std::uint64_t first_seed;
};

HubOptions setup_of(const Case& which, const std::filesystem::path& directory) {
  HubOptions options = testing::desk_options(which.recipe, 1);
  options.training.engine.recipe.local = {};
  options.training.engine.recipe.plan.period_steps = 1;
  options.training.engine.recipe.plan.delay_steps = which.delay_steps;
  options.training.directory = directory;
  options.training.journal.log_rounds = 8;
  return options;
}

ByteBuffer payload_of(std::uint64_t step) {
  return dense_payload(0.1F * static_cast<float>(step + 1));
}

bool contains(const ByteBuffer& file, const ByteBuffer& part) {
  return std::search(file.begin(), file.end(), part.begin(), part.end()) != file.end();
}

bool is_snapshot(const std::string& name) { return name.starts_with("snapshot-"); }
bool is_log(const std::string& name) { return name.ends_with(".log"); }

std::string newest_log(const Files& files) {
  std::string newest;
  for (const auto& [name, bytes] : files) newest = is_log(name) ? name : newest;
  return newest;
}

// A directory as a killed hub left it, and what is known of it.
class DamagedHub {
 public:
  DamagedHub(const Case& which, std::filesystem::path directory)
      : which_(which), directory_(std::move(directory)) {
    std::filesystem::remove_all(directory_);
    write();
    whole_ = testing::files_of(directory_);
    run_ = Journal::read_run(directory_).value()->id;
    compute_digests();
  }
  ~DamagedHub() { std::filesystem::remove_all(directory_); }
  DamagedHub(const DamagedHub&) = delete;
  DamagedHub& operator=(const DamagedHub&) = delete;

  void check(std::uint64_t seed) {
    Files files = whole_;
    const std::string what = Corruption(seed).apply(files);
    SCOPED_TRACE("corruption " + std::to_string(seed) + " " + what);
    testing::put_files(files, directory_);
    const std::uint64_t reach = reach_of(files);
    Workers alone(1);
    const auto model = ModelKeeper::read(training_options(), alone);
    HubDesk desk(setup_of(which_, directory_));
    const Status resumed = desk.core.resume();
    if (!resumed.ok()) return check_refusal(resumed.error().message, files, reach);
    ++went_on;
    check_model(desk, reach);
    if (reach == kClosed || is_cut_at_a_record(files)) return;
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_THAT((*model)->notes(), Contains(HasSubstr("bytes are a record that was not written")));
  }

  std::size_t went_on = 0;
  std::size_t refused = 0;

 private:
  [[nodiscard]] TrainingOptions training_options() const {
    TrainingOptions options = setup_of(which_, directory_).training;
    options.run = run_;
    return options;
  }

  // Ends like a kill: nothing is written after the last round.
  void write() {
    HubDesk desk(setup_of(which_, directory_));
    const HubDesk::Joined replica = desk.start(1)[0];
    for (std::uint64_t step = 0; step < kClosed; ++step) {
      const auto log = directory_ / newest_log(logs());
      const std::size_t size = std::filesystem::file_size(log);
      desk.update(replica, step, payload_of(step));
      const ByteBuffer bytes = read_file(log, 1 << 20).value();
      records_.emplace_back(bytes.begin() + static_cast<std::ptrdiff_t>(size), bytes.end());
    }
    ASSERT_EQ(desk.core.status().next_round, kClosed);
  }
  [[nodiscard]] Files logs() const {
    Files files;
    for (const auto& entry : std::filesystem::directory_iterator(directory_))
      files[entry.path().filename().string()];
    return files;
  }

  // The same run without a disk.
  void compute_digests() {
    Workers workers{1};
    Training training(
        ModelKeeper::start(setup_of(which_, {}).training, testing::desk_model(), {}, workers)
            .value());
    training.book().join(0, 1.0F, {});
    ModelKeeper& keeper = *training.keeper();
    digests_.push_back(digest_of(keeper.model().shared()));
    for (std::uint64_t step = 0; step < kClosed; ++step) {
      (void)training.book().submit(0, {.step = step},
                                   testing_data::checked(payload_of(step), testing::kDeskElements),
                                   TimePoint{});
      const Result<RoundOutcome> closed = keeper.close(training.begin_closing(), {});
      ASSERT_TRUE(closed.ok());
      training.end_closing(*closed);
      digests_.push_back(digest_of(keeper.model().shared()));
    }
  }

  [[nodiscard]] bool is_readable(std::uint64_t round, const Files& files) const {
    return std::ranges::any_of(files, [&](const auto& file) {
      return is_log(file.first) && contains(file.second, records_[round]);
    });
  }
  // As far as any whole snapshot gets with whole rounds. One snapshot is always left.
  [[nodiscard]] std::uint64_t reach_of(const Files& files) const {
    std::uint64_t best = 0;
    for (const auto& [whole_name, whole] : whole_) {
      if (!is_snapshot(whole_name)) continue;
      const auto is_it = [&wanted = whole](const auto& file) {
        return is_snapshot(file.first) && file.second == wanted;
      };
      if (!std::ranges::any_of(files, is_it)) continue;
      std::uint64_t reach = std::stoull(whole_name.substr(whole_name.find('-') + 1));
      while (reach < kClosed && is_readable(reach, files)) ++reach;
      best = std::max(best, reach);
    }
    return best;
  }
  // Then nothing tells that more was there.
  [[nodiscard]] bool is_cut_at_a_record(const Files& files) const {
    const std::string name = newest_log(whole_);
    if (!files.contains(name)) return false;
    const ByteBuffer& whole = whole_.at(name);
    const ByteBuffer& bytes = files.at(name);
    if (bytes.size() >= whole.size() || !std::equal(bytes.begin(), bytes.end(), whole.begin()))
      return false;
    std::size_t end = kHeader;
    std::uint64_t round = std::stoull(name.substr(name.find('-') + 1));
    while (end < bytes.size()) end += records_[round++].size();
    return end == bytes.size();
  }

  void check_model(const HubDesk& desk, std::uint64_t reach) const {
    ASSERT_TRUE(desk.core.status().is_started) << "the run would begin anew";
    ASSERT_EQ(desk.core.status().next_round, reach);
    Workers alone(1);
    const auto model = ModelKeeper::read(training_options(), alone);
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_EQ(digest_of((*model)->model().shared()), digests_[reach]);
  }

  void check_refusal(const std::string& message, const Files& files, std::uint64_t reach) {
    ++refused;
    SCOPED_TRACE(message);
    EXPECT_EQ(testing::files_of(directory_), files) << "something was written";
    const std::string newest = newest_log(whole_);
    const bool is_newest_whole = files.contains(newest) && files.at(newest) == whole_.at(newest);
    EXPECT_TRUE(reach < kClosed || !is_newest_whole) << "refused without need";
    check_size(message, files, reach);
    accept(files, reach);
  }
  // How much is lost is told: as a number, or at least where.
  void check_size(const std::string& message, const Files& files, std::uint64_t reach) const {
    std::uint64_t lost = 0;
    for (std::uint64_t round = reach; round < kClosed; ++round)
      lost += is_readable(round, files) ? 0 : 1;
    const std::size_t at = message.find(" that had closed");
    ASSERT_NE(at, std::string::npos);
    if (message.find("nobody can tell") != std::string::npos) {
      EXPECT_THAT(message, AnyOf(HasSubstr(" bytes from byte "), HasSubstr("is missing"),
                                 HasSubstr("is shorter than its header")));
      return;
    }
    const std::size_t word = message.rfind(' ', at - 1);
    const std::size_t number = message.rfind(' ', word - 1);
    const std::uint64_t told = std::stoull(message.substr(number + 1));
    const bool is_exact = message.find("At least") == std::string::npos;
    EXPECT_TRUE(is_exact ? told == lost : told <= lost) << lost;
  }
  // The user has read it, and wants to go on. What is damaged stays for others to look at.
  void accept(const Files& files, std::uint64_t reach) const {
    HubOptions options = setup_of(which_, directory_);
    options.training.accepts_loss = true;
    {
      HubDesk desk(options);
      const Status resumed = desk.core.resume();
      ASSERT_TRUE(resumed.ok()) << resumed.error().message;
      check_model(desk, reach);
      const Files now = testing::files_of(directory_);
      for (const auto& [name, bytes] : files) {
        const bool is_damaged = !whole_.contains(name) || whole_.at(name) != bytes;
        const auto is_it = [&wanted = bytes](const auto& file) { return file.second == wanted; };
        EXPECT_TRUE(!is_damaged || std::ranges::any_of(now, is_it)) << name << " is gone";
      }
      const HubDesk::Joined back = desk.join(desk.rejoin_frame("replica-0", reach));
      desk.update(back, reach, payload_of(reach));
      ASSERT_EQ(desk.core.status().next_round, reach + 1);
    }
    HubDesk desk(setup_of(which_, directory_));
    const Status resumed = desk.core.resume();
    ASSERT_TRUE(resumed.ok()) << resumed.error().message;
    EXPECT_EQ(desk.core.status().next_round, reach + 1);
  }

  Case which_;
  std::filesystem::path directory_;
  Files whole_;
  std::uint64_t run_ = 0;
  std::vector<ByteBuffer> records_;     // as they were written, by round
  std::vector<std::uint64_t> digests_;  // of the model, by the round that closes next
};

class CorruptedHub : public ::testing::TestWithParam<Case> {};

TEST_P(CorruptedHub, GoesOnWithTheRightModelOrTellsHowMuchIsLost) {
  DamagedHub hub(GetParam(), testing::test_directory());
  for (std::uint64_t i = 0; i < kHubCorruptions && !HasFailure(); ++i)
    hub.check(GetParam().first_seed + i);
  EXPECT_GT(hub.went_on, kHubCorruptions / 2) << "most damage costs nothing";
  EXPECT_GT(hub.refused, kHubCorruptions / 20);
}

INSTANTIATE_TEST_SUITE_P(
    Recipes, CorruptedHub,
    ::testing::Values(Case{.recipe = "dd-sgd", .delay_steps = 0, .first_seed = 1000},
                      Case{.recipe = "dd-sgd", .delay_steps = 3, .first_seed = 2000},
                      Case{.recipe = "olco3-tc", .delay_steps = 1, .first_seed = 3000}),
    [](const auto& which) {
      std::string name = which.param.recipe;
      std::erase(name, '-');
      return name + "_delayed_" + std::to_string(which.param.delay_steps);
    });

State checkpoint_at(const std::string& replica, std::uint64_t step) {
  State state;
  state.values["step"] = step;
  for (const char* name : {"shared", "residual"}) {
    for (int i = 0; i < 60; ++i)
      state.tensors[name].push_back(static_cast<float>(step) / static_cast<float>(i + 1));
  }
  state.blobs["message.3.0"] = dense_payload(static_cast<float>(step));
  save_identity({{"seed", "1"}, {"name", replica}}, state);
  return state;
}

TEST(CorruptedCheckpoint, IsNeverLoaded) {
  const std::filesystem::path directory = testing::test_directory();
  const Files whole{{"a.safetensors", to_bytes(checkpoint_at("a", 7))},
                    {"b.safetensors", to_bytes(checkpoint_at("b", 9))}};
  std::size_t refused = 0;
  for (std::uint64_t seed = 0; seed < kCorruptions && !HasFailure(); ++seed) {
    Files files = whole;
    SCOPED_TRACE(Corruption(seed).apply(files));
    testing::put_files(files, directory);
    for (const std::string replica : {"a", "b"}) {
      const std::string name = replica + ".safetensors";
      const Result<State> state = read_checkpoint(directory / name);
      const bool is_whole = files.contains(name) && files.at(name) == whole.at(name);
      const Status own =
          state.ok() ? check_identity({{"seed", "1"}, {"name", replica}}, *state) : state.error();
      EXPECT_EQ(own.ok(), is_whole);
      if (is_whole) {
        EXPECT_EQ(to_bytes(*state), whole.at(name));
      } else if (files.contains(name)) {
        ++refused;
        EXPECT_THAT(own.error().message, AnyOf(HasSubstr("damaged"), HasSubstr("another run")));
      }
    }
  }
  EXPECT_GT(refused, kCorruptions / 2);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace longhaul
