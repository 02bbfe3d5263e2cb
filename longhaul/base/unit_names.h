// The units that the parsers of base/units.h take, as messages list them. Other spellings of the
// same units are understood too: docs/command_line.md.
#pragma once

#include <string_view>

namespace longhaul {

inline constexpr std::string_view kDurationUnitNames = "ns, us, ms, s, min, h";
inline constexpr std::string_view kBandwidthUnitNames =
    "bit, kbit, mbit, gbit, tbit; bytes: B/s, kB/s, MB/s, GB/s";
inline constexpr std::string_view kByteUnitNames = "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB";

}  // namespace longhaul
