#include "longhaul/exchange/ask.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "longhaul/exchange/protocol.h"

namespace longhaul {
namespace {

constexpr std::size_t kMostEvents = 16;
constexpr Seconds kLook{0.1};

// The first frame that comes back, unless it is a refusal.
Result<Frame> answer_to(Connector& connector, Frame question, Deadline deadline,
                        const std::function<bool()>& gives_up) {
  const auto events = std::make_shared<Mailbox<StreamEvent>>(kMostEvents);
  const StreamPtr stream = connector.open(listener_of(1, inbox_of(events)));
  stream->write(std::move(question));
  stream->read();
  while (deadline_after(Seconds(0)) < deadline && !(gives_up && gives_up())) {
    std::optional<StreamEvent> event = events->pop_until(std::min(deadline, deadline_after(kLook)));
    if (!event) continue;
    if (std::optional<Result<Frame>> answer = answer_in(*event)) return *std::move(answer);
  }
  return Error{ErrorCode::kDeadline, "the hub did not answer"};
}

Error no_sense() { return {ErrorCode::kCorruptPayload, "the hub gave no answer that makes sense"}; }

}  // namespace

std::optional<Result<Frame>> answer_in(StreamEvent& event) {
  if (auto* closed = std::get_if<StreamClosed>(&event.what)) return Result<Frame>(*closed);
  auto* arrived = std::get_if<FrameArrived>(&event.what);
  if (arrived == nullptr) return std::nullopt;
  if (arrived->has_refused())
    return Result<Frame>(
        Error{ErrorCode::kMismatch, "the hub refused: " + arrived->refused().why()});
  return Result<Frame>(std::move(*arrived));
}

Result<v1::Task> ask_for_task(Connector& connector, const std::string& name,
                              const std::string& token, Deadline deadline,
                              const std::function<bool()>& gives_up) {
  Frame question;
  question.mutable_ask()->set_protocol(kProtocolVersion);
  question.mutable_ask()->set_name(name);
  question.mutable_ask()->set_token(token);
  Frame answer = LONGHAUL_TRY(answer_to(connector, std::move(question), deadline, gives_up));
  if (!answer.has_task()) return no_sense();
  return std::move(*answer.mutable_task());
}

Result<v1::StatusReport> ask_for_status(Connector& connector, const std::string& name,
                                        const std::string& token, Deadline deadline,
                                        const std::function<bool()>& gives_up) {
  Frame question;
  question.mutable_ask_status()->set_protocol(kProtocolVersion);
  question.mutable_ask_status()->set_name(name);
  question.mutable_ask_status()->set_token(token);
  Frame answer = LONGHAUL_TRY(answer_to(connector, std::move(question), deadline, gives_up));
  if (!answer.has_status_report()) return no_sense();
  return std::move(*answer.mutable_status_report());
}

}  // namespace longhaul
