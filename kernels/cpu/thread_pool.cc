#include "kernels/cpu/thread_pool.h"

#include <algorithm>

namespace maxsimd {

ThreadPool::ThreadPool(int threads) {
  helpers_.reserve(threads - 1);
  for (int thread = 1; thread < threads; ++thread) {
    helpers_.emplace_back([this, thread] { Help(thread); });
  }
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  job_changed_.NotifyAll();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadPool::Run(size_t items, Task task) {
  if (items <= 1 || helpers_.empty()) {
    for (size_t item = 0; item < items; ++item) task(item, 0);
    return;
  }
  {
    MutexLock lock(&mutex_);
    items_ = items;
    next_item_.store(0, std::memory_order_relaxed);
    task_ = &task;
    ++job_;
  }
  const size_t wanted = std::min(items - 1, helpers_.size());
  for (size_t i = 0; i < wanted; ++i) job_changed_.NotifyOne();
  TakeItems(task, 0);
  MutexLock lock(&mutex_);
  task_ = nullptr;
  while (working_ > 0) helpers_left_.Wait(&mutex_);
}

void ThreadPool::Help(int thread) {
  uint64_t last_job = 0;
  MutexLock lock(&mutex_);
  while (true) {
    while (!stopping_ && (task_ == nullptr || job_ == last_job)) job_changed_.Wait(&mutex_);
    if (stopping_) return;
    last_job = job_;
    const Task task = *task_;
    ++working_;
    mutex_.Unlock();
    TakeItems(task, thread);
    mutex_.Lock();
    if (--working_ == 0) helpers_left_.NotifyOne();
  }
}

void ThreadPool::TakeItems(Task task, int thread) {
  while (true) {
    const size_t item = next_item_.fetch_add(1, std::memory_order_relaxed);
    if (item >= items_) return;
    task(item, thread);
  }
}

}  // namespace maxsimd
