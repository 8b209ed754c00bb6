#include "server/rpc/call_registry.h"

#include "absl/time/clock.h"

#include "server/rpc/rerank_call.h"

namespace maxsimd {

CallRegistry::CallRegistry(absl::Duration tick) : thread_([this, tick] { Run(tick); }) {}

CallRegistry::~CallRegistry() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

bool CallRegistry::Add(const std::shared_ptr<RerankCall>& call) {
  MutexLock lock(&mutex_);
  if (refusing_) return false;
  calls_.emplace(call.get(), call);
  if (calls_.size() == 1) changed_.NotifyAll();
  return true;
}

void CallRegistry::RefuseNewCalls() {
  MutexLock lock(&mutex_);
  refusing_ = true;
}

void CallRegistry::Remove(RerankCall* call) {
  MutexLock lock(&mutex_);
  calls_.erase(call);
  if (calls_.empty()) changed_.NotifyAll();
}

bool CallRegistry::WaitUntilEmpty(absl::Time deadline) {
  MutexLock lock(&mutex_);
  while (!calls_.empty() && absl::Now() < deadline) changed_.WaitUntil(&mutex_, deadline);
  return calls_.empty();
}

void CallRegistry::AbortAll(const absl::Status& status) {
  for (const std::shared_ptr<RerankCall>& call : All()) call->Abort(status);
}

size_t CallRegistry::size() const {
  MutexLock lock(&mutex_);
  return calls_.size();
}

std::vector<std::shared_ptr<RerankCall>> CallRegistry::All() {
  MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<RerankCall>> all;
  all.reserve(calls_.size());
  for (const auto& [address, weak] : calls_) {
    if (std::shared_ptr<RerankCall> call = weak.lock()) all.push_back(std::move(call));
  }
  return all;
}

void CallRegistry::Run(absl::Duration tick) {
  while (true) {
    {
      MutexLock lock(&mutex_);
      while (!stopping_ && calls_.empty()) changed_.Wait(&mutex_);
      const absl::Time next = absl::Now() + tick;
      while (!stopping_ && absl::Now() < next) changed_.WaitUntil(&mutex_, next);
      if (stopping_) return;
    }
    const absl::Time now = absl::Now();
    for (const std::shared_ptr<RerankCall>& call : All()) call->OnTick(now);
  }
}

}  // namespace maxsimd
