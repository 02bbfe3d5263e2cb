// What a checkpoint of a replica must be of to be of use to it.
#pragma once

#include <string>

#include "longhaul/codec/layer_table.h"
#include "longhaul/sync/checkpoint.h"
#include "proto/longhaul.pb.h"

namespace longhaul::apps {

RunIdentity identity_of(const v1::Task& task, const std::string& name, const LayerTable& layers);

}  // namespace longhaul::apps
