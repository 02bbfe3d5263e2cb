#include "longhaul/hub/first_model.h"

#include <gtest/gtest.h>

#include "longhaul/codec/digest.h"
#include "tests/base/hand_errands.h"
#include "tests/hub/peer_fixture.h"

namespace longhaul {
namespace {

class FirstModelTest : public ::testing::Test {
 protected:
  FirstModelTest() {
    join.set_initial(digest_of(std::span<const float>(values)));
    model.agree(join);
  }
  [[nodiscard]] ByteBuffer bytes() const {
    const ByteView view = std::as_bytes(std::span(values));
    return {view.begin(), view.end()};
  }
  Status receive(ByteBuffer sent) {
    return model.receive(peer, std::move(sent), [this](const Status& fits) { told = fits.ok(); });
  }

  testing::HandErrands errands;
  FirstModel model{1, 100, errands};
  Roster roster{{.id = 1}, {}, 2, {}};
  Peer& peer = testing::add_peer(roster, "a", 1);
  std::vector<float> values{1, 2, 3, 4};
  v1::Join join = testing::join_of("a");
  std::optional<bool> told;
};

TEST_F(FirstModelTest, TheFirstReplicaChoosesIt) {
  EXPECT_TRUE(model.check(join, 1).ok());
  v1::Join other = join;
  other.set_initial(join.initial() + 1);
  EXPECT_FALSE(model.check(other, 1).ok());
  other = join;
  other.set_elements(5);
  EXPECT_FALSE(model.check(other, 1).ok());
  model.forget();
  EXPECT_TRUE(model.check(other, 1).ok());
}

TEST_F(FirstModelTest, IsKeptIfItsDigestIsTheOneThatWasTold) {
  model.ask_for_values(roster, {});
  ASSERT_TRUE(receive(bytes()).ok());
  EXPECT_EQ(told, true);
  EXPECT_TRUE(model.is_here());
  EXPECT_EQ(model.take(), values);
}

TEST_F(FirstModelTest, OtherValuesAreNotKept) {
  model.ask_for_values(roster, {});
  values[0] = 7;
  ASSERT_TRUE(receive(bytes()).ok());
  EXPECT_EQ(told, false);
  EXPECT_FALSE(model.is_here());
}

TEST_F(FirstModelTest, AnotherSizeIsAnError) {
  model.ask_for_values(roster, {});
  EXPECT_FALSE(receive(ByteBuffer(3)).ok());
}

TEST_F(FirstModelTest, NobodyIsHeardWhoWasNotAsked) {
  ASSERT_TRUE(receive(bytes()).ok());
  EXPECT_EQ(told, std::nullopt);
  EXPECT_FALSE(model.is_here());
}

TEST_F(FirstModelTest, AsksOneReplicaAndTheNextOneIfThatOneGoes) {
  Peer& second = testing::add_peer(roster, "b", 2);
  model.ask_for_values(roster, {});
  model.ask_for_values(roster, {});
  EXPECT_TRUE(peer.progress.is_asked_for_state);
  EXPECT_FALSE(second.progress.is_asked_for_state);
  roster.remove(peer);
  model.ask_for_values(roster, {});
  EXPECT_TRUE(second.progress.is_asked_for_state);
}

}  // namespace
}  // namespace longhaul
