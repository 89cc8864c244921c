// SPDX-License-Identifier: Apache-2.0
// Writes blocks of text to a file in a thread of its own, so that the next block is made meanwhile.
// One block is being written and one waits: memory is bounded. Thread-safety: one thread calls it.
#ifndef WEFT_CLI_BLOCK_WRITER_H_
#define WEFT_CLI_BLOCK_WRITER_H_

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

namespace weft::cli {

class BlockWriter {
 public:
  // `out` outlives the object; no other code uses it, except after Flush.
  explicit BlockWriter(std::FILE* out) : out_(out) {}
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;
  ~BlockWriter();  // what was not flushed may be lost

  // Takes the text and leaves `block` empty, with room for another. Waits while one waits already.
  // False: errno says why an earlier one could not be written; nothing is written from then on.
  bool Write(std::string& block);
  // Waits until all is written, and flushes `out`. False as for Write.
  bool Flush();

 private:
  void Run();
  bool Result();

  std::FILE* const out_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string waiting_;      // the next block; "": none
  bool is_writing_ = false;  // the thread has a block
  bool is_over_ = false;
  int error_ = 0;       // errno of the first failure
  std::thread thread_;  // started with the first block
};

}  // namespace weft::cli

#endif  // WEFT_CLI_BLOCK_WRITER_H_
