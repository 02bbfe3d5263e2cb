// The books of a replica that runs as a process, as JSON lines in a file: what it took from its
// gradients, what it submitted, what came back, what it merged. A test adds up the books of all.
//
// Vectors are written as two numbers that are linear in them, so that the books add up where the
// vectors do: their sum, and their product with a fixed random vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/exchange/exchange.h"
#include "longhaul/sync/engine.h"

namespace longhaul::bench {

// Several replicas of one process may write to one file.
class BookFile {
 public:
  // Adds to what is there. An empty path: nothing is kept.
  explicit BookFile(const std::string& path);
  [[nodiscard]] bool is_kept() const { return file_.is_open(); }
  // In the file when it returns, also if the process is killed then.
  void write(const nlohmann::ordered_json& entry) EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::ofstream file_;
};

// Of one replica; of its training thread.
class Book {
 public:
  Book(BookFile& file, std::size_t slot, std::size_t elements);

  [[nodiscard]] bool is_kept() const { return file_.is_kept(); }
  // A process begins, or its state was replaced: residual and updates on their way are gone.
  void begin_life(std::uint64_t step);
  void updated(std::uint64_t step, std::span<const float> update);
  void submitted(const Update& update);
  void collected(const Mean& mean);
  // After the last mean. `is_exact`: every update went from the gradient straight to the residual.
  void finish(const Engine& engine, bool is_exact);

 private:
  struct Account {
    std::vector<double> values;  // updates - what is in means
    double magnitude = 0;        // Σ |update|
  };
  [[nodiscard]] std::vector<float> values_of(ByteView payload) const;
  [[nodiscard]] nlohmann::ordered_json entry(const std::string& event, std::uint64_t step) const;

  BookFile& file_;
  std::size_t slot_;
  std::size_t elements_;
  std::size_t life_ = 0;
  Account account_;
  std::map<std::uint64_t, ByteBuffer> sent_;  // not collected yet
};

// Passes everything on and writes it down.
class BookExchange final : public Exchange {
 public:
  BookExchange(Exchange& inner, Book& book) : inner_(inner), book_(book) {}
  void submit(Update update) override {
    book_.submitted(update);
    inner_.submit(std::move(update));
  }
  Result<Mean> collect(RoundId round, Deadline deadline) override {
    Result<Mean> mean = inner_.collect(round, deadline);
    if (mean.ok()) book_.collected(*mean);
    if (mean.ok() && loses_returned) mean->returned.clear();
    return mean;
  }

  bool loses_returned = false;  // to see that the books notice

 private:
  Exchange& inner_;
  Book& book_;
};

}  // namespace longhaul::bench
