#include "longhaul/link/byte_fifo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>

namespace longhaul {
namespace {

TEST(ByteFifo, GivesBytesInTheOrderTheyCame) {
  std::mt19937_64 random(1);
  ByteFifo fifo;
  std::uint8_t next_in = 0;
  std::uint8_t next_out = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::size_t offered = random() % 300;
    const std::size_t used = offered - offered / 3;
    const auto space = fifo.space(offered);
    ASSERT_EQ(space.size(), offered);
    for (std::byte& byte : space.first(used)) byte = std::byte(next_in++);
    fifo.append(used);
    const std::size_t taken = random() % (fifo.size() + 1);
    for (const std::byte byte : fifo.front(taken)) ASSERT_EQ(byte, std::byte(next_out++));
    fifo.drop(taken);
    ASSERT_EQ(static_cast<std::uint8_t>(next_out + fifo.size()), next_in);
  }
}

TEST(ByteFifo, HasNoMoreThanWasAppended) {
  ByteFifo fifo;
  fifo.space(10);
  fifo.append(4);
  EXPECT_THROW((void)fifo.front(5), std::logic_error);
  EXPECT_THROW(fifo.drop(5), std::logic_error);
  EXPECT_THROW(fifo.append(7), std::logic_error);
}

}  // namespace
}  // namespace longhaul
