// Every element whose magnitude reaches a fixed threshold, however many that are.
#pragma once

#include "longhaul/codec/codec.h"

namespace longhaul {

ByteBuffer take_above(float threshold, const TakeOptions& request, ValueFormat format,
                      Workers& workers);

}  // namespace longhaul
