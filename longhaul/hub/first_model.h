// The model that a run begins with. The first replica chooses it; all others must have the same
// layers and, at the start, the same values. One replica sends the values, and they are kept only
// if their digest is the one that was told. Belongs to the hub's loop.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "longhaul/base/errands.h"
#include "longhaul/codec/layer_table.h"
#include "longhaul/hub/roster.h"

namespace longhaul {

class FirstModel {
 public:
  // A model has at least and at most that many elements.
  FirstModel(std::uint64_t least, std::uint64_t most, Errands& errands)
      : least_(least), most_(most), errands_(errands) {}

  // Is it the model of the replicas that are here? `run`: of this hub.
  [[nodiscard]] Status check(const v1::Join& join, std::uint64_t run) const;
  // Precondition: check() was fine.
  void agree(const v1::Join& join);
  // The run goes on with this model. `digest` of its first values; 0: not known any more.
  void resume(LayerTable layers, std::uint64_t elements, std::uint64_t digest);
  // Nobody is here: the next one chooses.
  void forget();

  [[nodiscard]] std::uint64_t elements() const { return elements_; }  // 0: nobody has told yet
  // Precondition: somebody has told.
  [[nodiscard]] const LayerTable& layers() const { return *layers_; }

  // Asks one replica for the values, unless one is asked or they are here. If that one goes before
  // it has sent them, the next call asks another one.
  void ask_for_values(const Roster& roster, TimePoint now) const;
  // The values come from a replica. An error: they are of another size. `done` is called when they
  // are checked, with an error if they have another digest, and not at all if nobody needs them.
  Status receive(Peer& peer, ByteBuffer bytes, std::function<void(const Status&)> done);
  [[nodiscard]] bool is_here() const { return !values_.empty(); }
  // Hands the values over. From then on nobody is asked for them.
  std::vector<float> take();
  // The run has not started after all.
  void want_again() { is_wanted_ = true; }

 private:
  void on_checked(std::vector<float> values, bool is_right,
                  const std::function<void(const Status&)>& done);

  std::uint64_t least_;
  std::uint64_t most_;
  Errands& errands_;
  std::uint64_t elements_ = 0;
  std::optional<LayerTable> layers_;
  std::uint64_t digest_ = 0;
  std::vector<float> values_;
  bool is_wanted_ = true;
};

}  // namespace longhaul
