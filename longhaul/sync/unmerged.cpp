#include "longhaul/sync/unmerged.h"

#include <algorithm>

#include "longhaul/base/check.h"

namespace longhaul {

void Unmerged::add(RoundId round, Unit unit, ByteView payload, std::size_t elements) {
  UnmergedMessage& message = messages_.emplace_back();
  message.round = round;
  message.unit = unit;
  message.bytes.assign(payload.begin(), payload.end());
  if (!message.bytes.empty()) message.payload = PayloadView::parse(message.bytes, elements).value();
}

const UnmergedMessage& Unmerged::oldest(RoundId round) const {
  LONGHAUL_CHECK(!messages_.empty() && messages_.front().round == round);
  return messages_.front();
}

std::size_t Unmerged::count(Unit unit) const {
  return static_cast<std::size_t>(std::ranges::count(messages_, unit, &UnmergedMessage::unit));
}

}  // namespace longhaul
