// The identity of a run: a replica resumes only from checkpoints that carry the same one.
#pragma once

#include <string>

#include "longhaul/codec/layer_table.h"
#include "longhaul/sync/checkpoint.h"
#include "proto/longhaul.pb.h"

namespace longhaul::apps {

RunIdentity identity_of(const v1::Task& task, const std::string& name, const LayerTable& layers);

}  // namespace longhaul::apps
