#include "client/cli/command.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

namespace maxsimd {

absl::Duration CommonOptions::timeout_duration() const {
  absl::Duration duration;
  return absl::ParseDuration(timeout, &duration) ? duration : absl::ZeroDuration();
}

std::shared_ptr<grpc::Channel> Connect(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

CLI::Validator IsDuration() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        absl::Duration duration;
        const bool valid = absl::ParseDuration(text, &duration) && duration > absl::ZeroDuration();
        return valid ? "" : "'" + text + "' is no duration above 0 such as 500ms, 10s or 1m30s";
      },
      "DURATION");
}

CLI::Validator IsDurationOrNone() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        absl::Duration duration;
        const bool valid = absl::ParseDuration(text, &duration) && duration >= absl::ZeroDuration();
        return valid ? "" : "'" + text + "' is no duration such as 0, 500ms, 10s or 1m30s";
      },
      "DURATION");
}

CLI::Validator IsPositiveNumber() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        double value;
        const bool valid = absl::SimpleAtod(text, &value) && std::isfinite(value) && value > 0;
        return valid ? "" : "'" + text + "' is no number above 0";
      },
      "NUMBER > 0");
}

CLI::Validator IsElementType() {
  return CLI::IsMember({"float32", "float16", "bfloat16"});
}

v1::ElementType ElementTypeFromName(const std::string& name) {
  if (name == "float32") return v1::ELEMENT_TYPE_FLOAT32;
  if (name == "float16") return v1::ELEMENT_TYPE_FLOAT16;
  if (name == "bfloat16") return v1::ELEMENT_TYPE_BFLOAT16;
  return v1::ELEMENT_TYPE_UNSPECIFIED;
}

}  // namespace maxsimd
