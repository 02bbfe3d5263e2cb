// Replicas of a roster without a hub: the test holds their streams.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "longhaul/hub/roster.h"
#include "tests/transport/hand_stream.h"

namespace longhaul::testing {

inline v1::Join join_of(const std::string& name, bool is_fresh = true) {
  v1::Join join;
  join.set_name(name);
  join.set_lanes(1);
  join.set_elements(4);
  join.set_is_fresh(is_fresh);
  return join;
}

// Has the stream `control`, and a lane on the stream `control` + 100.
inline Peer& add_peer(Roster& roster, const std::string& name, StreamId control,
                      HandStreamPtr stream = std::make_shared<HandStream>()) {
  const v1::Join join = join_of(name);
  const std::size_t slot = roster.slot_for(join).value();
  EXPECT_TRUE(roster.enter(name, slot).ok());
  Lanes lanes({.most_bytes = 1 << 20, .most_transfers = 10});
  Peer& peer =
      roster.add(std::make_unique<Peer>(join, slot, control, std::move(stream), std::move(lanes)));
  roster.add_lane(peer, control + 100, std::make_shared<HandStream>());
  return peer;
}

}  // namespace longhaul::testing
