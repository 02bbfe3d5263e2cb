#include "trainer/catalogue.h"

namespace longhaul::trainer {

Catalogue catalogue() {
  return {.scenarios = {},
          .image_models = {"softmax", "mlp", "cnn", "resnet"},
          .text_models = {"gpt"},
          .image_data = {"fashion-mnist", "mnist", "cifar-10"},
          .text_data = {"text"}};
}

}  // namespace longhaul::trainer
