#include "longhaul/transport/local.h"

#include <array>
#include <deque>
#include <functional>
#include <optional>
#include <utility>

namespace longhaul {

// Both ends of a stream. Events are queued under the lock and told outside of it, by one thread at
// a time: so each end hears them in order.
class LocalNetwork::Pair : public std::enable_shared_from_this<Pair> {
 public:
  static constexpr std::size_t kReplica = 0;  // a side
  static constexpr std::size_t kHub = 1;

  explicit Pair(bool is_cut) : is_cut_(is_cut) {}

  void listen(std::size_t side, StreamListener listener) EXCLUDES(mutex_) {
    change([&]() REQUIRES(mutex_) {
      End& end = ends_[side];
      end.listener = std::move(listener);
      // It ended before anyone listened.
      if (std::exchange(end.is_closed, false)) tell_closed(side, "closed");
    });
  }
  void read(std::size_t side) EXCLUDES(mutex_) {
    change([&]() REQUIRES(mutex_) { ends_[side].is_reading = true; });
  }
  void write(std::size_t side, Frame frame) EXCLUDES(mutex_) {
    change([&]() REQUIRES(mutex_) { ends_[side].outgoing = std::move(frame); });
  }
  void close(const std::string& why) EXCLUDES(mutex_) {
    change([&]() REQUIRES(mutex_) {
      if (is_cut_) {
        is_closing_ = true;  // the other end hears of it when the link is back
        return;
      }
      close_locked(why);
    });
  }
  // The side that closes hears of it at once, also on a link that is cut.
  void close_own(std::size_t side, const std::string& why) EXCLUDES(mutex_) {
    change([&]() REQUIRES(mutex_) { tell_closed(side, why); });
    close(why);
  }
  void set_cut(bool is_cut) EXCLUDES(mutex_) {
    change([&]() REQUIRES(mutex_) {
      is_cut_ = is_cut;
      if (!is_cut_ && is_closing_) close_locked("closed by the other end");
    });
  }

 private:
  struct End {
    StreamListener listener;
    bool is_reading = false;
    bool is_closed = false;
    std::optional<Frame> outgoing;
  };

  template <typename Change>
  void change(Change what) EXCLUDES(mutex_) {
    const std::shared_ptr<Pair> alive = shared_from_this();
    {
      const MutexLock lock(mutex_);
      what();
      pass(kReplica, kHub);
      pass(kHub, kReplica);
      if (is_telling_) return;  // that thread tells this too
      is_telling_ = true;
    }
    while (const std::function<void()> news = next_news()) news();
  }

  std::function<void()> next_news() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (news_.empty()) {
      is_telling_ = false;
      return {};
    }
    std::function<void()> news = std::move(news_.front());
    news_.pop_front();
    return news;
  }

  void pass(std::size_t from, std::size_t to) REQUIRES(mutex_) {
    End& sender = ends_[from];
    End& receiver = ends_[to];
    if (is_cut_ || !sender.outgoing || !receiver.is_reading || receiver.listener == nullptr) return;
    if (sender.listener == nullptr && !sender.is_closed) return;  // nobody listens yet
    receiver.is_reading = false;
    news_.emplace_back([listener = receiver.listener,
                        frame = *std::exchange(sender.outgoing, std::nullopt)]() mutable {
      listener(std::move(frame));
    });
    if (!sender.is_closed)
      news_.emplace_back([listener = sender.listener] { listener(FrameWritten{}); });
  }

  void tell_closed(std::size_t side, const std::string& why) REQUIRES(mutex_) {
    End& end = ends_[side];
    if (std::exchange(end.is_closed, true) || end.listener == nullptr) return;
    news_.emplace_back([listener = std::exchange(end.listener, {}), why] {
      listener(StreamClosed{ErrorCode::kClosed, why});
    });
  }
  void close_locked(const std::string& why) REQUIRES(mutex_) {
    tell_closed(kReplica, why);
    tell_closed(kHub, why);
  }

  Mutex mutex_;
  std::array<End, 2> ends_ GUARDED_BY(mutex_);
  std::deque<std::function<void()>> news_ GUARDED_BY(mutex_);
  bool is_telling_ GUARDED_BY(mutex_) = false;
  bool is_cut_ GUARDED_BY(mutex_);
  bool is_closing_ GUARDED_BY(mutex_) = false;
};

namespace {

template <typename Pair>
class LocalStream final : public Stream {
 public:
  LocalStream(std::shared_ptr<Pair> pair, std::size_t side, std::string peer_name)
      : pair_(std::move(pair)), side_(side), peer_name_(std::move(peer_name)) {}
  ~LocalStream() override { pair_->close_own(side_, "the other end is gone"); }
  LocalStream(const LocalStream&) = delete;
  LocalStream& operator=(const LocalStream&) = delete;

  void read() override { pair_->read(side_); }
  void write(Frame frame) override { pair_->write(side_, std::move(frame)); }
  void close() override { pair_->close_own(side_, "closed"); }
  [[nodiscard]] std::string peer_name() const override { return peer_name_; }

 private:
  std::shared_ptr<Pair> pair_;
  std::size_t side_;
  std::string peer_name_;
};

}  // namespace

LocalNetwork::LocalNetwork(Acceptor acceptor, std::string peer_name)
    : acceptor_(std::move(acceptor)), peer_name_(std::move(peer_name)) {}

LocalNetwork::~LocalNetwork() = default;

StreamPtr LocalNetwork::open(StreamListener listener) {
  using End = LocalStream<Pair>;
  std::shared_ptr<Pair> pair;
  {
    const MutexLock lock(mutex_);
    pair = std::make_shared<Pair>(is_cut_);
    std::erase_if(pairs_, [](const std::weak_ptr<Pair>& old) { return old.expired(); });
    pairs_.push_back(pair);
  }
  pair->listen(Pair::kReplica, std::move(listener));
  auto at_hub = std::make_shared<End>(pair, Pair::kHub, peer_name_);
  pair->listen(Pair::kHub, acceptor_(at_hub));
  return std::make_shared<End>(pair, Pair::kReplica, std::string());
}

std::vector<std::shared_ptr<LocalNetwork::Pair>> LocalNetwork::pairs() {
  const MutexLock lock(mutex_);
  std::vector<std::shared_ptr<Pair>> alive;
  for (const std::weak_ptr<Pair>& pair : pairs_) {
    if (std::shared_ptr<Pair> one = pair.lock()) alive.push_back(std::move(one));
  }
  return alive;
}

void LocalNetwork::cut() {
  {
    const MutexLock lock(mutex_);
    is_cut_ = true;
  }
  for (const std::shared_ptr<Pair>& pair : pairs()) pair->set_cut(true);
}

void LocalNetwork::restore() {
  {
    const MutexLock lock(mutex_);
    is_cut_ = false;
  }
  for (const std::shared_ptr<Pair>& pair : pairs()) pair->set_cut(false);
}

void LocalNetwork::drop_all() {
  for (const std::shared_ptr<Pair>& pair : pairs()) pair->close("the connection broke");
}

}  // namespace longhaul
