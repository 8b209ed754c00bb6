// How far a call has come: when to read its next message, and when it is complete.
//
// Pure bookkeeping: no gRPC, no lock, no clock.
#ifndef MAXSIMD_SERVER_RPC_CALL_PROGRESS_H_
#define MAXSIMD_SERVER_RPC_CALL_PROGRESS_H_

#include <cstddef>
#include <cstdint>

namespace maxsimd {

class CallProgress {
 public:
  // One message ahead: while one waits to be copied the next is received, and no more.
  static constexpr int kMessagesAhead = 2;

  // A caller that doesn't read its results is sent no more of them than this before it has; enough
  // for the four largest responses.
  static constexpr size_t kMaxUnsentBytes = size_t{4} << 20;

  explicit CallProgress(bool single_message) : single_message_(single_message) {}

  bool WantsRead() const {
    return !reading_ && !input_done_ && messages_uncopied_ < kMessagesAhead &&
           unsent_bytes_ <= kMaxUnsentBytes;
  }
  void OnReadStarted() { reading_ = true; }
  // `documents` of them have tokens and are queued for scoring, if any.
  void OnMessage(uint64_t documents, uint64_t scoreless_documents, bool queued) {
    reading_ = false;
    started_ = true;
    if (single_message_) input_done_ = true;
    documents_received_ += documents;
    documents_done_ += scoreless_documents;
    if (queued) ++messages_uncopied_;
  }
  void OnInputDone() {
    reading_ = false;
    input_done_ = true;
  }
  void OnCopied() { --messages_uncopied_; }
  void OnScored(uint64_t documents) { documents_done_ += documents; }
  void OnUnsent(size_t bytes) { unsent_bytes_ += bytes; }
  void OnSent(size_t bytes) { unsent_bytes_ -= bytes; }

  bool reading() const { return reading_; }
  bool owes_results() const { return documents_done_ != documents_received_ || unsent_bytes_ > 0; }
  bool started() const { return started_; }
  uint64_t documents_received() const { return documents_received_; }
  bool complete() const {
    return started_ && input_done_ && documents_done_ == documents_received_;
  }

 private:
  const bool single_message_;
  bool reading_ = false;
  bool started_ = false;
  bool input_done_ = false;
  int messages_uncopied_ = 0;
  uint64_t documents_received_ = 0;
  uint64_t documents_done_ = 0;
  size_t unsent_bytes_ = 0;
};

}  // namespace maxsimd

#endif  // MAXSIMD_SERVER_RPC_CALL_PROGRESS_H_
