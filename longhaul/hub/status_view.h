// How a run is, for programs and for people: the same for `status` and for the events of `hub`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "proto/longhaul.pb.h"

namespace longhaul {

nlohmann::ordered_json evaluation_json(const v1::Evaluation& evaluation);
nlohmann::ordered_json status_json(const v1::StatusReport& report);
std::string status_text(const v1::StatusReport& report);

}  // namespace longhaul
