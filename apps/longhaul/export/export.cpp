// longhaul export: the shared model of a hub's directory or of a checkpoint, as a plain file.
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/longhaul/command/command.h"
#include "apps/longhaul/command/complain.h"
#include "apps/longhaul/command/installed.h"
#include "apps/longhaul/command/model_file.h"
#include "apps/longhaul/hub/task_file.h"
#include "longhaul/base/file.h"
#include "longhaul/base/state.h"
#include "longhaul/codec/digest.h"
#include "longhaul/hub/training.h"
#include "longhaul/sync/checkpoint.h"

namespace longhaul::apps {
namespace {

struct ExportCommandOptions {
  std::string source;
  std::string out;
  bool is_forced = false;
  bool json = false;
};

// The newest snapshot, and what closed since.
Result<ExportedModel> model_of_hub(const std::string& directory) {
  const v1::Task task = LONGHAUL_TRY(read_task(directory));
  const Result<Job> job = job_of(task, catalogue());
  if (!job.ok()) return Error(job.error()).within(directory);
  const Result<EngineOptions> engine = engine_options(*job, {});
  if (!engine.ok()) return engine.error();
  const Result<std::optional<RunRecord>> run = Journal::read_run(directory);
  if (!run.ok()) return run.error();
  std::uint64_t steps = job->scenario.train.steps;
  if (*run && (*run)->last_step) steps = *(*run)->last_step + 1;  // it has reached its target
  Workers alone(1);
  const std::unique_ptr<ModelKeeper> last =
      LONGHAUL_TRY(ModelKeeper::read({.engine = *engine,
                                      .steps = steps,
                                      .directory = directory,
                                      .run = *run ? (*run)->id : 0,
                                      .accepts_loss = true},
                                     alone));
  if (!last)
    return Error{ErrorCode::kNotFound, directory + ": holds no model yet: the run has not started"};
  for (const std::string& note : last->notes()) std::cerr << "longhaul export: " << note << '\n';
  const std::span shared = last->model().shared();
  return ExportedModel{.values = {shared.begin(), shared.end()},
                       .layers = last->options().engine.layers,
                       .scenario = task.scenario_name(),
                       .recipe = task.recipe(),
                       .seed = std::to_string(task.seed()),
                       .step = last->model().step()};
}

Result<ExportedModel> model_of_checkpoint(const std::string& file) {
  State state = LONGHAUL_TRY(read_checkpoint(file));
  if (!state.tensors.contains("shared"))
    return Error{ErrorCode::kMismatch, file + ": neither a checkpoint nor a snapshot"};
  const auto shared = state.tensors.find("shared");
  Result<LayerTable> layers = saved_layers(state, shared->second.size());
  if (!layers.ok()) return std::move(layers).error().within(file);
  const auto text = [&](const char* what) {
    const Result<std::string> value = state.value<std::string>(what);
    return value.ok() ? *value : std::string();
  };
  const auto step = state.value<std::uint64_t>("step");
  return ExportedModel{.values = std::move(shared->second),
                       .layers = std::move(layers).value(),
                       .scenario = text("run.scenario"),
                       .recipe = text("run.recipe"),
                       .seed = text("run.seed"),
                       .step = step.ok() ? *step : 0};
}

int run_export(const ExportCommandOptions& arguments) {
  if (const auto target = output_target(arguments.out, kStateMark, arguments.is_forced);
      !target.ok())
    return complain("export", Error(target.error()).within("--out"));
  const Result<ExportedModel> model = std::filesystem::is_directory(arguments.source)
                                          ? model_of_hub(arguments.source)
                                          : model_of_checkpoint(arguments.source);
  if (!model.ok()) return complain("export", model.error());
  if (model->layers.empty())
    std::cerr << "longhaul export: " << arguments.source
              << ": does not say which layers the model has: one tensor, `shared`, is written\n";
  const Status written =
      write_output(arguments.out, model_bytes(*model), kStateMark, arguments.is_forced);
  if (!written.ok()) return complain("export", written.error());
  const std::string digest = digest_text(model->values);
  std::ostream& say = is_standard_output(arguments.out) ? std::cerr : std::cout;
  if (arguments.json) {
    const nlohmann::ordered_json json{{"file", arguments.out},
                                      {"parameters", model->values.size()},
                                      {"step", model->step},
                                      {"digest", digest}};
    say << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
  } else {
    say << "model: " << arguments.out << ", " << model->values.size() << " parameters, before step "
        << model->step << ", digest " << digest << '\n';
  }
  return kExitDone;
}

}  // namespace

void add_export(CLI::App& program, Run& run) {
  const auto arguments = std::make_shared<ExportCommandOptions>();  // shared with the callback
  CLI::App* command =
      program.add_subcommand("export", "Write the model of a hub's directory or a checkpoint");
  command
      ->add_option(
          "source", arguments->source,
          "Directory of a hub (its newest snapshot and what closed since), or a checkpoint")
      ->required();
  command->add_option("--out", arguments->out, "File to write (safetensors); -: standard output")
      ->required();
  command->add_flag("--force", arguments->is_forced,
                    "Replace a file that Longhaul did not write, too");
  command->add_flag("--json", arguments->json, "One JSON object in place of the text");
  command->footer(
      "The file has one tensor per layer, with its name and shape, and in its metadata what it is\n"
      "of. The hub may run meanwhile. In Python:\n\n"
      "  from safetensors.torch import load_file\n"
      "  tensors = load_file(\"model.safetensors\")  # {\"conv1.weight\": tensor, ...}\n\n"
      "Examples:\n"
      "  longhaul export run1 --out model.safetensors\n"
      "  longhaul export run1/snapshot-000000000256.safetensors --out model.safetensors");
  command->callback([=, &run] { run = [=] { return run_export(*arguments); }; });
}

}  // namespace longhaul::apps
