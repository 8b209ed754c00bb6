// `maxsimd-cli info` and `maxsimd-cli health`.
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "client/cli/command.h"
#include "client/cli/format.h"
#include "client/rerank_client.h"
#include "kernels/status_macros.h"

namespace maxsimd {
namespace {

std::vector<std::string> ElementTypeNames(const v1::GetServerInfoResponse& info) {
  std::vector<std::string> names;
  for (int type : info.element_types()) {
    const std::string name = v1::ElementType_Name(static_cast<v1::ElementType>(type));
    names.push_back(name.empty() ? absl::StrCat(type)
                                 : absl::AsciiStrToLower(absl::StripPrefix(name, "ELEMENT_TYPE_")));
  }
  return names;
}

// By reflection, so that limits that are added to the contract show up by themselves.
Json LimitsJson(const v1::Limits& limits) {
  using ::google::protobuf::FieldDescriptor;
  Json json = Json::object();
  const auto* descriptor = limits.GetDescriptor();
  const auto* reflection = limits.GetReflection();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
      json[field->name()] = reflection->GetUInt32(limits, field);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64) {
      json[field->name()] = reflection->GetUInt64(limits, field);
    }
  }
  return json;
}

class InfoCommand : public Command {
 public:
  CLI::App* AddTo(CLI::App* app) override {
    return app->add_subcommand("info", "Says what server is running and its limits");
  }

  absl::Status Run(const CommonOptions& common, const Output& output) override {
    RerankClient client(Connect(common.target));
    ASSIGN_OR_RETURN(const v1::GetServerInfoResponse info,
                     client.Info({.timeout = common.timeout_duration()}));
    Json json;
    json["version"] = info.version();
    json["backend"] = info.backend();
    json["devices"] = std::vector<std::string>(info.devices().begin(), info.devices().end());
    json["element_types"] = ElementTypeNames(info);
    json["features"] = std::vector<std::string>(info.features().begin(), info.features().end());
    json["limits"] = LimitsJson(info.limits());
    output.out << (common.json() ? JsonText(json) : AsTable(json));
    return absl::OkStatus();
  }

 private:
  static std::string Value(const Json& json) {
    if (json.is_string()) return json.get<std::string>();
    if (json.is_array()) return absl::StrJoin(json.get<std::vector<std::string>>(), ", ");
    return json.dump();
  }

  static std::string AsTable(const Json& json) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& [name, value] : json.items()) {
      if (!value.is_object()) rows.push_back({name, Value(value)});
    }
    for (const auto& [name, value] : json["limits"].items()) rows.push_back({name, Value(value)});
    return Table({{"what", false}, {"value", false}}, rows);
  }
};

class HealthCommand : public Command {
 public:
  CLI::App* AddTo(CLI::App* app) override {
    CLI::App* parser = app->add_subcommand("health", "Exits 0 only if the server serves");
    parser->add_option("--service", service_, "Empty: the whole server")->capture_default_str();
    return parser;
  }

  absl::Status Run(const CommonOptions& common, const Output& output) override {
    RerankClient client(Connect(common.target));
    ASSIGN_OR_RETURN(const ServingStatus serving,
                     client.Health(service_, {.timeout = common.timeout_duration()}));
    const std::string name = Name(serving);
    output.out << (common.json() ? JsonText({{"service", service_}, {"status", name}})
                                 : name + "\n");
    if (serving == ServingStatus::kServing) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("service '", service_, "' is ", name));
  }

 private:
  static std::string Name(ServingStatus serving) {
    switch (serving) {
      case ServingStatus::kServing:
        return "SERVING";
      case ServingStatus::kNotServing:
        return "NOT_SERVING";
      case ServingStatus::kServiceUnknown:
        return "SERVICE_UNKNOWN";
      case ServingStatus::kUnknown:
        break;
    }
    return "UNKNOWN";
  }

  std::string service_;
};

}  // namespace

std::unique_ptr<Command> MakeInfoCommand() {
  return std::make_unique<InfoCommand>();
}
std::unique_ptr<Command> MakeHealthCommand() {
  return std::make_unique<HealthCommand>();
}

}  // namespace maxsimd
