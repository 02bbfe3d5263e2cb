#include "trainer/c10d_group.h"

#include <torch/version.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "longhaul/base/mutex.h"
#include "trainer/heartbeats.h"
#include "trainer/local_address.h"

namespace longhaul::trainer {
namespace {

#if TORCH_VERSION_MAJOR >= 2
using Group = c10d::Backend;
#else
using Group = c10d::ProcessGroup;
#endif

using std::chrono::milliseconds;

constexpr Seconds kMostMeeting{300.0};
constexpr Seconds kLook{0.05};               // between two looks at the store
constexpr milliseconds kPatience{100};       // of a wait for a gather, between looks at who is gone
constexpr Seconds kLinger{1.5};              // so that the others can read why this rank ended
constexpr std::chrono::hours kMostStep{24};  // heartbeats end a gather much earlier
constexpr const char* kLost = "lost";        // the first rank that was missed, as a sentence
constexpr const char* kLeft = "left";

// Without torch's backtrace.
std::string text_of(const std::exception& error) {
  const auto* ours = dynamic_cast<const c10::Error*>(&error);
  std::string text = ours != nullptr ? ours->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

std::vector<std::uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

Result<c10::intrusive_ptr<Group>> gloo_group(const RankOptions& options,
                                             const c10::intrusive_ptr<c10d::Store>& store) {
  auto settings =
      c10d::ProcessGroupGloo::Options::create(std::chrono::duration_cast<milliseconds>(kMostStep));
  if (options.interface.empty()) {
    const std::string address = LONGHAUL_TRY(local_address_towards(options.host, options.port));
    settings->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(address));
  } else {
    settings->devices.push_back(
        c10d::ProcessGroupGloo::createDeviceForInterface(options.interface));
  }
  return c10::intrusive_ptr<Group>(c10::make_intrusive<c10d::ProcessGroupGloo>(
      c10::make_intrusive<c10d::PrefixStore>("gloo", store), static_cast<int>(options.rank),
      static_cast<int>(options.size), settings));
}

}  // namespace

struct C10dGroup::Members {
  explicit Members(RankOptions given) : options(std::move(given)) {}

  Status join();
  Status await_all();
  void beat(Heartbeats& beats);
  void watch();
  void lose(const std::string& why);
  std::optional<Error> lost();
  Status await(c10d::Work& work);
  Error lost_by(const std::exception& failure);
  // Waits for that time, or until it leaves.
  void pause(Seconds time);
  // The store ends with rank 0: the others get the time to read it.
  void linger() {
    if (has_store()) pause(kLinger);
  }
  [[nodiscard]] std::string beat_of(std::size_t rank) const {
    return "alive/" + std::to_string(rank);
  }
  [[nodiscard]] bool has_store() const { return options.rank == 0 && !options.is_store_there; }

  RankOptions options;
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<Group> group;
  Mutex mutex;
  CondVar changed;
  bool is_leaving GUARDED_BY(mutex) = false;
  std::optional<std::string> why_lost GUARDED_BY(mutex);
  TimePoint last_beat GUARDED_BY(mutex) = std::chrono::steady_clock::now();
  std::jthread thread;  // last: ends before what it uses
};

void C10dGroup::Members::pause(Seconds time) {
  const MutexLock lock(mutex);
  (void)changed.wait_until(mutex, deadline_after(time),
                           [this]() REQUIRES(mutex) { return is_leaving; });
}

Status C10dGroup::Members::join() {
  c10d::TCPStoreOptions settings;
  settings.port = options.port;
  settings.isServer = has_store();
  settings.waitWorkers = false;
  settings.timeout = std::chrono::duration_cast<milliseconds>(kMostMeeting);
  store = c10::make_intrusive<c10d::PrefixStore>(
      "longhaul/" + options.attempt, c10::make_intrusive<c10d::TCPStore>(options.host, settings));
  store->add(beat_of(options.rank), 1);
  LONGHAUL_TRY(await_all());
  c10::intrusive_ptr<Group> made = LONGHAUL_TRY(gloo_group(options, store));
  group = std::move(made);
  return Done{};
}

// Not by the store's own wait: after its timeout a later answer would be misread.
Status C10dGroup::Members::await_all() {
  const Deadline deadline = deadline_after(kMostMeeting);
  for (;;) {
    std::string missing;
    for (std::size_t rank = 0; rank < options.size; ++rank)
      if (!store->check({beat_of(rank)})) missing += ' ' + std::to_string(rank);
    if (missing.empty()) return Done{};
    if (options.is_cancelled && options.is_cancelled())
      return Error{ErrorCode::kClosed, "interrupted while waiting for ranks" + missing};
    if (std::chrono::steady_clock::now() > deadline)
      return Error{ErrorCode::kDeadline, "these ranks did not come within 300 s:" + missing};
    pause(kLook);
  }
}

void C10dGroup::Members::lose(const std::string& why) {
  {
    const MutexLock lock(mutex);
    if (!why_lost) why_lost = why;
  }
  changed.notify_all();
}

void C10dGroup::Members::beat(Heartbeats& beats) {
  const TimePoint now = std::chrono::steady_clock::now();
  store->add(beat_of(options.rank), 1);
  for (std::size_t rank = 0; rank < options.size; ++rank)
    beats.note(rank, store->add(beat_of(rank), 0), now);
  if (const std::optional<std::size_t> silent = beats.silent(now))
    store->compareSet(
        kLost, {},
        bytes_of("rank " + std::to_string(*silent) + " is gone: no sign of life for " +
                 to_string(Heartbeats::kMostSilence)));
  if (store->check({kLost})) {
    const std::vector<std::uint8_t> why = store->get(kLost);
    lose({why.begin(), why.end()});
  }
  const MutexLock lock(mutex);
  last_beat = now;
}

void C10dGroup::Members::watch() {
  Heartbeats beats(options.size, std::chrono::steady_clock::now());
  const auto is_over = [this] {
    const MutexLock lock(mutex);
    return is_leaving || why_lost.has_value();
  };
  while (!is_over()) {
    try {
      beat(beats);
    } catch (const std::exception&) {
      return lose(options.is_store_there ? "the launcher is gone: its store does not answer"
                                         : "rank 0 is gone: its store does not answer");
    }
    pause(Heartbeats::kEvery);
  }
}

std::optional<Error> C10dGroup::Members::lost() {
  const MutexLock lock(mutex);
  if (!why_lost && std::chrono::steady_clock::now() - last_beat > Heartbeats::kMostSilence)
    why_lost =
        "rank 0 is gone: its store has been silent for " + to_string(Heartbeats::kMostSilence);
  if (!why_lost) return std::nullopt;
  return Error{ErrorCode::kClosed, *why_lost};
}

// Gloo says which connection broke. Heartbeats say which rank is gone, a few seconds later.
Error C10dGroup::Members::lost_by(const std::exception& failure) {
  const Deadline deadline = deadline_after(Heartbeats::kMostSilence + 3 * Heartbeats::kEvery);
  {
    const MutexLock lock(mutex);
    (void)changed.wait_until(mutex, deadline,
                             [this]() REQUIRES(mutex) { return why_lost.has_value(); });
  }
  if (const std::optional<Error> known = lost()) return *known;
  return Error{ErrorCode::kClosed, "a rank is gone: " + text_of(failure)};
}

// Waits for all ranks. Asks now and then whether one of them is gone.
Status C10dGroup::Members::await(c10d::Work& work) {
  for (;;) {
    try {
      if (work.wait(kPatience)) return Done{};
    } catch (const std::exception& failure) {
      if (work.isCompleted() && !work.isSuccess()) return lost_by(failure);
      if (const std::optional<Error> known = lost()) return *known;
    }
  }
}

C10dGroup::C10dGroup(std::unique_ptr<Members> members) : members_(std::move(members)) {}

C10dGroup::~C10dGroup() {
  {
    const MutexLock lock(members_->mutex);
    members_->is_leaving = true;
    if (members_->why_lost)
      (void)members_->group.release();  // it would wait for those who are gone
  }
  members_->changed.notify_all();
}

Result<std::unique_ptr<C10dGroup>> C10dGroup::meet(const RankOptions& options) {
  auto members = std::make_unique<Members>(options);
  const std::string where = options.host + ':' + std::to_string(options.port);
  try {
    Status joined = members->join();
    if (!joined.ok()) return std::move(joined).error().within(where);
  } catch (const std::exception& failure) {
    return Error{ErrorCode::kIo, where + ": " + text_of(failure)};
  }
  members->thread = std::jthread([all = members.get()] { all->watch(); });
  return std::unique_ptr<C10dGroup>(
      new C10dGroup(std::move(members)));  // NOLINT: private constructor
}

Result<std::vector<ByteBuffer>> C10dGroup::gather(ByteView own) {
  const auto bytes = static_cast<std::int64_t>(own.size());
  try {
    at::Tensor input = at::empty({bytes}, at::kByte);
    std::memcpy(input.data_ptr(), own.data(), own.size());
    std::vector<at::Tensor> inputs{input};
    std::vector<std::vector<at::Tensor>> outputs(1);
    for (std::size_t rank = 0; rank < members_->options.size; ++rank)
      outputs[0].push_back(at::empty({bytes}, at::kByte));
    const auto work = members_->group->allgather(outputs, inputs);
    LONGHAUL_TRY(members_->await(*work));
    std::vector<ByteBuffer> gathered;
    for (const at::Tensor& output : outputs[0]) {
      const auto* const begin = static_cast<const std::byte*>(output.data_ptr());
      gathered.emplace_back(begin, begin + own.size());
    }
    return gathered;
  } catch (const std::exception& failure) {
    return members_->lost_by(failure);
  }
}

Status C10dGroup::sum(std::span<float> values) {
  try {
    std::vector<at::Tensor> tensors{
        at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kFloat)};
    const auto work = members_->group->allreduce(tensors);
    return members_->await(*work);
  } catch (const std::exception& failure) {
    return members_->lost_by(failure);
  }
}

void C10dGroup::leave() {
  try {
    const auto size = static_cast<std::int64_t>(members_->options.size);
    const Deadline deadline = deadline_after(kLinger);
    members_->store->add(kLeft, 1);
    while (members_->has_store() && members_->store->add(kLeft, 0) < size &&
           std::chrono::steady_clock::now() < deadline)
      members_->pause(kLook);
  } catch (const std::exception&) {
    // The store is gone, and so is the reason to wait.
  }
}

void C10dGroup::end(const std::string& why) {
  const bool is_known = members_->lost().has_value();
  members_->lose(why);
  if (is_known) return members_->linger();
  try {
    members_->store->compareSet(
        kLost, {},
        bytes_of("rank " + std::to_string(members_->options.rank) + " has ended: " + why));
  } catch (const std::exception&) {
    return;  // the store is gone
  }
  members_->linger();
}

}  // namespace longhaul::trainer
